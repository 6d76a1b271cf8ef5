"""A world of small libraries, and a way to trace a program in it."""
from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CC = os.environ.get("CC", "cc")
NOW, LAZY, NOLOAD, DEEPBIND, GLOBAL, NODELETE = 2, 1, 4, 8, 0x100, 0x1000


def text(value):
    """A string of a trace: bytes that are not UTF-8 are {"hex": ...}."""
    if isinstance(value, dict):
        return os.fsdecode(bytes.fromhex(value["hex"]))
    return value


@dataclass
class Recorded:
    """What a traced run gave: its own output, and the trace as JSON."""

    status: int
    stdout: str
    stderr: str
    lines: list = field(default_factory=list)
    directory: Path = Path()

    @property
    def start(self):
        return self.lines[0]

    @property
    def calls(self):
        return [line for line in self.lines if "call" in line]

    @property
    def end(self):
        return self.lines[-1]

    def find(self, name):
        """The calls whose name ends so."""
        return [c for c in self.calls if (text(c["name"]) or "").endswith(name)]

    def one(self, name):
        calls = self.find(name)
        assert len(calls) == 1, (name, self.calls)
        return calls[0]


def read_trace(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


class World:
    def __init__(self, directory: Path, cohabit: str):
        self.directory = directory
        self.cohabit = cohabit
        self.program = str(directory / "opener")

    def build(self):
        self.compile("opener.c", "opener", "-rdynamic", "-pthread")
        self.library("libplain.so")
        self.library("libother.so")
        self.library("libdeep.so")
        (self.directory / "sub").mkdir()
        self.library("sub/libhidden.so")
        self.library("libcaller.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/sub")
        self.library("libouter.so", f'-DOPENS="{self.directory}/libplain.so"')
        self.library("libouter2.so", f'-DOPENS="{self.directory}/libouter.so"')
        self.library("liblate.so", f'-DOPENS_LATE="{self.directory}/libplain.so"')
        self.library("libstart.so", f'-DOPENS="{self.directory}/libplain.so"')
        self.compile("opener.c", "starter", "-Wl,--no-as-needed", f"{self.directory}/libstart.so")
        self.compile("opener.c", "static", "-static", "-Wno-all")
        self.compile("opener.c", "static-pie", "-static-pie", "-fPIE", "-Wno-all")
        return self

    def compile(self, source, out, *options):
        subprocess.run(
            [CC, "-g", "-w", "-o", str(self.directory / out), str(HERE / source), *options],
            check=True, stderr=subprocess.PIPE)

    def library(self, out, *options):
        self.compile("library.c", out, "-shared", "-fPIC", *options)

    def path(self, name):
        return str(self.directory / name)

    def trace(self, *operations, program=None, command=None, options=(), out=None, cwd=None, **env):
        """Runs the opener, or another command, under `cohabit trace`."""
        command = command or [program or self.program, *operations]
        out = out or str(self.directory / f"out-{os.getpid()}.trace")
        Path(out).unlink(missing_ok=True)
        done = self.run([self.cohabit, "trace", "--out", out, *options, "--", *command], cwd, env)
        lines = read_trace(out) if os.path.exists(out) else []
        return Recorded(done.returncode, done.stdout, done.stderr, lines, self.directory)

    def plain(self, *operations, command=None, cwd=None, **env):
        return self.run(command or [self.program, *operations], cwd, env)

    @staticmethod
    def run(command, cwd=None, env=()):
        return subprocess.run(command, capture_output=True, text=True, errors="surrogateescape",
                              cwd=cwd, env={**os.environ, **dict(env)})
