"""A text says the same after a narrow terminal, a box, a log of JSON, a page or an editor had it."""
from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import MECHANISMS, slugs, why  # noqa: E402


def cut(text: str, width: int) -> str:
    """As a terminal does it: at the last column, words or not."""
    return "\n".join(line[at:at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Between words; a word that is longer than the line stands out."""
    lines = []
    for line in text.split("\n"):
        words = re.findall(r"\S+|^\s+", line)
        now = ""
        for word in words:
            if now and len(now) + 1 + len(word) > width:
                lines.append(now)
                now = indent + word
            else:
                now = f"{now} {word}" if now.strip() else now + word
        lines.append(now)
    return "\n".join(lines)


def boxed(text: str, width: int) -> str:
    return "\n".join(f"│ {line:<{width}} │" for line in cut(text, width).split("\n"))


WAYS = {
    "a terminal of 80 columns": lambda text: cut(text, 80),
    "a terminal of 100 columns": lambda text: cut(text, 100),
    "words of 80 columns": lambda text: wrapped(text, 80),
    "words below a first line": lambda text: wrapped(text, 76, "      "),
    "a box": lambda text: boxed(text, 96),
    "a file of docker": lambda text: json.dumps({"log": text + "\n", "stream": "stderr"}),
    "a record in a record": lambda text: json.dumps({"message": json.dumps({"exception": text, "level": "error"})}),
    "bytes as Python shows them": lambda text: f"stderr={text.encode()!r}",
    "a page": lambda text: html.escape(text),
    "an editor": lambda text: re.sub(r'"([^"\n]*)"', "“\\1”", text).replace("'", "’"),
}
# Patterns for the last lines, and those that go on in the next line, are for lines as they were; a notice is an answer
# where a text is short.
TEXTS = [(slug, text) for slug, data in MECHANISMS.items() if not any(signal.get("weight") == "notice" for signal in data["signals"])
         for text in [text for text in data["matches"] if "\n" not in text.strip() and len(text) > 40][:1]]


@pytest.mark.parametrize("way", WAYS)
def test_says_the_same(way: str, cohabit: str):
    assert len(TEXTS) > 40
    asked = [(slug, WAYS[way](text)) for slug, text in TEXTS]
    wrong = [(slug, text) for slug, text in asked if slugs(why(cohabit, text))[:1] != [slug]]
    assert not wrong


def test_a_path_of_windows_is_no_string(cohabit: str):
    text = 'FAIL : LoadLibrary failed with error 126 "" when trying to load "C:\\new\\native\\onnxruntime_providers_cuda.dll"'
    assert slugs(why(cohabit, '[x] ' + text))[:1] == ["win-missing-transitive-dll"]


def test_lines_keep_their_numbers(cohabit: str):
    text = json.dumps({"log": "a\nb\nImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"})
    answer = why(cohabit, f"first\n{text}\nlast\n")["answers"][0]
    assert answer["matched"][0]["line"] == 2
