"""Long logs of real runs (make_logs.py): the cause that was put there is the first answer, and a
healthy run has none."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from logs import all_logs  # noqa: E402
from texts import slugs, why  # noqa: E402

LOGS = all_logs()


@pytest.mark.skipif(not LOGS, reason="logs.tar.xz is not there: tests/why/make_logs.py makes it")
def test_cause_is_the_first_answer(cohabit: str):
    broken = [log for log in LOGS if log.causes]
    assert len(broken) >= 60
    wrong = {log.name: answers[:2] for log in broken
             if (answers := slugs(why(cohabit, log.text)))[:1] == [] or answers[0] not in log.causes}
    assert len(wrong) <= 0.1 * len(broken), wrong


@pytest.mark.skipif(not LOGS, reason="logs.tar.xz is not there: tests/why/make_logs.py makes it")
def test_healthy_runs_have_no_answer(cohabit: str):
    healthy = [log for log in LOGS if not log.causes]
    assert len(healthy) >= 50
    assert {log.name: answers for log in healthy if (answers := slugs(why(cohabit, log.text)))} == {}
