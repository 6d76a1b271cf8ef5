"""Turns, budgets, names, reports: with frameworks that are made here."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import types

import pytest

import places
import cohabit
from cohabit import adapters
from cohabit._budgets import Told, budget_of
from cohabit._manager_report import size
from cohabit._simulation import Judgement
from cohabit.adapters import Budget, Memory, ModuleAdapter, Setting


class FakeAdapter(ModuleAdapter):
    """A framework that writes down what is asked of it."""

    def __init__(self, name: str, log: list[str], **failures: Exception) -> None:
        super().__init__(name)
        self.log, self.failures = log, failures

    def _do(self, what: str) -> None:
        self.log.append(f"{what} {self.name}")
        if what in self.failures:
            raise self.failures[what]

    def import_module(self):
        self._do("import")
        module = types.ModuleType(self.name)
        module.__version__ = "1.2"
        sys.modules[self.name] = module
        return module

    def synchronize(self, module):
        self._do("synchronize")

    def free_cached(self, module):
        self._do("free")
        return "keeps a little"

    def memory(self, module):
        self._do("memory")
        return [Memory("cuda:0", 1 << 20, None)]

    def setting(self, budget):
        return Setting({"FAKE_SHARE": str(budget.fraction)}, "no limit")


@pytest.fixture
def fakes(monkeypatch):
    """manager, log of two frameworks, left and right, that are not in sys.modules afterwards."""
    log: list[str] = []
    made = []

    def make(*, examine=False, failures=None, **options):
        list_of = [FakeAdapter(name, log, **(failures or {}).get(name, {})) for name in ("left", "right")]
        made.append(cohabit.FrameworkManager(adapters=list_of, examine=examine, **options))
        return made[-1], log

    monkeypatch.setattr("cohabit.manager._is_installed", lambda adapter: adapter.module in ("left", "right", "json"))
    monkeypatch.setattr("cohabit.manager.FrameworkManager._imported",
                        lambda self: [a for a in self._adapters.values() if a.name in ("left", "right") and a.module in sys.modules])
    yield make
    for manager in made:
        manager.close()
    for name in ("left", "right"):
        sys.modules.pop(name, None)


def in_thread(function):
    """Starts it; join() gives its result or its exception."""
    result = []

    def run():
        try:
            result.append(function())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join(timeout=20):
        thread.join(timeout)
        assert not thread.is_alive(), "it hangs"
        return result[0]

    return join


def wait_until(condition, timeout=20):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_switch_waits_for_the_others_work_and_frees_before_the_import(fakes) -> None:
    manager, log = fakes()
    left = manager.switch_to_left()
    assert left is sys.modules["left"] and manager.current == "left" and log == ["import left"]
    manager.switch_to("right")
    assert log == ["import left", "synchronize left", "free left", "import right"] and manager.current == "right"
    manager.switch_to_right()
    assert len(log) == 4, "to where we are nothing is to be done"
    assert manager.left is left and manager.current == "right", "an attribute does not switch"


def test_an_import_that_fails_leaves_the_current_one(fakes) -> None:
    manager, log = fakes(failures={"right": {"import": ImportError("no such library")}})
    manager.switch_to_left()
    with pytest.raises(ImportError, match="no such library"):
        manager.switch_to_right()
    assert manager.current == "left"
    with manager.use("left", timeout=1):
        pass
    with pytest.raises(ImportError), manager.use("right", timeout=1):
        pass
    assert in_thread(lambda: manager.switch_to("left", timeout=5))() is sys.modules["left"], "the turn was given back"


def test_work_that_failed_is_told_and_nothing_is_switched(fakes) -> None:
    manager, log = fakes(failures={"left": {"synchronize": RuntimeError("device side assert")}})
    manager.switch_to_left()
    with pytest.raises(cohabit.FrameworkSyncError, match="work of left failed: RuntimeError: device side assert") as caught:
        manager.switch_to_right()
    assert isinstance(caught.value.__cause__, RuntimeError) and manager.current == "left" and "import right" not in log


def test_memory_that_is_not_given_back_is_told(fakes) -> None:
    manager, _ = fakes(failures={"left": {"free": RuntimeError("busy")}})
    manager.switch_to_left()
    manager.switch_to_right()
    assert any("busy" in text for text in manager.report().frameworks["left"].remarks)


def test_use_is_reentrant_and_the_outer_one_comes_back(fakes) -> None:
    manager, _ = fakes()
    with manager.use("left") as left:
        with manager.use("left") as again, manager.use("right") as right:
            assert again is left and manager.current == "right" and right is sys.modules["right"]
        assert manager.current == "left"
        with pytest.raises(KeyError), manager.use("right"):
            raise KeyError
        assert manager.current == "left"


def test_the_outer_one_comes_back_where_the_inner_ones_work_has_failed(fakes) -> None:
    manager, _ = fakes()
    failures = manager._adapters["right"].failures
    with manager.use("left"):
        with pytest.raises(cohabit.FrameworkSyncError, match="work of right failed"), manager.use("right"):
            failures["synchronize"] = RuntimeError("asynchronous")
        failures.clear()
        assert manager.current == "left"
        late = in_thread(lambda: manager.switch_to("right", timeout=0.05))()
        assert isinstance(late, cohabit.FrameworkBusy), "nobody gets in between"
    assert in_thread(lambda: manager.switch_to("right", timeout=5))() is sys.modules["right"]


def test_a_block_that_another_thread_leaves(fakes) -> None:
    """A generator that is closed by whoever drops it."""
    manager, _ = fakes()

    def generate():
        with manager.use("left"):
            yield

    started = generate()
    next(started)
    assert not isinstance(in_thread(started.close)(), BaseException)
    assert in_thread(lambda: manager.switch_to("right", timeout=5))() is sys.modules["right"], "the turn was given back"


def test_another_framework_waits_until_use_is_left(fakes) -> None:
    manager, _ = fakes()
    with manager.use("left"):
        other = in_thread(lambda: manager.switch_to("right"))
        together = in_thread(lambda: manager.switch_to("left", timeout=10))
        assert together() is sys.modules["left"], "threads with the same one go together"
        late = in_thread(lambda: manager.switch_to("right", timeout=0.05))()
        assert isinstance(late, cohabit.FrameworkBusy) and isinstance(late, TimeoutError) and "0.05 s" in str(late)
        assert manager.current == "left"
    assert other() is sys.modules["right"] and manager.current == "right"


def test_a_timeout_without_end(fakes) -> None:
    manager, _ = fakes(timeout=float("inf"))
    with manager.use("left"):
        switched = in_thread(lambda: manager.switch_to("right"))
        time.sleep(0.1)
        assert manager.current == "left"
    assert switched() is sys.modules["right"] and manager.current == "right"


def test_two_that_wait_for_each_other_are_told(fakes) -> None:
    manager, _ = fakes()
    inside, go_on = threading.Barrier(3), threading.Event()

    def nest():
        with manager.use("left"):
            inside.wait(10)
            go_on.wait(10)
            with manager.use("right"):
                return "right"

    joins = [in_thread(nest), in_thread(nest)]
    inside.wait(10)
    go_on.set()
    results = [join() for join in joins]
    assert "right" in results and sum(isinstance(result, cohabit.FrameworkBusy) for result in results) == 1


def test_many_threads_never_mix(fakes) -> None:
    manager, _ = fakes()
    inside, wrong = [], []

    def work(name):
        for _ in range(30):
            with manager.use(name):
                inside.append(name)
                if len(set(inside)) > 1:
                    wrong.append(list(inside))
                inside.remove(name)

    joins = [in_thread(lambda name=name: work(name)) for name in ("left", "right") * 4]
    for join in joins:
        assert join(60) is None
    assert not wrong


def test_one_switch_at_a_time(fakes, monkeypatch) -> None:
    running, most = [], []

    def slow(self, module):
        running.append(self.name)
        time.sleep(0.01)
        most.append(len(running))
        running.pop()

    monkeypatch.setattr(FakeAdapter, "synchronize", slow)
    manager, _ = fakes()
    manager.switch_to_left()
    manager.switch_to_right()
    joins = [in_thread(lambda name=name: [manager.switch_to(name) for _ in range(8)]) for name in ("left", "right") * 4]
    for join in joins:
        assert isinstance(join(), list)
    assert len(most) > 1 and set(most) == {1}


def test_a_refusal_names_the_finding_and_offers_a_worker(fakes, monkeypatch) -> None:
    finding = {"code": "CB101", "headline": "zlib is split", "libraries": [{"path": "/lib/one.so"}],
               "evidence": [{"kind": "captured", "library": "/lib/few.so", "count": 1}, {"kind": "captured", "library": "/lib/culprit.so", "count": 9}]}
    verdicts = {"left": Judgement("sound"), "right": Judgement("unsound", findings=(finding,))}
    monkeypatch.setattr("cohabit.manager.FrameworkManager._simulate", lambda self, modules: verdicts[modules[0]])
    manager, log = fakes(examine=True)
    manager.switch_to_left()
    with pytest.raises(cohabit.FrameworkConflict) as caught:
        manager.switch_to_right()
    error = caught.value
    assert isinstance(error, ImportError) and error.framework == "right" and error.code == "CB101"
    assert error.library == "/lib/culprit.so" and error.headline == "zlib is split" and error.after == ["left"]
    for text in ("right was not imported after left", "CB101", "zlib is split", "/lib/culprit.so", "manager.worker('right')"):
        assert text in str(error)
    assert manager.current == "left" and "import right" not in log
    worker = error.worker(setup="service:make", path=places.HERE)
    assert worker.call("path")[0] == str(places.HERE)


def test_what_cannot_be_predicted_is_imported_with_a_warning(fakes, monkeypatch) -> None:
    monkeypatch.setattr(cohabit, "command", lambda: "/nowhere/cohabit")
    manager, _ = fakes(examine=True)
    with pytest.warns(RuntimeWarning, match="left is imported without a prediction: .*nowhere"):
        manager.switch_to_left()
    report = manager.report().frameworks["left"]
    assert report.prediction == "unknown" and any("/nowhere/cohabit" in text for text in report.remarks)


def test_nothing_is_imported_without_a_prediction_that_is_required(fakes, monkeypatch) -> None:
    monkeypatch.setattr(cohabit, "command", lambda: "/nowhere/cohabit")
    manager, log = fakes(examine="required")
    with pytest.raises(cohabit.FrameworkError, match="left was not imported: no prediction could be made: .*nowhere"):
        manager.switch_to_left()
    assert log == [] and manager.current is None
    with pytest.raises(cohabit.FrameworkError, match="expected True, False or 'required'"):
        cohabit.FrameworkManager(examine="always")


@pytest.mark.parametrize("share, budget", [
    (0.4, Budget(0.4, None)), ("40%", Budget(0.4, None)), ("12.5 %", Budget(0.125, None)), (1, Budget(1.0, None)), (".5", Budget(0.5, None)),
    ("8GiB", Budget(None, 8 << 30)), ("500 mb", Budget(None, 500_000_000)), (2 << 30, Budget(None, 2 << 30)), ("1.5MiB", Budget(None, 3 << 19)),
])
def test_budgets(share, budget) -> None:
    assert budget_of("torch", share) == budget


@pytest.mark.parametrize("share", [0, -0.1, "0%", "120%", "", "a", "8 parsecs", None, True, "1e3", "IB", "3 IB", 1.5, "2KiB", float("nan"), float("inf")])
def test_budgets_that_are_refused(share) -> None:
    with pytest.raises(cohabit.FrameworkError, match="memory of torch is .*expected a share"):
        budget_of("torch", share)


def test_a_budget_is_told_before_the_import_and_the_users_word_is_the_last(fakes, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SHARE", "0.5")
    manager, _ = fakes(memory={"left": 0.5})
    assert manager.report().frameworks["left"].budget == {"FAKE_SHARE": "0.5"}
    manager, _ = fakes(memory={"left": 0.25})
    report = manager.report().frameworks["left"]
    assert os.environ["FAKE_SHARE"] == "0.5" and report.budget == {} and report.state == "not imported"
    assert any("FAKE_SHARE is set already" in text for text in report.remarks)
    manager.load("left")
    manager, _ = fakes(memory={"left": 0.75})
    assert any("too late" in text for text in manager.report().frameworks["left"].remarks)


COMMAND = """#!/bin/sh
case "$*" in
*left=40%*) echo "LEFT_SHARE='0.4 of all'  # the share of left 1.2"; echo "OTHER=1  # what an environment needs"; echo "python -c pass"
            echo "cohabit run: sets LEFT_SHARE=0.4" >&2; echo "cohabit run: no variable tells the rest" >&2;;
