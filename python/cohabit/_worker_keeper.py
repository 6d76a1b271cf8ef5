"""Ends what workers have started, when their caller is gone.

The kernel ends the workers with their caller, kill -9 too (PR_SET_PDEATHSIG), but not the processes that they have
started. This one, in a session of its own, is told on standard input each process group that begins ("+123") and
ends ("-123"); the input's end, or another parent, says that the caller is gone. It is run as a program, by a worker's
Python, from where it lies, with the standard library only.
"""
from __future__ import annotations

import os
import select
import signal
import sys


def keep(parent: int) -> None:
    groups: set[int] = set()
    rest = b""
    # A fork of the caller holds the input open too: hence the look at the parent.
    while os.getppid() == parent:
        if not select.select([0], [], [], 1)[0]:
            continue
        data = os.read(0, 4096)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            (groups.add if line.startswith(b"+") else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass  # nobody is left in it


if __name__ == "__main__":
    keep(int(sys.argv[1]))
