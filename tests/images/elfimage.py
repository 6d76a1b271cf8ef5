"""Writes ELF64 shared objects and programs from a description, without a compiler.

The real ld.so loads them, and they cost microseconds, so tests can make thousands. A description is
plain data (JSON-able), see Spec below; `build(spec)` gives the bytes. Whatever a test wants to be
wrong is set through `raw`.

Layout: one writable segment with headers, tables, dynamic section, GOT and data, then one executable
segment with code. All tables lie before the code, so code can be written when every address is known.

Spec (all keys optional):
  arch        "x86_64" (default) or "aarch64"
  exec        True: a program; its _start gives `main` (a symbol name) to __libc_start_main
  interp      PT_INTERP of a program;  pie: False makes it ET_EXEC
  id          number in the entry table (see ENTRY_TAG), by which the driver knows the file
  soname, needed [..], rpath, runpath, auxiliary [..], filter [..]
  flags, flags_1 (DF_, DF_1_ bits), symbolic (DT_SYMBOLIC), bind_now (DT_BIND_NOW), textrel
  hash        "gnu" (default), "sysv", "both" or "none"
  defs        [{name, version, hidden, bind, type, vis, size, members, state}]: version None is the base version,
              hidden: not the default version. bind: global weak unique local. type: func object tls
              ifunc notype. vis: default protected hidden internal. members: offsets that its code
              reads of its argument, which gives it its size; state: it reads the library's own data
  versions    names of further versions to define, beside those of defs
  refs        [{name, version, file, weak, reloc, vis, value, undef, hidden}]: reloc is abs glob plt
              pltnow dtp tpoff tlsdesc copy size none. value: an undefined symbol with an address.
              A reference to a name of defs uses that symbol, unless undef
  needs       further version needs: [[file, version, "weak"?], ..]
  tls         size of PT_TLS;  tls_align
  properties  [[type, value], ..] of a NT_GNU_PROPERTY_TYPE_0 note, in a PT_NOTE
  relr        True: an empty DT_RELR
  stack       PT_GNU_STACK flags (default 6, read and write; None: absent)
  opener      True: refer to dlopen and dlmopen and export trampolines to them by the entry table
  init, fini  [["open", name, flags], ["call", n], ["close", k]] done by a constructor / destructor:
              n counts the plt references, k the opens before it. Each writes records to descriptor 2
  literals    strings in read-only data
  needed_order  tags in this order: "needed auxiliary filter" (default: auxiliary, filter, needed)
  raw         {"ehdr": {name: value}, "phdr": {index: {name: value}}, "dyn": [[tag, value], ..],
               "dyn_set": {tag: value}, "dyn_drop": [tag, ..], "truncate": size, "patch": [[at, hex]]}. With a table's name before
               `at` (headers, dynamic, gnu, strings, symtab, verneed, rela, ...) it counts from there and around
"""
import functools
import struct

ENTRY_TAG = 0x6000F1DE  # our own dynamic tag: where the entry table lies
FIRST_DATA = 16  # an address in the writable segment

EM = {"x86_64": 62, "aarch64": 183}
INTERP = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
RELOC = {
    "x86_64": dict(abs=1, copy=5, glob=6, plt=7, pltnow=7, relative=8, dtpmod=16, dtpoff=17,
                   tpoff=18, size=33, tlsdesc=36, irelative=37),
    "aarch64": dict(abs=257, copy=1024, glob=1025, plt=1026, pltnow=1026, relative=1027,
                    dtpmod=1028, dtpoff=1029, tpoff=1030, tlsdesc=1031, irelative=1032, size=257),
}
BIND = dict(local=0, **{"global": 1}, weak=2, unique=10)
TYPE = dict(notype=0, object=1, func=2, section=3, common=5, tls=6, ifunc=10)
VIS = dict(default=0, internal=1, hidden=2, protected=3)

(DT_NEEDED, DT_PLTRELSZ, DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT,
 DT_STRSZ, DT_SYMENT) = range(1, 12)
DT_SONAME, DT_RPATH, DT_SYMBOLIC = 14, 15, 16
DT_PLTREL, DT_DEBUG, DT_TEXTREL, DT_JMPREL, DT_BIND_NOW, DT_INIT_ARRAY, DT_FINI_ARRAY = 20, 21, 22, 23, 24, 25, 26
DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_RUNPATH, DT_FLAGS = 27, 28, 29, 30
DT_RELRSZ, DT_RELR, DT_RELRENT = 35, 36, 37
DT_GNU_HASH, DT_VERSYM, DT_RELACOUNT = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFF9
DT_FLAGS_1, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFB, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF

