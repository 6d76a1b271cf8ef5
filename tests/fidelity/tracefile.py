"""The trace of a world's run, in the format of docs/design/trace.md: the calls, not their effects.

One kind of line is only for tests: {"call": "bind", ..} is a first call through the PLT of its caller.
"""
import json
import os
import platform
import re
import subprocess

LOADER = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}


class Facts:
    """What a trace says of the machine: asked from its ld.so once."""

    def __init__(self, arch, command=(), root=""):
        listing = subprocess.run([*command, root + LOADER[arch], "--list-diagnostics"], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, universal_newlines=True).stdout
        found = re.search(r'^dl_platform="([^"]*)"', listing, re.M)
        self.platform = found[1] if found else ""
        text = subprocess.run([*command, root + LOADER[arch], "--help"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True).stdout
        self.hwcaps = re.findall(r"^  (x86-64-v\d) \(supported, searched\)", text, re.M)
        found = re.search(r'^version\.version="([^"]*)"', listing, re.M)
        self.glibc = found[1] if found else platform.libc_ver()[1]
        self.machine = arch


def act_of(world, file_id, which, number):
    lib = world["files"][file_id - 1]["lib"]
    return lib[("init" if which == "i" else "fini")][number]


def open_number(world, file_id, which, number):
    """How many opens of the file's constructor and destructor come before this act."""
    lib = world["files"][file_id - 1]["lib"]
    acts = (lib.get("init") or []) if which == "f" else []
    acts = acts + (lib.get("init" if which == "i" else "fini") or [])[:number]
    return sum(a[0] == "open" for a in acts)


class Writer:
    def __init__(self, world, truth, facts):
        self.world, self.truth, self.facts = world, truth, facts
        self.handles = {}  # (file id, open number) -> (l_name, ns)
        self.traced = []   # the events that became lines of the trace
        self.cwd = os.path.normpath(os.path.join(world["dir"], world.get("cwd", ".")))

    def text(self):
        lines = [self.start()]
        for number, event in enumerate(self.truth.events):
            call = self.step(event) if event.source == "s" else self.act(event)
            if call is None:
                continue
            event.call = call["call"]
            self.traced.append(event)
            if event.depth:
                call["depth"] = event.depth
            if event.source != "s":
                call["constructor"] = event.caller or ""
                if number < self.truth.in_start or not self.truth.started:
                    call["during_start"] = True
            if event.cwd != self.cwd:
                self.cwd = call["cwd"] = event.cwd
            lines.append(json.dumps(call))
        lines.append(json.dumps({"end": {"exit_status": None}, "blind_spots": []}))
        return "\n".join(lines) + "\n"

    def start(self):
        world = self.world
        program = os.path.join(world["dir"], world["program"])
        real = os.path.realpath(os.path.join(world["outside"], world["program"]))
        executable = world["dir"] + real[len(os.path.realpath(world["outside"])):]
        return json.dumps({
            "cohabit_trace": 1, "program": program, "executable": executable,
            "arguments": [program, os.path.join(world["dir"], "script")], "cwd": self.cwd,
            "environment": [[k, v] for k, v in world["env"].items()], "hwcaps": self.facts.hwcaps,
            "platform": self.facts.platform, "glibc": self.facts.glibc, "machine": self.facts.machine})

    def step(self, event):
        step = self.world["steps"][event.key]
        if step["do"] == "open":
            return self.open(step["name"], step["flags"], event.rest[0], int(event.rest[1]),
                             int(event.rest[2]) if step.get("to", "here") != "here" else None)
        if step["do"] == "close":
            return self.close((event.rest[0], int(event.rest[1])), "", 0)
        lib = self.lib(step["object"])
        plt = [r for r in lib["refs"] if r["reloc"] == "plt"]
        return self.bind(event.rest[0], int(event.rest[1]), plt[step["ref"]]["name"])

    def lib(self, path):
        return next(f["lib"] for f in self.world["files"] if f["path"] == path)

    def act(self, event):
        """What a constructor or destructor did."""
        file_id, number = event.key
        act = act_of(self.world, file_id, event.source, number)
        ns = event.caller_ns
        if act[0] == "open":
            if event.opened:
                self.handles[(file_id, open_number(self.world, file_id, event.source, number))] = event.opened
            return self.open(act[1], act[2], event.caller or "", ns, None)
        if act[0] == "close":
            handle = self.handles.get((file_id, act[1]))
            return self.close(handle, event.caller or "", ns) if handle else None
        plt = [r for r in self.world["files"][file_id - 1]["lib"]["refs"] if r["reloc"] == "plt"]
        return self.bind(event.caller or "", ns, plt[act[1]]["name"])

    def open(self, name, flags, caller, ns, target):
        call = {"call": "dlopen" if target is None else "dlmopen", "name": name, "flags": flags}
        if target is not None:
            call["link_map_id"] = target
        call["caller"] = caller
        if ns:
            call["caller_ns"] = ns
        return call

    def close(self, handle, caller, ns):
        call = {"call": "dlclose", "name": handle[0], "caller": caller}
        if handle[1]:
            call["ns"] = handle[1]
        if ns:
            call["caller_ns"] = ns
        return call

    def bind(self, name, ns, symbol):
        call = {"call": "bind", "name": symbol, "flags": 0, "caller": name}
        if ns:
            call["caller_ns"] = ns
        return call


def trace_text(world, truth, facts):
    return Writer(world, truth, facts).text()
