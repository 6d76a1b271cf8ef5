#!/usr/bin/env python3
"""Holds a replay against what ld.so really did (ldso_record.py): exit 0 only if they are the same.

  ldso_compare.py TRUTH_DIR --loads LOADS.tsv --bindings BINDINGS.tsv [--lazy]

Same means: the same files in the same order, and for every reference (object, symbol, version) the
same providers. With --lazy the replay may bind more: a run calls only some of its functions.
Lookups by dlsym stand in ld.so's log but belong to no relocation; they are counted apart.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ldso_record import resolved  # noqa: E402

Key = tuple  # (from, symbol, version)


@dataclass
class Comparison:
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    examples: list[str] = field(default_factory=list)
    EXAMPLES_PER_KIND = 5
    INNOCENT = ("same", "dlsym", "not called")

    def note(self, kind: str, text: str = "") -> None:
        self.counts[kind] += 1
        if kind not in self.INNOCENT and self.counts[kind] <= self.EXAMPLES_PER_KIND:
            self.examples.append(f"{kind}: {text}")

    @property
    def agrees(self) -> bool:
        return self.counts["same"] > 0 and all(
            kind in self.INNOCENT for kind, count in self.counts.items() if count)

    def __str__(self) -> str:
        summary = ", ".join(f"{kind} {count}" for kind, count in self.counts.items())
        return "\n".join([summary or "nothing to compare", *self.examples])


def read_bindings(path: Path) -> dict[Key, set[str]]:
    table: dict[Key, set[str]] = defaultdict(set)
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            source, provider, symbol, version = line.rstrip("\n").split("\t")[:4]
            table[resolved(source), symbol, version].add(resolved(provider))
    return table


def read_loads(path: Path) -> list[str]:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return [resolved(line.split("\t", 1)[0].rstrip("\n")) for line in file]


@lru_cache(maxsize=None)
def relocated_symbols(path: str) -> frozenset[tuple[str, str]]:
    """Name and version ('-' if none) of all symbols that an object has a relocation for. The version
    tells: libc asks for libgcc_s's _Unwind_GetCFA by dlsym, without one, and libgcc_s itself with."""
    listing = subprocess.run(["readelf", "-rW", path], capture_output=True).stdout
    columns = (line.split() for line in listing.decode(errors="surrogateescape").splitlines())
    symbols = (c[4] for c in columns if len(c) > 4)
    return frozenset((s.partition("@")[0], s.rpartition("@")[2] if "@" in s else "-") for s in symbols)


def compare(truth: Path, bindings: Path, loads: Path | None = None, lazy: bool = False) -> Comparison:
    result = Comparison()
    real, simulated = read_bindings(truth / "bindings.tsv"), read_bindings(bindings)
    for key, providers in real.items():
        answer = simulated.get(key)
        if answer is None:
            by_dlsym = "/" in key[0] and key[1:] not in relocated_symbols(key[0])
            result.note("dlsym" if by_dlsym else "missing", f"{key} -> {providers}")
        elif answer < providers and providers - answer == {key[0]}:
            result.note("dlsym")  # besides: a handle of the object was asked for its own symbol (TensorFlow and NVML's nvmlInit_v2)
        elif answer == providers or (lazy and (answer <= providers or providers <= answer)):  # of several, not all called
            result.note("same")
        else:
            result.note("other provider", f"{key}: ld.so {providers}, simulated {answer}")
    for key, providers in simulated.items():
        if key not in real:
            result.note("not called" if lazy else "extra", f"{key} -> {providers}")
    if loads:
        ours, theirs = read_loads(loads), read_loads(truth / "loads.tsv")
        at = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]),
                  min(len(ours), len(theirs)))
        if ours != theirs:
            result.note("other loads", f"from number {at} on: ld.so {theirs[at:at + 3]}, "
                                       f"simulated {ours[at:at + 3]}")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--bindings", type=Path, required=True)
    parser.add_argument("--loads", type=Path)
    parser.add_argument("--lazy", action="store_true")
    arguments = parser.parse_args()
    result = compare(arguments.truth, arguments.bindings, arguments.loads, arguments.lazy)
    print(result)
    return 0 if result.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
