"""Starts, crashes, ends: of the worker and of its caller."""
from __future__ import annotations

import ast
import asyncio
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import cohabit
import kills
import places


def test_kills_at_random_points() -> None:
    before = places.children()
    told = kills.run(int(os.environ.get("COHABIT_KILLS", "100")))
    assert told["wrong"] == [] and told["hung"] == 0 and told["left_behind"] == [], told
    assert told["killed"] >= 100 and told["results"] > 100 and told["crashes"] > 0, told
    assert told["longest_call_s"] < kills.LONGEST, told
    assert places.children() <= before


def test_kills_together_with_interrupts() -> None:
    """Of the main thread of a process that calls, with asyncio too."""
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    answer = subprocess.run([sys.executable, places.HERE / "kills.py", "20", "10", "1"], env=env, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["wrong"] == [] and told["hung"] == 0 and told["left_behind"] == [], told
    assert told["killed"] >= 20 and told["interrupted"] >= 10 and told["results"] > 50, told


def test_a_crash_tells_signal_frames_and_last_words(make_worker, monkeypatch, cohabit) -> None:
    import cohabit as package

    monkeypatch.setattr(package, "command", lambda: cohabit)
    worker = make_worker()
    with pytest.raises(package.WorkerCrashed, match="SIGSEGV") as caught:
        worker.call("read_null")
    assert caught.value.signal == signal.SIGSEGV
    assert any("service.py" in frame and "read_null" in frame for frame in caught.value.python_frames)
    with pytest.raises(package.WorkerCrashed, match="SIGABRT") as caught:
        worker.call("complain_and_abort", "RuntimeError: CUDA error: out of memory")
    assert "CUDA error: out of memory" in caught.value.stderr
    assert caught.value.explanation and caught.value.explanation["answers"], "why knows this text"
    assert caught.value.explanation["answers"][0]["mechanism"] in str(caught.value)
    with pytest.raises(package.WorkerCrashed, match="status 3") as caught:
        worker.call("leave", 3)
    assert caught.value.exit_status == 3 and caught.value.signal is None
    assert worker.call("echo", 1) == 1


CRASHING = """
#include <stdlib.h>
void (*nothing)(void);
void fall_over(void) { *(volatile int*)0 = 1; }
void give_up(void) { abort(); }
void call_nothing(void) { nothing(); __asm__ volatile(""); }
void overflow_stack(int n) { volatile char room[4096]; room[0] = (char)n; overflow_stack(n + room[0]); room[1] = 1; }
void enter(int how) { how == 0 ? fall_over() : how == 1 ? give_up() : how == 2 ? call_nothing() : overflow_stack(1); __asm__ volatile(""); }
"""


@pytest.fixture(scope="module")
def crashing(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("crash")
    (place / "falls.c").write_text(CRASHING)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", "-fno-inline", "-w", "-o", place / "libfalls.so",
                    place / "falls.c"], check=True)
    return str(place / "libfalls.so")


@pytest.mark.parametrize("version", ("3.8", "3.9", "3.11", "3.13"))
def test_native_frames_in_each_python(make_worker, monkeypatch, cohabit, crashing, version: str) -> None:
    import cohabit as package

    monkeypatch.setattr(package, "command", lambda: cohabit)
    worker = make_worker(env=places.interpreter(version), log=False)
    # A child by vfork sets handlers back in memory that it shares; Python's own must be called all the same.
    for how, number, names in ((0, signal.SIGSEGV, ["fall_over", "enter"]), (1, signal.SIGABRT, ["give_up", "enter"]),
                               (2, signal.SIGSEGV, ["call_nothing"]), (3, signal.SIGSEGV, ["overflow_stack"])):
        with pytest.raises(package.WorkerCrashed) as caught:
            worker.call("environ_of_child")
            worker.call("enter_library", crashing, how)
        error = caught.value
        here = [frame.split()[0] for frame in error.native_frames if frame.endswith(" in libfalls.so")]
        assert error.signal == number and here[:len(names)] == names, error.native_frames
        assert any("enter_library" in frame for frame in error.python_frames), "Python's own handler is called as well"
        assert error.native_frames[0] in str(error)
    with pytest.raises(package.WorkerCrashed) as caught:
        worker.call("read_null")
    assert caught.value.native_frames[0].partition(" in ")[2].startswith("libc"), caught.value.native_frames
    assert any("_ctypes" in frame or "libffi" in frame for frame in caught.value.native_frames)


