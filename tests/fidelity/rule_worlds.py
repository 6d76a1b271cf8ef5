"""For each rule of src/sim/rules.h, the smallest worlds that it decides.

Each world must agree with ld.so as it is, and at least one of a rule's worlds must differ when the
rule is switched off.
"""
import world as _world  # noqa: F401  makes elfimage importable
from elfimage import DF_1_NODEFLIB, DF_1_NODELETE, DF_SYMBOLIC, INDIRECT_EXTERN_ACCESS, PROPERTY_1_NEEDED
from elfimage import PROPERTY_X86_FEATURE_1_AND, PROPERTY_X86_ISA_1_NEEDED, RTLD_DEEPBIND, RTLD_GLOBAL, RTLD_LAZY
from elfimage import RTLD_NODELETE, RTLD_NOLOAD, RTLD_NOW

# Byte order, version, OS ABI, its version, padding: wrong each.
IDENTS = ["0202010000000000", "0201020000000000", "0201010900000000", "0201010005000000", "0201010000010000"]
LEGACY = "tls"  # a subdirectory that ld.so up to 2.36 tries on every machine


def lib(path, **spec):
    return {"path": path, "lib": spec}


def program(needed=(), refs=(), defs=(), **spec):
    return {"path": "bin/prog", "lib": dict(spec, exec=True, needed=[*needed, "@D@", "libc.so.6"],
                                            refs=list(refs), defs=list(defs))}


def opens(*calls):
    """Steps: a name, or (name, flags), or a step as it is. Slots count from 0."""
    steps, slot = [], 0
    for call in calls:
        if isinstance(call, dict):
            if call["do"] == "open":
                call = dict(call, slot=slot)
                slot += 1
            steps.append(call)
            continue
        name, flags = call if isinstance(call, tuple) else (call, RTLD_NOW)
        steps.append({"do": "open", "slot": slot, "name": name, "flags": flags, "from": None, "in": -1})
        slot += 1
    return steps


def close(slot):
    return {"do": "close", "slot": slot}


def call(path, ref=0):
    return {"do": "call", "object": path, "ref": ref, "in": -1}


def world(*files, steps=(), env=None, **more):
    if not any(f["path"] == "bin/prog" for f in files):
        files += (program(),)
    return dict(more, files=list(files), program="bin/prog", env=env or {}, steps=list(steps))


def d(name, **more):
    return dict(name=name, **more)


def ref(name, reloc="glob", **more):
    return dict(name=name, reloc=reloc, **more)


def at(name, directory="d1"):
    return "@W@/%s/%s" % (directory, name)


def relro(address, size):
    """PT_GNU_STACK of a library without TLS becomes PT_GNU_RELRO."""
    return {"phdr": {"3": {"type": 0x6474E552, "vaddr": address, "memsz": size}}}


S = ref("s")
NOW = {"LD_BIND_NOW": "1"}

