"""Versions, specifiers, markers and requirements: our reading against that of `packaging`.

METADATA_SEED and METADATA_CASES choose the random cases; the seed is printed. Both sides read the same
random text, half of it odd, so that what is refused is compared too. Releases of
`packaging` before 26.4 differ from it (scripts/requirements.txt has the one we read like).
"""
from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

SEED = int(os.environ.get("METADATA_SEED") or random.SystemRandom().randrange(1 << 32))
CASES = int(os.environ.get("METADATA_CASES") or 20000)

ENVIRONMENT = {
    "python_version": "3.11", "python_full_version": "3.11.7", "os_name": "posix",
    "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64",
    "platform_python_implementation": "CPython", "implementation_name": "cpython",
    "implementation_version": "3.11.7", "platform_release": "", "platform_version": ""}

RELEASES = ["0", "1", "1.0", "1.0.0", "1.1", "1.2", "1.2.3", "1.10", "2", "2.0.1", "2021.4.0",
            "01.2", "3.11", "3.11.7", "1.2.0.0", "20240101120000"]
PRE = ["", "", "", "a1", "b2", "rc1", "RC", ".alpha.3", "-beta", "_c4", "preview2", "pre", "a.1", "b-2"]
POST = ["", "", "", ".post1", "-1", "post", ".rev2", "-r3", "_post_4"]
DEV = ["", "", "", ".dev1", "dev", "-dev2", ".dev0"]
LOCAL = ["", "", "", "+cu124", "+1", "+cpu", "+01.ab-3", "+2.1", "+10", "+CPU_2"]
OPERATORS = ["==", "!=", "<=", ">=", "<", ">", "~=", "==="]
ODD = ["", "x", "1..2", "1.", "v", "+a", "1+", "1.0+a..b", "=1", "!1", "1 .0", "a1", "1.*", "-1", "1!"]


