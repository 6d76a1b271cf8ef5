"""A worker's process, and the language that it speaks with its caller.

This one file runs under another environment's Python (3.8 or newer), from where it lies: nothing is
installed there, and it imports the standard library only. The caller imports the same file for its
side of the language, so the two cannot drift apart. docs/design/workers.md describes the messages.

Large data do not travel through the socket. Each side writes into an arena of its own, a file in
memory (memfd) that both have mapped, and sends where in it the bytes lie. The receiver works on them
in place. A block is free again when the last object that uses it is gone on the receiver's side: a
ctypes array over the block is what everything there is built on, and its finalizer notes the release,
which travels back with the next message. Finalizers run anywhere, within any bytecode, so all that
they do is to append to a deque.
"""
from __future__ import annotations

import sys

if __name__ == "__main__" and sys.path and __file__.startswith(sys.path[0] + "/"):
    del sys.path[0]  # first of all: this directory is no part of the environment

import collections
import ctypes
import importlib
import mmap
import os
import re
import signal
import socket
import struct
import threading
import weakref
from typing import Any

VERSION = 1
CALL, RESULT, ERROR, PING, PONG, CANCEL, CLOSE = range(1, 8)
HEADER = struct.Struct("<2sBBIQ")  # "cw", version, kind, bytes of the body, number of the call
HEAD = HEADER.size + 8  # and the counts of releases and of blocks, which open every body
ENTRY = struct.Struct("<BQQQQ")  # a block: flags, its chunk's offset and size, its own
MAX_BODY = 256 << 20
MAX_DEPTH = 100
MAX_BLOCKS = 1 << 16
INLINE = 32 << 10  # smaller data go through the socket
PAGE = 4096
KEEP = 256 << 20  # unused arena memory that is kept for the next call
YOURS, SHARED = 1, 2  # flags of a block: in the receiver's own arena; the sender can still see it
SCALAR, FORTRAN, PLAIN = 1, 2, 4  # flags of an array: NumPy scalar; transposed; a memoryview

_BYTES, _STR, _TUPLE, _DICT, _RECORDS = b"bstdr"
_CONTAINERS = frozenset(b"ltdr")
_TWO_U32 = struct.Struct("<II")
_NO_BLOCKS = bytes(8)
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_I64, _F64 = struct.Struct("<q"), struct.Struct("<d")
_TAG_U32, _TAG_I64, _TAG_F64 = struct.Struct("<cI"), struct.Struct("<cq"), struct.Struct("<cd")
_FORMATS = {"|b1": "?", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H", "<i4": "i", "<u4": "I", "<i8": "q",
            "<u8": "Q", "<f2": "e", "<f4": "f", "<f8": "d"}
_TYPES = {format: name for name, format in _FORMATS.items()}
_ELEMENTS = {"?": ctypes.c_bool, "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16, "H": ctypes.c_uint16,
             "i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64, "Q": ctypes.c_uint64,
             "f": ctypes.c_float, "d": ctypes.c_double}
_TYPES.update({"l": "<i8", "L": "<u8", "n": "<i8", "N": "<u8", "c": "|u1"})
_TYPE = re.compile(r"[<>|][biufcSUmM]\d{1,9}(\[\d{0,4}\w{1,2}\])?|bfloat16|float8_\w{1,20}")


class ProtocolError(Exception):
    """What came is no message of this protocol, or a lying one."""


class Unsendable(TypeError):
    """A value that cannot be sent, or that this side cannot hold."""


# ---- memory -------------------------------------------------------------------------------------


def memory_file(name: str) -> int:
    """A file in memory without a name anywhere: it goes with its last user, however that ends."""
    try:
        file = os.memfd_create(name, os.MFD_CLOEXEC | 2)  # MFD_ALLOW_SEALING
    except (AttributeError, OSError):
        return os.open("/dev/shm", os.O_RDWR | os.O_CLOEXEC | os.O_TMPFILE, 0o600)
    import fcntl

    fcntl.fcntl(file, 1033, 2 | 1)  # F_ADD_SEALS: never smaller (a read would be SIGBUS), no more seals
    return file


class Mapping:
    """A part of an arena, mapped."""

    def __init__(self, file: int, offset: int, size: int):
        self.offset, self.size = offset, size
        self.map = mmap.mmap(file, size, offset=offset)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.free = [(offset, offset + size)]  # used by the owner only
        self.cold = False  # its memory was given back to the system

    def buffer(self, offset: int, size: int) -> ctypes.Array:
        return (ctypes.c_ubyte * size).from_buffer(self.map, offset - self.offset)

    def take(self, size: int) -> int | None:
        for index, (start, end) in enumerate(self.free):
            if end - start >= size:
                self.free[index:index + 1] = [(start + size, end)] if end - start > size else []
                self.cold = False
                return start
        return None

    def give(self, start: int, end: int) -> None:
        spans = sorted([*self.free, (start, end)])
        self.free = spans[:1]
        for start, end in spans[1:]:
            if start == self.free[-1][1]:
                self.free[-1] = (self.free[-1][0], end)
            else:
                self.free.append((start, end))

    def unused(self) -> bool:
        return self.free == [(self.offset, self.offset + self.size)]


