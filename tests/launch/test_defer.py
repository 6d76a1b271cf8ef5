"""`cohabit run --defer torch`: packages that import torch do not load it until they use it; what cannot wait is named before
anything is started. torch is a made package that says when it is loaded.
"""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_env import Env, clean, env  # noqa: E402,F401

TORCH = """print("torch is loaded")
class Tensor:
    pass
float32 = "the real float32"
def tensor(value):
    result = Tensor()
    result.value = value
    return result
"""


@pytest.fixture
def there(env: Env) -> Env:  # noqa: F811
    env.file("torch/__init__.py", TORCH)
    env.file("torch/nn/__init__.py", "class Module:\n    pass\n")
    env.file("torch/nn/functional.py", "def relu(x):\n    return max(x, 0)\n")
    return env


def run(cohabit: str, there: Env, variables: dict[str, str], code: str) -> subprocess.CompletedProcess:
    return subprocess.run([cohabit, "run", "--repair", "none", "--defer", "torch", "--", there.python, "-c", code],
                          capture_output=True, text=True, timeout=120, env=variables)


USER = """
from typing import Optional, Union
import torch
import torch.nn.functional as F
import torch.nn as nn
from torch import Tensor
from torch.nn import functional

Either = Union[int, torch.Tensor]

def annotated(x: torch.Tensor, y: Optional[Tensor] = None, z: "list[torch.Tensor]" = ()) -> torch.Tensor:
    return torch.tensor(x)

def is_tensor(x) -> bool:
    return isinstance(x, torch.Tensor) and isinstance(x, Tensor)

def relu(x):
    return F.relu(x), functional.relu(x), nn.functional.relu(x)

def dtype():
    return torch.float32

def by_function():
    import torch as again
    return again.tensor(1)
"""


def test_nothing_is_loaded_before_it_is_used(cohabit: str, there: Env, clean: dict[str, str]) -> None:  # noqa: F811
    there.file("user/__init__.py", USER)
    done = run(cohabit, there, clean, "import sys, user; print('torch' in sys.modules); "
               "t = user.annotated(1); print('torch' in sys.modules, type(t).__name__, user.is_tensor(t), "
               "user.is_tensor(1), user.relu(-1), user.relu(2), user.dtype(), t.value)")
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "False\ntorch is loaded\nTrue Tensor True False (0, 0, 0) (2, 2, 2) the real float32 1\n", "")


def test_a_union_with_a_bar(cohabit: str, there: Env, clean: dict[str, str]) -> None:  # noqa: F811
    there.file("user/__init__.py", "import torch\ndef f(x: int | torch.Tensor, y: torch.Tensor | None = None): return 3\n")
    if sys.version_info < (3, 10):
        pytest.skip("types have no | before 3.10")
    assert run(cohabit, there, clean, "import user; print(user.f(1))").stdout == "3\n"


def test_imports_in_functions_and_of_the_program_are_real(cohabit: str, there: Env,
                                                          clean: dict[str, str]) -> None:  # noqa: F811
    there.file("user/__init__.py", USER)
    done = run(cohabit, there, clean, "import user; print(type(user.by_function()).__module__)")
    assert done.stdout == "torch is loaded\ntorch\n"
    done = run(cohabit, there, clean, "import user; print(1); import torch; print(torch.float32, user.dtype(), "
               "__import__.__module__)")
    assert done.stdout == "1\ntorch is loaded\nthe real float32 the real float32 builtins\n"


@pytest.mark.parametrize("line", [
    "class Own(torch.Tensor): pass", "class Own(nn.Module): pass", "@torch.tensor\ndef f(): pass",
    "def f(x=torch.float32): pass", "DTYPE = torch.float32", "if torch.float32: pass", "X = [torch.tensor(1)]",
    "class A:\n    kind = torch.float32", "f = lambda x=torch.float32: x", "from torch import *",
    "for x in [1]:\n    torch.tensor(x)"])
def test_what_cannot_wait_is_named_and_nothing_started(cohabit: str, there: Env, clean: dict[str, str],  # noqa: F811
                                                       line: str) -> None:
    there.file("user/__init__.py", f"import torch\nfrom torch import nn\n\n{line}\n")
    done = run(cohabit, there, clean, "print('started'); import user")
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    number = 5 if "\n    " in line else 4
    assert f"{there.site}/user/__init__.py:{number}" in done.stderr


@pytest.mark.parametrize("line", [
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    class A(torch.Tensor): pass",
    "def f():\n    return torch.float32", "class A:\n    def f(self, x: torch.Tensor): return torch.tensor(x)",
    "x: 'torch.Tensor' = 1", "try:\n    import torch.nn\nexcept ImportError:\n    nn = None", "f = lambda: torch.float32"])
def test_what_can_wait(cohabit: str, there: Env, clean: dict[str, str], line: str) -> None:  # noqa: F811
    there.file("user/__init__.py", f"import torch\n{line}\n")
    done = run(cohabit, there, clean, "import user, sys; print('torch' in sys.modules)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_what_the_plan_cannot_know_is_loaded(cohabit: str, there: Env, clean: dict[str, str]) -> None:  # noqa: F811
    there.file("user/__init__.py", "import torch\nclass Own(torch.Tensor): pass\n")
    code = "import os; name = os.popen('echo user').read().strip(); user = __import__(name); print(user.Own.__mro__[1])"
    done = run(cohabit, there, clean, code)
    assert done.stdout == "torch is loaded\n<class 'torch.Tensor'>\n", done.stderr
    assert "user/__init__.py:2 needs torch at import: not deferred" in done.stderr


def test_a_module_that_is_not_there(cohabit: str, env: Env, clean: dict[str, str]) -> None:  # noqa: F811
    env.file("user/__init__.py", "try:\n    import torch\nexcept ImportError:\n    torch = None\n")
    done = run(cohabit, env, clean, "import user; print(user.torch)")
    assert (done.returncode, done.stdout) == (0, "None\n")


def test_parts_of_modules_are_refused(cohabit: str, there: Env, clean: dict[str, str]) -> None:  # noqa: F811
    done = subprocess.run([cohabit, "run", "--defer", "torch.nn", "--", there.python, "-c", ""], capture_output=True,
                          text=True, env=clean)
    assert done.returncode == 125 and "torch, not torch.nn" in done.stderr


def test_each_place_is_named_for_the_module_that_it_needs(cohabit: str, there: Env, clean: dict[str, str]) -> None:  # noqa: F811
    there.file("other/__init__.py", "class Base:\n    pass\n")
    there.file("user/__init__.py", "import torch, other\nclass Own(other.Base): pass\n")
    done = subprocess.run([cohabit, "run", "--repair", "none", "--defer", "torch,other", "--", there.python, "-c", "import user"],
                          capture_output=True, text=True, env=clean)
    assert done.returncode == 125 and f"other cannot be deferred: it is needed at import by {there.site}/user/__init__.py:2" in done.stderr
    assert "torch" not in done.stderr.replace("--defer torch", "")