*right=2048MiB*) echo "COHABIT_GPU_MEMORY=right=2147483648  # the part that the start-up hook tells"; echo "PYTHONPATH=/hook  # the hook";;
*) echo "cohabit run: no setting for the memory of $5 is known" >&2; exit 125;;
esac
"""


def test_budgets_are_asked_of_the_command(monkeypatch, tmp_path) -> None:
    from cohabit._budgets import tell_all

    command = tmp_path / "cohabit"
    command.write_text(COMMAND)
    command.chmod(0o755)
    for name in ("LEFT_SHARE", "OTHER", "COHABIT_GPU_MEMORY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    path = os.environ.get("PYTHONPATH")
    asked = [(ModuleAdapter(name), budget) for name, budget in (
        ("left", Budget(0.4, None)), ("right", Budget(None, 2 << 30)), ("third", Budget(0.1, None)), ("json", Budget(0.1, None)))]
    told = tell_all(asked, str(command))
    assert told["left"].environ == {"LEFT_SHARE": "0.4 of all"} and told["left"].remark == "no variable tells the rest"
    assert os.environ["LEFT_SHARE"] == "0.4 of all" and "OTHER" not in os.environ
    assert told["right"].environ == {} and told["right"].call == 2 << 30 and os.environ.get("PYTHONPATH") == path
    assert told["third"].remark == "no setting for the memory of third=10% is known" and "too late" in told["json"].remark
    assert "No such file" in tell_all(asked[:1], "/nowhere/cohabit")["left"].remark


def test_a_budget_that_is_told_by_a_call(fakes, monkeypatch) -> None:
    limits = []
    monkeypatch.setattr(FakeAdapter, "setting", lambda self, budget: None)
    monkeypatch.setattr("cohabit._budgets._ask", lambda name, budget, command: Told(budget, {}, "", 0.25))
    monkeypatch.setattr(FakeAdapter, "limit", lambda self, module, share: limits.append((self.name, module.__name__, share)))
    manager, _ = fakes(memory={"left": 0.25, "right": 0.25})
    manager.load("left")
    assert limits == [("left", "left", 0.25)]
    monkeypatch.setattr(FakeAdapter, "limit", lambda self, module, share: 1 / 0)
    assert manager.load("right") is sys.modules["right"]
    report = manager.report().frameworks
    assert "told by a call" in report["left"].remarks[0] and "not limited: ZeroDivisionError" in report["right"].remarks[0]


def test_the_report_is_a_table_too(fakes) -> None:
    manager, _ = fakes()
    manager.switch_to_left()
    report = manager.report()
    assert report.current == "left" and report.pid == os.getpid() and report.frameworks["left"].version == "1.2"
    assert "left *" in str(report) and "1.0 MiB" in str(report) and "?" in str(report)
    assert [size(n) for n in (0, 1023, 1536, 3 << 30, None)] == ["0 B", "1023 B", "1.5 KiB", "3.0 GiB", "?"]


def test_a_report_is_made_whatever_a_framework_raises(fakes) -> None:
    manager, _ = fakes(failures={"left": {"memory": OSError("lost")}})
    manager.switch_to_left()
    assert any("OSError: lost" in text for text in manager.report().frameworks["left"].remarks)


def test_names(fakes) -> None:
    manager, _ = fakes()
    with pytest.raises(AttributeError):
        manager.nothing
    with pytest.raises(AttributeError):
        manager.switch_to_nothing
    with pytest.raises(cohabit.FrameworkNotFound, match="no framework 'nothing'; known are: .*torch") as caught:
        manager.switch_to("nothing")
    assert isinstance(caught.value, ImportError)
    with pytest.raises(cohabit.FrameworkNotFound, match="torch is not installed"):
        manager.switch_to("pytorch")
    assert "switch_to_paddle" in dir(manager) and cohabit.GPUFrameworkManager is cohabit.FrameworkManager
    assert manager.load("json") is __import__("json"), "any module that is installed"


def test_lazy(fakes) -> None:
    manager, log = fakes()
    left = cohabit.lazy("left", manager)
    assert isinstance(left, types.ModuleType) and "lazy left" in repr(left) and log == []
    assert left.__version__ == "1.2" and log == ["import left"]
    assert "__version__" in dir(left)
    left.option = 5
    assert sys.modules["left"].option == 5 == left.option, "the module is changed, not what stands for it"
    del left.option
    assert not hasattr(sys.modules["left"], "option")
    with pytest.raises(AttributeError):
        left.nothing


def test_auto_keeps_what_is_sound_and_gives_the_others_workers(fakes, monkeypatch) -> None:
    asked = []

    def simulate(self, modules):
        asked.append(list(modules))
        return Judgement("unsound" if "right" in modules else "sound")

    monkeypatch.setattr("cohabit.manager.FrameworkManager._simulate", simulate)
    manager, log = fakes(examine=True)
    assert manager.auto(["left", "right", "json"], setup="service:make", path=places.HERE) is manager
    assert asked == [["left"], ["left", "right"]] and log == [], "json is imported already, nothing else is"
    assert isinstance(manager.right, cohabit.Worker) and manager.right.call("path")[0] == str(places.HERE)
    with manager.use("right") as right:
        assert right is manager.right and manager.current == "right"
    assert manager.left is sys.modules["left"] and manager.report().frameworks["right"].state == "worker"


def test_importing_the_package_needs_no_numpy_and_imports_no_framework() -> None:
    code = ("import sys; sys.modules['numpy'] = None; import cohabit; cohabit.FrameworkManager(); cohabit.lazy('torch'); "
            "from cohabit import adapters; assert not set(adapters.known_adapters()) - {'numpy'} & set(sys.modules)")
    for version in ("3.9", "3.13"):
        env = dict(os.environ, PYTHONPATH=str(places.REPO / "python"))
        subprocess.run([places.interpreter(version), "-c", code], env=env, check=True, timeout=60)


def test_adapters_of_other_packages(tmp_path) -> None:
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cohabit.adapters]\ntheirs = theirs_adapter:TheirAdapter\nbroken = theirs_adapter:Broken\n"
                                           "half = theirs_adapter:Half\n")
    (tmp_path / "theirs_adapter.py").write_text(
        "from cohabit.adapters import ModuleAdapter\nclass TheirAdapter(ModuleAdapter):\n    name = 'theirs'\n    aliases = ('th',)\n"
        "class Half:\n    name = 'half'\n")
    (tmp_path / "theirs.py").write_text("__version__ = '7'\n")
    code = ("import cohabit, warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
            "    manager = cohabit.FrameworkManager(examine=False)\n"
            "print([str(w.message) for w in seen])\nprint(manager.switch_to_theirs().__version__, manager.switch_to('th').__name__)")
    for version in ("3.9", "3.12"):
        answer = places.run_in(places.interpreter(version), code, [tmp_path, places.REPO / "python"])
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.endswith("7 theirs\n") and "the adapter broken" in answer.stdout and "the adapter half" in answer.stdout


def test_all_own_adapters_keep_the_protocol() -> None:
    found = adapters.known_adapters()
    assert {"torch", "paddle", "tensorflow", "jax", "onnxruntime", "cupy", "ctranslate2", "xgboost"} <= set(found)
    for name, adapter in found.items():
        assert isinstance(adapter, adapters.Adapter) and adapter.name == name


def test_a_fork_does_not_wait_for_threads_that_it_lacks(fakes) -> None:
    """Another thread is inside, holds the lock, and imports, when this one forks."""
    from cohabit import manager as inside

    manager, _ = fakes()
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with manager.use("left"), manager._turns._changed, inside._IMPORTING:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        try:
            manager.switch_to("right", timeout=5)
            os._exit(0 if manager.current == "right" else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert ended == (child, 0), "the child hung, or could not switch"
    assert manager.current == "left" and manager.switch_to("right") is sys.modules["right"]


def test_a_fork_inside_a_block_stays_inside(fakes) -> None:
    manager, _ = fakes()
    with manager.use("left"):
        child = os.fork()
        if child == 0:
            os._exit(0 if manager._turns.depth() == 1 and manager.current == "left" else 1)
        assert os.waitpid(child, 0) == (child, 0)
