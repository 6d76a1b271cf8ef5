#!/usr/bin/env python3
"""Writes the seed inputs of the fuzz targets to corpus/TARGET/ beside this file.

One function for each target, named seeds_TARGET, that yields (file name, bytes). Seeds are small
and reach deep: one for each format and feature that the reader knows, and one near each of its
checks. The same bytes come out on every run and machine.

  make_seeds.py [TARGET...]     all of them by default
"""

import pathlib
import struct
import sys


def ldcache(entries, hwcaps=(), old=None, endian=2):
    """A cache file; entries are (name, path, flags, hwcap), `old` puts an old table before it."""
    start = 0
    prefix = b""
    if old is not None:
        prefix = b"ld.so-1.7.0\0" + struct.pack("<I", len(old))
        prefix += b"".join(struct.pack("<iII", f, 0, 0) for _, _, f in old)
        prefix += b"\0" * (-len(prefix) % 8)
        start = len(prefix)
    base = 48 + 24 * len(entries)
    table = strings = b""
    for name, path, flags, hwcap in entries:
        table += struct.pack("<iII", flags, base + len(strings), base + len(strings + name) + 1)
        table += struct.pack("<IQ", 0, hwcap)
        strings += name + b"\0" + path + b"\0"
    names = []
    for name in hwcaps:
        names.append(start + base + len(strings))
        strings += name + b"\0"
    strings += b"\0" * (-(start + base + len(strings)) % 4)
    extension = start + base + len(strings) if hwcaps else 0
    header = b"glibc-ld.so.cache1.1" + struct.pack(
        "<IIB3xI12x", len(entries), len(strings), endian, extension
    )
    data = prefix + header + table + strings
    if hwcaps:
        data += struct.pack("<IIIIII", 0xEAA42174, 1, 1, 0, extension + 24, 4 * len(names))
        data += struct.pack(f"<{len(names)}I", *names)
    return data


def seeds_ldcache():
    x86, arm, named = 0x0303, 0x0A03, 1 << 62
    plain = [(b"libz.so.10", b"/z10", x86, 0), (b"libz.so.9", b"/z9", x86, 0)]
    hwcaps = [
        (b"liba.so", b"/v3/a", x86, named | 2 << 32 | 1),
        (b"liba.so", b"/v2/a", x86, named | 1 << 32),
        (b"liba.so", b"/a", x86, 0),
        (b"liba.so", b"/arm/a", arm, 0),
    ]
    levels = (b"x86-64-v2", b"x86-64-v3")
    yield "empty", b""
    yield "plain", ldcache(plain)
    yield "hwcaps", ldcache(hwcaps, levels)
    yield "hwcaps-unsorted", ldcache(hwcaps, levels[::-1])
    yield "legacy", ldcache([(b"liba.so", b"/h/a", x86, 1 << 50 | 2), *hwcaps[2:]])
    yield "both", ldcache(hwcaps, levels, old=[(b"", b"", 3), (b"", b"", 3)])
    yield "unsorted", ldcache(plain[::-1])
    yield "big-endian", ldcache(plain, endian=3)
    strings = b"liba.so\0/a\0"
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 1) + struct.pack("<iII", x86, 0, 8)
    yield "old", old + strings
    yield "count-too-large", ldcache(plain).replace(b"1.1\2", b"1.1\xff", 1)
    yield "old-count-too-large", old.replace(b"0\0\1", b"0\0\xff", 1) + strings
    yield "name-outside", ldcache(plain).replace(struct.pack("<I", 96), b"\xff\xff\xff\xff", 1)
    yield "no-end-of-string", ldcache(plain)[:-4]
    yield "extension-outside", ldcache(hwcaps, levels)[:-6]


def seeds_device_code():
    images = pathlib.Path(__file__).resolve().parent.parent / "images"
    sys.path.insert(0, str(images))
    import fatbin

    several = fatbin.container(["sm_80", "sm_90a", "sm_100f", "compute_90@8.4", "lto_80"])
    whole = fatbin.elf([(".nv_fatbin", several + several)])
    yield "plain", fatbin.library(["sm_86"])
    yield "several", whole
    other = [(".nvFatBinSegment", b"\0" * 24), (".ldata", b"\1" * 24 + several), ("__nv_relfatbin", several)]
    yield "other-sections", fatbin.elf(other)
    yield "no-sections", whole[:64]
    yield "cut", whole[:200]
    size = struct.pack("<Q", len(several) - 16)
    yield "container-too-large", whole.replace(size, b"\xff" * 8, 1)
    first = fatbin.entry("sm_80")[:16]
    yield "entry-too-large", whole.replace(first, first[:8] + b"\xff" * 8, 1)
    yield "header-too-large", whole.replace(first, first[:4] + b"\xff" * 4 + first[8:], 1)
    yield "header-too-small", whole.replace(first, first[:4] + b"\0" * 4 + first[8:], 1)


