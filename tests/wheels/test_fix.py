"""`cohabit fix` finds the repairs that were found by hand; `cohabit run` proves them on real frameworks."""
from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import environments
sys.path.insert(0, str(Path(__file__).parent))
import ldso_compare  # noqa: E402
import ldso_record  # noqa: E402
import real  # noqa: E402
from test_wheels import TABLE, environment, scratch  # noqa: E402,F401

REPAIRS = [pytest.param(name, case, id=f"{name}: {case['imports']}")
           for name, spec in TABLE.items() for case in spec.get("repairs", [])]
COMPUTED = [p for p in REPAIRS if "code" in p.values[1]]
ATTEMPTS = 4  # some crashes do not come every time


def parts_of(rules: str) -> set[str]:
    """"preload libz.so.1", "-global libx.so": the rules, without where the environment is."""
    parts = set()
    for line in rules.splitlines()[1:]:
        kind, rest = line.split(" ", 1)
        change, _, file = rest.partition(" ") if kind == "dlopen" else (kind, "", rest)
        parts.add(f"{change} {file.rpartition('/')[2]}")
    return parts


def fix(cohabit: str, home: Path, *arguments: str) -> dict:
    answer = real.run([cohabit, "fix", str(home), *arguments, "--format", "json"])
    assert answer.returncode in (0, 1), answer.stderr[-2000:]
    return json.loads(answer.stdout)


