"""Mixed calls of many callers for a while: each one's results in order, memory flat."""
from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import cohabit

HERE = Path(__file__).resolve().parent


def memory(pids: list[int]) -> tuple[int, int]:
    """Resident MiB of these processes: of their own, and shared memory (counted once for each that uses it)."""
    own = shared = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            own += int(line.split()[1]) if line.startswith(("RssAnon", "RssFile")) else 0
            shared += int(line.split()[1]) if line.startswith("RssShmem") else 0
    return own >> 10, shared >> 10


def caller(worker: cohabit.Worker, number: int, end: float, done: list[int], wrong: list[str]) -> None:
    chooser, count = random.Random(number), 0
    try:
        while time.monotonic() < end:
            count += 1
            size = chooser.choice((0, 100, 10_000, 200_000, 3_000_000))
            sent = [number, count, bytearray(chooser.randbytes(1)) * size]
            answer = worker.call("echo", sent, timeout=60)
            if answer[:2] != sent[:2] or bytes(answer[2]) != sent[2]:
                wrong.append(f"{number}: {answer[:2]} for {sent[:2]}")
    except BaseException as error:
        wrong.append(repr(error))
    done[number] = count


def run(seconds: float, python: str | None = None, callers: int = 16) -> dict:
    end, done, wrong = time.monotonic() + seconds, [0] * callers, []  # type: ignore[var-annotated]
    with cohabit.Worker("mixed", env=python, setup="service:make", path=HERE, workers=2) as worker:
        worker.call("pid")
        threads = [threading.Thread(target=caller, args=(worker, i, end, done, wrong)) for i in range(callers)]
        for thread in threads:
            thread.start()
        samples = []  # after each tenth; callers hold copies of up to 3 MB at random
        for tenth in range(1, 11):
            time.sleep(max(end - seconds + seconds * tenth / 10 - 0.2 - time.monotonic(), 0))
            samples.append(memory([os.getpid(), *worker.pids]))
        for thread in threads:
            thread.join(90)
    return {"calls": sum(done), "least": min(done), "most": max(done), "wrong": wrong[:10],
            "own_MiB": [own for own, _ in samples], "shared_MiB": [shared for _, shared in samples]}
