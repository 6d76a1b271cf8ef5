"""`cohabit matrix`: what it says is what the tables of data/ say, worked out a second time here; its commands are real."""
from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Callable

import index as made
import jsonschema
import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
FIELDS = ("framework", "distribution", "version", "released", "platform", "pythons", "glibc", "install", "cuda", "cuda_from", "code",
          "ptx", "wheel", "read")


def rows_of(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (DATA / name).read_text().splitlines() if line and not line.startswith("#")]


RELEASES = [dict(zip(FIELDS, row)) for row in rows_of("releases.tsv")]
OTHERS = rows_of("other_builds.tsv")
PAIRS = rows_of("pairs.tsv")
UNDECLARED = rows_of("undeclared.tsv")


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


@pytest.fixture
def matrix(cohabit: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    def run(*arguments, code: int | None = 0, **more) -> subprocess.CompletedProcess:
        done = subprocess.run([cohabit, "matrix", *arguments], capture_output=True, text=True, timeout=60,
                              cwd=more.pop("cwd", tmp_path), **more)
        assert done.returncode in ((0, 1) if code is None else (code,)), (done.returncode, done.stdout, done.stderr)
        return done
    return run


@pytest.fixture
def ask(matrix, repo: Path) -> Callable[..., dict]:
    """The same as JSON, which fits its schema; code=None: 0 or 1."""
    schema = json.loads((repo / "data/schema/matrix.schema.json").read_text())

    def run(*arguments, **more) -> dict:
        report = json.loads(matrix(*arguments, "--format", "json", **more).stdout)
        jsonschema.validate(report, schema)
        return report
    return run


# ---- the tables -----------------------------------------------------------------------------------------------------------

def test_each_row_has_its_source_and_day():
    assert len(RELEASES) > 500 and all(len(row) == len(FIELDS) for row in rows_of("releases.tsv"))
    for row in RELEASES:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["read"]) and re.search(r"\.(whl|tar\.gz)$", row["wheel"]), row
        assert re.fullmatch(r"none|\?|\d+(\.\d+)?|>=\d+\.\d+", row["cuda"]), row
        assert (row["cuda"] == "?") == (row["cuda_from"] == "?"), row
        assert row["cuda_from"] == "?" or re.match(r"scanned |scanned: |declared: ", row["cuda_from"]), row
        assert re.fullmatch(r"none|\?|\d+[af]?(,\d+[af]?)*", row["code"]), row
        assert re.fullmatch(r"none|\?|\d+[af]?:\d+\.\d+(,\d+[af]?:\d+\.\d+)*", row["ptx"]), row
        assert (row["code"] == "?") == (row["ptx"] == "?"), row
    assert len({(r["distribution"], r["version"], r["platform"]) for r in RELEASES}) == len(RELEASES)
    for row in OTHERS:
        assert len(row) == 9 and row[7] and re.match(r"\d{4}", row[8]), row
    known = {row["install"] for row in RELEASES}
    for row in PAIRS:
        assert len(row) == 8 and {row[0], row[1]} <= known and re.fullmatch(r"\d{4}-\d\d-\d\d", row[7]), row


def test_what_is_undeclared_has_its_source():
    known = {(r["distribution"], r["version"]): r for r in RELEASES}
    for row in UNDECLARED:
        assert len(row) == 8 and re.fullmatch(r"[\w/]+\.py:\d+", row[5]) and re.fullmatch(r"\d{4}-\d\d-\d\d", row[7]), row
        release = known[row[0], row[1]]
        taken = set(release["pythons"].rstrip("+").split(","))
        assert row[6].startswith(row[0].replace("-", "_") + "-" + row[1]) and row[2], row
        assert set(row[2].split(",")) <= taken or release["pythons"].endswith("+"), row


def test_both_orders_of_each_pair_are_there():
    orders = {(row[0], row[1], row[2]) for row in PAIRS}
    assert orders and all((second, first, python) in orders for first, second, python in orders)


