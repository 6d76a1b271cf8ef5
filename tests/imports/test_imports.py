"""The import plan against CPython itself: the same packages are really imported and planned.

Each scenario is a few small modules. The oracle is the Python that runs the tests: the modules that
appear in its sys.modules, in order, and whether the import fails. The parser and the finder are
held against it on its own standard library.
"""
from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

# name: {file: text}. app is imported. Modules that start with "m_" count.
SCENARIOS: dict[str, dict[str, str]] = {
    "try and except": {
        "app.py": "try:\n    import m_gone\nexcept ImportError:\n    import m_other\n",
        "m_other.py": ""},
    "else and finally": {
        "app.py": "try:\n    import m_a\nexcept ImportError:\n    import m_x\nelse:\n    import m_b\n"
                  "finally:\n    import m_c\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_x.py": ""},
    "a name that may not be there": {
        "app.py": "try:\n    M_SETUP\nexcept NameError:\n    M_SETUP = False\nif M_SETUP:\n    import m_x\nelse:\n    import m_a\n"
                  "try:\n    unicode\nexcept (AttributeError, NameError):\n    import m_b\n"
                  "try:\n    sum\n    TimeoutError\n    m_later = 1\nexcept NameError:\n    import m_x\n"
                  "import builtins\nbuiltins.m_mark = 0\ntry:\n    m_mark\nexcept NameError:\n    import m_x\n"
                  "import m_c\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_x.py": ""},
    "platform": {
        "app.py": "import sys, os\nif sys.platform == 'win32':\n    import m_x\nelif os.name == 'nt':\n"
                  "    import m_x\nelse:\n    import m_a\n",
        "m_a.py": "", "m_x.py": ""},
    "version": {
        "app.py": "import sys\nif sys.version_info >= (3, 7):\n    import m_a\n"
                  "if sys.version_info[0] == 2:\n    import m_x\nif sys.version_info.major < 3: import m_x\n",
        "m_a.py": "", "m_x.py": ""},
    "type checking": {
        "app.py": "from typing import TYPE_CHECKING\nimport typing\nif TYPE_CHECKING:\n    import m_x\n"
                  "if not typing.TYPE_CHECKING:\n    import m_a\n",
        "m_a.py": "", "m_x.py": ""},
    "a function that runs": {
        "app.py": "def first():\n    import m_a\ndef never():\n    import m_x\nfirst()\n",
        "m_a.py": "", "m_x.py": ""},
    "a loop over names": {
        "app.py": "import importlib\nfor n in ['a', 'b']:\n    importlib.import_module('m_' + n)\n"
                  "for i in range(2):\n    __import__(f'm_n{i}')\n",
        "m_a.py": "", "m_b.py": "", "m_n0.py": "", "m_n1.py": ""},
    "lazy attributes": {
        "app.py": "import m_pkg\nm_pkg.part.value\nfrom m_pkg import other\n",
        "m_pkg/__init__.py": "import importlib\n_known = {'part': '.part', 'other': '.other', 'x': '.x'}\n"
                             "def __getattr__(name):\n    if name in _known:\n"
                             "        return importlib.import_module(_known[name], __name__)\n"
                             "    raise AttributeError(name)\n",
        "m_pkg/part.py": "value = 1\n", "m_pkg/other.py": "", "m_pkg/x.py": ""},
    "what SWIG writes": {  # up to its release 3.0.10; Python 3.12 has no imp
        "app.py": "import os, sys\nhere = os.path.dirname(__file__)\n"
                  "def load(name, where):\n    import imp\n    fp = None\n    try:\n"
                  "        fp, pathname, description = imp.find_module(name, [where])\n"
                  "    except ImportError:\n        import m_other\n        return m_other\n"
                  "    if fp is not None:\n        try:\n"
                  "            return imp.load_module(name, fp, pathname, description)\n"
                  "        finally:\n            fp.close()\n"
                  "    return imp.load_module(name, fp, pathname, description)\n"
                  "load('m_a', here)\nload('m_gone', here)\nload('m_pkg', here)\n"
                  "import imp\nimp.load_source('m_pkg.m_sub', os.path.join(here, 'm_pkg', 'm_sub.py'))\n"
                  "imp.find_module('sys')[2][2] == imp.C_BUILTIN or __import__('m_x')\n"
                  "imp.find_module('m_gone')\n",
        "m_a.py": "", "m_other.py": "", "m_x.py": "", "m_pkg/__init__.py": "", "m_pkg/m_sub.py": "import m_deep\n",
        "m_deep.py": ""},
    "a lazy module class": {
        "app.py": "import m_lazy\nm_lazy.tool.run\n",
        "m_lazy.py": "import sys, types, importlib\n"
                     "class Lazy(types.ModuleType):\n"
                     "    def __init__(self, name, target):\n"
                     "        super().__init__(name)\n        self._target = target\n"
                     "    def __getattr__(self, name):\n"
                     "        return getattr(importlib.import_module(self._target), name)\n"
                     "tool = Lazy('tool', 'm_tool')\nunused = Lazy('unused', 'm_x')\n",
        "m_tool.py": "def run(): pass\n", "m_x.py": ""},
    "names that a package serves on demand": {
        "app.py": "from m_pkg import Tool, Deep\nfrom m_pkg.near import other\n",
        "m_pkg/__init__.py": "import os, sys, re, importlib\nfrom types import ModuleType\nfrom typing import TYPE_CHECKING\n"
                             "class Lazy(ModuleType):\n"
                             "    def __init__(self, name, file):\n"
                             "        super().__init__(name)\n"
                             "        self.__path__ = [os.path.dirname(file)]\n        self._homes = {}\n"
                             "        for entry in sorted(os.listdir(self.__path__[0])):\n"
                             "            with open(os.path.join(self.__path__[0], entry)) if entry.endswith('.py') else open(os.devnull) as text:\n"
                             "                for made in re.findall(r'^class (\\w+)', text.read(), re.M):\n"
                             "                    self._homes[made] = entry[:-3]\n"
                             "    def __getattr__(self, name):\n"
                             "        if name == 'Deep':\n"
                             "            return importlib.import_module('.sub', self.__name__).Deep\n"
                             "        if name not in self._homes:\n            raise AttributeError(name)\n"
                             "        return getattr(importlib.import_module('.' + self._homes[name], self.__name__), name)\n"
                             "if TYPE_CHECKING:\n    from .sub import *\n    from .tool import Tool\n    from .x import Unused\n"
                             "else:\n    sys.modules[__name__] = Lazy(__name__, __file__)\n",
        "m_pkg/tool.py": "import m_a\nclass Tool: pass\n", "m_pkg/x.py": "class Unused: pass\n", "m_pkg/near.py": "other = 1\n",
        "m_pkg/sub.py": "import m_b\nDeep = 1\n", "m_a.py": "", "m_b.py": ""},
    "names that are told where nothing is missing": {
        "app.py": "from m_pkg import Tool\n",
        "m_pkg/__init__.py": "import os, sys, re, importlib\nfrom types import ModuleType\nfrom typing import TYPE_CHECKING\n"
                             "SLOW = os.environ.get('M_SLOW', '') in ('1', 'yes')\n"
                             "class Lazy(ModuleType):\n"
                             "    def __init__(self, name, file):\n"
                             "        super().__init__(name)\n"
                             "        self.__path__ = [os.path.dirname(file)]\n"
                             "        with open(os.path.join(self.__path__[0], 'tool.py')) as text:\n"
                             "            self._homes = {made: 'tool' for made in re.findall(r'^class (\\w+)', text.read(), re.M)}\n"
                             "    def __getattr__(self, name):\n"
                             "        if name not in self._homes:\n            raise AttributeError(name)\n"
                             "        return getattr(importlib.import_module('.' + self._homes[name], self.__name__), name)\n"
                             "if TYPE_CHECKING or SLOW:\n    try:\n        if not sys.version_info:\n            raise ValueError\n"
                             "    except ValueError:\n        from .dummy import Tool\n"
                             "    else:\n        from .tool import Tool\n"
                             "else:\n    sys.modules[__name__] = Lazy(__name__, __file__)\n",
        "m_pkg/tool.py": "import m_a\nclass Tool: pass\n", "m_pkg/dummy.py": "import m_x\nclass Tool: pass\n",
        "m_a.py": "", "m_x.py": ""},
    "a version is read by the parser of messages": {
        "app.py": "from importlib.metadata import version\nimport sys\nversion('pytest')\n"
                  "if 'email.feedparser' in sys.modules:\n    import m_a\nelse:\n    import m_x\n",
        "m_a.py": "", "m_x.py": ""},
    "the caller's frame": {  # as pxr fills each of its packages from a native module
        "app.py": "from m_pkg import value\nimport m_b\n",
        "m_pkg/__init__.py": "from m_help import prepare\nprepare()\ndel prepare\n",
        "m_help.py": "def prepare():\n    import importlib, inspect\n    frame = inspect.currentframe().f_back\n    try:\n"
                     "        names = frame.f_locals\n"
                     "        made = importlib.import_module('._' + names['__name__'].split('_')[-1], names['__name__'])\n"
                     "        for key, one in made.__dict__.items():\n"
                     "            if key not in ('__name__', '__package__', '__file__', '__spec__', '__path__'):\n"
                     "                names[key] = one\n    finally:\n        del frame\n",
        "m_pkg/_pkg.py": "import m_a\nvalue = 1\n", "m_a.py": "", "m_b.py": ""},
    "relative": {
        "app.py": "import m_pkg.sub.leaf\n",
        "m_pkg/__init__.py": "", "m_pkg/near.py": "", "m_pkg/sub/__init__.py": "",
        "m_pkg/sub/leaf.py": "from . import twig\nfrom .. import near\nfrom ..sub.bud import name\n",
        "m_pkg/sub/twig.py": "", "m_pkg/sub/bud.py": "name = 1\n"},
    "star and a submodule that cannot be imported": {
        "app.py": "try:\n    from m_pkg import *\nexcept ImportError:\n    import m_after\nelse:\n    import m_never\n",
        "m_pkg/__init__.py": "__all__ = ['good', 'bad', 'next']\n", "m_pkg/good.py": "import m_good\n",
        "m_pkg/bad.py": "import m_gone\n", "m_pkg/next.py": "", "m_after.py": "", "m_good.py": "", "m_never.py": ""},
    "star and a submodule that refuses": {
        "app.py": "try:\n    from m_pkg import *\nexcept ImportError:\n    import m_after\nfrom m_more import *\nimport m_never\n",
        "m_pkg/__init__.py": "__all__ = ['bad']\n", "m_pkg/bad.py": "from m_good import nope\n",
        "m_more/__init__.py": "__all__ = ['bad']\n", "m_more/bad.py": "raise ImportError('no')\n",
        "m_after.py": "", "m_good.py": "", "m_never.py": ""},
    "star and a name that is not there": {
        "app.py": "try:\n    from m_pkg import *\nexcept ImportError:\n    import m_never\nexcept AttributeError:\n    import m_after\n"
                  "from m_served import *\nassert b() == 1\nfrom m_plain import *\nimport m_never\n",
        "m_pkg/__init__.py": "__all__ = ['gone']\n", "m_plain.py": "a = 1\n__all__ = ['a', 'gone']\n",
        "m_served.py": "__all__ = ['b']\ndef __getattr__(name):\n    import m_lazy\n    if name == 'b': return lambda: 1\n"
                       "    raise AttributeError(name)\n",
        "m_after.py": "", "m_never.py": "", "m_lazy.py": ""},
    "star and __all__": {
        "app.py": "from m_pkg import *\none\n",
        "m_pkg/__init__.py": "__all__ = ['one', 'two']\n", "m_pkg/one.py": "", "m_pkg/two.py": "",
        "m_pkg/three.py": ""},
    "names made at run time": {
        "app.py": "from m_made import thing\nimport m_after\n",
        "m_made.py": "import enum\nfor n in dir(enum):\n    globals()[n] = getattr(enum, n)\n"
                     "globals().update({'thing': 1})\n",
        "m_after.py": ""},
    "a decorator that imports": {
        "app.py": "def needs(name):\n    def wrap(f):\n        __import__(name)\n        return f\n    return wrap\n"
                  "@needs('m_a')\ndef f(): pass\n@needs('m_b')\nclass C: pass\n",
        "m_a.py": "", "m_b.py": ""},
    "loops with an end that is not known": {
        "app.py": "import weakref\nclass Key: pass\nkeys = [Key() for i in range(99)]\n"
                  "table = weakref.WeakKeyDictionary()\nfor key in keys:\n    table[key] = 1\n"
                  "def empty():\n    for key in keys:\n        table.popitem()\n    import m_a\n"
                  "def count():\n    i = 0\n    while True:\n        i += 1\n        if i == 40:\n            break\n"
                  "        if hash('a') == 1:\n            break\n    import m_b\n"
                  "empty()\ncount()\n",
        "m_a.py": "", "m_b.py": ""},
    "sets": {
        "app.py": "def bounds(lattice):\n    upper = {n: {n} for n in lattice}\n    for n in lattice:\n        while True:\n"
                  "            new = set().union(*(lattice[b] for b in upper[n]))\n"
                  "            if n in new:\n                raise ValueError(n)\n"
                  "            if new.issubset(upper[n]):\n                break\n            upper[n] |= new\n    return upper\n"
                  "upper = bounds({'a': ['b'], 'b': ['c', 'd'], 'd': ['c'], 'c': []})\n"
                  "if len(upper['a']) == 4: import m_a\nelse: import m_x\n"
                  "if upper['b'] == {'c', 'b', 'd'}: import m_b\nelse: import m_x\n"
                  "if upper['b'] == upper['d']: import m_x\nelse: import m_c\n"
                  "if not {1, hash('a')}.issubset({2}): import m_d\n"
                  "if set.union({1}, [2]) == {2, 1} and {1} | {2} == {2, 1}: import m_e\n",
        **{f"m_{letter}.py": "" for letter in "abcdex"}},
    # Each of them ends at once in reality, and is given up after a few rounds here.
    "loops that store what is not known": {
        "app.py": "table, known = {}, {}\ndef fill():\n    for k in range(60):\n        while True:\n            table[hash(k)] = k\n"
                  "            known[k] = hash(k)\n            if hash(k) == k:\n                break\n    import m_a\nfill()\n",
        "m_a.py": ""},
    "class bodies and methods": {
        "app.py": "class A:\n    import m_a\n    def __init__(self, n):\n        self.n = n\n"
                  "    def load(self):\n        return __import__(self.n)\n"
                  "class B(A):\n    def load(self):\n        import m_b\n        return super().load()\n"
                  "B('m_c').load()\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": ""},
    "find_spec and hasattr": {
        "app.py": "import importlib.util, os\nif importlib.util.find_spec('json') is not None:\n    import m_b\n"
                  "if importlib.util.find_spec('m_gone'):\n    import m_x\n"
                  "if hasattr(os, 'no_such_name'):\n    import m_x\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "environment variables": {
        "app.py": "import os\nif os.environ.get('M_SET') == 'yes':\n    import m_a\n"
                  "if 'M_UNSET' in os.environ:\n    import m_x\nos.environ['M_NEW'] = '1'\n"
                  "if os.getenv('M_NEW', '0') == '1':\n    import m_b\n"
                  "if os.environ.setdefault('M_DEF', 'd') == 'd': import m_c\n"
                  "os.environ |= {'M_OR': '1'}\nos.environ.update(M_WORD='1')\nos.putenv('M_PUT', '1')\n"
                  "if os.environ.get('M_OR') == os.environ['M_WORD']: import m_d\n"
                  "if os.environ.get('M_PUT'): import m_x\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_x.py": ""},
    "files decide": {
        "app.py": "import os, glob\nfrom pathlib import Path\nhere = os.path.dirname(os.path.abspath(__file__))\n"
                  "if os.path.exists(os.path.join(here, 'm_a.py')): import m_a\n"
                  "if os.path.isdir(os.path.join(here, 'nothing')): import m_x\n"
                  "for f in sorted(glob.glob(os.path.join(here, 'm_g*.py'))):\n"
                  "    __import__(os.path.splitext(os.path.basename(f))[0])\n"
                  "if (Path(__file__).parent / 'm_b.py').is_file(): import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_g1.py": "", "m_g2.py": "", "m_x.py": ""},
    # What a builtin type makes may be without a value, and be asked for a method of one.
    "methods of builtin types on anything": {
        "app.py": "import m_a\nunsafe = bytes((*range(0x21), 0x25, 0x7F)).decode() + '&='\n"
                  "class Text(str): pass\nText('m').upper().encode().decode()\nstr.__mod__('%s', 1)\n"
                  "for f in (str.lower, str.encode, bytes.decode, str.splitlines, str.isdigit):\n"
                  "    try:\n        f(object())\n    except Exception:\n        pass\nimport m_b\n",
        "m_a.py": "", "m_b.py": ""},
    "finders and loaders asked by hand": {
        "app.py": "import importlib.machinery as mm, os\nhere = os.path.dirname(os.path.abspath(__file__))\n"
                  "f = mm.FileFinder(here, (mm.ExtensionFileLoader, mm.EXTENSION_SUFFIXES),"
                  " (mm.SourceFileLoader, mm.SOURCE_SUFFIXES))\n"
                  "if f.find_spec('m_gone') is None: import m_a\nelse: import m_x\n"
                  "if f.find_spec('m_pkg').origin.endswith('m_pkg/__init__.py'): import m_b\nelse: import m_x\n"
                  "mm.SourceFileLoader('named', f.find_spec('m_file').origin).load_module()\n"
                  "if mm.PathFinder.find_spec('m_gone', [here]) is None: import m_c\n"
                  "if mm.PathFinder.find_spec('m_file', [here]).name == 'm_file': import m_d\n",
        "m_pkg/__init__.py": "", "m_file.py": "import m_e\n", "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "",
        "m_e.py": "", "m_x.py": ""},
    "files of packages": {
        "app.py": "import importlib.resources as r, os\n"
                  "with r.as_file(r.files('m_pkg') / 'flag.txt') as p:\n    if p.exists(): import m_a\n"
                  "with r.path('m_pkg', 'flag.txt') as p:\n    if os.path.exists(str(p)): import m_b\n"
                  "class Held:\n    def __init__(self, context): self._context = context\n"
                  "    def __enter__(self): return self._context.__enter__()\n"
                  "    def __exit__(self, *what): return self._context.__exit__(*what)\n"
                  "with Held(r.path('m_pkg', 'none.txt')) as p:\n    if not p.exists(): import m_c\n"
                  "if r.files('m_pkg').joinpath('none.txt').is_file(): import m_x\n",
        "m_pkg/__init__.py": "", "m_pkg/flag.txt": "", "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_x.py": ""},
    "exec of a file": {
        "app.py": "import os\nscope = {}\nwith open(os.path.join(os.path.dirname(os.path.abspath(__file__)),"
                  " 'values.txt')) as f:\n    exec(compile(f.read(), 'values', 'exec'), scope)\n"
                  "if scope['flag'] == 7:\n    import m_a\nelse:\n    import m_x\n",
        "values.txt": "flag = 3 + 4\n", "m_a.py": "", "m_x.py": ""},
    "circular": {
        "app.py": "import m_a\n",
        "m_a.py": "import m_b\nvalue = 1\n",
        "m_b.py": "import m_a\nfrom m_c import x\n", "m_c.py": "import m_b\nx = 2\n"},
    "sys.modules": {
        "app.py": "import m_a\nimport m_a.inner\nfrom m_fake import y\nimport m_b\n",
        "m_a/__init__.py": "import sys, types\nfake = types.ModuleType('m_fake')\nfake.y = 1\n"
                           "sys.modules['m_fake'] = fake\n",
        "m_a/inner.py": "", "m_b.py": ""},
    "suppress": {
        "app.py": "import contextlib\nwith contextlib.suppress(ImportError):\n    import m_gone\n"
                  "    import m_x\nimport m_a\n",
        "m_a.py": "", "m_x.py": ""},
    "a failing import": {"app.py": "import m_a\nimport m_gone\nimport m_x\n", "m_a.py": "", "m_x.py": ""},
    "a missing name": {
        "app.py": "from m_a import there, gone\nimport m_x\n", "m_a.py": "there = 1\n", "m_x.py": ""},
    "a version that is asserted": {
        "app.py": "import m_lib\ndef digits(text):\n    return tuple(int(x) for x in text.split('.'))\n"
                  "assert (2, 0, 0) <= digits(m_lib.__version__), 'm_lib is too old'\nimport m_a\n"
                  "assert (2, 0, 0) <= digits(m_lib.__version__) < (2, 2, 0), \\\n"
                  "    f'm_lib {m_lib.__version__} does not go'\nimport m_x\n",
        "m_lib.py": "__version__ = '2.2.0'\n", "m_a.py": "", "m_x.py": ""},
    "a version that is refused": {
        "app.py": "import m_lib\ndef check(version):\n    if version < (3, 0):\n"
                  "        raise RuntimeError('m_lib 3 or later is needed')\n"
                  "check(tuple(map(int, m_lib.__version__.split('.'))))\nimport m_x\n",
        "m_lib.py": "__version__ = '2.2.0'\n", "m_x.py": ""},
    "a version that is refused, and the refusal caught": {
        "app.py": "import m_lib\ntry:\n    if m_lib.__version__ == '2.2.0':\n"
                  "        raise RuntimeError('m_lib 3 or later is needed')\nexcept RuntimeError:\n    import m_a\n",
        "m_lib.py": "__version__ = '2.2.0'\n", "m_a.py": ""},
    "an import in a branch that was guessed": {
        "app.py": "import os\nif os.getpid():\n    flag = 1\nelse:\n    import m_gone\n"
                  "for _ in range(os.getpid() * 0):\n    pass\nimport m_b\n",
        "m_b.py": ""},
    "two branches of one unknown value": {
        "app.py": "import os\nfast = 'avx9' in os.popen('').read()\nif fast:\n    import m_gone\n"
                  "if not fast:\n    import m_a\nif fast:\n    import m_gone\nelse:\n    import m_b\n",
        "m_a.py": "", "m_b.py": ""},
    "a decorator that was decorated": {
        "app.py": "import os\nunknown = eval('lambda f: (lambda g: g)', dict(os.environ))\n"
                  "@unknown\ndef drawn(function, canvas):\n    import m_gone\n"
                  "@drawn\ndef plot():\n    pass\nimport m_b\n",
        "m_b.py": ""},
    "names that a loop gives to its module": {
        "app.py": "from m_lib import name1\nimport m_b\n",
        "m_lib.py": "import os, sys\ndef fill():\n    here = sys.modules[__name__]\n"
                    "    for i in range(os.getpid() * 0 + 2):\n        setattr(here, 'name%d' % i, i)\nfill()\n",
        "m_b.py": ""},
    "finders that are put in once": {
        "app.py": "import sys, importlib.util\nclass Vendor:\n    def __init__(self, root):\n        self.root = root\n"
                  "    def find_spec(self, name, path=None, target=None):\n"
                  "        mine = name.startswith(self.root + '.')\n"
                  "        return importlib.util.spec_from_loader(name, self) if mine else None\n"
                  "    def create_module(self, spec):\n        import m_real\n        return m_real\n"
                  "    def exec_module(self, module):\n        pass\n    def install(self):\n"
                  "        if self not in sys.meta_path:\n            sys.meta_path.append(self)\n"
                  "Vendor('m_other').install()\nVendor('m_pkg').install()\nimport m_pkg.part\nimport m_b\n",
        "m_pkg/__init__.py": "", "m_real.py": "", "m_b.py": ""},
    "a module that ends the process": {
        "app.py": "import m_a\nimport m_end\nimport m_x\n", "m_a.py": "",
        "m_end.py": "from sys import exit as leave\nleave(3)\nimport m_x\n", "m_x.py": ""},
    "a module that raises SystemExit": {
        "app.py": "try:\n    import m_end\nexcept Exception:\n    pass\nimport m_x\n",
        "m_end.py": "raise SystemExit\n", "m_x.py": ""},
    "a module whose end is caught": {
        "app.py": "for name in 'm_end', 'm_quit':\n    try:\n        __import__(name)\n    except SystemExit as end:\n"
                  "        if end.code == 4:\n            import m_a\nimport m_b\n",
        "m_end.py": "import sys\nsys.exit('no licence')\n", "m_quit.py": "exit(4)\n", "m_a.py": "", "m_b.py": ""},
    "an end in a branch that was guessed": {
        "app.py": "import os, sys\nif os.getpid():\n    pass\nelse:\n    sys.exit()\nos.getpid() or os._exit(1)\n"
                  "if os.getpid():\n    pass\nelse:\n    os.abort()\nimport m_b\n",
        "m_b.py": ""},
    "a failing submodule is forgotten": {
        "app.py": "for _ in range(2):\n    try:\n        import m_bad\n    except ImportError:\n        import m_ok\n",
        "m_bad.py": "import m_before\nimport m_gone\n", "m_before.py": "", "m_ok.py": ""},
    "a package that takes the variables of another": {
        "app.py": "from m_pkg.deep import value\nimport m_pkg.late\n",
        "m_pkg/__init__.py": "def _take():\n    import importlib\n    found = importlib.import_module('.m_sub', __package__)\n"
                             "    globals().update(found.__dict__)\n_take()\nif known == 1:\n    import m_a\n",
        "m_pkg/m_sub/__init__.py": "known = 1\n", "m_pkg/m_sub/deep.py": "import m_b\nvalue = 1\n",
        "m_pkg/m_sub/late.py": "", "m_pkg/deep.py": "import m_x\n", "m_pkg/late.py": "import m_x\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "variables of a module as a dictionary": {
        "app.py": "import m_a\nfor name, value in sorted(vars(m_a).items(), key=lambda pair: pair[0]):\n    if name == 'some':\n"
                  "        import m_b\nm_a.__dict__['other'] = 3\nif m_a.other == 3:\n    import m_c\n",
        "m_a.py": "some = 1\n", "m_b.py": "", "m_c.py": ""},
    # As multiprocessing does with the methods of its default context.
    "variables from pairs": {
        "app.py": "import m_pkg\nm_pkg.load()\nif hasattr(m_pkg, 'absent'):\n    import m_x\n",
        "m_pkg/__init__.py": "class Context:\n    def load(self):\n        import m_a\n    def _own(self):\n        import m_x\n"
                             "_context = Context()\n_context.more = 1\nnames = [x for x in dir(_context) if not x.startswith('_')]\n"
                             "globals().update((name, getattr(_context, name)) for name in names)\n"
                             "if 'more' in names:\n    import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "names of one's own globals": {
        "app.py": "import m_types\nfrom m_types import A\nif getattr(m_types, 'absent', None) is None:\n    import m_a\nelse:\n    import m_x\n",
        "m_types.py": "A = 1\n__all__ = [n for n in globals() if n[:1] != '_']\n", "m_a.py": "", "m_x.py": ""},
    "a search in what is not known": {
        "app.py": "import time\nfor letter in str(time.time()):\n    if letter.isdigit():\n        break\nelse:\n    import m_x\n"
                  "for letter in str(time.time()):\n    letter.upper()\nelse:\n    import m_a\n"
                  "def find():\n    for letter in str(time.time()):\n        for other in letter:\n            return other\n"
                  "    else:\n        import m_x\nfind()\n",
        "m_a.py": "", "m_x.py": ""},
    "dict.fromkeys": {
        "app.py": "for name in dict.fromkeys(['a', 'b', *(n for n in 'ac' if n == 'a')]):\n    __import__('m_' + name)\n"
                  "if dict.fromkeys('xy', 2)['y'] == 2:\n    import m_c\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": ""},
    "a class of modules": {
        "app.py": "import m_pkg\nm_pkg.part\nfrom m_pkg import other\n"
                  "import types\nif isinstance(m_pkg, types.ModuleType) and types.ModuleType('m_y', 'doc').__name__ == 'm_y':\n"
                  "    import m_a\n",
        "m_pkg/__init__.py": "import importlib, sys, types\nclass Lazy(types.ModuleType):\n    def __init__(self, name, parts):\n"
                             "        super().__init__(name)\n        self._parts = parts\n        self.__path__ = __path__\n"
                             "    def __getattr__(self, name):\n        if name not in self._parts:\n            raise AttributeError(name)\n"
                             "        return importlib.import_module('.' + name, self.__name__)\n"
                             "sys.modules[__name__] = Lazy(__name__, {'part', 'other'})\n",
        "m_pkg/part.py": "", "m_pkg/other.py": "", "m_a.py": ""},
    # As torch.backends.
    "submodules below a class of modules": {
        "app.py": "import m_pkg\n",
        "m_pkg/__init__.py": "import sys, types\nclass Own(types.ModuleType):\n    def __init__(self, m, name):\n"
                             "        super().__init__(name)\n        self.m = m\n    def __getattr__(self, name):\n"
                             "        return self.m.__getattribute__(name)\nsys.modules[__name__] = Own(sys.modules[__name__], __name__)\n"
                             "from m_pkg import part, other\n",
        "m_pkg/part.py": "import m_a\n", "m_pkg/other.py": "", "m_a.py": ""},
    "requirements that packaging reads": {
        "app.py": "from packaging.requirements import Requirement\nfrom packaging.specifiers import SpecifierSet\n"
                  "from packaging.version import Version\nr = Requirement('a.b[x]>=2.1,<99; python_version > \"3\"')\n"
                  "if r.name == 'a.b' and 'x' in r.extras and r.url is None:\n    import m_a\n"
                  "if r.specifier.contains(Version('2.5rc1'), prereleases=True):\n    import m_b\n"
                  "if '1.0' in r.specifier:\n    import m_x\nif Version('3.0') not in SpecifierSet('>=3.1'):\n    import m_c\n"
                  "if '3' in SpecifierSet():\n    import m_d\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_x.py": ""},
    "a container of one's own": {
        "app.py": "class Odd:\n    def __contains__(self, number):\n        return number % 2 == 1\n"
                  "if 3 in Odd():\n    import m_a\nif 4 in Odd():\n    import m_x\nif 4 not in Odd():\n    import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    # As numba_cuda does for numba.cuda.
    "a finder before that of sys.path": {
        "app.py": "import m_hook\nimport m_pkg.part.deep\nimport m_pkg.own\n",
        "m_hook.py": "import os, sys\nclass Redirect:\n    def find_spec(self, name, path, target=None):\n"
                     "        if not name.startswith('m_pkg.part') or any('m_new' in p for p in path):\n            return None\n"
                     "        elsewhere = [p.replace('m_pkg', 'm_new') for p in path]\n        for finder in sys.meta_path:\n"
                     "            try:\n                spec = finder.find_spec(name, elsewhere, target)\n"
                     "            except AttributeError:\n                continue\n            if spec is not None:\n"
                     "                return spec\nsys.meta_path.insert(0, Redirect())\n",
        "m_pkg/__init__.py": "", "m_pkg/own.py": "", "m_pkg/part/__init__.py": "import m_x\n", "m_pkg/part/deep.py": "import m_x\n",
        "m_new/part/__init__.py": "import m_a\n", "m_new/part/deep.py": "import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "modules that a finder before that of sys.path makes": {
        "app.py": "import sys, types\nimport importlib.util\nclass Made:\n    def find_spec(self, name, path, target=None):\n"
                  "        if name.startswith('m_pkg.v'):\n            return importlib.util.spec_from_loader(name, self, origin=__file__ + 'x')\n"
                  "    def create_module(self, spec):\n        import m_a\n        return types.ModuleType(spec.name)\n"
                  "    def exec_module(self, module):\n        pass\n"
                  "sys.meta_path.insert(0, Made())\nfrom m_pkg import v_one\nimport m_pkg.v_two\nimport m_b\n",
        "m_pkg/__init__.py": "", "m_a.py": "", "m_b.py": ""},
    # As lazy_loader reads skimage's stubs.
    "names from a text that a visitor of syntax trees collects": {
        "app.py": "from m_lazy import pi\nimport m_a\n",
        "m_lazy.py": "import ast, importlib\nclass Visitor(ast.NodeVisitor):\n    def __init__(self):\n        self.homes = {}\n"
                     "    def visit_ImportFrom(self, node):\n        for name in node.names:\n            self.homes[name.name] = node.module\n"
                     "visitor = Visitor()\nvisitor.visit(ast.parse('from math import pi'))\ndef made(homes):\n"
                     "    def __getattr__(name):\n        if name in homes:\n"
                     "            return getattr(importlib.import_module(homes[name]), name)\n        raise AttributeError(name)\n"
                     "    return __getattr__\n__getattr__ = made(visitor.homes)\n",
        "m_a.py": ""},
    # As setuptools' for distutils: what it imports clears the name and imports it.
    "a finder that is asked again for what it is asked for": {
        "app.py": "import importlib, sys\nfrom importlib.abc import Loader\nfrom importlib.util import spec_from_loader\n"
                  "class Hook:\n    def find_spec(self, name, path, target=None):\n        if name != 'm_name':\n            return None\n"
                  "        made = importlib.import_module('m_pkg.m_own')\n        class There(Loader):\n"
                  "            def create_module(self, spec):\n                made.__name__ = 'm_name'\n                return made\n"
                  "            def exec_module(self, module):\n                pass\n"
                  "        return spec_from_loader('m_name', There(), origin=made.__file__)\n"
                  "sys.meta_path.insert(0, Hook())\nimport m_name\nif m_name.own:\n    import m_a\n",
        "m_pkg/__init__.py": "import importlib, sys\nsys.modules.pop('m_name', None)\nimportlib.import_module('m_name')\n"
                             "import m_name.part\n",
        "m_pkg/m_own/__init__.py": "own = True\n", "m_pkg/m_own/part.py": "import m_b\n",
        "m_name/__init__.py": "own = False\nimport m_x\n", "m_name/part.py": "import m_x\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    # What the plan does not know of it is no reason for the handler of somebody further up.
    "an error that is expected of another module": {
        "app.py": "try:\n    import m_a\nexcept AttributeError:\n    import m_x\n", "m_a.py": "import m_b\n",
        "m_b.py": "class Known:\n    def __init__(self):\n        self.__dict__.update(size=1)\nKnown().size\nimport m_c\n",
        "m_c.py": "", "m_x.py": ""},
    # As lightning's RequirementCache: asked often, and told in a field.
    "a method that is often called for nothing": {
        "app.py": "class Asked:\n    def __init__(self, name):\n        self.name = name\n    def ask(self):\n"
                  "        if hasattr(self, 'there'):\n            return\n        self.there = self.name == 'a'\n"
                  "    def __bool__(self):\n        self.ask()\n        return self.there\n"
                  "first = Asked('b')\nfor _ in range(20):\n    bool(first)\nif Asked('a'):\n    import m_a\nif first:\n    import m_x\n",
        "m_a.py": "", "m_x.py": ""},
    # As pyvista's and pypdfium2's.
    "tables that are joined, and parts of paths": {
        "app.py": "from pathlib import Path\none, two = {'m_a': ('x', 'y')}, {'m_b': ('z',)}\n"
                  "homes: dict[str, str] = {name: home for home, names in (one | two).items() for name in names}\n"
                  "__import__(homes['y'])\n__import__(homes['z'])\n"
                  "if not Path('./a.so').is_absolute():\n    import m_c\nif Path('/a').is_absolute():\n    import m_d\n"
                  "if Path('/x/a.cpython-312.so').suffixes == ['.cpython-312', '.so']:\n    import m_e\n"
                  "if Path('/x.d/.a').suffixes or Path('b.').suffixes == ['.']:\n    import m_x\n"
                  "if '.so' in Path('/x.so/..a.b').suffixes:\n    import m_x\n",
        **{f"m_{letter}.py": "" for letter in "abcdex"}},
    # As triad's: what is asked is not known, and none of the answers is the program's end.
    "a last resort that refuses": {
        "app.py": "import os\nclass Odd(Exception): pass\ndef take(value, kind):\n    try:\n"
                  "        if isinstance(value, kind):\n            import m_a\n        else:\n            raise Odd(value)\n"
                  "    except Odd:\n        raise\n    except Exception as error:\n        raise Odd(str(value)) from error\n"
                  "take(eval('1', dict(os.environ)), int)\nimport m_b\n",
        "m_a.py": "", "m_b.py": ""},
    "a refusal that somebody waits for": {
        "app.py": "import os\ndef seek():\n    if os.popen('false').read():\n        import m_x\n    else:\n"
                  "        raise ValueError('none')\ntry:\n    seek()\nexcept ValueError:\n    import m_a\n",
        "m_a.py": "", "m_x.py": ""},
    "loaders that a program gives for a file": {
        "app.py": "import sys\nfrom importlib.machinery import SourceFileLoader\n"
                  "from importlib.util import module_from_spec, spec_from_file_location\nclass Own(SourceFileLoader):\n"
                  "    def get_data(self, path):\n        return super().get_data(path)\n"
                  "def load(name, loader):\n    path = __file__.replace('app.py', name + '.py')\n"
                  "    spec = spec_from_file_location(name, path, loader=loader and loader(name, path))\n"
                  "    module = sys.modules[name] = module_from_spec(spec)\n    spec.loader.exec_module(module)\n"
                  "load('m_a', None)\nfrom m_a import value\nload('m_b', Own)\n",
        "m_a.py": "value = 1\n", "m_b.py": "import m_c\n", "m_c.py": ""},
    "a package that finds a name in what is not known": {
        "app.py": "from m_pkg import one\nimport m_a\nfrom m_other import two\nimport m_b\n",
        "m_pkg.py": "import os\nnames = os.popen('echo one two').read().split()\ndef __getattr__(name):\n    for known in names:\n"
                    "        if known == name:\n            return 3\n    raise AttributeError(name)\n",
        "m_other.py": "import os\nnames = os.popen('echo one two').read().split()\ndef __getattr__(name):\n    at = 0\n"
                      "    while at < len(names):\n        if names[at] == name:\n            return 3\n        at += 1\n"
                      "    raise AttributeError(name)\n",
        "m_a.py": "", "m_b.py": ""},
    # As unittest.mock and matplotlib._image.
    "submodules that a package does not serve": {
        "app.py": "from m_pkg import part\nfrom m_pkg import made, wanted\nimport m_b\n",
        "m_pkg/__init__.py": "import os\ndef __getattr__(name):\n    if name == 'made':\n        return 1\n"
                             "    if name == os.popen('echo wanted').read().strip():\n        return 2\n"
                             "    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')\n",
        "m_pkg/part.py": "import m_a\n", "m_a.py": "", "m_b.py": ""},
    # As glfw's, that asks each library of its version.
    "whether anything was found": {
        "app.py": "import os\nfound, table = [], {}\nfor path in ['a', 'b']:\n    version = os.popen('echo 3').read()\n"
                  "    if version >= '3':\n        found.append((version, path))\n        table[path] = version\n"
                  "if not found or not table:\n    raise ImportError('none of them')\nimport m_a\n"
                  "def told():\n    text = os.popen('echo 3').read()\n    if text:\n        return text\n    else:\n        return None\n"
                  "if told() is None:\n    raise ImportError('nothing is told')\nimport m_b\n",
        "m_a.py": "", "m_b.py": ""},
    # As what twisted.python puts in its own place.
    "a module that hides behind an object": {
        "app.py": "from m_pkg import part\nimport m_b\n",
        "m_pkg/__init__.py": "import sys\nclass Hidden:\n    def __init__(self, module):\n"
                             "        object.__setattr__(self, 'module', module)\n    def __getattribute__(self, name):\n"
                             "        return getattr(object.__getattribute__(self, 'module'), name)\n"
                             "    def __setattr__(self, name, value):\n"
                             "        setattr(object.__getattribute__(self, 'module'), name, value)\n"
                             "sys.modules[__name__] = Hidden(sys.modules[__name__])\n",
        "m_pkg/part.py": "import m_a\n", "m_a.py": "", "m_b.py": ""},
    "a loader of a native module that does more": {
        "app.py": "import importlib.util, sys\nfrom importlib.machinery import ExtensionFileLoader\n"
                  "there = importlib.util.find_spec('_queue').origin\nclass More(ExtensionFileLoader):\n"
                  "    def exec_module(self, module):\n        super().exec_module(module)\n        import m_a\n"
                  "class Find:\n    def find_spec(self, name, path, target=None):\n        if name == 'n_pkg._queue':\n"
                  "            return importlib.util.spec_from_file_location(name, there, loader=More(name, there))\n"
                  "sys.meta_path.insert(0, Find())\nimport n_pkg._queue\nimport m_b\n",
        "n_pkg/__init__.py": "", "m_a.py": "", "m_b.py": ""},
    # As anyio does: what its source tells type checkers is imported when it is asked for. Without `match`, which
    # Python 3.9 does not have.
    "names of the standard library that enum makes": {
        "app.py": "from ssl import CERT_NONE, OP_ALL, PROTOCOL_TLS, VerifyFlags\nfrom socket import AF_INET, AddressFamily\n"
                  "from signal import SIGTERM, Signals\nfrom http import HTTPStatus\nfrom re import IGNORECASE\n"
                  "from asyncio import open_unix_connection\nimport m_a\n",
        "m_a.py": ""},
    "names that a module puts into its own variables": {
        "app.py": "from m_made import one, two, three\nimport m_a\n",
        "m_made.py": "for name in ['one', 'two']:\n    locals()[name] = 1\n    del name\nglobals()['three'] = 3\n", "m_a.py": ""},
    "a package that reads its own source": {
        "app.py": "import m_pkg\nfrom m_pkg import part\n",
        "m_pkg/__init__.py": "from typing import TYPE_CHECKING\nfrom .m_lazy import lazily\n"
                             "if TYPE_CHECKING or not lazily():\n    from .m_part import part\n    from .m_x import other\n",
        "m_pkg/m_lazy.py": "import ast, inspect, sys\nfrom importlib import import_module\n"
                           "def found(module):\n    try:\n        source = inspect.getsource(module)\n"
                           "    except (OSError, TypeError):\n        return {}\n"
                           "    tree = compile(source, module.__file__, 'exec', ast.PyCF_ONLY_AST)\n"
                           "    assert isinstance(tree, ast.Module)\n    out = {}\n"
                           "    for node in tree.body:\n        if not isinstance(node, ast.If):\n            continue\n"
                           "        for one in node.body:\n            try:\n"
                           "                out.update((name.name, '.' + one.module) for name in one.names)\n"
                           "            finally:\n                pass\n    return out\n"
                           "def lazily():\n    scope = sys._getframe(1).f_globals\n"
                           "    names = found(sys.modules[scope['__name__']])\n    if not names:\n        return False\n"
                           "    def __getattr__(name):\n"
                           "        return getattr(import_module(names[name], scope['__name__']), name)\n"
                           "    scope['__getattr__'] = __getattr__\n    return True\n",
        "m_pkg/m_part.py": "part = 1\n", "m_pkg/m_x.py": "other = 1\n"},
    # As cuda.pathfinder's tables.
    "fields of data classes": {
        "app.py": "import dataclasses, typing\nfrom dataclasses import dataclass, field\n@dataclass\nclass Base:\n    name: str\n"
                  "    parts: tuple = ()\n    kind: typing.ClassVar[str] = 'none'\n"
                  "@dataclass(order=True)\nclass More(Base):\n    names: list = field(default_factory=list)\n"
                  "    size: int = field(default=3, init=False)\n    wide: dataclasses.InitVar[int] = 0\n"
                  "    def __post_init__(self, wide):\n        if wide == 7:\n            import m_a\n"
                  "one, two = Base(name='one', parts=('m_b',)), Base('two')\n"
                  "for each in (one, two):\n    for part in each.parts:\n        __import__(part)\n"
                  "if one.name == 'one' and two.name == 'two':\n    import m_c\n"
                  "more = More('three', ('x',), ['m_d'], wide=7)\n__import__(more.names[0])\n"
                  "if more.size == 3 and more.kind == 'none' and not More('four').names:\n    import m_e\n"
                  "if More('five').parts or 'two' not in {known.name for known in (one, two) if not known.parts}:\n"
                  "    import m_x\n"
                  "class Plain(Base):\n    def __init__(self):\n        self.parts = ('m_f',)\n__import__(Plain().parts[0])\n"
                  "class Above(Base):\n    def __init__(self, part):\n        super().__init__('above', (part,))\n"
                  "class Named(Base):\n    def __init__(self, part):\n        Base.__init__(self, name=part)\n"
                  "__import__(Above('m_g').parts[0])\n__import__(Named('m_h').name)\n"
                  "@dataclass\nclass Own:\n    part: str = 'm_x'\n    def __init__(self, part):\n        self.part = part\n"
                  "    def __post_init__(self):\n        import m_x\n__import__(Own('m_i').part)\n"
                  "@dataclass(init=False)\nclass Without(Named):\n    more: str = 'm_x'\n__import__(Without('m_j').name)\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghijx"}},
    # What torch.__version__ answers to a comparison is worked out by code of its own, and not by str's.
    "texts with methods of their own": {
        "app.py": "class Version(str):\n    def release(self):\n        return int(self.split('.')[0])\n"
                  "there, none = Version('2.11.0+cu130'), Version()\nif there.release() >= 2:\n    import m_a\n"
                  "if not none and there and 'cu130' in there:\n    import m_b\n"
                  "__import__(f\"m_{Version('c')}\")\nif there.startswith('1.'):\n    import m_x\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_x.py": ""},
    # As mpi4py's.
    "a finder that is a class": {
        "app.py": "import os, sys\nfrom importlib.util import spec_from_file_location\nclass Finder:\n    @classmethod\n"
                  "    def find_spec(cls, name, path, target=None):\n        if name == 'n_pkg.part':\n"
                  "            file = os.path.join(path[0], 'part.variant.py')\n"
                  "            return spec_from_file_location(name, file) if os.path.isfile(file) else None\n"
                  "sys.meta_path.append(Finder)\nfrom n_pkg import part\nimport m_b\n",
        "n_pkg/__init__.py": "", "n_pkg/part.variant.py": "import m_a\n", "m_a.py": "", "m_b.py": ""},
    "a finder of which nothing is known": {
        "app.py": "import os, sys\nclass Finder:\n    @classmethod\n    def find_spec(cls, name, path, target=None):\n"
                  "        if os.getpid() < 0:\n            return 1\n        return None\n"
                  "sys.meta_path.append(Finder)\ntry:\n    import m_gone\nexcept ImportError:\n    import m_a\n",
        "m_a.py": ""},
    "symbols that libraries have": {
        "app.py": "import ctypes\nfrom ctypes.util import find_library\nlib = ctypes.CDLL(None)\nif hasattr(lib, 'malloc'):\n    import m_a\n"
                  "if hasattr(lib, 'MPI_Surely_not_there') or hasattr(ctypes.CDLL('libm.so.6'), 'pow10'):\n    import m_x\n"
                  "try:\n    lib.MPI_Surely_not_there\n    import m_x\nexcept AttributeError:\n    import m_b\n"
                  "if getattr(ctypes.CDLL('libm.so.6'), 'cos', None) and not getattr(lib, 'no_such_name', None):\n    import m_c\n"
                  "try:\n    ctypes.CDLL('libm.so.6')['cos_or_so']\nexcept AttributeError:\n    import m_d\n"
                  "ctypes.pythonapi.PyObject_Repr.restype = ctypes.py_object\n"
                  "__import__({'libc.so.6': 'm_e'}.get(find_library('c') or 'libc.so.6', 'm_x'))\n"
                  "if find_library('nobody_has_this') is None:\n    import m_f\n",
        **{f"m_{letter}.py": "" for letter in "abcdefx"}},
    "what a codec is made by": {
        "app.py": "import importlib, sys\nfor name in ('_codecs_jp', '_codecs_kr'):\n    try:\n"
                  "        importlib.import_module(name).getcodec('cp949')\n        if '_multibytecodec' in sys.modules:\n"
                  "            import m_a\n    except LookupError:\n        import m_b\n",
        "m_a.py": "", "m_b.py": ""},
    "loops over a generator": {
        "app.py": "import importlib\ndef names():\n    import m_a\n    yield 'm_b'\n    import m_c\n    got = yield 'm_d'\n"
                  "    import m_e\n    return ['m_f']\ndef all_of():\n    more = yield from names()\n    yield from more\n"
                  "for name in all_of():\n    importlib.import_module(name)\nelse:\n    import m_g\n"
                  "def letters(n):\n    while n < 2:\n        yield 'hi'[n]\n        n += 1\n"
                  "[importlib.import_module('m_' + x) for x in letters(0)]\n"
                  "if list(letters(0)) + [*letters(1)] == ['h', 'i', 'i'] and ''.join(letters(0)) == 'hi':\n    import m_j\n"
                  "a, b = letters(0)\nif 'k' in (x for x in 'klm') and (a, b) == ('h', 'i'):\n    import m_k\n"
                  "def fails():\n    yield 1\n    import m_gone\ntry:\n    tuple(fails())\nexcept ImportError:\n    import m_l\n"
                  "class Row:\n    def __init__(self, *names):\n        self.names = names\n    def __iter__(self):\n"
                  "        for name in self.names:\n            yield 'm_' + name\n"
                  "for name in Row('m', 'n'):\n    importlib.import_module(name)\nsorted(Row())\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghijklmn"}},
    "a loop that leaves a generator": {
        "app.py": "import importlib\ndef tries(*names):\n    try:\n        for n in names:\n            yield n\n    except ImportError:\n"
                  "        import m_x\n    finally:\n        import m_closed\n    import m_x\n"
                  "def find():\n    for n in tries('m_gone', 'm_a', 'm_x'):\n        try:\n            return importlib.import_module(n)\n"
                  "        except ImportError:\n            continue\n    import m_x\nif find().__name__ == 'm_a':\n    import m_b\n"
                  "def forever():\n    number = 0\n    while True:\n        yield number\n        number += 1\n"
                  "for i in forever():\n    if i == 3:\n        import m_c\n        break\nelse:\n    import m_x\n"
                  "def outer():\n    try:\n        yield from forever()\n    finally:\n        import m_d\n"
                  "for i in outer():\n    break\nimport m_e\n"
                  "try:\n    for n in tries('m_a'):\n        import m_not_there\nexcept ImportError:\n    import m_f\nimport m_g\n",
        **{f"m_{name}.py": "" for name in (*"abcdefgx", "closed")}},
    "next": {
        "app.py": "import importlib\ndef some():\n    import m_a\n    yield 'm_b'\n    import m_x\nkept = some()\n"
                  "importlib.import_module(next(kept))\ndef none():\n    return\n    yield\n"
                  "if next(none(), None) is None:\n    import m_c\ntry:\n    next(none())\nexcept StopIteration:\n    import m_d\n"
                  "it = iter(['m_e', 'm_f', 'm_g'])\nimportlib.import_module(next(it))\nfor name in it:\n"
                  "    importlib.import_module(name)\nfor name in it:\n    import m_x\n"
                  "if next(it, 1) == 1 and next(iter({'m_h': 0})) == 'm_h':\n    import m_h\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghx"}},
    "context managers of generators": {
        "app.py": "import contextlib, importlib\nfrom contextlib import contextmanager\nflag = None\n"
                  "@contextmanager\ndef flagged(name):\n    global flag\n    flag = name\n    import m_enter\n    try:\n        yield name + '!'\n"
                  "    except ImportError:\n        import m_caught\n    finally:\n        flag = None\n        import m_left\n"
                  "with flagged('one') as n:\n    if flag == 'one' and n == 'one!':\n        import m_a\nif flag is None:\n    import m_b\n"
                  "with flagged('two'), contextlib.suppress(ValueError):\n    import m_gone\n    import m_x\nimport m_c\n"
                  "def inside():\n    with flagged('three') as n, flagged(n) as m:\n        return m\n    import m_x\n"
                  "if inside() == 'three!!':\n    import m_d\n"
                  "for i in range(3):\n    with flagged('loop'):\n        if i:\n            break\n        continue\nif i == 1:\n    import m_e\n"
                  "class Has:\n    @contextlib.contextmanager\n    def held(self):\n        import m_f\n        yield self\n        import m_h\n"
                  "with Has().held() as it:\n    if isinstance(it, Has):\n        import m_g\n"
                  "@flagged('decorates')\ndef wrapped():\n    if flag == 'decorates':\n        import m_i\nwrapped()\n"
                  "with contextlib.ExitStack() as stack:\n    if stack.enter_context(flagged('stack')) == 'stack!' and flag == 'stack':\n        import m_j\n"
                  "try:\n    with contextlib.closing(Has()):\n        raise KeyError\nexcept (KeyError, AttributeError):\n    import m_k\n",
        **{f"m_{name}.py": "" for name in (*"abcdefghijkx", "enter", "caught", "left")}},
    "match": {
        "app.py": "import sys, enum\nmatch sys.platform:\n    case 'win32' | 'cygwin':\n        import m_x\n    case 'linux' as name if name:\n        import m_a\n"
                  "    case _:\n        import m_x\n"
                  "match tuple(sys.version_info[:2]):\n    case (2, _):\n        import m_x\n    case (3, minor) if minor < 6:\n        import m_x\n"
                  "    case [3, *rest]:\n        import m_b\n"
                  "class Point:\n    def __init__(self, x):\n        self.x = x\n"
                  "class Kind(enum.Enum):\n    ONE = 1\n    TWO = 2\n"
                  "def kind(value):\n    match value:\n        case None:\n            return 'm_c'\n        case True | False:\n            return 'm_d'\n"
                  "        case 7 | -7:\n            return 'm_e'\n        case str():\n            return 'm_f'\n        case int(n) if n > 100:\n            return 'm_g'\n"
                  "        case {'a': 1, **other}:\n            return 'm_h'\n        case {'a': found}:\n            return found\n        case [first, *_, 'z']:\n            return first\n"
                  "        case Point(x='m_k'):\n            return value.x\n        case []:\n            return 'm_l'\n        case Point():\n            return 'm_m'\n"
                  "    return 'm_n'\n"
                  "for value in (None, False, -7, 'text', 101, {'a': 1, 'b': 2}, {'a': 'm_i'}, ['m_j', 1, 'z'], Point('m_k'), (), Point(0), 5):\n"
                  "    __import__(kind(value))\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghijklmnx"}},
    "descriptors": {
        "app.py": "import functools, importlib\nclass lazy:\n    def __init__(self, f):\n        self.f = f\n    def __set_name__(self, owner, name):\n"
                  "        self.name = name\n    def __get__(self, obj, cls):\n        if obj is None:\n            return cls\n"
                  "        importlib.import_module('m_' + self.name)\n        return self.f(obj)\n"
                  "class classproperty(property):\n    def __get__(self, obj, cls):\n        return self.fget(cls)\nclass Own(property):\n    pass\n"
                  "class P:\n    @lazy\n    def a(self):\n        import m_b\n        return 'm_c'\n    @classproperty\n    def made(cls):\n        import m_d\n        return cls\n"
                  "    @functools.cached_property\n    def kept(self):\n        import m_e\n        return 'm_f'\n    @property\n    def x(self):\n        return 'm_g'\n"
                  "    @x.setter\n    def x(self, value):\n        import m_x\n    @Own\n    def own(self):\n        return 'm_h'\n    @own.setter\n    def own(self, value):\n        import m_x\n"
                  "if P.a is P:\n    importlib.import_module(P().a)\nif P.made is P:\n    importlib.import_module(P().kept)\n"
                  "importlib.import_module(P().x)\nimportlib.import_module(P().own)\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghx"}},
    "names that a stub beside the package tells": {
        "app.py": "from m_pkg import f, conf\nfrom m_pkg import g\n",
        "m_pkg/__init__.py": "import ast, importlib, os\nclass Visitor(ast.NodeVisitor):\n    def __init__(self):\n        self.homes = {}\n"
                             "    def visit_ImportFrom(self, node):\n        for alias in node.names:\n            self.homes[alias.name] = node.module\n"
                             "def attach(path):\n    visitor = Visitor()\n    with open(path) as stub:\n        visitor.visit(ast.parse(stub.read()))\n"
                             "    homes = visitor.homes\n    def __getattr__(name):\n        if name not in homes:\n            raise AttributeError(name)\n"
                             "        if homes[name] is None:\n            return importlib.import_module(f'{__name__}.{name}')\n"
                             "        return getattr(importlib.import_module(f'{__name__}.{homes[name]}'), name)\n    return __getattr__\n"
                             "__getattr__ = attach(os.path.splitext(__file__)[0] + '.pyi')\n",
        "m_pkg/__init__.pyi": "from . import conf\nfrom .m_home import f\nfrom .m_deep import g, h\n",
        "m_pkg/conf.py": "import m_a\n", "m_pkg/m_home.py": "def f(): pass\nimport m_b\n",
        "m_pkg/m_deep.py": "g = h = 1\n", "m_a.py": "", "m_b.py": ""},
    "what is not reached": {
        "app.py": "import os\nUNKNOWN = os.popen('true').read()\n"
                  "def refuses(s):\n    if not s.endswith('[x]'):\n        raise TypeError('not mine')\n    raise ImportError('needed')\n"
                  "for one in [refuses]:\n    try:\n        one(UNKNOWN)\n    except TypeError:\n        pass\n"
                  "def returns(s):\n    if not s.endswith('[x]'):\n        return None\n    import m_gone\nreturns(UNKNOWN)\n"
                  "def turns(s):\n    if not s.endswith('[x]'):\n        return\n    raise TypeError('b')\n"
                  "try:\n    turns(UNKNOWN)\nexcept TypeError:\n    raise ImportError('needed')\n"
                  "for i in [1]:\n    if UNKNOWN == '':\n        continue\n    raise ImportError('needed')\n"
                  "while True:\n    if UNKNOWN == '':\n        break\n    raise ImportError('needed')\nimport m_a\n",
        "m_a.py": ""},
    "what is reached behind a loop": {
        "app.py": "import os\nUNKNOWN = os.popen('true').read()\ndef look():\n    for i in [1, 2]:\n        if UNKNOWN == 'x':\n            break\n"
                  "    try:\n        if UNKNOWN == 'y':\n            raise KeyError\n    except KeyError:\n        pass\n    import m_gone\nimport m_a\nlook()\n",
        "m_a.py": ""},
    "regular expressions": {
        "app.py": "import importlib, re\nfrom re import compile as make, VERBOSE\n"
                  "m = re.match(r'(?P<name>[a-z]+)-(\\d+)(\\.\\d+)?$', 'm_a-12')\n"
                  "if m and m.group(2) == '12' and m[3] is None and m.groups('x') == ('m_a', '12', 'x') and m.groupdict() == {'name': 'm_a'}:\n"
                  "    importlib.import_module(m['name'])\n"
                  "if re.search('b+$', 'aabb').group() == 'bb' and not re.match('b', 'ab') and re.fullmatch('a|ab', 'ab'):\n    import m_b\n"
                  "rows = make(r'(\\w+) [ ]* = # the key' '\\n' r'  (\\w+) ', VERBOSE | re.IGNORECASE)\n"
                  "if rows.findall('a=1, B =2') == [('a', '1'), ('B', '2')]:\n    import m_c\n"
                  "if re.split('[,;]', 'a,b;c') == ['a', 'b', 'c'] and re.split('(-)', 'a-b') == ['a', '-', 'b'] and re.findall('[a-c]', 'xaybzc') == ['a', 'b', 'c']:\n"
                  "    import m_d\n"
                  "if re.sub('[.-]', '_', 'm.e-f') == 'm_e_f' and re.compile(r'\\Aab\\Z').match('ab') and re.match('AB', 'ab', re.I):\n    import m_e\n"
                  "if re.match('[]x]+$', 'x]') and re.match('a{2}', 'aa', flags=re.M) and re.compile('a').pattern == 'a':\n    import m_f\n"
                  # What RE2 cannot, or reads otherwise, stays open.
                  "if not re.match('(?=b)a', 'a'):\n    m_later = 1\nif re.match('a{,2}$', 'aa') and re.match('a$', 'a\\n') and re.match(r'(a)\\1', 'aa'):\n    m_later = 2\n"
                  "import m_g\n",
        **{f"m_{letter}.py": "" for letter in "abcdefg"}},
    "operators of own classes": {
        "app.py": "import functools, importlib\nfrom collections import defaultdict\nclass V:\n    def __init__(self, s):\n        self.k = tuple(int(p) for p in s.split('.'))\n"
                  "    def __ge__(self, o):\n        return self.k >= o.k\n    def __lt__(self, o):\n        return self.k < o.k\n    def __eq__(self, o):\n        return self.k == o.k\n"
                  "    def __add__(self, o):\n        return V('9.%d' % o)\n    def __str__(self):\n        return 'm_e'\n"
                  "if V('2.1') >= V('2.0'):\n    import m_a\nif V('2.1') < V('2.0'):\n    import m_x\nif V('2.1') == V('2.1') and V('2.1') != V('2.2'):\n    import m_b\n"
                  "if V('2.1') == V('2.2') or V('2.1') != V('2.1'):\n    import m_x\nif (V('2.1') + 1).k == (9, 1):\n    import m_c\nimportlib.import_module(str(V('1')))\n"
                  "if f'{V(1 and '1')}' == 'm_e':\n    import m_f\n".replace("1 and '1'", '"1"') +
                  "functools.partial(importlib.import_module, 'm_g')()\nfunctools.partial(importlib.import_module, package='m_pkg')('.m_h')\n"
                  "suffix = defaultdict(lambda: 'm_i', win='m_x')\nimportlib.import_module(suffix['linux'])\n"
                  "lists = defaultdict(list)\nlists['a'].append('m_j')\nfor name in lists['a'] + lists['b']:\n    importlib.import_module(name)\n",
        "m_pkg/__init__.py": "", "m_pkg/m_h.py": "", **{f"m_{letter}.py": "" for letter in "abcefgijx"}},
    "values that a branch may have changed": {
        "app.py": "import os\nUNKNOWN = os.popen('true').read()\nr = False\nif UNKNOWN == 'P':\n    r = True\nif r:\n    import m_x\nelse:\n    import m_a\n"
                  "def check(v):\n    if UNKNOWN == v:\n        return True\n    return False\nif not check('P'):\n    import m_b\n    found = True\nelse:\n    import m_x\n"
                  "if found and not r and r is False and r == 0:\n    import m_c\n"
                  "ok = 'yes' if UNKNOWN == '' else 'no'\nif check('') is True:\n    later = 1\nelse:\n    import m_gone\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_x.py": ""},
    "all names of the caller": {
        "app.py": "from m_pkg import Value, other\n",
        "m_pkg/__init__.py": "from m_pkg.m_core import *\nfrom m_pkg.m_js import *\n",
        "m_pkg/m_pub.py": "import sys\ndef public(thing):\n    names = sys._getframe(1).f_globals\n    every = names.setdefault('__all__', [])\n"
                          "    if names.get('__name__') == 'm_pkg.m_core' and 'marked' in names:\n        import m_a\n"
                          "    every.append(thing.__name__)\n    return thing\n",
        "m_pkg/m_core.py": "from m_pkg.m_pub import public\nmarked = 1\n@public\nclass Value: pass\nclass Hidden: pass\n",
        "m_pkg/m_js.py": "from m_pkg import Value\ntry:\n    from m_pkg import Hidden\nexcept ImportError:\n    import m_b\nother = 1\n",
        "m_a.py": "", "m_b.py": ""},
    "files of a package": {
        "app.py": "import importlib.resources, sys\nfiles = importlib.resources.files('m_pkg')\n"
                  "if sys.version_info < (3, 10) or 'importlib.readers' in sys.modules:\n    import m_a\n"
                  "if (files / '__init__.py').exists():\n    import m_b\n",
        "m_pkg/__init__.py": "", "m_a.py": "", "m_b.py": ""},
    "methods of texts": {
        "app.py": "import os\nfrom pathlib import Path\nt = 'a.bc.def'\n"
                  "if (t.find('.', 2), t.rfind('.'), t.index('bc'), t.rindex('.', 0, 4), t.find('.', -3), t.find('x'), t.find('', 3)) == (4, 4, 2, 1, -1, -1, 3):\n"
                  "    import m_a\ntry:\n    t.index('x')\nexcept ValueError:\n    import m_b\n"
                  "if t.count('.') == 2 and 'aaaa'.count('aa') == 2 and not t.isalpha() and 'abc'.isalpha() and 'a1'.isalnum() and '12'.isdecimal():\n    import m_c\n"
                  "if 'a_1'.isidentifier() and not '1a'.isidentifier() and not ''.isidentifier() and 'A1'.isupper() and not '1'.isupper() and 'ab'.islower() and ' \\t'.isspace():\n"
                  "    import m_d\nif 'abC'.capitalize() == 'Abc':\n    import m_e\n"
                  "os.environ['HOME'] = '/no/where/'\nif os.path.expanduser('~') == '/no/where' and os.path.expanduser('~/x') == '/no/where/x' and os.path.expanduser('x~') == 'x~':\n"
                  "    import m_f\nif Path('~/x').expanduser() == Path('/no/where/x'):\n    import m_g\nos.environ['HOME'] = '/'\nif os.path.expanduser('~') == '/':\n    import m_h\n",
        **{f"m_{letter}.py": "" for letter in "abcdefgh"}},
    "an object in a module's place that takes its variables": {
        "app.py": "from m_lazy import known\nimport m_a\n"
                  "class Plain: pass\none = Plain()\none.__dict__['x'] = 1\nif one.x == 1:\n    import m_c\ndel one.__dict__['x']\nif not hasattr(one, 'x'):\n    import m_d\n",
        "m_lazy.py": "import sys, types\nknown = 1\nclass M(types.ModuleType):\n    def __getattr__(self, n): raise AttributeError(n)\n"
                     "new = M(__name__)\nnew.__dict__.update(sys.modules[__name__].__dict__)\nsys.modules[__name__] = new\n",
        "m_a.py": "", "m_c.py": "", "m_d.py": ""},
    "paths with other ends, and chained iterables": {
        "app.py": "from pathlib import Path\nfrom itertools import chain\nimport itertools\n"
                  "p = Path('/a/b.tar.gz')\nif [str(x) for x in (p.with_suffix(''), p.with_suffix('.x'), Path('c').with_suffix('.py'), Path('/d').with_suffix('.e'))] == ['/a/b.tar', '/a/b.tar.x', 'c.py', '/d.e']:\n    import m_a\n"
                  "if (str(p.with_name('q.r')), str(Path('s').with_name('t'))) == ('/a/q.r', 't'):\n    import m_b\n"
                  "if list(chain([1], (x for x in (2, 3)), {})) == [1, 2, 3] and list(chain()) == []:\n    import m_c\n"
                  "for name in itertools.chain.from_iterable([['m_d'], ('m_e',)]):\n    __import__(name)\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_e.py": ""},
    "what may be done with files": {
        "app.py": "import os\nif not os.access('/no/where', os.R_OK) and os.access('/', os.F_OK) and not os.access('/no', os.F_OK):\n    import m_a\n"
                  "os.environ['HOME'] = '/tmp/'\nif os.access('/tmp', os.W_OK | os.X_OK):\n    import m_b\nelse:\n    import m_c\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": ""},
    "names of native code before modules": {
        "app.py": "from pkg import bisect_left\nimport m_a\ntry:\n    from pkg import m_broken\nexcept ImportError:\n    import m_b\n"
                  "from pkg import m_broken\n",
        "pkg/__init__.py": "from _bisect import *\n", "pkg/bisect_left.py": "import m_gone\n",
        "pkg/m_broken.py": "import m_gone\n", "m_a.py": "", "m_b.py": ""},
    "packages that are walked through": {
        "app.py": "import importlib, pkgutil, m_pkg\nfor m in pkgutil.iter_modules(m_pkg.__path__, 'm_pkg.'):\n    if m.ispkg:\n        importlib.import_module(m.name)\n"
                  "for finder, name, is_package in pkgutil.walk_packages(m_pkg.__path__, m_pkg.__name__ + '.'):\n    importlib.import_module(name)\n"
                  "import m_a\n",
        "m_pkg/__init__.py": "", "m_pkg/m_sub/__init__.py": "", "m_pkg/m_sub/m_deep.py": "", "m_pkg/m_z.py": "", "m_a.py": ""},
    "own errors that are waited for": {
        "app.py": "import os\nclass Own(ImportError):\n    pass\nUNKNOWN = os.popen('true').read()\n"
                  "def load():\n    if UNKNOWN == 'x':\n        raise Own('a')\n    else:\n        raise Own('b')\n"
                  "try:\n    load()\nexcept Own:\n    import m_a\nelse:\n    import m_x\n"
                  "rows, seen = [], set()\nfor line in os.popen('true'):\n    rows.append(line)\nfor row in rows:\n    seen.add(row)\nif seen:\n    m_later = 1\nelse:\n    import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "iterators that are used up": {
        "app.py": "import importlib\ndef g():\n    yield 'm_a'\n    yield 'm_b'\nx = g()\nfor name in list(x):\n    importlib.import_module(name)\nfor name in x:\n    import m_x\n"
                  "words = iter(['-x', 'm_c', '-y'])\nfor word in words:\n    if word == '-x':\n        importlib.import_module(next(words))\n    elif word != '-y':\n        import m_x\n"
                  "it = iter([1, 2, 3])\nfor i in it:\n    next(it, 0)\nif list(it) == [] and [*it] == []:\n    import m_d\n"
                  "def two():\n    yield True\n    import m_x\nif any(two()):\n    import m_e\ns = two()\nif s.send(None) and not s.close():\n    import m_f\n"
                  "class Set:\n    def __set__(self, obj, value):\n        import m_g\n    def __get__(self, obj, cls):\n        return 'm_h'\nclass C:\n    at = Set()\n"
                  "    @property\n    def x(self):\n        return self.kept\n    @x.setter\n    def x(self, value):\n        self.kept = value + 'i'\n    def __iadd__(self, other):\n        import m_j\n        return self\n"
                  "c = C()\nc.at = 1\nimportlib.import_module(c.at)\nc.x = 'm_'\nimportlib.import_module(c.x)\nc += 1\n"
                  "class D(dict):\n    def __missing__(self, key):\n        return 'm_' + key\nimportlib.import_module(D(a=1)['k'])\n",
        **{f"m_{letter}.py": "" for letter in "abcdefghijkx"}},
    "doubt that ends": {
        "app.py": "import os, m_lazy\nUNKNOWN = os.popen('true').read()\nm_lazy.foo\nhasattr(m_lazy, 'bar')\n"
                  "for i in [1, 2]:\n    if UNKNOWN == 'x':\n        break\n    if i == 2 and UNKNOWN == 'y':\n        continue\nx = True\nif UNKNOWN == 'x':\n    x = True\n"
                  "if x:\n    import m_a\nimport m_gone\n",
        "m_lazy.py": "import os\ndef __getattr__(name):\n    if os.popen('true').read() == 'x':\n        raise AttributeError(name)\n    return 5\n",
        "m_a.py": ""},
    "doubt in rounds and behind them": {
        "app.py": "import os\nUNKNOWN = os.popen('true').read()\nfor i in [1, 2]:\n    if UNKNOWN == '':\n        break\nelse:\n    import m_gone\n"
                  "def second():\n    for i in range(2):\n        if i == 1:\n            import m_gone\n        if UNKNOWN == '':\n            return\nsecond()\n"
                  "def tries():\n    try:\n        if UNKNOWN == '':\n            return\n    except ValueError:\n        pass\n    else:\n        import m_gone\ntries()\n"
                  "def g():\n    if UNKNOWN == '':\n        return\n    yield 1\nfor x in g():\n    import m_gone\n"
                  "v = None\nif UNKNOWN == '':\n    v = 1\nif v is None:\n    import m_gone\nclass C:\n    ok = False\nc = C()\nc.v = 0\nif UNKNOWN == '':\n    c.v = 1\nif c.v == 0:\n    import m_gone\n"
                  "w = 1\nif UNKNOWN == '':\n    w = 2\nif w + 1 == 2:\n    import m_gone\n__import__('os' if w == 2 else 'm_gone')\nimport m_a\n",
        "m_a.py": ""},
    "what the body of a with statement raises": {
        "app.py": "import os\nfrom contextlib import contextmanager, suppress\nUNKNOWN = os.popen('true').read()\n"
                  "@contextmanager\ndef cm():\n    if UNKNOWN == 'x':\n        yield\n        return\n    yield\n"
                  "class C:\n    pass\nwith suppress(AttributeError):\n    C().nope\n    import m_x\nwith cm():\n    import m_a\n    import m_gone\nimport m_x\n",
        "m_a.py": "", "m_x.py": ""},
    "names that a helper gives its caller": {
        "app.py": "from m_pkg import c\nimport m_a\n",
        "m_pkg/__init__.py": "import os\nfrom .m_helper import give\ngive(os.popen('echo m_pkg').read().strip())\n",
        "m_pkg/m_helper.py": "import sys\ndef names(module):\n    if 'c' not in module.__dict__:\n        yield 'c'\n"
                             "def give(name):\n    module = sys.modules[name]\n    for one in names(module):\n        setattr(module, one, 1)\n",
        "m_a.py": ""},
    "json": {
        "app.py": "import json, os\nwith open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'c.json')) as f:\n"
                  "    for row in json.load(f)['load']:\n        __import__(row['name'])\n",
        "c.json": '{"load": [{"name": "m_a"}, {"name": "m_b"}]}', "m_a.py": "", "m_b.py": ""},
    "an attribute that a module does not have": {
        "app.py": "import m_pkg, inspect\nm_pkg.there\ninspect.signature\nm_pkg.gone\nimport m_x\n",
        "m_pkg.py": "from math import *\nthere = globals().get('x')\nx = globals()['there']\ndef later():\n    return x in globals()\n",
        "m_x.py": ""},
    "a name that a native module does not have": {
        "app.py": "from math import sqrt\nimport m_a\nfrom math import gone_from_math\nimport m_x\n", "m_a.py": "", "m_x.py": ""},
    "a name that is asked for where it may be missing": {
        "app.py": "import math, collections\nimport m_own as own\nfor module in (math, collections, own):\n"
                  "    if hasattr(module, 'gone_name'):\n        import m_x\n"
                  "    if getattr(module, 'gone_name', None):\n        import m_x\n"
                  "    try:\n        module.gone_name\n    except AttributeError:\n        import m_a\n"
                  "try:\n    from math import gone_name\nexcept ImportError:\n    import m_b\nimport m_c\n",
        "m_own.py": "from math import *\n", "m_x.py": "", "m_a.py": "", "m_b.py": "", "m_c.py": ""},
    "a name that a package takes away": {
        "app.py": "import m_pkg\nm_pkg.fine\nif hasattr(m_pkg, 'gone'):\n    import m_x\nimport m_a\nm_pkg.gone\nimport m_x\n",
        "m_pkg.py": "import os\nfor name in os.popen('echo fine').read().split():\n    globals()[name] = 1\n_gone = {'gone': 'use m_other'}\n"
                    "def __getattr__(name):\n    if name in _gone:\n        raise AttributeError(_gone[name])\n"
                    "    raise AttributeError('no ' + name)\n",
        "m_a.py": "", "m_x.py": ""},
    "names that functions give to modules": {
        "app.py": "import m_own, m_other, m_loop, m_from, m_table, m_given\nm_own.made\nm_other.made\nm_other.more\nm_loop.made\nm_from.made\n"
                  "m_table.made\nm_given.made\nimport m_a\n",
        # None of these is seen: what `unknown` gives is not known.
        "m_unknown.py": "import os\nunknown = os.popen('echo made').read().split()\n",
        "m_own.py": "import sys\nfrom m_unknown import unknown\ndef give(name):\n    globals()[name] = 1\nsys.exc_info\n"
                    "for one in unknown:\n    give(one)\n",
        "m_other.py": "import sys\nfrom m_unknown import unknown\nme = sys.modules[__name__]\nfor one in unknown:\n    setattr(me, one, 1)\n"
                      "if unknown:\n    import m_other\n    m_other.__dict__['more'] = 1\n",
        "m_loop.py": "from m_unknown import unknown\nnames = {'known': 1}\nfor one in unknown:\n    names[one] = 1\n"
                     "for name in names:\n    globals()[name] = names[name]\n",
        "m_from.py": "from m_unknown import unknown\nnames = {}\nexec('\\n'.join(one + ' = 1' for one in unknown), names)\nglobals().update(names)\n",
        "m_table.py": "from m_unknown import unknown\nclass Table(dict):\n    pass\nglobals().update(Table((one, 1) for one in unknown))\n",
        "m_given.py": "import m_gives\nm_gives.fill(globals())\n",
        "m_gives.py": "from m_unknown import unknown\ndef fill(variables):\n    for one in unknown:\n        variables[one] = 1\n",
        "m_a.py": ""},
    "names that a mapping of one's own has": {
        "app.py": "import m_pkg\nm_pkg.b\nimport m_a\nm_pkg.gone\n",
        "m_pkg.py": "from collections.abc import Mapping\nclass Known(Mapping):\n    def __init__(self, all):\n        self.all = all\n"
                    "    def __getitem__(self, key):\n        return self.all[key]\n    def __iter__(self):\n        return iter(self.all)\n"
                    "    def __len__(self):\n        return len(self.all)\nknown = Known({'a': 1, 'b': 2})\nglobals().update(known)\n",
        "m_a.py": ""},
    "a module of another class, and one that is filled by a long loop": {
        "app.py": "import m_pkg, m_long\nm_pkg.made\nm_long.made\nimport m_a\n", "m_a.py": "",
        "m_pkg.py": "import sys, types\nclass Own(types.ModuleType):\n    @property\n    def made(self):\n        return 1\n"
                    "sys.modules[__name__].__class__ = Own\n",
        "m_long.py": "def fill():\n    count = 0\n    for i in range(2000):\n        for k in range(1000):\n            count += i * k\n"
                     "    globals()['made'] = count\nfill()\n"},
    "names that a comprehension binds": {
        "app.py": "import os\ndef search(names):\n    if [found := name for name in names if name != 'x']:\n        __import__(found)\n"
                  "    if any((first := name) for name in names):\n        return first\nif search(['y', 'm_a', 'x']) == 'x':\n    import m_x\n"
                  "sizes = [size for name in os.listdir('/proc/self') if (size := len(name)) > 1]\nimport app\napp.size\nimport m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "patterns that look around": {
        "app.py": "import re\nlegacy = re.compile(r'm_\\.(\\w+)\\.[)\\]](?!old_(a|b[)]))(?<=[)])(\\w+)_fast')\n"
                  "if legacy.fullmatch('m_x') is not None or re.match('(?=m_x)a', 'b'):\n    import m_x\nimport m_a\n"
                  "if not re.match('m_(?!x)', 'm_x'):\n    import m_a\nif re.match('[](?!]+a(?=b)', 'zab') is None:\n    import m_b\n",
        "m_x.py": "", "m_a.py": "", "m_b.py": ""},
    "a mapping whose iterator is none": {
        "app.py": "import m_pkg\n",
        "m_pkg.py": "class Odd:\n    def __getitem__(self, key):\n        return key\n    def keys(self):\n        return ['m']\n"
                    "    def __iter__(self):\n        return {'m': 1}\nglobals().update(Odd())\nimport m_a\n",
        "m_a.py": ""},
    "a finder that is asked often": {  # transformers' for names that it had
        "app.py": "import m_find, m_a, m_b, m_c, m_d, m_e\nimport m_gone\n",
        "m_find.py": "import importlib.util, re, sys\n"
                     "OLD = re.compile(rf'{re.escape(__name__)}\\.models\\.(\\w+)\\.image_(?!pil_)(\\w+)_fast')\n"
                     "NAMES = {'m_old': 'm_a'}\n"
                     "def resolve(name):\n    if OLD.fullmatch(name) is not None:\n        return 'm_x'\n"
                     "    package, _, last = name.rpartition('.')\n"
                     "    if package == __name__ and last in NAMES:\n        return NAMES[last]\n    return None\n"
                     "class Finder:\n    def __init__(self, ask):\n        self.ask = ask\n"
                     "    def find_spec(self, name, path=None, target=None):\n        found = self.ask(name)\n"
                     "        if found is None or importlib.util.find_spec(found) is None:\n            return None\n"
                     "        return importlib.util.spec_from_loader(name, self)\n"
                     "sys.meta_path.append(Finder(resolve))\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_e.py": "", "m_x.py": ""},
    "finders of decorated classes": {  # importlib_metadata's beside setuptools'
        "app.py": "import sys\ndef install(finder):\n    sys.meta_path.append(finder())\n    return finder\n"
                  "@install\nclass Nothing:\n    @staticmethod\n    def find_spec(*names, **more):\n        return None\n"
                  "import m_find\nm_find.Vendor().install()\nfrom m_virtual import m_a\nimport m_gone\n",
        "m_find.py": "import importlib, importlib.util, sys\nclass Vendor:\n"
                     "    def find_spec(self, name, path=None, target=None):\n"
                     "        return importlib.util.spec_from_loader(name, self) if name == 'm_virtual.m_a' else None\n"
                     "    def create_module(self, spec):\n        return importlib.import_module('m_b')\n"
                     "    def exec_module(self, module):\n        pass\n"
                     "    def install(self):\n        if self not in sys.meta_path:\n            sys.meta_path.append(self)\n",
        "m_virtual/__init__.py": "", "m_b.py": ""},
    "an operand that may not be evaluated": {  # werkzeug 2.0's werkzeug.debug
        "app.py": "import json, os\nvalue = os.getpid() > 1 or json.m_gone\nvalue = os.getpid() < 1 and json.m_gone\n"
                  "if os.getpid() < 1 and json.m_gone:\n    import m_x\nimport m_a\njson.m_gone\n",
        "m_a.py": "", "m_x.py": ""},
    "what is a class": {
        "app.py": "import json\nclass M:\n    code = 1\nfor one in [json, M]:\n    try:\n        good = issubclass(one, M)\n"
                  "    except TypeError:\n        good = False\n    if not good or one.code is None:\n        continue\n"
                  "    import m_a\n",
        "m_a.py": ""},
    "attributes that object sets": {  # isort's frozen settings
        "app.py": "import m_pkg\nfrom dataclasses import dataclass\n@dataclass(frozen=True)\nclass Settings:\n    name: str = 'x'\n"
                  "    def __post_init__(self):\n        object.__setattr__(self, 'name', 'm_' + 'a')\n"
                  "        __import__(self.name)\nSettings()\n"
                  "class Plain:\n    name = 'x'\n    def __init__(self):\n        object.__setattr__(self, 'name', 'one')\n"
                  "        getattr(m_pkg, self.name)\nPlain()\n",
        "m_pkg.py": "one = 1\n", "m_a.py": ""},
    "slices of lists": {
        "app.py": "import sys\nplaces = sys.path[:]\nsys.path[:] = ['/gone']\ntry:\n    import m_a\nexcept ImportError:\n    import sys\n"
                  "sys.path[0:0] = places\nimport m_a\nnames = ['m_x', 'm_b', 'm_c', 'm_y', 'm_z']\ndel names[0], names[-1]\n"
                  "del names[2:]\nnames[1:] = ['m_d', *names[1:]]\nnames[-1:] = []\nfor name in names:\n    __import__(name)\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_x.py": "", "m_y.py": "", "m_z.py": ""},
    "a replaced function that imports": {  # lazily, for a while, as tensorflow_datasets does
        "app.py": "import builtins, contextlib, functools, types\nreal = builtins.__import__\n"
                  "def fake(name, globals=None, locals=None, fromlist=(), level=0, extra=0):\n"
                  "    if name == 'm_lazy':\n        return types.ModuleType(name)\n"
                  "    return real('m_b' if name == 'm_gone' else name, globals, locals, fromlist, level)\n"
                  "@contextlib.contextmanager\ndef lazy():\n    builtins.__import__ = functools.partial(fake, extra=1)\n    try:\n        yield\n"
                  "    finally:\n        builtins.__import__ = real\n"
                  "with lazy():\n    import m_lazy, m_gone, m_pkg.m_sub as sub\n    from m_pkg import m_a, value\n"
                  "    try:\n        import m_none\n    except ImportError:\n        import m_c\n"
                  "if value != 1 or sub.value != 2:\n    import m_x\nimport m_lazy\n",
        "m_lazy.py": "import m_d\n", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_x.py": "",
        "m_pkg/__init__.py": "from . import m_near\nvalue = 1\n", "m_pkg/m_sub.py": "value = 2\n", "m_pkg/m_a.py": "",
        "m_pkg/m_near.py": ""},
    "whether a variable is there": {
        "app.py": "m_one = 1\nif 'm_one' in globals():\n    import m_a\nif 'm_two' in globals():\n    import m_x\n"
                  "if 'm_two' not in globals():\n    import m_b\n",
        "m_a.py": "", "m_b.py": "", "m_x.py": ""},
    "a finder that looks for a pattern": {
        "app.py": "import re, sys\nfrom importlib.machinery import ModuleSpec\nold = re.compile(r'm_pkg\\.(?!new_)(\\w+)_old')\ndef new_name(name):\n"
                  "    if (found := old.fullmatch(name)) is not None:\n        return 'm_a'\n    return None\nclass Finder:\n"
                  "    def find_spec(self, name, path=None, target=None):\n        new = new_name(name)\n        if new is None:\n            return None\n"
                  "        return ModuleSpec(name, self, loader_state=new)\nsys.meta_path.append(Finder())\nimport m_a\nimport m_gone\n",
        "m_a.py": ""},
    "members of an enumeration": {
        "app.py": "import m_pkg\nm_pkg.RED\nif m_pkg.names == ['RED', 'BLUE']:\n    import m_a\nfrom m_pkg import GREEN\n",
        "m_pkg.py": "import enum, sys\nclass Color(enum.IntEnum):\n    RED = 1\n    BLUE = 2\n    def paint(self):\n        pass\n"
                    "module, names = sys.modules[__name__], []\nfor color in Color:\n    setattr(module, color.name, color.value)\n"
                    "    names.append(color.name)\n",
        "m_a.py": ""},
    "a star import of what takes its own names": {
        "app.py": "from m_pkg import sqrt, own\nimport m_a\nfrom m_pkg import gone_name\n",
        "m_pkg.py": "from m_inner import *\n",
        "m_inner.py": "from math import *\nown = 1\n__all__ = [name for name in dir() if not name.startswith('_')]\n", "m_a.py": ""},
    "a module that is missing for another error": {
        "app.py": "import m_a\nimport m_b\n", "m_a.py": "",
        "m_b.py": "class NotThere(Exception):\n    pass\ndef check():\n    try:\n        import m_gone\n    except ImportError as error:\n"
                  "        raise NotThere('install m_gone') from error\ncheck()\nimport m_x\n", "m_x.py": ""},
    "a module that refuses": {
        "app.py": "import m_a\nimport m_b\n", "m_a.py": "",
        "m_b.py": "import os\nif 'M_SET' in os.environ:\n    raise RuntimeError('not with M_SET')\nimport m_x\n", "m_x.py": ""},
    "refusals that are caught": {
        "app.py": "try:\n    import m_a\nexcept ValueError:\n    import m_b\ntry:\n    import m_c\nexcept Exception:\n    import m_d\n"
                  "try:\n    import m_e\nexcept AttributeError:\n    import m_f\n",
        "m_a.py": "try:\n    import m_gone\nexcept ImportError:\n    raise ValueError('m_gone')\n", "m_b.py": "",
        "m_c.py": "raise RuntimeError('no')\n", "m_d.py": "", "m_e.py": "import collections\ncollections.Gone\nimport m_x\n", "m_f.py": "", "m_x.py": ""},
    "which module is missing": {
        "app.py": "def try_one(name):\n    try:\n        __import__(name)\n    except ImportError as error:\n        if error.name != 'm_gone':\n"
                  "            raise\ntry_one('m_gone')\ntry_one('m_a')\ntry_one('m_other_gone')\nimport m_x\n", "m_a.py": "", "m_x.py": ""},
    "coroutines": {
        "app.py": "import asyncio\nasync def inner(name):\n    return __import__(name)\nasync def main(first, *, second):\n    await inner(first)\n"
                  "    found = await asyncio.gather(inner(second), inner('m_c'))\n    task = asyncio.create_task(inner('m_d'))\n    await task\n"
                  "    async with Manager() as manager:\n        import m_e\nclass Manager:\n    async def __aenter__(self):\n        return self\n"
                  "    async def __aexit__(self, *error):\n        pass\nunused = main('m_x', second='m_x')\nunused.close()\n"
                  "asyncio.run(main('m_a', second='m_b'))\nloop = asyncio.new_event_loop()\nloop.run_until_complete(inner('m_f'))\nloop.close()\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_e.py": "", "m_f.py": "", "m_x.py": ""},
    "coroutines that are changed, and that never end": {
        "app.py": "import asyncio\nasync def deep():\n    await deep()\nclass Own:\n    func = args = keywords = 1\n    def __await__(self):\n        yield\n"
                  "try:\n    asyncio.run(deep())\nexcept RecursionError:\n    pass\nasync def main():\n    try:\n        deep().args = deep().func = 1\n"
                  "    except AttributeError:\n        pass\n    import m_a\nasyncio.run(main())\n",
        "m_a.py": ""},
    "a coroutine that fails": {
        "app.py": "import asyncio\nasync def main():\n    import m_a\n    import m_gone\nasyncio.run(main())\nimport m_x\n", "m_a.py": "", "m_x.py": ""},
    "threads": {
        "app.py": "import threading\ndef work(name, then=None):\n    __import__(name)\n    if then:\n        __import__(then)\n"
                  "def run(thread):\n    thread.start()\n    thread.join()\nrun(threading.Thread(target=work, args=('m_a',), kwargs={'then': 'm_b'}))\n"
                  "class Own(threading.Thread):\n    def run(self):\n        import m_c\nrun(Own())\n"
                  "def fail():\n    import m_gone\nthreading.excepthook = lambda *args: None\nrun(threading.Thread(target=fail))\n"
                  "threading.Thread(target=work, args=('m_x',))\nimport m_d\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_x.py": ""},
    "executors": {
        "app.py": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n    future = pool.submit(__import__, 'm_a')\n"
                  "    future.result()\n    for module in pool.map(__import__, ['m_b', 'm_c']):\n        pass\nimport m_d\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": ""},
    "reduce and eval": {
        "app.py": "import functools\ndef join(sum, name):\n    __import__(name)\n    return sum + name\n"
                  "if functools.reduce(join, ['m_a', 'm_b'], '') == 'm_am_b':\n    import m_c\ndef inner(name):\n    return eval('__import__(name)')\n"
                  "inner('m_d')\nif eval(' 1 + 1') == 2:\n    import m_e\n",
        "m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "m_e.py": ""},
}

