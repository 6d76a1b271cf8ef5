"""What a program's own code does that something else calls: a parser, a handler of signals, a base class of a library.

Each program is really run, too: what it fills, counts and sets out of sight is there, and the plan does not end where it
would be missing; and what really is missing is still said to be."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# They import what is not there, or end, where nothing was called back.
FILLED = {
    'hook': """\
import json
seen=[]
def hook(d):
    seen.append(d)
    return d
json.loads('{"a": {"b": 1}}', object_hook=hook)
if not seen: import m_gone
""",
    'hook lambda': """\
import json
seen=[]
json.loads('{"a": 1}', object_hook=lambda d: seen.append(d) or d)
if not seen: raise SystemExit("none")
""",
    'signal': """\
import signal, os
got=[]
def on(sig, frame): got.append(sig)
signal.signal(signal.SIGUSR1, on)
os.kill(os.getpid(), signal.SIGUSR1)
if not got: import m_gone
""",
    'signal flag': """\
import signal, os
done=False
def on(sig, frame):
    global done
    done=True
signal.signal(signal.SIGUSR1, on)
os.kill(os.getpid(), signal.SIGUSR1)
if not done: import m_gone
""",
    'visitor': """\
import ast
class V(ast.NodeVisitor):
    def __init__(self): self.names=[]
    def visit_Name(self, node): self.names.append(node.id)
v=V(); v.visit(ast.parse("a+b"))
if not v.names: raise SystemExit("no names")
""",
    'visitor count': """\
import ast
class V(ast.NodeVisitor):
    count=0
    def visit_Name(self, node): self.count+=1
v=V(); v.visit(ast.parse("a+b"))
if v.count==0: import m_gone
""",
    'html': """\
from html.parser import HTMLParser
class P(HTMLParser):
    def __init__(self):
        super().__init__(); self.links=[]; self.title=None
    def handle_starttag(self, tag, attrs):
        if tag=="a": self.links.append(dict(attrs))
    def handle_data(self, data): self.title=data
p=P(); p.feed("<a href='x'>t</a>")
if not p.links or p.title is None: import m_gone
""",
    'thread alive': """\
import threading
def f(): pass
t=threading.Thread(target=f); t.start(); t.join()
if t.is_alive(): raise SystemExit("alive")
""",
    'dict cell': """\
import os
state={"found": None}
for x in os.listdir("/etc"):
    if x.startswith("host"): state["found"]=x
if state["found"] is None: raise SystemExit("none")
""",
    'list cell': """\
import os
count=[0]
for x in os.listdir("/etc"): count[0]+=1
if count[0]==0: import m_gone
""",
    'dict count': """\
import os
count={"n":0}
for x in os.listdir("/etc"): count["n"]+=1
if count["n"]==0: import m_gone
""",
    'dict in func': """\
import os
count={"n":0}
def bump(): count["n"]+=1
for x in os.listdir("/etc"): bump()
if count["n"]==0: import m_gone
""",
    'list in func': """\
import os
got=[]
def add(x): got.append(x)
for x in os.listdir("/etc"): add(x)
if not got: import m_gone
""",
    'flag in func': """\
import os
ok=False
def see(x):
    global ok
    ok=True
for x in os.listdir("/etc"): see(x)
if not ok: import m_gone
""",
    'obj in func': """\
import os
class S: pass
class Reg:
    def __init__(self): self.items=[]; self.n=0; self.s=S(); self.s.v=0
    def add(self,x): self.items.append(x); self.n+=1; self.s.v=1
r=Reg()
for x in os.listdir("/etc"): r.add(x)
if not r.items: import m_gone
if r.n==0: import m_gone
if r.s.v==0: import m_gone
""",
    'cond func': """\
import os
got=[]
def add(x): got.append(x)
if os.path.exists("/etc/hostname"): add(1)
if not got: import m_gone
""",
    'cond method': """\
import os
class R:
    def __init__(self): self.d={"a":None}; self.l=[]; self.v=None
    def load(self): self.d["a"]=1; self.l.append(1); self.v=3
