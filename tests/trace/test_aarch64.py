"""The tracer for AArch64, in qemu's user mode: entries, constructor, raw records."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from trace_world import HERE

CC, QEMU, SYSROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
NONCE = "0123456789abcdef"


@pytest.fixture(scope="module")
def arm(tmp_path_factory, repo):
    if not (shutil.which(CC) and shutil.which(QEMU) and os.path.isdir(SYSROOT)):
        pytest.skip(f"needs {CC} and {QEMU}")
    directory = tmp_path_factory.mktemp("arm").resolve()
    runtime = repo / "runtime"
    # The options of runtime/CMakeLists.txt, which cannot make two architectures at once.
    compile_(directory, "libcohabit_trace.so", runtime / "preload/trace.c",
             runtime / "preload/trace_entry.S", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
             "-ffreestanding", "-fno-builtin", "-fvisibility=hidden", "-fno-stack-protector",
             "-fno-tree-loop-distribute-patterns", "-mgeneral-regs-only", "-mno-outline-atomics",
             "-mbranch-protection=standard", "-fPIC", f"-I{runtime}", "-shared", "-nostdlib",
             "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,-soname,libcohabit_trace.so",
             f"-Wl,--version-script={runtime}/preload/trace_aarch64.map")
    compile_(directory, "opener", HERE / "opener.c", "-w", "-pthread")
    library = HERE / "library.c"
    compile_(directory, "libplain.so", library, "-w", "-shared", "-fPIC")
    compile_(directory, "libouter.so", library, "-w", "-shared", "-fPIC",
             f'-DOPENS="{directory}/libplain.so"')
    return directory


def compile_(directory, out, *arguments):
    subprocess.run([CC, "-g", "-o", str(directory / out), *map(str, arguments)], check=True)


def run(arm, *operations, variables=()):
    return subprocess.run(
        [QEMU, "-L", SYSROOT, *(word for v in variables for word in ("-E", v)), arm / "opener", *operations],
        capture_output=True, text=True, check=True).stdout


def test_records(arm):
    operations = [f"open={arm}/libouter.so,2", "close=0", "errno", "open=libnot-there.so,1",
                  f"dlvsym=GLIBC_2.17,{arm}/libplain.so", f"mopen=new,{arm}/libplain.so,2"]
    logs = arm / "logs"
    logs.mkdir()
    traced = run(arm, *operations, variables=[
        f"COHABIT_TRACE_RUN=1;0;1;900;0;0;{NONCE};{logs}/ld", f"LD_PRELOAD={arm}/libcohabit_trace.so",
        "LD_DEBUG=files", f"LD_DEBUG_OUTPUT={logs}/ld"])
    assert traced == run(arm, *operations)
    (log,) = logs.iterdir()
    text = Path(log).read_text()
    calls = re.findall(NONCE + r" ([OMC]) \d+ \d+ \d+ (-?\d+) (-?\d+) 0 (-?\d+) (\d+) \d+\n(.*)", text)
    seen = []
    for kind, flags, ns, name, caller, payload in calls:
        n = max(int(name), 0)
        seen.append((kind, int(flags), int(ns), payload[:n].split("/")[-1] if int(name) >= 0 else None,
                     payload[n:n + int(caller)].split("/")[-1]))
    assert seen == [("O", 2, 0, "libouter.so", ""),
                    ("O", 0x102, 0, "libplain.so", "libouter.so"),
                    ("O", 1, 0, "libnot-there.so", "libouter.so"),
                    ("O", 1, 0, None, "libouter.so"),
                    ("C", 0, 0, "libouter.so", ""),
                    ("O", 2, 0, None, ""),
                    ("O", 1, 0, "libnot-there.so", ""),
                    ("O", 2, 0, "libplain.so", ""),
                    ("M", 2, -1, "libplain.so", "")]
    # ld.so's lines stand in between, in order.
    assert text.index("calling init: ") < text.index("libouter.so [0];  dynamically loaded by")
