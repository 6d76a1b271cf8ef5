"""cohabit snapshot, snapshots, diff and restore on small environments."""
from __future__ import annotations

import datetime
import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import jsonschema
import pytest
import world

SCHEMAS = Path(__file__).resolve().parents[2] / "data" / "schema"


def schema(name: str) -> dict:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def test_restore_gives_everything_back(environment, call) -> None:
    before = environment.walk()
    call(environment, "snapshot", "a")
    assert environment.walk() == before, "taking a snapshot changed something"
    world.disturb(environment)
    changed = environment.walk()
    assert world.differences(before, changed)
    done = call(environment, "restore", "a")
    assert world.differences(before, environment.walk()) == {}
    undo = done.stdout.split("`cohabit restore ")[1].split()[0]
    call(environment, "restore", undo)
    assert world.differences(changed, environment.walk()) == {}, "a restore can be taken back"
    call(environment, "restore", "a")
    assert world.differences(before, environment.walk()) == {}
    assert "nothing differs" in call(environment, "restore", "a").stdout


def test_only_what_differs_is_touched(environment, call) -> None:
    call(environment, "snapshot", "a")
    inodes = {path: path.lstat().st_ino for path in environment.site.rglob("*.py")}
    environment.install("gamma", "0.1", {"gamma.py": b"pass\n"})
    environment.uninstall("beta")
    done = call(environment, "restore", "a")
    files = len(["beta.py", "beta-hook.pth", "libbeta.so", "METADATA", "RECORD"])
    assert f"{files} files written" in done.stdout
    assert {path: path.lstat().st_ino for path in environment.site.rglob("*.py")} == inodes


def test_bytes_are_shared_and_read_once(environment, call) -> None:
    first = call(environment, "snapshot", "a").stdout
    claimed = int(first.split(" by their distribution")[0].rsplit(" ", 1)[1])
    assert claimed >= 6, first  # files of RECORD are not read
    library = environment.site / "beta.libs/libbeta.so"
    assert library.stat().st_nlink == 2
    time.sleep(0.2)  # what was written in the last moment is read once more
    call(environment, "snapshot", "b")
    assert ", 0 read" in call(environment, "snapshot", "c").stdout
    assert library.stat().st_nlink == 2, "one link for all snapshots"
    os.utime(library)
    assert ", 1 read (16.4 kB)" in call(environment, "snapshot", "d").stdout
    everything = sum(1 for row in environment.walk().values() if row[0] == "file")
    assert f", {everything} read" in call(environment, "snapshot", "e", "--full").stdout


