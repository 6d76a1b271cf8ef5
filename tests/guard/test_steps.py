"""guard runs what an install touches, before and after it; and installs step by step."""
from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import venvs
import world
from test_guard import make_wheel
from test_kill import installer

# Nothing of it can be seen in the files: only a run shows it.
DIES = 'environment.install("beta", "2.0", {"beta.py": b"import os, signal\\n' \
       'def useful(): os.kill(os.getpid(), int(signal.SIGSEGV))\\n"})'


@pytest.fixture
def framework(environment) -> world.Environment:
    """With a module that is named as a framework and uses beta; `verify` computes nothing with it."""
    environment.install("beta", "1.0", {"beta.py": b"def useful(): pass\n"})
    environment.install("tensorflow", "1.0", {"tensorflow/__init__.py": b"import beta\nbeta.useful()\n"})
    return environment


def runs(text: str) -> int:
    return text.count("verifying 1 of 1: import tensorflow")


def test_what_really_worked_and_does_not_is_taken_back(framework, call) -> None:
    before = framework.walk()
    done = call(framework, "guard", "--", *installer(framework, DIES), code=1)
    assert world.differences(before, framework.walk()) == {}
    assert "`import tensorflow` worked and does not any more: signal 11 (Segmentation fault)" in done.stderr
    assert "it came with: beta 1.0 -> 2.0, required by alpha\n" in done.stderr and "taken back" in done.stderr
    assert runs(done.stderr) == 2


def test_it_is_kept_when_that_is_wanted(framework, call) -> None:
    done = call(framework, "guard", "--no-verify", "--", *installer(framework, DIES))
    assert runs(done.stderr) == 0 and (framework.site / "beta-2.0.dist-info").exists()
    framework.install("beta", "1.0", {"beta.py": b"def useful(): pass\n"})
    done = call(framework, "guard", "--force", "--", *installer(framework, DIES))
    assert "worked and does not any more" in done.stderr and (framework.site / "beta-2.0.dist-info").exists()


def test_what_never_worked_does_not_count(framework, call) -> None:
    framework.install("beta", "1.5", {"beta.py": b"import os\ndef useful(): os.kill(os.getpid(), 6)\n"})
    done = call(framework, "guard", "--", *installer(framework, DIES))
    assert runs(done.stderr) == 1 and "nothing that was looked at is worse" in done.stderr


def test_what_is_not_touched_is_not_run_again(framework, call) -> None:
    before = framework.walk()
    done = call(framework, "guard", "--", *installer(framework, 'environment.install("gamma", "1", {"gamma.py": b""})'))
    assert runs(done.stderr) == 1
    added = world.differences(before, framework.walk())
    assert {name.split(b"/")[-1] for name in added} == {b"gamma.py", b"gamma-1.dist-info", b"METADATA", b"RECORD"}, \
        "runs leave nothing behind, compiled files neither"


def test_what_comes_by_a_requirement_is_run(environment, call) -> None:
    """beta is no module that tensorflow imports, but libraries come so: by requirement alone."""
    environment.install("tensorflow", "1.0", {"tensorflow/__init__.py": b"import os\nif os.path.exists("
                        b"__file__.replace('tensorflow/__init__.py', 'beta-2.0.dist-info')): os.kill(os.getpid(), 6)\n"}, ("middle",))
    environment.install("middle", "1.0", {"middle.py": b""}, ("beta>=1",))
    done = call(environment, "guard", "--", *installer(environment, 'environment.install("beta", "2.0", {"beta.py": b""})'),
                code=1)
    assert "`import tensorflow` worked and does not any more" in done.stderr and "required by alpha, middle" in done.stderr


@pytest.fixture
def with_pip(tmp_path: Path) -> Path:
    root = tmp_path / "env"
    venvs.make_venv(root)
    return root


