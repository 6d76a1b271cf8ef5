"""Arrays: NumPy, DLPack, Arrow, memory of others; copies are counted, memory comes back."""
from __future__ import annotations

import array
import os

import pytest

import places

WITH = """
import gc, os, cohabit, numpy
def same(a, b): return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and (a == b).all()
"""


def test_memory_without_numpy_on_either_side(make_worker) -> None:
    worker = make_worker()
    for code, values in (("d", [0.5, -1e300]), ("B", [0, 255]), ("q", [-(2**63), 2**63 - 1]), ("f", [1.5])):
        for times in (1, 50_000):
            sent = array.array(code, values * times)
            answer = worker.call("echo", sent)
            assert isinstance(answer, memoryview) and answer.tolist() == sent.tolist() and answer.format == code
    square = memoryview(bytes(range(256)) * 256).cast("B", (256, 256))
    answer = worker.call("echo", square)
    assert answer.shape == (256, 256) and answer.tobytes() == square.tobytes()
    assert worker.call("echo", bytearray(b"12345678")).tobytes() == b"12345678"


@pytest.mark.parametrize("version", ("3.9", "3.12"))
def test_numpys_arrays_without_numpy_in_the_worker(version: str) -> None:
    """Order, emptiness and scalars survive; what has no form there is refused by its name."""
    code = f"""
import ctypes, numpy, cohabit
with cohabit.Worker(setup="service:make", env={places.interpreter(version)!r}) as worker:
    def same(sent):
        answer = worker.call("echo", sent)
        assert isinstance(answer, memoryview), answer
        assert answer.shape == sent.shape and answer.tobytes() == sent.tobytes(), (answer.shape, sent.shape)
        assert numpy.dtype(answer.format) == sent.dtype, (answer.format, sent.dtype)
    for sent in (numpy.arange(6).reshape(2, 3).T, numpy.asfortranarray(numpy.arange(120000.).reshape(30, 40, 100)),
                 numpy.arange(24, dtype="i2").reshape(2, 3, 4).T, numpy.zeros((3, 0, 2), "i4"), numpy.zeros(0, "f4"), numpy.zeros((0, 5), order="F"),
                 numpy.array(2.5), numpy.ones((5, 0, 100000), "u1")):
        same(sent)
    for sent in (numpy.str_("a\\u20ac\\udcff"), numpy.bytes_(b"x\\0y"), numpy.complex64(1 + 2j), numpy.complex128(-1j), numpy.float16(1.5), numpy.bool_(True)):
        answer = worker.call("echo", sent)
        assert type(answer) in (str, bytes, complex, float, bool) and answer == sent, (answer, sent)
    for sent in (memoryview(numpy.zeros((0, 3))), memoryview((ctypes.c_int * 3)(1, 2, 3)), memoryview(bytearray(range(10)))[::-2]):
        answer = worker.call("echo", sent)
        assert answer.tobytes() == sent.tobytes() and answer.shape == sent.shape, sent
    half = numpy.arange(40000, dtype="f2")
    if {version == "3.12"}:
        same(half)
        same(half[:5])
    else:
        for sent in (half, half[:5]):
            try:
                raise AssertionError(worker.call("echo", sent))
            except TypeError as error:
                assert "nothing to hold it" in str(error)
    for sent in (numpy.array(["a"]), numpy.array([1], ">i4"), numpy.datetime64("2020-01-01"), numpy.zeros((0, 2), "f2")):
        try:
            raise AssertionError(worker.call("echo", sent))
        except TypeError as error:
            assert "no NumPy to hold it" in str(error)
"""
    places.run_caller(places.arrays("3.11"), code)


def test_kept_arguments_stay_what_they_were(make_worker) -> None:
    """The worker keeps what it got; later calls must not write over it, and memory comes back when it forgets."""
    worker = make_worker(heartbeat=0.05)
    for i in range(20):
        assert worker.call("keep", bytearray([i]) * 100_000) == i + 1
    worker.call("echo", bytearray(3_000_000))
    assert worker.call("kept_sums") == [i * 100_000 for i in range(20)]
    worker.call("forget")
    link = worker._pool.lanes[0].process.link
    for _ in range(100):
        worker.call("echo", bytearray(100_000))
    assert len(link.arena.blocks) < 5


