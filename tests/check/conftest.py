from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Callable

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import index as made  # noqa: E402


@pytest.fixture(params=["pip", "uv"])
def environment(request, tmp_path: Path) -> made.Environment:
    return made.Environment(tmp_path / "env", request.param)


@pytest.fixture
def serve():
    """serve(directory, ...): an index of its wheels, until the test ends."""
    running = []

    def start(directory: Path, **more) -> made.Index:
        running.append(made.Index(directory, **more))
        return running[-1]
    yield start
    for one in running:
        one.close()


@pytest.fixture
def check(cohabit: str) -> Callable[..., subprocess.CompletedProcess]:
    """check(environment, "torch", ...): the command, about this environment."""
    def run(environment: made.Environment, *arguments, code: int | None = 0,
            variables: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        done = subprocess.run([cohabit, "check", "--env", environment.root, *arguments], capture_output=True, text=True,
                              timeout=300, env={**environment.variables, **(variables or {})})
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return run


@pytest.fixture
def ask(check, repo: Path) -> Callable[..., dict]:
    """The same as JSON, which fits its schema."""
    schema = json.loads((repo / "data/schema/check.schema.json").read_text())

    def run(*arguments, **more) -> dict:
        report = json.loads(check(*arguments, "--format", "json", **more).stdout)
        jsonschema.validate(report, schema)
        return report
    return run