def seeds_python():
    yield "imports", b"from package import part\nimport other as o\no.function(part.value)\n"
    yield "lazy", b"""import importlib, os, sys
def __getattr__(name):
    return importlib.import_module('.' + name, __name__)
if os.environ.get('A', 'b') == 'b' and sys.platform.startswith('linux'):
    for n in sorted({'package', 'other'}):
        m = importlib.import_module(n)
"""
    yield "classes", b"""class A(dict):
    def __init__(self, *a, **k): super().__init__(*a, **k)
    @property
    def p(self): return self['x']
    @classmethod
    def c(cls): return cls(x=1)
print(A.c().p)
"""
    yield "anything", b"bytes((1, 2)).decode() + 'x'\nstr.__mod__('%s')\nbytes.decode(object())\n"
    yield "syntax", b"match x:\n  case {'a': [1, *_]}: pass\nasync def f(): await g\nx = y = (yield)\n"
    yield "unfinished", b"def f(a, *, b: int = (1, [2, {"
    for number, data in enumerate(random_bytes(24, 300)):
        yield f"program-{number}", b"\0" + data


def random_bytes(count, size):
    random = 1  # of a generator whose numbers are the same everywhere
    for _ in range(count):
        data = bytearray()
        for _ in range(size):
            random = random * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            data.append(random >> 56)
        yield bytes(data)


def seeds_why():
    failure = b"ImportError: generic_type: type \"_gpuDeviceProperties\" is already registered!\n"
    # Behind equal numbers these go on differently, in letters and in other bytes.
    lines = [b"status 12 left\n", b"status 12, left\n", b"id deadbeef12 left\n", b"id deadbeef12: left\n", b"12\r\n", b"12x\n"]
    yield "equal-numbers", b"".join(failure + line for line in lines * 4)
    yield "numbers", b"".join(b"%d %s" % (n * 7919 % 1000, failure) for n in range(20))
    yield "ends", (failure[:-1] + b"\r\n\r") * 4 + b"\xff\xfe\x1b[31m" + failure[:-1]
    for number, data in enumerate(random_bytes(40, 200)):
        yield f"log-{number}", b"\0" + data


def seeds_snapshot():
    head = b"cohabit-snapshot 1\nname\ta\nmade\t2026-01-31T12:00:00Z\nprefix\t/env\n"
    notes = (b"reason\tbefore `pip install x%09y`\nautomatic\t\nfindings-of\torders\npackage\ttorch\t2.6.0\n"
             b"variable\tCUDA_HOME\t00ff\nfinding\tf1\terror\tCB101\t%23 headline\n")
    digest = b"0123456789abcdef" * 4
    rows = [b"d\tbin\t755\t0\t0", b"f\tbin/python\t755\t0\t0\t12\t-5\t" + digest + b"\tread\tabc-1", b"l\tlib64\tlib", b"o\tpipe",
            b"f\tz%0a%25\t4755\t1\t1\t0\t9\t" + digest + b"\tclaimed\t0"]
    yield "empty", b""
    yield "head", head + b"files\n"
    yield "notes", head + notes + b"files\n"
    yield "files", head + b"files\n" + b"".join(row + b"\n" for row in rows)
    for number, path in enumerate((b"../out", b"/abs", b"a//b", b"a/../../b", b".", b"a%00b", b"%2e%2e/x", b"a/..")):
        yield f"path-{number}", head + b"files\no\t" + path + b"\n"
    for number, row in enumerate((b"f\ta", b"d\ta\t99999\t0\t0", b"l\ta\t", b"f\ta\t755\t-1\t0\t1\t1\t" + digest + b"\tread\t..",
                                  b"x\ta", b"d\tb\t755\t0\t0\nd\ta\t755\t0\t0")):
        yield f"row-{number}", head + b"files\n" + row + b"\n"


def main():
    targets = {n[6:]: f for n, f in globals().items() if n.startswith("seeds_")}
    for target in sys.argv[1:] or sorted(targets):
        directory = pathlib.Path(__file__).resolve().parent / "corpus" / target
        directory.mkdir(parents=True, exist_ok=True)
        count = 0
        for name, data in targets[target]():
            (directory / f"seed-{name}").write_bytes(data)
            count += 1
        print(f"{count} seeds in {directory}")


if __name__ == "__main__":
    main()
