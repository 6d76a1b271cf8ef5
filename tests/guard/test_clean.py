"""cohabit clean: what is left over is named with its reason, put away, put back; killed at any change."""
from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import jsonschema
import pytest
import world

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "data" / "schema" / "clean.schema.json").read_text())
TAG = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"


@pytest.fixture
def environment(tmp_path: Path) -> world.Environment:
    environment = world.make_environment(tmp_path / "env")
    (environment.site / "__pycache__/beta.cpython-311.pyc").rename(environment.site / f"__pycache__/beta.{TAG}.pyc")
    return environment


def report(call, environment, *options: str, **more) -> dict:
    found = json.loads(call(environment, "clean", "--format", "json", *options, **more).stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def paths(found: dict, kind: str) -> set[str]:
    prefix = found["environment"]["path"] + "/"
    return {path.removeprefix(prefix).split("site-packages/")[-1]
            for row in found["leftovers"] if row["kind"] == kind for path in row["paths"]}


def put(environment: world.Environment, path: str, content: bytes = b"x") -> Path:
    place = environment.site / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def leave_things(environment: world.Environment) -> None:
    put(environment, "~orch/__init__.py")
    put(environment, "~orch-2.0.dist-info/METADATA")
    put(environment, "alpha/~ata/table.csv")
    put(environment, "half-1.0.dist-info/INSTALLER", b"pip\n")
    put(environment, f"alpha/__pycache__/gone.{TAG}.pyc")
    put(environment, f"alpha/__pycache__/empty.{TAG}.opt-1.pyc")
    put(environment, "alpha/__pycache__/empty.cpython-27.pyc")
    put(environment, f"old/sub/__pycache__/module.{TAG}.pyc")
    (environment.site / "nothing").mkdir()


def test_nothing_is_left_over(call, environment) -> None:
    assert report(call, environment)["leftovers"] == []
    assert call(environment, "clean").stdout == "Nothing is left over.\n"


def test_each_kind_is_found_and_nothing_else(call, environment) -> None:
    leave_things(environment)
    before = environment.walk()
    found = report(call, environment, "--dry-run")
    assert found["cleaning"] is None and environment.walk() == before
    assert paths(found, "stopped-uninstall") == {"~orch", "~orch-2.0.dist-info", "alpha/~ata"}
    assert paths(found, "broken-metadata") == {"half-1.0.dist-info"}
    assert paths(found, "bytecode") == {f"alpha/__pycache__/gone.{TAG}.pyc", "alpha/__pycache__/empty.cpython-27.pyc"}
    assert paths(found, "empty-directory") == {"old", "nothing"}
    assert {row["kind"] for row in found["leftovers"]} == {"stopped-uninstall", "broken-metadata", "bytecode",
                                                           "empty-directory"}
    sizes = {row["what"]: (row["files"], row["bytes"]) for row in found["leftovers"]}
    assert sizes["~orch"] == (1, 1) and sizes["nothing"] == (0, 0)


def test_put_away_and_back(call, environment) -> None:
    clean = environment.walk()
    leave_things(environment)
    before = environment.walk()
    name = report(call, environment)["cleaning"]
    after = environment.walk()
    assert not world.differences({k: v for k, v in after.items() if b"alpha/__pycache__" not in k}, clean)
    assert b"gone" not in b"".join(after) and name
    assert report(call, environment)["leftovers"] == []
    call(environment, "clean", "--undo", name)
    assert environment.walk() == before
    assert report(call, environment)["cleaning"]
    call(environment, "clean", "--undo")
    assert environment.walk() == before
    assert "nothing is put away" in call(environment, "clean", "--undo", code=2).stderr


def test_forgotten_is_gone(call, environment) -> None:
    leave_things(environment)
    name = report(call, environment)["cleaning"]
    assert "did you mean" in call(environment, "clean", "--forget", name[:-1] + "x", code=2).stderr
    call(environment, "clean", "--forget", name)
    assert not list((environment.root / ".cohabit/cleaned").iterdir())


def test_own_work_is_kept_unless_asked_for(call, environment) -> None:
    put(environment, "mine/__init__.py")
    put(environment, "hook.pth", b"import os\n")
    put(environment, "alpha/libold.so")
    put(environment, f"mine/__pycache__/__init__.{TAG}.pyc")
    before = environment.walk()
    found = report(call, environment)
    assert found["cleaning"] is None and environment.walk() == before
    assert paths(found, "unclaimed") == {"mine/__init__.py", f"mine/__pycache__/__init__.{TAG}.pyc", "hook.pth",
                                         "alpha/libold.so"}
    assert "--unclaimed" in call(environment, "clean").stdout
    assert paths(report(call, environment, "--all"), "unclaimed") == {"mine", "hook.pth", "alpha/libold.so"}
    assert not (environment.site / "mine").exists() and (environment.site / "alpha/__init__.py").exists()


def test_orphans_are_what_nobody_wants(call, environment) -> None:
    shared = {"nvidia/__init__.py": b""}
    environment.install("nvidia-cuda-a", "1", {"nvidia/a/lib/liba.so.1": b"a" * 99, **shared})
    environment.install("nvidia-cuda-b", "1", {"nvidia/b/lib/libb.so.1": b"b", **shared}, ("nvidia-cuda-a",))
    environment.install("nvidia-asked", "1", {"nvidia/c/lib/libc.so": b"c", **shared})
    put(environment, "nvidia-asked-1.dist-info/REQUESTED", b"")
    found = report(call, environment, "--dry-run")
    assert {row["what"] for row in found["leftovers"] if row["kind"] == "orphan"} == {"nvidia-cuda-a 1",
                                                                                      "nvidia-cuda-b 1"}
    assert {row["what"] for row in found["leftovers"] if row["kind"] == "unused"} == {"nvidia-asked 1"}
    environment.install("torch", "2", {"torch/__init__.py": b""}, ("nvidia-cuda-a; python_version > '3'",))
    assert paths(report(call, environment), "orphan") == {"nvidia/b", "nvidia-cuda-b-1.dist-info"}
    assert (environment.site / "nvidia/__init__.py").exists(), "others claim it too"
    environment.uninstall("torch")
    environment.install("jax", "2", {"jax/__init__.py": b""}, ("nvidia-cuda-a; extra == 'cuda'",))
    info = environment.site / "jax-2.dist-info/METADATA"
    info.write_text(info.read_text() + "Provides-Extra: cuda\n")
    assert paths(report(call, environment), "orphan") == set(), "the extra may have been asked for"
    assert report(call, environment, "--unused")["cleaning"] and not (environment.site / "nvidia/c").exists()


def test_a_library_that_is_needed_is_no_orphan(call, environment, tmp_path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int f(void) { return 1; }")
    library, user = tmp_path / "liba.so.1", tmp_path / "user.so"
    os.system(f"gcc -shared -o {library} -Wl,-soname,liba.so.1 {source}")
    os.system(f"gcc -shared -o {user} -Wl,--no-as-needed {library}")
    environment.install("nvidia-cuda-a", "1", {"nvidia/a/lib/liba.so.1": library.read_bytes()})
    assert paths(report(call, environment, "--dry-run"), "orphan") == {"nvidia", "nvidia-cuda-a-1.dist-info"}
    environment.install("user", "1", {"user.so": user.read_bytes()})
    assert report(call, environment, "--dry-run")["leftovers"] == []


def test_old_caches_go_when_asked(call, environment, tmp_path) -> None:
    environment.install("triton", "3", {"triton/__init__.py": b""})
    home = tmp_path / "home"
    for name, age in (("old", 3600), ("new", -3600)):
        place = home / ".triton/cache" / name / "kernel.cubin"
        place.parent.mkdir(parents=True)
        place.write_bytes(b"kernel")
        installed = (environment.site / "triton-3.dist-info").stat().st_mtime
        os.utime(place, (installed - age, installed - age))
    variables = {"HOME": str(home)}
    found = report(call, environment, variables=variables)
    assert [row["paths"] for row in found["leftovers"]] == [[str(home / ".triton/cache/old")]]
    assert report(call, environment, "--caches", variables=variables)["cleaning"]
    assert not (home / ".triton/cache/old").exists() and (home / ".triton/cache/new").exists()
    call(environment, "clean", "--undo", variables=variables)
    assert (home / ".triton/cache/old/kernel.cubin").read_bytes() == b"kernel"


@pytest.mark.parametrize("base", ["home", "PYTHONUSERBASE"])
def test_copies_of_the_user_site_that_win(call, environment, tmp_path, base) -> None:
    # In a venv its own packages come first: only an installation of its own can lose.
    (environment.root / "pyvenv.cfg").unlink()
    (environment.site.parent / "os.py").write_text("")
    (environment.root / "conda-meta").mkdir()
    binary = environment.root / "bin" / "python3"
    for link in environment.root.glob("bin/python*"):
        link.unlink()
    shutil.copy(os.path.realpath(sys.executable), binary)
    home = tmp_path / "home"
    user = world.Environment.__new__(world.Environment)
    user.root = home / ".local" if base == "home" else tmp_path / "base"
    user.site = user.root / "lib" / environment.site.parent.name / "site-packages"
    user.site.mkdir(parents=True)
    user.install("alpha", "0.9", {"alpha/__init__.py": b"old"})
    user.install("other", "1", {"other.py": b""})
    variables = {"HOME": str(home), **({"PYTHONUSERBASE": str(user.root)} if base != "home" else {})}
    before = user.walk()
    found = report(call, environment, variables=variables)
    rows = [row for row in found["leftovers"] if row["kind"] == "user-site"]
    assert [row["what"] for row in rows] == ["alpha 0.9 in the user's site directory"] and user.walk() == before
    call(environment, "clean", "--user-site", variables=variables)
    assert not (user.site / "alpha").exists() and (user.site / "other.py").exists()
    call(environment, "clean", "--undo", variables=variables)
    assert {name: row for name, row in user.walk().items() if b".cohabit" not in name} == before


def test_put_back_refuses_where_something_is_again(call, environment) -> None:
    leave_things(environment)
    report(call, environment)
    put(environment, "~orch/new")
    before = environment.walk()
    assert "nothing was put back" in call(environment, "clean", "--undo", code=2).stderr
    assert environment.walk() == before


def shared_directories_again(environment: world.Environment) -> None:
    """An orphan's bytecode was all that was in __pycache__, and the next install makes both directories anew."""
    put(environment, f"__pycache__/six.{TAG}.pyc", b"six")
    put(environment, f"__pycache__/single.{TAG}.pyc", b"new")
    put(environment, "old/new.py", b"new")
    put(environment, "old/sub/new.py", b"new")


def leave_shared_directories(environment: world.Environment) -> None:
    (environment.site / f"__pycache__/beta.{TAG}.pyc").unlink()
    put(environment, f"__pycache__/single.{TAG}.pyc", b"old")
    put(environment, f"__pycache__/gone.{TAG}.pyc", b"gone")
    leave_things(environment)


def test_put_back_beside_what_is_there_again(call, environment) -> None:
    leave_shared_directories(environment)
    before = environment.walk()
    report(call, environment)
    assert not (environment.site / "__pycache__").exists()
    shared_directories_again(environment)
    present = environment.walk()
    call(environment, "clean", "--undo")
    after = environment.walk()
    assert set(after) == set(before) | set(present)
    expected = before | {name: row for name, row in present.items() if row[0] == "file"}
    assert {name: row for name, row in after.items() if row[0] == "file"} == {
        name: row for name, row in expected.items() if row[0] == "file"}
    assert (environment.site / f"__pycache__/single.{TAG}.pyc").read_bytes() == b"new"
    assert not list((environment.root / ".cohabit/cleaned").iterdir())


def test_one_file_that_is_there_again_keeps_all_away(call, environment) -> None:
    put(environment, "old/__pycache__/data", b"old")
    leave_things(environment)
    put(environment, f"old/__pycache__/more.{TAG}.pyc")
    kept = put(environment, "half-1.0.dist-info/REQUESTED", b"")
    report(call, environment, "--all")
    put(environment, "old/__pycache__/data", b"new")
    kept.parent.mkdir()
    before = environment.walk()
    done = call(environment, "clean", "--undo", code=2)
    assert "old/__pycache__/data" in done.stderr and "half-1.0.dist-info" in done.stderr and "~orch" not in done.stderr
    assert environment.walk() == before


def test_a_merge_is_killed_at_every_change(call, environment, tmp_path) -> None:
    """The next command completes it: nothing of either side is lost, at any instant."""
    leave_shared_directories(environment)
    call(environment, "clean")
    shared_directories_again(environment)
    away = environment.walk()
    copy = tmp_path / "copy"
    world.copy_of(environment.root, copy)
    call(environment, "clean", "--undo")
    merged = environment.walk()
    world.copy_of(copy, environment.root)
    step = 1
    while call(environment, "clean", "--undo", variables={"COHABIT_TEST_KILL_AT": str(step)}, code=None).returncode == -signal.SIGKILL:
        call(environment, "snapshots")
        assert environment.walk() in (away, merged), step
        world.copy_of(copy, environment.root)
        step += 1
    assert environment.walk() == merged and step > 15


def test_a_failure_changes_nothing(call, environment) -> None:
    leave_things(environment)
    locked = environment.site / "~orch"
    if os.geteuid() == 0:
        os.system(f"chattr +i {locked} 2>/dev/null")
        if not os.popen(f"lsattr -d {locked} 2>/dev/null").read().split(" ")[0].count("i"):
            pytest.skip("no file can be made unchangeable here")
    else:
        locked.chmod(0o500)
    before = environment.walk()
    try:
        done = call(environment, "clean", code=2)
        assert "everything is where it was" in done.stderr and environment.walk() == before
    finally:
        os.system(f"chattr -i {locked} 2>/dev/null") if os.geteuid() == 0 else locked.chmod(0o700)


@pytest.mark.parametrize("words", [["clean"], ["clean", "--undo"], ["clean", "--forget"]])
def test_killed_at_every_change(call, environment, tmp_path, words) -> None:
    """Then the next command completes it: all is away, or all is back."""
    leave_things(environment)
    full = environment.walk()
    if len(words) == 2:
        call(environment, "clean")
    copy = tmp_path / "copy"
    world.copy_of(environment.root, copy)
    cleaned = environment.walk() if len(words) == 2 else None
    step = killed = 0
    while True:
        step += 1
        done = call(environment, *words, variables={"COHABIT_TEST_KILL_AT": str(step)}, code=None)
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
        killed += 1
        call(environment, "snapshots")  # any command of the family
        state = environment.walk()
        if words == ["clean"]:
            cleaned = cleaned or environment.walk()
            assert state == full or not any(b"~" in name for name in state), step
        elif words == ["clean", "--undo"]:
            assert state in (cleaned, full), step
        else:
            assert state == cleaned, step
        world.copy_of(copy, environment.root)
    assert killed > (5 if "--forget" in words else 10)


def test_a_damaged_list_is_refused(call, environment) -> None:
    leave_things(environment)
    name = report(call, environment)["cleaning"]
    listing = environment.root / ".cohabit/cleaned" / name / "list"
    good = listing.read_text()
    outside = environment.root.parent / "outside"
    for bad in ("", "nonsense\n", good.replace("away", "elsewhere"), "cohabit-cleaned 1 away\n../../outside\n",
                "cohabit-cleaned 1 away\n/etc/x\n"):
        listing.write_text(bad)
        done = call(environment, "clean", "--undo", name, code=2)
        assert "is no list of files" in done.stderr and not outside.exists()