RTLD_LAZY, RTLD_NOW, RTLD_NOLOAD, RTLD_DEEPBIND, RTLD_GLOBAL, RTLD_NODELETE = 1, 2, 4, 8, 0x100, 0x1000
DF_ORIGIN, DF_SYMBOLIC, DF_TEXTREL, DF_BIND_NOW, DF_STATIC_TLS = 1, 2, 4, 8, 16
DF_1_NOW, DF_1_GLOBAL, DF_1_NODELETE, DF_1_INITFIRST, DF_1_NOOPEN = 1, 2, 8, 0x20, 0x40
DF_1_NODEFLIB, DF_1_PIE = 0x800, 0x8000000

NT_GNU_PROPERTY_TYPE_0 = 5
PROPERTY_1_NEEDED, PROPERTY_X86_FEATURE_1_AND, PROPERTY_X86_ISA_1_NEEDED = 0xB0008000, 0xC0000002, 0xC0008002
INDIRECT_EXTERN_ACCESS = 1


@functools.lru_cache(maxsize=65536)
def gnu_hash(name):
    h = 5381
    for c in name.encode():
        h = (h * 33 + c) & 0xFFFFFFFF
    return h


@functools.lru_cache(maxsize=65536)
def sysv_hash(name):
    h = 0
    for c in name.encode():
        h = (h << 4) + c
        g = h & 0xF0000000
        h = (h ^ (g >> 24)) & 0x0FFFFFFF
    return h


def align(value, to):
    return (value + to - 1) // to * to


class Strings:
    def __init__(self):
        self.blob = bytearray(b"\0")
        self.at = {"": 0}

    def add(self, text):
        if text not in self.at:
            self.at[text] = len(self.blob)
            self.blob += text.encode() + b"\0"
        return self.at[text]


class CodeX86:
    """Machine code at a known address. Every method appends."""

    def __init__(self, base):
        self.base, self.out = base, bytearray()

    def here(self):
        return self.base + len(self.out)

    def pad(self):
        self.out += b"\xcc" * (-len(self.out) % 16)

    def rip(self, opcode, target):
        self.out += opcode
        self.out += struct.pack("<i", target - (self.here() + 4))

    def ret(self):
        self.out += b"\xc3"

    def read_members(self, offsets):
        for offset in offsets:
            self.out += b"\x48\x8b\x87" + struct.pack("<i", offset)  # mov offset(%rdi), %rax

    def read_data(self, address):
        self.rip(b"\x48\x8b\x05", address)  # mov address(%rip), %rax

    def return_address(self, target):
        self.rip(b"\x48\x8d\x05", target)  # lea rax, target
        self.ret()

    def enter(self):
        self.out += b"\x48\x83\xec\x08"  # sub rsp, 8

    def leave(self):
        self.out += b"\x48\x83\xc4\x08\xc3"

    def call_slot(self, slot):
        self.rip(b"\xff\x15", slot)

    def call(self, target):
        self.rip(b"\xe8", target)

    def write(self, text, size):
        self.out += b"\xb8\x01\0\0\0\xbf\x02\0\0\0"  # eax = 1 (write), edi = 2
        self.rip(b"\x48\x8d\x35", text)
        self.out += b"\xba" + struct.pack("<I", size) + b"\x0f\x05"

    def open_arguments(self, name, flags):
        self.rip(b"\x48\x8d\x3d", name)
        self.out += b"\xbe" + struct.pack("<I", flags)

    def store_result(self, slot):
        self.rip(b"\x48\x89\x05", slot)

    def if_slot(self, slot, body):
        """Loads the slot as first argument; body() runs if it is not zero."""
        self.rip(b"\x48\x8b\x3d", slot)
        self.out += b"\x48\x85\xff\x0f\x84\0\0\0\0"  # test rdi, rdi; jz
        at = len(self.out)
        body()
        self.out[at - 4:at] = struct.pack("<i", len(self.out) - at)

    def load_argument(self, slot):
        self.rip(b"\x48\x8b\x3d", slot)

    def start(self, main_slot, start_slot):
        # r9 = rdx, rsi = argc, rdx = argv, aligned stack, no init or fini
        self.out += b"\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54\x45\x31\xc0\x31\xc9"
        self.rip(b"\x48\x8b\x3d", main_slot)
        self.rip(b"\xff\x15", start_slot)
        self.out += b"\xf4"

    def plt(self, got_plt, slots):
        """Lazy PLT. Returns entry addresses and what each slot holds before it is bound."""
        head = self.here()
        self.rip(b"\xff\x35", got_plt + 8)
        self.rip(b"\xff\x25", got_plt + 16)
        self.pad()
        entries, waiting = [], []
        for number, slot in enumerate(slots):
            entries.append(self.here())
            self.rip(b"\xff\x25", slot)
            waiting.append(self.here())
            self.out += b"\x68" + struct.pack("<I", number)
            self.rip(b"\xe9", head)
        return entries, waiting


