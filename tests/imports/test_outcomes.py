"""Small programs that end well or fail by an import, each held against the Python that runs the tests.

What they try: errors that the program takes and what it does then, handlers that take no ImportError, calls that are more
work than is followed."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_callbacks import check_ends_well, check_fails  # noqa: E402

# A function that needs the module, and one that does not.
DECORATED = """\
import functools
try:
    import m_gone
    AVAILABLE = True
except ImportError:
    AVAILABLE = False
def requires(f):
    @functools.wraps(f)
    def inner(*a):
        if not AVAILABLE:
            raise RuntimeError("m_gone is needed")
        return f(*a)
    return inner
@requires
def work(): return 1
def other(): return 2
"""

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
    "what refuses to be set": """\
import dataclasses
@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int = 1
class Slots:
    __slots__ = ("a",)
class Below(Slots):
    __slots__ = ["b"]
class Fixed:
    @property
    def x(self): return 1
def frozen(): Frozen().x = 3
def slots(): Below().c = 3
def fixed(): Fixed().x = 3
def number(): (1).x = 3
def text(): "abc"[0] = "x"
def row(): (1, 2)[0] = 3
for one in (frozen, slots, fixed, number, text, row):
    try:
        one()
    except (AttributeError, TypeError):
        pass
    else:
        import m_gone
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
    "a function for each class": """\
from types import GenericAlias
def register(cls, func=None):
    if isinstance(cls, type) and not isinstance(cls, GenericAlias):
        if func is None:
            return lambda f: register(cls, f)
    else:
        func = cls
    return func
class Sized:
    def __new__(cls, *of):
        import m_gone
@register(Sized)
def _(value): return 1
if isinstance(Sized, dict): import m_gone
""",
    "goes on without": """\
try:
    import m_gone
except ImportError:
    m_gone = None
HAS = m_gone is not None
try:
    import m_gone as other
    HAS_OTHER = True
except ImportError:
    HAS_OTHER = False
def read(text):
    if m_gone is not None and m_gone.ready:
        return m_gone.read(text)
    if HAS_OTHER:
        raise RuntimeError("not here")
    return text
if read("x") != "x" or HAS:
    import m_gone.never
""",
    "refuses where somebody waits for it": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def read(text):
    if m_gone is None:
        raise RuntimeError("install it")
def other():
    try:
        return m_gone.read
    except AttributeError:
        return None
try:
    read("x")
except RuntimeError:
    pass
if other():
    import m_gone.never
""",
    "refuses for another reason": """\
import sys
try:
    import m_gone
except ImportError:
    m_gone = None
def read(text):
    if not text or m_gone is None:
        return
    raise RuntimeError("not here")
if len(sys.argv) < 2 or m_gone is None:
    sys.exit(0)
read("x")
""",
    "brought by something else in the end": """\
try:
    import m_gone
except ImportError:
    m_gone = None
if m_gone is None:
    import json as m_gone
m_gone.dumps(1)
""",
    "an answer of its own in its place": """\
try:
    import m_gone as torch
    from m_gone import nn
except ImportError:
    torch = None
    nn = None
Base = nn.Module if nn is not None else object
class Net(Base):
    pass
def device():
    return "cuda" if torch and torch.cuda.is_available() else "cpu"
print(device(), Net())
""",
    "a parser that would refuse": """\
import argparse
try:
    import m_gone
    tqdm = m_gone.tqdm
except ImportError:
    tqdm = None
def bar(it):
    return tqdm(it) if tqdm is not None else it
