"""Installs that break what is there, of real packages: said by check, refused by guard, and taken back where guard
could not ask before. Equality by tests/guard's own walk (sha256)."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import environments
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "guard"))
import world  # noqa: E402

INSTALLED = {"python": "3.11", "gigabytes": 2, "requirements": [
    "opencv-python==4.9.0.80", "onnxruntime-gpu==1.22.0", "numpy==1.26.4", "pandas==2.1.4", "scikit-learn==1.3.2"]}
# Wheels for CUDA 13 and 12 with the same paths, the smaller ones of those.
VENDOR = {"python": "3.11", "gigabytes": 2, "requirements": ["nvidia-nvshmem-cu13==3.7.2", "nvidia-nccl-cu13==2.30.7"]}
VENDOR_SEQUENCES = {
    "nvshmem of another CUDA": (["nvidia-nvshmem-cu12==3.8.0"], 1, "FI001", ["nvidia-nvshmem-cu12 3.8.0", "67 files"]),
    "NCCL of another CUDA": (["nvidia-nccl-cu12==2.32.3"], 1, "FI001", ["nvidia-nccl-cu12 2.32.3", "50 files"]),
}
# What is asked for; check's exit code; the rule that says what breaks, and words of it that a person
# would look for.
SEQUENCES = {
    "opencv twice": (["opencv-contrib-python==4.9.0.80"], 1, "FI001", ["opencv-python", "opencv-contrib-python"]),
    "onnxruntime over its GPU build": (["onnxruntime==1.22.0"], 1, "FI001", ["onnxruntime-gpu", "onnxruntime 1.22.0"]),
    "numpy 2 under wheels for 1": (["numpy==2.2.6"], 1, "PY005", ["NumPy 2.2.6", "pandas 2.1.4"]),
    "two levels down": (["flax==0.12.2"], 1, "PY005", ["NumPy 2", "pandas 2.1.4"]),
}


def copy_of(name: str, what: dict, place: Path) -> Iterator[Path]:
    """Byte for byte: guard changes it. pytest would keep a gigabyte of it."""
    try:
        made = environments.make(name, what)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    subprocess.run(["cp", "-a", made, place], check=True)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield from copy_of("sequences", INSTALLED, tmp_path / "env")


@pytest.fixture
def vendor(tmp_path: Path) -> Iterator[Path]:
    yield from copy_of("vendor", VENDOR, tmp_path / "env")


def run(command: list, code: int) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900,
                          env=environments.uv_environment() | {
                              "CUDA_VISIBLE_DEVICES": "",
                              "PATH": f"{Path(environments.uv()).parent}:{os.environ['PATH']}"})
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done


def walk(home: Path) -> dict[bytes, tuple]:
    """But for uv's lock, of which it changes the time."""
    return {path: row for path, row in world.walk(home).items() if path != b".lock"}


def install(home: Path, asked: list[str]) -> list[str]:
    return [environments.uv(), "pip", "install", "--python", str(home / "bin/python"), *asked]


@pytest.mark.parametrize("name", SEQUENCES)
def test_it_is_said_refused_and_taken_back(name: str, home: Path, cohabit: str) -> None:
    try_sequence(SEQUENCES[name], home, cohabit)


@pytest.mark.parametrize("name", VENDOR_SEQUENCES)
def test_files_of_another_cuda(name: str, vendor: Path, cohabit: str) -> None:
    try_sequence(VENDOR_SEQUENCES[name], vendor, cohabit)


def test_a_copy_that_was_written_in_place(vendor: Path, cohabit: str) -> None:
    """Its bytes are in the wheel still: one member of it is fetched."""
    before = walk(vendor)
    run([cohabit, "snapshot", "whole", "--env", vendor], 0)
    library = vendor / "lib/python3.11/site-packages/nvidia/nccl/include/nccl.h"
    status = library.stat()
    with library.open("r+b") as file:
        file.write(b"over")
    assert status.st_size == library.stat().st_size
    done = run([cohabit, "restore", "whole", "--env", vendor], 0)
    assert "nccl.h, from nvidia_nccl_cu13-2.30.7" in done.stderr
    assert world.differences(before, walk(vendor)) == {}


def test_exported_and_made_again(cohabit: str, tmp_path: Path) -> None:
    """Of the environment where it was made: scripts of a copy name another place."""
    try:
        home = Path(environments.make("sequences", INSTALLED))
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    run([cohabit, "export", home, "--out", tmp_path / "pylock.toml"], 0)
    done = run([cohabit, "recreate", home, tmp_path / "again"], 1)
    assert "differs cohabit-complete: it is not there any more" in done.stdout and "; 1 differ" in done.stdout, \
        "the one file that no wheel brought"
    done = run([cohabit, "recreate", tmp_path / "pylock.toml", tmp_path / "from-file", "--env", home], 0)
    assert "files are equal" in done.stdout
    for name in ("again", "from-file"):
        one, other = walk(home), walk(tmp_path / name)
        bytes_of = [{path: row[2] for path, row in side.items() if row[0] == "file" and not path.endswith(b".pyc")}
                    for side in (one, other)]
        own = world.differences(*bytes_of)
        assert all(path.startswith((b"bin/", b"pyvenv.cfg", b"cohabit-complete")) or b".dist-info/" in path for path in own), own
        shutil.rmtree(tmp_path / name)


