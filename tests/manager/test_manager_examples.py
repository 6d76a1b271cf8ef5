"""Runs the examples of docs/manager.md and examples/ as they stand there."""
from __future__ import annotations

import re
import subprocess
import sys

import pytest

import places

EXAMPLES = re.findall(r"^```python\n(.*?)^```", (places.REPO / "docs" / "manager.md").read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return places.package(tmp_path_factory.mktemp("package"))


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, package, tmp_path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "envs" / "other")], check=True)
    answer = places.run_in(places.ready("cpu"), EXAMPLES[number], [tmp_path, package])
    assert answer.returncode == 0, answer.stderr


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 9


def test_detect_then_classify(package) -> None:
    """The script of the usual advice: its functions and their calls stand as they are, the class is ours."""
    text = (places.REPO / "examples" / "detect_then_classify.py").read_text()
    assert text.count("cohabit") == 1
    answer = places.run_in(places.ready("cpu"), f"__name__ = '__main__'\n{text}", [package])
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[:3] == ["3 17 cross", "20 5 box", "11 11 ring"]