# ---- frameworks and pairs ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("platform", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", sorted({row["distribution"] for row in RELEASES}))
def test_all_rows_of_a_distribution(ask, name: str, platform: str):
    rows = [row for row in RELEASES if row["distribution"] == name and row["platform"] in (platform, "source")]
    others = [row for row in OTHERS if row[1] == name and platform == "x86_64"]
    report = ask(name, "--all", "--platform", platform, code=0 if rows or others else 1)
    builds = [b for b in report["frameworks"][0]["builds"] if b["distribution"] == name]
    assert sorted((b["version"], b["cuda"] or "?", b["source"]) for b in builds if not b["backend"]) == sorted(
        (row["version"], row["cuda"], row["wheel"]) for row in rows)
    assert sorted((b["version"], b["cuda"]) for b in builds if b["backend"]) == sorted((row[2], row[4]) for row in others)
    versions = [numbers(b["version"])[:2] for b in builds]
    assert versions == sorted(versions, reverse=True)


def test_the_table_of_a_framework(matrix, ask):
    text = matrix("torch", "--platform", "x86_64").stdout
    for build in ask("torch", "--platform", "x86_64")["frameworks"][0]["builds"]:
        line = next(line for line in text.splitlines() if line.split()[1:2] and line.split()[:2] == [
            "torch", build["version"] + (f".*+{build['backend']}" if build["backend"] else "")])
        assert build["cuda"] in line and build["oldest_driver"] in line
    assert "older (--all)" in text
    by_python = ask("torch", "--platform", "x86_64", "--python", "3.9", "--all")["frameworks"][0]["builds"]
    assert by_python and all("3.9" in build["pythons"] for build in by_python)
    assert ask("torch==2.8", "--platform", "x86_64")["frameworks"][0]["builds"][0]["version"].startswith("2.8.")


def test_pairs_are_those_of_the_table(matrix, ask):
    def named(pin: str, name: str) -> bool:
        return any(r["install"] == pin and name in (r["framework"], r["distribution"]) for r in RELEASES)
    for first, second in (("torch", "paddlepaddle"), ("tensorflow", "paddle"), ("jax", "torch")):
        wanted = [row for row in PAIRS if named(row[0], first) and named(row[1], second)
                  or named(row[0], second) and named(row[1], first)]
        report = ask(first, second)["pairs"][0]
        assert wanted and sorted([r["first"], r["second"], r["python"], r["outcome"], r["with_gpu"], r["alone"], r["certainty"],
                                  r["day"]] for r in report["rows"]) == sorted(wanted)
    row = next(row for row in PAIRS if row[0] == "tensorflow-cpu==2.21.0" and row[1] == "paddlepaddle==3.3.1")
    assert row[3] == "error: CB101", "conflict 2 (docs/design/findings.md): the newest of both, this order is a crash"
    text = matrix("tensorflow-cpu", "paddlepaddle").stdout
    assert re.search(r"tensorflow-cpu==2\.21\.0 +paddlepaddle==3\.3\.1 .*error: CB101", text)
    assert "sound: paddlepaddle==3.3.1, then tensorflow-cpu==2.21.0" in text


def test_what_is_not_known_is_said(matrix):
    done = matrix("pycuda", "faiss-gpu-cu11", code=1)
    assert "no pair of them was simulated" in done.stdout


# ---- a machine -----------------------------------------------------------------------------------------------------------

OLDEST_DRIVER = {int(row[0]): numbers(row[1]) for row in rows_of("cuda_majors.tsv")}
TOOLKITS = {row[0]: numbers(row[1]) for row in rows_of("cuda_toolkits.tsv")}
PTX = {row[0]: row[1] for row in rows_of("ptx_versions.tsv")}


def at_least(driver: str, wanted: tuple[int, ...]) -> bool:
    have = numbers(driver)
    return have >= (wanted[:1] if len(have) == 1 else wanted)


def runs(row: dict, driver: str, sm: int, python: str) -> bool:
    """Machine code for this GPU, CUDA for this driver, a wheel for this Python: said in the simplest way."""
    pythons = row["pythons"].rstrip("+").split(",")
    if row["platform"] != "x86_64" or not (python in pythons or row["pythons"].endswith("+") and numbers(python) >= numbers(pythons[0])):
        return False
    cuda = numbers(row["cuda"])
    if not cuda or row["code"] in ("none", "?"):
        return False
    oldest = OLDEST_DRIVER.get(cuda[0]) or TOOLKITS.get(row["cuda"])
    if not oldest or not at_least(driver, oldest):
        return False
    for code in row["code"].split(","):
        arch = int(code.rstrip("af"))
        if arch == sm or not code.endswith("a") and arch // 10 == sm // 10 and arch <= sm:
            return True
    return False