SEARCH = {
    "breadth-first": [world(lib("d1/liba.so", needed=["libc1.so"]), lib("d1/libb.so", defs=[d("s")]),
                            lib("d1/libc1.so", defs=[d("s")]),
                            program(["liba.so", "libb.so"], [S], rpath="@W@/d1"))],
    "soname-match": [world(lib("d1/liba.so", soname="libx.so"), lib("d1/libb.so", needed=["libx.so"]),
                           steps=opens(at("liba.so"), at("libb.so")))],
    "name-match": [world(lib("d1/libn.so"), lib("d2/libn.so"), lib("d1/liba.so", needed=["libn.so"], runpath="@W@/d1"),
                         lib("d1/libb.so", needed=["libn.so"], runpath="@W@/d2"),
                         steps=opens(at("liba.so"), at("libb.so")))],
    "file-id-match": [world(lib("d1/liba.so"), {"path": "d2/liba.so", "hard": "d1/liba.so"},
                            {"path": "d3/liba.so", "link": "../d1/liba.so"},
                            steps=opens(at("liba.so"), at("liba.so", "d2"), at("liba.so", "d3")))],
    "rpath": [world(lib("d1/liba.so"), program(["liba.so"], rpath="@W@/d1"))],
    "rpath-inherited": [world(lib("d1/liba.so", needed=["libb.so"], rpath="@W@/d2"),
                              lib("d2/libb.so", needed=["libz1.so"]), lib("d2/libz1.so"),
                              steps=opens(at("liba.so")))],
    "rpath-of-program": [world(lib("d1/liba.so", needed=["libb.so"]), lib("d2/libb.so"), program(rpath="@W@/d2"),
                               steps=opens(at("liba.so")))],
    "runpath-voids-rpath": [world(lib("d1/liba.so", needed=["libb.so"], rpath="@W@/d2", runpath="@W@/d3"),
                                  lib("d2/libb.so"), lib("d3/libb.so"), steps=opens(at("liba.so")))],
    "runpath": [world(lib("d1/liba.so"), program(["liba.so"], runpath="@W@/d1"))],
    "runpath-not-inherited": [world(lib("d1/liba.so", needed=["libb.so"], runpath="@W@/d2"),
                                    lib("d2/libb.so", needed=["libz1.so"]), lib("d2/libz1.so"),
                                    steps=opens(at("liba.so")))],
    "library-path": [world(lib("d1/liba.so"), steps=opens("liba.so"), env={"LD_LIBRARY_PATH": "@W@/d1"})],
    "library-path-order": [
        world(lib("d1/liba.so"), lib("d2/liba.so"), program(["liba.so"], runpath="@W@/d2"),
              env={"LD_LIBRARY_PATH": "@W@/d1"}),
        world(lib("d1/liba.so"), lib("d2/liba.so"), program(["liba.so"], rpath="@W@/d2"),
              env={"LD_LIBRARY_PATH": "@W@/d1"})],
    "ld-cache": [world(lib("far/libcached.so"), steps=opens("libcached.so"), arch="aarch64",
                       cache={"libcached.so": "@W@/far/libcached.so"})],
    "default-directories": [world(lib("d1/liba.so", needed=["libm.so.6"]), steps=opens(at("liba.so")), cache={},
                                  arch="aarch64")],
    "nodeflib": [world(lib("d1/liba.so", needed=["libm.so.6"], flags_1=DF_1_NODEFLIB), steps=opens(at("liba.so"))),
                 world(lib("d1/liba.so", needed=["libnone.so"], flags_1=DF_1_NODEFLIB), program(["liba.so"], runpath="@W@/d1"))],
    "hwcaps": [world(lib("d1/liba.so"), lib("d1/glibc-hwcaps/x86-64-v2/liba.so"),
                     program(["liba.so"], rpath="@W@/d1"), arch="x86_64"),
               world(lib("d1/liba.so"), lib("d1/" + LEGACY + "/liba.so"), program(["liba.so"], rpath="@W@/d1"))],
    "origin": [world(lib("d1/liba.so"), program(["liba.so"], rpath="$ORIGIN/../d1")),
               world(lib("d1/liba.so", needed=["libb.so"], runpath="${ORIGIN}/sub"), lib("d1/sub/libb.so"),
                     {"path": "link", "link": "d1"}, steps=opens("@W@/link/liba.so"))],
    "caller-dropped": [world(lib("d1/libx.so", rpath="@W@/d2", opener=True, needed=["libc.so.6"]),
                             lib("d2/liba.so", needed=["libb.so"]), lib("d2/libb.so"),
                             steps=opens(at("libx.so"), {"do": "open", "name": "liba.so", "flags": RTLD_NOW,
                                                         "from": "d1/libx.so", "in": -1}))],
    "skip-wrong-class": [world(lib("d1/liba.so", raw={"ehdr": {"ident": "7f454c4601010100" + "00" * 8}}),
                               lib("d2/liba.so", raw={"ehdr": {"machine": 40}}), lib("d3/liba.so"),
                               program(["liba.so"], runpath="@W@/d1:@W@/d2:@W@/d3")),
                         world(lib("d1/liba.so", raw={"ehdr": {"ident": "7f454c4601010100" + "00" * 8}}),
                               lib("d2/liba.so", raw={"ehdr": {"machine": 40}}),
                               steps=opens(at("liba.so"), at("liba.so", "d2"))),
                         # Of another machine nothing else matters but the magic number; of this one all does.
                         world(*(lib(f"d{n}/liba.so", raw={"ehdr": {"machine": 40, "ident": "7f454c46" + ident + "00" * 4}})
                                 for n, ident in enumerate(IDENTS)), lib("d9/liba.so"),
                               program(["liba.so"], runpath=":".join(f"@W@/d{n}" for n in (0, 1, 2, 3, 4, 9)))),
                         *(world(lib("d1/liba.so", raw={"ehdr": {"ident": "7f454c46" + ident + "00" * 4}}),
                                 program(["liba.so"], runpath="@W@/d1")) for ident in IDENTS)],
    "preload": [world(lib("d1/liba.so", defs=[d("s")]), lib("d1/libb.so", defs=[d("s")]),
                      program(["libb.so"], [S], rpath="@W@/d1"), env={"LD_PRELOAD": "@W@/d1/liba.so"})],
}

