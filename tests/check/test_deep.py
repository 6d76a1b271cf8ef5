"""`--deep`: the resulting environment is made beside the present one and examined; and guard asks before it installs."""
from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

import index as made
import pytest


def content(root: Path) -> dict[str, tuple]:
    return {str(path.relative_to(root)): (path.lstat().st_mode, path.lstat().st_mtime_ns,
                                          hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
            for path in root.rglob("*") if path.relative_to(root).parts[0] != ".cohabit"}


def small_library(directory: Path, name: str, needs: list[str]) -> bytes:
    """A shared library that needs others."""
    source = directory / "empty.c"
    source.write_text("int f(void) { return 1; }\n")
    for one in needs:
        subprocess.run(["gcc", "-shared", "-o", directory / one, source, f"-Wl,-soname,{one}"], check=True)
    out = directory / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", out, source, f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-L", directory,
                    *[f"-l:{one}" for one in needs], "-Wl,-rpath,$ORIGIN"], check=True)
    return out.read_bytes()


def test_what_only_the_files_tell(environment, ask, tmp_path: Path):
    """An upgrade of which the extension module needs a library that the new wheel left out."""
    wheels = tmp_path / "wheels"
    extension = small_library(tmp_path, "torch_ext.so", ["libgone.so.1"])
    gone = (tmp_path / "libgone.so.1").read_bytes()
    environment.install(made.make_wheel(wheels, "torch", "1", {
        "torch/__init__.py": b"from . import _C\n", "torch/_C.so": extension, "torch/libgone.so.1": gone}))
    made.make_wheel(wheels, "torch", "2", {"torch/__init__.py": b"from . import _C\n", "torch/_C.so": extension})
    where = ["--no-index", "--find-links", wheels]
    before = content(environment.root)
    shallow = ask(environment, "torch==2", *where)
    assert not shallow["findings"]
    deep = ask(environment, "torch==2", *where, "--deep", code=1)
    assert any("libgone.so.1" in one["headline"] for one in deep["findings"]), deep["findings"]
    assert ".cohabit-check" not in str(deep), "paths are those of the environment"
    assert content(environment.root) == before
    assert not list(tmp_path.glob(".cohabit-check*")), "nothing is left"


def test_what_a_killed_check_has_left_goes_with_the_next(environment, ask, tmp_path: Path):
    """But not what another process works in, nor what only has a like name."""
    made.make_wheel(tmp_path / "wheels", "other", "1")
    names = [f".cohabit-check.{end}" for end in ("aAbB12", "cCdD34", "longer-than-ours", "")]
    for name in names:
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib/file").write_text("x")
    used = os.open(tmp_path / names[1], os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    ask(environment, "other", "--no-index", "--find-links", tmp_path / "wheels", "--deep")
    os.close(used)
    assert sorted(path.name for path in tmp_path.glob(".cohabit-check*")) == sorted(names[1:])


def test_what_is_broken_already_is_not_said(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    extension = small_library(tmp_path, "torch_ext.so", ["libgone.so.1"])
    environment.install(made.make_wheel(wheels, "torch", "1", {"torch/__init__.py": b"from . import _C\n",
                                                               "torch/_C.so": extension}))
    made.make_wheel(wheels, "other", "1")
    deep = ask(environment, "other", "--no-index", "--find-links", wheels, "--deep")
    assert deep["findings"] == []


def test_what_another_version_breaks_too_is_not_said(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    made.make_wheel(wheels, "base", "1")
    environment.install(made.make_wheel(wheels, "user", "1", requires=("base>=5",)), wheels / "base-1-py3-none-any.whl")
    made.make_wheel(wheels, "user", "2", requires=("base>=5",))
    deep = ask(environment, "user==2", "--no-deps", "--no-index", "--find-links", wheels, "--deep")
    assert [one["to"] for one in deep["changes"]] == ["2"] and deep["findings"] == []


def test_whose_file_stays_is_chance_with_uv(environment, ask, tmp_path: Path):
    """Both wheels are new: pip installs one after the other, uv both at the same time, so that the copy tells nothing."""
    wheels = tmp_path / "wheels"
    for i in (1, 2):
        made.make_wheel(wheels, f"vendor-cu1{i}", "1", {"vendor/lib/libdnn.so.9": made.noise(100, i)})
    where = ["vendor-cu11", "vendor-cu12", "--no-index", "--find-links", wheels]
    shallow, deep = ask(environment, *where), ask(environment, *where, "--deep")
    heads = [[one["headline"] for one in answer["findings"] if one["code"] == "FI001"] for answer in (shallow, deep)]
    assert len(heads[0]) == 1 and heads[0] == heads[1]
    assert ("both install" in heads[1][0]) == (environment.installer == "uv"), heads


@pytest.mark.parametrize("force", [False, True])
def test_guard_asks_first(environment, cohabit, tmp_path: Path, force: bool):
    wheels = tmp_path / "wheels"
    vendor = [{"vendor/lib/libdnn.so.9": made.noise(100, i)} for i in (1, 2)]
    environment.install(made.make_wheel(wheels, "vendor-cu13", "9.26", vendor[0]))
    made.make_wheel(wheels, "vendor-cu12", "9.28", vendor[1])
    before = content(environment.root)
    installer = ([environment.root / "bin/python", "-m", "pip"] if environment.installer == "pip" else ["uv", "pip"])
    done = subprocess.run([cohabit, "guard", "--env", environment.root, *(["--force"] if force else []), "--", *installer,
                           "install", "--no-index", "--find-links", wheels, "vendor-cu12",
                           *(["--python", environment.root / "bin/python"] if environment.installer == "uv" else [])],
                          env=environment.variables, capture_output=True, text=True)
    assert "would be: error[FI001]: vendor-cu12 9.28 would overwrite 1 file of vendor-cu13 9.26" in done.stderr, done.stderr
    installed = (environment.site / "vendor_cu12-9.28.dist-info").exists()
    assert (done.returncode, installed) == ((0, True) if force else (1, False))
    if not force:
        assert content(environment.root) == before
        assert not list(environment.root.glob(".cohabit/snapshots/*")), "not even a snapshot was taken"
        assert "--force" in done.stderr
