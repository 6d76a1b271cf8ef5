"""cohabit guard: the installer is run as it is, and what it breaks is taken back."""
from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import venvs
import world
from test_kill import installer

WANTS_NEW_BETA = 'environment.install("gamma", "0.1", {"gamma.py": b"pass"}, ("beta>=2",)); ' \
                 'environment.install("beta", "2.0", {"beta.py": b"version = 2"})'


@pytest.fixture
def pinned(environment) -> world.Environment:
    environment.install("alpha", "1.0", {"alpha/__init__.py": b"import beta\n"}, ("beta<2",))
    return environment


def test_what_is_sound_is_kept(environment, call) -> None:
    done = call(environment, "guard", "--", *installer(environment, 'environment.install("gamma", "1", {"gamma.py": b""})'))
    assert "gamma 1 added" in done.stderr and (environment.site / "gamma.py").exists()
    name = done.stderr.split("cohabit restore ")[1].split()[0]
    call(environment, "restore", name)
    assert not (environment.site / "gamma.py").exists()


def test_a_broken_requirement_is_taken_back_and_its_cause_named(pinned, call) -> None:
    before = pinned.walk()
    done = call(pinned, "guard", "--", *installer(pinned, WANTS_NEW_BETA), code=1)
    assert world.differences(before, pinned.walk()) == {}
    assert "PY001" in done.stderr and "it came with: beta 1.0 -> 2.0, required by gamma" in done.stderr


def test_what_is_said_need_not_be_read(environment, cohabit: str) -> None:
    """`cohabit guard ... 2>&1 | head -1`: the install is judged all the same, and nothing is left halfway."""
    program = installer(environment, 'environment.install("gamma", "1", {"gamma.py": b""})')
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([cohabit, "guard", "--env", environment.root, "--", *program], stdout=writing, stderr=writing,
                          restore_signals=True, timeout=300)
    os.close(writing)
    assert done.returncode == 0 and (environment.site / "gamma.py").exists()
    after = subprocess.run([cohabit, "snapshots", "--env", environment.root], capture_output=True, text=True)
    assert "interrupted" not in after.stdout + after.stderr and (environment.site / "gamma.py").exists()


def test_force_keeps_it(pinned, call) -> None:
    done = call(pinned, "guard", "--force", "--", *installer(pinned, WANTS_NEW_BETA))
    assert "kept" in done.stderr and (pinned.site / "gamma.py").exists()


def test_a_file_overwritten_by_another_distribution_is_taken_back(environment, call) -> None:
    before = environment.walk()
    done = call(environment, "guard", "--", *installer(
        environment, 'environment.install("beta-contrib", "1.0", {"beta.py": b"other", "beta.libs/libbeta.so": b"x"})'),
        code=1)
    assert world.differences(before, environment.walk()) == {}
    assert "FI001" in done.stderr and "beta-contrib 1.0 added" in done.stderr


def test_one_overwritten_pair_does_not_hide_another(environment, call) -> None:
    """Names with digits in them are names, not versions."""
    for name in ("one_cu12", "one_cu13", "two_cu13"):
        environment.install(name, "1.0", {f"{name[:3]}.libs/lib{name[:3]}.so.9": name.encode()})
    before = environment.walk()
    done = call(environment, "guard", "--", *installer(
        environment, 'environment.install("two_cu12", "2.0", {"two.libs/libtwo.so.9": b"other"})'), code=1)
    assert world.differences(before, environment.walk()) == {}
    assert "FI001" in done.stderr and "of two_cu13 1.0" in done.stderr


def test_a_script_in_the_words_of_another_installer_is_no_loss(environment, call) -> None:
    """Two distributions name one script for one call (tensorboard and tensorflow), and pip and uv write others."""
    def words(name: str, version: str, call_of: str, text: str) -> str:
        points = f"[console_scripts]\nboard = {call_of}\n"
        return (f"environment.install({name!r}, {version!r}, {{'{name}.py': b'', '../../../bin/board': {text!r}.encode(), "
                f"'{name}-{version}.dist-info/entry_points.txt': {points!r}.encode()}})")
    call(environment, "guard", "--", *installer(environment, words("board", "1", "board:main", "by one")))
    done = call(environment, "guard", "--", *installer(environment, words("flow", "1", "board:main", "by another")))
    assert "nothing that was looked at is worse" in done.stderr
    done = call(environment, "guard", "--", *installer(environment, words("other", "1", "other:main", "of another")), code=1)
    assert "FI001" in done.stderr and "other 1 has overwritten 1 file of" in done.stderr


