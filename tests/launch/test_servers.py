"""The repair reaches processes that servers and launchers start: uvicorn --reload, torchrun."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import environments
import pytest

SERVER = {"python": "3.11", "gigabytes": 0.1, "requirements": ["uvicorn==0.54.0"]}
RULES = "cohabit-rules 1\nenvironment FROM_RULES=yes\npreload libz.so.1\ndlopen -global /not/there/liba.so\n"
# Writes down what this process is, one line each.
TELL = """
import json, os
maps = open("/proc/self/maps").read()
with open(os.environ["DIARY"], "a") as diary:
    diary.write(json.dumps({"pid": os.getpid(), "rank": os.environ.get("RANK"), "from_rules": os.environ.get("FROM_RULES"),
                            "preloads": os.environ.get("LD_PRELOAD", "").split(":")[-1],
                            "interposed": "libcohabit_preload.so" in maps, "zlib": "libz.so.1" in maps}) + "\\n")
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    (tmp_path / "rules").write_text(RULES)
    return str(tmp_path / "rules")


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the processes have written down so far."""
    monkeypatch.setenv("DIARY", str(tmp_path / "diary"))

    def read() -> list[dict]:
        path = tmp_path / "diary"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return read


def is_repaired(process: dict) -> bool:
    return (process["from_rules"], process["preloads"], process["interposed"], process["zlib"]) == ("yes", "libz.so.1", True, True)


def wait_for(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def test_uvicorn_reload(cohabit: str, rules: str, diary, tmp_path: Path) -> None:
    try:
        home = environments.make("server", SERVER)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    application = tmp_path / "app" / "served.py"
    application.parent.mkdir()
    application.write_text(TELL + "async def app(scope, receive, send): pass\n")
    process = subprocess.Popen([cohabit, "run", "--repair", rules, "--", f"{home}/bin/python", "-m", "uvicorn", "served:app", "--reload",
                                "--port", "0"], cwd=application.parent, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(lambda: len(diary()) >= 1)
        time.sleep(1.1)  # the reloader compares times of files
        application.write_text(application.read_text() + "# changed\n")
        wait_for(lambda: len({told["pid"] for told in diary()}) >= 2)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.pid not in {told["pid"] for told in diary()} and all(map(is_repaired, diary()))


def test_torchrun(cohabit: str, rules: str, diary, tmp_path: Path) -> None:
    homes = sorted(environments.cache_root().glob("envs/cpu-*/cohabit-complete"))
    if not homes:
        pytest.skip("no environment: scripts/environments.py cpu makes it")
    script = tmp_path / "trained.py"
    script.write_text(TELL)
    done = subprocess.run([cohabit, "run", "--repair", rules, "--", f"{homes[0].parent}/bin/python", "-m", "torch.distributed.run",
                           "--standalone", "--nproc-per-node", "2", str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(told["rank"] for told in diary()) == ["0", "1"] and all(map(is_repaired, diary()))