MACHINES = [("535.104.05", 75, "3.10"), ("580.65.06", 120, "3.12"), ("450.80.02", 70, "3.8"), ("595.71.05", 90, "3.11"),
            ("525", 61, "3.9")]


@pytest.mark.parametrize("driver,sm,python", MACHINES)
def test_the_newest_that_runs_on_a_machine(ask, driver: str, sm: int, python: str):
    for framework in ("torch", "tensorflow", "onnxruntime", "paddle", "jax", "cupy"):
        able = [r for r in RELEASES if r["framework"] == framework and runs(r, driver, sm, python)]
        report = ask(framework, "--for", f"driver {driver}, sm_{sm}, python {python}, x86_64", code=None)
        chosen = [b for b in report["frameworks"][0]["chosen"] if not b["backend"]]
        if not able:
            assert all(b["fit"] != "runs" for b in chosen)
            continue
        assert [b["fit"] for b in chosen] == ["runs"]
        assert numbers(chosen[0]["version"]) == max(numbers(r["version"]) for r in able)
        assert chosen[0]["source"] in {r["wheel"] for r in able}


def test_nothing_fits_says_why(matrix, ask):
    done = matrix("onnxruntime-gpu==1.31.1", "--for", "driver 535, sm_75, python 3.12, x86_64", code=1)
    assert "nothing fits" in done.stdout and "CUDA 13.0 needs driver 580.65.06 or later" in done.stdout
    done = matrix("torch==2.15.0", "--for", "sm_61, x86_64", code=1)
    assert "it has no code for compute capability 6.1" in done.stdout
    done = matrix("torch==2.15.0", "--for", "glibc 2.17, x86_64", code=1)
    assert "its wheels need glibc 2.28" in done.stdout
    nearest = ask("torch==2.15.0", "--for", "python 3.8, x86_64", code=1)["frameworks"][0]["nearest"]
    assert nearest["fit"] == "not" and nearest["reasons"] == ["it has no wheel for Python 3.8"]


def test_a_glibc_that_nobody_knows_may_be_too_new(matrix, ask):
    wanted = "driver 580.65.06, python 3.12, x86_64"
    assert "2.14.*+cu132" in matrix("torch", "--for", wanted.replace("580.65.06", "600")).stdout
    report = ask("torch==2.14", "--for", f"{wanted}, glibc 2.17")["frameworks"][0]["chosen"]
    assert report and all(one["backend"] and one["fit"] == "unknown" for one in report)
    assert all("its wheels' glibc is unknown" in one["reasons"] for one in report)
    assert "may run" in matrix("torch==2.14", "--for", f"{wanted}, glibc 2.17").stdout
    unknown = [row for row in RELEASES if row["glibc"] in ("-", "?") and row["platform"] == "x86_64"]
    for row in unknown:
        for one in ask(f"{row['distribution']}=={row['version']}", "--for", "x86_64, glibc 2.17", code=None)["frameworks"][0]["chosen"]:
            assert one["fit"] != "runs" or one["source"] != row["wheel"], row


def test_slips_in_a_machine_are_said(matrix) -> None:
    for slip, said in (("driver 535, driver 550", "second driver"), ("driver 2147483648", "no version that there is"), (" ", "no machine"),
                       ("python 3.10, python 3.11", "second Python"), ("x86_64, aarch64", "second processor: the first is x86_64")):
        assert said in matrix("torch", "--for", slip, code=2).stderr, slip


def test_a_patch_that_was_not_scanned_is_judged_by_another(matrix):
    scanned, unscanned = (next(r for r in RELEASES if (r["distribution"], r["version"], r["platform"]) == ("torch", version, "x86_64"))
                          for version in ("2.14.1", "2.14.0"))
    assert unscanned["code"] == "?" and scanned["code"].startswith("75,") and scanned["cuda"] == unscanned["cuda"]
    done = matrix("torch==2.14.0", "--for", "sm_30, x86_64", code=1)
    assert "it has no code for compute capability 3.0" in done.stdout and "by the code of 2.14.1" in done.stdout
    done = matrix("torch==2.14.0", "--for", "sm_75, x86_64")
    assert "by the code of 2.14.1: its own was not scanned" in done.stdout and "may run" not in done.stdout
    assert "2.14.0: may run" not in matrix("torch", "--for", "sm_30, x86_64", code=None).stdout


TARGETS = {int(row[0]): int(row[1].replace(".", "")) for row in rows_of("cuda_targets.tsv")}


