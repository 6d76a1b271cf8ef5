"""Every mechanism file: its real texts are answered with it, its near misses are not."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import MECHANISMS, slugs, why  # noqa: E402

SAFETY = {"safe", "unsafe", "manual"}
KINDS = {"version change", "import order", "env var", "library path", "isolation", "memory limit",
         "driver upgrade", "reinstall", "code change", "system", "hardware"}


def pairs(key: str) -> list:
    return [pytest.param(slug, text, id=f"{slug}-{i}")
            for slug, data in MECHANISMS.items() for i, text in enumerate(data.get(key, []))]


@pytest.mark.parametrize("slug, text", pairs("matches"))
def test_text_is_answered(slug: str, text: str, cohabit: str):
    assert slugs(why(cohabit, text))[:1] == [slug]


# `$` is the end of a line, not of all that is shown to a pattern. A notice that a healthy run prints too is answered
# in a short text only.
@pytest.mark.parametrize("slug, text", pairs("matches"))
def test_what_follows_changes_nothing(slug: str, text: str, cohabit: str):
    alone = why(cohabit, text)["answers"][0]
    followed = slugs(why(cohabit, text + "\nand so on\nthe end\n"))[:1]
    assert followed == [alone["mechanism"]] or (alone["severity"] == "note" and followed == [])


@pytest.mark.parametrize("slug, text", pairs("near_misses"))
def test_near_miss_is_not(slug: str, text: str, cohabit: str):
    assert slug not in slugs(why(cohabit, text))


@pytest.mark.parametrize("slug", MECHANISMS)
def test_file_is_whole(slug: str):
    data = MECHANISMS[slug]
    assert data["slug"] == slug
    for key in ("headline", "explanation", "decides", "sources", "matches", "near_misses",
                "signals", "fixes"):
        assert data[key], f"{key} is empty"
    assert not data["headline"].endswith(".")
    for name in data.get("consequence_of", []) + data.get("specializes", []):
        assert name == "*" or name in MECHANISMS, name
    ids = {fix.get("id") for fix in data["fixes"]}
    for fix in data["fixes"]:
        assert fix["kind"] in KINDS
        assert fix.get("safety", "manual") in SAFETY
        assert fix["text"]
    for signal in data["signals"]:
        assert 0 < signal["confidence"] < 1
        assert signal.get("fix") in ids | {None}
        assert len(signal.keys() & {"pattern", "cuda_errors", "windows_errors", "missing_header"}) == 1
        re.compile(signal.get("pattern", ""))


def test_every_capture_in_words_is_captured_somewhere():
    for slug, data in MECHANISMS.items():
        words = data["headline"] + data["explanation"] + "".join(
            fix["text"] + fix.get("command", "") for fix in data["fixes"])
        patterns = "".join(signal.get("pattern", "(?P<error_number>(?P<tool>") for signal in data["signals"])
        patterns += "".join(tell["pattern"] for tell in data.get("tells", []))
        for name in re.findall(r"\{([a-z_]+)(?:\|[^}]*)?\}", words):
            assert f"?P<{name}>" in patterns, f"{slug}: {{{name}}} is in no pattern"


def test_what_is_added_to_a_headline_stands_apart(cohabit: str):
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 7.79 GiB"
    answer = why(cohabit, text)["answers"][0]
    assert answer["headline"] == "the GPU's memory is used up (1.50 GiB)"
