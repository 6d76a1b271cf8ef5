"""`cohabit verify` tells how each run ended. The modules are made here, so that it is known how."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

SCHEMA = Path(__file__).resolve().parent.parent.parent / "data" / "schema" / "verify.schema.json"

MODULES = {
    "calm_module": "__version__ = '1.2'\n",
    "failing_module": "raise ValueError('not today')\n",
    "crashing_module": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n",
    "hanging_module": "import time; time.sleep(100)\n",
    "leaving_module": "import os; os._exit(3)\n",
    "bare_exit": "raise SystemExit\n",
    "exit_with_status": "import sys\nsys.exit(259)\n",
    "exit_with_words": "import sys\nsys.exit('no licence')\n",
    "bare_error": "raise KeyError\n",
    # Has the name of a framework whose matrix product is checked.
    "paddle": "def ones(shape): return shape\ndef matmul(a, b): return [[0]]\n",
}
OUTCOMES = {
    "calm_module": ("ok", ""),
    "failing_module": ("exception", 'ValueError: not today, at "import failing_module"'),
    "crashing_module": ("signal", 'signal 11 (Segmentation fault) at "import crashing_module"'),
    "hanging_module": ("hang", 'still at "import hanging_module" when its time was over'),
    "leaving_module": ("exception", 'exit code 3 at "import leaving_module"'),
    "bare_exit": ("exception", 'SystemExit with status 0, at "import bare_exit"'),
    "exit_with_status": ("exception", 'SystemExit with status 3, at "import exit_with_status"'),
    "exit_with_words": ("exception", 'SystemExit: no licence, at "import exit_with_words"'),
    "bare_error": ("exception", 'KeyError, at "import bare_error"'),
    "paddle": ("wrong-result", "a computed value is not the right one: a product of matrices gives 0.0, not 64, at "
               '"compute with paddle on cpu: product"'),
}


@pytest.fixture
def verify(cohabit: str, tmp_path: Path):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)

    def run(*arguments: str) -> tuple[int, list]:
        done = subprocess.run([cohabit, "verify", sys.executable, *arguments, "--format", "json"],
                              capture_output=True, text=True, timeout=300,
                              env=os.environ | {"PYTHONPATH": str(tmp_path)})
        report = json.loads(done.stdout)
        jsonschema.validate(report, json.loads(SCHEMA.read_text()))
        return done.returncode, report["runs"]
    return run


@pytest.mark.parametrize("module", MODULES)
def test_outcomes(verify, module: str) -> None:
    begin = time.monotonic()
    status, (run,) = verify("--imports", module, "--timeout", "5" if "hanging" in module else "60")
    assert (run["outcome"], run["detail"]) == OUTCOMES[module]
    assert status == (0 if run["outcome"] == "ok" else 1)
    assert run["imports"] == [module] and run["predicted"] in ("sound", "unsound", "unknown")
    assert time.monotonic() - begin < 90


def test_what_leaves_its_group_is_ended(verify, tmp_path: Path) -> None:
    """A child in a session of its own, which starts another in one of its own."""
    (tmp_path / "leaver.py").write_text(f"""
import subprocess, sys, time
inner = "import time, os; open({str(tmp_path / 'ids')!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(100)"
outer = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {{inner!r}}], start_new_session=True); {{inner}}"
subprocess.Popen([sys.executable, "-c", outer], start_new_session=True)
while not (os := __import__("os")).path.exists({str(tmp_path / 'ids')!r}) or open({str(tmp_path / 'ids')!r}).read().count(" ") < 2:
    time.sleep(0.05)
time.sleep(100)
""")
    _, (run,) = verify("--imports", "leaver", "--timeout", "15")
    ids = (tmp_path / "ids").read_text().split()
    assert run["outcome"] == "hang" and len(ids) == 2
    def is_alive(process: str) -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    for _ in range(500):  # killed they are; a process takes its time to end
        if not any(map(is_alive, ids)):
            return
        time.sleep(0.01)
    assert [one for one in ids if is_alive(one)] == []


def test_one_way_to_say_what_is_run(cohabit: str) -> None:
    done = subprocess.run([cohabit, "verify", sys.executable, "--imports", "os", "--with", "os,re"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "--imports is one order, --with any order" in done.stderr


def test_round_trips(verify, tmp_path: Path) -> None:
    """Of a package that was asked for, and of pictures' that an import has brought."""
    (tmp_path / "brotli.py").write_text("def compress(text): return text\ndef decompress(text): return text[1:]\n")
    status, (run,) = verify("--imports", "brotli")
    assert (status, run["outcome"]) == (1, "wrong-result") and "a text through brotli comes back as another" in run["detail"]
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL/__init__.py").write_text("")
    (tmp_path / "PIL/Image.py").write_text("def new(*words): raise ValueError('no pictures today')\n")
    (tmp_path / "drawing.py").write_text("import PIL\n")
    status, (run,) = verify("--imports", "drawing")
    assert (status, run["outcome"], run["detail"]) == (1, "exception", 'ValueError: no pictures today, at "compute with PIL"')