@pytest.mark.parametrize("name, case", REPAIRS)
def test_finds_the_known_repair(name: str, case: dict, cohabit: str, repo: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    report = fix(cohabit, environment(name), "--imports", case["imports"])
    jsonschema.validate(report, json.loads((repo / "data/schema/fix.schema.json").read_text()))
    best = report["repairs"][0]
    assert parts_of(best["rules"]) == set(case["first"])
    assert best["every_order"] and not best["leaves"]
    launch = {f["id"] for f in report["findings"] if f["repairable"] == "launch"}
    assert launch and set(best["clears"]) == launch
    ways = [row["text"] for row in report["repairs"] if row["kind"] == "package"]
    assert len(ways) == len(set(ways)), "one way is told once, whatever it clears"


def test_a_latent_split_is_repaired_before_anything_steps_into_it(cohabit: str) -> None:
    """`import paddle` returns, and `import zlib` after it dies (shared/knowledge/real-conflicts.md, 2)."""
    home = environment("ocr")
    report = fix(cohabit, home, "--with", "torch,paddle")
    assert {order["verdict"] for order in report["orders"]} == {"sound"}
    assert [f["code"] for f in report["findings"]] == ["CB105"] and report["findings"][0]["severity"] == "warning"
    best = report["repairs"][0]
    assert parts_of(best["rules"]) == {"preload libz.so.1"} and not best["leaves"]
    shown = real.run([cohabit, "fix", str(home), "--imports", "paddle"], LD_PRELOAD="libm.so.6").stdout
    assert "LD_PRELOAD=libz.so.1:$LD_PRELOAD " in shown, "what the user preloads stays"
    code = "import paddle, zlib; print(zlib.decompress(zlib.compress(b'right' * 1000))[:5].decode())"
    plain = [real.run([str(home / "bin/python"), "-c", code]) for _ in range(ATTEMPTS)]
    assert any(run.returncode != 0 for run in plain)
    repaired = real.run([str(home / "bin/python"), "-c", code], LD_PRELOAD=best["rules"].split("preload ")[1].split()[0])
    assert repaired.returncode == 0 and "right" in repaired.stdout


def test_imports_that_succeed_and_die_at_what_they_call(cohabit: str) -> None:
    """What is computed behind `import paddle, requests` steps into the split that doctor warns of: fix and run repair it, and verify
    names it as the reason."""
    home = environment("ocr")
    report = fix(cohabit, home, "--imports", "paddle,requests")
    assert report["orders"][0]["verdict"] == "sound" and [f["code"] for f in report["findings"]] == ["CB105"]
    assert parts_of(report["repairs"][0]["rules"]) == {"preload libz.so.1"}
    seen = json.loads(real.run([cohabit, "verify", str(home), "--imports", "paddle,requests", "--format", "json"]).stdout)["runs"][0]
    assert seen["outcome"] == "signal" and [(e["code"], e["explains"]) for e in seen["predicted_errors"]] == [("CB105", True)]
    code = "import paddle, requests, zlib; print(zlib.decompress(zlib.compress(b'right' * 1000))[:5].decode())"
    done = real.run([cohabit, "run", "--imports", "paddle,requests", "--", str(home / "bin/python"), "-c", code])
    assert done.returncode == 0 and "right" in done.stdout, done.stderr[-2000:]


def test_what_was_asked_for_is_repaired_too(cohabit: str) -> None:
    """paddleocr is no framework, and `import paddleocr` dies (shared/knowledge/real-conflicts.md, 1)."""
    report = fix(cohabit, environment("ocr"))
    assert {", ".join(order["imports"]) for order in report["orders"] if order["verdict"] != "sound"} == {"paddleocr"}
    assert parts_of(report["repairs"][0]["rules"]) == {"preload libz.so.1"} and not report["repairs"][0]["leaves"]


def test_healthy_order_needs_nothing(cohabit: str) -> None:
    report = fix(cohabit, environment("demo"), "--imports", "paddle,tensorflow")
    assert report["repairs"] == [] and report["orders"][0]["verdict"] == "sound"


@pytest.mark.parametrize("name, case", COMPUTED)
def test_run_makes_it_compute(name: str, case: dict, cohabit: str) -> None:
    """The same code, the same interpreter: dies or computes wrong without the repair, right with it."""
    home = environment(name)
    command = real.statement_command(home, case["code"])
    repaired = real.run([cohabit, "run", "--", *command])
    assert repaired.returncode == 0, repaired.stderr[-3000:]
    for switched_off in ([cohabit, "run", "--repair", "none", "--", *command], command):
        endings = []
        for _ in range(ATTEMPTS):
            endings.append(real.run(switched_off).returncode)
            if endings[-1] != 0:
                break
        assert endings[-1] != 0, f"works without the repair as well: {endings}"


# Programs that import one framework, and another one that their first run through does not show. In `demo`: conflict 2.
VALUE = "print(float(m.matmul(m.ones([8, 8]), m.ones([8, 8]))[0][0]))\n"
LATER = {
    "a name that is read": f"import tensorflow, importlib, sys\nm = importlib.import_module(sys.stdin.readline().strip())\n{VALUE}",
    "a text that is read": f"import tensorflow, sys\nexec('import ' + sys.stdin.readline().strip() + ' as m')\n{VALUE}",
    "a function": f"import tensorflow\ndef paddle():\n    import paddle as m\n    {VALUE}globals()[input()]()\n",
    "a module of its own": "import tensorflow, helper\n{'paddle': helper.paddle}[input()]()\n",
    "a program that it starts": "import paddle, subprocess, sys\nsys.exit(subprocess.run([sys.executable, 'child.py']).returncode)\n",
}


@pytest.mark.parametrize("how", LATER)
def test_what_a_program_imports_later(how: str, cohabit: str, tmp_path: Path) -> None:
    """What only a running program decides is repaired too: by what its code names, else by every order of the environment."""
    home = environment("demo")
    (tmp_path / "app.py").write_text(LATER[how])
    (tmp_path / "helper.py").write_text("def paddle():\n    import paddle as m\n    " + VALUE)
    (tmp_path / "child.py").write_text("import tensorflow, paddle as m\n" + VALUE)
    command = [str(home / "bin/python"), "app.py"]
    plain, repaired = [subprocess.run([*before, *command], input="paddle\n", capture_output=True, text=True, cwd=tmp_path)
                       for before in ([], [cohabit, "run", "--"])]
    assert plain.returncode != 0
    assert repaired.returncode == 0 and repaired.stdout.split() == ["8.0"], repaired.stderr[-3000:]


@pytest.mark.parametrize("kind", ["script", "make"])
def test_a_script_that_activates_the_environment(kind: str, cohabit: str, tmp_path: Path) -> None:
    home = environment("demo")
    (tmp_path / "child.py").write_text("import tensorflow, paddle as m\n" + VALUE)
    (tmp_path / "start").write_text(f"source '{home}/bin/activate'\npython child.py\n")
    (tmp_path / "Makefile").write_text(f"BIN = {home}/bin\nrun:\n\t@$(BIN)/python child.py\n")
    command = ["make"] if kind == "make" else ["bash", "start"]
    done = subprocess.run([cohabit, "run", "--", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.split() == ["8.0"], done.stderr[-3000:]


@pytest.mark.parametrize("given, right", [("dict(os.environ)", True), ("{}", False)])
def test_children_with_variables_of_their_own(given: str, right: bool, cohabit: str, tmp_path: Path) -> None:
    home = environment("demo")
    (tmp_path / "app.py").write_text("import os, subprocess, sys\nsys.exit(subprocess.run([sys.executable, 'child.py'], "
                                     f"env={given}).returncode)\n")
    (tmp_path / "child.py").write_text("import tensorflow, paddle as m\n" + VALUE)
    done = subprocess.run([cohabit, "run", "--", str(home / "bin/python"), "app.py"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout.split() == ["8.0"]) == right and "variables of its own (env=)" in done.stderr, done.stderr[-3000:]


def test_a_launcher_that_imports_a_framework(cohabit: str, tmp_path: Path) -> None:
    """paddle's own imports paddle; what its argument names is repaired."""
    home = environment("demo")
    (tmp_path / "child.py").write_text(f"import tensorflow, paddle as m\nopen({str(tmp_path / 'told')!r}, 'w').write('right')\n")
    command = [str(home / "bin/python"), "-m", "paddle.distributed.launch", "--max_restart", "0", "child.py"]
    done = subprocess.run([cohabit, "run", "--", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "told").read_text() == "right", done.stderr[-3000:]


def test_verify_proves_the_repair(cohabit: str, repo: Path, tmp_path: Path) -> None:
    """OpenCV behind decord writes whole pictures only with the repair, and `fix --verify` has seen it; a program that
    still fails is told."""
    jsonschema = pytest.importorskip("jsonschema")
    home = environment("conflict5")
    assert [row["verified"] for row in fix(cohabit, home, "--imports", "decord,cv2")["repairs"]][:1] == [None]
    report = fix(cohabit, home, "--imports", "decord,cv2", "--verify")
    jsonschema.validate(report, json.loads((repo / "data/schema/fix.schema.json").read_text()))
    assert report["repairs"][0]["verified"] is True and report["repairs"][0]["verification"] == ""
    (tmp_path / "sitecustomize.py").write_text("import atexit, os; atexit.register(os._exit, 3)\n")
    answer = real.run([cohabit, "fix", str(home), "--imports", "decord,cv2", "--verify", "--format", "json"],
                      PYTHONPATH=str(tmp_path))
    best = json.loads(answer.stdout)["repairs"][0]
    assert answer.returncode == 1 and best["verified"] is False
    assert "import decord, cv2: exception: exit code 3" in best["verification"]


def test_a_crash_names_library_and_symbol(cohabit: str) -> None:
    """Conflict 2 dies in protobuf; faulthandler, which TensorFlow's or Paddle's users enable, changes nothing."""
    answer = real.run([cohabit, "verify", str(environment("demo")), "--imports", "faulthandler,tensorflow,paddle", "--format", "json"],
                      PYTHONFAULTHANDLER="1")
    (run,) = json.loads(answer.stdout)["runs"]
    assert (answer.returncode, run["outcome"], run["agrees"]) == (1, "signal", True)
    libraries = [frame["library"].rpartition("/")[2] for frame in run["frames"]]
    assert libraries[0].startswith(("libphi_core.so", "libpaddle.so", "libtensorflow_framework.so"))
    assert "libpaddle.so" in libraries and any("google8protobuf" in frame["symbol"] for frame in run["frames"][:3])
    assert [error["code"] for error in run["predicted_errors"] if error["explains"]] == ["CB101"]


CUDA = re.compile(r"^(cuda|__cuda|cu[A-Z]|cublas|cudnn|nccl|cusparse|cusolver|cufft|curand|nvshmem)")


def foreign_bindings(table: Path) -> set[tuple[str, str]]:
    """CUDA and NCCL symbols by which one framework's libraries reach into the other's."""
    def side(path: str) -> str:
        if "/tensorflow/" in path:
            return "tensorflow"
        if "/torch/" in path or re.search(r"/nvidia/cu13/|\.so\.13\b", path):
            return "torch"
        return ""
    found = set()
    for line in table.read_text(errors="surrogateescape").splitlines():
        consumer, provider, symbol = line.split("\t")[:3]
        sides = side(consumer), side(provider)
        if all(sides) and sides[0] != sides[1] and CUDA.match(symbol):
            found.add((Path(consumer).name, Path(provider).name))
    return found


# What torch opens at the first use of its linear algebra on a GPU.
OPEN_SOLVER = ("[ctypes.CDLL(f) for f in glob.glob("
               "os.path.dirname(torch.__file__) + '/../nvidia/cu13/lib/libcusolver.so.1?')]")


@pytest.mark.parametrize("imports", ["torch, tensorflow", "tensorflow, torch"])
def test_cuda_symbols_bind_to_each_ones_own(imports: str, cohabit: str, scratch: Path) -> None:
    """By ld.so's own log of the repaired command, and by the replay of its trace, cuSOLVER included.
    Taking one part of the repair away brings foreign bindings back in one of the orders."""
    home = environment("newest")
    rules = scratch / "rules"
    code = f"import {imports}, ctypes, glob, os; {OPEN_SOLVER}"
    command = real.statement_command(home, code)
    real.run([cohabit, "fix", str(home), "--imports", imports.replace(" ", ""), "--write", str(rules)])
    dry = real.run([cohabit, "run", "--repair", str(rules), "--dry-run", "--", *command]).stdout
    variables = dict(shlex.split(line, comments=True)[0].split("=", 1)
                     for line in dry.splitlines() if re.match(r"[A-Z_]+=", line))
    assert set(variables) >= {"LD_PRELOAD", "COHABIT_PRELOAD_RULES"}
    truth = scratch / "truth"
    status = ldso_record.record(command, truth, now=True, env=real.run_environment() | variables,
                                cwd=real.run_directory(), timeout=real.TIMEOUT)
    assert not foreign_bindings(truth / "bindings.tsv"), (status, foreign_bindings(truth / "bindings.tsv"))

    trace, loads, bindings = (scratch / n for n in ("run.trace", "loads.tsv", "bindings.tsv"))
    real.run([cohabit, "trace", "--out", str(trace), "--", *command], LD_BIND_NOW="1", **variables)
    replay = subprocess.run([cohabit, "replay", str(trace), "--loads", str(loads), "--bindings",
                             str(bindings)], capture_output=True, text=True, timeout=real.TIMEOUT)
    assert replay.returncode == 0, replay.stderr[-2000:]
    assert not foreign_bindings(bindings)
    result = ldso_compare.compare(truth, bindings, loads, lazy=False)
    assert result.agrees, result

    plain = scratch / "plain.tsv"
    real.run([cohabit, "doctor", str(home), "--imports", imports.replace(" ", ""), "--bindings",
              str(plain)], LD_BIND_NOW="1")
    assert foreign_bindings(plain), "nothing is captured without the repair: the test shows nothing"
