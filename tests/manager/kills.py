"""Kills processes of a worker at random points while callers call; says what became of every call.

`run(1000)` is what bench/workers --kills runs, the tests run fewer.
"""
from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from pathlib import Path

import cohabit

HERE = Path(__file__).resolve().parent
LONGEST = 60  # seconds that no call may take


class Caller(threading.Thread):
    def __init__(self, worker: cohabit.Worker, seed: int, stop: threading.Event):
        super().__init__(daemon=True)
        self.worker, self.random, self.stop_event = worker, random.Random(seed), stop
        self.results = self.crashes = self.timeouts = 0
        self.longest = 0.0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.stop_event.is_set():
            start = time.monotonic()
            try:
                self._one()
                self.results += 1
            except cohabit.WorkerCrashed:
                self.crashes += 1
            except cohabit.WorkerTimeout:
                self.timeouts += 1
            except BaseException as error:
                self.wrong.append(repr(error))
            self.longest = max(self.longest, time.monotonic() - start)

    def _one(self) -> None:
        kind = self.random.randrange(5)
        if kind == 0:
            self._same(self.random.randbytes(100))
        elif kind == 1:
            self._same(bytes([self.random.randrange(256)]) * self.random.randrange(1 << 20))
        elif kind == 2:
            self._same([{"key": i, "values": [i, str(i), None]} for i in range(self.random.randrange(500))])
        elif kind == 3:
            self.worker.call("sleep", self.random.random() / 100)
        else:
            self.worker.call("sleep", self.random.random() / 20, timeout=self.random.random() / 20)

    def _same(self, value) -> None:
        answer = self.worker.call("echo", value)
        if answer != value:
            self.wrong.append(f"{str(answer)[:100]} for {str(value)[:100]}")


def left_behind(pids: set[int], files: int) -> list[str]:
    """What is still there of them: processes, zombies, descriptors, mappings."""
    gc.collect()
    end = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
        time.sleep(0.01)
    result = [f"process {pid}" for pid in sorted(pids) if os.path.exists(f"/proc/{pid}")]
    now = len(os.listdir("/proc/self/fd"))
    result += [f"{now - files} descriptors"] if now > files else []
    result += [line for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:cohabit" in line]
    result += [thread.name for thread in threading.enumerate() if thread.name.startswith("cohabit-")]
    return result


def wait_for_result(threads: list[Caller]) -> None:
    before, end = sum(thread.results for thread in threads), time.monotonic() + 5
    while sum(thread.results for thread in threads) == before and time.monotonic() < end:
        time.sleep(0.002)


def run(count: int, callers: int = 4, processes: int = 2, python: str | None = None, seed: int = 1) -> dict:
    chooser, stop, pids = random.Random(seed), threading.Event(), set()
    files = len(os.listdir("/proc/self/fd"))
    start, killed = time.monotonic(), 0
    with cohabit.Worker("killed", env=python, setup="service:make", path=HERE, workers=processes, log=False,
                        max_pause=0.05, max_restarts=10 * count) as worker:
        threads = [Caller(worker, seed * 1000 + i, stop) for i in range(callers)]
        for thread in threads:
            thread.start()
        while killed < count and time.monotonic() - start < 60 + count:
            if chooser.random() < 0.8:  # some die at their start, most at work
                wait_for_result(threads)
            time.sleep(chooser.random() ** 3 / 2)
            for pid in worker.pids:
                pids.add(pid)
                if chooser.random() < 0.5:
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
        worker.call("pid", timeout=LONGEST)  # it comes back
        stop.set()
        for thread in threads:
            thread.join(LONGEST)
        pids.update(worker.pids)
    hung = sum(thread.is_alive() for thread in threads)
    total = {name: sum(getattr(thread, name) for thread in threads) for name in ("results", "crashes", "timeouts")}
    wrong = [text for thread in threads for text in thread.wrong]
    longest = max(thread.longest for thread in threads)
    del worker, thread, threads
    return {"killed": killed, **total, "wrong": wrong[:10], "hung": hung, "longest_call_s": round(longest, 3),
            "left_behind": left_behind(pids, files), "seconds": round(time.monotonic() - start, 1)}
