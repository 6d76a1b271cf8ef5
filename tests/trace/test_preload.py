"""libcohabit_preload.so changes the flags of the dlopen calls that its rules name, and nothing else.

The judge is the tracer, which stands behind it and writes down the flags that glibc is given, and
ld.so's own log for the caller that glibc sees.
"""
import os
import re
import shutil
import subprocess

import pytest

from trace_world import DEEPBIND, GLOBAL, NOW

HEAD = "cohabit-rules 1"


@pytest.fixture(scope="session")
def preload(build_dir) -> str:
    return str(build_dir / "libcohabit_preload.so")


@pytest.fixture
def flags(world, preload):
    """Runs the opener with rules; gives the flags of every open that glibc saw."""
    def run(rules, *operations, **env):
        done = world.trace(*operations, LD_PRELOAD=preload, COHABIT_PRELOAD_RULES=rules, **env)
        assert done.status == 0, done.stderr
        return [call["flags"] for call in done.calls]
    return run


def test_flags_change_for_the_named_file(world, flags):
    plain, other = world.path("libplain.so"), world.path("libother.so")
    rules = f"{HEAD}\ndlopen -global {plain}\ndlopen +deepbind {plain}\n"
    opens = [f"open={plain},102", f"open={other},102", "open=@,1"]
    assert flags(rules, *opens) == [NOW | DEEPBIND, GLOBAL | NOW, 1]
    assert flags(rules.replace("\n", ";"), *opens) == [NOW | DEEPBIND, GLOBAL | NOW, 1]


def test_a_file_is_meant_by_whatever_path(world, flags, tmp_path):
    plain = world.path("libplain.so")
    (tmp_path / "link").symlink_to(world.directory)
    shutil.copy(plain, tmp_path / "libplain.so")  # another file of that name
    rules = f"{HEAD};dlopen -global {plain}"
    assert flags(rules, f"open={world.directory}/sub/../libplain.so,102",
                 f"open={tmp_path}/link/libplain.so,102",
                 f"open={tmp_path}/libplain.so,102") == [NOW, NOW, GLOBAL | NOW]


def test_a_name_without_slash_means_that_name(world, flags):
    rules = f"{HEAD};dlopen -global libplain.so"
    assert flags(rules, "open=libplain.so,102", f"open={world.path('libplain.so')},102",
                 LD_LIBRARY_PATH=str(world.directory)) == [NOW, GLOBAL | NOW]


def test_escapes(world, flags, tmp_path):
    strange = tmp_path / "a b;c\n%"
    strange.mkdir()
    shutil.copy(world.path("libplain.so"), strange / "libplain.so")
    written = str(strange).replace("%", "%25").replace(" ", "%20").replace(";", "%3b") \
        .replace("\n", "%0a")
    rules = f"{HEAD};dlopen -global {written}/libplain.so"
    assert flags(rules, f"open={strange}/libplain.so,102") == [NOW]


@pytest.mark.parametrize("rules", [
    "", "nonsense", "cohabit-rules 2;dlopen -global PLAIN", f"{HEAD};dlopen -globe PLAIN",
    f"{HEAD};dlopen -global PLAIN;dlopen -global", f"{HEAD};dlopen -global %zz;dlopen -global PLAIN",
    f"{HEAD};" + "dlopen -global PLAIN;" * 70, f"{HEAD};dlopen -global PLAIN;" + "x" * 70000,
    "/not/there", "/dev/null", "/proc/self/mem",
], ids=range(11))
def test_fails_open(world, flags, rules):
    plain = world.path("libplain.so")
    assert flags(rules.replace("PLAIN", plain), f"open={plain},102") == [GLOBAL | NOW]


def test_rules_in_a_file(world, flags, tmp_path):
    plain = world.path("libplain.so")
    file = tmp_path / "rules"
    file.write_text(f"{HEAD}\npreload libz.so.1\ndlopen -global {plain}\n")
    assert flags(str(file), f"open={plain},102") == [NOW]
    file.write_bytes(b"cohabit-rules 1\n\0dlopen -global " + plain.encode() + b"\n")
    assert flags(str(file), f"open={plain},102") == [GLOBAL | NOW]


