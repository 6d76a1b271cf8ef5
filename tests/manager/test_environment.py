"""The worker's side is one file that brings nothing with it."""
from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig

import pytest

import places


@pytest.mark.parametrize("version", ("3.8", "3.12"))
def test_sys_path_is_the_environments_own(version: str, tmp_path, make_worker, monkeypatch) -> None:
    python = places.interpreter(version)
    home = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", "--without-pip", str(home)], check=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # the caller's, not the worker's
    own = subprocess.run([home / "bin" / "python", "-c", "import json, sys; print(json.dumps(sys.path[1:]))"], check=True,
                         capture_output=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}).stdout
    worker = make_worker(env=home)
    assert worker.call("path") == [str(places.HERE), *json.loads(own)]
    modules = worker.call("modules")
    assert "numpy" not in modules and not any(name.startswith("cohabit") for name in modules)


def test_without_setup_nothing_is_added_to_sys_path() -> None:
    import cohabit

    with cohabit.Worker("site") as worker:
        own = subprocess.run([sys.executable, "-c", "import site, sys; sys.path.pop(0); print(site.getsitepackages() and sys.path)"],
                             check=True, capture_output=True, text=True,
                             env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}).stdout
        assert repr(worker.call("site.sys.path.copy")) == own.strip()


def test_only_the_standard_library_is_imported() -> None:
    text = (places.REPO / "python" / "cohabit" / "_worker_main.py").read_text()
    names = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    optional = {"numpy", "pyarrow", "ml_dtypes"}  # each inside a try, where such a value is at hand
    assert names - optional <= set(sys.stdlib_module_names) and froms == {"__future__", "typing"}


def test_libraries_of_this_environment_are_not_for_another(monkeypatch, make_worker) -> None:
    """As `cohabit run` sets them for the caller."""
    own = sysconfig.get_path("purelib") + "/nvidia/lib"
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, f"{own}:/nonexistent/lib:{own}2")
    monkeypatch.setenv("COHABIT_PRELOAD_RULES", "/nonexistent/rules")
    here = make_worker(log=False)
    assert here.call("environ", "LD_LIBRARY_PATH") == f"{own}:/nonexistent/lib:{own}2"
    assert here.call("environ", "COHABIT_PRELOAD_RULES") == "/nonexistent/rules"
    other = make_worker(env=places.interpreter("3.12"), log=False)
    assert other.call("environ", "LD_LIBRARY_PATH") == other.call("environ", "LD_PRELOAD") == "/nonexistent/lib"
    assert other.call("environ", "COHABIT_PRELOAD_RULES") is None
    monkeypatch.setenv("LD_LIBRARY_PATH", own)
    assert make_worker(env=places.interpreter("3.12"), log=False).call("environ", "LD_LIBRARY_PATH") is None
    told = make_worker(env=places.interpreter("3.12"), log=False, environ={"LD_LIBRARY_PATH": own})
    assert told.call("environ", "LD_LIBRARY_PATH") == own


def test_environ_is_added(make_worker) -> None:
    assert make_worker(environ={"COHABIT_TEST": "yes"}).call("environ", "COHABIT_TEST") == "yes"