def main(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--fancy", action="store_true")
    a = p.parse_args(argv)
    if a.fancy and tqdm is None:
        p.error("--fancy needs tqdm")
    for x in bar([1,2]): print(x)
    return 0
if __name__ == "__main__":
    raise SystemExit(main([]))
""",
    "a backend that is there": """\
import sys
try:
    import m_gone
except ImportError:
    m_gone = None
def run(backend="auto"):
    if backend == "auto":
        backend = "gone" if m_gone else "py"
    if backend == "gone":
        if m_gone is None:
            raise RuntimeError("no backend")
        return m_gone.run()
    return "ok"
print(run())
""",
    "who asks is told": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def need():
    if m_gone is None:
        raise ImportError("please install m_gone")
try:
    need()
except ImportError as e:
    print("skipping", e)
""",
    "a decorator of what is not called": DECORATED + "print(other())\n",
    "found out once": """\
class Lazy:
    _mod = None
    @property
    def mod(self):
        if self._mod is None:
            try:
                import m_gone
                self._mod = m_gone
            except ImportError:
                self._mod = False
        return self._mod
l = Lazy()
print("have" if l.mod else "have not")
""",
    "what None has": """\
try:
    from m_gone import Thing
except ImportError:
    Thing = None
print(getattr(Thing, "x", 3), hasattr(Thing, "y"), Thing.__class__, str(Thing), repr(Thing), bool(Thing))
""",
    "the reason is kept": """\
import logging
log = logging.getLogger(__name__)
try:
    import m_gone
except ImportError as e:
    log.warning("no: %s", e)
    m_gone = None
    _err = e
def f():
    if m_gone is None:
        raise RuntimeError("x") from _err
    return m_gone.f()
try:
    f()
except Exception as e:
    print("handled", e)
""",
    "in a function that nobody calls": """\
try:
    import m_gone
except ImportError:
    m_gone = None
handlers = {"a": lambda: 1, "b": lambda: m_gone.go()}
print(handlers["a"]())
""",
    "in a branch of what is read": """\
try:
    import m_gone
except ImportError:
    m_gone = None
for x in open(__file__):
    if x.startswith("@@@"):
        m_gone.go()
print("ok")
""",
    "behind an answer of another program": """\
try:
    import m_gone
except ImportError:
    m_gone = None
import subprocess
out = subprocess.run(["true"]).returncode
if out:
    raise SystemExit(m_gone.explain(out))
while True:
    if out == 0: break
    m_gone.x()
print("ok")
""",
    "a function finds out": """\
def load():
    try:
        import m_gone
    except ImportError:
        return None
    return m_gone
m = load()
HAS = m is not None
print("with" if HAS else "without")
if HAS: m.go()
""",
    "refuses another wish": """\
def load():
    try:
        import m_gone
    except ImportError:
        return None
    return m_gone
m = load()
HAS = m is not None
print("with" if HAS else "without")
if HAS: m.go()

def need(x):
    if not HAS and x: raise RuntimeError("need it")
    if x and not HAS: return 3
need(0)
""",
    "features": """\
def check():
    try:
        import m_gone
        return True
    except ImportError:
        return False
features = {"gone": check()}
print([k for k, v in features.items() if v])
if features["gone"]:
    import m_gone.x
""",
    "a status that is not given": """\
import sys
try:
    import m_gone
except ImportError:
    m_gone = None
def cli():
    if m_gone is None:
        sys.stderr.write("pip install x")
        return 1
    return 0
if __name__ == "__main__":
    code = cli()
    if code:
        print("failed")
    sys.exit(0)
""",
    "a part of an expression": """\
try:
    import m_gone
except ModuleNotFoundError as e:
    if e.name != "m_gone": raise
    m_gone = None
print(m_gone)
n = 0 if m_gone is None else m_gone.n
x = m_gone and m_gone.y
y = m_gone or "z"
print(n, x, y.upper())
""",
    "annotations that wait": """\
from __future__ import annotations
try:
    import m_gone
except ImportError:
    m_gone = None
def f(x: m_gone.T = None): return x
class A:
    y: m_gone.T
    z: m_gone.U = 3
w: m_gone.V = 4
print(f())
""",
    "looked for first": """\
import importlib.util
HAS = importlib.util.find_spec("m_gone") is not None
BACKENDS = ["a"] + (["gone"] if HAS else [])
if HAS:
    import m_gone
def f():
    if not HAS:
        return None
    return m_gone.x
print(BACKENDS, f())
""",
    "the first that is there": """\
import importlib.util as u
def pick():
    for name in ("m_gone", "m_gone_too", "json"):
        if u.find_spec(name) is None:
            continue
        return name
    raise RuntimeError("none")
print(pick())
""",
    "written before it is looked for": """\
import importlib.util
if importlib.util.find_spec("m_made") is None:
    with open("m_made.py", "w") as file:
        file.write("x = 1")
importlib.invalidate_caches()
if importlib.util.find_spec("m_made") is None:
    raise SystemExit("could not make it")
""",
    "written before it is imported": """\
open("m_made.py", "w").write("x = 1")
try:
    import m_made
except ImportError:
    m_made = None
m_made.x
""",
    "in a directory that is not known": """\
import os, sys, tempfile
place = tempfile.mkdtemp()
open(os.path.join(place, "m_made.py"), "w").write("x = 1")
sys.path.insert(0, place)
try:
    import m_made
except ImportError:
    raise RuntimeError("not there")
""",
    "items that nobody asks for": """\
try:
    import m_gone
except ImportError:
    m_gone = None
import itertools
lazy = (m_gone.load(x) for x in [1, 2])
mapped = map(lambda x: m_gone.load(x), [1, 2])
kept = filter(lambda x: m_gone.keep(x), [1, 2])
first = next(m_gone.load(x) if x > 1 else 0 for x in [1, 2])
if not any(x == 1 or m_gone.load(x) for x in [1, 2]):
    import m_gone.never
list(itertools.islice((x if x < 2 else m_gone.load(x) for x in [1, 2]), 1))
""",
    "tasks": """\
try:
    import m_gone
except ImportError:
    m_gone = None
import asyncio
async def work():
    m_gone.load(1)
class Taking:
    async def __aenter__(self): return self
    async def __aexit__(self, *of): return True
async def main():
    await asyncio.gather(work(), return_exceptions=True)
    task = asyncio.create_task(work())
    async with Taking():
        m_gone.load(2)
    await asyncio.wait([task])
    task.exception()
asyncio.run(main())
""",
    "settings that something else fills": """\
try:
    import m_gone
except ImportError:
    m_gone = None
import json, random
settings = {"m": m_gone, "n": m_gone}
settings.update(json.loads(open("cfg.json").read()) if random.random() > 2 else {"m": "x"})
settings["m"].upper()
settings[random.choice("nn")] = "x"
settings["n"].upper()
class Own:
    m = m_gone
    def __init__(self, given): self.__dict__.update(given)
Own({"m": "x"}).m.upper()
""",
    "one object for all": """\
try:
    import m_gone
except ImportError:
    m_gone = None
from functools import lru_cache
class Settings:
    def __init__(self): self.engine = m_gone
@lru_cache
def settings(): return Settings()
settings().engine = "x"
settings().engine.upper()
""",
    "a property and what stands behind it": """\
try:
    import m_gone
except ImportError:
    m_gone = None
class Own:
    @property
    def loader(self): return m_gone.Loader
    def __getattr__(self, name): return 5
if Own().loader != 5:
    import m_gone.never
""",
    "what list[int] is": """\
import queue, types
if not isinstance(list[int], types.GenericAlias): import m_gone
if not isinstance(queue.Queue[int], types.GenericAlias): import m_gone
if types.GenericAlias(list, (int,)).__origin__ is not list: import m_gone
""",
    "names by another way": """\
try:
    import m_gone
except ImportError:
    m_gone = None
import random
globals()[random.choice(["m_gone"])] = "x"
m_gone.upper()
""",
    "an end that is not known to come": """\
import os, sys
def main():
    if os.getpid() > 0:
        print("nothing to do"); sys.exit(0)
    import m_gone
if __name__ == "__main__": main()
""",
    "an end where there is nothing": """\
import sys
from pathlib import Path
import time
inputs = [p for p in [time.time()] if p < 0]
inputs = sorted(x for x in open(__file__) if x.startswith("@@@"))
if not inputs:
    print("nothing"); sys.exit(0)
import m_gone
""",
    "an exit that is raised": """\
import os
files = [line for line in open(__file__) if line == "no such line"]
if len(files) == 0: raise SystemExit(0)
import m_gone
""",
    "an end by an answer of another program": """\
import subprocess, sys
if subprocess.run(["true"]).returncode == 0: sys.exit()
from m_gone import x
""",
    "an end of the process": """\
import os
def work():
    import m_gone
if os.cpu_count() > 0:
    os._exit(0)
work()
""",
    "an end in a helper": """\
import os, sys
def need(fine, words):
    if not fine:
        print(words); sys.exit(0)
def main():
    need(os.getpid() < 0, "no")
    import m_gone
main()
""",
    "an end in a helper of a helper": """\
import os
def die(words):
    import sys
    print(words)
    sys.exit(0)
class App:
    def stop(self): die("no")
    def run(self):
        if os.getpid() > 0: self.stop()
App().run()
import m_gone
""",
    "an end of the parser": """\
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("files", nargs="*")
args = parser.parse_args()
if os.getpid() > 0: parser.exit()
import m_gone
""",
    "an end behind or": """\
import os, sys
os.getpid() < 0 or sys.exit(0)
import m_gone
""",
    "an end in a loop": """\
import os, sys
for line in open(__file__):
    if line.startswith("for"): sys.exit(0)
import m_gone
""",
    "an end in a handler that may run": """\
import os, sys
try:
    if os.getpid() > 0: raise ValueError
except ValueError:
    sys.exit(0)
import m_gone
""",
    "an end that Exception does not take": """\
import os, sys
try:
    if os.getpid() > 0: sys.exit(0)
except Exception:
    pass
import m_gone
""",
    "an error that may be raised": """\
import os
try:
    if os.getpid() > 0: raise ValueError
except ValueError:
    ok = False
else:
    ok = True
if ok: import m_gone
""",
    "an error that a function may raise": """\
import os
def connect():
    if os.getpid() > 0: raise ConnectionError("no")
    return 1
try:
    c = connect()
except ConnectionError:
    c = None
if c: import m_gone
""",
    "an object that may be None": """\
import os
class Connection: pass
def connect():
    if os.getpid() > 0: raise ConnectionError("no")
    return Connection()
try:
    c = connect()
except OSError:
    c = None
if c is not None: import m_gone
""",
    "an answer in the place of an error": """\
import os
def check():
    try:
        if os.getpid() > 0: raise ValueError
        return True
    except ValueError:
        return False
if check(): import m_gone
""",
    "an own error that may be raised": """\
import os
class Own(ValueError): pass
def connect():
    if os.getpid() > 0: raise Own("no")
    return 1
try:
    c = connect()
except ValueError:
    c = None
if c: import m_gone
""",
    "a file that is not there": """\
try:
    with open("m_gone.yaml") as f:
        import m_gone as yaml
        cfg = yaml.load(f)
except FileNotFoundError:
    cfg = {}
""",
    "a file that is sought in a function": """\
import os
def load(path):
    try:
        fh = open(path, encoding="utf-8")
    except OSError:
        return {}
    with fh:
        import m_gone
        return m_gone.load(fh)
os.environ["HOME"] = "/no/such/home"
print(load("no/such/file"), load(os.path.expanduser("~/.m_gone_rc")))
""",
    "a path that is opened": """\
import os
from pathlib import Path
os.environ["HOME"] = "/no/such/home"
try:
    with (Path.home() / ".m_gone_rc").open() as f:
        import m_gone
except IOError:
    pass
""",
    "a device that is not there": """\
import os
try:
    fd = os.open("/dev/m_gone0", os.O_RDONLY)
    import m_gone
except Exception as error:
    print(error)
""",
    "a packed file that is not there": """\
import gzip
try:
    with gzip.open("m_gone.gz", "rt") as f:
        import m_gone
except (FileNotFoundError, ValueError):
    pass
""",
    "an archive that is not there": """\
import zipfile
try:
    archive = zipfile.ZipFile("m_gone.zip")
except OSError:
    archive = None
if archive is not None:
    import m_gone
""",
    "other packed files that are not there": """\
import bz2, lzma
for one in (bz2, lzma):
    try:
        one.open("m_gone.packed")
    except OSError:
        continue
    import m_gone
""",
    "literals that are asked for": """\
from typing import Literal, Optional, Union, Dict, get_args
Mode = Literal["fast", "slow"]
def check(mode):
    if mode not in get_args(Mode): raise ImportError("no such mode: " + mode)
check("fast")
if not get_args(Optional[int]): import m_gone
if len(get_args(Dict[str, int])) != 2: import m_gone
for kind in get_args(Union[str, bytes]):
    if kind is None: import m_gone
if get_args(Mode) == (): import m_gone
""",
    "an answer where there may be one": """\
import os
def names():
    if os.getpid() > 0: return ["a"]
    return []
def pair():
    if os.getpid() > 0: return 1, 2
    return ()
if not names() or not pair(): import m_gone
""",
    "gathered with its failures": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    found = await asyncio.gather(opt(), opt(), return_exceptions=True)
    return [one for one in found if not isinstance(one, Exception)]
asyncio.run(main())
""",
    "a task whose failure is taken where it is awaited": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    await asyncio.sleep(0)
    try:
        await t
    except ImportError:
        pass
    both = asyncio.gather(asyncio.sleep(0), opt())
    try:
        await both
    except ImportError as error:
        print(error)
asyncio.run(main())
""",
    "tasks that are waited for": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    done, pending = await asyncio.wait([t])
    for one in done:
        if one.exception(): print("no")
    print(len(done))
asyncio.run(main())
""",
    "a task that nobody awaits": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    await asyncio.sleep(0)
asyncio.run(main())
""",
    "a generator takes it behind async with": """\
import asyncio, contextlib
@contextlib.asynccontextmanager
async def optional():
    try:
        yield 1
    except ImportError:
        pass
async def main():
    async with optional() as n:
        if n == 1:
            import m_gone
asyncio.run(main())
""",
    "a stack takes it behind async with": """\
import asyncio, contextlib
async def main():
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(contextlib.suppress(ImportError))
        import m_gone
asyncio.run(main())
""",
    "a class takes it behind async with": """\
import asyncio
class Optional:
    async def __aenter__(self): return self
    async def __aexit__(self, kind, value, trace): return kind is not None and issubclass(kind, ImportError)
async def main():
    async with Optional() as o:
        import m_gone
asyncio.run(main())
""",
    "a path that is not known": """\
import os
def load(path):
    try:
        with open(path) as fh:
            import m_gone
            return m_gone.load(fh)
    except OSError:
        return None
if load(os.path.expanduser("~/.m_gone_rc")): import m_gone
""",
    "a member that is not there": """\
import enum
class Level(enum.Enum):
    LOW = 1
    HIGH = 2
try:
    level = Level["NONE"]
except KeyError:
    level = None
else:
    import m_gone
""",
    "a text that is no JSON": """\
import json
try:
    found = json.loads("{bad")
except json.JSONDecodeError:
    found = None
else:
    import m_gone
""",
    "a directory that is not there": """\
import os
for place, directories, files in os.walk("no-such-directory"):
    import m_gone
""",
    "questions that nobody answers": """\
while True:
    try:
        line = input()
    except EOFError:
        break
    import m_gone
""",
    "an end in a lambda": """\
import os, sys
die = lambda: sys.exit(0)
if os.getpid() > 0: die()
import m_gone
""",
    "an end in a conditional expression": """\
import os, sys
x = 1 if os.getpid() < 0 else sys.exit(0)
import m_gone
""",
    "an end by an own class": """\
import os, sys
class Stop(SystemExit): pass
if os.getpid() > 0: raise Stop(0)
import m_gone
""",
    "an end in a partial call": """\
import os, sys, functools
stop = functools.partial(sys.exit, 0)
if os.getpid() > 0: stop()
import m_gone
""",
    "an end in a coroutine": """\
import asyncio, os, sys
async def need():
    if os.getpid() > 0:
        sys.exit(0)
async def main():
    await need()
    import m_gone
asyncio.run(main())
""",
    "an end before a generator yields": """\
import os, sys, contextlib
@contextlib.contextmanager
def c():
    if os.getpid() > 0: sys.exit(0)
    yield
with c():
    import m_gone
""",
    "a pool's tasks whose failures nobody asks for, or takes": """\
from concurrent.futures import ThreadPoolExecutor, as_completed
def work(name):
    import m_gone
    return name
with ThreadPoolExecutor(2) as pool:
    pool.submit(work, "a")
    futures = [pool.submit(work, name) for name in "bc"]
    for future in as_completed(futures):
        if future.exception() is not None:
            print(type(future.exception()).__name__)
        try:
            future.result()
        except ImportError as error:
            print("without", error.name)
""",
    "variables by their names": """\
import sys
for name, value in {"a": 1}.items():
    vars()[name] = value
vars().update(b=2)
locals()["c"] = 3
class D:
    for name in ("d", "e"):
        vars()[name] = 4
me = sys.modules[__name__]
try:
    print(me.a, me.b, me.c, a, b, c, D.d, D.e, D().d)
except (AttributeError, NameError):
    import m_gone
""",
    "tasks whose failures are taken": """\
import asyncio
async def opt():
    import m_gone
async def main():
    f = asyncio.ensure_future(opt())
    r = await asyncio.gather(f, return_exceptions=True)
    loop = asyncio.get_running_loop()
    t = loop.create_task(opt())
    try:
        await asyncio.wait_for(t, 1)
    except (ImportError, asyncio.TimeoutError):
        pass
asyncio.run(main())
""",
}

