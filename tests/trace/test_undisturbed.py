"""The traced program does, loads and binds what it does, loads and binds without the tracer."""
import os
import re
import subprocess
import sys

import pytest
from trace_world import read_trace

WRAPPED = r"`(?:dlopen|dlmopen|dlclose)'"


def loader_log(directory, command, traced_by=None):
    """ld.so's own log of the command's process, the same with and without the tracer: without
    process number and addresses, and without the tracer's own lines."""
    directory.mkdir()
    out = directory / "trace"
    front = [traced_by, "trace", "--out", out, "--"] if traced_by else []
    process = subprocess.Popen([*front, *command], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "LD_DEBUG": "files,bindings,scopes",
                                    "LD_DEBUG_OUTPUT": f"{directory}/log"})
    output = process.communicate()[0]
    lines = read_trace(out) if traced_by else []
    pid = lines[0]["pid"] if traced_by else process.pid
    log = (directory / f"log.{pid}").read_text(errors="surrogateescape").splitlines()
    return process.returncode, output, list(without_tracer(log)), lines


def without_tracer(lines):
    own_object = False
    for line in lines:
        line = line.split(":\t", 1)[-1]
        if line.startswith("object="):
            own_object = "libcohabit_trace" in line
        elif not line.startswith(" scope"):
            own_object = False
        if own_object or not line.strip() or "dynamic: 0x" in line or "entry: 0x" in line:
            continue
        if re.search(r"scope \d+:", line):
            line = re.sub(r" \S*/libcohabit_trace\.so", "", line)
        # The one thing that is meant to be different: where the three functions are found.
        line = re.sub(r" to \S+ \[0\](: normal symbol " + WRAPPED + ")", r"\1", line)
        if "libcohabit_trace.so" not in line:
            yield line


STATEMENT = "import ssl, ctypes, sqlite3, zlib, decimal; ctypes.CDLL('libm.so.6'); ctypes.CDLL(None)"


def test_loader_log_is_the_same(world, tmp_path):
    command = [os.path.realpath(sys.executable), "-S", "-c", STATEMENT]
    *plain, before, _ = loader_log(tmp_path / "a", command)
    *traced, after, trace = loader_log(tmp_path / "b", command, world.cohabit)
    assert plain == traced
    assert len(before) > 1000
    assert after == before
    # The user's log came first, and the trace says what that costs.
    assert "LD_DEBUG" in trace[-1]["blind_spots"][0]
    assert any("/_ssl" in (line.get("name") or "") for line in trace)


def test_loader_log_is_the_same_for_the_opener(world, tmp_path):
    command = [world.program, f"open={world.path('libouter2.so')},101",
               f"open={world.path('libcaller.so')},2", "via=2,libhidden.so", "open=libplain.so,6",
               "close=0", f"mopen=new,{world.path('libother.so')},2"]
    *plain, before, _ = loader_log(tmp_path / "a", command)
    *traced, after, _ = loader_log(tmp_path / "b", command, world.cohabit)
    assert plain == traced
    assert after == before


def test_runpath_of_the_caller_counts(world):
    operations = [f"open={world.path('libcaller.so')},2", "via=2,libhidden.so",
                  f"open={world.path('libother.so')},2", "via=2,libnot-hidden.so"]
    run, plain = world.trace(*operations), world.plain(*operations)
    assert run.stdout == plain.stdout
    assert "libhidden.so: opened" in run.stdout
    assert run.one("libhidden.so")["caller"] == world.path("libcaller.so")


@pytest.mark.parametrize("preload", [None, "", "libm.so.6", "libm.so.6 libz.so.1"])
def test_environment_is_the_same(world, preload):
    env = {} if preload is None else {"LD_PRELOAD": preload}
    command = ["/usr/bin/env", "-0"]
    run, plain = world.trace(command=command, **env), world.plain(command=command, **env)
    assert run.stdout == plain.stdout
    assert dict(run.start["environment"]).get("LD_PRELOAD") == preload


def test_descriptors_errno_and_messages_are_the_same(world):
    operations = ["fds", "errno", "open=libnot-there.so,2", f"open={world.path('libplain.so')},0",
                  f"mopen=5,{world.path('libplain.so')},2", "mopen=1,@,2"]
    run, plain = world.trace(*operations), world.plain(*operations)
    assert run.stdout == plain.stdout
    assert run.stdout.startswith("fd 0\nfd 1\nfd 2\nerrno: ")


def test_inherited_descriptors_are_kept(world, tmp_path):
    command = f'exec 5>{tmp_path}/five; exec "$@"'
    def fds(*front):
        shell = ["/bin/sh", "-c", command, "sh", *front, world.program, "fds"]
        return world.run(shell).stdout
    out = str(tmp_path / "t")
    assert fds(world.cohabit, "trace", "--out", out, "--") == fds()


@pytest.mark.parametrize("operation", ["write3", "closefrom"])
def test_programs_that_take_low_descriptors(world, tmp_path, operation):
    """ld.so must not write its log into a file that the program has opened under its number."""
    file = tmp_path / "file"
    run = world.trace(f"{operation}={file}", "user=no-such-user", "open=libnot-there.so,2",
                      f"open={world.path('libplain.so')},2")
    assert file.read_bytes() == b""
    assert [c["name"] for c in run.calls if not c.get("inferred")] == [
        "libnot-there.so", world.path("libplain.so")]
    closed = any("closed the descriptors" in s for s in run.end["blind_spots"])
    assert closed == (operation == "closefrom")


def test_input_and_output_pass_through(world, tmp_path):
    run = subprocess.run([world.cohabit, "trace", "--out", tmp_path / "t", "--", "/bin/cat"],
                         input=b"a\0b\n", capture_output=True)
    assert run.stdout == b"a\0b\n" and run.stderr == b""


def test_tracer_path_with_spaces(world, tmp_path, build_dir):
    place = tmp_path / "a b:c"
    place.mkdir()
    os.symlink(build_dir / "libcohabit_trace.so", place / "tracer.so")
    run = world.trace("open=@,1", COHABIT_TRACER=str(place / "tracer.so"))
    assert len(run.calls) == 1


def test_nothing_is_left_behind(world, tmp_path):
    world.trace("open=@,1", TMPDIR=str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_the_tracer_needs_nothing(build_dir):
    """No NEEDED (it would move libc in the start-up order), no versions, no TLS, no glibc floor."""
    library = str(build_dir / "libcohabit_trace.so")
    dump = subprocess.run(["readelf", "-dVlW", library], capture_output=True, text=True).stdout
    assert "(NEEDED)" not in dump and "Version needs" not in dump and " TLS " not in dump
    assert "GNU_STACK" in dump and "RWE" not in dump
    symbols = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True,
                             text=True).stdout.split()
    assert set(symbols[0::2]) == {"w"}, symbols
    defined = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                             text=True).stdout
    assert set(re.findall(r" T (\w+)", defined)) == {"dlopen", "dlmopen", "dlclose"}