r=R()
if os.path.exists("/etc/hostname"): r.load()
if r.d["a"] is None: import m_gone
if not r.l: import m_gone
if r.v is None: import m_gone
""",
    'while q': """\
import queue
q=queue.Queue()
for i in range(3): q.put(i)
out=[]
while not q.empty(): out.append(q.get())
if not out: import m_gone
""",
    'resub': """\
import re
got=[]
def f(m): got.append(m.group()); return ""
re.sub(r"\\d+", f, "a1b2")
if not got: import m_gone
""",
    'map cb': """\
import os
got=[]
list(map(got.append, os.listdir("/etc")))
if not got: import m_gone
""",
    'walk': """\
import os
sizes={}
for root, dirs, files in os.walk("/etc/apt"):
    for f in files: sizes.setdefault(root,[]).append(f)
if not sizes: import m_gone
""",
    'nested attr': """\
import os
class C: pass
c=C(); c.x=C(); c.x.y=None
if os.path.exists("/etc/hostname"): c.x.y=1
if c.x.y is None: import m_gone
""",
    'sub sub': """\
import os
cfg={"a":{"b":None}}
if os.path.exists("/etc/hostname"): cfg["a"]["b"]=1
if cfg["a"]["b"] is None: import m_gone
""",
    'dict if': """\
import os
cfg={"a":None}
if os.path.exists("/etc/hostname"): cfg["a"]=1
if cfg["a"] is None: import m_gone
""",
    'update': """\
import os
cfg={"a":None}
if os.path.exists("/etc/hostname"): cfg.update(a=1)
if cfg["a"] is None: import m_gone
""",
    'env file': """\
import os
cfg={"mode":"off"}
for line in open("/etc/hosts"):
    if line.strip(): cfg["mode"]="on"
if cfg["mode"]=="off": import m_gone
""",
    'extract': """\
import tarfile, io, sys, tempfile, os
d=tempfile.mkdtemp()
b=io.BytesIO()
t=tarfile.open(fileobj=b, mode="w")
i=tarfile.TarInfo("inside_mod.py"); i.size=3; t.addfile(i, io.BytesIO(b"x=1")); t.close()
b.seek(0)
tarfile.open(fileobj=b).extractall(d)
sys.path.insert(0,d)
import inside_mod
""",
    'extract here': """\
import zipfile, sys, os
z=zipfile.ZipFile("z.zip","w"); z.writestr("zmod.py","x=1"); z.close()
zipfile.ZipFile("z.zip").extractall(".")
import zmod
""",
    'unpack archive': """\
import shutil, zipfile
z=zipfile.ZipFile("u.zip","w"); z.writestr("umod.py","x=1"); z.close()
shutil.unpack_archive("u.zip", ".")
import umod
""",
    'sorted key': """\
seen=[]
def k(x): seen.append(x); return x
sorted([2,1], key=k)
if not seen: import m_gone
""",
    'filter': """\
seen=[]
def k(x): seen.append(x); return x
list(filter(k,[2,1]))
if not seen: import m_gone
""",
    'timer': """\
import threading
seen=[]
t=threading.Timer(0.01, lambda: seen.append(1)); t.start(); t.join()
if not seen: import m_gone
""",
    'event': """\
import threading
e=threading.Event()
def f(): e.set()
t=threading.Thread(target=f); t.start()
if not e.wait(5): raise SystemExit("timeout")
""",
    'event2': """\
import threading
e=threading.Event()
threading.Timer(0.01, e.set).start()
e.wait()
if not e.is_set(): import m_gone
""",
    'subclass thread': """\
import threading
class W(threading.Thread):
    def __init__(self): super().__init__(); self.result=None
    def run(self): self.result=5
w=W(); w.start(); w.join()
if w.result is None: import m_gone
""",
    'pool': """\
from concurrent.futures import ThreadPoolExecutor, as_completed
got=[]
with ThreadPoolExecutor() as ex:
    for f in as_completed([ex.submit(lambda x: x+1, i) for i in range(3)]): got.append(f.result())
if not got: import m_gone
""",
    'done cb': """\
from concurrent.futures import ThreadPoolExecutor
got=[]
with ThreadPoolExecutor() as ex:
    f=ex.submit(lambda: 1); f.add_done_callback(lambda f: got.append(f.result()))
