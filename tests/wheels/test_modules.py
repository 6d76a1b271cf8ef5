"""Of all modules of whole packages that Python really imports, one after the other, doctor calls none broken."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import real  # noqa: E402
from test_healthy import home_of  # noqa: E402

# Of each about how many modules there are: a package that did not come to its end would say nothing.
PACKAGES = {"newest": {"torch": 2000, "jax": 500, "sympy": 700, "numpy": 150},
            "cpu": {"tensorflow": 400, "paddle": 1000, "keras": 650}}


@pytest.mark.parametrize(("environment", "package"), [(name, one) for name, all_of in PACKAGES.items() for one in all_of])
def test_no_module_that_can_be_imported_is_called_broken(environment: str, package: str, repo: Path, build_dir: Path) -> None:
    python = home_of(environment) / "bin/python"
    done = real.run([sys.executable, str(repo / "bench/modules"), str(python), package, "--build", str(build_dir)])
    assert done.returncode == 0, done.stdout + done.stderr
    count = re.search(r"(\d+) modules imported, 0 called broken", done.stdout)
    assert count and int(count[1]) >= PACKAGES[environment][package], done.stdout
