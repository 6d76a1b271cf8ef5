"""The manager's turns, memory, budgets and shared tensors on a GPU, in the environment's own frameworks."""
from __future__ import annotations

import itertools

import pytest

# How each makes ones of a shape on the GPU, and reads a sum.
ONES = {
    "torch": "torch.ones({0}, device='cuda')",
    "jax": "jax.device_put(jax.numpy.ones({0}), jax.devices('gpu')[0])",
    "cupy": "cupy.ones({0}, dtype='float32')",
    "paddle": "paddle.ones({0}).cuda()",
    "tensorflow": "tensorflow.identity(tensorflow.ones({0}))",
}
PREPARE = """import cohabit, gc
manager = cohabit.FrameworkManager(frameworks={0!r})
MIB = 1 << 20
def total(tensor): return float(tensor.sum() if hasattr(tensor, "sum") else manager.tensorflow.reduce_sum(tensor))
"""


def start(*frameworks: str) -> str:
    return PREPARE.format(list(frameworks)) + "".join(f"{name} = manager.switch_to({name!r})\n" for name in frameworks)


@pytest.mark.parametrize("first, second", list(itertools.permutations(("torch", "cupy", "jax", "paddle", "tensorflow"), 2)))
def test_turns_and_a_shared_tensor(first: str, second: str, needs, run) -> None:
    """Both compute on the device, in turns; a tensor of one is the other's, in the same memory, with what was written last."""
    needs(first, second)
    run(start(first, second) + f"""
import time
for turn in range(3):
    {first} = manager.switch_to({first!r})
    a = {ONES[first].format((256, 256))}
    a = a @ a
    assert float(a[3, 5]) == 256
    {second} = manager.switch_to({second!r})
    b = {ONES[second].format((128, 128))}
    b = b @ b
    assert float(b[3, 5]) == 128
    # Work that is still under way when it is shared: the consumer must not read too early.
    big = {ONES[first].format((4096, 4096))}
    for step in range(20):
        big = big @ big / 4096
    shared, copied, how = manager.share(big, to={second!r})
    assert total(shared) == 4096 * 4096, (total(shared), how)
    assert copied is False, (copied, how)
report = manager.report()
print(report)
for name in ({first!r}, {second!r}):
    one = report.frameworks[name]
    assert any(device.startswith("cuda:") for device in one.devices), one
    assert one.prediction in ("sound", "repaired"), one
    if one.memory:
        assert one.memory[0].device == "cuda:0" and one.memory[0].held > 0, one.memory
assert report.devices and report.devices[0]["used"] > 0
""")


@pytest.mark.parametrize("framework", ["torch", "cupy", "paddle"])
def test_cached_memory_is_given_back(framework: str, needs, run) -> None:
    """What was freed by the program stays in the framework's pool until another's turn; NVML sees it go."""
    needs(framework)
    other = "cupy" if framework == "torch" else "torch"
    needs(other)
    run(start(framework, other) + f"""
from cohabit._nvml import device_memory
manager.switch_to({framework!r})
warm = {ONES[framework].format((8, 8))} @ {ONES[framework].format((8, 8))}
large = {ONES[framework].format((1024, 1024, 512))}
held = manager.report().frameworks[{framework!r}].memory[0]
assert held.held >= 2048 * MIB, held
del large
gc.collect()
kept = manager.report().frameworks[{framework!r}].memory[0]
assert kept.cached >= 2048 * MIB, kept
before = device_memory()[0]["used"]
manager.switch_to({other!r})
after = device_memory()[0]["used"]
assert before - after >= 2048 * MIB, (before, after)
left = manager.report().frameworks[{framework!r}].memory[0]
assert left.cached < 100 * MIB, left
assert float(warm[0, 0]) == 8  # its tensors are untouched
""")


def test_waiting_does_not_set_a_device_up(needs, run) -> None:
    needs("torch", "cupy")
    run(start("torch", "cupy") + """
for turn in range(3):
    manager.switch_to("torch"); manager.switch_to("cupy"); manager.report()
assert not torch.cuda.is_initialized()
import ctypes
driver, flags, active = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint(), ctypes.c_int(-1)
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0 and active.value == 0, "a context was made"
torch.ones(1, device="cuda")
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0 and active.value == 1
""")


@pytest.mark.parametrize("framework, allocate", [
    ("torch", "torch.empty({n}, dtype=torch.uint8, device='cuda')"),
    ("cupy", "cupy.empty({n}, dtype='uint8')"),
    ("jax", "jax.numpy.zeros({n}, dtype='uint8').block_until_ready()"),
])
def test_a_budget_holds(framework: str, allocate: str, needs, run) -> None:
    """Four gigabytes are allowed: three can be had, eight cannot."""
    needs(framework)
    print(run(f"""
import cohabit, os
manager = cohabit.FrameworkManager(memory={{{framework!r}: "4GiB"}})
{framework} = manager.switch_to({framework!r})
print(manager.report())
few = {allocate.format(n="3 << 30")}
del few
try:
    many = {allocate.format(n="8 << 30")}
except Exception as error:
    print(type(error).__name__, error)
    assert "memory" in str(error).lower() or "Memory" in type(error).__name__, error
else:
    raise SystemExit("8 GiB were given out of a budget of 4: " + str(manager.report().frameworks[{framework!r}]))
""", XLA_PYTHON_CLIENT_PREALLOCATE="true"))
