"""Plans that are kept between runs of doctor: the same words with them and without, and never an old plan.

Whether a kept plan was used is seen by forging it: the text of an exception stands in the plan alone. A run that takes
the plan says the forged text; one that works it out anew says what the source says.
"""
from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPO / "tests" / "cases"))

import casefile  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
TRUE, FORGED = b"marker-alpha", b"marker-omega"
FORMAT = b"cohabit plans 4\n"
DIGEST = 16  # letters
OLD_ENOUGH = 2.3  # seconds: what has changed less than two seconds ago is not kept
WORLD = f"""program env/bin/python3
  defs PyInit_posix
lib away/libx.so
file env/lib/python3.11/os.py
lib {SITE}/native.abi3.so
  needed libx.so
  set {{"runpath": "$ORIGIN/../../../../away"}}
dist {SITE} first 1.0
file {SITE}/first/__init__.py from . import part
file {SITE}/first/part.py import first.last
file {SITE}/first/last.py import second
file {SITE}/real/__init__.py x = 1
link {SITE}/second real
"""
LAST = """import second
try:
    import third
except ImportError:
    pass
import os, posix
for name in posix.listdir({directory!r}):
    if name.startswith('plugin'):
        import plugged
try:
    import native
except ImportError:
    import fallback
if os.environ.get('MODE') == 'other':
    import other
raise ImportError('marker-alpha')
"""


def digest(body: bytes) -> bytes:
    """XXH3 of 64 bits, by the library itself."""
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return b"%016x" % function(body, len(body))


class Doctor:
    def __init__(self, cohabit: str, root: Path):
        self.cohabit, self.root, self.world = cohabit, root, root / "world"
        casefile.build_world(WORLD, self.world)
        self.site = self.world / SITE
        (self.site / "first" / "last.py").write_text(LAST.format(directory=str(self.site / "first")))
        self.cache = root / "cache"
        self.place = root / "empty"  # nothing to import there
        self.place.mkdir()

    def run(self, *words: str, limit: int | None = None, **variables: str) -> tuple[int, str, str, str]:
        import resource

        def restrict() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        plan = self.root / "plan.json"
        plan.unlink(missing_ok=True)
        done = subprocess.run(
            [self.cohabit, "doctor", str(self.world / "env"), "--imports", "first", "--plan", str(plan), *words],
            capture_output=True, text=True, timeout=60, cwd=self.place, preexec_fn=restrict if limit else None,
            env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(self.cache), **variables})
        return done.returncode, done.stdout, done.stderr, plan.read_text() if plan.exists() else ""

    def files(self) -> list[Path]:
        return [path for path in (self.cache / "cohabit" / "plans").glob("*") if path.is_file()]

    def kept(self) -> Path:
        """The one file, written by a run whose files are old enough, by a clock that may be set meanwhile."""
        for _ in range(3):
            time.sleep(OLD_ENOUGH)
            self.run()
            if self.files():
                break
        (file,) = self.files()
        return file

    def forge(self) -> None:
        """From here on a kept plan says something else."""
        file = self.kept()
        head, body = file.read_bytes()[: len(FORMAT)], file.read_bytes()[len(FORMAT) + DIGEST:]
        assert head == FORMAT and TRUE in body
        body = body.replace(TRUE, FORGED)
        file.write_bytes(head + digest(body) + body)
        assert FORGED.decode() in self.run()[3] + self.run()[1], "a kept plan is not used"

    def says_the_truth(self) -> None:
        now, anew = self.run(), self.run("--no-cache")
        assert now == anew
        assert FORGED.decode() not in "".join(map(str, now))


@pytest.fixture
def doctor(cohabit: str, tmp_path: Path) -> Doctor:
    return Doctor(cohabit, tmp_path)


