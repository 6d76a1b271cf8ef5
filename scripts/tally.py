#!/usr/bin/env python3
"""Adds up what scripts/test wrote: DIR/NAME.status (exit status) and, where a suite counts its own
tests, DIR/NAME.xml (JUnit). Prints what failed and what was skipped and why, and last one line:
N passed, N failed, N skipped."""
from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def count(directory: Path, suite: str) -> tuple[Counter, list[str]]:
    status = int((directory / f"{suite}.status").read_text())
    report = directory / f"{suite}.xml"
    counts, remarks = Counter(), []
    if report.exists():
        try:
            cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        except ElementTree.ParseError as error:
            cases = []
            remarks.append(f"FAILED  {suite}: its report cannot be read ({error})")
        for case in cases:
            name = f"{suite}: {case.get('name')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
                remarks.append(f"FAILED  {name}")
            elif skipped is not None or case.get("status") in ("notrun", "disabled"):
                reason = (skipped.get("message") if skipped is not None else "") or "no reason given"
                counts["skipped"] += 1
                remarks.append(f"skipped {name}: {reason}")
            else:
                counts["passed"] += 1
        # A suite that broke down, or found nothing to do, has not passed.
        if (status != 0 and not counts["failed"]) or not cases:
            counts["failed"] += 1
            remarks.append(f"FAILED  {suite}: exit status {status}, {len(cases)} tests reported")
    else:
        counts["failed" if status else "passed"] += 1
        if status:
            remarks.append(f"FAILED  {suite}: exit status {status}")
    return counts, remarks


def main() -> int:
    directory = Path(sys.argv[1])
    total, remarks = Counter(), []
    for status in sorted(directory.glob("*.status"), key=lambda p: p.stat().st_mtime):
        counts, more = count(directory, status.stem)
        total += counts
        remarks += more
        seconds = directory / f"{status.stem}.seconds"
        time = f"{seconds.read_text().strip():>5} s" if seconds.exists() else ""
        print(f"  {status.stem:<16} {counts['passed']:>5} passed {counts['failed']:>3} failed "
              f"{counts['skipped']:>3} skipped  {time}")
    print("\n".join(remarks))
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
