"""`cohabit env` and the variables that `cohabit run` sets: in made environments, judged by what sh and Python then see.

No framework is installed and no GPU is there: packages are directories with the files that tell which release
they are and which names they read.
"""
from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "images"), str(TESTS / "cases")]

import casefile  # noqa: E402
import elfimage  # noqa: E402

SITE = "lib/python3.11/site-packages"
FRAMEWORK_VARIABLES = ("CUDA_", "XLA_", "TF_", "PYTORCH_", "FLAGS_", "LD_", "KMP_", "OMP_", "CUPY_", "JAX_")


def constants(words: tuple[str, ...]) -> bytes:
    """An ELF file that has nothing but .rodata with these words."""
    data = b"".join(b"\0" + word.encode() + b"\0" for word in words)
    names = b"\0.rodata\0.shstrtab\0"
    at = 64 + len(data) + len(names)

    def section(name: int, kind: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, kind, 2 if kind == 1 else 0, 0, offset, size, 0, 0, 1, 0)

    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 56, 0, 64, 3, 2)
    return (header + data + names + bytes(64) + section(1, 1, 64, len(data)) +
            section(9, 3, 64 + len(data), len(names)))


@pytest.fixture
def clean() -> dict[str, str]:
    """Our variables without those that the tests are about, and one that is about Python alone and is never told."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(FRAMEWORK_VARIABLES)}
    return plain | {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


class Env:
    """A virtual environment whose Python is the one that runs the tests."""

    def __init__(self, place: Path):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        self.place = place
        self.python = str(place / "bin" / "python")
        self.site = next((place / "lib").glob("python3*")) / "site-packages"

    def file(self, path: str, text: str = "") -> None:
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def library(self, path: str, *words: str) -> None:
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(constants(words))

    def distribution(self, name: str, version: str) -> None:
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        self.file(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")
        self.file(f"{info}/RECORD", "")

    def torch(self, *words: str, version: str = "2.15.0") -> None:
        self.distribution("torch", version)
        self.file("torch/version.py", "cuda = '12.8'\n")
        self.file("torch/__init__.py", "import torch.cuda\n")
        self.file("torch/cuda/__init__.py", FAKE_TORCH_CUDA)
        self.library("torch/lib/libc10_cuda.so", *words)

    def tensorflow(self) -> None:
        self.distribution("tensorflow", "2.21.0")
        self.file("tensorflow/python/platform/build_info.py",
                  "build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])\n")
        self.file("tensorflow/__init__.py")
        self.library("tensorflow/libtensorflow_framework.so.2", "TF_FORCE_GPU_ALLOW_GROWTH",
                     "TF_PER_DEVICE_MEMORY_LIMIT_MB")

    def jax(self, *names: str) -> None:
        self.distribution("jaxlib", "0.12.0")
        self.distribution("jax-cuda12-plugin", "0.12.0")
        self.file("jaxlib/xla_client.py",
                  "".join(f"os.getenv('{name}')\n" for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", *names)))


# What torch.cuda has of it: calls that are queued until CUDA is initialised.
FAKE_TORCH_CUDA = """
_queued = []
def _lazy_call(call):
    _queued.append(call)
def init():
    for call in _queued:
        call()
def device_count():
    return 2
def get_device_properties(device):
    class Properties:
        total_memory = 8 << 30
    return Properties
def set_per_process_memory_fraction(fraction, device):
    print("limit", fraction, device)