def test_record_is_not_believed_about_a_file_that_was_written_later(environment, call) -> None:
    beta = environment.site / "beta.py"
    time.sleep(0.02)
    beta.write_bytes(b"version = 7\n")  # as long as before
    call(environment, "snapshot", "a")
    before = environment.walk()
    beta.unlink()
    call(environment, "restore", "a")
    assert world.differences(before, environment.walk()) == {}


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_copy_spoiled_in_place_is_never_restored(environment, call, keep_time: bool) -> None:
    """Through the environment's name or, as here, through another link: an installer's cache."""
    cache = environment.root.parent / "cache.so"
    library = environment.site / "beta.libs/libbeta.so"
    os.link(library, cache)
    call(environment, "snapshot", "a")
    status = library.stat()
    environment.uninstall("beta")
    with open(cache, "r+b") as file:
        file.write(b"spoiled")
    if keep_time:
        os.utime(cache, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = environment.walk()
    done = call(environment, "restore", "a", code=2)
    assert "libbeta.so" in done.stderr and "written in place" in done.stderr and "nothing was changed" in done.stderr
    assert environment.walk() == before


def test_spoiling_is_noticed_by_the_next_snapshot(environment, call) -> None:
    call(environment, "snapshot", "a")
    library = environment.site / "beta.libs/libbeta.so"
    time.sleep(0.2)
    call(environment, "snapshot", "b")
    with open(library, "r+b") as file:
        file.write(b"spoiled")
    done = call(environment, "snapshot", "c")
    assert "written in place" in done.stderr and "libbeta.so" in done.stderr
    before = environment.walk()
    environment.uninstall("beta")
    call(environment, "restore", "a", code=2)
    call(environment, "restore", "c")
    assert world.differences(before, environment.walk()) == {}


def test_an_installers_cache_is_not_changed_by_a_restore(environment, call) -> None:
    cache = environment.root.parent / "cache.so"
    library = environment.site / "beta.libs/libbeta.so"
    os.link(library, cache)
    call(environment, "snapshot", "a")
    before = environment.walk()
    library.chmod(0o600)
    os.utime(library, ns=(1, 1))
    call(environment, "restore", "a")
    assert world.differences(before, environment.walk()) == {}
    assert (cache.stat().st_mode & 0o777, cache.stat().st_mtime_ns) == (0o600, 1)


def test_diff(environment, call) -> None:
    call(environment, "snapshot", "a", variables={"CUDA_HOME": "/opt/secret", "GONE": "1"})
    environment.install("beta", "2.0", {"beta.py": b"version = 22\n"})
    environment.uninstall("alpha")
    environment.install("delta", "1", {"delta.py": b""}, ("missing-thing>=3",))
    done = call(environment, "diff", "a", "--format", "json", code=1,
                variables={"CUDA_HOME": "/opt/other", "NEW": "1"})
    text = json.loads(done.stdout)
    jsonschema.validate(text, schema("diff"))
    assert {row["name"]: (row["from"], row["to"]) for row in text["packages"]} == {
        "alpha": ("1.0", None), "beta": ("1.0", "2.0"), "delta": (None, "1")}
    files = {row["path"].split("site-packages/")[-1]: row["change"] for row in text["files"]}
    assert files["beta.py"] == "changed" and files["delta.py"] == "added" and files["bin/alpha"] == "removed"
    assert any(row["code"] == "PY001" and "missing-thing" in row["headline"] for row in text["new_findings"])
    assert {row["name"]: row["change"] for row in text["variables"]} == {
        "CUDA_HOME": "changed", "GONE": "removed", "NEW": "added"}
    store = b"".join(path.read_bytes() for path in (environment.root / ".cohabit/snapshots").iterdir())
    assert b"/opt/secret" not in store
    call(environment, "snapshot", "b")
    assert "beta 1.0 -> 2.0" in call(environment, "diff", "a", "b", code=1).stdout
    assert "do not differ" in call(environment, "diff", "b", "b").stdout
    same = json.loads(call(environment, "diff", "b", "b", "--format", "json").stdout)
    jsonschema.validate(same, schema("diff"))
    assert same["files"] == same["packages"] == [] and (same["before"], same["after"]) == ("b", "b")


def test_list_as_json(environment, call) -> None:
    listed = json.loads(call(environment, "snapshots", "--format", "json").stdout)
    jsonschema.validate(listed, schema("snapshots"))
    assert listed["snapshots"] == []
    call(environment, "snapshot", "a")
    call(environment, "snapshot", "b")
    listed = json.loads(call(environment, "snapshots", "--format", "json").stdout)
    jsonschema.validate(listed, schema("snapshots"))
    assert [(row["name"], row["automatic"]) for row in listed["snapshots"]] == [("a", False), ("b", False)]
    assert datetime.datetime.fromisoformat(listed["snapshots"][0]["made"].replace("Z", "+00:00")).tzinfo is not None


@pytest.mark.parametrize("kind, change", [
    ("link", lambda env: (env.site / "beta.py").unlink() or (env.site / "beta.py").symlink_to("/nowhere")),
    ("directory", lambda env: (env.site / "beta.py").unlink() or (env.site / "beta.py").mkdir()),
    ("other", lambda env: (env.site / "beta.py").unlink() or os.mkfifo(env.site / "beta.py")),
])
def test_diff_of_kinds_has_the_schema(environment, call, kind: str, change) -> None:
    call(environment, "snapshot", "a")
    change(environment)
    found = json.loads(call(environment, "diff", "a", "--format", "json", code=1).stdout)
    jsonschema.validate(found, schema("diff"))
    row, = [row for row in found["files"] if row["path"].endswith("/beta.py")]
    assert (row["before"]["kind"], row["after"]["kind"]) == ("file", kind)


def test_names_and_removal(environment, call) -> None:
    assert "no snapshots" in call(environment, "snapshots").stdout
    assert not (environment.root / ".cohabit").exists(), "listing changes nothing"
    call(environment, "snapshot", "first")
    for name in ("../x", "a/b", "", ".x", "a\nb"):
        if name:
            call(environment, "snapshot", name, code=2)
    assert "already" in call(environment, "snapshot", "first", code=2).stderr
    assert "did you mean first" in call(environment, "restore", "frist", code=2).stderr
    call(environment, "snapshot", "second")
    world.disturb(environment)
    call(environment, "snapshots", "--remove", "first", "--remove", "second")
    assert not [path for path in (environment.root / ".cohabit/objects").rglob("*") if path.is_file()]


def test_damaged_and_hostile_stores(environment, call, tmp_path: Path) -> None:
    call(environment, "snapshot", "a")
    file = environment.root / ".cohabit/snapshots/a"
    text = file.read_bytes()
    file.write_bytes(text.replace(b"beta.py", b"../../x", 1))
    assert "damaged" in call(environment, "restore", "a", code=2).stderr
    import hashlib
    body = text[:text.rindex(b"end\t")].replace(b"share/man/beta.1", b"share/../../../x")
    file.write_bytes(body + b"end\t" + hashlib.sha256(body).hexdigest().encode() + b"\n")
    assert "a line that is none" in call(environment, "restore", "a", code=2).stderr
    call(environment, "snapshot", "b")
    file.write_bytes(text.replace(b"beta.py", b"beta.pz", 1))
    listed = call(environment, "snapshots", code=2)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["b"]
    assert str(file) in listed.stderr and "snapshots --remove a" in listed.stderr
    call(environment, "snapshots", "--remove", "a")
    assert call(environment, "snapshots").stdout.startswith("b ")
    shutil.rmtree(environment.root / ".cohabit")
    (environment.root / ".cohabit").symlink_to(tmp_path)
    call(environment, "snapshot", "a", code=2)


def test_files_that_change_while_the_snapshot_runs(environment, call) -> None:
    """A snapshot is of one moment, or it is refused."""
    for i in range(200):
        (environment.site / f"many_{i}.py").write_text(f"{i}\n")
    stop = threading.Event()

    def write() -> None:
        i = 0
        while not stop.is_set():
            partial = environment.site / "partial"
            partial.write_text(f"{i}\n")
            os.replace(partial, environment.site / f"many_{i % 200}.py")
            i += 1
    writer = threading.Thread(target=write)
    writer.start()
    done = call(environment, "snapshot", "busy", code=None)
    stop.set()
    writer.join()
    assert done.returncode == 0 or "keeps changing" in done.stderr
    (environment.site / "partial").unlink(missing_ok=True)
    before = environment.walk()
    call(environment, "snapshot", "quiet")
    shutil.rmtree(environment.site)
    call(environment, "restore", "quiet")
    assert world.differences(before, environment.walk()) == {}


def test_two_at_once(environment, call) -> None:
    call(environment, "snapshot", "a")
    with open(environment.root / ".cohabit/lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (("snapshot", "b"), ("restore", "a"), ("snapshots",), ("diff", "a")):
            assert "wait until it has ended" in call(environment, *words, code=2).stderr


def test_a_limit_on_file_sizes_is_a_full_disk(environment, call) -> None:
    before = environment.walk()
    done = call(environment, "snapshot", "a", code=2,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    assert "nothing is lost" in done.stderr
    assert environment.walk() == before and "no snapshots" in call(environment, "snapshots").stdout
    call(environment, "snapshot", "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_and_a_read_only_disk(cohabit, call, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,nr_inodes=2000", "none", disk],
                      capture_output=True).returncode:
        pytest.skip("this container may not mount")
    try:
        environment = world.make_environment(disk / "env")
        before = environment.walk()
        call(environment, "snapshot", "a")
        environment.uninstall("beta")
        changed = environment.walk()
        (disk / "filler").write_bytes(b"")
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
        done = call(environment, "restore", "a", code=None)
        if done.returncode:
            assert "No space left" in done.stderr
            assert environment.walk() == changed
        assert "No space left" in call(environment, "snapshot", "b", code=2).stderr
        (disk / "filler").unlink()
        call(environment, "restore", "a")
        assert world.differences(before, environment.walk()) == {}
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert "Read-only" in call(environment, "snapshot", "c", code=2).stderr
        assert "a " in call(environment, "snapshots").stdout
        assert "do not differ" in call(environment, "diff", "a").stdout
        call(environment, "restore", "a", code=2)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_directories_without_permissions(call, tmp_path: Path) -> None:
    """As a user who is not root, whom permissions stop."""
    command = []
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv")
        probe = subprocess.run([*command, "true"], capture_output=True)
        if probe.returncode:
            pytest.skip("this container may not change users")
    python = sys.executable
    if subprocess.run([*command, "stat", "-L", os.path.realpath(python)], capture_output=True).returncode:
        python = "/usr/bin/python3"  # that of the tests is in a home that others may not enter
    if subprocess.run([*command, python, "-c", "import venv"], capture_output=True).returncode:
        pytest.skip("no Python that others may start")
    environment = world.make_environment(tmp_path / "env", python)
    if command:
        for path in (tmp_path, *tmp_path.parents[:3]):
            path.chmod(path.stat().st_mode | 0o055)
        subprocess.run(["chown", "-hR", "65534:65534", environment.root], check=True)
    kept = environment.site / "alpha"
    kept.chmod(0o555)
    before = environment.walk()

    def as_user(*words: str, code: int = 0) -> str:
        done = subprocess.run([*command, _cohabit(call), *words, "--env", environment.root], capture_output=True,
                              text=True)
        if command and "Permission denied" in done.stderr and "cohabit" not in done.stderr:
            pytest.skip("the build is not readable for others")
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stderr
    as_user("snapshot", "a")
    kept.chmod(0o755)
    (kept / "__init__.py").unlink()
    (kept / "other").mkdir()
    (kept / "other/file").write_text("x")
    if command:
        subprocess.run(["chown", "-hR", "65534:65534", environment.root], check=True)
    (kept / "other").chmod(0o555)
    kept.chmod(0o555)
    as_user("restore", "a")
    assert world.differences(before, environment.walk()) == {}
    (environment.root / "share/empty").chmod(0)
    assert "cannot read" in as_user("snapshot", "b", code=2)


def _cohabit(call) -> str:
    return call.__closure__[0].cell_contents
