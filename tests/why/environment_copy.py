"""A copy of an environment made of hard links, and how to break it: files are taken away or put in
the place of others, never written in place, and every change is undone at the end."""
from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path


class EnvironmentCopy:
    def __init__(self, original: Path, root: Path):
        self.original = original
        self.root = root
        if not root.exists():
            subprocess.run(["cp", "-al", str(original), str(root)], check=True)
        self.site = next(root.glob("lib/python3*/site-packages"))
        self._added: list[Path] = []
        self._removed: list[Path] = []

    @property
    def python(self) -> str:
        return str(self.root / "bin" / "python")

    def find(self, pattern: str) -> Path:
        found = sorted(self.site.glob(pattern))
        if not found:
            raise FileNotFoundError(f"{pattern} is not below {self.site}")
        return found[0]

    def remove(self, *patterns: str) -> None:
        for pattern in patterns:
            self.find(pattern)  # says so where there is none
            for path in sorted(self.site.glob(pattern)):
                files = [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]
                for file in files:
                    file.unlink()
                    self._removed.append(file)
                if path.is_dir():
                    shutil.rmtree(path)

    def replace(self, pattern: str, content: bytes) -> None:
        path = self.find(pattern)
        self.remove(pattern)
        self.add(path, content)

    def truncate(self, pattern: str, share: float) -> None:
        path = self.find(pattern)
        with path.open("rb") as file:
            self.replace(pattern, file.read(int(path.stat().st_size * share)))

    def patch(self, pattern: str, at: int, value: bytes) -> None:
        content = bytearray(self.find(pattern).read_bytes())
        content[at:at + len(value)] = value
        self.replace(pattern, bytes(content))

    def replace_tag(self, pattern: str, old: int, new: int) -> None:
        """Gives an entry of the dynamic section another tag (64-bit, little-endian)."""
        path = self.find(pattern)
        self.remove(pattern)
        shutil.copyfile(self.original / path.relative_to(self.root), path)
        self._added.append(path)
        with path.open("r+b") as file:
            header = file.read(64)
            at, size, count = *struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54)
            for number in range(count):
                file.seek(at + number * size)
                kind, _, offset, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
                if kind == 2:  # PT_DYNAMIC
                    for place in range(offset, offset + length, 16):
                        file.seek(place)
                        if struct.unpack("<Q", file.read(8))[0] == old:
                            file.seek(place)
                            file.write(struct.pack("<Q", new))
                            return
        raise ValueError(f"no tag {old} in {pattern}")

    def edit(self, pattern: str, old: str, new: str) -> None:
        text = self.find(pattern).read_text()
        if old not in text:
            raise ValueError(f"{old!r} is not in {pattern}")
        self.replace(pattern, text.replace(old, new).encode())

    def add(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._added.append(path)

    def restore(self) -> None:
        for path in self._added:
            path.unlink(missing_ok=True)
        for path in self._removed:
            path.parent.mkdir(parents=True, exist_ok=True)
            source = self.original / path.relative_to(self.root)
            if source.is_symlink():
                path.symlink_to(os.readlink(source))
            else:
                os.link(source, path)
        self._added, self._removed = [], []
