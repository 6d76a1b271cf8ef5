"""What is installed, written down so that pip and uv make it again; and made again, equal file by file."""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

import index as made
import pytest

BIN = {"rich_tool/__init__.py": b"def main():\n    print('rich')\n",
       "rich_tool-2.0.dist-info/entry_points.txt": b"[console_scripts]\nrich-tool = rich_tool:main\n"}


@pytest.fixture
def run(cohabit: str):
    """run(environment, "export", ...): the command."""
    def call(environment: made.Environment, *words, code: int | None = 0, variables: dict | None = None, **more):
        done = subprocess.run([cohabit, *map(str, words)], capture_output=True, text=True, timeout=300,
                              env={**environment.variables, **(variables or {})}, **more)
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return call


def fill(environment: made.Environment, index: made.Index) -> None:
    """From an index, by name."""
    command = ([environment.root / "bin/python", "-m", "pip"] if environment.installer == "pip"
               else ["uv", "pip"]) + ["install", "--index-url", index.address()]
    if environment.installer == "uv":
        command += ["--python", environment.root / "bin/python"]
    subprocess.run([*command, "top", "rich-tool"], check=True, env=environment.variables, capture_output=True)


@pytest.fixture
def filled(environment, serve, tmp_path: Path):
    """An environment, and the index that it came from."""
    wheels = tmp_path / "wheels"
    made.make_wheel(wheels, "numlib", "2.1.0", {"numlib/__init__.py": b"v = 2\n", "numlib/core.so": made.noise(2_000_000)}, stored=True)
    made.make_wheel(wheels, "top", "1", requires=("numlib",))
    made.make_wheel(wheels, "rich-tool", "2.0", BIN)
    index = serve(wheels)
    fill(environment, index)
    return environment, index


def packages(text: str) -> dict[str, dict]:
    return {one["name"]: one for one in tomllib.loads(text)["packages"]}