def test_results_outlive_the_worker(make_worker) -> None:
    worker = make_worker()
    results = [worker.call("echo", bytearray([i]) * 100_000) for i in range(10)]
    worker.close()
    assert [result[99_999] for result in results] == list(range(10))


def test_memory_is_flat(make_worker) -> None:
    worker = make_worker()
    link = None
    for i in range(300):
        worker.call("echo", bytearray(1_000_000))
        link = link or worker._pool.lanes[0].process.link
    assert sum(chunk.size for chunk in link.arena.chunks) <= 16 << 20
    assert os.fstat(link.borrowed.file).st_size <= 16 << 20


def test_sixteen_callers_in_order_and_memory_flat() -> None:
    import mixed

    told = mixed.run(5)
    assert not told["wrong"] and told["least"] > 0, told
    # Callers hold copies of 3 MB at random; arguments that nobody gave back would be 0.6 MiB for each call.
    early, late = (told["own_MiB"][at] + told["processes_MiB"][at] + told["shared_MiB"][at] for at in (0, -1))
    assert late < early + 0.2 * told["calls"] and told["calls"] > 500, told
    # One small object kept of each call would be a block, or 100 bytes of it.
    assert told["kept_blocks"] < 0.5 * told["kept_calls"] and told["kept_bytes"] < 100 * told["kept_calls"] + (4 << 20), told


@pytest.mark.parametrize("caller, worker", [("3.11", "3.11"), ("3.9", "3.11"), ("3.11", "3.9")])
def test_numpy(caller: str, worker: str) -> None:
    places.run_caller(places.arrays(caller), WITH + f"""
with cohabit.Worker(setup="service:make", env={places.arrays(worker)!r}) as worker:
    for size in (0, 1, 7, 5000, 200000):
        base = numpy.arange(size)
        for dtype in "?bBhHiIqQefdFD":
            a = base.astype(dtype)
            assert same(worker.call("echo", a), a), (size, dtype)
    square = numpy.arange(250000.0).reshape(500, 500)
    for a in (square.T, square[::2, ::-3], square[5:400, 3:400], numpy.asfortranarray(square), square.astype(">f8"),
              numpy.zeros((0, 5)), numpy.zeros((2, 0, 3)), numpy.broadcast_to(numpy.arange(300.0), (300, 300)),
              numpy.array(["a", "bcd"]), numpy.array([b"x", b"yz"]), numpy.array(["2020-01-01"], "M8[D]"), numpy.array(5.0)):
        assert same(worker.call("echo", a), a), a
    for scalar in (numpy.float32(1.5), numpy.int64(3), numpy.bool_(True), numpy.complex64(1j)):
        assert same(worker.call("echo", scalar), scalar)
    small, large = worker.call("echo", numpy.arange(3)), worker.call("echo", numpy.arange(100000))
    small[0] = 9
    for a in (numpy.array([None]), numpy.zeros(3, "i4,O"), numpy.ma.masked_array([1, 2], [0, 1])):
        try: worker.call("echo", a)
        except TypeError: pass
        else: raise AssertionError("an array of objects, or without its mask, was sent")
""")


