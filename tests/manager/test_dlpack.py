"""Addresses in DLPack capsules, old and versioned, laid out by hand after the protocol's header."""
from __future__ import annotations

import ctypes
import struct

import pytest

import places  # noqa: F401  (puts the package on sys.path)
from cohabit._dlpack import Tap, judge, read_capsule

new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


def tensor(data, offset=0):
    """DLTensor: data, device, ndim, dtype, shape, strides, byte_offset."""
    return struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 0, 32, 1, 0, 0, offset)


def old(data, offset=0):
    return tensor(data, offset) + struct.pack("<QQ", 0, 0), b"dltensor"


def versioned(data, offset=0, major=1, flags=0):
    return struct.pack("<IIQQQ", major, 1, 0, 0, flags) + tensor(data, offset), b"dltensor_versioned"


class Producer:
    def __init__(self, layout):
        self.bytes, self.name = ctypes.create_string_buffer(layout[0], len(layout[0])), layout[1]

    def __dlpack__(self, stream=None):
        return new(ctypes.addressof(self.bytes), self.name, None)

    def __dlpack_device__(self):
        return 1, None


@pytest.mark.parametrize("layout, found", [
    (old(4096), (4096, False)), (old(4096, 64), (4160, False)), (old(0), (None, False)),
    (versioned(4096, 8), (4104, False)), (versioned(4096, flags=2), (4096, True)), (versioned(4096, flags=1), (4096, False)),
    (versioned(4096, major=2), (None, False)), ((bytes(200), b"something else"), (None, False)),
])
def test_capsules(layout, found) -> None:
    producer = Producer(layout)
    assert read_capsule(producer.__dlpack__()) == found


def test_what_became_of_it() -> None:
    def share(begin, end):
        tap = Tap(Producer(begin))
        tap.__dlpack__(stream=None, max_version=(1, 0), copy=None)  # a producer that knows the stream only
        assert tap.__dlpack_device__() == (1, 0)
        return judge(tap, "tensor", Producer(end))

    assert share(old(4096), old(4096)).copied is False and share(old(4096), old(8192)).copied is True
    assert share(versioned(4096, flags=2), old(4096)).copied is True and share(old(4096), old(0)).copied is None
    assert share(old(4096), versioned(4000, 96)).copied is False


def test_elements_that_run_backwards_are_copied() -> None:
    """No framework takes them: torch ends the process, paddle computes with others."""
    out = places.run_caller(places.arrays("3.11"), """
import cohabit, numpy
from cohabit._dlpack import _runs_backwards
from cohabit.adapters import ModuleAdapter
class Consumer(ModuleAdapter):
    def from_dlpack(self, module, value):
        assert not _runs_backwards(value.__dlpack__())
        return numpy.from_dlpack(value)
    def exporter(self, module, value):
        return value
manager = cohabit.FrameworkManager(adapters=[Consumer("json")], examine=False)
array = numpy.arange(12).reshape(3, 4)
for value, copied in ((array, False), (array[::-1], True), (array[:, ::-2], True), (array.T, False), (array[::2], False),
                      (array[0, 0], None), (array[:0][::-1], None)):
    for to in ("json", "numpy"):
        shared = manager.share(numpy.asarray(value), to=to)
        assert numpy.array_equal(shared.tensor, value), shared
        assert copied is None or shared.copied == (copied and to == "json"), shared
print("same")
""")
    assert out == "same\n"


def test_elements_that_run_backwards_on_a_device_are_refused() -> None:
    lengths, strides = (ctypes.c_int64 * 1)(2), (ctypes.c_int64 * 1)(-1)
    data = struct.pack("<QiiiBBHQQQ", 4096, 2, 0, 1, 0, 32, 1, ctypes.addressof(lengths), ctypes.addressof(strides), 0)

    class OnDevice(Producer):
        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(BufferError, match="backwards"):
        Tap(OnDevice((data + bytes(16), b"dltensor"))).__dlpack__()
    Tap(OnDevice((data + bytes(16), b"dltensor")), backwards=True).__dlpack__()


def test_what_a_framework_refuses_is_copied_and_other_elements_are_said() -> None:
    """As TensorFlow and JAX do: no gaps, and int32 of int64."""
    out = places.run_caller(places.arrays("3.11"), """
import warnings, cohabit, numpy
from cohabit._dlpack import _is_compact
from cohabit.adapters import ModuleAdapter
class Consumer(ModuleAdapter):
    def from_dlpack(self, module, value):
        if not _is_compact(value.__dlpack__()):
            raise RuntimeError("only compact rows")
        return numpy.from_dlpack(value)
    def exporter(self, module, value):
        return value
class Narrow(Consumer):
    def from_dlpack(self, module, value):
        return numpy.from_dlpack(value).astype("int32")
manager = cohabit.FrameworkManager(adapters=[Consumer("json"), Narrow("decimal")], examine=False)
array = numpy.arange(12).reshape(3, 4)
for value, copied in ((array, False), (array.T, True), (array[:, 1:3], True), (array[1:], False), (array[:, :1], True), (array[:1].T, False)):
    shared = manager.share(value, to="json")
    assert numpy.array_equal(shared.tensor, value) and shared.copied is copied, (shared, copied)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert manager.share(array, to="json").how == "shared: it lies in the same memory" and not said
    shared = manager.share(array, to="decimal")
assert shared.copied and shared.how.endswith("; its elements are int32, not int64"), shared
assert [warning.category for warning in said] == [RuntimeWarning] and "int32 of int64" in str(said[0].message)
print("same")
""")
    assert out.strip() == "same"


STRINGS = """
import os, sys, types
module = types.ModuleType("tensorflow")
class Kind:
    is_bool = is_integer = is_floating = is_complex = False
class Tensor:
    dtype = Kind()
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, stream=None): os.abort()  # as TFE_HandleToDLPack does
Tensor.__module__ = "tensorflow.python.framework.ops"
module.Tensor = Tensor
sys.modules["tensorflow"] = module
"""


def test_tensors_of_strings_are_refused() -> None:
    """TensorFlow ends the process that asks for a capsule of one."""
    out = places.run_caller(places.arrays("3.11"), STRINGS + f"""
import cohabit
manager = cohabit.FrameworkManager(examine=False)
with cohabit.Worker("test", setup="service:make", path={str(places.HERE)!r}, log=False) as worker:
    for ask in (lambda: manager.share(Tensor(), to="numpy"), lambda: worker.call("echo", Tensor())):
        try:
            ask()
        except TypeError as error:
            print(error)
""")
    assert "cannot be shared" in out and "cannot be sent" in out
