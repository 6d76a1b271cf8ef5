# Runs at the start of a Python that `cohabit run` has prepared: its directory is the first of PYTHONPATH. Tells
# frameworks what no variable tells them, once they are imported, and imports nothing itself. The user's own
# sitecustomize, which this one stands in front of, runs as if it were not there.
#
# Any Python may inherit the variable, of any version: nothing here may fail, and nothing new may be used.
import os
import sys


def _limit_torch(share):
    """Queues a call for the moment when torch initialises CUDA: to ask for devices now would do it now."""
    cuda = sys.modules["torch.cuda"]

    def set_limits():
        try:
            for device in range(cuda.device_count()):
                fraction = share
                if share > 1:  # bytes
                    fraction = min(1.0, share / float(cuda.get_device_properties(device).total_memory))
                cuda.set_per_process_memory_fraction(fraction, device)
        except Exception as error:
            sys.stderr.write("cohabit: the memory of torch is not limited: %s\n" % error)

    cuda._lazy_call(set_limits)


_TELL = {"torch": ("torch.cuda", _limit_torch)}


class _Watcher(object):
    """Finds nothing itself; lets the module that it waits for run a callback when it is there."""

    def __init__(self, name, callback):
        self.name, self.callback = name, callback

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        loader = spec.loader if spec is not None else None
        if hasattr(loader, "exec_module"):
            execute, callback = loader.exec_module, self.callback

            def exec_module(module):
                del loader.exec_module
                execute(module)
                _run(callback)

            loader.exec_module = exec_module
        return spec


def _run(callback):
    try:
        callback()
    except Exception as error:
        sys.stderr.write("cohabit: %s\n" % error)


def _tell_frameworks():
    for entry in os.environ.get("COHABIT_GPU_MEMORY", "").split(","):
        name, _, share = entry.partition("=")
        if name not in _TELL:
            continue
        module, tell = _TELL[name]
        callback = lambda tell=tell, share=float(share): tell(share)
        if module in sys.modules:
            _run(callback)
        else:
            sys.meta_path.insert(0, _Watcher(module, callback))


def _defer():
    roots = [name for name in os.environ.get("COHABIT_DEFER", "").split(",") if name]
    if roots:
        import cohabit_defer
        cohabit_defer.defer(roots)


def _run_users_own():
    """As if this file were not there: where there is no other, the import has failed."""
    here = os.path.dirname(os.path.abspath(__file__))
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 5):
    _run(_tell_frameworks)
    _run(_defer)
    _run_users_own()