if not got: import m_gone
""",
    'expat': """\
import xml.parsers.expat
els=[]
p=xml.parsers.expat.ParserCreate()
def start(name, attrs): els.append(name)
p.StartElementHandler=start
p.Parse("<a/>",1)
if not els: import m_gone
""",
    'sax': """\
import xml.sax
class H(xml.sax.ContentHandler):
    def __init__(self): super().__init__(); self.n=0
    def startElement(self, name, attrs): self.n+=1
h=H(); xml.sax.parseString(b"<a/>", h)
if h.n==0: import m_gone
""",
    'unittest': """\
import unittest
ran = []
class Case(unittest.TestCase):
    def test_it(self): ran.append(1)
unittest.main(exit=False, argv=["app"])
if not ran: import m_gone
""",
    'optparse cb': """\
import optparse
got=[]
def cb(option, opt, value, parser): got.append(value)
p=optparse.OptionParser(); p.add_option("-x", action="callback", callback=cb, type="str")
p.parse_args(["-x","1"])
if not got: import m_gone
""",
    'argparse action': """\
import argparse
got=[]
class A(argparse.Action):
    def __call__(self, parser, ns, values, option=None): got.append(values); setattr(ns, self.dest, values)
p=argparse.ArgumentParser(); p.add_argument("-x", action=A)
p.parse_args(["-x","1"])
if not got: import m_gone
""",
    'sqlite': """\
import sqlite3
got=[]
c=sqlite3.connect(":memory:")
c.create_function("f",1,lambda x: got.append(x))
c.execute("select f(1)").fetchall()
if not got: import m_gone
""",
    'trace': """\
import sys
got=[]
def t(f,e,a): got.append(e)
sys.setprofile(t)
len([])
sys.setprofile(None)
if not got: import m_gone
""",
    'weakref': """\
import weakref
got=[]
class X: pass
x=X(); weakref.finalize(x, got.append, 1)
del x
if not got: import m_gone
""",
    'logging handler': """\
import logging
class H(logging.Handler):
    def __init__(self): super().__init__(); self.records=[]
    def emit(self, record): self.records.append(record)
h=H(); l=logging.getLogger("x"); l.addHandler(h); l.warning("hi")
if not h.records: import m_gone
""",
    'asyncio cb': """\
import asyncio
got=[]
async def main():
    asyncio.get_running_loop().call_soon(got.append, 1)
    await asyncio.sleep(0)
asyncio.run(main())
if not got: import m_gone
""",
    'sched': """\
import sched
got=[]
s=sched.scheduler(); s.enter(0,1,got.append,(1,)); s.run()
if not got: import m_gone
""",
    'cmd': """\
import cmd, io
class C(cmd.Cmd):
    def __init__(self): super().__init__(); self.n=[]
    def do_x(self, arg): self.n.append(arg)
c=C(); c.onecmd("x 1")
if not c.n: import m_gone
""",
    'str template': """\
import os
lines=[]
def emit(t): lines.append(t)
class G:
    def __init__(self, out): self.out=out
    def run(self, xs):
        for x in xs: self.out(x)
G(emit).run(os.listdir("/etc"))
if not lines: import m_gone
""",
    'gen send': """\
def co():
    got=[]
    while True:
        x=yield got
        got.append(x)
c=co(); next(c); r=c.send(1)
if not r: import m_gone
""",
    'copytree': """\
import shutil, os, sys
os.makedirs("src_pkg/inner_pkg", exist_ok=True)
open("src_pkg/inner_pkg/__init__.py","w").close()
shutil.copytree("src_pkg","dst_pkg", dirs_exist_ok=True)
sys.path.insert(0,"dst_pkg")
import inner_pkg
""",
    'exit stack': """\
import contextlib
log=[]
with contextlib.ExitStack() as s:
    s.callback(log.append, 1)
if not log: import m_gone
""",
    'replaced': """\
import os
plugins, cfg = [], {"a": []}
class Box: pass
box = Box()
box.items = {}
if os.getpid() > 1:
    plugins = ["json"]
    cfg["a"] = [1]
    box.items = {1: 2}
