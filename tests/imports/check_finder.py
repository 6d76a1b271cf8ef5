"""Holds the finder against real interpreters: sys.path, built-in modules, and where modules are.

    check_finder.py BUILD [ENVIRONMENT ...]

BUILD has tests/imports/finder_dump. Without environments: the python3 of this machine, those of
pyenv, venvs made for the purpose, and the environments below $COHABIT_ENVIRONMENTS. Each
interpreter is asked in a neutral directory, and nothing is imported: its own PathFinder says where
a module would come from. Prints one line for each interpreter; ends with 1 if anything differs.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = ["source", "native", "bytecode", "namespace", "builtin"]

# Runs in the interpreter under test, 3.8 or later.
ASK = r"""
import importlib.machinery, json, os, pkgutil, random, sys
path = sys.path[1:]
find = importlib.machinery.PathFinder.find_spec
def search_of(spec):  # a namespace's own list would ask for its parent, which is not imported
    places = spec.submodule_search_locations
    return list(getattr(places, "_path", places) or [])
def describe(spec):
    if spec is None:
        return None
    loader = type(spec.loader).__name__ if spec.loader else ""
    kind = {"SourceFileLoader": "source", "ExtensionFileLoader": "native",
            "SourcelessFileLoader": "bytecode"}.get(loader, "namespace")
    search = search_of(spec)
    return {"kind": kind, "path": spec.origin if kind != "namespace" else "", "search": search}
def dotted(name):
    if name.split(".")[0] in sys.builtin_module_names:
        return {"kind": "builtin", "path": "", "search": []} if "." not in name else None
    search, spec = path, None
    for part in name.split("."):
        if not search:
            return None
        spec = find(part, search)  # by its last name: see search_of
        if spec is None:
            return None
        search = search_of(spec)
    return describe(spec)
names = []
def walk(search, prefix, depth):
    directories = set()
    for entry in search:
        try:
            directories.update(n for n in os.listdir(entry) if "." not in n and n != "__pycache__"
                               and os.path.isdir(os.path.join(entry, n)))
        except OSError:
            pass
    found = {m.name for m in pkgutil.iter_modules(search)} | directories
    for name in sorted(found):
        names.append(prefix + name)
        if depth and len(names) < 60000:
            spec = find(name, search)
            if spec and spec.submodule_search_locations:
                walk(search_of(spec), prefix + name + ".", depth - 1)
