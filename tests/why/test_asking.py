"""What is asked besides a text: an environment, a command that is run, an exception of a Python program."""
from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import textwrap
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "guard"), str(HERE.parents[1] / "python")]
import cohabit as package  # noqa: E402
import world  # noqa: E402
from texts import why  # noqa: E402

MISSING = "ModuleNotFoundError: No module named 'setuptools'\n"


@pytest.fixture
def environment(tmp_path: Path) -> world.Environment:
    return world.Environment(tmp_path / "env")


def first(cohabit: str, environment: world.Environment, text: str) -> dict:
    return why(cohabit, text, "--env", str(environment.root))["answers"][0]


def test_an_environment_confirms_or_contradicts(cohabit: str, environment) -> None:
    assert why(cohabit, MISSING)["answers"][0]["status"] == "not-checkable"
    assert first(cohabit, environment, MISSING)["status"] == "confirmed"
    environment.install("setuptools", "70", {"setuptools/__init__.py": b""})
    answer = first(cohabit, environment, MISSING)
    assert answer["status"] == "contradicted" and "setuptools 70" in answer["evidence"][0]["text"]


@pytest.mark.parametrize("module, status, fact", [
    ("tools.gone", "confirmed", "tools 2.0 is installed, and has no module tools.gone"),
    ("tools.fast", "contradicted", "tools 2.0 has it"), ("tools.sub.part", "contradicted", "tools 2.0 has it"),
    ("toolsmith.x", "confirmed", "no distribution of this environment has the module toolsmith")])
def test_a_module_of_a_package_that_is_there(module: str, status: str, fact: str, cohabit: str, environment) -> None:
    environment.install("tools", "2.0", {"tools/__init__.py": b"", "tools/fast.abi3.so": b"", "tools/sub/part.py": b""})
    answer = first(cohabit, environment, f"ModuleNotFoundError: No module named '{module}'\n")
    assert answer["status"] == status and fact in answer["evidence"][0]["text"]
    installs = [fix["command"] for fix in answer["fixes"] if fix["command"]]
    assert installs == [f"python -m pip install {module.partition('.')[0]}"], "the name of a package, not of a module in it"


