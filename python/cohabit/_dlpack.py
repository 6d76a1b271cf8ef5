"""One framework's tensor as another's, by DLPack, and whether that made a copy.

DLPack lets the consumer ask the producer for a capsule over its memory. Whether the result lies in that memory is not
said by the protocol's older versions and not by every framework in the newer ones, so it is looked at: the address
in the capsule that was handed over is compared with that of the result.

Ordering on a device: the consumer passes its stream to __dlpack__, and the producer makes it wait. Consumers that
pass none (TensorFlow, older Paddle) get a producer that was waited for before.

Elements may run backwards in memory (negative strides: `array[::-1]`). The protocol allows it and no framework takes it: torch 2.8
ends the process in a C++ exception, paddle 3.3.1 computes with wrong elements. They get a copy.
"""
from __future__ import annotations

import ctypes
import importlib
import warnings
from typing import Any, NamedTuple

CPU = 1  # kDLCPU
_FLAG_IS_COPIED = 1 << 1


class Shared(NamedTuple):
    """A tensor of another framework.

    tensor  the new one
    copied  True: it has memory of its own; False: it lies in the same memory, a change in one is seen in the other;
            None: could not be found out
    how     the same in words
    """

    tensor: Any
    copied: bool | None
    how: str


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _VersionedHead(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64)]


def _api(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class Tap:
    """Stands in front of the producer and notes what it hands over.

    backwards  whether the consumer takes negative strides
    """

    def __init__(self, value: Any, backwards: bool = False):
        self._value, self._backwards = value, backwards
        self.address: int | None = None
        self.elements: tuple[int, int] | None = None  # DLPack's code and bits
        self.is_copied = False
        self.is_compact = True  # row by row, without gaps
        self.had_stream = False
        self.was_refused = False  # this is the copy for a consumer that has refused the first

    def __dlpack__(self, **options: Any) -> Any:
        self.had_stream = options.get("stream") is not None
        try:
            capsule = self._value.__dlpack__(**options)
        except TypeError:  # a producer that knows `stream` at most, as before DLPack 1.0
            capsule = self._value.__dlpack__(**{k: v for k, v in options.items() if k == "stream" and v is not None})
        self.address, self.is_copied = read_capsule(capsule)
        self.elements, self.is_compact = _elements_of(capsule), _is_compact(capsule)
        if self._backwards or not _runs_backwards(capsule):
            return capsule
        self.is_copied = True
        return self._straight().__dlpack__()

    def _straight(self) -> Any:
        if self.__dlpack_device__()[0] != CPU:
            raise BufferError("its elements run backwards in memory (negative strides): make a contiguous copy of it first")
        return importlib.import_module("numpy").from_dlpack(self._value).copy()

    def compacted(self) -> Tap | None:
        """A copy without gaps, for a consumer that has refused it; None: it has none, or it is not on the CPU."""
        if self.is_compact or self.__dlpack_device__()[0] != CPU:
            return None
        try:
            tap = Tap(self._straight())
        except Exception:  # elements that NumPy does not know
            return None
        tap.was_refused = True
        return tap

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._value.__dlpack_device__()
        return int(kind), int(number or 0)


def read_capsule(capsule: Any) -> tuple[int | None, bool]:
    """Address of the first element, and whether the producer says that it made a copy; the capsule stays unused."""
    tensor, flags = _open(capsule)
    if tensor is None:
        return None, False
    return tensor.data + tensor.byte_offset if tensor.data else None, bool(flags & _FLAG_IS_COPIED)


def _open(capsule: Any) -> tuple[_Tensor | None, int]:
    """The tensor in a capsule and its flags; None where the layout is not known."""
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0
    if _is_valid(capsule, b"dltensor_versioned"):
        at = _pointer(capsule, b"dltensor_versioned")
        head = _VersionedHead.from_address(at)
        if head.major == 1:
            return _Tensor.from_address(at + ctypes.sizeof(head)), head.flags
    return None, 0


def _runs_backwards(capsule: Any) -> bool:
    tensor, _ = _open(capsule)
    return tensor is not None and bool(tensor.strides) and min((ctypes.c_int64 * tensor.ndim).from_address(tensor.strides), default=0) < 0


def _elements_of(capsule: Any) -> tuple[int, int] | None:
    tensor, _ = _open(capsule)
    return None if tensor is None else (tensor.code, tensor.bits)


def _is_compact(capsule: Any) -> bool:
    tensor, _ = _open(capsule)
    if tensor is None or not tensor.strides:
        return True
    row = ctypes.c_int64 * tensor.ndim
    step = 1
    for length, stride in zip(reversed(row.from_address(tensor.shape)), reversed(row.from_address(tensor.strides))):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


def _name_of(elements: tuple[int, int]) -> str:
    kinds = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
    return f"{kinds.get(elements[0], f'type {elements[0]} of ')}{elements[1]}"


def _look(exporter: Any) -> tuple[int | None, tuple[int, int] | None]:
    """Address and elements of what has become of it, as far as they are known."""
    interface = getattr(exporter, "__array_interface__", None)
    if isinstance(interface, dict):  # NumPy exports nothing that is read-only
        code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}.get(interface["typestr"][1])
        return interface["data"][0] or None, None if code is None else (code, 8 * int(interface["typestr"][2:]))
    try:
        capsule = exporter.__dlpack__()
        return read_capsule(capsule)[0], _elements_of(capsule)
    except Exception:  # read-only memory, a dtype without a code: then it is not known
        return None, None


def judge(tap: Tap, tensor: Any, exporter: Any) -> Shared:
    """What became of it; `exporter` is the new tensor, or what exports it by DLPack."""
    end, elements = _look(exporter)
    other = ""
    if tap.elements and elements and elements != tap.elements and {tap.elements[0], elements[0]} != {1, 6}:  # bool as uint8
        other = f"; its elements are {_name_of(elements)}, not {_name_of(tap.elements)}"
        framework = type(tensor).__module__.partition(".")[0].replace("jaxlib", "jax")
        warnings.warn(f"share(): {framework} has made {_name_of(elements)} of {_name_of(tap.elements)}",
                      RuntimeWarning, stacklevel=3)
    if tap.was_refused or tap.is_copied:
        return Shared(tensor, True, "copied: it has memory of its own" + other)
    if tap.address is None or end is None:
        return Shared(tensor, None, "whether it was copied could not be found out" + other)
    if end != tap.address:
        return Shared(tensor, True, "copied: it has memory of its own" + other)
    return Shared(tensor, False, "shared: it lies in the same memory" + other)
