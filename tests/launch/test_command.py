"""The command itself, as it is linked."""
import re
import subprocess
import sys

import pytest


def test_it_needs_only_the_c_library(cohabit):
    """It is run inside broken environments: any libstdc++ may be found there (ARCHITECTURE.md)."""
    dynamic = subprocess.run(["readelf", "-dW", cohabit], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert needed and needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
                                 "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_a_damaged_libstdcxx_does_not_matter(cohabit, tmp_path):
    (tmp_path / "libstdc++.so.6").write_text("no library")
    done = subprocess.run([cohabit, "--version"], env={"LD_LIBRARY_PATH": str(tmp_path)}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_wrong_arguments_get_the_nearest_option(cohabit):
    for words, meant in ((["doctor", "--import", "a"], "--imports"), (["--versio"], "--version"),
                         (["replay", "x", "--bindingz=y"], "--bindings")):
        done = subprocess.run([cohabit, *words], capture_output=True, text=True)
        assert done.returncode == 2 and f"did you mean {meant}?" in done.stderr, done.stderr


def test_a_report_that_cannot_be_written_is_said_once(cohabit):
    for words in (["fix", sys.executable, "--imports", "json"], ["doctor", sys.executable, "--imports", "json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([cohabit, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert done.stderr.count("No space left on device") == done.stderr.count("cannot write") == 1, done.stderr


@pytest.mark.parametrize("words,option", [
    ("doctor ENV", "--imports"), ("fix ENV", "--imports"), ("fix ENV", "--with"), ("verify ENV", "--imports"), ("verify ENV", "--with"),
    ("kernel install --dry-run --env ENV", "--imports"), ("run", "--imports")])
def test_an_empty_list_of_imports_is_refused(cohabit, tmp_path, words, option):
    """`--imports "$MODULES"` of a variable that is not set is no wish for all of them."""
    for value in ("", " , "):
        command = [cohabit, *words.replace("ENV", str(tmp_path)).split(), option, value]
        done = subprocess.run([*command, *(["--", "true"] if words == "run" else [])], capture_output=True, text=True)
        expected = 125 if words == "run" else 2  # of run any other code may be the command's
        assert done.returncode == expected and f"{option}: it names no module" in done.stderr, (done.returncode, done.stderr)


def test_a_root_that_is_not_there(cohabit, tmp_path):
    trace = tmp_path / "true.trace"
    subprocess.run([cohabit, "trace", "--out", trace, "--", "/bin/true"], check=True)
    done = subprocess.run([cohabit, "replay", trace, "--root", tmp_path / "gone"], capture_output=True, text=True)
    assert done.returncode == 2 and "expected a directory to read files below" in done.stderr, done.stderr