def test_the_programs_stack_for_handlers_is_what_it_asks_for(make_worker, monkeypatch, cohabit) -> None:
    import cohabit as package

    monkeypatch.setattr(package, "command", lambda: cohabit)
    worker = make_worker(log=False)
    size, in_thread = worker.call("handler_stacks", 8192)
    assert size == 8192 and in_thread == 12288
    with pytest.raises(package.WorkerCrashed) as caught:
        worker.call("read_null")
    assert len(caught.value.native_frames) > 1 and caught.value.python_frames


def test_native_frames_reach_why(make_worker, monkeypatch, cohabit, crashing) -> None:
    import cohabit as package
    from cohabit import _worker_process as inside

    asked: list[str] = []
    monkeypatch.setattr(package, "command", lambda: cohabit)
    monkeypatch.setattr(inside, "_explain", asked.append)
    with pytest.raises(package.WorkerCrashed):
        make_worker(log=False).call("enter_library", crashing, 0)
    assert "Fatal Python error" in asked[0] and "#0 fall_over" in asked[0] and asked[0].endswith("Segmentation fault")


@pytest.mark.parametrize("library", ("none", "text"))
def test_without_the_library_a_crash_is_told_all_the_same(make_worker, monkeypatch, cohabit, tmp_path, library: str) -> None:
    import cohabit as package

    (tmp_path / "text").write_text("no library")
    monkeypatch.setattr(package, "command", lambda: cohabit)
    monkeypatch.setenv("COHABIT_CRASH_LIBRARY", str(tmp_path / library))
    worker = make_worker(log=False)
    with pytest.raises(package.WorkerCrashed, match="SIGSEGV") as caught:
        worker.call("read_null")
    assert caught.value.native_frames == [] and caught.value.python_frames
    assert worker.call("echo", 1) == 1


def test_what_a_worker_starts_has_the_callers_preloads(make_worker, monkeypatch, cohabit, tmp_path) -> None:
    import cohabit as package

    monkeypatch.setattr(package, "command", lambda: cohabit)
    for before in (None, "", str(tmp_path / "theirs.so")):
        worker = make_worker(log=False, environ={"LD_PRELOAD": before})
        seen = [line for line in worker.call("environ_of_child") if line.startswith(("LD_PRELOAD", "COHABIT_CRASH"))]
        assert seen == ([f"LD_PRELOAD={before}"] if before else []), seen
        assert worker.call("environ", "LD_PRELOAD") == (before or None)


def test_a_process_that_has_ended_is_forgotten(make_worker) -> None:
    """With its memory, at once: not when the collector comes."""
    worker = make_worker(log=False)
    worker.call("pid")

    async def crash() -> None:
        with pytest.raises(cohabit.WorkerCrashed):
            await worker.acall("kill", signal.SIGKILL)
        assert await worker.acall("echo", bytes(100000)) == bytes(100000)
        with pytest.raises(ValueError):
            await worker.acall("fail", "ValueError", "bad")

    def kept() -> list[str]:
        return [name for name in places.open_files() if "memfd:cohabit" in name]

    before = len(kept())
    gc.collect()
    gc.disable()
    try:
        for _ in range(4):
            asyncio.run(crash())
        end = time.monotonic() + 10
        while len(kept()) > before + 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(kept()) <= before + 2
    finally:
        gc.enable()


def test_a_worker_killed_while_idle_is_replaced(make_worker) -> None:
    worker = make_worker()
    pid = worker.call("pid")
    os.kill(pid, signal.SIGKILL)
    while pid in worker.pids:
        time.sleep(0.01)
    assert worker.call("pid", timeout=30) != pid


