"""A module that native code imports, that its distribution requires and that is not installed: the import really fails, and so says
doctor. Where nobody requires it, the code may have a handler, and doctor keeps silent."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import real  # noqa: E402
from test_healthy import home_of  # noqa: E402

OF_NETCDF = ("netCDF4*", "netcdf4*", "numpy*", "cftime*", "certifi*")


@pytest.fixture
def netcdf(tmp_path: Path) -> Path:
    """netCDF4, whose Cython module imports cftime and certifi, in an environment of its own; its site directory."""
    tables = home_of("tables")
    subprocess.run([(tables / "bin/python").resolve(), "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    for pattern in OF_NETCDF:
        for entry in next(tables.glob("lib/python3*/site-packages")).glob(pattern):
            shutil.copytree(entry, site / entry.name, dirs_exist_ok=True)
    return site


def look(cohabit: str, site: Path) -> tuple[str, list[str]]:
    """The error of the real import, and those of doctor."""
    home = site.parents[2]
    ended = real.run([str(home / "bin/python"), "-c", "import netCDF4"])
    report = json.loads(real.run([cohabit, "doctor", str(home), "--imports", "netCDF4", "--format", "json"]).stdout)
    return (ended.stderr.strip().split("\n")[-1] if ended.returncode else "",
            [one["headline"] for one in report["findings"] if one["severity"] == "error"])


@pytest.mark.parametrize("missing", ["", "cftime", "certifi"])
def test_what_native_code_needs_is_missing(missing: str, netcdf: Path, cohabit: str) -> None:
    if missing:
        for entry in netcdf.glob(f"{missing}*"):
            shutil.rmtree(entry)
    error, said = look(cohabit, netcdf)
    assert error == (f"ModuleNotFoundError: No module named '{missing}'" if missing else "")
    assert said == ([f"{error} is raised when `import netCDF4` runs"] if missing else [])
    if not missing:
        return
    for metadata in netcdf.glob("net[cC][dD][fF]4-*/METADATA"):
        metadata.write_text("".join(line for line in metadata.read_text().splitlines(True)
                                    if not line.startswith(f"Requires-Dist: {missing}")))
    assert look(cohabit, netcdf)[1] == []