class Arena:
    """The owner's side: blocks are taken, and come back through `returned`."""

    def __init__(self, file: int):
        self.file = file
        self.chunks: list[Mapping] = []
        self.blocks: dict[int, list] = {}  # offset -> [size, uses, chunk]
        self.returned: collections.deque[int] = collections.deque()

    def take(self, size: int) -> tuple[int, Mapping]:
        self.collect()
        rounded = -(-size // PAGE) * PAGE
        for chunk in self.chunks:
            start = chunk.take(rounded)
            if start is not None:
                break
        else:
            chunk = self._grow(rounded)
            start = chunk.take(rounded)
            assert start is not None
        self.blocks[start] = [size, 1, chunk]
        return start, chunk

    def _grow(self, size: int) -> Mapping:
        offset = sum(chunk.size for chunk in self.chunks)
        size = max(-(-size // (2 << 20)) * (2 << 20), min(max(offset, 4 << 20), 64 << 20))
        try:
            if os.fstat(self.file).st_size < offset + size:  # it can be larger: what could not be mapped before
                os.ftruncate(self.file, offset + size)
            if os.fstat(self.file).st_nlink or not hasattr(os, "memfd_create"):
                os.posix_fallocate(self.file, offset, size)  # a full /dev/shm: an error here, no SIGBUS later
            self.chunks.append(Mapping(self.file, offset, size))
        except OSError as error:  # limits of this process (ulimit -v, -f), or no memory
            raise OSError(error.errno, f"no shared memory for {size} bytes more: {error.strerror}") from None
        return self.chunks[-1]

    def collect(self) -> None:
        """Takes back what was released; memory beyond KEEP goes to the system."""
        if not self.returned:
            return
        while self.returned:
            offset = self.returned.popleft()
            block = self.blocks.get(offset)
            if block is None:
                raise ProtocolError(f"block {offset} was released more often than it was sent")
            block[1] -= 1
            if block[1] == 0:
                del self.blocks[offset]
                block[2].give(offset, offset + -(-block[0] // PAGE) * PAGE)
        warm = [chunk for chunk in self.chunks if chunk.unused() and not chunk.cold]
        excess = sum(chunk.size for chunk in warm) - KEEP
        for chunk in warm:
            if excess <= 0:
                break
            chunk.map.madvise(9)  # MADV_REMOVE
            chunk.cold, excess = True, excess - chunk.size

    def find(self, address: int, size: int) -> tuple[int, int] | None:
        """The block with this memory, and the memory's place in it."""
        for chunk in self.chunks:
            if chunk.address <= address < chunk.address + chunk.size:
                place = address - chunk.address + chunk.offset
                for start, block in self.blocks.items():
                    if start <= place and place + size <= start + block[0]:
                        return start, place - start
        return None


class Borrowed:
    """The other side's arena: its blocks are used in place and released."""

    def __init__(self, file: int):
        self.file = file
        self.mappings: dict[tuple[int, int], Mapping] = {}
        self.live: dict[int, list] = {}  # offset -> [uses, address, size]
        self.released: collections.deque[int] = collections.deque()
        self.lock = threading.Lock()  # the control thread takes releases; finalizers never take it

    def borrow(self, chunk_offset: int, chunk_size: int, offset: int, size: int) -> ctypes.Array:
        inside = chunk_offset <= offset and offset + size <= chunk_offset + chunk_size
        if not (inside and size and chunk_offset % PAGE == 0
                and chunk_offset + chunk_size <= os.fstat(self.file).st_size):
            raise ProtocolError(f"a block of {size} bytes at {offset} lies outside the shared memory")
        mapping = self.mappings.get((chunk_offset, chunk_size))
        if mapping is None:
            if len(self.mappings) >= 4096:
                raise ProtocolError("more than 4096 parts of shared memory")
            mapping = self.mappings[chunk_offset, chunk_size] = Mapping(self.file, chunk_offset, chunk_size)
        buffer = mapping.buffer(offset, size)
        with self.lock:
            self.live.setdefault(offset, [0, mapping.address + offset - chunk_offset, size])[0] += 1
        weakref.finalize(buffer, self._release, offset).atexit = False
        return buffer

    def _release(self, offset: int) -> None:
        self.released.append(offset)

    def take_released(self, most: int) -> list[int]:
        """Blocks that nothing here uses any more; the owner is to be told."""
        result: list[int] = []
        if not self.released:
            return result
        with self.lock:
            while self.released and len(result) < most:
                offset = self.released.popleft()
                result.append(offset)
                self.live[offset][0] -= 1
                if self.live[offset][0] == 0:
                    del self.live[offset]
        return result

    def find(self, address: int, size: int) -> tuple[int, int] | None:
        with self.lock:
            for offset, (_, start, length) in self.live.items():
                if start <= address and address + size <= start + length:
                    return offset, address - start
        return None


# ---- values -------------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def has_no_numbers(value) -> bool:
    """Whether it is a tensor of TensorFlow with elements that DLPack has no type for (strings, variants, resources).

    Asked for a capsule of one, TensorFlow ends the process (a CHECK in TFE_HandleToDLPack; seen with 2.21)."""
    kind = getattr(value, "dtype", None)
    if kind is None or type(value).__module__.partition(".")[0] != "tensorflow":
        return False
    return not any(getattr(kind, f"is_{name}", False) for name in ("bool", "integer", "floating", "complex"))


def _of_dlpack(value) -> tuple[str, tuple, int, object]:
    """Type, shape and address of a tensor on the CPU, and what keeps it alive."""
    if has_no_numbers(value):
        raise Unsendable(f"a {type(value).__name__} with elements of type {getattr(value, 'dtype', None)!r} cannot be sent: "
                         "send its numpy().tolist(), for instance")
    if getattr(value, "requires_grad", False):
        value = value.detach()
    for resolve in ("resolve_conj", "resolve_neg"):  # torch's views that change sign when they are read
        value = getattr(value, resolve, lambda value=value: value)()
    try:
        device = value.__dlpack_device__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # a device that DLPack has no number for
        raise Unsendable(f"a {type(value).__name__} cannot be sent: {error}") from None
    if int(device[0]) not in (1, 3):
        raise Unsendable(f"a {type(value).__name__} on device {tuple(map(int, device))} cannot be sent: copy it to "
                         "the CPU first (memory of a GPU is not shared between processes)")
    capsule, tensor = _open_dlpack(value)
    if not _is_contiguous(tensor) and hasattr(value, "contiguous"):
        capsule, tensor = _open_dlpack(value.contiguous())
    if not _is_contiguous(tensor):
        raise Unsendable(f"a {type(value).__name__} that is not contiguous cannot be sent")
    code, size = tensor.code, tensor.bits // 8
    kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}.get(code)
    if tensor.lanes != 1 or (kind is None and (code, size) != (4, 2)):
        raise Unsendable(f"a {type(value).__name__} with elements of DLPack's type {code}, {tensor.bits} bits, cannot be sent")
    name = "bfloat16" if kind is None else ("|" if size == 1 else "<") + kind + str(size)
    return name, tuple(tensor.shape[: tensor.ndim]), (tensor.data or 0) + tensor.byte_offset, capsule


def _open_dlpack(value) -> tuple:
    """The capsule, which keeps the tensor alive, and the tensor."""
    try:
        capsule = value.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # sparse, quantized, types of elements without a code
        raise Unsendable(f"a {type(value).__name__} cannot be sent: {error}") from None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return capsule, _DLTensor.from_address(pointer(capsule, b"dltensor"))


def _is_contiguous(tensor: _DLTensor) -> bool:
    if not tensor.strides:
        return True
    shape, strides, step = tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim], 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != step and 0 not in shape:
            return False
        step *= length
    return True


def _numpy():
    """NumPy, if this environment has one; it is imported when the first array comes, not before."""
    try:
        import numpy
    except Exception:  # a broken NumPy is none
        return None
    return numpy


def _dtype(numpy, name: str):
    if name[0] in "<>|":
        try:
            return numpy.dtype(name)
        except TypeError as error:
            raise ProtocolError(f"{name!r} is no type of elements: {error}") from None
    try:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return None  # it can still be a tensor


# Functions of these take nothing but tensors: without setup, arrays are made ones first, in place where that goes.
_TENSORS = {"torch": "from_numpy", "paddle": "to_tensor"}


def _bits(name: str) -> str:
    return "<i2" if name == "bfloat16" else "|u1"


def _tensor_of_bits(name: str, bits, frameworks: tuple = tuple(_TENSORS)):
    """Elements of a type that NumPy has not by itself, as a tensor of a framework that this process uses."""
    for framework in frameworks:
        module = sys.modules.get(framework)
        kind = getattr(module, name, None)
        if kind is not None:
            return getattr(module, _TENSORS[framework])(bits).view(kind)
    raise Unsendable(f"an array of {name} came: this environment has no ml_dtypes to hold it, and has not imported torch or paddle")


class Encoder:
    """One message: its bytes, and the blocks of shared memory that it names."""

    __slots__ = ("link", "out", "entries", "taken")

    def __init__(self, link: Link):
        self.link = link
        self.out = bytearray(HEAD)
        self.entries = bytearray()
        self.taken: list[int] = []  # blocks of our arena with one use for this message

    def value(self, value, depth: int = 0) -> None:
        kind, out = type(value), self.out
        if kind is str:
            self._bytes(b"s", b"S", value.encode("utf-8", "surrogatepass"))
        elif kind is bytes:
            if len(value) < INLINE:  # written out here: the commonest of all
                out += _TAG_U32.pack(b"b", len(value))
                out += value
            else:
                self._bytes(b"b", b"B", value)
        elif kind is int:
            self._int(value)
        elif kind is float:
            out += _TAG_F64.pack(b"f", value)
        elif value is None:
            out += b"N"
        elif kind is bool:
            out += b"T" if value else b"F"
        elif kind is tuple or kind is list or kind is dict:
            self._container(kind, value, depth + 1)
        else:
            self._other(value, depth)

    def _int(self, value: int) -> None:
        if -(1 << 63) <= value < 1 << 63:
            self.out += _TAG_I64.pack(b"i", value)
            return
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        self.out += _TAG_U32.pack(b"I", len(data)) + data

    def _container(self, kind, value, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unsendable(f"a value is nested deeper than {MAX_DEPTH}, or contains itself")
        self.out += _TAG_U32.pack(b"d" if kind is dict else b"t" if kind is tuple else b"l", len(value))
        if kind is dict:
            for key, item in value.items():
                self.value(key, depth)
                self.value(item, depth)
        else:
            for item in value:
                self.value(item, depth)

    def _bytes(self, small: bytes, large: bytes, data) -> None:
        if len(data) < INLINE:
            self.out += _TAG_U32.pack(small, len(data))
            self.out += data
            return
        index, chunk, place = self._block(len(data))
        memoryview(chunk.map)[place:place + len(data)] = data
        self.out += _TAG_U32.pack(large, index) + _U64.pack(0) + _U64.pack(len(data))

    def _block(self, size: int) -> tuple[int, Mapping, int]:
        """A new block for this message: its number there, its chunk, its place in the chunk."""
        offset, chunk = self.link.arena.take(size)
        self.taken.append(offset)
        self.link.copied += size
        return self._entry(0, chunk.offset, chunk.size, offset, size), chunk, offset - chunk.offset

    def _entry(self, *fields: int) -> int:
        self.entries += ENTRY.pack(*fields)
        return len(self.entries) // ENTRY.size - 1

    def _in_place(self, address: int, size: int) -> tuple[int, int] | None:
        """Memory that is shared already is named, not copied: number of the block, place in it."""
        found = self.link.arena.find(address, size)
        if found:
            block = self.link.arena.blocks[found[0]]
            block[1] += 1
            self.taken.append(found[0])
            self.link.shared += size
            return self._entry(SHARED, block[2].offset, block[2].size, found[0], block[0]), found[1]
        found = self.link.borrowed.find(address, size)
        if found:
            self.link.shared += size
            return self._entry(YOURS | SHARED, 0, 0, found[0], self.link.borrowed.live[found[0]][2]), found[1]
        return None

    def _other(self, value, depth: int) -> None:
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            self._ndarray(numpy, value, 0, depth)
        elif numpy is not None and isinstance(value, numpy.generic):
            self._ndarray(numpy, numpy.asarray(value), SCALAR, depth)
        elif isinstance(value, (bytearray, memoryview)) or type(value).__module__ == "array":
            self._memory(memoryview(value))
        elif hasattr(type(value), "__array_interface__") and _numpy():  # pictures of PIL, which speak Arrow as well
            self._ndarray(_numpy(), _numpy().asarray(value), 0, depth)
        elif hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
            self._arrow(value)
        elif hasattr(value, "__dlpack__"):
            name, shape, address, keep = _of_dlpack(value)
            self._array(name, shape, 0, address, int(name[2:] if name[0] in "<|" else 2))
            del keep
        elif numpy is not None and hasattr(value, "__array__") and callable(value.__array__):
            self._ndarray(numpy, numpy.asarray(value), 0, depth)
        else:
            self._subclass(value, depth)

    def _subclass(self, value, depth: int) -> None:
        kinds: tuple = (bytes, int, float, tuple, list, dict)
        for kind in kinds:
            if isinstance(value, kind):
                self.value(kind(value), depth)
                return
        if isinstance(value, str):
            self.value(str.__str__(value), depth)
            return
        if type(value) is complex:
            self.out += b"c" + struct.pack("<dd", value.real, value.imag)
        elif self.link.pickle:
            import pickle

            self._bytes(b"p", b"P", pickle.dumps(value, 4))
        else:
            raise Unsendable(f"a {type(value).__module__}.{type(value).__qualname__} cannot be sent: expected arrays (NumPy, "
                             "DLPack, Arrow), str, bytes, numbers, bool, None, or lists, tuples and dicts of these")

    def _array_head(self, name: str, shape: tuple, flags: int) -> None:
        self.out += struct.pack("<cBB", b"a", flags, len(name)) + name.encode()
        self.out += struct.pack(f"<B{len(shape)}Q", len(shape), *shape)

    def _array_place(self, index: int, offset: int = 0) -> None:
        self.out += b"\1" + _U32.pack(index) + _U64.pack(offset)

    def _array(self, name: str, shape: tuple, flags: int, address: int, itemsize: int) -> None:
        """Contiguous elements at an address."""
        size = itemsize
        for length in shape:
            size *= length
        self._array_head(name, shape, flags)
        if size < INLINE:
            self.out += b"\0" + (ctypes.string_at(address, size) if size else b"")
            return
        found = self._in_place(address, size)
        if found:
            self._array_place(*found)
            return
        index, chunk, place = self._block(size)
        ctypes.memmove(chunk.address + place, address, size)
        self._array_place(index)

    def _ndarray(self, numpy, array, flags: int, depth: int) -> None:
        if array.dtype.hasobject:
            raise Unsendable(f"an array of {array.dtype} cannot be sent: expected numbers, bool, text, dates or records of these")
        if hasattr(array, "mask") and hasattr(array, "filled"):
            raise Unsendable("a masked array cannot be sent: send its data and its mask, or filled()")
        if array.dtype.fields:
            self._records(numpy, array, flags, depth + 1)
            return
        name = array.dtype.str if array.dtype.kind != "V" else array.dtype.name
        if not _TYPE.fullmatch(name):
            raise Unsendable(f"an array of {array.dtype} cannot be sent")
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            array, flags = array.T, flags | FORTRAN
        if array.flags.c_contiguous or array.nbytes < INLINE:
            array = array if array.flags.c_contiguous else array.copy()
            self._array(name, array.shape, flags, array.__array_interface__["data"][0], array.dtype.itemsize)
            return
        self._array_head(name, array.shape, flags)
        index, chunk, place = self._block(array.nbytes)  # the one copy also straightens it
        numpy.copyto(numpy.ndarray(array.shape, array.dtype, chunk.map, place), array)
        self._array_place(index)

    def _records(self, numpy, array, flags: int, depth: int) -> None:
        """The fields, and the elements as bytes: one more dimension."""
        if depth > MAX_DEPTH:
            raise Unsendable(f"a value is nested deeper than {MAX_DEPTH}")
        try:
            fields = numpy.lib.format.dtype_to_descr(array.dtype)
            if numpy.lib.format.descr_to_dtype(fields) != array.dtype:
                raise ValueError
        except (ValueError, TypeError):
            raise Unsendable(f"an array of {array.dtype} cannot be sent: its fields overlap, or stand in another order") from None

        class Raw:
            __array_interface__ = {"version": 3, "typestr": "|u1", "shape": (*array.shape, array.dtype.itemsize),
                                   "strides": (*array.strides, 1), "data": array.__array_interface__["data"]}
        self.out += b"r" + bytes([flags])
        self.value(fields, depth)
        self._ndarray(numpy, numpy.asarray(Raw()), 0, depth)  # of `array`, which lives as long

    def _memory(self, view: memoryview) -> None:
        name = _TYPES.get(view.format.lstrip("@=<"))
        if name is None:
            raise Unsendable(f"a memoryview of format {view.format!r} cannot be sent: expected numbers")
        shape, itemsize = tuple(view.shape or ()), view.itemsize
        try:
            view = view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())
        except (TypeError, ValueError):  # a format like "<i", which ctypes writes
            view = memoryview(view.tobytes())
        if not view.readonly and view.nbytes:
            address = ctypes.addressof((ctypes.c_ubyte * view.nbytes).from_buffer(view))
            self._array(name, shape, PLAIN, address, itemsize)
            return
        self._array_head(name, shape, PLAIN)
        if view.nbytes < INLINE:
            self.out += b"\0" + view
            return
        index, chunk, place = self._block(view.nbytes)
        memoryview(chunk.map)[place:place + view.nbytes] = view
        self._array_place(index)

    def _arrow(self, value) -> None:
        try:
            import pyarrow
        except ImportError:
            raise Unsendable(f"a {type(value).__name__} is sent as an Arrow stream: this environment has no pyarrow") from None
        try:
            table, single = _arrow_table(pyarrow, value)
        except (TypeError, ValueError, NotImplementedError, pyarrow.ArrowException) as error:
            raise Unsendable(f"a {type(value).__name__} cannot be sent: {error}") from None

        def write(sink) -> None:
            with pyarrow.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)

        counter = pyarrow.MockOutputStream()
        write(counter)
        index, chunk, place = self._block(counter.size())
        write(pyarrow.FixedSizeBufferWriter(pyarrow.py_buffer(memoryview(chunk.map)[place:place + counter.size()])))
        self.out += b"A" + (b"\1" if single else b"\0") + _U32.pack(index)


def _arrow_table(pyarrow, value) -> tuple:
    """A table, and whether it is only there to hold one column."""
    if isinstance(value, pyarrow.RecordBatch):
        return pyarrow.table(value), False
    if isinstance(value, pyarrow.ChunkedArray):
        return pyarrow.table({"": value}), True
    if not hasattr(value, "__arrow_c_stream__"):
        return pyarrow.table({"": pyarrow.array(value)}), True
    try:
        return pyarrow.table(value), False
    except (TypeError, pyarrow.ArrowInvalid):  # a stream of one column: a Series
        return pyarrow.table({"": pyarrow.chunked_array(value)}), True


class Decoder:
    """The values of one message. Every length and count is checked against what is there."""

    __slots__ = ("link", "body", "at", "blocks")

    def __init__(self, link: Link, body: memoryview):
        self.link, self.body, self.at = link, body, 8
        if len(body) < 8:
            raise ProtocolError(f"a body of {len(body)} bytes is shorter than its head")
        if body[:8] == _NO_BLOCKS:
            self.blocks: list[tuple[ctypes.Array, bool]] = []
        else:
            self._blocks(*_TWO_U32.unpack_from(body))

    def _blocks(self, releases: int, blocks: int) -> None:
        left = len(self.body) - 8
        if blocks > MAX_BLOCKS or releases * 8 + blocks * ENTRY.size > left:
            raise ProtocolError(f"{releases} releases and {blocks} blocks do not fit into {left} bytes")
        self.link.arena.returned.extend(struct.unpack_from(f"<{releases}Q", self.body, 8))
        self.at += 8 * releases
        # All of them at once: if a value is refused, they are released all the same.
        self.blocks = [self._block() for _ in range(blocks)]

    def _block(self) -> tuple[ctypes.Array, bool]:
        flags, *where = self._unpack(ENTRY)
        if flags & YOURS:
            return self.link.own_again(where[2], where[3]), True
        return self.link.borrowed.borrow(*where), bool(flags & SHARED)

    def only_value(self):
        try:
            value = self.value(0)
        except (struct.error, IndexError):
            raise ProtocolError(f"the message of {len(self.body)} bytes ends within a value") from None
        except UnicodeDecodeError as error:
            raise ProtocolError(f"text that is not UTF-8: {error}") from None
        if self.at != len(self.body):
            raise ProtocolError(f"{len(self.body) - self.at} bytes follow the value")
        return value

    def value(self, depth: int):
        at, body = self.at, self.body
        tag = body[at]
        if tag == _BYTES or tag == _STR:  # every call has one: no function more for it
            start = at + 5
            self.at = end = start + _U32.unpack_from(body, at + 1)[0]
            if end > len(body):
                raise ProtocolError(f"{end - start} bytes at {start} reach beyond the message's {len(body)}")
            return bytes(body[start:end]) if tag == _BYTES else str(body[start:end], "utf-8", "surrogatepass")
        if tag in _CONTAINERS:
            if depth >= MAX_DEPTH:
                raise ProtocolError(f"a value is nested deeper than {MAX_DEPTH}")
            self.at = at + 1
            if tag == _RECORDS:
                return self._records(depth + 1)
            count = self._count(2 if tag == _DICT else 1)
            if not count:
                return {} if tag == _DICT else () if tag == _TUPLE else []
            return self._dict(depth + 1, count) if tag == _DICT else self._list(depth + 1, tag == _TUPLE, count)
        self.at = at + 1
        reader = self._readers.get(tag)
        if reader is None:
            raise ProtocolError(f"unknown tag {tag} at {at}")
        return reader(self)

    def _unpack(self, layout: struct.Struct) -> tuple:
        at = self.at
        self.at = at + layout.size
        return layout.unpack_from(self.body, at)

    def _take(self, size: int) -> memoryview:
        at = self.at
        self.at = end = at + size
        if end > len(self.body):
            raise ProtocolError(f"{size} bytes at {at} reach beyond the message's {len(self.body)}")
        return self.body[at:end]

    def _sized(self) -> memoryview:
        return self._take(self._unpack(_U32)[0])

    def _count(self, least: int) -> int:
        count = _U32.unpack_from(self.body, self.at)[0]
        self.at += 4
        if count * least > len(self.body) - self.at:
            raise ProtocolError(f"{count} values do not fit into {len(self.body) - self.at} bytes")
        return count

    def _list(self, depth: int, as_tuple: bool, count: int):
        values = [self.value(depth) for _ in range(count)]
        return tuple(values) if as_tuple else values

    def _dict(self, depth: int, count: int) -> dict:
        result = {}
        for _ in range(count):
            key = self.value(depth)
            value = self.value(depth)
            try:
                result[key] = value
            except TypeError:
                raise ProtocolError(f"a {type(key).__name__} is a key of a dict") from None
        return result

    def _part(self, size: int | None = None) -> tuple[ctypes.Array, int, int, bool]:
        """A part of a block: the block, offset, size, whether the sender can still see it."""
        index, offset = self._unpack(_U32)[0], self._unpack(_U64)[0]
        size = self._unpack(_U64)[0] if size is None else size
        if index >= len(self.blocks) or offset + size > len(self.blocks[index][0]):
            raise ProtocolError(f"{size} bytes at {offset} of block {index} lie outside of the blocks sent")
        return self.blocks[index][0], offset, size, self.blocks[index][1]

    def _large(self) -> memoryview:
        block, offset, size, _ = self._part()
        return memoryview(block)[offset:offset + size]

    def _array(self):
        flags, length = self._take(2)
        name = bytes(self._take(length)).decode("latin-1")
        if not _TYPE.fullmatch(name):
            raise ProtocolError(f"{name!r} is no type of elements")
        rank = self._take(1)[0]
        if rank > 64:
            raise ProtocolError(f"an array of {rank} dimensions")
        shape = struct.unpack(f"<{rank}Q", self._take(8 * rank))
        if max(shape, default=0) >> 48 or (rank and flags & SCALAR):
            raise ProtocolError(f"an array of shape {shape} with flags {flags}")
        numpy = None if flags & PLAIN else _numpy()
        dtype = _dtype(numpy, name) if numpy else None
        as_tensor = numpy is not None and dtype is None
        if as_tensor:
            dtype = numpy.dtype(_bits(name))
        size = dtype.itemsize if dtype is not None else _itemsize(name)
        for length in shape:
            size *= length
        if self._take(1)[0]:
            block, offset, _, shared = self._part(size)
            data: ctypes.Array | bytearray = block
        else:
            data, offset, shared = bytearray(self._take(size)), 0, False
        if numpy is None or dtype is None:
            return _plain(name, shape, flags, memoryview(data).cast("B")[offset:offset + size], shared)
        try:
            array = numpy.ndarray(shape, dtype, data, offset)
        except (ValueError, OverflowError) as error:
            raise ProtocolError(f"an array of shape {shape}: {error}") from None
        if as_tensor:  # which cannot be read-only
            return _tensor_of_bits(name, (array.T if flags & FORTRAN else array).copy() if shared or flags & FORTRAN else array)
        if shared:
            array.flags.writeable = False
        return array[()] if flags & SCALAR else array.T if flags & FORTRAN else array

    def _records(self, depth: int):
        flags, fields, raw = self._take(1)[0], self.value(depth), self.value(depth)
        numpy = _numpy()
        if numpy is None:
            raise Unsendable("an array of records came: this environment has no NumPy to hold it")
        try:
            dtype = numpy.lib.format.descr_to_dtype(fields)
            if dtype.hasobject or not dtype.fields or raw.dtype != "u1" or raw.shape[-1] != dtype.itemsize:
                raise ValueError("they do not fit the elements")
            raw = numpy.ascontiguousarray(raw)
            array = numpy.ndarray(raw.shape[:-1], dtype, raw.data) if raw.size else numpy.zeros(raw.shape[:-1], dtype)
        except Exception as error:  # whatever NumPy thinks of it
            raise ProtocolError(f"{str(fields)[:200]} are no fields of records: {error}") from None
        return array[()] if flags & SCALAR else array

    def _arrow(self):
        single, index = self._take(1)[0], self._unpack(_U32)[0]
        if index >= len(self.blocks):
            raise ProtocolError(f"block {index} of {len(self.blocks)}")
        try:
            import pyarrow
        except ImportError:
            raise Unsendable("an Arrow value came: this environment has no pyarrow to hold it") from None
        try:
            table = pyarrow.ipc.open_stream(pyarrow.py_buffer(self.blocks[index][0])).read_all()
        except (pyarrow.ArrowException, OSError) as error:
            raise ProtocolError(f"no Arrow stream: {error}") from None
        return table.column(0) if single else table

    def _pickle(self, data: memoryview):
        if not self.link.pickle:
            raise ProtocolError("a pickle came, and this side did not agree to any")
        import pickle

        return pickle.loads(data)

    _readers = {ord(tag): reader for tag, reader in {
        "N": lambda self: None, "T": lambda self: True, "F": lambda self: False,
        "i": lambda self: self._unpack(_I64)[0], "f": lambda self: self._unpack(_F64)[0],
        "I": lambda self: int.from_bytes(self._sized(), "little", signed=True),
        "c": lambda self: complex(self._unpack(_F64)[0], self._unpack(_F64)[0]),
        "S": lambda self: str(self._large(), "utf-8", "surrogatepass"), "B": lambda self: bytes(self._large()),
        "a": _array, "A": _arrow,
        "p": lambda self: self._pickle(self._sized()), "P": lambda self: self._pickle(self._large()),
    }.items()}


def _itemsize(name: str) -> int:
    if name in _FORMATS:
        return struct.calcsize(_FORMATS[name])
    kind, size = name[1], name[2:]
    if kind in "cSU" and size.isdigit():
        return int(size) * (4 if kind == "U" else 1)
    raise Unsendable(f"an array of {name} came: this environment has no NumPy to hold it")


def _plain(name: str, shape: tuple, flags: int, data: memoryview, shared: bool):
    """Without NumPy an array is a memoryview, and a scalar a number, str or bytes."""
    if name not in _FORMATS:
        return _plain_scalar(name, flags, data)
    if flags & SCALAR:
        return struct.unpack("<" + _FORMATS[name], data)[0]
    if flags & FORTRAN:
        data, shape, shared = memoryview(_straightened(data.cast(_FORMATS[name]), shape)), shape[::-1], False
    return _cast(data.toreadonly() if shared else data, _FORMATS[name], shape)


def _cast(data: memoryview, format: str, shape: tuple) -> memoryview:
    if 0 in shape and len(shape) > 1:  # which cast() does not make
        kind = _ELEMENTS.get(format)
        if kind is None:
            raise Unsendable(f"an array of {_TYPES[format]} of shape {shape} came: this environment has no NumPy to hold it")
        try:
            for length in reversed(shape):
                kind = kind * length
            return memoryview(kind())
        except (OverflowError, ValueError, MemoryError) as error:
            raise ProtocolError(f"an array of shape {shape}: {error}") from None
    try:
        return data.cast(format) if 0 in shape else data.cast(format, shape)  # type: ignore[call-overload]
    except ValueError:  # numbers of 16 bits, which Python knows from 3.12 on
        numpy = _numpy()
        if numpy is None:
            raise Unsendable(f"an array of {_TYPES[format]} came: this Python has nothing to hold it") from None
        return memoryview(numpy.frombuffer(data, _TYPES[format]).reshape(shape))


def _plain_scalar(name: str, flags: int, data: memoryview):
    if not flags & SCALAR:
        raise Unsendable(f"an array of {name} came: this environment has no NumPy to hold it")
    order, kind, size = ">" if name[0] == ">" else "<", name[1], len(data)
    if kind == "U":
        return str(data, "utf-32-be" if order == ">" else "utf-32-le", "surrogatepass").rstrip("\0")
    if kind == "S":
        return bytes(data).rstrip(b"\0")
    if size not in (8, 16):
        raise Unsendable(f"a number of {name} came: this environment has no NumPy to hold it")
    return complex(*struct.unpack(order + ("ff" if size == 8 else "dd"), data))


def _straightened(data: memoryview, shape: tuple) -> bytes:
    """Elements in Fortran's order, of the reversed shape, in C's."""
    shape = shape[::-1]

    def part(data: memoryview, at: int) -> bytes:
        if at >= len(shape) - 1 or not len(data):
            return data.tobytes()
        return b"".join(part(data[i::shape[at]], at + 1) for i in range(shape[at]))

    return part(data, 0)


class Link:
    """One end of the conversation: a stream socket, our arena, and the other side's."""

    def __init__(self, stream: socket.socket, arena: int, borrowed: int):
        self.socket = stream
        self.arena, self.borrowed = Arena(arena), Borrowed(borrowed)
        self.pickle = False
        self.copied = self.shared = 0  # bytes of large data that were sent with a copy, and without
        self.reading = False  # a message has begun to come
        self._room = memoryview(bytearray(64 << 10))

    def encode(self, kind: int, call: int, value) -> bytearray:
        message = Encoder(self)
        try:
            message.value(value)
            out, entries = message.out, message.entries
            blocks, size = len(entries) // ENTRY.size, len(out) - HEADER.size + len(entries)
            if blocks > MAX_BLOCKS or size > MAX_BODY - (8 << 16):
                raise Unsendable(f"a message of {size} bytes and {blocks} large values is too large")
        except BaseException:
            self.arena.returned.extend(message.taken)
            raise
        if entries or self.borrowed.released:
            releases = self.borrowed.take_released(1 << 16)
            out[HEAD:HEAD] = struct.pack(f"<{len(releases)}Q", *releases) + entries
            _TWO_U32.pack_into(out, HEADER.size, len(releases), blocks)
        HEADER.pack_into(out, 0, b"cw", VERSION, kind, len(out) - HEADER.size, call)
        return out

    def own_again(self, offset: int, size: int) -> ctypes.Array:
        """A block of our own arena that comes back in place."""
        block = self.arena.blocks.get(offset)
        if block is None or block[0] != size:
            raise ProtocolError(f"{size} bytes at {offset} are no block of the receiver's shared memory")
        block[1] += 1
        buffer = block[2].buffer(offset, size)
        weakref.finalize(buffer, self.arena.returned.append, offset).atexit = False
        return buffer

    def read(self) -> tuple[int, int, memoryview]:
        """The next message: kind, number of the call, body (valid until the next read)."""
        room = self._room
        have = self._receive(room)  # all of it, as a rule
        self.reading = True
        while have < HEADER.size:
            have += self._receive(room[have:])
        magic, version, kind, size, call = HEADER.unpack_from(room)
        if magic != b"cw" or version != VERSION:
            raise ProtocolError(f"expected version {VERSION} of the protocol, found {bytes(magic)!r} {version}")
        if size > MAX_BODY:
            raise ProtocolError(f"a message of {size} bytes; at most {MAX_BODY} are taken")
        total = HEADER.size + size
        if have > total:
            raise ProtocolError(f"{have - total} bytes follow a message before its answer")
        if total > len(room):
            body = self._read_long(bytearray(room[HEADER.size:have]), size)
        else:
            while have < total:
                have += self._receive(room[have:total])
            body = room[HEADER.size:total]
        self.reading = False
        return kind, call, body

    def _read_long(self, data: bytearray, size: int) -> memoryview:
        while len(data) < size:  # memory grows with what came, not with what was announced
            part = self.socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return memoryview(data)

    def _receive(self, room: memoryview) -> int:
        count = self.socket.recv_into(room)
        if not count:
            raise EOFError
        return count

    def decode(self, body: memoryview):
        return Decoder(self, body).only_value()


# ---- the worker ---------------------------------------------------------------------------------


class Cancelled(BaseException):
    """Raised within a call that its caller gave up."""


class Packets:
    """The control socket: short messages, whole ones (SOCK_SEQPACKET)."""

    def __init__(self, packets: socket.socket):
        self.socket = packets

    def send(self, kind: int, call: int = 0, releases: list[int] | tuple = ()) -> None:
        body = struct.pack(f"<II{len(releases)}Q", len(releases), 0, *releases)
        self.socket.send(HEADER.pack(b"cw", VERSION, kind, len(body), call) + body)

    def receive(self) -> tuple[int, int, tuple]:
        data = self.socket.recv(64 << 10)
        if not data:
            raise EOFError
        if len(data) < HEAD:
            raise ProtocolError(f"a packet of {len(data)} bytes")
        magic, version, kind, size, call = HEADER.unpack_from(data)
        count = _U32.unpack_from(data, HEADER.size)[0]
        if magic != b"cw" or version != VERSION or size != len(data) - HEADER.size or count * 8 != size - 8:
            raise ProtocolError(f"no packet of version {VERSION} of the protocol")
        return kind, call, struct.unpack_from(f"<{count}Q", data, HEAD)


_PUBLIC = re.compile(r"[^_.][^.]*(\.[^_.][^.]*)*\Z")


class Target:
    """What the names of calls mean here."""

    def __init__(self, settings: dict):
        path, setup, self.framework = settings["path"], settings["setup"], settings["framework"]
        self.object = None
        if setup:
            sys.path.insert(0, path)
            module, _, factory = setup.partition(":")
            self.object = getattr(importlib.import_module(module), factory)()
            if self.object is None:
                raise TypeError(f"{setup} returned None: expected an object whose methods can be called")
        elif self.framework:
            importlib.import_module(self.framework)

    def find(self, name: str):
        if not _PUBLIC.match(name):
            raise AttributeError(f"{name!r} is no public name")
        if self.object is not None:
            found = getattr(self.object, name)
        else:
            found = self._dotted(name)
        if not callable(found):
            raise TypeError(f"{name!r} is a {type(found).__name__}, which cannot be called")
        if self.object is None and self.framework in _TENSORS and "numpy" in sys.modules and not name.endswith("from_numpy"):
            return lambda *args, **named: found(*self._tensors(args), **self._tensors(named))
        return found

    def _tensors(self, value):
        if type(value) in (list, tuple):
            return type(value)(map(self._tensors, value))
        if type(value) is dict:
            return {key: self._tensors(item) for key, item in value.items()}
        if not isinstance(value, sys.modules["numpy"].ndarray):
            return value
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an array is read-only
            if value.dtype.kind == "V" and _TYPE.fullmatch(value.dtype.name):  # of ml_dtypes
                return _tensor_of_bits(value.dtype.name, value.view(_bits(value.dtype.name)), (self.framework,))
            return getattr(sys.modules[self.framework], _TENSORS[self.framework])(value)

    def _dotted(self, name: str):
        if not name.startswith(self.framework + "."):
            raise AttributeError(f"{name!r} is no name of {self.framework}: without setup, names begin with '{self.framework}.'")
        path = self.framework
        found = sys.modules[path]
        for part in name[len(path) + 1:].split("."):
            path += "." + part
            try:
                found = getattr(found, part)
            except AttributeError:
                if not isinstance(found, type(sys)):
                    raise
                found = self._submodule(path)
        return found

    def _submodule(self, path: str):
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        raise AttributeError(f"there is no {path}")

    def agrees_to_pickle(self) -> bool:
        return getattr(self.object, "allow_pickle", False) is True

    def close(self) -> None:
        close = getattr(self.object, "close", None)
        if callable(close):
            close()


class Server:
    def __init__(self, link: Link, control: Packets, parent: int, tells_of_crashes: bool):
        self.link, self.control, self.parent, self.tells_of_crashes = link, control, parent, tells_of_crashes
        self.process = os.getpid()
        self.current: int | None = None  # the call whose code runs
        self.cancelled: set[int] = set()
        self.target: Target | None = None

    def serve(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to judge
        signal.signal(signal.SIGURG, self._interrupt)
        threading.Thread(target=self._listen, name="cohabit-control", daemon=True).start()
        try:
            while True:
                self._next()
        except EOFError:
            pass
        if self.target is not None:
            self.target.close()

    def _next(self) -> None:
        kind, call, body = self.link.read()
        if kind != CALL:
            raise ProtocolError(f"a message of kind {kind} where a call was expected")
        try:
            kind, answer = self._answer(call, body)
        except Cancelled:
            kind, answer = ERROR, ("Cancelled", "the caller gave up", "", (), None)
        self.cancelled.discard(call)
        try:
            frame = self.link.encode(kind, call, answer)
        except Exception as error:
            frame = self.link.encode(ERROR, call, describe(error))
        del answer
        self.link.socket.sendall(frame)

    def _answer(self, call: int, body: memoryview) -> tuple:
        try:
            self.current = call
            try:
                if call in self.cancelled:
                    raise Cancelled
                message: Any = self.link.decode(body)
                name, args, named = message
                result = (self._start if call == 0 else self._find(name))(*args, **named)
                self._end_fork(None)
                return RESULT, result
            finally:
                self.current = None
        except Cancelled:
            self._end_fork(None)
            raise
        except BaseException as error:
            self._end_fork(error)  # whatever it is, SystemExit too, it is the call's
            return ERROR, describe(error)

    def _end_fork(self, error: BaseException | None) -> None:
        """A child that the call's code forked came out of it: it is no worker, and must not answer for one."""
        if os.getpid() == self.process:
            return
        status = 0
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        elif error is not None:
            status = 1
            sys.stderr.write(describe(error)[2])
        for output in (sys.stdout, sys.stderr):
            try:
                output.flush()
            except (AttributeError, OSError, ValueError):
                pass
        os._exit(status & 255)

    def _find(self, name: str):
        if name == "__stats__":
            return lambda: {"copied": self.link.copied, "shared": self.link.shared}
        if self.target is None:
            raise ProtocolError("a call before the start")
        return self.target.find(name)

    def _start(self, settings: dict) -> dict:
        self.target = Target(settings)
        self.link.pickle = settings["pickle"] and self.target.agrees_to_pickle()
        if self.tells_of_crashes:
            map_unwinder()  # only now: what was imported has had the first choice
        return {"python": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "pid": os.getpid(),
                "pickle": self.link.pickle}

    def _interrupt(self, *_) -> None:
        # In the main thread, between two of its steps: the call cannot end meanwhile.
        if self.current is not None and self.current in self.cancelled:
            self.current = None
            raise Cancelled

    def _listen(self) -> None:
        """The control thread: answers while a call runs, and ends the process with its caller."""
        self.control.socket.settimeout(1)
        while True:
            try:
                self._control(*self.control.receive())
            except socket.timeout:
                if os.getppid() != self.parent:
                    end_group()
            except Exception:  # the caller is gone, or is none of ours
                end_group()

    def _control(self, kind: int, call: int, released: tuple) -> None:
        self.link.arena.returned.extend(released)
        if kind == PING:
            self.control.send(PONG, 0, self.link.borrowed.take_released(1000))
        elif kind == CANCEL:
            if len(self.cancelled) > 1000:  # of calls that ended before the word came
                self.cancelled.clear()
            self.cancelled.add(call)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
        elif kind == CLOSE:
            self.link.socket.shutdown(socket.SHUT_RD)  # the call that runs is answered, then it ends


def end_group() -> None:
    """Ends this process at once, and what it started, if it leads a group of its own."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def describe(error: BaseException) -> tuple:
    """An exception as data: type, text, traceback, the names of its builtin base classes, an OSError's number."""
    try:
        return _describe(error)
    except Exception:  # a type that does not let itself be asked
        import traceback

        places = "".join(traceback.format_tb(error.__traceback__)[-100:])
        return type.__repr__(type(error))[:200], "(it cannot be described)", places[-(64 << 10):], (), None


def _describe(error: BaseException) -> tuple:
    import builtins
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(text) > 64 << 10:
        text = text[:16 << 10] + f"\n... {len(text) - (64 << 10)} characters left out ...\n" + text[-(48 << 10):]
    bases = tuple(kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception:
        message = "(its text cannot be made)"
    errno = getattr(error, "errno", None) if isinstance(error, OSError) else None
    return name, message[:16 << 10], text, bases, errno if type(errno) is int else None


def die_with_parent(parent: int) -> None:
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass  # the control socket's end and getppid() tell it too
    if os.getppid() != parent:  # it died before the line above, or is not the one that runs this
        os.write(2, b"cohabit worker: the caller is gone, or the worker's Python was started by way of another process\n")
        os._exit(1)


def forget_crash_library() -> None:
    """It was preloaded for this process, not for those that this one starts."""
    before = os.environ.pop("LD_PRELOAD", "").rpartition(":")[0]
    if before:
        os.environ["LD_PRELOAD"] = before
    os.environ.pop("COHABIT_CRASH_REPORT", None)


def map_unwinder() -> None:
    """What finds the frames of a crash. C++ code brings it; a process without one gets it as glibc itself would map it."""
    try:
        with open("/proc/self/maps") as maps:
            if not any("/libgcc_s" in line for line in maps):
                ctypes.CDLL("libgcc_s.so.1")
    except OSError:
        pass  # then there is the place of a crash alone


def main() -> None:
    import faulthandler

    data, control, ours, theirs, parent, *crash = map(int, sys.argv[1:])
    die_with_parent(parent)
    for file in (data, control, ours, theirs, *crash):
        os.set_inheritable(file, False)
    if crash:
        forget_crash_library()
    stream = socket.socket(fileno=data)
    peer, user, _ = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if (peer, user) != (parent, os.getuid()):
        sys.exit(f"cohabit worker: process {peer} of user {user} is not the caller that started this")
    faulthandler.enable()
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    sys.argv[1:] = []
    try:
        Server(Link(stream, ours, theirs), Packets(socket.socket(fileno=control)), parent, bool(crash)).serve()
    except BaseException:  # no waiting for threads of others: the caller waits
        import traceback

        traceback.print_exc()
        os._exit(70)


if __name__ == "__main__":
    main()
