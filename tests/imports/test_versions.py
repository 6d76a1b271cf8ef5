"""What one Python takes and another refuses: each program is really run by every interpreter that is here."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PYTHONS = [sys.executable, *(str(p) for p in sorted((Path.home() / ".pyenv/versions").glob("3.*/bin/python"))
                             if int(p.parts[-3].split(".")[1]) >= 8)]

SYNTAX = {
    "match": "match 1:\n    case int():\n        pass\n",
    "match as a name": "match = [1]\nmatch[0]\nprint(match)\n",
    "except*": "try:\n    pass\nexcept* ValueError:\n    pass\n",
    "except without parentheses": "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n",
    "a star in a subscript": "a = [1]\nb = {(1,): 2}\nb[*a]\n",
    "a star of *args": "def f(*args: *tuple[int, ...]):\n    pass\n",
    "type": "type A = int\n",
    "type parameters": "def f[T](a: T) -> T:\n    return a\n",
    "class with type parameters": "class C[T]:\n    pass\n",
    "type parameters of a class that takes some": "class M(type):\n    pass\nclass C[T](metaclass=M):\n    pass\nA = C[int]\n"
                                                  "def f(a: C[int]) -> C[str]:\n    pass\n",
    "a decorator": "a = [lambda f: f]\n@a[0]\ndef f():\n    pass\n",
    "with in parentheses": "from contextlib import nullcontext as n\nwith (n() as a, n() as b):\n    pass\n",
    "a quote in a field": "a = {'b': 1}\nprint(f'{a['b']}')\n",
    "another quote in a field": "a = {'b': 1}\nprint(f'{a[\"b\"]}', f'''{a['b']}''', f'{1!r:>{2}}')\n",
    "a backslash in a field": "print(f'{\"\\n\".join([])}')\n",
    "a backslash beside a field": "print(f'\\n{1}\\t')\n",
    "lines in a field": "print(f'{\n1\n}')\n",
    "lines in a long field": "print(f'''{\n1\n}''')\n",
    "an error in a function": "def f():\n    x = = 1\n",
    "print of Python 2 in a method": "class C:\n    def f(self):\n        def g():\n            print 'a'\n",
    "tabs and spaces": "def f():\n    if 1:\n        pass\n\tpass\n",
    "new syntax in a function": "def f(x):\n    match x:\n        case 1:\n            pass\n",
    "a text that has no end": "x = 1\ndef f():\n    \"\"\"abc\n",
    "brackets that have no end, in a method": "class C:\n    def f(self):\n        return (1,\n",
    "two of them": "def f(x):\n    match x:\n        case 1:\n            pass\ntype A = int\n",
}

TYPES = {
    "list[int]": "A = list[int]\n",
    "list[int] of a parameter": "def f(a: list[int]):\n    pass\n",
    "list[int] of a result": "def f() -> dict[str, int]:\n    pass\n",
    "list[int] of a variable": "a: list[int] = []\n",
    "list[int] of a class's variable": "class C:\n    a: tuple[int, ...]\n",
    "list[int] of a function's variable": "def f():\n    a: list[int] = []\nf()\n",
    "annotations as text": "from __future__ import annotations\ndef f(a: list[int] | None):\n    b: int | 'c' = 1\n"
                           "class C:\n    a: int | None\n",
    "int | None": "def f(a: int | None = None):\n    pass\n",
    "None | int": "A = None | int\n",
    "a class of its own | None": "class C:\n    pass\ndef f(*, c: C | None = None):\n    pass\n",
    "an abstract class | None": "import abc\nclass C(abc.ABC):\n    pass\nA = C | None\n",
    "a path | None": "from pathlib import Path\ndef f(a: Path | None):\n    pass\n",
    "a path | a class": "from pathlib import PurePath\nA = PurePath | int\n",
    "a metaclass that has it": "class M(type):\n    def __or__(self, other):\n        return self\n"
                               "class C(metaclass=M):\n    pass\nA = C | None\n",
    "a text | None": "class C:\n    def f(self) -> 'C' | None:\n        pass\n",
    "a class | a text": "def f(a: int | 'C'):\n    pass\n",
    "a text | None in a lambda": "f = lambda: 'a' | None\n",
    "it is caught": "try:\n    A = int | None\nexcept TypeError:\n    from typing import Optional\n    A = Optional[int]\n",
    "a class that takes none": "class C:\n    pass\nA = C[int]\n",
    "a class that takes some": "class C:\n    def __class_getitem__(cls, item):\n        return cls\nA = C[int]\n",
    "a generic class": "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass C(Generic[T]):\n    pass\nA = C[int]\n",
    "what derives from a list": "class C(list):\n    pass\nA = C[int]\n",
    "an enumeration": "import enum\nclass C(enum.Enum):\n    a = 1\nC['a']\n",
    "a mapping": "import collections.abc\nA = collections.abc.Mapping[str, int]\n",
    "a path-like": "import os\ndef f(a: os.PathLike[str]):\n    pass\n",
    "a name that its module lacks": "import colorsys\ndef f(a: colorsys.Colour):\n    pass\n",
    "a name that its module lacks, as text": "import colorsys\ndef f(a: 'colorsys.Colour'):\n    pass\n",
    "a keyword of later": "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass C:\n    a: int = 1\n",
    "a keyword of nobody": "import colorsys, shlex\nshlex.split('a', maybe=True)\n",
    "a keyword of a method": "import argparse\nargparse.ArgumentParser().add_argument_group('a', maybe=True)\n",
    "a default before an annotation": "import colorsys\ndef f(a: int | 'b' = colorsys.gone):\n    pass\n",
}


LIBRARY = {
    "an enumeration of later": "from enum import StrEnum\n",
    "a type of later": "from typing import Self\n",
    "a function of native code of later": "from itertools import batched\n",
    "another": "import itertools\nitertools.pairwise\n",
    "a context of later": "from contextlib import chdir\n",
    "a flag of later": "from re import NOFLAG\n",
    "a function that is gone": "from configparser import SafeConfigParser\n",
    "one that is gone from native code": "from binascii import b2a_hqx\n",
    "one of Python 2": "import os\nos.getcwdu\n",
    "a number of Python 2": "import sys\nprint(sys.maxint)\n",
    "an object of another system": "import signal\nsignal.CTRL_C_EVENT\n",
    "what start-up gives": "import builtins, sys\nbuiltins.exit, builtins.credits, sys._home\n",
    "what others give": "import sys, math\nsys.own = 1\nsetattr(math, 'own', 2)\nsys.own + math.own\n",
    "what others may give": "import os, sys, math\nnames = os.environ.get('M_NAMES', 'own').split(os.pathsep)\n"
                            "for name in names:\n    setattr(math, name, 1)\nmath.own\n",
    "a name that is computed": "import ssl, socket, http.client\nfrom ssl import CERT_NONE, OP_ALL\n"
                               "from http.client import GONE\nsocket.AF_INET\n",
    "one that is not": "from ssl import CERT_NEVER\n",
    "one that comments speak of": "from typing import Required\n",
    "one that functions use for themselves": "import functools\nprint(functools.cache)\n",
    "a version that a module has": "import json, argparse\njson.__version__, argparse.__version__\n",
    "a version that a module has not": "import colorsys\nprint(colorsys.__version__)\n",
    "a version that may be had": "import colorsys\ntry:\n    print(colorsys.__version__)\nexcept AttributeError:\n"
                                 "    import m_gone\n",
    "it is asked whether": "import itertools, sys\nif hasattr(sys, 'maxint') or not hasattr(itertools, 'chain'):\n"
                           "    import m_gone\n",
    "it is caught": "try:\n    from enum import StrEnum\nexcept ImportError:\n    import enum, m_gone\n",
    "it is caught, of native code": "try:\n    from itertools import izip\nexcept ImportError:\n    izip = zip\n"
                                    "if izip is not zip:\n    import m_gone\n",
}

NAMES = """
import importlib, json, keyword, os, pkgutil, sys, warnings
warnings.simplefilter("ignore")
library = os.path.dirname(os.__file__)
def modules(directory): return {one.name for one in pkgutil.iter_modules([directory])}
found = modules(library) | modules(library + "/lib-dynload") | set(sys.builtin_module_names)
found |= {name + "." + one for name in found for one in modules(library + "/" + name)}
left_out = {"__future__", "antigravity", "ensurepip", "idlelib", "lib2to3", "test", "this", "turtledemo"}
names = {}
for name in sorted(found):
    parts = name.split(".")
    if not all(map(str.isidentifier, parts)) or parts[0] in left_out or parts[-1] in ("__main__", "test") or "_test" in name:
        continue
    try:
        module = importlib.import_module(name)
    except BaseException:
        continue  # not of this machine, or not built
    names[name] = [one for one in vars(module) if one.isidentifier() and not keyword.iskeyword(one) and one[:2] != "__"]
