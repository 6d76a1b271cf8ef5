"""Runs that fail for a known reason: an environment is really broken, and what the frameworks then
print is the log. `causes` are the mechanisms of which one must be the first answer."""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from environment_copy import EnvironmentCopy


@dataclass
class Place:
    """What a scenario may use: the copy it breaks, the other environments, a directory of its own."""
    copy: EnvironmentCopy
    others: Callable[[str], Path]  # site-packages of another environment
    scratch: Path
    variables: dict[str, str] = field(default_factory=dict)
    wrapper: list[str] = field(default_factory=list)  # in front of the interpreter

    def library_path(self, *directories: Path) -> None:
        self.variables["LD_LIBRARY_PATH"] = ":".join(map(str, directories))

    def module_path(self, directory: Path) -> None:
        self.variables["PYTHONPATH"] = str(directory)

    def lend(self, environment: str, *names: str) -> Path:
        """A directory on sys.path with packages of another environment."""
        target = self.scratch / "lent"
        target.mkdir(exist_ok=True)
        for name in names:
            source = next(self.others(environment).glob(name))
            subprocess.run(["cp", "-al", str(source), str(target / source.name)], check=True)
        return target

    def compile(self, name: str, source: str, *flags: str) -> Path:
        file = self.scratch / f"{name}.c"
        file.write_text(source)
        library = self.scratch / name
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(file), *flags], check=True)
        return library


@dataclass
class Broken:
    name: str
    environment: str
    causes: list[str]
    breaks: Callable[[Place], None]
    code: str


MISSING = ["missing-soname-or-path", "soname-major-missing"]
NO_DRIVER = ["no-driver", "driver-too-old"]
IMPORT_TORCH = "import torch\nprint(torch.ones(2) + 1)"
IMPORT_TF = "import tensorflow as tf\nprint(tf.ones(2) + 1)"
IMPORT_PADDLE = "import paddle\nprint(paddle.ones([2]) + 1)"
IMPORT_NUMPY = "import numpy\nprint(numpy.ones(2) + 1)"


def nothing(place: Place) -> None:
    place.variables["CUDA_VISIBLE_DEVICES"] = ""


def without(*patterns: str) -> Callable[[Place], None]:
    return lambda place: place.copy.remove(*patterns)


def cut(pattern: str, share: float) -> Callable[[Place], None]:
    return lambda place: place.copy.truncate(pattern, share)


def pointer_file(pattern: str) -> Callable[[Place], None]:
    """What a checkout without git-lfs has in the place of a library."""
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
    return lambda place: place.copy.replace(pattern, text)


def class32(pattern: str) -> Callable[[Place], None]:
    return lambda place: place.copy.patch(pattern, 4, b"\x01")


DT_RPATH, DT_RUNPATH = 15, 29


def old_libraries(environment: str, *directories: str) -> Callable[[Place], None]:
    """LD_LIBRARY_PATH names libraries of an older toolkit. Wheels of torch have a DT_RPATH, which comes before that
    variable; here they have the DT_RUNPATH of conda and of distributions, which comes after it."""
    def set_path(place: Place) -> None:
        for name in ("torch_global_deps", "torch_cuda", "torch_cuda_linalg", "c10_cuda", "torch_python"):
            place.copy.replace_tag(f"torch/lib/lib{name}.so", DT_RPATH, DT_RUNPATH)
        place.library_path(*(place.others(environment) / one for one in directories))
        place.variables["LD_BIND_NOW"] = "1"  # what is missing shows at the import, not in the first call
    return set_path


def lent(environment: str, *names: str) -> Callable[[Place], None]:
    return lambda place: place.module_path(place.lend(environment, *names))


def variable(name: str, value: str) -> Callable[[Place], None]:
    return lambda place: place.variables.__setitem__(name, value)


def mounted(directory: Path | str, options: str = "") -> list[str]:
    """Runs a command with an empty file system in that place, which nobody else sees."""
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs {options} tmpfs {directory} && exec "$@"', "sh"]


def small_shm(place: Place) -> None:
    place.wrapper = mounted("/dev/shm", "-o size=512k")


def small_disk(place: Place) -> None:
    directory = place.scratch / "results"
    directory.mkdir()
    place.variables["RESULTS"] = str(directory)
    place.wrapper = mounted(directory, "-o size=512k")


