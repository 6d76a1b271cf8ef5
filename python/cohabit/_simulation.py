"""Asks the simulation whether a module can be imported into this very process.

What stands in the process already decides what the next import binds to, so the question is about a sequence: everything
native that was imported so far, in its order, and then the new one. It is put as a program of import statements
to `cohabit doctor`, which works out what those open without running them (1 to 5 s with large frameworks). Each repair is then
judged by the same calls with changed flags, written as a trace and replayed (0.1 to 1 s).

Only new errors count: what clashes among the modules that are here already cannot be undone.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.machinery import ExtensionFileLoader
from itertools import chain
from typing import Any, Dict, NamedTuple

from ._dlopen_rules import RTLD_GLOBAL, Preload, Repair, Rule, Rules, mapped_files, rules_of_launch
from ._worker_errors import CohabitError

__all__ = ["Judgement", "Simulation", "imported_so_far"]

Call = Dict[str, Any]  # evaluated: Python 3.8 knows no dict[...]
RTLD_NOW = 2
MOST_TRIED = 16  # repairs that are simulated before it is given up
PROCESS_CODES = ("CB", "LD")  # findings about a process; the others are about files and do not depend on the import


class Judgement(NamedTuple):
    """What became of a question.

    verdict   "sound"; "repaired": sound with `repair`; "unsound"; "unknown": could not be asked, `reason` says why
    findings  the new errors, as `cohabit doctor` reports them
    at_start  unsound only: a repair that would be sound if the process had been started with it
    """

    verdict: str
    repair: Repair = Repair()
    findings: tuple[dict[str, Any], ...] = ()
    reason: str = ""
    at_start: Repair | None = None


def imported_so_far(rules: Rules) -> list[str]:
    """The lines of a program that opens what this process has opened: native modules and the packages around them."""
    lines = _import_lines()
    for preload, count, _ in reversed(rules.preloaded):
        at = sum(1 for number, _ in lines if number < count)
        lines.insert(at, (count, f"import ctypes; ctypes.CDLL({preload.file!r}, {preload.mode})"))
    return [line for _, line in lines]


def _import_lines() -> list[tuple[int, str]]:
    lines, seen = [], set()
    for number, (name, module) in enumerate(list(sys.modules.items())):
        spec = getattr(module, "__spec__", None)
        if spec is None or name.partition(".")[0] in ("cohabit", "__main__"):
            continue
        native = isinstance(getattr(spec, "loader", None), ExtensionFileLoader)
        root = name.partition(".")[0]
        third_party = root not in seen and not _is_standard(getattr(sys.modules.get(root), "__file__", None))
        wanted = ([root] if third_party else []) + ([name] if native and name != root else [root] if native else [])
        for each in wanted:
            if each not in seen:
                seen.add(each)
                lines.append((number, f"import {each}"))
    return lines


def _is_standard(path: str | None) -> bool:
    """Whether a module's file is of the standard library (or there is none)."""
    return path is None or "site-packages" not in path and path.startswith(os.path.dirname(os.__file__) + os.sep)


def program_of(lines: Sequence[str]) -> str:
    """Each line by itself: one module that cannot be imported again does not end the others."""
    return "".join(f"try:\n    {line}\nexcept Exception:\n    pass\n" for line in lines)


