"""However the program ends, what it did before is in the trace."""
import os
import signal
import subprocess
import time

import pytest
from trace_world import read_trace


@pytest.mark.parametrize("operation, status, wait_status", [
    ("crash", 128 + signal.SIGSEGV, signal.SIGSEGV),
    ("kill=9", 128 + 9, 9),
    ("kill=15", 128 + 15, 15),
    ("_exit=7", 7, 7 << 8),
    ("exit=3", 3, 3 << 8),
])
def test_end(world, operation, status, wait_status):
    run = world.trace(f"open={world.path('libouter2.so')},2", "open=@,1", operation)
    assert run.status == status
    assert run.end["end"]["exit_status"] & 0xFF7F == wait_status  # without the core dump bit
    assert len(run.calls) == 8
    # _exit looks like exec from outside, so the trace says that it does not know.
    assert bool(run.end["blind_spots"]) == operation.startswith("_exit")


def test_crash_inside_a_constructor(world, tmp_path):
    source = tmp_path / "crash.c"
    source.write_text('#include <dlfcn.h>\n__attribute__((constructor)) static void c(void) {'
                      f'dlopen("{world.path("libplain.so")}", RTLD_NOW); *(volatile int*)8 = 1; }}')
    library = tmp_path / "libcrash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    run = world.trace(f"open={library},2")
    assert run.status == 139
    assert [(c["name"], c.get("depth", 0)) for c in run.calls] == [
        (str(library), 0), (world.path("libplain.so"), 1)]


def test_what_cannot_be_traced(world, tmp_path):
    for command, status, words in [
            ([world.path("static")], 125, "statically linked"),
            ([world.path("static-pie")], 125, "statically linked"),
            (["/no/such/program"], 125, "not an executable file"),
            (["no-such-command-at-all"], 125, "command not found")]:
        run = world.trace(command=command)
        assert (run.status, run.lines) == (status, []) and words in run.stderr, run.stderr


def test_usage_errors_are_not_the_exit_code_of_a_command(world):
    done = world.run([world.cohabit, "trace", "--no-such-option", "--", "/bin/true"])
    assert done.returncode == 125


def test_program_that_does_not_start(world, tmp_path):
    world.compile("opener.c", "broken", "-Wl,--no-as-needed", world.path("libother.so"))
    os.rename(world.path("libother.so"), world.path("libgone.so"))
    try:
        run = world.trace(program=world.path("broken"))
    finally:
        os.rename(world.path("libgone.so"), world.path("libother.so"))
    assert run.status == 127 and "error while loading shared libraries" in run.stderr
    assert run.calls == [] and "tracer did not run" in run.end["blind_spots"][0]
    assert run.start["program"] == world.path("broken")


@pytest.mark.parametrize("missing", ["library", "symbol"])
def test_nothing_of_ours_is_in_the_trace_of_a_failed_start(world, tmp_path, missing):
    source, library = tmp_path / "needed.c", tmp_path / "libneeded.so"
    source.write_text("extern int nowhere; int* pointer = &nowhere;")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    world.compile("opener.c", "unlucky", "-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all", str(library))
    if missing == "library":
        library.unlink()
    user = {"LD_PRELOAD": world.path("libplain.so"), "LD_BIND_NOW": "1"}
    trace = tmp_path / "failed.trace"
    run = world.trace(program=world.path("unlucky"), out=str(trace), **user)
    replayed = subprocess.run([world.cohabit, "replay", trace, "--loads", tmp_path / "loads",
                               "--bindings", tmp_path / "bindings"], capture_output=True, text=True)
    assert run.status == 127 and "tracer did not run" in run.end["blind_spots"][0], run.stderr
    environment = dict(run.start["environment"])
    assert {k: environment.get(k) for k in ("LD_DEBUG", "LD_DEBUG_OUTPUT", *user)} == {
        "LD_DEBUG": None, "LD_DEBUG_OUTPUT": None, **user}
    healthy = world.trace("open=@,1").start
    assert (run.start["machine"], run.start["hwcaps"]) == (healthy["machine"], healthy["hwcaps"])
    assert "would not start" in replayed.stderr
    assert "libcohabit" not in (tmp_path / "loads").read_text() + (tmp_path / "bindings").read_text()


def test_all_missing_versions_of_a_start_are_told(world, tmp_path):
    """ld.so looks at the versions of all files before it ends; its own lines are the reference."""
    (tmp_path / "v.c").write_text("int f(void) { return 0; }\nint g(void) { return 0; }\n")
    (tmp_path / "user.c").write_text("int f(void), g(void);\nint use(void) { return f() + g(); }\n")
    (tmp_path / "p.c").write_text("int use(void), g(void);\nint main(void) { return use() + g(); }\n")

    def library(versions: str) -> None:
        (tmp_path / "map").write_text(versions)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libv.so", "-Wl,--version-script,map", "-o", "libv.so", "v.c"],
                       check=True, cwd=tmp_path)

    library("V1 { global: f; };\nV2 { global: g; };\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libuser.so", "-o", "libuser.so", "user.c", "./libv.so", "-Wl,-rpath,$ORIGIN"],
                   check=True, cwd=tmp_path)
    subprocess.run(["cc", "-o", "p", "p.c", "./libuser.so", "./libv.so", "-Wl,-rpath,$ORIGIN"], check=True, cwd=tmp_path)
    library("V0 { global: f; g; };\n")
    program, trace = str(tmp_path / "p"), str(tmp_path / "p.trace")
    said = [line.removeprefix(f"{program}: ") for line in world.run([program]).stderr.splitlines()]
    assert len(said) == 3 and all("not found (required by" in line for line in said)
    world.trace(program=program, out=trace)
    replayed = world.run([world.cohabit, "replay", trace]).stderr.splitlines()
    told = [line.split(": ", 1)[1] for line in replayed if line.startswith(("the process would not start: ", "and: "))]
    assert told == said


def test_kill_switch(world):
    run = world.trace("open=@,1", COHABIT_TRACE="off")
    # What ld.so itself says remains.
    assert run.status == 0 and all(c["inferred"] for c in run.calls)
    assert "COHABIT_TRACE=off" in run.end["blind_spots"][-1]


def test_signals_reach_the_command(world, tmp_path):
    out = tmp_path / "t"
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [world.cohabit, "trace", "--out", out, "--", "/bin/sh", "-c",
         f"trap 'exit 42' USR1; : > {ready}; while :; do sleep 0.1; done"])
    while not ready.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=30) == 42
    assert read_trace(out)[-1]["end"]["exit_status"] == 42 << 8


def test_out_file_that_cannot_be_written(world):
    run = world.trace("open=@,1", out="/no/such/directory/t")
    assert run.status == 125 and "cannot write" in run.stderr


def test_full_disk(world, tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", tmp_path],
                      capture_output=True).returncode:
        pytest.skip("making a small disk needs root")
    try:
        run = world.trace("open=libm.so.6,2", TMPDIR=str(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert (run.status, run.lines) == (125, []) and "No space left on device" in run.stderr


def test_nothing_is_run_for_a_trace_that_cannot_be_written(cohabit, tmp_path):
    (tmp_path / "directory").mkdir()
    for out in ("missing/trace", "directory", "trace/", ""):
        done = subprocess.run([cohabit, "trace", "--out", out, "--", "touch", "ran"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 125 and "nothing was run" in done.stderr, out
    assert not (tmp_path / "ran").exists()
    for out in ("trace", "trace", "/dev/null", "-"):
        done = subprocess.run([cohabit, "trace", "--out", out, "--", "touch", "ran"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and (tmp_path / "ran").exists(), out
        (tmp_path / "ran").unlink()
