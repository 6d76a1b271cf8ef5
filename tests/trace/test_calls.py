"""What is recorded: each call once, with name, flags, caller, nesting; and calls only."""
import os

from trace_world import DEEPBIND, GLOBAL, LAZY, NODELETE, NOLOAD, NOW, read_trace, text

CALL_FIELDS = {"call", "name", "flags", "link_map_id", "ns", "caller", "caller_ns", "cwd", "depth",
               "constructor", "during_start", "inferred", "unmapped"}
START_FIELDS = {"cohabit_trace", "program", "executable", "arguments", "cwd", "environment", "hwcaps",
                "platform", "glibc", "machine", "secure", "tracer", "pid", "parent_pid", "forked"}


def assert_calls_only(lines):
    """A trace tells what was asked for, never what came of it: no libraries, no symbols."""
    assert set(lines[0]) - {"loader_command"} == START_FIELDS
    assert set(lines[-1]) == {"end", "blind_spots"} and set(lines[-1]["end"]) == {"exit_status"}
    for call in lines[1:-1]:
        assert set(call) <= CALL_FIELDS, call
        for key in ("name", "caller", "cwd", "constructor"):
            value = call.get(key)
            assert value is None or isinstance(value, str) or set(value) == {"hex"}, call


def test_holds_calls_only(world):
    run = world.trace(f"open={world.path('libouter2.so')},2", "user=root")
    assert_calls_only(run.lines)
    every = "\n".join(map(str, run.lines))
    assert "libc.so.6" not in every.replace(f"'caller': '{libc(run)}'", "")


def libc(run):
    callers = {c["caller"] for c in run.calls if c.get("inferred")}
    return next((c for c in callers if "libc.so" in c), "none")


def test_open_flags_and_callers(world):
    plain, caller = world.path("libplain.so"), world.path("libcaller.so")
    run = world.trace(f"open={plain},2", f"open={plain},101", "open=@,1", f"open={plain},1002",
                      f"open={world.path('libother.so')},6", "open=libnot-there.so,2",
                      f"open={caller},2", "via=2,libhidden.so")
    assert run.status == 0
    flags = [(text(c["name"]), c["flags"]) for c in run.calls]
    assert flags == [(plain, NOW), (plain, GLOBAL | LAZY), (None, LAZY), (plain, NODELETE | NOW),
                     (world.path("libother.so"), NOLOAD | NOW), ("libnot-there.so", NOW),
                     (caller, NOW), ("libhidden.so", NOW)]
    assert [c["caller"] for c in run.calls] == [""] * 7 + [caller]
    assert all(c["call"] == "dlopen" and "depth" not in c and "inferred" not in c for c in run.calls)
    assert run.end == {"end": {"exit_status": 0}, "blind_spots": []}


def test_wrong_flags_leave_no_mark(world):
    plain = world.path("libplain.so")
    run = world.trace(f"open={plain},0", f"open={plain},800002", f"open={plain},2")
    assert [c["flags"] for c in run.calls] == [0, 0x800002, 2]
    assert not any("inferred" in c for c in run.calls)


def test_nested_in_constructors(world):
    run = world.trace(f"open={world.path('libouter2.so')},2", f"open={world.path('libother.so')},2")
    shape = [(os.path.basename(c["name"] or "-"), c.get("depth", 0),
              os.path.basename(c.get("constructor", ""))) for c in run.calls]
    assert shape == [("libouter2.so", 0, ""),
                     ("libouter.so", 1, "libouter2.so"),
                     ("libplain.so", 2, "libouter.so"),
                     ("libnot-there.so", 2, "libouter.so"),
                     ("-", 2, "libouter.so"),
                     ("libnot-there.so", 1, "libouter2.so"),
                     ("-", 1, "libouter2.so"),
                     ("libother.so", 0, "")]
    assert run.one("libouter.so")["flags"] == NOW | GLOBAL
    assert not any("inferred" in c for c in run.calls)


def test_constructors_of_the_start(world):
    run = world.trace("open=@,1", program=world.path("starter"))
    start = [c for c in run.calls if c.get("during_start")]
    assert [os.path.basename(c["name"] or "-") for c in start] == ["libplain.so", "libnot-there.so",
                                                                   "-"]
    assert all(c["constructor"] == world.path("libstart.so") for c in start)
    assert all("depth" not in c for c in run.calls)
    assert len(run.calls) == 4 and "during_start" not in run.calls[-1]


def test_close(world):
    plain, late = world.path("libplain.so"), world.path("liblate.so")
    run = world.trace(f"open={late},2", f"open={late},2", "close=0", "close=1", f"open={plain},2")
    calls = [(c["call"], c["name"], c.get("depth", 0), c.get("constructor")) for c in run.calls]
    assert calls == [("dlopen", late, 0, None), ("dlopen", late, 0, None),
                     ("dlclose", late, 0, None), ("dlclose", late, 0, None),
                     ("dlopen", plain, 1, late), ("dlopen", plain, 0, None)]
    assert not any("inferred" in c for c in run.calls)


