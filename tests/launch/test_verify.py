"""`cohabit verify` tells how each run ended. The modules are made here, so that it is known how."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODULES = {
    "calm_module": "__version__ = '1.2'\n",
    "failing_module": "raise ValueError('not today')\n",
    "crashing_module": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n",
    "hanging_module": "import time; time.sleep(100)\n",
    "leaving_module": "import os; os._exit(3)\n",
    # Has the name of a framework whose matrix product is checked.
    "paddle": "def ones(shape): return shape\ndef matmul(a, b): return [[0]]\n",
}
OUTCOMES = {
    "calm_module": ("ok", ""),
    "failing_module": ("exception", 'ValueError: not today, at "import failing_module"'),
    "crashing_module": ("signal", 'signal 11 (Segmentation fault) at "import crashing_module"'),
    "hanging_module": ("hang", 'still at "import hanging_module" when its time was over'),
    "leaving_module": ("exception", 'exit code 3 at "import leaving_module"'),
    "paddle": ("wrong-result", 'a computed value is not the right one, at "compute with paddle"'),
}


@pytest.fixture
def verify(cohabit: str, tmp_path: Path):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)

    def run(*arguments: str) -> tuple[int, list]:
        done = subprocess.run([cohabit, "verify", sys.executable, *arguments, "--format", "json"],
                              capture_output=True, text=True, timeout=300,
                              env=os.environ | {"PYTHONPATH": str(tmp_path)})
        return done.returncode, json.loads(done.stdout)["runs"]
    return run


@pytest.mark.parametrize("module", MODULES)
def test_outcomes(verify, module: str) -> None:
    begin = time.monotonic()
    status, (run,) = verify("--imports", module, "--timeout", "5" if "hanging" in module else "60")
    assert (run["outcome"], run["detail"]) == OUTCOMES[module]
    assert status == (0 if run["outcome"] == "ok" else 1)
    assert run["imports"] == [module] and run["predicted"] in ("sound", "unsound", "unknown")
    assert time.monotonic() - begin < 90


def test_each_alone_and_every_pair(verify) -> None:
    status, runs = verify("--with", "calm_module,json")
    assert [run["imports"] for run in runs] == [["calm_module"], ["json"], ["calm_module", "json"],
                                                ["json", "calm_module"]]
    assert status == 0 and all(run["outcome"] == "ok" and run["agrees"] for run in runs)
    assert runs[0]["versions"] == {"calm_module": "1.2"}


def test_files_of_the_current_directory_do_not_shadow(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)\n")
    done = subprocess.run([cohabit, "verify", sys.executable, "--imports", "json"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("import json: ok")