def test_an_installer_that_writes_in_place_is_told_of(environment, call) -> None:
    """No rollback can give back bytes that were written over: that is said, and nothing is made worse."""
    done = call(environment, "guard", "--", "sh", "-c", f"echo over > {environment.site}/beta.py; exit 4", code=125)
    assert "beta.py" in done.stderr and "written in place" in done.stderr and "--abandon" in done.stderr
    changed = environment.walk()
    assert "--abandon" in call(environment, "snapshots", code=2).stderr
    call(environment, "restore", "--abandon")
    call(environment, "snapshots")
    assert environment.walk() == changed


def test_the_others_are_restored_where_bytes_are_gone(environment, call) -> None:
    before = environment.walk()
    harm = f'open("{environment.site}/beta.py", "r+b").write(b"X"); environment.uninstall("alpha"); sys.exit(3)'
    done = call(environment, "guard", "--", *installer(environment, harm), code=125)
    assert "restore --env" in done.stderr and "--without-lost" in done.stderr
    call(environment, "restore", code=2)
    done = call(environment, "restore", "--without-lost")
    assert "not restored, its bytes are gone" in done.stderr and "beta.py" in done.stderr
    left = {Path(os.fsdecode(name)).name for name in world.differences(before, environment.walk())}
    assert left == {"beta.py"}
    assert (environment.site / "beta.py").read_bytes() == b"Xersion = 1\n"


def test_a_restore_of_what_can_be_restored(environment, call) -> None:
    call(environment, "snapshot", "good")
    before = environment.walk()
    with open(environment.site / "beta.py", "r+b") as file:
        file.write(b"X")
    environment.install("gamma", "1", {"gamma.py": b""})
    assert "restore good --env" in call(environment, "restore", "good", code=2).stderr
    assert "gamma.py" in call(environment, "restore", "good", "--dry-run", "--without-lost").stdout
    assert (environment.site / "gamma.py").exists()
    done = call(environment, "restore", "good", "--without-lost", code=1)
    assert "the bytes are gone: lib/" in done.stderr and "writing meanwhile" not in done.stderr
    assert {Path(os.fsdecode(name)).name for name in world.differences(before, environment.walk())} == {"beta.py"}
    assert "expected a name" in call(environment, "snapshot", "", code=None).stderr


@pytest.mark.parametrize("harmless", [True, False])
def test_what_a_package_that_stays_has_lost_is_run(environment, call, harmless: bool) -> None:
    """A wheel that lists no files takes another's module: no list tells of it, only a run does."""
    text = b"version = 1  # the same\n" if harmless else b"import no_such_module\n"
    before = environment.walk()
    done = call(environment, "guard", "--", *installer(
        environment, f'environment.install("gamma", "1", {{"beta.py": {text!r}}}); '
                     '(environment.site / "gamma-1.dist-info/RECORD").write_text("")'), code=0 if harmless else 1)
    assert "beta 1.0 stays, but not as it was installed: lib/" in done.stderr and "beta.py" in done.stderr
    if harmless:
        assert (environment.site / "beta.py").read_bytes() == text
    else:
        assert "`import beta` does not work" in done.stderr and "no_such_module" in done.stderr
        assert world.differences(before, environment.walk()) == {}


def test_hooks_and_scripts_may_be_written_in_place(environment, call) -> None:
    (environment.site / "own.pth").write_text("import beta\n")
    before = environment.walk()
    call(environment, "guard", "--", "sh", "-c",
         f"echo import alpha >> {environment.site}/own.pth; echo x >> {environment.root}/pyvenv.cfg; exit 4", code=4)
    assert world.differences(before, environment.walk()) == {}


@pytest.mark.parametrize("snapshot_between", [False, True])
def test_what_was_restored_may_be_written_in_place_again(environment, call, snapshot_between: bool) -> None:
    """Nor does a script that an installer made, or a file that a restore has brought back, share the store's only copy."""
    own = [environment.site / "own.pth", environment.site / "mine.py", environment.root / "bin/tool"]
    for path in own:
        path.write_text("import beta\n")
    before = environment.walk()
    call(environment, "snapshot", "base")
    for turn in range(3):
        for path in own:
            if turn == 0:
                path.unlink()
            else:
                with path.open("a") as file:
                    file.write("import alpha\n")
        if turn == 1:
            call(environment, "guard", "--", "sh", "-c", f"echo import alpha >> {own[0]}; exit 4", code=4)
        call(environment, "restore", "base", "--no-undo")
        assert world.differences(before, environment.walk()) == {}
        if snapshot_between:
            call(environment, "snapshot", f"after-{turn}")


def test_new_packages_that_were_broken_before_do_not_count(pinned, call) -> None:
    pinned.install("beta", "2.0", {"beta.py": b"version = 2"})
    call(pinned, "guard", "--", *installer(pinned, 'environment.install("beta", "3.0", {"beta.py": b"version = 3"})'))
    assert (pinned.site / "beta-3.0.dist-info").exists()


