#!/usr/bin/env python3
"""Makes logs.tar.xz: long logs of environments that are really broken, and of healthy runs.

  tests/why/make_logs.py [--envs DIRECTORY] [--work DIRECTORY] [--only TEXT] [--keep DIRECTORY] [--out FILE]

--envs holds the environments of tests/wheels (cpu, newest, ocr, serving, ...: directories of these
names or NAME-HASH), --work is on the same file system: the environments are copied there by hard
links. Each scenario runs in one of the styles below, several at once. What --keep has already is
not made again. Needs root for the small /dev/shm.
"""
from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "scripts")]

import broken_runs  # noqa: E402
import environments  # noqa: E402
import healthy_runs  # noqa: E402
from environment_copy import EnvironmentCopy  # noqa: E402

# Beside those of tests/wheels: what a service and a test run need.
OWN_ENVIRONMENTS = {"server": {"python": "3.11", "gigabytes": 1, "requirements": [
    "uvicorn", "fastapi", "pytest", "pip", "setuptools<80", "wheel", "numpy<2", "pandas", "matplotlib", "absl-py", "tqdm"]},
    "arrays3.11": {"python": "3.11", "gigabytes": 0.6, "requirements": ["numpy==2.2.6"]}}
HERE = Path(__file__).resolve().parent
Scenario = broken_runs.Broken | healthy_runs.Healthy
MOST_LINES = 5000  # the ends of longer logs are kept: begin and end
END_OF_PYTHON = re.compile(rb"(?:\[rank\d\]: )?# (?:destroy|cleanup\[\d\]|wipe|clear) ")  # thousands of lines of `python -v`
MOST_ENDS = 200
SECONDS = 240

PROGRAM = """
import itertools, logging, random, sys, time
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr,
                    format="%(asctime)s %(levelname)s [4711] %(name)s:%(lineno)d %(message)s")
clock = itertools.count(1760000000)  # the archive stays small
logging.Formatter.formatTime = lambda self, record, form=None: time.strftime("%Y-%m-%d %H:%M:%S,000", time.gmtime(next(clock)))
log = logging.getLogger("trainer")
chance = random.Random(1)
def work(count):
    for i in range(count):
        kind = chance.randrange(12)
        if kind == 0: sys.stderr.write("".join(f"\\rloading shard {i}: {n * 10:3d}%|{'#' * n:10}|" for n in range(11)) + "\\n")
        elif kind == 1: log.warning("slow batch %d: %.2f s, %d samples dropped, retry 1 of 3", i, chance.random(), kind)
        elif kind == 2: log.debug("cache miss key=%016x size=%d MiB free=%.1f GiB", chance.getrandbits(64), i, 12.3)
        elif kind == 3: log.warning("DeprecationWarning: option --fp16 is deprecated, use --dtype; error rate %.3f", 0.01)
        elif kind == 4: print({"epoch": i // 100, "eval_loss": round(chance.random(), 4), "errors": 0}, flush=True)
        else: log.info("epoch %d step %d loss %.4f lr 3e-4 tokens/s %d mem 10.2/23.6 GiB", i // 100, i, chance.random(), 9000 + i)
"""
# A service that goes on after its model has failed to load, as most do.
SERVICE = PROGRAM + """
work(900)
for attempt in range(3):
    try:
        exec(compile(CODE, "/srv/app/serve.py", "exec"), {"log": log, "__name__": "__main__"})
        break
    except Exception:
        log.exception("loading the model failed, attempt %d", attempt + 1)
        work(200)
else:
    work(700)
    sys.exit(1)
work(700)
"""
SCRIPT = PROGRAM + """
work(1500)
exec(compile(CODE, "/srv/app/train.py", "exec"), {"log": log, "__name__": "__main__"})
work(500)
"""
OTHER_RANK = PROGRAM + "work(1200)\n"


