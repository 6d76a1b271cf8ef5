"""Files that installers do not read themselves: projects, locks, conda's environments."""
from __future__ import annotations

from pathlib import Path

import index as made
import pytest

UV_LOCK = """version = 1
[[package]]
name = "project"
version = "0"
source = { editable = "." }
dependencies = [{ name = "one", extra = ["more"] }, { name = "elsewhere", marker = "sys_platform == 'win32'" }]
[[package]]
name = "one"
version = "1"
source = { registry = "x" }
dependencies = [{ name = "two" }]
[package.optional-dependencies]
more = [{ name = "three" }]
[[package]]
name = "two"
version = "2"
[[package]]
name = "three"
version = "3"
[[package]]
name = "elsewhere"
version = "1"
[[package]]
name = "unrelated"
version = "1"
"""
POETRY_LOCK = """[[package]]
name = "one"
version = "1"
optional = false
groups = ["main"]
[[package]]
name = "two"
version = "2"
optional = false
[[package]]
name = "three"
version = "3"
optional = false
groups = ["main", "dev"]
markers = "python_version > '3'"
[[package]]
name = "unrelated"
version = "1"
optional = false
groups = ["dev"]
[[package]]
name = "elsewhere"
version = "1"
optional = false
groups = ["main"]
markers = "sys_platform == 'win32'"

[metadata]
lock-version = "2.1"
python-versions = ">=3.9"
content-hash = "0"
"""
PYLOCK = """lock-version = "1.0"
created-by = "test"
packages = [ {packages} ]
"""
PROJECT = """[project]
name = "project"
version = "1"
dependencies = ["one[more]", "elsewhere ; sys_platform == 'win32'"]
"""
CONDA = """name: x
channels: [conda-forge]
dependencies:
  - python=3.11
  - pip
  - &anchor
    pip:
      - one[more]
      - --not-a-requirement
"""


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pylock.toml", "pyproject.toml", "environment.yml"])
def test_a_file(environment, ask, tmp_path: Path, name: str):
    wheels = tmp_path / "wheels"
    made.make_wheel(wheels, "one", "1", requires=("two", "three ; extra == 'more'"))
    made.make_wheel(wheels, "one", "9")  # newer than what is locked
    paths = [made.make_wheel(wheels, "two", "2"), made.make_wheel(wheels, "three", "3"),
             wheels / "one-1-py3-none-any.whl"]
    for other in ("elsewhere", "unrelated"):
        made.make_wheel(wheels, other, "1")
    packages = ", ".join(
        f'{{ name = "{path.name.split("-")[0]}", version = "{path.name.split("-")[1]}", wheels = '
        f'[{{ path = "wheels/{path.name}", hashes = {{ sha256 = "{made.sha256(path)}" }} }}] }}' for path in paths)
    text = {"uv.lock": UV_LOCK, "poetry.lock": POETRY_LOCK, "pylock.toml": PYLOCK.replace("{packages}", packages),
            "pyproject.toml": PROJECT, "environment.yml": CONDA}[name]
    (tmp_path / name).write_text(text)
    report = ask(environment, "-r", tmp_path / name, "--no-index", "--find-links", wheels)
    locked = name not in ("pyproject.toml", "environment.yml")
    found = {one["name"]: one["to"] for one in report["changes"]}
    assert found == ({"one": "1", "two": "2", "three": "3"} if locked else {"one": "9"})
    if name == "environment.yml":
        assert any("2 conda packages" in text for text in report["unknowns"])


def locked(*packages: str, table: str = "package", head: str = "", tail: str = "") -> str:
    """Each package as "name: lines of TOML"."""
    text = head
    for package in packages:
        name, more = package.split(":", 1)
        text += f'[[{table}]]\nname = "{name}"\nversion = "1"\n{more.strip()}\n'
    return text + tail


