"""Shares of a device's memory, told to frameworks by their own environment variables."""
from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ._manager_errors import FrameworkError
from .adapters import Adapter, Budget

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


class Told(NamedTuple):
    """What became of one budget."""

    budget: Budget
    environ: dict[str, str]  # variables that were set
    remark: str  # what could not be told, and why; "" if nothing
    call: float | None = None  # to be told by a call after the import: a share, or bytes above 1


def budget_of(name: str, share: str | float | int) -> Budget:
    """0.4, "40%", "8GiB", 8589934592 -> a budget. A number up to 1 is a share, a larger one bytes."""
    amount, unit = _parse(name, share)
    if unit == "%":
        return _share(name, share, amount / 100)
    if unit is None and amount <= 1:
        return _share(name, share, amount)
    size = amount * _UNITS[unit or ""]
    if not 2**20 <= size < 2**60:  # less is a slip: 1.5 for 150 %
        raise _refuse(name, share)
    return Budget(None, int(size))


def _parse(name: str, share: str | float | int) -> tuple[float, str | None]:
    if isinstance(share, (int, float)) and not isinstance(share, bool):
        return float(share), None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%|[KMGT]?I?B)?\s*", share, re.I) if isinstance(share, str) else None
    if match is None or (match[2] or "").upper() == "IB":
        raise _refuse(name, share)
    return float(match[1]), match[2].upper() if match[2] else None


def _share(name: str, share: object, fraction: float) -> Budget:
    if not 0 < fraction <= 1:
        raise _refuse(name, share)
    return Budget(fraction, None)


def _refuse(name: str, share: object) -> FrameworkError:
    return FrameworkError(f"memory of {name} is {share!r}: expected a share (0.4 or '40%') or a size ('8GiB', or bytes)")


def tell_all(budgets: Sequence[tuple[Adapter, Budget]], command: str) -> dict[str, Told]:
    """Sets the variables, by framework. One that is set already is left: the user's word is the last."""
    if not budgets:
        return {}
    with ThreadPoolExecutor(len(budgets)) as threads:  # each waits for a process
        told = list(threads.map(lambda pair: _settle(pair[0], pair[1], command), budgets))
    for one in told:
        os.environ.update(one.environ)
    return {adapter.name: one for (adapter, _), one in zip(budgets, told)}


def _settle(adapter: Adapter, budget: Budget, command: str) -> Told:
    if adapter.module in sys.modules:
        return Told(budget, {}, f"{adapter.name} was imported before: too late for a variable")
    setting = adapter.setting(budget)
    if setting is None:
        try:
            return _ask(adapter.name, budget, command)
        except (OSError, subprocess.SubprocessError) as error:
            return Told(budget, {}, f"no setting was found: {error}")
    remarks = [setting.remark] if setting.remark else []
    taken = [name for name, value in setting.environ.items() if os.environ.get(name, value) != value]
    remarks += [f"{name} is set already and stays as it is" for name in taken]
    return Told(budget, {name: value for name, value in setting.environ.items() if name not in taken}, "; ".join(remarks))


def _ask(name: str, budget: Budget, command: str) -> Told:
    """What `cohabit run --gpu-memory` would set: it knows the settings (data/memory_settings.tsv) and looks which of them
    the files that are installed here read."""
    share = f"{budget.fraction * 100:g}%" if budget.fraction is not None else f"{(budget.bytes or 0) >> 20}MiB"
    line = [command, "run", "--repair", "none", "--gpu-memory", f"{name}={share}", "--dry-run", "--", sys.executable, "-c", "pass"]
    answer = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
    said = [text.partition(": ")[2] or text for text in answer.stderr.decode(errors="replace").splitlines()]
    if answer.returncode:
        return Told(budget, {}, " ".join(said) or f"cohabit run ended with status {answer.returncode}")
    environ, call = {}, None
    for text in answer.stdout.decode(errors="replace").splitlines():
        setting, _, reason = text.partition("  # ")
        variable, _, value = (shlex.split(setting) or [""])[0].partition("=")
        if reason.startswith("the share of "):
            environ[variable] = value
        elif variable == "COHABIT_GPU_MEMORY":
            call = float(value.partition("=")[2])
    remarks = [text for text in said if not text.startswith(("sets ", "a start-up hook "))]
    return Told(budget, environ, "; ".join(remarks), call)
