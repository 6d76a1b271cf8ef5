"""The thread that looks after a worker's processes.

It starts them (the kernel's death signal goes by the thread that forked, so that thread must live as long as
they), reads what they print, pings them, reads late answers of calls that were given up, buries them and starts
the next. Ctrl-C never interrupts it.
"""
from __future__ import annotations

import errno
import functools
import math
import os
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any

from . import _worker_main as wire
from ._worker_errors import WorkerClosed, WorkerError, WorkerStartError
from ._worker_pool import BUSY, DOWN, FAILED, STARTING, Lane, Pool
from ._worker_process import Keeper, Process


# No descriptor, process or memory was to be had: later there can be.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


def supervise(pool: Pool) -> Pool:
    """Starts its supervisor."""
    supervisor = Supervisor(pool)
    pool.thread = threading.Thread(target=supervisor.run, name=f"cohabit-{pool.spec.name}", daemon=True)
    try:
        pool.thread.start()
    except RuntimeError:  # no thread is to be had
        supervisor.close_files()
        raise
    return pool


class Supervisor:
    """What the supervisor's thread does."""

    def __init__(self, pool: Pool):
        self.pool, self.limits = pool, pool.limits
        self.keeper: Keeper | None = None
        self.selector = selectors.DefaultSelector()
        self.selector.register(pool.wake_out, selectors.EVENT_READ, self._woken)
        pool.spec.log.room_again = pool.wake

    def run(self) -> None:
        pool = self.pool
        try:
            self.keeper = Keeper(pool.spec)
            while True:
                pool.repair()
                for lane in pool.lanes:
                    self._tend(lane, time.monotonic())
                if pool.closing is not None:
                    with pool.lock:
                        pool.dismiss(WorkerClosed(f"worker {pool.spec.name} was closed"))
                    if all(lane.process is None for lane in pool.lanes):
                        break
                for key, _ in self.selector.select(self._pause()):
                    # One event may bury the process that the next one of this batch is about.
                    if self.selector.get_map().get(key.fd) is key:
                        key.data()
        finally:
            self._end()

    def _end(self) -> None:
        pool = self.pool
        for lane in pool.lanes:
            if lane.process is not None:  # only after a mistake of ours
                lane.process.kill("the supervision failed")
        if self.keeper is not None:
            self.keeper.close()
        pool.spec.log.close(2)
        with pool.lock:
            pool.closing = pool.closing or 0.0
            pool.dismiss(WorkerClosed(f"worker {pool.spec.name} was closed"))
            self.close_files()
        pool.ready.set()
        pool.over.set()

    def close_files(self) -> None:
        self.selector.close()
        wake, self.pool.wake_in = self.pool.wake_in, -1
        os.close(wake)
        os.close(self.pool.wake_out)

    def _pause(self) -> float:
        """Seconds until something is due, at most one heartbeat."""
        now, due = time.monotonic(), [self.limits.heartbeat, 1.0]
        for lane in self.pool.lanes:
            if lane.deadline is not None:
                due.append(lane.deadline - now)
            if lane.state == DOWN and self.pool.closing is None:
                due.append(lane.next_start - now)
            if lane.process is not None and lane.process.pidfd is None:
                due.append(0.1)
        if self.pool.closing:
            due.append(self.pool.closing - now)
        return max(min(due), 0.001)

    def _woken(self) -> None:
        os.read(self.pool.wake_out, 4096)

    # -- the life of a process --

    def _tend(self, lane: Lane, now: float) -> None:
        """What time brings: starts, pings, limits."""
        process, closing = lane.process, self.pool.closing
        if process is None:
            if closing is None and lane.state == DOWN and lane.owner is None and now >= lane.next_start:
                self._start(lane)
            return
        if process.pidfd is None and process.has_ended():
            self._bury(lane, None)
            return
        if closing is not None and not process.closing:
            process.closing = True
            process.tell(wire.CLOSE)
        if process.unread and not self.pool.spec.log.is_full():
            self._read_outputs(process)
        if lane.draining is not None and not lane.watched:
            lane.watched = True
            self._watch(process.link.socket, lambda: self._drain(lane, process))
        reason = self._overdue(lane, process, now)
        if reason is not None:
            self._bury(lane, reason)
        elif now - process.heard >= self.limits.heartbeat:
            process.ping(now)

    def _overdue(self, lane: Lane, process: Process, now: float) -> str | None:
        if process.reason is not None:
            return process.reason
        if self.pool.closing is not None and (now >= self.pool.closing or lane.state == STARTING):
            return "it was closed"
        if lane.deadline is not None and now >= lane.deadline:
            if process.lost:
                return "it gave up its connection"
            if lane.state == STARTING:
                process.hangs = True
                return f"it was not ready after {self.limits.start:g} s"
            return f"it did not end a call that was given up {self.limits.grace:g} s before"
        if lane.state != STARTING and process.pinged is not None and now - process.pinged >= self.limits.silence:
            process.hangs = True
            return f"it gave no sign of life for {self.limits.silence:g} s"
        return None

    def _start(self, lane: Lane) -> None:
        pool = self.pool
        try:
            process = Process(pool.spec, self._prefix(lane), self.keeper)
        except (WorkerStartError, OSError, ValueError) as error:  # ValueError: a zero byte in a path
            self._not_started(lane, error)
            return
        lane.short_since = None
        with pool.lock:
            lane.process, lane.state = process, STARTING
            lane.deadline = time.monotonic() + self.limits.start
        self._read_outputs(process)
        self._watch(process.control, lambda: self._controlled(lane, process))
        if process.pidfd is not None:
            self._watch(process.pidfd, lambda: self._bury(lane, None))
        self._watch(process.link.socket, lambda: self._answered_start(lane))
        process.begin()

    def _not_started(self, lane: Lane, error: Exception) -> None:
        final = error if isinstance(error, WorkerStartError) else WorkerStartError(str(error))
        cause = error if isinstance(error, OSError) else error.__cause__
        now = time.monotonic()
        if lane.short_since is None:
            lane.short_since = now
        if getattr(cause, "errno", None) not in _PASSING or now - lane.short_since > self.limits.start:
            self._give_up(lane, final)
            return
        lane.failures += 1
        self._pause_before_start(lane, f"a process could not be started: {error}")

    def _read_outputs(self, process: Process) -> None:
        process.unread = False
        for pipe in process.outputs:
            self._watch(pipe, functools.partial(self._printed, process, pipe))

    def _printed(self, process: Process, pipe: Any) -> None:
        if self.pool.spec.log.is_full():
            process.unread = True
            for each in process.outputs:
                self._unwatch(each)
        elif not process.read_output(pipe):
            self._unwatch(pipe)

    def _controlled(self, lane: Lane, process: Process) -> None:
        if process.heard_control():
            return
        # Its control socket is closed: it is ending, and has a moment for it.
        self._unwatch(process.control)
        with self.pool.lock:
            process.lost = True
            lane.deadline = min(lane.deadline or math.inf, time.monotonic() + self.limits.grace)

    def _watch(self, file: Any, then: Callable[[], Any]) -> None:
        self.selector.register(file, selectors.EVENT_READ, then)

    def _unwatch(self, file: Any) -> None:
        try:
            self.selector.unregister(file)
        except (KeyError, ValueError):
            pass  # was not watched

    def _read_late(self, lane: Lane, process: Process, call: int) -> Any:
        """An answer that no caller waits for: kind and value, or None after a mishap."""
        try:
            process.link.socket.settimeout(5)
            kind, answered, body = process.link.read()
            if answered != call:
                raise wire.ProtocolError(f"the answer of call {answered} where that of {call} was expected")
            return kind, process.link.decode(body)
        except wire.Unsendable:
            return wire.ERROR, None
        except (EOFError, OSError, wire.ProtocolError) as error:
            self._bury(lane, f"it broke the protocol: {error}" if isinstance(error, wire.ProtocolError) else None)
            return None

    def _answered_start(self, lane: Lane) -> None:
        process = lane.process
        if process is None or lane.state != STARTING:
            return
        answer = self._read_late(lane, process, 0)
        if answer is None:
            return
        self._unwatch(process.link.socket)
        kind, value = answer
        if kind == wire.ERROR:
            error = WorkerStartError(f"worker {self.pool.spec.name} could not set up: {value[0]}: {value[1]}\n\n{value[2]}")
            self._bury(lane, "its setup failed", error)
            return
        process.link.pickle = bool(value.get("pickle"))
        process.link.socket.settimeout(None)
        with self.pool.lock:
            self.pool.idle(lane)
        self.pool.ready.set()

    def _drain(self, lane: Lane, process: Process) -> None:
        call = lane.draining
        if lane.process is not process or call is None:
            return
        answer = self._read_late(lane, process, call)
        if answer is not None:
            self._unwatch(process.link.socket)
            lane.watched = False
            process.link.socket.settimeout(None)
            with self.pool.lock:
                self.pool.idle(lane)

    def _bury(self, lane: Lane, reason: str | None, final: WorkerStartError | None = None) -> None:
        process, pool = lane.process, self.pool
        if process is None:
            return
        if reason is not None:
            if process.hangs:
                process.ask_where(reason)
            process.kill(reason)
        for file in (*process.outputs, process.control, process.link.socket, process.pidfd):
            if file is not None:
                self._unwatch(file)
        process.bury()
        started = lane.state != STARTING
        with pool.lock:
            lane.process, lane.deadline, lane.draining, lane.watched = None, None, None, False
            lane.state = BUSY if lane.owner is not None else DOWN
            if lane.owner is None:
                process.close()
        if pool.closing is None:
            self._after(lane, process, started, final)

    def _after(self, lane: Lane, process: Process, started: bool, final: WorkerStartError | None) -> None:
        """Restart with back-off, or give up."""
        lane.failures += 1
        lane.bad_starts = 0 if started else lane.bad_starts + 1
        if final is not None:
            self._give_up(lane, final)
            return
        if process.hangs and not started and not self.pool.ready.is_set():
            # Nothing says that it will ever be ready; trying again would keep the callers waiting as long once more.
            self._give_up(lane, WorkerStartError(f"worker {self.pool.spec.name} could not start: {process.crash()}"))
            return
        if lane.bad_starts > self.limits.restarts:
            self._give_up(lane, WorkerStartError(
                f"worker {self.pool.spec.name} ended {lane.bad_starts} times before it was ready; the last: {process.crash()}"))
            return
        end = f"was ended: {process.reason}" if process.reason else "ended" if process.status_is_taken else f"ended with status {process.status}"
        self._pause_before_start(lane, f"process {process.popen.pid} {end}")

    def _pause_before_start(self, lane: Lane, what: str) -> None:
        pause = 0.0 if lane.failures == 1 else min(0.1 * 2 ** min(lane.failures - 2, 20), self.limits.pause)
        lane.next_start = time.monotonic() + pause
        self.pool.spec.log(f"[{self._prefix(lane)}] {what}; the next one starts in {pause:g} s")

    def _prefix(self, lane: Lane) -> str:
        return self.pool.spec.name if len(self.pool.lanes) == 1 else f"{self.pool.spec.name} {lane.index}"

    def _give_up(self, lane: Lane, error: WorkerError) -> None:
        pool = self.pool
        with pool.lock:
            lane.state = FAILED
            if all(other.state == FAILED for other in pool.lanes):
                pool.error = error
                pool.dismiss(error)
                pool.ready.set()
                return
        # The callers, who have the others, are not told otherwise.
        pool.spec.log(f"[{self._prefix(lane)}] is not started again: {error}")
