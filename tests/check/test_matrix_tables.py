"""How the tables of `cohabit matrix` are made: scripts/refresh_matrix and scripts/pairs, on an index of generated wheels."""
from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import index as made
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "images"))
import fatbin  # noqa: E402

DAY = "2025-08-06"
PYTHON = "%d.%d" % sys.version_info[:2]


class JsonIndex(made.Index):
    """Pages as PEP 691 has them; releases of one day."""

    withdrawn: set[str] = set()

    def send_page(self, request, name: str):
        files = [{"filename": file.name, "url": f"/files/{file.name}", "size": file.stat().st_size,
                  "hashes": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
                  "upload-time": f"{DAY}T10:00:00.0Z", "yanked": file.name in self.withdrawn}
                 for file in sorted(self.directory.iterdir())
                 if file.suffix in (".whl", ".gz") and file.name.split("-")[0].replace("_", "-") == name]
        if not files:
            return self.send(request, 404, b"no such project")
        body = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        self.send(request, 200, json.dumps(body).encode(), {"Content-Type": "application/vnd.pypi.simple.v1+json"})


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    directory = tmp_path / "wheels"
    large = fatbin.elf([(".nv_fatbin", fatbin.container(["sm_75", "sm_90a", "compute_120@8.7"], 1 << 15))])
    small = fatbin.elf([(".nv_fatbin", fatbin.container(["sm_120"], 1 << 13)), (".rest", b"\0" * 70000)])
    nvidia = fatbin.elf([(".nv_fatbin", fatbin.container(["sm_35"], 1 << 18))])
    for python in ("cp310", "cp311"):
        made.make_wheel(directory, "torch", "2.8.0", tag=f"{python}-{python}-manylinux_2_28_x86_64", files={
            "torch/version.py": b"__version__ = '2.8.0'\ncuda: Optional[str] = '12.8'\n", "torch/lib/libtorch_cuda.so": large,
            "torch/lib/libsmall.so": small, "torch/lib/libcublas.so.12": nvidia},
            requires=("nvidia-cuda-runtime-cu12==12.8.90 ; platform_machine == 'x86_64'",))
    made.make_wheel(directory, "torch", "2.8.0", tag="cp311-cp311-manylinux_2_28_aarch64", files={
        "torch/version.py": b"cuda: Optional[str] = None\n"},
        requires=("nvidia-cuda-runtime-cu12==12.8.90 ; platform_machine == 'x86_64'",))
    made.make_wheel(directory, "torch", "2.9.0rc1", tag="cp311-cp311-manylinux_2_28_x86_64")
    made.make_wheel(directory, "torch", "2.7.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    made.make_wheel(directory, "jax-cuda12-plugin", "0.5.0", tag="cp311-cp311-manylinux2014_x86_64", requires=(
        "nvidia-cuda-runtime-cu12>=12.1.105 ; sys_platform == 'linux' and extra == 'with-cuda'",))
    made.make_wheel(directory, "jax-cuda12-pjrt", "0.5.0", tag="py3-none-manylinux2014_x86_64",
                    files={"jax_plugins/xla_cuda12/xla_cuda_plugin.so": large})
    made.make_wheel(directory, "xgboost", "3.0.0", tag="py3-none-manylinux2014_x86_64", python=">=3.9",
                    files={"xgboost/lib/libxgboost.so": large})
    made.make_wheel(directory, "ctranslate2", "4.0.0", tag="cp311-cp311-manylinux_2_17_x86_64",
                    files={"ctranslate2/libctranslate2.so": fatbin.elf([(".rest", b"\0" * 70000)])})
    made.make_sdist(directory, "pycuda", "2025.1")
    return directory


@pytest.fixture
def index(wheels: Path):
    one = JsonIndex(wheels)
    JsonIndex.withdrawn = {"torch-2.7.0-cp311-cp311-manylinux_2_28_x86_64.whl"}
    yield one
    one.close()


@pytest.fixture
def refresh(repo: Path, build_dir: Path, index: JsonIndex, tmp_path: Path):
    probe = build_dir / "tests/metadata/device_code_probe"

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([sys.executable, repo / "scripts/refresh_matrix", "--out", tmp_path / "releases.tsv", "--probe", probe,
                               *arguments], capture_output=True, text=True, timeout=300, env={
                                   "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path),
                                   "PIP_INDEX_URL": index.address()})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return run