def write_requirements(directory: Path) -> Path:
    """Three requirements in two files, with options, a hash, a constraint, comments, lines that go on."""
    wheels = directory / "wheels"
    wheels.mkdir()
    one = make_wheel(wheels, "one", "1.0")
    make_wheel(wheels, "one", "2.0")
    make_wheel(wheels, "two", "1.0", ("one<2",))
    make_wheel(wheels, "two", "0.5", ("one<2",))
    make_wheel(wheels, "three", "1.0")
    (directory / "more").mkdir()
    (directory / "more/limits.txt").write_text("two<1\n")
    (directory / "more/second.txt").write_text("-c limits.txt\ntwo  # any\n")
    digest = hashlib.sha256(one.read_bytes()).hexdigest()
    text = f"# all\n--no-index\n--find-links {wheels}\n\none==1.0 \\\n    --hash=sha256:{digest}\n" \
           "-r more/second.txt\none>=2\nthree\n"
    (directory / "all.txt").write_text(text)
    return directory / "all.txt"


def installed(root: Path) -> set[str]:
    return {place.name[:-10] for place in root.glob("lib/python3*/site-packages/*.dist-info")} & {
        "one-1.0", "one-2.0", "two-1.0", "two-0.5", "three-1.0"}


def test_steps_stop_at_the_one_that_breaks(with_pip: Path, call, tmp_path: Path) -> None:
    requirements = write_requirements(tmp_path)
    done = call(with_pip, "guard", "--step", "-r", str(requirements), code=1)
    assert "step 1 of 4: one==1.0\n" in done.stderr and "step 2 of 4: two\n" in done.stderr
    assert "stopped at step 3 of 4, one>=2: those before it are installed and none after it" in done.stderr
    assert installed(with_pip) == {"one-1.0", "two-0.5"}, "the constraint of the second file holds"
    done = call(with_pip, "guard", "--step", "--force", "--", str(with_pip / "bin/python"), "-m", "pip", "install",
                "--no-index", "--find-links", str(tmp_path / "wheels"), "one==2.0", "three")
    assert "step 2 of 2: three" in done.stderr and installed(with_pip) == {"one-2.0", "two-0.5", "three-1.0"}


@pytest.mark.parametrize("option, encoding", [("-r", "utf-8-sig"), ("--requirement=", "utf-8-sig"), ("-r", "utf-16")])
def test_a_file_behind_its_option(with_pip: Path, call, tmp_path: Path, option: str, encoding: str) -> None:
    """With the mark that editors of Windows put in front, which pip goes by."""
    requirements = write_requirements(tmp_path)
    requirements.write_text(requirements.read_text(), encoding=encoding)
    done = call(with_pip, "guard", "--step", "--", str(with_pip / "bin/python"), "-m", "pip", "install", f"{option}{requirements}",
                code=1)
    assert "step 1 of 4: one==1.0\n" in done.stderr and installed(with_pip) == {"one-1.0", "two-0.5"}


def test_half_a_character_is_no_text(with_pip: Path, call, tmp_path: Path) -> None:
    (tmp_path / "half.txt").write_bytes("one\n".encode("utf-16")[:-1])
    assert "half.txt: begins as UTF-16" in call(with_pip, "guard", "--step", "-r", str(tmp_path / "half.txt"), code=125).stderr


def test_a_wrong_hash_stops_a_step(with_pip: Path, call, tmp_path: Path) -> None:
    requirements = write_requirements(tmp_path)
    requirements.write_text(requirements.read_text().replace("sha256:", "sha256:0")[:-1])
    before = world.walk(with_pip)
    done = call(with_pip, "guard", "--step", "-r", str(requirements), code=None)
    assert done.returncode not in (0, 125) and "stopped at step 1 of 4" in done.stderr
    assert world.differences(before, world.walk(with_pip)) == {}


def test_steps_want_requirements(with_pip: Path, call, tmp_path: Path) -> None:
    assert "found none" in call(with_pip, "guard", "--step", "--", "pip", "list", code=125).stderr
    assert "expected --" in call(with_pip, "guard", code=125).stderr
    assert "no.txt" in call(with_pip, "guard", "--step", "-r", str(tmp_path / "no.txt"), code=125).stderr
    (tmp_path / "round.txt").write_text("-r round.txt\n")
    assert "name each other" in call(with_pip, "guard", "--step", "-r", str(tmp_path / "round.txt"), code=125).stderr