class Simulation:
    """Questions to the native command about this interpreter."""

    def __init__(self, command: str, timeout: float = 300):
        self._command, self._timeout = command, timeout
        self._head: dict[str, Any] | None = None
        self._start = _environ_of_start()

    def judge(self, rules: Rules, names: Sequence[str], *, repair: bool = True) -> Judgement:
        """Whether these modules can be imported now, one after the other."""
        if not sys.platform.startswith("linux") or not sys.executable:
            return Judgement("unknown", reason="the loader of this platform is not simulated")
        active = rules_of_launch(self._start) + rules.all
        try:
            with tempfile.TemporaryDirectory(prefix="cohabit-") as directory:
                return self._judge(directory, imported_so_far(rules), names, active, repair)
        except (OSError, subprocess.SubprocessError, ValueError, CohabitError) as error:
            return Judgement("unknown", reason=str(error))

    def _judge(self, directory: str, before: list[str], names: Sequence[str], active: list[Rule], repair: bool) -> Judgement:
        lines = before + [f"import {name}" for name in names]
        calls, report = self._plan(directory, lines)
        if not active and not _errors(report):
            return Judgement("sound")
        past = self._plan(directory, before)[0] if before else []
        known = {error["fingerprint"] for error in _errors(self._replay(directory, past, active)[0])}
        search = _Search(self, directory, calls, len(past), known, active)
        errors, loads = search.try_repair(Repair())
        if not errors:
            return Judgement("sound")
        if repair:
            for candidate in search.candidates(errors, loads):
                if not search.try_repair(candidate)[0]:
                    return Judgement("repaired", candidate, tuple(errors))
        return Judgement("unsound", findings=tuple(errors), at_start=search.at_start(errors, loads) if repair else None)

    def _plan(self, directory: str, lines: Sequence[str]) -> tuple[list[Call], dict[str, Any]]:
        """What the lines open, and the report about it."""
        program, plan = os.path.join(directory, "imports.py"), os.path.join(directory, "plan.json")
        with open(program, "w") as file:
            file.write(program_of(lines))
        report = json.loads(self._run("doctor", sys.executable, program, "--no-config", "--format", "json", "--plan", plan))
        with open(plan) as file:
            opens = json.load(file)["opens"]
        return [{"name": o["name"], "flags": o["flags"], "caller": o["caller"], "cause": o["cause"]} for o in opens], report

    def _replay(self, directory: str, calls: Sequence[Call], active: Sequence[Rule]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The report on a process that makes these calls, and who needed each library that is mapped in it."""
        trace, loads = os.path.join(directory, "trace.jsonl"), os.path.join(directory, "loads")
        with open(trace, "w") as file:
            for record in chain([self._header(directory)], _records(calls, active), [{"end": {"exit_status": 0}, "blind_spots": []}]):
                file.write(json.dumps(record) + "\n")
        report = json.loads(self._run("doctor", sys.executable, "--no-config", "--replay", trace, "--format", "json", "--loads", loads))
        with open(loads, errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        return report, {row[0]: row[2:4] for row in rows if len(row) >= 4}

    def _header(self, directory: str) -> dict[str, Any]:
        if self._head is None:
            out = os.path.join(directory, "start.jsonl")
            self._run("trace", "--out", out, "--", sys.executable, "-I", "-S", "-c", "pass")
            with open(out) as file:
                self._head = json.loads(file.readline())
        return self._head

    def _run(self, *arguments: str) -> bytes:
        # The loader's variables as they were at the start: a later change of os.environ does not reach it.
        environ = {k: v for k, v in os.environ.items() if not _is_loaders(k)}
        environ.update({k: v for k, v in self._start.items() if _is_loaders(k)})
        environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        try:
            answer = subprocess.run([self._command, *arguments], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, timeout=self._timeout, check=False)
        except OSError as error:
            raise CohabitError(f"cannot run {self._command}: {error.strerror}") from error
        if answer.returncode not in (0, 1):  # 1: there are findings
            raise CohabitError(answer.stderr.decode(errors="replace").strip() or f"cohabit ended with status {answer.returncode}")
        return answer.stdout


class _Search:
    """Repairs of one import, and what the simulation says to each. Calls from `begin` on are still to come."""

    def __init__(self, simulation: Simulation, directory: str, calls: list[Call], begin: int, known: set[str], active: list[Rule]):
        self._simulation, self._directory = simulation, directory
        self._calls, self._begin, self._known, self._active = calls, begin, known, active
        self._mapped = mapped_files()

    def try_repair(self, repair: Repair, at: int | None = None) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        """The new errors under a repair, and the libraries that are mapped then."""
        begin = self._begin if at is None else at
        calls = self._calls[:begin] + list(_preload_calls(repair.preloads)) + self._calls[begin:]
        report, loads = self._simulation._replay(self._directory, calls, [*self._active, *repair.rules])
        return [error for error in _errors(report) if error["fingerprint"] not in self._known], loads

    def candidates(self, errors: list[dict[str, Any]], loads: dict[str, list[str]]) -> list[Repair]:
        """The smallest and safest first: one library opened earlier, one flag less, one flag more, then all of a kind."""
        calls = [call for call in self._calls[self._begin:] if _is_pythons(call)]
        system = _system_libraries(errors)
        preloads = tuple(Preload(path, False) for path in system if path not in self._mapped)
        in_front = tuple(Preload(path, True) for path in system)
        drops = _unique(Rule("-global", call["name"]) for call in calls if call["flags"] & RTLD_GLOBAL)
        roots = {os.path.realpath(root) for consumer in _consumers(errors) for root in _openers(consumer, loads)}
        binds = _unique(Rule("+deepbind", call["name"]) for call in calls if os.path.realpath(call["name"]) in roots)
        singles = [Repair(preloads=(preload,)) for preload in preloads + in_front]
        singles += [Repair((rule,)) for rule in chain(drops, binds)]
        groups = [Repair(preloads=preloads), Repair(preloads=in_front), Repair(drops), Repair(binds), Repair(drops, in_front),
                  Repair(drops + binds)]
        return list(dict.fromkeys(r for r in singles[:MOST_TRIED] + groups if r != Repair()))

    def at_start(self, errors: list[dict[str, Any]], loads: dict[str, list[str]]) -> Repair | None:
        """What would do if it were known before the first import: the same for the calls that were made already."""
        drops = _unique(Rule("-global", call["name"]) for call in self._calls if _is_pythons(call) and call["flags"] & RTLD_GLOBAL)
        preloads = tuple(Preload(path, True) for path in _system_libraries(errors))
        for repair in (Repair(drops), Repair(preloads=preloads), Repair(drops, preloads)):
            if repair != Repair() and not self.try_repair(repair, 0)[0]:
                return repair
        return None


def _records(calls: Sequence[Call], active: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    for call in calls:
        flags = call["flags"]
        for rule in active:
            if call["name"] is not None and rule.is_for(call["name"]):
                flags = rule.change_flags(flags)
        yield {"call": "dlopen", "name": call["name"], "flags": flags, "caller": call["caller"]}


def _preload_calls(preloads: Sequence[Preload]) -> Iterator[Call]:
    import _ctypes

    for preload in preloads:
        yield {"name": _ctypes.__file__, "flags": RTLD_NOW, "caller": ""}
        yield {"name": preload.file, "flags": RTLD_NOW | preload.mode, "caller": _ctypes.__file__}


def _is_pythons(call: Call) -> bool:
    """Whether Python makes this call, so that its flags can be changed in a running process."""
    by_ctypes = os.path.basename(call["caller"]).startswith("_ctypes.")
    return bool(call["name"]) and (call["cause"] == "extension" or by_ctypes)


def _errors(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["severity"] == "error" and f["code"].startswith(PROCESS_CODES)]


def _system_libraries(errors: list[dict[str, Any]]) -> list[str]:
    """Libraries of the findings that belong to no package: those have one right copy, the machine's."""
    return list(_unique(library["path"] for error in errors for library in error["libraries"] if not library["distribution"]))


def _consumers(errors: list[dict[str, Any]]) -> set[str]:
    return {row["consumer"] for error in errors for row in error["evidence"] if row["kind"] == "captured"}


def _openers(library: str, loads: dict[str, list[str]]) -> Iterator[str]:
    """The library and those that it was mapped for, up to the one that was opened."""
    for _ in range(len(loads)):
        yield library
        how, by = loads.get(library, ("", ""))
        if how != "needed-by":
            return
        library = by


def _unique(items: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


def _is_loaders(name: str) -> bool:
    return name.startswith("LD_") or name == "GLIBC_TUNABLES"


def _environ_of_start() -> dict[str, str]:
    """The environment that this process was started with."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if entry)
            return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    except OSError:
        return dict(os.environ)
