"""Where in native code a worker died: written down by a library in the process, named afterwards.

libcohabit_crash.so is preloaded into workers; when a crash comes, its handler writes addresses into a file in
memory (runtime/preload/crash.c). The native command finds the library and makes names of the addresses. Where any of
that is not to be had, a crash has no native frames, and all else goes on.
"""
from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Mapping

MOST = 32 << 20  # bytes of a report that are read; a damaged process may write any number


def find_library() -> str | None:
    """What is preloaded; None: nothing. The variable COHABIT_CRASH_LIBRARY names another ("none": nothing)."""
    from . import command

    return _find_library(command(), os.environ.get("COHABIT_CRASH_LIBRARY"))


@functools.lru_cache(maxsize=8)
def _find_library(command: str, _variable: str | None) -> str | None:
    out = _ask(command, "--library")
    return out.splitlines()[0] if out else None


def with_library(environ: Mapping[str, str], library: str, file: int) -> dict[str, str]:
    """The environment in which it is preloaded, last, and writes into this file. The worker takes both out again."""
    preload = environ.get("LD_PRELOAD", "")
    return {**environ, "LD_PRELOAD": f"{preload}:{library}" if preload else library, "COHABIT_CRASH_REPORT": str(file)}


def read_report(file: int) -> bytes:
    return os.pread(file, min(os.fstat(file).st_size, MOST), 0)


def frames_of(report: bytes, process: int, signal: int) -> list[str]:
    """The innermost first, as "function +0x12 in library.so"."""
    from . import command

    if not report:
        return []
    return _ask(command(), str(process), str(signal), data=report).splitlines()


def _ask(command: str, *arguments: str, data: bytes = b"") -> str:
    try:
        answer = subprocess.run([command, "crash-frames", *arguments], input=data, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""  # no command in this installation
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else ""
