from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import places  # noqa: E402,F401  (puts the package on sys.path)
import cohabit as package  # noqa: E402


@pytest.fixture
def make_worker(tmp_path):
    """Makes workers of tests/manager/service.py and closes them; nothing of them may stay."""
    made = []

    def make(setup: str = "service:make", **options):
        options.setdefault("path", places.HERE)
        made.append(package.Worker("test", setup=setup, **options))
        return made[-1]

    before = places.children()
    yield make
    for worker in made:
        worker.close(1)
    assert places.children() <= before, "a process was left behind"