class CodeArm:
    """The same for AArch64. Everything lies within 1 MB, so `adr` reaches it."""

    def __init__(self, base):
        self.base, self.out = base, bytearray()

    def here(self):
        return self.base + len(self.out)

    def pad(self):
        self.out += b"\0" * (-len(self.out) % 16)

    def word(self, *words):
        for w in words:
            self.out += struct.pack("<I", w)

    def adr(self, register, target):
        offset = target - self.here()
        assert -(1 << 20) <= offset < (1 << 20)
        self.word(0x10000000 | (offset & 3) << 29 | ((offset >> 2) & 0x7FFFF) << 5 | register)

    def movz(self, register, value):
        self.word(0xD2800000 | (value & 0xFFFF) << 5 | register)

    def ret(self):
        self.word(0xD65F03C0)

    def return_address(self, target):
        self.adr(0, target)
        self.ret()

    def enter(self):
        self.word(0xA9BF7BFD)  # stp x29, x30, [sp, #-16]!

    def leave(self):
        self.word(0xA8C17BFD)  # ldp x29, x30, [sp], #16
        self.ret()

    def call_slot(self, slot):
        self.adr(16, slot)
        self.word(0xF9400210, 0xD63F0200)  # ldr x16, [x16]; blr x16

    def call(self, target):
        self.word(0x94000000 | ((target - self.here()) >> 2) & 0x3FFFFFF)

    def write(self, text, size):
        self.movz(8, 64)
        self.movz(0, 2)
        self.adr(1, text)
        self.movz(2, size)
        self.word(0xD4000001)  # svc 0

    def open_arguments(self, name, flags):
        self.adr(0, name)
        self.movz(1, flags)

    def store_result(self, slot):
        self.adr(16, slot)
        self.word(0xF9000200)

    def load_argument(self, slot):
        self.adr(16, slot)
        self.word(0xF9400200)

    def if_slot(self, slot, body):
        self.load_argument(slot)
        at = len(self.out)
        self.word(0)
        body()
        distance = (len(self.out) - at) >> 2
        self.out[at:at + 4] = struct.pack("<I", 0xB4000000 | distance << 5)  # cbz x0

    def start(self, main_slot, start_slot):
        # x29 = x30 = 0, x5 = x0 (rtld_fini), x1 = argc, x2 = argv, x6 = stack, x3 = x4 = 0
        self.word(0xD280001D, 0xD280001E, 0xAA0003E5, 0xF94003E1, 0x910023E2, 0x910003E6,
                  0xD2800003, 0xD2800004)
        self.adr(0, main_slot)
        self.word(0xF9400000)
        self.call_slot(start_slot)
        self.word(0xD4200000)

    def plt(self, got_plt, slots):
        head = self.here()
        self.word(0xA9BF7BF0)  # stp x16, x30, [sp, #-16]!
        self.adr(16, got_plt + 16)
        self.word(0xF9400211, 0xD61F0220)  # ldr x17, [x16]; br x17
        entries = []
        for slot in slots:
            entries.append(self.here())
            self.adr(16, slot)
            self.word(0xF9400211, 0xD61F0220)
        return entries, [head] * len(slots)


CODE = {"x86_64": CodeX86, "aarch64": CodeArm}


