"""What every pytest suite shares: which build is tested.

COHABIT_BUILD names the build directory (default: build/dev of this clone); `cohabit` and
libcohabit_trace.so lie in it. COHABIT_CACHE names the cache of real environments (scripts/lib.sh).
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
os.environ["COHABIT_NO_CACHE"] = "1"  # plans are worked out; tests/imports/test_kept_plans.py keeps some
sys.path[:0] = [str(REPO / "scripts"), str(REPO / "tests")]


@pytest.fixture(scope="session")
def repo() -> Path:
    return REPO


@pytest.fixture(scope="session")
def build_dir() -> Path:
    return Path(os.environ.get("COHABIT_BUILD") or REPO / "build" / "dev").resolve()


@pytest.fixture(scope="session")
def cohabit(build_dir: Path) -> str:
    """The path of the command under test."""
    path = build_dir / "cohabit"
    assert path.exists(), f"{path} is missing: build first, or point COHABIT_BUILD at a build"
    return str(path)
