"""The supervision of a worker's processes, and the hand-over between them and the callers.

A process runs one call at a time, in its main thread. A caller takes an idle process, talks to it itself
and gives it back; there is no thread between them, which is what makes a call fast. Callers that find
none idle wait in one queue, in the order in which they came: their arguments are not copied before it
is their turn.

All else is the supervisor's (_worker_supervisor.py), a thread. Lanes change hands under `lock`; everything
that blocks happens outside of it.
"""
from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _worker_main as wire
from ._worker_errors import (WorkerBusy, WorkerCancelled, WorkerClosed, WorkerError, WorkerTimeout, remote_error)
from ._worker_process import Process, Spec

FOR_EVER = 1e8  # seconds, three years: the system's calls take no infinity
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
        self.short_since: float | None = None  # no process can be made for want of descriptors or memory
        self.next_start = 0.0
        self.deadline: float | None = None
        self.draining: int | None = None  # the call whose answer nobody waits for
        self.watched = False  # for that answer


class Ticket:
    """One call, from the queue to its end."""

    def __init__(self, call: int, deadline: float | None):
        self.call, self.deadline = call, deadline
        self.turn: threading.Lock | None = None  # of one that waits: held until it is its turn
        self.begin: Callable[[], Any] | None = None  # in place of that: called when it is its turn, or is refused; perhaps twice
        self.lane: Lane | None = None
        self.process: Process | None = None
        self.error: WorkerError | None = None
        self.queued = False
        self.phase = NEW

    def tell(self) -> None:
        begin = self.begin  # a thread that has begun takes it away
        if begin is not None:
            begin()

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
        self.thread: threading.Thread | None = None  # the supervisor's

    # -- callers --

    def ticket(self, timeout: float | None) -> Ticket:
        self.ours()
        timeout = seconds(timeout)
        return Ticket(next(self.numbers), None if timeout is None else time.monotonic() + timeout)

    def ours(self) -> None:
        """Raises in a fork, which has no supervisor."""
        if os.getpid() != self.pid:
            raise WorkerError(f"this worker belongs to process {self.pid}: make one of its own after a fork")

    def call(self, ticket: Ticket, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            self.enter(ticket)
            self._wait_for_turn(ticket)
            return self._exchange(ticket, name, args, named)
        finally:
            self.give_back(ticket)

    def exchange(self, ticket: Ticket, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The call of a ticket that has begun."""
        try:
            return self._exchange(ticket, name, args, named)
        finally:
            self.give_back(ticket)

    def stats(self, ticket: Ticket) -> dict[str, dict[str, int]]:
        theirs = self.call(ticket, "__stats__", (), {})
        link = ticket.process.link  # type: ignore[union-attr]
        return {"caller": {"copied": link.copied, "shared": link.shared}, "worker": theirs}

    def enter(self, ticket: Ticket) -> None:
        """Gives it an idle process, or queues it up."""
        with self.lock:
            if self.closing is not None or self.error is not None:
                self.refuse()
            lane = None if self.waiting else self._idlest()
            if lane is not None:
                self._assign(lane, ticket)
            elif len(self.waiting) >= self.limits.waiting:
                raise WorkerBusy(f"{len(self.waiting)} calls of worker {self.spec.name} wait already (max_waiting)")
            else:
                ticket.turn = threading.Lock()
                ticket.turn.acquire()
                ticket.queued = True
                self.waiting.append(ticket)
        if lane is not None:
            ticket.tell()

    def _wait_for_turn(self, ticket: Ticket) -> None:
        if ticket.turn is None:
            return
        left = ticket.left()
        if not ticket.turn.acquire(timeout=-1 if left is None else left):
            raise self._too_late()
        if ticket.error is not None:
            raise again(ticket.error)

    def _too_late(self) -> WorkerTimeout:
        return WorkerTimeout(f"no process of worker {self.spec.name} was free in time")

    def _idlest(self) -> Lane | None:
        """Under the lock: of those that are idle, the one that has served least."""
        best = None
        for lane in self.lanes:
            if lane.state == IDLE and (best is None or lane.calls < best.calls):
                best = lane
        return best

    def refuse(self) -> None:
        """Raises if no call can be taken any more."""
        if self.closing is not None:
            raise WorkerClosed(f"worker {self.spec.name} is closed")
        if self.error is not None:
            raise again(self.error)

    def _assign(self, lane: Lane, ticket: Ticket) -> None:
        lane.owner, ticket.lane, ticket.process = ticket, lane, lane.process
        lane.state = BUSY
        lane.calls += 1

    def _exchange(self, ticket: Ticket, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        process = ticket.process
        assert process is not None
        if ticket.left() == 0:
            raise self._too_late()
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
        try:
            raise error
        finally:
            del error  # which holds this frame, and that the process

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
        if type(value) is not tuple or [type(part) for part in value[:4]] != [str, str, str, tuple] \
                or len(value) != 5 or type(value[4]) not in (int, type(None)):
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

    def give_back(self, ticket: Ticket) -> None:
        """Whatever happened, and an interrupt at any point of it: the process is idle, is drained, or is ended. Once is enough."""
        with self.lock:
            lane = ticket.lane or next((lane for lane in self.lanes if lane.owner is ticket), None)
            if ticket.queued and ticket in self.waiting:
                self.waiting.remove(ticket)
            if lane is None or lane.owner is not ticket:
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
                self.idle(lane)
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

    def idle(self, lane: Lane) -> None:
        """Under the lock: the next one who waits has it."""
        lane.state, lane.deadline, lane.draining = IDLE, None, None
        if self.waiting and self.closing is None:
            self._assign(lane, self.waiting[0])
            self._wake(self.waiting[0])

    def _wake(self, ticket: Ticket) -> None:
        """Under the lock: ends a wait. In this order, so that repair() can finish what an interrupt cut off."""
        try:
            ticket.turn.release()  # type: ignore[union-attr]
        except RuntimeError:
            pass  # done, before that interrupt
        ticket.tell()
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
                    self.idle(lane)
                elif lane.state == BUSY and lane.owner is None and process is not None:
                    process.reason = process.reason or "a call was interrupted while it was given back"

    def cancel(self, ticket: Ticket) -> None:
        """From another thread than the one that is in call()."""
        with self.lock:
            if self._refuse_waiting(ticket, WorkerCancelled("the call was cancelled before it began")):
                pass
            elif ticket.lane is not None and ticket.lane.owner is ticket and ticket.process is not None:
                ticket.lane.deadline = time.monotonic() + self.limits.grace
                ticket.process.tell(wire.CANCEL, ticket.call)
        self.wake()

    def expire(self, ticket: Ticket) -> None:
        """Its time is up: if it still waits, it waited for too long. From another thread, too."""
        with self.lock:
            self._refuse_waiting(ticket, self._too_late())

    def _refuse_waiting(self, ticket: Ticket, error: WorkerError) -> bool:
        if ticket not in self.waiting or ticket.lane is not None:
            return False
        ticket.error = error
        self._wake(ticket)
        return True

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
        timeout = min(timeout, FOR_EVER)
        self.request_close_at(time.monotonic() + timeout)
        if threading.current_thread() not in (self.thread, self.spec.log.thread):
            self.over.wait(timeout + 10)

    def dismiss(self, error: WorkerError) -> None:
        """Under the lock: nobody who waits will be served."""
        while self.waiting:
            self.waiting[0].error = error
            self._wake(self.waiting[0])


def seconds(timeout: float | None) -> float | None:
    """A time limit as the system's calls take it; None: none."""
    if timeout is None or timeout < FOR_EVER:
        return timeout
    if timeout != timeout:
        raise ValueError("timeout is NaN: expected seconds")
    return None


def _limit(stream: socket.socket, ticket: Ticket) -> None:
    left = ticket.left()
    if left is not None:
        stream.settimeout(max(left, 1e-6))
    elif stream.gettimeout() is not None:
        stream.settimeout(None)


def again(error: WorkerError) -> WorkerError:
    """Each caller raises an exception of its own: a traceback is not for several threads."""
    return type(error)(*error.args)
