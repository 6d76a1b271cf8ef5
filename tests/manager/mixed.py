"""Mixed calls of many callers for a while: each one's results in order, memory flat."""
from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import sys
import threading
import time
from pathlib import Path

import cohabit

HERE = Path(__file__).resolve().parent


def memory(pids: list[int]) -> tuple[int, int]:
    """Resident MiB of these processes: of their own, files included, and shared memory (counted once for each that uses it)."""
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
    done[number] += count


def call_for(seconds: float, worker: cohabit.Worker, callers: int, done: list[int], wrong: list[str]) -> list[tuple[int, int, int]]:
    """That long; memory after each fifth: this process's own, that of the worker's, what they share."""
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=caller, args=(worker, i, end, done, wrong)) for i in range(callers)]
    for thread in threads:
        thread.start()
    samples = []
    for fifth in range(1, 6):
        time.sleep(max(end - seconds + seconds * fifth / 5 - 0.2 - time.monotonic(), 0))
        (ours, shared), (theirs, shared_too) = memory([os.getpid()]), memory(worker.pids)
        samples.append((ours, theirs, shared + shared_too))
    for thread in threads:
        thread.join(90)
    return samples


class Rest:
    """What this process holds while no call runs. Resident memory does not tell: glibc has an arena for each of some
    threads, and keeps there what was freed; so does Python with small objects."""

    def __init__(self) -> None:
        gc.collect()
        self.blocks = sys.getallocatedblocks()
        self.malloc = malloc_in_use()


def malloc_in_use() -> int:
    """Bytes that malloc has handed out and that were not freed: of all arenas, and mapped ones."""
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    # Behind the arenas: the sums of all. What is in a thread's own cache counts as in use.
    sums = ctypes.string_at(text, size.value).decode().rpartition("</heap>")[2]
    libc.free(text)
    found = {name: int(value) for name, value in re.findall(r'<(?:total|system) type="(\w+)"(?: count="\d+")? size="(\d+)"', sums)}
    return found["current"] + found["mmap"] - found["fast"] - found["rest"]


def run(seconds: float, python: str | None = None, callers: int = 16) -> dict:
    done, wrong, samples, rests = [0] * callers, [], [], []  # type: ignore[var-annotated]
    with cohabit.Worker("mixed", env=python, setup="service:make", path=HERE, workers=2) as worker:
        worker.call("pid")
        for part in (0.5, 0.5):
            samples += call_for(seconds * part, worker, callers, done, wrong)
            rests.append((Rest(), sum(done)))
    (before, few), (after, all_calls) = rests
    return {"calls": sum(done), "least": min(done), "most": max(done), "wrong": wrong[:10],
            # Callers hold copies of up to 3 MB at random.
            "own_MiB": [ours for ours, _, _ in samples], "processes_MiB": [theirs for _, theirs, _ in samples],
            "shared_MiB": [shared for _, _, shared in samples],
            "kept_calls": all_calls - few, "kept_blocks": after.blocks - before.blocks, "kept_bytes": after.malloc - before.malloc}