def test_the_same_with_and_without(doctor: Doctor) -> None:
    anew = doctor.run("--no-cache")
    assert doctor.run(COHABIT_NO_CACHE="1") == anew and not doctor.files()
    file = doctor.kept()
    written = file.stat()
    assert doctor.run() == anew and doctor.run() == anew
    assert file.stat().st_mtime_ns == written.st_mtime_ns and file.stat().st_ino == written.st_ino
    assert file.stat().st_mode & 0o777 == 0o600
    doctor.forge()
    assert doctor.run("--no-cache") == anew
    assert doctor.run(COHABIT_NO_CACHE="1") == anew
    assert "marker-alpha" in anew[3] + anew[1]


def test_what_has_changed_just_now_is_not_kept(doctor: Doctor) -> None:
    (doctor.site / "first" / "part.py").write_text("import first.last  # now\n")
    doctor.run()
    assert not doctor.files()


def edit(path: Path, old: str, new: str) -> None:
    """In place, with the size and the time that it had."""
    status, text = path.stat(), path.read_text()
    assert len(old) == len(new) and old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_package(d: Doctor) -> None:
    shutil.copytree(d.site / "first", d.site / "first.new")
    edit(d.site / "first.new" / "last.py", "import second", "import secret")
    (d.site / "first").rename(d.site / "first.old")
    (d.site / "first.new").rename(d.site / "first")


def point_elsewhere(d: Doctor) -> None:
    (d.site / "elsewhere").mkdir()
    (d.site / "elsewhere" / "__init__.py").write_text("import gone_too\n")
    (d.site / "second").unlink()
    (d.site / "second").symlink_to(d.site / "elsewhere")


