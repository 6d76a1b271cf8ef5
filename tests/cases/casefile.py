"""Case files: a world, a command, and what it prints, in one readable file each (*.case).

  first lines        what the case shows, and why the expected output is right: by construction
  == world           program NAME | lib PATH | file PATH TEXT (WORLD in it: the directory) | link PATH TARGET, each followed by indented attributes:
                     needed NAME.. | defs NAME[@VERSION][%SIZE][:MEMBERS].. (offsets, `!` before them: it keeps state) | refs NAME[@VERSION@FILE].. | set JSON
                     dist SITE NAME VERSION, a distribution installed in SITE, with its own attributes:
                     file PATH TEXT | lists PATH (made otherwise) | claims PATH TEXT (RECORD only)
                     | gpu PATH CODE.. (a library with device code: sm_86 compute_90@8.4)
                     | requires TEXT | python SPECIFIERS | extra NAME | bare (no METADATA)
  == calls           open NAME [global] [from PATH] | ended STATUS (as from waitpid)
  == command         arguments of cohabit; TRACE is the trace of these calls, WORLD the directory.
                     `environment ENV`: the environment rules alone (tests/metadata)
  == names           kept: the rule goes by names, the world is not renamed
  == output          standard output with WORLD for the directory, and the exit code

Libraries are written by tests/images/elfimage.py: no compiler, no name has a meaning. UPDATE_CASES=1
rewrites the output; review reads the diff.
"""
from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import shlex
import string
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO / "tests" / "images"), str(REPO / "tests" / "fidelity")]

import elfimage  # noqa: E402
import fatbin  # noqa: E402
import tracefile  # noqa: E402

RTLD_NOW, RTLD_GLOBAL = 2, 0x100


class Case:
    def __init__(self, path: Path):
        self.path = path
        parts = re.split(r"^== (\w+)\n", path.read_text(), flags=re.M)
        self.title = parts[0]
        self.sections = dict(zip(parts[1::2], parts[2::2]))

    def rename(self, seed: int) -> None:
        """Other words everywhere: sonames, C names, identifiers inside C++ names. Structure stays."""
        words, rng = {}, random.Random(seed)

        def other(word: str) -> str:
            return words.setdefault(word, "".join(rng.choices(string.ascii_letters, k=len(word))))

        def symbol(name: str) -> str:
            if not name.startswith("_Z"):
                return other(name)
            out, at = "_Z", 2
            while at < len(name):
                number = re.match(r"\d+", name[at:])
                if number:
                    at += len(number[0])
                    out += number[0] + other(name[at:at + int(number[0])])
                    at += int(number[0])
                else:
                    out, at = out + name[at], at + 1
            return out

        def line(text: str) -> str:
            found = re.match(r"(\s+(?:defs|refs) )(.*)", text)
            if not found:
                return re.sub(r"\blib(\w+)\.so", lambda m: "lib" + other(m[1]) + ".so", text)
            names = []
            for name in found[2].split():
                bare, *rest = re.split("(?=[@%:])", name)
                rest = [re.sub(r"\blib(\w+)\.so", lambda m: "lib" + other(m[1]) + ".so", r)
                        for r in rest]
                names.append("".join([symbol(bare), *rest]))
            return found[1] + " ".join(names)

        for key in [name for name in ("world", "calls") if name in self.sections]:
            self.sections[key] = "\n".join(line(l) for l in self.sections[key].split("\n"))


def reference(text: str) -> dict:
    name, *rest = text.split("@")
    ref = {"name": name, "reloc": "glob"}
    if rest:
        ref["version"], ref["file"] = rest
    return ref


def definition(text: str) -> dict:
    text, _, members = text.partition(":")
    text, _, size = text.partition("%")
    name, *version = text.split("@")
    made = {"name": name, "version": version[0] if version else None, "size": int(size or 8)}
    if members:
        made["state"] = members.startswith("!")
        made["members"] = [int(offset) for offset in members.lstrip("!").split(",")]
    return made


def add_attribute(spec: dict, line: str) -> None:
    key, _, value = line.strip().partition(" ")
    if key == "needed":
        spec["needed"] = value.split()
    elif key == "defs":
        spec.setdefault("defs", []).extend(definition(d) for d in value.split())
    elif key == "refs":
        spec.setdefault("refs", []).extend(reference(r) for r in value.split())
    elif key == "set":
        spec.update(json.loads(value))
    else:
        raise ValueError(f"unknown attribute: {line}")


def text_of(text: str) -> bytes:
    return text.replace("\\n", "\n").encode()


