"""Which calls the adapters make where there is a GPU, with stand-ins for the frameworks; tests/gpu has real ones."""
from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

import places  # puts the package on sys.path
from cohabit import _own_adapters
from cohabit.adapters import Memory, known_adapters

ADAPTERS = known_adapters()


class Calls(list):
    def note(self, name, result=None):
        def call(*arguments):
            self.append((name, *arguments))
            return result(*arguments) if callable(result) else result

        return call


def torch(calls, used):
    cuda = SimpleNamespace(device_count=lambda: 2, is_initialized=lambda: used, synchronize=calls.note("synchronize"),
                           empty_cache=calls.note("empty_cache"), memory_allocated=lambda n: 10 + n, memory_reserved=lambda n: 100)
    return SimpleNamespace(cuda=cuda)


def paddle(calls, used):
    cuda = SimpleNamespace(device_count=lambda: 2, max_memory_reserved=lambda n: 100 if used else 0, empty_cache=calls.note("empty_cache"),
                           memory_allocated=lambda n: 10 + n, memory_reserved=lambda n: 100)
    return SimpleNamespace(device=SimpleNamespace(cuda=cuda, is_compiled_with_cuda=lambda: True,
                                                  synchronize=lambda place: calls.append(("synchronize", int(place[4:])))))


@pytest.mark.parametrize("make", [torch, paddle])
def test_torch_and_paddle(make) -> None:
    adapter, calls = ADAPTERS[make.__name__], Calls()
    module = make(calls, used=True)
    adapter.synchronize(module)
    assert "context" in adapter.free_cached(module)
    assert calls == [("synchronize", 0), ("synchronize", 1), ("empty_cache",)]
    assert adapter.memory(module) == [Memory("cuda:0", 10, 90), Memory("cuda:1", 11, 89)]
    assert adapter.devices(module) == ["cpu", "cuda:0", "cuda:1"]


@pytest.mark.parametrize("make", [torch, paddle])
def test_a_device_that_is_not_in_use_is_left_alone(make) -> None:
    adapter, calls = ADAPTERS[make.__name__], Calls()
    module = make(calls, used=False)
    adapter.synchronize(module)
    assert adapter.free_cached(module) == "" and adapter.memory(module) == [] and calls == []


def test_paddle_without_cuda() -> None:
    module = SimpleNamespace(device=SimpleNamespace(is_compiled_with_cuda=lambda: False))
    adapter = ADAPTERS["paddle"]
    adapter.synchronize(module)
    assert adapter.free_cached(module) == "" and adapter.devices(module) == ["cpu"] and adapter.memory(module) == []


def test_cupy(monkeypatch) -> None:
    monkeypatch.setattr(_own_adapters, "has_context", lambda number: True)
    calls, on = Calls(), []

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            on.append(self.number)

        def __exit__(self, *_):
            on.pop()

        def synchronize(self):
            calls.append(("synchronize", self.number))

    pool = SimpleNamespace(total_bytes=lambda: 100 if on[-1] == 1 else 0, used_bytes=lambda: 30, free_bytes=lambda: 70,
                           free_all_blocks=lambda: calls.append(("free", on[-1])))
    pinned = SimpleNamespace(free_all_blocks=lambda: calls.append(("pinned",)))
    runtime = SimpleNamespace(getDeviceCount=lambda: 2, CUDARuntimeError=ZeroDivisionError)
    module = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=Device), get_default_memory_pool=lambda: pool,
                             get_default_pinned_memory_pool=lambda: pinned)
    adapter = ADAPTERS["cupy"]
    adapter.synchronize(module)
    assert adapter.free_cached(module) and calls == [("synchronize", 1), ("free", 1), ("pinned",)]
    assert adapter.memory(module) == [Memory("cuda:1", 30, 70)]
    monkeypatch.setattr(_own_adapters, "has_context", lambda number: False)  # entering a device would make one
    before = list(calls)
    adapter.synchronize(module)
    assert adapter.free_cached(module) == "" and adapter.memory(module) == [] and calls == before
    runtime.getDeviceCount = lambda: 1 / 0  # no driver
    assert adapter.devices(module) == [] and adapter.free_cached(module) == ""


def test_jax() -> None:
    calls = Calls()
    gpu = SimpleNamespace(platform="gpu", id=1, memory_stats=lambda: {"bytes_in_use": 5, "pool_bytes": 50})
    cpu = SimpleNamespace(platform="cpu", id=0, memory_stats=lambda: None)
    array = SimpleNamespace(block_until_ready=calls.note("array"))
    module = SimpleNamespace(local_devices=lambda: [cpu, gpu], effects_barrier=calls.note("effects"), live_arrays=lambda: [array, array])
    adapter = ADAPTERS["jax"]
    adapter.synchronize(module)
    assert calls == [("effects",), ("array",), ("array",)] and "no call" in adapter.free_cached(module)
    assert adapter.memory(module) == [Memory("cuda:1", 5, 45)] and adapter.devices(module) == ["cpu", "cuda:1"]


def test_tensorflow() -> None:
    calls = Calls()
    config = SimpleNamespace(list_physical_devices=lambda kind: ["a"], list_logical_devices=lambda kind: ["a"],
                             experimental=SimpleNamespace(get_memory_info=lambda name: {"current": 7}))
    module = SimpleNamespace(config=config, test=SimpleNamespace(experimental=SimpleNamespace(sync_devices=calls.note("sync"))))
    adapter = ADAPTERS["tensorflow"]
    adapter.synchronize(module)
    assert calls == [("sync",)] and "no call" in adapter.free_cached(module)
    assert adapter.memory(module) == [Memory("cuda:0", 7, None)] and adapter.devices(module) == ["cpu", "cuda:0"]


def test_torch_is_limited_when_it_sets_its_devices_up() -> None:
    calls, queue = Calls(), []
    cuda = SimpleNamespace(device_count=lambda: 2, get_device_properties=lambda n: SimpleNamespace(total_memory=(n + 1) << 30),
                           set_per_process_memory_fraction=calls.note("limit"), _lazy_call=queue.append)
    ADAPTERS["torch"].limit(SimpleNamespace(cuda=cuda), 0.4)
    assert calls == []
    queue.pop()()
    assert calls == [("limit", 0.4, 0), ("limit", 0.4, 1)]
    ADAPTERS["torch"].limit(SimpleNamespace(cuda=cuda), float(1536 << 20))
    queue.pop()()
    assert calls[2:] == [("limit", 1.0, 0), ("limit", 0.75, 1)]


DRIVER = """
int cuDeviceGet(int* device, int number) { *device = number + 7; return READY ? 0 : 3; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) { *flags = 0; *active = device == 8; return 0; }
"""


@pytest.mark.parametrize("ready, loaded, expected", [(1, True, [False, True]), (0, True, [False, False]), (1, False, [False, False])])
def test_a_context_is_seen_and_not_made(tmp_path, ready: int, loaded: bool, expected: list[bool]) -> None:
    """Asked of a driver that is loaded already; one that is not is not loaded for it."""
    library = tmp_path / "driver.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-DREADY={ready}", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", library], input=DRIVER,
                   text=True, check=True)
    code = (f"import ctypes\n{'ctypes.CDLL(' + repr(str(library)) + ')' if loaded else ''}\nfrom cohabit._own_adapters import has_context\n"
            "print([has_context(0), has_context(1)])\n")
    said = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(places.REPO / "python"), "LD_LIBRARY_PATH": "/nowhere"},
                          capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(expected)
