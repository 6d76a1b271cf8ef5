"""The supervision of a worker's processes, and the hand-over between them and the callers.

A process runs one call at a time, in its main thread. A caller takes an idle process, talks to it itself
and gives it back; there is no thread between them, which is what makes a call fast. Callers that find
none idle wait in one queue, in the order in which they came: their arguments are not copied before it
is their turn.

One thread, the supervisor, does all else: it starts processes (the kernel's death signal goes by the
thread that forked, so that thread must live as long as they), reads what they print, pings them, reads
late answers of calls that were given up, buries them and starts the next. Lanes change hands under
`lock`. Everything that blocks happens outside of it.
"""
from __future__ import annotations

import functools
import itertools
import math
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _worker_main as wire
from ._worker_errors import (WorkerBusy, WorkerCancelled, WorkerClosed, WorkerError, WorkerStartError, WorkerTimeout,
                             remote_error)
from ._worker_process import Process, Spec

NEW, SENDING, WAITING, DONE = range(4)
DOWN, STARTING, IDLE, BUSY, DRAINING, FAILED = "down", "starting", "idle", "busy", "draining", "failed"


@dataclass(frozen=True)
class Limits:
    """Seconds, but for the last two."""

    start: float
    heartbeat: float
    silence: float
    grace: float
    pause: float
    restarts: int
    waiting: int


class Lane:
    """The place of one process; when it ends, the next one takes it."""

    def __init__(self, index: int):
        self.index = index
        self.state = DOWN
        self.process: Process | None = None
        self.owner: Ticket | None = None
        self.calls = 0
        self.failures = 0  # ends since the last completed call
        self.bad_starts = 0  # in a row
        self.next_start = 0.0
        self.deadline: float | None = None
        self.draining: int | None = None  # the call whose answer nobody waits for
        self.watched = False  # for that answer


class Ticket:
    """One call, from the queue to its end."""

    def __init__(self, call: int, deadline: float | None):
        self.call, self.deadline = call, deadline
        self.turn = threading.Lock()
        self.turn.acquire()
        self.lane: Lane | None = None
        self.process: Process | None = None
        self.error: WorkerError | None = None
        self.queued = False
        self.phase = NEW

    def left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0)