CHANGES = {
    "an edit": lambda d: edit(d.site / "first" / "last.py", "import third", "import thing"),
    "a file written anew, the same": lambda d: (d.site / "first" / "part.py").write_text("import first.last\n"),
    "a module that was not there": lambda d: (d.site / "third.py").write_text("import news\n"),
    "a module that shadows": lambda d: (d.world / "env/lib/python3.11/second.py").write_text("import shadow\n"),
    "a package in the place of a module": lambda d: (d.site / "first" / "part").mkdir() or
    (d.site / "first" / "part" / "__init__.py").write_text("import inner\n"),
    "a name in a directory": lambda d: (d.site / "first" / "plugin.txt").write_text(""),
    "a package replaced": replace_package,
    "a link that leads elsewhere": point_elsewhere,
    "a file less": lambda d: (d.site / "real" / "__init__.py").unlink(),
    "a .pth file": lambda d: (d.site / "a.pth").write_text(f"{d.world}/away\n"),
    "another version of a distribution": lambda d: (d.site / "first-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: first\nVersion: 2.0\n"),
    "a library less": lambda d: (d.world / "away" / "libx.so").unlink(),
    "another library that cannot be opened": lambda d: (d.world / "away" / "libx.so").write_bytes(b"no library"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(doctor: Doctor, change: str) -> None:
    doctor.forge()
    CHANGES[change](doctor)
    doctor.says_the_truth()
    time.sleep(OLD_ENOUGH)
    doctor.run()  # the plan of now is kept
    doctor.says_the_truth()


def test_a_file_that_was_taken_for_a_directory(doctor: Doctor) -> None:
    """What looks for packages in a directory asks for the names in each file of it."""
    (doctor.world / "env/lib/python3.11/pkgutil.py").write_text("")
    (doctor.site / "first" / "LICENSE").write_text("none\n")
    (doctor.site / "first" / "part.py").write_text(
        f"import pkgutil\nfor one in pkgutil.iter_modules([{str(doctor.site / 'first')!r}]):\n"
        "    __import__('first.' + one.name)\n")
    doctor.forge()
    (doctor.site / "first" / "LICENSE").unlink()
    (doctor.site / "first" / "LICENSE").mkdir()
    (doctor.site / "first" / "LICENSE" / "__init__.py").write_text("import inner\n")
    doctor.says_the_truth()
    assert "inner" in doctor.run()[3]


def test_other_variables_are_another_plan(doctor: Doctor) -> None:
    doctor.forge()
    other = doctor.run(MODE="other")
    assert other == doctor.run("--no-cache", MODE="other") and other != doctor.run("--no-cache")


def test_the_shells_own_variables_are_no_other_plan(doctor: Doctor) -> None:
    """They differ at each command. A program that asks for one is planned each time."""
    doctor.forge()
    assert FORGED.decode() in "".join(map(str, doctor.run(_="/usr/bin/time", SHLVL="3", OLDPWD="/")))
    last = doctor.site / "first" / "last.py"
    last.write_text(last.read_text().replace("'MODE'", "'SHLVL'").replace("'other'", "'3'"))
    time.sleep(OLD_ENOUGH)
    doctor.run()
    other = doctor.run(SHLVL="3")
    assert other == doctor.run("--no-cache", SHLVL="3") and other != doctor.run("--no-cache")


def test_damage_is_ignored_and_mended(doctor: Doctor) -> None:
    file = doctor.kept()
    anew, good = doctor.run("--no-cache"), file.read_bytes()
    damages = [good[:n] for n in (0, 5, len(FORMAT), len(FORMAT) + DIGEST, len(good) // 2, len(good) - 1)]
    for at in range(0, len(good), max(1, len(good) // 40)):
        damages.append(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:])
    damages += [b"cohabit plans 0\n" + good[len(FORMAT):], good + b"\0"]
    # Whole by its digest, and not by what is in it.
    for body in (b"", b"\xff" * 200, good[len(FORMAT) + DIGEST:-3], good[len(FORMAT) + DIGEST:] + b"\1"):
        damages.append(FORMAT + digest(body) + body)
    for damage in damages:
        file.write_bytes(damage)
        assert doctor.run() == anew
        assert file.read_bytes() == good


def test_what_is_not_ours_alone_is_not_read(doctor: Doctor) -> None:
    doctor.forge()
    (file,) = doctor.files()
    forged = file.read_bytes()
    file.chmod(0o660)
    doctor.says_the_truth()
    file.write_bytes(forged)
    elsewhere = doctor.root / "elsewhere"
    file.rename(elsewhere)
    elsewhere.chmod(0o600)
    file.symlink_to(elsewhere)
    doctor.says_the_truth()
    file.unlink()
    os.mkfifo(file)
    doctor.says_the_truth()
    file.unlink()
    file.mkdir()
    doctor.says_the_truth()
    if os.geteuid() == 0:
        file.rmdir()
        file.write_bytes(forged)
        file.chmod(0o600)
        os.chown(file, 12345, -1)
        doctor.says_the_truth()


def test_a_place_that_cannot_be_written_does_no_harm(doctor: Doctor) -> None:
    time.sleep(OLD_ENOUGH)
    anew = doctor.run("--no-cache")
    doctor.cache.write_text("a file, not a directory")
    assert doctor.run() == anew
    doctor.cache.unlink()
    assert doctor.run(XDG_CACHE_HOME="", HOME="") == anew
    assert doctor.run(XDG_CACHE_HOME="relative", HOME="/proc/nowhere") == anew
    file = doctor.kept()
    size = file.stat().st_size
    file.unlink()
    # As on a full disk: a part can be written.
    subprocess.run(["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh", doctor.cohabit, "doctor", str(doctor.world / "env"),
                    "--imports", "first"], preexec_fn=lambda: __import__("resource").setrlimit(
                        __import__("resource").RLIMIT_FSIZE, (size // 2, size // 2)),
                   env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(doctor.cache)}, capture_output=True, timeout=60)
    assert not doctor.files()


def test_the_cache_does_not_grow_without_end(doctor: Doctor) -> None:
    file = doctor.kept()
    for number in range(5):
        other = file.with_name(f"{number:064}")
        with open(other, "wb") as large:
            large.truncate(30 << 20)
        os.utime(other, (number, number))
    file.unlink()
    doctor.run()
    left = {path.name for path in doctor.files()}
    assert file.name in left and f"{0:064}" not in left and f"{4:064}" in left
    assert sum(path.stat().st_size for path in doctor.files()) <= 128 << 20