def walk(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_a_pylock_with_addresses_and_hashes(filled, run, tmp_path: Path):
    environment, index = filled
    out = tmp_path / "pylock.toml"
    run(environment, "export", environment.root, "--index-url", index.address(), "--out", out)
    found = packages(out.read_text())
    assert set(found) == {"numlib", "rich-tool", "top"}, "pip comes with Python"
    for name, file in (("numlib", "numlib-2.1.0-py3-none-any.whl"), ("rich-tool", "rich_tool-2.0-py3-none-any.whl")):
        wheel = found[name]["wheels"][0]
        data = (index.directory / file).read_bytes()
        assert wheel["name"] == file and wheel["url"].endswith("/files/" + file) and wheel["size"] == len(data)
        assert wheel["hashes"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert index.sent["cohabit"] < 400_000, "wheels are read in ranges"


def test_uv_takes_the_pylock(filled, run, tmp_path: Path):
    environment, index = filled
    run(environment, "export", environment.root, "--index-url", index.address(), "--out", tmp_path / "pylock.toml")
    other = made.Environment(tmp_path / "other", "uv")
    for words in (["install", "-r"], ["sync"]):
        subprocess.run(["uv", "pip", *words, tmp_path / "pylock.toml", "--python", other.root / "bin/python"], check=True,
                       env=other.variables, capture_output=True)
    assert (other.site / "numlib/core.so").read_bytes() == (environment.site / "numlib/core.so").read_bytes()


def test_pip_takes_the_requirements(filled, run, tmp_path: Path):
    environment, index = filled
    out = tmp_path / "requirements.txt"
    run(environment, "export", environment.root, "--format", "requirements", "--index-url", index.address(), "--out", out)
    other = made.Environment(tmp_path / "other", "pip")
    command = [other.root / "bin/python", "-m", "pip", "install", "--no-deps", "--require-hashes", "--index-url", index.address(),
               "-r", out]
    subprocess.run(command, check=True, env=other.variables, capture_output=True)
    assert (other.site / "numlib/core.so").read_bytes() == (environment.site / "numlib/core.so").read_bytes()
    out.write_text(out.read_text().replace("--hash=sha256:", "--hash=sha256:0"))
    assert subprocess.run([*command, "--force-reinstall"], env=other.variables, capture_output=True).returncode != 0


def test_environment_yml(filled, run):
    environment, index = filled
    said = run(environment, "export", environment.root, "--format", "environment.yml", "--index-url", index.address()).stdout
    assert "'numlib==2.1.0'" in said and f"'python={sys.version.split()[0]}'" in said


def test_channels_of_conda(serve, run, tmp_path: Path):
    """conda notes addresses with the platform's directory, and of a private channel the token."""
    environment = made.Environment(tmp_path / "env", "uv")
    (environment.root / "pyvenv.cfg").unlink()  # an installation of its own
    (environment.site.parent / "os.py").write_text("")
    (environment.root / "conda-meta").mkdir()
    for link in environment.root.glob("bin/python*"):
        link.unlink()
    shutil.copy(os.path.realpath(sys.executable), environment.root / "bin/python3")
    for name, channel, platform in (("one", "https://c.example/forge/linux-64", "linux-64"),
                                    ("two", "https://c.example/forge/noarch", "noarch"),
                                    ("three", "https://c.example/t/s3cret-word/private/linux-64", "linux-64")):
        (environment.root / f"conda-meta/{name}-1-0.json").write_text(json.dumps(
            {"name": name, "version": "1", "build": "0", "channel": channel, "subdir": platform, "files": []}))
    done = run(environment, "export", environment.root, "--format", "environment.yml", code=None)
    assert "s3cret-word" not in done.stdout + done.stderr
    assert done.stdout.count("c.example") == 2
    for line in ("  - 'https://c.example/forge'\n", "  - 'https://c.example/private'\n", "  - 'two=1=0'\n"):
        assert line in done.stdout, done.stdout


def test_only_the_installed_wheel_is_named(environment, serve, run, tmp_path: Path):
    """Two wheels of one version: what was installed is the less specific one. Then the index has others of that name."""
    wheels = tmp_path / "wheels"
    plain = made.make_wheel(wheels, "numlib", "1", {"numlib/__init__.py": b"plain = 1\n"})
    index = serve(wheels)
    command = ([environment.root / "bin/python", "-m", "pip"] if environment.installer == "pip"
               else ["uv", "pip"]) + ["install", "--index-url", index.address(), "numlib"]
    if environment.installer == "uv":
        command += ["--python", environment.root / "bin/python"]
    subprocess.run(command, check=True, env=environment.variables, capture_output=True)
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    made.make_wheel(wheels, "numlib", "1", {"numlib/__init__.py": b"fast = 1\n"}, tag=f"{tag}-{tag}-manylinux_2_17_x86_64")
    done = run(environment, "export", environment.root, "--index-url", index.address(), code=None)
    if environment.installer == "uv":
        assert done.returncode == 0 and packages(done.stdout)["numlib"]["wheels"][0]["name"] == plain.name
    else:  # pip names the one that it would take today, which is not it
        assert done.returncode == 1 and "not said: numlib 1: no wheel" in done.stderr and "numlib" not in packages(done.stdout)
    for file in wheels.glob("numlib*"):
        file.unlink()
    made.make_wheel(wheels, "numlib", "1", {"numlib/__init__.py": b"other = 1\n"})
    done = run(environment, "export", environment.root, "--index-url", index.address(), code=1,
               variables={"UV_NO_CACHE": "1"})
    assert "numlib" not in packages(done.stdout) and "has another numlib/__init__.py" in done.stderr


def test_what_cannot_be_said_is_said(filled, run, tmp_path: Path):
    environment, index = filled
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\n')
    info = environment.site / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "RECORD").write_text("mine-1.dist-info/METADATA,,\nmine-1.dist-info/RECORD,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}}))
    built = environment.site / "built-3.dist-info"
    built.mkdir()
    (built / "METADATA").write_text("Metadata-Version: 2.1\nName: built\nVersion: 3\n")
    (built / "RECORD").write_text(made.record_line("built.py", b"x") + "\nbuilt-3.dist-info/RECORD,,\n")
    (environment.site / "built.py").write_bytes(b"x")
    changed = environment.site / "numlib/__init__.py"
    data = changed.read_bytes()
    changed.unlink()  # not through a link into uv's cache
    changed.write_bytes(data.replace(b"2", b"3"))
    os.utime(changed, (time.time() + 5, time.time() + 5))
    done = run(environment, "export", environment.root, "--index-url", index.address(), code=1)
    assert "not said: mine 1: it is installed in place from file://" in done.stderr
    assert "not said: built 3: " in done.stderr
    assert "not as in the wheel of numlib: " in done.stderr and "its bytes are others" in done.stderr
    assert set(packages(done.stdout)) == {"numlib", "rich-tool", "top"} and "# not here: mine 1" in done.stdout
    for format in ("requirements", "environment.yml"):
        assert "# not here: built 3" in run(environment, "export", environment.root, "--format", format, "--index-url",
                                            index.address(), code=1).stdout


def test_credentials_stay_here(environment, serve, run, tmp_path: Path):
    wheels = tmp_path / "wheels"
    made.make_wheel(wheels, "top", "1")
    made.make_wheel(wheels, "rich-tool", "2.0", BIN)
    index = serve(wheels, login="user:s3cretword")
    index.address, plain = (lambda login="": plain("user:s3cretword")), index.address
    fill(environment, index)
    done = run(environment, "export", environment.root, "--index-url", index.address())
    assert set(packages(done.stdout)) == {"top", "rich-tool"} and "s3cretword" not in done.stdout + done.stderr


def test_local_wheels(environment, run, tmp_path: Path):
    environment.install(made.make_wheel(tmp_path / "wheels", "numlib", "1"))
    out = tmp_path / "pylock.toml"
    run(environment, "export", environment.root, "--no-index", "--out", out)
    archive = packages(out.read_text())["numlib"]["archive"]
    assert archive["path"] == str(tmp_path / "wheels/numlib-1-py3-none-any.whl")
    done = run(environment, "recreate", environment.root, tmp_path / "again", "--no-index")
    assert (tmp_path / "again").exists(), done.stderr


def test_recreated_is_equal(filled, run, tmp_path: Path):
    environment, index = filled
    place = tmp_path / "another place"
    done = run(environment, "recreate", environment.root, place, "--index-url", index.address())
    assert "files are equal" in done.stdout
    a, b = walk(environment.root), walk(place)
    other = {path for path in a.keys() | b.keys() if a.get(path) != b.get(path)}
    assert all(path.startswith(("bin/", "pyvenv.cfg", ".lock")) or ".dist-info/" in path for path in other), other
    assert subprocess.run([place / "bin/rich-tool"], capture_output=True, text=True, check=True).stdout == "rich\n"
    named = subprocess.run(["grep", "-rl", ".cohabit-recreate", place], capture_output=True, text=True).stdout
    assert named == "", "nothing names where it was made"
    assert not list(tmp_path.glob(".cohabit-recreate*"))
    for info in place.glob("lib/python3*/site-packages/*.dist-info"):  # RECORDs are true
        for line in (info / "RECORD").read_text().splitlines():
            path, digest, size = line.rsplit(",", 2)
            if digest:
                assert made.record_line(path, (info.parent / path).read_bytes()) == line.replace("=,", ",")


def test_compiled_files_of_a_wheel_are_no_difference(environment, serve, run, tmp_path: Path):
    """NumPy 1.26 carries one; pip compiles it anew, and its RECORD has the new bytes' hash or none."""
    name = f"conv/__pycache__/old.cpython-{sys.version_info[0]}{sys.version_info[1]}.pyc"
    made.make_wheel(tmp_path / "wheels", "numlib", "1", {"conv/__init__.py": b"", "conv/old.py": b"x = 1\n", name: b"compiled elsewhere"})
    made.make_wheel(tmp_path / "wheels", "top", "1")
    made.make_wheel(tmp_path / "wheels", "rich-tool", "2.0", BIN)
    index = serve(tmp_path / "wheels")
    command = ([environment.root / "bin/python", "-m", "pip", "install", "--compile"] if environment.installer == "pip"
               else ["uv", "pip", "install", "--compile-bytecode", "--python", environment.root / "bin/python"])
    subprocess.run([*command, "--index-url", index.address(), "numlib"], check=True, env=environment.variables, capture_output=True)
    subprocess.run([environment.root / "bin/python", "-c", "import conv.old"], check=True)
    assert run(environment, "export", environment.root, "--index-url", index.address()).stderr.count("numlib") == 0
    again = run(environment, "recreate", environment.root, tmp_path / "again", "--index-url", index.address())
    assert "differ:" not in again.stdout
    assert "its bytes are others" not in run(environment, "export", environment.root, "--full", "--index-url", index.address()).stderr


@pytest.mark.parametrize("named", ["python", "python3"])
def test_the_interpreter_is_the_same_by_any_name(serve, run, tmp_path: Path, named: str):
    """`python -m venv` links its interpreter by the name that it was called by; uv by another. And another pip writes other scripts."""
    home = tmp_path / "interpreter"
    home.mkdir()
    for name in ("python", "python3"):
        (home / name).symlink_to(Path(sys.executable).resolve())
    environment = made.Environment.__new__(made.Environment)
    other = made.Environment(tmp_path / "template", "uv")
    environment.root, environment.installer, environment.variables = tmp_path / "env", "uv", other.variables
    subprocess.run([home / named, "-m", "venv", "--without-pip", environment.root], check=True)
    environment.site = next(environment.root.glob("lib/python3*/site-packages"))
    made.make_wheel(tmp_path / "wheels", "rich-tool", "2.0", BIN)
    made.make_wheel(tmp_path / "wheels", "top", "1")
    index = serve(tmp_path / "wheels")
    fill(environment, index)
    script = environment.root / "bin/rich-tool"
    script.write_text(f"#!{environment.root}/bin/python\n# as an old installer wrote it\nimport re, sys\nfrom rich_tool import main\n"
                      "if __name__ == '__main__':\n    sys.exit(main())\n")
    done = run(environment, "recreate", environment.root, tmp_path / "again", "--index-url", index.address())
    assert "as another installer writes it" in done.stdout
    script.write_text(script.read_text().replace("import main", "import other").replace("main()", "other()"))
    done = run(environment, "recreate", environment.root, tmp_path / "more", "--index-url", index.address(), code=1)
    assert "bin/rich-tool: its bytes" in done.stdout


def test_names_of_the_interpreter_are_no_difference(filled, run, tmp_path: Path):
    """Which ones there are is up to the tool, and to the name that it was called by."""
    environment, index = filled
    interpreter = os.path.realpath(environment.root / "bin/python")
    for name in environment.root.glob("bin/python*"):
        name.unlink()
    for name, target in (("python", interpreter), ("python3", "python"), ("python3.1", "python")):
        (environment.root / "bin" / name).symlink_to(target)
    done = run(environment, "recreate", environment.root, tmp_path / "again", "--index-url", index.address())
    assert "a further name of the interpreter" in done.stdout
    (environment.root / "bin/python3.2").symlink_to("/bin/true")
    done = run(environment, "recreate", environment.root, tmp_path / "more", "--index-url", index.address(), code=1)
    assert "bin/python3.2: it is not there any more" in done.stdout and "python3.1:" not in done.stdout.split("1 differ")[-1]


def test_a_pip_that_is_too_old(filled, run, tmp_path: Path):
    """It cannot be asked: that is the reason, and neither downloads nor builds are; uv can."""
    environment, index = filled
    if environment.installer != "pip":
        pytest.skip("no pip in it")
    [metadata] = environment.site.glob("pip-*.dist-info/METADATA")
    text = re.sub(r"(?m)^Version: .*", "Version: 22.0.4", metadata.read_text(), count=1)
    metadata.write_text(text)
    alone, place = {"PATH": "/usr/bin:/bin"}, ("--index-url", index.address())
    for words in (("check", "top", "--env", environment.root), ("export", environment.root),
                  ("recreate", environment.root, tmp_path / "again")):
        said = run(environment, *words, *place, code=2, variables=alone).stderr
        assert f"pip 22.{'3' if words[0] == 'recreate' else '2'} or later is needed" in said and "has pip 22.0.4" in said, said
        assert "upgrade it" in said and "uv in PATH" in said and "--allow-build" not in said and "downloads" not in said
    assert "uv is, which may choose" in run(environment, "check", "top", "--env", environment.root, *place).stderr
    assert {"numlib", "rich-tool", "top"} <= set(packages(run(environment, "export", environment.root, *place, code=None).stdout))


def test_what_was_built_from_an_index_has_that_reason(environment, serve, run, tmp_path: Path):
    wheels = tmp_path / "wheels"
    built = made.make_wheel(tmp_path / "built", "built", "3")
    environment.install(built)
    for note in environment.site.glob("built-3.dist-info/direct_url.json"):
        note.unlink()
    wheels.mkdir()
    made.make_sdist(wheels, "built", "3")
    done = run(environment, "export", environment.root, "--index-url", serve(wheels).address(), code=1)
    assert f"{environment.installer} finds no wheel of this version for this Python: it was built here" in done.stderr
    assert "--allow-build" not in done.stdout + done.stderr and "hint:" not in done.stderr
    assert "# not here: built 3: " in done.stdout


def test_what_is_not_equal_is_named(filled, run, tmp_path: Path):
    environment, index = filled
    (environment.site / "own.pth").write_text("import os\n")
    core = environment.site / "numlib/core.so"
    data = core.read_bytes()
    core.unlink()
    core.write_bytes(data[:-1] + b"!")
    done = run(environment, "recreate", environment.root, tmp_path / "again", "--index-url", index.address(), code=1)
    assert "own.pth: it is not there any more" in done.stdout and "numlib/core.so: its bytes" in done.stdout
    assert "2 differ" in done.stdout


@pytest.mark.parametrize("format, name", [("pylock", "pylock.toml"), ("pylock", "locked"), ("requirements", "requirements.txt")])
def test_recreated_from_a_file(filled, run, tmp_path: Path, format: str, name: str):
    """Of either kind, whatever it is called."""
    environment, index = filled
    written = tmp_path / ("pylock.toml" if format == "pylock" else name)
    run(environment, "export", environment.root, "--format", format, "--index-url", index.address(), "--out", written)
    out = written.rename(tmp_path / name)
    done = run(environment, "recreate", out, tmp_path / "again", "--env", environment.root, "--index-url", index.address(),
               code=None)
    site = next((tmp_path / "again").glob("lib/python3*/site-packages"))
    assert (site / "numlib/core.so").read_bytes() == (environment.site / "numlib/core.so").read_bytes()
    assert done.returncode == 0, (done.stdout, done.stderr)
    # Wheels that are not what the file says are not installed.
    text = out.read_text()
    digest = hashlib.sha256((index.directory / "top-1-py3-none-any.whl").read_bytes()).hexdigest()
    assert digest in text
    out.write_text(text.replace(digest, "0" * 64))
    run(environment, "recreate", out, tmp_path / "never", "--env", environment.root, "--index-url", index.address(), code=2,
        variables={"UV_NO_CACHE": "1"})
    assert not (tmp_path / "never").exists()


def test_recreated_from_a_snapshot(filled, run, tmp_path: Path):
    environment, index = filled
    run(environment, "snapshot", "old", "--env", environment.root)
    environment.install(made.make_wheel(tmp_path / "newer", "numlib", "3.0"))
    done = run(environment, "recreate", "old", tmp_path / "again", "--env", environment.root, "--index-url", index.address())
    assert "files are equal" in done.stdout
    assert list((tmp_path / "again").glob("lib/python3*/site-packages/numlib-2.1.0.dist-info"))


def test_a_place_that_is_taken(filled, run, tmp_path: Path):
    environment, index = filled
    (tmp_path / "taken").mkdir()
    done = run(environment, "recreate", environment.root, tmp_path / "taken", "--index-url", index.address(), code=2)
    assert "is there already" in done.stderr and not list((tmp_path / "taken").iterdir())


def test_what_fails_leaves_nothing(filled, run, tmp_path: Path):
    environment, index = filled
    out = tmp_path / "pylock.toml"
    run(environment, "export", environment.root, "--index-url", index.address(), "--out", out)
    for file in index.directory.glob("top*"):
        file.unlink()
    run(environment, "recreate", out, tmp_path / "again", "--env", environment.root, "--index-url", index.address(), code=2,
        variables={"UV_NO_CACHE": "1"})
    assert not (tmp_path / "again").exists() and not list(tmp_path.glob(".cohabit-recreate*"))


def test_a_file_limit_is_no_half_environment(filled, cohabit: str, tmp_path: Path):
    """As a full disk does: the installer, or we, cannot write."""
    environment, index = filled
    done = subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", cohabit, "recreate", environment.root, tmp_path / "again",
                           "--index-url", index.address()], env=environment.variables, capture_output=True, text=True)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert not (tmp_path / "again").exists() and not list(tmp_path.glob(".cohabit-recreate*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_interrupted(filled, cohabit: str, tmp_path: Path, number: int):
    environment, index = filled
    for delay in (0.05, 0.3, 0.6, 1.0):
        one = subprocess.Popen([cohabit, "recreate", environment.root, tmp_path / "again", "--index-url", index.address()],
                               env=environment.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        one.send_signal(number)
        if one.wait() == 0:
            break
        assert not (tmp_path / "again").exists()
    below = Path(sysconfig.get_path("purelib", vars={"base": sys.base_prefix, "platbase": sys.base_prefix}))
    assert not list(below.glob("numlib*")), "what outlives an interruption installs nowhere else"


SLOW_UV = """#!/bin/sh
case "$*" in "pip install"*"/.cohabit-recreate."*)
  echo $$ > {at}/started.new && mv {at}/started.new {at}/started
  for i in $(seq 3000); do [ -e {at}/go ] || sleep 0.02; done
  for word; do case "$word" in */bin/python) "$word" -c 'import sys; print(sys.prefix)' > {at}/where;; esac; done
  exit 3;;
esac
exec {uv} "$@"
"""


@pytest.fixture
def slow(filled, tmp_path: Path):
    """What waits, in the middle of an install into a new environment, for a file `go`; then says where it would install to."""
    environment, index = filled
    uv = tmp_path / "slow/uv"
    uv.parent.mkdir()
    uv.write_text(SLOW_UV.format(at=tmp_path, uv=shutil.which("uv", path=environment.variables["PATH"])))
    uv.chmod(0o755)
    return environment, index, {"PATH": f"{uv.parent}:{environment.variables['PATH']}"}


def begun(slow, cohabit: str, tmp_path: Path) -> subprocess.Popen:
    environment, index, variables = slow
    one = subprocess.Popen([cohabit, "recreate", environment.root, tmp_path / "again", "--index-url", index.address()],
                           env=environment.variables | variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "started")
    return one


def wait_for(path: Path) -> None:
    for _ in range(1500):
        if path.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} has not come")


@pytest.mark.parametrize("environment", ["uv"], indirect=True)
def test_an_installer_that_outlives_us_installs_nowhere_else(slow, run, cohabit: str, tmp_path: Path):
    """Without pyvenv.cfg its interpreter would be the one below, and the packages would land there."""
    environment, index, _ = slow
    one = begun(slow, cohabit, tmp_path)
    one.kill()
    one.wait()
    left = list(tmp_path.glob(".cohabit-recreate.*"))
    run(environment, "recreate", environment.root, tmp_path / "again", "--index-url", index.address())
    assert list(tmp_path.glob(".cohabit-recreate.*")) == left and len(left) == 1
    (tmp_path / "go").touch()
    wait_for(tmp_path / "where")
    for _ in range(1500):  # until it has ended
        if (tmp_path / "where").read_text():
            break
        time.sleep(0.02)
    assert (tmp_path / "where").read_text() == f"{left[0]}\n"
    while not ended(int((tmp_path / "started").read_text())):
        time.sleep(0.02)
    run(environment, "recreate", environment.root, tmp_path / "third", "--index-url", index.address())
    assert not list(tmp_path.glob(".cohabit-recreate.*"))


@pytest.mark.parametrize("environment", ["uv"], indirect=True)
def test_an_installer_ends_with_us(slow, cohabit: str, tmp_path: Path):
    one = begun(slow, cohabit, tmp_path)
    one.send_signal(signal.SIGTERM)
    assert one.wait() == -signal.SIGTERM
    assert ended(int((tmp_path / "started").read_text()))
    assert not list(tmp_path.glob(".cohabit-recreate.*"))


def ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() == b""  # collected by nobody yet
    except FileNotFoundError:
        return True