# Fail by what they do instead of the module that is not there.
LACK = {
    "an assertion": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def read(text):
    assert m_gone is not None, "install it"
    return m_gone.read(text)
read("x")
""",
    "None is used": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def main():
    print(m_gone.load("x"))
main()
""",
    "None is called": """\
try:
    from m_gone import wrap
except ImportError:
    wrap = None
@wrap
def main():
    pass
""",
    "a base of None": """\
m = None
try:
    import m_gone
    m = m_gone
except ImportError:
    pass
class Net(m.Module):
    pass
""",
    "a refusal of its own": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def main():
    if m_gone is None:
        raise RuntimeError("install x[cli]")
main()
""",
    "a refusal by a flag": """\
HAS_GONE = False
try:
    import m_gone
    HAS_GONE = True
except ImportError:
    pass
class App:
    def __init__(self, name):
        if name and not HAS_GONE:
            raise ValueError("no")
App("x")
""",
    "a refusal behind else": """\
try:
    import m_gone
except ImportError:
    HAS_GONE = False
else:
    HAS_GONE = True
def main():
    if HAS_GONE:
        return 0
    else:
        raise LookupError("no")
main()
""",
    "the end of the process": """\
import sys
try:
    import m_gone
except ImportError:
    m_gone = None
if m_gone is None:
    sys.exit("install it")
""",
    "a status": """\
import sys
def main():
    try:
        import m_gone
    except ImportError:
        print("install it")
        return 2
    return 0
sys.exit(main())
""",
    "a status behind an answer": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def main():
    if not m_gone:
        print("install m_gone")
        return 1
    return 0
import sys
if __name__ == "__main__":
    sys.exit(main())
""",
    "a refusal by an answer": """\
import sys
def main():
    try:
        import m_gone
    except ImportError:
        return False
    return True
if not main():
    sys.exit("no")
""",
    "a refusal in a decorator": DECORATED + "print(work())\n",
    "suppressed": """\
import contextlib
mod = None
with contextlib.suppress(ImportError):
    import m_gone as mod
print(mod is None)
if mod is None:
    raise SystemExit("needs it")
""",
    "looked for": """\
import importlib.util, sys
if importlib.util.find_spec("m_gone") is None:
    print("no m_gone")
    sys.exit(1)
""",
    "what a function returns": """\
import importlib
def optional(name):
    try:
        mod = importlib.import_module(name)
    except ImportError:
        mod = None
    return mod
g = optional("m_gone")
g.run()
""",
    "an annotation": """\
try:
    import m_gone
except ImportError:
    m_gone = None
def f(x: m_gone.T = None): return x
""",
    "one of two": """\
import importlib.util as u
yaml = None
try:
    import m_gone as yaml
except ImportError:
    pass
if u.find_spec("m_gone") is None and yaml is None:
    raise RuntimeError("need one of them")
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
    "behind what can be set": """\
import dataclasses
@dataclasses.dataclass
class Plain:
    x: int = 1
class Slots:
    __slots__ = ("a", "x")
class Below(Slots):
    pass
class Settable:
    @property
    def x(self): return 1
    @x.setter
    def x(self, value): self.y = value
class Own:
    def __setattr__(self, name, value): object.__setattr__(self, name, value)
def main():
    for kind in (Plain, Slots, Below, Settable, Own):
        thing = kind()
        try:
            thing.x = 3
            [1, 2][0] = 3
        except (AttributeError, TypeError):
            return
    below = Below()
    try:
        below.other = 1
    except AttributeError:
        return
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
    "behind an end that is known not to come": """\
import sys
if sys.version_info < (3, 0):
    sys.exit("no")
def need(fine):
    if not fine: sys.exit(0)
need(len(sys.argv) > 0)
import m_gone
""",
    "behind an end that is taken": """\
import os, sys
def stop():
    if os.getpid() > 0: sys.exit(0)
try:
    stop()
except SystemExit:
    pass
import m_gone
""",
    "behind an end that a handler takes at once": """\
import os, sys
if os.getpid() > 0:
    try:
        sys.exit(0)
    except SystemExit:
        pass
import m_gone
""",
    "behind a function that nobody calls": """\
import os, signal, sys
def stop(*a): sys.exit(0)
signal.signal(signal.SIGTERM, stop)
if os.getpid() > 0:
    def other(): sys.exit(1)
import m_gone
""",
    "behind arguments": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=3)