class Distribution:
    """Written in two steps: its files in the order of the case, as installers unpack wheels one after
    the other; its metadata at the end, when what it only lists is there."""

    def __init__(self, world: Path, site: str, name: str, version: str):
        self.site, self.name, self.version = world / site, name, version
        self.headers, self.rows, self.listed, self.bare = [], [], [], False

    def add(self, line: str) -> None:
        key, _, value = line.strip().partition(" ")
        path, _, text = value.partition(" ")
        if key in ("file", "claims", "gpu"):
            data = fatbin.library(text.split()) if key == "gpu" else text_of(text)
            if key != "claims":
                (self.site / path).parent.mkdir(parents=True, exist_ok=True)
                (self.site / path).write_bytes(data)
            self.rows.append(record_row(path, data))
        elif key == "lists":
            self.listed.append(path)
        elif key in ("requires", "python", "extra"):
            header = {"requires": "Requires-Dist", "python": "Requires-Python",
                      "extra": "Provides-Extra"}[key]
            self.headers.append(f"{header}: {value}")
        elif key == "bare":
            self.bare = True
        else:
            raise ValueError(f"unknown attribute: {line}")

    def write(self) -> None:
        directory = self.site / f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        directory.mkdir(parents=True, exist_ok=True)
        rows = self.rows + [record_row(p, (self.site / p).read_bytes()) for p in self.listed]
        (directory / "RECORD").write_text("".join(r + "\n" for r in rows))
        (directory / "INSTALLER").write_text("pip\n")
        if not self.bare:
            lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}",
                     *self.headers, "", "Description"]
            (directory / "METADATA").write_text("\n".join(lines) + "\n")


def record_row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"


def build_world(text: str, world: Path) -> None:
    specs: dict[str, dict] = {}
    current: dict | Distribution = {}
    distributions: list[Distribution] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith(" ") and isinstance(current, Distribution):
            current.add(line)
            continue
        if line.startswith(" "):
            add_attribute(current, line)
            continue
        kind, name, *rest = line.split(" ", 2)
        if kind == "dist":
            current = Distribution(world, name, *rest[0].split())
            distributions.append(current)
            continue
        if kind == "link":
            (world / name).parent.mkdir(parents=True, exist_ok=True)
            (world / name).symlink_to(rest[0])
            continue
        if kind == "file":
            (world / name).parent.mkdir(parents=True, exist_ok=True)
            text = rest[0].replace("\\n", "\n").replace("WORLD", str(world)) if rest else ""
            (world / name).write_text(text)
            continue
        current = specs[name] = {"runpath": "$ORIGIN"}
        if kind == "program":
            current.update(exec=True, interp=elfimage.INTERP["x86_64"], main="main",
                           needed=["libc.so.6"], defs=[{"name": "main", "version": None}])
        else:
            current["soname"] = name.rsplit("/", 1)[-1]
    for name, spec in specs.items():
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_bytes(elfimage.build(spec))
    for distribution in distributions:
        distribution.write()


def make_trace(text: str, program: Path, world: Path) -> str:
    facts = tracefile.Facts("x86_64")
    start = {"cohabit_trace": 1, "program": str(program), "executable": str(program),
             "arguments": [str(program)], "cwd": str(world), "environment": [],
             "hwcaps": facts.hwcaps, "platform": facts.platform, "glibc": "2.36",
             "machine": "x86_64", "secure": False, "tracer": "", "pid": 1, "parent_pid": 0,
             "forked": False}
    calls, status = [], 0
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "ended":
            status = int(words[1])
        elif words[0] == "start":
            start.update(json.loads(line.split(" ", 1)[1]))
        else:
            caller = str(world / words[words.index("from") + 1]) if "from" in words else ""
            flags = RTLD_NOW | (RTLD_GLOBAL if "global" in words else 0)
            calls.append({"call": "dlopen", "name": str(world / words[1]), "flags": flags,
                          "caller": caller})
    lines = [start, *calls, {"end": {"exit_status": status}, "blind_spots": []}]
    return "".join(json.dumps(l) + "\n" for l in lines)


def run_case(case: Case, cohabit: str, world: Path, report_format: str = "") -> str:
    build_world(case.sections["world"], world)
    program = next(l.split()[1] for l in case.sections["world"].splitlines()
                   if l.startswith("program"))
    trace = world.parent / "trace"
    trace.write_text(make_trace(case.sections.get("calls", ""), world / program, world))
    words = shlex.split(case.sections["command"].strip())
    words = [w.replace("TRACE", str(trace)).replace("WORLD", str(world)) for w in words]
    if report_format:
        words[words.index("--format") + 1] = report_format
    program = [cohabit]
    if words[0] == "environment":
        program = [str(Path(cohabit).parent / "tests" / "metadata" / "environment_probe")]
        words = words[1:]
    done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "NO_COLOR": "1"})
    text = done.stdout.replace(str(world), "WORLD")
    return text if report_format else f"{text}exit {done.returncode}\n"


def all_cases() -> list[Path]:
    return sorted(Path(__file__).resolve().parent.glob("*.case"))


def update(case: Case, output: str) -> None:
    text = case.path.read_text()
    case.path.write_text(text[:text.index("== output\n")] + "== output\n" + output)