USER = lib("d1/libuse.so", refs=[ref("s", weak=True)])
GIVER = lib("d1/libgive.so", defs=[d("s")])

SCOPE = {
    "global-promotion": [world(GIVER, USER, steps=opens((at("libgive.so"), RTLD_NOW | RTLD_GLOBAL), at("libuse.so")))],
    "promotion-after-init": [world(
        lib("d1/libgive.so", defs=[d("s")], needed=["libc.so.6"], init=[["open", at("libuse.so"), RTLD_NOW]]), USER,
        steps=opens((at("libgive.so"), RTLD_NOW | RTLD_GLOBAL)))],
    "promotion-of-loaded": [world(GIVER, USER, steps=opens(
        at("libgive.so"), (at("libgive.so"), RTLD_NOW | RTLD_GLOBAL), at("libuse.so")))],
    "deepbind": [world(lib("d1/liba.so", defs=[d("s")], refs=[S]), program(defs=[d("s")]),
                       steps=opens((at("liba.so"), RTLD_NOW | RTLD_DEEPBIND)))],
    "deepbind-new-only": [world(lib("d1/liba.so", defs=[d("s")], refs=[ref("s", "plt")]),
                                lib("d1/libb.so", needed=[at("liba.so")], defs=[d("s")]), program(defs=[d("s")]),
                                steps=opens((at("liba.so"), RTLD_LAZY), (at("libb.so"), RTLD_LAZY | RTLD_DEEPBIND),
                                            call("d1/liba.so")))],
    "symbolic": [world(lib("d1/liba.so", defs=[d("s")], refs=[S], symbolic=True),
                       lib("d1/libb.so", defs=[d("s")], refs=[S], flags=DF_SYMBOLIC),
                       program(["liba.so", "libb.so"], defs=[d("s")], rpath="@W@/d1"))],
    "scope-appended": [world(lib("d1/liba.so", refs=[ref("s", "plt")]),
                             lib("d1/libb.so", needed=[at("liba.so")], defs=[d("s")]),
                             steps=opens((at("liba.so"), RTLD_LAZY), (at("libb.so"), RTLD_LAZY), call("d1/liba.so")))],
    "namespaces": [world(lib("d1/liba.so"), steps=opens(
        at("liba.so"), {"do": "open", "name": at("liba.so"), "flags": RTLD_NOW, "from": None, "in": -1, "to": "-1"},
        {"do": "open", "name": at("liba.so"), "flags": RTLD_NOW, "from": None, "in": -1, "to": "s1"},
        {"do": "open", "name": None, "flags": RTLD_NOW, "from": None, "in": -1, "to": "-1"},
        {"do": "open", "name": None, "flags": 0, "from": None, "in": -1}))],
    "filter": [world(lib("d1/liba.so", filter=["libb.so"], rpath="@W@/d1"), lib("d1/libb.so", defs=[d("s")]),
                     lib("d1/libx.so", auxiliary=["libnone.so", "libb.so"], rpath="@W@/d1"),
                     program(["liba.so", "libx.so"], [ref("s", weak=True)], rpath="@W@/d1"))],
}

