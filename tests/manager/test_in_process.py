"""Frameworks that clash, imported into one process by the manager: repaired or refused, and then they compute."""
from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import places
import small_world

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return places.package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    site = tmp_path_factory.mktemp("world")
    small_world.make(site)
    return site


def run(environment, code, *path, fails=False):
    answer = places.run_in(environment, code, list(path))
    assert (answer.returncode != 0) == fails, answer.stdout + answer.stderr
    return answer.stdout if not fails else answer


ORDERS = {
    "second is repaired": ("", "first", "second", "second: open libsecond.so with RTLD_DEEPBIND"),
    "known before": ("frameworks=['first', 'second']", "first", "second", "first: open libfirst.so without RTLD_GLOBAL"),
    "the other order is sound": ("", "second", "first", ""),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_small_world(order, version, world, package) -> None:
    options, one, two, repair = ORDERS[order]
    python = places.interpreter(version)
    out = run(python, f"""
import cohabit, sys
manager = cohabit.FrameworkManager({options})
manager.switch_to({one!r})
flags = sys.getdlopenflags()
manager.switch_to({two!r})
assert sys.getdlopenflags() == flags
assert sys.modules["second"].use() == 1
print(manager.report())
""", world, package)
    assert repair in out and out.count("repaired") == bool(repair) and out.count("sound") == 2 - bool(repair)


def test_what_clashes_already_is_no_reason(world, package) -> None:
    code = "import first, second, cohabit; manager = cohabit.FrameworkManager(); manager.load('sqlite3'); print(manager.report())"
    assert "sound" in run(places.interpreter("3.11"), code, world, package)


def test_small_world_crashes_without(world, package) -> None:
    python = places.interpreter("3.11")
    assert run(python, "import first, second; second.use()", world, fails=True).returncode == -6
    # One of the two imported by other hands, and not through the manager.
    run(python, "import first, cohabit; assert cohabit.FrameworkManager().load('second').use() == 1", world, package)
    run(python, "import cohabit; first = cohabit.lazy('first'); second = cohabit.lazy('second'); first.__version__; assert second.use() == 1",
        world, package)
    assert run(python, "import cohabit; manager = cohabit.FrameworkManager(examine=False); manager.load('first'); "
                       "manager.load('second').use()", world, package, fails=True).returncode == -6


def test_a_process_that_was_started_with_the_repair_needs_none(world, package) -> None:
    """Under `cohabit run` the flags are changed by the preloaded library: the simulation must know that."""
    python = places.interpreter("3.11")
    code = ("import cohabit; manager = cohabit.FrameworkManager(); manager.load('first'); assert manager.load('second').use() == 1; "
            "print(manager.report())")
    rules = world / "rules"
    rules.write_text(f"cohabit-rules 1\ndlopen -global {world}/first/libfirst.so\n")
    env = {"PYTHONPATH": f"{world}:{package}", "PATH": "/usr/bin:/bin"}
    answer = subprocess.run([package / "cohabit" / "bin" / "cohabit", "run", "--quiet", "--repair", rules, "--", python, "-c", code],
                            env=env, capture_output=True, text=True, timeout=100)
    assert answer.returncode == 0, answer.stderr
    assert "repaired" not in answer.stdout and answer.stdout.count("sound") == 2


COMPUTE = {
    "tensorflow": "a = tensorflow.ones((64, 64)); assert float(tensorflow.matmul(a, a)[0][0]) == 64",
    "paddle": "a = paddle.ones([64, 64]); assert float(paddle.matmul(a, a)[0][0]) == 64",
    "torch": "a = torch.ones(64, 64); assert float((a @ a)[0, 0]) == 64; assert torch.nn.Conv2d(1, 1, 3)(torch.ones(1, 1, 8, 8)).shape[-1] == 6",
    "jax": "a = jax.numpy.ones((64, 64)); assert float((a @ a)[0, 0]) == 64",
    "cv2": "import numpy; image = (numpy.arange(12288) % 255).reshape(64, 64, 3).astype('uint8'); "
           "assert (cv2.imdecode(cv2.imencode('.png', image)[1], 1) == image).all()",
    "decord": "decord.cpu(0)",
}
# environment, options, order, what is repaired (where which)
REAL = [
    ("cpu", "", "tensorflow,paddle", "paddle: open libpaddle.so with RTLD_DEEPBIND"),
    ("cpu", "frameworks=['paddle', 'tensorflow']", "tensorflow,paddle", "tensorflow: open _pywrap_tensorflow_internal.so without RTLD_GLOBAL"),
    ("cpu", "", "paddle,torch,tensorflow", ""),
    ("newest", "", "tensorflow,torch", "torch: open "),
    ("newest", "", "torch,tensorflow", "tensorflow: "),
    ("newest", "frameworks=['tensorflow', 'torch']", "tensorflow,torch", "tensorflow: open _pywrap_tensorflow_internal.so without RTLD_GLOBAL"),
    ("conflict5", "frameworks=['cv2', 'decord']", "decord,cv2", "decord: open libz.so"),
    # Python 3.8, for which the package is not made; it runs from a directory.
    ("conflict4", "frameworks=['tensorflow', 'torch']", "tensorflow,torch", "tensorflow: open libstdc++.so"),
]


@pytest.mark.parametrize("name, options, order, repair", REAL, ids=[f"{row[0]}-{row[2]}{'-known' if row[1] else ''}" for row in REAL])
def test_real_frameworks(name, options, order, repair, package) -> None:
    code = f"import cohabit, sys\nflags = sys.getdlopenflags()\nmanager = cohabit.FrameworkManager({options})\n"
    code += "".join(f"{each} = manager.switch_to({each!r})\n" for each in order.split(","))
    code += "".join(COMPUTE[each] + "\n" for each in order.split(","))
    code += "assert sys.getdlopenflags() == flags\nprint(manager.report())\n"
    out = run(places.ready(name), code, package)
    assert repair in out and ("repaired" in out) == bool(repair), out


def test_what_cannot_be_repaired_any_more_is_refused(package) -> None:
    """decord's zlib is global already: cv2 would write truncated files. In a worker it writes whole ones."""
    out = run(places.ready("conflict5"), """
import json, cohabit
with cohabit.FrameworkManager() as manager:
    manager.load("decord")
    try:
        manager.switch_to("cv2")
    except cohabit.FrameworkConflict as conflict:
        print(json.dumps([conflict.code, conflict.library, conflict.after, str(conflict)]))
        with conflict.worker() as cv2:
            import numpy
            image = (numpy.arange(12288) % 255).reshape(64, 64, 3).astype('uint8')
            good, png = cv2.call("cv2.imencode", ".png", image)
            assert good and (cv2.call("cv2.imdecode", png, 1) == image).all()
    else:
        raise SystemExit("it was imported")
""", package)
    code, library, after, text = json.loads(out)
    assert code == "CB101" and "libz" in library and after == ["numpy", "decord"]
    assert "cv2 was not imported" in text and "FrameworkManager(frameworks=" in text and "manager.worker('cv2')" in text


def test_conflict_4_is_refused_and_a_worker_of_python_3_8_is_sound(package) -> None:
    """TensorFlow 2.4 has its libstdc++ in the global scope already: torch.rand would be a crash."""
    out = run(places.ready("conflict4"), """
import cohabit
with cohabit.FrameworkManager() as manager:
    manager.switch_to("tensorflow")
    try:
        manager.switch_to("torch")
    except cohabit.FrameworkConflict as conflict:
        assert "libtensorflow_framework" in str(conflict) and manager.current == "tensorflow"
        with conflict.worker() as torch:
            assert torch.call("torch.rand", 32, 32).shape == (32, 32)
            print("refused")
""", package)
    assert "refused" in out


def test_auto(package) -> None:
    out = run(places.ready("conflict5"), """
import cohabit
with cohabit.FrameworkManager() as manager:
    manager.auto(["decord", "cv2"], log=False)
    manager.decord, manager.cv2
    print(manager.report())
""", package)
    assert "decord: open libz.so" in out and out.count("imported") == 3 and "worker" not in out


def test_what_all_eight_say_of_themselves(package) -> None:
    """Their own calls, as far as they can be made without a GPU."""
    for name, frameworks in (("cpu", ["torch", "paddle", "tensorflow"]), ("newest", ["jax"]),
                             ("serving", ["onnxruntime", "cupy", "ctranslate2", "xgboost"])):
        out = run(places.ready(name), f"""
import cohabit, dataclasses, importlib.metadata, json
manager = cohabit.FrameworkManager(examine=False)
for framework in {frameworks}:
    manager.switch_to(framework)
    manager.switch_to("numpy")     # synchronises and frees
report = manager.report()
print(json.dumps(dataclasses.asdict(report)))
""", package)
        report = json.loads(out.splitlines()[-1])
        for framework in frameworks:
            one = report["frameworks"][framework]
            assert one["version"] and one["state"] == "imported" and one["memory"] == [], one
            assert one["devices"] or framework == "cupy", one  # it has no CPU
            assert not any("not known" in text or "not waited for" in text or "Error" in text for text in one["remarks"]), one


SHARES = [
    ("newest", {"torch": "40%", "jax": 0.3}, {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.4", "XLA_CLIENT_MEM_FRACTION": "0.3"}),
    ("newest", {"tensorflow": "3GiB"}, {"TF_PER_DEVICE_MEMORY_LIMIT_MB": "3072", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
    ("ocr", {"paddle": "4GiB"}, {"FLAGS_gpu_memory_limit_mb": "4096"}),
]


@pytest.mark.parametrize("name, memory, environ", SHARES)
def test_budgets_as_the_installed_files_read_them(name, memory, environ, package) -> None:
    out = run(places.ready(name), f"""
import cohabit, json, os
report = cohabit.FrameworkManager(memory={memory!r}).report()
told = {{key: value for one in report.frameworks.values() for key, value in one.budget.items()}}
assert all(os.environ[key] == value for key, value in told.items())
print(json.dumps(told))
""", package)
    assert json.loads(out) == environ


def test_torch_is_told_by_a_call_where_it_reads_no_variable(package) -> None:
    out = run(places.ready("cpu"), """
import cohabit
manager = cohabit.FrameworkManager(memory={"torch": "40%"})
torch = manager.torch
print([call[0].__qualname__ for call in torch.cuda._queued_calls if "limit" in call[0].__qualname__])
print(manager.report())
""", package)
    assert "set_limits" in out and "told by a call" in out


def test_share(package) -> None:
    out = run(places.ready("cpu"), """
import cohabit, numpy, json
manager = cohabit.FrameworkManager(frameworks=["paddle", "tensorflow", "torch"])
paddle, tensorflow, torch = manager.paddle, manager.tensorflow, manager.torch
found = {}
for value in (paddle.arange(6), tensorflow.range(6), torch.arange(6), numpy.arange(6)):
    for to in ("paddle", "tensorflow", "torch", "numpy"):
        tensor, copied, how = manager.share(value, to=to)
        assert [int(x) for x in tensor] == [0, 1, 2, 3, 4, 5]
        found[type(value).__module__.split(".")[0] + " " + to] = copied
a = numpy.arange(6)
b = manager.share(a, to="torch").tensor
a[2] = 70
assert int(b[2]) == 70
row = manager.share(torch.arange(12).reshape(3, 4)[1], to="numpy")
assert row.copied is False and row.tensor.tolist() == [4, 5, 6, 7]
for value, to in ((object(), "torch"), (a, "xgboost")):
    try:
        manager.share(value, to=to)
    except (TypeError, cohabit.FrameworkNotFound) as error:
        print(type(error).__name__)
print(json.dumps(found))
""", package)
    found = json.loads(out.splitlines()[-1])
    assert len(found) == 16 and not [pair for pair, copied in found.items() if copied and not pair.endswith(" tensorflow")], found
    assert "TypeError\n" in out


def test_tensorflow_gets_a_copy_of_what_is_not_aligned(package) -> None:
    """It ends the process at such an address; a multiple of 64 is shared."""
    out = run(places.ready("cpu"), """
import cohabit, numpy
manager = cohabit.FrameworkManager()
tensorflow = manager.tensorflow
memory = numpy.zeros(1024, dtype="int32")
start = -memory.ctypes.data % 64 // 4
for offset in (0, 1, 4, 16):
    array = memory[start + offset:start + offset + 100]
    array[:] = 1
    tensor, copied, _ = manager.share(array, to="tensorflow")
    assert int(tensorflow.reduce_sum(tensor[3:] * 2)) == 194
    print(offset, copied)
""", package)
    assert out == "0 False\n1 True\n4 True\n16 False\n"


def test_views_that_change_sign_are_refused_or_resolved(package) -> None:
    """torch exports the memory of a lazily negated view as if it were not negated."""
    run(places.ready("cpu"), f"""
import cohabit, numpy, sys, torch
z = torch.tensor([1 + 2j, 3 - 4j])
manager = cohabit.FrameworkManager(examine=False)
for view in (z.conj().imag, z.conj()):
    try: manager.share(view, to="numpy")
    except (BufferError, RuntimeError) as error: assert "sign" in str(error) or "neg" in str(error) or "conj" in str(error)
    else: raise AssertionError("wrong values were shared")
assert manager.share(z.imag, to="numpy").tensor.tolist() == [2, -4]
with cohabit.Worker(setup="service:make", path={str(places.HERE)!r}, log=False) as worker:
    for view in (z.conj(), z.conj().imag, torch._neg_view(torch.arange(50000.0)), torch.ones(3, requires_grad=True).expand(200, 3)):
        assert numpy.array_equal(worker.call("echo", view), view.detach().resolve_conj().resolve_neg().numpy())
    for tensor in (torch.eye(3).to_sparse(), torch.ones(3, device="meta")):
        try: worker.call("echo", tensor)
        except TypeError as error: assert "Tensor cannot be sent" in str(error)
        else: raise AssertionError(tensor)
""", package)
