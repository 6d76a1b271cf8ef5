"""Texts of failures only: what is printed ten thousand times is answered as it is when printed once, and the last
line of a long text is seen. Restart loops change times, processes and addresses."""
from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from logs import all_logs  # noqa: E402
from texts import MECHANISMS, slugs, why  # noqa: E402

CLASH = 'ImportError: generic_type: type "_gpuDeviceProperties" is already registered!\n'
OPENMP = "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\n"


def looped(text: str, times: int, chance: random.Random) -> str:
    """As a supervisor shows it: a line of its own before and after, numbers that differ."""
    turns = []
    for n in range(times):
        turns.append(f"2026-01-0{chance.randint(1, 9)} 03:{chance.randint(10, 59)}:05,{chance.randint(100, 999)} worker-{n % 8} "
                     f"starts, attempt {n}\n{text}\n<object at 0x{chance.randrange(1 << 40, 1 << 47):x}> of process {chance.randint(2, 99999)} is gone\n")
    return "".join(turns)


@pytest.mark.parametrize("slug", MECHANISMS)
def test_a_failure_again_and_again(slug: str, cohabit: str) -> None:
    chance = random.Random(slug)
    for text in MECHANISMS[slug]["matches"][:3]:
        once = slugs(why(cohabit, looped(text, 2, chance)))  # of short texts notices are answers too
        assert slugs(why(cohabit, looped(text, 40, chance))) == once, text


@pytest.mark.parametrize("first, last", [(CLASH, OPENMP), (OPENMP, CLASH)])
def test_two_problems_far_apart(first: str, last: str, cohabit: str) -> None:
    chance = random.Random(1)
    loop = looped(MECHANISMS["static-tls"]["matches"][0], 5000, chance)
    found = slugs(why(cohabit, first + loop + last))
    assert found[0] == slugs(why(cohabit, first))[0] and slugs(why(cohabit, last))[0] in found and "static-tls" in found


def test_parts_of_a_large_text(cohabit: str) -> None:
    """A text is searched in parts of 32 MiB, whose borders lie anywhere."""
    filler = "step 1000 of 9000, loss 0.25 and nothing else to say about it here\n" * 10
    turn = filler * 50
    text = (CLASH + turn * 2000)[:70_000_000] + "\n" + OPENMP
    report = why(cohabit, text)
    assert slugs(report) == ["pybind11-type-clash", "openmp-duplicate"]
    assert report["answers"][1]["matched"][0]["line"] == text.count("\n")
    for border in (32 << 20, 64 << 20):
        for before in range(0, len(CLASH), 7):
            moved = filler * (border // len(filler) + 1)
            moved = moved[:border - before - 1] + "\n" + CLASH
            assert slugs(why(cohabit, moved)) == ["pybind11-type-clash"]


def test_a_number_that_says_something(cohabit: str) -> None:
    """The same line but for a number that some pattern names."""
    usual = "".join(f"python.exe: fails with error {n} [WinError {n}] while importing it\n" for n in range(2000, 2200))
    other = "python.exe: fails with error 1114 [WinError 1114] while importing it\n"
    assert slugs(why(cohabit, other)) and slugs(why(cohabit, usual + other)) == slugs(why(cohabit, other))
    exits = "".join(f"worker of process {n} exited with code {n % 50 + 1} after a while\n" for n in range(1000, 1400))
    last = "worker of process 9999 exited with code 139 after a while\n"
    assert slugs(why(cohabit, last)) and slugs(why(cohabit, exits + last)) == slugs(why(cohabit, last))


def test_near_misses_hide_nothing_at_the_ends(cohabit: str) -> None:
    """What is tried in vain rests; the end of a large text is searched for all again, and the other literal of a
    pattern is searched for where the first is everywhere."""
    chance = random.Random(2)
    def word() -> str:
        return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=9))
    near = "".join(f"ImportError: generic_type: {word()} \"{word()}\" is not registered by {word()} OMP: Error {word()}\n" for _ in range(12_000))
    middle = "ImportError: /x/libnccl.so.2: cannot open shared object file: No such file or directory\n"
    text = CLASH + near + middle + near * 7 + OPENMP
    assert len(text) > 9_000_000
    found = slugs(why(cohabit, text))
    assert {"pybind11-type-clash", "openmp-duplicate", "missing-soname-or-path"} <= set(found)


def test_a_failing_log_again_and_again(cohabit: str) -> None:
    for log in [log for log in all_logs() if log.causes][::10]:
        once = slugs(why(cohabit, log.text))
        assert slugs(why(cohabit, log.text * 20))[:1] == once[:1], log.name


@pytest.mark.parametrize("seed", range(20))
def test_lines_that_go_on_differently_behind_equal_numbers(seed: int, cohabit: str) -> None:
    """Lines between repetitions of a failure are compared with those of the last time; one of them may differ anywhere."""
    chance = random.Random(seed)
    def line() -> str:
        return "".join(chance.choice(["12", "7", "deadbeef1", "0x7f00", "a", "x", " ", ":", ".", ",", "\r", "é"])
                       for _ in range(chance.randrange(12)))
    lines = [line() for _ in range(4)] + ["status 12 left", "status 12, left", "id deadbeef12 left", "id deadbeef12: left"]
    text = "".join(CLASH + "".join(chance.choice(lines) + "\n" for _ in range(chance.randrange(1, 4))) for _ in range(300))
    report = why(cohabit, text + OPENMP)
    assert slugs(report) == ["pybind11-type-clash", "openmp-duplicate"]
    assert report["answers"][1]["matched"][0]["line"] == text.count("\n") + 1
