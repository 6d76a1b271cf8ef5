"""What surrounds the findings: formats for machines, configuration, baselines, hostile names, secrets."""
from __future__ import annotations

import fcntl
import json
import os
import platform
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
file env/lib/python3.11/random.py
file {SITE}/first/__init__.py import absent
file {SITE}/second/__init__.py from first import x
"""
WITHOUT_FRAMEWORK = f"""program env/bin/python3
file env/lib/python3.11/os.py
file {SITE}/plain/__init__.py x = 1
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    casefile.build_world(WORLD, tmp_path / "world")
    return tmp_path / "world"


def run(cohabit: str, *words: str | Path, cwd: Path | None = None, code: int | None = None,
        **variables: str) -> subprocess.CompletedProcess:
    done = subprocess.run([cohabit, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=60,
                          env={"PATH": os.environ["PATH"], **variables})
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done


def report(cohabit: str, *words: str | Path, **rest) -> dict:
    return json.loads(run(cohabit, "doctor", *words, "--format", "json", **rest).stdout)


# --- SARIF

def check_sarif(sarif: dict) -> None:
    """What the specification (SARIF 2.1.0, sections 3.13 to 3.28) requires of what is there."""
    assert sarif["version"] == "2.1.0"
    for one in sarif["runs"]:
        driver = one["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"] and rule["help"]["text"]
        bases = one.get("originalUriBaseIds", {})
        for base in bases.values():
            assert base["uri"].startswith("file:///") and base["uri"].endswith("/")
        for result in one["results"]:
            assert result["message"]["text"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
            assert result["locations"], result["ruleId"]  # GitHub refuses the whole file for one that has none
            for place in result["locations"] + result["relatedLocations"]:
                artifact = place["physicalLocation"]["artifactLocation"]
                assert re.fullmatch(r"[A-Za-z0-9\-._~/%:]*", artifact["uri"])
                assert artifact.get("uriBaseId", next(iter(bases))) in bases
            for one_suppression in result.get("suppressions", []):
                assert one_suppression["kind"] in ("inSource", "external")
        for invocation in one["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool)


def test_sarif(cohabit: str, world: Path) -> None:
    (world / "config.toml").write_text('[[ignore]]\ncode = "PY302"\nreason = "known"\n')
    plain = run(cohabit, "doctor", world / "env", "--imports", "first", "--format", "sarif", code=1)
    ignored = run(cohabit, "doctor", world / "env", "--imports", "first", "--format", "sarif", "--config",
                  world / "config.toml", code=0)
    for text in (plain.stdout, ignored.stdout):
        check_sarif(json.loads(text))
    result = json.loads(plain.stdout)["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (unquote(place["uri"]), place["uriBaseId"]) == (
        "lib/python3.11/site-packages/first/__init__.py", "ENVIRONMENT")
    suppressed = json.loads(ignored.stdout)["runs"][0]["results"][0]
    assert suppressed["suppressions"] == [{"kind": "external", "justification": "known"}]
    schema = os.environ.get("COHABIT_SARIF_SCHEMA")  # the published one, where somebody has it
    if schema:
        import jsonschema
        jsonschema.validate(json.loads(plain.stdout), json.loads(Path(schema).read_text()))


def test_a_place_in_the_project_is_shown_there(cohabit: str, world: Path) -> None:
    """From the current directory, with the line; what lies elsewhere or in the environment is in no project."""
    (world / "app.py").write_text("import os\n\nos.environ['LD_LIBRARY_PATH'] = '/x'\n"
                                  "raise ImportError(f'no {__name__}')\n")
    (world / "random.py").touch()
    words = ["doctor", "env", "app.py", "--format"]
    lines = run(cohabit, *words, "github", cwd=world, code=1).stdout.splitlines()
    assert [line.split("::")[1] for line in lines[:3]] == [
        "error file=app.py,line=4,title=PY302 import-fails", "warning file=random.py,title=PY007 shadowed-modules",
        "warning file=app.py,line=3,title=EV003 set-too-late"]
    sarif = json.loads(run(cohabit, *words, "sarif", cwd=world, code=1).stdout)
    check_sarif(sarif)
    places = [result["locations"][0]["physicalLocation"] for result in sarif["runs"][0]["results"]]
    file = {"uri": "app.py", "uriBaseId": "%SRCROOT%"}
    assert places == [{"artifactLocation": file, "region": {"startLine": 4}},
                      {"artifactLocation": file | {"uri": "random.py"}},
                      {"artifactLocation": file, "region": {"startLine": 3}}]
    assert sarif["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"file://{world}/"
    report = json.loads(run(cohabit, *words, "json", cwd=world, code=1).stdout)
    assert [finding["place"] for finding in report["findings"]] == [
        {"file": f"{world}/app.py", "line": 4}, None, {"file": f"{world}/app.py", "line": 3}]
    assert "file=" not in run(cohabit, "doctor", "../env", "../app.py", "--format", "github", cwd=world / "env", code=1).stdout
    text = run(cohabit, "doctor", "env", "--imports", "first", "--format", "github", cwd=world, code=1).stdout
    assert text.startswith("::error title=PY302")  # in a file of the environment, which lies in the project


def test_what_is_about_no_file_is_shown_at_one(cohabit: str, world: Path) -> None:
    """A variable at the program, else at the environment; an ignore that is not needed in its configuration."""
    (world / "app.py").write_text("import os\n")
    (world / "cohabit.toml").write_text('fail-on = "never"\n\n[[ignore]]\ncode = "CB101"\nreason = "old"\n')
    (world / "sub").mkdir()

    def places(*words: str, cwd: Path = world) -> dict:
        text = run(cohabit, "doctor", world / "env", *words, "--format", "sarif", cwd=cwd, code=0,
                   OPENBLAS_NUM_THREDS="1").stdout
        check_sarif(json.loads(text))
        return {result["ruleId"]: result["locations"][0]["physicalLocation"]
                for result in json.loads(text)["runs"][0]["results"]}

    ignore = {"artifactLocation": {"uri": "cohabit.toml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 3}}
    for words, variable in [(["app.py"], {"uri": "app.py", "uriBaseId": "%SRCROOT%"}),
                            (["--imports", "os"], {"uri": "bin/python3", "uriBaseId": "ENVIRONMENT"})]:
        assert places(*words) == {"EV001": {"artifactLocation": variable}, "IO902": ignore}
    elsewhere = places("--imports", "os", cwd=world / "sub")["IO902"]["artifactLocation"]
    assert elsewhere == {"uri": f"file://{world}/cohabit.toml"}
    assert places("--imports", "os", "--config", "../cohabit.toml", cwd=world / "sub")["IO902"]["artifactLocation"] == elsewhere
    text = run(cohabit, "doctor", "env", "--imports", "os", "--format", "github", cwd=world, code=0).stdout
    assert text.startswith("::notice file=cohabit.toml,line=3,title=IO902")
    for name in ("conda-meta/history", "pyvenv.cfg"):
        (world / "env" / name).parent.mkdir(exist_ok=True)
        (world / "env" / name).write_text("home = /usr/bin\n" if name == "pyvenv.cfg" else "")
        assert places("--imports", "os")["EV001"]["artifactLocation"] == {"uri": name, "uriBaseId": "ENVIRONMENT"}
    # A pyproject.toml, too, and the second ignore.
    (world / "cohabit.toml").unlink()
    (world / "pyproject.toml").write_text('[tool.cohabit]\nfail-on = "never"\n' + 2 * (
        '[[tool.cohabit.ignore]]\ncode = "CB101"\nreason = "old"\n'))
    assert places("--imports", "os")["IO902"] == {
        "artifactLocation": {"uri": "pyproject.toml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 6}}


def test_what_does_not_load_is_shown_where_it_is_asked_for(cohabit: str, world: Path) -> None:
    """Behind ctypes, and not in a file of the standard library."""
    (world / "app.py").write_text("import ctypes\n\nctypes.CDLL('libabsent.so.3')\n")
    words = [cohabit, "doctor", sys.executable, "app.py"]
    text = run(*words, "--format", "github", cwd=world, code=1).stdout
    assert text.startswith("::error file=app.py,line=3,title=LD201 library-not-found")
    assert f" asked for in line 3 of {world}/app.py\n" in run(*words, cwd=world, code=1).stdout


def test_lines_of_a_cell_are_not_those_of_the_notebook(cohabit: str, world: Path) -> None:
    (world / "a,b.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "import absent"}]}))
    text = run(cohabit, "doctor", "env", "a,b.ipynb", "--format", "github", cwd=world, code=1).stdout
    assert text.startswith("::error file=a%2Cb.ipynb,title=PY302")


# --- what is asked for

def test_content_of_the_same_size_is_compared_when_asked_for(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} edited 1.0
  claims edited/__init__.py x = 1
file {SITE}/edited/__init__.py x = 2
""", tmp_path / "world")
    env = tmp_path / "world" / "env"
    assert report(cohabit, env, "--imports", "edited")["findings"] == []
    found = report(cohabit, env, "--imports", "edited", "--verify-hashes")["findings"]
    assert [f["code"] for f in found] == ["FI003"]
    assert "another hash" in json.dumps(found)


def test_current_directory_that_hides_modules_is_told(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
file env/lib/python3.11/random.py
dist {SITE} torch 2.6.0
  file torch/__init__.py tensor = 1
file project/torch.py import absent
file project/random.py
file elsewhere/own.py
""", tmp_path)

    def told(directory: str, *words: str, **variables: str) -> tuple[set[tuple[str, str]], dict]:
        done = subprocess.run([cohabit, "doctor", tmp_path / "env", *words, "--format", "json"], capture_output=True,
                              text=True, cwd=tmp_path / directory, env={"PATH": os.environ["PATH"]} | variables)
        got = json.loads(done.stdout)
        return {(f["code"], f["headline"].split("`")[1]) for f in got["findings"]}, got["orders"][0]["verdict"]

    hidden = {("PY007", "import torch"), ("PY007", "import random")}
    for words in ((), ("--imports", "torch")):
        assert told("elsewhere", *words) == (set(), "sound")
        assert told("project", *words, PYTHONSAFEPATH="1") == (set(), "sound")
    # Bare, the environment is examined, wherever one stands; imports are those of `python -c`.
    assert told("project") == (hidden, "sound")
    assert told("project", "--imports", "torch") == (hidden | {("PY302", "import torch")}, "unsound")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the machine code that is read is x86-64's")
@pytest.mark.parametrize("size, fires", [(96, True), (88, False)])
def test_types_of_numpy_1_in_cython_modules(size: int, fires: bool, cohabit: str, tmp_path: Path) -> None:
    site = tmp_path / SITE
    (tmp_path / "core.c").write_text(  # as Cython 0.29 and 3 call their __Pyx_ImportType
        "extern void *PyImport_ImportModule(const char *);\nint PyErr_Format(void *, const char *, ...);\n"
        "__attribute__((noinline)) static void *import_type(void *m, const char *module, const char *name, unsigned long size,"
        " int check) {\n  if (check && size > *(unsigned long *)m) PyErr_Format(m, \"%s.%s size changed, may indicate binary"
        " incompatibility. Expected %zd\", module, name, size);\n  return m;\n}\n"
        "void *PyInit_core(void) {\n  void *m = PyImport_ImportModule(\"numpy\");\n"
        f"  if (!import_type(m, \"numpy\", \"dtype\", {size}, 2) || !import_type(m, \"numpy\", \"ndarray\", 80, 1)) return 0;\n"
        "  return import_type(m, \"numpy\", \"ufunc\", 96, 1) && import_type(m, \"builtins\", \"type\", 880, 1) ? m : 0;\n}\n")
    (site / "old").mkdir(parents=True)
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", site / "old" / "core.so", tmp_path / "core.c"], check=True)
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} numpy 2.1.3
  file numpy/__init__.py
dist {SITE} old 1.0
  requires numpy
  file old/__init__.py
  lists old/core.so
""", tmp_path)
    found = [f["headline"] for f in report(cohabit, tmp_path / "env", "--imports", "numpy")["findings"]
             if f["code"] == "PY005"]
    assert found == (["old 1.0 is built for NumPy 1, and NumPy 2.1.3 is installed"] if fires else [])


def test_program_without_an_ending(cohabit: str, world: Path) -> None:
    (world / "tool").write_text("#!/usr/bin/env python3\nimport absent\n")
    (world / "other").write_text("#!/bin/sh\nexec python3\n")
    for words in ((world / "env", world / "tool"), (world / "tool",)):
        text = run(cohabit, "doctor", *words, code=1, VIRTUAL_ENV=str(world / "env")).stdout
        assert "No module named 'absent' is raised" in text and f"python {world}/tool: unsound" in text
    said = run(cohabit, "doctor", world / "env", world / "other", code=2).stderr
    assert "whose first line names Python" in said and str(world / "other") in said


@pytest.mark.parametrize("words", [["doctor", ""], ["doctor", "env", "--driver", ""], ["doctor", "env", "--sm", ""],
                                   ["doctor", "env", "--gpu-memory", ""], ["doctor", "env", "-m", ""], ["fix", ""],
                                   ["env", ""], ["verify", ""], ["export", ""], ["kernel", "install", ""],
                                   ["capture", ""], ["run", "--driver", "", "--", "true"]])
def test_an_empty_word_is_no_default(words: list[str], cohabit: str, world: Path) -> None:
    """`cohabit doctor "$ENVIRONMENT"`, with a variable that is not set, examined whatever was active."""
    done = run(cohabit, *words, cwd=world, code=125 if words[0] == "run" else 2, VIRTUAL_ENV=str(world / "env"))
    assert done.stdout == "" and "it is empty (a variable that is not set?)" in done.stderr


def test_a_module_of_two_distributions_is_examined_once(cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} cv 1.0
  file cv2/__init__.py x = 1
dist {SITE} cv-headless 1.0
  file cv2/__init__.py x = 1
dist {SITE} other 1.0
  file other/__init__.py x = 1
""", tmp_path)
    for metadata in (tmp_path / SITE).glob("*.dist-info"):
        (metadata / "REQUESTED").touch()
    orders = report(cohabit, tmp_path / "env")["orders"]
    assert sorted(order["imports"] for order in orders) == [["cv2"], ["other"]]


def requested(world: Path, name: str) -> Path:
    metadata = next((world / SITE).glob(f"{name}-*.dist-info"))
    (metadata / "REQUESTED").touch()
    return metadata


@pytest.mark.parametrize("stays", ["nothing", "a directory"])
def test_a_package_that_is_gone_is_an_import_that_fails(stays: str, cohabit: str, tmp_path: Path) -> None:
    """Of two distributions that bring cv2, the removed one took the files of both."""
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} cv 1.0
  claims cv2/__init__.py x = 1
dist {SITE} other 1.0
  file other/__init__.py x = 1
""", tmp_path)
    if stays == "a directory":
        (tmp_path / SITE / "cv2" / "__pycache__").mkdir(parents=True)
    requested(tmp_path, "cv"), requested(tmp_path, "other")
    told = report(cohabit, tmp_path / "env", code=1)
    assert [(order["imports"], order["verdict"]) for order in told["orders"]] == [
        (["cv2"], "unsound"), (["other"], "sound")]
    lost = next(finding for finding in told["findings"] if finding["code"] == "FI002")
    assert lost["severity"] == "error" and "cv2/__init__.py" in lost["headline"]


@pytest.mark.parametrize("modules", ["by their list", "by its name"])
def test_a_project_in_place_that_has_moved(modules: str, cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
file here/my_app/__init__.py x = 1
dist {SITE} my-app 1.0
  file __editable__.my_app-1.0.pth {tmp_path}/here\n
dist {SITE} other 1.0
  file other/__init__.py x = 1
""", tmp_path)
    metadata = requested(tmp_path, "my_app")
    (metadata / "direct_url.json").write_text(
        json.dumps({"url": (tmp_path / "here").as_uri(), "dir_info": {"editable": True}}))
    if modules == "by their list":
        (metadata / "top_level.txt").write_text("my_app\n")
    told = report(cohabit, tmp_path / "env", code=0)
    assert [order["verdict"] for order in told["orders"]] == ["sound"] and told["findings"] == []
    (tmp_path / "here").rename(tmp_path / "there")
    told = report(cohabit, tmp_path / "env", code=1)
    assert [(order["imports"], order["verdict"]) for order in told["orders"]] == [(["my_app"], "unsound")]
    lost = next(finding for finding in told["findings"] if finding["code"] == "FI002")
    assert lost["severity"] == "error" and str(tmp_path / "here") in lost["headline"]
    told = report(cohabit, tmp_path / "env", "--imports", "other", code=0)
    assert [(one["code"], one["severity"]) for one in told["findings"]] == [("FI002", "warning")]
    (tmp_path / SITE / "__editable__.my_app-1.0.pth").write_text(f"{tmp_path}/there\n")
    told = report(cohabit, tmp_path / "env", code=0)
    assert [order["verdict"] for order in told["orders"]] == ["sound"]
    assert [(one["code"], one["severity"]) for one in told["findings"] if one["code"] == "FI002"] == [("FI002", "note")]


def test_a_python_that_does_not_start_imports_nothing(cohabit: str, world: Path) -> None:
    (world / "env/lib/python3.11/encodings").mkdir()
    for name in ("__init__", "aliases", "utf_8"):
        (world / f"env/lib/python3.11/encodings/{name}.py").write_text("")
    told = report(cohabit, world / "env", "--imports", "random", PYTHONHOME=str(world), code=1)
    assert [one["code"] for one in told["findings"] if one["severity"] == "error"] == ["EV004"]
    assert [order["verdict"] for order in told["orders"]] == ["unsound"]
    for variables in ({}, {"PYTHONHOME": str(world / "env")}):
        told = report(cohabit, world / "env", "--imports", "random", code=0, **variables)
        assert [order["verdict"] for order in told["orders"]] == ["sound"]


def test_another_implementation_is_not_judged_as_cpython(cohabit: str, world: Path) -> None:
    for name, verdict in (("CPython", "sound"), ("PyPy", "unknown")):
        (world / "env" / "pyvenv.cfg").write_text(
            f"home = {world}/env/bin\nimplementation = {name}\nversion_info = 3.11.7\n")
        told = report(cohabit, world / "env", "--imports", "random", code=0)
        assert [order["verdict"] for order in told["orders"]] == [verdict]
        assert any("PyPy has other modules" in one for one in told["unknowns"]) == (name == "PyPy")


RUNTIME = """\
class Domain:
    PUBLIC = 1
class VersionError(Exception):
    pass
def ValidateProtobufRuntimeVersion(domain, major, *rest):
    if major > 5:
        raise VersionError(major)
"""
GENERATED = """\
from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf import runtime_version as _runtime_version
_runtime_version.ValidateProtobufRuntimeVersion(
    _runtime_version.Domain.PUBLIC,
    {major},
    29,
    0,
    '',
    'hello.proto'
)
DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(b'')
"""


@pytest.mark.parametrize("major, verdict", [(6, "unsound"), (5, "sound")])
def test_generated_code_of_the_program_itself(major: int, verdict: str, cohabit: str, tmp_path: Path) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
dist {SITE} protobuf 5.29.6
  file google/protobuf/__init__.py
  file google/protobuf/descriptor_pool.py def Default():\\n    return unknown\\nunknown = open("x")\\n
  file google/protobuf/runtime_version.py x
dist {SITE} user 1.0
  requires protobuf>=5
file app/app.py import hello_pb2
file app/unused_pb2.py x
""", tmp_path)
    (tmp_path / SITE / "google/protobuf/runtime_version.py").write_text(RUNTIME)
    (tmp_path / "app" / "hello_pb2.py").write_text(GENERATED.format(major=major))
    (tmp_path / "app" / "unused_pb2.py").write_text(GENERATED.format(major=7))
    told = report(cohabit, tmp_path / "env", tmp_path / "app" / "app.py", code=int(major == 6))
    assert [order["verdict"] for order in told["orders"]] == [verdict]
    findings = [finding for finding in told["findings"] if finding["code"] == "PY006"]
    assert len(findings) == (major == 6)
    for finding in findings:
        assert finding["headline"].startswith("hello_pb2.py does not go with protobuf 5.29.6")
        assert finding["place"]["file"].endswith("hello_pb2.py") and finding["place"]["line"] == 3
        commands = [one["command"] for one in finding["help"]]
        assert [command and command.split()[-1] for command in commands] == ["'protobuf>=6.29.0'", None]
    metadata = requested(tmp_path, "user") / "METADATA"
    metadata.write_text(metadata.read_text().replace("protobuf>=5", "protobuf<6"))
    told = report(cohabit, tmp_path / "env", tmp_path / "app" / "app.py", code=int(major == 6))
    for finding in [finding for finding in told["findings"] if finding["code"] == "PY006"]:
        assert [one["command"] for one in finding["help"]] == [None]
    # A runtime that the program brings itself is its own affair.
    shutil.copytree(tmp_path / SITE / "google", tmp_path / "app" / "google")
    (tmp_path / "app/google/protobuf/runtime_version.py").write_text(RUNTIME.replace("5", "7"))
    told = report(cohabit, tmp_path / "env", tmp_path / "app" / "app.py", code=0)
    assert not [finding for finding in told["findings"] if finding["code"] == "PY006"]


# --- hostile names

def test_names_cannot_forge_lines_or_move_the_cursor(cohabit: str, world: Path) -> None:
    app = world / "evil\n::warning title=x::y\x1b]0;z\x07"
    app.mkdir()
    (app / "random.py").write_text("")
    (app / "app.py").write_text("import absent\n")
    for form in ("full", "concise", "github"):
        text = run(cohabit, "doctor", world / "env", app / "app.py", "--format", form, code=1).stdout
        assert "\x1b" not in text and "\x07" not in text
        assert not [line for line in text.split("\n") if line.startswith("::warning title=x")]
    lines = run(cohabit, "doctor", world / "env", app / "app.py", "--format", "github").stdout.split("\n")
    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == 2  # PY302 and PY007
    for form in ("json", "sarif"):
        json.loads(run(cohabit, "doctor", world / "env", app / "app.py", "--format", form).stdout)


def test_errors_cannot_move_the_cursor(cohabit: str, world: Path) -> None:
    for words in (["doctor", "nowhere\x1b]0;z\x07"], ["doctor", world / "env", "no\x1b[2Japp.py"],
                  ["doctor", world / "env", "--replay", "no\x1b[2Jtrace"], ["fix", "no\x1b[2Jwhere"]):
        done = run(cohabit, *words, cwd=world, code=2)
        assert "no" in done.stderr and "\x1b" not in done.stderr and "\x07" not in done.stderr


def test_bytes_that_are_no_text(cohabit: str, world: Path) -> None:
    app = os.fsencode(world) + b"/\xff\xfe"
    os.mkdir(app)
    with open(app + b"/app.py", "wb") as file:
        file.write(b"import absent\n")
    for form in ("full", "concise", "github", "json", "sarif"):
        done = subprocess.run([cohabit.encode(), b"doctor", os.fsencode(world / "env"), app + b"/app.py",
                               b"--format", form.encode()], capture_output=True)
        assert done.returncode == 1, done.stderr
        done.stdout.decode("utf-8")  # strict


# --- configuration

@pytest.mark.parametrize("text, words", [
    ('[severity]\nCB110 = "off"\n', ["severity", "no rule CB110", "did you mean CB10"]),
    ('[severity]\nCB101 = "erorr"\n', ["severity.CB101", "erorr is not one of", "did you mean error?"]),
    ('[[ignore]]\ncode = "CB101"\n', ["ignore 1", "needs a reason"]),
    ('[[ignore]]\nreason = "x"\n', ["ignore 1", "needs a code"]),
    ('[[ignore]]\ncode = "CB101"\nreason = "x"\nlibary = "y"\n', ["no key libary", "did you mean library?"]),
    ('[[ignore]]\ncode = "CB101"\nreason = 3\n', ["ignore 1, reason", "a text in quotes"]),
    ('[[ignore]]\ncode = "CB101"\nreason = "x"\nimports = "torch"\n', ["imports", "expected a list"]),
    ("severity = 1\n", ["severity", "expected a table"]),
    ("[severity\n", ["line 1"]),
    ('sevrity = {}\n', ["no key sevrity", "did you mean severity?"]),
])
def test_wrong_configuration_is_a_sentence(cohabit: str, world: Path, text: str, words: list[str]) -> None:
    (world / "cohabit.toml").write_text(text)
    error = run(cohabit, "doctor", world / "env", "--imports", "first", cwd=world, code=2).stderr
    assert "cohabit.toml" in error and all(word in error for word in words), error
    run(cohabit, "doctor", world / "env", "--imports", "first", "--no-config", cwd=world, code=1)


@pytest.mark.parametrize("text, words", [
    ("[tool.cohabit]\nfail_on = 'warning'\n", ["no key fail_on", "did you mean fail-on?"]),
    ("[tool.cohabit.severity]\nPY305 = 'error'\n", ["no rule PY305"]),
    ("[tool.cohabit]\nfail-on = \n", ["line 2"]),  # no TOML, and of us
])
def test_a_mistake_in_the_projects_file_is_a_sentence_too(cohabit: str, world: Path, text: str, words: list[str]) -> None:
    (world / "pyproject.toml").write_text(text)
    error = run(cohabit, "doctor", world / "env", "--imports", "first", cwd=world, code=2).stderr
    assert "pyproject.toml" in error and all(word in error for word in words), error


def test_our_own_name_for_what_is_no_file_is_an_error(cohabit: str, world: Path) -> None:
    def error() -> str:
        return run(cohabit, "doctor", world / "env", "--imports", "first", cwd=world, code=2).stderr

    (world / "pyproject.toml").mkdir()  # that is nobody's
    run(cohabit, "doctor", world / "env", "--imports", "first", cwd=world, code=1)
    (world / "cohabit.toml").mkdir()
    assert f"{world}/cohabit.toml: expected a file, but: it is no regular file" in error()
    (world / "cohabit.toml").rmdir()
    (world / "cohabit.toml").symlink_to("cohabit.toml")
    assert "Too many levels of symbolic links" in error()


def test_a_projects_file_that_others_broke_is_not_for_us_to_say(cohabit: str, world: Path) -> None:
    (world / "pyproject.toml").write_text("[tool.black\n")
    run(cohabit, "doctor", world / "env", "--imports", "first", cwd=world, code=1)
    named = run(cohabit, "doctor", world / "env", "--imports", "first", "--config", world / "pyproject.toml", code=2)
    assert "pyproject.toml, line 1" in named.stderr


def test_the_nearest_configuration_counts(cohabit: str, world: Path) -> None:
    below = world / "a" / "b"
    below.mkdir(parents=True)

    def severities() -> list[str]:
        return [f["severity"] for f in report(cohabit, world / "env", "--imports", "first", cwd=below)["findings"]]

    (world / "cohabit.toml").write_text('[severity]\nPY302 = "note"\n')
    assert severities() == ["note"]
    (world / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")  # does not speak of us
    assert severities() == ["note"]
    (world / "a" / "pyproject.toml").write_text("[tool.cohabit.severity]\nPY302 = 'warning'\n")
    assert severities() == ["warning"]
    (world / "a" / "cohabit.toml").write_text('severity.PY302 = "off"\n')
    assert severities() == []


# --- baselines and fingerprints

def test_a_baseline_hides_what_is_known_and_nothing_else(cohabit: str, world: Path) -> None:
    known = world / "known.json"
    run(cohabit, "doctor", world / "env", "--imports", "first", "--write-baseline", known, code=0)
    run(cohabit, "doctor", world / "env", "--imports", "first", "--baseline", known, code=0)
    after = report(cohabit, world / "env", "--imports", "first", "--baseline", known)
    assert after["findings"] == [] and after["orders"][0]["findings"] == []
    assert [s["suppressed"]["by"] for s in after["suppressed"]] == ["baseline"]
    (world / SITE / "third.py").write_text("import gone\n")
    new = report(cohabit, world / "env", "--imports", "third", "--baseline", known, code=1)
    assert [f["code"] for f in new["findings"]] == ["PY302"]
    known.write_text("[]")
    assert "expected a baseline" in run(cohabit, "doctor", world / "env", "--baseline", known, code=2).stderr


def test_fingerprints_are_of_the_finding(cohabit: str, world: Path, tmp_path: Path) -> None:
    def marks(root: Path, *words: str) -> list[str]:
        return [f["fingerprint"] for f in report(cohabit, root / "env", *words)["findings"]]

    here = marks(world, "--imports", "first")
    assert len(here) == 1
    assert marks(world, "--imports", "second") == here  # another order, the same cause
    shutil.copytree(world, tmp_path / "elsewhere" / "longer", symlinks=True)
    assert marks(tmp_path / "elsewhere" / "longer", "--imports", "first") == here
    (world / SITE / "third.py").write_text("import absent\n")
    assert marks(world, "--imports", "third") != here


def test_a_file_that_is_no_python_is_one_cause(cohabit: str, world: Path) -> None:
    """Whoever imports it, by hand or by another package."""
    (world / SITE / "first" / "__init__.py").write_text("import os\nx = (\n")
    (world / SITE / "third.py").write_text("import first\n")
    found = [report(cohabit, world / "env", "--imports", name, code=1)["findings"] for name in ("first", "second", "third")]
    assert [[f["code"] for f in one] for one in found] == [["PY302"]] * 3
    assert len({one[0]["fingerprint"] for one in found}) == 1
    assert [lib["path"] for lib in found[0][0]["libraries"]] == [str(world / SITE / "first" / "__init__.py")]
    assert "damaged" in found[0][0]["help"][0]["text"]


# --- the environment that is meant

def test_an_environment_is_found_and_named(cohabit: str, world: Path) -> None:
    project = world / "project"
    shutil.copytree(world / "env", project / ".venv")

    def chosen(**variables: str) -> tuple[str, str]:
        done = run(cohabit, "doctor", "--imports", "first", "--format", "json", cwd=project, **variables)
        return json.loads(done.stdout)["environment"]["path"], done.stderr

    assert chosen() == (str(project / ".venv"), f"examining {project}/.venv (found by .venv)\n")
    active = chosen(VIRTUAL_ENV=str(world / "env"), CONDA_PREFIX=str(project / ".venv"))
    assert active == (str(world / "env"), f"examining {world}/env (found by $VIRTUAL_ENV)\n")
    # pre-commit (languages/python.py) makes the environment of its hook the active one; a hook of "language: system" has the user's.
    hook = world / "py_env-python3"
    shutil.copytree(world / "env", hook)
    hooked = {"PRE_COMMIT": "1", "VIRTUAL_ENV": str(hook), "PATH": f"{hook}/bin:{world}/env/bin:/usr/bin"}
    assert chosen(**hooked)[0] == str(project / ".venv")
    assert chosen(**hooked | {"VIRTUAL_ENV": str(world / "env")})[0] == str(world / "env")
    (project / ".venv").rename(project / "other")
    assert chosen(**hooked)[0] == str(world / "env")
    conda = chosen(CONDA_PREFIX=str(project / "other"))
    assert conda == (str(project / "other"), f"examining {project}/other (found by $CONDA_PREFIX)\n")


def test_bare_cohabit_prints_the_table_and_one_next_command(cohabit: str, world: Path) -> None:
    site = world / SITE
    for name, text in (("torch", ""), ("jax", "import sys\nif 'torch' in sys.modules:\n    import absent\n")):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(text)
    text = run(cohabit, cwd=world, code=1, VIRTUAL_ENV=str(world / "env")).stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["torch", "sound", "-", "unsound"] in rows and ["jax", "sound", "sound", "-"] in rows
    assert text.endswith("\nnext: cohabit doctor --imports torch,jax\n") and "1 error," in text
    done = run(cohabit, cwd=world, code=2, PATH="/nowhere")
    assert "no Python environment was named" in done.stderr and done.stdout == ""


# --- secrets and progress

def test_credentials_and_values_of_variables_stay_here(cohabit: str, world: Path) -> None:
    (world / SITE / "first" / "__init__.py").write_text(
        "import os\nraise ImportError('see https://user:tok%40en@index.example/simple of ' + os.environ['HUB_TOKEN'])\n")
    for form in ("full", "concise", "json", "sarif", "github"):
        text = run(cohabit, "doctor", world / "env", "--imports", "first", "--format", form, HUB_TOKEN="hush-hush").stdout
        assert "index.example" in text and "tok" not in text and "user:" not in text
        assert "hush-hush" not in text


def test_nor_do_they_leave_by_the_plan(cohabit: str, world: Path) -> None:
    (world / "app.py").write_text("import os\ntry:\n    __import__(os.environ['HUB_TOKEN'])\nexcept ImportError:\n    pass\n"
                                  "raise ImportError('https://user:tok%40en@index.example/')\n")
    plan = world / "plan.json"
    run(cohabit, "doctor", world / "env", world / "app.py", "--plan", plan, HUB_TOKEN="hush_hush", code=1)
    text = plan.read_text()
    assert json.loads(text)["failure"] and "index.example" in text
    assert "hush_hush" not in text and "tok" not in text


@pytest.mark.parametrize("way", ["os.environ['HUB_TOKEN'] = 'hush_hush'", "os.environ.update(HUB_TOKEN='hush_hush')",
                                 "os.environ.setdefault('HUB_TOKEN', 'hush_hush')"])
def test_what_a_program_sets_itself_stays_here_too(way: str, cohabit: str, world: Path) -> None:
    (world / "app.py").write_text(f"import os\n{way}\ntry:\n    import absent\nexcept ImportError:\n"
                                  "    raise RuntimeError('no right for ' + os.environ['HUB_TOKEN'])\n")
    plan = world / "plan.json"
    for form in ("full", "json", "sarif"):
        text = run(cohabit, "doctor", world / "env", world / "app.py", "--plan", plan, "--format", form, code=1).stdout
        assert "no right for ***" in text and "no right for ***" in plan.read_text()
        assert "hush_hush" not in text + plan.read_text()


def test_nor_are_values_of_secret_options_told(cohabit: str, world: Path) -> None:
    """The program gets them, as its own errors tell."""
    (world / "app.py").write_text("import sys\ntry:\n    __import__(sys.argv[2])\nexcept ImportError:\n    pass\n"
                                  "raise ImportError(f'none for {sys.argv[2]} and {sys.argv[3][8:]}')\n")
    plan, words = world / "plan.json", ["--", "--api-key", "sk_XYZ123", "--token=sk_XYZ456"]
    for form in ("full", "concise", "json", "sarif", "github"):
        text = run(cohabit, "doctor", world / "env", world / "app.py", "--plan", plan, "--format", form, *words, code=1).stdout
        assert "--api-key '***' '--token=***'" in text and "none for *** and ***" in text
        assert "sk_XYZ" not in text + plan.read_text()
    text = run(cohabit, "run", "--dry-run", "--", sys.executable, world / "app.py", *words[1:], code=0).stdout
    assert "--api-key" in text and "sk_XYZ" not in text
    run(cohabit, "trace", "--out", world / "trace", "--", "/bin/true", *words[1:], code=0)
    text = (world / "trace").read_text()
    assert "--api-key" in text and "sk_XYZ" not in text


def test_no_progress_where_there_is_no_terminal(cohabit: str, world: Path) -> None:
    assert run(cohabit, "doctor", world / "env", "--imports", "first").stderr == ""


def on_terminal(columns: int, *command: str | Path, cwd: Path) -> str:
    """What a process writes to a terminal on stderr."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(list(map(str, command)), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=terminal, env={"PATH": os.environ["PATH"]})
    os.close(terminal)
    said = b""
    try:
        while part := os.read(master, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(60) in (0, 1)
    return said.decode()


def test_progress_on_a_terminal(cohabit: str, world: Path) -> None:
    """One step that is long is enough; the line fits and is taken away. Where all is short there is none."""
    def look_at(*what: str | Path, columns: int = 80) -> tuple[str, float]:
        start = time.monotonic()
        said = on_terminal(columns, cohabit, "doctor", world / "env", *what, cwd=world)
        return said, time.monotonic() - start

    lines = 100_000
    for columns in (80, 20):
        said, seconds = "", 0.0
        while seconds < 2:
            lines *= 2
            (world / "long.py").write_text("x = [1, 2]\n" * lines)
            said, seconds = look_at(world / "long.py", "--no-cache", columns=columns)
        lines //= 2
        shown = [line for line in said.split("\r\x1b[K") if line.startswith("[")]
        assert shown and all(len(line) < columns for line in shown), said
        assert said.endswith("\r\x1b[K")
    short = [look_at("--imports", "first") for _ in range(10)]
    quick = [said for said, seconds in short if seconds < 1]
    assert quick and not any(quick), short


# --- the hook and the action

def act(repo: Path, command: str | Path, **inputs: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([repo / "scripts" / "action", command], capture_output=True, text=True, env={
        "PATH": os.environ["PATH"], **{f"COHABIT_{name}": str(value) for name, value in inputs.items()}})


def test_the_action_passes_its_inputs_as_words(repo: Path, tmp_path: Path) -> None:
    fake = tmp_path / "cohabit"
    fake.write_text('#!/bin/sh\nfor word in "$@"; do printf "<%s>" "$word"; done\necho\n')
    fake.chmod(0o755)
    done = act(repo, fake, ENVIRONMENT="my env", PROGRAM="$(touch x).py", ARGUMENTS="--config 'a b.toml' $HOME",
               FAIL_ON="note", SARIF="out")
    words = "<doctor><my env><$(touch x).py><--fail-on><note><--config><a b.toml><$HOME>"
    assert done.stdout.splitlines() == [words + "<--format><sarif><--output><out>", words + "<--format><github>"]
    assert act(repo, fake, ARGUMENTS="\n").stdout == "<doctor><--format><github>\n"
    done = act(repo, fake, ARGUMENTS="--config 'a b.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("cohabit: the action's input `arguments` has a quote that is not closed: --config 'a b.toml\n")


def test_the_action_writes_sarif_and_ends_as_fail_on_says(repo: Path, cohabit: str, world: Path) -> None:
    for number, (fail_on, imports, code) in enumerate([
            ("never", "first", 0), ("error", "first", 1), ("warning", "os", 0), ("", "first", 1), ("eror", "first", 2)]):
        sarif = world / f"{number}.sarif"
        done = act(repo, cohabit, ENVIRONMENT=world / "env", ARGUMENTS=f"--imports {imports}", FAIL_ON=fail_on, SARIF=sarif)
        assert done.returncode == code, done.stdout + done.stderr
        if code == 2:
            assert done.stderr.count("eror") == 1 and not sarif.exists()
        else:
            found = json.loads(sarif.read_text())["runs"][0]["results"]
            assert [result["ruleId"] for result in found] == ([] if imports == "os" else ["PY302"])
            assert ("title=PY302" in done.stdout) == bool(found)
    done = act(repo, cohabit, ENVIRONMENT=world / "env", ARGUMENTS="--imports first --fail-on never", SARIF=world / "sarif")
    assert done.returncode == 0 and (world / "sarif").exists()


def test_hook_and_action_are_what_their_readers_expect(repo: Path) -> None:
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((repo / ".pre-commit-hooks.yaml").read_text())
    assert all({"id", "name", "entry", "language"} <= hook.keys() for hook in hooks)
    assert re.search(hooks[0]["files"], "sub/requirements-dev.txt")
    action = yaml.safe_load((repo / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    script = "".join(step["run"] for step in action["runs"]["steps"])
    assert "${{" not in script  # inputs never become part of a script


def test_a_trace_of_another_environment_is_refused(cohabit: str, world: Path, tmp_path: Path) -> None:
    """Which distribution owns a file comes from the environment: with another one owners would be wrong."""
    other = tmp_path / "other"
    shutil.copytree(world / "env", other, symlinks=True)
    trace = tmp_path / "a.trace"
    program = other / "bin" / "python3"
    trace.write_text(casefile.make_trace("ended 0\n", program, other))
    said = run(cohabit, "doctor", world / "env", "--replay", trace, code=2).stderr
    assert str(other) in said and str(world / "env") in said
    run(cohabit, "doctor", other, "--replay", trace, code=0)


def test_a_root_that_is_not_there_is_named(cohabit: str, tmp_path: Path) -> None:
    for command in ("doctor", "fix"):
        said = run(cohabit, command, "/env", "--root", tmp_path / "nowhere", code=2).stderr
        assert f"{tmp_path}/nowhere: No such file or directory" in said


def test_fix_does_not_clear_what_it_did_not_look_at(cohabit: str, tmp_path: Path) -> None:
    """The world's packages are none that Cohabit knows; named, they are looked at."""
    casefile.build_world(WITHOUT_FRAMEWORK, tmp_path / "world")
    env = tmp_path / "world" / "env"
    for form in ("full", "json"):
        done = run(cohabit, "fix", env, "--format", form, code=2)
        assert done.stdout == ""
        assert "no framework" in done.stderr and "--imports a,b" in done.stderr
    done = run(cohabit, "fix", env, "--imports", "plain", code=0)
    assert done.stdout.startswith("Nothing to repair.") and "import plain: sound" in done.stdout
