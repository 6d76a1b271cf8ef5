"""Metadata that a full disk or a careless script has spoiled: said once, with what to do."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} whole 1.0
  file whole/__init__.py x = 1
"""


@pytest.fixture
def info(tmp_path: Path) -> Path:
    casefile.build_world(WORLD, tmp_path / "world")
    place = tmp_path / "world" / SITE / "whole-1.0.dist-info"
    (place / "WHEEL").write_text("Wheel-Version: 1.0\n")
    return place


def said(cohabit: str, info: Path, command: str) -> str:
    done = subprocess.run([cohabit, command, info.parents[3], *(["--imports", "whole"] if command == "fix" else [])],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("command", ["doctor", "fix"])
def test_what_is_whole_is_not_spoken_of(cohabit: str, info: Path, command: str) -> None:
    assert "whole-1.0.dist-info" not in said(cohabit, info, command)


@pytest.mark.parametrize("command", ["doctor", "fix"])
def test_an_empty_list_of_files(cohabit: str, info: Path, command: str) -> None:
    (info / "RECORD").write_bytes(b"")
    sentence = f"{info}/RECORD is empty, so nothing is known of the files of whole; install whole 1.0 again"
    assert said(cohabit, info, command).count(sentence) == 1


@pytest.mark.parametrize("command", ["doctor", "fix"])
@pytest.mark.parametrize("name", ["RECORD", "WHEEL"])
def test_a_directory_where_a_file_was(cohabit: str, info: Path, command: str, name: str) -> None:
    (info / name).unlink()
    (info / name).mkdir()
    text = said(cohabit, info, command)
    assert text.count(f"{info}/{name} is no file") == 1 and "install whole 1.0 again" in text


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 9], ids=["empty", "binary"])
def test_metadata_that_names_nothing(cohabit: str, info: Path, content: bytes) -> None:
    (info / "METADATA").write_bytes(content)
    text = said(cohabit, info, "doctor")
    assert text.count("whole-1.0.dist-info/METADATA") <= 1
    assert "the metadata of whole 1.0 cannot be read: its METADATA is damaged" in text and "nstall the distribution again" in text
