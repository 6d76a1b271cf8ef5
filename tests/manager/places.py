"""Which Pythons and environments the tests use; what is not on the machine is skipped by name."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(REPO / "scripts"), str(REPO / "python"), str(HERE)]
import environments  # noqa: E402

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
# Environments of this suite: the arrays of several makers.
ARRAYS = {
    "3.11": {"python": "3.11", "gigabytes": 0.6, "requirements": ["numpy==2.2.6", "pyarrow==20.0.0", "ml-dtypes==0.5.1"]},
    "3.9": {"python": "3.9", "gigabytes": 0.2, "requirements": ["numpy==1.21.6"]},
}


def interpreter(version: str) -> str:
    try:
        return environments.find_interpreter(version)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))


def arrays(version: str) -> str:
    """An environment with NumPy."""
    try:
        return str(environments.make(f"arrays{version}", ARRAYS[version]))
    except environments.Unavailable as reason:
        pytest.skip(str(reason))


def run_caller(environment: str, code: str, timeout: float = 120) -> str:
    """Runs code as a caller in another environment; its output."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(REPO / "python"), str(HERE)]))
    answer = subprocess.run([str(Path(environment) / "bin" / "python"), "-c", code], cwd=HERE, env=env, text=True,
                            capture_output=True, timeout=timeout)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def children() -> set[int]:
    """Our child processes, zombies too."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(entry))
    return found


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