OF_OTHERS = {
    # Before Poetry 1.5 a package has one category; since 2.0 a marker for each group.
    "poetry.lock": locked("one: category = 'main'", "two: category = 'dev'",
                          "three: groups = ['main', 'dev']\nmarkers = {main = \"python_version < '3'\", dev = \"python_version > '3'\"}",
                          tail="[metadata]\n"),
    "pylock.toml": locked("one: marker = \"'base' in dependency_groups\"", "two: marker = \"'dev' in dependency_groups\"",
                          "three: marker = \"'x' in extras\"", table="packages",
                          head="lock-version = '1.0'\ncreated-by = 'x'\nextras = ['x']\ndependency-groups = ['base', 'dev']\n"
                               "default-groups = ['base']\n"),
    # A workspace without a project at its root: all members are installed, and nothing else.
    "uv.lock": locked("member: source = {editable = 'packages/member'}\ndependencies = [{name = 'one'}]",
                      "one: source = {registry = 'x'}", "two: source = {registry = 'x'}",
                      head="version = 1\n[manifest]\nmembers = ['member']\n"),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_what_a_lock_has_for_others(ask, tmp_path: Path, name: str):
    environment = made.Environment(tmp_path / "env", "pip")
    for one in ("one", "two", "three"):
        made.make_wheel(tmp_path / "wheels", one, "1")
    (tmp_path / name).write_text(OF_OTHERS[name])
    report = ask(environment, "-r", tmp_path / name, "--no-index", "--find-links", tmp_path / "wheels")
    assert [one["name"] for one in report["changes"]] == ["one"]


ELSEWHERE = {
    "poetry.lock": locked("one: groups = ['main']", "two: groups = ['main']\n[package.source]\ntype = 'git'\nurl = 'https://x/y'",
                          tail="[metadata]\n"),
    "pylock.toml": locked("one:", "two: directory = {path = 'two'}", table="packages", head="lock-version = '1.0'\n"),
    "uv.lock": locked("project: source = {virtual = '.'}\ndependencies = [{name = 'two'}]", "one: source = {registry = 'x'}",
                      "two: source = {editable = 'two'}\ndependencies = [{name = 'one'}]"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_not_from_an_index_is_left_out(ask, tmp_path: Path, name: str):
    environment = made.Environment(tmp_path / "env", "pip")
    made.make_wheel(tmp_path / "wheels", "one", "1")
    made.make_wheel(tmp_path / "wheels", "two", "1", {"another": b""})  # of the same name
    (tmp_path / name).write_text(ELSEWHERE[name])
    report = ask(environment, "-r", tmp_path / name, "--no-index", "--find-links", tmp_path / "wheels")
    assert [one["name"] for one in report["changes"]] == ["one"]
    assert any("not from an index: two" in text for text in report["unknowns"])


def test_a_requirements_file_in_a_pip_section(environment, ask, tmp_path: Path):
    for one in ("one", "two"):
        made.make_wheel(tmp_path / "wheels", one, "1")
    (tmp_path / "environment.yml").write_text("dependencies: [python, {pip: [-r more.txt, two]}]\n")
    (tmp_path / "more.txt").write_text("--index-url http://127.0.0.1:1/\none\n")
    report = ask(environment, "-r", tmp_path / "environment.yml", "--no-index", "--find-links", tmp_path / "wheels")
    assert {one["name"] for one in report["changes"]} == {"one", "two"}
    assert any("1 entry is no requirement by name, and left out: --index-url http" in text for text in report["unknowns"])


@pytest.mark.parametrize("constraints, taken", [("one<2", True), ("--index-url http://127.0.0.1:1/\none<2", False)])
def test_constraints_in_a_pip_section(environment, ask, tmp_path: Path, constraints: str, taken: bool):
    """Files that a file names lie beside it. One that holds more than constraints is left out, and named."""
    for version in ("1", "2"):
        made.make_wheel(tmp_path / "wheels", "one", version)
    made.make_wheel(tmp_path / "wheels", "two", "1")
    project = tmp_path / "project"
    project.mkdir()
    (project / "environment.yml").write_text("dependencies: [python, {pip: [two, -r base.txt]}]\n")
    (project / "base.txt").write_text("-c cons.txt\none\n")
    (project / "cons.txt").write_text(constraints + "\n")
    report = ask(environment, "-r", project / "environment.yml", "--no-index", "--find-links", tmp_path / "wheels")
    assert {one["name"]: one["to"] for one in report["changes"]} == {"one": "1" if taken else "2", "two": "1"}
    assert any("left out: -c " in text and "cons.txt" in text for text in report["unknowns"]) != taken


def test_a_project_of_poetry(environment, check, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[tool.poetry]\nname = "x"\nversion = "1"\n[tool.poetry.dependencies]\npython = "^3.8"\none = "^1"\n')
    done = check(environment, "-r", tmp_path / "pyproject.toml", "--no-index", code=2)
    assert "Poetry's" in done.stderr and "poetry.lock" in done.stderr and "<0" not in done.stderr


def test_how_builds_are_prevented_is_not_told_as_a_requirement(check, tmp_path: Path):
    environment = made.Environment(tmp_path / "env", "uv")
    project = tmp_path / "project"
    project.mkdir()
    (project / "setup.py").write_text("raise SystemExit(1)\n")
    for words in (("-r", project / "pyproject.toml"), ("-e", project)):
        (project / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\ndynamic = ["dependencies"]\n')
        done = check(environment, *words, "--no-index", code=2)
        assert "<0" not in done.stderr and "--allow-build" in done.stderr, done.stderr


@pytest.mark.parametrize("name,text", [
    ("uv.lock", '[[package]]\nname = "--index-url=http://127.0.0.1:1/"\nversion = "1"\nsource = { virtual = "." }\n'),
    ("poetry.lock", '[[package]]\nname = "--index-url=http://127.0.0.1:1/"\nversion = "1"\n[metadata]\n'),
    ("poetry.lock", "not toml ["), ("uv.lock", ""), ("environment.yml", "a: [b"), ("environment.yml", "*a"),
    ("environment.yml", "dependencies: 3"),
])
def test_a_hostile_file(check, tmp_path: Path, name: str, text: str):
    environment = made.Environment(tmp_path / "env", "uv")
    (tmp_path / name).write_text(text)
    done = check(environment, "-r", tmp_path / name, "--no-index", code=2)
    assert name in done.stderr


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock"])
def test_a_lock_that_was_cut_short(check, tmp_path: Path, name: str):
    """Cut between two packages it is TOML still, and would say that less is installed."""
    environment = made.Environment(tmp_path / "env", "uv")
    text = {"uv.lock": UV_LOCK, "poetry.lock": POETRY_LOCK}[name]
    end = text.rindex("[[package]]", 0, text.index('name = "three"' if name == "uv.lock" else "[metadata]"))
    (tmp_path / name).write_text(text[:end])
    done = check(environment, "-r", tmp_path / name, "--no-index", code=2)
    assert "was cut short" in done.stderr and name in done.stderr


def pylock_of(tmp_path: Path, head: str) -> Path:
    wheel = made.make_wheel(tmp_path / "wheels", "one", "1")
    path = tmp_path / "pylock.toml"
    path.write_text(f"""{head}created-by = "test"
[[packages]]
name = "one"
version = "1"
wheels = [{{ path = "wheels/{wheel.name}", hashes = {{ sha256 = "{made.sha256(wheel)}" }} }}]
""")
    return path


@pytest.mark.parametrize("head,found", [
    ('lock-version = "9.9"\n', 'found "9.9", line 1'), ('lock-version = "0.1"\n', 'found "0.1", line 1'),
    ('# made by hand\nlock-version = "1"\n', 'found "1", line 2'), ("lock-version = 1.0\n", "that is no string, line 1"),
    ("", "found no lock-version"), (f'lock-version = "{"1" * 10000}.0"\n', 'found "1111111111111111"')])
def test_a_pylock_of_another_major_version(environment, check, tmp_path: Path, head: str, found: str):
    """PEP 751: a tool raises an error. What its keys mean is not known."""
    path = pylock_of(tmp_path, head)
    done = check(environment, "-r", path, "--no-index", "--find-links", tmp_path / "wheels", code=2)
    assert f"{path}: expected lock-version = \"1.0\"" in done.stderr and "1.x" in done.stderr and found in done.stderr, done.stderr


def test_a_pylock_of_a_newer_minor_version(environment, ask, tmp_path: Path):
    """PEP 751: a warning, and it is read."""
    path = pylock_of(tmp_path, 'lock-version = "1.7"\n')
    report = ask(environment, "-r", path, "--no-index", "--find-links", tmp_path / "wheels", code=None)
    assert [one["name"] for one in report["changes"]] == ["one"]
    assert any("lock-version is 1.7 (line 1), and 1.0 is known here" in text for text in report["unknowns"])
