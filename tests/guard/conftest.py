from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import world  # noqa: E402


@pytest.fixture
def environment(tmp_path: Path) -> world.Environment:
    return world.make_environment(tmp_path / "env")


@pytest.fixture
def call(cohabit: str) -> Callable[..., subprocess.CompletedProcess]:
    """call(environment, "snapshot", "a"): the command, about this environment."""
    def run(environment: world.Environment | Path, command: str, *arguments: str, code: int | None = 0,
            variables: dict[str, str] | None = None, **more) -> subprocess.CompletedProcess:
        root = environment if isinstance(environment, Path) else environment.root
        done = subprocess.run([cohabit, command, "--env", root, *arguments], capture_output=True, timeout=300,
                              env={"PATH": os.environ["PATH"], **(variables or {})}, **more)
        done.stdout, done.stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return run
