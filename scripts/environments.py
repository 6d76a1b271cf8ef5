#!/usr/bin/env python3
"""Makes the real environments of tests/wheels/environments.toml, in the cache, and prints where.

  environments.py NAME...     makes what is missing; prints one directory per name
  environments.py --list      the names

An environment is named after its pins and its interpreter, so demo, tests and bench share it, and
a changed pin makes a new one. Exit 3: this machine cannot have it (no such Python, disk full).
"""
from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
import uuid
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
TABLE = REPO / "tests" / "wheels" / "environments.toml"
SPARE_GIGABYTES = 2  # what must be left on the disk after making an environment


class Unavailable(Exception):
    """This machine cannot have that environment; the text says why."""


def cache_root() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cohabit"
    return Path(os.environ.get("COHABIT_CACHE") or default)


def load_table() -> dict[str, dict]:
    return tomllib.loads(TABLE.read_text())


@contextlib.contextmanager
def locked(name: str):
    """Only one process at a time; the lock goes when the process does."""
    path = cache_root() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process that works on {name}", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def uv_environment() -> dict[str, str]:
    """uv with our cache, and with the package index that pip is configured for."""
    env = dict(os.environ, UV_CACHE_DIR=str(cache_root() / "uv"), UV_LINK_MODE="hardlink",
               UV_NO_PROGRESS="1", UV_PYTHON_DOWNLOADS="never",
               UV_CONCURRENT_INSTALLS="1")  # who wins a file that two distributions bring
    env.setdefault("UV_HTTP_TIMEOUT", "300")
    if not any(k in env for k in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE")):
        for variable, option in (("UV_DEFAULT_INDEX", "index-url"), ("UV_INDEX", "extra-index-url"),
                                 ("UV_FIND_LINKS", "find-links")):
            for section in (":env:", "install", "global"):
                answer = subprocess.run([sys.executable, "-m", "pip", "config", "get",
                                         f"{section}.{option}"], capture_output=True, text=True)
                if answer.returncode == 0 and answer.stdout.strip():
                    env[variable] = " ".join(answer.stdout.split())
                    break
    return env


def uv() -> str:
    """The uv of the tools environment (scripts/setup makes it), or the machine's."""
    ours = [Path(sys.executable).parent / "uv", *sorted(cache_root().glob("tools/*/bin/uv"))]
    found = next((str(path) for path in ours if path.exists()), None) or shutil.which("uv")
    if not found:
        raise SystemExit("uv is missing: run scripts/setup")
    return found


def find_interpreter(version: str) -> str:
    """A CPython of this version that is on the machine already."""
    roots = [os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"]
    candidates = [
        str(found)
        for root in roots if root
        for found in sorted(Path(root).glob(f"versions/{version}.*/bin/python{version}"))
    ]
    candidates += [os.path.join(directory, f"python{version}")
                   for directory in os.environ.get("PATH", "").split(os.pathsep)]
    probe = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)"
    for candidate in candidates:
        with contextlib.suppress(OSError):
            answer = subprocess.run([candidate, "-I", "-c", probe], capture_output=True, text=True)
            if answer.returncode == 0 and answer.stdout.split()[:1] == [version]:
                return os.path.realpath(candidate)
    answer = subprocess.run([uv(), "python", "find", "--no-project", version], capture_output=True,
                            text=True, env=uv_environment())
    if answer.returncode == 0:
        return os.path.realpath(answer.stdout.strip())
    raise Unavailable(f"no Python {version} on this machine")


def interpreter_identity(interpreter: str) -> str:
    code = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_platform())"
    return interpreter + " " + subprocess.run([interpreter, "-I", "-c", code], check=True,
                                              capture_output=True, text=True).stdout.strip()


def need_space(what: str, place: Path, gigabytes: float) -> None:
    free = shutil.disk_usage(place).free / 1e9
    needed = gigabytes + SPARE_GIGABYTES
    if free < needed:
        raise Unavailable(f"making {what} takes up to {needed} GB in {place}, and {free:.1f} GB are free")


def fill(home: Path, interpreter: str, requirements: list[str]) -> None:
    """Makes a virtual environment with these in an empty place; leaves nothing there that is half made."""
    env = uv_environment()
    try:
        subprocess.run([uv(), "venv", "-q", "-p", interpreter, str(home)], check=True, env=env)
        install = [uv(), "pip", "install", "-q", "-p", str(home / "bin" / "python"), *requirements]
        for attempt in range(3):  # an index may stumble
            if subprocess.run(install, env=env).returncode == 0:
                break
            time.sleep(5 * attempt)
        else:
            raise SystemExit(f"uv could not install {' '.join(requirements)}; see its messages above")
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise


def make_at(home: Path, python: str, requirements: list[str], gigabytes: float) -> None:
    """One that is the caller's own, to change and to remove: of hard links into uv's cache, where that is on the same disk."""
    need_space(f"an environment of {' '.join(requirements)}", home.parent, gigabytes)
    fill(home, find_interpreter(python), requirements)


def make(name: str, spec: dict) -> Path:
    """The directory of the environment, made if it is not there."""
    interpreter = find_interpreter(spec["python"])
    identity = "\n".join([interpreter_identity(interpreter), *sorted(spec["requirements"])])
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    home = cache_root() / "envs" / f"{name}-{key}"
    complete = home / "cohabit-complete"  # written last; holds an id of this very installation
    with locked(f"env-{name}-{key}"):
        if complete.exists():
            return home
        if home.exists():
            print(f"removing a half-made environment: {home}", file=sys.stderr)
            shutil.rmtree(home)
        home.parent.mkdir(parents=True, exist_ok=True)
        need_space(f"environment {name}", home.parent, spec["gigabytes"])
        print(f"making environment {name} (Python {spec['python']}): "
              f"{' '.join(spec['requirements'])}", file=sys.stderr)
        fill(home, interpreter, spec["requirements"])
        complete.write_text(uuid.uuid4().hex + "\n")
    return home


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    table = load_table()
    if arguments.list:
        print("\n".join(table))
        return 0
    for name in arguments.names:
        if name not in table:
            parser.error(f"no environment {name!r}; there are: {', '.join(table)}")
        try:
            print(make(name, table[name]), flush=True)
        except Unavailable as reason:
            print(reason, file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