class Builder:
    def __init__(self, spec):
        self.spec = spec
        self.arch = spec.get("arch", "x86_64")
        self.exec = spec.get("exec", False)
        self.reloc = RELOC[self.arch]
        self.strings = Strings()
        self.refs = [dict(r) for r in spec.get("refs", ())]
        self.defs = [dict(d) for d in spec.get("defs", ())]
        self.init = spec.get("init") or []
        self.fini = spec.get("fini") or []
        self.add_own_references()

    # What the code we write refers to itself.
    def add_own_references(self):
        spec = self.spec
        base = "GLIBC_2.17" if self.arch == "aarch64" else "GLIBC_2.2.5"
        acts = {op[0] for op in self.init + self.fini}
        if spec.get("opener") or "open" in acts:
            self.refs.append(dict(name="dlopen", version="GLIBC_2.34", file="libc.so.6", reloc="glob", own=1))
        if spec.get("opener"):
            self.refs.append(dict(name="dlmopen", version="GLIBC_2.34", file="libc.so.6", reloc="glob", own=1))
        if "close" in acts:
            self.refs.append(dict(name="dlclose", version="GLIBC_2.34", file="libc.so.6", reloc="glob", own=1))
        if self.exec:
            self.refs.append(dict(name=spec.get("main", "fid_main"), reloc="glob", own=1))
            self.refs.append(dict(name="__libc_start_main", version="GLIBC_2.34", file="libc.so.6",
                                  reloc="glob", own=1))
        del base

    def own_slot(self, name):
        return next(r["slot"] for r in self.refs if r["name"] == name and r.get("own"))

    def build(self):
        self.number_versions()
        self.order_symbols()
        self.intern_dynamic_strings()
        self.lay_out()
        self.write_code()
        return self.emit()

    # Version indices: 1 is the file itself, then own versions, then needs.
    def number_versions(self):
        spec = self.spec
        own = []
        for name in list(spec.get("versions", ())) + [d.get("version") for d in self.defs]:
            if name and name not in own:
                own.append(name)
        self.own_versions = own
        self.version_index = {(None, v): i + 2 for i, v in enumerate(own)}
        self.needs = {}
        for r in self.refs:
            if r.get("version") and r.get("file"):
                entry = self.needs.setdefault(r["file"], {}).setdefault(r["version"], dict(weak=True, hidden=False))
                entry["weak"] &= bool(r.get("weak_need"))
                entry["hidden"] |= bool(r.get("hidden"))
        for need in spec.get("needs", ()):
            self.needs.setdefault(need[0], {}).setdefault(
                need[1], dict(weak="weak" in need[2:], hidden="hidden" in need[2:]))
        index = len(own) + 2
        for file, versions in self.needs.items():
            for version in versions:
                self.version_index[(file, version)] = index
                index += 1
        self.has_versions = bool(own or self.needs or spec.get("force_versions"))

    def order_symbols(self):
        """Null, undefined symbols, then definitions in the order of the GNU hash buckets."""
        own = {}
        for d in self.defs:
            if d.get("bind") == "local":  # no linker makes a relocation by name of its own local symbol
                continue
            if d["name"] not in own or not d.get("hidden"):
                own.setdefault(d["name"], d)
                if not d.get("hidden"):
                    own[d["name"]] = d
        undefined = {}
        for r in self.refs:
            d = own.get(r["name"])
            if r.get("own_version"):
                d = next((x for x in self.defs if x["name"] == r["name"] and x.get("version") == r["own_version"]), d)
            if r["reloc"] == "copy":
                r["symbol"] = r  # the program's own copy: a definition
                continue
            if d is not None and not r.get("undef"):
                r["symbol"] = d
            else:
                tls = r["reloc"] in ("dtp", "tpoff", "tlsdesc")
                key = (r["name"], r.get("version"), r.get("file"), bool(r.get("weak")), tls, bool(r.get("value")))
                r["symbol"] = undefined.setdefault(key, r)
        # The address of a function's PLT entry can stand for the function: linkers hash such symbols.
        addresses = [r for r in undefined.values() if r.get("value")]
        undefined = {k: r for k, r in undefined.items() if not r.get("value")}
        copies = [r for r in self.refs if r["reloc"] == "copy"]
        local = [d for d in self.defs if d.get("bind") == "local"]
        exported = [d for d in self.defs if d.get("bind") != "local"] + copies + addresses
        self.bucket_count = max(1, len(exported) * 2 // 3)
        if self.spec.get("hash", "gnu") in ("gnu", "both"):
            exported.sort(key=lambda s: gnu_hash(s["name"]) % self.bucket_count)
        self.first_exported = 1 + len(local) + len(undefined)
        self.exported = exported
        self.symbols = local + list(undefined.values()) + exported
        for i, s in enumerate(self.symbols):
            s["index"] = i + 1
            s["name_at"] = self.strings.add(s["name"])
            s["defined"] = (i < len(local) or i + 1 >= self.first_exported) and not s.get("value")

    def intern_dynamic_strings(self):
        """Entries of the dynamic section that hold strings, and the version tables."""
        add, spec = self.strings.add, self.spec
        groups = {"needed": DT_NEEDED, "auxiliary": DT_AUXILIARY, "filter": DT_FILTER}
        order = spec.get("needed_order", "auxiliary filter needed").split()
        self.dynamic = [(groups[g], add(n)) for g in order for n in spec.get(g, ())]
        for key, tag in (("soname", DT_SONAME), ("rpath", DT_RPATH), ("runpath", DT_RUNPATH)):
            if spec.get(key) is not None:
                self.dynamic.append((tag, add(spec[key])))
        self.verdef = self.make_verdef() if self.own_versions else b""
        self.verneed = self.make_verneed()

    def make_verdef(self):
        names = [self.spec.get("soname") or "base"] + self.own_versions
        out = b""
        for i, name in enumerate(names):
            last = i == len(names) - 1
            out += struct.pack("<HHHHIII", 1, 1 if i == 0 else 0, i + 1, 1, sysv_hash(name), 20,
                               0 if last else 28)
            out += struct.pack("<II", self.strings.add(name), 0)
        return out

    def make_verneed(self):
        out = b""
        files = list(self.needs.items())
        for i, (file, versions) in enumerate(files):
            size = 16 + 16 * len(versions)
            out += struct.pack("<HHIII", 1, len(versions), self.strings.add(file), 16,
                               0 if i == len(files) - 1 else size)
            for k, (version, how) in enumerate(versions.items()):
                other = self.version_index[(file, version)] | (0x8000 if how["hidden"] else 0)
                out += struct.pack("<IHHII", sysv_hash(version), 2 if how["weak"] else 0, other,
                                   self.strings.add(version), 0 if k == len(versions) - 1 else 16)
        return out

    # Addresses equal file offsets in the first segment.
    def lay_out(self):
        spec, refs = self.spec, self.refs
        self.phdr_count = 3 + (2 if self.exec else 0) + (1 if spec.get("tls") else 0) + \
            (0 if spec.get("stack", 6) is None else 1) + (1 if spec.get("properties") else 0)
        self.plt_refs = [r for r in refs if r["reloc"] == "plt"]
        data_refs = [r for r in refs if r["reloc"] not in ("plt", "none")]
        at = 64 + 56 * self.phdr_count
        place = {}

        def table(name, size, to=8):
            nonlocal at
            at = align(at, to)
            place[name] = at
            at += size

        count = len(self.symbols) + 1
        kind = spec.get("hash", "gnu")
        self.bloom_words = 1 if len(self.exported) < 16 else 4
        table("interp", len(self.interp()))
        table("notes", len(self.notes()))
        table("symtab", 24 * count)
        table("sysv", 4 * (2 + self.bucket_count + count) if kind in ("sysv", "both") else 0)
        table("gnu", 16 + 8 * self.bloom_words + 4 * self.bucket_count + 4 * len(self.exported)
              if kind in ("gnu", "both") else 0)
        table("versym", 2 * count if self.has_versions else 0)
        table("verdef", len(self.verdef))
        table("verneed", len(self.verneed))
        table("strings", len(self.strings.blob))
        relative = bool(self.init) + bool(self.fini)
        self.rela_count = relative + sum(2 if r["reloc"] == "dtp" else 1 for r in data_refs) + \
            (1 if spec.get("irelative") else 0)
        table("rela", 24 * self.rela_count)
        table("jmprel", 24 * len(self.plt_refs))
        self.dynamic_entries = 40 + len(self.dynamic)
        table("dynamic", 16 * self.dynamic_entries)
        table("got_plt", 8 * (3 + len(self.plt_refs)))
        for i, r in enumerate(self.plt_refs):
            r["slot"] = place["got_plt"] + 24 + 8 * i
        table("got", 0)
        for r in data_refs:
            r["slot"] = at
            at += 16 if r["reloc"] in ("dtp", "tlsdesc", "copy") else 8
        table("irelative", 8)
        table("init", 8)
        table("fini", 8)
        opens = sum(op[0] == "open" for op in self.init + self.fini)
        table("handles", 8 * opens)
        table("entries", 8 * (4 + len(self.plt_refs)))
        table("data", 8 * len(self.defs) + 16)
        self.place, self.data_end = place, at
        self.text_at = align(at, 16)
        self.text_vaddr = self.text_at + 0x1000
        self.vbase = 0 if not self.exec or spec.get("pie", True) else 0x400000

    def notes(self):
        array = b"".join(struct.pack("<IIII", kind, 4, value, 0) for kind, value in self.spec.get("properties", ()))
        return struct.pack("<III4s", 4, len(array), NT_GNU_PROPERTY_TYPE_0, b"GNU") + array if array else b""

    def interp(self):
        return (self.spec.get("interp") or INTERP[self.arch]).encode() + b"\0" if self.exec else b""

    def write_code(self):
        code = CODE[self.arch](self.text_vaddr)
        self.code = code
        self.ret_at = code.here()
        code.ret()
        code.pad()
        self.resolver_at = code.here()
        code.return_address(self.ret_at)
        code.pad()
        self.function_at = {}
        for d in self.defs:  # each at its own address; data too, so that a call to it returns
            if d.get("type", "func") not in ("tls", "ifunc"):
                self.function_at[id(d)] = code.here()
                if d.get("members"):
                    code.read_members(d["members"])
                if d.get("state"):
                    code.read_data(FIRST_DATA)
                code.ret()
                if d.get("members"):
                    d["size"] = code.here() - self.function_at[id(d)]
                code.pad()
        self.plt_entries, self.waiting = code.plt(self.place["got_plt"], [r["slot"] for r in self.plt_refs])
        code.pad()
        entries = [0, 0]
        if self.spec.get("opener"):
            entries = [self.trampoline(self.own_slot("dlopen")), self.trampoline(self.own_slot("dlmopen"))]
        for entry in self.plt_entries:
            code.pad()
            entries.append(code.here())
            code.enter()
            code.call(entry)
            code.leave()
        self.entries = entries
        self.handle = 0
        self.init_at = self.acts("i", self.init)
        self.fini_at = self.acts("f", self.fini)
        code.pad()
        self.start_at = code.here()
        if self.exec:
            code.start(self.own_slot(self.spec.get("main", "fid_main")), self.own_slot("__libc_start_main"))

    def trampoline(self, slot):
        self.code.pad()
        at = self.code.here()
        self.code.enter()
        self.code.call_slot(slot)
        self.code.leave()
        return at

    def acts(self, which, acts):
        """A constructor or destructor that does the acts and writes a record around each."""
        if not acts:
            return None
        code, placed = self.code, []
        for number, act in enumerate(acts):
            texts = [f"@B {which} {self.spec.get('id', 0)} {number}\n".encode(),
                     f"@E {which} {self.spec.get('id', 0)} {number}\n".encode(),
                     act[1].encode() + b"\0" if act[0] == "open" else b""]
            addresses = []
            for text in texts:
                addresses.append((code.here(), len(text)))
                code.out += text
            placed.append(addresses)
        code.pad()
        at = code.here()
        code.enter()
        for act, (begin, end, name) in zip(acts, placed):
            if act[0] == "close":
                slot = self.place["handles"] + 8 * act[1]

                def body():
                    code.write(*begin)
                    code.load_argument(slot)
                    code.call_slot(self.own_slot("dlclose"))
                    code.write(*end)
                code.if_slot(slot, body)
                continue
            code.write(*begin)
            if act[0] == "open":
                code.open_arguments(name[0], act[2])
                code.call_slot(self.own_slot("dlopen"))
                code.store_result(self.place["handles"] + 8 * self.handle)
                self.handle += 1
            else:
                code.call(self.plt_entries[act[1]])
            code.write(*end)
        code.leave()
        return at

    # Output
    def emit(self):
        self.code.out += b"".join(b"\0" + text.encode() + b"\0" for text in self.spec.get("literals", ()))
        out = bytearray(self.text_at)
        self.out = out
        place = self.place

        self.sizes = {"headers": 64 + 56 * self.phdr_count}

        def put(name, blob):
            self.sizes[name] = len(blob)
            out[place[name]:place[name] + len(blob)] = blob

        put("interp", self.interp())
        put("notes", self.notes())
        put("symtab", self.symbol_table())
        kind = self.spec.get("hash", "gnu")
        if kind in ("sysv", "both"):
            put("sysv", self.sysv_table())
        if kind in ("gnu", "both"):
            put("gnu", self.gnu_table())
        if self.has_versions:
            put("versym", self.versym_table())
        put("verdef", self.verdef)
        put("verneed", self.verneed)
        put("strings", self.strings.blob)
        self.relocations(put)
        base = self.vbase
        put("got_plt", struct.pack(f"<QQQ{len(self.waiting)}Q", base + place["dynamic"], 0, 0,
                                   *(base + w for w in self.waiting)))
        put("entries", struct.pack(f"<QQ{len(self.entries)}Q", self.spec.get("id", 0), len(self.entries),
                                   *(base + e if e else 0 for e in self.entries)))
        put("dynamic", self.dynamic_section())
        out[0:64] = self.ehdr()
        headers = self.phdrs()
        out[64:64 + len(headers)] = headers
        out += self.code.out
        return self.damage(out)

    def symbol_table(self):
        out = [b"\0" * 24]
        data, tls_used = self.place["data"] + self.vbase, 0
        for s in self.symbols:
            size, shndx, value = s.get("size", 8), 0, 0
            if s.get("reloc") == "copy":
                kind, shndx, value = "object", 1, self.vbase + s["slot"]
            elif not s["defined"]:
                kind = "tls" if s["reloc"] in ("dtp", "tpoff", "tlsdesc") else s.get("type", "notype")
                size = 0
                if s.get("value"):
                    value = self.vbase + self.ret_at
            else:
                kind, shndx = s.get("type", "func"), 1
                if kind == "tls":
                    value = tls_used
                    tls_used = (tls_used + 8) % max(8, self.spec.get("tls") or 8)
                elif kind == "ifunc":
                    value = self.vbase + self.resolver_at
                elif id(s) in self.function_at:
                    value = self.vbase + self.function_at[id(s)]
                else:
                    value = data
                    data += 8
            if "st_value" in s:
                value = s["st_value"]
            if "st_shndx" in s:
                shndx = s["st_shndx"]
            bind = s.get("bind") or ("weak" if s.get("weak") else "global")
            info = BIND[bind] << 4 | (TYPE[kind] if isinstance(kind, str) else kind)
            out.append(struct.pack("<IBBHQQ", s["name_at"], info, VIS[s.get("vis", "default")], shndx, value, size))
        return b"".join(out)

    def version_of(self, s):
        if "versym" in s:
            return s["versym"]
        version = s.get("version")
        if s["defined"] and s.get("reloc") != "copy":
            if s.get("bind") == "local":
                return 0
            if not version:
                return 1
            return self.version_index[(None, version)] | (0x8000 if s.get("hidden") else 0)
        if version and s.get("file"):
            return self.version_index[(s["file"], version)]
        return 1 if s["defined"] else 0

    def versym_table(self):
        return struct.pack(f"<{len(self.symbols) + 1}H", 0, *(self.version_of(s) for s in self.symbols))

    def sysv_table(self):
        buckets, chain = [0] * self.bucket_count, [0] * (len(self.symbols) + 1)
        for s in reversed(self.exported):
            b = sysv_hash(s["name"]) % self.bucket_count
            chain[s["index"]] = buckets[b]
            buckets[b] = s["index"]
        return struct.pack(f"<II{len(buckets)}I{len(chain)}I", len(buckets), len(chain), *buckets, *chain)

    def gnu_table(self):
        bloom, buckets, chain = [0] * self.bloom_words, [0] * self.bucket_count, []
        for i, s in enumerate(self.exported):
            h = gnu_hash(s["name"])
            bloom[(h // 64) % self.bloom_words] |= 1 << (h % 64) | 1 << ((h >> 6) % 64)
            b = h % self.bucket_count
            buckets[b] = buckets[b] or s["index"]
            last = i + 1 == len(self.exported) or gnu_hash(self.exported[i + 1]["name"]) % self.bucket_count != b
            chain.append((h & ~1) | last)
        return struct.pack(f"<IIII{len(bloom)}Q{len(buckets)}I{len(chain)}I", self.bucket_count,
                           self.first_exported, self.bloom_words, 6, *bloom, *buckets, *chain)

    def relocations(self, put):
        rela, base, kinds = [], self.vbase, self.reloc

        def add(slot, kind, symbol=0, addend=0):
            rela.append(struct.pack("<QQq", base + slot, symbol << 32 | kinds[kind], addend))

        self.relative = 0
        for name, address in (("init", self.init_at), ("fini", self.fini_at)):
            if address is not None:
                add(self.place[name], "relative", 0, base + address)
                self.relative += 1
        for r in self.refs:
            if r["reloc"] in ("plt", "none"):
                continue
            kind, symbol = r["reloc"], r["symbol"]["index"]
            if kind == "dtp":
                add(r["slot"], "dtpmod", symbol)
                add(r["slot"] + 8, "dtpoff", symbol)
            else:
                add(r["slot"], kind, symbol)
        if self.spec.get("irelative"):
            add(self.place["irelative"], "irelative", 0, base + self.resolver_at)
        put("rela", b"".join(rela))
        jmprel = [struct.pack("<QQq", base + r["slot"], r["symbol"]["index"] << 32 | kinds["plt"], 0)
                  for r in self.plt_refs]
        put("jmprel", b"".join(jmprel))

    def dynamic_section(self):
        spec, place, base = self.spec, self.place, self.vbase
        d = list(self.dynamic)
        d += [(DT_STRTAB, base + place["strings"]), (DT_STRSZ, len(self.strings.blob)),
              (DT_SYMTAB, base + place["symtab"]), (DT_SYMENT, 24)]
        kind = spec.get("hash", "gnu")
        if kind in ("sysv", "both"):
            d.append((DT_HASH, base + place["sysv"]))
        if kind in ("gnu", "both"):
            d.append((DT_GNU_HASH, base + place["gnu"]))
        if self.has_versions:
            d.append((DT_VERSYM, base + place["versym"]))
        if self.verdef:
            d += [(DT_VERDEF, base + place["verdef"]), (DT_VERDEFNUM, len(self.own_versions) + 1)]
        if self.verneed:
            d += [(DT_VERNEED, base + place["verneed"]), (DT_VERNEEDNUM, len(self.needs))]
        if self.rela_count:
            d += [(DT_RELA, base + place["rela"]), (DT_RELASZ, 24 * self.rela_count), (DT_RELAENT, 24)]
            if self.relative:
                d.append((DT_RELACOUNT, self.relative))
        if self.plt_refs:
            d += [(DT_JMPREL, base + place["jmprel"]), (DT_PLTRELSZ, 24 * len(self.plt_refs)),
                  (DT_PLTREL, DT_RELA), (DT_PLTGOT, base + place["got_plt"])]
        if self.init_at is not None:
            d += [(DT_INIT_ARRAY, base + place["init"]), (DT_INIT_ARRAYSZ, 8)]
        if self.fini_at is not None:
            d += [(DT_FINI_ARRAY, base + place["fini"]), (DT_FINI_ARRAYSZ, 8)]
        if spec.get("relr"):
            d += [(DT_RELR, base + place["data"]), (DT_RELRSZ, 0), (DT_RELRENT, 8)]
        for key, tag in (("symbolic", DT_SYMBOLIC), ("bind_now", DT_BIND_NOW), ("textrel", DT_TEXTREL)):
            if spec.get(key):
                d.append((tag, 0))
        if self.exec:
            d.append((DT_DEBUG, 0))
        flags_1 = spec.get("flags_1", 0) | (DF_1_PIE if self.exec and spec.get("pie", True) else 0)
        if spec.get("flags"):
            d.append((DT_FLAGS, spec["flags"]))
        if flags_1:
            d.append((DT_FLAGS_1, flags_1))
        d.append((ENTRY_TAG, base + place["entries"]))
        raw = spec.get("raw", {})
        drop = set(raw.get("dyn_drop", ()))
        change = {int(k): v for k, v in raw.get("dyn_set", {}).items()}
        d = [(t, change.get(t, v)) for t, v in d if t not in drop] + [tuple(x) for x in raw.get("dyn", ())]
        assert len(d) < self.dynamic_entries
        mask = 0xFFFFFFFFFFFFFFFF
        return b"".join(struct.pack("<QQ", t & mask, v & mask) for t, v in d)

    def ehdr(self):
        h = dict(ident=b"\x7fELF\x02\x01\x01" + b"\0" * 9, type=2 if self.vbase else 3, machine=EM[self.arch],
                 version=1, entry=self.vbase + self.start_at if self.exec else 0, phoff=64, shoff=0, flags=0,
                 ehsize=64, phentsize=56, phnum=self.phdr_count, shentsize=64, shnum=0, shstrndx=0)
        for key, value in self.spec.get("raw", {}).get("ehdr", {}).items():
            h[key] = bytes.fromhex(value) if key == "ident" else value
        return h["ident"] + struct.pack("<HHIQQQIHHHHHH", *list(h.values())[1:])

    def phdrs(self):
        spec, place, base = self.spec, self.place, self.vbase
        rows = []

        def add(kind, flags, at, size, memory=None, to=8, vaddr=None):
            vaddr = base + (at if vaddr is None else vaddr)
            rows.append(dict(type=kind, flags=flags, offset=at, vaddr=vaddr, paddr=vaddr, filesz=size,
                             memsz=size if memory is None else memory, align=to))

        if self.exec:
            add(6, 4, 64, 56 * self.phdr_count)
            add(3, 4, place["interp"], len(self.interp()), to=1)
        add(1, 6, 0, self.data_end, to=0x1000)
        add(1, 5, self.text_at, len(self.code.out), to=0x1000, vaddr=self.text_vaddr)
        add(2, 6, place["dynamic"], 16 * self.dynamic_entries)
        if spec.get("tls"):
            add(7, 4, place["data"], 0, spec["tls"], spec.get("tls_align", 8))
        if spec.get("stack", 6) is not None:
            add(0x6474E551, spec.get("stack", 6), 0, 0, to=16)
        if spec.get("properties"):
            add(4, 4, place["notes"], len(self.notes()))
        for index, change in spec.get("raw", {}).get("phdr", {}).items():
            rows[int(index)].update(change)
        return b"".join(struct.pack("<IIQQQQQQ", *r.values()) for r in rows)

    def damage(self, out):
        raw = self.spec.get("raw", {})
        for *table, at, text in raw.get("patch", ()):
            blob = bytes.fromhex(text)
            if table:
                name, = table
                if not self.sizes.get(name):
                    continue
                at = (0 if name == "headers" else self.place[name]) + at % self.sizes[name]
            out[at:at + len(blob)] = blob
        if "truncate" in raw:
            del out[raw["truncate"]:]
        return bytes(out)


def build(spec):
    return Builder(spec).build()
