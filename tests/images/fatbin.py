"""Writes ELF files with fat binaries: sections of containers of entries without payload to speak of.

Code is written as people write it: sm_86, sm_90a, sm_100f, compute_90@8.4 (PTX 8.4), lto_80.
"""
from __future__ import annotations

import re
import struct

CONTAINER = 0xBA55ED50
KINDS = {"compute": 1, "sm": 2, "lto": 8}
SUFFIXES = {"": 0, "a": 0x100000, "f": 0x200000}
PROGBITS, STRTAB = 1, 3


def entry(code: str, payload: int = 64) -> bytes:
    kind, arch, suffix, major, minor = re.fullmatch(
        r"(compute|sm|lto)_(\d+)([af]?)(?:@(\d+)\.(\d+))?", code).groups()
    header = struct.pack("<HHIQIIHHIIIQQQ", KINDS[kind], 0x0101, 64, payload, 0, 0, int(minor or 0),
                         int(major or 1), int(arch), 0, 0, SUFFIXES[suffix] | 0x11, 0, 0)
    return header + b"\x5a" * payload


def container(codes: list[str], payload: int = 64) -> bytes:
    body = b"".join(entry(code, payload) for code in codes)
    return struct.pack("<IHHQ", CONTAINER, 1, 16, len(body)) + body


def elf(sections: list[tuple[str, bytes]]) -> bytes:
    """An ELF file of nothing but sections."""
    names, data, table = b"\0", b"", struct.pack("<IIQQQQIIQQ", *[0] * 10)
    for name, content in [*sections, (".shstrtab", b"")]:
        data += b"\0" * (-len(data) % 8)
        offset, at = 64 + len(data), len(names)
        names += name.encode() + b"\0"
        kind = STRTAB if name == ".shstrtab" else PROGBITS
        content = names if kind == STRTAB else content
        table += struct.pack("<IIQQQQIIQQ", at, kind, 2, 0, offset, len(content), 0, 0, 8, 0)
        data += content
    data += b"\0" * (-len(data) % 8)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, 64 + len(data), 0, 64, 0,
                         0, 64, len(sections) + 2, len(sections) + 1)
    return header + data + table


def library(codes: list[str]) -> bytes:
    return elf([(".nv_fatbin", container(codes))])
