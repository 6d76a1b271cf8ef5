"""Memory of the devices, by NVIDIA's management library, where a driver is there.

Asked by ctypes for three numbers: no package is needed, no context is made, and the library belongs to the driver.
"""
from __future__ import annotations

import ctypes
from typing import Any


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def device_memory(library: str = "libnvidia-ml.so.1") -> list[dict[str, Any]]:
    """[{"index", "name", "total", "free", "used"}] in bytes, all processes together; empty without a driver.

    The index is NVML's (the order of the PCI bus), not the one that CUDA_VISIBLE_DEVICES makes.
    """
    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2():
            return []
    except (OSError, AttributeError):
        return []
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        return [found for found in (_device(nvml, index) for index in range(count.value)) if found]
    except AttributeError:
        return []
    finally:
        nvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> dict[str, Any] | None:
    handle, memory, name = ctypes.c_void_p(), _Memory(), ctypes.create_string_buffer(96)
    if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
        return None
    if nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
        return None
    nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(len(name)))
    return {"index": index, "name": name.value.decode(errors="replace"), "total": memory.total, "free": memory.free,
            "used": memory.used}
