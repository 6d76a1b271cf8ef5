"""Runs that use a GPU, replayed: the driver's own opens, the first uses' and threads' among them."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from frameworks import PYTHON

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wheels"))
import ldso_compare  # noqa: E402
import ldso_record  # noqa: E402

USES = {
    "torch": """
a = torch.ones(64, 64, device="cuda")
assert float((a @ a)[0, 0]) == 64
assert float(torch.nn.functional.conv2d(torch.ones(1, 3, 16, 16, device="cuda"), torch.ones(8, 3, 3, 3, device="cuda"))[0, 0, 0, 0]) == 27
assert float(torch.linalg.solve(torch.eye(8, device="cuda") * 2, torch.ones(8, device="cuda"))[0]) == 0.5
torch.fft.fft(a)
""",
    "jax": """
j = jax.numpy.ones((64, 64))
assert float((j @ j)[0, 0]) == 64 and j.device.platform == "gpu"
assert float(jax.lax.conv(jax.numpy.ones((1, 3, 16, 16)), jax.numpy.ones((8, 3, 3, 3)), (1, 1), "VALID")[0, 0, 0, 0]) == 27
assert abs(float(jax.numpy.linalg.solve(jax.numpy.eye(4) * 2, jax.numpy.ones(4))[0]) - 0.5) < 1e-6
""",
    "cupy": """
c = cupy.ones((64, 64))
assert float((c @ c)[0, 0]) == 64
assert float(cupy.linalg.solve(cupy.eye(4) * 2, cupy.ones(4))[0]) == 0.5
cupy.fft.fft(c)
""",
    "tensorflow": """
t = tensorflow.ones((64, 64))
assert float(tensorflow.matmul(t, t)[0][0]) == 64 and "GPU" in t.device
assert float(tensorflow.nn.conv2d(tensorflow.ones((1, 16, 16, 3)), tensorflow.ones((3, 3, 3, 8)), 1, "VALID")[0][0][0][0]) == 27
""",
}
ORDERS = ["torch", "jax", "cupy", "tensorflow", "torch,jax,cupy", "cupy,jax,torch", "torch,tensorflow", "tensorflow,torch"]


@pytest.mark.parametrize("mode", ["now", "lazy"])
@pytest.mark.parametrize("order", ORDERS)
def test_replay_is_what_ldso_does(order: str, mode: str, needs, cohabit: str, tmp_path: Path) -> None:
    names = order.split(",")
    needs(*names)
    code = f"import {', '.join(names)}\n" + "".join(USES[name] for name in names)
    # The driver's cache of compiled kernels would make the second run another than the first.
    env = os.environ | {"CUDA_CACHE_DISABLE": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true", "PYTHONHASHSEED": "0"}
    now = mode == "now"
    empty = tmp_path / "empty"
    empty.mkdir()
    ldso_record.record([PYTHON, "-c", code], tmp_path / "truth", now=now, env=env, cwd=empty, timeout=500)
    status = int((tmp_path / "truth" / "status").read_text())
    traced = subprocess.run([cohabit, "trace", "--out", tmp_path / "run.trace", "--", PYTHON, "-c", code], cwd=empty, check=False,
                            env=env | ({"LD_BIND_NOW": "1"} if now else {}), capture_output=True, text=True)
    assert (traced.returncode != 0) == (status != 0), (status, traced.returncode, traced.stderr[-2000:])
    subprocess.run([cohabit, "replay", tmp_path / "run.trace", "--loads", tmp_path / "loads.tsv", "--bindings",
                    tmp_path / "bindings.tsv"], check=True, capture_output=True)
    result = ldso_compare.compare(tmp_path / "truth", tmp_path / "bindings.tsv", tmp_path / "loads.tsv", lazy=not now)
    print(order, mode, status, result)
    assert result.agrees, f"{code}\n{result}"
