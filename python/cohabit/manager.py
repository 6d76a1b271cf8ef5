"""Several frameworks behind one object: in this process, where that is sound, or in workers.

    >>> manager = cohabit.FrameworkManager(frameworks=["tensorflow", "paddle"])
    >>> paddle = manager.switch_to_paddle()
    >>> with manager.use("tensorflow") as tensorflow: ...

docs/manager.md is the guide, docs/design/manager.md how it works.
"""
from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Union

from . import _dlpack
from ._budgets import Told, budget_of, tell_all
from ._dlopen_rules import RULES
from ._manager_errors import FrameworkBusy, FrameworkConflict, FrameworkError, FrameworkNotFound, FrameworkSyncError
from ._manager_report import FrameworkReport, Report, report_on
from ._nvml import device_memory
from ._simulation import Judgement, Simulation
from ._turns import Turns
from ._worker_errors import WorkerError
from .adapters import Adapter, ModuleAdapter, known_adapters
from .workers import Worker

__all__ = ["FrameworkBusy", "FrameworkConflict", "FrameworkError", "FrameworkManager", "FrameworkNotFound", "FrameworkReport",
           "FrameworkSyncError", "GPUFrameworkManager", "Report", "lazy"]

StrPath = Union[str, "os.PathLike[str]"]
_IMPORTING = threading.RLock()  # of all managers: a question is about the whole process


def _after_fork() -> None:
    global _IMPORTING
    _IMPORTING = threading.RLock()  # a thread that held it is not in the child


os.register_at_fork(after_in_child=_after_fork)