@pytest.mark.parametrize("how", ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "threading.Thread(target=take_all, daemon=True).start()"))
def test_a_status_that_others_take(how: str, cohabit) -> None:
    """The signal of a crash is known all the same; where nothing tells it, that is said."""
    code = f"""
import os, signal, threading, time, cohabit
def take_all():
    while True:
        try: os.waitpid(-1, 0)
        except ChildProcessError: time.sleep(0.001)
cohabit.command = lambda: {cohabit!r}
{how}
with cohabit.Worker(setup="service:make", log=False) as worker:
    crashes = []
    for name, *arguments in (("read_null",), ("kill", 9), ("leave", 3)):
        worker.call("pid")
        try: worker.call(name, *arguments)
        except cohabit.WorkerCrashed as crash: crashes.append(crash)
    print([(crash.signal, crash.exit_status) for crash in crashes])
    print("took its status" in str(crashes[1]), "SIGSEGV" in str(crashes[0]), worker.call("echo", 1))
"""
    crashes, said = places.run_caller(str(Path(sys.executable).parent.parent), code).splitlines()
    null, kill, leave = ast.literal_eval(crashes)
    assert null == (11, None) and kill in ((9, None), (None, None)) and leave in ((None, 3), (None, None))
    assert said == f"{kill == (None, None)} True 1"
    if "SIG_IGN" in how:
        assert kill == leave == (None, None)


def test_a_current_directory_that_is_gone(tmp_path) -> None:
    code = f"""
import os, cohabit
os.chdir({str(tmp_path)!r}); os.rmdir(os.getcwd())
with cohabit.Worker(setup="service:make", path={str(places.HERE)!r}) as worker:
    assert worker.call("echo", 1) == 1
"""
    places.run_caller(str(Path(sys.executable).parent.parent), code)


def test_a_current_directory_that_goes(tmp_path) -> None:
    """And a worker of another environment, with variables of the loader that name nothing."""
    code = f"""
import os, signal, cohabit
os.makedirs({str(tmp_path / "gone")!r}); os.chdir({str(tmp_path / "gone")!r})
os.environ["LD_LIBRARY_PATH"] = ""
options = dict(setup="service:make", path={str(places.HERE)!r}, env={places.interpreter("3.9")!r}, log=False)
worker = cohabit.Worker(**options)
pid = worker.call("pid")
os.rmdir(os.getcwd())
os.kill(pid, signal.SIGKILL)
while pid in worker.pids: pass
assert worker.call("echo", 1, timeout=30) == 1
assert cohabit.Worker(**options).call("echo", 2) == 2
"""
    places.run_caller(str(Path(sys.executable).parent.parent), code)


def test_descriptors_that_are_used_up_for_a_while(make_worker) -> None:
    """A process that cannot be started for want of them is started later, and what was opened for it is closed."""
    lines: list[str] = []
    worker = make_worker(log=lines.append)
    pid, files = worker.call("pid"), len(os.listdir("/proc/self/fd"))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 2, before[1]))
    try:
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 20
        # More often than a process may end before it is ready.
        while sum("could not be started" in line for line in lines) < 6 and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert worker.call("pid", timeout=30) != pid
    assert len(os.listdir("/proc/self/fd")) <= files


def test_where_no_thread_is_to_be_had_nothing_stays(make_worker, monkeypatch) -> None:
    def refuse(thread) -> None:
        raise RuntimeError("can't start new thread")

    files = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            cohabit.Worker("test", setup="service:make", path=places.HERE)
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_kill_is_no_want_of_memory(make_worker, monkeypatch, cohabit) -> None:
    """Only where the kernel has counted one of its own is memory the reason."""
    import cohabit as package
    from cohabit import _worker_process

    monkeypatch.setattr(package, "command", lambda: cohabit)
    kills = [5]
    monkeypatch.setattr(_worker_process, "_oom_kills", lambda: kills[-1])
    worker = make_worker(log=False)
    for count, headline in ((5, False), (6, True), (None, True)):
        worker.call("pid")
        kills.append(count)
        with pytest.raises(package.WorkerCrashed) as info:
            worker.call("kill", signal.SIGKILL)
        assert ("memory" in str(info.value)) == headline, str(info.value)


