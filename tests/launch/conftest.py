"""What the tests of launching share."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def bare_environment() -> Callable[[Path], Path]:
    """Makes a virtual environment of this Python without anything in it; returns its site-packages."""
    def make(home: Path) -> Path:
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
        (home / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
        site = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        site.mkdir(parents=True)
        return site
    return make