class FrameworkManager:
    """Frameworks that take turns in this process, and workers for those that cannot.

    memory      budgets: {"torch": "40%", "paddle": 0.4, "cupy": "8GiB"}: a share of each device or a size. Each is told as
                the framework's own environment variable, at once; report() says what could not be told. Nothing here
                watches that a framework keeps to it
    frameworks  which ones will be used, in about this order (those of `memory` are added). Known before the first
                import, more can be repaired; without it each is examined when it comes
    adapters    further ones (cohabit.adapters.Adapter), beside those of installed packages
    examine     True: ask the simulation before each first import, which takes seconds; where it cannot be asked (no native command,
                another system) warn and import. "required": import nothing without a prediction. False: do not ask
    timeout     seconds that a switch waits for other threads; None: for ever

    All methods may be called from any thread. Importing a framework may raise FrameworkConflict, with
    `.worker()` as a way out; FrameworkNotFound; whatever the import itself raises.
    """

    def __init__(self, *, memory: Mapping[str, str | float | int] | None = None, frameworks: Iterable[str] = (),
                 adapters: Iterable[Adapter] = (), examine: bool | str = True, timeout: float | None = None) -> None:
        self._adapters = known_adapters()
        self._adapters.update((adapter.name, adapter) for adapter in adapters)
        self._aliases = {alias: name for name, adapter in self._adapters.items() for alias in getattr(adapter, "aliases", ())}
        if examine not in (True, False, "required"):
            raise FrameworkError(f"examine is {examine!r}: expected True, False or 'required'")
        self._examine, self._timeout = examine, timeout
        self._turns = Turns()
        self._judged: dict[str, Judgement] = {}
        self._notes: dict[str, str] = {}  # what was not given back at the last switch
        self._placed: dict[str, Worker] = {}
        self._workers: list[Worker] = []
        self._closed = False
        self._told = self._tell(memory or {})
        self._declared = list(dict.fromkeys([*(self._adapter(name).name for name in frameworks), *self._told]))

    def _tell(self, memory: Mapping[str, str | float | int]) -> dict[str, Told]:
        from . import command

        return tell_all([(self._adapter(name), budget_of(name, share)) for name, share in memory.items()], command())

    # --- taking turns ---

    def switch_to(self, name: str, timeout: float | None = None) -> Any:
        """Makes a framework the current one and returns its module (its Worker, if auto() placed it in one).

        timeout  seconds to wait for other threads inside use() of another framework; default: the manager's

        Waits for the work of all other frameworks here, gives their cached memory back, imports this one if it is not.
        Objects of other frameworks are left alone. Raises FrameworkBusy, FrameworkSyncError, FrameworkConflict, ...;
        then the current framework is what it was.
        """
        adapter = self._adapter(name)
        wait = self._timeout if timeout is None else timeout
        return self._turns.pass_through(adapter.name, partial(self._switch, adapter), wait)

    @contextmanager
    def use(self, name: str, timeout: float | None = None) -> Iterator[Any]:
        """switch_to() for the length of a block: threads that want another framework wait until it is left.

        Threads with the same framework go together. It can be nested; the framework of the outer block comes back, also
        where work of the inner one has failed (FrameworkSyncError), but not while other threads stay in the inner one for
        longer than the timeout (FrameworkBusy). A block belongs to the thread that entered it. Where another one leaves it
        (a generator that is closed elsewhere), the turn is given back, and the framework of an outer block is not.
        """
        adapter = self._adapter(name)
        wait = self._timeout if timeout is None else timeout
        thread = threading.get_ident()
        outer = self._turns.current if self._turns.depth() else None
        module = self._turns.enter(adapter.name, partial(self._switch, adapter), wait)
        try:
            yield module
        finally:
            self._turns.leave(thread, outer, lambda: self._switch(self._adapter(outer or adapter.name)), wait)

    @property
    def current(self) -> str | None:
        """The name of the framework that was switched to last."""
        return self._turns.current

    def _switch(self, adapter: Adapter) -> Any:
        if self._turns.current != adapter.name:
            for other in self._imported():
                if other.name != adapter.name:
                    self._give_back(other)
        return self._load(adapter)

    def _give_back(self, adapter: Adapter) -> None:
        module = sys.modules[adapter.module]
        try:
            adapter.synchronize(module)
        except (AttributeError, NotImplementedError) as error:  # another version of it: no reason not to go on
            self._notes[adapter.name] = f"it was not waited for: {type(error).__name__}: {error}"
            return
        except Exception as error:
            raise FrameworkSyncError(f"work of {adapter.name} failed: {type(error).__name__}: {error}") from error
        try:
            self._notes[adapter.name] = adapter.free_cached(module)
        except Exception as error:  # what stays cached is no reason not to go on
            self._notes[adapter.name] = f"its memory was not given back: {type(error).__name__}: {error}"

    # --- importing ---

    def load(self, name: str) -> Any:
        """Imports a framework, or any module, without switching: its module, or its Worker."""
        return self._load(self._adapter(name))

    def _load(self, adapter: Adapter) -> Any:
        if adapter.name in self._placed:
            return self._placed[adapter.name]
        with _IMPORTING:
            if not _is_imported(adapter):
                self._import(adapter)
            return sys.modules[adapter.module]

    def _import(self, adapter: Adapter) -> None:
        if not _is_installed(adapter):
            raise FrameworkNotFound(f"{adapter.name} is not installed here: there is no module {adapter.module}")
        if self._examine:
            self._prepare(adapter)
        self._limit(adapter, adapter.import_module())

    def _limit(self, adapter: Adapter, module: Any) -> None:
        told = self._told.get(adapter.name)
        if told is None or told.call is None:
            return
        try:
            adapter.limit(module, told.call)
        except Exception as error:  # it is imported: that it has no limit is said
            remark = f"its memory is not limited: {type(error).__name__}: {error}"
            self._told[adapter.name] = told._replace(remark=remark, call=None)

    def _prepare(self, adapter: Adapter) -> None:
        judgement = self._judgement_for(adapter)
        if judgement.verdict == "unsound":
            raise FrameworkConflict(adapter.name, self._after(), judgement.findings, self._advice(adapter, judgement), self.worker)
        if judgement.verdict == "unknown" and self._examine == "required":
            raise FrameworkError(f"{adapter.name} was not imported: no prediction could be made: {judgement.reason}")
        if judgement.verdict == "unknown":
            warnings.warn(f"{adapter.name} is imported without a prediction: {judgement.reason}", RuntimeWarning, stacklevel=2)
        self._judged[adapter.name] = judgement
        try:
            RULES.carry_out(judgement.repair)
        except OSError as error:
            raise FrameworkError(f"{adapter.name} was not imported: its repair ({judgement.repair}) failed: {error}") from error

    def _judgement_for(self, adapter: Adapter) -> Judgement:
        """With the others that are to come, where that is sound; else for this one alone."""
        to_come = [self._adapters[name] for name in self._declared if name in self._adapters and name != adapter.name]
        rest = [other.module for other in to_come if other.name not in self._placed and not _is_imported(other) and _is_installed(other)]
        if rest:
            judgement = self._simulate([adapter.module, *rest])
            if judgement.verdict in ("sound", "repaired"):
                return judgement
        return self._simulate([adapter.module])

    def _simulate(self, modules: Sequence[str]) -> Judgement:
        from . import command

        return Simulation(command()).judge(RULES, modules)

    def _after(self) -> list[str]:
        return [adapter.name for adapter in self._imported()]

    def _advice(self, adapter: Adapter, judgement: Judgement) -> list[str]:
        advice = []
        if judgement.at_start is not None:
            names = [*self._after(), adapter.name]
            advice.append(f"Known before the first import it can be repaired ({judgement.at_start}): FrameworkManager(frameworks={names}), "
                          "or start the program with `cohabit run`.")
        advice.append(f"A process of its own is sound if {adapter.name} alone is: manager.worker({adapter.name!r}).")
        return advice

    def _imported(self) -> list[Adapter]:
        """Those that are in this process, whoever imported them, in their order."""
        order = {name: number for number, name in enumerate(list(sys.modules))}
        found = [adapter for adapter in list(self._adapters.values()) if _is_imported(adapter)]
        return sorted(found, key=lambda adapter: order.get(adapter.module, len(order)))

    # --- placing ---

    def auto(self, names: Iterable[str], *, envs: Mapping[str, StrPath] | None = None, **options: Any) -> FrameworkManager:
        """Decides by simulation which of these stay in this process; the others get a worker each. Returns self.

        envs     environments of their workers: {"paddle": "envs/paddle"}; default: this one
        options  for those workers (cohabit.Worker)

        Each stays if it is sound (or can be repaired) beside those before it, and is installed here. Nothing is imported
        yet. manager.paddle, switch_to() and use() give the module or the Worker: isinstance(x, cohabit.Worker) tells.
        """
        here: list[str] = []
        for adapter in [self._adapter(name, must_be_here=name not in (envs or {})) for name in names]:
            if _is_imported(adapter) or self._is_sound(here, adapter):
                here.append(adapter.name)
            else:
                worker = self.worker(adapter.name, **{"env": (envs or {}).get(adapter.name), **options})
                self._placed[adapter.name] = worker
        self._declared = list(dict.fromkeys([*self._declared, *here]))
        return self

    def _is_sound(self, here: Sequence[str], adapter: Adapter) -> bool:
        if not _is_installed(adapter):
            return False
        if not self._examine:
            return True
        to_come = [self._adapters[name].module for name in here if not _is_imported(self._adapters[name])]
        return self._simulate([*to_come, adapter.module]).verdict != "unsound"

    def worker(self, framework: str | None = None, **options: Any) -> Worker:
        """A Worker with these options, closed with the manager."""
        if self._closed:
            raise WorkerError("the manager is closed")
        self._workers.append(Worker(framework, **options))
        return self._workers[-1]

    # --- looking, sharing ---

    def report(self) -> Report:
        """What is where: versions, devices, memory in bytes, budgets, repairs; str() of it is a table."""
        names = dict.fromkeys([*(adapter.name for adapter in self._imported()), *self._declared, *self._placed, *self._judged])
        frameworks = {}
        for name in names:
            adapter = self._adapters[name]
            module = sys.modules[adapter.module] if _is_imported(adapter) else None
            frameworks[name] = report_on(adapter, module, self._placed.get(name), self._told.get(name), self._judged.get(name),
                                         self._notes.get(name, ""))
        return Report(os.getpid(), self.current, frameworks, device_memory())

    def share(self, value: Any, *, to: str) -> _dlpack.Shared:
        """A tensor as one of another framework ("numpy" too), by DLPack: (tensor, copied, how).

        copied is False if both lie in the same memory, then a change in one is seen in the other. Elements on the CPU that
        are not one after the other, where the framework refuses that, are copied (of types that NumPy knows). A framework that makes other elements of
        them (JAX without jax_enable_x64: int32 of int64) is warned of (RuntimeWarning), and `how` says so. On a device, all
        work of the producer is waited for first. Raises TypeError if one of the two does not speak DLPack, and what they
        raise.
        """
        consumer = self._adapter(to)
        module = self._load(consumer)
        if isinstance(module, Worker):
            raise TypeError(f"{to} is in a worker: pass the tensor as an argument of its call()")
        exporter = self._exporter(value)
        if not hasattr(exporter, "__dlpack__"):
            raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} has no __dlpack__")
        tap = _dlpack.Tap(exporter, getattr(consumer, "takes_backwards", False))
        if tap.__dlpack_device__()[0] != _dlpack.CPU:
            self._wait_for(value)
        try:
            tensor = consumer.from_dlpack(module, tap)
        except Exception:
            compact = tap.compacted()
            if compact is None:
                raise
            tap, tensor = compact, consumer.from_dlpack(module, compact)
        return _dlpack.judge(tap, tensor, consumer.exporter(module, tensor))

    def _producer(self, value: Any) -> Adapter | None:
        root = type(value).__module__.partition(".")[0]
        root = {"jaxlib": "jax"}.get(root, root)
        return next((adapter for adapter in self._imported() if adapter.module == root), None)

    def _exporter(self, value: Any) -> Any:
        producer = self._producer(value)
        return producer.exporter(sys.modules[producer.module], value) if producer else value

    def _wait_for(self, value: Any) -> None:
        producer = self._producer(value)
        if producer is not None:
            producer.synchronize(sys.modules[producer.module])

    # --- names ---

    def _adapter(self, name: str, must_be_here: bool = True) -> Adapter:
        """By its name or an alias; any module that is installed is one of which nothing more is known."""
        name = self._aliases.get(name, name)
        if name not in self._adapters:
            adapter = ModuleAdapter(name)
            if must_be_here and not _is_installed(adapter):
                raise FrameworkNotFound(f"no framework {name!r}; known are: {', '.join(sorted(self._adapters))}, and modules "
                                        "that are installed")
            self._adapters[name] = adapter
        return self._adapters[name]

    def __getattr__(self, name: str) -> Any:
        # manager.switch_to_paddle(), manager.paddle; only for names that are known.
        if not name.startswith("_"):
            wanted = name[len("switch_to_"):] if name.startswith("switch_to_") else name
            if self._aliases.get(wanted, wanted) in self._adapters:
                return self.load(wanted) if wanted == name else partial(self.switch_to, wanted)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._adapters, *(f"switch_to_{name}" for name in self._adapters)]

    # --- the end ---

    def close(self, timeout: float = 5) -> None:
        """Closes all workers; `timeout` seconds for all of them together. What was imported stays."""
        self._closed = True
        end = time.monotonic() + timeout
        for worker in self._workers:
            worker._pool.request_close_at(end)
        for worker in self._workers:
            worker.close(max(end - time.monotonic(), 0))

    def __enter__(self) -> FrameworkManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


