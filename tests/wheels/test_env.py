"""`cohabit env` and `cohabit run` on real frameworks, judged by the real ld.so and the files themselves."""
from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import real  # noqa: E402
from test_wheels import environment  # noqa: E402


def needed(cohabit: str, home: Path) -> dict[str, str]:
    answer = real.run([cohabit, "env", str(home), "--format", "json"])
    assert answer.returncode == 0, answer.stderr[-2000:]
    return {one["name"]: one["value"] for one in json.loads(answer.stdout)["variables"]}


def test_library_path_for_onnxruntime(cohabit: str) -> None:
    """Its CUDA provider names no directory: without help ldd finds none of the wheels' libraries, and maybe the system's."""
    home = environment("serving")
    provider = next(home.glob("lib/python3*/site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so"))
    plain = real.run(["ldd", str(provider)]).stdout
    assert "not found" in plain
    code = f"import subprocess; print(subprocess.run(['ldd', {str(provider)!r}], capture_output=True, text=True).stdout)"
    repaired = real.run([cohabit, "run", "--quiet", "--driver", "580", "--repair", "none", "--", str(home / "bin/python"), "-c", code])
    places = {line.split()[0]: line.split()[2] for line in repaired.stdout.splitlines() if "=>" in line}
    for library in ("libcublasLt.so.12", "libcublas.so.12", "libcurand.so.10", "libcufft.so.11", "libcudart.so.12",
                    "libcudnn.so.9", "libnvrtc.so.12"):
        assert "/site-packages/nvidia/" in places[library], repaired.stdout


def test_frameworks_that_share_a_gpu(cohabit: str) -> None:
    found = needed(cohabit, environment("newest"))
    assert found["TF_FORCE_GPU_ALLOW_GROWTH"] == "true" and found["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_builds_for_the_cpu_need_nothing_of_that(cohabit: str) -> None:
    assert needed(cohabit, environment("cpu")) == {}
