"""Memory of devices from NVML, with a library that stands in for it."""
from __future__ import annotations

import shutil
import subprocess

import pytest

import places  # noqa: F401  (puts the package on sys.path)
from cohabit._nvml import device_memory

LIBRARY = """
#include <string.h>
static int started;
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { if (FAIL == 1) return 9; started = 1; return 0; }
int nvmlShutdown(void) { started = 0; return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 3; return started ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)(0x7f0000000000 + index); return index == 1 ? 15 : 0; }
int nvmlDeviceGetMemoryInfo(void* device, struct memory* m) {
  unsigned long long n = (unsigned long long)device - 0x7f0000000000;
  m->total = (10 + n) << 30; m->free = (7 + n) << 30; m->used = 3ull << 30; return 0; }
int nvmlDeviceGetName(void* device, char* name, unsigned size) { strncpy(name, "Stand-in", size); return 0; }
"""


@pytest.fixture
def library(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")

    def make(fail=0, source=LIBRARY):
        path = tmp_path / f"libnvidia-ml-{fail}-{len(source)}.so"
        subprocess.run(["cc", "-shared", "-fPIC", f"-DFAIL={fail}", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        return str(path)

    return make


def test_devices_that_answer(library) -> None:
    gigabyte = 1 << 30
    assert device_memory(library()) == [
        {"index": 0, "name": "Stand-in", "total": 10 * gigabyte, "free": 7 * gigabyte, "used": 3 * gigabyte},
        {"index": 2, "name": "Stand-in", "total": 12 * gigabyte, "free": 9 * gigabyte, "used": 3 * gigabyte}]


def test_no_driver(library) -> None:
    assert device_memory("libnowhere-ml.so.1") == [] and device_memory(library(fail=1)) == []
    assert device_memory(library(source="int nvmlInit_v2(void) { return 0; } int nvmlShutdown(void) { return 0; }")) == []
