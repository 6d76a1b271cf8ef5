"""Random worlds. One seed, one world, on every machine.

Names are few and shared on purpose: the same library in several folders, the same symbol in many
libraries, so that each choice of ld.so has rivals. Most references can be resolved (libs of their own
dependencies, or libz_all.so), since a world that fails to load shows nothing but its first error.
"""
import random

import world  # noqa: F401  makes elfimage importable
from elfimage import (DF_1_NODEFLIB, DF_1_NODELETE, DF_1_NOOPEN, DF_1_NOW, DF_BIND_NOW, DF_STATIC_TLS, DF_SYMBOLIC,
                      INDIRECT_EXTERN_ACCESS, PROPERTY_1_NEEDED, PROPERTY_X86_ISA_1_NEEDED, RTLD_DEEPBIND, RTLD_GLOBAL,
                      RTLD_LAZY, RTLD_NODELETE, RTLD_NOLOAD, RTLD_NOW)

ALL = "libz_all.so"


class Generator:
    def __init__(self, seed, arch="x86_64"):
        self.r = random.Random(seed)
        self.seed, self.arch = seed, arch
        r = self.r
        self.chance = lambda p: r.random() < p
        self.dirs = ["d1", "d2", "d3", "d4"][:r.randint(1, 4)]
        self.names = ["libf%s.so" % c for c in "abcdefghij"[:r.randint(2, 9)]]
        self.symbols = ["s%d" % i for i in range(r.randint(2, 14))]
        self.uniques = ["u%d" % i for i in range(r.choice([0, 0, 1, 3]))]
        self.tls = ["t%d" % i for i in range(r.choice([0, 0, 1, 3]))]
        self.ifuncs = ["i%d" % i for i in range(r.choice([0, 0, 0, 2]))]
        self.versions = ["V1", "V2", "V3"][:r.choice([0, 1, 2, 3])]
        self.versioned = {n for n in self.names if self.versions and self.chance(0.6)}
        self.provides = {n: self.pick_symbols(0.5) for n in self.names}
        self.namespaces = self.chance(0.12)
        self.ctors = self.chance(0.3)
        self.big_tls = self.chance(0.08)
        self.protected = self.chance(0.4)
        self.churn = self.chance(0.3)  # many opens and closes
        self.tidy = self.chance(0.5)  # a world without odd paths
        self.reach = r.choice(["variable", "rpath", "each", "each", "wild"])  # how most names are found
        self.files = []

    def pick_symbols(self, share):
        chosen = [s for s in self.symbols + self.uniques + self.tls + self.ifuncs if self.chance(share)]
        return chosen or [self.symbols[0]]

    def world(self):
        r = self.r
        self.places = [(directory, name) for name in self.names
                       for directory in r.sample(self.dirs, min(len(self.dirs), r.choice([1, 1, 1, 2, 3])))]
        self.dirs = sorted({directory for directory, name in self.places})
        for directory, name in self.places:
            self.library(name, directory)
        self.provide_all()
        self.odd_files()
        self.program()
        self.demands()
        world = {"seed": self.seed, "arch": self.arch, "files": self.files, "program": self.program_path,
                 "env": self.environment(), "steps": self.steps()}
        if self.chance(0.15):
            world["cwd"] = r.choice(self.dirs)
        return world

    # Libraries
    def kind(self, name):
        return {"s": None, "u": "object", "t": "tls", "i": "ifunc"}[name[0]]

    def definition(self, name, in_library):
        r = self.r
        d = {"name": name}
        kind = self.kind(name) or r.choice(["func", "func", "func", "object", "notype"])
        d["type"] = kind
        if name[0] == "u":
            d["bind"] = "unique"
        elif self.chance(0.15):
            d["bind"] = "weak"
        elif self.chance(0.02):
            d["bind"] = "local"
        if self.protected and self.chance(0.25):
            d["vis"] = r.choice(["protected", "protected", "hidden", "internal"])
        if in_library in self.versioned and self.chance(0.75):
            d["version"] = r.choice(self.versions)
        return d

    def definitions(self, name):
        out = []
        for symbol in self.provides[name]:
            if self.chance(0.08):
                continue
            d = self.definition(symbol, name)
            out.append(d)
            if d.get("version") and self.chance(0.3):  # further versions of one name
                others = [v for v in self.versions if v != d["version"]]
                for v in others[:self.r.randint(0, len(others))]:
                    out.append(dict(d, version=v, hidden=True))
                if self.chance(0.2):
                    d["hidden"] = True
        for symbol in self.symbols:
            if symbol not in self.provides[name] and self.chance(0.06):
                out.append(self.definition(symbol, name))
        return out

    def reference(self, symbol, needed, now):
        r = self.r
        ref = {"name": symbol}
        if symbol[0] == "t":
            ref["reloc"] = r.choice(["dtp", "dtp", "tlsdesc", "tpoff"])
        elif symbol[0] == "u":
            ref["reloc"] = r.choice(["glob", "abs"])
        else:
            ref["reloc"] = r.choice(["plt", "plt", "plt", "glob", "glob", "abs", "pltnow"])
            if ref["reloc"] == "plt" and self.chance(0.05):
                ref["value"] = True
        givers = [n for n in needed if n in self.versioned and symbol in self.provides.get(n, ())]
        if givers and self.chance(0.7):
            ref["file"] = r.choice(givers)
            ref["version"] = r.choice(self.versions)
            ref["hidden"] = self.chance(0.05)
        return ref

    def references(self, needed, own, closed):
        out, r = [], self.r
        reach = set(own)
        for n in needed:
            reach.update(self.provides.get(n, ()))
        pool = self.symbols + self.uniques + self.tls + self.ifuncs
        for symbol in pool:
            if symbol in reach or closed:
                if self.chance(0.55):
                    out.append(self.reference(symbol, needed, True))
            elif self.chance(0.3):
                ref = self.reference(symbol, needed, False)
                ref["weak"] = not self.chance(0.08 if own is not None else 0)
                out.append(ref)
            if symbol in own and self.chance(0.05) and out and out[-1]["name"] == symbol:
                out[-1]["undef"] = True
        r.shuffle(out)
        if out and self.chance(0.1):  # a second relocation by one symbol; no linker makes two PLT slots for it
            again = dict(r.choice(out))
            out += [again] if again["reloc"] != "plt" else []
        return out

    def needed(self, name):
        r = self.r
        count = r.choice([0, 0, 1, 1, 2, 2, 3])
        chosen = r.sample(self.names, min(count, len(self.names)))
        return [n for n in chosen if n != name or self.chance(0.05)]

    def spelled(self, name):
        """A NEEDED entry: mostly the plain name."""
        if self.tidy or self.chance(0.9):
            return name
        return self.r.choice(["@W@/%s/%s" % (self.r.choice(self.dirs), name), "$ORIGIN/" + name,
                              "${ORIGIN}/../%s/%s" % (self.r.choice(self.dirs), name), "libmissing.so",
                              "%s/%s" % (self.r.choice(self.dirs), name)])

    def paths(self):
        """A search path of one to four elements."""
        r = self.r
        choices = ["$ORIGIN"] + ["@W@/" + d for d in self.dirs] + ["$ORIGIN/../" + d for d in self.dirs]
        odd = ["", "@W@/none", "@W@/d1/", "${ORIGIN}//../d1", "d1", ".", "@W@/link1", "@W@/d2//", "$ORIGIN/$LIB",
               "@W@/d1/../d2", "/", "$PLATFORM", "@W@/$PLATFORM", "$ORIGIN/none", "@W@/file.txt", "$NOSUCH"]
        out = [r.choice(choices) for _ in range(r.choice([1, 1, 2, 2, 3, 4]))]
        if not self.tidy and self.chance(0.4):
            out.insert(r.randrange(len(out) + 1), r.choice(odd))
        return ":".join(out)

    def all_dirs(self):
        dirs = ["@W@/" + d for d in self.dirs]
        self.r.shuffle(dirs)
        return ":".join(dirs)

    def soname(self, name):
        if self.chance(0.78):
            return name
        return None if self.chance(0.5) else self.r.choice(self.names + [name + ".1"])

    def library(self, name, directory):
        r = self.r
        needed = self.needed(name)
        closed = self.chance(0.7)
        own = self.definitions(name)
        lib = {"soname": self.soname(name), "needed": [self.spelled(n) for n in needed],
               "defs": own, "refs": self.references(needed, {d["name"] for d in own}, closed)}
        if closed:
            lib["needed"].append(ALL)
        if self.chance(0.15):
            lib["needed"].insert(r.randrange(len(lib["needed"]) + 1), "libc.so.6")
        for ref in lib["refs"]:
            if ref.get("file") and ref["file"] not in lib["needed"]:
                ref.pop("file"), ref.pop("version"), ref.pop("hidden", 0)
        if name in self.versioned:
            lib["versions"] = list(self.versions) if self.chance(0.9) else self.versions[:1]
            lib["force_versions"] = True
            if not self.versions or self.chance(0.03):
                lib["needs"] = [[n, "VX"] + (["weak"] if self.chance(0.5) else []) for n in needed
                                if n in self.versioned and n in lib["needed"]][:1]
        if self.chance(0.55):
            lib["runpath" if self.chance(0.5) else "rpath"] = self.paths()
            if self.chance(0.08):
                lib["runpath" if "rpath" in lib else "rpath"] = self.paths()
        if self.reach == "each" and self.chance(0.93):
            key = "runpath" if "runpath" in lib or self.chance(0.6) else "rpath"
            lib[key] = lib[key] + ":" + self.all_dirs() if key in lib else self.all_dirs()
        elif self.reach == "rpath" and self.chance(0.85):
            lib.pop("runpath", 0)
        self.oddities(lib, name)
        self.files.append({"path": directory + "/" + name, "lib": lib})

    def oddities(self, lib, name):
        r = self.r
        lib["hash"] = r.choice(["gnu", "gnu", "gnu", "sysv", "both"])
        if any(d["type"] == "tls" for d in lib["defs"]) or self.chance(0.05):
            lib["tls"] = r.choice([8, 16, 64, 120, 400, 900, 1700] if self.big_tls else [8, 16, 64])
            lib["tls_align"] = r.choice([8, 8, 16, 64])
        if self.chance(0.06):
            lib["symbolic"] = True
        flags = 0
        if self.chance(0.06):
            flags |= DF_SYMBOLIC
        if self.chance(0.04):
            flags |= DF_BIND_NOW
        if self.chance(0.02):
            flags |= DF_STATIC_TLS
        lib["flags"] = flags
        flags_1 = 0
        for bit, p in ((DF_1_NOW, 0.04), (DF_1_NODELETE, 0.05), (DF_1_NODEFLIB, 0.03), (DF_1_NOOPEN, 0.01)):
            flags_1 |= bit if self.chance(p) else 0
        lib["flags_1"] = flags_1
        if self.chance(0.03):
            lib[r.choice(["auxiliary", "filter"])] = [r.choice(self.names)]
        if self.chance(0.35):
            lib["opener"] = True
            lib["needed"].append("libc.so.6")
        if self.ctors and self.chance(0.3):
            lib["init"] = [["open", self.open_name(), self.flags()] for _ in range(r.choice([1, 1, 2]))]
            if "libc.so.6" not in lib["needed"]:
                lib["needed"].append("libc.so.6")
            plt = [i for i, ref in enumerate(x for x in lib["refs"] if x["reloc"] == "plt") if not ref.get("weak")]
            if plt and self.chance(0.4):
                lib["init"].insert(r.randrange(len(lib["init"]) + 1), ["call", r.choice(plt)])
            if self.chance(0.3):
                lib["fini"] = [["close", 0]]

    def provide_all(self):
        if self.chance(0.06):
            return
        defs = [{"name": s, "type": self.kind(s) or "func", "bind": "unique" if s[0] == "u" else "global"}
                for s in self.symbols + self.uniques + self.tls + self.ifuncs]
        lib = {"soname": ALL, "defs": defs, "refs": []}
        if self.tls:
            lib["tls"] = 64
        for directory in self.dirs:
            if directory == self.dirs[0]:
                self.files.append({"path": directory + "/" + ALL, "lib": lib})
            else:
                self.files.append({"path": directory + "/" + ALL, "hard": self.dirs[0] + "/" + ALL})

    def odd_files(self):
        """Links, copies under other names, files that are no libraries, hwcaps folders."""
        r = self.r
        libs = [f for f in self.files if "lib" in f]
        have = {f["path"] for f in self.files}

        def add(path, **what):
            if path not in have:
                have.add(path)
                self.files.append(dict(path=path, **what))

        if self.chance(0.4):
            add("link1", link=r.choice(self.dirs))
        for _ in range(r.choice([0, 0, 1, 2])):
            target = r.choice(libs)["path"]
            path = "%s/%s" % (r.choice(self.dirs), r.choice(self.names))
            if self.chance(0.5):
                add(path, hard=target)
            else:
                add(path, link="../" + target)
        for _ in range(r.choice([0, 0, 0, 1])):
            path = "%s/%s" % (r.choice(self.dirs), r.choice(self.names))
            bad = r.choice(["text", "empty", "class", "machine", "exec", "short"])
            self.bad_file(add, path, bad)
        for _ in range(r.choice([0, 0, 0, 1, 2])):
            source = r.choice(libs)
            sub = r.choice(["glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v4", "tls",
                            "x86_64", "tls/x86_64", "haswell", "avx512_1"])
            folder, name = source["path"].split("/")
            if self.chance(0.5):
                add("%s/%s/%s" % (folder, sub, name), lib=dict(source["lib"]))
            else:
                add("%s/%s/%s" % (r.choice(self.dirs), sub, name), link="/".join([".."] * (sub.count("/") + 2)) + "/" + source["path"])

    def bad_file(self, add, path, bad):
        if bad == "text":
            add(path, text="version https://git-lfs.example/spec/v1\n" * 3)
        elif bad == "empty":
            add(path, text="")
        elif bad == "short":
            add(path, lib={"raw": {"truncate": 40}})
        elif bad == "class":
            add(path, lib={"raw": {"ehdr": {"ident": "7f454c4601010100" + "00" * 8}}})
        elif bad == "machine":
            # And what else is wrong with the identification: byte order, version, OS ABI, its version, padding.
            ident = self.r.choice(["0201010000000000", "0202010000000000", "0201020000000000", "0201010900000000", "0201010005000000",
                                   "0201010000010000"]) + "00" * 4
            add(path, lib={"raw": {"ehdr": {"machine": 183 if self.arch == "x86_64" else 62, "ident": "7f454c46" + ident}}})
        else:
            add(path, lib={"flags_1": 0x8000000})  # DF_1_PIE

    def program(self):
        r = self.r
        needed = r.sample(self.names, r.randint(0, min(3, len(self.names))))
        closed = self.chance(0.4)
        lib = {"exec": True, "needed": [self.spelled(n) for n in needed], "defs": [], "opener": self.chance(0.5),
               "pie": self.chance(0.8)}
        own = [d for d in (self.definition(s, "") for s in self.symbols if self.chance(0.1))]
        lib["defs"] = own
        lib["refs"] = self.references(needed, {d["name"] for d in own}, closed)
        for ref in lib["refs"]:
            if ref["reloc"] in ("glob", "abs") and not ref.get("weak") and self.chance(0.4):
                if ref["name"] not in {d["name"] for d in own} and ref["name"][0] in "su":
                    ref["reloc"] = "copy"
            if ref.get("file") and ref["file"] not in lib["needed"]:
                ref.pop("file"), ref.pop("version"), ref.pop("hidden", 0)
        if closed:
            lib["needed"].append(ALL)
        lib["needed"].insert(r.randrange(len(lib["needed"]) + 1), "@D@")
        lib["needed"].append("libc.so.6")
        if self.chance(0.8):
            lib["runpath" if self.chance(0.5) else "rpath"] = self.paths() + ":@W@/d1"
        if self.reach in ("rpath", "each"):
            lib.pop("runpath", 0)
            lib["rpath" if self.reach == "rpath" or self.chance(0.5) else "runpath"] = self.all_dirs()
        if any(x[0] == "t" for x in (d["name"] for d in own)):
            lib["tls"] = 64
        self.files.append({"path": "bin/prog", "lib": lib})
        self.program_path = "bin/prog"
        if self.chance(0.15):
            self.files.append({"path": "prog", "link": "bin/prog"})
            self.program_path = "prog"

    def demands(self):
        """What files ask of ld.so, the CPU or the address space. Dice of its own: the worlds of older seeds stay."""
        dice = random.Random("demands %s" % self.seed)
        for file in self.files:
            spec = file.get("lib")
            if spec is None or "raw" in spec or dice.random() > 0.03:
                continue
            kind = dice.choice(["relr", "relr", "property", "property", "property", "size"])
            if kind == "relr":
                spec["relr"] = True
                spec["needed"] = spec.get("needed", []) + dice.choice([[], ["libc.so.6"], ["libm.so.6"]])
                for need in spec["needed"]:
                    if need in ("libc.so.6", "libm.so.6") and not spec.get("exec"):
                        wanted = ["GLIBC_2.17", "GLIBC_ABI_DT_RELR"] if need == "libc.so.6" else ["GLIBC_2.17"]
                        spec["needs"] = spec.get("needs", []) + [[need, dice.choice(wanted)]]
            elif kind == "property":
                spec["properties"] = dice.choice([
                    [[PROPERTY_1_NEEDED, INDIRECT_EXTERN_ACCESS]], [[PROPERTY_1_NEEDED, INDIRECT_EXTERN_ACCESS]],
                    [[PROPERTY_X86_ISA_1_NEEDED, 1]], [[PROPERTY_X86_ISA_1_NEEDED, 1 << dice.choice([1, 2, 20])]]])
            elif not spec.get("exec"):
                field, bits = dice.choice([("memsz", [50, 62]), ("align", [14, 16, 48, 62])])
                spec["raw"] = {"phdr": {dice.choice("01"): {field: 1 << dice.choice(bits)}}}

    def environment(self):
        env, r = {}, self.r
        if self.reach == "variable":
            env["LD_LIBRARY_PATH"] = self.all_dirs()
        elif self.chance(0.25):
            env["LD_LIBRARY_PATH"] = self.library_path()
        if self.chance(0.15):
            env["LD_PRELOAD"] = r.choice([":", " "]).join(
                self.r.choice([n, "@W@/%s/%s" % (r.choice(self.dirs), n)])
                for n in r.sample(self.names, r.choice([1, 1, 2])))
        if self.chance(0.5):
            env["LD_BIND_NOW"] = "1"
        if self.chance(0.03):
            env["LD_DYNAMIC_WEAK"] = "1"
        return env

    def library_path(self):
        text = self.paths().replace("$ORIGIN", "@W@/bin") if self.chance(0.7) else self.paths()
        return text.replace(":", ";") if self.chance(0.1) else text

    # Calls
    def flags(self):
        flags = RTLD_NOW if self.chance(0.5) else RTLD_LAZY
        for bit, p in ((RTLD_GLOBAL, 0.35), (RTLD_NODELETE, 0.05), (RTLD_DEEPBIND, 0.1), (RTLD_NOLOAD, 0.06)):
            flags |= bit if self.chance(p) else 0
        return flags if not self.chance(0.005) else 0

    def open_name(self):
        r = self.r
        name, directory = r.choice(self.names), r.choice(self.dirs)
        if self.chance(0.02):
            return "libmissing.so"
        if self.churn or self.chance(0.6):  # a file that is there
            directory, name = r.choice(self.places)
            if self.churn:
                return "@W@/%s/%s" % (directory, name)
        return r.choice([name, name, "@W@/%s/%s" % (directory, name), "@W@/%s/%s" % (directory, name),
                         "@W@/link1/" + name if self.chance(0.3) else name,
                         "%s/%s" % (directory, name) if self.chance(0.3) else name,
                         "$ORIGIN/../%s/%s" % (directory, name) if self.chance(0.5) else name])

    def steps(self):
        r, out = self.r, []
        libs = [f["path"] for f in self.files if "lib" in f]
        lazy = [(f["path"], i) for f in self.files if "lib" in f
                for i in range(sum(x["reloc"] == "plt" for x in f["lib"].get("refs", ())))]
        openers = [f["path"] for f in self.files if f.get("lib", {}).get("opener")]
        slots = []
        for _ in range(r.randint(8, 24) if self.churn else r.randint(1, 10)):
            kind = r.random() * 0.98 + 0.02
            if self.churn and slots and kind < 0.6 and self.chance(0.35):
                kind = 0.7
            if kind < 0.6 or not slots:
                step = {"do": "open", "slot": len(slots), "name": self.open_name(), "flags": self.flags(),
                        "from": r.choice(openers) if openers and self.chance(0.5) else None,
                        "in": r.choice(slots) if slots and self.namespaces and self.chance(0.5) else -1}
                if self.namespaces and self.chance(0.4):
                    step["to"] = r.choice(["-1", "0"] + ["s%d" % s for s in slots])
                    step["flags"] &= ~RTLD_GLOBAL
                if self.chance(0.02):
                    step["name"] = None
                slots.append(len(slots))
                out.append(step)
            elif kind < 0.82 or not lazy:
                out.append({"do": "close", "slot": r.choice(slots)})
            elif kind < 0.98:
                path, index = r.choice(lazy)
                out.append({"do": "call", "object": path, "ref": index,
                            "in": r.choice(slots) if slots and self.namespaces and self.chance(0.5) else -1})
            else:
                out.append({"do": "chdir", "to": r.choice(["..", ".", "@W@/bin"])})
        del libs
        return out


TABLES = ["headers", "dynamic", "dynamic", "gnu", "gnu", "sysv", "symtab", "symtab", "strings", "versym", "verneed",
          "verneed", "verdef", "verdef", "rela", "rela", "jmprel"]


def spoil(world):
    """Writes over some bytes of a table or two, as a bad disk or a tool would."""
    dice = random.Random("spoil %s" % world["seed"])
    libraries = [f["lib"] for f in world["files"] if "lib" in f and not f["lib"].get("exec")]
    for spec in dice.sample(libraries, min(len(libraries), dice.choice([1, 1, 2]))):
        size = dice.choice([1, 1, 1, 2, 4, 8, 8, 16, 64])
        blob = bytes(size) if dice.random() < 0.5 else dice.randbytes(size) if dice.random() < 0.7 else b"\xff" * size
        spec.setdefault("raw", {}).setdefault("patch", []).append(
            [dice.choice(TABLES), dice.randrange(1 << 20), blob.hex()])
    world["spoiled"] = True
    return world


def generate(seed, arch="x86_64", spoiled=False):
    world = Generator(seed, arch).world()
    return spoil(world) if spoiled else world
