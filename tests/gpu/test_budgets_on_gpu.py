"""`cohabit run --gpu-memory` really bounds what a framework gets.

TensorFlow asks for nearly all memory, is refused by its own limit, and tries nine tenths of that until it is below.
"""
from __future__ import annotations

import pytest

ALLOCATE = {
    "torch": "import torch\ndef allocate(n): return torch.empty(n, dtype=torch.uint8, device='cuda')\n",
    "cupy": "import cupy\ndef allocate(n): return cupy.empty(n, dtype='uint8')\n",
    "jax": "import jax, jax.numpy\ndef allocate(n): return jax.numpy.zeros(n, dtype='uint8').block_until_ready()\n",
    "tensorflow": "import tensorflow\ndef allocate(n): return tensorflow.zeros(n, dtype='uint8')\n",
}


@pytest.mark.parametrize("framework", ALLOCATE)
@pytest.mark.parametrize("share", ["4GiB", "5%"])
def test_a_share_holds(framework: str, share: str, needs, run, cohabit: str) -> None:
    """Of both three gigabytes can be had, and eight cannot (5 % of 79 GiB are 3.95)."""
    needs(framework)
    run(ALLOCATE[framework] + """
few = allocate(3 << 30)
del few
try:
    many = allocate(8 << 30)
except Exception as error:
    said = (type(error).__name__ + str(error)).lower()
    assert "memory" in said or "oom" in said, error
else:
    raise SystemExit("8 GiB were given")
""", cohabit, "run", "--repair", "none", "--gpu-memory", f"{framework}={share}", "--", XLA_PYTHON_CLIENT_PREALLOCATE="true",
        TF_FORCE_GPU_ALLOW_GROWTH="false")