if not plugins: import m_gone
if not cfg["a"]: import m_gone
if not box.items: import m_gone
""",
    'called a thousand times': """\
seen = []
def visit(x):
    y = x % 7
    if x == 900: seen.append(y)
for i in range(1000): visit(i)
if not seen: import m_gone
""",
    'the budget of a call': """\
done = False
def work():
    global done
    for i in range(1000):
        for j in range(1000): k = i * j
    done = True
work()
if not done: import m_gone
""",
    'many rounds': """\
out, i = [], 0
while i < 6000:
    i += 1
    if i > 5000: out.append(i)
if not out: import m_gone
""",
    'arguments': """\
import os, json
out, seen = [], []
class State: pass
state = State()
state.ready = False
def fill(items): items.append(1)
def prepare(one): one.ready = True
if os.getpid() > 1:
    fill(out)
    prepare(one=state)
if not out or not state.ready: import m_gone
def hook(value, into=seen): into.append(value)
json.loads("{}", object_hook=hook)
if not seen: import m_gone
""",
    'constructor': """\
import os
made = []
class One:
    def __init__(self): made.append(self)
if os.getpid() > 1: One()
if not made: import m_gone
""",
    'one of two': """\
import os
out = []
def fill(): out.append(1); return 1
value = fill() if os.getpid() > 1 else None
if not out: import m_gone
""",
    'generator': """\
import csv, io
number = 0
def rows():
    global number
    for i in range(3):
        number += 1
        yield [i]
csv.writer(io.StringIO()).writerows(rows())
if number == 0: import m_gone
""",
    'map in a hook': """\
import json
seen = []
json.loads('{"a": 1}', object_hook=lambda value: list(map(seen.append, value)))
if not seen: import m_gone
""",
    'taken out': """\
import json, os
pending, jobs, cfg = ["a"], {"a": 1}, {"a": 1}
def hook(value):
    pending.remove("a")
    jobs.clear()
    del cfg["a"]
json.loads("{}", object_hook=hook)
if pending or "a" in jobs or len(cfg) == 1: import m_gone
""",
    'taken out in a branch': """\
import os
pending = ["a"]
if os.getpid() > 1: pending.remove("a")
if "a" in pending: import m_gone
""",
    'other targets': """\
import json
last = name = module = made = None
def hook(value):
    global last, name, module, made
    for last in ["a"]: pass
    with open(__file__) as name: pass
    import json as module
    def made(): pass
json.loads("{}", object_hook=hook)
if last is None or name is None or module is None or made is None: import m_gone
""",
    'items of items': """\
import os
cfg, groups = {"plugins": {}}, {"a": [], "b": []}
if os.getpid() > 1:
    cfg["plugins"]["x"] = 1
    cfg["more"] = 1
for line in open(__file__): groups["a" if line else "b"].append(line)
if not cfg["plugins"] or "more" not in cfg or not groups["a"]: import m_gone
""",
    'state of a class': """\
import ast
class Links(ast.NodeVisitor):
    state = {"links": []}
    def visit_Name(self, node): self.state["links"].append(node.id)
links = Links()
links.visit(ast.parse("a + b"))
if not links.state["links"]: import m_gone
""",
    'setter is not run': """\
import signal
class Positive:
    def __get__(self, owner, type=None): return 1
    def __set__(self, owner, value): import m_gone
class Counter:
    number = Positive()
    def on(self, *rest): self.number += 1
counter = Counter()
signal.signal(signal.SIGUSR1, counter.on)
from signal import SIGTERM
""",
    'members of archives': """\
import zipfile
seen = []
class Archive(zipfile.ZipFile):
    def _extract_member(self, member, path, password):
        seen.append(member)
        return super()._extract_member(member, path, password)
with zipfile.ZipFile("a.zip", "w") as made: made.writestr("a.txt", "a")
Archive("a.zip").extractall("out")
if not seen: import m_gone
""",
    'nested def in callback': """\
import json
seen=[]
def hook(d):
    def inner(x):
        seen.append(x)
    for k in d: inner(k)
    return d
