"""What this user may not read is said, not taken for empty."""
from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def place():
    """A directory that everybody may enter; pytest's own are closed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


def test_site_packages(place: Path, cohabit: str) -> None:
    command = place / "cohabit"
    subprocess.run(["strip", "-o", command, cohabit], check=True)
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place / "env"], check=True)
    (site,) = place.glob("env/lib/python3*/site-packages")
    run = {"capture_output": True, "text": True, "cwd": "/"} | ({"user": NOBODY, "group": NOBODY, "extra_groups": []}
                                                                if os.geteuid() == 0 else {})
    words = f"{site} cannot be read by this user"
    assert words not in subprocess.run([command, "doctor", place / "env"], **run).stdout
    site.chmod(0)
    assert words in subprocess.run([command, "doctor", place / "env"], **run).stdout
    assert words in subprocess.run([command, "doctor", place / "env", "--imports", "numpy"], **run).stdout
    site.chmod(0o755)
