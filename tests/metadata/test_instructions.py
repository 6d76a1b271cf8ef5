"""x86-64 instructions: our reading of real libraries against that of binutils' objdump."""
from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("COHABIT_CACHE") or Path.home() / ".cache" / "cohabit") / "envs"
MOST = 4 << 20  # bytes of one library
REGISTERS = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16))]


def installed(name: str) -> Path:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return Path(found).resolve()


# The last of them for its vector instructions: AVX-512 and before.
LIBRARIES = [installed(name) for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libz.so.1")]
LIBRARIES += sorted(CACHE.glob("*/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_*.so"))[:1]


def code_of(path: Path) -> tuple[int, int, int]:
    """Address, place in the file and size of .text."""
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    address, offset, size = re.search(r" \.text +PROGBITS +(\w+) +(\w+) +(\w+)", sections).groups()
    return int(address, 16), int(offset, 16), min(int(size, 16), MOST)


def operand_of(text: str) -> tuple[int, bool, int] | None:
    """Base, whether there is an index, displacement, of an operand in memory that counts from a register."""
    found = re.search(r"(?<![\w:])(-?0x[0-9a-f]+)?\((?:%(\w+))(,%\w+)?(?:,\d)?\)", text)
    if not found or found[2] not in REGISTERS or text.startswith(("nop", "lea", "prefetch", "data16", "cs ")):
        return None
    return REGISTERS.index(found[2]), found[3] is not None, int(found[1] or "0", 16)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its libraries are of another machine")
@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.name)
def test_instructions_are_those_of_objdump(path: Path, build_dir: Path):
    start, offset, size = code_of(path)
    probe = build_dir / "tests" / "metadata" / "instruction_probe"
    ours = {}
    for line in subprocess.run([probe, path, str(offset), str(size)], capture_output=True, text=True, check=True).stdout.splitlines():
        at, *rest = map(int, line.split())
        ours[start + at] = rest
    listed = subprocess.run(["objdump", "-d", "-w", "-j", ".text", f"--stop-address={start + size}", path],
                            capture_output=True, text=True, check=True).stdout
    instructions = operands = branches = places = 0
    wrong = []
    for address, octets, text in re.findall(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)$", listed, re.M):
        at, length = int(address, 16), len(octets.split())
        # objdump shows wait and what follows as one (fstcw); the last one may be cut.
        if octets.startswith("9b ") or at + 15 > start + size:
            continue
        got_length, touches, base, has_index, displacement, branch, counts, place, in_thread = ours.get(at, [0] * 9)
        instructions += 1
        counted = re.search(r"\(%rip\).*# ([0-9a-f]+)", text)
        text = text.split("#")[0].split("<")[0].strip()
        right = got_length == length and bool(counts) == bool(counted) and bool(in_thread) == ("%fs:" in text)
        if counted:
            places += 1
            right &= start + place == int(counted[1], 16)
        # A vector of indexes is no index (gather), EVEX has units of its own.
        operand = None if octets.startswith("62 ") or "gather" in text else operand_of(text)
        if operand:
            operands += 1
            right &= (touches, base, bool(has_index), displacement) == (1, *operand)
        if direct := re.match(r"(?:bnd |notrack )?(?:call|jmp|j\w+) +([0-9a-f]+)$", text):
            branches += 1
            right &= start + branch == int(direct[1], 16)
        if not right:
            wrong.append((address, octets, text, ours.get(at)))
    assert not wrong, (len(wrong), wrong[:5])
    assert instructions > 10_000 and operands > 2_000 and branches > 1_000 and places > 100