parser.add_argument("files", nargs="*")
args = parser.parse_args()
if args.n < 0: parser.error("n")
import m_gone
""",
    "whatever a handler has done": """\
import os
try:
    if os.getpid() > 0: raise ValueError
    ok = True
except ValueError:
    ok = True
if ok: import m_gone
""",
    "behind a helper that has raised what is taken": """\
import os
def connect():
    if os.getpid() > 0: raise ConnectionError("no")
    return 1
try:
    c = connect()
except ConnectionError:
    c = None
print(c)
import m_gone
""",
    "behind a file that is there": """\
import os
def read(path):
    try:
        with open(path) as f: return f.read()
    except OSError:
        return None
if read(__file__) is not None:
    import m_gone
""",
    "behind a file that is made": """\
import os
try:
    with open("made.txt", "w") as f: f.write("x")
    fd = os.open("made.bin", os.O_RDWR | os.O_CREAT)
    with open("made.txt") as f: text = f.read()
    os.close(os.open("made.bin", os.O_RDONLY))
except OSError:
    raise SystemExit(0)
import m_gone
""",
    "behind a file that is missed": """\
try:
    with open("no-such-file") as f: pass
except FileNotFoundError:
    cfg = {}
import m_gone
""",
    "behind what a function certainly returns": """\