class Pool:
    def __init__(self, spec: Spec, count: int, limits: Limits):
        self.spec, self.limits = spec, limits
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.lanes = [Lane(index) for index in range(count)]
        self.waiting: deque[Ticket] = deque()
        self.closing: float | None = None  # when what still runs is ended
        self.error: WorkerError | None = None
        self.numbers = itertools.count(1)
        self.ready = threading.Event()
        self.over = threading.Event()
        self.wake_out, self.wake_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.thread = threading.Thread(target=Supervisor(self).run, name=f"cohabit-{spec.name}", daemon=True)
        self.thread.start()

    # -- callers --

    def ticket(self, timeout: float | None) -> Ticket:
        if os.getpid() != self.pid:
            raise WorkerError(f"this worker belongs to process {self.pid}: make one of its own after a fork")
        return Ticket(next(self.numbers), None if timeout is None else time.monotonic() + timeout)

    def call(self, ticket: Ticket, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            self._take(ticket)
            return self._exchange(ticket, name, args, named)
        finally:
            self._give_back(ticket)

    def stats(self, ticket: Ticket) -> dict[str, dict[str, int]]:
        theirs = self.call(ticket, "__stats__", (), {})
        link = ticket.process.link  # type: ignore[union-attr]
        return {"caller": {"copied": link.copied, "shared": link.shared}, "worker": theirs}

    def _take(self, ticket: Ticket) -> None:
        with self.lock:
            self.refuse()
            lane = None if self.waiting else min((lane for lane in self.lanes if lane.state == IDLE),
                                                 key=lambda lane: lane.calls, default=None)
            if lane is not None:
                self._assign(lane, ticket)
                return
            if len(self.waiting) >= self.limits.waiting:
                raise WorkerBusy(f"{len(self.waiting)} calls of worker {self.spec.name} wait already (max_waiting)")
            ticket.queued = True
            self.waiting.append(ticket)
        left = ticket.left()
        if not ticket.turn.acquire(timeout=-1 if left is None else left):
            raise WorkerTimeout(f"no process of worker {self.spec.name} was free in time")
        if ticket.error is not None:
            raise _again(ticket.error)

    def refuse(self) -> None:
        """Raises if no call can be taken any more."""
        if self.closing is not None:
            raise WorkerClosed(f"worker {self.spec.name} is closed")
        if self.error is not None:
            raise _again(self.error)

    def _assign(self, lane: Lane, ticket: Ticket) -> None:
        lane.owner, ticket.lane, ticket.process = ticket, lane, lane.process
        lane.state = BUSY
        lane.calls += 1

    def _exchange(self, ticket: Ticket, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        process = ticket.process
        assert process is not None
        try:
            frame = process.link.encode(wire.CALL, ticket.call, (name, args, named))
            kind, body = self._send_and_receive(ticket, process, name, frame)
            value = process.link.decode(body)
            if kind == wire.RESULT:
                return value
            error = self._remote(value, name)
        except wire.ProtocolError as lie:
            ticket.phase = SENDING
            process.reason = process.reason or f"it broke the protocol: {lie}"
            self.wake()
            raise process.crash() from None
        raise error

    def _send_and_receive(self, ticket: Ticket, process: Process, name: str, frame: bytearray) -> tuple[int, memoryview]:
        link = process.link
        try:
            ticket.phase = SENDING
            _limit(link.socket, ticket)
            link.socket.sendall(frame)
            ticket.phase = WAITING
            _limit(link.socket, ticket)
            kind, call, body = link.read()
        except socket.timeout:
            raise WorkerTimeout(f"{name} of worker {self.spec.name} did not end in time") from None
        except (EOFError, OSError):
            raise self._ended(ticket, process) from None
        if call != ticket.call or kind not in (wire.RESULT, wire.ERROR):
            raise wire.ProtocolError(f"the answer of call {call} where that of {ticket.call} was expected")
        ticket.phase = DONE
        return kind, body

    def _remote(self, value: Any, name: str) -> WorkerError:
        if type(value) is not tuple or [type(part) for part in value] != [str, str, str, tuple]:
            raise wire.ProtocolError(f"a {type(value).__name__} where an error's description was expected")
        if value[0] == "Cancelled":
            return WorkerCancelled(f"{name} of worker {self.spec.name} was cancelled")
        return remote_error(*value)

    def _ended(self, ticket: Ticket, process: Process) -> WorkerError:
        with self.lock:
            if ticket.lane is not None and not process.over.is_set():
                process.lost = True
                ticket.lane.deadline = time.monotonic() + 1  # without a connection it is of no use
        self.wake()
        crash = process.crash()
        if self.closing is not None:
            return WorkerClosed(f"worker {self.spec.name} was closed during the call")
        return crash

    def _give_back(self, ticket: Ticket) -> None:
        """Whatever happened, and an interrupt at any point of it: the process is idle, is drained, or is ended."""
        with self.lock:
            lane = ticket.lane or next((lane for lane in self.lanes if lane.owner is ticket), None)
            if ticket.queued and ticket in self.waiting:
                self.waiting.remove(ticket)
            if lane is None:
                return
            process = ticket.process or lane.process
            lane.owner = None
            if process is None or process.over.is_set():
                if process is not None:
                    process.close()
                if lane.process is None and lane.state == BUSY:
                    lane.state = DOWN
            elif ticket.phase in (NEW, DONE):
                if ticket.phase == DONE:
                    lane.failures = lane.bad_starts = 0
                self._idle(lane)
                return
            else:
                self._abandon(lane, process, ticket)
        self.wake()

    def _abandon(self, lane: Lane, process: Process, ticket: Ticket) -> None:
        lane.state = DRAINING
        if ticket.phase == WAITING and not process.link.reading:
            lane.draining, lane.deadline = ticket.call, time.monotonic() + self.limits.grace
            process.tell(wire.CANCEL, ticket.call)
        else:  # half a message went or came: nothing on this socket makes sense any more
            process.reason = process.reason or "a call was interrupted in the middle of a message"

    def _idle(self, lane: Lane) -> None:
        """Under the lock: the next one who waits has it."""
        lane.state, lane.deadline, lane.draining = IDLE, None, None
        if self.waiting and self.closing is None:
            self._assign(lane, self.waiting[0])
            self._wake(self.waiting[0])

    def _wake(self, ticket: Ticket) -> None:
        """Under the lock: ends a wait. In this order, so that repair() can finish what an interrupt cut off."""
        try:
            ticket.turn.release()
        except RuntimeError:
            pass  # done, before that interrupt
        self.waiting.remove(ticket)

    def repair(self) -> None:
        """Finishes what Ctrl-C cut off in the main thread, at any line under the lock. The supervisor is never interrupted."""
        with self.lock:
            for ticket in list(self.waiting):
                if ticket.lane is not None or ticket.error is not None:
                    self._wake(ticket)
            for lane in self.lanes:
                process = lane.process
                if lane.state == IDLE and self.waiting:
                    self._idle(lane)
                elif lane.state == BUSY and lane.owner is None and process is not None:
                    process.reason = process.reason or "a call was interrupted while it was given back"

    def cancel(self, ticket: Ticket) -> None:
        """From another thread than the one that is in call()."""
        with self.lock:
            if ticket in self.waiting and ticket.lane is None:
                ticket.error = WorkerCancelled("the call was cancelled before it began")
                self._wake(ticket)
            elif ticket.lane is not None and ticket.lane.owner is ticket and ticket.process is not None:
                ticket.lane.deadline = time.monotonic() + self.limits.grace
                ticket.process.tell(wire.CANCEL, ticket.call)
        self.wake()

    # -- both --

    def wake(self) -> None:
        try:
            os.write(self.wake_in, b"w")
        except OSError:
            pass  # full: it will wake; closed: it is over

    def request_close(self) -> None:
        """Takes no lock: a finalizer may call it within any other line here."""
        if self.closing is None and os.getpid() == self.pid:
            self.closing = 0.0
            self.wake()

    def request_close_at(self, end: float) -> None:
        if os.getpid() == self.pid:
            with self.lock:
                self.closing = end if self.closing is None else min(self.closing, end)
            self.wake()

    def close(self, timeout: float) -> None:
        if os.getpid() != self.pid:
            return
        self.request_close_at(time.monotonic() + timeout)
        if threading.current_thread() is not self.thread:
            self.over.wait(timeout + 10)

    def dismiss(self, error: WorkerError) -> None:
        """Under the lock: nobody who waits will be served."""
        while self.waiting:
            self.waiting[0].error = error
            self._wake(self.waiting[0])


def _limit(stream: socket.socket, ticket: Ticket) -> None:
    left = ticket.left()
    if left is not None:
        stream.settimeout(max(left, 1e-6))
    elif stream.gettimeout() is not None:
        stream.settimeout(None)


def _again(error: WorkerError) -> WorkerError:
    """Each caller raises an exception of its own: a traceback is not for several threads."""
    return type(error)(*error.args)


class Supervisor:
    """What the supervisor's thread does."""

    def __init__(self, pool: Pool):
        self.pool, self.limits = pool, pool.limits
        self.selector = selectors.DefaultSelector()
        self.selector.register(pool.wake_out, selectors.EVENT_READ, self._woken)

    def run(self) -> None:
        pool = self.pool
        try:
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
        with pool.lock:
            pool.closing = pool.closing or 0.0
            pool.dismiss(WorkerClosed(f"worker {pool.spec.name} was closed"))
            self.selector.close()
            wake, pool.wake_in = pool.wake_in, -1
            os.close(wake)
            os.close(pool.wake_out)
        pool.ready.set()
        pool.over.set()

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
        if process.pidfd is None and process.popen.poll() is not None:
            self._bury(lane, None)
            return
        if closing is not None and not process.closing:
            process.closing = True
            process.tell(wire.CLOSE)
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
            if lane.state == STARTING:
                return f"it was not ready after {self.limits.start:g} s"
            if process.lost:
                return "it gave up its connection"
            return f"it did not end a call that was given up {self.limits.grace:g} s before"
        if lane.state != STARTING and process.pinged is not None and now - process.pinged >= self.limits.silence:
            return f"it gave no sign of life for {self.limits.silence:g} s"
        return None

    def _start(self, lane: Lane) -> None:
        pool = self.pool
        prefix = pool.spec.name if len(pool.lanes) == 1 else f"{pool.spec.name} {lane.index}"
        try:
            process = Process(pool.spec, prefix)
        except (WorkerStartError, OSError) as error:
            self._give_up(lane, error if isinstance(error, WorkerStartError) else WorkerStartError(str(error)))
            return
        with pool.lock:
            lane.process, lane.state = process, STARTING
            lane.deadline = time.monotonic() + self.limits.start
        for pipe in process.outputs:
            self._watch(pipe, functools.partial(self._printed, process, pipe))
        self._watch(process.control, lambda: self._controlled(lane, process))
        if process.pidfd is not None:
            self._watch(process.pidfd, lambda: self._bury(lane, None))
        self._watch(process.link.socket, lambda: self._answered_start(lane))
        process.begin()

    def _printed(self, process: Process, pipe: Any) -> None:
        if not process.read_output(pipe):
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
            self.pool._idle(lane)
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
                self.pool._idle(lane)

    def _bury(self, lane: Lane, reason: str | None, final: WorkerStartError | None = None) -> None:
        process, pool = lane.process, self.pool
        if process is None:
            return
        if reason is not None:
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
        if lane.bad_starts > self.limits.restarts:
            self._give_up(lane, WorkerStartError(
                f"worker {self.pool.spec.name} ended {lane.bad_starts} times before it was ready; the last: {process.crash()}"))
            return
        end = f"was ended: {process.reason}" if process.reason else f"ended with status {process.status}"
        pause = 0.0 if lane.failures == 1 else min(0.1 * 2 ** min(lane.failures - 2, 20), self.limits.pause)
        lane.next_start = time.monotonic() + pause
        try:
            self.pool.spec.log(f"[{process.prefix}] process {process.popen.pid} {end}; the next one starts in {pause:g} s")
        except Exception:
            pass

    def _give_up(self, lane: Lane, error: WorkerError) -> None:
        pool = self.pool
        with pool.lock:
            lane.state = FAILED
            if all(other.state == FAILED for other in pool.lanes):
                pool.error = error
                pool.dismiss(error)
                pool.ready.set()
