"""What can go wrong between a caller and its workers, as exceptions."""
from __future__ import annotations

import signal
from typing import Any


class CohabitError(RuntimeError):
    """Cohabit could not do its job (its exit status 2); the text says why."""


class WorkerError(CohabitError):
    """Every exception of workers."""


class WorkerStartError(WorkerError):
    """The worker cannot be started: no such Python, or its setup failed. The text holds its traceback."""


class WorkerTimeout(WorkerError, TimeoutError):
    """A call took longer than its `timeout`. The worker was told to give it up."""


class WorkerCancelled(WorkerError):
    """A call was given up."""


class WorkerBusy(WorkerError):
    """More calls wait than `max_waiting` allows."""


class WorkerClosed(WorkerError):
    """The worker was closed."""


class WorkerCrashed(WorkerError):
    """The worker's process ended during the call, or had to be ended.

    worker         its name
    signal         the number of the signal that ended it, or None
    exit_status    its exit status, or None (both None: it was not to be had)
    stderr         the end of what it wrote to standard error, at most 64 KiB
    python_frames  lines of Python's fault handler: what Python code ran, innermost first
    native_frames  where in native code it was, innermost first: "function +0x12 in library.so"; functions that a library does
                   not export have no name; empty where nothing could tell (SIGKILL; no native command)
    explanation    what `cohabit why` says to `stderr`, the frames and the signal (its JSON report), or None
    reason         why Cohabit ended it, or None
    """

    def __init__(self, worker: str, status: int | None, stderr: str, reason: str | None = None,
                 explanation: dict[str, Any] | None = None, native_frames: tuple[str, ...] = ()):
        self.worker, self.stderr, self.reason, self.explanation = worker, stderr, reason, explanation
        self.signal = -status if status is not None and status < 0 else None
        self.exit_status = status if status is not None and status >= 0 else None
        self.python_frames, of_python = frames_of(stderr)  # Python 3.14 writes native ones itself
        self.native_frames = list(native_frames) or of_python
        super().__init__(worker, status, stderr, reason, explanation, native_frames)

    def __str__(self) -> str:
        text = f"worker {self.worker} " + (f"was ended: {self.reason}" if self.reason else self._end())
        if self.python_frames:
            text += ", in" + "".join("\n  " + frame for frame in self.python_frames[:10])
        if self.native_frames:
            text += "\nnative code:" + "".join("\n  " + frame for frame in self.native_frames[:8])
        answers = (self.explanation or {}).get("answers") or []
        if answers:
            text += f"\n{answers[0].get('headline') or answers[0].get('mechanism')} (cohabit why: {answers[0].get('mechanism')})"
            text += "".join(f"\n  fix: {fix.get('text')}" for fix in answers[0].get("fixes", [])[:1])
        lines = self.stderr.strip().splitlines()[-5:]
        if lines and not self.python_frames:
            text += "\nits last lines:" + "".join("\n  " + line for line in lines)
        return text

    def _end(self) -> str:
        if self.signal is None and self.exit_status is None:
            return "ended; how is not known, because SIGCHLD is ignored here, or another part of this program took its status"
        if self.signal is None:
            return f"ended with status {self.exit_status}"
        try:
            return f"was ended by signal {self.signal} ({signal.Signals(self.signal).name})"
        except ValueError:
            return f"was ended by signal {self.signal}"


def frames_of(stderr: str) -> tuple[list[str], list[str]]:
    """The Python and the C frames that faulthandler wrote."""
    python: list[str] = []
    native: list[str] = []
    current: list[str] | None = None
    for line in stderr.splitlines():
        if "most recent call first" in line:
            current = native if "C stack" in line else python if "Current thread" in line else None
        elif line.startswith("  ") and current is not None:
            current.append(line.strip())
        else:
            current = None
    return python, native


class RemoteError(WorkerError):
    """The called function raised. Where it raised a builtin exception, this is one of that type too.

    type_name         the exception's type, as `module.Type` or `Type`
    message           its text
    remote_traceback  the traceback in the worker, as text (at most 64 KiB)

    An OSError has its `errno`. Not of their own type, but of the nearest base that can be: exceptions that need more
    than a text (UnicodeDecodeError is a ValueError), groups, and those that mean something to the interpreter
    (StopIteration, SystemExit, KeyboardInterrupt are RemoteErrors only).
    """

    def __init__(self, type_name: str, message: str, remote_traceback: str):
        super().__init__(type_name, message, remote_traceback)
        self.args = type_name, message, remote_traceback  # OSError makes something else of them
        self.type_name, self.message, self.remote_traceback = self.args

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}\n\nin the worker:\n{self.remote_traceback.rstrip()}"

    def __reduce__(self) -> tuple[Any, ...]:
        bases = tuple(base.__name__ for base in type(self).__bases__[1:])  # of those that remote_error() makes
        return remote_error, (self.type_name, self.message, self.remote_traceback, bases, getattr(self, "errno", None))


# Exceptions whose objects can be made of texts.
_PLAIN = {kind.__name__: kind for kind in (
    ValueError, TypeError, KeyError, IndexError, LookupError, AttributeError, ArithmeticError, ZeroDivisionError,
    OverflowError, FloatingPointError, NotImplementedError, AssertionError, MemoryError, RuntimeError, BufferError,
    NameError, RecursionError, EOFError, ImportError, ModuleNotFoundError, OSError, BlockingIOError, ChildProcessError,
    ConnectionError, BrokenPipeError, ConnectionAbortedError, ConnectionRefusedError, ConnectionResetError, FileExistsError,
    FileNotFoundError, InterruptedError, IsADirectoryError, NotADirectoryError, PermissionError, ProcessLookupError,
    TimeoutError, SystemError, ReferenceError, Warning, UserWarning, DeprecationWarning, RuntimeWarning, FutureWarning)}
_MADE: dict[str, type[RemoteError]] = {}


def remote_error(type_name: str, message: str, traceback: str, bases: tuple[str, ...], errno: int | None = None) -> RemoteError:
    base = next((name for name in bases if name in _PLAIN), None)
    if base is None:
        return RemoteError(type_name, message, traceback)
    if base not in _MADE:
        _MADE[base] = type("RemoteError", (RemoteError, _PLAIN[base]), {"__module__": RemoteError.__module__})
    error = _MADE[base](type_name, message, traceback)
    if isinstance(error, OSError):
        error.errno, error.strerror, error.filename = errno, message, None
    return error