json.loads('{"a": 1}', object_hook=hook)
if not seen: import m_gone
""",
    'heapq in callback': """\
import json, heapq
heap=[]
def hook(d):
    heapq.heappush(heap, len(d)); return d
json.loads('{"a": 1}', object_hook=hook)
if not heap: import m_gone
""",
    'bisect in callback': """\
import json, bisect
heap=[]
def hook(d):
    bisect.insort(heap, len(d)); return d
json.loads('{"a": 1}', object_hook=hook)
if not heap: import m_gone
""",
    'setattr in callback': """\
import json
class S: done=False
s=S()
def hook(d):
    setattr(s, "done", True); return d
json.loads('{"a": 1}', object_hook=hook)
if not s.done: import m_gone
""",
    'vars update': """\
import json
class S:
    def __init__(self): self.mode="off"
s=S()
vars(s).update(json.loads('{"mode":"on"}'))
if s.mode=="off": import m_gone
""",
    'deepcopy hook': """\
import copy
n=[]
class S:
    def __deepcopy__(self, memo): n.append(1); return S()
copy.deepcopy([S()])
if not n: import m_gone
""",
    'tar filter': """\
import tarfile, io, tempfile, os
n=[]
d=tempfile.mkdtemp(); open(d+"/a","w").close()
t=tarfile.open(fileobj=io.BytesIO(), mode="w")
def f(i): n.append(i); return i
t.add(d, filter=f)
if not n: import m_gone
""",
    'walk onerror': """\
import os
n=[]
for x in os.walk("/nonexistent", onerror=n.append): pass
if not n: import m_gone
""",
    'singledispatch': """\
import functools
n=[]
@functools.singledispatch
def f(x): raise SystemExit("no")
@f.register(int)
def _(x): n.append(x)
f(3)
if not n: import m_gone
""",
    'metaclass registry': """\
class Meta(type):
    reg={}
    def __new__(m, name, bases, ns):
        c=super().__new__(m, name, bases, ns)
        m.reg[name]=c
        return c
class A(metaclass=Meta): pass
if "A" not in Meta.reg: import m_gone
""",
    'multiprocessing map': """\
from multiprocessing.pool import ThreadPool
got=[]
with ThreadPool(2) as p: p.map(got.append, [1,2])
if not got: import m_gone
""",
    'format hook': """\
class D:
    def __format__(self, s): log.append(s); return "x"
    def __repr__(self): log2.append(1); return "y"
log=[];log2=[]
"{:a}".format(D()); "%r" % D()
if not log or not log2: import m_gone
""",
    'del hook': """\
log=[]
class D:
    def __del__(self): log.append(1)
d=D()
del d
if not log: import m_gone
""",
    'argparse sub': """\
import argparse
def run(a): done.append(1)
done=[]
ap=argparse.ArgumentParser()
sub=ap.add_subparsers(dest="cmd")
s=sub.add_parser("run"); s.set_defaults(func=run)
a=ap.parse_args(["run"])
a.func(a)
if not done: import m_gone
""",
    'warnings showwarning': """\
import warnings
n=[]
def show(*a, **k): n.append(a)
warnings.showwarning=show
warnings.warn("x")
if not n: import m_gone
""",
    'excepthook': """\
import sys
n=[]
sys.excepthook=lambda *a: n.append(a)
sys.stdout.write("x")
class W:
    def write(self, s): n.append(s)
    def flush(self): pass
old=sys.stdout
sys.stdout=W(); print("a"); sys.stdout=old
if not n: import m_gone
""",
    'special methods': """\
log=[]
class D:
    def __len__(self): log.append(1); return 3
    def __hash__(self): log2.append(1); return 1
    def __lt__(self, other): log3.append(1); return True
    def __radd__(self, other): log4.append(1); return 1
    def __fspath__(self): log5.append(1); return "/etc"
    def __neg__(self): log7.append(1); return 0
    def __delitem__(self, key): log8.append(1)
    def __instancecheck__(self, key): log9.append(1); return True
log2=[];log3=[];log4=[];log5=[];log7=[];log8=[];log9=[]
import os
d=D(); len(d); {d: 1}; sorted([D(), D()]); 3+d; os.listdir(d); -d; isinstance(3, d)
del d[1]
for one in (log,log2,log3,log4,log5,log7,log8,log9):
    if not one: import m_gone
