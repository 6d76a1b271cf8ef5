"""`cohabit kernel`: kernel specs, and real kernels that are started by them, interrupted and shut down."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import environments
import pytest

# Conflict 5 (decord's zlib in OpenCV) with a kernel: a picture is whole only in a repaired process.
WITH_KERNEL = {"python": "3.11", "gigabytes": 1, "requirements": [
    "decord==0.6.0", "opencv-python==4.9.0.80", "numpy<2", "ipykernel==7.4.0", "jupyter_client==8.10.0"]}
RULES = "cohabit-rules 1\nenvironment FROM_THE_RULES=yes\npreload libz.so.1\ndlopen -global /not/there/liba.so\n"
CLIENT = """
import json, os, sys, time
from jupyter_client.manager import KernelManager
from queue import Empty

manager = KernelManager(kernel_name=sys.argv[1])
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=120)

def run(code, meanwhile=None):
    said, error = "", None
    sent, again = client.execute(code), 0
    while True:
        try:
            message = client.get_iopub_msg(timeout=60)
        except Empty:  # a channel that was not connected yet has lost it
            if again or meanwhile:
                raise
            sent, again = client.execute(code), 1
            continue
        if message["parent_header"].get("msg_id") != sent:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream" and content["name"] == "stdout":
            said += content["text"]
            if meanwhile and "ready" in said:
                meanwhile()
                meanwhile = None
        if kind == "error":
            error = content["ename"]
        if kind == "status" and content["execution_state"] == "idle":
            return said, error