def test_a_failed_installer_is_taken_back_with_its_exit_code(environment, call) -> None:
    before = environment.walk()
    done = call(environment, "guard", "--", *installer(environment, 'environment.uninstall("beta"); sys.exit(7)'), code=7)
    assert world.differences(before, environment.walk()) == {}
    assert "taken back" in done.stderr
    call(environment, "snapshots", "--remove", call(environment, "snapshots").stdout.split()[0])
    call(environment, "guard", "--", "sh", "-c", "exit 3", code=3)
    assert "no snapshots" in call(environment, "snapshots").stdout, "one that nothing differs from is not kept"


def test_input_output_and_terminal_are_the_installers(environment, call) -> None:
    done = call(environment, "guard", "--", "sh", "-c", 'read line; echo "got $line"; echo err >&2', input=b"words\n")
    assert done.stdout == "got words\n" and "err\n" in done.stderr
    call(environment, "guard", "--", "no-such-installer", code=127)
    call(environment, "guard", "--", "echo", "install", "--target", "x", "y", code=125)


def test_the_lock_is_the_installers_too(environment, call, cohabit: str, tmp_path: Path) -> None:
    """Killed, guard leaves an installer behind: nobody comes between, and then all is taken back."""
    before = environment.walk()
    go = tmp_path / "go"
    body = f'import time, os\nopen({str(tmp_path / "begun")!r}, "w").close()\n' \
           f'while not os.path.exists({str(go)!r}): time.sleep(0.01)\nenvironment.uninstall("beta")'
    with subprocess.Popen([cohabit, "guard", "--env", environment.root, "--", *installer(environment, body)],
                          stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        said = call(environment, "snapshot", "x", code=2).stderr
        assert f"process {process.pid} (" in said and "wait" in said
        process.kill()
    said = call(environment, "restore", code=2).stderr
    left = int(re.search(r"`kill (\d+)` ends it", said)[1])
    assert left != process.pid and b"uninstall" in Path(f"/proc/{left}/cmdline").read_bytes() and "wait" in said
    go.touch()
    while call(environment, "snapshots", code=None).returncode:
        time.sleep(0.05)
    assert world.differences(before, environment.walk()) == {}


def make_it_its_own(environment: world.Environment) -> None:
    """An installation, as conda makes it, no venv of another."""
    (environment.root / "pyvenv.cfg").unlink()
    (environment.site.parent / "os.py").write_text("")
    for link in environment.root.glob("bin/python*"):
        link.unlink()
    shutil.copy(os.path.realpath(sys.executable), environment.root / "bin/python3")


def test_what_pip_changes_in_an_environment_of_conda(environment, call) -> None:
    """pip leaves conda's record of what it replaces. Each package is told once, by the version that is there."""
    make_it_its_own(environment)
    meta = environment.root / "conda-meta"
    meta.mkdir()
    site = environment.site.relative_to(environment.root)
    for name in ("alpha", "beta"):
        (meta / f"{name}-1.0-py_0.json").write_text(json.dumps(
            {"name": name, "version": "1.0", "files": [f"{site}/{name}-1.0.dist-info/METADATA"]}))
    done = call(environment, "guard", "--", *installer(environment, 'environment.install("beta", "2.0", {"beta.py": b""})'))
    assert "beta 1.0 -> 2.0" in done.stderr and "alpha" not in done.stderr and "PY004" not in done.stderr, done.stderr
    done = call(environment, "guard", "--", *installer(environment, 'environment.install("beta", "3.0", {"beta.py": b""})'))
    assert "beta 2.0 -> 3.0" in done.stderr and "1.0" not in done.stderr and "PY004" not in done.stderr, done.stderr
    done = call(environment, "guard", "--force", "--", *installer(environment, 'environment.uninstall("beta")'))
    assert "beta 3.0 removed" in done.stderr


def test_a_venv_puts_other_versions_before_those_of_its_base(environment, call, cohabit: str, tmp_path: Path) -> None:
    make_it_its_own(environment)
    venv = world.Environment(tmp_path / "venv")
    (venv.root / "pyvenv.cfg").write_text(f"home = {environment.root}/bin\ninclude-system-site-packages = true\n"
                                          f"version = {sys.version.split()[0]}\n")
    venv.install("beta", "2.0", {"beta.py": b""})
    done = call(venv, "guard", "--", *installer(venv, 'environment.install("beta", "3.0", {"beta.py": b""})'))
    assert "beta 2.0 -> 3.0" in done.stderr and "PY004" not in done.stderr, done.stderr
    done = call(venv, "guard", "--", *installer(venv, 'environment.install("alpha", "9.0", {"alpha.py": b""})'))
    assert "alpha 1.0 -> 9.0" in done.stderr and "PY004" not in done.stderr, done.stderr
    def doctor(**variables: str) -> str:
        return subprocess.run([cohabit, "doctor", venv.root, "--format", "json"], capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], **variables}).stdout
    assert '"findings"' in doctor() and "PY004" not in doctor()
    forgotten = tmp_path / "forgotten"
    shutil.copytree(venv.site, forgotten)
    assert "PY004" in doctor(PYTHONPATH=str(forgotten)), "what PYTHONPATH hides is told"


