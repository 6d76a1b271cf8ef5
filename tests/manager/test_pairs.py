"""Real frameworks that do not go together in one process, each in a worker, arrays between them."""
from __future__ import annotations

import subprocess

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
