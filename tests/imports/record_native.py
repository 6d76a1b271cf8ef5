"""Runs a statement and records which modules native code imports, as JSON, for check_natives.py.

    ENVIRONMENT/bin/python record_native.py "import numpy" OUT

C code imports through PyImport_Import (which calls builtins.__import__) or, as Cython does, through
PyImport_ImportModuleLevelObject, which for a module not yet loaded calls importlib's
_find_and_load. Both are watched. While an extension module initialises, the innermost Python frame
of a call that it makes itself is importlib's _call_with_frames_removed, called by the loader: that
tells its imports from those of the Python modules that it imports.
"""
import builtins
import json
import os
import sys

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external

statement, out = sys.argv[1], sys.argv[2]
order = []  # modules as they appear
known = set()
running = []  # extension modules that initialise, innermost last
modules = {}


def note_new():
    if len(sys.modules) != len(known):
        for name in list(sys.modules):
            if name not in known:
                known.add(name)
                order.append(name)


INSIDE_IMPORTLIB = {"_gcd_import", "_find_and_load", "_find_and_load_unlocked", "_handle_fromlist",
                    "watched_load", "watched_import"}


def is_native(frame):
    """Is this call made by the extension itself: is the frame below importlib's own steps its loader's?"""
    while running and frame:
        caller = frame.f_back
        name = frame.f_code.co_name
        if name == "_call_with_frames_removed" and caller.f_code.co_name in ("create_module", "exec_module"):
            return caller.f_back.f_code.co_name == "run_loader"
        if name != "_call_with_frames_removed" and name not in INSIDE_IMPORTLIB:
            return False
        frame = caller
    return False


def note(name, frame, loads):
    if is_native(frame):
        entry = modules[running[-1]]
        entry["loads" if loads else "asks"].append(name)


original_import = builtins.__import__
original_load = bootstrap._find_and_load


def watched_import(name, globals=None, locals=None, fromlist=(), level=0):
    frame = sys._getframe(1)
    if level == 0 and "__name__" in (globals or {}) and is_native(frame):
        note(name, frame, False)
    return original_import(name, globals, locals, fromlist, level)


def watched_load(name, import_):
    note(name, sys._getframe(1), True)
    return original_load(name, import_)


def wrap(method, phase):
    def run_loader(self, argument):
        name = argument.name if phase == "create" else argument.__name__
        entry = modules.setdefault(name, {"path": self.path, "asks": [], "loads": []})
        running.append(name)
        try:
            return method(self, argument)
        finally:
            running.pop()
            note_new()
            entry["known"] = len(order)
    return run_loader


loader = external.ExtensionFileLoader
loader.create_module = wrap(loader.create_module, "create")
loader.exec_module = wrap(loader.exec_module, "exec")
builtins.__import__ = watched_import
bootstrap._find_and_load = watched_load
try:
    exec(compile(statement, "<statement>", "exec"), {"__name__": "__main__"})
except BaseException as error:
    print("record_native:", repr(error)[:300], file=sys.stderr)
builtins.__import__ = original_import
bootstrap._find_and_load = original_load
note_new()
files = {n: getattr(m, "__file__", None) for n, m in list(sys.modules.items())}
with open(out, "w") as file:
    json.dump({"order": order, "modules": modules,
               "files": {n: f for n, f in files.items() if isinstance(f, str)}}, file)
os._exit(0)