print("\\n" + json.dumps(names))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_no_name_of_the_standard_library_is_missing(python: str, cohabit: str, tmp_path: Path) -> None:
    """`from ssl import CERT_NONE` works, so the plan must not say that it fails."""
    asked = subprocess.run([python, "-c", NAMES], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    names = json.loads(asked.stdout.splitlines()[-1])
    assert len(names) > 300 and sum(map(len, names.values())) > 10_000
    text = "".join(f"from {module} import {', '.join(of_it)}\n" for module, of_it in names.items() if of_it)
    text += "".join(f"import {module}\n" + "".join(f"{module}.{one}\n" for one in of_it) for module, of_it in names.items())
    (tmp_path / "app.py").write_text(text)
    done = subprocess.run([cohabit, "doctor", python, "--imports", "app", "--plan", "plan.json"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert json.loads((tmp_path / "plan.json").read_text())["failure"] is None, done.stdout


def outcome(stderr: str) -> str:
    """The error at the end, with its words where it is none of syntax: those differ from one Python to the next."""
    last = stderr.strip().split("\n")[-1] if "Error" in stderr else ""
    return re.sub(r"^(SyntaxError|IndentationError|TabError).*", "SyntaxError", last)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", [*SYNTAX, *TYPES, *LIBRARY])
def test_programs_fail_where_they_do(name: str, python: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "m_a.py").write_text((SYNTAX | TYPES | LIBRARY)[name])
    real = subprocess.run([python, "-B", "-c", "import m_a"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    done = subprocess.run([cohabit, "doctor", python, "--imports", "m_a", "--plan", "plan.json"], cwd=tmp_path,
                          env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if real.returncode else 0), done.stdout + done.stderr
    failure = json.loads((tmp_path / "plan.json").read_text())["failure"]
    expected = outcome(real.stderr).split(". Did you mean")[0]  # Python proposes another name
    assert outcome((failure or {"error": ""})["error"]) == expected
    if "SyntaxError" == expected and "no end" not in name:  # of the bracket, or of the end
        line = re.findall(r"line (\d+)", real.stderr)[-1]
        assert f"line {line})" in failure["error"]
