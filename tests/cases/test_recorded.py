"""What a recorded `python -c` was asked to import, and what follows from that for the judgement."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402
from test_surface import run  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
# A library's references to itself are split when libframework is first (cb101_inside), and libuser enters it.
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
file {SITE}/framework/__init__.py
file {SITE}/user/__init__.py
lib env/lib/libsmall.so.1
  defs init reset run finish crc
  refs init reset run crc
lib {SITE}/framework/libframework.so
  needed libsmall.so.1
  defs init reset run unrelated
  refs init
  set {{"runpath": "$ORIGIN/../../.."}}
lib {SITE}/user/libuser.so
  needed libsmall.so.1
  refs init finish
  set {{"runpath": "$ORIGIN/../../.."}}
dist {SITE} framework 1.0
  lists framework/libframework.so
dist {SITE} user 1.0
  lists user/libuser.so
"""
CALLS = f"""open {SITE}/framework/libframework.so
open {SITE}/user/libuser.so
ended 0
"""


def replayed(cohabit: str, world: Path, arguments: list[str], calls: str = CALLS, **variables: str) -> dict:
    """Doctor's report on a trace of the world's Python with these arguments."""
    lines = casefile.make_trace(calls, world / "env/bin/python3", world).splitlines()
    start = json.loads(lines[0])
    start["arguments"] = [start["program"], *arguments]
    trace = world / "a.trace"
    trace.write_text("\n".join([json.dumps(start), *lines[1:]]) + "\n")
    return json.loads(run(cohabit, "doctor", "--replay", trace, "--format", "json", **variables).stdout)


def errors(report: dict) -> list[str]:
    return [f["code"] for f in report["findings"] if f["severity"] == "error"]


@pytest.mark.parametrize("code, imports", [
    ("import framework, user", ["framework", "user"]),
    ("import framework as f, user", ["framework", "user"]),
    ("import framework, \\\n user", ["framework", "user"]),
    ("if 1: import framework, user", ["framework", "user"]),
    ("try:\n  import framework\nfinally:\n  from user import x as y", ["framework", "user"]),
    ("__import__('framework'); exec('import user')", ["framework", "user"]),
    ("import framework, mine", ["framework", "mine"]),  # own code that is not there any more
])
def test_what_was_asked_for_counts(cohabit: str, tmp_path: Path, code: str, imports: list[str]) -> None:
    casefile.build_world(WORLD, tmp_path)
    report = replayed(cohabit, tmp_path, ["-c", code])
    assert report["orders"][0]["imports"] == imports
    assert errors(report) == ["CB101"]


@pytest.mark.parametrize("arguments, imports", [
    (["-Bc", "import framework, os"], ["framework", "os"]),
    (["-X", "utf8", "-Wignore", "-cimport framework, os"], ["framework", "os"]),
    (["-W", "-c", "-c", "import framework"], ["framework"]),
    (["app.py", "-c", "import framework"], []),  # the script's own -c
    (["-m", "framework", "-c", "import framework"], []),
    (["-c", "exec(open('x').read()); import framework"], []),  # only the running code knows
    (["-c", "def use(): import user\nimport framework"], []),  # and whether it calls that
])
def test_where_the_code_stands(cohabit: str, tmp_path: Path, arguments: list[str], imports: list[str]) -> None:
    casefile.build_world(WORLD, tmp_path)
    report = replayed(cohabit, tmp_path, arguments)
    assert report["orders"][0]["imports"] == imports
    assert errors(report) == ([] if imports else ["CB101"])  # user is asked for, or may be


def test_what_nobody_asked_for_sleeps(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(WORLD, tmp_path)
    # os is of the standard library, no own code
    assert errors(replayed(cohabit, tmp_path, ["-c", "import framework, os"])) == []


@pytest.mark.parametrize("source, asks", [
    ("import framework", False),
    ("def use():\n    if never:\n        from user import reset", True),
    ("import helpers", True),                     # a module beside it, which imports user
    ("from package import part", True),           # a package's module, with a relative import
    ("from package import nothing", False),
    ("__import__('us' + 'er')", True),            # it does not say what
    ("model.eval()", False),
    ("exec('import user')", True),
])
def test_own_code_says_what_it_asks_for(cohabit: str, tmp_path: Path, source: str, asks: bool) -> None:
    casefile.build_world(WORLD, tmp_path)
    own = tmp_path / "work"
    for name, text in {"mine": source, "helpers": "import user.sub", "package/__init__": "",
                       "package/part": "from .deep import x", "package/deep": "import user"}.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / f"{name}.py").write_text(text + "\n")
    report = replayed(cohabit, tmp_path, ["-c", "import framework, mine"], PYTHONPATH=str(own))
    assert errors(report) == (["CB101"] if asks else [])


