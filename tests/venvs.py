"""Virtual environments with pip, as `python -m venv` makes them, in a tenth of its time."""
from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def record_line(path: str, content: bytes) -> str:
    """The row of a RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


@functools.cache
def template() -> Path:
    """Made by `python -m venv` itself, once per process: it unpacks and compiles pip each time."""
    directory = Path(tempfile.mkdtemp(prefix="cohabit-venv-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", directory / "env"], check=True)
    return directory / "env"


def site_of(root: Path) -> Path:
    return next(root.glob("lib/python3*/site-packages"))


def make_venv(root: Path, pip: bool = True) -> None:
    """`python -m venv` with pip, setuptools and their scripts, if it brings them. Files are copies: no link leads from one
    environment into another. Only the names of files in compiled code are the template's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    if not pip:
        return
    source, site = template(), site_of(root)
    subprocess.run(["cp", "-a", f"{site_of(source)}/.", site], check=True)
    lines = {}  # of RECORD, by path
    for script in (source / "bin").iterdir():
        place = root / "bin" / script.name
        if place.exists() or script.is_symlink():
            continue
        content = script.read_bytes().replace(bytes(source), bytes(root))
        place.write_bytes(content)
        place.chmod(script.stat().st_mode)
        path = f"../../../bin/{script.name}"
        lines[path] = record_line(path, content)
    for record in site.glob("pip-*.dist-info/RECORD"):
        rows = record.read_bytes().decode().split("\r\n")  # as pip writes it
        assert lines.keys() <= {row.split(",")[0] for row in rows}
        record.write_bytes("\r\n".join(lines.get(row.split(",")[0], row) for row in rows).encode())