@pytest.mark.parametrize("caller, worker", [("3.11", "3.11"), ("3.9", "3.11"), ("3.11", "3.9")])
def test_records(caller: str, worker: str) -> None:
    places.run_caller(places.arrays(caller), WITH + f"""
with cohabit.Worker(setup="service:make", env={places.arrays(worker)!r}) as worker:
    aligned = numpy.dtype([("a", "u1"), ("b", "<f8"), ("c", ">i2", (2, 3)), ("d", [("x", "U3"), ("t", "M8[s]")])], align=True)
    for dtype in ("i4,f8", aligned, [("one", "u1")]):
        for shape in (0, (), 1, 7, 5000, (300, 40), (0, 3)):
            a = numpy.zeros(shape, dtype)
            a.view(numpy.recarray).flat = numpy.frombuffer(os.urandom(a.dtype.itemsize), a.dtype)[0] if "d" not in (a.dtype.names or "") else a.flat[:1]
            a[a.dtype.names[0]] = 7
            for b in (a, a.T, a[::-2] if a.ndim else a, numpy.asfortranarray(a)):
                back = worker.call("echo", b)
                assert back.dtype == b.dtype and back.shape == b.shape and back.tobytes() == b.tobytes(), (dtype, shape)
    record = worker.call("echo", numpy.array([(1, 2.5)], "i4,f8")[0])
    assert isinstance(record, numpy.void) and record.item() == (1, 2.5)
    back = worker.call("echo", worker.call("echo", numpy.zeros(100000, "i4,f8")))
    assert not back.flags.writeable and worker.stats()["worker"]["copied"] == 0
    own = worker.call("echo", numpy.zeros(10, "i4,f8"))
    own["f0"] = 3
    for deep, sent in ((95, True), (99, False)):  # fields are a list of tuples
        value = numpy.zeros(2, "i4,f8")
        for _ in range(deep): value = [value]
        try: worker.call("echo", value)
        except TypeError as error: assert not sent and "deeper" in str(error)
        else: assert sent
    try: worker.call("echo", numpy.zeros(3, {{"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]}}))
    except TypeError as error: assert "overlap" in str(error)
    else: raise AssertionError("fields that overlap were sent")
""")


def test_lying_records_are_refused() -> None:
    places.run_caller(places.arrays("3.11"), """
import numpy, random, socket
from cohabit import _worker_main as wire
files = [wire.memory_file("a"), wire.memory_file("b")]
one, other = socket.socketpair()
left, right = wire.Link(one, *files), wire.Link(other, *files[::-1])
random.seed(7)
bodies = [bytes(left.encode(wire.CALL, 1, numpy.zeros(shape, "i4,f8,(2,)u2")))[wire.HEADER.size:] for shape in (3, (4, 1), 5000)]
head = bytes(left.encode(wire.CALL, 1, None))[wire.HEADER.size:-1]
def message(fields, raw):
    more = [bytes(left.encode(wire.CALL, 1, value))[wire.HEADER.size + len(head):] for value in (fields, raw)]
    return head + b"r" + bytes(1) + more[0] + more[1]
wrong = [([("a", "O")], numpy.zeros((2, 8), "u1")), ([("a", "i4")], numpy.zeros((2, 5), "u1")), ("i4", numpy.zeros((2, 4), "u1")),
         ([("a", "i4")], "text"), ([("a", "i4")], numpy.array(3, "u1")), ({"a": 1}, numpy.zeros(4, "u1")), (None, None),
         ([("a", "i4", (1 << 40,))], numpy.zeros((2, 4), "u1")), ([("a", "i4")], numpy.zeros((2, 4), "f4"))]
for fields, raw in wrong:
    try: right.decode(memoryview(message(fields, raw)))
    except wire.ProtocolError: pass
    else: raise AssertionError(fields)
deep = head + (b"r" + bytes(1)) * 20_000
try: right.decode(memoryview(deep))
except wire.ProtocolError as error: assert "deeper" in str(error)
refused = 0
for _ in range(6000):
    body = bytearray(random.choice(bodies))
    for _ in range(random.randrange(1, 4)):
        body[random.randrange(len(body))] = random.randrange(256)
    try: right.decode(memoryview(body))
    except (wire.ProtocolError, wire.Unsendable): refused += 1
    right.arena.returned.clear(); right.borrowed.take_released(1 << 20)
assert refused > 1000, refused
""")


def test_pictures_and_memory_with_gaps(make_worker) -> None:
    answer = make_worker().call("echo", memoryview(bytes(range(100)))[::3])
    assert answer.tobytes() == bytes(range(100))[::3]
    places.run_caller(places.arrays("3.11"), WITH + """
class Picture:                       # as PIL has it: NumPy's interface, and Arrow's, which is flat
    __array_interface__ = {"shape": (2, 3), "typestr": "|u1", "version": 3, "data": b"123456"}
    def __arrow_c_array__(self): raise AssertionError
with cohabit.Worker(setup="service:make") as worker:
    assert worker.call("echo", Picture()).tolist() == [[49, 50, 51], [52, 53, 54]]
    assert worker.call("echo", memoryview(numpy.asfortranarray(numpy.arange(6.).reshape(2, 3)))).tolist() == [[0, 1, 2], [3, 4, 5]]
""")


