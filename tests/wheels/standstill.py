"""Ends a run that stands still.

A process that crashes in the allocator can wait for itself for ever: glibc calls abort() with the arena's lock held
(_int_free, malloc/malloc.c: "double free or corruption"), and a framework's handler of the signal allocates (paddle's
prints a stack). With paddlepaddle-gpu 2.6.2 each such crash ends so, whoever started it.
"""
from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

STILL = 60.0  # seconds in which nothing of the run used a processor: an import sleeps for no such time
LOOK = 2.0


def tree(root: int) -> dict[int, tuple[int, int]]:
    """Process ids of `root` and what came from it, with parent and CPU ticks."""
    all_processes = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:  # it ended meanwhile
            continue
        if len(words) > 12 and words[0] != "Z":
            all_processes[int(entry.name)] = int(words[1]), int(words[11]) + int(words[12])
    found = {root: all_processes[root]} if root in all_processes else {}
    grows = True
    while grows:
        more = {pid: values for pid, values in all_processes.items() if pid not in found and values[0] in found}
        found.update(more)
        grows = bool(more)
    return found


class Watch:
    """While it is entered: kills those of the process's tree that started nothing else, once all stand still. What started
    them (`cohabit trace`, say) sees them end by a signal, and ends by itself. `with_root`: the process itself counts and
    can be killed, too."""

    def __init__(self, root: int, with_root: bool = True, still: float = STILL) -> None:
        self.root, self.with_root, self.still = root, with_root, still
        self.killed: list[int] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        last, same = None, 0.0
        while not self._done.wait(LOOK):
            now = tree(self.root)
            if not self.with_root:
                now.pop(self.root, None)
            same = same + LOOK if now and now == last else 0.0
            last = now
            if same >= self.still:
                parents = {parent for parent, _ in now.values()}
                for pid in now.keys() - parents:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
                last, same = None, 0.0
