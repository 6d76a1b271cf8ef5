"""What doctor keeps of files between runs: the index of names with what references were bound to, and words of files.

The same words with them and without, whatever has changed. A file that was refused is written anew, one that was taken
stays as it is: that is how these tests see which it was. That what is taken is used, and is not looked up again, is
seen in tests/unit/test_kept.cc.
"""
from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPO / "tests" / "cases"))

import casefile  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
OLD_ENOUGH = 2.3  # seconds: what has changed less than two seconds ago is not kept
FUNCTIONS = 21000  # as many references are bound: of a smaller process nothing is kept
PLAIN = f"{'nothing is said of it here':<100.100}"
FOR_TWO = f"{'module was compiled against NumPy C-API version 0x%x (NumPy 2.0) but the running NumPy has':<100.100}"
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
lib {SITE}/old/core.so
  refs PyCapsule_GetPointer
  set {{"runpath": "{PLAIN}"}}
dist {SITE} numpy 1.26.4
  file numpy/__init__.py x
dist {SITE} old 1.0
  requires numpy>=1.20
  file old/__init__.py x
  lists old/core.so
"""


def link(out: Path, text: str, *words: str) -> None:
    source = out.with_suffix(".s")
    source.write_text(text + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc-12", "-shared", "-nostdlib", "-o", str(out), str(source), *words], check=True)
    source.unlink()


def provider(out: Path, leaving_out: int = -1) -> None:
    link(out, ".text\n" + "".join(f".globl f{i}\nf{i}: ret\n" for i in range(FUNCTIONS) if i != leaving_out),
         "-Wl,-soname,libmany.so")


def user(out: Path, beside: Path, needs: str = "libmany.so") -> None:
    """An extension that refers to all of these functions, with a string among its constants."""
    link(out, ".text\n.globl PyInit_native\nPyInit_native: ret\n.data\n"
         + "".join(f".quad f{i}\n" for i in range(FUNCTIONS)),
         "-L", str(beside), f"-l:{needs}", "-Wl,-rpath,$ORIGIN/../first:$ORIGIN/../second", "-Wl,--enable-new-dtags")


class Doctor:
    def __init__(self, cohabit: str, root: Path):
        self.cohabit, self.root, self.world = cohabit, root, root / "world"
        casefile.build_world(WORLD, self.world)
        self.site = self.world / SITE
        for name in ("first", "second", "package"):
            (self.site / name).mkdir()
        (self.site / "package" / "__init__.py").write_text("from . import native\n")
        self.second = self.site / "second" / "libmany.so"
        provider(self.second)
        self.native = self.site / "package" / "native.so"
        user(self.native, self.second.parent)
        self.core = self.site / "old" / "core.so"
        self.cache = root / "cache"

    def run(self, *words: str, imports: str = "package", **variables: str) -> tuple[str, ...]:
        """Exit code, what was said, what was loaded and bound."""
        outputs = [self.root / f"{name}-{os.getpid()}-{time.monotonic_ns()}" for name in ("loads", "bindings")]
        done = subprocess.run(
            [self.cohabit, "doctor", str(self.world / "env"), "--imports", imports, "--loads", str(outputs[0]),
             "--bindings", str(outputs[1]), *words], capture_output=True, text=True, timeout=120, cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(self.cache), **variables})
        assert done.returncode in (0, 1), done.stderr
        texts = [path.read_text() for path in outputs]
        for path in outputs:
            path.unlink()
        return (str(done.returncode), done.stdout, done.stderr, *texts)

    def files(self, what: str) -> list[Path]:
        return [path for path in (self.cache / "cohabit" / what).glob("*") if path.is_file()]

    def kept(self, what: str = "index") -> Path:
        for _ in range(3):  # by a clock that may be set meanwhile
            time.sleep(OLD_ENOUGH)
            self.run()
            if self.files(what):
                break
        (file,) = self.files(what)
        return file

    def says_the_truth(self) -> None:
        assert self.run() == self.run("--no-cache")


@pytest.fixture
def doctor(cohabit: str, tmp_path: Path) -> Doctor:
    return Doctor(cohabit, tmp_path)


def state(file: Path) -> tuple[int, int]:
    return file.stat().st_ino, file.stat().st_mtime_ns


def test_the_same_with_and_without(doctor: Doctor) -> None:
    anew = doctor.run("--no-cache")
    assert sum(line.count("libmany.so") for line in anew[4].splitlines()) >= FUNCTIONS
    assert doctor.run(COHABIT_NO_CACHE="1") == anew and not doctor.files("index") and not doctor.files("words")
    assert doctor.run() == anew and not doctor.files("index")  # its files are too new
    file = doctor.kept()
    written = state(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert doctor.run() == anew and doctor.run() == anew and state(file) == written
    assert len(doctor.files("words")) == 1


def rebuild(d: Doctor) -> None:
    provider(d.second, leaving_out=77)


def put_elsewhere(d: Doctor) -> None:
    other = d.second.with_name("other")
    provider(other, leaving_out=78)
    other.rename(d.second)


def edit_in_place(d: Doctor) -> None:
    """One name is another, in as many bytes, at the time that it had."""
    status, data = d.second.stat(), d.second.read_bytes()
    assert data.count(b"\0f20999\0") >= 1
    d.second.write_bytes(data.replace(b"\0f20999\0", b"\0g20999\0"))
    os.utime(d.second, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_elsewhere(d: Doctor) -> None:
    provider(d.site / "elsewhere.so", leaving_out=79)
    d.second.unlink()
    d.second.symlink_to(d.site / "elsewhere.so")


CHANGES = {
    "a library built anew": rebuild,
    "another in its place": put_elsewhere,
    "a byte of it": edit_in_place,
    "a link to another": link_elsewhere,
    "one that stands before it": lambda d: provider(d.site / "first" / "libmany.so", leaving_out=80),
    "a library less": lambda d: d.second.unlink(),
    "one cut short": lambda d: os.truncate(d.second, d.second.stat().st_size // 2),
    "the same, written anew": lambda d: provider(d.second),
    "another extension": lambda d: user(d.native, d.second.parent, "libmany.so"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(doctor: Doctor, change: str) -> None:
    before, file = doctor.run("--no-cache"), doctor.kept()
    CHANGES[change](doctor)
    doctor.says_the_truth()
    assert change in ("the same, written anew", "another extension") or doctor.run() != before
    time.sleep(OLD_ENOUGH)
    doctor.run()  # what is now is kept
    doctor.says_the_truth()
    assert file.exists()


def test_a_change_of_what_words_are_kept_of(doctor: Doctor) -> None:
    before = doctor.run("--no-cache")
    doctor.kept("words")
    assert doctor.run() == before and "PY005" not in before[1]
    status, data = doctor.core.stat(), doctor.core.read_bytes()
    assert PLAIN.encode() in data
    doctor.core.write_bytes(data.replace(PLAIN.encode(), FOR_TWO.encode()))
    os.utime(doctor.core, ns=(status.st_atime_ns, status.st_mtime_ns))
    doctor.says_the_truth()
    assert "PY005" in doctor.run()[1]


@pytest.mark.parametrize("what", ["index", "words"])
def test_damage_is_ignored_and_mended(doctor: Doctor, what: str) -> None:
    file = doctor.kept(what)
    anew, good = doctor.run("--no-cache"), file.read_bytes()
    damages = [good[:size] for size in (0, 5, 64, len(good) // 2, len(good) - 1)]
    for at in range(0, len(good), max(1, len(good) // 12)):
        damages.append(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:])
    for damage in damages:
        file.write_bytes(damage)
        written = state(file)
        assert doctor.run() == anew
        assert state(file) != written
        # Words of what a kept plan makes needless are not worked out again.
        assert what == "words" or len(file.read_bytes()) == len(good)


def test_an_index_that_was_checked_once_is_believed_while_it_is_the_same(doctor: Doctor) -> None:
    file = doctor.kept()
    anew, good = doctor.run("--no-cache"), file.read_bytes()
    time.sleep(OLD_ENOUGH)
    assert doctor.run() == anew
    (known,) = doctor.files("known")
    assert known.stat().st_mode & 0o777 == 0o600
    written = state(known)
    assert doctor.run() == anew and state(known) == written  # it was not checked again
    # Of the same size, with the old time, in the same file.
    for at in (len(good) // 4, len(good) // 2, len(good) * 3 // 4):
        status, good = file.stat(), file.read_bytes()
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        time.sleep(OLD_ENOUGH)
        assert doctor.run() == anew and file.read_bytes()[at] == good[at]  # mended
        time.sleep(OLD_ENOUGH)
        assert doctor.run() == anew
        assert state(doctor.files("known")[0]) != written
        written = state(doctor.files("known")[0])


def test_an_index_that_does_not_fit_leaves_nothing_behind(doctor: Doctor) -> None:
    """Its files are known by then and what they define is not: what is bound now may be bound otherwise with them."""
    captor = doctor.site / "captor"
    captor.mkdir()
    (captor / "__init__.py").write_text("import sys\nsys.setdlopenflags(0x102)\nfrom . import taker\n")
    link(captor / "taker.so", ".text\n.globl PyInit_taker, f5\nPyInit_taker: ret\nf5: ret\n")
    time.sleep(OLD_ENOUGH)
    both = doctor.run("--no-cache", imports="captor,package")
    assert [line for line in both[4].splitlines() if "taker.so" in line and "f5" in line]
    assert doctor.run(imports="captor,package") == both
    (file,) = doctor.files("index")
    written = state(file)
    os.link(doctor.native, doctor.site / "link")  # its time of change is another one
    (doctor.site / "link").unlink()
    time.sleep(OLD_ENOUGH)
    doctor.says_the_truth()
    assert state(file) != written
    assert doctor.run(imports="captor,package") == both


def test_what_is_not_ours_alone_is_not_read(doctor: Doctor) -> None:
    file = doctor.kept()
    anew, good = doctor.run("--no-cache"), file.read_bytes()
    file.chmod(0o660)
    assert doctor.run() == anew and file.stat().st_mode & 0o777 == 0o600  # another one
    elsewhere = doctor.root / "elsewhere"
    elsewhere.write_bytes(good)
    elsewhere.chmod(0o600)
    file.unlink()
    file.symlink_to(elsewhere)
    assert doctor.run() == anew and not file.is_symlink()
    file.unlink()
    os.mkfifo(file)
    assert doctor.run() == anew
    file.unlink()
    file.mkdir()
    assert doctor.run() == anew
    file.rmdir()
    if os.geteuid() == 0:
        file.write_bytes(good)
        file.chmod(0o600)
        os.chown(file, 12345, -1)
        assert doctor.run() == anew and file.stat().st_uid == os.geteuid()


def test_a_full_disk_leaves_nothing(doctor: Doctor) -> None:
    file = doctor.kept()
    anew, size = doctor.run("--no-cache"), file.stat().st_size
    shutil.rmtree(doctor.cache)
    words = [doctor.cohabit, "doctor", str(doctor.world / "env"), "--imports", "package"]
    subprocess.run(["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh", *words], capture_output=True, timeout=120,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2)),
                   env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(doctor.cache)})
    assert not doctor.files("index")
    assert doctor.run() == anew and len(doctor.files("index")) == 1


def test_several_at_once(doctor: Doctor) -> None:
    time.sleep(OLD_ENOUGH)
    anew = doctor.run("--no-cache")
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            assert all(one == anew for one in pool.map(lambda _: doctor.run(), range(4)))
        assert len(doctor.files("index")) == 1
        doctor.files("index")[0].unlink()


def test_the_cache_does_not_grow_without_end(doctor: Doctor) -> None:
    file = doctor.kept()
    for number in range(5):
        other = file.with_name(f"{number:064}")
        with open(other, "wb") as large:
            large.truncate(200 << 20)
        os.utime(other, (number, number))
    file.unlink()
    doctor.run()
    left = {path.name for path in doctor.files("index")}
    assert file.name in left and f"{0:064}" not in left and f"{4:064}" in left
    assert sum(path.stat().st_size for path in doctor.files("index")) <= 768 << 20
