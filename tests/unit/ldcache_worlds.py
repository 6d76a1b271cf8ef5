#!/usr/bin/env python3
"""Makes data/ldcache_worlds.txt: random ld.so.cache files and what the real ld.so finds in them.

The real ld.so reads only /etc/ld.so.cache, so this needs root (chroot), gcc and an x86-64 glibc of
2.33 to 2.36 on a CPU of level x86-64-v3 that is not Intel's (test_ldcache.cc assumes these; the
kept file was made with Debian's 2.36). A line of the file: the cache in hexadecimal, then
NAME=ANSWER for each name asked, "-" for not found, all separated by tabs and percent-quoted.

  ldcache_worlds.py write FIRST_SEED COUNT        the data file
  ldcache_worlds.py compare FIRST_SEED COUNT LOOK LOOK ROOT reads names from its standard input and
                                                  prints NAME<tab>ANSWER: compare with ours
"""

import functools
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from urllib.parse import quote_from_bytes

NAMES = [b"libfoo.so.%d" % i for i in (1, 2, 9, 10, 100)] + [
    b"libfoo10.so", b"liba.so", b"lib\xc3\xa9.so", b"libz\x80.so", b"lib-x.so", b"lib01.so",
    b"lib1.so", b"lib.so.6.10"]  # fmt: skip
