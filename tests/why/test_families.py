"""Numbers and names that many programs print, each in its own words: every mechanism that names one is found by all
of them. The words are those of the programs, the numbers those of the mechanism files."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import MECHANISMS, slugs, why  # noqa: E402

CUDA = [
    "CUDA error {n} at /src/ggml-cuda.cu:5661", "cuda error code={n}(x)", "CUDA_ERROR({n})", "CUDA failure {n} ; GPU=0 ; hostname=n1",
    "[E] CUDA initialization failure with error: {n}", "cuda runtime error ({n}) : x at /THC/THCGeneral.cpp:50",
    "cudaGetDeviceCount returned {n}\n-> x", "cuInit(0) failed with {n}", "[{n}] Call to cuModuleLoadDataEx results in X",
    "OSError: (External) CUDA error({n}), x.", "Error: cudaError {n}.",
]
WINDOWS = [
    "OSError: [WinError {n}] x Error loading \"C:\\\\x\\\\a.dll\" or one of its dependencies.",
    "[E:onnxruntime:test, provider_bridge_ort.cc:633 onnxruntime::ProviderLibrary::ProviderLibrary] Failed to load library, error code: {n}",
    "The third-party dynamic library (a.dll) that the program depends on is not configured correctly. (error code is {n})",
    "LoadLibrary() failed: GetLastError={n}", "could not load plugin a.dll: Windows error {n}", "LoadLibraryExW a.dll: error code 0x{n:x}",
    "System.DllNotFoundException: x 'a' (0x8007{n:04X})",
]
HEADERS = [
    "a.cpp:1:10: fatal error: {h}: No such file or directory", "a.cpp:1:10: fatal error: '{h}' file not found",
    "a.cpp(1): fatal error C1083: Cannot open include file: '{h}': No such file or directory",
    'a.cu(1): catastrophic error: cannot open source file "{h}"', "a.c:7: error: include file '{h}' not found",
]


def numbers(key: str) -> list:
    return [pytest.param(slug, number, id=f"{slug}-{number}") for slug, data in MECHANISMS.items()
            for signal in data["signals"] for number in signal.get(key, [])]


@pytest.mark.parametrize("slug, number", numbers("cuda_errors"))
def test_a_number_of_cuda(slug: str, number: int, cohabit: str):
    for form in CUDA:
        assert slugs(why(cohabit, form.format(n=number)))[:1] == [slug], form
        assert slug not in slugs(why(cohabit, form.format(n=f"{number}7"))), form
        assert slug not in slugs(why(cohabit, form.format(n=f"{number}.5"))), form


@pytest.mark.parametrize("slug, number", numbers("windows_errors"))
def test_a_number_of_windows(slug: str, number: int, cohabit: str):
    for form in WINDOWS:
        assert slugs(why(cohabit, form.format(n=number)))[:1] == [slug], form


@pytest.mark.parametrize("header, slug", [("Python.h", "compiler-not-found"), ("libaio.h", "compiler-not-found"),
                                          ("cuda_runtime.h", "toolkit-not-found"), ("cudnn.h", "toolkit-not-found"),
                                          ("thrust/complex.h", "toolkit-not-found"), ("THC/THC.h", "api-of-another-release")])
def test_a_header(header: str, slug: str, cohabit: str):
    for form in HEADERS:
        assert slugs(why(cohabit, form.format(h=header)))[:1] == [slug], form