def try_sequence(sequence: tuple, home: Path, cohabit: str) -> None:
    asked, exit_code, code, words = sequence
    before = walk(home)
    said = json.loads(run([cohabit, "check", "--env", home, "--format", "json", *asked], exit_code).stdout)
    headlines = " ".join(finding["headline"] for finding in said["findings"] if finding["code"] == code)
    assert all(word in headlines for word in words), said["findings"]
    refused = run([cohabit, "guard", "--env", home, "--", *install(home, asked)], 1).stderr
    assert "nothing was installed" in refused and f"[{code}]" in refused
    # An installer that guard cannot ask: what it does is seen afterwards.
    hidden = ["env", "-S", " ".join(install(home, asked))]
    done = run([cohabit, "guard", "--env", home, "--", *hidden], 1).stderr
    assert "taken back" in done and f"[{code}]" in done, done
    assert "it came with: " + asked[0].partition("==")[0] in done or "it came with: numpy" in done, done
    assert world.differences(before, walk(home)) == {}


# Of frameworks: what is there; what is asked for, with options; words of check, of guard that refuses, and of guard that takes back.
LARGE = {
    "cuDNN of another CUDA": (
        "3.12", 2, ["nvidia-cudnn-cu13==9.26.0.51"], ["nvidia-cudnn-cu12==9.28.0.42"],
        ["FI001", "nvidia-cudnn-cu12 9.28.0.42 would overwrite 22 files of nvidia-cudnn-cu13 9.26.0.51"], ["FI001"],
        ["has overwritten 22 files", "it came with: nvidia-cudnn-cu12 9.28.0.42 added"]),
    "tensorflow over tensorflow-cpu": (
        "3.11", 3, ["tensorflow-cpu==2.18.0"], ["tensorflow==2.18.0"],
        ["FI001", "tensorflow 2.18.0 would overwrite 28 files of tensorflow_cpu 2.18.0"], ["FI001"],
        ["has overwritten 28 files", "it came with: tensorflow 2.18.0 added"]),
    "torch replaced by a requirement": (
        "3.10", 4, ["torch==2.1.2", "torchvision==0.16.2", "numpy<2"], ["xformers==0.0.23"],
        ["DOWNGRADED  torch 2.1.2 -> 2.1.1", "xformers==0.0.23 -> torch==2.1.1"], ["which was not asked for"],
        ["PY001", "it came with: torch 2.1.2 -> 2.1.1, required by xformers"]),
    "torchvision of another torch": (
        "3.10", 4, ["torch==2.1.2", "torchvision==0.16.2", "numpy<2"], ["--no-deps", "torchvision==0.17.0"],
        ["PY001", "torch 2.1.2 is not what is required by torchvision 0.17.0 (==2.2.0)"], ["PY001"],
        ["PY001", "it came with: torchvision 0.16.2 -> 0.17.0"]),
}


@pytest.mark.parametrize("name", LARGE)
def test_frameworks_said_refused_and_taken_back(name: str, cohabit: str, tmp_path: Path) -> None:
    """Hard links into uv's cache, as uv makes them: neither guard nor what it takes back may change a byte of it."""
    python, gigabytes, there, asked, said, refused, taken_back = LARGE[name]
    home = tmp_path / "env"
    try:
        environments.make_at(home, python, there, gigabytes)
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    before = walk(home)
    done = run([cohabit, "check", "--env", home, *[word for word in asked if word != "--no-deps"],
                *(["--no-deps"] if "--no-deps" in asked else [])], 1)
    assert all(words in done.stdout for words in said), done.stdout
    done = run([cohabit, "guard", "--env", home, "--", *install(home, asked)], 1)
    assert "nothing was installed" in done.stderr and all(words in done.stderr for words in refused), done.stderr
    done = run([cohabit, "guard", "--env", home, "--", "env", "-S", " ".join(install(home, asked))], 1)
    assert "taken back" in done.stderr and all(words in done.stderr for words in taken_back), done.stderr
    assert world.differences(before, walk(home)) == {}
    shutil.rmtree(home)


def test_what_is_installed_stays_where_it_can(home: Path, cohabit: str) -> None:
    """uv forgets it when it may not build; then optax would bring the newest NumPy."""
    said = json.loads(run([cohabit, "check", "--env", home, "--format", "json", "optax==0.2.6"], 0).stdout)
    really = run([*install(home, ["optax==0.2.6"]), "--dry-run"], 0).stderr
    assert {change["name"] for change in said["changes"]} == {
        line.split()[1].partition("==")[0] for line in really.splitlines() if line.startswith(" + ")}


def test_steps_name_the_requirement(home: Path, cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tomli==2.0.1\nopencv-contrib-python==4.9.0.80\nsix\n")
    done = run([cohabit, "guard", "--env", home, "--step", "-r", tmp_path / "requirements.txt", "--",
                *install(home, [])], 1)
    assert "stopped at step 2 of 3, opencv-contrib-python==4.9.0.80" in done.stderr
    assert list(home.glob("lib/python3*/site-packages/tomli-2.0.1.dist-info"))
    assert os.path.exists(home / "lib/python3.11/site-packages/cv2/__init__.py")