def test_copies_are_counted() -> None:
    places.run_caller(places.arrays("3.11"), WITH + """
with cohabit.Worker(setup="service:make") as worker:
    a = numpy.arange(1_000_000.0)
    def copies(call):
        before = worker.stats()
        result = call()
        after = worker.stats()
        return result, [(after[s]["copied"] - before[s]["copied"]) / a.nbytes for s in ("caller", "worker")]
    back, count = copies(lambda: worker.call("echo", a))
    assert count == [1, 0] and same(back, a), count     # there: one; back: it lies in shared memory already
    again, count = copies(lambda: worker.call("echo", back))
    assert count == [0, 0] and same(again, a), count
    part, count = copies(lambda: worker.call("echo", back[1000:-5000]))
    assert count == [0, 0] and same(part, a[1000:-5000])
    strided, count = copies(lambda: worker.call("echo", a[::2]))
    assert count == [0.5, 0] and same(strided, a[::2])
    assert not back.flags.writeable                      # the worker may still see it
    del back, again, part, strided
    a[0] = 5
    assert worker.call("echo", a)[0] == 5
""")


def test_dlpack_and_other_float_types() -> None:
    places.run_caller(places.arrays("3.11"), WITH + """
import ml_dtypes
class Tensor:
    "Only DLPack, as a framework's tensor."
    def __init__(self, array, device=(1, 0)): self.array, self.device = array, device
    def __dlpack__(self, **kw): return self.array.__dlpack__()
    def __dlpack_device__(self): return self.device
    def contiguous(self): return Tensor(numpy.ascontiguousarray(self.array))
with cohabit.Worker(setup="service:make") as worker:
    for a in (numpy.arange(10.0), numpy.arange(100000).reshape(100, 10, 100), numpy.arange(90000.0).reshape(300, 300).T, numpy.float32([[1]])):
        assert same(worker.call("echo", Tensor(a)), a)
    try: worker.call("echo", Tensor(numpy.arange(3), (2, 0)))
    except TypeError as error: assert "CPU" in str(error)
    else: raise AssertionError
    for name in ("bfloat16", "float8_e4m3fn"):
        a = numpy.arange(50000).astype(getattr(ml_dtypes, name))
        b = worker.call("echo", a)
        assert a.dtype == b.dtype and (a.view("u1") == b.view("u1")).all()
""")


def test_arrow() -> None:
    places.run_caller(places.arrays("3.11"), WITH + f"""
import pyarrow as pa
t = pa.table({{"a": list(range(100000)), "b": ["text %d" % i for i in range(100000)]}})
with cohabit.Worker(setup="service:make") as worker:
    assert worker.call("echo", t).equals(t)
    assert worker.call("echo", t.to_batches()[0]).equals(t)
    assert worker.call("echo", t["b"]).to_pylist() == t["b"].to_pylist()
    assert worker.call("echo", pa.array([1, None, 3])).to_pylist() == [1, None, 3]
    class Series:
        "A column that comes as a stream, as those of polars."
        def __arrow_c_stream__(self, requested_schema=None): return pa.chunked_array([[1], [None, 3]]).__arrow_c_stream__()
    assert worker.call("echo", Series()).to_pylist() == [1, None, 3]
    class Broken:
        def __arrow_c_array__(self, requested_schema=None): raise ValueError("nothing here")
    try: worker.call("echo", Broken())
    except TypeError as error: assert "a Broken cannot be sent: nothing here" in str(error)
    else: raise AssertionError
    results = [worker.call("echo", t) for _ in range(3)]
    assert all(r.equals(t) for r in results)
with cohabit.Worker(setup="service:make", env={places.arrays("3.9")!r}) as worker:
    try: worker.call("echo", t)
    except TypeError as error: assert "no pyarrow" in str(error)
    else: raise AssertionError
    assert worker.call("echo", 1) == 1
""")
