"""LD_LIBRARY_PATH and LD_PRELOAD of the user, absolute, relative and empty: held against what the machine's ld.so does."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXTENSION = ".text\n.globl PyInit_native\nPyInit_native: jmp *needed_function@GOTPCREL(%rip)\n"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}


def link(out: Path, text: str, *words: str) -> None:
    source = out.with_suffix(".s")
    source.write_text(text + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc-12", "-shared", "-nostdlib", "-o", str(out), str(source), *words], check=True)
    source.unlink()


def function(name: str) -> str:
    return f".text\n.globl {name}\n.type {name},@function\n{name}: ret\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a package whose extension finds its library by RUNPATH; `old` has one without the function."""
    top = tmp_path_factory.mktemp("world")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(top / "env")], check=True)
    site = next((top / "env" / "lib").glob("python*")) / "site-packages"
    package, libraries, old = site / "pack", site / "pack.libs", top / "old"
    for directory in (package, libraries, old):
        directory.mkdir()
    link(libraries / "libneeded.so.1", function("needed_function"), "-Wl,-soname,libneeded.so.1")
    link(old / "libneeded.so.1", function("other_function"), "-Wl,-soname,libneeded.so.1")
    link(package / "native.so", EXTENSION, str(libraries / "libneeded.so.1"), "-Wl,-rpath,$ORIGIN/../pack.libs",
         "-Wl,--enable-new-dtags")
    (package / "__init__.py").write_text("from . import native\n")
    information = site / "pack-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: pack\nVersion: 1.0\n")
    (information / "RECORD").write_text("pack/__init__.py,,\npack/native.so,,\npack.libs/libneeded.so.1,,\n"
                                        "pack-1.0.dist-info/METADATA,,\npack-1.0.dist-info/RECORD,,\n")
    return top


def really(world: Path, variables: dict[str, str]) -> str:
    """What ld.so says of the extension; empty: it loads."""
    native = next((world / "env" / "lib").rglob("native.so"))
    code = f"import ctypes\ntry: ctypes.CDLL({str(native)!r}, mode=2)\nexcept OSError as error: print(error)"
    done = subprocess.run([str(world / "env" / "bin" / "python"), "-c", code], env=CLEAN | variables, cwd=world / "old",
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


def examined(cohabit: str, world: Path, variables: dict[str, str]) -> dict:
    done = subprocess.run([cohabit, "doctor", "../env", "--imports", "pack", "--format", "json", "--no-cache"],
                          env=CLEAN | variables, cwd=world / "old", capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("value", ["", "{old}", "{old}/", ".", ":", "/not-there:", "../old", "{env}", "..:{old}"])
def test_search_path(cohabit: str, world: Path, value: str) -> None:
    variables = {"LD_LIBRARY_PATH": value.format(old=world / "old", env=world / "env")}
    said, report = really(world, variables), examined(cohabit, world, variables)
    assert report["orders"][0]["verdict"] == ("unsound" if said else "sound")
    codes = [one["code"] for one in report["findings"]]
    assert codes == (["LD203"] if said else [])
    if said:
        finding = report["findings"][0]
        assert str(world / "old" / "libneeded.so.1") in [one["path"] for one in finding["libraries"]]
        assert "LD_LIBRARY_PATH" in finding["help"][0]["text"] and "reinstall" not in finding["help"][0]["text"]


@pytest.mark.parametrize("value", ["{old}/libneeded.so.1", "./libneeded.so.1", "../old/libneeded.so.1"])
def test_preload(cohabit: str, world: Path, value: str) -> None:
    variables = {"LD_PRELOAD": value.format(old=world / "old")}
    said, report = really(world, variables), examined(cohabit, world, variables)
    assert report["orders"][0]["verdict"] == ("unsound" if said else "sound")
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    assert [one["code"] for one in errors] == (["LD203"] if said else [])
    if said:
        assert "out of LD_PRELOAD" in errors[0]["help"][0]["text"]
