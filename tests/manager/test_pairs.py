"""Real frameworks that do not go together in one process, each in a worker, arrays between them."""
from __future__ import annotations

import signal
import subprocess

import pytest

import places
from test_examples import environment_with_torch

PAIRS = """
import cohabit, numpy
env = {env!r}
with cohabit.FrameworkManager() as manager:
    tensorflow, paddle, torch = (manager.worker(name, env=env, log=False, start_timeout=250) for name in ("tensorflow", "paddle", "torch"))
    for _ in range(3):
        ones = tensorflow.call("tensorflow.ones", [64, 64])
        for worker in (paddle, torch, tensorflow):
            ones = worker.call(worker.name + ".matmul", ones, ones) / 64
            assert ones.shape == (64, 64) and (ones == 1).all(), worker
    pids = {{pid for worker in (tensorflow, paddle, torch) for pid in worker.pids}}
    assert len(pids) == 3
"""


def test_tensorflow_paddle_and_torch_together() -> None:
    env = environment_with_torch()
    alone = subprocess.run([env + "/bin/python", "-c", "import tensorflow, paddle"], capture_output=True, timeout=250)
    assert alone.returncode < 0, "in one process they crash"
    places.run_caller(places.arrays("3.11"), PAIRS.format(env=env), timeout=300)


def test_bfloat16_between_frameworks(tmp_path) -> None:
    """As tensors to functions by name; and where no ml_dtypes is, to a service that has imported torch."""
    (tmp_path / "halves.py").write_text("""
import sys
sys.modules["ml_dtypes"] = None
import torch
class Halves:
    def double(self, value):
        assert value.dtype == torch.bfloat16, value
        value *= 2
        return value
make = Halves
""")
    env = environment_with_torch()
    places.run_caller(env, f"""
import cohabit, ml_dtypes, numpy, torch
half = torch.arange(40000).to(torch.bfloat16).reshape(200, 200)
with cohabit.Worker("torch", log=False) as named, cohabit.Worker("paddle", log=False) as paddle, \\
        cohabit.Worker(setup="halves:make", path={str(tmp_path)!r}) as service:
    for worker, name in ((named, "torch.neg"), (paddle, "paddle.neg"), (service, "double")):
        for sent in (half, half[:2, :3].t(), half[3, 4], half[:0], half.float().numpy().astype(ml_dtypes.bfloat16).T):
            answer = worker.call(name, sent)
            wanted = (sent if isinstance(sent, torch.Tensor) else torch.from_numpy(sent.astype("f4"))).float().numpy() * (2 if name == "double" else -1)
            assert answer.dtype == ml_dtypes.bfloat16 and answer.shape == tuple(sent.shape), (name, answer)
            assert (answer.astype("f4") == torch.tensor(wanted).to(torch.bfloat16).float().numpy()).all(), name
""", timeout=240)


def test_their_crash_in_one_worker_names_the_library(tmp_path, monkeypatch, cohabit) -> None:
    import cohabit as package

    (tmp_path / "both.py").write_text("class Both:\n    def load(self):\n        import tensorflow, paddle\n\n\nmake = Both\n")
    monkeypatch.setattr(package, "command", lambda: cohabit)
    with package.Worker("both", env=environment_with_torch(), setup="both:make", path=tmp_path, log=False) as worker:
        with pytest.raises(package.WorkerCrashed) as caught:
            worker.call("load", timeout=250)
    error = caught.value
    assert error.signal in (signal.SIGSEGV, signal.SIGABRT) and len(error.native_frames) > 3, error
    assert any("libpaddle.so" in frame or "tensorflow" in frame for frame in error.native_frames), error
    assert error.explanation and error.explanation["answers"] and "paddle" in "".join(error.python_frames), error


VERSIONS = """
import cohabit, numpy
with cohabit.FrameworkManager() as manager:
    workers = [manager.worker("torch", env=env, log=False, start_timeout=250) for env in {envs!r}]
    built_for = [worker.call("torch.version.cuda.upper") for worker in workers]
    ones = numpy.ones((64, 64), dtype="float32")
    for _ in range(3):
        for worker in workers:
            ones = worker.call("torch.matmul", ones, ones) / 64
            assert (ones == 1).all()
print(*built_for)
"""


def test_two_versions_of_torch_and_of_python() -> None:
    envs = [places.ready("cpu"), places.ready("ocr")]
    out = places.run_caller(places.arrays("3.11"), VERSIONS.format(envs=envs), timeout=300)
    assert out.split() == ["12.8", "12.1"], "the CUDA that torch 2.8.0 and 2.1.2 are built for"