def test_a_limit_of_the_address_space_and_the_mount_are_looked_at(cohabit: str, environment, tmp_path: Path) -> None:
    """glibc gives the same words for both: what this machine has decides."""
    library = tmp_path / "libbig.so"
    library.write_bytes(b"")
    text = f"OSError: {library}: failed to map segment from shared object\n"
    limit = 8 << 30
    def asked(**more) -> dict[str, dict]:
        done = subprocess.run([cohabit, "why", "--format", "json", "--env", str(environment.root)], input=text,
                              capture_output=True, text=True, check=False, **more)
        return {answer["mechanism"]: answer for answer in json.loads(done.stdout)["answers"]}
    free = asked()
    limited = asked(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert limited["host-out-of-memory"]["status"] == "confirmed"
    assert "8192 MiB" in limited["host-out-of-memory"]["evidence"][0]["text"]
    assert free["host-out-of-memory"]["status"] == "not-checkable"
    assert free["noexec-mount"]["status"] == ("confirmed" if os.statvfs(tmp_path).f_flag & os.ST_NOEXEC else "contradicted")


def test_a_rule_of_doctor_is_asked(cohabit: str, environment) -> None:
    """The same code and the same sentence as doctor's."""
    text = "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may crash. To support both\n"
    environment.install("numpy", "2.1.0", {"numpy/__init__.py": b""})
    assert first(cohabit, environment, text)["mechanism"] == "numpy-abi"
    assert first(cohabit, environment, text)["status"] == "contradicted", "nothing here is built for another one"


def build(path: Path, names: str, version: str = "") -> bytes:
    """A library that defines these functions, under a version if one is named."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "x.c").write_text("".join(f"void {name}(void) {{}}\n" for name in names.split()))
    (path / "x.map").write_text(f"{version or 'ANY_1'} {{ global: *; }};\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path / "x.so", path / "x.c",
                    *([f"-Wl,--version-script={path / 'x.map'}"] if version else [])], check=True)
    return (path / "x.so").read_bytes()


def test_what_is_said_to_be_missing_is_looked_for(cohabit: str, environment, tmp_path: Path) -> None:
    """A second copy confirms nothing: whether it has the symbol or the version does."""
    text = "ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister\n"
    wheel = lambda names: {"nvidia/nccl/lib/libnccl.so.2": build(tmp_path / "build", names)}  # noqa: E731
    environment.install("nvidia_nccl_cu12", "2.29", wheel("ncclInit ncclCommRegister"))
    answer = first(cohabit, environment, text)
    assert answer["mechanism"] == "nccl-symbol-version" and answer["status"] == "contradicted", answer
    assert "defines ncclCommRegister" in answer["evidence"][0]["text"]
    environment.install("nvidia_nccl_cu12", "2.18", wheel("ncclInit"))
    answer = first(cohabit, environment, text)
    assert answer["status"] == "confirmed" and "does not define ncclCommRegister" in answer["evidence"][0]["text"]
    environment.uninstall("nvidia_nccl_cu12")

    text = "ImportError: {}/libstdc++.so.6: version `GLIBCXX_3.4.99' not found (required by /x/y.so)\n"
    files = {"conda/libstdc++.so.6": build(tmp_path / "build", "f", "GLIBCXX_3.4.99")}
    environment.install("stdcxx", "1", files)
    assert first(cohabit, environment, text.format(environment.site / "conda"))["status"] == "contradicted"
    assert first(cohabit, environment, text.format("/x"))["status"] == "not-checkable", "one has it, the machine's own lacks it"

    libc = "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.{}' not found (required by /x/y.so)\n"
    assert first(cohabit, environment, libc.format("2.5"))["status"] == "contradicted"
    assert first(cohabit, environment, libc.format("199"))["status"] == "confirmed"


@pytest.mark.parametrize("line, holder", [
    (" Process 4711 has 3.90 GiB memory in use.", "Process 4711 has 3.90 GiB"),
    ("\nI0000 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 22004 MB memory: -> device: 0",
     "GPU:0 with 22004 MB")])
def test_who_holds_the_memory_is_said(cohabit: str, line: str, holder: str) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB." + line + "\n"
    answer = why(cohabit, text)["answers"][0]
    assert answer["mechanism"] == "gpu-out-of-memory" and holder in answer["headline"], answer["headline"]


def test_being_installed_together_confirms_nothing(cohabit: str, environment) -> None:
    text = 'ImportError: generic_type: type "_gpuDeviceProperties" is already registered!\n'
    for name in ("torch", "paddlepaddle-gpu"):
        environment.install(name, "1", {f"{name}/__init__.py": b""})
    answer = first(cohabit, environment, text)
    assert answer["mechanism"] == "pybind11-type-clash" and answer["status"] == "not-checkable"
    assert len(answer["evidence"]) == 2
    text = "OSError: [WinError 127] The specified procedure could not be found. Error loading \"C:\\x\\cudnn_cnn64_9.dll\""
    answer = first(cohabit, environment, text)
    assert answer["status"] == "not-checkable" and "Windows" in answer["evidence"][0]["text"]


@pytest.mark.parametrize("line, status", [("cuda = None", "confirmed"), ("cuda = None\nhip = '6.4'", "not-checkable"), ("cuda: Optional[str] = '12.8'", "contradicted")])
def test_torch_says_what_it_was_built_for(cohabit: str, environment, line: str, status: str) -> None:
    environment.install("torch", "2.8.0", {"torch/version.py": f"__version__ = '2.8.0'\n{line}\n".encode()})
    answer = first(cohabit, environment, "AssertionError: Torch not compiled with CUDA enabled\n")
    assert answer["mechanism"] == "cpu-build-installed" and answer["status"] == status, answer


def test_an_environment_that_is_not_there(cohabit: str) -> None:
    done = subprocess.run([cohabit, "why", "-", "--env", "/no/such"], input=MISSING, capture_output=True, text=True)
    assert done.returncode == 2 and "/no/such" in done.stderr


def run(cohabit: str, *command: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run([cohabit, "why", "--", *command], capture_output=True, text=True, timeout=120, **more)


def test_a_command_that_fails_is_explained(cohabit: str, environment) -> None:
    """In the environment of the command, once, with its own output and exit code."""
    python = str(environment.root / "bin/python")
    code = "import sys; print('to the output'); print('to the error', file=sys.stderr); import tensorflow_of_nobody"
    done = run(cohabit, python, "-c", code)
    assert done.returncode == 1 and done.stdout == "to the output\n"
    assert done.stderr.count("to the error") == 1 and done.stderr.count("Traceback") == 1
    after = done.stderr.partition("ModuleNotFoundError")[2]
    assert "missing-module" in after and "confirmed" in after and "tensorflow_of_nobody" in after


SPLIT = [f"_ZN2aa2bb{name}Ev" for name in ("5Table3add", "5Table4find", "4Node4link", "5Table5clear")]


@pytest.mark.parametrize("flags, split", [("ctypes.RTLD_GLOBAL", True), ("ctypes.RTLD_LOCAL", False)])
def test_a_crash_is_held_against_what_the_loader_did(flags: str, split: bool, cohabit: str, environment, tmp_path: Path) -> None:
    """Three of a library's four calls go to a copy that was opened globally: the run itself is judged, and doctor's help is given."""
    def library(name: str, text: str, *more: str) -> Path:
        (tmp_path / "x.c").write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / name, tmp_path / "x.c", *more], check=True)
        return tmp_path / name
    def defined(names: list[str]) -> str:
        return "".join(f"void {name}(void) {{}}\n" for name in names)
    copy = library("libfirst.so", defined(SPLIT[:3]))
    library("libsecond.so", defined(SPLIT))
    consumer = library("libconsumer.so", "".join(f"void {name}(void);\n" for name in SPLIT)
                       + "void use(void) { " + "".join(f"{name}(); " for name in SPLIT) + "}\n",
                       "-L", str(tmp_path), "-lsecond", "-Wl,-rpath,$ORIGIN")
    code = (f"import ctypes, os\nctypes.CDLL('{copy}', {flags})\nctypes.CDLL('{consumer}').use()\n"
            "os.kill(os.getpid(), 11)\n")
    done = subprocess.run([cohabit, "why", "--format", "json", "--", environment.root / "bin/python", "-c", code],
                          capture_output=True, text=True, timeout=120)
    answer = json.loads(done.stderr[done.stderr.index("{"):])["answers"][0]
    assert (done.returncode, answer["mechanism"]) == (139, "symbol-leak-segv")
    of_run = [row["text"] for row in answer["evidence"] if row["kind"] == "rule"]
    if not split:
        assert answer["status"] == "not-checkable" and not of_run
        return
    assert answer["status"] == "confirmed"
    assert len(of_run) == 1 and of_run[0].startswith("this run: CB101: aa::bb is split between libsecond.so and libfirst.so for libconsumer.so")
    assert [row["text"] for row in answer["evidence"] if row["kind"] == "library"] == [
        str(tmp_path / name) for name in ("libconsumer.so", "libsecond.so", "libfirst.so")]


# The failure is the last that it says; the most of what is before is not kept, and is counted. Twice as much, and the
# gap has grown.
@pytest.mark.parametrize("blocks", [500, 900])
def test_a_command_that_says_much_and_fails_is_explained(blocks: int, cohabit: str) -> None:
    code = (f"import sys\nfor i in range({blocks}): sys.stdout.write('step and step\\n' * 8000)\n"
            "sys.stdout.flush(); print(\"ModuleNotFoundError: No module named 'framework_of_nobody'\"); sys.exit(1)")
    done = subprocess.run([cohabit, "why", "--format", "json", "--", sys.executable, "-c", code], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    answer = json.loads(done.stderr)["answers"][0]
    assert done.returncode == 1 and answer["mechanism"] == "missing-module"
    assert answer["matched"][0]["line"] == 8000 * blocks + 1


def test_what_is_before_the_gap_keeps_its_number(cohabit: str) -> None:
    code = ("import sys\nprint(\"step\\nModuleNotFoundError: No module named 'framework_of_nobody'\")\n"
            "for i in range(900): sys.stdout.write('step and step\\n' * 8000)\nsys.exit(1)")
    done = subprocess.run([cohabit, "why", "--format", "json", "--", sys.executable, "-c", code], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    assert [line["line"] for line in json.loads(done.stderr)["answers"][0]["matched"]] == [2]


def test_a_command_that_works_is_left_alone(cohabit: str) -> None:
    text = "import sys; sys.stdout.write(sys.stdin.read()); print(\"ModuleNotFoundError: No module named 'x'\")"
    done = run(cohabit, sys.executable, "-c", text, input="words\n")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("words\n")


def test_how_a_command_ends(cohabit: str) -> None:
    done = run(cohabit, sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert done.returncode == 128 + signal.SIGSEGV and "Segmentation fault" in done.stderr
    assert run(cohabit, sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    done = run(cohabit, "/no/such/program")
    assert done.returncode == 125 and "/no/such/program" in done.stderr


@pytest.mark.parametrize("restored", [True, False], ids=["signal", "ignored"])
def test_a_command_ends_when_nobody_reads_it(restored: bool, cohabit: str) -> None:
    """As without us: by SIGPIPE, or where it is ignored by an error of its own."""
    with subprocess.Popen([cohabit, "why", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, restore_signals=restored) as process:
        assert process.stdout.readline() == "y\n"
        process.stdout.close()
        said = process.stderr.read()
        code = process.wait(timeout=60)
    assert (code, said) == (128 + signal.SIGPIPE, "") if restored else (code == 1 and "yes: " in said)


# The program says its number when it waits.
WAITING = """import os, sys, time
try:
    print({said!r}); print(os.getpid(), flush=True); time.sleep(600)
finally:
    print('its last words', flush=True)
"""


def interrupted(command: list[str], at_terminal: bool) -> tuple[int, list[str], str, int]:
    """Ended by Ctrl-C at its controlling terminal, which reaches every process of it, or by a signal to the process alone."""
    master, slave = pty.openpty()

    def prepare() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it starts in the background

    with subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          preexec_fn=prepare) as process:
        os.close(slave)
        said = process.stdout.readline()
        child = int(process.stdout.readline())
        os.write(master, b"\x03") if at_terminal else process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    os.close(master)
    return process.returncode, [said, out], err, child


@pytest.mark.parametrize("at_terminal", [True, False], ids=["terminal", "process"])
@pytest.mark.parametrize("said", ["step 1", MISSING.strip()], ids=["healthy", "failing"])
def test_an_interrupt_is_as_without_us(said: str, at_terminal: bool, cohabit: str) -> None:
    """The same words, each once, the shell's exit code for the signal, nobody left; explained is what failed before."""
    command = [sys.executable, "-c", WAITING.format(said=said)]
    code, out, err, _ = interrupted(command, at_terminal)
    ours, our_out, our_err, child = interrupted([cohabit, "why", "--", *command], at_terminal)
    assert (code, ours) == (-signal.SIGINT, 128 + signal.SIGINT)
    assert our_out == out == [said + "\n", "its last words\n"]
    assert our_err.startswith(err) and err.endswith("KeyboardInterrupt\n")
    explanation = our_err.removeprefix(err)
    assert explanation == "" if said == "step 1" else "missing-module" in explanation
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_output_is_shown_as_it_comes(cohabit: str) -> None:
    code = "import sys, time; print('first', flush=True); time.sleep(30)"
    with subprocess.Popen([cohabit, "why", "--", sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        begin = time.monotonic()
        assert process.stdout.readline() == "first\n" and time.monotonic() - begin < 25, "before the command has ended"
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.fixture
def api(cohabit: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(package, "command", lambda: cohabit)
    return package


def test_an_exception_is_explained(api) -> None:
    try:
        import tensorflow_of_nobody  # noqa: F401
    except ImportError as error:
        report = api.explain_exception(error)
    assert report["answers"][0]["mechanism"] == "missing-module" and report["answers"][0]["status"] == "confirmed"
    assert api.explain_exception(ValueError("the flux is low"))["answers"] == []
    try:
        try:
            raise ImportError("libcudnn_of_nobody.so.9: cannot open shared object file: No such file or directory")
        except ImportError as error:
            raise RuntimeError("the model cannot be loaded") from error
    except RuntimeError as error:
        assert "libcudnn_of_nobody" in json.dumps(api.explain_exception(error)["answers"]), "the cause, not the last line"


HOOK = """
    import sys
    sys.path.insert(0, {package!r})
    import cohabit
    cohabit.command = lambda: {command!r}
    cohabit.install_excepthook()
    cohabit.install_excepthook()
    {statement}
"""


@pytest.mark.parametrize("statement, explained", [
    ("import tensorflow_of_nobody", True), ("raise ValueError('the flux is low')", False),
    ("raise KeyboardInterrupt", False)])
def test_an_uncaught_exception(statement: str, explained: bool, cohabit: str) -> None:
    code = textwrap.dedent(HOOK.format(package=str(HERE.parents[1] / "python"), command=cohabit, statement=statement))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.count("Traceback (most recent call last)") == 1 and done.returncode != 0
    assert ("missing-module" in done.stderr) == explained and done.stderr.count("missing-module]") == int(explained)


def test_a_hook_hides_nothing(cohabit: str) -> None:
    code = textwrap.dedent(HOOK.format(package=str(HERE.parents[1] / "python"), command="/no/such/cohabit",
                                       statement="import tensorflow_of_nobody"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1 and "No module named" in done.stderr


def test_an_uncaught_exception_of_a_thread(cohabit: str) -> None:
    statement = "import threading, importlib; t = threading.Thread(target=importlib.import_module, " \
                "args=('tensorflow_of_nobody',)); t.start(); t.join()"
    code = textwrap.dedent(HOOK.format(package=str(HERE.parents[1] / "python"), command=cohabit, statement=statement))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr.count("Traceback (most recent call last)") == 1
    assert "Exception in thread" in done.stderr and done.stderr.count("missing-module]") == 1
