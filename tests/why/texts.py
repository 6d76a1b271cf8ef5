"""The knowledge files as the tests see them, and one way to ask the command about a text."""
from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
MECHANISMS = {path.stem: tomllib.loads(path.read_text())
              for path in sorted((REPO / "data" / "mechanisms").glob("*.toml"))}


def why(cohabit: str, text: str | bytes, *arguments: str) -> dict:
    data = text.encode() if isinstance(text, str) else text
    run = subprocess.run([cohabit, "why", "-", "--format", "json", *arguments], input=data,
                         capture_output=True, check=False, timeout=600)  # a hang ends
    assert run.returncode in (0, 1), run.stderr.decode()
    report = json.loads(run.stdout)
    assert run.returncode == (1 if report["answers"] else 0)
    return report


def slugs(report: dict) -> list[str]:
    return [answer["mechanism"] for answer in report["answers"]]
