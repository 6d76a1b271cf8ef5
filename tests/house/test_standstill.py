"""The watch of tests/wheels ends runs that stand still, and no others."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wheels"))

import standstill  # noqa: E402

WAITS = "import threading; threading.Event().wait()"
WORKS = "import time\nwhile time.process_time() < 6: pass"
PARENT = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {WAITS!r}]).returncode != -9)"


def ended(code: str, **options: float) -> tuple[int, list[int]]:
    process = subprocess.Popen([sys.executable, "-c", code])
    with standstill.Watch(process.pid, **options) as watch:
        status = process.wait()
    return status, watch.killed


def test_who_waits_for_ever_is_killed() -> None:
    status, killed = ended(WAITS, still=4)
    assert status == -9 and len(killed) == 1


def test_the_child_is_killed_and_its_parent_says_so() -> None:
    status, killed = ended(PARENT, still=4)
    assert status == 0 and len(killed) == 1


def test_who_works_is_left_alone() -> None:
    assert ended(WORKS, still=4) == (0, [])