HWCAPS = [b"x86-64-v2", b"x86-64-v3", b"x86-64-v4", b"zz", b"aa"]
NAMED = 1 << 62
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  char name[8192];
  while (fgets(name, sizeof name, stdin)) {
    name[strcspn(name, "\n")] = 0;
    dlopen(name, RTLD_NOW);
  }
}
"""


def compare(a, b):
    """The order of the file: digits as numbers, signed characters."""

    def split(text):
        parts, i = [], 0
        while i < len(text):
            j = i
            while j < len(text) and 48 <= text[j] <= 57:
                j += 1
            if j > i:
                parts.append((1, int(text[i:j])))
                i = j
            else:
                parts.append((0, text[i] - 256 if text[i] > 127 else text[i]))
                i += 1
        return parts + [(0, 0)]

    for x, y in zip(split(a), split(b)):
        if x != y:
            return 1 if x > y else -1
    return 0


def entries(rng, hwcaps):
    result = []
    for i in range(rng.randint(0, 24)):
        name = rng.choice(NAMES)
        flags = rng.choice([0x303] * 8 + [3, 1, 0x103, 0xA03])
        hwcap, kind = 0, rng.random()
        if kind < 0.45 and hwcaps:
            index = rng.randrange(len(hwcaps) + (rng.random() < 0.1))
            hwcap = NAMED | rng.choice([0, 0, 0, 1, 2, 3, 5]) << 32 | index
        elif kind < 0.55:
            legacy = [2, 4, 1 << 48, 1 << 50, 1 << 63, 1 << 50 | 2, 6, 1, NAMED | 1 << 45]
            hwcap = rng.choice(legacy)
        result.append((name, b"/%d/" % i + name, flags, hwcap))
    order = functools.cmp_to_key(
        lambda x, y: -compare(x[0], y[0]) or (y[3] >> 62 & 1) - (x[3] >> 62 & 1))  # fmt: skip
    disorder = rng.random()
    if disorder < 0.85:
        result.sort(key=order)
    if 0.7 < disorder < 0.85 and len(result) > 1:
        a, b = rng.randrange(len(result)), rng.randrange(len(result))
        result[a], result[b] = result[b], result[a]
    return result


def make_cache(rng):
    hwcaps = rng.sample(HWCAPS, rng.choice([0, 1, 2, 3, 4, 5, 5]))
    if rng.random() < 0.8:
        hwcaps.sort()
    libraries = entries(rng, hwcaps)
    count = len(libraries)
    strings, offsets = b"", {}
    for text in [t for e in libraries for t in e[:2]] + hwcaps:
        if text not in offsets:
            offsets[text] = len(strings)
            strings += text + b"\0"
    hostile = rng.random() < 0.15

    def offset(text, base):
        if hostile and rng.random() < 0.1:
            return rng.choice([0xFFFFFFFF, 1 << 20, 0])
        return offsets[text] + base

    def new_part(start):
        base = 48 + 24 * count
        pad = -(start + base + len(strings)) % 4
        extension = start + base + len(strings) + pad
        endian = rng.choice([2, 2, 2, 0, 2 | 8])
        data = b"glibc-ld.so.cache1.1" + struct.pack(
            "<IIB3xI12x", count, len(strings), endian, extension if hwcaps else 0)  # fmt: skip
        for name, path, flags, hwcap in libraries:
            data += struct.pack(
                "<iIIIQ", flags, offset(name, base), offset(path, base), 0, hwcap)  # fmt: skip
        data += strings + b"\0" * pad
        if hwcaps:
            names_base = base if rng.random() < 0.5 else base + start
            data += struct.pack("<II", 0xEAA42174, 1)
            data += struct.pack("<IIII", 1, 0, extension + 24, 4 * len(hwcaps))
            data += b"".join(struct.pack("<I", names_base + offsets[h]) for h in hwcaps)
        return data

    kind = rng.choice(["new", "new", "old", "both"])
    if kind == "new":
        return new_part(0)
    header = b"ld.so-1.7.0\0" + struct.pack("<I", count)
    if kind == "old":
        return header + b"".join(
            struct.pack("<iII", f, offset(n, 0), offset(p, 0)) for n, p, f, _ in libraries
        ) + strings  # fmt: skip
    old = header + b"".join(struct.pack("<iII", f, 0, 0) for _, _, f, _ in libraries)
    old += b"\0" * (-len(old) % 8)
    return old + new_part(len(old))


def make_root(root):
    for name in ("lib64", "lib/x86_64-linux-gnu", "etc"):
        os.makedirs(os.path.join(root, name))
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root + "/lib64/")
    shutil.copy("/lib/x86_64-linux-gnu/libc.so.6", root + "/lib/x86_64-linux-gnu/")
    subprocess.run(["gcc", "-xc", "-", "-o", root + "/open"], input=PROGRAM.encode(), check=True)


def ask_loader(root):
    """NAME -> the file that ld.so tries after reading its cache, or b"-"."""
    run = subprocess.run(
        [shutil.which("chroot") or "/usr/sbin/chroot", root, "/open"],
        input=b"\n".join(NAMES) + b"\n", env={"LD_DEBUG": "libs"}, capture_output=True, check=True)
    answers, name, in_cache = {}, None, False
    for line in run.stderr.split(b"\n"):
        line = line.split(b":\t", 1)[-1]
        if line.startswith(b"find library="):
            name, in_cache = line[13:].split(b" [0]")[0], False
        elif line.startswith(b" search cache="):
            answers[name], in_cache = b"-", True
        elif in_cache and line.startswith(b"  trying file="):
            answers[name], in_cache = line[14:], False
        elif line.startswith(b" search path"):
            in_cache = False
    return {name: answers[name] for name in NAMES if name in answers}


def ask_other(command, root):
    run = subprocess.run(
        [command, root], input=b"\n".join(NAMES) + b"\n", capture_output=True, check=True)
    return dict(line.split(b"\t", 1) for line in run.stdout.strip(b"\n").split(b"\n"))


def main():
    mode, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    asked = found = different = 0
    lines = []
    with tempfile.TemporaryDirectory() as root:
        make_root(root)
        for seed in range(first, first + count):
            cache = make_cache(random.Random(seed))
            with open(root + "/etc/ld.so.cache", "wb") as file:
                file.write(cache)
            real = ask_loader(root)
            asked += len(real)
            found += sum(answer != b"-" for answer in real.values())
            if mode == "write":
                answers = [quote_from_bytes(n + b"=" + a, "/=") for n, a in real.items()]
                lines.append("\t".join([cache.hex()] + answers))
                continue
            ours = ask_other(sys.argv[4], root)
            for name in real:
                if real[name] != ours[name]:
                    different += 1
                    print(f"seed {seed}: {name} is {real[name]}, not {ours[name]}")
    if lines:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data/ldcache_worlds.txt")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
    print(f"{count} caches, {asked} names asked, {found} found, {different} different")


main()
