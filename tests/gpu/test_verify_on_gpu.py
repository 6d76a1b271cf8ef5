"""`cohabit verify` on a GPU: every framework computes on it, and the figures are those of NVIDIA's own tool."""
from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

from frameworks import PYTHON

SCHEMA = Path(__file__).resolve().parent.parent.parent / "data" / "schema" / "verify.schema.json"
COMPUTING = ("torch", "jax", "cupy", "tensorflow", "paddle", "pycuda", "xgboost")


@pytest.fixture
def verify(cohabit: str):
    def run(*imports: str, **variables: str) -> dict:
        done = subprocess.run([cohabit, "verify", PYTHON, "--imports", ",".join(imports), "--format", "json"], text=True,
                              capture_output=True, timeout=600, check=False, env=os.environ | variables)
        report = json.loads(done.stdout)
        jsonschema.validate(report, json.loads(SCHEMA.read_text()))
        (row,) = report["runs"]
        assert (done.returncode == 0) == (row["outcome"] == "ok")
        return row
    return run


def asked_of_nvidia(question: str) -> list[str]:
    answer = subprocess.run(["nvidia-smi", f"--query-gpu={question}", "--format=csv,noheader,nounits"], text=True,
                            capture_output=True, check=True)
    return answer.stdout.splitlines()


@pytest.mark.parametrize("framework", COMPUTING)
def test_each_computes_on_every_gpu(framework: str, needs, verify) -> None:
    needs(framework)
    row = verify(framework)
    assert row["outcome"] == "ok", row["detail"]
    assert row["agrees"], (row["predicted"], row["predicted_errors"])
    devices = {device["device"]: device for device in row["devices"]}
    names = asked_of_nvidia("name")
    if framework == "xgboost":
        assert "cuda:0" in devices
        return
    assert sorted(set(devices) - {"cpu"}) == [f"cuda:{n}" for n in range(len(names))]
    gpu = devices["cuda:0"]
    assert gpu["name"] == names[0]
    assert gpu["compute_capability"] in ("", asked_of_nvidia("compute_cap")[0])
    total = float(asked_of_nvidia("memory.total")[0]) * 2**20
    if gpu["total"] is not None:  # jax counts what it may take
        assert total * 0.5 < gpu["total"] <= total
    if framework in ("torch", "jax", "cupy", "paddle"):
        assert gpu["allocated"] is not None and gpu["allocated"] < 2**30
    assert any("libcuda.so" in library["path"] for library in row["libraries"])


@pytest.mark.parametrize("pair", list(itertools.permutations(("torch", "jax", "cupy", "tensorflow", "paddle"), 2)), ids="-".join)
def test_pairs(pair: tuple[str, str], needs, verify) -> None:
    """What is predicted is what happens, beside each other on one GPU."""
    needs(*pair)
    row = verify(*pair)
    assert row["agrees"], (row["outcome"], row["detail"], row["predicted"], row["predicted_errors"])
    if row["outcome"] == "ok":
        assert {device["framework"] for device in row["devices"] if device["device"] == "cuda:0"} == set(pair)


def test_versions_are_those_of_the_loaded_files(needs, verify) -> None:
    needs("torch")
    said = {Path(library["path"]).name.partition(".so")[0]: library["version"] for library in verify("torch")["libraries"]}
    code = "import torch; print(torch.backends.cudnn.version(), torch.version.cuda, '.'.join(map(str, torch.cuda.nccl.version())))"
    cudnn, cuda, nccl = subprocess.run([PYTHON, "-c", code], text=True, capture_output=True, check=True).stdout.split()
    parts = said["libcudnn"].split(".")
    assert int(cudnn) == int(parts[0]) * 10000 + int(parts[1]) * 100 + int(parts[2])
    assert said["libcudart"] == cuda
    assert said["libnccl"] == nccl
    assert said["libcuda"] == subprocess.run(["nvidia-smi"], text=True, capture_output=True,
                                             check=True).stdout.partition("CUDA Version:")[2].split()[0]


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_hidden_gpus(framework: str, needs, verify) -> None:
    needs(framework)
    row = verify(framework, CUDA_VISIBLE_DEVICES="")
    assert row["outcome"] == "ok", row["detail"]
    assert [device["device"] for device in row["devices"]] == ["cpu"] and row["notes"] == []
