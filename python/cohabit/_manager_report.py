"""What manager.report() gives: data, and a table made of it."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._budgets import Told
from ._simulation import Judgement
from .adapters import Adapter, Memory


@dataclass(frozen=True)
class FrameworkReport:
    """One framework; sizes in bytes.

    state       "imported", "worker" or "not imported"
    version     what the loaded module says
    devices     that it could use, as far as it tells without setting one up
    memory      of each device that it uses: held by objects, cached for later (None: it does not tell)
    prediction  "sound", "repaired", "unknown"; "" if it was not examined
    repair      what was changed for it, or ""
    budget      environment variables that tell its budget
    remarks     what could not be done or found out, in sentences
    """

    name: str
    state: str
    version: str | None = None
    devices: list[str] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    prediction: str = ""
    repair: str = ""
    budget: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """All frameworks, and the devices as NVML sees them (all processes together; empty without a driver)."""

    pid: int
    current: str | None
    frameworks: dict[str, FrameworkReport]
    devices: list[dict[str, Any]]

    def __str__(self) -> str:
        rows = [("framework", "state", "version", "devices", "held", "cached", "prediction")]
        for one in self.frameworks.values():
            held, cached = _total(one.memory, "held"), _total(one.memory, "cached")
            mark = " *" if one.name == self.current else ""
            rows.append((one.name + mark, one.state, one.version or "", " ".join(one.devices), held, cached, one.prediction))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        for one in self.frameworks.values():
            lines += [f"{one.name}: {text}" for text in ([one.repair] if one.repair else []) + one.remarks]
        lines += [f"GPU {d['index']} {d['name']}: {size(d['used'])} of {size(d['total'])} used" for d in self.devices]
        return "\n".join(lines)


def size(count: int | None) -> str:
    """1536 -> "1.5 KiB"; None -> "?"."""
    if count is None:
        return "?"
    number, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while number >= 1024 and len(units) > 1:
        number, units = number / 1024, units[1:]
    return f"{number:.{0 if units[0] == 'B' else 1}f} {units[0]}"


def _total(memory: list[Memory], name: str) -> str:
    values = [getattr(one, name) for one in memory]
    if not values:
        return ""
    return size(None if None in values else sum(values))


def report_on(adapter: Adapter, module: Any, worker: Any, told: Told | None, judged: Judgement | None, note: str) -> FrameworkReport:
    remarks = [text for text in (told.remark if told else "", note) if text]
    state = "worker" if worker is not None else "imported" if module is not None else "not imported"
    asked: dict[str, Any] = {"version": None, "devices": [], "memory": []}
    if state == "imported":
        for name in asked:
            asked[name] = _ask(getattr(adapter, name), module, asked[name], remarks)
    if told is not None and told.call is not None:
        remarks.append("its budget is told by a call " + ("when it sets its devices up" if state == "imported" else "after its import"))
    if state == "worker":
        remarks.append(f"{worker!r}")
    if judged is not None and judged.reason:
        remarks.append(judged.reason)
    return FrameworkReport(adapter.name, state, prediction=judged.verdict if judged else "", repair=str(judged.repair) if judged else "",
                           budget=dict(told.environ) if told else {}, remarks=remarks, **asked)


def _ask(question: Callable[[Any], Any], module: Any, default: Any, remarks: list[str]) -> Any:
    """A report is made whatever one framework raises."""
    try:
        return question(module)
    except Exception as error:
        remarks.append(f"{question.__name__} is not known: {type(error).__name__}: {error}")
        return default