def test_shared_memory_that_cannot_be_had(tmp_path) -> None:
    """The call fails with what was wanted; smaller ones go on, and grow later."""
    code = """
import os, resource, cohabit
with cohabit.Worker(setup="service:make") as worker:
    worker.call("echo", bytes(100000))
    size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    large, small = bytearray(64 << 20), [bytearray(3 << 20) for _ in range(4)]
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + (150 << 20), before[1]))
    try:
        worker.call("echo", [large] * 3)
    except OSError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, before)
    for _ in range(3):
        assert worker.call("echo", small) == small
    assert worker.call("echo", large) == large
"""
    assert "no shared memory for" in places.run_caller(str(Path(sys.executable).parent.parent), code)


def test_a_stopped_worker_is_ended(make_worker) -> None:
    worker = make_worker(heartbeat=0.1, heartbeat_timeout=0.5)
    pid = worker.call("pid")
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(cohabit.WorkerCrashed, match="no sign of life"):
        worker.call("echo", 1)
    assert worker.call("pid", timeout=30) != pid


def test_a_setup_that_fails_is_told(make_worker) -> None:
    with pytest.raises(cohabit.WorkerStartError, match="no model here"):
        make_worker("service:make_badly").call("echo", 1)
    with pytest.raises(cohabit.WorkerStartError, match="nothing_like_it"):
        make_worker("nothing_like_it:make").wait_ready(30)
    with pytest.raises(cohabit.WorkerStartError, match="2 times before it was ready.*SIGABRT"):
        make_worker("service:make_dying", max_restarts=1).call("echo", 1)
    with pytest.raises(cohabit.WorkerStartError, match="service:make_nothing returned None"):
        make_worker("service:make_nothing").call("echo", 1)
    with pytest.raises(cohabit.WorkerStartError, match="no Python in"):
        make_worker(env="/no/such/environment")
    with pytest.raises(cohabit.WorkerStartError, match="module:factory"):
        make_worker("service")
    for environ in ({"A": 1}, {"A=B": ""}, {"A": "a\0b"}, {"": "x"}):
        with pytest.raises(cohabit.WorkerStartError, match="no environment can hold"):
            make_worker(environ=environ)
    for no_python in ("/bin/cat", "/bin/sh"):
        with pytest.raises(cohabit.WorkerStartError, match="before it was ready"):
            make_worker(env=no_python, max_restarts=1, log=False).call("echo", 1)


def test_a_setup_that_hangs_is_an_error_after_one_start_timeout(make_worker) -> None:
    lines: list[str] = []
    # Long enough that the setup has begun; a second start would say so in the log.
    worker = make_worker("service:make_late", start_timeout=3, log=lines.append)
    with pytest.raises(cohabit.WorkerStartError, match="not ready after 3 s") as caught:
        worker.call("echo", 1)
    assert "service.py" in str(caught.value) and "in make_late" in str(caught.value), "where it hangs is told"
    worker.close()
    assert not any("the next one starts" in line for line in lines), lines


def test_one_that_was_ready_before_is_started_again_when_a_start_hangs(make_worker, tmp_path) -> None:
    lines: list[str] = []
    hang = tmp_path / "hang"
    worker = make_worker("service:make_late_while_there_is_a_file", log=lines.append, max_restarts=50,
                         environ={"COHABIT_TEST_FILE": str(hang)})
    limits = worker._pool.limits

    def hang_in_a_start() -> None:
        hang.touch()
        object.__setattr__(limits, "start", 0.3)
        with pytest.raises(cohabit.WorkerCrashed):
            worker.call("leave", 1)

    worker.call("echo", 1)
    hang_in_a_start()
    end = time.monotonic() + 60
    while not any("was ended: it was not ready after 0.3 s; the next one starts" in line for line in lines):
        assert time.monotonic() < end, lines
        time.sleep(0.01)
    object.__setattr__(limits, "start", 60)
    hang.unlink()
    assert worker.call("echo", 2) == 2
    object.__setattr__(limits, "restarts", 1)
    hang_in_a_start()
    with pytest.raises(cohabit.WorkerStartError, match="(?s)2 times before it was ready.*not ready after 0.3 s"):
        worker.call("echo", 3)


def test_a_process_that_is_given_up_beside_others_is_told(make_worker, tmp_path) -> None:
    lines: list[str] = []
    worker = make_worker("service:make_once", workers=2, log=lines.append, environ={"COHABIT_TEST_FILE": str(tmp_path / "made")})
    assert worker.call("echo", 1) == 1
    end = time.monotonic() + 60
    while not any("is not started again" in line and "made already" in line for line in lines):
        assert time.monotonic() < end, lines
        time.sleep(0.01)
    assert worker.call("echo", 2) == 2 and len(worker.pids) == 1


