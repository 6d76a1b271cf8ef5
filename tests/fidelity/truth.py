"""What the real ld.so did in a world, from its own log (LD_DEBUG) and the driver's records.

Both go to one descriptor, so what ld.so wrote between two records belongs to the call between them.
"""
import os
import re
import subprocess

BINDING = re.compile(r"binding file (\S+) \[(\d+)\] to (\S+) \[(\d+)\]: (\w+) symbol `([^']*)'(?: \[(.*)\])?")
ASKED = re.compile(r"file=(.*) \[(\d+)\];  (needed by|dynamically loaded by) (.*) \[(\d+)\]$")
MAPPED = re.compile(r"file=(.*) \[(\d+)\];  generating link map")
UNMAPPED = re.compile(r"file=(.*) \[(\d+)\];  destroying link map")
OPENED = re.compile(r"opening file=(.*) \[(\d+)\]; direct_opencount=(\d+)")
CALLING = re.compile(r"calling (init|fini): (\S+)(?: \[(\d+)\])?")
OF_LD_SO_ITSELF = ("calloc", "free", "malloc", "realloc", "_r_debug")  # the last since 2.38
DEBUG = "files:libs:bindings"  # a comma would end the variable for qemu -E


class Event:
    """A call: by the driver (step) or by a constructor or destructor (file id, number of the act)."""

    def __init__(self, source, key, rest, depth, cwd):
        self.source, self.key, self.depth, self.cwd = source, key, depth, cwd
        self.rest = rest          # what the record says, split at tabs
        self.outcome = None       # ok, failed, none, fault; None: the process ended inside
        self.opened = None        # (l_name, namespace) that an open returned
        self.error = ""
        self.caller = None        # l_name of a nested call's caller
        self.caller_ns = 0
        self.parent = None


class Truth:
    def __init__(self):
        self.events = []
        self.loads = []      # (real path, name asked for, how, by whom, event number or None)
        self.bindings = []   # (from, to, symbol, version, kind, event number or None)
        self.unloads = []    # (real path, event number)
        self.started = False  # main was reached
        self.finished = False
        self.rc = 0
        self.messages = []   # other lines, without pid: fatal errors
        self.in_start = 0    # events during start-up
        self.broken = False  # ld.so failed by itself: an assertion, a crash
        self.made = set()    # files of the world, as real paths inside
        self.program = self.executable = ""
        self.referenced = set()  # names that the program itself refers to

    def distinct_bindings(self, lazy):
        """Without repetition for the same two link maps."""
        seen, rows = set(), []
        for row in self.bindings:
            if row[0] == self.executable and row[2] in OF_LD_SO_ITSELF and row[2] not in self.referenced:
                continue  # ld.so asks for these itself, on behalf of the program (dl-minimal.c)
            if row[:7] not in seen:
                seen.add(row[:7])
                rows.append(row[:5])
        return rows

    def reason(self):
        """Why the process did not start, in ld.so's words."""
        for line in self.messages:
            if "no version information available" in line or ": Relink `" in line:
                continue
            if ": weak version `" in line:  # said, and gone past (match_symbol, elf/dl-version.c)
                continue
            if line.endswith(": CPU ISA level is lower than required"):  # without the program's name
                return line
            if line.startswith("warning: "):  # of protected symbols
                continue
            if line.startswith(self.program + ": "):
                text = line[len(self.program) + 2:]
                if not text.startswith("error: "):
                    return text
        return "?"


def environment(world, place):
    env = {k: v for k, v in world["env"].items()}
    return env


def run(world, place, timeout=20):
    env = environment(world, place)
    log_path = os.path.join(world["outside"], "log")
    program = os.path.join(world["dir"], world["program"])
    command = [program, os.path.join(world["dir"], "script")]
    run_env = dict(env, LD_DEBUG=DEBUG)
    if place.command:  # an emulator: its own loader must not see the world's variables
        settings = []
        for name, value in run_env.items():
            settings += ["-E", f"{name}={value}"]
        command = place.command + settings + [place.outside(program)] + command[1:]
        run_env = {"PATH": os.environ.get("PATH", "")}
        # qemu passes argv[0] on; the program shall see its path inside the root
        command[len(place.command):len(place.command)] = ["-0", program]
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, env=run_env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd=os.path.join(world["outside"], world.get("cwd", ".")))
        try:
            rc = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            rc = -1000
    with open(log_path, encoding="utf-8", errors="surrogateescape") as f:
        reader = Reader(world, place)
        truth = reader.read(f)
    truth.rc = rc
    truth.program = program
    truth.executable = place.inside(os.path.realpath(place.outside(program)))
    truth.broken = rc < 0 or rc > 128 or any("Inconsistency detected" in m for m in truth.messages)
    truth.referenced = {ref["name"] for file in world["files"] if file["path"] == world["program"] and "lib" in file
                        for ref in file["lib"].get("refs", ())}
    truth.made = {place.inside(p) for p in reader.paths}
    return truth