def no_toolkit(place: Place) -> None:
    place.wrapper = mounted("/usr/local")


def read_only_cache(place: Place) -> None:
    directory = place.scratch / "torchinductor_user"
    directory.mkdir()
    place.variables["TORCHINDUCTOR_CACHE_DIR"] = str(directory)
    place.wrapper = mounted(directory, "-o ro")


def little_memory(place: Place) -> None:
    place.wrapper = ["prlimit", f"--as={3 << 30}"]


def extension(name: str, source: str, *flags: str) -> Callable[[Place], None]:
    def build(place: Place) -> None:
        library = place.compile(f"{name}.so", source, *flags)
        place.module_path(library.parent)
    return build


MODULE = "void *PyInit_{name}(void) {{ {body} return 0; }}"
MISSING_SYMBOL = "extern void {symbol}(void);\n" + MODULE


def old_libstdcxx(place: Place) -> None:
    versions = place.scratch / "versions.map"
    versions.write_text("GLIBCXX_3.4 { global: *; };\n")
    library = place.compile("libstdc++.so.6", "int nothing;", "-Wl,-soname,libstdc++.so.6",
                            f"-Wl,--version-script={versions}")
    place.library_path(library.parent)


def two_openmp_runtimes(place: Place) -> None:
    source = place.copy.find("paddle/libs/libiomp5.so")
    for name in ("conda", "pip"):
        directory = place.scratch / name
        directory.mkdir()
        shutil.copy(source, directory / "libiomp5.so")
    place.variables["RUNTIMES"] = ":".join(str(place.scratch / name / "libiomp5.so") for name in ("conda", "pip"))


TWO_OPENMP = """
import ctypes, os
for path in os.environ["RUNTIMES"].split(":"):
    print(path, ctypes.CDLL(path).omp_get_max_threads())
"""


def file_in_the_way(name: str) -> Callable[[Place], None]:
    def put(place: Place) -> None:
        directory = place.scratch / "src"
        directory.mkdir()
        (directory / f"{name}.py").write_text(f"import {name}\nlayer = {name}.nn.Linear(1, 1)\n")
        place.module_path(directory)
    return put


def older_metadata(name: str, old: str, new: str) -> Callable[[Place], None]:
    return lambda place: place.copy.edit(f"{name}-*.dist-info/METADATA", old, new)


def one_opencv_uninstalled(place: Place) -> None:
    """What `pip uninstall` of one of three opencv packages takes along."""
    record = place.copy.find("opencv_python_headless-*.dist-info/RECORD")
    names = {line.split(",")[0] for line in record.read_text().splitlines()}
    place.copy.remove(*(name for name in sorted(names)
                        if name.startswith("cv2/") and (place.copy.site / name).exists()))


DATALOADER = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.rand(3, 512, 512)
for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2):
    print(batch.mean())
"""
CUDA_EXTENSION = """
from torch.utils.cpp_extension import CUDAExtension
print(CUDAExtension("fused", ["fused.cu"]))
"""
BUILD = """
import pathlib, subprocess, sys, tempfile
place = pathlib.Path(tempfile.mkdtemp())
(place / "setup.py").write_text("from setuptools import setup, Extension\\nsetup(name='fast', version='1.0', "
                                "ext_modules=[Extension('fast', ['fast.c'])])\\n")
(place / "fast.c").write_text("int x;\\n")
subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", str(place)], check=True)
"""
TWO_PINS = """
import pathlib, subprocess, sys, tempfile, zipfile
place = pathlib.Path(tempfile.mkdtemp())
for name, version, needs in (("runtime", "11.8", ""), ("runtime", "12.4", ""), ("detector", "1.0", "runtime<12"),
                             ("reader", "2.0", "runtime>=12")):
    with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        info = f"{name}-{version}.dist-info"
        wheel.writestr(info + "/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
                       + (f"Requires-Dist: {needs}\\n" if needs else ""))
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--find-links", str(place), "detector", "reader"],
               check=True)