# The first finder on sys.meta_path is asked for every module that is not loaded yet.
ASK = ("import sys, json\nfailure, order = None, []\n"
       "class Listen:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
       "        order.append(name)\nsys.meta_path.insert(0, Listen)\n"
       # imp loads what it has found through this, and asks no finder.
       "import importlib.util\nfrom_file = importlib.util.spec_from_file_location\n"
       "def listen(name, *rest, **more):\n    order.append(name)\n    return from_file(name, *rest, **more)\n"
       "importlib.util.spec_from_file_location = listen\n"
       "try:\n    import app\nexcept BaseException as error:\n    failure = type(error).__name__\n"
       "print(json.dumps([list(dict.fromkeys(order)), failure]))")


def write(files: dict[str, str], root: Path) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ask(command: list[str], root: Path) -> str:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root), "M_SET": "yes",
                 "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCENARIOS)
def test_plan_imports_what_python_does(name: str, cohabit: str, tmp_path: Path) -> None:
    write(SCENARIOS[name], tmp_path)
    order, failure = json.loads(ask([sys.executable, "-c", ASK], tmp_path))
    there = {name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
             for name in SCENARIOS[name] if name.endswith(".py")}
    modules = [m for m in order if m.startswith("m_") and m in there]
    plan_file = tmp_path / "plan.json"
    ask([cohabit, "doctor", sys.executable, "--imports", "app", "--plan", str(plan_file)], tmp_path)
    plan = json.loads(plan_file.read_text())
    planned = [m["name"] for m in plan["modules"] if m["name"].startswith("m_")]
    assert list(dict.fromkeys(planned)) == modules, plan["undecided"]
    assert (plan["failure"] or {"error": ""})["error"].split(":")[0] == (failure or "")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="code of x86-64 is read")
