"""Killed at any instant, an environment is the old one or the new one, or the next command completes it."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import world

INSTALLER = """
import sys; sys.path.insert(0, {tests!r})
import world; from pathlib import Path
environment = world.Environment.__new__(world.Environment)
environment.root = Path({root!r}); environment.site = next(environment.root.glob("lib/python3*/site-packages"))
{body}
"""


def installer(environment: world.Environment, body: str) -> list[str]:
    text = INSTALLER.format(tests=str(Path(__file__).parent), root=str(environment.root), body=body)
    return [sys.executable, "-I", "-c", text]


GOOD = 'environment.install("gamma", "0.1", {"gamma.py": b"pass"}); environment.uninstall("nobody")'
BAD = 'environment.uninstall("beta"); environment.install("gamma", "0.1", {"gamma.py": b"pass"})'


def without_times(state: dict) -> dict:
    return {name: row[:3] for name, row in state.items()}


class Scene:
    """An environment that is brought into the same state again and again."""

    def __init__(self, call, environment: world.Environment, tmp_path: Path):
        self.call, self.environment, self.copy = call, environment, tmp_path / "copy"
        self.counter = tmp_path / "count"

    def freeze(self) -> dict:
        world.copy_of(self.environment.root, self.copy)
        return self.environment.walk()

    def thaw(self) -> None:
        world.copy_of(self.copy, self.environment.root)

    def count(self, *words: str) -> int:
        self.call(self.environment, *words, variables={"COHABIT_TEST_COUNT": str(self.counter)}, code=None)
        return int(self.counter.read_text())

    def kill_at(self, step: int, *words: str) -> bool:
        """False: it ended before. The copied environment has other inodes, so that the store may have made
        other directories for them, and the number of changes differs a little."""
        done = self.call(self.environment, *words, variables={"COHABIT_TEST_KILL_AT": str(step)}, code=None)
        assert done.returncode == -signal.SIGKILL or done.returncode in (0, 1), (step, done.returncode, done.stderr)
        return done.returncode == -signal.SIGKILL

    def kills(self, *words: str) -> Iterator[int]:
        """Kills the command in front of each of its changes, from the same state each time."""
        steps = self.count(*words)
        for step in range(1, steps + 1):
            self.thaw()
            if not self.kill_at(step, *words):
                assert step > steps - 20
                return
            yield step


@pytest.fixture
def scene(call, environment, tmp_path: Path) -> Scene:
    return Scene(call, environment, tmp_path)


def test_restore_at_every_change(scene: Scene) -> None:
    scene.call(scene.environment, "snapshot", "a")
    old = scene.environment.walk()
    world.disturb(scene.environment)
    new = scene.freeze()
    steps = scene.count("restore", "a", "--no-undo")
    assert steps > 40 and scene.environment.walk() == old
    states = set()
    for step in range(1, steps + 1):
        scene.thaw()
        assert scene.kill_at(step, "restore", "a", "--no-undo")
        at_kill = scene.environment.walk()
        scene.call(scene.environment, "restore")
        after = scene.environment.walk()
        assert after in (old, new), (step, world.differences(old, after))
        states.add("old" if at_kill == old else "new" if at_kill == new else "between")
        assert after == old or at_kill == new, f"step {step}: what was begun is completed"
    assert states == {"old", "new", "between"}, "the kills hit every phase"


def test_restore_with_undo_at_every_change(scene: Scene) -> None:
    scene.call(scene.environment, "snapshot", "a")
    old = scene.environment.walk()
    scene.environment.uninstall("beta")
    new = scene.freeze()
    for step in scene.kills("restore", "a"):
        scene.call(scene.environment, "snapshots")
        assert scene.environment.walk() in (old, new), step
        scene.call(scene.environment, "restore", "a")
        assert scene.environment.walk() == old, step


def disturbed(scene: Scene) -> tuple[dict, int]:
    """What a restore of "a" gives back, and in how many changes."""
    scene.call(scene.environment, "snapshot", "a")
    old = scene.environment.walk()
    world.disturb(scene.environment)
    scene.freeze()
    return old, scene.count("restore", "a", "--no-undo")


def test_completing_may_be_killed_too(scene: Scene) -> None:
    old, steps = disturbed(scene)
    scene.thaw()
    scene.kill_at(steps * 3 // 4, "restore", "a", "--no-undo")
    for step in range(1, 200, 3):
        done = scene.call(scene.environment, "restore", variables={"COHABIT_TEST_KILL_AT": str(step)}, code=None)
        if done.returncode == 0:
            break
    assert scene.environment.walk() == old


def test_snapshot_at_every_change(scene: Scene) -> None:
    scene.call(scene.environment, "snapshot", "a")
    world.disturb(scene.environment)
    before = scene.freeze()
    for step in scene.kills("snapshot", "b"):
        assert scene.environment.walk() == before, step
        scene.call(scene.environment, "snapshot", "c")
        scene.environment.install("delta", "1", {"delta.py": b"d"})
        scene.call(scene.environment, "restore", "c")
        assert scene.environment.walk() == before, step


@pytest.mark.parametrize("body", [GOOD, BAD])
def test_guard_at_every_change(scene: Scene, body: str) -> None:
    old = scene.freeze()
    words = ("guard", "--", *installer(scene.environment, body))
    steps = scene.count(*words)
    final = scene.environment.walk()
    assert (final == old) == (body == BAD)
    ended = set()
    for step in range(1, steps + 1):
        scene.thaw()
        if not scene.kill_at(step, *words):
            assert step > steps - 20
            break
        scene.call(scene.environment, "snapshots")
        after = scene.environment.walk()
        # The installer's files get the time of their making.
        assert without_times(after) in (without_times(old), without_times(final)), step
        ended.add(without_times(after) == without_times(old))
    assert True in ended


@pytest.mark.parametrize("seed", range(4))
def test_at_random_moments(scene: Scene, cohabit: str, seed: int) -> None:
    """25 kills each, a hundred in all, from outside and at any instant."""
    chance = random.Random(seed)
    scene.call(scene.environment, "snapshot", "a")
    old = scene.environment.walk()
    world.disturb(scene.environment)
    new = scene.freeze()
    guard = ["guard", "--", *installer(scene.environment, GOOD)]
    scene.call(scene.environment, *guard)
    installed = scene.environment.walk()
    scene.thaw()
    start = time.perf_counter()
    scene.call(scene.environment, "restore", "a")
    length = time.perf_counter() - start
    results = {"restore": [old, new], "snapshot": [new], "guard": [new, installed]}
    for _ in range(25):
        scene.thaw()
        words = chance.choice([["restore", "a"], ["restore", "a", "--no-undo"], ["snapshot", "b", "--full"], guard])
        with subprocess.Popen([cohabit, words[0], "--env", scene.environment.root, *words[1:]],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0, length * (4 if words is guard else 1.2)))
            process.kill()
        for _ in range(200):  # an installer that was started goes on, and holds the lock
            done = scene.call(scene.environment, "snapshots", code=None)
            if done.returncode == 0:
                break
            time.sleep(0.05)
        assert done.returncode == 0, done.stderr
        after = without_times(scene.environment.walk())
        assert after in [without_times(state) for state in results[words[0]]], words


def test_the_next_command_looks_at_what_was_completed(scene: Scene) -> None:
    """Not at what lay between: clean puts nothing away then, and guard judges by all that is there."""
    scene.call(scene.environment, "snapshot", "a")
    scene.environment.uninstall("alpha")
    scene.environment.uninstall("beta")
    scene.freeze()
    cleaned = {"clean": 0, "guard": 0}
    for step in scene.kills("restore", "a", "--no-undo"):
        if not (scene.environment.root / ".cohabit/journal").exists():
            continue
        which = ("clean", "guard")[step % 2]
        if which == "clean":
            done = scene.call(scene.environment, "clean", "--unclaimed")
            assert "alpha" not in done.stdout and "beta" not in done.stdout, (step, done.stdout)
        else:
            done = scene.call(scene.environment, "guard", "--no-verify", "--", *installer(scene.environment, GOOD))
            assert "PY001" not in done.stderr and "gamma 0.1 added" in done.stderr, (step, done.stderr)
            assert "beta 1.0 added" not in done.stderr
        cleaned[which] += 1
    assert min(cleaned.values()) > 5


def test_each_command_completes_or_says_what_is_halfway(scene: Scene, cohabit: str) -> None:
    old, steps = disturbed(scene)
    root = str(scene.environment.root)
    for words in (["clean", "--undo"], ["clean", "--forget"], ["snapshots", "--remove", "none"]):
        scene.thaw()
        assert scene.kill_at(steps - 5, "restore", "a", "--no-undo")
        done = scene.call(scene.environment, *words, code=2)
        assert "the interrupted restore of a is complete" in done.stderr and scene.environment.walk() == old
    scene.thaw()
    assert scene.kill_at(steps - 5, "restore", "a", "--no-undo")
    between = scene.environment.walk()
    for command, code in (("check", 2), ("export", 2), ("recreate", 2), ("doctor", None)):
        words = {"check": ["x", "--env", root], "recreate": [root, root + "2"]}.get(command, [root])
        done = subprocess.run([cohabit, command, *words], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
        assert code in (None, done.returncode), done.stderr
        assert "a restore of a was interrupted" in done.stderr and f"restore --env {root}" in done.stderr
    for words in (["restore", "a", "--dry-run"], ["clean", "--dry-run"]):
        done = scene.call(scene.environment, *words, code=2)
        assert "a restore of a was interrupted" in done.stderr, words
    assert scene.environment.walk() == between
    scene.call(scene.environment, "restore")
    assert scene.environment.walk() == old
