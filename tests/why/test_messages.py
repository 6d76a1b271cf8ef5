"""Messages that no mechanism file quotes."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from messages import MESSAGES  # noqa: E402
from texts import slugs, why  # noqa: E402


@pytest.mark.parametrize("slug, text", [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(MESSAGES)])
def test_first_answer(slug: str | None, text: str, cohabit: str):
    assert slugs(why(cohabit, text))[:1] == [slug] * (slug is not None)
