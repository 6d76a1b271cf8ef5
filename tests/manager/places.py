"""Which Pythons and environments the tests use; what is not on the machine is skipped by name."""
from __future__ import annotations

import os
import shutil
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


def open_files() -> list[str]:
    """What our descriptors lead to."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass  # the directory's own
    return found


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def package(at: Path) -> Path:
    """A copy of the package with the native command of the build under test in it, as an installation has it."""
    build = Path(os.environ.get("COHABIT_BUILD", REPO / "build" / "dev")).resolve()
    if not (build / "cohabit").exists():
        pytest.skip(f"no native command in {build}")
    shutil.copytree(REPO / "python" / "cohabit", at / "cohabit", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    (at / "cohabit" / "bin").mkdir()
    (at / "cohabit" / "bin" / "cohabit").symlink_to(build / "cohabit")
    return at


def ready(name: str) -> str:
    """A real environment of tests/wheels, where it was made already: this suite downloads no frameworks."""
    for home in sorted(environments.cache_root().glob(f"envs/{name}-*")):
        if (home / "cohabit-complete").exists():
            return str(home)
    pytest.skip(f"no environment: scripts/environments.py {name} makes it")


def run_in(environment: str, code: str, path: list[Path], timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs code with an environment's Python (or an interpreter), these directories in front of its modules."""
    python = environment if os.access(environment, os.X_OK) and not os.path.isdir(environment) else environment + "/bin/python"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, path)), CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    return subprocess.run([python, "-c", code], env=env, cwd=path[0], capture_output=True, text=True, timeout=timeout)


RAPIDOCR = {"python": "3.11", "gigabytes": 0.5, "requirements": [
    "rapidocr-paddle==1.4.5", "numpy==2.4.6", "opencv-python==5.0.0.93", "pyclipper==1.4.0", "shapely==2.1.2", "pillow==12.3.0"]}


def with_rapidocr(at: Path) -> Path:
    """An environment of torch, paddle and the PP-OCR models: the packages of two that are there already, by a .pth file."""
    frameworks = ready("cpu")
    try:
        models = environments.make("rapidocr", RAPIDOCR)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    subprocess.run([interpreter("3.11"), "-m", "venv", "--without-pip", at], check=True)
    inside = "lib/python3.11/site-packages"
    (at / inside / "others.pth").write_text(f"{frameworks}/{inside}\n{models}/{inside}\n")
    return at