ORDER = ["liba.so", "libb.so", "libuse.so"]


def versions(a, b, use, **more):
    """Two providers in this order and a user that is linked to the second."""
    return world(lib("d1/liba.so", **a), lib("d1/libb.so", **b), lib("d1/libuse.so", needed=["libb.so"], refs=[use]),
                 program(ORDER, rpath="@W@/d1"), **more)


WANTS_V2 = ref("s", version="V2", file="libb.so")
SYMBOLS = {
    "version-match": [versions(dict(defs=[d("s", version="V1")]), dict(defs=[d("s", version="V2")]), WANTS_V2)],
    "unversioned-satisfies": [versions(dict(defs=[d("s")], versions=["V9"]), dict(defs=[d("s", version="V2")]), WANTS_V2)],
    "hidden-version": [versions(dict(defs=[d("s", version="V1", hidden=True)], versions=["V0"]), dict(defs=[d("s")]), S)],
    "unversioned-reference": [
        versions(dict(defs=[d("s", version="V1")], versions=["V0"]), dict(defs=[d("s")]), S),
        versions(dict(defs=[d("s", version="V1"), d("s", version="V2", hidden=True)], versions=["V0"]),
                 dict(defs=[d("s")]), S)],
    "version-check": [world(lib("d1/libb.so", defs=[d("s", version="V1")]),
                            lib("d1/liba.so", needed=["libb.so"], needs=[["libb.so", "V9"]], runpath="@W@/d1"),
                            steps=opens(at("liba.so")))],
    "version-records": [
        world(lib("d1/libb.so", defs=[d("s", version="V1")], raw={"patch": [["verdef", 0, "0200"]]}),
              lib("d1/liba.so", needed=["libb.so"], needs=[["libb.so", "V1"]], runpath="@W@/d1"),
              lib("d1/libc1.so", needed=["libb.so"], needs=[["libb.so", "V9", "weak"]], runpath="@W@/d1"),
              steps=opens(at("liba.so"), at("libc1.so"), at("libb.so"))),
        world(lib("d1/libb.so", defs=[d("s", version="V1")]),
              lib("d1/liba.so", needed=["libb.so"], needs=[["libb.so", "V1"]], runpath="@W@/d1",
                  raw={"patch": [["verneed", 0, "0000"]]}), steps=opens(at("liba.so"), at("libb.so"))),
        world(lib("d1/libb.so", defs=[d("s", version="V1")], raw={"patch": [["verdef", 0, "0200"]]}),
              program(["libb.so"], needs=[["libb.so", "V1"]], rpath="@W@/d1")),
        world(lib("d1/libb.so", defs=[d("s", version="V1")]),
              lib("d1/liba.so", needed=["libb.so"], needs=[["libb.so", "V1"]], runpath="@W@/d1",
                  raw={"patch": [["verneed", 0, "ffff"]]}), program(["liba.so"], rpath="@W@/d1"))],
    "weak-is-strong": [versions(dict(defs=[d("s", bind="weak")]), dict(defs=[d("s")]), S),
                       versions(dict(defs=[d("s", bind="weak")]), dict(defs=[d("s")]), S, env={"LD_DYNAMIC_WEAK": "1"})],
    "unique": [world(lib("d1/liba.so", defs=[d("u", type="object", bind="unique")], refs=[ref("u")]),
                     lib("d1/libb.so", defs=[d("u", type="object", bind="unique")], refs=[ref("u")]),
                     steps=opens(at("liba.so"), at("libb.so")))],
    "unique-nodelete": [world(lib("d1/liba.so", defs=[d("u", type="object", bind="unique")], refs=[ref("u")]),
                              steps=opens(at("liba.so"), close(0), at("liba.so")))],
    "protected": [world(lib("d1/liba.so", defs=[d("s", vis="protected")], refs=[ref("s", "pltnow")]),
                        program(["liba.so"], defs=[d("s")], rpath="@W@/d1")),
                  world(lib("d1/liba.so", defs=[d("u", type="object", bind="unique", vis="protected")], refs=[ref("u")]),
                        program(["liba.so"], [ref("u", "copy")], rpath="@W@/d1")),
                  world(lib("d1/liba.so", defs=[d("s", vis="protected")], refs=[ref("s", "plt")]),
                        program(["liba.so"], defs=[d("s")], rpath="@W@/d1"), steps=[call("d1/liba.so")]),
                  world(lib("d1/liba.so", defs=[d("s", vis="protected")], refs=[ref("s", "glob")]),
                        program(["liba.so"], defs=[d("s")], rpath="@W@/d1"))],
    "hidden-visibility": [versions(dict(defs=[d("s", vis="hidden")]), dict(defs=[d("s")]), S)],
    "copy-skips-program": [world(lib("d1/liba.so", defs=[d("s", type="object")]),
                                 program(["liba.so"], [ref("s", "copy")], rpath="@W@/d1"))],
    "plt-value-not-definition": [world(
        lib("d1/libb.so", defs=[d("s")]), lib("d1/libuse.so", refs=[ref("s", "pltnow")]),
        lib("d1/libdata.so", refs=[ref("s", "glob")]),
        program(["libb.so", "libuse.so", "libdata.so"], [ref("s", "plt", value=True)], rpath="@W@/d1"))],
    "lazy": [world(lib("d1/liba.so", refs=[ref("nowhere", "plt")]),
                   steps=opens((at("liba.so"), RTLD_LAZY), close(0), (at("liba.so"), RTLD_NOW))),
             world(lib("d1/liba.so", refs=[ref("s", "plt")]), lib("d1/libb.so", defs=[d("s")]),
                   program(["liba.so", "libb.so"], rpath="@W@/d1"), steps=[call("d1/liba.so")])],
    "static-tls": [world(lib("d1/liba.so", defs=[d("t", type="tls")], refs=[ref("t", "tpoff")], tls=8000),
                         steps=opens(at("liba.so"))),
                   world(*(lib("d%d/liba.so" % n, defs=[d("t", type="tls")], refs=[ref("t", "tpoff")], tls=n, tls_align=n)
                           for n in (16, 32, 64, 128)), steps=opens(*(at("liba.so", "d%d" % n) for n in (16, 32, 64, 128)))),
                   world(lib("d1/liba.so", defs=[d("t", type="tls")], refs=[ref("t", "tpoff")], tls=1000),
                         lib("d1/libb.so", defs=[d("t", type="tls")], refs=[ref("t", "tpoff")], tls=1000),
                         steps=opens(at("liba.so"), at("libb.so"), close(0), at("libb.so"), at("liba.so")))],
}

