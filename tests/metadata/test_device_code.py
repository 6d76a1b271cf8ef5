"""Fat binaries: our reading of real libraries against that of NVIDIA's cuobjdump, which Triton brings.

Needs the real environments of tests/wheels (scripts/environments.py makes them); skipped without.
"""
from __future__ import annotations

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("COHABIT_CACHE") or Path.home() / ".cache" / "cohabit") / "envs"
DUMPERS = sorted(CACHE.glob("*/lib/python3*/site-packages/triton/backends/nvidia/bin/cuobjdump"))
# cuobjdump does not know the containers that cuFFT, cuBLASLt and cuSPARSE keep in other sections.
LIBRARIES = ["torch/lib/libtorch_cuda_linalg.so", "torch/lib/libtorch_cuda.so", "paddle/base/libpaddle.so",
             "nvidia/nccl/lib/libnccl.so.2", "nvidia/cusolver/lib/libcusolver.so.11",
             "xgboost/lib/libxgboost.so", "onnxruntime/capi/libonnxruntime_providers_cuda.so"]
FOUND = [p for name in LIBRARIES for p in sorted(CACHE.glob(f"*/lib/python3*/site-packages/{name}"))]


def cuobjdump(path: Path) -> collections.Counter:
    """By the first release that reads this library: each refuses what is too old or too new for it."""
    for dumper in reversed(DUMPERS):
        counts: collections.Counter = collections.Counter()
        for option, kind in (("--list-elf", "cubin"), ("--list-ptx", "ptx")):
            listed = subprocess.run([dumper, option, path], capture_output=True, text=True)
            if listed.returncode != 0:
                break
            # The suffix of architecture- and family-specific code (100a, 100f) is not in all its names.
            found = re.findall(r"^(?:ELF|PTX) file +\d+: .*?\.sm_(\d+)[af]?\.(?:cubin|ptx)$", listed.stdout, re.M)
            counts.update(f"{kind} {architecture}" for architecture in found)
        else:
            return counts
    pytest.skip(f"no cuobjdump here reads it: {listed.stderr.strip()}")


@pytest.mark.skipif(not DUMPERS or not FOUND, reason="no real environment with Triton and CUDA libraries")
@pytest.mark.parametrize("path", FOUND, ids=lambda p: f"{p.parents[5].name[:8]}-{p.name}")
def test_the_architectures_are_those_of_cuobjdump(path: Path, build_dir: Path):
    probe = build_dir / "tests" / "metadata" / "device_code_probe"
    ours = subprocess.run([probe, path], capture_output=True, text=True, check=True).stdout
    assert "problem" not in ours
    rows: collections.Counter = collections.Counter()
    for name, count in re.findall(r"^  ((?:cubin|ptx) \d+)[af]? (\d+) \d+", ours, re.M):
        rows[name] += int(count)
    assert rows == cuobjdump(path)
