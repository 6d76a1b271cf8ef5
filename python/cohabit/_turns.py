"""Whose turn it is: many threads, one framework at a time.

Threads that use the same framework go together; one that wants another waits until they are out. Who is inside may go
deeper: the same framework at once, another one when nobody else is inside.
"""
from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from ._manager_errors import FrameworkBusy


class Turns:
    def __init__(self) -> None:
        self.current: str | None = None
        self._inside: dict[int, int] = {}  # thread: how deep
        self._waiting_inside: set[int] = set()  # threads inside that wait for the others inside
        self._switching: int | None = None
        self._changed = threading.Condition()
        _ALL.add(self)

    def after_fork(self) -> None:
        """In the child: only the thread that forked is there. Nobody else leaves, or gives the lock back."""
        me = threading.get_ident()
        self._inside = {thread: depth for thread, depth in self._inside.items() if thread == me}
        self._waiting_inside.clear()
        self._switching = self._switching if self._switching == me else None
        self._changed = threading.Condition()

    def enter(self, name: str, switch: Callable[[], Any], timeout: float | None) -> Any:
        """Waits until `name` may be used, makes it current by switch(), and stays inside until leave()."""
        return self._take(name, switch, timeout, stay=True)

    def pass_through(self, name: str, switch: Callable[[], Any], timeout: float | None) -> Any:
        """The same without staying inside."""
        return self._take(name, switch, timeout, stay=False)

    def _take(self, name: str, switch: Callable[[], Any], timeout: float | None, stay: bool) -> Any:
        try:
            self._begin(name, timeout)
            result = switch()
        except BaseException:  # an interrupt in any line of these too
            self._end(None, stay=False)
            raise
        self._end(name, stay)
        return result

    def leave(self, thread: int, outer: str | None, switch: Callable[[], Any], timeout: float | None) -> None:
        """Ends what enter() began in `thread`, which need not be this one (a generator that is closed elsewhere).

        Back to `outer`, the framework of the block around it, by switch(): that is current again also where switch() fails,
        since its users are inside. Where nobody else is inside, nobody gets in between; else it is waited for them, and the
        inner one stays if that takes too long (FrameworkBusy), or if this is another thread.
        """
        me = threading.get_ident()
        try:
            with self._changed:
                if thread not in self._inside:  # the thread is on the other side of a fork
                    return
                self._inside[thread] -= 1
                if not self._inside[thread]:
                    del self._inside[thread]
                goes_back = outer not in (None, self.current) and thread == me
                if goes_back and set(self._inside) == {me} and self._switching is None:
                    self._switching = me
                self._changed.notify_all()
            if goes_back and outer is not None:
                self._begin(outer, timeout)
                try:
                    switch()
                finally:
                    self._end(outer, stay=False)
        except BaseException:
            self._end(None, stay=False)
            raise

    def depth(self) -> int:
        with self._changed:
            return self._inside.get(threading.get_ident(), 0)

    def _begin(self, name: str, timeout: float | None) -> None:
        me, end = threading.get_ident(), None if timeout is None else time.monotonic() + timeout
        with self._changed:
            try:
                while not self._may_begin(me, name):
                    if me in self._inside:
                        self._refuse_deadlock(me, name)
                        self._waiting_inside.add(me)
                        self._changed.notify_all()  # another one that waits inside can now see that it never ends
                    rest = None if end is None else end - time.monotonic()
                    if rest is not None and rest <= 0 or not self._changed.wait(None if rest is None else min(rest, threading.TIMEOUT_MAX)):
                        raise FrameworkBusy(f"{name} could not be switched to within {timeout:g} s: {self._who()}")
            finally:
                self._waiting_inside.discard(me)
            self._switching = me

    def _may_begin(self, me: int, name: str) -> bool:
        if self._switching not in (None, me):
            return False
        return self.current == name or not any(thread != me for thread in self._inside)

    def _refuse_deadlock(self, me: int, name: str) -> None:
        others = set(self._inside) - {me}
        if others and others <= self._waiting_inside and self._switching is None:
            raise FrameworkBusy(f"{name} cannot be switched to inside use({self.current!r}): other threads inside it wait "
                                "for this one to leave")

    def _end(self, name: str | None, stay: bool) -> None:
        me = threading.get_ident()
        with self._changed:
            if self._switching == me:
                self._switching = None
            if name is not None:
                self.current = name
            if stay:
                self._inside[me] = self._inside.get(me, 0) + 1
            self._changed.notify_all()

    def _who(self) -> str:
        if self._switching is not None:
            return "another thread is switching"
        return f"{len(self._inside)} other thread{'s use' if len(self._inside) != 1 else ' uses'} {self.current}"


_ALL: weakref.WeakSet[Turns] = weakref.WeakSet()


def _after_fork() -> None:
    for turns in list(_ALL):
        turns.after_fork()


os.register_at_fork(after_in_child=_after_fork)
