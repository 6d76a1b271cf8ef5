"""Rules of the house that a machine can check."""
from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

# What each room may use (ARCHITECTURE.md).
LINE = ["base", "facts", "world", "imports", "sim", "findings", "repair", "actions"]
ROOMS = {room: set(LINE[: i + 1]) for i, room in enumerate(LINE)}
ROOMS["report"] = set(LINE[:7]) | {"explain", "report"}
ROOMS["explain"] = {"base", "facts", "world", "findings", "sim", "explain"}
ROOMS["cli"] = set(LINE) | {"report", "explain", "cli"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([a-z_]+)/', re.M)


def tracked(repo: Path) -> list[Path]:
    listed = subprocess.run(["git", "-C", str(repo), "ls-files", "-z"], check=True, capture_output=True)
    return [repo / name for name in listed.stdout.decode().split("\0") if name and (repo / name).is_file()]


def test_rooms_use_only_rooms_to_their_left(repo: Path) -> None:
    wrong = []
    for room, allowed in ROOMS.items():
        for file in sorted((repo / "src" / room).rglob("*")):
            if file.suffix in (".h", ".cc"):
                wrong += [f"{file.relative_to(repo)} includes {used}/"
                          for used in INCLUDE.findall(file.read_text())
                          if used in ROOMS and used not in allowed]
    assert not wrong, "\n".join(wrong)


def test_every_room_is_known(repo: Path) -> None:
    assert {p.name for p in (repo / "src").iterdir() if p.is_dir()} <= set(ROOMS)


def test_no_paths_of_a_machine_and_no_package_index(repo: Path) -> None:
    forbidden = [str(Path.home()) + "/.", "index-url = ", "pypi.org"]
    # Every machine has these; a clone may lie there.
    if str(repo.parent) not in ("/", "/tmp", "/var/tmp", "/home", "/opt", "/srv", "/mnt", "/usr/src", "/usr/local/src"):
        forbidden.append(str(repo.parent) + "/")
    found = []
    for file in tracked(repo):
        if file == Path(__file__).resolve():
            continue
        text = file.read_bytes().decode(errors="replace")
        found += [f"{file.relative_to(repo)}: {word}" for word in forbidden if word in text]
    assert not found, "\n".join(found)


def test_readme_links_lead_somewhere(repo: Path) -> None:
    for document in [*repo.glob("*.md"), *repo.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"


def test_the_version_stands_in_one_place(repo: Path) -> None:
    version = re.search(r"project\(cohabit VERSION ([0-9.]+)", (repo / "CMakeLists.txt").read_text())[1]
    assert "version" in tomllib.loads((repo / "pyproject.toml").read_text())["project"]["dynamic"]
    again = [str(f.relative_to(repo)) for f in (repo / "src").rglob("*.cc") if f'"{version}"' in f.read_text()
             or f"cohabit {version}" in f.read_text()]
    assert not again, f"use COHABIT_VERSION of version.h: {again}"
