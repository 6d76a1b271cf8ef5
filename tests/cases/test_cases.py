"""Runs the case files, holds the JSON report against its schema, and renames the worlds."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402

CASES = casefile.all_cases()
ids = [path.stem for path in CASES]


@pytest.mark.parametrize("path", CASES, ids=ids)
def test_case(path: Path, cohabit: str, tmp_path: Path):
    case = casefile.Case(path)
    output = casefile.run_case(case, cohabit, tmp_path / "world")
    if os.environ.get("UPDATE_CASES"):
        casefile.update(case, output)
    assert output == case.sections["output"], case.title


def json_report(case: casefile.Case, cohabit: str, tmp_path: Path) -> dict:
    return json.loads(casefile.run_case(case, cohabit, tmp_path / "world", "json"))


DOCTOR = [p for p in CASES if casefile.Case(p).sections["command"].startswith("doctor")]


@pytest.mark.parametrize("path", DOCTOR, ids=[p.stem for p in DOCTOR])
def test_schema_and_renaming(path: Path, cohabit: str, tmp_path: Path, repo: Path):
    schema = json.loads((repo / "data" / "schema" / "doctor.schema.json").read_text())
    report = json_report(casefile.Case(path), cohabit, tmp_path)
    jsonschema.validate(report, schema)
    known = {f["id"] for f in report["findings"]}
    in_orders = {i for order in report["orders"] for i in order["findings"]}
    # Those of the environment belong to no order.
    of_orders = {f["id"] for f in report["findings"] if f["imports"] or f["program"]}
    assert of_orders <= in_orders <= known and len(known) == len(report["findings"])

    def outline(result: dict) -> list:
        return sorted((f["code"], f["severity"], f["symbols"]["count"], len(f["libraries"]),
                       sorted((e["kind"], e.get("count", -1)) for e in f["evidence"]))
                      for f in result["findings"])

    for seed in range(0 if "names" in casefile.Case(path).sections else 3):
        renamed = casefile.Case(path)
        renamed.rename(seed)
        other = json_report(renamed, cohabit, tmp_path / str(seed))
        assert outline(other) == outline(report)


FIX = [p for p in CASES if casefile.Case(p).sections["command"].startswith("fix")]


@pytest.mark.parametrize("path", FIX, ids=[p.stem for p in FIX])
def test_renaming_finds_the_same_repair(path: Path, cohabit: str, tmp_path: Path, repo: Path):
    schema = json.loads((repo / "data" / "schema" / "fix.schema.json").read_text())
    report = json_report(casefile.Case(path), cohabit, tmp_path)
    jsonschema.validate(report, schema)

    def outline(result: dict) -> list:
        return [(r["kind"], r["launch"], len(r["clears"]), len(r["leaves"]),
                 re.findall(r"^(preload|dlopen \S+)", r["rules"] or "", re.M),
                 sorted(m["count"] for m in r["moves"])) for r in result["repairs"]]

    for seed in range(0 if "names" in casefile.Case(path).sections else 3):
        renamed = casefile.Case(path)
        renamed.rename(seed)
        assert outline(json_report(renamed, cohabit, tmp_path / str(seed))) == outline(report)


def test_every_rule_has_both_cases(cohabit: str):
    rules = subprocess.run([cohabit, "rules"], capture_output=True, text=True, check=True).stdout
    for code in re.findall(r"^([A-Z]{2}\d{3}) ", rules, re.M):
        outputs = [(casefile.Case(p).path.stem, casefile.Case(p).sections["output"]) for p in CASES
                   if p.stem.startswith(code.lower())]
        assert any(f"[{code}]" in text for _, text in outputs), f"no case in which {code} fires"
        assert any(f"[{code}]" not in text for _, text in outputs), f"no case without {code}"
        explained = subprocess.run([cohabit, "explain", code], capture_output=True, text=True)
        assert explained.returncode == 0 and explained.stdout.startswith(code)
