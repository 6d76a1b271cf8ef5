"""The truth that bench/orders and bench/repairs read: environments, as lists of pins, and statements that were really
run there, each with its outcome and the repairs that were tried by hand.

Environments are made as the truth's notes tell: all pins in one resolution, dependencies with them; pins that a note
names as "installed with --no-deps" are installed last, without. The versions of what is not pinned are of the day.
"""
from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import environments

NO_DEPENDENCIES = "last pins installed with --no-deps: "


def project(requirement: str) -> str:
    return re.split(r"[<>=!~ \[]", requirement)[0].lower().replace("_", "-")


class Truth:
    def __init__(self, path: Path):
        try:
            import yaml
        except ImportError:
            raise SystemExit("PyYAML is missing: install python3-yaml") from None
        text = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.environments: dict[str, dict] = text["environments"]
        self.cases: list[dict] = text["cases"]
        by_id = {case["id"]: case for case in self.cases}
        for case in self.cases:  # "same as ID": its mechanism, and its cure
            same = re.match(r"same as (\S+)", case.get("mechanism", ""))
            if same and case["mechanism_class"] == "derived":
                for key in ("mechanism_class", "culprits", "repairs"):
                    case[key] = by_id[same[1]][key]

    def of(self, environment: str) -> list[dict]:
        return [case for case in self.cases if case["environment"] == environment]

    def pins(self, environment: str) -> tuple[list[str], list[str]]:
        """What is resolved together, and what is put on top without its dependencies."""
        late = {project(word) for case in self.of(environment)
                if case.get("note", "").startswith(NO_DEPENDENCIES)
                for word in case["note"].removeprefix(NO_DEPENDENCIES).split()}
        pins = self.environments[environment]["pins"]
        return ([pin for pin in pins if project(pin) not in late],
                [pin for pin in pins if project(pin) in late])


def make_environment(truth: Truth, name: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    env = environments.uv_environment()
    interpreter = environments.find_interpreter(truth.environments[name]["python"])
    subprocess.run([environments.uv(), "venv", "-q", "-p", interpreter, str(home)], check=True, env=env)
    together, on_top = truth.pins(name)
    for pins, options in ((together, []), (on_top, ["--no-deps"])):
        if pins:
            subprocess.run([environments.uv(), "pip", "install", "-q", "-p", str(home / "bin/python"),
                            *options, *pins], check=True, env=env)


def imports_of(statement: str) -> list[str] | None:
    """The modules of a statement that only imports; None if it does more."""
    modules = []
    for part in statement.split(";"):
        plain = re.fullmatch(r"import ([\w., ]+)", part.strip())
        named = re.fullmatch(r"from ([\w.]+) import (\w+)", part.strip())
        if not plain and not named:
            return None
        modules += re.split(r", *", plain[1]) if plain else [f"{named[1]}.{named[2]}"]
    return modules


def modules_of(statement: str) -> list[str]:
    """The modules of a statement in the order of their imports, whatever else it does."""
    modules = []
    for node in ast.walk(ast.parse(statement)):
        if isinstance(node, ast.Import):
            modules += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules += [f"{node.module}.{name.name}" for name in node.names]
    return modules


def read_computations(path: Path) -> dict[str, str]:
    """By import statement: code that computes something with the module and checks its value."""
    found: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        start = re.match(r"((?:import|from) [\w. ]+): ?", line)
        if start and start[1] not in found:
            name = start[1]
            found[name] = line[start.end():]
        elif start:
            name = ""  # another way for older releases
        elif name:
            found[name] += "\n" + line
    return found
