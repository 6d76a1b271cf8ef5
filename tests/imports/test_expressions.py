"""What expressions and statements give, held against the Python that runs the tests.

Each is computed by it; the plan of a program that compares may be unsure, and not wrong: it imports `wrong_N` nowhere, and
`right_N` for more than half of them."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

GROUPS = 8

EXPRESSIONS = r'''
"a:".startswith(":",1)
"abc".startswith("b",1,2)
"abc".startswith(("x","a"))
"abc".endswith("b",0,2)
"abc".endswith(("c","d"))
"abcabc".find("a",1)
"abcabc".find("z")
"abcabc".rfind("a",0,3)
"abcabc".index("b",2)
"abcabc".count("a",1)
"abcabc".count("a")
"a,b,c".split(",",1)
"a,b,c".rsplit(",",1)
"a  b".split()
"a b c".split(None,1)
" a ".strip()
"xxaxx".strip("x")
"xxaxx".lstrip("x")
"xxaxx".rstrip("x")
"a\nb\r\nc".splitlines()
"a\nb".splitlines(True)
"abc".replace("b","x")
"aaa".replace("a","b",2)
"aBc".upper()
"aBc".lower()
"abc".capitalize()
"a bc".title()
"aBc".swapcase()
"abc".center(7,"-")
"abc".ljust(5)+"|"
"abc".rjust(5,"0")
"7".zfill(3)
"-7".zfill(4)
"a=b=c".partition("=")
"a=b=c".rpartition("=")
"abc".partition("x")
"abc".isdigit()
"123".isdigit()
"abc".isalpha()
"a1".isalnum()
" ".isspace()
"Abc".istitle()
"abc".isidentifier()
"abc".islower()
"ABC".isupper()
"abc".encode()
b"abc".decode()
"".join(["a","b"])
"-".join("abc")
"-".join(str(x) for x in range(3))
"abc"[::-1]
"abcdef"[1:4]
"abcdef"[-2:]
"abcdef"[::2]
"abc"[-1]
"abc"*2
"%s and %d" % ("a", 3)
"%(k)s" % {"k": 1}
"%.2f" % 1.5
"%x" % 255
"%5s|" % "a"
"{}{}".format(1,2)
"{0}{1}{0}".format("a","b")
"{a}{b}".format(a=1,b=2)
"{:>5}".format("a")
"{:02d}".format(3)
"{!r}".format("a")
"{x[0]}".format(x=[5])
"{x.real}".format(x=5)
f"{1+1}"
f"{'a'!r}"
f"{5:03d}"
f"{'x':^5}"
f"{3.14159:.2f}"
"abc".removeprefix("a")
"abc".removesuffix("c")
"a\tb".expandtabs(4)
"abc".translate(str.maketrans("a","b"))
"abc".casefold()
"b" in "abc"
"a" < "b"
"abc" == "abc"
ord("a")
chr(97)
len("abc")
sorted("cab")
list("abc")
tuple("ab")
set("aab") == {"a","b"}
max("abc")
min("abc")
list(reversed("abc"))
list(enumerate("ab",1))
dict(enumerate("ab"))
list(zip("ab",[1,2]))
list(map(str.upper,["a","b"]))
list(filter(None,[0,1,"",2]))
[1,2,3][1:]
[1,2,3][-1]
[1,2]+[3]
[0]*3
[1,2,3].index(2)
[1,2,1].count(1)
[x for x in range(5) if x%2]
{x:x*x for x in range(3)}
{x%2 for x in range(5)} == {0,1}
sum([1,2,3])
sum([1,2],10)
sum([[1],[2]],[])
any(x>2 for x in [1,2,3])
all(x>0 for x in [1,2,3])
max([1,3,2])
max(1,3,2)
min([3,1,2],key=lambda x:-x)
max([],default=5)
sorted([3,1,2],reverse=True)
sorted(["b","A"],key=str.lower)
sorted({"b":1,"a":2})
list(range(5,0,-2))
len(range(0,10,3))
3 in range(5)
10 in range(0,10,5)
list(range(3))[::-1]
(1,2)+(3,)
(1,2)==(1,2)
(1,2)<(1,3)
[1,2]<[1,2,3]
(1,)*3
{"a":1}=={"a":1}
{"a":1,"b":2}=={"b":2,"a":1}
{"a":1}!={"a":2}
{"a":1}.get("b")
{"a":1}.get("b",3)
list({"a":1,"b":2})
list({"a":1}.items())
list({"a":1}.values())
{**{"a":1},"b":2}
{"a":1}|{"b":2}
dict(a=1,b=2)
dict([("a",1)])
dict({"a":1},b=2)
dict.fromkeys(["a","b"],0)
"a" in {"a":1}
len({"a":1})
{1,2}|{3}=={1,2,3}
{1,2}&{2}=={2}
{1,2}-{2}=={1}
{1,2}^{2,3}=={1,3}
{1}<{1,2}
{1,2}.issuperset({1})
{1}.isdisjoint({2})
{1,2}.union([3])=={1,2,3}
frozenset([1])=={1}
len({1,1,2})
1+1
7//2
-7//2
7%3
-7%3
2**10
7/2
1<<4
255>>4
6&3
6|3
6^3
~5
abs(-3)
divmod(7,2)
pow(2,3)
pow(2,3,5)
round(2.567,2)
round(2.5)
int("12")
int("ff",16)
int("0x1f",16)
int("0b11",0)
int(3.9)
int(True)
float("1.5")
str(12)
str(1.5)
str(True)
str(None)
repr("a")
repr([1,"a"])
bool("")
bool([])
bool("a")
bool(0)
bin(5)
hex(255)
oct(8)
not []
1 if [] else 2
None or "a"
"" or 0 or "b"
"a" and "b"
0 and 1
1 < 2 < 3
1 < 3 < 2
1 == 1.0
True == 1
1 is not None
None is None
[] is None
isinstance(1,int)
isinstance(True,int)
isinstance("a",(int,str))
isinstance([],list)
isinstance((),tuple)
isinstance({},dict)
isinstance(1.5,float)
isinstance(1,float)
isinstance(None,type(None))
isinstance(int,type)
isinstance(int,__import__("collections.abc").abc.Callable)
isinstance(int,__import__("collections.abc").abc.Hashable)
isinstance(int,__import__("collections.abc").abc.Iterable)
isinstance(__import__("enum").Enum,__import__("collections.abc").abc.Iterable)
isinstance(__import__("enum").Enum,__import__("enum").EnumMeta)
issubclass(bool,int)
type(1) is int
type("a") is str
type([]) == list
type(1.5) is float
callable(len)
callable(3)
hasattr("a","upper")
hasattr("a","nope")
getattr("a","nope",5)
getattr([], "append", None) is None
(lambda x,y=2:x+y)(1)
(lambda *a,**k:(a,k))(1,b=2)
[*range(3),*"ab"]
[y for x in [[1],[2,3]] for y in x]
next(iter([5,6]))
next(iter([]),None)
list(iter([1,2]))
[1,2,3].copy()
{"a":[1]}["a"][0]
[[1,2],[3]][0][1]
"a" "b"
b"a"+b"b"
b"abc"[0]
b"abc"[1:]
bytes([97,98])
bytes(3)
bytearray(b"a")==b"a"
b"a,b".split(b",")
b"abc".startswith(b"a")
"é".encode("utf-8")
len("é".encode())
complex(1,2).real
(3).bit_length()
int.from_bytes(b"\x01\x00","big")
(258).to_bytes(2,"big")
"abc".__len__()
[1,2].__contains__(1)
"a".__add__("b")
(5).__class__.__name__
"x".join(["a"])
"1.10".split(".")
tuple(int(x) for x in "1.10.2".split("."))
tuple(map(int,"1.10".split("."))) > (1,9)
"1.10" > "1.9"
[int(x) for x in "1 2 3".split()]
max(["a","bbb"],key=len)
"abc".index("c")
"abc".rindex("c")
"ab" not in "abc"
slice(1,2).start
[1,2,3,4][slice(1,3)]
list(zip(*[(1,2),(3,4)]))
list(map(lambda a,b:a+b,[1,2],[3,4]))
"".join(reversed("abc"))
"abc".find("")
"".split(",")
"a,".split(",")
",".join([])
" a b ".split(" ")
"%s" % None
"%r" % "a"
"%%" % ()
"%-4s|" % "a"
"%+d" % 3
"%c" % 97
"%s %s" % (1,[2])
str([1,2])
str({"a":1})
str((1,))
f"{[1,2]}"
f"{None}"
f"{True}"
f"{'a'}{'b'}"
f"{1:>{5}}"
f"{10:b}"
f"{255:#x}"
f"{1e6:.0f}"
f"{1234567:,}"
"{:,}".format(1000)
"{:.1%}".format(0.5)
1e3
1_000
0xff
0o17
0b11
1e3 == 1000
0.1+0.2 == 0.3
float("inf") > 1
3.0 == 3
int("  5 ")
"5".isnumeric()
"a".isascii()
"abc" > "abd"
"Z" < "a"
[] == ()
[] == []
() == ()
{} == {}
set() == set()
None == 0
"" == 0
False == 0
1 in [1.0]
"1" in [1]
(1,2) in [(1,2)]
[1] in [[1]]
not not 5
-True
+5
len([[],[]])
len((1,))
sum(range(5))
list({1:2}.keys())==[1]
{1:"a"}.get(1)
{(1,2):"a"}[(1,2)]
{True:"a"}[1]
{1:"a",1.0:"b"}
{"a":1}.keys() == {"a"}
{"a":1}.items() == {("a",1)}
"a" in {"a":1}.keys()
1 in {"a":1}.values()
("a",1) in {"a":1}.items()
list(dict(b=1,a=2))
dict(zip("ab","cd"))
sorted({"b":1,"a":2}.items())
sorted([(1,"b"),(1,"a")])
sorted([[2],[1]])
max({"a":1,"b":3},key=lambda k:{"a":1,"b":3}[k])
[i for i,c in enumerate("abc") if c=="b"]
all([])
any([])
min(3,1,2)
list(map(int,"123"))
list(filter(str.isdigit,"a1b2"))
__import__("os").path.basename("/a/b.py")
__import__("os").path.splitext("a.tar.gz")
__import__("os").path.join("/a","b")
__import__("os").path.join("a","/b")
__import__("os").path.dirname("/a/b")
__import__("os").path.normpath("/a/../b")
__import__("os").path.isabs("/a")
__import__("os").path.split("/a/b")
__import__("os").path.commonprefix(["ab","ac"])
__import__("os").path.relpath("/a/b","/a")
__import__("os").path.expanduser("/a")
__import__("pathlib").Path("/a/b.py").name
__import__("pathlib").Path("/a/b.py").stem
__import__("pathlib").Path("/a/b.py").suffix
str(__import__("pathlib").Path("/a/b.py").parent)
str(__import__("pathlib").Path("/a")/"b")
__import__("pathlib").Path("/a/b").parts
str(__import__("pathlib").Path("/a/b").with_suffix(".x"))
str(__import__("pathlib").Path("/a/b/c").relative_to("/a"))
__import__("pathlib").Path("a.tar.gz").suffixes
__import__("pathlib").PurePosixPath("/a").is_absolute()
__import__("pathlib").Path("a") == __import__("pathlib").Path("a")
__import__("re").match("a+","aab").group()
__import__("re").sub(r"\s+"," ","a  b")
__import__("re").split(",","a,b")
__import__("re").findall(r"(\w)=(\d)","a=1,b=2")
__import__("re").fullmatch("a","ab")
bool(__import__("re").search("b$","ab"))
__import__("re").match(r"(?P<x>\d+)","12").groupdict()
__import__("re").compile("a|b").findall("cab")
__import__("re").escape("a.b")
__import__("re").match("A","a",__import__("re").I).span()
__import__("fnmatch").fnmatch("a.py","*.py")
__import__("operator").add(1,2)
__import__("functools").reduce(lambda a,b:a+b,[1,2,3])
__import__("functools").partial(int,base=2)("11")
list(__import__("itertools").chain([1],[2]))
list(__import__("itertools").islice(range(10),2,4))
list(__import__("itertools").product("ab",[1]))
list(__import__("itertools").combinations([1,2,3],2))
list(__import__("itertools").permutations([1,2]))
list(__import__("itertools").accumulate([1,2,3]))
list(__import__("itertools").zip_longest([1],[2,3]))
list(__import__("itertools").repeat(1,2))
list(__import__("itertools").takewhile(lambda x:x<2,[1,2,1]))
[k for k,g in __import__("itertools").groupby("aab")]
list(__import__("collections").OrderedDict([("a",1)]))
__import__("collections").Counter("aab")["a"]
__import__("collections").Counter("aab").most_common(1)
__import__("collections").namedtuple("P","x y")(1,2).y
list(__import__("collections").deque([1,2,3],maxlen=2))
__import__("collections").defaultdict(int)["a"]
__import__("collections").ChainMap({"a":1},{"a":2})["a"]
__import__("json").loads('{"a":[1,2]}')["a"]
__import__("json").dumps({"a":1})
__import__("string").ascii_lowercase[:3]
__import__("string").Template("$a").substitute(a=1)
__import__("shlex").split("a 'b c'")
__import__("math").sqrt(4)
__import__("math").floor(2.5)
__import__("math").pi > 3
__import__("struct").calcsize("I")
__import__("ast").literal_eval("[1,2]")
__import__("copy").deepcopy([1,[2]])
__import__("copy").copy([1])
__import__("base64").b64encode(b"a")
__import__("sys").maxsize > 2**32
__import__("sys").byteorder
__import__("sys").version_info >= (3,8)
__import__("sys").version_info.major
__import__("sys").implementation.name
__import__("platform").python_implementation()
__import__("os").sep
__import__("os").name
__import__("os").linesep
__import__("types").SimpleNamespace(a=1).a
__import__("bisect").bisect([1,2,3],2)
__import__("html").escape("<")
__import__("urllib.parse").parse.quote("a b")
__import__("datetime").date(2020,1,2).isoformat()
__import__("datetime").timedelta(days=1).days
__import__("decimal").Decimal("1.1") > 1
__import__("fractions").Fraction(1,2) == 0.5
__import__("difflib").get_close_matches("appel",["apple"])
__import__("inspect").isclass(int)
__import__("keyword").iskeyword("if")
__import__("numbers").Number.__name__
isinstance([], __import__("collections.abc").abc.Sequence)
isinstance({}, __import__("collections.abc").abc.Mapping)
isinstance("a", __import__("collections.abc").abc.Iterable)
isinstance(1, __import__("numbers").Integral)
isinstance(1, __import__("collections.abc").abc.Iterable)
isinstance(1, __import__("collections.abc").abc.Hashable)
isinstance([], __import__("collections.abc").abc.Hashable)
issubclass(list, __import__("collections.abc").abc.MutableSequence)
issubclass(dict, __import__("collections.abc").abc.Mapping)
isinstance(len, __import__("collections.abc").abc.Callable)
isinstance(open("/etc/hosts"), __import__("io").IOBase)
isinstance(b"", (bytes,bytearray))
isinstance(range(3), range)
isinstance(lambda: 1, __import__("types").FunctionType)
isinstance(len, __import__("types").BuiltinFunctionType)
isinstance(__import__("os"), __import__("types").ModuleType)
isinstance((x for x in []), __import__("types").GeneratorType)
issubclass(KeyError, LookupError)
issubclass(ModuleNotFoundError, ImportError)
issubclass(FileNotFoundError, OSError)
isinstance(ValueError(), Exception)
IOError is OSError
EnvironmentError is OSError
ValueError("a").args
str(ValueError("a"))
str(KeyError("a"))
repr(ValueError("a"))
type(ValueError()).__name__
'''.strip().splitlines()

# Statements, and what is asked behind them.
STATEMENTS = [tuple(one.strip().split("\n-> ")) for one in r'''
xs=[3,1,2]; xs.sort()
-> xs

xs=[3,1,2]; xs.sort(reverse=True)
-> xs

xs=["bb","a"]; xs.sort(key=len)
-> xs

xs=[1,2]; xs.reverse()
-> xs

xs=[1]; xs.append(2)
-> xs

xs=[1]; xs.extend([2,3])
-> xs

xs=[1]; xs.extend(x for x in "ab")
-> xs

xs=[1,3]; xs.insert(1,2)
-> xs

xs=[1,3]; xs.insert(-1,2)
-> xs

xs=[1,2,3]; y=xs.pop()
-> (xs,y)

xs=[1,2,3]; y=xs.pop(0)
-> (xs,y)

xs=[1,2,1]; xs.remove(1)
-> xs

xs=[1,2]; xs.clear()
-> xs

xs=[1,2,3]; del xs[1]
-> xs

xs=[1,2,3]; del xs[:2]
-> xs

xs=[1,2,3,4]; del xs[::2]
-> xs

xs=[1,2,3]; xs[0]=9
-> xs

xs=[1,2,3]; xs[1:2]=[7,8]
-> xs

xs=[1,2,3]; xs[-1]=0
-> xs

xs=[1,2,3,4]; xs[::2]=[0,0]
-> xs

xs=[1]; xs+=[2]
-> xs

xs=[1]; ys=xs; ys+=[2]
-> xs

xs=[1]; ys=xs; ys=ys+[2]
-> xs

xs=[1]; xs*=2
-> xs

xs=[1]; xs+="ab"
-> xs

d={"a":1}; d["b"]=2
-> d

d={"a":1}; d.update(b=2)
-> d

d={"a":1}; d.update([("c",3)])
-> d

d={"a":1}; y=d.setdefault("a",5)
-> (d,y)

d={"a":1}; y=d.setdefault("b",5)
-> (d,y)

d={}; d.setdefault("a",[]).append(1)
-> d

d={"a":1}; y=d.pop("a")
-> (d,y)

d={"a":1}; y=d.pop("z",None)
-> (d,y)

d={"a":1,"b":2}; y=d.popitem()
-> (d,y)

d={"a":1}; d.clear()
-> d

d={"a":1}; del d["a"]
-> d

d={"a":1}; d["a"]+=1
-> d

d={"a":1}; d|={"b":2}
-> d

d={"a":1}; e=d.copy(); e["b"]=2
-> d

d={"a":1}; e=d; e["b"]=2
-> d

d={"b":1,"a":2}; d["b"]=3
-> list(d)

d={"a":1}; del d["a"]; d["b"]=1; d["a"]=2
-> list(d)

s={1}; s.add(2)
-> s=={1,2}

s={1,2}; s.discard(1)
-> s=={2}

s={1,2}; s.remove(1)
-> s=={2}

s={1}; s.update([2,3])
-> s=={1,2,3}

s={1,2}; s-={1}
-> s=={2}

s={1}; s|={2}
-> s=={1,2}

s={1,2}; s&={1}
-> s=={1}

s={1,2}; s.clear()
-> len(s)

s={1,2}; s.intersection_update({1})
-> s=={1}

s={1,2}; s.difference_update({1})
-> s=={2}

a,b=1,2; a,b=b,a
-> (a,b)

a=b=[]; a.append(1)
-> b

a,*b=[1,2,3]
-> b

(a,b),c=(1,2),3
-> b

x=5; x-=2; x*=3; x//=2
-> x

x="a"; x+="b"; x*=2
-> x

x=7; x%=4; x**=2; x<<=1; x|=1
-> x

n=0
for i in range(5):
    if i==3: break
    n+=i
-> n

n=0
for i in range(5):
    if i%2: continue
    n+=i
else:
    n+=100
-> n

n=0
while n<10: n+=3
-> n

n=0
while True:
    n+=1
    if n>4: break
-> n

try:
    {}["a"]
except KeyError as e: r=str(e)
-> r

try:
    [][0]
except IndexError: r=1
else: r=2
-> r

try:
    int("x")
except ValueError: r=1
else: r=2
-> r

try:
    1/0
except ZeroDivisionError: r=1
else: r=2
-> r

try:
    None.x
except AttributeError: r=1
else: r=2
-> r

try:
    "a"+1
except TypeError: r=1
else: r=2
-> r

try:
    [].remove(1)
except ValueError: r=1
else: r=2
-> r

try:
    "abc".index("z")
except ValueError: r=1
else: r=2
-> r

try:
    next(iter([]))
except StopIteration: r=1
else: r=2
-> r

try:
    a,b=[1]
except ValueError: r=1
else: r=2
-> r

try:
    open("/no/such")
except FileNotFoundError: r=1
else: r=2
-> r

try:
    open("/no/such")
except OSError as e: r=e.errno
-> r

try:
    undefined_name
except NameError: r=1
else: r=2
-> r

try:
    int(None)
except TypeError: r=1
else: r=2
-> r

try:
    len(3)
except TypeError: r=1
else: r=2
-> r

try:
    {}.pop("a")
except KeyError: r=1
else: r=2
-> r

try:
    [1].pop(5)
except IndexError: r=1
else: r=2
-> r

try:
    set().remove(1)
except KeyError: r=1
else: r=2
-> r

try:
    max([])
except ValueError: r=1
else: r=2
-> r

try:
    raise ValueError("x")
except (KeyError,ValueError) as e: r=e.args[0]
-> r

try:
    assert 1==2,"m"
except AssertionError as e: r=str(e)
-> r

try:
    import m_gone
except ImportError as e: r=e.name
-> r

try:
    from os import m_gone
except ImportError as e: r=e.name
-> r

try:
    exec("x=")
except SyntaxError: r=1
else: r=2
-> r

try:
    __import__("os").environ["NO_SUCH_VAR_X"]
except KeyError: r=1
else: r=2
-> r

class M(type): pass
class N(M): pass
class A(metaclass=N): pass
class B(A): pass
-> (isinstance(B,M),isinstance(A,(int,N)),isinstance(B,type),isinstance(B,A),isinstance(int,M),isinstance(M,type),isinstance(M,M))

class M(type):
    def __iter__(self): return iter(())
class A(metaclass=M): pass
-> (isinstance(A,__import__("collections.abc").abc.Iterable),isinstance(A,__import__("collections.abc").abc.Callable))

class M(type):
    def __instancecheck__(self,other): return True
class A(metaclass=M): pass
class B: pass
-> (isinstance(B,A),isinstance(A,A),isinstance(B,B))

class A:
    x=1
    def f(self): return self.x
a=A(); a.x=5
-> (A.x,a.f())

class A:
    xs=[]
A().xs.append(1)
-> A.xs

class A:
    def __init__(self,x=2): self.x=x
class B(A):
    def __init__(self): super().__init__(7)
-> B().x

class A:
    @staticmethod
    def s(x): return x
    @classmethod
    def c(cls): return cls.__name__
-> (A.s(3),A.c())

class A:
    def __eq__(self,o): return True
-> A()==5

class A:
    def __lt__(self,o): return True
-> A()<5

class A:
    def __getitem__(self,k): return k*2
-> A()[4]

class A:
    def __len__(self): return 4
-> len(A())

class A:
    def __len__(self): return 0
-> bool(A())

class A:
    def __bool__(self): return False
-> not A()

class A:
    def __str__(self): return "s"
-> str(A())+f"{A()}"

class A:
    def __repr__(self): return "r"
-> str(A())+repr(A())

class A:
    def __contains__(self,x): return x==1
-> (1 in A(), 2 in A())

class A:
    def __iter__(self): return iter([1,2])
-> list(A())

class A:
    def __call__(self,x): return x+1
-> A()(1)

class A:
    def __add__(self,o): return 5
    def __radd__(self,o): return 6
-> (A()+1,1+A())

class A:
    def __iadd__(self,o): return 9
a=A(); a+=1
-> a

class A:
    def __neg__(self): return 3
-> -A()

class A:
    def __int__(self): return 3
    def __float__(self): return 1.5
    def __index__(self): return 2
-> (int(A()),[0,1,2][A()])

class A:
    def __getattr__(self,n): return n
-> A().foo

class A:
    def __setattr__(self,n,v): object.__setattr__(self,n,v+1)
a=A(); a.x=1
-> a.x

class A:
    def __delitem__(self,k): self.k=k
a=A(); del a[3]
-> a.k

class A:
    def __enter__(self): return 5
    def __exit__(self,*a): return True
with A() as x: raise ValueError
-> x

class A: pass
a=A(); a.x=1; del a.x
-> hasattr(a,"x")

class A:
    y=2
a=A(); a.__dict__["x"]=1
-> (a.x,vars(a))

class A: pass
setattr(A,"z",3)
-> A().z

class A:
    def __init__(self): self._x=1
    @property
    def x(self): return self._x
    @x.setter
    def x(self,v): self._x=v*2
a=A(); a.x=4
-> a.x

class A: pass
class B(A): pass
-> (issubclass(B,A),isinstance(B(),A),B.__bases__[0] is A,B.__mro__[1] is A)

class A:
    def f(self): return "A"
class B(A): pass
class C(A):
    def f(self): return "C"
class D(B,C): pass
-> D().f()

class A:
    __slots__=("x",)
a=A(); a.x=1
-> a.x

import enum
class E(enum.Enum):
    A=1
    B=2
-> (E.A.value,E.A.name,E(2).name,E["A"].value,len(E),E.A==E.A,E.A is E.A,E.A==1,E.A!=E.B)

import enum
class E(enum.IntEnum):
    A=1
-> (E.A==1,E.A+1,int(E.A))

import enum
class E(str,enum.Enum):
    A="a"
-> (E.A=="a",E.A.value,E("a") is E.A)

import enum
class E(enum.Flag):
    A=1
    B=2
-> ((E.A|E.B).value, bool(E.A&E.B))

import enum
class E(enum.Enum):
    A=1
    B=1
-> (len(E),E.B is E.A,E.B.name)

import enum
class E(enum.Enum):
    A=(1,"x")
    def __init__(self,n,s): self.n=n; self.s=s
-> (E.A.n,E.A.s)

import enum
class E(enum.Enum):
    A="json"
    @property
    def mod(self): return __import__(self.value)
-> E.A.mod.__name__

from dataclasses import dataclass,field
@dataclass
class A:
    x:int
    y:list=field(default_factory=list)
    z:int=3
-> (A(1).x,A(1).y,A(1).z,A(1)==A(1),A(1)==A(2))

from dataclasses import dataclass,asdict,astuple,fields,replace
@dataclass
class A:
    x:int=1
-> (asdict(A()),astuple(A()),[f.name for f in fields(A)],replace(A(),x=2).x)

from dataclasses import dataclass
@dataclass(order=True)
class A:
    x:int=1
-> A(1)<A(2)

from typing import NamedTuple
class P(NamedTuple):
    x:int
    y:int=2
-> (P(1).y,P(1)[0],tuple(P(1)),P(1)==(1,2))

def f(a,b=2,*c,d=4,**e): return (a,b,c,d,e)
-> (f(1),f(1,3,5,d=6,z=7),f(*[1,2],**{"d":9}))

def f():
    x=1
    def g():
        nonlocal x
        x+=1
    g(); g()
    return x
-> f()

x=1
def f():
    global x
    x=5
f()
-> x

def f(n): return n if n<2 else f(n-1)+f(n-2)
-> f(10)

def g():
    yield 1
    yield 2
-> (list(g()),sum(g()),max(g()),next(g()))

def g():
    x=yield 1
    yield x
i=g(); next(i)
-> i.send(5)

def g():
    r=yield from [1,2]
    return 3
-> list(g())

def d(f):
    def w(*a): return f(*a)+1
    return w
@d
def f(x): return x
-> f(1)

import functools
@functools.lru_cache
def f(x): return x+1
-> f(1)

import functools
@functools.wraps(len)
def f(x): return 3
-> f.__name__

import functools
@functools.singledispatch
def f(x): return "o"
@f.register
def _(x:int): return "i"
-> (f(1),f("a"))

import functools
@functools.total_ordering
class A:
    def __init__(s,x): s.x=x
    def __eq__(s,o): return s.x==o.x
    def __lt__(s,o): return s.x<o.x
-> A(1)>=A(0)

import contextlib
@contextlib.contextmanager
def c():
    yield 5
with c() as x: pass
-> x

match {"a":1,"b":[1,2]}:
    case {"a":1,"b":[x,*y]}: r=(x,y)
    case _: r=None
-> r

match (1,2):
    case (1,x) if x>5: r=1
    case (1,x): r=x
-> r

match "b":
    case "a"|"b": r=1
    case _: r=2
-> r

match 5:
    case str(): r=1
    case int(x): r=x
-> r

class P:
    __match_args__=("x",)
    def __init__(s,x): s.x=x
match P(3):
    case P(x): r=x
-> r

r=[]
for k,v in {"a":1}.items(): r.append((k,v))
-> r

r=[]
for i,(a,b) in enumerate([(1,2)]): r.append(i+a+b)
-> r

r=[y:=1,y+1]
-> r

if (n:=len("abc"))>2: r=n
-> r

r=[z for x in range(3) if (z:=x*2)>1]
-> r

import os
os.environ["ZZ_X"]="1"
-> (os.environ.get("ZZ_X"),os.getenv("ZZ_X"),"ZZ_X" in os.environ)

import os
os.environ.setdefault("ZZ_X","2"); os.environ.pop("ZZ_X")
-> os.environ.get("ZZ_X")

import sys
sys.argv.append("x")
-> sys.argv[-1]

import sys, types
m=types.ModuleType("zz"); m.a=1; sys.modules["zz"]=m; import zz
-> zz.a

g=globals(); g["qq"]=4
-> qq

exec("w=3")
-> w

ns={}; exec("a=1",ns)
-> ns["a"]

x=eval("1+2")
-> x

from collections import defaultdict
d=defaultdict(list); d["a"].append(1)
-> (d["a"],list(d),d.get("z"))

from collections import Counter
c=Counter(); c["a"]+=1; c.update("ab")
-> (c["a"],c["b"],c["z"])

from collections import deque
d=deque([1]); d.append(2); d.appendleft(0); x=d.popleft()
-> (list(d),x,len(d))

from collections import OrderedDict
d=OrderedDict(); d["b"]=1; d["a"]=2; d.move_to_end("b")
-> list(d)

import queue
q=queue.Queue(); q.put(1)
-> (q.get(),q.empty())

import heapq
h=[3,1,2]; heapq.heapify(h)
-> h[0]

import itertools
c=itertools.count(5); next(c)
-> next(c)

import itertools
c=itertools.cycle("ab"); next(c); next(c)
-> next(c)

import argparse
a=argparse.Namespace(x=1)
-> (a.x,vars(a))

import types
n=types.SimpleNamespace(a=1); n.b=2
-> (n.a,n.b)

import io
s=io.StringIO(); s.write("ab")
-> s.getvalue()

import string
s=string.Template("$a")
-> s.safe_substitute(a=1)

import json
d=json.loads('{"a":{"b":[1,true,null]}}')
-> d["a"]["b"]

import logging
l=logging.getLogger("q"); l.setLevel(logging.DEBUG)
-> (l.level,l.isEnabledFor(10),l.name)

import copy
a=[[1]]; b=copy.deepcopy(a); b[0].append(2); c=copy.copy(a); c[0].append(3)
-> a

import threading
r=[]
t=threading.Thread(target=r.append,args=(1,)); t.start(); t.join()
-> r

import weakref
class A: pass
a=A(); w=weakref.ref(a)
-> w() is a

import inspect
def f(a,b=1): pass
-> (list(inspect.signature(f).parameters),inspect.isfunction(f))

import abc
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): pass
class B(A):
    def f(self): return 1
-> B().f()

from abc import ABC
class A(ABC): pass
class B: pass
A.register(B)
-> (isinstance(B(),A),issubclass(B,A))

class M(type):
    def __call__(cls,*a): return 5
class A(metaclass=M): pass
-> A()

class M(type):
    def __getattr__(cls,n): return n
class A(metaclass=M): pass
-> A.foo

class M(type):
    def __len__(cls): return 7
class A(metaclass=M): pass
-> len(A)

class S:
    _i=None
    def __new__(cls):
        if cls._i is None: cls._i=super().__new__(cls)
        return cls._i
-> (S() is S(), S._i is None)

class A:
    def __new__(cls,x): return x+1
-> A(1)

class A:
    def __class_getitem__(cls,k): return k
-> A[3]

class A:
    def __init_subclass__(cls,k=None): cls.k=k
class B(A,k=4): pass
-> B.k

class D:
    def __get__(s,o,t): return 5
    def __set__(s,o,v): o.q=v
class A:
    x=D()
a=A(); a.x=3
-> (a.x,a.q)

class A:
    def __getattribute__(s,n): return 5
-> A().anything

class A(dict):
    def __missing__(s,k): return k
-> (A()["z"],A(a=1)["a"])

class A(list): pass
a=A([1,2]); a.append(3)
-> (len(a),a[0],list(a))

class A(str):
    def shout(s): return s.upper()
-> (A("a").shout(),A("a")=="a")

class A(int): pass
-> A(3)+1

class A(tuple): pass
-> A([1,2])[1]

class A(Exception):
    def __init__(s,m,c): super().__init__(m); s.c=c
try: raise A("m",3)
except A as e: r=(str(e),e.c,e.args)
-> r
'''.split("\n\n")]


def value_of(code: str, expression: str) -> str | None:
    """As text; None where this Python has no such thing."""
    names: dict = {"__name__": "__main__"}
    with mock.patch.dict(os.environ), mock.patch.object(sys, "argv", list(sys.argv)):
        try:
            exec(code, names)
            return repr(eval(expression, names))
        except (SyntaxError, AttributeError, ImportError, TypeError):
            return None
        finally:
            sys.modules.pop("zz", None)


@pytest.mark.parametrize("group", range(GROUPS))
def test_values(group: int, cohabit: str, tmp_path: Path) -> None:
    cases = [("", one) for one in EXPRESSIONS] + STATEMENTS
    program, told = "", []
    for number, (code, expression) in list(enumerate(cases))[group::GROUPS]:
        value = value_of(code, expression)
        if value is None:
            continue
        told.append(number)
        program += f"{code}\nanswer = {expression}\n"
        for name, operator in (("right", "=="), ("wrong", "!=")):
            program += f"if answer {operator} {value}:\n    try: import {name}_{number}\n    except ImportError: pass\n"
    (tmp_path / "app.py").write_text(program)
    subprocess.run([sys.executable, "-W", "ignore", "app.py"], cwd=tmp_path, check=True, timeout=60)
    done = subprocess.run([cohabit, "doctor", sys.executable, "app.py", "--plan", "plan.json"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["failure"] is None and not plan["problems"], plan["failure"]
    assert not [cases[int(name[6:])] for name in plan["imports"] if name.startswith("wrong_")]
    right = [name for name in plan["imports"] if name.startswith("right_")]
    assert len(right) > 0.5 * len(told), [cases[number] for number in told if f"right_{number}" not in right]
