"""Kills processes of a worker at random points while callers call; says what became of every call.

`run(1000)` is what bench/workers --kills runs, the tests run fewer. `kills.py KILLS INTERRUPTS` does it in a process
whose main thread calls too and has Ctrl-C at random points, in call() and in asyncio.run().
"""
from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import sys
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
        kind = self.random.randrange(6)
        if kind == 0:
            self._same(self.random.randbytes(100))
        elif kind == 1:
            self._same(bytes([self.random.randrange(256)]) * self.random.randrange(1 << 20))
        elif kind == 2:
            self._same([{"key": i, "values": [i, str(i), None]} for i in range(self.random.randrange(500))])
        elif kind == 3:
            self.worker.call("sleep", self.random.random() / 100)
        elif kind == 4:  # more than a socket takes at once: the end comes in the middle of a message
            self._same([b"x" * 20000] * self.random.randrange(100))
        else:
            self.worker.call("sleep", self.random.random() / 20, timeout=self.random.random() / 20)

    def _same(self, value) -> None:
        answer = self.worker.call("echo", value)
        if answer != value:
            self.wrong.append(f"{str(answer)[:100]} for {str(value)[:100]}")


def left_behind(pids: set[int], files: int) -> list[str]:
    """What is still there of them, after some time to end: processes, zombies, descriptors, mappings, threads."""
    end = time.monotonic() + 10
    while (left := there(pids, files)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def there(pids: set[int], files: int) -> list[str]:
    gc.collect()
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


def kill(worker: cohabit.Worker, count: int, seed: int, threads: list[Caller], pids: set[int], until: float) -> int:
    chooser, killed = random.Random(seed), 0
    while killed < count and time.monotonic() < until:
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
    return killed


def run(count: int, callers: int = 4, processes: int = 2, python: str | None = None, seed: int = 1, interrupts: int = 0) -> dict:
    stop, pids = threading.Event(), set()  # type: ignore[var-annotated]
    files = len(os.listdir("/proc/self/fd"))
    start, told = time.monotonic(), {}
    with cohabit.Worker("killed", env=python, setup="service:make", path=HERE, workers=processes, log=False,
                        max_pause=0.05, max_restarts=10 * count) as worker:
        threads = [Caller(worker, seed * 1000 + i, stop) for i in range(callers)]
        for thread in threads:
            thread.start()
        until = start + 60 + count
        if interrupts:
            threads.append(Interrupted(worker, seed * 1000 + callers, stop))
            told = threads[-1].interrupt_and_kill(count, interrupts, seed, threads, pids, until)
        else:
            told = {"killed": kill(worker, count, seed, threads, pids, until)}
        worker.call("pid", timeout=LONGEST)  # it comes back
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(LONGEST)
        pids.update(worker.pids)
    hung = sum(thread.is_alive() for thread in threads)
    total = {name: sum(getattr(thread, name) for thread in threads) for name in ("results", "crashes", "timeouts")}
    wrong = [text for thread in threads for text in thread.wrong]
    longest = max(thread.longest for thread in threads)
    del worker, thread, threads
    return {**told, **total, "wrong": wrong[:10], "hung": hung, "longest_call_s": round(longest, 3),
            "left_behind": left_behind(pids, files), "seconds": round(time.monotonic() - start, 1)}


class Interrupted(Caller):
    """Calls in the main thread, and is never started: Ctrl-C comes there."""

    def interrupt_and_kill(self, count: int, interrupts: int, seed: int, threads: list[Caller], pids: set[int], until: float) -> dict:
        self.within, self.steps, self.interrupted, self.in_asyncio = False, 0, 0, 0
        killed: list[int] = []
        killer = threading.Thread(target=lambda: killed.append(kill(self.worker, count, seed, threads, pids, until)))
        sender = threading.Thread(target=self._send, args=(interrupts, killer, until))
        before = signal.signal(signal.SIGINT, self._interrupt)
        for thread in (killer, sender):
            thread.start()
        while sender.is_alive() or killer.is_alive():
            begin = time.monotonic()
            try:
                if self.random.random() < 0.3:
                    self._gather()
                else:
                    self.within = True
                    self._one()
                self.within = False
                self.results += 1
            except KeyboardInterrupt:
                self.interrupted += 1
            except cohabit.WorkerCrashed:
                self.crashes += 1
            except cohabit.WorkerTimeout:
                self.timeouts += 1
            except BaseException as error:
                self.wrong.append(repr(error))
            self.within = False
            self.steps += 1
            self.longest = max(self.longest, time.monotonic() - begin)
        signal.signal(signal.SIGINT, before)
        return {"killed": sum(killed), "interrupted": self.interrupted, "in_asyncio": self.in_asyncio}

    def _interrupt(self, *_: object) -> None:
        """As Python's own, but only where the library's code runs: what is tested is not this loop."""
        if self.within:
            self.within = False
            raise KeyboardInterrupt

    def _gather(self) -> None:
        """asyncio has its own Ctrl-C, which cancels the task (Python 3.11 and newer)."""
        async def calls() -> None:
            answers = await asyncio.gather(*(self.worker.acall("echo", [i, b"x" * 40000 * (i % 2)]) for i in range(6)), return_exceptions=True)
            for i, answer in enumerate(answers):
                if isinstance(answer, BaseException):
                    if not isinstance(answer, cohabit.WorkerCrashed):
                        raise answer
                elif answer != [i, b"x" * 40000 * (i % 2)]:
                    self.wrong.append(f"{str(answer)[:100]} for {i}")

        loop = asyncio.new_event_loop()
        try:
            task = loop.create_task(calls())
            loop.add_signal_handler(signal.SIGINT, task.cancel)
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            self.in_asyncio += 1
            raise KeyboardInterrupt from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, self._interrupt)
            loop.close()

    def _send(self, count: int, killer: threading.Thread, until: float) -> None:
        """One at a time; no fewer than `count` arrive, if there is time."""
        while (self.interrupted < count or killer.is_alive()) and time.monotonic() < until:
            time.sleep(self.random.random() ** 2)  # each may cost a process, and its start
            before = self.steps
            os.kill(os.getpid(), signal.SIGINT)
            while self.steps == before and time.monotonic() < until + LONGEST:
                time.sleep(0.001)


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), interrupts=int(sys.argv[2]), seed=int(sys.argv[3]))))
