"""What runs on a GPU only. Without one every test here is skipped by name.

    COHABIT_BUILD=build/release COHABIT_GPU_PYTHON=ENV/bin/python python3 -m pytest tests/gpu

COHABIT_GPU_PYTHON is the Python of the frameworks (default: the one that runs the tests); what of torch, jax, cupy,
tensorflow, paddle, ... is in it is tested, the rest is skipped.
"""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "manager")]
import places  # noqa: E402
from frameworks import PYTHON  # noqa: E402

def has_gpu() -> bool:
    return any(Path("/proc/driver/nvidia/gpus").glob("*")) or Path("/dev/dxg").exists()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.xdist_group("gpu"))  # one after the other: the memory in use is looked at
        if not has_gpu():
            item.add_marker(pytest.mark.skip(reason="no GPU on this machine"))


@lru_cache(maxsize=None)
def is_installed(framework: str) -> bool:
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({framework!r}) is None)"
    return subprocess.run([PYTHON, "-c", found], cwd="/", check=False).returncode == 0


@pytest.fixture
def needs() -> Callable[..., None]:
    def check(*frameworks: str) -> None:
        for framework in frameworks:
            if not is_installed(framework):
                pytest.skip(f"{PYTHON} has no {framework}")
    return check


@pytest.fixture(scope="session")
def package_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package and the native command, as installed."""
    return places.package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def run(package_path: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs code with the frameworks' Python and the package; what it prints. A failure is the test's."""
    def start(code: str, *before: str, **variables: str) -> str:
        settings = {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(package_path)])),
                    "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
        done = subprocess.run([*before, PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
                              env=os.environ | settings | variables)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout
    return start
