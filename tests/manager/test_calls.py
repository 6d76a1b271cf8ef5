"""Values, names, errors, time-outs, callers."""
from __future__ import annotations

import asyncio
import errno
import gc
import math
import os
import pickle
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import cohabit
import places

VALUES = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**64, -(10**50), 0.0, -0.0, 1e308, math.inf, 3 + 4j,
    "", "text", "\0 \u20ac \U0001f600", "\udcff", b"", b"\0\xff", "x" * 100_000, b"y" * 3_000_000,
    [], (), {}, [1, "a", None, [2.5, (3,)]], {"a": 1, 2: b"b", (3, "c"): [4], None: {}}, [[[[[[]]]]]],
]


def test_values_come_back_as_they_were(make_worker) -> None:
    worker = make_worker()
    for value in VALUES:
        answer = worker.call("echo", value)
        assert answer == value and type(answer) is type(value), value
    assert math.isnan(worker.call("echo", math.nan))
    assert worker.call("echo", value=[True, 1])[0] is True


@pytest.mark.parametrize("version", places.VERSIONS)
def test_every_python(version: str, make_worker) -> None:
    worker = make_worker(env=places.interpreter(version))
    assert worker.call("version") == [int(part) for part in version.split(".")]
    for value in VALUES:
        assert worker.call("echo", value) == value
    assert worker.call("echo", memoryview(bytes(range(256)) * 400)).tobytes() == bytes(range(256)) * 400
    with pytest.raises(cohabit.WorkerTimeout):
        worker.call("sleep", 30, timeout=0.1)
    with pytest.raises(ValueError, match="bad"):
        worker.call("fail", "ValueError", "bad")


@pytest.mark.parametrize("version", ("3.9", "3.13"))
def test_a_caller_of_another_python(version: str) -> None:
    """The caller's side runs there too, and without NumPy."""
    code = f"""
import array, cohabit
with cohabit.Worker(setup="service:make", env={sys.executable!r}) as worker:
    assert worker.call("version") == {list(sys.version_info[:2])!r}
    assert worker.call("echo", array.array("d", range(10000))).tolist() == list(range(10000))
    try:
        worker.call("sleep", 9, timeout=0.1)
    except TimeoutError as error:
        assert isinstance(error, cohabit.WorkerTimeout)
"""
    import os
    import subprocess
    answer = subprocess.run([places.interpreter(version), "-c", code], cwd=places.HERE, capture_output=True, text=True,
                            env=dict(os.environ, PYTHONPATH=str(places.REPO / "python")), timeout=60)
    assert answer.returncode == 0, answer.stderr


def test_what_cannot_be_sent_is_refused_and_the_worker_lives_on(make_worker) -> None:
    worker = make_worker()
    pid = worker.call("pid")
    endless: list = []
    endless.append(endless)
    for value, word in ((object(), "object"), ({1, 2}, "set"), (endless, "contains itself"), (lambda: 1, "function")):
        with pytest.raises(TypeError, match=word):
            worker.call("echo", [value])
    for name, word in (("object", "Own"), ("set", "set")):
        with pytest.raises(TypeError, match=word):
            worker.call(name)
    assert worker.call("pid") == pid


def test_an_argument_that_fails_to_be_read_is_the_callers_error(make_worker) -> None:
    class Broken:
        def __dlpack__(self, **_):
            raise OSError("the device is gone")

        def __dlpack_device__(self):
            return 1, 0

    worker = make_worker()
    pid = worker.call("pid")
    with pytest.raises(OSError, match="device is gone"):
        worker.call("echo", [b"x" * 100_000, Broken()])
    assert worker.call("pid") == pid


def test_names(make_worker) -> None:
    worker = make_worker()
    for name in ("_private", "__init__", "kept", "missing", "pid.real", ""):
        with pytest.raises((AttributeError, TypeError)):
            worker.call(name)


def test_dotted_names_of_a_framework() -> None:
    with cohabit.Worker("json") as worker:
        assert worker.call("json.dumps", {"a": [1]}) == '{"a": [1]}'
        assert worker.call("json.decoder.scanstring", '"abc"', 1) == ("abc", 5)
        for name in ("os.getpid", "json._default_decoder", "json.nothing", "json", "jsonx.dumps"):
            with pytest.raises((AttributeError, TypeError, ImportError)):
                worker.call(name)
    with cohabit.Worker("os.path") as worker:
        assert worker.call("os.path.join", "a", "b") == "a/b"
        for name in ("os.getpid", "os.path", "os.pathsep.join", "os.path._joinrealpath"):
            with pytest.raises(AttributeError):
                worker.call(name)