class Reader:
    def __init__(self, world, place):
        self.world, self.place = world, place
        self.truth = Truth()
        self.cwd = os.path.normpath(os.path.join(world["dir"], world.get("cwd", ".")))
        self.start_cwd = self.cwd
        self.known = {}       # l_name -> real path
        self.name_of = {}     # file id -> l_name of its running constructor
        self.stack = []       # running events, by number
        self.candidate = None
        self.pending = None
        self.last_open = None
        self.paths = self.own_files()
        self.last_ns = {}     # real path -> namespace it was last mapped into
        self.loaded = {}      # (real path, namespace) -> how often it was mapped

    def own_files(self):
        """Real path -> number in the entry table, which a hard link shares with its target."""
        ids, found = self.world["ids"], {}
        for file in self.world["files"]:
            path = os.path.realpath(os.path.join(self.world["outside"], file["path"]))
            if "link" not in file and "dir" not in file:
                found[path] = ids[file.get("hard", file["path"])]
        return found

    def real(self, path, cwd=None):
        """Links resolved, as seen inside the root."""
        if "/" not in path:
            return path
        path = os.path.join(cwd or self.cwd, path)
        return self.place.inside(os.path.realpath(self.place.outside(path)))

    def object(self, name):
        if name not in self.known:
            self.known[name] = self.real(name, self.start_cwd)
        return self.known[name]

    def instance(self, name, ns):
        """Which link map of that name: they come and go."""
        return (name, ns, self.loaded.get((self.object(name), ns), 0))

    def now(self):
        return self.stack[-1] if self.stack else None

    def read(self, lines):
        previous = ""
        hidden = self.place.root + "/" if self.place.root else None  # qemu shows paths outside the root
        for line in lines:
            line = line.rstrip("\n").replace(hidden, "/") if hidden else line.rstrip("\n")
            if line.startswith("@"):
                self.record(line)
            else:
                head, colon, rest = line.partition(":\t")
                if colon and head.strip().isdigit():
                    self.log(rest, previous)
                    previous = rest
                elif line.strip():
                    self.truth.messages.append(line)
        return self.truth

    # One line of ld.so.
    def log(self, line, previous):
        t = self.truth
        if line.startswith("binding file"):
            m = BINDING.match(line)
            if m and not m[1].startswith("linux-vdso"):
                t.bindings.append((self.object(m[1]), self.object(m[3]), m[6], m[7] or "-", m[5],
                                   self.instance(m[1], m[2]), self.instance(m[3], m[4]), self.now()))
        elif line.startswith("  trying file="):
            self.candidate = line[len("  trying file="):]
        elif m := MAPPED.match(line):
            self.mapped(m[1], m[2])
        elif m := ASKED.match(line):
            if not line.endswith("(relocation dependency)"):
                how = "needed-by" if m[3] == "needed by" else "dlopen-by"
                self.pending = (how, m[4])
                self.candidate = None
        elif m := OPENED.match(line):
            self.last_open = (m[1], int(m[2]))
        elif m := CALLING.match(line):
            number = self.paths.get(os.path.realpath(self.place.outside(self.object(m[2]))))
            ns = m[3] if m[3] is not None else self.last_ns.get(self.object(m[2]), 0)
            self.name_of[number] = (m[2], int(ns))
        elif m := UNMAPPED.match(line):
            t.unloads.append((self.object(m[1]), self.now()))
        elif "error" in line or "cannot" in line:
            t.messages.append(line)

    def mapped(self, asked, ns):
        how, by = self.pending or ("?", "")  # dlmopen of a path in a given namespace: no word of who
        self.pending = None
        if "/" in asked:
            path = asked
            if "$" in asked:
                origin = os.path.dirname(os.path.join(self.start_cwd, by if "/" in by else by))
                if self.real(by) == self.real(os.path.join(self.world["dir"], self.world["program"])):
                    origin = os.path.dirname(self.real(by))  # the program's $ORIGIN is the resolved one
                path = asked.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        else:
            path = self.candidate or asked
        real = self.real(os.path.join(self.cwd, path))
        self.known[path] = real
        self.last_ns[real] = ns
        self.loaded[(real, ns)] = self.loaded.get((real, ns), 0) + 1
        self.truth.loads.append((real, asked, how, self.object(by) if by else "", self.now()))

    # One record of the driver or of a constructor.
    def record(self, line):
        t, kind = self.truth, line[1]
        if kind == "M":
            t.started = True
            t.in_start = len(t.events)
        elif kind == "Q":
            t.finished = True
        elif kind == "D":
            self.cwd = os.path.normpath(os.path.join(self.cwd, line.split(" ", 3)[3]))
        elif kind == "B":
            parts = line.split(" ", 3 if line[3] == "s" else 4)
            key = int(parts[2]) if parts[1] == "s" else (int(parts[2]), int(parts[3]))
            rest = parts[3].split("\t") if parts[1] == "s" else []
            event = Event(parts[1], key, rest, len(self.stack), self.cwd)
            event.parent = self.now()
            if parts[1] != "s":
                event.caller, event.caller_ns = self.name_of.get(key[0], ("", 0))
            t.events.append(event)
            self.stack.append(len(t.events) - 1)
            self.last_open = self.pending = None
        elif kind == "E" and self.stack:
            self.ended(line, t.events[self.stack.pop()])

    def ended(self, line, event):
        opened, self.last_open = self.last_open, None
        if event.source == "s":
            words = line.split(" ", 3)[3].split("\t")
            event.outcome = words[0]
            if words[0] == "ok" and len(words) > 2:
                event.opened = (words[1], int(words[2]))
            event.error = words[1] if words[0] == "failed" else ""
            # An object of another namespace calls the dlopen of its own libc, which keeps the error
            # for its own dlerror: ours knows of none.
            if words[0] == "none" and event.rest[1:2] not in ([], ["0"]):
                event.outcome = "none elsewhere"
        else:
            event.opened = opened
            event.outcome = "ok" if opened else "?"
