"""Scripts and modules (-m) against CPython itself: the same program is really run and planned."""
from __future__ import annotations

import json
import os
import py_compile
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import jsonschema
import pytest

# name: (files, command line after the interpreter). Modules that start with "m_" count.
PROGRAMS: dict[str, tuple[dict[str, str], list[str]]] = {
    "guard": ({"app.py": "import m_a\ndef main():\n    import m_b\nif __name__ == '__main__':\n    main()\n"
                         "if __name__ != '__main__':\n    import m_x\n",
               "m_a.py": "if __name__ == '__main__':\n    import m_x\n", "m_b.py": "", "m_x.py": ""},
              ["app.py"]),
    "the directory of the script comes first": (
        {"sub/app.py": "import m_a\nimport colorsys\n", "sub/m_a.py": "", "sub/colorsys.py": "import m_b\n",
         "sub/m_b.py": "", "m_a.py": "import m_x\n", "m_x.py": ""},
        ["sub/app.py"]),
    "arguments": ({"app.py": "import sys\nif len(sys.argv) == 3 and sys.argv[1] == 'go':\n    import m_a\n"
                             "__import__(sys.argv[2])\n",
                   "m_a.py": "", "m_b.py": ""},
                  ["app.py", "go", "m_b"]),
    "__file__": ({"sub/app.py": "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), 'more'))\n"
                                "import m_a\n",
                  "sub/more/m_a.py": ""},
                 ["sub/app.py"]),
    "a package": ({"m_pkg/__init__.py": "import m_a\n", "m_a.py": "", "m_b.py": "",
                   "m_pkg/__main__.py": "from . import m_inner\nimport m_b\n", "m_pkg/m_inner.py": ""},
                  ["-m", "m_pkg"]),
    "a module in a package": ({"m_pkg/__init__.py": "", "m_pkg/run.py": "from .m_near import x\nimport m_a\n",
                               "m_pkg/m_near.py": "x = 1\n", "m_a.py": ""},
                              ["-m", "m_pkg.run"]),
    "exit": ({"app.py": "import m_a, sys\nif len(sys.argv) < 2:\n    sys.exit(3)\nimport m_x\n",
              "m_a.py": "", "m_x.py": ""},
             ["app.py"]),
    "its own process": ({"app.py": "with open('/proc/self/maps') as file:\n    maps = file.read()\n"
                                   "if '/cohabit' in maps:\n    import m_x\n"
                                   "if 'python' not in maps:\n    raise SystemExit\nimport m_a\n",
                         "m_a.py": "", "m_x.py": ""}, ["app.py"]),
    "what loops collect": ({"app.py": "import os\nparts, count, number = [], 0, os.getpid()\nwhile number:\n"
                                      "    parts.append(number & 255)\n    count += 1\n    number >>= 8\n"
                                      "if tuple(reversed(parts)) < (1,):\n    raise ImportError('too old')\nimport m_a\n"
                                      "if count < 1:\n    raise ImportError('nothing counted')\nimport m_b\n",
                            "m_a.py": "", "m_b.py": ""}, ["app.py"]),
    "the current directory comes first": (
        {"m_a.py": "import m_pkg.m_inner\n", "colorsys.py": "import m_b\n", "m_b.py": "", "m_pkg/m_inner.py": "",
         "m_gone/__init__.py": "import m_absent\n"},
        ["-c", "import m_a, colorsys, m_gone, m_b"]),
    "packages over several directories": (
        {"app.py": "import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\nsys.path += [os.path.join(here, 'q1'), os.path.join(here, 'q2')]\n"
                   "import m_old.m_b, m_new.m_d\n",
         "q1/m_old/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n", "q1/m_old/m_a.py": "",
         "q2/m_old/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n", "q2/m_old/m_b.py": "from . import m_a\n",
         "q1/m_new/__init__.py": "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n", "q2/m_new/m_d.py": ""},
        ["app.py"]),
    "the current directory": (
        {"app.py": "import glob, os, sys\nfrom pathlib import Path\nsys.path.insert(0, os.path.abspath('d'))\nimport m_a\n"
                   "sys.path += [os.path.join(os.getcwd(), 'e'), str(Path('f').resolve()), str(Path.cwd() / 'g'), os.path.realpath('h')]\n"
                   "import m_b, m_c, m_d, m_e\nif os.path.isdir('i') and not os.path.exists('j') and os.listdir('i') == ['i2']:\n    import m_f\n"
                   "sys.path.insert(0, 'k')\nos.chdir('i')\nimport m_g\nsys.path.insert(0, '.')\nsys.path.insert(0, os.path.abspath('i2'))\nimport m_h\n",
         "d/m_a.py": "", "e/m_b.py": "", "f/m_c.py": "", "g/m_d.py": "", "h/m_e.py": "", "m_f.py": "", "i/i2/m_h.py": "",
         "i/i2/k/m_x.py": "", "m_g.py": ""},
        ["app.py"]),
    "files of the names of standard modules": (
        {"app.py": "import glob, platform\nplatform.system()\nglob.glob('x')\nimport m_c\n",
         "platform.py": "def system():\n    import m_a\n", "glob.py": "def glob(text):\n    import m_b\n",
         "m_a.py": "", "m_b.py": "", "m_c.py": ""},
        ["app.py"]),
    "names that a module makes": (
        {"app.py": "from m_a import __version__, __author__\nimport m_a\nif m_a.__license__ == 'MIT':\n    import m_b\n",
         "m_a.py": "def __getattr__(name):\n    if name in ('__version__', '__author__', '__license__'):\n        return 'MIT'\n"
                   "    raise AttributeError(name)\n", "m_b.py": ""},
        ["app.py"]),
    "a script of a package": (
        {"m_pkg/bin/train.py": "import os, sys\nif __name__ == '__main__' and __package__ is None and __spec__ is None:\n"
                               "    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))\n"
                               "    import m_pkg.bin\n    __package__ = 'm_pkg.bin'\nfrom .. import m_core\n",
         "m_pkg/__init__.py": "", "m_pkg/bin/__init__.py": "", "m_pkg/m_core.py": ""},
        ["m_pkg/bin/train.py"]),
    "what is below no package": ({"app.py": "import m_a\nfrom . import m_b\n", "m_a.py": "", "m_b.py": ""}, ["app.py"]),
    "what -m tells": ({"m_pkg/__init__.py": "", "m_a.py": "",
                       "m_pkg/__main__.py": "if (__spec__.name, __spec__.parent, __package__) == ('m_pkg.__main__', 'm_pkg', 'm_pkg'):\n"
                                            "    import m_a\n"}, ["-m", "m_pkg"]),
    "an exit stack that takes an error": (
        {"app.py": "from contextlib import ExitStack, suppress\nwith ExitStack() as stack:\n    stack.enter_context(suppress(ImportError))\n"
                   "    import m_gone\nimport m_a\n", "m_a.py": ""},
        ["app.py"]),
    "options": (
        {"app.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('-n', type=int)\np.add_argument('--m', type=int)\n"
                   "p.add_argument('--local-rank', type=int)\np.add_argument('--x', action='store_true')\n"
                   "p.add_argument('-v', action='count')\np.add_argument('r')\na = p.parse_args()\nif a.x and a.r == 'y':\n    import m_a\nimport m_b\n",
         "m_a.py": "", "m_b.py": ""},
        ["app.py", "-n3", "--m", "-4", "--local-ran", "1", "--x", "-vv", "y"]),
    "an object in a module's place": (
        {"app.py": "import sys, types\nsys.modules['ns'] = types.SimpleNamespace(name='m_a')\nfrom ns import name\n__import__(name)\n",
         "m_a.py": ""},
        ["app.py"]),
    "an error of its own kind that may come": (
        {"app.py": "import os\nclass Own(OSError):\n    def __init__(self, reason):\n        self.reason = reason\n"
                   "def ask():\n    for letter in str(os.getpid()):\n        return letter\n    raise OSError('nothing')\n"
                   "def tell():\n    try:\n        try:\n            ask()\n        except OSError as error:\n            raise Own(error)\n"
                   "    except:\n        print('failed')\n        raise\ntell()\nimport m_a\n", "m_a.py": ""},
        ["app.py"]),
    "hooks for entries of sys.path": (
        {"app.py": "import os, sys\nfrom importlib.machinery import ModuleSpec\nclass Finder:\n    @classmethod\n    def hook(cls, path):\n"
                   "        if path == 'm_hook':\n            return cls\n        raise ImportError\n    @classmethod\n"
                   "    def find_spec(cls, name, target=None):\n        if name != 'm_space':\n            return None\n"
                   "        spec = ModuleSpec(name, None, is_package=True)\n"
                   "        spec.submodule_search_locations = [os.path.abspath('sp/m_space'), 'm_hook']\n        return spec\n"
                   "sys.path_hooks.append(Finder.hook)\nsys.path.append('m_hook')\nimport m_space.m_inner\n",
         "sp/m_space/m_inner.py": ""},
        ["app.py"]),
    "a failing import": ({"app.py": "import m_a\nimport m_gone\n", "m_a.py": ""}, ["app.py"]),
}

