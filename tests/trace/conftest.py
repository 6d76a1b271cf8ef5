"""The small libraries are built once for all tests of this directory."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from trace_world import World  # noqa: E402


@pytest.fixture(scope="session")
def world(tmp_path_factory, cohabit):
    return World(tmp_path_factory.mktemp("world").resolve(), cohabit).build()
