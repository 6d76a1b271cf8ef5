"""What the manager asks of a framework. How the eight that it knows answer is in _own_adapters.py.

An adapter names calls of the framework's own public API. None of them may create anything on a device that is not
in use yet: a CUDA context costs hundreds of megabytes, and switching is there to save memory. So each adapter finds
out first whether its framework has touched a device, and otherwise does nothing.

Own adapters are found by the entry point group "cohabit.adapters", in a package's pyproject.toml:

    [project.entry-points."cohabit.adapters"]
    mxnet = "my_package:MxnetAdapter"         # called without arguments

or given to the manager: FrameworkManager(adapters=[MxnetAdapter()]). `ModuleAdapter` has an answer for everything; a
subclass overrides what its framework can do. No adapter imports its framework, but by import_module().
"""
from __future__ import annotations

import importlib
import importlib.metadata
import sys
from typing import Any, NamedTuple, Protocol, runtime_checkable

__all__ = ["Adapter", "Budget", "Memory", "ModuleAdapter", "Setting", "known_adapters"]


class Budget(NamedTuple):
    """A share of a device's memory: one of the two is None."""

    fraction: float | None  # of each device, 0 to 1
    bytes: int | None


class Setting(NamedTuple):
    """How a framework is told its budget before it is imported."""

    environ: dict[str, str]  # variables that it reads at import or later
    remark: str  # what these do not reach; "" if nothing


class Memory(NamedTuple):
    """Bytes of one device that a framework has; None where it does not tell."""

    device: str  # "cuda:0"
    held: int | None  # in use by objects
    cached: int | None  # free, but kept for later


@runtime_checkable
class Adapter(Protocol):
    """What the manager needs to know of a framework. Methods but import_module() are called with it imported only."""

    name: str  # "torch": also the suffix of switch_to_torch
    module: str  # what is imported

    def import_module(self) -> Any:
        """Imports the framework and returns its module. Raises what the import raises."""

    def version(self, module: Any) -> str | None:
        """The version that the loaded module says it has."""

    def devices(self, module: Any) -> list[str]:
        """The devices that it could use, without setting one up: ["cpu", "cuda:0"]."""

    def synchronize(self, module: Any) -> None:
        """Waits until all its work on all devices is done. Raises what that work raised."""

    def free_cached(self, module: Any) -> str:
        """Gives cached device memory back by the framework's own call; says what cannot be given back, or ""."""

    def memory(self, module: Any) -> list[Memory]:
        """What it has of each device that it uses; no entry for one that it does not use."""

    def setting(self, budget: Budget) -> Setting | None:
        """The budget as the framework's own setting; None: as `cohabit run --gpu-memory` knows it."""

    def limit(self, module: Any, share: float) -> None:
        """Tells a budget after the import, where no variable does: a share of each device, or bytes above 1."""

    def from_dlpack(self, module: Any, value: Any) -> Any:
        """Its tensor over the memory of `value`, which has __dlpack__ and __dlpack_device__. Raises TypeError if it has none."""

    def exporter(self, module: Any, value: Any) -> Any:
        """For its own tensor `value`: something that has __dlpack__ and __dlpack_device__."""


class ModuleAdapter:
    """Any module: it can be imported, and nothing more is known of it."""

    name: str = ""
    module: str = ""
    aliases: tuple[str, ...] = ()
    takes_backwards = False  # whether from_dlpack() takes elements that run backwards (negative strides); else it gets a copy

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name
        self.module = self.module or self.name

    def import_module(self) -> Any:
        return importlib.import_module(self.module)

    def version(self, module: Any) -> str | None:
        found = getattr(module, "__version__", None)
        return found if isinstance(found, str) else None

    def devices(self, module: Any) -> list[str]:
        return ["cpu"]

    def synchronize(self, module: Any) -> None:
        pass

    def free_cached(self, module: Any) -> str:
        return ""

    def memory(self, module: Any) -> list[Memory]:
        return []

    def setting(self, budget: Budget) -> Setting | None:
        return None

    def limit(self, module: Any, share: float) -> None:
        pass

    def from_dlpack(self, module: Any, value: Any) -> Any:
        raise TypeError(f"{self.name} has no tensors that can be made by DLPack")

    def exporter(self, module: Any, value: Any) -> Any:
        return value

    def __repr__(self) -> str:
        return f"<cohabit adapter {self.name}>"


GROUP = "cohabit.adapters"


def known_adapters() -> dict[str, Adapter]:
    """All adapters by name: those here, then those of installed packages, which may replace them.

    One that cannot be loaded is left out with a warning: another package's fault is no reason to stop.
    """
    from ._own_adapters import OWN

    found: dict[str, Adapter] = {adapter.name: adapter() for adapter in OWN}
    for entry in _entry_points():
        try:
            adapter = entry.load()()
            if not isinstance(adapter, Adapter):
                raise TypeError(f"{adapter!r} lacks a method of cohabit.adapters.Adapter")
            found[adapter.name] = adapter
        except Exception as error:
            import warnings
            warnings.warn(f"the adapter {entry.name} ({entry.value}) cannot be used: {error}", RuntimeWarning, stacklevel=2)
    return found


def _entry_points() -> list[Any]:
    if sys.version_info >= (3, 10):
        return list(importlib.metadata.entry_points(group=GROUP))
    return list(importlib.metadata.entry_points().get(GROUP, ()))