GPUFrameworkManager = FrameworkManager


class _LazyModule(types.ModuleType):
    """Stands for a module until something of it is used."""

    def __init__(self, name: str, manager: FrameworkManager | None) -> None:
        super().__init__(name)
        self.__dict__["_cohabit"] = (name, manager)

    def __getattr__(self, name: str) -> Any:
        which, manager = self.__dict__["_cohabit"]
        if name == "__path__":  # asked by the import system; an answer would import it
            raise AttributeError(name)
        return getattr((manager or _own_manager()).load(which), name)

    def __setattr__(self, name: str, value: Any) -> None:
        which, manager = self.__dict__["_cohabit"]
        setattr((manager or _own_manager()).load(which), name, value)

    def __delattr__(self, name: str) -> None:
        which, manager = self.__dict__["_cohabit"]
        delattr((manager or _own_manager()).load(which), name)

    def __dir__(self) -> list[str]:
        which, manager = self.__dict__["_cohabit"]
        return dir((manager or _own_manager()).load(which))

    def __repr__(self) -> str:
        return f"<cohabit.lazy {self.__dict__['_cohabit'][0]}>"


def lazy(name: str, manager: FrameworkManager | None = None) -> Any:
    """A stand-in for a module that is imported when something of it is first used, examined like all others.

    manager  imports it; default: one for all lazy modules. Raises there what FrameworkManager.load() raises.
    """
    return _LazyModule(name, manager)


_MANAGER: list[FrameworkManager] = []


def _own_manager() -> FrameworkManager:
    with _IMPORTING:
        if not _MANAGER:
            _MANAGER.append(FrameworkManager())
        return _MANAGER[0]


def _is_imported(adapter: Adapter) -> bool:
    """Whether its module is there, whole: an import that another thread is still running does not count."""
    module = sys.modules.get(adapter.module)
    if module is None:
        return False
    spec = getattr(module, "__spec__", None)
    return not getattr(spec, "_initializing", False)


def _is_installed(adapter: Adapter) -> bool:
    if adapter.module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(adapter.module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False
