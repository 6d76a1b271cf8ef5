"""Cohabit: what clashes when GPU frameworks share a process, why, and what to do about it.

    >>> import cohabit
    >>> report = cohabit.doctor("/path/to/env", imports=["tensorflow", "paddle"], trace=True)
    >>> [finding["headline"] for finding in report["findings"]]

The work is done by the native command that this package carries, in a process of its own: a damaged
library that is examined cannot hurt the caller, and nothing native is loaded into this one.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._worker_errors import (CohabitError, RemoteError, WorkerBusy, WorkerCancelled, WorkerClosed, WorkerCrashed,
                             WorkerError, WorkerStartError, WorkerTimeout)

if TYPE_CHECKING:
    from .manager import (FrameworkBusy, FrameworkConflict, FrameworkError, FrameworkManager, FrameworkNotFound,
                          FrameworkSyncError, GPUFrameworkManager, lazy)
    from .workers import Worker

__all__ = ["CohabitError", "FrameworkBusy", "FrameworkConflict", "FrameworkError", "FrameworkManager", "FrameworkNotFound",
           "FrameworkSyncError", "GPUFrameworkManager", "RemoteError", "Worker", "WorkerBusy", "WorkerCancelled", "WorkerClosed",
           "WorkerCrashed", "WorkerError", "WorkerStartError", "WorkerTimeout", "__version__", "command", "doctor",
           "explain_exception", "install_excepthook", "lazy", "verify", "why"]

StrPath = Union[str, "os.PathLike[str]"]


def __getattr__(name: str) -> Any:
    # The command passes through here at each start: what it does not need is not imported.
    if name == "Worker":
        from . import workers

        return workers.Worker
    if name == "lazy" or "Framework" in name and name in __all__:
        from . import manager

        return getattr(manager, name)
    if name in ("adapters", "manager", "workers"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def command() -> str:
    """The path of the native `cohabit` command in this package."""
    return str(Path(__file__).resolve().parent / "bin" / "cohabit")


def doctor(
    environment: StrPath | None = None,
    *,
    imports: str | Iterable[str] = (),
    trace: bool = False,
    replay: StrPath | None = None,
    arguments: Iterable[str] = (),
) -> dict[str, Any]:
    """The report of `cohabit doctor --format json`, as its schema describes it.

    environment  a virtual environment, an interpreter, ...; default: the active one
    imports      what to import, in order: "tensorflow,paddle" or a list
    trace        run the imports in a child process and simulate what it really opened
    replay       simulate a trace file recorded by `cohabit trace` instead
    arguments    further command-line arguments, as they are
    """
    line = ["--trace"] if trace else []
    if replay is not None:
        line += ["--replay", os.fspath(replay)]
    return _report("doctor", environment, imports, [*line, *arguments])


def verify(
    environment: StrPath | None = None,
    *,
    imports: str | Iterable[str] = (),
    repair: StrPath | None = None,
    arguments: Iterable[str] = (),
) -> dict[str, Any]:
    """Really imports and computes in child processes: the report of `cohabit verify --format json`.

    environment  a virtual environment, an interpreter, ...; default: the active one
    imports      this order only: "tensorflow,paddle" or a list; default: each framework and every pair in both orders
    repair       start the children with this repair, a file of `cohabit fix --write`
    arguments    further command-line arguments, as they are: ["--jobs", "2", "--cached"]
    """
    line = [] if repair is None else ["--repair", os.fspath(repair)]
    return _report("verify", environment, imports, [*line, *arguments])


def _report(
    name: str, environment: StrPath | None, imports: str | Iterable[str], arguments: list[str]
) -> dict[str, Any]:
    """What the command of that name says of imports, or of all, as JSON."""
    line = [command(), name, "--format", "json"]
    if environment is not None:
        line.append(os.fspath(environment))
    names = imports if isinstance(imports, str) else ",".join(imports)
    if names:
        line += ["--imports", names]
    return json.loads(_run([*line, *arguments]))


def why(
    text: str | bytes,
    *,
    environment: StrPath | None = None,
    arguments: Iterable[str] = (),
) -> dict[str, Any]:
    """What is known about an error text: the report of `cohabit why --format json`.

    environment  where to look for evidence: an environment or an interpreter; default: nowhere
    """
    line = [command(), "why", "-", "--format", "json"]
    if environment is not None:
        line += ["--env", os.fspath(environment)]
    line += arguments
    return json.loads(_run(line, text if isinstance(text, bytes) else text.encode(errors="replace")))


def explain_exception(exception: BaseException) -> dict[str, Any]:
    """The same for an exception, its causes and its traceback, in this interpreter's environment."""
    return why(_text_of(type(exception), exception, exception.__traceback__), environment=sys.executable)


def install_excepthook() -> None:
    """Adds the explanation, where there is one, under the traceback of what nobody catches, in threads too."""
    import threading

    before, before_in_threads = sys.excepthook, threading.excepthook
    if getattr(before, "_is_cohabit", False):
        return

    def hook(kind: type, exception: BaseException, traceback: Any) -> None:
        before(kind, exception, traceback)
        _explain(kind, exception, traceback)

    def hook_in_threads(arguments: Any) -> None:
        before_in_threads(arguments)
        _explain(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)

    hook._is_cohabit = True  # type: ignore[attr-defined]
    sys.excepthook = hook
    threading.excepthook = hook_in_threads


def _explain(kind: type, exception: Any, traceback: Any) -> None:
    if not issubclass(kind, Exception):  # the user's interrupt needs no explanation
        return
    try:
        line = [command(), "why", "-", "--env", sys.executable]
        answer = subprocess.run(line, input=_text_of(kind, exception, traceback).encode(errors="replace"),
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
        if answer.returncode == 1:
            sys.stderr.write("\n" + answer.stdout.decode(errors="replace"))
    except Exception:  # the traceback is printed: nothing may hide it
        pass


def _text_of(kind: Any, exception: Any, traceback: Any) -> str:
    import traceback as module

    return "".join(module.format_exception(kind, exception, traceback))


def _run(line: list[str], data: bytes | None = None) -> bytes:
    answer = subprocess.run(line, input=data, stdin=subprocess.DEVNULL if data is None else None,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if answer.returncode not in (0, 1):  # 1: there are findings
        message = answer.stderr.decode(errors="replace").strip()
        raise CohabitError(message or f"cohabit ended with status {answer.returncode}")
    return answer.stdout


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cohabit")
    except PackageNotFoundError:  # run from a source tree
        return "0+unknown"


__version__ = _version()