def test_no_scanned_wheel_has_code_that_its_toolkit_cannot_make():
    checked = 0
    for row in RELEASES:
        if row["code"] not in ("none", "?") and numbers(row["cuda"]):
            checked += 1
            assert min(int(code.rstrip("af")) for code in row["code"].split(",")) >= TARGETS[numbers(row["cuda"])[0]], row["wheel"]
    assert checked > 50


def test_code_that_nobody_scanned_is_none_that_the_toolkit_does_not_make(matrix):
    unscanned = next(r for r in RELEASES if (r["distribution"], r["version"], r["platform"]) == ("torch", "2.3.1", "x86_64"))
    assert unscanned["code"] == "?" and unscanned["cuda"] == "12.1"
    done = matrix("torch==2.3.1", "--for", "sm_37, x86_64", code=1)
    assert "CUDA 12 makes no code for compute capability 3.7" in done.stdout and "may run" not in done.stdout
    assert "torch 2.3.1: may run" in matrix("torch==2.3.1", "--for", "sm_50, x86_64").stdout


def test_minor_version_compatibility_is_said(matrix):
    text = matrix("tensorflow==2.21.0", "--for", "driver 535.104.05, x86_64").stdout
    assert "by minor-version compatibility: what it compiles for itself may need driver 555.42.02" in text


def test_a_machine_and_a_pair(ask):
    report = ask("torch", "paddlepaddle", "--for", "driver 535, x86_64", code=None)
    for row in report["pairs"][0]["rows"]:
        pin = next(pin for pin in (row["first"], row["second"]) if pin.startswith("torch=="))
        build = next(r for r in RELEASES if r["install"] == pin and r["platform"] == "x86_64")
        assert numbers(build["cuda"])[0] < 13


@pytest.mark.parametrize("text,said", [
    ("drivr 535", "did you mean driver?"), ("driver", "has no version"), ("sm_7", "is no compute capability"),
    ("python 2.7", "is no version of Python 3"), ("glibc new", "has no version"), ("", "empty fact"), ("driver 535,,sm_75", "empty fact"),
    ("driver 535.", "has no version"), ("no GPU, driver 535", "against each other"), ("RTX 3060", "is no fact"), ("sm_75 and more", "is no compute capability"), ("\x1b[31m", r"\x1b")])
def test_facts_that_are_none(matrix, text: str, said: str):
    done = matrix("torch", "--for", text or ",", code=2)
    assert said in done.stderr and "expected facts separated by commas" in done.stderr and "\x1b" not in done.stderr


def test_words_for_facts(ask):
    wanted = ask("torch", "--for", "Driver 535.54,sm 7.5,  sm_86 , python3.10,glibc=2.31, cuda 12")["machine"]
    assert wanted == {"driver": "535.54", "compute_capabilities": ["7.5", "8.6"], "python": "3.10", "glibc": "2.31",
                      "platform": wanted["platform"], "cuda": "12"}


def test_no_gpu(ask):
    report = ask("tensorflow", "--for", "no gpu, python 3.12, x86_64")
    assert [one["install"].split("==")[0] for one in report["frameworks"][0]["chosen"]] == ["tensorflow-cpu"]


def test_without_a_gpu_the_newest_sound_pair_is_one_for_the_cpu(ask):
    """A build for CUDA of 2024 is no reason to leave out the newer one that is for the CPU, and the other way round."""
    pair = ask("paddle", "torch", "--for", "no GPU, python 3.12, x86_64")["pairs"][0]
    newest = {row["distribution"]: row for row in reversed(RELEASES) if row["platform"] == "x86_64" and "3.12" in row["pythons"]}
    assert sorted(pair["sound"]) == sorted(newest[name]["install"] for name in ("paddlepaddle", "torch"))
    assert ["paddlepaddle-gpu" in row["first"] + row["second"] for row in pair["rows"]] == sorted(
        "paddlepaddle-gpu" in row["first"] + row["second"] for row in pair["rows"])
    pair = ask("paddle", "torch", "--for", "driver 600, python 3.12, x86_64")["pairs"][0]
    assert any(pin.startswith("paddlepaddle-gpu==") for pin in pair["sound"]), pair["sound"]
    days = {row["install"]: row["released"] for row in RELEASES if row["platform"] == "x86_64"}
    for names in (("torch", "paddle"), ("tensorflow", "torch"), ("onnxruntime", "torch")):
        rows = ask(*names)["pairs"][0]["rows"]
        ages = [sorted((days[row["first"]], days[row["second"]]), reverse=True) for row in rows]
        assert ages == sorted(ages, reverse=True), "the newest first, of the same newest the one with the newer other"


