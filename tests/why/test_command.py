"""The command: its outputs, texts of any kind, and what is an answer."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import MECHANISMS, REPO, slugs, why  # noqa: E402

CLASH = 'ImportError: generic_type: type "_gpuDeviceProperties" is already registered!'
STACK = """Traceback (most recent call last):
  File "/app/main.py", line 3, in <module>
    import torch
OSError: /env/nvidia/cublas/lib/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11
"""


@pytest.fixture(scope="module")
def schema() -> dict:
    return json.loads((REPO / "data" / "schema" / "why.schema.json").read_text())


@pytest.mark.parametrize("slug", MECHANISMS)
def test_report_fits_its_schema(slug: str, schema: dict, cohabit: str):
    jsonschema.validate(why(cohabit, MECHANISMS[slug]["matches"][0]), schema)


# The contract of the machine-readable report, by name: a schema that is changed along with the command proves nothing.
CONTRACT = {"mechanism": str, "code": (str, type(None)), "confidence": (int, float), "matched": list, "status": str,
            "evidence": list, "fixes": list}


@pytest.mark.parametrize("slug", MECHANISMS)
def test_report_says_what_the_mechanism_and_the_text_say(slug: str, cohabit: str):
    data, text = MECHANISMS[slug], "first\n" + MECHANISMS[slug]["matches"][0]
    report = why(cohabit, text)
    assert set(report) >= {"schema_version", "answers", "recognised"}
    answer = report["answers"][0]
    assert {name: type(answer[name]) for name in CONTRACT if not isinstance(answer[name], CONTRACT[name])} == {}
    assert (answer["mechanism"], answer["code"]) == (slug, data.get("code"))
    assert 0 < answer["confidence"] < 1 and answer["status"] == "not-checkable" and answer["evidence"] == []
    lines = text.splitlines()
    assert answer["matched"] and all(line["text"].strip() in lines[line["line"] - 1] for line in answer["matched"])
    assert sorted(fix["kind"] for fix in answer["fixes"]) == sorted(fix["kind"] for fix in data["fixes"])
    assert {fix["safety"] for fix in answer["fixes"]} <= {"safe", "unsafe", "manual"}
    assert len(answer["wrong_advice"]) == len(data.get("wrong_advice", []))


def test_unknown_text_says_so(cohabit: str, schema: dict):
    report = why(cohabit, "Traceback (most recent call last):\nfrobnicate.WeirdError: the flux is low\n")
    jsonschema.validate(report, schema)
    assert report["answers"] == []
    assert report["recognised"] == [
        {"kind": "exception", "line": 2, "text": "frobnicate.WeirdError: the flux is low"}]


def test_empty_text(cohabit: str):
    assert why(cohabit, "") == {"schema_version": 1, "answers": [], "recognised": []}


def test_full_report(cohabit: str):
    run = subprocess.run([cohabit, "why"], input=STACK, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("error[LD202 cublaslt-symbol-version]: libcublas met")
    assert "  --> line 4: OSError: /env/nvidia" in run.stdout
    assert "cohabit explain cublaslt-symbol-version" in run.stdout
    assert "\x1b" not in run.stdout


def test_file_that_is_not_there(cohabit: str):
    run = subprocess.run([cohabit, "why", "/nowhere/log"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "/nowhere/log" in run.stderr


@pytest.mark.parametrize("text", [
    CLASH.encode("utf-16"),
    b"\xff\xfe" + CLASH.encode("utf-16-le"),
    CLASH.encode("utf-16-le"),
    ("启动训练\r\n" + CLASH).encode("utf-16-be"),
    ("\x1b[31m" + CLASH.replace("generic_type", "generic_\x1b[1;33mtype\x1b[0m") + "\x1b[0m").encode(),
    b"\r 10%|#\r 20%|##\r" + CLASH.encode() + b"\r\n",
    b"\x00\xff\xfe\x80 broken\n" + CLASH.encode() + b"\n\xc3\x28\x00",
    ("[rank0]: " + CLASH).encode(),
    ("(EngineCore_0 pid=1234) " + CLASH).encode(),
    ("2024-05-01T10:00:00.123Z stderr F " + CLASH).encode(),
    ("worker-1  | " + CLASH).encode(),
    (CLASH.replace("ImportError: ", "ImportError: 导入失败 ")).encode(),
    b"x" * 100_000 + b"\n" + CLASH.encode(),
    b"x" * 100_000 + CLASH.encode(),
], ids=["utf16", "utf16le", "utf16-without-a-mark", "utf16be-without-a-mark", "colours", "bars", "bytes", "rank", "pid", "kubernetes", "compose", "chinese",
        "long-line-before", "in-a-long-line"])
def test_text_as_people_have_it(text: bytes, cohabit: str):
    assert slugs(why(cohabit, text)) == ["pybind11-type-clash"]


def test_an_exception_with_any_name_is_recognised(cohabit: str):
    report = why(cohabit, "x.capi.state.NoSuchFile: [X] : 3 : NO_SUCHFILE : Load model from m.x failed\nroot.Trainer: step 1\n")
    assert not report["answers"] and [one["line"] for one in report["recognised"]] == [1]


def test_a_chinese_console(cohabit: str):
    """GBK: what only the words say, and a line in another encoding beside it."""
    text = "未检测到 CUDA 设备".encode("gbk") + b"\r\nmade on \xff\xfe\n" + "步骤 1".encode() + b"\n" * 5
    report = why(cohabit, text)
    assert slugs(report) == ["no-driver"] and report["answers"][0]["matched"][0]["text"] == "未检测到 CUDA 设备"
    text = 'Traceback\nOSError: [WinError 1114] 动态链接库(DLL)初始化例程失败。 Error loading "c10.dll"\n'.encode("gbk")
    assert slugs(why(cohabit, text))[:1] == ["win-msvc-runtime-1114"]


def test_latin_1_is_not_read_as_chinese(cohabit: str):
    text = "Error loading \"C:\\Users\\Jos\u00e9\\torch\\lib\\c10.dll\" or one of its dependencies.\n".encode("latin-1")
    report = why(cohabit, text + "\u52a0\u8f7d\u5931\u8d25\r\n".encode("gbk"))
    assert slugs(report)[:1] == ["win-missing-transitive-dll"]
    assert "\\torch\\lib" in report["answers"][0]["matched"][0]["text"]


def test_lines_of_several_processes_between_one_another(cohabit: str):
    lines = []
    for line in STACK.splitlines():
        lines += [f"[rank{rank}]: {line}" for rank in range(4)]
    report = why(cohabit, "\n".join(lines))
    assert slugs(report) == ["cublaslt-symbol-version"]


def test_root_cause_is_before_its_consequences(cohabit: str):
    text = ("Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared object "
            "file: No such file or directory\n" + "epoch 1\n" * 500 + "Aborted (core dumped)\n"
            "Segmentation fault (core dumped)\n")
    report = why(cohabit, text)
    assert slugs(report) == ["unversioned-dlopen-name"]
    assert report["answers"][0]["explains"] == ["symbol-leak-segv"]


def test_independent_problems_are_separate_answers(cohabit: str):
    other = "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\n"
    assert slugs(why(cohabit, CLASH + "\n" + other)) == ["pybind11-type-clash", "openmp-duplicate"]
    assert slugs(why(cohabit, other + CLASH + "\n")) == ["openmp-duplicate", "pybind11-type-clash"]


def test_line_numbers_are_those_of_the_text(cohabit: str):
    report = why(cohabit, "a\r\nb\r\n" + CLASH + "\r\n")
    assert report["answers"][0]["matched"] == [{"line": 3, "text": CLASH}]


@pytest.mark.parametrize("slug", MECHANISMS)
def test_explain(slug: str, cohabit: str):
    run = subprocess.run([cohabit, "explain", slug], capture_output=True, text=True, check=True)
    assert slug in run.stdout
    assert "What to do, best first" in run.stdout
