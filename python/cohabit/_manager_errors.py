"""What can go wrong with frameworks in one process, as exceptions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._worker_errors import CohabitError


class FrameworkError(CohabitError):
    """Every exception of the manager; its message is one sentence."""


class FrameworkBusy(FrameworkError, TimeoutError):
    """Other threads use another framework: `timeout` seconds went by, or waiting would never end."""


class FrameworkNotFound(FrameworkError, ImportError):
    """No framework of this name is known, or it is not installed."""


class FrameworkSyncError(FrameworkError):
    """A framework's own work failed while it was waited for; __cause__ is its exception. Nothing was switched."""


class FrameworkConflict(FrameworkError, ImportError):
    """A framework was not imported, because the simulation says what would clash.

    framework  which one
    after      the frameworks that are imported already
    code       of the finding: `cohabit explain CODE`
    library    the library that serves others in place of their own, or None
    headline   the finding in one sentence
    findings   all new errors, as in the JSON report of `cohabit doctor`
    advice     what can be done instead, in sentences
    """

    def __init__(self, framework: str, after: Sequence[str], findings: Sequence[dict[str, Any]], advice: Sequence[str],
                 make_worker: Callable[..., Any]):
        first = findings[0]
        self.framework, self.after, self.findings, self.advice = framework, list(after), list(findings), list(advice)
        self.code, self.headline, self.library = first["code"], first["headline"], _culprit(first)
        self._make_worker = make_worker
        behind = f" after {', '.join(after)}" if after else ""
        super().__init__(f"{framework} was not imported{behind}: {self.code}, {self.headline}"
                         + (f" (by {self.library})" if self.library else "") + ". " + " ".join(advice))

    def worker(self, **options: Any) -> Any:
        """The framework in a process of its own: manager.worker(framework, **options); default: this environment's Python."""
        return self._make_worker(self.framework, **options)


def _culprit(finding: dict[str, Any]) -> str | None:
    captured = [row for row in finding["evidence"] if row["kind"] == "captured" and row.get("library")]
    most = max(captured, key=lambda row: row.get("count", 0), default=None)
    if most is not None:
        return str(most["library"])
    return finding["libraries"][0]["path"] if finding["libraries"] else None
