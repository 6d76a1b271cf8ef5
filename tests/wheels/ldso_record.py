#!/usr/bin/env python3
"""What the machine's own ld.so does when a command runs, from its log: the truth of tests/wheels.

  ldso_record.py --out DIR [--now] -- /ENV/bin/python -c "import torch"

ld.so tells its work under LD_DEBUG=files,libs,bindings. Two tables are made of that, with links in
paths resolved, so that two names of one file compare equal:

  loads.tsv     every link map in the order made: path, name asked for, needed-by or dlopen-by, by whom
  bindings.tsv  every distinct binding: from, to, symbol, version wanted ('-': none), kind

With --now also LD_BIND_NOW=1: function symbols are bound at load instead of at their first call.
Only the process itself counts: children that it forks write into the same log under their own id.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Iterator

MAP = re.compile(r"file=(.+?) \[-?\d+\];  (needed by|dynamically loaded by|generating link map)(?: (.*?) \[-?\d+\])?")
BOUND = re.compile(r"binding file (.+?) \[-?\d+\] to (.+?) \[-?\d+\]: (\w+) symbol `(.*?)'(?: \[(.*)\])?$")
HOW = {"needed by": "needed-by", "dynamically loaded by": "dlopen-by"}


@lru_cache(maxsize=None)
def resolved(path: str) -> str:
    return os.path.realpath(path) if "/" in path else path


def lines_of(log: Path, pid: int) -> Iterator[str]:
    """The lines of one process, without the "  PID:\t" before each."""
    prefix = f"{pid}:\t"
    with open(log, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            line = line.lstrip(" ")
            if line.startswith(prefix):
                yield line[len(prefix):].rstrip("\n")


def digest(lines: Iterable[str]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    loads: list[tuple[str, ...]] = []
    bindings: dict[tuple[str, ...], None] = {}  # in the order first seen
    tried = ""  # the last path that ld.so looked at: where a bare name was found
    reason: tuple[str, ...] = ()
    for line in lines:
        if line.startswith("binding file"):
            bound = BOUND.match(line)
            if bound and not bound[1].startswith("linux-vdso"):
                bindings[resolved(bound[1]), resolved(bound[2]), bound[4], bound[5] or "-", bound[3]] = None
        elif line.lstrip().startswith("trying file="):
            tried = line.split("=", 1)[1]
        elif line.startswith("file="):
            event = MAP.match(line)
            if not event:
                continue
            if event[2] in HOW:
                reason = (HOW[event[2]], resolved(event[3]))
            elif reason:  # the program itself has no reason
                path = event[1] if "/" in event[1] else tried or event[1]
                loads.append((resolved(path), event[1], *reason))
    return loads, list(bindings)


def write_table(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


def record(command: list[str], out: Path, *, now: bool, env: dict[str, str] | None = None,
           cwd: Path | None = None, timeout: float | None = None) -> int:
    """Runs the command, fills the directory `out`, and returns the exit status (-N: signal N)."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        environment = dict(os.environ if env is None else env)
        environment.update(LD_DEBUG="files,libs,bindings", LD_DEBUG_OUTPUT=f"{scratch}/log")
        if now:
            environment["LD_BIND_NOW"] = "1"
        with open(out / "output.txt", "wb") as output:
            process = subprocess.Popen(command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT)
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
        loads, bindings = digest(lines_of(Path(f"{scratch}/log.{process.pid}"), process.pid))
    write_table(out / "loads.tsv", loads)
    write_table(out / "bindings.tsv", bindings)
    (out / "status").write_text(f"{status}\n")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--now", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[arguments.command[:1] == ["--"]:]
    if not command or not os.path.isabs(command[0]):
        parser.error("give a command, its program by an absolute path")
    print("status", record(command, arguments.out, now=arguments.now))
    return 0


if __name__ == "__main__":
    sys.exit(main())