def names(): return []
def pair(one):
    if one: return 1, 2
    return ()
if not names() and not pair(0): import m_gone
""",
    "a task that is awaited": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    await asyncio.sleep(0)
    await t
asyncio.run(main())
""",
    "gathered without its failures": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    return await asyncio.gather(asyncio.sleep(0), opt())
asyncio.run(main())
""",
    "a task whose result is asked for": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    await asyncio.wait([t])
    return t.result()
asyncio.run(main())
""",
    "a pool's task whose result is asked for": """\
from concurrent.futures import ThreadPoolExecutor
def work(name):
    import m_gone
    return name
with ThreadPoolExecutor(2) as pool:
    future = pool.submit(work, "a")
print(future.result())
""",
    "a pool's tasks, as they end": """\
from concurrent.futures import ThreadPoolExecutor, as_completed
def work(name):
    if name == "b":
        import m_gone
    return name
def main():
    pool = ThreadPoolExecutor()
    futures = [pool.submit(work, name) for name in ("a", "b")]
    for future in as_completed(futures):
        print(future.result())
main()
""",
    "in a task that is awaited by a handler of others": """\
import asyncio
async def opt():
    import m_gone
    return m_gone
async def main():
    t = asyncio.create_task(opt())
    try:
        await asyncio.wait_for(t, 3)
    except ValueError:
        pass
asyncio.run(main())
""",
    "behind async with": """\
import asyncio, contextlib
@contextlib.asynccontextmanager
async def around():
    try:
        yield 1
    except KeyError:
        pass
    finally:
        print("left")
async def main():
    async with around() as n:
        if n == 1:
            import m_gone
asyncio.run(main())
""",
    "behind async with of a class": """\
import asyncio
class Around:
    async def __aenter__(self): return 3
    async def __aexit__(self, *error): return False
async def main():
    async with Around() as o:
        if o == 3:
            import m_gone
asyncio.run(main())
""",
    "behind a loop over what is waited for": """\
import asyncio
async def numbers():
    for i in range(3):
        await asyncio.sleep(0)
        yield i
async def main():
    found = []
    async for n in numbers(): found.append(n)
    if len(found) == 3: import m_gone
asyncio.run(main())
""",
    "behind a member that is there": """\
import enum
class Level(enum.Enum):
    LOW = 1
    HIGH = 2
try:
    level = Level["LOW"]
except KeyError:
    pass
else:
    import m_gone
""",
    "behind a text that is JSON": """\
import json
try:
    found = json.loads('{"a": 1}')
except ValueError:
    found = None
else:
    import m_gone
""",
    "in a directory": """\
import os
for place, directories, files in os.walk("."):
    import m_gone
""",
    "behind questions": """\
while True:
    try:
        line = input()
    except EOFError:
        break
import m_gone
""",
    "behind arguments that are known": """\
import argparse, os, sys
def main(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--version", action="version", version="1")
    p.add_argument("-n", type=int, default=2, choices=[1,2])
    sub = p.add_subparsers(dest="cmd")
    sub.add_parser("x")
    a = p.parse_args(argv)
    if a.cmd is None and a.n == 3:
        p.print_help()
        return 1
    import m_gone
    return 0
if __name__ == "__main__":
    sys.exit(main())
""",
    "behind what is done at the end": """\
import sys, os, atexit
def hook(*a):
    sys.__excepthook__(*a); sys.exit(1)
sys.excepthook = hook
atexit.register(lambda: print("x"))
import m_gone
""",
    "behind an end of who interrupts": """\
import os, sys
def main():
    try:
        print("x")
    except KeyboardInterrupt:
        sys.exit(130)
    import m_gone
main()
""",
}