class Maker:
    """The runs in one copy of one environment, one after the other."""

    def __init__(self, envs: Path, work: Path):
        work.mkdir(parents=True, exist_ok=True)
        self.envs, self.work = envs, work
        self.failed = False  # a run of the scenario

    def original(self, name: str) -> Path:
        if name in OWN_ENVIRONMENTS:
            return environments.make(name, OWN_ENVIRONMENTS[name])
        found = [path for path in sorted(self.envs.iterdir()) if path.name.rpartition("-")[0] == name or path.name == name]
        if not found:
            raise FileNotFoundError(f"no environment {name} in {self.envs}")
        return found[0]

    def others(self, name: str) -> Path:
        return next(self.original(name).glob("lib/python3*/site-packages"))

    def place(self, environment: str) -> broken_runs.Place:
        scratch = self.work / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        copy = EnvironmentCopy(self.original(environment), self.work / environment)
        return broken_runs.Place(copy, self.others, scratch)

    def run(self, place: broken_runs.Place, code: str, program: str, *options: str) -> bytes:
        variables = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
                     "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "2", "TERM": "xterm"} | place.variables
        script = place.scratch / "run_it.py"
        script.write_text(program.replace("CODE", repr(code)))
        command = [*place.wrapper, place.copy.python, *options, str(script)]
        try:
            run = subprocess.run(command, env=variables, cwd=self.work, stdin=subprocess.DEVNULL, timeout=SECONDS,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired as late:
            raise ValueError(f"it ran longer than {SECONDS} seconds") from late
        self.failed = self.failed or run.returncode != 0
        end = {-11: b"Segmentation fault (core dumped)\n", -6: b"Aborted (core dumped)\n",
               -4: b"Illegal instruction (core dumped)\n", -7: b"Bus error (core dumped)\n"}  # as a shell says it
        return run.stdout + end.get(run.returncode, b"")

    def verbose(self, place: broken_runs.Place, code: str) -> bytes:
        """Python's own import log: thousands of lines, after what an installer has printed."""
        listing = subprocess.run([sys.executable, "-m", "pip", "--python", place.copy.python, "list", "-v"],
                                 capture_output=True, check=False).stdout
        return listing + self.run(place, code, SCRIPT, "-v")

    def service(self, place: broken_runs.Place, code: str) -> bytes:
        return self.run(place, code, SERVICE)

    def ranks(self, place: broken_runs.Place, code: str) -> bytes:
        """Three processes, line by line between one another."""
        logs = [self.run(place, code, SCRIPT).splitlines()]
        healthy = broken_runs.Place(place.copy, self.others, place.scratch)
        logs += [self.run(healthy, "", OTHER_RANK, "-S").splitlines() for _ in range(2)]
        lines = []
        for i in range(max(map(len, logs))):
            lines += [b"[rank%d]: " % rank + log[i] for rank, log in enumerate(logs) if i < len(log)]
        return b"\n".join(lines) + b"\n"

    def talkative(self, place: broken_runs.Place, code: str) -> bytes:
        place.variables = healthy_runs.TALKATIVE | place.variables
        return self.run(place, code, SERVICE)

    def scrub(self, text: bytes) -> bytes:
        for path, name in ((str(self.work / "scratch"), "/srv/app"), (str(self.work), "/srv/env"),
                           (str(self.envs), "/opt/env"), (sys.prefix, "/opt/tools"), (str(Path.home()), "/home/user"),
                           (os.uname().nodename, "node-1")):
            text = text.replace(path.encode(), name.encode())
        text = re.sub(rb"/opt/env/(\w+[\w.]*)-[0-9a-f]{12}", rb"/opt/env/\1", text)
        lines = [line for line in text.split(b"\n") if not line.startswith(b"Looking in ")]
        ends = [at for at, line in enumerate(lines) if END_OF_PYTHON.match(line)]
        for at in reversed(ends[MOST_ENDS:]):
            del lines[at]
        if len(lines) > MOST_LINES:
            lines = lines[:MOST_LINES // 2] + lines[-MOST_LINES // 2:]
        return b"\n".join(lines)

    def make(self, scenario: Scenario, number: int) -> tuple[str, bytes]:
        place = self.place(scenario.environment)
        styles = [self.verbose, self.service, self.ranks]
        if isinstance(scenario, broken_runs.Broken):
            styles.append(self.talkative)
        else:
            place.variables = dict(scenario.variables)
        style = styles[number % len(styles)]
        self.failed = False
        try:
            if isinstance(scenario, broken_runs.Broken):
                scenario.breaks(place)
            text = self.scrub(style(place, scenario.code))
        finally:
            place.copy.restore()
        if self.failed != isinstance(scenario, broken_runs.Broken):
            raise ValueError("it failed" if self.failed else "it did not fail")
        return f"{scenario.name}-{style.__name__}", text


def make_group(maker: Maker, scenarios: list[tuple[int, Scenario]], keep: Path) -> None:
    for number, scenario in scenarios:
        try:
            name, text = maker.make(scenario, number)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{scenario.name} was not made: {error}", flush=True)
            continue
        (keep / name).write_bytes(text)
        print(name, text.count(b"\n"), flush=True)
    shutil.rmtree(maker.work)


def archive(logs: dict[str, bytes], index: dict[str, list[str]], out: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in [("index.json", json.dumps(index, indent=1, sort_keys=True).encode()), *sorted(logs.items())]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    out.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--envs", type=Path, default=Path.home() / ".cache" / "cohabit" / "envs")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "cohabit" / "why-logs")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, default=Path.home() / ".cache" / "cohabit" / "why-kept")
    parser.add_argument("--out", type=Path, default=HERE / "logs.tar.xz")
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, str], list[tuple[int, Scenario]]] = {}
    made = {path.name.rpartition("-")[0] for path in arguments.keep.iterdir()}
    for number, scenario in enumerate([*broken_runs.SCENARIOS, *healthy_runs.SCENARIOS]):
        if arguments.only in scenario.name and scenario.name not in made:
            groups.setdefault((type(scenario).__name__, scenario.environment), []).append((number, scenario))
    with ThreadPoolExecutor(max_workers=3) as pool:
        list(pool.map(lambda item: make_group(
            Maker(arguments.envs.resolve(), arguments.work.resolve() / "-".join(item[0])), item[1], arguments.keep),
            groups.items()))
    logs = {path.name: path.read_bytes() for path in arguments.keep.iterdir()}
    causes = {scenario.name: scenario.causes for scenario in broken_runs.SCENARIOS}
    index = {name: causes.get(name.rpartition("-")[0], []) for name in logs}
    archive(logs, index, arguments.out)


if __name__ == "__main__":
    main()
