"""restore and guard on real packages, killed at random moments: the environment is the old or the new one once the next
command has run. Equality by tests/guard's own walk (sha256)."""
from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import environments

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "guard"), str(HERE)]
import world  # noqa: E402
from test_healthy import home_of  # noqa: E402

KILLS = 100
VARIABLES = environments.uv_environment() | {
    "PATH": f"{Path(environments.uv()).parent}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}


class Place:
    def __init__(self, cohabit: str, root: Path):
        self.cohabit, self.root = cohabit, root

    def command(self, *words: str) -> list[str]:
        return [self.cohabit, words[0], "--env", str(self.root), *words[1:]]

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300, env=VARIABLES)

    def seconds(self, *words: str) -> float:
        begin = time.perf_counter()
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout[-1000:], done.stderr[-2000:])
        return time.perf_counter() - begin

    def kill(self, after: float, *words: str) -> None:
        with subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=VARIABLES) as process:
            time.sleep(after)
            process.kill()
        for _ in range(600):  # an installer that was started goes on, and holds the lock
            if (done := self.run("snapshots")).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError(done.stderr)

    def walk(self) -> dict:
        return {name: row for name, row in world.walk(self.root, times=False).items() if name != b".lock"}


def test_killed_on_real_packages(cohabit: str, tmp_path: Path) -> None:
    chance = random.Random(2026)
    root = tmp_path / "env"
    subprocess.run(["cp", "-a", home_of("media"), root], check=True)
    place = Place(cohabit, root)
    uninstall = [environments.uv(), "pip", "uninstall", "--python", str(root / "bin/python")]
    states = {"all": place.walk()}
    place.seconds("snapshot", "all")
    subprocess.run([*uninstall, "-q", "soundfile", "pillow", "av"], check=True, env=VARIABLES)
    states["few"] = place.walk()
    place.seconds("snapshot", "few")
    length = {"restore": place.seconds("restore", "all")}
    assert world.differences(states["all"], place.walk()) == {}
    guard = ["guard", "--force", "--", *uninstall, "soundfile"]
    length["guard"] = place.seconds(*guard)
    states["without"] = place.walk()
    place.seconds("restore", "all")
    at, seen = "all", set()
    for _ in range(KILLS):
        words = chance.choice([["restore"], ["restore"], guard])
        if words is guard and at != "all":
            place.seconds("restore", "all")
            at = "all"
        wanted = "without" if words is guard else "few" if at == "all" else "all"
        place.kill(chance.uniform(0, 1.2 * length[words[0]]), *(guard if words is guard else ["restore", wanted]))
        now = place.walk()
        after = next((name for name in (at, wanted) if states[name] == now), None)
        assert after, (words, at, wanted, list(world.differences(states[at], now))[:9], list(world.differences(states[wanted], now))[:9])
        seen.add((words[0], after == wanted))
        at = after
    assert seen == {(name, ended) for name in ("restore", "guard") for ended in (False, True)}, "kills before and after what counts"
    shutil.rmtree(root)
