"""The adapters of the eight frameworks that the manager knows, and NumPy's.

What each call does was read in the frameworks' documents and sources, and run on machines without a GPU. On one (tests/gpu) torch,
jax, cupy and tensorflow were run; of the others the calls that are made there are tested with stand-ins.
"""
from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable
from typing import Any

from ._dlpack import CPU, read_capsule
from ._worker_main import has_no_numbers
from .adapters import Memory, ModuleAdapter

_EIGEN_ALIGNMENT = 64


def has_context(number: int) -> bool:
    """Whether this process has set a GPU up. Asked of the driver, if it is loaded; nothing is loaded or made for it."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(device), ctypes.c_int(number)):
        return False  # not initialised either
    if driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)):
        return False
    return bool(active.value)


class TorchAdapter(ModuleAdapter):
    name, aliases = "torch", ("pytorch",)

    def devices(self, module: Any) -> list[str]:
        return ["cpu"] + [f"cuda:{n}" for n in range(module.cuda.device_count())]

    def _used(self, module: Any) -> range:
        return range(module.cuda.device_count() if module.cuda.is_initialized() else 0)

    def synchronize(self, module: Any) -> None:
        for number in self._used(module):
            module.cuda.synchronize(number)

    def free_cached(self, module: Any) -> str:
        if not module.cuda.is_initialized():
            return ""
        module.cuda.empty_cache()
        return "its CUDA context stays until the process ends"

    def memory(self, module: Any) -> list[Memory]:
        found = []
        for number in self._used(module):
            held = module.cuda.memory_allocated(number)
            found.append(Memory(f"cuda:{number}", held, module.cuda.memory_reserved(number) - held))
        return found

    def limit(self, module: Any, share: float) -> None:
        def set_limits() -> None:
            for number in range(module.cuda.device_count()):
                fraction = share if share <= 1 else share / module.cuda.get_device_properties(number).total_memory
                module.cuda.set_per_process_memory_fraction(min(fraction, 1.0), number)

        module.cuda._lazy_call(set_limits)  # when CUDA is initialised: asking for devices now would do that now

    def from_dlpack(self, module: Any, value: Any) -> Any:
        return module.from_dlpack(value)

    def exporter(self, module: Any, value: Any) -> Any:
        # torch refuses the like of it for conjugates, and hands these over as if they were positive.
        if getattr(value, "is_neg", bool)():
            raise BufferError("a view that negates its memory lazily cannot be shared: use its resolve_neg()")
        return value


class PaddleAdapter(ModuleAdapter):
    name, aliases = "paddle", ("paddlepaddle",)

    def devices(self, module: Any) -> list[str]:
        return ["cpu"] + [f"cuda:{n}" for n in range(self._count(module))]

    def _count(self, module: Any) -> int:
        return module.device.cuda.device_count() if module.device.is_compiled_with_cuda() else 0

    def _used(self, module: Any) -> list[int]:
        # Paddle does not tell whether a device is set up; one on which it has reserved nothing has no work either.
        return [n for n in range(self._count(module)) if module.device.cuda.max_memory_reserved(n)]

    def synchronize(self, module: Any) -> None:
        for number in self._used(module):
            module.device.synchronize(f"gpu:{number}")

    def free_cached(self, module: Any) -> str:
        if not self._used(module):
            return ""
        module.device.cuda.empty_cache()
        return "its CUDA context stays until the process ends"

    def memory(self, module: Any) -> list[Memory]:
        found = []
        for number in self._used(module):
            held = module.device.cuda.memory_allocated(number)
            found.append(Memory(f"cuda:{number}", held, module.device.cuda.memory_reserved(number) - held))
        return found

    def from_dlpack(self, module: Any, value: Any) -> Any:
        if hasattr(module, "from_dlpack"):
            return module.from_dlpack(value)
        return module.utils.dlpack.from_dlpack(value.__dlpack__())

    def exporter(self, module: Any, value: Any) -> Any:
        if hasattr(value, "__dlpack__"):
            return value
        return _Exporter(module.utils.dlpack.to_dlpack, value, value.place.is_cpu_place())


class TensorflowAdapter(ModuleAdapter):
    name, aliases = "tensorflow", ("tf",)

    def devices(self, module: Any) -> list[str]:
        return ["cpu"] + [f"cuda:{n}" for n in range(len(module.config.list_physical_devices("GPU")))]

    def _count(self, module: Any) -> int:
        # There is no public call that tells whether the devices are set up. Without a GPU it does not matter.
        if not module.config.list_physical_devices("GPU"):
            return 0
        try:
            context = importlib.import_module("tensorflow.python.eager.context")
            return len(module.config.list_logical_devices("GPU")) if context.context()._initialized else 0
        except (ImportError, AttributeError):
            return len(module.config.list_logical_devices("GPU"))

    def synchronize(self, module: Any) -> None:
        if self._count(module):
            module.test.experimental.sync_devices()

    def free_cached(self, module: Any) -> str:
        if not self._count(module):
            return ""
        return "TensorFlow keeps what its allocator has until the process ends: it has no call to give it back"

    def memory(self, module: Any) -> list[Memory]:
        tell = module.config.experimental.get_memory_info
        return [Memory(f"cuda:{n}", tell(f"GPU:{n}")["current"], None) for n in range(self._count(module))]

    def from_dlpack(self, module: Any, value: Any) -> Any:
        # TensorFlow takes any address, and ends the process at the first operation that finds it not aligned for Eigen.
        capsule = value.__dlpack__()
        address, _ = read_capsule(capsule)
        if address is None or address % _EIGEN_ALIGNMENT == 0:
            return module.experimental.dlpack.from_dlpack(capsule)
        if value.__dlpack_device__()[0] != CPU:
            raise BufferError(f"TensorFlow needs memory at a multiple of {_EIGEN_ALIGNMENT} bytes: make a copy of the tensor first")
        return module.convert_to_tensor(importlib.import_module("numpy").from_dlpack(value))

    def exporter(self, module: Any, value: Any) -> Any:
        if has_no_numbers(value):
            raise TypeError(f"a tensor of {value.dtype!r} cannot be shared: DLPack has no type for its elements")
        if not hasattr(value, "device") or isinstance(value, module.Variable):
            raise TypeError(f"a {type(value).__name__} of TensorFlow is no tensor: share its value, or its parts")
        if hasattr(value, "__dlpack__"):
            return value
        return _Exporter(module.experimental.dlpack.to_dlpack, value, "CPU" in value.device)


class JaxAdapter(ModuleAdapter):
    name = "jax"

    def _devices(self, module: Any) -> list[Any]:
        # jax.devices() would set the backends up (and reserve three quarters of each GPU).
        try:
            is_up = importlib.import_module("jax._src.xla_bridge").backends_are_initialized()
        except (ImportError, AttributeError):
            is_up = True
        return list(module.local_devices()) if is_up else []

    def devices(self, module: Any) -> list[str]:
        found = [_device_name(device.platform, device.id) for device in self._devices(module)]
        return found or ["not set up yet"]

    def synchronize(self, module: Any) -> None:
        if self._devices(module):
            module.effects_barrier()
            for array in module.live_arrays():
                array.block_until_ready()

    def free_cached(self, module: Any) -> str:
        if all(device.platform == "cpu" for device in self._devices(module)):
            return ""
        return "JAX keeps what its allocator has until the process ends: it has no call to give it back"

    def memory(self, module: Any) -> list[Memory]:
        found = []
        for device in self._devices(module):
            stats = device.memory_stats() or {}
            held, pool = stats.get("bytes_in_use"), stats.get("pool_bytes")
            if held is not None:
                cached = pool - held if pool is not None else None
                found.append(Memory(_device_name(device.platform, device.id), held, cached))
        return found

    def from_dlpack(self, module: Any, value: Any) -> Any:
        return importlib.import_module("jax.dlpack").from_dlpack(value)


class OnnxruntimeAdapter(ModuleAdapter):
    name, aliases = "onnxruntime", ("onnx", "ort")

    def devices(self, module: Any) -> list[str]:
        # Providers of the build; whether one can be set up is known when a session tries.
        return [name.replace("ExecutionProvider", "").lower() for name in reversed(module.get_available_providers())]

    def free_cached(self, module: Any) -> str:
        return ("a session keeps its arena until it is deleted, or shrinks it with the run option "
                "memory.enable_memory_arena_shrinkage; run() returns when its work is done")


class CupyAdapter(ModuleAdapter):
    name = "cupy"

    def _count(self, module: Any) -> int:
        try:
            return int(module.cuda.runtime.getDeviceCount())
        except module.cuda.runtime.CUDARuntimeError:
            return 0

    def _used(self, module: Any) -> list[int]:
        found = []
        for number in range(self._count(module)):
            if not has_context(number):
                continue  # entering the device would make one (CUDA 12: cudaSetDevice does)
            with module.cuda.Device(number):
                if module.get_default_memory_pool().total_bytes():
                    found.append(number)
        return found

    def devices(self, module: Any) -> list[str]:
        return [f"cuda:{number}" for number in range(self._count(module))]

    def synchronize(self, module: Any) -> None:
        for number in self._used(module):
            module.cuda.Device(number).synchronize()

    def free_cached(self, module: Any) -> str:
        used = self._used(module)
        for number in used:
            with module.cuda.Device(number):
                module.get_default_memory_pool().free_all_blocks()
        if used:
            module.get_default_pinned_memory_pool().free_all_blocks()
        return "its CUDA context stays until the process ends" if used else ""

    def memory(self, module: Any) -> list[Memory]:
        found = []
        for number in self._used(module):
            with module.cuda.Device(number):
                pool = module.get_default_memory_pool()
                found.append(Memory(f"cuda:{number}", pool.used_bytes(), pool.free_bytes()))
        return found

    def from_dlpack(self, module: Any, value: Any) -> Any:
        return module.from_dlpack(value)


class Ctranslate2Adapter(ModuleAdapter):
    name = "ctranslate2"

    def devices(self, module: Any) -> list[str]:
        return ["cpu"] + [f"cuda:{n}" for n in range(module.get_cuda_device_count())]

    def free_cached(self, module: Any) -> str:
        if not module.get_cuda_device_count():
            return ""
        return "a model keeps its memory until it is deleted or its unload_model() is called"


class XgboostAdapter(ModuleAdapter):
    name = "xgboost"

    def devices(self, module: Any) -> list[str]:
        # It has no call that lists devices; its build tells whether it could use one.
        return ["cpu"] + (["cuda"] if module.build_info().get("USE_CUDA") else [])

    def free_cached(self, module: Any) -> str:
        if "cuda" not in self.devices(module):
            return ""
        return "a Booster or DMatrix keeps its memory until it is deleted; training returns when its work is done"


class NumpyAdapter(ModuleAdapter):
    """No framework, but what arrays are shared to."""

    name = "numpy"
    takes_backwards = True

    def from_dlpack(self, module: Any, value: Any) -> Any:
        return module.from_dlpack(value)


class _Exporter:
    """Tensors of releases that have a function instead of the methods."""

    def __init__(self, export: Callable[[Any], Any], value: Any, is_cpu: bool) -> None:
        self._export, self._value, self._is_cpu = export, value, is_cpu

    def __dlpack__(self) -> Any:
        return self._export(self._value)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1 if self._is_cpu else 2), 0  # kDLCPU, kDLCUDA


def _device_name(platform: str, number: int) -> str:
    platform = "cuda" if platform == "gpu" else platform
    return platform if platform == "cpu" else f"{platform}:{number}"


OWN = (TorchAdapter, PaddleAdapter, TensorflowAdapter, JaxAdapter, OnnxruntimeAdapter, CupyAdapter, Ctranslate2Adapter,
       XgboostAdapter, NumpyAdapter)