"""
INDUCTOR = """
import torch
print(torch.compile(lambda x: x.sin() + x.cos())(torch.ones(64)))
"""
# Relu on one float, as ONNX stores it.
ONNX = """
import onnxruntime
field = lambda number, value: bytes([number << 3 | 2, len(value)]) + value
value = lambda name: field(1, name) + field(2, field(1, b"\\x08\\x01" + field(2, field(1, b"\\x08\\x01"))))
node = field(1, b"x") + field(2, b"y") + field(4, b"Relu")
graph = field(1, node) + field(2, b"g") + field(11, value(b"x")) + field(12, value(b"y"))
model = b"\\x08\\x08" + field(7, graph) + field(8, b"\\x10\\x0d")
session = onnxruntime.InferenceSession(model, providers=PROVIDERS)
"""
ONNX_CUDA = ONNX.replace("PROVIDERS", "['CUDAExecutionProvider']") + "assert 'CUDA' in session.get_providers()[0]"
ILLEGAL = """
import numpy, ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0x0f, 0x0b]))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""

SCENARIOS = [
    *(Broken(f"torch-without-{name}", "cpu", MISSING, without(pattern), IMPORT_TORCH) for name, pattern in (
        ("cublaslt", "nvidia/cublas/lib/libcublasLt.so.12"), ("cupti", "nvidia/cuda_cupti/lib/libcupti.so.12"),
        ("cufile", "nvidia/cufile/lib/libcufile.so.0"))),
    Broken("torch-without-c10", "cpu", MISSING, without("torch/lib/libc10.so"), IMPORT_TORCH),
    Broken("torch-without-torch-cpu", "cpu", MISSING, without("torch/lib/libtorch_cpu.so"), IMPORT_TORCH),
    Broken("tensorflow-without-framework", "cpu", MISSING, without("tensorflow/libtensorflow_framework.so.2"),
           IMPORT_TF),
    Broken("paddle-without-phi", "cpu", MISSING + ["torch-paddle-clash-unspecified"],
           without("paddle/libs/libphi_core.so"), IMPORT_PADDLE),
    *(Broken(f"cut-{name}", environment, ["damaged-library"], cut(pattern, share), code)
      for name, environment, pattern, share, code in (
        ("torch-cpu", "cpu", "torch/lib/libtorch_cpu.so", 0, IMPORT_TORCH),
        ("cublas", "cpu", "nvidia/cublas/lib/libcublas.so.12", 0.4, IMPORT_TORCH),
        ("c10", "serving", "torch/lib/libc10.so", 0.00001, IMPORT_TORCH),
        ("numpy", "cpu", "numpy/_core/_multiarray_umath*.so", 0.00001, IMPORT_NUMPY),
        ("phi", "cpu", "paddle/libs/libphi_core.so", 0, IMPORT_PADDLE),
        ("tensorflow", "cpu", "tensorflow/libtensorflow_framework.so.2", 0, IMPORT_TF),
        ("onnxruntime", "serving", "onnxruntime/capi/onnxruntime_pybind11_state*.so", 0, "import onnxruntime"))),
    *(Broken(f"pointer-file-{name}", environment, ["damaged-library"], pointer_file(pattern), code)
      for name, environment, pattern, code in (
        ("cudnn", "cpu", "nvidia/cudnn/lib/libcudnn.so.9", IMPORT_TORCH),
        ("ctranslate2", "serving", "ctranslate2.libs/libctranslate2-*", "import ctranslate2"),
        ("scipy", "packages", "scipy.libs/*openblas*", "import scipy.linalg"))),
    *(Broken(f"class32-{name}", environment, ["wrong-platform-package"], class32(pattern), code)
      for name, environment, pattern, code in (
        ("numpy", "cpu", "numpy/_core/_multiarray_umath*.so", IMPORT_NUMPY),
        ("c10", "cpu", "torch/lib/libc10.so", IMPORT_TORCH),
        ("h5py", "packages", "h5py/defs*.so", "import h5py"))),
    Broken("wheel-of-another-python", "cpu", ["wrong-platform-package"],
           lambda place: (place.copy.add(place.copy.site / "numpy/_core/_multiarray_umath.cpython-39-x86_64-linux-gnu.so",
                                         place.copy.find("numpy/_core/_multiarray_umath*.so").read_bytes()),
                          place.copy.remove("numpy/_core/_multiarray_umath.cpython-311*.so")), IMPORT_NUMPY),
    Broken("old-cudnn-in-path", "cpu", ["ld-path-shadows-wheel", "cudnn-first-loader-or-too-old"],
           old_libraries("serving", "nvidia/cudnn/lib"), "import torch\nversion = torch.backends.cudnn.version()\n"
           "assert version >= 90800, version  # torch raises once only"),
    Broken("old-nccl-in-path", "cpu", ["nccl-symbol-version"], old_libraries("ocr", "nvidia/nccl/lib"), IMPORT_TORCH),
    Broken("old-cudart-in-path", "cpu", ["same-soname-missing-symbol"],
           old_libraries("ocr", "nvidia/cuda_runtime/lib"), IMPORT_TORCH),
    Broken("old-toolkit-in-path", "cpu", ["same-soname-missing-symbol", "cublaslt-symbol-version",
                                          "nvjitlink-symbol-version", "nccl-symbol-version"],
           old_libraries("ocr", "nvidia/cuda_runtime/lib", "nvidia/cublas/lib", "nvidia/cusparse/lib",
                         "nvidia/cusolver/lib", "nvidia/nccl/lib"), IMPORT_TORCH),
    Broken("old-torch-libraries", "cpu", ["torch-ext-abi"],
           lambda place: place.copy.replace("torch/lib/libtorch_python.so",
                                            (place.others("serving") / "torch/lib/libtorch_python.so").read_bytes()),
           IMPORT_TORCH),
    Broken("cv2-of-numpy-1", "conflict5", ["numpy-abi"], lent("arrays3.11", "numpy", "numpy.libs"), "import cv2"),
    Broken("pandas-needs-numpy-2", "packages", ["numpy-abi"], lent("conflict5", "numpy", "numpy.libs"), "import pandas"),
    Broken("full-disk", "server", ["disk-full"], small_disk,
           "import numpy, os\nnumpy.save(os.environ['RESULTS'] + '/embeddings.npy', numpy.ones(1 << 20))"),
    Broken("no-compiler", "server", ["compiler-not-found"], variable("CC", "/opt/toolchain/bin/gcc"), BUILD),
    Broken("two-pins", "server", ["pip-pin-conflict"], nothing, TWO_PINS),
    Broken("numpy-bool", "cpu", ["numpy-removed-name"], nothing, "import numpy as np\nprint(np.zeros(2, dtype=np.float_))"),
    Broken("shm-full", "cpu", ["shm-full"], small_shm, DATALOADER),
    Broken("paddle-without-setuptools", "ocr", ["missing-module"],
           without("setuptools", "setuptools-*.dist-info", "pkg_resources"), IMPORT_PADDLE),
    *(Broken(f"{name}-without-{module}", environment, ["missing-module"], without(module), code)
      for name, environment, module, code in (
        ("paddle", "cpu", "opt_einsum", IMPORT_PADDLE), ("torch", "serving", "typing_extensions.py", IMPORT_TORCH),
        ("tensorflow", "cpu", "wrapt", IMPORT_TF), ("jax", "newest", "ml_dtypes", "import jax"),
        ("tensorflow", "cpu", "astunparse", IMPORT_TF))),
    Broken("conflict-1", "ocr", ["symbol-leak-segv"], nothing, "import paddleocr"),
    Broken("conflict-2", "cpu", ["symbol-leak-segv"], nothing, IMPORT_TF + "\n" + IMPORT_PADDLE),
    Broken("conflict-4", "conflict4", ["symbol-leak-segv"], nothing,
           "import tensorflow\nimport torch\nprint(torch.ones(2) + 1)"),
    Broken("two-openmp-runtimes", "cpu", ["openmp-duplicate"], two_openmp_runtimes, TWO_OPENMP),
    *(Broken(f"no-driver-{name}", environment, NO_DRIVER, nothing, code) for name, environment, code in (
        ("torch", "cpu", "import torch\nprint(torch.zeros(1, device='cuda'))"),
        ("torch-old", "ocr", "import torch\ntorch.cuda.init()"),
        ("paddle", "ocr", "import torch, paddle\npaddle.set_device('gpu:0')\nprint(paddle.ones([2]))"),
        ("ctranslate2", "serving", "import ctranslate2\nctranslate2.get_supported_compute_types('cuda')"),
        ("cupy", "serving", "import cupy\nprint(cupy.zeros(1))"),
        ("triton", "cpu", "import triton\ntriton.runtime.driver.active.get_current_device()"))),
    Broken("no-driver-jax", "newest", NO_DRIVER, variable("JAX_PLATFORMS", "cuda"), "import jax\njax.devices()"),
    Broken("cuda-provider-without-cublas", "serving", ["ort-provider-missing-soname"], nothing, ONNX_CUDA),
    Broken("cpu-paddle", "demo", ["cpu-build-installed"], nothing, "import paddle\npaddle.set_device('gpu')"),
    Broken("cpu-lightgbm", "packages", ["cpu-build-installed"], nothing,
           "import lightgbm, numpy\nlightgbm.train({'device': 'cuda'}, lightgbm.Dataset(numpy.random.rand(50, 2), "
           "numpy.ones(50)))"),
    Broken("cpu-opencv", "packages", ["cpu-build-installed"], nothing,
           "import cv2, numpy\ncv2.cuda.GpuMat().upload(numpy.ones((2, 2)))"),
    Broken("old-protobuf", "cpu", ["protobuf-python"], lent("conflict4", "google"), IMPORT_TF),
    Broken("extension-of-another-torch", "cpu", ["torch-ext-abi"],
           extension("fused", MISSING_SYMBOL.format(
               symbol="_ZN3c1017RegisterOperators3addEv", name="fused", body="_ZN3c1017RegisterOperators3addEv();")),
           "import torch, fused"),
    Broken("undefined-symbol", "cpu", ["undefined-symbol"],
           extension("codec", MISSING_SYMBOL.format(symbol="h265_encode_open", name="codec",
                                                    body="h265_encode_open();")), IMPORT_NUMPY + "\nimport codec"),
    Broken("library-of-an-extension", "cpu", MISSING,
           lambda place: (extension("codec", MODULE.format(name="codec", body=""))(place),
                          place.compile("libspeech.so.3", "int x;", "-Wl,-soname,libspeech.so.3"),
                          place.compile("codec.so", MODULE.format(name="codec", body=""), "-Wl,--no-as-needed",
                                        f"-L{place.scratch}", "-l:libspeech.so.3"),
                          os.remove(place.scratch / "libspeech.so.3")), IMPORT_NUMPY + "\nimport codec"),
    Broken("old-libstdcxx", "cpu", ["libstdcxx-version"], old_libstdcxx, IMPORT_TORCH),
    Broken("old-libstdcxx-tensorflow", "cpu", ["libstdcxx-version"], old_libstdcxx, IMPORT_TF),
    Broken("illegal-instruction", "cpu", ["illegal-instruction"], nothing, ILLEGAL),
    Broken("memory-numpy", "cpu", ["host-out-of-memory"], little_memory,
           "import numpy\nprint(numpy.ones((1000, 1000, 1000, 8)))"),
    Broken("memory-torch", "cpu", ["host-out-of-memory"], lambda place: None,
           "import torch\nprint(torch.ones(1 << 42))"),
    Broken("jaxlib-too-old", "newest", ["pip-pin-conflict"],
           lambda place: place.copy.edit("jaxlib/version.py", "0.12.0.1", "0.10.0"), "import jax"),
    Broken("unknown-xla-flag", "newest", ["xla-flags-unknown"], variable("XLA_FLAGS", "--xla_gpu_nonexistent_fusion=true"),
           "import jax\nprint(jax.numpy.ones(2) + 1)"),
    Broken("no-toolkit", "cpu", ["toolkit-not-found"], no_toolkit, CUDA_EXTENSION),
    Broken("read-only-cache", "cpu", ["compute-cache-permission"], read_only_cache, INDUCTOR),
    Broken("one-opencv-uninstalled", "ocr", ["overlapping-distributions"], one_opencv_uninstalled,
           "import cv2\nprint(cv2.imread('page.png'))"),
    Broken("tokenizers-too-old", "packages", ["pip-pin-conflict"],
           older_metadata("tokenizers", "Version: 0.23.3", "Version: 0.19.1"), "import transformers"),
    Broken("file-named-torch", "cpu", ["shadowing-module-or-user-site"], file_in_the_way("torch"), "import torch"),
]