""",
}

# The same where nothing is called back, or not what would fill it.
EMPTY = {
    'nobody calls it': """\
seen = []
def hook(value):
    seen.append(value)
if not seen: import m_gone
""",
    'another is given': """\
import json
seen, other = [], []
def hook(value):
    other.append(value)
json.loads("{}", object_hook=hook)
if not seen: import m_gone
""",
    'names of its own': """\
import json
items, count = [], 0
def hook(value):
    items = [value]
    items.append(value)
    count = 1
    return count
json.loads("{}", object_hook=hook)
if not items and count == 0: import m_gone
""",
    'it is asked only': """\
import json
cells = {"found": None}
json.loads("{}", object_hook=lambda value: cells.get("found"))
if cells["found"] is None: import m_gone
""",
    'another item': """\
import sys
cells = {"found": None, "other": 1}
for line in open(sys.argv[0]): cells["other"] = 2
if cells["found"] is None: import m_gone
""",
    'another object': """\
import ast
class Names(ast.NodeVisitor):
    def __init__(self): self.names = []
    def visit_Name(self, node): self.names.append(node.id)
other = Names()
Names().visit(ast.parse("a + b"))
if not other.names: import m_gone
""",
    'what is counted in a branch that is skipped': """\
import os
steps = ["a"]
if os.getpid() < 1: steps.append("b")
if steps: import m_gone
""",
    'an archive that is not there': """\
import tarfile
try: tarfile.open("nothing.tar.gz")
except FileNotFoundError: import m_gone
""",
    'what is shown only': """\
class Registry:
    def __init__(self): self.items = []
    def add(self, item): self.items.append(item)
registry = Registry()
print(registry, str(registry), repr(registry), isinstance(registry, Registry))
if not registry.items: import m_gone
""",
    'partial never called': """\
import functools
got=[]
def f(n): got.append(n)
h=functools.partial(f,1)
if not got: import m_gone
""",
    'wraps never called': """\
got=[]
def deco(f):
    def w(*a): got.append(1); return f(*a)
    return w
@deco
def go(): pass
if not got: import m_gone
""",
    'len not filling': """\
got=[]
class A:
    def __init__(self): self.n=0
    def __len__(self): return self.n
    def __repr__(self): return "A"
a=A()
if not got: import m_gone
""",
    'metaclass plain': """\
class M(type):
    def __new__(m,n,b,d): return super().__new__(m,n,b,d)
got=[]
class A(metaclass=M): pass
if not got: import m_gone
""",
    'enum value': """\
import enum
class E(enum.Enum):
    A="m_gone"
__import__(E.A.value)
""",
}


def ends(program: str, tmp_path: Path, cohabit: str) -> tuple[int, dict]:
    (tmp_path / "app.py").write_text(program)
    # First the plan: the program makes files.
    done = subprocess.run([cohabit, "doctor", sys.executable, "app.py", "--plan", "plan.json"], cwd=tmp_path,
                          env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    real = subprocess.run([sys.executable, "-B", "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "m_gone" in real.stderr or real.returncode == 0, real.stderr
    return real.returncode, plan


def check_ends_well(program: str, tmp_path: Path, cohabit: str) -> None:
    status, plan = ends(program, tmp_path, cohabit)
    assert status == 0 and plan["failure"] is None, plan["failure"]


def check_fails(program: str, tmp_path: Path, cohabit: str) -> None:
    status, plan = ends(program, tmp_path, cohabit)
    assert status == 1 and plan["failure"]["error"] == "ModuleNotFoundError: No module named 'm_gone'"


@pytest.mark.parametrize("name", FILLED)
def test_what_is_filled_out_of_sight(name: str, cohabit: str, tmp_path: Path) -> None:
    check_ends_well(FILLED[name], tmp_path, cohabit)


@pytest.mark.parametrize("name", EMPTY)
def test_what_stays_empty(name: str, cohabit: str, tmp_path: Path) -> None:
    check_fails(EMPTY[name], tmp_path, cohabit)