LIFE = {
    "relocation-order": [world(lib("d1/liba.so", needed=["libb.so"], refs=[S]), lib("d1/libb.so", defs=[d("s")], refs=[S]),
                               program(["libb.so", "liba.so"], [S], rpath="@W@/d1")),
                         world(lib("d1/liba.so", needed=["libb.so"], refs=[S]),  # a cycle
                               lib("d1/libb.so", needed=["libe.so"], defs=[d("s")], refs=[S]),
                               lib("d1/libe.so", needed=["liba.so"], refs=[S]), program(rpath="@W@/d1"),
                               steps=opens("libb.so"))],
    "failure-unwinds": [world(lib("d1/liba.so", needed=["libb.so", "libnone.so"], runpath="@W@/d1"), lib("d1/libb.so"),
                              steps=opens(at("liba.so"), at("libb.so")))],
    "close-unmaps": [world(lib("d1/liba.so"), steps=opens(at("liba.so"), close(0), at("liba.so")))],
    "relocation-dependency": [world(GIVER, USER, steps=opens(
        (at("libgive.so"), RTLD_NOW | RTLD_GLOBAL), at("libuse.so"), close(0), at("libgive.so"), close(1), close(2),
        at("libgive.so")))],
    "nodelete": [world(lib("d1/liba.so"), steps=opens((at("liba.so"), RTLD_NOW | RTLD_NODELETE), close(0), at("liba.so"))),
                 world(lib("d1/liba.so", flags_1=DF_1_NODELETE), steps=opens(at("liba.so"), close(0), at("liba.so")))],
    "noload": [world(lib("d1/liba.so"), steps=opens((at("liba.so"), RTLD_NOW | RTLD_NOLOAD), at("liba.so"),
                                                    (at("liba.so"), RTLD_NOW | RTLD_NOLOAD)))],
    "loader-relocated-last": [world(lib("d1/liba.so"), program(["liba.so"], rpath="@W@/d1"), env=NOW)],
}