def table(path: Path) -> dict[tuple[str, str, str], list[str]]:
    rows = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return {(row[1], row[2], row[4]): row for row in rows}


def test_rows_are_what_the_wheels_say(refresh, index: JsonIndex, tmp_path: Path):
    refresh("--scan")
    rows = table(tmp_path / "releases.tsv")
    assert set(rows) == {("torch", "2.8.0", "x86_64"), ("torch", "2.8.0", "aarch64"), ("jax-cuda12-plugin", "0.5.0", "x86_64"),
                         ("xgboost", "3.0.0", "x86_64"), ("ctranslate2", "4.0.0", "x86_64"), ("pycuda", "2025.1", "source")}
    # framework, released, pythons, glibc, install, cuda, from, machine code, ptx
    said = {key: [row[0], row[3], *row[5:12]] for key, row in rows.items()}
    assert said["torch", "2.8.0", "x86_64"] == ["torch", DAY, "3.10,3.11", "2.28", "torch==2.8.0", "12.8",
                                                "scanned torch/version.py", "75,90a", "120:8.7"]
    assert said["torch", "2.8.0", "aarch64"][5:] == ["none", "scanned torch/version.py", "none", "none"]
    assert said["jax-cuda12-plugin", "0.5.0", "x86_64"] == ["jax", DAY, "3.11", "2.17", "jax[cuda12]==0.5.0", "12.8",
                                                            "scanned: version of its PTX", "75,90a", "120:8.7"]
    assert said["xgboost", "3.0.0", "x86_64"][5:] == ["12.8", "scanned: version of its PTX", "75,90a", "120:8.7"]
    assert said["xgboost", "3.0.0", "x86_64"][2] in ("3.0+", "3.9+")
    assert said["ctranslate2", "4.0.0", "x86_64"][5:] == ["none", "scanned: no device code", "none", "none"]
    assert said["pycuda", "2025.1", "source"][5:] == ["?", "?", "?", "?"]
    before = (tmp_path / "releases.tsv").read_bytes()
    index.requests.clear()
    refresh("--scan")
    assert (tmp_path / "releases.tsv").read_bytes() == before
    assert not any("/files/" in request for request in index.requests), "what is there is not read again"


def test_only_the_bytes_that_are_needed(refresh, index: JsonIndex, wheels: Path, tmp_path: Path):
    made.make_wheel(wheels, "torch", "2.10.0", tag="cp311-cp311-manylinux_2_28_x86_64", stored=True, files={
        "torch/version.py": b"cuda: Optional[str] = '13.0'\n", "torch/lib/libtorch_cuda.so": made.noise(50_000_000)})
    refresh("torch")
    assert table(tmp_path / "releases.tsv")["torch", "2.10.0", "x86_64"][8] == "13.0"
    assert sum(index.sent.values()) < 3_000_000


def test_check_finds_what_differs(refresh, wheels: Path, tmp_path: Path):
    refresh("--scan")
    refresh("--scan", "--check")
    path = tmp_path / "releases.tsv"
    good = path.read_text()
    path.write_text(good.replace("\t12.8\tscanned torch/version.py", "\t12.6\tscanned torch/version.py"))
    assert "the table says CUDA 12.6, the wheel 12.8" in refresh("--check", code=1).stdout
    path.write_text(good.replace("\t75,90a\t120:8.7\ttorch", "\t75,80\t120:8.7\ttorch"))
    assert "the table says code for ('75,80', '120:8.7')" in refresh("--scan", "--check", "torch", code=1).stdout
    made.make_wheel(wheels, "torch", "2.9.0", tag="cp311-cp311-manylinux_2_28_x86_64", files={
        "torch/version.py": b"cuda: Optional[str] = '12.8'\n"}, requires=("nvidia-cuda-runtime-cu12==12.6.77",))
    assert "torch/version.py says 12.8, its requirements 12.6" in refresh("--check", code=1).stdout


def test_a_ptx_of_another_toolkit_is_a_contradiction(refresh, wheels: Path):
    large = fatbin.elf([(".nv_fatbin", fatbin.container(["sm_75", "compute_75@8.0"], 1 << 16))])
    made.make_wheel(wheels, "onnxruntime-gpu", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64", files={
        "onnxruntime/capi/build_and_package_info.py": b"package_name = 'onnxruntime-gpu'\ncuda_version = '12.8'\n",
        "onnxruntime/capi/libonnxruntime_providers_cuda.so": large})
    done = refresh("onnxruntime-gpu", "--scan", "--check", code=1)
    assert "its CUDA is 12.8 (scanned onnxruntime/capi/build_and_package_info.py), its PTX is of 12.0" in done.stdout