def test_close_twice_and_close_without_effect(world):
    plain = world.path("libplain.so")
    operations = [f"open={world.path('libother.so')},1002", "close=0", f"open={plain},2",
                  "close=twice"]
    run = world.trace(*operations)
    assert run.stdout == world.plain(*operations).stdout
    assert [(c["call"], c["name"] and os.path.basename(c["name"])) for c in run.calls] == [
        ("dlopen", "libother.so"), ("dlclose", "libother.so"),
        ("dlopen", "libplain.so"), ("dlclose", "libplain.so"), ("dlclose", None)]


def test_calls_of_destructors_at_exit(world):
    late = world.path("liblate.so")
    run = world.trace(f"open={late},2")
    assert [c["name"] for c in run.calls] == [late, world.path("libplain.so")]
    assert run.calls[1]["caller"] == late and "depth" not in run.calls[1]


def test_namespaces(world):
    plain, caller = world.path("libplain.so"), world.path("libcaller.so")
    run = world.trace(f"mopen=new,{caller},2", "via=1,libhidden.so", f"mopen=1,{plain},1", "close=0",
                      f"mopen=0,{plain},2", f"mopen=9,{plain},2")
    assert run.status == 0
    first, inner, second, close, base, wrong = run.calls
    assert (first["call"], first["link_map_id"], first["caller"]) == ("dlmopen", -1, "")
    # Another namespace has another libc, and our wrapper is not in it.
    assert inner["inferred"] and inner["caller"] == caller and inner["caller_ns"] == 1
    assert inner["name"] == "libhidden.so" and inner["flags"] == LAZY
    assert (second["call"], second["link_map_id"], second["flags"]) == ("dlmopen", 1, LAZY)
    assert (close["call"], close["name"], close["ns"]) == ("dlclose", caller, 1)
    assert base["link_map_id"] == 0 and wrong["link_map_id"] == 9


def test_caller_opened_with_deepbind_is_inferred(world):
    deep, plain, other = (world.path(f"lib{n}.so") for n in ("deep", "plain", "other"))
    run = world.trace(f"open={deep},a", f"via=102,{plain}", f"open={deep},2", f"via=101,{plain}",
                      f"open={deep},2", f"via=a,{other}", "open=@,1")
    first = run.calls[0]
    assert first["flags"] == DEEPBIND | NOW and "inferred" not in first
    inferred = [c for c in run.calls if c.get("inferred")]
    names = [c["name"] for c in inferred]
    assert names == [plain, plain, other]
    assert inferred[0]["caller"] == deep and inferred[0]["flags"] == NOW | GLOBAL
    assert inferred[2]["flags"] & DEEPBIND
    assert any("RTLD_DEEPBIND" in s and deep in s for s in run.end["blind_spots"])
    assert any("inferred from ld.so's log: 3 calls." in s for s in run.end["blind_spots"])


def test_a_question_that_the_tracer_cannot_see_opens_nothing(world):
    deep, plain = world.path("libdeep.so"), world.path("libplain.so")
    run = world.trace(f"open={deep},a", f"via={NOW | NOLOAD:x},{plain}")
    assert f"{plain}: opened" not in run.stdout
    assert run.calls[1]["inferred"] and run.calls[1]["flags"] & NOLOAD
    run = world.trace(f"open={deep},a", f"open={plain},2", f"open={deep},2", f"via={NOW | NOLOAD:x},{plain}")
    assert not any(c["flags"] & NOLOAD for c in run.calls), "it was there"


def test_an_unseen_open_in_a_new_namespace(world):
    deep = world.path("libcaller.so")
    run = world.trace(f"open={deep},a", "viam=2,libhidden.so")
    assert "libhidden.so: opened" in run.stdout
    call = run.calls[1]
    assert (call["call"], call["link_map_id"], call["name"]) == ("dlmopen", -1, "libhidden.so")
    assert call["inferred"] and not call["flags"] & DEEPBIND


def test_lazy_flag_of_an_inferred_call(world):
    deep, plain = world.path("libdeep.so"), world.path("libplain.so")
    run = world.trace(f"open={deep},a", f"via=1,{plain}")
    assert run.calls[1]["inferred"] and run.calls[1]["flags"] == LAZY


