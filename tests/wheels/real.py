"""Running a statement in a real environment, the same way every time, and the recorded truth of it."""
from __future__ import annotations

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

import environments
import ldso_record
import standstill

TIMEOUT = 1800  # seconds, for one import of everything under LD_DEBUG on a busy machine
TABLES = ("loads.tsv", "bindings.tsv")


def run_environment() -> dict[str, str]:
    """Only what a run needs, so that it does not depend on who started the tests."""
    home = environments.cache_root() / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),  # matplotlib and friends keep caches there
        "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONHASHSEED": "0",  # imports in the order of a set (codec aliases) must not vary
    }


def run_directory() -> Path:
    """An empty current directory: files in it could shadow modules."""
    path = environments.cache_root() / "empty"
    path.mkdir(parents=True, exist_ok=True)
    return path


def statement_command(home: Path, code: str) -> list[str]:
    return [str(home / "bin" / "python"), "-c", code]


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess:
    kept = {"COHABIT_NO_CACHE": "1"}  # what is tested and measured is worked out, unless they say otherwise
    with subprocess.Popen(command, env=run_environment() | kept | variables, cwd=run_directory(), text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            with standstill.Watch(process.pid):
                out, err = process.communicate(timeout=TIMEOUT)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def machine_identity() -> str:
    """What of the machine decides what ld.so finds: glibc and the system's libraries."""
    cache = Path("/etc/ld.so.cache")
    digest = hashlib.sha256(cache.read_bytes() if cache.exists() else b"").hexdigest()
    return f"{platform.libc_ver()} {digest} {Path('/lib').resolve()}"


def forget_old_truths() -> None:
    """Keeps the cache from growing: a truth not used for 30 days belongs to pins that are gone."""
    root = environments.cache_root() / "truths"
    if not root.exists():
        return
    for kept in root.iterdir():
        newest = max((os.stat(f).st_mtime for f in kept.iterdir()), default=0)
        if newest < time.time() - 30 * 86400:
            shutil.rmtree(kept, ignore_errors=True)


def is_outdated(kept: Path, home: Path) -> bool:
    """Whether a library of the machine was replaced after the recording (an update of libssl, say)."""
    recorded = (kept / "output.txt").stat().st_mtime
    with gzip.open(kept / "loads.tsv.gz", "rt", errors="surrogateescape") as table:
        files = {Path(line.split("\t")[0]) for line in table if line.startswith("/")}
    return any(not file.exists() or file.stat().st_ctime > recorded
               for file in files if home not in file.parents)


def truth(home: Path, code: str, now: bool, scratch: Path, anew: bool = False) -> tuple[Path, int]:
    """A directory with ld.so's tables for this statement, and its exit status. Recorded once, unless `anew`."""
    installation = (home / "cohabit-complete").read_text()
    recorder = Path(ldso_record.__file__).read_text()
    identity = "\0".join([str(home), installation, code, str(now), recorder, machine_identity(),
                          repr(sorted(run_environment().items()))])
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    kept = environments.cache_root() / "truths" / f"{home.name}-{key}"
    with environments.locked(f"truth-{key}"):
        if anew or not (kept / "status").exists() or is_outdated(kept, home):
            shutil.rmtree(kept, ignore_errors=True)
            fresh = scratch / "fresh"
            # Once without the log: byte code gets compiled, caches get filled.
            run(statement_command(home, code))
            with standstill.Watch(os.getpid(), with_root=False):
                ldso_record.record(statement_command(home, code), fresh, now=now, env=run_environment(),
                                   cwd=run_directory(), timeout=TIMEOUT)
            kept.mkdir(parents=True)
            for table in TABLES:
                with open(fresh / table, "rb") as plain, \
                        gzip.open(kept / f"{table}.gz", "wb", compresslevel=1) as packed:
                    shutil.copyfileobj(plain, packed, 1 << 20)
            shutil.copy(fresh / "output.txt", kept)
            shutil.copy(fresh / "status", kept)  # last: marks the recording as complete
            shutil.rmtree(fresh)
            forget_old_truths()
        os.utime(kept / "status")
    unpacked = scratch / "truth"
    unpacked.mkdir(parents=True)
    for table in TABLES:
        with gzip.open(kept / f"{table}.gz", "rb") as packed, open(unpacked / table, "wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    return unpacked, int((kept / "status").read_text())
