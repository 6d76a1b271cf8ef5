"""Hostile messages: lying lengths, huge counts, depth, garbage. Each is refused in words, and nothing else happens."""
from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import sys
import time
import tracemalloc

import pytest

import cohabit
import places
from cohabit import _worker_main as wire

U32 = struct.Struct("<I").pack


@pytest.fixture
def ends():
    """Two ends of a conversation in one process."""
    left, right = socket.socketpair()
    files = [wire.memory_file("cohabit-test"), wire.memory_file("cohabit-test")]
    yield wire.Link(left, *files), wire.Link(right, *reversed(files))
    left.close()
    right.close()
    for file in files:
        os.close(file)


def body_of(value: bytes, entries: bytes = b"", releases: bytes = b"") -> memoryview:
    return memoryview(struct.pack("<II", len(releases) // 8, len(entries) // wire.ENTRY.size) + releases + entries + value)


def entry(flags: int = 0, chunk: int = 0, size: int = 1 << 22, offset: int = 0, length: int = 4096) -> bytes:
    return wire.ENTRY.pack(flags, chunk, size, offset, length)


ARRAY = b"a\0\3<f8"
LYING = {
    "no head": b"",
    "nothing": body_of(b""),
    "unknown tag": body_of(b"?"),
    "text longer than the message": body_of(b"s" + U32(0xFFFFFFFF) + b"x"),
    "bytes cut": body_of(b"b\5"),
    "a list of four thousand million": body_of(b"l" + U32(0xFFFFFFFF) + b"N"),
    "a dict of two thousand million": body_of(b"d" + U32(0x7FFFFFFF) + b"NN"),
    "a list one too long": body_of(b"l" + U32(3) + b"NN"),
    "too deep": body_of((b"l" + U32(1)) * 101 + b"N"),
    "deep as the sea": body_of((b"l" + U32(1)) * 1_000_000),
    "a list as key": body_of(b"d" + U32(1) + b"l" + U32(0) + b"N"),
    "no UTF-8": body_of(b"s" + U32(2) + b"\xff\xfe"),
    "more after the value": body_of(b"NN"),
    "an int cut": body_of(b"i\0\0"),
    "a pickle": body_of(b"p" + U32(4) + b"N.NN"),
    "an array larger than the message": body_of(ARRAY + b"\1" + struct.pack("<Q", 1 << 60) + b"\0"),
    "an array whose size overflows": body_of(ARRAY + b"\3" + struct.pack("<3Q", 1 << 62, 1 << 62, 1 << 62) + b"\0"),
    "an empty array with a huge side": body_of(ARRAY + b"\2" + struct.pack("<2Q", 0, (1 << 64) - 1) + b"\0"),
    "too many dimensions": body_of(ARRAY + b"\xff" + bytes(2040) + b"\0"),
    "a strange type": body_of(b"a\0\3|O8\0\0"),
    "a type that is code": body_of(b"a\0\x09__class__\0\0"),
    "a block that was not sent": body_of(ARRAY + b"\1" + struct.pack("<Q", 8) + b"\1" + U32(0) + bytes(8)),
    "large bytes of a block that was not sent": body_of(b"B" + U32(7) + bytes(16)),
    "an Arrow stream of nothing": body_of(b"A\0" + U32(0)),
    "four thousand million blocks": memoryview(struct.pack("<II", 0, 0xFFFFFFFF) + b"N"),
    "four thousand million releases": memoryview(struct.pack("<II", 0xFFFFFFFF, 0) + b"N"),
    "a block outside of the file": body_of(b"N", entry(size=1 << 40)),
    "a block outside of its chunk": body_of(b"N", entry(offset=1 << 30)),
    "a block that wraps around": body_of(b"N", entry(offset=(1 << 64) - 4096, length=1 << 63)),
    "a chunk that wraps around": body_of(b"N", entry(chunk=(1 << 64) - 4096, size=8192, offset=(1 << 64) - 4096, length=4096)),
    "an empty block": body_of(b"N", entry(length=0)),
    "a chunk off the pages": body_of(b"N", entry(chunk=1, offset=1)),
    "a block of mine that is none": body_of(b"N", entry(wire.YOURS, offset=4096)),
}


@pytest.mark.parametrize("name", LYING)
def test_lies_are_refused(name: str, ends) -> None:
    left, right = ends
    left.encode(wire.CALL, 1, b"x" * wire.INLINE)  # so that there is a chunk to lie about
    tracemalloc.start()
    start = time.monotonic()
    with pytest.raises((wire.ProtocolError, wire.Unsendable)) as caught:
        right.decode(LYING[name])
    assert tracemalloc.get_traced_memory()[1] < 8 << 20 and time.monotonic() - start < 1
    tracemalloc.stop()
    assert len(str(caught.value)) > 10


def test_a_part_beyond_its_block_is_refused(ends) -> None:
    left, right = ends
    frame = left.encode(wire.CALL, 1, b"x" * 50_000)
    body = memoryview(frame)[wire.HEADER.size:]
    assert right.decode(body) == b"x" * 50_000
    for offset, size in ((1, 50_000), (50_000, 1), ((1 << 64) - 1, 2), (0, 50_001)):
        body[-16:] = struct.pack("<QQ", offset, size)
        with pytest.raises(wire.ProtocolError, match="outside"):
            right.decode(body)


def test_a_release_too_many_is_refused(ends) -> None:
    left, _ = ends
    left.decode(body_of(b"N", releases=struct.pack("<Q", 4096)))
    with pytest.raises(wire.ProtocolError, match="released more often"):
        left.encode(wire.CALL, 1, b"x" * wire.INLINE)


def test_blocks_of_a_refused_message_are_released(ends) -> None:
    left, right = ends
    for _ in range(50):
        frame = left.encode(wire.CALL, 1, [b"x" * 100_000, None])
        frame[-1:] = b"?"
        with pytest.raises(wire.ProtocolError):
            right.decode(memoryview(frame)[wire.HEADER.size:])
        left.decode(memoryview(right.encode(wire.RESULT, 1, None))[wire.HEADER.size:])
    left.arena.collect()
    assert not left.arena.blocks and sum(chunk.size for chunk in left.arena.chunks) <= 8 << 20


@pytest.mark.parametrize("header, word", [
    (b"xx\1\2" + bytes(12), "expected version"), (b"cw\2\2" + bytes(12), "expected version 1"),
    (b"cw\1\2" + U32(0xFFFFFFFF) + bytes(8), "at most"), (b"cw\1\2" + U32(0) + bytes(8) + b"more", "follow"),
])
def test_headers(header: bytes, word: str, ends) -> None:
    left, right = ends
    left.socket.sendall(header)
    with pytest.raises(wire.ProtocolError, match=word):
        right.read()


def test_announced_memory_is_not_taken(ends) -> None:
    left, right = ends
    left.socket.sendall(wire.HEADER.pack(b"cw", 1, 2, 200 << 20, 1) + bytes(1000))
    left.socket.shutdown(socket.SHUT_WR)
    tracemalloc.start()
    with pytest.raises(EOFError):
        right.read()
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_random_damage(ends) -> None:
    """Valid messages with random bytes changed: a value or a refusal, never anything else."""
    left, right = ends
    chooser = random.Random(7)
    values = [["text", b"bytes", 1, 2.5, None, True, {"a": (1, 2), 3: [4]}, 2**70, 1j], [b"x" * 40_000, memoryview(bytes(50_000))],
              ("echo", ([1] * 50,), {"named": "x" * 40_000}), memoryview(bytearray(100)), memoryview(b"12345678" * 10).cast("d")]
    frames = [bytes(left.encode(wire.CALL, 1, value))[wire.HEADER.size:] for value in values]
    refused = 0
    for _ in range(20_000):
        frame = bytearray(chooser.choice(frames))
        for _ in range(chooser.randrange(1, 4)):
            frame[chooser.randrange(len(frame))] = chooser.choice((0, 1, 255, chooser.randrange(256)))
        if chooser.random() < 0.1:
            del frame[chooser.randrange(len(frame)):]
        try:
            right.decode(memoryview(frame))
        except (wire.ProtocolError, wire.Unsendable):
            refused += 1
        right.arena.returned.clear()
        right.borrowed.take_released(1 << 20)
    assert refused > 5000


ROGUE = """#!{python}
import os, socket, sys
sys.path.insert(0, {package!r})
import _worker_main as wire
data = socket.socket(fileno=int(sys.argv[2]))
link = wire.Link(data, int(sys.argv[4]), int(sys.argv[5]))
kind, call, body = link.read()
data.sendall(link.encode(wire.RESULT, 0, {{"pickle": False}}))
while True:
    kind, call, body = link.read()
    {deed}
"""
DEEDS = {
    "garbage": ("data.sendall(os.urandom(100))", "version 1 of the protocol"),
    "another call's answer": ("data.sendall(link.encode(wire.RESULT, call + 1, None))", "the answer of call"),
    "a lying answer": ("frame = link.encode(wire.RESULT, call, [1]); frame[-13:-9] = bytes([255] * 4); data.sendall(frame)", "do not fit"),
    "a pickle": ("link.pickle = True; data.sendall(link.encode(wire.RESULT, call, {1}))", "a pickle came"),
    "an error that is none": ("data.sendall(link.encode(wire.ERROR, call, [1]))", "an error's description"),
    "an endless answer": ("data.sendall(wire.HEADER.pack(b'cw', 1, 2, 1 << 31, call))", "at most"),
    "the end of the connection": ("data.shutdown(2)\n    import time; time.sleep(100)", "gave up its connection"),
}


@pytest.mark.parametrize("name", DEEDS)
def test_a_rogue_worker_is_ended(name: str, tmp_path) -> None:
    deed, word = DEEDS[name]
    program = tmp_path / "python"
    program.write_text(ROGUE.format(python=sys.executable, package=str(places.REPO / "python/cohabit"), deed=deed))
    program.chmod(0o755)
    with cohabit.Worker("rogue", env=program, log=False) as worker:
        for _ in range(2):
            with pytest.raises(cohabit.WorkerCrashed, match=word):
                worker.call("anything", timeout=30)


def test_only_the_parent_is_served(tmp_path) -> None:
    """Started by another process than it was told, the worker's side does nothing."""
    command = [sys.executable, wire.__file__, "0", "0", "0", "0", str(os.getppid())]
    assert subprocess.run(command, capture_output=True, timeout=20).returncode != 0