walk(path, "", 4)
random.seed(1)
top = [n for n in names if "." not in n]
below = [n for n in names if "." in n]
chosen = top + random.sample(below, min(len(below), 3000)) + list(sys.builtin_module_names)
chosen = sorted({n for n in chosen if n.isprintable() and n.isascii()})
chosen += ["no_such_module", "os.path", "json.nothing", "math.x", "xml.etree.ElementTree"]
print(json.dumps({
    "path": [p for p in path if os.path.exists(p)],
    "builtin": sorted(sys.builtin_module_names),
    "suffixes": importlib.machinery.EXTENSION_SUFFIXES,
    "names": sorted({m.name for m in pkgutil.iter_modules(path)}),
    "found": {n: dotted(n) for n in chosen},
}))
"""


def variables(extra: dict[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "CONDA"))}
    return {**kept, **extra}


def differences(build: Path, environment: Path, extra: dict[str, str]) -> tuple[list[str], int]:
    program = environment if environment.is_file() else environment / "bin" / "python"
    with tempfile.TemporaryDirectory() as neutral:
        real = json.loads(subprocess.run([program, "-c", ASK], cwd=neutral, env=variables(extra), check=True,
                                         capture_output=True, text=True).stdout)
        asked = "\n".join([*real["found"], *real["builtin"]])
        ours = json.loads(subprocess.run([build / "tests/imports/finder_dump", environment], cwd=neutral,
                                         env=variables(extra), check=True, capture_output=True, text=True,
                                         input=asked).stdout)
    wrong = [f"{what}: {real[what]} but we say {ours[what]}" for what in ("path", "suffixes")
             if real[what] != ours[what]]
    if missing := set(real["builtin"]) ^ set(ours.get("builtin", [])):
        wrong.append(f"builtin: {sorted(missing)}")
    if other := set(real["names"]) ^ set(ours["names"]):
        wrong.append(f"names: {sorted(other)}")
    for name, spec in real["found"].items():
        got = ours["found"][name]
        if got:
            got["kind"] = KINDS[got["kind"]]
        if got != spec:
            wrong.append(f"{name}: {spec} but we say {got}")
    return wrong, len(real["found"])


def made_environments(at: Path) -> list[tuple[Path, dict[str, str]]]:
    """Environments of unusual shape; those whose tool or base is not on this machine are left out."""
    def run(*command: str | Path) -> bool:
        try:
            return subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False
    made: list[tuple[Path, dict[str, str]]] = []
    home = at / "home"
    base = Path(subprocess.run(["python3", "-c", "import sys; print(sys.base_prefix)"], check=True,
                               capture_output=True, text=True).stdout.strip())
    for name, python in (("own", base / "bin/python3"), ("system", Path("/usr/bin/python3"))):
        env = at / name
        if not run(python, "-m", "venv", "--without-pip", "--system-site-packages", env):
            continue
        version = next((env / "lib").iterdir()).name
        site = env / "lib" / version / "site-packages"
        user = home / ".local/lib" / version / "site-packages"
        for directory in (user, at / "extra/sub", at / "listed", site / "ns/x", user / "ns/y"):
            directory.mkdir(parents=True, exist_ok=True)
        (site / "ns/x/one.py").touch()
        (user / "ns/y/two.py").touch()
        (user / "user_only.py").touch()
        (at / "listed/listed.py").touch()
        (site / "b.pth").write_text(f"# comment\n{at}/extra/../listed\nnot/there\n\nimport sys; sys.x = 1\n")
        (site / "a.pth").write_text(f"  leading\n{at}/extra   \r\n{at}/extra/sub/\n{at}/listed/listed.py\n")
        (site / ".hidden.pth").write_text(f"{at}/home\n")
        (site / "both").mkdir(exist_ok=True)
        (site / "both/__init__.py").touch()
        (site / "both.py").touch()
        (site / "empty_directory").mkdir(exist_ok=True)
        (site / "module.py").touch()
        (site / "module.abi3.so").touch()
        (site / "only.pyc").touch()
        (site / "directory.py").mkdir(exist_ok=True)
        loop = site / "loop"
        loop.symlink_to("loop") if not loop.is_symlink() else None
        (site / "around").symlink_to(".") if not (site / "around").is_symlink() else None
        made.append((env, {"HOME": str(home)}))
        made.append((env, {"HOME": str(home), "PYTHONPATH": f"{at}/listed:{site}:relative:{at}/listed/:/nowhere"}))
        made.append((env, {"HOME": str(home), "PYTHONPATH": f":{at}/extra", "PYTHONNOUSERSITE": "1"}))
    if run("uv", "venv", "-q", "-p", base / "bin/python3", at / "uv"):
        made.append((at / "uv", {}))
    return made


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        environments = [(Path(p).absolute(), {}) for p in sys.argv[2:]]
        if not environments:
            environments = [(p, {}) for p in (Path("/usr/bin/python3"),) if p.exists()]
            environments += [(p, {}) for p in sorted((Path.home() / ".pyenv/versions").glob("3.*"))
                             if int(p.name.split(".")[1]) >= 8]
            if roots := os.environ.get("COHABIT_ENVIRONMENTS"):
                environments += [(p, {}) for p in sorted(Path(roots).iterdir()) if (p / "bin/python").exists()]
            environments += made_environments(Path(temporary).resolve())
        failed = False
        for environment, extra in environments:
            wrong, count = differences(build, environment, extra)
            failed |= bool(wrong)
            print(f"{environment} {extra or ''}: {count} modules, {len(wrong)} differences", flush=True)
            for line in wrong[:12]:
                print("   ", line[:600])
    return failed


if __name__ == "__main__":
    sys.exit(main())