def test_here(ask, tmp_path: Path):
    environment = made.Environment(tmp_path / "env", "uv")
    report = ask("torch", "--for", "here", "--env", str(environment.root), code=None)
    assert report["machine"]["python"] == "%d.%d" % sys.version_info[:2]
    assert report["machine"]["glibc"] == ".".join(map(str, __import__("os").confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]))
    other = ask("torch", "--for", "here, python 3.9, driver 580.65.06", "--env", str(environment.root), code=None)
    assert (other["machine"]["python"], other["machine"]["driver"]) == ("3.9", "580.65.06")


def test_other_options_that_are_none(matrix):
    assert "did you mean torch?" in matrix("trch", code=2).stderr
    assert "no release 9.9 of torch" in matrix("torch==9.9", code=2).stderr
    assert "cu126=URL" in matrix("torch", "--index-for", "cu126", code=2).stderr
    assert "cu126=URL" in matrix("torch", "--index-for", "rocm=https://x.example/", code=2).stderr
    assert "table, json" in matrix("torch", "--format", "yaml", code=2).stderr


# ---- the commands --------------------------------------------------------------------------------------------------------

def command_of(report: dict, installer: str, backend: bool) -> dict:
    chosen = next(b for b in report["frameworks"][0]["chosen"] if bool(b["backend"]) == backend)
    return next(c for c in chosen["commands"] if c["installer"] == installer)


def dry_run(environment: made.Environment, command: str, **variables: str) -> subprocess.CompletedProcess:
    """The printed command, as a shell reads it, which installs nothing."""
    words = shlex.split(command)
    if words[0] == "pip":
        words = [str(environment.root / "bin/python"), "-m", *words, "--dry-run"]
    else:
        words += ["--dry-run", "--python", str(environment.root / "bin/python")]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env={**environment.variables, **variables})


def test_commands_install_what_they_say(environment, ask, serve, tmp_path: Path):
    """On indexes of generated wheels: the usual one and one for cu126."""
    usual, other = tmp_path / "usual", tmp_path / "other"
    made.make_wheel(other, "torch", "2.14.1+cu126", requires=("helper",))
    made.make_wheel(other, "helper", "1")
    usual.mkdir()
    index, for_cu126 = serve(usual), serve(other)
    address = {"PIP_INDEX_URL": index.address(), "UV_DEFAULT_INDEX": index.address()}
    wanted = ("torch", "--for", "driver 535, sm_75, python 3.10, x86_64")
    report = ask(*wanted, "--index-for", f"cu126={for_cu126.address()}")
    command = command_of(report, environment.installer, backend=True)
    done = dry_run(environment, command["command"], **address)
    assert done.returncode == 0 and "torch" in done.stdout + done.stderr and "2.14.1+cu126" in done.stdout + done.stderr
    plain = next(b for b in ask(*wanted)["frameworks"][0]["chosen"] if not b["backend"])
    made.make_wheel(usual, "torch", plain["version"])
    made.make_wheel(usual, "torch", "99")
    done = dry_run(environment, command_of(ask(*wanted), environment.installer, backend=False)["command"], **address)
    assert done.returncode == 0 and plain["version"] in done.stdout + done.stderr


@pytest.mark.parametrize("asked,python,words", [
    ("paddlepaddle-gpu==2.6.2", "3.12", True), ("paddlepaddle-gpu==2.6.1", "3.10", True), ("paddlepaddle==3.2.0", "3.13", True),
    ("paddlepaddle==3.3.1", "3.12", False), ("paddlepaddle==3.3.1", "3.11", True), ("onnxruntime==1.32.0", "3.12", False)])
