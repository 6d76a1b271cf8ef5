"""`pip install .`: one wheel, installed into fresh environments of every Python that is here."""
from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import environments

PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
CODE = """
import json, sys, cohabit
assert cohabit.__version__[0].isdigit(), cohabit.__version__
try:
    cohabit.doctor("/no/such/environment", imports=["x"])
except cohabit.CohabitError as error:
    assert str(error), "an error without words"
else:
    sys.exit("doctor() accepted an environment that does not exist")
with cohabit.Worker("json") as worker:  # its own file is in the package
    assert worker.call("json.loads", "[1]", timeout=60) == [1]
print(cohabit.command())
"""


def check(*command: str, **options) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, timeout=2700, **options)
    assert answer.returncode == 0, f"{command}: {answer.stdout[-2000:]}{answer.stderr[-4000:]}"
    return answer.stdout


@pytest.fixture(scope="session")
def wheel(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # Where other builds are too, so that the compiler cache knows the paths; pip would take a new place each time.
    check(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out),
          "--config-settings", f"build-dir={repo}/build/wheel", str(repo))
    (found,) = out.glob("cohabit-*.whl")
    return found


@pytest.mark.xdist_group("package")
def test_a_wheel_holds_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cohabit"}, tops


# One group: the workers of pytest-xdist would each build the wheel otherwise.
@pytest.mark.xdist_group("package")
@pytest.mark.parametrize("version", PYTHONS)
def test_pip_install(version: str, wheel: Path, tmp_path: Path) -> None:
    try:
        interpreter = environments.find_interpreter(version)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    home = tmp_path / "environment"
    check(interpreter, "-m", "venv", "--without-pip", str(home))
    python = str(home / "bin" / "python")
    check(environments.uv(), "pip", "install", "-q", "--offline", "--no-deps", "-p", python, str(wheel),
          env=environments.uv_environment())
    # Nothing of the build machine may be needed: no library path, no other directory.
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    native = Path(check(python, "-c", CODE, env=bare, cwd=tmp_path).strip())
    assert native.is_relative_to(home) and os.access(native, os.X_OK)
    command = str(home / "bin" / "cohabit")
    told = check(command, "--version", env=bare)
    assert told == check(python, "-m", "cohabit", "--version", env=bare)
    assert (native.parent.parent / "py.typed").exists()
    # The tracer is found inside the package.
    trace = tmp_path / "true.trace"
    check(command, "trace", "--out", str(trace), "--", "/bin/true", env=bare)
    assert trace.stat().st_size > 0
    assert check(command, "rules", env=bare)
