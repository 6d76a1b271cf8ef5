"""Versions, paths, libraries and languages vary; the answer does not. The texts are made from the
messages' true form in their programs, not from our patterns."""
from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import slugs, why  # noqa: E402

FORMS = {
    "nvjitlink-symbol-version":
        "ImportError: {unix}/libcusparse.so.{major}: undefined symbol: __nvJitLinkComplete_{major}_{n}, "
        "version libnvJitLink.so.{major}",
    "cublaslt-symbol-version":
        "OSError: {unix}/libcublas.so.{major}: symbol {name} version libcublasLt.so.{major} not defined in file "
        "libcublasLt.so.{major} with link time reference",
    "torch-ext-abi":
        "ImportError: {unix}/{ext}.cpython-3{n}-x86_64-linux-gnu.so: undefined symbol: _ZN3c10{len}{name}Ev",
    "pybind11-type-clash": 'ImportError: generic_type: type "{name}" is already registered!',
    "win-cudnn-sublib-mix":
        'OSError: [WinError 127] {w127} Error loading "{windows}\\cudnn_{part}64_{n}.dll" or one of its dependencies.',
    "win-missing-transitive-dll":
        'OSError: [WinError 126] {w126} Error loading "{windows}\\{ext}.dll" or one of its dependencies.',
    "win-msvc-runtime-1114":
        'OSError: [WinError 1114] {w1114} Error loading "{windows}\\{ext}.dll" or one of its dependencies.',
    "win-wrong-kind-dll": "ImportError: DLL load failed while importing {ext}: {w193}",
    "cudnn-first-loader-or-too-old":
        "E tensorflow/{ext}/cuda_dnn.cc:{n}] Loaded runtime CuDNN library: {v} but source was compiled with: {v2}.",
    "libstdcxx-version":
        "ImportError: {unix}/libstdc++.so.6: version `GLIBCXX_3.4.{n}' not found (required by {unix}/{ext}.so)",
    "glibc-too-old": "OSError: /lib64/libc.so.6: version `GLIBC_2.{n}' not found (required by {unix}/{ext}.so)",
    "static-tls": "ImportError: {unix}/lib{ext}.so.{n}: cannot allocate memory in static TLS block",
    "damaged-library": "ImportError: {unix}/lib{ext}.so.{n}: file too short",
    "openmp-duplicate": "OMP: Error #15: Initializing lib{ext}.so, but found lib{name}.dylib already initialized.",
    "ptx-newer-than-driver": "ptxas application ptx input, line {n}; fatal   : Unsupported .version {v}; "
                             "current version is '{v2}'",
    "arch-not-in-fatbin": "NVIDIA {name} {n} with CUDA capability sm_{n}0 is not compatible with the current PyTorch "
                          "installation.",
    "driver-too-old": "The NVIDIA driver on your system is too old (found version {n}0{n}0).",
    "pip-pin-conflict": "{ext} {v} requires {name}=={v2}, but you have {name} {v} which is incompatible.",
    "missing-soname-or-path": "ImportError: lib{ext}.so.{n}: cannot open shared object file: No such file or directory",
    "missing-module": "ModuleNotFoundError: No module named '{ext}'",
    "protobuf-python": "google.protobuf.runtime_version.VersionError: Detected incompatible Protobuf Gencode/Runtime "
                       "versions when loading {ext}/{name}.proto: gencode {v} runtime {v2}. Runtime version cannot be older",
    "hardware-ecc-xid": "NVRM: Xid (PCI:0000:{n}:00): 79, pid={n}{n}, GPU has fallen off the bus.",
    "ort-provider-missing-soname": "FAIL : Failed to load library {unix}/libonnxruntime_providers_{ext}.so with error: "
                                   "lib{name}.so.{n}: cannot open shared object file: No such file or directory",
    "gpu-out-of-memory": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {v} GiB (GPU {n}; {v2} GiB total",
}
LANGUAGES = [
    {"w126": "The specified module could not be found.", "w127": "The specified procedure could not be found.",
     "w1114": "A dynamic link library (DLL) initialization routine failed.",
     "w193": "%1 is not a valid Win32 application."},
    {"w126": "找不到指定的模块。", "w127": "找不到指定的程序。", "w1114": "动态链接库(DLL)初始化例程失败。",
     "w193": "%1 不是有效的 Win32 应用程序。"},
    {"w126": "Не найден указанный модуль.", "w127": "Не найдена указанная процедура.",
     "w1114": "Произошел сбой в программе инициализации библиотеки динамической компоновки (DLL).",
     "w193": "%1 не является приложением Win32."},
    {"w126": "Le module spécifié est introuvable.", "w127": "La procédure spécifiée est introuvable.",
     "w1114": "Une routine d'initialisation d'une bibliothèque de liens dynamiques (DLL) a échoué.",
     "w193": "%1 n'est pas une application Win32 valide."},
]
PREFIXES = ["", "[rank3]: ", "(APIServer pid=77) ", "2026-01-02T03:04:05.678Z ", "app-1  | ", "\x1b[31m", "\t"]


def vary(form: str, chance: random.Random) -> str:
    word = lambda: "".join(chance.choices("bdfghjklmprstvwz", k=chance.randint(5, 9)))  # noqa: E731
    name = word()
    values = {
        "n": chance.randint(10, 40), "major": chance.choice([11, 12, 13, 14]), "ext": word(), "name": name,
        "len": len(name), "part": chance.choice(["cnn", "ops", "adv", "graph", "engines_precompiled"]),
        "v": f"{chance.randint(1, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
        "v2": f"{chance.randint(1, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
        "unix": chance.choice(["/home/ä ö/env", "/opt/conda/lib/python3.12/site-packages/x", "/mnt/d/数据", "."]),
        "windows": chance.choice(["C:\\Users\\王\\env\\Lib", "d:\\py 310\\site-packages\\torch\\lib"]),
    } | chance.choice(LANGUAGES)
    return form.format(**values)


@pytest.mark.parametrize("slug", FORMS)
def test_answer_does_not_change(slug: str, cohabit: str):
    chance = random.Random(slug)
    for _ in range(6):
        text = chance.choice(PREFIXES) + vary(FORMS[slug], chance)
        noise = "".join(f"step {i} loss {chance.random():.4f}\n" for i in range(chance.randint(0, 30)))
        assert slugs(why(cohabit, noise + text + "\n"))[:1] == [slug], text