"""


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return Env(tmp_path / "env")


def call(cohabit: str, *arguments: str, variables: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run([cohabit, *arguments], capture_output=True, text=True, timeout=120, env=variables)


def needed(cohabit: str, env: Env, variables: dict[str, str], *options: str) -> dict[str, str]:
    done = call(cohabit, "env", str(env.place), "--format", "json", *options, variables=variables)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    schema = Path(__file__).resolve().parent.parent.parent / "data" / "schema" / "env.schema.json"
    jsonschema.validate(report, json.loads(schema.read_text()))
    return {one["name"]: one["value"] for one in report["variables"]}


def seen_by_sh(lines: str, name: str, variables: dict[str, str]) -> str | None:
    done = subprocess.run(["sh", "-c", f'{lines}\nenv -0'], capture_output=True, text=True, env=variables, check=True)
    pairs = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
    return pairs.get(name)


# --- what is needed

def test_two_that_share_a_gpu(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.tensorflow()
    assert "TF_FORCE_GPU_ALLOW_GROWTH" not in needed(cohabit, env, clean)  # alone
    env.torch("PYTORCH_CUDA_ALLOC_CONF")
    assert needed(cohabit, env, clean)["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"):  # the user's own decision
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in needed(cohabit, env, clean | {name: "false"})


def test_a_reader_that_does_not_read_it(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.jax()
    env.torch()
    assert needed(cohabit, env, clean)["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    env.file("jaxlib/xla_client.py", "os.getenv('XLA_PYTHON_CLIENT_PREALLOCATES')\n")
    assert needed(cohabit, env, clean) == {}


def test_cpu_builds_need_nothing(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch()
    env.tensorflow()
    env.file("torch/version.py", "cuda = None\n")
    assert needed(cohabit, env, clean).keys() <= {"XLA_FLAGS", "PATH"}
    done = call(cohabit, "env", str(env.place), variables=clean)
    assert "TF_FORCE" not in done.stdout


@pytest.mark.parametrize("reads, set_name, wanted", [
    ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
    ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),
    ("PYTORCH_ALLOC_CONF", "PYTORCH_ALLOC_CONF", None)])
def test_the_name_that_this_release_reads(cohabit: str, env: Env, clean: dict[str, str], reads: str, set_name: str,
                                          wanted: str | None) -> None:
    env.torch(reads)
    variables = clean | {set_name: "s3cret value"}
    found = needed(cohabit, env, variables)
    assert found == ({wanted: set_name} if wanted else {})
    done = call(cohabit, "env", str(env.place), "--export", variables=variables)
    assert "s3cret" not in done.stdout + done.stderr
    if wanted:
        assert seen_by_sh(done.stdout, wanted, variables) == "s3cret value"


class TestToolkit:
    """Below a root of its own, where the machine's toolkit is not seen."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "root"
        site = root / "env" / SITE
        for path, text in {
            "env/bin/python3": "", "env/lib/python3.11/os.py": "",
            f"env/{SITE}/tensorflow/python/platform/build_info.py":
                "build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])\n",
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (root / "env/bin/python3").write_bytes(elfimage.build({
            "exec": True, "interp": elfimage.INTERP["x86_64"], "main": "main", "needed": ["libc.so.6"],
            "defs": [{"name": "main", "version": None}]}))
        assert site.is_dir()
        return root

    def needed(self, cohabit: str, root: Path) -> tuple[dict[str, str], dict[str, str]]:
        done = subprocess.run([cohabit, "env", "/env", "--root", str(root), "--format", "json"], capture_output=True,
                              text=True, check=True)
        report = json.loads(done.stdout)
        return ({one["name"]: one["value"] for one in report["variables"]},
                {one["name"]: one["path"] for one in report["tools"]})

    @staticmethod
    def put(root: Path, path: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
        (root / path).chmod(0o755)

    def test_nothing_anywhere(self, cohabit: str, root: Path) -> None:
        assert self.needed(cohabit, root) == ({}, {})

    def test_where_xla_looks(self, cohabit: str, root: Path) -> None:
        place = f"env/{SITE}/nvidia/cuda_nvcc"
        self.put(root, f"{place}/nvvm/libdevice/libdevice.10.bc")
        self.put(root, f"{place}/bin/ptxas")
        assert self.needed(cohabit, root) == ({}, {"libdevice": f"/{place}/nvvm/libdevice/libdevice.10.bc",
                                                   "ptxas": f"/{place}/bin/ptxas"})

    def test_where_it_does_not(self, cohabit: str, root: Path) -> None:
        """CUDA 12's TensorFlow looks neither into the wheel of CUDA 13 nor into every /usr/local/cuda-X."""
        self.put(root, f"env/{SITE}/nvidia/cu13/nvvm/libdevice/libdevice.10.bc")
        variables, tools = self.needed(cohabit, root)
        assert variables == {"XLA_FLAGS": f"--xla_gpu_cuda_data_dir=/env/{SITE}/nvidia/cu13"}
        self.put(root, "usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc")  # its own major is better
        variables, tools = self.needed(cohabit, root)
        assert variables == {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=/usr/local/cuda-12.4"}
        assert tools == {"libdevice": "/usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc"}

    def test_ptxas_that_only_triton_has(self, cohabit: str, root: Path) -> None:
        self.put(root, "usr/local/cuda/nvvm/libdevice/libdevice.10.bc")
        self.put(root, f"env/{SITE}/triton/backends/nvidia/bin/ptxas")
        variables, tools = self.needed(cohabit, root)
        assert variables == {"PATH": f"/env/{SITE}/triton/backends/nvidia/bin"}
        assert tools["ptxas"] == f"/env/{SITE}/triton/backends/nvidia/bin/ptxas"

    def test_nvcc_for_extensions(self, cohabit: str, root: Path) -> None:
        shutil.rmtree(root / "env" / SITE / "tensorflow")
        (root / "env" / SITE / "torch/utils").mkdir(parents=True)
        (root / "env" / SITE / "torch/version.py").write_text("cuda = '12.4'\n")
        (root / "env" / SITE / "torch/utils/cpp_extension.py").write_text("os.environ.get('CUDA_HOME')\n")
        self.put(root, "usr/local/cuda-11.8/bin/nvcc")
        assert self.needed(cohabit, root)[0] == {}  # another CUDA, which torch refuses
        self.put(root, "usr/local/cuda-12.4/bin/nvcc")
        assert self.needed(cohabit, root)[0] == {"CUDA_HOME": "/usr/local/cuda-12.4"}
        (root / "usr/local/cuda").symlink_to("cuda-12.4")
        assert self.needed(cohabit, root)[0] == {}


def test_the_users_flags_stay(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.jax()
    (env.site / "nvidia/cu13/nvvm/libdevice").mkdir(parents=True)  # taken first, and the file is missing
    home = tmp_path / "my cuda"
    (home / "nvvm/libdevice").mkdir(parents=True)
    (home / "nvvm/libdevice/libdevice.10.bc").write_text("x")
    variables = clean | {"CUDA_HOME": str(home), "XLA_FLAGS": "--xla_dump_to=/tmp/s3cret"}
    done = call(cohabit, "env", str(env.place), "--export", variables=variables)
    assert "s3cret" not in done.stdout
    value = seen_by_sh(done.stdout, "XLA_FLAGS", variables)
    place = value.removeprefix("--xla_dump_to=/tmp/s3cret --xla_gpu_cuda_data_dir=")
    assert place in (str(home), *map(str, Path("/usr").glob("local/cuda*"))), value


def test_drivers_that_load_all_kernels(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.tensorflow()
    for driver, wanted in (("470.57.02", False), ("525.60.13", True), ("550.54.14", False)):
        found = needed(cohabit, env, clean, "--driver", driver)
        assert ("CUDA_MODULE_LOADING" in found) == wanted, driver


# --- what only the simulated process tells

SHADOWED = """program env/bin/python3
file env/lib/python3.11/os.py
file S/torch/__init__.py from . import _ext
lib toolkit/libblas.so.12
  defs blas_gemm
lib other/libsomething.so
lib S/maker/blas/lib/libblas.so.12
  defs blas_gemm
lib S/torch/_ext.so
  needed libblas.so.12
  refs blas_gemm
  set {"runpath": "$ORIGIN/../maker/blas/lib"}
dist S torch 2.8
  requires maker-blas-cu12
  lists torch/_ext.so
  lists torch/__init__.py
dist S maker-blas-cu12 12.9
  lists maker/blas/lib/libblas.so.12
""".replace("S/", f"env/{SITE}/").replace(" S ", f" env/{SITE} ")


def test_library_path_is_cleaned_of_what_shadows(cohabit: str, clean: dict[str, str], tmp_path: Path) -> None:
    casefile.build_world(SHADOWED, tmp_path)
    other = str(tmp_path / "other")
    variables = clean | {"LD_LIBRARY_PATH": f"{tmp_path}/toolkit/:{other}"}
    done = call(cohabit, "env", str(tmp_path / "env"), "--export", variables=variables)
    assert seen_by_sh(done.stdout, "LD_LIBRARY_PATH", variables) == other and "shadows" in done.stdout
    variables["LD_LIBRARY_PATH"] = f"{tmp_path}/toolkit"
    done = call(cohabit, "env", str(tmp_path / "env"), "--export", variables=variables)
    assert "unset LD_LIBRARY_PATH" in done.stdout
    variables["LD_LIBRARY_PATH"] = other
    assert call(cohabit, "env", str(tmp_path / "env"), "--export", variables=variables).stdout == ""


# TensorFlow 2.21: its RUNPATH leads to most of what it opens by name once a GPU is used, but not to cuSOLVER.
OPENED_BY_NAME = """program env/bin/python3
file env/lib/python3.11/os.py
file S/tensorflow/__init__.py from . import _ext
file S/tensorflow/python/platform/build_info.py build_info = dict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])\\n
lib S/tensorflow/libtensorflow_framework.so.2
  defs tensorflow
  set {"runpath": "$ORIGIN/../maker/all/lib"}
lib S/tensorflow/_ext.so
  needed libtensorflow_framework.so.2
  set {"runpath": "$ORIGIN"}
lib S/maker/solver/lib/libcusolver.so.11
  defs solver
""" + "".join(f"lib S/maker/all/lib/{name}\n  defs x{number}\n" for number, name in enumerate((
    "libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcusparse.so.12", "libcudnn.so.9"))) + """
dist S tensorflow 2.21.0
  lists tensorflow/__init__.py
  lists tensorflow/python/platform/build_info.py
  lists tensorflow/_ext.so
  lists tensorflow/libtensorflow_framework.so.2
dist S maker-solver-cu12 11.7
  lists maker/solver/lib/libcusolver.so.11
"""
OPENED_BY_NAME = OPENED_BY_NAME.replace("S/", f"env/{SITE}/").replace(" S ", f" env/{SITE} ")


def test_library_path_of_what_is_opened_by_name_later(cohabit: str, clean: dict[str, str], tmp_path: Path) -> None:
    casefile.build_world(OPENED_BY_NAME, tmp_path)
    without_driver = call(cohabit, "env", str(tmp_path / "env"), "--export", variables=clean).stdout
    assert without_driver.startswith("# No NVIDIA driver is here") and without_driver.count("\n") == 1
    call_env = ["env", str(tmp_path / "env"), "--export", "--driver", "580"]
    done = call(cohabit, *call_env, variables=clean)
    assert seen_by_sh(done.stdout, "LD_LIBRARY_PATH", clean) == f"{tmp_path}/env/{SITE}/maker/solver/lib"
    assert "cannot open libcusolver.so.11" in done.stdout
    said = call(cohabit, "doctor", str(tmp_path / "env"), "--imports", "tensorflow", "--assume-gpu", "--format", "full", variables=clean).stdout
    assert "warning[LD209]" in said and f"it is in {tmp_path}/env/{SITE}/maker/solver/lib/libcusolver.so.11" in said
    (tmp_path / "env" / SITE / "tensorflow/libtensorflow_framework.so.2").unlink()
    casefile.build_world(OPENED_BY_NAME.replace("maker/all/lib\"}", "maker/all/lib:$ORIGIN/../maker/solver/lib\"}"), tmp_path)
    assert "LD_LIBRARY_PATH" not in call(cohabit, *call_env, variables=clean).stdout


def test_library_path_that_is_needed_stays(cohabit: str, clean: dict[str, str], tmp_path: Path) -> None:
    """The same directory has a library that is nowhere else: without it the import would fail."""
    world = SHADOWED.replace("needed libblas.so.12", "needed libblas.so.12 libonly.so") + "lib toolkit/libonly.so\n"
    casefile.build_world(world, tmp_path)
    variables = clean | {"LD_LIBRARY_PATH": f"{tmp_path}/toolkit"}
    assert call(cohabit, "env", str(tmp_path / "env"), "--export", variables=variables).stdout == ""


@pytest.mark.parametrize("second, wanted", [("libomp-1a2b3c4d.so", True), ("libgomp.so.1", False)])
def test_two_copies_of_llvms_openmp(cohabit: str, clean: dict[str, str], tmp_path: Path, second: str,
                                    wanted: bool) -> None:
    casefile.build_world(f"""program env/bin/python3
file env/lib/python3.11/os.py
file S/torch/__init__.py from . import _ext
file S/paddle/__init__.py from . import _ext
lib S/torch/libiomp5.so
lib S/paddle/{second}
lib S/unused/libomp.so
lib S/torch/_ext.so
  needed libiomp5.so
lib S/paddle/_ext.so
  needed {second}
dist S torch 2.8
  lists torch/libiomp5.so
dist S paddlepaddle 3.0
  lists paddle/{second}
dist S unused 1.0
  lists unused/libomp.so
""".replace("S/", f"env/{SITE}/").replace(" S ", f" env/{SITE} "), tmp_path)
    done = call(cohabit, "env", str(tmp_path / "env"), "--export", variables=clean)
    assert ("export KMP_DUPLICATE_LIB_OK=TRUE" in done.stdout) == wanted, done.stdout


# --- what is set

def checked(cohabit: str, env: Env, variables: dict[str, str]) -> tuple[int, dict[str, str], str]:
    done = call(cohabit, "env", str(env.place), "--check", "--format", "json", variables=variables)
    plain = call(cohabit, "env", str(env.place), "--check", variables=variables)
    report = json.loads(done.stdout)
    schema = Path(__file__).resolve().parent.parent.parent / "data" / "schema" / "env.schema.json"
    jsonschema.validate(report, json.loads(schema.read_text()))
    return (done.returncode, {one["name"]: one["verdict"] for one in report["checked"]},
            done.stdout + plain.stdout + plain.stderr)


def test_check_says_who_reads_them(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch("PYTORCH_CUDA_ALLOC_CONF")
    variables = clean | {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128", "CUDA_DEVICE_ORDER": "s3cret",
                         "TF_FORCE_GPU_ALLOW_GROWTH": "s3cret"}
    code, verdicts, text = checked(cohabit, env, variables)
    assert code == 0 and "s3cret" not in text and "128" not in text
    assert verdicts == {"PYTORCH_CUDA_ALLOC_CONF": "read", "CUDA_DEVICE_ORDER": "read",
                        "TF_FORCE_GPU_ALLOW_GROWTH": "unread"}
    assert "sets no limit" in text


def test_check_names_what_is_wrong(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch("PYTORCH_CUDA_ALLOC_CONF")
    code, verdicts, text = checked(cohabit, env, clean | {
        "PYTORCH_CUDA_ALLOC_CONFS": "s3cret", "PYTORCH_ALLOC_CONF": "s3cret-1", "PYTORCH_CUDA_ALLOC_CONF": "s3cret-2"})
    assert code == 1 and "s3cret" not in text
    assert verdicts == {"PYTORCH_CUDA_ALLOC_CONFS": "misspelled", "PYTORCH_ALLOC_CONF": "contradicting",
                        "PYTORCH_CUDA_ALLOC_CONF": "contradicting"}
    assert "this torch reads PYTORCH_CUDA_ALLOC_CONF alone" in text


def test_dry_run_writes_out_no_value_of_the_users(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch("PYTORCH_ALLOC_CONF")
    variables = clean | {"PYTORCH_CUDA_ALLOC_CONF": "s3cret value"}
    done = call(cohabit, "run", "--dry-run", "--", str(env.place / "bin/python3"), "-c", "import torch", variables=variables)
    assert "s3cret" not in done.stdout + done.stderr
    assert seen_by_sh(done.stdout.splitlines()[0], "PYTORCH_ALLOC_CONF", variables) == "s3cret value"


def test_check_looks_at_what_a_program_sets(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    """The settings that a program makes itself are judged as those of the shell are, and when it makes them."""
    env.torch("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    env.distribution("hub", "1.0")
    env.file("hub/__init__.py", "import os\nhome = os.environ.get('HUB_HOME')\n")
    program = tmp_path / "gpu fix.py"
    program.write_text("import os\nimport hub\n"
                       "os.environ['LD_LIBRARY_PATH'] = '/usr/local/cuda/lib64'\n"
                       "os.environ.update(CUDA_MODULE_LOADING='LAZY')\n"
                       "os.putenv('TF_GPU_THREAD_PER_CORE', '2')\n"
                       "os.environ['PYTORCH_ALLOC_CONF'] = 'max_split_size_mb:128'\n"
                       "os.environ |= {'HUB_HOME': '/data'}\n"
                       "os.environ['MINE'] = 'secret'\n")
    variables = clean | {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    done = call(cohabit, "env", "--check", str(env.place), str(program), "--format", "json", variables=variables)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    schema = Path(__file__).resolve().parent.parent.parent / "data" / "schema" / "env.schema.json"
    jsonschema.validate(report, json.loads(schema.read_text()))
    assert {one["name"]: one["verdict"] for one in report["checked"]} == {
        "CUDA_MODULE_LOADING": "read", "HUB_HOME": "too late", "LD_LIBRARY_PATH": "too late",
        "PYTORCH_ALLOC_CONF": "read", "PYTORCH_CUDA_ALLOC_CONF": "read", "TF_GPU_THREAD_PER_CORE": "unread"}
    assert sorted(one["code"] for one in report["findings"]) == ["EV001", "EV003", "EV003"]
    notes = {one["name"]: one["notes"] for one in report["checked"]}
    assert notes["CUDA_MODULE_LOADING"] == [f"set in line 4 of {program}"]
    assert "secret" not in done.stdout and "lib64" not in done.stdout
    refused = call(cohabit, "env", str(env.place), str(program), variables=variables)
    assert refused.returncode == 2 and "--check" in refused.stderr


def test_check_looks_where_xla_flags_point(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.tensorflow()
    _, _, text = checked(cohabit, env, clean | {"XLA_FLAGS": f"--xla_gpu_cuda_data_dir={tmp_path}"})
    assert f"no nvvm/libdevice in {tmp_path}" in text


# --- cohabit run

def run(cohabit: str, env: Env, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess:
    return call(cohabit, "run", "--repair", "none", *arguments, variables=variables)


SHOW = "import os, sys; print(*(os.environ.get(name) for name in sys.argv[1:]))"


def test_run_sets_them_and_says_so(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.tensorflow()
    env.torch()
    words = ["--", env.python, "-c", SHOW, "TF_FORCE_GPU_ALLOW_GROWTH"]
    done = run(cohabit, env, clean, *words)
    assert (done.returncode, done.stdout) == (0, "true\n")
    assert len(done.stderr.splitlines()) == 1 and "sets TF_FORCE_GPU_ALLOW_GROWTH=true (" in done.stderr
    assert run(cohabit, env, clean, "--no-env", *words).stdout == "None\n"
    assert run(cohabit, env, clean, "--quiet", *words).stderr == ""
    own = run(cohabit, env, clean | {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}, *words)
    assert (own.stdout, own.stderr) == ("false\n", "")


def test_run_says_nothing_where_nothing_is_needed(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    done = run(cohabit, env, clean, "--", env.python, "-c", SHOW, "PYTHONPATH")
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_written_script_leaves_what_is_set_later(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.tensorflow()
    env.torch()
    script = tmp_path / "run.sh"
    done = run(cohabit, env, clean, "--gpu-memory", "torch=40%", "--write", str(script), "--", env.python, "-c",
               SHOW + "; import torch; torch.cuda.init()", "TF_FORCE_GPU_ALLOW_GROWTH")
    assert done.returncode == 0, done.stderr
    subprocess.run(["shellcheck", str(script)], check=True)
    for variables, value in ((clean, "true"), (clean | {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}, "false")):
        said = subprocess.run([str(script)], capture_output=True, text=True, env=variables, check=True).stdout
        assert said == f"{value}\nlimit 0.4 0\nlimit 0.4 1\n"


# --- shares of a GPU's memory

def shares(cohabit: str, env: Env, variables: dict[str, str], text: str, *names: str, more: tuple[str, ...] = (),
           code: str = "") -> subprocess.CompletedProcess:
    return run(cohabit, env, variables, "--gpu-memory", text, *more, "--", env.python, "-c", f"{SHOW}\n{code}", *names)


def test_shares_become_variables(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.tensorflow()
    env.jax("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    env.torch("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction")
    done = shares(cohabit, env, clean, "torch=40%,tensorflow=3GiB,jax=20%", "PYTORCH_ALLOC_CONF",
                  "TF_PER_DEVICE_MEMORY_LIMIT_MB", "TF_FORCE_GPU_ALLOW_GROWTH", "XLA_CLIENT_MEM_FRACTION",
                  "XLA_PYTHON_CLIENT_PREALLOCATE", "COHABIT_GPU_MEMORY", more=("--gpu-total", "16GiB"))
    assert done.stdout == "per_process_memory_fraction:0.4 3072 true 0.2 None None\n", done.stderr


def test_older_names(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.jax("XLA_PYTHON_CLIENT_MEM_FRACTION")
    done = shares(cohabit, env, clean, "jax=8GiB", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION",
                  more=("--gpu-total", "16GiB"))
    assert done.stdout == "None 0.5\n", done.stderr


def test_the_users_own_allocator_settings_stay(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction")
    variables = clean | {"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}
    done = shares(cohabit, env, variables, "torch=40%", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    assert done.stdout == "backend:native,per_process_memory_fraction:0.4 None\n", done.stderr
    variables["PYTORCH_CUDA_ALLOC_CONF"] = "per_process_memory_fraction:0.9"
    done = shares(cohabit, env, variables, "torch=40%", "PYTORCH_CUDA_ALLOC_CONF")
    assert done.stdout == "per_process_memory_fraction:0.9\n" and "stays as it is" in done.stderr


@pytest.mark.parametrize("text, part", [
    ("torch=70%,tensorflow=40%", "110 %"), ("torch=60%,tensorflow=8GiB", "110 %"), ("torch=17GiB", "106"),
    ("torch=0%", "not a share"), ("torch=x", "not a share"), ("torch", "not a share"), ("torch=-1%", "not a share"),
    ("torch=nan%", "not a share"), ("torch=40", "not a share"), ("torch=0.4", "not a share"), ("torch=inf%", "%"), ("torch=10%,torch=10%", "two shares"),
    ("numpy=10%", "no setting"), ("paddle=10%", "there is no paddle"), ("", "not a share")])
def test_refused(cohabit: str, env: Env, clean: dict[str, str], text: str, part: str) -> None:
    env.torch()
    env.tensorflow()
    done = run(cohabit, env, clean, f"--gpu-memory={text or ','}", "--gpu-total", "16GiB", "--", env.python, "-c", "")
    assert done.returncode == 125 and part in done.stderr, done.stderr


def test_odd_totals_and_no_shares(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.torch("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction")
    env.tensorflow()
    done = run(cohabit, env, clean, "--gpu-memory", "", "--", env.python, "-c", "")
    assert done.returncode == 125 and "it is empty" in done.stderr
    done = shares(cohabit, env, clean, "torch=4GiB", more=("--gpu-total", "0GiB"))
    assert done.returncode == 125 and "--gpu-total cannot be 0GiB" in done.stderr
    variables = clean | {"PATH": str(tmp_path)}  # no nvidia-smi
    done = shares(cohabit, env, variables, "torch=60%,tensorflow=20GiB", "TF_PER_DEVICE_MEMORY_LIMIT_MB")
    assert done.stdout == "20480\n" and "whether the shares fit together is not checked" in done.stderr
    done = shares(cohabit, env, variables, "torch=60%")
    assert done.returncode == 0 and "not checked" not in done.stderr


def test_a_total_that_is_not_known(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.tensorflow()
    variables = clean | {"PATH": str(tmp_path)}
    done = shares(cohabit, env, variables, "tensorflow=40%")
    assert done.returncode == 125 and "--gpu-total" in done.stderr
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 81559\necho 40960\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    done = shares(cohabit, env, variables, "tensorflow=50%", "TF_PER_DEVICE_MEMORY_LIMIT_MB")
    assert done.stdout == "20480\n", done.stderr  # of the smaller one


# --- the start-up hook

def test_the_hook_tells_torch_when_it_initialises(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch("PYTORCH_CUDA_ALLOC_CONF")  # knows no per_process_memory_fraction
    code = "import torch; print('imported'); torch.cuda.init()"
    for text, fraction in (("torch=40%", "0.4"), ("torch=2GiB", "0.25")):
        done = shares(cohabit, env, clean, text, code=code)
        assert done.stdout == f"\nimported\nlimit {fraction} 0\nlimit {fraction} 1\n", done.stderr


def test_the_hook_reaches_children(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch()
    code = ("import subprocess, sys; subprocess.run([sys.executable, '-c', "
            "'import torch; torch.cuda.init()'], check=True)")
    assert shares(cohabit, env, clean, "torch=40%", code=code).stdout == "\nlimit 0.4 0\nlimit 0.4 1\n"


def test_the_hook_does_nothing_else(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch()
    code = ("import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in ('torch', 'importlib'))); "
            "print('sitecustomize' in sys.modules)")
    with_hook = shares(cohabit, env, clean, "torch=40%", code=code).stdout
    without = run(cohabit, env, clean, "--", env.python, "-c", f"{SHOW}\n{code}").stdout
    ours = {"importlib", "importlib._abc", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.util",
            "importlib.machinery"}
    added = set(eval(with_hook.splitlines()[1])) - set(eval(without.splitlines()[1]))
    assert added <= ours
    assert with_hook.splitlines()[2] == without.splitlines()[2]


def test_the_users_sitecustomize_runs(cohabit: str, env: Env, clean: dict[str, str], tmp_path: Path) -> None:
    env.torch()
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.mine = __file__\n")
    done = shares(cohabit, env, clean | {"PYTHONPATH": str(own)}, "torch=40%",
                  code="import sitecustomize; print(mine == sitecustomize.__file__, mine)")
    assert done.stdout.splitlines()[1] == f"True {own / 'sitecustomize.py'}"
    (own / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    done = shares(cohabit, env, clean | {"PYTHONPATH": str(own)}, "torch=40%", code="print('goes on')")
    assert "theirs" in done.stderr and "goes on" in done.stdout  # as Python itself reports it


def test_a_broken_torch_is_not_hidden(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.torch()
    env.file("torch/cuda/__init__.py", "raise ImportError('no such library')\n")
    done = shares(cohabit, env, clean, "torch=40%", code="import torch")
    assert done.returncode == 1 and "ImportError: no such library" in done.stderr
    env.file("torch/cuda/__init__.py", "")  # a release without the function
    done = shares(cohabit, env, clean, "torch=40%", code="import torch; print('there')")
    assert (done.returncode, done.stdout) == (0, "\nthere\n") and "cohabit: " in done.stderr


def test_what_no_variable_tells_is_said(cohabit: str, env: Env, clean: dict[str, str]) -> None:
    env.distribution("onnxruntime-gpu", "1.22.0")
    env.file("onnxruntime/capi/build_and_package_info.py",
             "package_name = 'onnxruntime-gpu'\ncuda_version = '12.8'\n")
    done = shares(cohabit, env, clean, "onnxruntime=2GiB")
    assert done.returncode == 0 and "gpu_mem_limit" in done.stderr
