"""Environments to snapshot, an installer of two lines, and a walk that knows nothing of Cohabit's code."""
from __future__ import annotations

import base64
import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

STORE = b".cohabit"


def walk(root: Path, times: bool = True) -> dict[bytes, tuple]:
    """Everything below root but the store, by name: kind, permissions, and bytes by sha256."""
    found: dict[bytes, tuple] = {}
    top = os.fsencode(root)
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for entry in os.scandir(directory):
            name = entry.path[len(top) + 1:]
            if name == STORE:
                continue
            status = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                found[name] = ("link", os.readlink(entry.path))
            elif stat.S_ISDIR(status.st_mode):
                found[name] = ("directory", mode)
                waiting.append(entry.path)
            elif stat.S_ISREG(status.st_mode):
                digest = hashlib.sha256(Path(os.fsdecode(entry.path)).read_bytes()).hexdigest()
                found[name] = ("file", mode, digest, status.st_mtime_ns if times else 0)
            else:
                found[name] = ("other",)
    return found


def differences(a: dict, b: dict) -> dict:
    return {name: (a.get(name), b.get(name)) for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


def record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


class Environment:
    """A venv without pip, and packages that are put into it as an installer would."""

    def __init__(self, root: Path, python: str = sys.executable):
        self.root = root
        subprocess.run([python, "-m", "venv", "--without-pip", root], check=True)
        self.site = next(root.glob("lib/python3*/site-packages"))

    def install(self, name: str, version: str, files: dict[str, bytes], requires: tuple[str, ...] = ()) -> None:
        self.uninstall(name)
        info = f"{name}-{version}.dist-info"
        lines = []
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {text}\n" for text in requires)
        for path, content in {**files, f"{info}/METADATA": metadata.encode()}.items():
            place = self.site / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)  # as pip does; uv renames
            place.write_bytes(content)
            lines.append(record_line(path, content))
        (self.site / info / "RECORD").write_text("\n".join([*lines, f"{info}/RECORD,,", ""]))

    def uninstall(self, name: str) -> None:
        for info in self.site.glob(f"{name}-*.dist-info"):
            for line in (info / "RECORD").read_text().splitlines():
                place = self.site / line.split(",")[0]
                place.unlink(missing_ok=True)
                for parent in place.parents:
                    if parent == self.site or any(parent.iterdir()):
                        break
                    parent.rmdir()

    def walk(self) -> dict[bytes, tuple]:
        return walk(self.root)


def make_environment(root: Path, python: str = sys.executable) -> Environment:
    environment = Environment(root, python)
    environment.install("alpha", "1.0", {
        "alpha/__init__.py": b"import beta\n", "alpha/data/table.csv": b"1,2\n" * 400,
        "alpha/empty.py": b"", "../../../bin/alpha": b"#!/bin/sh\necho alpha\n"}, ("beta>=1",))
    (root / "bin/alpha").chmod(0o755)
    environment.install("beta", "1.0", {"beta.py": b"version = 1\n", "beta-hook.pth": b"import beta\n",
                                        "beta.libs/libbeta.so": bytes(range(256)) * 64})
    (root / "share/man").mkdir(parents=True)
    (root / "share/man/beta.1").write_text("beta\n")
    (root / "share/latest").symlink_to("man/beta.1")
    (root / "share/empty").mkdir(mode=0o750)
    (environment.site / "__pycache__").mkdir()
    (environment.site / "__pycache__/beta.cpython-311.pyc").write_bytes(b"compiled")
    return environment


ODD_NAMES = [b"a\nb", b"tab\tand %41", b"\xff\xfe not utf-8", b" leading", b"#hash"]


def disturb(environment: Environment) -> None:
    """What an install, an uninstall and a careless user do, without writing into kept files."""
    root, site = environment.root, environment.site
    environment.install("beta", "2.0", {"beta/__init__.py": b"version = 2\n", "beta/more.py": b"x = 1\n"})
    environment.uninstall("alpha")
    environment.install("gamma", "0.1", {"gamma.py": b"pass\n"})
    (root / "bin/tool").write_text("#!/bin/sh\n")
    (root / "bin/tool").chmod(0o4755)
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(site) + b"/" + name)).write_bytes(name)
    (root / "share/man/beta.1").unlink()
    (root / "share/man/beta.1").mkdir()  # a file becomes a directory
    (root / "share/man/beta.1/inside").write_text("x")
    (root / "share/latest").unlink()
    (root / "share/latest").symlink_to("elsewhere")
    (root / "share/empty").rmdir()
    (root / "share/empty").symlink_to("/tmp")  # a directory becomes a link that leads out
    (site / "new directory/deeper").mkdir(parents=True, mode=0o700)


def copy_of(source: Path, target: Path) -> None:
    """With hard links, permissions and times, the store included."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", source, target], check=True)