def test_switched_off(world, flags):
    plain = world.path("libplain.so")
    rules = f"{HEAD};dlopen -global {plain}"
    assert flags(rules, f"open={plain},102", COHABIT_PRELOAD="off") == [GLOBAL | NOW]
    assert flags(rules, f"open={plain},102", COHABIT_PRELOAD="on") == [NOW]


def test_caller_is_kept(world, preload):
    """libhidden.so is found by the RUNPATH of libcaller.so alone: only if glibc sees the caller."""
    caller = world.path("libcaller.so")
    rules = f"{HEAD};dlopen -global libhidden.so"
    done = world.plain(f"open={caller},2", "via=102,libhidden.so", LD_PRELOAD=preload,
                       COHABIT_PRELOAD_RULES=rules, LD_DEBUG="files")
    assert "libhidden.so: opened" in done.stdout
    assert re.search(r"file=libhidden\.so \[0\];  dynamically loaded by \S*libcaller\.so", done.stderr)


def test_every_version_of_dlopen_is_ours(world, preload):
    versions = ["GLIBC_2.17"] if os.uname().machine == "aarch64" else ["GLIBC_2.2.5"]
    for version in [*versions, "GLIBC_2.34"]:
        plain = world.path("libplain.so")
        done = world.trace(f"dlvsym={version},{plain}", LD_PRELOAD=preload,
                           COHABIT_PRELOAD_RULES=f"{HEAD};dlopen +deepbind {plain}")
        assert [c["flags"] for c in done.calls] == [NOW | DEEPBIND], version


@pytest.mark.parametrize("how", ["fork", "spawn", "exec"])
def test_children_inherit(world, preload, how):
    plain = world.path("libplain.so")
    shell = f"'{world.program}' open={plain},2"
    command = {"fork": [world.program, f"fork={plain}"],
               "spawn": ["/bin/sh", "-c", f"{shell}; true"],
               "exec": ["/bin/sh", "-c", f"exec {shell}"]}[how]
    done = world.plain(command=command, LD_PRELOAD=preload, LD_DEBUG="scopes",
                       COHABIT_PRELOAD_RULES=f"{HEAD};dlopen +deepbind {plain}")
    # An object opened with DEEPBIND stands first in its own scope.
    scopes = re.findall(r"object=\S*libplain\.so \[0\]\n\s*\d+:\s+scope 0: (\S+)", done.stderr)
    assert scopes and all(scope.endswith("libplain.so") for scope in scopes), done.stderr


def test_program_that_loads_nothing_named(preload):
    env = {**os.environ, "LD_PRELOAD": preload,
           "COHABIT_PRELOAD_RULES": f"{HEAD};dlopen -global /not/there.so"}
    done = subprocess.run(["/bin/echo", "hello"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_needs_no_library_and_no_version(preload):
    """Runs with any glibc: nothing is linked, and no version of a symbol is asked for."""
    text = subprocess.run(["readelf", "-dVW", preload], capture_output=True, text=True).stdout
    assert "(NEEDED)" not in text and "Version needs section" not in text
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", preload], capture_output=True,
                             text=True).stdout
    undefined = [line.split() for line in symbols.splitlines() if " UND " in line]
    assert all(fields[4] == "WEAK" for fields in undefined if len(fields) > 7), undefined


def test_tracer_leaves_the_preload_to_children(world, preload):
    """The tracer takes itself, and only itself, out of LD_PRELOAD, wherever it stands."""
    for before, after in (("", ""), (preload, preload), (f"{preload}:libz.so.1", f"{preload}:libz.so.1"),
                          ("libz.so.1", "libz.so.1")):
        env = {"LD_PRELOAD": before} if before else {}
        done = world.trace(command=["/bin/sh", "-c", 'echo "$LD_PRELOAD"'], **env)
        assert done.stdout == after + "\n"
        recorded = dict(done.start["environment"])
        assert recorded.get("LD_PRELOAD", "") == before