# ---- pairs ---------------------------------------------------------------------------------------------------------------

RELEASE = "{module}\t{name}\t{version}\t" + DAY + "\tx86_64\t{python}\t2.17\t{name}=={version}\tnone\tdeclared: name\t?\t?\tw.whl\t2025-08-07\n"


@pytest.fixture
def pair(repo: Path, cohabit: str, tmp_path: Path):
    """pair("torch==1,paddlepaddle==1"): the run, and the table's rows after it."""
    wheels, table = tmp_path / "wheels", tmp_path / "releases.tsv"
    made.make_wheel(wheels, "setuptools", "80.0", {"setuptools/__init__.py": b""})
    made.make_wheel(wheels, "torch", "1.0", {"torch/__init__.py": b"import sys\n"})
    made.make_wheel(wheels, "torch", "2.0", {"torch/__init__.py": b"import sys\n"})
    made.make_wheel(wheels, "paddlepaddle", "1.0", {"paddle/__init__.py": b"import os\n"}, requires=("torch<2",))
    made.make_wheel(wheels, "xgboost", "1.0", {"xgboost/__init__.py": b"import nowhere_to_be_found\n"})
    table.write_text("".join(RELEASE.format(module=module, name=name, version=version, python=PYTHON) for module, name, version in [
        ("torch", "torch", "1.0"), ("torch", "torch", "2.0"), ("paddle", "paddlepaddle", "1.0"), ("xgboost", "xgboost", "1.0")]))
    index = JsonIndex(wheels)

    def run(*arguments: str, code: int = 0) -> tuple[subprocess.CompletedProcess, list[list[str]]]:
        out = tmp_path / "pairs.tsv"
        done = subprocess.run([sys.executable, repo / "scripts/pairs", *arguments, "--python", PYTHON, "--releases", table, "--out", out,
                               "--cohabit", cohabit, "--work", tmp_path / "work", "--cache-gigabytes", "0.1",
                               "--spare-gigabytes", "0.1"], capture_output=True, text=True, timeout=300, env={
                                   "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path),
                                   "UV_DEFAULT_INDEX": index.address(), "UV_NO_CONFIG": "1"})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        rows = [line.split("\t") for line in out.read_text().splitlines() if not line.startswith("#")] if out.exists() else []
        return done, rows
    yield run
    index.close()


def test_pairs_and_their_outcomes(pair, tmp_path: Path):
    done, rows = pair("torch==1.0,paddlepaddle==1.0", "torch==2.0,paddlepaddle==1.0", "torch==2.0,xgboost==1.0")
    assert [row[:7] for row in rows] == [
        ["paddlepaddle==1.0", "torch==1.0", PYTHON, "sound", "sound", "", "simulated"],
        ["torch==1.0", "paddlepaddle==1.0", PYTHON, "sound", "sound", "", "simulated"],
        ["paddlepaddle==1.0", "torch==2.0", PYTHON, "not-installable", "not-installable", "", "resolved"],
        ["torch==2.0", "paddlepaddle==1.0", PYTHON, "not-installable", "not-installable", "", "resolved"],
        ["torch==2.0", "xgboost==1.0", PYTHON, "sound", "sound", "xgboost PY302", "simulated"],
        ["xgboost==1.0", "torch==2.0", PYTHON, "sound", "sound", "xgboost PY302", "simulated"]]
    assert not (tmp_path / "work/pair").exists() and not (tmp_path / "work/uv").exists(), "nothing is left behind"


def test_a_run_that_was_stopped_goes_on(pair):
    _, first = pair("--limit", "1")
    done, rows = pair()
    again = [line.split("\t")[:2] for line in done.stdout.splitlines()]
    assert len(first) == 2 and len(rows) == len(again) + 2 and all(row in rows for row in first)
    assert first[0][:2] not in again and first[1][:2] not in again
    listed, _ = pair("--list")
    assert listed.stdout.split() == []


def test_a_pin_that_is_none(pair):
    done, _ = pair("torch==1.0", code=1)
    assert "expected two pins of data/releases.tsv" in done.stderr
