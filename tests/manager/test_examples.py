"""Runs the examples of docs/workers.md as they stand there."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import places

TEXT = (places.REPO / "docs" / "workers.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
EXAMPLES = [block for block in BLOCKS if not block.startswith("# ocr_setup.py")]


def environment_with_torch() -> str:
    return places.ready("cpu")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number: int, tmp_path) -> None:
    example = EXAMPLES[number]
    (tmp_path / "envs").mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "envs/paddle")], check=True)
    caller = sys.executable
    if "envs/torch" in example:
        os.symlink(environment_with_torch(), tmp_path / "envs/torch")
        caller = places.arrays("3.11") + "/bin/python"
    (setup,) = (block for block in BLOCKS if block.startswith("# ocr_setup.py"))
    (tmp_path / "ocr_setup.py").write_text(setup)
    env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
    answer = subprocess.run([caller, "-c", example], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=150)
    assert answer.returncode == 0, answer.stderr


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5 and len(BLOCKS) == len(EXAMPLES) + 1