def test_exceptions_carry_type_text_and_traceback(make_worker) -> None:
    worker = make_worker()
    with pytest.raises(ValueError, match="bad") as caught:
        worker.call("fail", "ValueError", "bad")
    assert isinstance(caught.value, cohabit.RemoteError)
    assert "service.py" in caught.value.remote_traceback and caught.value.type_name == "ValueError"
    with pytest.raises(cohabit.RemoteError, match="service.Own: mine"):
        worker.call("fail", "Own", "mine")
    with pytest.raises(cohabit.RemoteError, match="SystemExit"):
        worker.call("fail", "SystemExit", "out")
    for name in ("/no/such/file", "/"):
        with pytest.raises(FileNotFoundError if "no" in name else IsADirectoryError, match=r"\[Errno 2") as caught:
            worker.call("open", name)
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value)
        for error in (caught.value, again):
            assert isinstance(error, cohabit.RemoteError) and error.errno == (errno.ENOENT if "no" in name else errno.EISDIR)
            assert "in the worker" in str(error) and "service.py" in error.remote_traceback
    with pytest.raises(ModuleNotFoundError):
        worker.call("fail", "ModuleNotFoundError", "a module")
    for name in ("StopIteration", "KeyboardInterrupt"):
        with pytest.raises(cohabit.RemoteError, match=name) as caught:
            worker.call("fail", name, "x")
        assert not isinstance(caught.value, (StopIteration, KeyboardInterrupt))
    with pytest.raises(ValueError) as caught:
        worker.call("fail_deep", 500)
    assert len(str(caught.value)) < 200_000


def test_an_exception_that_cannot_be_described_is_one_all_the_same(make_worker) -> None:
    worker = make_worker()
    pid = worker.call("pid")
    with pytest.raises(cohabit.RemoteError, match="cannot be described") as caught:
        worker.call("fail_unspeakably")
    assert "Unspeakable" in caught.value.type_name and "fail_unspeakably" in caught.value.remote_traceback
    with pytest.raises(UserWarning):
        worker.call("fail", "UserWarning", "careful")
    assert worker.call("pid") == pid


def test_a_forked_child_of_a_worker_does_not_answer_for_it(make_worker) -> None:
    lines: list[str] = []
    worker = make_worker(log=lines.append)
    for _ in range(3):
        assert [worker.call("fork", how) for how in ("returns", "raises", "exits")] == [0, 1, 7]
        assert worker.call("echo", 5) == 5
    assert any("ValueError: in the child" in line for line in lines)


def test_pickle_only_when_both_agree(make_worker) -> None:
    for setup, pickle in (("service:make", True), ("service:make_pickling", False)):
        with pytest.raises(TypeError, match="cannot be sent"):
            make_worker(setup, pickle=pickle).call("set")
    worker = make_worker("service:make_pickling", pickle=True)
    assert worker.call("set") == {1, 2}
    assert worker.call("echo", frozenset([3])) == {3}


@pytest.mark.parametrize("timeout", (math.inf, 1e18, 1e10))
def test_a_timeout_that_never_comes(make_worker, timeout: float) -> None:
    worker = make_worker(workers=1)
    assert worker.wait_ready(timeout) is worker
    assert worker.call("echo", 1, timeout=timeout) == 1
    other = threading.Thread(target=lambda: worker.call("sleep", 0.3))
    other.start()
    time.sleep(0.1)
    assert worker.call("echo", 2, timeout=timeout) == 2  # it waits for the other
    other.join()
    with pytest.raises(ValueError, match="NaN"):
        worker.call("echo", 1, timeout=math.nan)
    worker.close(timeout)


def test_timeout_gives_up_and_the_process_goes_on(make_worker) -> None:
    worker = make_worker()
    pid = worker.call("pid")
    for name, args in (("sleep", (30,)), ("spin", ())):
        start = time.monotonic()
        with pytest.raises(cohabit.WorkerTimeout):
            worker.call(name, *args, timeout=0.2)
        assert time.monotonic() - start < 5
        assert worker.call("pid", timeout=20) == pid


def test_a_call_that_cannot_be_interrupted_costs_the_process(make_worker) -> None:
    worker = make_worker(grace=0.3)
    pid = worker.call("pid")
    for name in ("stubborn", "hold_the_interpreter"):
        with pytest.raises(cohabit.WorkerTimeout):
            worker.call(name, 60, timeout=0.1)
        assert worker.call("pid", timeout=30) != pid


def test_a_late_answer_is_nobody_elses(make_worker) -> None:
    worker = make_worker(grace=5)
    for i in range(10):
        with pytest.raises(cohabit.WorkerTimeout):
            worker.call("stubborn", 0.3, timeout=0.02)
        assert worker.call("echo", i) == i


def test_many_callers_each_in_order(make_worker) -> None:
    worker = make_worker(workers=2)
    wrong: list = []

    def caller(number: int) -> None:
        for i in range(100):
            if worker.call("echo", (number, i, b"x" * (i * 1000))) != (number, i, b"x" * (i * 1000)):
                wrong.append((number, i))

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_calls_go_to_idle_processes(make_worker, tmp_path) -> None:
    """Two calls that wait for each other both end."""
    worker = make_worker(workers=2)
    worker.call("echo", 0)
    while len(worker.pids) < 2 or len({worker.call("pid") for _ in range(8)}) < 2:
        time.sleep(0.05)
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with ThreadPoolExecutor() as callers:
        for done in [callers.submit(worker.call, "meet", *names, timeout=30) for names in ((one, other), (other, one))]:
            done.result()


