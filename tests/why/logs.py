"""Long logs of real runs, made once by make_logs.py and stored in logs.tar.xz: broken environments,
whose cause is known by construction, and healthy ones. index.json names the causes."""
from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parent / "logs.tar.xz"


@dataclass
class Log:
    name: str
    causes: list[str]  # mechanisms of which one must be the first answer; empty: a healthy run
    text: bytes


def all_logs() -> list[Log]:
    if not ARCHIVE.exists():
        return []
    with tarfile.open(ARCHIVE) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}
    index = json.loads(files.pop("index.json"))
    return [Log(name, index[name], files[name]) for name in sorted(index)]
