"""What a program's loader really did beside what `cohabit replay` of its trace says, where the loader is an unusual one."""
from __future__ import annotations

import platform
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

OPENER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** words) {
  for (int i = 1; i < count; i++) puts(dlopen(words[i], RTLD_NOW) ? words[i] : "-");
}
"""


def compile_c(directory: Path, name: str, text: str, *options: str) -> str:
    source = directory / (name + ".c")
    source.write_text(text)
    subprocess.run(["cc", "-o", directory / name, source, *options], check=True)
    return str(directory / name)


def refusals(world, directory: Path, command: list[str], **variables: str) -> tuple[int, int, str]:
    """How many opens ld.so refused, and how many replay does; and what replay says."""
    trace = directory / "out.trace"
    run = world.trace(command=command, out=str(trace), **variables)
    assert run.status == 0, run.stderr
    done = subprocess.run([world.cohabit, "replay", trace], capture_output=True, text=True)
    said = done.stdout + done.stderr
    failed = re.search(r"(\d+) of them failed", said)
    return run.stdout.split().count("-"), int(failed[1]) if failed else 0, said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bytes of an x86-64 ld.so are changed")
def test_a_loader_with_other_directories(world, tmp_path: Path) -> None:
    """A program names its ld.so; that of Nix or Guix looks elsewhere. Here its directory is changed to one of the same length."""
    usual = b"/usr/lib/x86_64-linux-gnu/\0"
    loader = Path("/lib64/ld-linux-x86-64.so.2").read_bytes()
    if usual not in loader:
        pytest.skip("this ld.so has another default directory")
    name = "w" * (len(usual) - len("/tmp//lib/") - 1 - 8)  # mkdtemp adds 8 letters
    with tempfile.TemporaryDirectory(dir="/tmp", prefix=name) as place:
        unusual = place.encode() + b"/lib/\0"
        assert len(unusual) == len(usual)
        Path(place, "lib").mkdir()
        own = tmp_path / "ld-own.so.2"
        own.write_bytes(loader.replace(usual, unusual))
        own.chmod(0o755)
        program = compile_c(tmp_path, "opener", OPENER, f"-Wl,--dynamic-linker={own}", "-Wl,--no-as-needed", "-ldl")
        compile_c(Path(place, "lib"), "libwanted.so", "int wanted;", "-shared", "-fPIC")
        really, replayed, said = refusals(world, tmp_path, [program, "libwanted.so"])
    assert really == 0 == replayed, said


def test_started_through_the_loader(world, tmp_path: Path) -> None:
    """Its options are not simulated: that is said."""
    program = compile_c(tmp_path, "opener", OPENER)
    loader = subprocess.run(["readelf", "-p", ".interp", program], capture_output=True, text=True, check=True).stdout.split()[-1]
    compile_c(tmp_path, "libwanted.so", "int wanted;", "-shared", "-fPIC")
    really, _, said = refusals(world, tmp_path, [loader, "--library-path", str(tmp_path), program, "libwanted.so"])
    assert really == 0 and "was started through" in said


WRAPPER = """
#define _GNU_SOURCE
#include <dlfcn.h>
void* dlopen(const char* name, int flags) {
  void* (*real)(const char*, int) = dlsym(RTLD_NEXT, "dlopen");
  void* volatile handle = real(name, flags);  /* no tail call: glibc takes this library for the caller */
  return handle;
}
"""


@pytest.mark.parametrize("where", ["beside the wrapper", "beside the program"])
def test_a_library_that_wraps_dlopen(where: str, world, tmp_path: Path) -> None:
    """Sanitizers and profilers do: then their RUNPATH counts, and the program's does not."""
    (tmp_path / "own").mkdir()
    (tmp_path / "theirs").mkdir()
    program = compile_c(tmp_path, "opener", OPENER, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/own")
    wrapper = compile_c(tmp_path, "libwrapper.so", WRAPPER, "-shared", "-fPIC", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/theirs")
    place = tmp_path / ("theirs" if "wrapper" in where else "own")
    compile_c(place, "libwanted.so", "int wanted;", "-shared", "-fPIC")
    really, replayed, said = refusals(world, tmp_path, [program, "libwanted.so"], LD_PRELOAD=wrapper)
    assert really == replayed == int("program" in where), said


@pytest.mark.parametrize("tunables", ["glibc.rtld.nns=100", "glibc.rtld.nns=1", "glibc.rtld.optional_static_tls=0",
                                      "glibc.rtld.optional_static_tls=0:glibc.rtld.optional_static_tls=8192",
                                      "glibc.rtld.optional_static_tls=8192:glibc.rtld.optional_static_tls=0"])
def test_tunables_of_static_tls(tunables: str, world, tmp_path: Path) -> None:
    """Out of bounds is as if it were not there; the last one of a name counts."""
    program = compile_c(tmp_path, "opener", OPENER)
    names = []
    for size in (100, 700, 1500, 1700, 1900):
        text = f"__thread char x[{size}] __attribute__((tls_model(\"initial-exec\")));\nchar* f(void) {{ return x; }}"
        names.append(compile_c(tmp_path, f"libwanted{size}.so", text, "-shared", "-fPIC"))
    really, replayed, said = refusals(world, tmp_path, [program, *names], GLIBC_TUNABLES=tunables)
    assert really == replayed, said
