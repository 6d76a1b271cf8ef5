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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Union

__all__ = ["CohabitError", "__version__", "command", "doctor"]

StrPath = Union[str, "os.PathLike[str]"]


class CohabitError(RuntimeError):
    """Cohabit could not do its job (its exit status 2); the text says why."""


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
    line = [command(), "doctor", "--format", "json"]
    if environment is not None:
        line.append(os.fspath(environment))
    names = imports if isinstance(imports, str) else ",".join(imports)
    if names:
        line += ["--imports", names]
    if trace:
        line.append("--trace")
    if replay is not None:
        line += ["--replay", os.fspath(replay)]
    line += arguments
    answer = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if answer.returncode not in (0, 1):  # 1: there are findings
        message = answer.stderr.decode(errors="replace").strip()
        raise CohabitError(message or f"cohabit ended with status {answer.returncode}")
    return json.loads(answer.stdout)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cohabit")
    except PackageNotFoundError:  # run from a source tree
        return "0+unknown"


__version__ = _version()
