"""Holds the predicted imports of native code against what real extension modules import.

    check_natives.py BUILD ENVIRONMENT RECORD ...

RECORD is what record_native.py wrote in that environment. A module is rightly predicted when the
extension loads it while it initialises (recall), and a `likely` prediction does no harm when the
module is loaded by the end of the run (precision): it may have been loaded before, unseen.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys


def with_parents(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[: i + 1]) for i in range(len(parts))}


def natives_of(build: str, environment: str, names: list[str]) -> dict:
    done = subprocess.run([f"{build}/tests/imports/finder_dump", environment, "--natives"], check=True,
                          capture_output=True, text=True, input="\n".join(names))
    return json.loads(done.stdout).get("found", {})


def leads_to_native(name: str, record: dict) -> bool:
    return ".so" in record["files"].get(name, "")


def main() -> None:
    build, environment, *records = sys.argv[1:]
    verbose = os.environ.get("VERBOSE")
    for path in records:
        record = json.load(open(path))
        predicted = natives_of(build, environment, list(record["modules"]))
        loaded = set(record["order"])
        position = {name: i for i, name in enumerate(record["order"])}
        total = got = got_likely = native = native_got = native_likely = 0
        likely_all = likely_good = likely_in_time = any_all = any_good = 0
        spent = []
        for module, entry in record["modules"].items():
            answer = predicted.get(module)
            if not answer:
                continue
            spent.append(answer["milliseconds"])
            names = {n for n, _ in answer["imports"]}
            likely = {n for n, sure in answer["imports"] if sure}
            covered = {p for n in names for p in with_parents(n)}
            covered_likely = {p for n in likely for p in with_parents(n)}
            truth = {n for n in entry["loads"] if n in record["files"]}
            total += len(truth)
            got += len(truth & covered)
            got_likely += len(truth & covered_likely)
            so = {n for n in truth if leads_to_native(n, record)}
            native += len(so)
            native_got += len(so & covered)
            native_likely += len(so & covered_likely)
            in_time = {n for n in likely if position.get(n, 1 << 30) < entry["known"]}
            likely_all += len(likely)
            likely_good += len(likely & loaded)
            likely_in_time += len(in_time)
            any_all += len(names)
            any_good += len(names & loaded)
            if verbose:
                asked = set(entry["asks"])
                for word, which in (("missed", truth - covered), ("unlikely", (truth & covered) - covered_likely),
                                    ("harmful", likely - loaded), ("early", likely & loaded - in_time - asked)):
                    if which:
                        print(f"  {module}: {word} {sorted(which)}")
        print(f"{os.path.basename(path)}: {len(spent)} extensions; loads {total}: found {got}, likely {got_likely}; "
              f"of these extensions {native}: found {native_got}, likely {native_likely}; "
              f"likely {likely_all}: loaded in the run {likely_good}, by the end of the init {likely_in_time}; "
              f"all {any_all}: loaded {any_good}; {sum(spent):.0f} ms, worst {max(spent, default=0):.0f} ms")


if __name__ == "__main__":
    main()