def test_without_the_keeper_workers_work(make_worker) -> None:
    worker = make_worker()
    pid = worker.call("pid")
    (keeper,) = {child for child in places.children() if b"_worker_keeper" in Path("/proc", str(child), "cmdline").read_bytes()}
    os.kill(keeper, signal.SIGKILL)
    with pytest.raises(cohabit.WorkerCrashed):
        worker.call("kill", signal.SIGKILL)
    assert worker.call("pid") != pid


def test_much_output_is_prefixed_and_blocks_nothing(make_worker) -> None:
    lines: list[str] = []
    worker = make_worker(log=lines.append)
    assert worker.call("talk", 5000, 100, timeout=60) == 5000
    worker.close()
    assert sum(line.startswith("[test] line ") for line in lines) == 10000


def test_a_log_that_blocks_stops_nothing_else(make_worker) -> None:
    lines: list[str] = []
    open_again = threading.Event()

    def log(line: str) -> None:
        open_again.wait(60)
        lines.append(line)

    worker = make_worker(log=log, heartbeat=0.1, heartbeat_timeout=1)
    worker.wait_ready()
    with pytest.raises(cohabit.WorkerTimeout):
        worker.call("talk", 20000, 10, timeout=2)  # more than the log and the pipe hold
    assert worker.call("echo", 1, timeout=30) == 1, "the late answer was taken"
    pid = worker.call("pid", timeout=30)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(cohabit.WorkerCrashed, match="no sign of life"):
        worker.call("pid", timeout=30)
    assert worker.call("pid", timeout=30) != pid and not lines
    open_again.set()
    worker.call("talk", 5000, 10, timeout=30)
    worker.close(10)
    printed = [line for line in lines if "line 4" in line]
    assert printed and "line 4999" in printed[-1]


def test_a_log_may_use_the_worker_and_close_it(make_worker) -> None:
    told = []

    def log(line: str) -> None:
        told.append(worker.call("echo", line, timeout=30))
        worker.close()

    worker = make_worker(log=log)
    worker.call("talk", 1, 1)
    worker._pool.over.wait(30)
    assert told and "line 0" in told[0]


def test_close_lets_the_call_end_and_refuses_the_next(make_worker) -> None:
    lines: list[str] = []
    worker = make_worker("service:make_closing", log=lines.append)
    worker.call("echo", 1)
    answers: list = []
    thread = threading.Thread(target=lambda: answers.append(worker.call("sleep", 0.5)))
    thread.start()
    time.sleep(0.2)
    worker.close()
    thread.join()
    assert answers == [0.5] and "[test] closed properly" in lines
    with pytest.raises(cohabit.WorkerClosed):
        worker.call("echo", 2)
    worker.close()


def test_close_ends_what_does_not_end(make_worker) -> None:
    worker = make_worker()
    worker.call("echo", 1)
    caught: list = []

    def call() -> None:
        try:
            worker.call("stubborn", 60)
        except cohabit.WorkerClosed as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.2)
    start = time.monotonic()
    worker.close(0.3)
    thread.join(10)
    assert caught and time.monotonic() - start < 3