def test_import_statement_of_cython_needs_no_requirement(cohabit: str, build_dir: Path, tmp_path: Path) -> None:
    """A statement that was read imports what is there, whether the metadata asks for it or not (oracledb's certifi)."""
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    write({"own/__init__.py": "from . import sample\n", "plain.py": "", "package/__init__.py": "", "only_later.py": ""}, site)
    shutil.copy(build_dir / "tests" / "libsample_cython2.so", site / "own" / "sample.abi3.so")
    for name, listed in (("own", "own/sample.abi3.so"), ("plain", "plain.py"), ("package", "package/__init__.py"),
                         ("only_later", "only_later.py")):
        write({"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "RECORD": f"{listed},,\n"},
              site / f"{name}-1.0.dist-info")
    plan_file = tmp_path / "plan.json"
    ask([cohabit, "doctor", str(tmp_path / "env"), "--imports", "own", "--plan", str(plan_file)], tmp_path)
    planned = {m["name"]: m["importer"] for m in json.loads(plan_file.read_text())["modules"]}
    assert {name: planned.get(name) for name in ("plain", "package", "only_later")} == {
        "plain": "own.sample", "package": "own.sample", "only_later": None}


# No handler catches them, and nothing is run at the end.
ENDS = {"os._exit(0)": "import os\nos._exit(0)\n", "os._exit(7)": "from os import _exit as end\nend(status=7)\n",
        "os.abort()": "def leave():\n    import os\n    os.abort()\nleave()\n"}


@pytest.mark.parametrize("call", ENDS)
def test_plan_ends_where_the_process_does(call: str, cohabit: str, tmp_path: Path) -> None:
    write({"app.py": "import contextlib, m_a\ntry:\n    with contextlib.suppress(BaseException):\n        import m_end\n"
                     "except:\n    import m_x\nfinally:\n    import m_x\n",
           "m_end.py": ENDS[call] + "import m_x\n", "m_a.py": "", "m_x.py": "import m_y\n", "m_y.py": ""}, tmp_path)
    plan_file = tmp_path / "plan.json"
    said = ask([cohabit, "doctor", sys.executable, "--imports", "app,m_y", "--plan", str(plan_file)], tmp_path)
    plan = json.loads(plan_file.read_text())
    assert [m["name"] for m in plan["modules"] if m["name"].startswith("m_")] == ["m_a", "m_end"]
    line = len(ENDS[call].splitlines()) - (call == "os.abort()")
    assert plan["failure"] == {"error": call, "at": {"file": str(tmp_path / "m_end.py"), "line": line}}
    assert f"error[PY302]: the process ends in line {line} of m_end.py, by {call}, when" in said
    assert said.strip().endswith("import app; import m_y: unsound")


@pytest.mark.parametrize("text, failure", [("import sys\nsys.exit(3)\n", "SystemExit: 3"), ("raise SystemExit\n", ""),
                                           ("import sys\nsys.exit(sys.argv)\n", "SystemExit"), ("import os\nos._exit(0)\n", "os._exit(0)")])
def test_program_that_a_module_ends(text: str, failure: str, cohabit: str, tmp_path: Path) -> None:
    """Where the module does it without an error, the program may mean it: that is noted."""
    write({"main.py": "import m_end\nimport m_x\n", "m_end.py": text, "m_x.py": ""}, tmp_path)
    plan_file = tmp_path / "plan.json"
    ask([cohabit, "doctor", sys.executable, str(tmp_path / "main.py"), "--plan", str(plan_file)], tmp_path)
    plan = json.loads(plan_file.read_text())
    assert [m["name"] for m in plan["modules"] if m["name"].startswith("m_")] == ["m_end"]
    assert (plan["failure"] or {"error": ""})["error"].split(": [")[0] == failure
    assert bool(failure) != ("the program ends here: SystemExit" in str(plan["undecided"]))


def run_check(script: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], capture_output=True,
                          text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@pytest.mark.parametrize("package", ["asyncio", "importlib", "email", "ctypes", "unittest"])
def test_parser_reads_as_cpython(package: str, build_dir: Path) -> None:
    library = Path(sysconfig.get_path("stdlib")) / package
    run_check("check_syntax.py", str(build_dir / "tests" / "imports" / "syntax_dump"), str(library))