@pytest.mark.parametrize("name", WELL)
def test_ends_well(name: str, cohabit: str, tmp_path: Path) -> None:
    check_ends_well(WELL[name], tmp_path, cohabit)


@pytest.mark.parametrize("name", LACK)
def test_fails_for_want_of_a_module(name: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LACK[name])
    real = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    plan_file = tmp_path / "plan.json"
    done = subprocess.run([cohabit, "doctor", sys.executable, "app.py", "--plan", plan_file], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert real.returncode != 0 and done.returncode == 1, real.stderr + done.stdout
    failure = json.loads(plan_file.read_text())["failure"]["error"]
    if failure.startswith("SystemExit"):
        assert "Traceback" not in real.stderr
    else:
        assert failure == real.stderr.rstrip().split("\n")[-1]
    assert "No module named 'm_gone'" in done.stdout and "install what provides the module m_gone" in done.stdout


@pytest.mark.parametrize("name", FAILS)
def test_fails(name: str, cohabit: str, tmp_path: Path) -> None:
    check_fails(FAILS[name], tmp_path, cohabit)


@pytest.mark.parametrize("name, text", [
    ("sitecustomize.py", "import sys\nsys.exit('not here')\n"),
    ("sitecustomize.py", "raise SystemExit(3)\n"),
    ("sitecustomize.py", "import m_gone\n"),
    ("sitecustomize.py", "raise ValueError(1)\n"),
    ("sitecustomize.py", "import os, sys\\ndef f():\\n    if os.getpid() > 0: return\\n    sys.exit(1)\\nf()\\n"),
    ("early.pth", "import sys; sys.exit(4)\n"),
    ("early.pth", "import m_gone\nimport sys; sys.exit(5)\n"),
])
def test_what_start_up_ends(name: str, text: str, cohabit: str, tmp_path: Path) -> None:
    """site takes the errors of what it runs, but not the end of the process."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    next((tmp_path / "env" / "lib").glob("python*/site-packages")).joinpath(name).write_text(text)
    real = subprocess.run([python, "-c", "import json"], capture_output=True, timeout=60)
    plan_file = tmp_path / "plan.json"
    subprocess.run([cohabit, "doctor", python, "--imports", "json", "--plan", plan_file], capture_output=True, timeout=60)
    failure = json.loads(plan_file.read_text())["failure"]
    assert (failure is not None) == (real.returncode != 0)
    if failure:
        assert failure["error"].startswith("SystemExit")