result = {"pid": manager.provisioner.pid}
result["process"] = run('''
import json, os
names = ["LD_PRELOAD", "FROM_THE_RULES", "COHABIT_PRELOAD_RULES"]
maps = open("/proc/self/maps").read()
print(json.dumps([os.getpid(), {name: os.environ.get(name) for name in names}, "libcohabit_preload" in maps]))''')
result["picture"] = run('''
import decord, cv2, numpy
image = (numpy.arange(64 * 64 * 3) % 255).reshape(64, 64, 3).astype("uint8")
good, png = cv2.imencode(".png", image)
print(good and (cv2.imdecode(png, 1) == image).all())''')
begin = time.monotonic()
# Another thread says that it is ready, as an interrupt that comes while the main thread is inside ipykernel's own flush
# may be swallowed there.
result["interrupted"] = run('''
import threading, time
threading.Timer(2, print, ["ready"], {"flush": True}).start()
time.sleep(100)''', manager.interrupt_kernel)
result["after"] = time.monotonic() - begin
result["alive"] = run("print(6 * 7)")
client.stop_channels()
manager.shutdown_kernel()
result["left"] = os.path.exists(f"/proc/{result['pid']}")
print("RESULT", json.dumps(result))
"""


@pytest.fixture(scope="module")
def environment() -> str:
    try:
        return str(environments.make("kernel", WITH_KERNEL))
    except environments.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def kernel(cohabit: str, tmp_path: Path):
    """Runs `cohabit kernel`; Jupyter's data directory is tmp_path/data."""
    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run([cohabit, "kernel", *arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                              env=os.environ | {"JUPYTER_DATA_DIR": str(tmp_path / "data")} | variables)
    return run


@pytest.fixture
def place(tmp_path: Path, bare_environment) -> str:
    """A Python that can be taken for one with ipykernel."""
    home = tmp_path / "My Env"
    (bare_environment(home) / "ipykernel_launcher.py").write_text("")
    return str(home)


def session(environment: str, tmp_path: Path, name: str) -> dict:
    """What a client of Jupyter gets from the kernel of that name."""
    done = subprocess.run([environment + "/bin/python", "-c", textwrap.dedent(CLIENT), name], capture_output=True, text=True,
                          timeout=300, env=os.environ | {"JUPYTER_DATA_DIR": str(tmp_path / "data")})
    assert "RESULT " in done.stdout, done.stdout + done.stderr
    return json.loads(done.stdout.rpartition("RESULT ")[2])


def test_a_kernel_gets_the_repair(kernel, environment: str, tmp_path: Path) -> None:
    assert kernel("install", environment, "--name", "Repaired", "--imports", "decord,cv2").returncode == 0
    told = session(environment, tmp_path, "repaired")
    (pid, variables, interposed) = json.loads(told["process"][0])
    assert pid == told["pid"], "the kernel must be the process that Jupyter has started"
    assert variables["LD_PRELOAD"] == "libz.so.1" and not interposed
    assert told["picture"] == ["True\n", None]
    assert told["interrupted"] == ["ready\n", "KeyboardInterrupt"] and told["after"] < 50
    assert told["alive"] == ["42\n", None] and not told["left"]


def test_a_kernel_with_rules_of_a_file(kernel, environment: str, tmp_path: Path) -> None:
    (tmp_path / "the rules").write_text(RULES)
    assert kernel("install", environment, "--name", "rules", "--repair", "the rules").returncode == 0
    _, variables, interposed = json.loads(session(environment, tmp_path, "rules")["process"][0])
    assert variables["FROM_THE_RULES"] == "yes" and interposed
    assert variables["COHABIT_PRELOAD_RULES"] == "cohabit-rules 1;dlopen -global /not/there/liba.so"


def test_a_kernel_without_the_repair_fails(kernel, environment: str, tmp_path: Path) -> None:
    """Else the other tests would prove nothing."""
    assert kernel("install", environment, "--name", "plain", "--repair", "none").returncode == 0
    assert session(environment, tmp_path, "plain")["picture"] != ["True\n", None]


def test_the_spec(kernel, place: str, cohabit: str, tmp_path: Path) -> None:
    done = kernel("install", place)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "data" / "kernels" / "cohabit-my-env" / "kernel.json"
    spec = json.loads(file.read_text())
    assert spec["argv"] == [cohabit, "run", "--repair", "auto", "--", place + "/bin/python", "-m", "ipykernel_launcher",
                            "-f", "{connection_file}"]
    assert spec["language"] == "python" and spec["interrupt_mode"] == "signal"
    assert "My Env" in spec["display_name"] and "debugger" not in spec["metadata"]
    assert kernel("list").stdout.startswith("cohabit-my-env  ")
    undo = next(line for line in done.stdout.splitlines() if line.startswith("undo: cohabit kernel "))
    assert kernel(*undo.split()[3:]).returncode == 0
    assert not file.parent.exists() and kernel("list").stdout == ""


@pytest.mark.parametrize(("variables", "arguments", "directory"), [
    ({}, (), "data/kernels"),
    ({"JUPYTER_DATA_DIR": "", "XDG_DATA_HOME": "HERE/xdg"}, (), "xdg/jupyter/kernels"),
    ({"JUPYTER_DATA_DIR": "", "XDG_DATA_HOME": "", "HOME": "HERE/home"}, ("--user",), "home/.local/share/jupyter/kernels"),
    ({}, ("--prefix", "a prefix"), "a prefix/share/jupyter/kernels"),
])
def test_where_it_goes(kernel, place: str, tmp_path: Path, variables: dict, arguments: tuple, directory: str) -> None:
    here = {name: value.replace("HERE", str(tmp_path)) for name, value in variables.items()}
    done = kernel("install", place, "--name", "x", *arguments, **here)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / directory / "x" / "kernel.json").exists()
    assert kernel("list", *arguments, **here).stdout.startswith("x  ")
    assert kernel("remove", "x", *arguments, **here).returncode == 0


def test_dry_run_writes_nothing(kernel, place: str, tmp_path: Path) -> None:
    assert '"{connection_file}"' in kernel("install", place, "--dry-run").stdout
    assert not (tmp_path / "data").exists()


def test_what_is_refused(kernel, place: str, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = kernel(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done
        return done.stderr

    next(Path(place).rglob("ipykernel_launcher.py")).rename(tmp_path / "kept")
    assert "has no ipykernel" in (text := refused("install", place)) and "install" in text and text.endswith("ipykernel`\n")
    (tmp_path / "kept").rename(next(Path(place).rglob("site-packages")) / "ipykernel_launcher.py")
    assert "a-b would do" in refused("install", place, "--name", "a b")
    assert "two places" in refused("install", place, "--user", "--prefix", "/x")
    assert "missing" in refused("install", place, "--repair", str(tmp_path / "missing"))
    assert "kernel.json is not there" in refused("remove", "nothing")
    (tmp_path / "file").write_text("")
    assert "cannot make the directory" in refused("install", place, "--prefix", str(tmp_path / "file"))
    foreign = tmp_path / "data" / "kernels" / "theirs"
    foreign.mkdir(parents=True)
    (foreign / "kernel.json").write_text('{"argv": ["python"], "metadata": {}}')
    assert "was not made by Cohabit" in refused("install", place, "--name", "theirs")
    assert "was not made by Cohabit" in refused("remove", "theirs")
    assert (foreign / "kernel.json").exists()