def test_too_many_waiting_calls_are_refused(make_worker) -> None:
    worker = make_worker(max_waiting=2)
    worker.call("echo", 0)
    threads = [threading.Thread(target=worker.call, args=("sleep", 1.5)) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(worker._pool.waiting) < 2:
        time.sleep(0.01)
    with pytest.raises(cohabit.WorkerBusy):
        worker.call("echo", 1)
    for thread in threads:
        thread.join()
    assert worker.call("echo", 2) == 2


def test_asyncio(make_worker) -> None:
    worker = make_worker(workers=2)

    async def main() -> None:
        assert await asyncio.gather(*(worker.acall("echo", i) for i in range(50))) == list(range(50))
        with pytest.raises(ValueError):
            await worker.acall("fail", "ValueError", "bad")
        with pytest.raises(cohabit.WorkerTimeout):
            await worker.acall("sleep", 30, timeout=0.2)
        start = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(worker.acall("sleep", 30), 0.3)
        tasks = [asyncio.ensure_future(worker.acall("sleep", 30)) for _ in range(5)]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await worker.acall("echo", 1) == 1
        assert time.monotonic() - start < 15

    asyncio.run(main())


def test_calls_run_in_the_main_thread(make_worker) -> None:
    assert make_worker().call("thread_is_main")


def test_asyncio_after_close_does_not_hang(make_worker) -> None:
    worker = make_worker()

    async def main() -> None:
        tasks = [asyncio.ensure_future(worker.acall("sleep", 0.1)) for _ in range(20)]
        assert await tasks[0] == 0.1
        await asyncio.get_running_loop().run_in_executor(None, worker.close)
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert isinstance(answers[-1], cohabit.WorkerClosed)
        with pytest.raises(cohabit.WorkerClosed):
            await worker.acall("echo", 1)

    asyncio.run(main())


def test_no_thread_of_acalls_stays(make_worker) -> None:
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "cohabit-acall-test"]

    async def calls() -> None:
        await asyncio.gather(*(worker.acall("echo", n) for n in range(6)))

    worker = make_worker(workers=3)
    asyncio.run(calls())
    assert len(threads()) == 3
    worker.close()
    for thread in threads():
        thread.join(10)
    assert not threads()


def test_acalls_wait_as_calls_do(make_worker, tmp_path) -> None:
    """In one queue with them, for as long as they may, as many as may, and holding nothing when they are over."""
    worker = make_worker(max_waiting=3)
    worker.call("echo", 0)
    end = tmp_path / "end"

    class Argument(list):
        pass

    async def main() -> None:
        argument = Argument()
        alive = weakref.ref(argument)
        assert await worker.acall("echo", argument) == []
        del argument
        for _ in range(500):  # the thread that made the call has a line or two left
            if alive() is None:
                break
            await asyncio.sleep(0.01)
        assert alive() is None
        running = asyncio.ensure_future(worker.acall("until", str(end)))
        await asyncio.sleep(0)
        with pytest.raises(cohabit.WorkerTimeout):
            await worker.acall("echo", 1, timeout=0.2)
        first = asyncio.ensure_future(worker.acall("keep", "first"))
        given_up = asyncio.ensure_future(worker.acall("keep", "given up"))
        await asyncio.sleep(0)
        second = asyncio.get_running_loop().run_in_executor(None, lambda: worker.call("keep", "second"))
        while len(worker._pool.waiting) < 3:
            await asyncio.sleep(0.01)
        with pytest.raises(cohabit.WorkerBusy):
            await worker.acall("echo", 4)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert not running.done()
        third = asyncio.ensure_future(worker.acall("keep", "third"))
        while len(worker._pool.waiting) < 3:
            await asyncio.sleep(0.01)
        end.touch()
        await asyncio.gather(running, first, second, third)

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
    # In the order in which the worker did them: these answers reach their callers by two ways, one through the loop.
    assert worker.call("all_kept") == ["first", "second", "third"]
    assert worker.call("echo", 6) == 6


def test_a_call_whose_time_is_up_is_not_made(make_worker) -> None:
    worker = make_worker()
    worker.call("echo", 0)
    for timeout in (0, -1):
        with pytest.raises(cohabit.WorkerTimeout):
            worker.call("keep", 1, timeout=timeout)
    assert worker.call("kept_count") == 0


def test_a_fork_waits_for_no_worker_of_its_parent(make_worker) -> None:
    worker = make_worker("service:make_late")
    child = os.fork()
    if child == 0:
        try:
            worker.wait_ready(20)
        except cohabit.WorkerTimeout:
            os._exit(1)
        except cohabit.WorkerError:
            os._exit(0)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