def test_opens_inside_libc(world):
    run = world.trace("user=no-such-user", "charset=IBM1047", "open=@,1")
    assert "user: 0" in run.stdout
    inferred = [c for c in run.calls if c.get("inferred") and c["call"] == "dlopen"]
    if "charset: 1" in run.stdout:  # gconv modules are installed
        assert any("IBM1047" in c["name"] for c in inferred), run.calls
        assert all("libc.so" in c["caller"] for c in inferred)
        # libnss_systemd.so.2 asks for NODELETE itself (DF_1_NODELETE).
        # A module that is not installed comes out as a question (RTLD_NOLOAD).
        assert all(c["flags"] & ~(NODELETE | NOLOAD) == NOW for c in inferred)
        assert run.end["blind_spots"]
    assert "inferred" not in run.calls[-1]


def test_dlvsym_finds_the_tracer(world):
    versions = {"x86_64": ("GLIBC_2.2.5", "GLIBC_2.34"), "aarch64": ("GLIBC_2.17", "GLIBC_2.34")}
    plain, machine = world.path("libplain.so"), os.uname().machine
    run = world.trace(*(f"dlvsym={v},{plain}" for v in versions[machine]))
    assert len(run.find("libplain.so")) == 2
    assert not any("inferred" in c for c in run.calls)


def test_names_are_bytes(world, tmp_path):
    odd = tmp_path / os.fsdecode(b"a \n\xff:[0];  dynamically loaded by.so")
    os.link(world.path("libplain.so"), odd)
    run = world.trace(f"open={odd},2", f"open={odd},2", f"open={world.path('libother.so')},2")
    assert [text(c["name"]) for c in run.calls] == [str(odd), str(odd), world.path("libother.so")]
    assert not any("inferred" in c for c in run.calls)


def test_change_of_directory(world, tmp_path):
    run = world.trace("open=libnot-there.so,2", f"cd={tmp_path}", "open=libnot-there.so,2",
                      "open=libnot-there.so,2")
    assert [c.get("cwd") for c in run.calls] == [None, str(tmp_path), None]


def test_threads(world):
    plain, outer = world.path("libplain.so"), world.path("libouter.so")
    run = world.trace(f"threads={plain},{outer}")
    opened = [c for c in run.calls if c["call"] == "dlopen"]
    assert len([c for c in opened if c["name"] == outer and "depth" not in c]) == 200
    assert len([c for c in opened if c["name"] == plain and not c.get("depth")]) == 200
    nested = [c for c in opened if c.get("depth")]
    assert all(c["caller"] == outer and c["depth"] == 1 for c in nested)
    assert not any("inferred" in c for c in run.calls)
    assert run.end["blind_spots"] == []


def test_start_facts(world):
    run = world.trace("open=@,1", LD_BIND_NOW="1", LD_LIBRARY_PATH="/a::/b",
                      GLIBC_TUNABLES="glibc.rtld.nns=4")
    start = run.start
    assert start["cohabit_trace"] == 1
    assert start["program"] == start["executable"] == world.program
    assert start["arguments"] == [world.program, "open=@,1"]
    assert start["cwd"] == os.getcwd()
    variables = dict(start["environment"])
    assert variables["LD_BIND_NOW"] == "1" and variables["LD_LIBRARY_PATH"] == "/a::/b"
    assert variables["GLIBC_TUNABLES"] == "glibc.rtld.nns=4"
    assert not {"LD_DEBUG", "LD_DEBUG_OUTPUT"} & set(variables)
    assert start["glibc"] == os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert start["machine"] == os.uname().machine
    assert start["platform"] and start["secure"] is False and start["parent_pid"] == 0
    assert os.path.exists(start["tracer"])
    assert not {"tls", "x86_64"} & set(start["hwcaps"])


def test_script(world, tmp_path):
    link = tmp_path / "interpreter"
    link.symlink_to(world.program)
    script = tmp_path / "script"
    script.write_text(f"#!{link}  open=@,1\n")
    script.chmod(0o755)
    run = world.trace(command=[str(script), "open=@,2"])
    # The interpreter gets the script's name as an argument, which is no operation for it.
    assert run.status == 3
    assert run.start["program"] == str(link) and run.start["executable"] == world.program
    assert run.start["arguments"][:3] == [str(link), "open=@,1", str(script)]


def test_relative_program_and_path_search(world):
    run = world.trace(command=["./opener", "open=@,1"], cwd=world.directory)
    assert run.start["program"] == f"{world.directory}/./opener"
    run = world.trace(command=["opener", "open=@,1"],
                      PATH=f"{world.directory}:{os.environ['PATH']}")
    assert run.start["program"] == world.program and run.start["arguments"][0] == "opener"


def test_same_trace_when_replayed_through_the_parser(world, cohabit):
    """The C++ unit tests cover the format; here only: real traces are one object per line."""
    run = world.trace(f"open={world.path('libouter2.so')},2")
    assert read_trace(world.directory / f"out-{os.getpid()}.trace") == run.lines


