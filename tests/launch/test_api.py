"""`cohabit.verify()`: the command's report as Python values."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))
import cohabit as package  # noqa: E402


@pytest.fixture
def verify(cohabit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The function, with the command under test; modules of tmp_path can be imported in its children."""
    monkeypatch.setattr(package, "command", lambda: cohabit)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "calm_module.py").write_text("import os; __version__ = os.environ.get('FROM_RULES', '1.2')\n")
    (tmp_path / "failing_module.py").write_text("raise ValueError('not today')\n")
    return package.verify


def test_what_was_run_and_how_it_ended(verify) -> None:
    report = verify(sys.executable, imports=["calm_module", "failing_module"])
    assert report["schema_version"] == 1 and report["environment"]["program"] == sys.executable
    (run,) = report["runs"]
    assert run["imports"] == ["calm_module", "failing_module"] and run["outcome"] == "exception"
    assert "not today" in run["detail"] and run["versions"] == {"calm_module": "1.2"}


def test_repairs_and_arguments(verify, tmp_path: Path) -> None:
    rules = tmp_path / "the rules"
    rules.write_text("cohabit-rules 1\nenvironment FROM_RULES=yes\n")
    (run,) = verify(Path(sys.executable), imports="calm_module", repair=rules)["runs"]
    assert run["outcome"] == "ok" and run["versions"] == {"calm_module": "yes"}
    orders = [run["imports"] for run in verify(sys.executable, arguments=["--with", "calm_module,json"])["runs"]]
    assert orders == [["calm_module"], ["json"], ["calm_module", "json"], ["json", "calm_module"]]


def test_what_cannot_be_done_is_an_exception(verify) -> None:
    with pytest.raises(package.CohabitError, match="no/such"):
        verify("/no/such/environment", imports=["json"])
