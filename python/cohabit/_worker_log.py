"""Lines of workers on their way to `log`, which may block: a terminal that was stopped, a pipe that nobody reads.

A thread writes them, so that the supervision goes on meanwhile: starts, signs of life, time limits. While too many
wait, the workers' output is not read, and what they print waits in them.
"""
from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

MOST = 1000  # lines that wait


class Log:
    def __init__(self, write: Callable[[str], Any]):
        self._write = write
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.room_again: Callable[[], Any] = bool  # called by the thread when it was full and is not any more

    def __call__(self, line: str) -> None:
        """By the supervisor only."""
        if self.thread is None:
            thread = threading.Thread(target=self._run, name="cohabit-log", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread is to be had
                self._hand_over(line)
                return
            self.thread = thread
        self._lines.put(line)

    def is_full(self) -> bool:
        return self._lines.qsize() >= MOST

    def close(self, timeout: float) -> None:
        """Waits until all is written, `timeout` seconds at most."""
        if self.thread is not None:
            self._lines.put(None)
            self.thread.join(timeout)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            if line is None:
                return
            self._hand_over(line)
            if self._lines.qsize() == MOST // 2:
                self.room_again()

    def _hand_over(self, line: str) -> None:
        try:
            self._write(line)
        except Exception:  # a log that is closed or full must not end the supervision
            pass
