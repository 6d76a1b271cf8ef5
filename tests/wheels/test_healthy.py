"""Environments that work: their imports really succeed, and doctor has no error and at most three warnings for each."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import environments  # noqa: E402
import real  # noqa: E402
from test_sequences import INSTALLED  # noqa: E402

MOST_WARNINGS = 3
# Name, environment (none: of environments.toml), what is imported.
HEALTHY = {
    "serving": (None, "torch ctranslate2 onnxruntime"),
    "packages": (None, "transformers lightgbm h5py"),
    "sequences": (INSTALLED, "cv2 onnxruntime pandas sklearn"),
    "functional": ({"python": "3.12", "gigabytes": 1, "requirements": [
        "jax==0.7.2", "jaxlib==0.7.2", "optax==0.2.6", "chex==0.1.91"]}, "jax optax"),
    "kernels": ({"python": "3.11", "gigabytes": 1, "requirements": [
        "cupy-cuda12x==14.2.0", "numba==0.62.1", "scipy==1.16.2", "numpy==2.3.3"]}, "cupy numba scipy.linalg"),
    "boosting": ({"python": "3.10", "gigabytes": 2, "requirements": [
        "xgboost==2.1.4", "lightgbm==4.6.0", "catboost==1.2.8", "scikit-learn==1.5.2"]}, "xgboost lightgbm catboost sklearn.svm"),
    "media": ({"python": "3.13", "gigabytes": 1, "requirements": [
        "av==15.1.0", "opencv-python-headless==4.12.0.88", "soundfile==0.13.1", "imageio==2.37.0"]}, "av cv2 soundfile imageio"),
    "geography": ({"python": "3.12", "gigabytes": 1, "requirements": [
        "shapely==2.1.2", "pyproj==3.7.2", "rasterio==1.4.3", "geopandas==1.1.1"]}, "rasterio shapely pyproj geopandas"),
    "tables": ({"python": "3.11", "gigabytes": 1, "requirements": [
        "h5py==3.14.0", "netCDF4==1.7.2", "pyarrow==21.0.0", "polars==1.33.1", "duckdb==1.4.0"]}, "h5py netCDF4 pyarrow polars duckdb"),
    "network": ({"python": "3.9", "gigabytes": 1, "requirements": [
        "grpcio==1.75.1", "cryptography==46.0.1", "psycopg[binary]==3.2.10", "lxml==6.0.2", "pyzmq==27.1.0"]},
        "grpc psycopg lxml.etree zmq cryptography.hazmat.bindings._rust"),
    "alike": ({"python": "3.11", "gigabytes": 1, "requirements": [
        "paddlepaddle==3.0.0", "h5py==3.16.0", "pillow==12.0.0", "setuptools"]}, "paddle h5py PIL.Image"),
}


def home_of(name: str) -> Path:
    made = HEALTHY[name][0] if name in HEALTHY else None
    try:
        return environments.make(name, made or environments.load_table()[name])
    except environments.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", HEALTHY)
def test_no_error_and_few_warnings(name: str, cohabit: str) -> None:
    home, imports = home_of(name), HEALTHY[name][1].split()
    ended = real.run(real.statement_command(home, "import " + ", ".join(imports)))
    assert ended.returncode == 0, ended.stderr[-2000:]
    for order in ([], ["--imports", ",".join(imports)]):
        report = json.loads(real.run([cohabit, "doctor", str(home), *order, "--format", "json"]).stdout)
        found = {severity: [f"{one['code']}: {one['headline']}" for one in report["findings"] if one["severity"] == severity]
                 for severity in ("error", "warning")}
        assert not found["error"] and len(found["warning"]) <= MOST_WARNINGS, found
        assert all(one["verdict"] != "unsound" for one in report["orders"]), report["orders"]


NAMES = """
import json, keyword, sys, types
for name in sys.argv[1:]:
    __import__(name)
names = {}
for full, module in list(sys.modules.items()):
    parts = full.split(".")
    at = sys.modules.get(parts[0])
    for part in parts[1:]:
        at = getattr(at, part, None)
    # Cython puts modules there that nobody can import by that name.
    if at is not module or type(module) is not types.ModuleType or parts[0].startswith(("_", "cython")):
        continue
    names[full] = [one for one in vars(module) if one.isidentifier() and not keyword.iskeyword(one) and one[0] != "_"]