def test_each_alone_and_every_pair(verify) -> None:
    status, runs = verify("--with", "calm_module,json")
    assert [run["imports"] for run in runs] == [["calm_module"], ["json"], ["calm_module", "json"],
                                                ["json", "calm_module"]]
    assert status == 0 and all(run["outcome"] == "ok" and run["agrees"] for run in runs)
    assert runs[0]["versions"] == {"calm_module": "1.2"}


def test_files_of_the_current_directory_do_not_shadow(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)\n")
    done = subprocess.run([cohabit, "verify", sys.executable, "--imports", "json"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("import json: ok")


# --- devices, versions and what they say

# Has the name of a framework of GPUs, and one of them.
STAND_IN = """
import contextlib, types
__version__ = "14.2.0"
class Array:
    def __init__(self, value): self.value = value
    def __matmul__(self, other): return Array({product})
    def __mul__(self, other): return self
    def __getitem__(self, at): return self.value
    def mean(self): return 0.5
    def min(self): return 0.001
    def max(self): return 0.999
def ones(shape, dtype="float64"): return Array(64.0)
def eye(size): return Array(2.0)
def ElementwiseKernel(*words): return lambda x: Array(4.0)
class Device(contextlib.nullcontext):
    def __init__(self, number): super().__init__(); assert number in (0, 1)
class Pool:
    def used_bytes(self): return 512
    def free_bytes(self): return 1024
def get_default_memory_pool(): return Pool()
fft = types.SimpleNamespace(fft=lambda x: Array(64.0))
linalg = types.SimpleNamespace(solve=lambda a, b: Array(0.5))
random = types.SimpleNamespace(rand=lambda n: Array(0.5))
class runtime:
    class CUDARuntimeError(RuntimeError): pass
    getDeviceCount = staticmethod(lambda: 2)
    getDeviceProperties = staticmethod(lambda n: dict(name=b"Stand-in %d" % n, major=9, minor=n, totalGlobalMem=(n + 1) << 30))
cuda = types.SimpleNamespace(Device=Device, runtime=runtime)
"""


def test_every_device_is_computed_on(verify, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(STAND_IN.replace("{product}", "64.0"))
    status, (run,) = verify("--imports", "cupy")
    assert (status, run["outcome"], run["detail"]) == (0, "ok", "")
    assert run["devices"] == [
        {"framework": "cupy", "device": f"cuda:{n}", "name": f"Stand-in {n}", "compute_capability": f"9.{n}", "total": (n + 1) << 30,
         "allocated": 512, "cached": 1024} for n in (0, 1)]


def test_a_wrong_value_names_device_and_computation(verify, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(STAND_IN.replace("{product}", "float('nan')"))
    status, (run,) = verify("--imports", "cupy")
    assert status == 1 and run["outcome"] == "wrong-result" and run["devices"] == []
    assert run["detail"] == ('a computed value is not the right one: a product of matrices gives nan, not 64, at '
                             '"compute with cupy on cuda:0: product"')


def test_a_release_without_what_is_computed(verify, tmp_path: Path) -> None:
    """Its own failure is one; what only our computation asks for is none, unless little of it is left."""
    module = tmp_path / "zstandard/__init__.py"
    module.parent.mkdir()
    module.write_text("__version__ = '0.1'\n")
    status, (run,) = verify("--imports", "zstandard")
    assert (status, run["outcome"]) == (0, "ok")
    assert len(run["notes"]) == 1 and run["notes"][0].startswith("zstandard 0.1 is of another age than the computation here")
    module.write_text("__version__ = '0.1'\nimport json\ndef ZstdDecompressor(): return json.gone\n")
    status, (run,) = verify("--imports", "zstandard")
    assert (status, run["outcome"]) == (1, "exception")
    module.unlink()
    (module.parent / "left.txt").write_text("")
    status, (run,) = verify("--imports", "zstandard")
    assert (status, run["outcome"]) == (1, "exception")


def test_versions_of_loaded_libraries(verify) -> None:
    _, (run,) = verify("--imports", "zlib")
    if any("libz" in library["path"] for library in run["libraries"]):  # else it is built into this Python
        import zlib
        assert zlib.ZLIB_RUNTIME_VERSION in [library["version"] for library in run["libraries"]]
    assert run["other_metadata"] == {}


@pytest.mark.skipif(sys.version_info < (3, 10), reason="older Pythons cannot tell which distribution brings a module")
def test_a_module_of_another_version_than_its_metadata(verify, tmp_path: Path) -> None:
    for name, version in (("told", "2.0"), ("same", "2.0+local"), ("built", "2.0-1234-release")):
        (tmp_path / f"{name}_module.py").write_text(f"__version__ = '{version}'\n")
        info = tmp_path / f"{name}-2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {'1.0' if name == 'told' else '2.0'}\n")
        (info / "RECORD").write_text(f"{name}_module.py,,\n")
        (info / "top_level.txt").write_text(f"{name}_module\n")
    _, (run,) = verify("--imports", "told_module,same_module,built_module")
    assert run["outcome"] == "ok" and run["other_metadata"] == {"told_module": "told 1.0"}


# --- where in native code a process died

CRASHING = """
#include <stdlib.h>
void (*nothing)(void);
void fall_over(void) { *(volatile int*)0 = 1; }
void give_up(void) { abort(); }
void call_nothing(void) { nothing(); __asm__ volatile(""); }
void enter(int how) { how == 0 ? fall_over() : how == 1 ? give_up() : call_nothing(); __asm__ volatile(""); }
"""
ENTER = "import ctypes; ctypes.CDLL('libgcc_s.so.1'); ctypes.CDLL(r'{library}').enter({how})\n"


@pytest.fixture
def crash(verify, tmp_path: Path):
    """Runs a module that calls enter(how) after this code; the run."""
    library = tmp_path / "libfalls over.so"
    (tmp_path / "falls.c").write_text(CRASHING)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", "-fno-inline", "-o", library,
                    tmp_path / "falls.c"], check=True)

    def run(how: int, before: str = "") -> dict:
        (tmp_path / "crash_in_c.py").write_text(before + "\n" + ENTER.format(library=library, how=how))
        status, (told,) = verify("--imports", "crash_in_c")
        assert status == 1 and told["outcome"] == "signal"
        told["names"] = [frame["symbol"] for frame in told["frames"]]
        told["here"] = [frame["symbol"] for frame in told["frames"] if frame["library"] == str(library)]
        return told
    return run


def test_a_fault_names_library_and_function(crash) -> None:
    told = crash(0)
    assert told["detail"].startswith("signal 11") and told["names"][:2] == ["fall_over", "enter"] == told["here"]


def test_an_abort(crash) -> None:
    told = crash(1)
    assert told["detail"].startswith("signal 6") and told["here"] == ["give_up", "enter"]
    assert "abort" in told["names"]


def test_a_call_of_nothing_has_its_caller(crash) -> None:
    told = crash(2)
    assert told["frames"][0] == {"library": "", "symbol": "", "offset": 0} and "call_nothing" in told["here"]


@pytest.mark.parametrize("before", [
    "import faulthandler; faulthandler.enable()",
    "import faulthandler; faulthandler.enable(); faulthandler.disable()",
    "import signal; signal.signal(signal.SIGSEGV, signal.SIG_DFL)",
    "import signal; signal.signal(signal.SIGABRT, signal.SIG_IGN)",
    "import faulthandler, subprocess; faulthandler.enable(); subprocess.run(['true'])",
], ids=["faulthandler", "disabled", "default", "another", "a child"])
def test_handlers_of_the_program(crash, before: str) -> None:
    told = crash(0, before)
    assert told["detail"].startswith("signal 11") and told["names"][:2] == ["fall_over", "enter"]


def test_a_handler_is_called_and_given_back(verify, tmp_path: Path) -> None:
    """What is ours to the kernel is the program's to the program."""
    (tmp_path / "handled.py").write_text("""
import ctypes, os, signal
said = []
before = signal.signal(signal.SIGABRT, lambda number, frame: said.append(number))
assert before == signal.SIG_DFL
os.kill(os.getpid(), signal.SIGABRT)
assert said == [signal.SIGABRT], said
signal.signal(signal.SIGBUS, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGBUS)
libc = ctypes.CDLL(None)
libc.signal.restype = ctypes.c_void_p
assert libc.signal(7, None) == 1 and libc.signal(7, None) is None
assert libc.signal(10, 1) is None and libc.signal(10, None) == 1
""")
    status, (run,) = verify("--imports", "handled")
    assert (status, run["outcome"], run["frames"]) == (0, "ok", []), run


def test_without_the_unwinder_there_is_the_place(verify, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text("import ctypes; ctypes.string_at(0)\n")
    _, (run,) = verify("--imports", "bare")
    assert run["outcome"] == "signal" and len(run["frames"]) >= 1
    assert run["frames"][0]["library"].rpartition("/")[2].startswith("libc")


# --- several at a time

SLEEPER = """
import os, time
with open(os.environ["DIARY"], "a") as diary:
    diary.write(f"begin {time.monotonic()}\\n")
time.sleep(1.5)
with open(os.environ["DIARY"], "a") as diary:
    diary.write(f"end {time.monotonic()}\\n")
"""


def at_once(cohabit: str, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """How many children slept at the same time, and what was said."""
    diary = tmp_path / "diary"
    diary.unlink(missing_ok=True)
    for name in ("sleeper_a", "sleeper_b"):
        (tmp_path / f"{name}.py").write_text(SLEEPER)
    done = subprocess.run([cohabit, "verify", sys.executable, "--with", "sleeper_a,sleeper_b", *arguments], text=True,
                          capture_output=True, timeout=300, env=os.environ | {"PYTHONPATH": str(tmp_path), "DIARY": str(diary)})
    assert done.returncode == 0 and done.stdout.count(": ok") == 4, done
    assert done.stdout.index("import sleeper_a:") < done.stdout.index("import sleeper_b, sleeper_a:")
    events = sorted((float(line.split()[1]), line.split()[0]) for line in diary.read_text().splitlines())
    running = most = 0
    for _, event in events:
        running += 1 if event == "begin" else -1
        most = max(most, running)
    return most, done.stderr


def test_jobs(cohabit: str, tmp_path: Path) -> None:
    assert at_once(cohabit, tmp_path)[0] == 1
    assert at_once(cohabit, tmp_path, "--jobs", "3", "--memory", "200")[0] == 3
    most, said = at_once(cohabit, tmp_path, "--jobs", "3", "--memory", "99999GiB")
    assert most == 1 and "running 1 at a time, not 3" in said


# --- what has not changed

@pytest.fixture
def place(tmp_path: Path, bare_environment) -> Path:
    """An environment with one distribution: a module that writes down that it is imported, and a native file."""
    site = bare_environment(tmp_path / "env")
    (site / "calm-1.dist-info").mkdir()
    (site / "calm.py").write_text("import os; open(os.environ['DIARY'], 'a').write('x'); __version__ = '1'\n")
    (site / "calm.libs.so").write_text("not really")
    (site / "calm-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: calm\nVersion: 1\n")
    (site / "calm-1.dist-info" / "RECORD").write_text("calm.py,sha256=a,9\ncalm.libs.so,sha256=b,10\ncalm-1.dist-info/RECORD,,\n")
    return site


@pytest.fixture
def runs(cohabit: str, place: Path, tmp_path: Path):
    """How often the module was imported by `verify --cached`, and the run."""
    def run(module: str = "calm", *arguments: str, **variables: str) -> tuple[int, dict, str]:
        diary = tmp_path / "diary"
        diary.write_text("")
        done = subprocess.run([cohabit, "verify", str(place.parents[2]), "--imports", module, "--cached", "--format", "json",
                               *arguments], capture_output=True, text=True, timeout=120,
                              env=os.environ | {"DIARY": str(diary), "XDG_CACHE_HOME": str(tmp_path / "cache")} | variables)
        report = json.loads(done.stdout)
        jsonschema.validate(report, json.loads(SCHEMA.read_text()))
        return len(diary.read_text()), report["runs"][0], done.stderr
    return run


def test_what_has_not_changed_is_not_run(runs) -> None:
    count, first, _ = runs()
    assert count == 1 and first["outcome"] == "ok" and not first["cached"]
    count, second, said = runs()
    assert count == 0 and second["cached"] and "nothing has changed" in said
    assert {**first, "cached": True} == second


def native(place: Path) -> None:
    os.utime(place / "calm.libs.so", ns=(1, 1))


def record(place: Path) -> None:
    path = place / "calm-1.dist-info" / "RECORD"
    path.write_text(path.read_text().replace("sha256=a", "sha256=c"))


def another(place: Path) -> None:
    shutil.copytree(place / "calm-1.dist-info", place / "more-2.dist-info")
    (place / "more-2.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 2\n")


@pytest.mark.parametrize("change", [native, record, another])
def test_a_change_of_packages_is_run(runs, place: Path, change) -> None:
    assert [runs()[0], runs()[0]] == [1, 0]
    change(place)
    assert [runs()[0], runs()[0]] == [1, 0]


def test_other_variables_and_repairs_are_run(runs, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("cohabit-rules 1\npreload libz.so.1\n")
    assert [runs()[0], runs()[0]] == [1, 0]
    assert [runs(CUDA_VISIBLE_DEVICES="7")[0], runs(CUDA_VISIBLE_DEVICES="7")[0]] == [1, 0]
    assert runs("calm", "--repair", str(tmp_path / "rules"))[0] == 1
    assert runs()[0] == 0


def test_a_failure_is_run_again(runs, place: Path) -> None:
    good = (place / "calm.py").read_text()
    (place / "calm.py").write_text(good + "raise ValueError\n")
    for _ in range(2):
        count, run, _ = runs()
        assert count == 1 and run["outcome"] == "exception" and not run["cached"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "runs": {"KEY": 7}}', '{"version": 1, "runs": 3}', '{"version": "x"}',
                                  '{"version": 1, "runs": {"KEY": {"predicted": "sound", "seconds": 1, "versions": {"a": 1}}}}'])
def test_a_damaged_cache_is_none(runs, tmp_path: Path, text: str) -> None:
    assert runs()[0] == 1
    (file,) = (tmp_path / "cache" / "cohabit" / "verify").iterdir()
    (key,) = json.loads(file.read_text())["runs"]
    file.write_text(text.replace("KEY", key))
    count, run, _ = runs()
    assert count == 1 and run["outcome"] == "ok" and not run["cached"]
    assert runs()[0] == 0


def test_a_module_of_no_distribution_is_always_run(runs, place: Path) -> None:
    (place / "own.py").write_text((place / "calm.py").read_text())
    assert [runs("own")[0], runs("own")[0]] == [1, 1]


def test_no_place_for_the_cache(runs) -> None:
    count, run, said = runs(XDG_CACHE_HOME="/proc/nothing")
    assert count == 1 and run["outcome"] == "ok" and "nothing is kept for the next run" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_outlives_an_interrupt(cohabit: str, tmp_path: Path, number: signal.Signals) -> None:
    """The run, and but for SIGKILL, which nobody sees coming, what it has started."""
    told = tmp_path / "told"
    (tmp_path / "waiting.py").write_text(
        f"import os, subprocess, time\none = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(told)!r} + '.new', 'w').write(f'{{os.getpid()}} {{one.pid}}')\n"
        f"os.rename({str(told)!r} + '.new', {str(told)!r})\ntime.sleep(1000)\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen([cohabit, "verify", sys.executable, "--imports", "waiting"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else 0,
                          env=os.environ | {"PYTHONPATH": str(tmp_path), "TMPDIR": str(scratch)}) as process:
        while not told.exists():
            time.sleep(0.01)
        process.send_signal(number)
    assert process.returncode == -number
    run, started = map(int, told.read_text().split())
    for pid in [run] if number == signal.SIGKILL else [run, started]:
        while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
            time.sleep(0.01)  # the test hangs where it lives on
    if number == signal.SIGKILL:
        os.kill(started, signal.SIGKILL)
    else:
        assert list(scratch.iterdir()) == []


def test_generated_code_that_is_refused_is_the_explanation(cohabit: str, tmp_path: Path) -> None:
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    site = next((env / "lib").iterdir()) / "site-packages"
    distributions = {"protobuf": {"google/protobuf/__init__.py": "", "google/protobuf/internal/__init__.py": ""},
                     "late": {"late/__init__.py": "from . import a_pb2\n",
                              "late/a_pb2.py": "from google.protobuf.internal import builder as _builder\n"}}
    for name, files in distributions.items():
        info = site / f"{name}-3.19.6.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.19.6\n")
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
        for path, text in files.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
    done = subprocess.run([cohabit, "verify", env, "--imports", "late"], capture_output=True, text=True, timeout=100)
    assert "import late: exception" in done.stdout and "predicted unsound\n" in done.stdout, done.stdout
    assert "explained by PY006: late 3.19.6" in done.stdout, done.stdout
    assert "explained by PY302: ImportError: cannot import name 'builder'" in done.stdout, done.stdout