UNKNOWN_LEVEL = 1 << 20  # of x86, which no CPU has
ACCESS = [[PROPERTY_1_NEEDED, INDIRECT_EXTERN_ACCESS]]
LIBC_NEEDS = dict(needed=["libc.so.6"], needs=[["libc.so.6", "GLIBC_2.17"]])


def level(*levels):
    return [[PROPERTY_X86_FEATURE_1_AND, 3]] + [[PROPERTY_X86_ISA_1_NEEDED, one] for one in levels]


REFUSED = {
    "mappable": [
        world(lib("d1/liba.so", raw={"phdr": {"1": {"memsz": 1 << 60}}}),
              lib("d2/liba.so", raw={"phdr": {"0": {"align": 1 << 48}}}),
              lib("d3/liba.so", raw={"phdr": {"0": {"filesz": 1 << 55}}}),
              lib("d4/liba.so", raw={"phdr": {"0": {"memsz": 1 << 62}}}),
              lib("d5/liba.so", raw={"phdr": {"0": {"align": 1 << 14}}}),
              steps=opens(*(at("liba.so", "d%d" % n) for n in range(1, 6)))),
        world(lib("d1/liba.so", needed=["libb.so"], runpath="@W@/d1"),
              lib("d1/libb.so", raw={"phdr": {"1": {"memsz": 1 << 60}}}), steps=opens(at("liba.so"))),
        world(lib("d1/liba.so", raw=relro(1 << 60, 1 << 16)), lib("d2/liba.so", raw=relro(1 << 60, 64)),
              lib("d3/liba.so", raw=relro(1 << 50, 1 << 20)), lib("d4/liba.so", raw=relro(1 << 60, 0)),
              steps=opens(*(at("liba.so", "d%d" % n) for n in range(1, 5)))),
        world(lib("d1/liba.so", raw=relro(1 << 60, 1 << 16)), program(["liba.so"], rpath="@W@/d1"))],
    "relr-version": [
        world(lib("d1/liba.so", relr=True, **LIBC_NEEDS), lib("d2/liba.so", relr=True, needed=["libc.so.6"]),
              lib("d3/liba.so", relr=True, needed=["libc.so.6"], needs=[["libc.so.6", "GLIBC_ABI_DT_RELR"]]),
              lib("d4/liba.so", relr=True, needed=["libm.so.6"], needs=[["libm.so.6", "GLIBC_2.17"]]),
              steps=opens(*(at("liba.so", "d%d" % n) for n in range(1, 5)))),
        world(lib("d1/liba.so", relr=True, **LIBC_NEEDS), program(["liba.so"], rpath="@W@/d1"))],
    "cpu-level": [
        world(lib("d1/liba.so", properties=level(1)), lib("d2/liba.so", properties=level(UNKNOWN_LEVEL | 1)),
              lib("d3/liba.so", needed=["libb.so", "libd.so"], properties=level(UNKNOWN_LEVEL), runpath="@W@/d3"),
              lib("d3/libb.so", needed=["libd.so"], properties=level(UNKNOWN_LEVEL), runpath="@W@/d3"),
              lib("d3/libd.so"), lib("d4/liba.so", properties=[[PROPERTY_X86_ISA_1_NEEDED, 1], [1, UNKNOWN_LEVEL]]),
              lib("d5/liba.so", properties=level(1, UNKNOWN_LEVEL)),
              steps=opens(*(at("liba.so", "d%d" % n) for n in range(1, 6))), arch="x86_64"),
        world(lib("d1/liba.so", properties=level(UNKNOWN_LEVEL)), program(["liba.so"], rpath="@W@/d1"), arch="x86_64"),
        world(program(properties=level(UNKNOWN_LEVEL)), arch="x86_64"),
        world(lib("d1/liba.so", properties=level(UNKNOWN_LEVEL)), steps=opens(at("liba.so")), arch="aarch64")],
    "indirect-access": [
        world(lib("d1/liba.so", defs=[d("s", type="object", vis="protected")], properties=ACCESS),
              program(["liba.so"], [ref("s", "copy")], rpath="@W@/d1"), arch="x86_64"),
        world(lib("d1/liba.so", defs=[d("s", vis="protected")], properties=ACCESS),
              program(["liba.so"], [ref("s", "pltnow", value=True)], rpath="@W@/d1", properties=ACCESS), arch="x86_64"),
        world(lib("d1/liba.so", defs=[d("s", vis="protected"), d("o", type="object")], properties=ACCESS),
              program(["liba.so"], [S, ref("o", "copy")], rpath="@W@/d1"), arch="x86_64"),
        world(lib("d1/liba.so", defs=[d("s", type="object", vis="protected")]),
              program(["liba.so"], [ref("s", "copy")], rpath="@W@/d1", properties=ACCESS), arch="x86_64"),
        world(lib("d1/liba.so", defs=[d("s", vis="protected")], properties=ACCESS),
              program(["liba.so"], [ref("s", "plt", value=True)], rpath="@W@/d1"), steps=[call("bin/prog")],
              arch="x86_64"),
        world(lib("d1/liba.so", defs=[d("s", type="object", vis="protected")], properties=ACCESS),
              program(["liba.so"], [ref("s", "copy")], rpath="@W@/d1"), arch="aarch64")],
    # A canonical PLT entry, as of a program that is not position independent and takes the address.
    "loader-malloc": [
        world(program(refs=[ref(name, "pltnow", value=value, version=version, file="libc.so.6")]), arch=arch)
        for arch, version in (("x86_64", "GLIBC_2.2.5"), ("aarch64", "GLIBC_2.17"))
        for name, value in (("malloc", True), ("free", True), ("realloc", False), ("calloc", True))],
}

# Rules that this machine cannot show on this architecture: why. docs/fidelity.md says more.
EXCUSES = {
    ("x86_64", "ld-cache"): "the cache of the machine is not ours to change; shown on AArch64, below a root",
    ("x86_64", "default-directories"): "whatever they hold is in the cache too; shown on AArch64, below a root",
    ("aarch64", "cpu-level"): "a note of x86 only",
    ("aarch64", "indirect-access"): "ld.so reads that note on x86 only",
}


def all_worlds(arch):
    """Rule -> worlds for this architecture. Lazy and bound at once where a world does not say."""
    found = {}
    for rule, worlds in {**SEARCH, **SCOPE, **SYMBOLS, **LIFE, **REFUSED}.items():
        found[rule] = [dict(w, arch=arch) for w in worlds if w.get("arch", arch) == arch]
    return found


def excused(arch, rule):
    return EXCUSES.get((arch, rule))