def test_children_of_a_worker_end_with_it(make_worker) -> None:
    worker = make_worker()
    child = worker.call("child")
    with pytest.raises(cohabit.WorkerCrashed):
        worker.call("kill", signal.SIGKILL)
    end = time.monotonic() + 5
    while places.alive(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not places.alive(child)


CALLER = """
import os, sys, threading, time
import cohabit
worker = cohabit.Worker(setup="service:make", workers=2)
worker.call("pid")
while len(worker.pids) < 2 or len({worker.call("pid") for _ in range(9)}) < 2: time.sleep(.05)
threading.Thread(target=worker.call, args=("stubborn", 1000), daemon=True).start()
time.sleep(0.2)
print(*worker.pids, flush=True)
"""


def start_caller(more: str) -> tuple[subprocess.Popen, list[int]]:
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    caller = subprocess.Popen([sys.executable, "-c", CALLER + more], cwd=places.HERE, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    assert caller.stdout
    return caller, [int(word) for word in caller.stdout.readline().split()]


def gone(pids: list[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(places.alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(places.alive(pid) for pid in pids)


def test_the_callers_kill_ends_the_workers() -> None:
    caller, pids = start_caller("time.sleep(1000)")
    assert len(pids) == 2
    caller.kill()
    assert gone(pids, 5)
    caller.communicate()


def test_the_callers_kill_ends_what_the_workers_started() -> None:
    """Also where a fork of the caller holds every descriptor of it."""
    caller, pids = start_caller("""
print(worker.call("child"), flush=True)
if os.fork() == 0: time.sleep(5); os._exit(0)
time.sleep(1000)""")
    assert caller.stdout
    child = int(caller.stdout.readline())
    assert places.alive(child)
    caller.kill()
    assert gone([*pids, child], 4)
    caller.communicate()


def test_the_callers_kill_at_any_moment_of_a_start(tmp_path: Path) -> None:
    """Between the fork, the request for the death signal and the first call there is no gap."""
    code = f"""
import cohabit, os
print("begins", flush=True)
workers = [cohabit.Worker(setup="service:make", environ={{"COHABIT_TEST_MARK": {str(tmp_path)!r}}}) for _ in range(3)]
for worker in workers: worker.call("sleep", 1000)
"""
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    for i in range(12):
        caller = subprocess.Popen([sys.executable, "-c", code], cwd=places.HERE, env=env, stdout=subprocess.PIPE)
        assert caller.stdout and caller.stdout.readline() == b"begins\n"
        time.sleep(i * 0.03)
        caller.kill()
        caller.communicate()
    end = time.monotonic() + 10
    while (left := marked(str(tmp_path))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def test_the_callers_interrupt_at_any_moment_of_its_life(tmp_path: Path) -> None:
    """As at a terminal: it ends with KeyboardInterrupt, whatever it was at, and nothing of it stays."""
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import asyncio, cohabit
async def calls(worker):
    await asyncio.gather(*(worker.acall("sleep", 0.01) for _ in range(10)))
print("begins", flush=True)
while True:
    with cohabit.Worker(setup="service:make", workers=2, log=False, environ={{"COHABIT_TEST_MARK": {str(tmp_path)!r}}}) as worker:
        for _ in range(3):
            worker.call("echo", b"x" * 100000)
        asyncio.run(calls(worker))
"""
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    for i in range(int(os.environ.get("COHABIT_INTERRUPTS", "12"))):
        caller = subprocess.Popen([sys.executable, "-c", code], cwd=places.HERE, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert caller.stdout and caller.stdout.readline() == "begins\n"
        time.sleep(i % 40 * 0.03)
        caller.send_signal(signal.SIGINT)
        words = caller.communicate(timeout=60)[1]
        # asyncio.run() takes SIGINT over before it sets its count of interrupts to 0 (asyncio/runners.py of Python 3.11):
        # one that falls in between cancels the task that has not begun, and is forgotten.
        lost = "in calls\nasyncio.exceptions.CancelledError\n"
        assert caller.returncode in (1, -signal.SIGINT) and ("KeyboardInterrupt" in words or words.endswith(lost)), words
    end = time.monotonic() + 10
    while (left := marked(str(tmp_path))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def marked(mark: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and mark.encode() in Path("/proc", entry, "environ").read_bytes():
                found.append(int(entry))
        except OSError:
            pass  # ended meanwhile
    return found


def test_a_fork_of_the_caller_does_not_keep_them() -> None:
    """The fork holds the sockets' ends: the death signal must do it."""
    caller, pids = start_caller("""
if os.fork() == 0:
    try: worker.call("pid")
    except cohabit.WorkerError as error: os.write(1, str(error).encode() + b"\\n")
    time.sleep(4); os._exit(0)
time.sleep(1000)""")
    assert caller.stdout and "after a fork" in caller.stdout.readline()
    caller.kill()
    assert gone(pids, 3)
    caller.communicate()


@pytest.mark.parametrize("end", ("", "sys.exit(0)", "raise ValueError", "del worker; import gc; gc.collect(); time.sleep(.2)"))
def test_an_exit_without_close_does_not_hang(end: str) -> None:
    caller, pids = start_caller(end)
    start = time.monotonic()
    caller.communicate(timeout=20)
    assert time.monotonic() - start < 10 and gone(pids, 1)


def test_an_interrupt_leaves_a_sane_state() -> None:
    """Ctrl-C at random points; then answers are still the right ones."""
    code = """
import cohabit, os, random, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
worker = cohabit.Worker(setup="service:make", log=False)
worker.call("pid")
def interrupt():
    for _ in range(100):
        time.sleep(random.random() / 100)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
count, number = 0, 0
thread = threading.Thread(target=interrupt)
thread.start()
def step():
    global number, count
    try:
        number += 1
        answer = worker.call("echo", [number, b"x" * (number % 3 * 40000)])
        assert answer == [number, b"x" * (number % 3 * 40000)], answer
    except KeyboardInterrupt:
        count += 1
    except cohabit.WorkerCrashed: pass
while True:
    try:
        if not thread.is_alive():
            time.sleep(.2)  # the last signal may still be on its way
            break
        step()
    except KeyboardInterrupt:  # outside of a call
        count += 1
assert worker.call("echo", "end", timeout=30) == "end"
print(count)
worker.close()
"""
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    answer = subprocess.run([sys.executable, "-c", code], cwd=places.HERE, env=env, capture_output=True, text=True, timeout=100)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 50


def test_the_terminals_interrupt_does_not_reach_the_worker(make_worker) -> None:
    pid = make_worker().call("pid")
    assert os.getpgid(pid) == pid != os.getpgid(0) and os.getsid(pid) == pid


def test_no_descriptor_stays(make_worker) -> None:
    files = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        worker = make_worker()
        worker.call("echo", b"x" * 100000)
        worker.close()
    assert len(os.listdir("/proc/self/fd")) <= files
    assert not any(word in name for name in os.listdir("/dev/shm") for word in ("arguments", "results", "crash"))


def test_the_worker_holds_no_descriptor_of_the_caller(make_worker, tmp_path: Path) -> None:
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        files = make_worker().call("open_files")
    assert not any("secret" in name for name in files)
    assert sum("memfd:cohabit" in name for name in files) <= 3, "arguments, results, the report of a crash"


def test_what_an_interrupt_cut_off_is_finished(make_worker) -> None:
    """The states that Ctrl-C can leave between two lines under the lock, made by hand."""
    from cohabit import _worker_pool as inside

    worker = make_worker()
    pid = worker.call("pid")
    pool, lane = worker._pool, worker._pool.lanes[0]

    def waiter() -> inside.Ticket:
        with pool.lock:  # busy, so that the next call waits
            lane.state = inside.BUSY
            lane.owner = inside.Ticket(0, None)
        thread = threading.Thread(target=lambda: answers.append(worker.call("pid")))
        thread.start()
        threads.append(thread)
        while not pool.waiting:
            time.sleep(0.01)
        return pool.waiting[0]

    answers: list = []
    threads: list[threading.Thread] = []
    ticket = waiter()
    with pool.lock:  # handed over, and not woken
        pool._assign(lane, ticket)
    pool.wake()
    threads[0].join(10)
    waiter()
    with pool.lock:  # idle, and nobody told
        lane.owner, lane.state = None, inside.IDLE
    pool.wake()
    threads[1].join(10)
    assert answers == [pid, pid]
    waiter()
    with pool.lock:  # not given back to the end
        lane.owner = None
    pool.wake()
    threads[2].join(10)
    assert len(answers) == 3 and answers[2] != pid


def test_pauses_grow_until_a_call_succeeds(make_worker) -> None:
    lines: list[str] = []
    worker = make_worker(log=lines.append)

    def crash(times: int) -> list[str]:
        del lines[:]
        for _ in range(times):
            with pytest.raises(cohabit.WorkerCrashed):
                worker.call("leave", 1)
        while len(lines) < times:
            time.sleep(0.01)
        return [line.rpartition("starts in ")[2] for line in lines]

    assert crash(3) == ["0 s", "0.1 s", "0.2 s"]
    assert worker.call("echo", 1) == 1
    assert crash(1) == ["0 s"]
