"""Bytes that a snapshot shared and that were written over in place: they are fetched again, from the wheel that has
them, or the restore is refused."""
from __future__ import annotations

import subprocess
from pathlib import Path

import index as made
import pytest

CORE = "numlib/core.so"


@pytest.fixture
def run(cohabit: str):
    def call(environment: made.Environment, command: str, *words, code: int = 0, variables: dict | None = None):
        done = subprocess.run([cohabit, command, "--env", environment.root, *map(str, words)], capture_output=True, text=True,
                              timeout=300, env={**environment.variables, **(variables or {})})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return call


@pytest.fixture
def spoiled(environment, serve, run, tmp_path: Path):
    """An environment with a snapshot `old`, of which one file was then written in place; its index; the file's bytes."""
    wheels = tmp_path / "wheels"
    wheel = made.make_wheel(wheels, "numlib", "2.1.0", {"numlib/__init__.py": b"v = 2\n", CORE: made.noise(100_000),
                                                         "numlib/big.so": made.noise(3_000_000, 5)}, stored=True)
    index = serve(wheels)
    environment.variables |= {"PIP_INDEX_URL": index.address(), "UV_INDEX_URL": index.address()}
    command = ([environment.root / "bin/python", "-m", "pip"] if environment.installer == "pip" else ["uv", "pip"]) + ["install"]
    if environment.installer == "uv":
        command += ["--python", environment.root / "bin/python"]
    subprocess.run([*command, "numlib"], check=True, env=environment.variables, capture_output=True)
    run(environment, "snapshot", "old")
    place = environment.site / CORE
    data = place.read_bytes()
    with place.open("r+b") as file:
        file.seek(500)
        file.write(b"over")
    assert place.read_bytes() != data and place.stat().st_nlink > 1
    return environment, index, data, wheel


def test_fetched_again(spoiled, run):
    environment, index, data, wheel = spoiled
    index.sent.clear()
    done = run(environment, "restore", "old")
    assert f"{CORE}, from numlib-2.1.0-py3-none-any.whl" in done.stderr and "fetched again" in done.stderr
    assert (environment.site / CORE).read_bytes() == data
    assert data[:100] in wheel.read_bytes() and index.sent["cohabit"] < 400_000, "only the member is fetched"
    # The snapshot has them now.
    with (environment.site / "numlib/__init__.py").open("a") as file:
        file.write("# more\n")
    (environment.site / CORE).unlink()
    for file in index.directory.iterdir():
        file.unlink()
    refused = run(environment, "restore", "old", code=2, variables={"UV_NO_CACHE": "1"})
    assert "numlib/__init__.py" in refused.stderr and CORE not in refused.stderr.split("nothing was changed")[1]
    (environment.site / "numlib/__init__.py").unlink()


def test_what_cannot_be_had_is_refused(spoiled, run, tmp_path: Path):
    environment, index, data, wheel = spoiled
    before = (environment.site / CORE).read_bytes()
    made.make_wheel(index.directory, "numlib", "2.1.0", {"numlib/__init__.py": b"v = 2\n", CORE: made.noise(100_000, 9)})
    done = run(environment, "restore", "old", code=2, variables={"UV_NO_CACHE": "1"})
    assert f"{CORE}: it was written in place since" in done.stderr and "cannot be had again" in done.stderr
    assert (environment.site / CORE).read_bytes() == before, "nothing was changed"


def test_guard_takes_back_what_was_written_in_place(spoiled, run):
    environment, index, data, wheel = spoiled
    run(environment, "restore", "old")
    done = run(environment, "guard", "--", "sh", "-c", f"printf over | dd of={environment.site}/{CORE} conv=notrunc; exit 4",
               code=4)
    assert "taken back" in done.stderr and "fetched again" in done.stderr
    assert (environment.site / CORE).read_bytes() == data