def test_what_a_framework_imports_and_does_not_require_is_installed_with_it(matrix, ask, asked: str, python: str, words: bool):
    """Seen in environments of uv for Python 3.12: without setuptools `import paddle` of 2.6.2, 3.0, 3.1 and 3.2 ends with
    ModuleNotFoundError, with it it does not; 3.3.1 requires it, for 3.12 and later."""
    wanted = (asked, "--for", f"python {python}, x86_64")
    build = ask(*wanted)["frameworks"][0]["chosen"][0]
    commands = [shlex.split(one["command"]) for one in build["commands"]]
    assert len(commands) == 2 and all((line[-1] == "setuptools") == words for line in commands), commands
    assert [one["needs"] for one in build["undeclared"]] == ["setuptools"] * words
    assert ("imports setuptools and does not require it" in matrix(*wanted).stdout) == words


def test_numpy_of_its_time_comes_with_a_build_that_does_not_require_it(ask):
    """Seen in an environment of uv: faiss-cpu 1.7.4 does not load beside NumPy 2."""
    build = ask("faiss-cpu==1.7.4", "--for", "python 3.11, x86_64")["frameworks"][0]["chosen"][0]
    assert [shlex.split(one["command"])[-2:] for one in build["commands"]] == [["faiss-cpu==1.7.4", "numpy<2"]] * 2


def test_a_pair_is_installed_with_what_either_does_not_require(ask):
    for wanted in ("driver 600, python 3.12, x86_64", "no GPU, python 3.11, x86_64"):
        pair = ask("paddle", "torch", "--for", wanted)["pairs"][0]
        assert pair["sound"] and all(shlex.split(one["command"])[-1] == "setuptools" for one in pair["commands"]), pair["commands"]
        assert {one["distribution"] for one in pair["undeclared"]} <= {pin.split("==")[0] for pin in pair["sound"]}


def test_a_sound_pair_can_be_installed(environment, ask, serve, tmp_path: Path):
    report = ask("tensorflow-cpu", "paddlepaddle", "--for", "python 3.11, x86_64")
    pair = report["pairs"][0]
    for pin in pair["sound"]:
        name, _, version = pin.partition("==")
        made.make_wheel(tmp_path / "wheels", name, version)
    made.make_wheel(tmp_path / "wheels", "setuptools", "80")  # paddlepaddle 3.3.1 does not require it for Python 3.11
    index = serve(tmp_path / "wheels")
    command = next(c["command"] for c in pair["commands"] if c["installer"] == environment.installer)
    done = dry_run(environment, command, PIP_INDEX_URL=index.address(), UV_DEFAULT_INDEX=index.address())
    assert done.returncode == 0 and all(re.split("==", pin)[1] in done.stdout + done.stderr for pin in pair["sound"])


def test_uv_knows_the_backends(ask, tmp_path: Path):
    """uv has each of them among the values of its option (a value it does not know ends it with 2)."""
    environment = made.Environment(tmp_path / "env", "uv")
    backends = sorted({"cu" + row[4].replace(".", "") for row in OTHERS if row[0] == "torch"})
    assert backends
    for backend in [*backends, "cu999"]:
        done = dry_run(environment, f"uv pip install torch --offline --torch-backend {backend}")
        assert ("invalid value" in done.stderr) == (backend == "cu999"), (backend, done.stderr)
    command = command_of(ask("torch", "--for", "driver 535, sm_75, python 3.10, x86_64"), "uv", backend=True)["command"]
    assert command.endswith(" --torch-backend cu126")


def test_pip_needs_an_address(ask, tmp_path: Path):
    wanted = ("torch", "--for", "driver 535, sm_75, python 3.10, x86_64")
    missing = command_of(ask(*wanted), "pip", backend=True)
    assert missing["command"] is None and "--index-for cu126=URL" in missing["missing"]
    (tmp_path / "cohabit.toml").write_text('[index-for]\ncu126 = "https://wheels.example/cu126"\n')
    assert command_of(ask(*wanted), "pip", backend=True)["command"].endswith("--index-url https://wheels.example/cu126")
    assert command_of(ask(*wanted, "--no-config"), "pip", backend=True)["command"] is None
    secret = ask(*wanted, "--index-for", "cu126=https://me:SECRET@a.example/x")
    assert "SECRET" not in str(secret) and "https://***@a.example/x" in str(secret)
    named = ask(*wanted, "--index-for", "cu126=https://a.example/it's here")
    assert shlex.split(command_of(named, "pip", backend=True)["command"])[-1] == "https://a.example/it's here"


def test_wrong_indexes_in_the_configuration(matrix, tmp_path: Path):
    (tmp_path / "cohabit.toml").write_text("index-for = 1\n")
    assert "index-for: expected a table" in matrix("torch", code=2).stderr
