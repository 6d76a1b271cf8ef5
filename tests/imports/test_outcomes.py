"""Small programs that end well or fail by an import, each held against the Python that runs the tests.

What they try: errors that the program takes and what it does then, handlers that take no ImportError, calls that are more
work than is followed."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_callbacks import check_ends_well, check_fails  # noqa: E402

# End well: what they take for missing is sought on a way that is not gone.
WELL = {
    "no such command": """\
import subprocess
def has_gpu():
    try:
        subprocess.check_output(["no-such-command-anywhere"])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
if has_gpu():
    import m_gone
""",
    "no such command, run": """\
import subprocess
try:
    subprocess.run(["no-such-command-anywhere", "-L"], check=True)
    import m_gone
except FileNotFoundError:
    import json
""",
    "no such program": """\
import subprocess
try:
    subprocess.Popen(["/no/such/program"])
except OSError:
    found = False
else:
    found = True
if found:
    import m_gone
""",
    "a program of another directory": """\
import os, subprocess
os.makedirs("inner", exist_ok=True)
os.symlink("/bin/true", "inner/tool")
try:
    subprocess.run(["./tool"], cwd="inner", check=True)
except OSError:
    import m_gone
""",
    "no such device": """\
import os
try:
    os.stat("/dev/no-such-device")
except FileNotFoundError:
    GPU = False
else:
    GPU = True
if GPU:
    import m_gone
""",
    "no such file": """\
from pathlib import Path
def load():
    try:
        return Path("no-such.json").read_text()
    except FileNotFoundError:
        return None
if load() is not None:
    import m_gone
""",
    "nothing to copy": """\
import shutil
try:
    shutil.copy("no-such-file", "elsewhere")
    import m_gone
except OSError:
    pass
""",
    "no number": """\
def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False
if any(is_number(one) for one in ("auto", "", "1.5x", "0x10", "1,5", "--1")):
    import m_gone
if not all(is_number(one) for one in ("1", " 1.5 ", "1e3", "-inf", "nan", "1_0", ".5", "+1.")):
    import m_gone
""",
    "an abstract class": """\
import abc
class Repo(abc.ABC):
    @abc.abstractmethod
    def get(self): ...
class Half(Repo):
    def put(self): ...
for kind in (Repo, Half):
    try:
        kind()
        import m_gone
    except TypeError:
        pass
""",
    "no abstract class any more": """\
import abc
class Repo(abc.ABC):
    @abc.abstractmethod
    def get(self): ...
class Memory(Repo):
    def get(self): return 1
try:
    repo = Memory()
except TypeError:
    import m_gone
""",
    "no member of that value": """\
from enum import Enum
class Kind(Enum):
    CPU = "cpu"
try:
    Kind("gpu")
    import m_gone
except ValueError:
    pass
class Loose(Enum):
    CPU = "cpu"
    @classmethod
    def _missing_(cls, value): return cls.CPU
try:
    Loose("gpu")
except ValueError:
    import m_gone
""",
    "equal objects in a set": """\
class V:
    def __init__(self, n): self.n = n
    def __eq__(self, o): return self.n == o.n
    def __hash__(self): return hash(self.n)
if len({V(1), V(1)}) != 1: import m_gone
seen = set()
seen.add(V(1))
seen.add(V(1))
if len(seen) == 2: import m_gone
""",
    "equal records in a set": """\
from dataclasses import dataclass
@dataclass(frozen=True)
class V:
    n: int
if len({V(1), V(1), V(2)}) != 2: import m_gone
if len(set([V(1), V(1)])) != 1: import m_gone
""",
    "the work of a function is its own": """\
def work():
    n = 0
    for i in range(700):
        for j in range(700):
            n += i ^ j
    return n
found = work() > 0
try:
    found = found and work() > 10
except Exception:
    import m_gone
if not found:
    import m_gone
""",
}

# Fail by the module that is not there.
FAILS = {
    "a handler of an own error": """\
class AppError(Exception): pass
try:
    import m_gone
except AppError:
    pass
""",
    "handlers of others' errors": """\
import subprocess, json, configparser
def f():
    try:
        import m_gone
    except subprocess.CalledProcessError:
        return 1
    except (json.JSONDecodeError, configparser.Error, KeyError):
        return 2
try:
    f()
except (subprocess.TimeoutExpired, ValueError):
    pass
""",
    "behind much work": """\
def work():
    n = 0
    for i in range(1000):
        for j in range(1000):
            n += i ^ j
    return n
def main():
    print(work())
    import m_gone
main()
""",
    "behind a recursion": """\
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def main():
    print(fib(22))
    import m_gone
main()
""",
    "behind a queue of words": """\
from collections import deque
def unpack(words, count):
    words, found = deque(words), []
    for _ in range(count):
        try:
            found.append(words.popleft())
        except IndexError:
            found.append(None)
    words.appendleft("left")
    return found, list(words)
found, left = unpack(["go"], 2)
if found == ["go", None] and left == ["left"]:
    import m_gone
""",
    "behind work that a handler surrounds": """\
def work():
    n = 0
    while n < 1_000_000: n += 1
    return n
def main():
    try:
        work()
    except Exception:
        return
    import m_gone
main()
""",
}


@pytest.mark.parametrize("name", WELL)
def test_ends_well(name: str, cohabit: str, tmp_path: Path) -> None:
    check_ends_well(WELL[name], tmp_path, cohabit)


@pytest.mark.parametrize("name", FAILS)
def test_fails(name: str, cohabit: str, tmp_path: Path) -> None:
    check_fails(FAILS[name], tmp_path, cohabit)