# What only a run tells: not an error, and not sound.
UNKNOWN = {
    "a directory that glob finds": "import glob, sys\nfor p in glob.glob('lib*'):\n    sys.path.append(p)\nimport m_there\n",
    "lines of a file": "import sys\nfor line in open('places'):\n    sys.path.append(line.strip())\nimport m_there\n",
    "a module that is written": "import pathlib\npathlib.Path('m_made.py').write_text('')\nimport m_made\n",
    "and by a file object": "with open('m_made.py', 'w') as file:\n    file.write('')\nimport m_made\n",
    "a package that is made": "import os\nos.makedirs('m_made')\nprint('', file=open('m_made/__init__.py', 'w'))\nimport m_made\n",
    "and by paths": "from pathlib import Path\nPath('m_made').mkdir()\n(Path('m_made') / '__init__.py').write_text('')\nimport m_made\n",
    "a link": "import os\nos.symlink('lib1', 'm_made')\nimport m_made\n",
    "what a process says that it installs":
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-c', \"open('m_made.py', 'w')\", 'install'])\nimport m_made\n",
    "a module by a name that a file has":
        "import sys, types\nname = open('places').readline().strip()\nsys.modules['m_' + name] = types.ModuleType(name)\nimport m_lib1\n",
    "modules by the names of a file":
        "import sys, types\nfor line in open('places'):\n    sys.modules['m_' + line.strip()] = types.ModuleType('m')\nimport m_lib1\n",
    "one of a condition":
        "import os, sys, types\nif os.getpid() > 0:\n    sys.modules['m_made'] = types.ModuleType('m')\nimport m_made\n",
    "what is installed where it is missing":
        "import subprocess, sys\ntry:\n    import m_made\nexcept ImportError:\n"
        "    subprocess.check_call([sys.executable, '-c', \"open('m_made.py', 'w')\"])\n    import m_made\n",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_a_program_brings_itself_is_no_error(name: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "lib1").mkdir()
    (tmp_path / "lib1" / "m_there.py").write_text("")
    (tmp_path / "places").write_text("lib1\n")
    (tmp_path / "app.py").write_text(UNKNOWN[name])
    done = subprocess.run([cohabit, "doctor", sys.executable, "app.py", "--format", "json"], cwd=tmp_path, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert [one["verdict"] for one in report["orders"]] == ["unknown"], done.stdout
    assert not [one for one in report["findings"] if one["severity"] == "error"]
    assert subprocess.run([sys.executable, "app.py"], cwd=tmp_path).returncode == 0


def test_a_library_registers_modules_of_its_own(cohabit: str, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "m_pkg"
    package.mkdir(parents=True)
    (tmp_path / "names").write_text("m_a\n")
    (package / "__init__.py").write_text("import sys, types\nfor line in open('names'):\n"
                                         "    sys.modules['m_pkg.' + line.strip()] = types.ModuleType('m')\n")
    (tmp_path / "app.py").write_text("import sys\nsys.path.append('site-packages')\nimport m_pkg.m_a\n")
    assert plan_of(cohabit, tmp_path, "app.py")["failure"] is None
    assert subprocess.run([sys.executable, "app.py"], cwd=tmp_path).returncode == 0
    (tmp_path / "app.py").write_text("import sys\nsys.path.append('site-packages')\nimport m_pkg, m_gone\n")
    assert "m_gone" in plan_of(cohabit, tmp_path, "app.py")["failure"]["error"]


def test_a_process_that_names_a_module_brings_none(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import os, subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import m_gone'])\n"
                                     "os.system('pip show m_gone')\nimport m_gone\n")
    assert "'m_gone'" in plan_of(cohabit, tmp_path, "app.py")["failure"]["error"]


@pytest.mark.parametrize("make, there", [
    ("os.makedirs('a/b')", "os.path.isdir('a')"), ("os.makedirs('a/b')", "os.path.exists('a/b')"), ("Path('c').mkdir()", "Path('c').is_dir()"),
    ("open('f', 'w').close()", "os.path.isfile('f')"), ("open('f', 'w').close()\nos.rename('f', 'g')", "os.path.exists('g')"),
    ("os.system('touch h')", "os.path.exists('h')"), ("subprocess.run(['touch', 'h'])", "os.path.exists('h')")])
def test_what_a_program_makes_may_be_there(make: str, there: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"import os, subprocess\nfrom pathlib import Path\n{make}\nif not {there}:\n    import m_gone\n"
                                     "if os.path.exists('i'):\n    import m_gone\n")
    plan = plan_of(cohabit, tmp_path, "app.py")
    assert plan["failure"] is None and [one["at"]["line"] for one in plan["undecided"]] == [4 + make.count("\n")], plan["said"]
    assert subprocess.run([sys.executable, "app.py"], cwd=tmp_path).returncode == 0


# Found by site: the first finder on sys.meta_path is asked for every module that is not loaded yet.
LISTEN = ("import atexit, json, os, sys\norder = []\n"
          "class Listen:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
          "        order.append(name)\nsys.meta_path.insert(0, Listen)\n"
          "atexit.register(lambda: open(os.environ['M_ORDER'], 'w').write(json.dumps(order)))\n")


def write(files: dict[str, str], root: Path) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plan_runs_programs_as_python_does(name: str, cohabit: str, repo: Path, tmp_path: Path) -> None:
    files, command = PROGRAMS[name]
    app, listen = tmp_path / "app", tmp_path / "listen"
    write(files, app)
    write({"sitecustomize.py": LISTEN}, listen)
    variables = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    real = subprocess.run([sys.executable, *command], cwd=app, capture_output=True, text=True, timeout=60,
                          env=variables | {"PYTHONPATH": str(listen), "M_ORDER": str(tmp_path / "order")})
    order = json.loads((tmp_path / "order").read_text())
    there = {Path(f).stem for f in files} | {Path(f).parent.name for f in files}
    modules = [m for m in dict.fromkeys(order) if m.split(".")[-1].startswith("m_")
               and m.split(".")[-1] in there]
    plan_file = tmp_path / "plan.json"
    words = ["doctor", sys.executable, "--plan", str(plan_file)]
    if command[0] == "-c":
        words += ["--imports", command[1].removeprefix("import ").replace(" ", "")]
    else:
        words += command[:2] + ["--", *command[2:]] if command[0] == "-m" else ["--", *command]
    done = subprocess.run([cohabit, *words], cwd=app, env=variables, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode in (0, 1), done.stderr
    plan = json.loads(plan_file.read_text())
    jsonschema.validate(plan, json.loads((repo / "data" / "schema" / "plan.schema.json").read_text()))
    planned = [m["name"] for m in plan["modules"] if m["name"].split(".")[-1].startswith("m_")]
    assert list(dict.fromkeys(planned)) == modules, plan["undecided"]
    raised = real.stderr.strip().split("\n")[-1].split(":")[0] if "Traceback" in real.stderr else ""
    assert (plan["failure"] or {"error": ""})["error"].split(":")[0] == raised


def plan_of(cohabit: str, cwd: Path, *words: str | Path, **variables: str) -> dict:
    done = subprocess.run([cohabit, "doctor", sys.executable, *words, "--plan", cwd / "plan.json"], cwd=cwd,
                          env={"PATH": os.environ["PATH"]} | variables, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return json.loads((cwd / "plan.json").read_text()) | {"said": done.stdout}


STRAYS = {  # modules with bytes that are not UTF-8
    "comment": b"x = 1\n# caf\xe9\n", "string": b"x = 'caf\xe9'\n", "name": b"caf\xe9 = 1\n", "bytes": b"x = b'caf\xe9'\n",
    "function": b"def f():\n    'caf\xe9'\n", "formatted": b"x = f'caf\xe9 {1}'\n", "broken": b"x = 1 # \xff\ndef f(:\n",
    "declared": b"# coding: utf-8\nx = 1 # \xe9\n", "marked": b"\xef\xbb\xbfx = 1 # \xe9\n",
    "utf8": b"# coding: utf8\nx = 1 # \xe9\n", "latin": b"# coding: latin-1\nx = 'caf\xe9'\n"}


@pytest.mark.parametrize("way", ["import", "script"])
@pytest.mark.parametrize("name", STRAYS)
def test_bytes_that_are_not_utf8(name: str, way: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / f"m_{name}.py").write_bytes(STRAYS[name])
    words = ["-c", f"import m_{name}"] if way == "import" else [f"m_{name}.py"]
    real = subprocess.run([sys.executable, "-B", *words], cwd=tmp_path, capture_output=True, timeout=60)
    words = ["--imports", f"m_{name}"] if way == "import" else [f"m_{name}.py"]
    assert (plan_of(cohabit, tmp_path, *words)["failure"] is not None) == (real.returncode != 0), real.stderr


def test_modules_in_archives_are_imported(cohabit: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "stored.zip", "w") as stored:
        stored.writestr("m_a.py", "import m_b")
        stored.writestr("m_pkg/__init__.py", "from . import m_sub")
        stored.writestr("m_pkg/m_sub.py", "")
        stored.writestr("m_pkg/m_deep/__init__.py", "import m_gone")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("inner/m_b.py", "# " + "x" * 1000)
    (tmp_path / "damaged.zip").write_bytes((tmp_path / "packed.zip").read_bytes()[:-10])
    write({"app.py": "import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\n"
                     "sys.path[:0] = [here + '/damaged.zip', here + '/stored.zip', here + '/packed.zip/inner']\n"
                     "import m_a, m_pkg\ntry:\n    import m_pkg.m_none\nexcept ImportError:\n    import m_pkg.m_deep\n",
           "show.py": "import sys\ntry:\n    exec(open('app.py').read(), {'__name__': '__main__', '__file__': 'app.py'})\n"
                      "except ImportError:\n    pass\n"
                      "print(*(n for n in sys.modules if n.startswith('m_') or n == 'zlib'))\n"}, tmp_path)
    real = subprocess.run([sys.executable, "-S", "show.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    plan = plan_of(cohabit, tmp_path, "app.py")
    planned = {m["name"] for m in plan["modules"] if m["name"].startswith("m_") or m["name"] == "zlib"}
    assert planned - {"m_pkg.m_deep"} == set(real.stdout.split()) and "zlib" in planned, real.stderr  # a failed one is gone
    assert "No module named 'm_gone'" in plan["failure"]["error"]


@pytest.mark.parametrize("text, fails", [
    ("try:\n    import m_gone\nexcept ImportError as e:\n    sys.exit(f'install it: {e}')\n", True),
    ("try:\n    import m_gone\nexcept ImportError:\n    sys.exit(1)\n", True),
    ("try:\n    import m_gone\nexcept ImportError:\n    raise SystemExit(2)\n", True),
    ("def load():\n    import m_gone\ntry:\n    load()\nexcept ImportError:\n    sys.exit('no')\n", True),
    ("try:\n    import m_gone\nexcept ImportError:\n    sys.exit()\n", False),
    ("try:\n    import m_gone\nexcept ImportError:\n    sys.exit(0)\n", False),
    ("if len(sys.argv) < 2:\n    sys.exit('usage')\n", False),
    ("try:\n    import m_gone\nexcept ImportError:\n    pass\nsys.exit(3)\n", False)])
def test_end_because_of_a_failed_import_is_a_failure(text: str, fails: bool, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import sys\n" + text)
    plan = plan_of(cohabit, tmp_path, "app.py")
    assert (plan["failure"] is not None) == fails, plan["said"]
    assert ("raised for ModuleNotFoundError: No module named 'm_gone'" in plan["said"]) == fails


def test_names_that_a_notebook_has(cohabit: str, tmp_path: Path) -> None:
    code = ("try:\n    get_ipython\nexcept NameError:\n    import m_x\nimport sys\nif 'ipykernel' not in sys.modules:\n"
            "    import m_y\nimport IPython\nif IPython.get_ipython() is None:\n    import m_z\n"
            "from IPython.display import display\nimport m_gone\n")
    cell = {"cell_type": "code", "source": code, "metadata": {}, "outputs": [], "execution_count": None}
    (tmp_path / "nb.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert "'m_gone'" in plan_of(cohabit, tmp_path, "nb.ipynb")["failure"]["error"]


@pytest.mark.parametrize("cells, verdict", [
    (["%%writefile mod_a.py\nx = 1", "from mod_a import x"], "unknown"), (["%cd sub", "import in_sub"], "sound"),
    (["!echo 'x = 1' > mod_a.py", "import mod_a"], "unknown"), (["%pip install -q it", "import it_is"], "unknown"),
    (["import sys\n!{sys.executable} -m pip install -q it", "import it_is"], "unknown"),
    (["%%bash\npip install it", "import it_is"], "unknown"), (["!ls", "import it_is"], "unsound"), (["%cd gone", "import in_sub"], "unsound")])
def test_what_a_notebook_brings_itself(cells: list[str], verdict: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "in_sub.py").write_text("")
    (tmp_path / "nb.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": c, "metadata": {}, "outputs": [],
                                                              "execution_count": None} for c in cells],
                                                   "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert plan_of(cohabit, tmp_path, "nb.ipynb")["said"].strip().endswith(f": {verdict}")


# (a program, the module that is missing behind it)
OFFERED = [("from importlib.metadata import entry_points\nfor one in entry_points(group='m.plugins'):\n    one.load()\n", "m_plugin.gone"),
           ("from importlib.metadata import entry_points\nall = entry_points()\n"
            "for one in all.select(group='m.plugins') if hasattr(all, 'select') else all.get('m.plugins', []):\n    one.load()\n", "m_plugin.gone"),
           ("from importlib.metadata import distribution\nfor one in distribution('m-plugin').entry_points:\n"
            "    if one.name == 'bad':\n        one.load()\n", "m_plugin.gone"),
           ("from importlib.metadata import entry_points\n[one] = entry_points(group='m.plugins', name='good')\n"
            "if one.load() != 'it' or one.value != 'm_plugin:thing' or one.module != 'm_plugin':\n    import m_x\nimport m_gone\n", "m_gone"),
           ("from importlib.metadata import metadata\nif metadata('m-plugin')['name'] != 'm-plugin':\n    import m_x\nimport m_gone\n", "m_gone"),
           ("from importlib.metadata import distributions\nif any(one.metadata['Name'] == 'm-plugin' for one in distributions()):\n    import m_gone\n",
            "m_gone"),
           ("from importlib.metadata import Distribution\nif Distribution.from_name('m_plugin').version == '1.0':\n    import m_gone\n", "m_gone")]


@pytest.mark.parametrize("text, missing", OFFERED)
def test_what_distributions_offer(text: str, missing: str, cohabit: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    write({"m_plugin.py": "thing = 'it'\n", "m_plugin-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: m-plugin\nVersion: 1.0\n",
           "m_plugin-1.0.dist-info/RECORD": "m_plugin.py,,\n",
           "m_plugin-1.0.dist-info/entry_points.txt": "[other]\nno = nothing\n\n[m.plugins]\n# a comment\ngood=m_plugin:thing\n"
                                                      "bad = m_plugin.gone : thing [extra]\n"}, site)
    (tmp_path / "app.py").write_text(text)
    python = tmp_path / "env" / "bin" / "python"
    real = subprocess.run([python, "app.py"], cwd=tmp_path, capture_output=True, text=True)
    assert f"No module named '{missing}'" in real.stderr
    done = subprocess.run([cohabit, "doctor", tmp_path / "env", "app.py", "--plan", "plan.json"], cwd=tmp_path, capture_output=True, text=True)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert f"No module named '{missing}'" in (plan["failure"] or {"error": ""})["error"], done.stdout


# What setuptools wrote for namespaces before PEP 420: protobuf's was there until 3.20.
NSPKG = ("import sys, types, os;has_mfs = sys.version_info > (3, 5);"
         "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('m_space',));"
         "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
         "m = has_mfs and sys.modules.setdefault('m_space', importlib.util.module_from_spec("
         "importlib.machinery.PathFinder.find_spec('m_space', [os.path.dirname(p)])));"
         "m = m or sys.modules.setdefault('m_space', types.ModuleType('m_space'));"
         "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n")


@pytest.mark.parametrize("statement", ["from m_space.m_part import m_inner", "from m_space.m_part import m_gone",
                                       "from m_space import m_gone", "import m_space.m_gone"])
def test_namespace_that_a_pth_file_makes_is_looked_into(statement: str, cohabit: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env" / "lib").iterdir()) / "site-packages"
    write({"m_space/m_part/__init__.py": "", "m_space/m_part/m_inner.py": "", "m-nspkg.pth": NSPKG}, site)
    app = tmp_path / "app.py"
    app.write_text(statement + "\n")
    python = tmp_path / "env" / "bin" / "python"
    real = subprocess.run([python, app], capture_output=True, text=True, timeout=60)
    plan_file = tmp_path / "plan.json"
    subprocess.run([cohabit, "doctor", python, app, "--plan", plan_file], capture_output=True, timeout=60)
    failure = json.loads(plan_file.read_text())["failure"]
    said = real.stderr.strip().split("\n")[-1].split(" (")[0]
    assert (failure or {"error": ""})["error"].split(" (")[0] == said


@pytest.mark.parametrize("statement", ["lib.cos", "lib.m_gone", "print(lib.m_gone)", "print(hasattr(lib, 'm_gone'))",
                                       "try:\n    lib.m_gone\nexcept AttributeError:\n    pass", "lib['m_gone']"])
def test_symbol_that_a_library_does_not_export(statement: str, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"import ctypes\nlib = ctypes.CDLL('libm.so.6')\n{statement}\n")
    real = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    failure = plan_of(cohabit, tmp_path, "app.py")["failure"]
    expected = real.stderr.strip().split("\n")[-1] if real.returncode else ""  # with the whole path, which dlsym has told
    assert (failure or {"error": ""})["error"] == re.sub(r": /\S+/libm", ": libm", expected)


def test_rest_of_a_pth_file_is_left_out_where_a_line_fails(cohabit: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env" / "lib").iterdir()) / "site-packages"
    write({"m_a.py": "", "m_b.py": "", "m_c.py": "", "m_d.py": "", "b.pth": "import m_d\n",
           "a.pth": "import m_a\nimport m_gone\nimport m_b\n", "c.pth": "import m_c; x y\nimport m_b\n"}, site)
    python = tmp_path / "env" / "bin" / "python"
    real = subprocess.run([python, "-c", "import sys; print(*sorted(m for m in sys.modules if m.startswith('m_')))"],
                          capture_output=True, text=True, timeout=60).stdout.split()
    (tmp_path / "app.py").write_text("import sys\n" + "".join(f"if 'm_{x}' in sys.modules:\n    import m_{x}_seen\n"
                                                              for x in "abcd"))
    write({f"m_{x}_seen.py": "" for x in "abcd"}, tmp_path)
    subprocess.run([cohabit, "doctor", python, tmp_path / "app.py", "--plan", tmp_path / "plan.json"],
                   capture_output=True, timeout=60, check=True)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert real == ["m_a", "m_d"]
    assert [m["name"] for m in plan["modules"] if m["name"].endswith("_seen")] == [f"{m}_seen" for m in real]


# A skipped branch is a point only where it might load something; marked are the lines that might. What
# the standard library cannot tell is a point of who has called it.
POINTS = """\
import ctypes, dataclasses, json, os, re, sysconfig
import m_pkg, m_pkg.m_there
def number():
    return os.getpid()
for _ in range(3):
    if number() > 5:
        import json
    if number() > 6:  # noted
        import m_later
if number() > 7:
    from m_pkg import value, m_there
if number() > 8:  # noted
    from m_pkg import m_sub
if number() > 9:  # noted
    from m_pkg import *
if number() > 10:  # noted
    from m_served import anything
if number() > 11:
    from __future__ import annotations
for _ in range(3):
    exec(os.readlink("/proc/self/exe"))  # noted
for name in os.readlink("/proc/self/exe").split(":"):  # noted
    __import__(name)
@dataclasses.dataclass
class Data:
    one: int = 1
found = re.search("a+b|c", "caab")
sysconfig.get_config_var("EXT_SUFFIX")
def open_it(name):
    return ctypes.CDLL(name)  # noted
open_it(os.readlink("/proc/self/exe"))
class Version(str):  # as torch.__version__
    def __ge__(self, other):
        return number() > 0
if Version("2.11") >= "2.4":  # noted
    import m_later
if Version("2.11") == "2.11":
    import json
"""


def test_points_are_where_something_might_be_loaded(cohabit: str, tmp_path: Path) -> None:
    write({"app.py": POINTS.replace("import m_pkg,", "import m_served, m_pkg,"), "m_later.py": "",
           "m_pkg/__init__.py": "value = 1\n", "m_pkg/m_there.py": "", "m_pkg/m_sub.py": "",
           "m_served.py": "def __getattr__(name):\n    import m_later\n    return m_later\n"}, tmp_path)
    plan_file = tmp_path / "plan.json"
    done = subprocess.run([cohabit, "doctor", sys.executable, tmp_path / "app.py", "--plan", plan_file],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    plan = json.loads(plan_file.read_text())
    assert plan["failure"] is None
    marked = [number for number, line in enumerate(POINTS.splitlines(), 1) if line.endswith("# noted")]
    assert [(Path(point["at"]["file"]).name, point["at"]["line"]) for point in plan["undecided"]] == [
        ("app.py", line) for line in marked]


def test_pth_files_of_a_directory_that_a_program_adds(cohabit: str, tmp_path: Path) -> None:
    write({"more/a.pth": f"# no line\n../there\n{tmp_path}/far\n/nowhere\nimport m_a\nimport m_gone\n../late\n", "there/m_b.py": "",
           "far/m_c.py": "", "m_a.py": "", "late/m_d.py": "",
           "app.py": f"import site\nsite.addsitedir({str(tmp_path / 'more')!r})\nimport m_b, m_c\nimport m_d\n"}, tmp_path)
    real = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    plan = plan_of(cohabit, tmp_path, "app.py")
    assert plan["failure"]["error"] == real.stderr.strip().split("\n")[-1] == "ModuleNotFoundError: No module named 'm_d'"
    assert [m["name"] for m in plan["modules"] if m["name"].startswith("m_")] == ["m_a", "m_b", "m_c"]


def test_module_of_bytecode_alone_is_not_known(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "m_a.py").write_text("x = 1\n")
    py_compile.compile(str(tmp_path / "m_a.py"), str(tmp_path / "m_a.pyc"))
    (tmp_path / "m_a.py").unlink()
    (tmp_path / "app.py").write_text("import m_a\n")
    plan = plan_of(cohabit, tmp_path, "app.py")
    assert "only bytecode of m_a is there" in plan["problems"][0] and ": unknown" in plan["said"]