print(json.dumps(names))
"""


NAMED = {name: HEALTHY[name][1] for name in ("functional", "boosting", "media", "geography", "tables", "sequences", "alike")} | {
    "newest": "torch torch.nn torch.optim torch.utils.data torch.distributed torch.jit torch.onnx"}


@pytest.mark.parametrize("name", NAMED)
def test_no_name_that_is_there_is_missing(name: str, cohabit: str, tmp_path: Path) -> None:
    """What modules really have after their import is there in the plan, asked for as an attribute and by `from`."""
    home, imports = home_of(name), NAMED[name].split()
    asked = real.run([str(home / "bin/python"), "-W", "ignore", "-c", NAMES, *imports])
    assert asked.returncode == 0, asked.stderr[-2000:]
    names = json.loads(asked.stdout.splitlines()[-1])
    assert sum(map(len, names.values())) > 5000
    lines = [f"import {module}" for module in imports]
    for module, of_it in names.items():
        lines += [f"import {module}", *(f"{module}.{one}\nfrom {module} import {one} as found" for one in of_it)]
    (tmp_path / "app.py").write_text("\n".join(lines) + "\n")
    plan = tmp_path / "plan.json"
    ended = real.run([cohabit, "doctor", str(home), str(tmp_path / "app.py"), "--plan", str(plan)])
    assert ended.returncode in (0, 1), ended.stderr[-2000:]
    planned = json.loads(plan.read_text())
    assert planned["failure"] is None and not planned["problems"]


@pytest.mark.parametrize("line", [
    "from torch.utils.data import DataLoader2", "from torch.optim import AdamZ", "import torch; torch.cuda.nothing_of_it"])
def test_a_name_that_torch_has_no_more(line: str, cohabit: str, tmp_path: Path) -> None:
    """Libraries of torch name its modules: they may give these only what they can make of their texts."""
    home = home_of("newest")
    (tmp_path / "app.py").write_text(line + "\n")
    ended = real.run([str(home / "bin/python"), str(tmp_path / "app.py")])
    assert ended.returncode == 1
    plan = tmp_path / "plan.json"
    real.run([cohabit, "doctor", str(home), str(tmp_path / "app.py"), "--plan", str(plan)])
    told = json.loads(plan.read_text())["failure"]
    assert told and told["error"].split(" (")[0] in ended.stderr.strip().split("\n")[-1]


@pytest.mark.parametrize("name", ["boosting", "functional"])
def test_native_code_fails_for_a_users_file(name: str, cohabit: str, tmp_path: Path) -> None:
    """numpy's bit generators import secrets, which needs what a user's random.py does not have."""
    home = home_of(name)
    (tmp_path / "random.py").write_text("def roll(): return 4\n")
    (tmp_path / "app.py").write_text("import numpy.random\n")
    ended = real.run([str(home / "bin/python"), str(tmp_path / "app.py")])
    assert ended.returncode == 1 and "cannot import name 'SystemRandom' from 'random'" in ended.stderr
    report = json.loads(real.run([cohabit, "doctor", str(home), str(tmp_path / "app.py"), "--format", "json"]).stdout)
    headlines = {one["code"]: one["headline"] for one in report["findings"] if one["severity"] == "error"}
    assert set(headlines) == {"PY302"} and "cannot import name 'SystemRandom' from 'random'" in headlines["PY302"]


def test_copies_that_are_alike(cohabit: str) -> None:
    """paddle 3.0.0 exports zlib 1.2.11, and splits the system's 1.2.13, whose members lie at the same places: what is compressed by
    both comes back. (Its 1.2.8 of release 2.6.2 does not: test_fix.py.)"""
    home = home_of("alike")
    code = """if True:
        import io, paddle, h5py, numpy
        from PIL import Image
        numbers = numpy.random.default_rng(1).integers(0, 255, 60_000, dtype="uint8")
        with h5py.File("x", "w", driver="core", backing_store=False) as file:
            assert (file.create_dataset("x", data=numbers, compression="gzip")[:] == numbers).all()
        picture, written = Image.fromarray(numbers.reshape(100, 200, 3)), io.BytesIO()
        picture.save(written, "PNG")
        assert Image.open(io.BytesIO(written.getvalue())).tobytes() == picture.tobytes()
    """
    ended = real.run([str(home / "bin/python"), "-c", code])
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = json.loads(real.run([cohabit, "doctor", str(home), "--imports", "paddle,h5py,PIL.Image", "--format", "json"]).stdout)
    (found,) = [one for one in report["findings"] if one["code"].startswith("CB") and one["severity"] != "note"]
    assert found["code"] == "CB106" and report["orders"][0]["verdict"] == "sound"
    (layout,) = [row for row in found["evidence"] if row["kind"] == "layout"]
    assert layout["count"] >= 0.9 * layout["total"] and layout["total"] >= 20
