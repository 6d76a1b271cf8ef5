"""What a program's loader really did beside what `cohabit replay` of its trace says, where the loader is an unusual one."""
from __future__ import annotations

import platform
import re
import signal
import struct
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


def loader_of(program: str) -> str:
    return subprocess.run(["readelf", "-p", ".interp", program], capture_output=True, text=True, check=True).stdout.split()[-1]


def mapped(log: str) -> list[str]:
    """The names that ld.so made link maps for, in order, from what it writes with LD_DEBUG=files."""
    return re.findall(r"file=(\S+) \[\d+\];  generating link map", log)


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


LOADER_OPTIONS = [["--library-path", "@/libs"], ["--library-path", "@/libs", "--inhibit-rpath", "@/libs/libuses.so"],
                  ["--preload", "@/libs/libwanted.so"], ["--inhibit-rpath", "", "--library-path", "@/none"],
                  ["--inhibit-cache", "--argv0", "other"], ["--library-path", "$ORIGIN/libs"],
                  ["--glibc-hwcaps-prepend", "own", "--library-path", "@/caps"], ["--glibc-hwcaps-mask", "x86-64-v2", "--library-path", "@/caps"],
                  ["--glibc-hwcaps-mask", "none", "--library-path", "@/caps"]]


@pytest.mark.parametrize("options", LOADER_OPTIONS, ids=" ".join)
def test_started_through_the_loader(options: list[str], world, tmp_path: Path) -> None:
    """`ld.so OPTIONS PROGRAM`, where the program is named by a link: which files, by ld.so's own log."""
    for name in ("libs", "more", "caps/glibc-hwcaps/own", "caps/glibc-hwcaps/x86-64-v3", "bin/more"):
        (tmp_path / name).mkdir(parents=True)
    program = compile_c(tmp_path / "bin", "opener", OPENER, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/more")
    (tmp_path / "link").symlink_to(program)
    loader = loader_of(program)
    for place in ("libs", "caps", "caps/glibc-hwcaps/own", "caps/glibc-hwcaps/x86-64-v3"):
        compile_c(tmp_path / place, "libwanted.so", "int wanted;", "-shared", "-fPIC")
    for place in ("more", "bin/more"):
        compile_c(tmp_path / place, "libother.so", "int other;", "-shared", "-fPIC")
    compile_c(tmp_path / "libs", "libuses.so", "extern int other; int* uses = &other;", "-shared", "-fPIC",
              f"-L{tmp_path}/more", "-lother", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../more")
    words = [word.replace("@", str(tmp_path)) for word in options]
    names = ["libwanted.so", "libuses.so", "libother.so", "libm.so.6", program, str(tmp_path / "link")]
    command = [loader, *words, str(tmp_path / "link"), *names]
    log = subprocess.run(command, env={"LD_DEBUG": "files"}, capture_output=True, text=True, check=True)
    really = mapped(log.stderr)
    run = world.trace(command=command, out=str(tmp_path / "out.trace"))
    assert run.status == 0, run.stderr
    done = subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--loads", tmp_path / "loads", "--results", tmp_path / "results"],
                          capture_output=True, text=True)
    assert "note:" not in done.stderr
    loads = [line.split("\t") for line in (tmp_path / "loads").read_text().splitlines()]
    assert [load[1] for load in loads] == really[1:], done.stderr  # the first is the program
    started = {str(Path(line.split()[-1]).resolve()) for line in log.stderr.splitlines() if "calling init: " in line}
    refused = {program, str(tmp_path / "libs/libuses.so")}  # mapped, and given back where libother.so is not found
    assert (started - {str(Path(loader).resolve())}) ^ {load[0] for load in loads} <= refused
    results = [line.split("\t")[0] for line in (tmp_path / "results").read_text().splitlines()]
    assert results == ["failed" if line == "-" else "ok" for line in log.stdout.splitlines()]


def test_a_cpu_of_no_level(world, tmp_path: Path) -> None:
    """ld.so is told that the CPU lacks what the levels ask for: it looks into none of their folders, whatever this one has."""
    for place in ("", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        compile_c(tmp_path / place, "libwanted.so", "int wanted;", "-shared", "-fPIC")
    program = compile_c(tmp_path, "opener", OPENER)
    variables = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSE4_2,-AVX2", "LD_LIBRARY_PATH": str(tmp_path)}
    log = subprocess.run([program, "libwanted.so"], env=variables | {"LD_DEBUG": "files"}, capture_output=True, text=True, check=True)
    run = world.trace(command=[program, "libwanted.so"], out=str(tmp_path / "out.trace"), **variables)
    assert run.start["hwcaps"] == []
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--loads", tmp_path / "loads"], check=True, capture_output=True)
    (loaded,) = [line.split("\t")[0] for line in (tmp_path / "loads").read_text().splitlines() if "libwanted" in line]
    assert loaded == str(tmp_path / "libwanted.so") and f"calling init: {loaded}\n" in log.stderr


def test_what_is_named_from_another_directory_is_not_gone(world, tmp_path: Path) -> None:
    compile_c(tmp_path, "libwanted.so", "int wanted;", "-shared", "-fPIC")
    code = f"import ctypes, os; os.chdir({str(tmp_path)!r}); ctypes.CDLL('./libwanted.so'); ctypes.CDLL('/usr/$LIB/libz.so.1')"
    run = world.trace(command=["/usr/bin/python3", "-c", code], out=str(tmp_path / "out.trace"), cwd="/")
    assert run.status == 0 and "gone" not in str(run.end)


def test_auditors_are_not_simulated(world, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "opener", OPENER)
    loader = loader_of(program)
    _, _, said = refusals(world, tmp_path, [loader, "--audit", "", program])
    assert "--audit is not simulated" in said


def test_the_loader_and_the_vdso_by_name(world, tmp_path: Path) -> None:
    """ld.so does not know which file it is itself: by another path it is mapped again."""
    program = compile_c(tmp_path, "opener", OPENER)
    loader = loader_of(program)
    command = [program, "linux-vdso.so.1", loader, str(Path(loader).resolve()), str(Path(loader).resolve())]
    log = subprocess.run(command, env={"LD_DEBUG": "files"}, capture_output=True, text=True, check=True).stderr
    run = world.trace(command=command, out=str(tmp_path / "out.trace"))
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--loads", tmp_path / "loads"], check=True)
    assert run.stdout.split() == command[1:]
    assert len((tmp_path / "loads").read_text().splitlines()) == log.count("generating link map") == 2
    done = subprocess.run([world.cohabit, "replay", tmp_path / "out.trace"], capture_output=True, text=True, check=True)
    assert "4 calls, 0 of them failed" in done.stdout and not done.stderr


@pytest.mark.parametrize("name", ["libm.so.6", "/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "resolved"])
@pytest.mark.parametrize("how", ["dlopen(name, RTLD_NOW | 0x10)", "dlmopen(LM_ID_NEWLM, name, RTLD_NOW)"])
def test_odd_opens(how: str, name: str, world, tmp_path: Path) -> None:
    """Unknown bits of the mode; ld.so in another namespace, where it is known by its names and not by its file."""
    name = str(Path("/lib64/ld-linux-x86-64.so.2").resolve()) if name == "resolved" else name
    program = compile_c(tmp_path, "odd", OPENER.replace("#include <dlfcn.h>", "#define _GNU_SOURCE\n#include <dlfcn.h>").replace(
        "dlopen(words[i], RTLD_NOW)", how.replace("name", "words[i]")))
    log = subprocess.run([program, name], env={"LD_DEBUG": "files"}, capture_output=True, text=True, check=True)
    really = mapped(log.stderr)
    run = world.trace(command=[program, name], out=str(tmp_path / "out.trace"))
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--loads", tmp_path / "loads", "--results", tmp_path / "results"], check=True)
    assert [line.split("\t")[1] for line in (tmp_path / "loads").read_text().splitlines()] == really
    assert (tmp_path / "results").read_text().startswith("failed" if run.stdout == "-\n" else "ok")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bytes of x86-64 relocations are changed")
@pytest.mark.parametrize("mode", ["RTLD_NOW", "RTLD_LAZY"])
def test_unknown_relocation_types(mode: str, world, tmp_path: Path) -> None:
    """Refused in ld.so's own words."""
    program = compile_c(tmp_path, "opener", OPENER.replace("RTLD_NOW", mode).replace('"-"', "dlerror()"))
    library = Path(compile_c(tmp_path, "libwanted.so", "int puts(const char*); int f(void) { return puts(\"\"); }", "-shared", "-fPIC",
                             "-Wl,-z,lazy"))
    image, table = library.read_bytes(), subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
    names = []
    for kind, number, other in (("R_X86_64_GLOB_DAT", 6, 200), ("R_X86_64_JUMP_SLO", 7, 0x1234), ("R_X86_64_JUMP_SLO", 7, 6)):
        row = next(line.split() for line in table.splitlines() if kind in line)
        place, info = int(row[0], 16), int(row[1], 16)
        at = image.index(struct.pack("<QQ", place, info))
        assert info & 0xffffffff == number
        names.append(tmp_path / f"lib{other}.so")
        names[-1].write_bytes(image[:at + 8] + struct.pack("<Q", info - number + other) + image[at + 16:])
    run = world.trace(command=[program, *map(str, names)], out=str(tmp_path / "out.trace"))
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--results", tmp_path / "results"], check=True)
    results = [line.split("\t") for line in (tmp_path / "results").read_text().splitlines()]
    said = [line[1] if line[0] == "failed" else str(name) for line, name in zip(results, names)]
    assert said == run.stdout.splitlines()
    assert said[0].endswith("unexpected reloc type 0xc8") and "0x00001234" in said[1]


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


@pytest.mark.parametrize("kind", ["-f", "-F"])
def test_filtees_of_each_other(kind: str, world, tmp_path: Path) -> None:
    """ld.so puts each before the other until it has no stack left."""
    for own, other in (("a", "b"), ("b", "a")):
        compile_c(tmp_path, f"lib{own}.so", f"int f{own}(void) {{ return 1; }}", "-shared", "-fPIC",
                  f"-Wl,{kind},lib{other}.so", "-Wl,-rpath,$ORIGIN")
    program = compile_c(tmp_path, "p", OPENER)
    command = [program, str(tmp_path / "liba.so")]
    assert world.run(command).returncode == -signal.SIGSEGV
    trace = str(tmp_path / "t")
    world.trace(command=command, out=trace)
    replayed = world.run([world.cohabit, "replay", trace])
    assert replayed.returncode == 0 and "ld.so itself ends the process" in replayed.stderr and "name each other" in replayed.stderr