def test_signals_go_to_the_installer(environment, cohabit: str, tmp_path: Path) -> None:
    before = environment.walk()
    body = f'import time\nenvironment.uninstall("beta")\nopen({str(tmp_path / "begun")!r}, "w").close()\ntime.sleep(60)'
    with subprocess.Popen([cohabit, "guard", "--env", environment.root, "--", *installer(environment, body)],
                          stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    assert world.differences(before, environment.walk()) == {}


def test_real_pip_and_wheels(call, cohabit: str, tmp_path: Path) -> None:
    """pip itself, offline: wheels of our own, console scripts, compiled files, an uninstall."""
    root = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", root], check=True)
    python = str(root / "bin/python")
    made = make_wheel(tmp_path, "one", "1.0")
    newer = make_wheel(tmp_path, "one", "2.0")
    needs = make_wheel(tmp_path, "two", "1.0", ("one<2",))
    call(root, "guard", "--", python, "-m", "pip", "install", "--no-index", str(made), str(needs))
    before = world.walk(root)
    done = call(root, "guard", "--", python, "-m", "pip", "install", "--no-index", str(newer), code=1)
    assert "would be: warning[PY001]: one 2.0 is not what is required by two 1.0" in done.stderr
    done = call(root, "guard", "--", "env", python, "-m", "pip", "install", "--no-index", str(newer), code=1)
    assert "one 1.0 -> 2.0" in done.stderr
    assert world.differences(before, world.walk(root)) == {}
    done = call(root, "guard", "--", python, "-m", "pip", "uninstall", "-y", "one", code=1)
    assert world.differences(before, world.walk(root)) == {}, done.stderr
    over = make_wheel(tmp_path, "three", "1.0", more={"one/__init__.py": "version = 'three'\n"})
    done = call(root, "guard", "--", python, "-m", "pip", "install", "--no-index", str(over), code=1)
    assert "would be: warning[FI001]" in done.stderr and "nothing was installed" in done.stderr
    hidden = ["env", python, "-m", "pip", "install", "--no-index", str(over)]
    done = call(root, "guard", "--", *hidden, code=1)
    assert "FI001" in done.stderr and "three 1.0 added" in done.stderr
    assert world.differences(before, world.walk(root)) == {}, "pip removes what it overwrites"
    call(root, "guard", "--", python, "-m", "pip", "uninstall", "-y", "two")


UNFIT = "from one import gone\n"


@pytest.mark.parametrize("broken", ["itself", "who needs it", "two levels up", "in an extra", "in a namespace", "behind a script",
                                    "a plugin", "a script that is run", ""])
def test_an_upgrade_that_fits_by_metadata_is_run(call, tmp_path: Path, broken: str) -> None:
    """No framework and no requirement speaks of it: that what worked before the install is run again does."""
    root, install = pip_environment(tmp_path)
    make_wheel(tmp_path, "one", "1.0", more={"one/__init__.py": "gone = 1\n"})
    make_wheel(tmp_path, "two", "1.0", ("one>=1",), {"two/__init__.py": UNFIT if broken == "who needs it" else ""})
    make_wheel(tmp_path, "three", "1.0", ("two",),
               {"three/__init__.py": "import two\n" + (UNFIT if broken == "two levels up" else "")})
    make_wheel(tmp_path, "four", "1.0", ("one; extra == 'low'",),
               {"four/__init__.py": UNFIT if broken == "in an extra" else "",
                "four-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: four\nVersion: 1.0\nProvides-Extra: low\n"
                                               "Requires-Dist: one; extra == 'low'\n"})
    make_wheel(tmp_path, "five", "1.0", ("one",), {
        "space/five/__init__.py": UNFIT if broken == "in a namespace" else "fine = 1\n", "five/__init__.py": None,
        "five/__main__.py": None})
    entry = f"[console_scripts]\nsix = six_of_tests.tool:main\n[plugins]\np = plugin_of_six\n"
    make_wheel(tmp_path, "six_of_tests", "1.0", ("one",), {
        "six_of_tests/tool.py": UNFIT if broken == "behind a script" else "", "six_of_tests-1.0.dist-info/entry_points.txt": entry,
        "plugin_of_six.py": UNFIT if broken == "a plugin" else ""})
    make_wheel(tmp_path, "seven", "1.0", ("one",), {
        "seven/__init__.py": "import argparse, pathlib\ndef main():\n"
                             f"    {UNFIT if broken == 'a script that is run' else ''}\n"
                             "    argparse.ArgumentParser().parse_args()\n    pathlib.Path(__file__).with_name('done').touch()\n"
                             "def careless():\n    pathlib.Path(__file__).with_name('done').touch()\n",
        "careless.py": "from seven import careless\n",
        "seven-1.0.dist-info/entry_points.txt": "[console_scripts]\ntool-seven = seven:main\nreckless = careless:careless\n"})
    make_wheel(tmp_path, "never", "1.0", ("one",), {"never/__init__.py": "import there_is_no_such_module\n"})
    call(root, "guard", "--", *install, "three", "never", "one", "four[low]", "five", "six_of_tests", "seven")
    before = world.walk(root)
    newer = "raise RuntimeError('built for another')\n" if broken == "itself" else ""
    make_wheel(tmp_path, "one", "2.0", more={"one/__init__.py": newer})
    done = call(root, "guard", "--", *install, "--upgrade", "one", code=1 if broken else 0)
    assert "`import never`" not in done.stderr  # it did not work before
    assert not list(root.rglob("seven/done")), "a script did its work"
    if not broken:
        assert "nothing that was looked at is worse" in done.stderr
        return
    module = {"itself": "one", "who needs it": "two", "two levels up": "three", "in an extra": "four", "in a namespace": "space.five",
              "behind a script": "six_of_tests.tool", "a plugin": "plugin_of_six", "a script that is run": "tool-seven"}[broken]
    statement = f"import {module}" if module != "tool-seven" else "tool-seven --help"
    assert f"`{statement}` worked and does not any more: " in done.stderr
    assert "it came with: one 1.0 -> 2.0" in done.stderr
    assert world.differences(before, world.walk(root)) == {}


@pytest.mark.parametrize("needed", ["", "in a function", "by its parent", "in a try", "in tests", "comes along", "another package's",
                                    "at the top"])
def test_what_a_new_version_has_no_more_is_told_or_taken_back(call, tmp_path: Path, needed: str) -> None:
    """numpy 2 has no numpy.array_api: its user asked for that only if numpy was named, and hears of it in any case."""
    root, install = pip_environment(tmp_path)
    make_wheel(tmp_path, "one", "1.0", more={
        "one/old.py": "import argparse\ndef main(): argparse.ArgumentParser().parse_args()\n", "old_one.py": "",
        "one-1.0.dist-info/entry_points.txt": "[console_scripts]\ntool-one = one.old:main\n"})
    make_wheel(tmp_path, "lazy", "1.0", more={
        "lazy/deep/__init__.py": {"in a function": "def f():\n    from one.old import main\n",
                                  "by its parent": "from one import old\n", "at the top": "import old_one\n",
                              "in a try": "try:\n    from one import old\n    import old_one\nexcept (ImportError, OSError): pass\n",
                              }.get(needed, "old = 'one.old'\n"),
        "lazy/tests/test_deep.py": "import one.old\n" if needed == "in tests" else ""})
    make_wheel(tmp_path, "two", "1.0", ("one",))
    call(root, "guard", "--", *install, "two", "lazy")
    before = world.walk(root)
    other = "[plugins]\nold = one.old\n" if needed == "another package's" else ""
    if other:
        make_wheel(tmp_path, "plugged", "1.0", ("one",), {"plugged-1.0.dist-info/entry_points.txt": other})
        call(root, "guard", "--", *install, "plugged")
        before = world.walk(root)
    make_wheel(tmp_path, "one", "2.0", more={"one-2.0.dist-info/entry_points.txt": ""})
    make_wheel(tmp_path, "two", "2.0", ("one>=2",))
    is_kept = needed in ("", "in a try", "in tests")
    done = call(root, "guard", "--", *install, "-U", "two" if needed == "comes along" else "one", code=0 if is_kept else 1)
    if is_kept:
        for what in ("import one.old", "import old_one", "tool-one --help"):
            assert f"`{what}` worked and is gone with one 1.0 -> 2.0, which was asked for" in done.stderr
        assert "nothing else that was looked at is worse" in done.stderr and "does not any more" not in done.stderr
        assert list(root.glob("lib/python3*/site-packages/one-2.0.dist-info"))
        return
    lost = "old_one" if needed == "at the top" else "one.old"
    assert f"`import {lost}` worked and does not any more: ModuleNotFoundError: No module named '{lost}'" in done.stderr
    assert ("lazy/deep/__init__.py imports it" in done.stderr) == (needed in ("in a function", "by its parent", "at the top"))
    assert "it came with: one 1.0 -> 2.0" in done.stderr
    assert world.differences(before, world.walk(root)) == {}


def test_what_the_exception_speaks_of_is_named_first(call, tmp_path: Path) -> None:
    root, install = pip_environment(tmp_path)
    make_wheel(tmp_path, "left", "1.0")
    make_wheel(tmp_path, "right", "1.0", more={"right/__init__.py": "gone = 1\n"})
    make_wheel(tmp_path, "deep", "1.0")
    make_wheel(tmp_path, "user", "1.0", ("left", "right"), {"user/__init__.py": "import left\nfrom right import gone\n"})
    make_wheel(tmp_path, "other", "1.0", ("left", "deep"), {"other/__init__.py": "import left, deep\n"})
    call(root, "guard", "--", *install, "user", "other")
    for name in ("left", "right"):
        make_wheel(tmp_path, name, "2.0")
    make_wheel(tmp_path, "deep", "2.0", more={"deep/__init__.py": "1 / 0\n"})
    said = call(root, "guard", "--", *install, "-U", "left", "right", code=1).stderr
    assert "it came with: right 1.0 -> 2.0" in said and "it uses this too, which changed: left 1.0 -> 2.0" in said
    said = call(root, "guard", "--", *install, "-U", "left", "deep", code=1).stderr
    assert "it came with: deep 1.0 -> 2.0" in said and "it came with: left" not in said


def test_an_exception_of_the_moment_is_no_reason(call, tmp_path: Path) -> None:
    (root, install), count = pip_environment(tmp_path), tmp_path / "count"
    make_wheel(tmp_path, "one", "1.0")
    every_second = (f"import os\nopen({str(count)!r}, 'ab').write(b'x')\n"
                    f"if os.path.getsize({str(count)!r}) % 2 == 0: raise OSError('no answer')\n")
    make_wheel(tmp_path, "user", "1.0", ("one",), {"user/__init__.py": every_second})
    subprocess.run([*install, "user"], check=True, capture_output=True)
    make_wheel(tmp_path, "one", "2.0")
    done = call(root, "guard", "--", *install, "-U", "one")
    assert "`import user` failed once, and works when it is run again: OSError: no answer" in done.stderr
    assert count.stat().st_size == 3 and list(root.glob("lib/python3*/site-packages/one-2.0.dist-info"))


@pytest.mark.parametrize("mode", ["clone", "copy", "hardlink", "symlink"])
def test_real_uv_however_it_links(mode: str, call, tmp_path: Path) -> None:
    """What uv has linked from its cache is given back as it was, and the cache keeps its bytes."""
    root, cache = tmp_path / "env", tmp_path / "cache"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    wheels = [make_wheel(tmp_path, "one", "1.0"), make_wheel(tmp_path, "two", "1.0", ("one<2",))]
    newer = make_wheel(tmp_path, "one", "2.0")
    uv = ["env", f"UV_CACHE_DIR={cache}", f"HOME={tmp_path}", "UV_NO_CONFIG=1", str(Path(sys.executable).parent / "uv"), "pip",
          "install", "--offline", "--no-index", "--no-deps", "--link-mode", mode, "--python", str(root / "bin/python")]
    subprocess.run([*uv, *wheels], check=True, capture_output=True)
    first = next(root.glob("lib/python3*/site-packages/one/__init__.py"))
    assert first.is_symlink() == (mode == "symlink") and (mode != "hardlink" or first.stat().st_nlink > 1)
    before = walk_of_uv(root)
    done = call(root, "guard", "--", *uv, str(newer), code=1)  # that it is uv is hidden: nothing is predicted
    assert "one 1.0 -> 2.0" in done.stderr and "PY001" in done.stderr
    assert world.differences(before, walk_of_uv(root)) == {}
    kept = world.walk(cache)
    call(root, "guard", "--force", "--", *uv, str(newer))
    assert list(root.glob("lib/python3*/site-packages/one-2.0.dist-info"))
    call(root, "restore", next(word for word in call(root, "snapshots").stdout.split() if word.startswith("guard-")))
    assert world.differences(before, walk_of_uv(root)) == {}
    assert {name for name in world.differences(kept, world.walk(cache)) if b"archive" in name and name in kept} == set()


def walk_of_uv(root: Path) -> dict:
    """But for uv's lock, of which it changes the time."""
    return {name: row for name, row in world.walk(root).items() if name != b".lock"}


def test_another_version_of_a_framework_is_asked_for_by_name(call, tmp_path: Path) -> None:
    """Nothing is broken by it, and it is what people least want to happen unseen."""
    root, install = pip_environment(tmp_path)
    for version in ("2.5", "2.6"):
        make_wheel(tmp_path, "torch", version, more={"torch/version.py": "cuda = '12.4'\nhip = None\n"})
    make_wheel(tmp_path, "vision", "1.0", ("torch==2.5",))
    call(root, "guard", "--", *install, "torch==2.6")
    before = world.walk(root)
    done = call(root, "guard", "--", *install, "vision", code=1)
    assert "torch 2.6 -> 2.5 (vision -> torch==2.5), which was not asked for" in done.stderr
    assert world.differences(before, world.walk(root)) == {}
    said = call(root, "check", "--no-index", "--find-links", str(tmp_path), "vision", code=1)
    assert "\ntorch 2.6 -> 2.5 (vision -> torch==2.5), which was not asked for" in said.stdout
    call(root, "guard", "--", *install, "vision", "torch==2.5")
    assert list(root.glob("lib/python3*/site-packages/torch-2.5.dist-info"))


def test_who_asks_for_jax_asks_for_jaxlib(call, tmp_path: Path) -> None:
    root, install = pip_environment(tmp_path)
    for version in ("0.4.20", "0.4.30"):
        make_wheel(tmp_path, "jaxlib", version, more={"jaxlib/version.py": ""})
        make_wheel(tmp_path, "jax", version, (f"jaxlib=={version}",))
    make_wheel(tmp_path, "flax", "1.0", ("jax==0.4.20",))
    call(root, "guard", "--", *install, "jax==0.4.20")
    call(root, "guard", "--", *install, "jax==0.4.30")
    assert list(root.glob("lib/python3*/site-packages/jaxlib-0.4.30.dist-info"))
    done = call(root, "guard", "--", *install, "flax", code=1)
    assert "jaxlib 0.4.30 -> 0.4.20 (flax -> jax==0.4.20 -> jaxlib==0.4.20), which was not asked for" in done.stderr


def test_python_that_does_not_start_is_taken_back(environment, call) -> None:
    before = environment.walk()
    code = 'environment.install("gamma", "0.1", {"sitecustomize.py": b"raise SystemExit(\'no\')"})'
    done = call(environment, "guard", "--", *installer(environment, code), code=1)
    assert "started and does not any more" in done.stderr and "taken back" in done.stderr
    assert world.differences(before, environment.walk()) == {}


def test_no_credentials_are_kept(environment, call) -> None:
    code = 'environment.install("gamma", "0.1", {"gamma.py": b""})'
    call(environment, "guard", "--", *installer(environment, code), "https://user:s3cret@host.invalid/simple")
    listed = call(environment, "snapshots").stdout
    assert "host.invalid" in listed and "s3cret" not in listed
    for kept in (environment.root / ".cohabit/snapshots").iterdir():
        assert b"s3cret" not in kept.read_bytes()


def test_packages_behind_a_link_are_not_kept(environment, call, tmp_path: Path) -> None:
    shutil.move(environment.site / "beta.py", tmp_path / "beta.py")
    (tmp_path / "far").mkdir()
    (environment.site / "far").symlink_to(tmp_path / "far")
    assert "only the links are kept" in call(environment, "snapshot", "one").stderr
    site = environment.site
    shutil.move(site, tmp_path / "elsewhere")
    site.symlink_to(tmp_path / "elsewhere")
    for command in (["snapshot", "two"], ["guard", "--", *installer(environment, "pass")]):
        done = call(environment, *command, code=2 if command[0] == "snapshot" else 125)
        assert "out of the environment" in done.stderr


@pytest.mark.parametrize("works", [False, True])
def test_what_does_not_fit_is_kept_if_it_works(pinned, call, works: bool) -> None:
    """A new package that wants another version of what is there: its import decides, and nobody else's breaks by it."""
    before = pinned.walk()
    content = b"" if works else b"raise RuntimeError('operator gamma::nms does not exist')"
    code = f'environment.install("gamma", "0.1", {{"gamma/__init__.py": {content!r}, "other.py": b""}}, ("beta>=2",))'
    done = call(pinned, "guard", "--", *installer(pinned, code), code=0 if works else 1)
    if works:
        assert "nothing that was looked at is worse" in done.stderr and (pinned.site / "gamma").exists()
        return
    assert world.differences(before, pinned.walk()) == {}
    assert "`import gamma` does not work: RuntimeError: operator gamma::nms does not exist" in done.stderr
    assert "PY001" in done.stderr and "beta 1.0" in done.stderr and "taken back" in done.stderr
    call(pinned, "guard", "--no-verify", "--", *installer(pinned, code))
    assert (pinned.site / "gamma").exists()


def pip_environment(tmp_path: Path) -> tuple[Path, list[str]]:
    """A venv, and its pip's install of wheels that lie in `tmp_path`."""
    root = tmp_path / "env"
    venvs.make_venv(root)
    return root, [str(root / "bin/python"), "-m", "pip", "install", "--no-index", "--find-links", str(tmp_path)]


def make_wheel(directory: Path, name: str, version: str, requires: tuple[str, ...] = (),
               more: dict[str, str | None] | None = None) -> Path:
    wheel = directory / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {f"{name}/__init__.py": f"version = {version!r}\n",
             f"{name}/__main__.py": "print(1)\n",
             f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {text}\n" for text in requires),
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:__name__\n"}
    files = {path: content for path, content in (files | (more or {})).items() if content is not None}
    lines = [world.record_line(path, content.encode()) for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def write_uv(directory: Path, environment: world.Environment) -> dict[str, str]:
    """A `uv` that answers where it would install, and then does it."""
    body = shlex.join(installer(environment, 'environment.install("gamma", "0.1", {"gamma.py": b"pass"})'))
    directory.mkdir()
    (directory / "uv").write_text(f"""#!/bin/sh
case " $* " in *" python find "*) echo {environment.root}/bin/python; exit 0;; esac
exec {body}
""")
    (directory / "uv").chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def test_uv_itself_says_which_environment_it_changes(environment, tmp_path: Path, cohabit: str) -> None:
    variables = write_uv(tmp_path / "bin", environment)
    done = subprocess.run([cohabit, "guard", "--", "uv", "pip", "install", "gamma"], capture_output=True, text=True,
                          env=variables, cwd=tmp_path)
    assert done.returncode == 0 and "gamma 0.1 added" in done.stderr, done.stderr
    assert "cohabit restore guard-" in done.stderr and f"--env {environment.root}`" in done.stderr


def test_another_environment_than_the_installers_is_refused(environment, tmp_path: Path, call) -> None:
    other = world.Environment(tmp_path / "other")
    variables = write_uv(tmp_path / "bin", other)
    for words in (["uv", "pip", "install", "gamma"], ["uv", "pip", "uninstall", "gamma"]):
        done = call(environment, "guard", "--", *words, code=125, variables=variables)
        assert str(other.root) in done.stderr and str(environment.root) in done.stderr
    assert not (other.site / "gamma.py").exists() and not (environment.root / ".cohabit").exists()


@pytest.mark.parametrize("variable", ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER"))
def test_other_places_by_variables_are_refused(environment, call, variable: str) -> None:
    pip = environment.root / "bin/pip"
    pip.write_text(f"#!{environment.root}/bin/python\nraise SystemExit(3)\n")
    pip.chmod(0o755)
    done = call(environment, "guard", "--", str(pip), "install", "x", code=125, variables={variable: "/somewhere"})
    assert variable in done.stderr
    assert call(environment, "guard", "--", str(pip), "install", "-t/x", "x", code=125).stderr.count("-t installs outside") == 1


@pytest.mark.parametrize("option", ["target", "prefix", "user"])
def test_other_places_by_a_configuration_file_are_refused(call, tmp_path: Path, option: str) -> None:
    root = tmp_path / "env"
    venvs.make_venv(root)
    value = "true" if option == "user" else tmp_path / "elsewhere"
    (root / "pip.conf").write_text(f"[install]\n{option} = {value}\n")
    make_wheel(tmp_path, "gamma", "1")
    install = [str(root / "bin/python"), "-m", "pip", "install", "--no-index", "--find-links", str(tmp_path), "gamma"]
    done = call(root, "guard", "--", *install, code=125)
    assert f"`{option}` in pip's configuration" in done.stderr and not (tmp_path / "elsewhere").exists()
    (root / "pip.conf").write_text("[global]\nno-color = true\n[download]\nuser = true\n")
    call(root, "guard", "--", *install)


def test_what_cannot_be_predicted_is_said(environment, call) -> None:
    done = call(environment, "guard", "--no-verify", "--", "sh", "-c", "exit 0")
    assert "not predicted" in done.stderr


def test_a_failed_install_that_is_kept_is_said(environment, call) -> None:
    body = 'environment.install("gamma", "0.1", {"gamma.py": b"pass"}); sys.exit(7)'
    done = call(environment, "guard", "--force", "--", *installer(environment, body), code=7)
    assert "kept, since --force was given" in done.stderr and "cohabit restore guard-" in done.stderr


def test_a_place_may_be_named_by_way_of_its_parent(environment, call, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    named = Path("../" + environment.root.name)
    done = call(named, "guard", "--", *installer(environment, 'environment.install("gamma", "0.1", {"gamma.py": b"pass"})'),
                cwd=tmp_path / "sub")
    assert "gamma 0.1 added" in done.stderr and f"--env {environment.root}`" in done.stderr
