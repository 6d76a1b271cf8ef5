"""`cohabit verify --ocr`: a drawn text is read by real PP-OCR models, alone and beside torch in both orders."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "manager"))
import places  # noqa: E402


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> str:
    return str(places.with_rapidocr(tmp_path_factory.mktemp("ocr") / "env"))


def verify(cohabit: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([cohabit, "verify", *arguments, "--format", "json"], capture_output=True, text=True, timeout=560,
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": ""} | variables)


def test_real_models_beside_torch(cohabit: str, environment: str) -> None:
    done = verify(cohabit, environment, "--ocr")
    runs = json.loads(done.stdout)["runs"]
    assert [run["imports"] for run in runs] == [["rapidocr_paddle"], ["torch", "rapidocr_paddle"], ["rapidocr_paddle", "torch"]]
    assert {run["outcome"] for run in runs} == {"ok"} and done.returncode == 0, runs


def test_a_text_that_is_read_wrongly(cohabit: str, environment: str, tmp_path: Path) -> None:
    """The models are replaced by one that always sees the same."""
    (tmp_path / "rapidocr_paddle.py").write_text(
        "class RapidOCR:\n    def __call__(self, image):\n"
        "        assert image.shape == (120, 480, 3) and 500 < (image < 99).sum() < 50000\n"
        "        return [[None, 'CORRUPT', 0.9]], None\n")
    done = verify(cohabit, environment, "--imports", "rapidocr_paddle", PYTHONPATH=str(tmp_path))
    (run,) = json.loads(done.stdout)["runs"]
    assert done.returncode == 1 and run["outcome"] == "wrong-result" and "was read as 'CORRUPT'" in run["detail"]


def test_without_models(cohabit: str) -> None:
    done = verify(cohabit, sys.executable, "--ocr")
    assert done.returncode == 2 and "rapidocr-paddle" in done.stderr
    assert verify(cohabit, sys.executable, "--ocr", "--imports", "json").returncode == 2
