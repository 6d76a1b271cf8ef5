"""Repairs of the loader that can still be carried out while a process runs.

`cohabit run` changes flags of dlopen calls by a preloaded library. A running Python can do the same for the calls that
Python itself makes, and those are nearly all: an extension module is opened by the import system with the flags of
sys.setdlopenflags(), a library by ctypes with the `mode` of its caller. So while one of the files named by a rule is
opened, and only then, its flags are changed. What native code opens by itself is out of reach.

A preload in the sense of LD_PRELOAD cannot be had any more: it stands in the global scope in front of everything. Two things
come near it. Opening the library by ctypes maps it in a scope of its own, which is what a library needs that would otherwise
be mapped first as a dependency of another one and bind to that one's copy of itself (its references are resolved
once, when it is mapped). With RTLD_GLOBAL it also stands in front of what becomes global later.
"""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from importlib.machinery import ExtensionFileLoader
from typing import Any, NamedTuple

__all__ = ["RULES", "Preload", "Repair", "Rule", "Rules", "mapped_files", "rules_of_launch"]

RTLD_GLOBAL, RTLD_DEEPBIND = 0x100, 0x8
HEAD = "cohabit-rules 1"


class Rule(NamedTuple):
    """One change of flags: "-global" or "+deepbind", for one file as it is opened."""

    change: str
    file: str

    def change_flags(self, flags: int) -> int:
        return flags & ~RTLD_GLOBAL if self.change == "-global" else flags | RTLD_DEEPBIND

    def is_for(self, opened: str) -> bool:
        if opened == self.file:
            return True
        if "/" not in opened or "/" not in self.file or os.path.basename(opened) != os.path.basename(self.file):
            return False
        try:
            return os.path.samefile(opened, self.file)
        except OSError:
            return False

    def __str__(self) -> str:
        words = "without RTLD_GLOBAL" if self.change == "-global" else "with RTLD_DEEPBIND"
        return f"open {os.path.basename(self.file)} {words}"


class Preload(NamedTuple):
    """A library that is opened by ctypes before the import."""

    file: str
    is_global: bool

    @property
    def mode(self) -> int:
        return RTLD_GLOBAL if self.is_global else 0  # ctypes adds RTLD_NOW

    def __str__(self) -> str:
        return f"open {os.path.basename(self.file)} first" + (" with RTLD_GLOBAL" if self.is_global else "")


class Repair(NamedTuple):
    rules: tuple[Rule, ...] = ()
    preloads: tuple[Preload, ...] = ()

    def __str__(self) -> str:
        return "; ".join(str(part) for part in (*self.preloads, *self.rules))


class Rules:
    """The rules that hold in this process. The first one installs the hooks; they stay, since what a framework opens
    long after its import is to be opened in the same way."""

    def __init__(self) -> None:
        self.all: list[Rule] = []
        self.used: set[Rule] = set()
        self.preloaded: list[tuple[Preload, int, Any]] = []  # what, number of modules at that time, handle
        self._lock = threading.RLock()
        self._restore: Callable[[], None] | None = None

    def carry_out(self, repair: Repair) -> None:
        """Opens the preloads now; the rules hold from now on. Raises OSError if a library cannot be opened."""
        import ctypes

        for preload in repair.preloads:
            count = len(sys.modules)
            self.preloaded.append((preload, count, ctypes.CDLL(preload.file, preload.mode)))
        self.all += [rule for rule in repair.rules if rule not in self.all]
        if self.all and self._restore is None:
            self._install()

    def changed(self, opened: str, flags: int) -> int:
        for rule in self.all:
            if rule.is_for(opened):
                self.used.add(rule)
                flags = rule.change_flags(flags)
        return flags

    def _install(self) -> None:
        import ctypes

        module: Any = ctypes
        create, dlopen = ExtensionFileLoader.create_module, module._dlopen

        def create_module(loader: Any, spec: Any) -> Any:
            before = sys.getdlopenflags()
            after = self.changed(spec.origin or "", before)
            if after == before:
                return create(loader, spec)
            with self._lock:  # flags are the interpreter's: two threads must not restore each other's
                before = sys.getdlopenflags()
                sys.setdlopenflags(self.changed(spec.origin, before))
                try:
                    return create(loader, spec)
                finally:
                    sys.setdlopenflags(before)

        def opened(name: Any, mode: int = 0, *rest: Any) -> Any:
            text = os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""
            return dlopen(name, self.changed(text, mode) if text else mode, *rest)

        def restore() -> None:
            ExtensionFileLoader.create_module, module._dlopen = create, dlopen  # type: ignore[method-assign]

        ExtensionFileLoader.create_module, module._dlopen = create_module, opened  # type: ignore[method-assign,assignment]
        self._restore = restore

    def remove(self) -> None:
        """Takes the hooks out again (for tests: what was opened stays as it is)."""
        if self._restore is not None:
            self._restore()
        self._restore, self.all = None, []


RULES = Rules()  # of this process: the hooks are the interpreter's, whoever asked for them


def mapped_files() -> set[str]:
    """The files that are mapped in this process, by their real paths."""
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        return {line[line.index("/"):].rstrip("\n") for line in maps if "/" in line}


def rules_of_launch(environ: dict[str, str]) -> list[Rule]:
    """The rules that libcohabit_preload.so carries out in this process, if `cohabit run` started it."""
    text = environ.get("COHABIT_PRELOAD_RULES", "")
    if "libcohabit_preload.so" not in environ.get("LD_PRELOAD", "") or environ.get("COHABIT_PRELOAD") == "off":
        return []
    if text.startswith("/"):
        try:
            with open(text, errors="surrogateescape") as file:
                text = file.read(65536)
        except OSError:
            return []
    return list(_parse(text.replace(";", "\n").split("\n")))


def _parse(lines: Iterable[str]) -> Iterable[Rule]:
    from urllib.parse import unquote

    head, *rest = lines
    for line in rest if head == HEAD else ():
        word, _, change = line.partition(" ")
        kind, _, file = change.partition(" ")
        if word == "dlopen" and kind in ("-global", "+deepbind"):
            yield Rule(kind, unquote(file, errors="surrogateescape"))
