"""What a recorded `python -c` was asked to import, and what follows from that for the judgement."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402
from test_surface import run  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
# A library's references to itself are split when libframework is first (cb101_inside), and libuser enters it.
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
file {SITE}/framework/__init__.py
file {SITE}/user/__init__.py
lib env/lib/libsmall.so.1
  defs init reset run finish crc
  refs init reset run crc
lib {SITE}/framework/libframework.so
  needed libsmall.so.1
  defs init reset run unrelated
  refs init
  set {{"runpath": "$ORIGIN/../../.."}}
lib {SITE}/user/libuser.so
  needed libsmall.so.1
  refs init finish
  set {{"runpath": "$ORIGIN/../../.."}}
dist {SITE} framework 1.0
  lists framework/libframework.so
dist {SITE} user 1.0
  lists user/libuser.so
"""
CALLS = f"""open {SITE}/framework/libframework.so
open {SITE}/user/libuser.so
ended 0
"""


@pytest.mark.parametrize("code, imports", [
    ("import framework, user", ["framework", "user"]),
    ("import framework as f, user", ["framework", "user"]),
    ("import framework, \\\n user", ["framework", "user"]),
    ("if 1: import framework, user", ["framework", "user"]),
    ("try:\n  import framework\nfinally:\n  from user import x as y", ["framework", "user"]),
    ("import framework, mine", ["framework", "mine"]),  # own code says nowhere what it needs
])
def test_what_was_asked_for_counts(cohabit: str, tmp_path: Path, code: str, imports: list[str]) -> None:
    casefile.build_world(WORLD, tmp_path)
    trace = tmp_path / "a.trace"
    lines = casefile.make_trace(CALLS, tmp_path / "env/bin/python3", tmp_path).splitlines()
    start = json.loads(lines[0])
    start["arguments"] = [start["program"], "-c", code]
    trace.write_text("\n".join([json.dumps(start), *lines[1:]]) + "\n")
    report = json.loads(run(cohabit, "doctor", "--replay", trace, "--format", "json").stdout)
    assert report["orders"][0]["imports"] == imports
    assert [f["code"] for f in report["findings"] if f["severity"] == "error"] == ["CB101"]


def test_what_nobody_asked_for_sleeps(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(WORLD, tmp_path)
    trace = tmp_path / "a.trace"
    lines = casefile.make_trace(CALLS, tmp_path / "env/bin/python3", tmp_path).splitlines()
    start = json.loads(lines[0])
    start["arguments"] = [start["program"], "-c", "import framework, os"]  # of the standard library: no own code
    trace.write_text("\n".join([json.dumps(start), *lines[1:]]) + "\n")
    report = json.loads(run(cohabit, "doctor", "--replay", trace, "--format", "json").stdout)
    assert [f["code"] for f in report["findings"] if f["severity"] == "error"] == []


def test_an_environment_has_many_names(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(WORLD, tmp_path)
    trace = tmp_path / "a.trace"
    trace.write_text(casefile.make_trace("ended 0\n", tmp_path / "env/bin/python3", tmp_path))
    (tmp_path / "link").symlink_to("env")
    for name in (tmp_path / "link", tmp_path / "env/bin/..", "env"):
        run(cohabit, "doctor", name, "--replay", trace, cwd=tmp_path, code=0)