def test_files_of_the_environment_count_for_a_recording(cohabit: str, tmp_path: Path) -> None:
    """A file of a distribution is gone; the run did not need it, so it is no error."""
    casefile.build_world(WORLD + "  claims user/data.txt text\n", tmp_path)
    report = replayed(cohabit, tmp_path, ["-c", "import framework, os"])
    assert [f["code"] for f in report["findings"] if f["code"].startswith("FI")] == ["FI002"]


def traced(cohabit: str, *words: str, **rest) -> dict:
    """Doctor's report on a run of the Python that runs the tests, made now."""
    return json.loads(run(cohabit, "doctor", sys.executable, *words, "--trace", "--format", "json", **rest).stdout)


def test_an_unexplained_failure_is_planned(cohabit: str) -> None:
    """The run ended with an exception that no open explains; the names that are there tell which."""
    report = traced(cohabit, "--imports", "json,pytset")
    finding, = [f for f in report["findings"] if f["severity"] == "error"]
    assert finding["code"] == "PY302" and "No module named 'pytset'" in finding["headline"]
    assert "did you mean pytest" in finding["help"][0]["text"]
    assert report["orders"][0]["findings"] == [finding["id"]]
    report = traced(cohabit, "--imports", "json.decoders")
    assert "json is there" in next(f for f in report["findings"] if f["code"] == "PY302")["help"][0]["text"]


@pytest.mark.parametrize("source", [
    "import mine; mine.fall()",                                          # beside the script
    "import sys; sys.path.insert(0, 'sub'); import deep; deep.fall()",
    "def use():\n    import absent_here\nraise SystemExit(4)",
    "import typing\nif typing.TYPE_CHECKING:\n    import absent_here\nraise SystemExit(4)",
])
def test_what_did_not_fail_is_not_blamed(cohabit: str, tmp_path: Path, source: str) -> None:
    (tmp_path / "sub").mkdir()
    for file in ("mine.py", "sub/deep.py"):
        (tmp_path / file).write_text("def fall():\n    raise ValueError\n")
    (tmp_path / "app.py").write_text(source + "\n")
    assert errors(traced(cohabit, "app.py", cwd=tmp_path)) == ["PY301"]


def test_an_end_because_of_a_failed_import_is_explained(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("try:\n    import absent_here\nexcept ImportError:\n    raise SystemExit(3)\n")
    report = traced(cohabit, "app.py", cwd=tmp_path)
    assert errors(report) == ["PY302"] and "raised for ModuleNotFoundError: No module named 'absent_here'" in str(report)


def test_a_run_of_another_time_is_not_planned(cohabit: str, tmp_path: Path) -> None:
    """What a replayed run found in PYTHONPATH and its directory is not recorded."""
    casefile.build_world(WORLD, tmp_path)
    assert errors(replayed(cohabit, tmp_path, ["-c", "import absent_now"], "ended 256\n")) == ["PY301"]


def test_a_process_that_cannot_start_here(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(WORLD, tmp_path)
    trace = tmp_path / "a.trace"
    lines = casefile.make_trace(CALLS.replace("ended 0", "ended 256"), tmp_path / "env/bin/python3", tmp_path).splitlines()
    for change in ({"machine": "aarch64"}, {"program": "/nonexistent/python", "executable": "/nonexistent/python"}):
        trace.write_text("\n".join([json.dumps({**json.loads(lines[0]), **change}), *lines[1:]]) + "\n")
        report = json.loads(run(cohabit, "doctor", "--replay", trace, "--format", "json").stdout)
        finding, = [f for f in report["findings"] if f["severity"] == "error"]
        assert finding["code"] == "PY301" and "would not start" in finding["headline"]


@pytest.mark.parametrize("arguments, title", [
    (["-m", "framework.run", "--token", "secret"], "python -m framework.run"),
    (["-B", "app.py", "-c", "x"], "python app.py"),
])
def test_recorded_programs_have_their_name(cohabit: str, tmp_path: Path, arguments: list[str], title: str) -> None:
    casefile.build_world(WORLD, tmp_path)
    report = replayed(cohabit, tmp_path, arguments)
    assert report["orders"][0]["program"] == title and "secret" not in json.dumps(report)


def test_an_environment_has_many_names(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(WORLD, tmp_path)
    trace = tmp_path / "a.trace"
    trace.write_text(casefile.make_trace("ended 0\n", tmp_path / "env/bin/python3", tmp_path))
    (tmp_path / "link").symlink_to("env")
    for name in (tmp_path / "link", tmp_path / "env/bin/..", "env"):
        run(cohabit, "doctor", name, "--replay", trace, cwd=tmp_path, code=0)
