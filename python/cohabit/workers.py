"""Workers: frameworks in processes of their own, each with another environment's Python.

    >>> with cohabit.Worker("paddle", env="envs/paddle", setup="ocr_setup:make") as ocr:
    ...     text = ocr.call("read", image)

docs/workers.md is the guide, docs/design/workers.md how it works.
"""
from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Callable, Union

from ._worker_errors import WorkerStartError, WorkerTimeout
from ._worker_log import Log
from ._worker_pool import Limits, Pool, Ticket, again, seconds
from ._worker_process import Spec, environ_for, interpreter_of
from ._worker_supervisor import supervise

__all__ = ["Worker"]

StrPath = Union[str, "os.PathLike[str]"]


class Worker:
    """Processes of another environment's Python, whose functions are called by name.

    framework    the module whose dotted names can be called ("torch": call("torch.ones", 3)), and the worker's name;
                 with `setup` only a name
    env          an environment's directory or an interpreter (Python 3.8 or newer); default: this interpreter
    setup        "module:factory": the factory's result is an object whose public methods can be called. It may have
                 `close()`, called at the end, and `allow_pickle = True`
    path         where that module is looked for first; default: the current directory
    workers      how many processes of this kind; each makes an object of its own, calls go to an idle one
    environ      environment variables, added to this process's; None removes one. PYTHONPATH and its like are not
                 handed on, and PATH begins with the environment's own programs; nor is, to another environment, what
                 LD_LIBRARY_PATH and LD_PRELOAD name in this one's packages
    pickle       values that the protocol has no form for are pickled, if the object's `allow_pickle` agrees. Only
                 for environments whose code you trust as your own
    log          called, in a thread, with each line that the processes print; default: to sys.stderr; False: not at all
    start_timeout      seconds until a process must be ready, its imports included. If the first is not, that is the
                       worker's end (WorkerStartError says where its Python code was); one that has been ready
                       before is started again, max_restarts times
    heartbeat          seconds between signs of life
    heartbeat_timeout  seconds without a sign of life (a stuck or stopped interpreter) after which one is ended
    grace              seconds that a call has to end after its time-out or its cancellation; then its process is ended
    max_pause    seconds at most between a process's end and the next start; the first is started at once, the
                 second after 0.1 s, and so on, doubled, until a call has succeeded again
    max_restarts       starts that may fail in a row before the worker gives up
    max_waiting        calls that may wait for a process; the next one raises WorkerBusy

    It starts at once and does not wait: the first call does, or wait_ready(). All methods may be called from
    any thread. A process that ends is replaced; no call is repeated.
    """

    def __init__(self, framework: str | None = None, *, env: StrPath | None = None, setup: str | None = None,
                 path: StrPath | None = None, workers: int = 1, environ: Mapping[str, str | None] | None = None,
                 pickle: bool = False, log: Callable[[str], Any] | bool | None = None, start_timeout: float = 120,
                 heartbeat: float = 1, heartbeat_timeout: float = 60, grace: float = 2, max_pause: float = 10, max_restarts: int = 3,
                 max_waiting: int = 1000):
        if not framework and not setup:
            raise WorkerStartError("a worker needs a framework, or setup='module:factory'")
        if setup and not all(setup.partition(":")):
            raise WorkerStartError(f"setup is {setup!r}: expected 'module:factory'")
        if workers < 1:
            raise WorkerStartError(f"workers is {workers}: expected 1 or more")
        self.name = framework or str(setup)
        directory = _current_directory()
        settings = {"framework": framework, "setup": setup, "path": os.path.abspath(path) if path else directory, "pickle": pickle}
        python = interpreter_of(env)
        spec = Spec(self.name, python, settings, environ_for(python, environ), directory, Log(_writer(log)))
        limits = Limits(start_timeout, heartbeat, heartbeat_timeout, grace, max_pause, max_restarts, max_waiting)
        self._pool = supervise(Pool(spec, workers, limits))
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        _POOLS.add(self._pool)
        weakref.finalize(self, _forgotten, self._pool, self._tasks).atexit = False

    def call(self, name: str, /, *args: Any, timeout: float | None = None, **named: Any) -> Any:
        """Calls a function in the worker and returns its result.

        timeout  seconds, waiting for a process included; default: none

        Arrays that come back lie in shared memory; one that came without a copy cannot be written to.
        Raises RemoteError (and of the same builtin type) if the function raised, WorkerCrashed if its process
        ended, WorkerTimeout, WorkerCancelled, WorkerBusy, WorkerStartError, WorkerClosed; TypeError if an
        argument or the result cannot be sent.
        """
        return self._pool.call(self._pool.ticket(timeout), name, args, named)

    async def acall(self, name: str, /, *args: Any, timeout: float | None = None, **named: Any) -> Any:
        """call() for asyncio. Cancelling the task cancels the call."""
        import asyncio

        self._pool.refuse()
        ticket = self._pool.ticket(timeout)
        future: Future[Any] = Future()
        self._enter(_Task(self._pool, ticket, future, self._tasks, (name, args, named)), future)
        left = ticket.left() if ticket.queued else None
        timer = None if left is None else asyncio.get_running_loop().call_later(left, self._pool.expire, ticket)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._pool.cancel(ticket)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            del future  # it holds the exception, which holds this frame

    def _enter(self, task: _Task, future: Future[Any]) -> None:
        self._more_threads()
        try:
            self._pool.enter(task.ticket)
        except BaseException:  # refused, or an interrupt in between
            future.cancel()
            task()
            self._pool.cancel(task.ticket)
            raise
        if self._pool.closing is not None:  # meanwhile: is anybody left to take it?
            _serve_rest(self._tasks)

    def _more_threads(self) -> None:
        # One per process is enough: more calls than processes cannot run.
        if len(self._threads) < len(self._pool.lanes):
            thread = threading.Thread(target=_serve, args=(self._tasks,), name=f"cohabit-acall-{self.name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait_ready(self, timeout: float | None = None) -> Worker:
        """Waits until a process is ready. Raises WorkerStartError, or WorkerTimeout after `timeout` seconds."""
        self._pool.ours()
        if not self._pool.ready.wait(seconds(timeout)):
            raise WorkerTimeout(f"worker {self.name} was not ready after {timeout} s")
        if self._pool.error is not None:
            raise WorkerStartError(*self._pool.error.args)
        return self

    @property
    def pids(self) -> list[int]:
        """The processes that live now."""
        processes = [lane.process for lane in self._pool.lanes]
        return [process.popen.pid for process in processes if process is not None]

    def stats(self) -> dict[str, dict[str, int]]:
        """Bytes of large data that were sent with a copy and in place, by this side and by the worker's.

        {"caller": {"copied": n, "shared": n}, "worker": ...}, since the start of the process that answers.
        """
        return self._pool.stats(self._pool.ticket(None))

    def close(self, timeout: float = 5) -> None:
        """Ends the processes: calls that wait are refused, one that runs has `timeout` seconds. May be called twice."""
        self._pool.close(timeout)
        self._tasks.put(None)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cohabit.Worker {self.name}: processes {self.pids}>"


class _Task:
    """One acall. It waits in the pool's queue as a call does, but without a thread; when it is its turn, a thread does it."""

    def __init__(self, pool: Pool, ticket: Ticket, future: Future[Any], tasks: queue.SimpleQueue[Any],
                 what: tuple[str, tuple[Any, ...], dict[str, Any]]):
        self.pool, self.ticket, self.future, self.tasks, self.what = pool, ticket, future, tasks, what
        self.once = threading.Lock()
        ticket.begin = self.begin

    def begin(self) -> None:
        """By whoever gives it a process or refuses it, under the pool's lock perhaps."""
        if self.ticket.error is None:
            self.tasks.put(self)
        elif self.once.acquire(blocking=False):
            future, _ = self._let_go()
            if future.set_running_or_notify_cancel():
                future.set_exception(again(self.ticket.error))

    def __call__(self) -> None:
        if not self.once.acquire(blocking=False):
            return
        future, what = self._let_go()
        if not future.set_running_or_notify_cancel():
            self.pool.give_back(self.ticket)
            return
        try:
            future.set_result(self.pool.exchange(self.ticket, *what))
        except BaseException as error:
            future.set_exception(error)
        # An exception holds this frame, and the frame would hold the exception, and a process that has ended.
        del self, future, what

    def _let_go(self) -> tuple[Future[Any], Any]:
        """Nothing is to wait for the collector: arguments, a result, a process."""
        result = self.future, self.what
        del self.future, self.what
        self.ticket.begin = None
        return result


def _serve(tasks: queue.SimpleQueue[Any]) -> None:
    while True:
        task = tasks.get()
        if task is None:
            _serve_rest(tasks)
            return
        task()
        del task  # not until the next one comes: it holds arguments and a result


def _serve_rest(tasks: queue.SimpleQueue[Any]) -> None:
    """After close(): each of them is refused at once."""
    try:
        while True:
            task = tasks.get_nowait()
            if task is not None:
                task()
    except queue.Empty:
        tasks.put(None)  # it stays there: every thread ends at it


def _forgotten(pool: Pool, tasks: queue.SimpleQueue[Any]) -> None:
    """A Worker that nobody closed was collected. Takes no lock: this runs within any line of code."""
    pool.request_close()
    tasks.put(None)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed: nothing can be found in it
        return "/"


def _writer(log: Callable[[str], Any] | bool | None) -> Callable[[str], Any]:
    if callable(log):
        return log
    if log is False:
        return lambda line: None

    def write(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return write


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    pools = list(_POOLS)
    for pool in pools:
        pool.request_close_at(time.monotonic() + 2)
    for pool in pools:
        pool.close(2)