def version(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(ODD)
    text = rng.choice(["", "", "", "", "1!", "0!", "v"]) + rng.choice(RELEASES)
    parts = [rng.choice(PRE), rng.choice(POST), rng.choice(DEV), rng.choice(LOCAL)]
    return text + "".join(part if rng.random() < 0.7 else "" for part in parts)


def specifier(rng: random.Random) -> str:
    operator = rng.choice(OPERATORS)
    text = rng.choice(RELEASES) if rng.random() < 0.4 else version(rng)
    if rng.random() < 0.2:
        text = rng.choice(RELEASES) + ".*"
    return operator + rng.choice(["", " "]) + text


def specifiers(rng: random.Random) -> str:
    return rng.choice([",", ", "]).join(specifier(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def comparison(rng: random.Random) -> str:
    name = rng.choice([*ENVIRONMENT, "extra", "extra", "python_version", "python_version"])
    if name in ("platform_release", "platform_version"):
        name = "sys_platform"
    values = ["3.8", "3.11", "3.11.7", "3.12", "3.11.*", "linux", "win32", "Linux", "x86_64", "posix",
              "CPython", "cpython", "opt", "Opt_Two", "3.10 3.11", "3", "4.0rc1", ""]
    value = rng.choice(values)
    operator = rng.choice(["==", "!=", "<=", ">=", "<", ">", "in", "not in", "~="])
    quote = rng.choice("'\"")
    sides = [name, f"{quote}{value}{quote}"]
    if rng.random() < 0.2:
        sides.reverse()
    return f"{sides[0]} {operator} {sides[1]}"


def marker(rng: random.Random, depth: int = 0) -> str:
    if rng.random() < 0.02:
        return rng.choice(["", "python_version", "'a' == 'b'", "(os_name == 'a'", "nothing == 'a'"])
    if depth > 2 or rng.random() < 0.5:
        return comparison(rng)
    text = f"{marker(rng, depth + 1)} {rng.choice(['and', 'or'])} {marker(rng, depth + 1)}"
    return f"({text})" if rng.random() < 0.5 else text


def requirement(rng: random.Random) -> str:
    text = rng.choice(["torch", "zope.interface", "A_b-c", "x", "-bad", "bad-", "a b", "4x"])
    text += rng.choice(["", "", "[opt]", "[a,b]", " [ a , B_c ]", "[]", "[a", "[a,]"])
    kind = rng.random()
    clauses = specifiers(rng)
    if kind < 0.5:
        text += rng.choice(["", " "]) + clauses
    elif kind < 0.6:
        text += " (" + clauses + ")"
    elif kind < 0.7:
        text += " @ https://x.org/a.whl;b"
    if rng.random() < 0.4:
        text += rng.choice([" ; ", " ;"]) + marker(rng)
    return text


def ask(probe: Path, questions: list[list[str]]) -> list[str]:
    text = "".join("\t".join(question) + "\n" for question in questions)
    done = subprocess.run([probe], input=text, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def compare(probe: Path, questions: list[list[str]], expect) -> None:
    print(f"seed {SEED}, {len(questions)} cases")
    answers = ask(probe, questions)
    assert len(answers) == len(questions)
    wrong = [(q, a, e) for q, a in zip(questions, answers) if (e := expect(*q[1:])) is not None and a != e]
    assert not wrong, f"seed {SEED}: {len(wrong)} of {len(questions)} differ: {wrong[:10]}"


@pytest.fixture(scope="module")
def probe(build_dir: Path) -> Path:
    path = build_dir / "tests" / "metadata" / "metadata_probe"
    assert path.exists(), f"{path} is missing: build first"
    return path


def test_versions(probe: Path):
    def expect(text: str, _: str = "") -> str:
        try:
            return str(Version(text))
        except InvalidVersion:
            return "invalid"
    rng = random.Random(SEED)
    compare(probe, [["version", version(rng)] for _ in range(CASES)], expect)


def test_order(probe: Path):
    def expect(a: str, b: str) -> str:
        try:
            left, right = Version(a), Version(b)
        except InvalidVersion:
            return "invalid"
        return str((left > right) - (left < right))
    rng = random.Random(SEED)
    compare(probe, [["compare", version(rng), version(rng)] for _ in range(CASES)], expect)


def test_specifiers(probe: Path):
    def expect(text: str, of: str) -> str:
        try:
            return str(SpecifierSet(text).contains(Version(of), prereleases=True)).lower()
        except InvalidSpecifier:
            return "invalid"
        except InvalidVersion:
            return "invalid"
    rng = random.Random(SEED)
    compare(probe, [["contains", specifiers(rng), version(rng)] for _ in range(CASES)], expect)


def test_what_two_requirements_take(probe: Path):
    """Clauses that another implies are left out, and "nothing" is said only where no version will do."""
    rng = random.Random(SEED)
    questions = []
    for _ in range(CASES):
        both = specifiers(rng).replace("===", "==") + "|" + specifiers(rng).replace("===", "==")
        questions.extend(["both", both, version(rng)] for _ in range(4))
    answers = ask(probe, questions)
    said = 0
    for (_, both, of), answer in zip(questions, answers):
        try:
            sets, asked = [SpecifierSet(text) for text in both.split("|")], Version(of)
        except (InvalidSpecifier, InvalidVersion):
            assert answer == "invalid", (both, of)
            continue
        right = all(one.contains(asked, prereleases=True) for one in sets)
        said += answer == "nothing"
        assert answer == str(right).lower() or (answer == "nothing" and not right), f"seed {SEED}: {both} {of}: {answer}"
    assert said > CASES // 20


def test_markers(probe: Path):
    def expect(text: str, extra: str) -> str:
        try:
            return str(Marker(text).evaluate({**ENVIRONMENT, "extra": extra})).lower()
        except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
            return "invalid"
    rng = random.Random(SEED)
    compare(probe, [["marker", marker(rng), rng.choice(["", "opt", "opt-two"])]
                    for _ in range(CASES)], expect)


def test_requirements(probe: Path):
    def expect(text: str) -> str | None:
        try:
            found = Requirement(text)
        except InvalidRequirement:
            return "invalid"
        if found.marker:
            try:
                found.marker.evaluate({**ENVIRONMENT, "extra": ""})
            except (UndefinedComparison, UndefinedEnvironmentName):
                return None  # a requirement, though its marker has no value: ours has none either
        from packaging.utils import canonicalize_name
        extras = "".join(e + "," for e in sorted({canonicalize_name(e) for e in found.extras}))
        clauses = "".join(c + "," for c in sorted(str(s) for s in found.specifier))
        return f"{found.name}|{extras}|{clauses}|{found.url or ''}|{'marker' if found.marker else ''}"

    rng = random.Random(SEED)
    questions = [["requirement", requirement(rng)] for _ in range(CASES)]
    answers = ask(probe, questions)
    wrong = []
    for question, text in zip(questions, answers):
        expected = expect(question[1])
        if expected is None or text == expected == "invalid":
            continue
        if text != expected:
            wrong.append((question, text, expected))
    print(f"seed {SEED}, {CASES} cases")
    assert not wrong, f"seed {SEED}: {len(wrong)} differ: {wrong[:10]}"
