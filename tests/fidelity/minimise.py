"""Makes a differing world smaller: takes parts away while the difference stays of its kind."""
import copy
import json
import time

LISTS = ("needed", "defs", "refs", "init", "fini", "needs", "versions", "auxiliary", "filter")
KEYS = ("runpath", "rpath", "soname", "symbolic", "flags", "flags_1", "tls", "opener", "hash", "force_versions",
        "tls_align", "pie", "fini", "init", "raw")


def candidates(world):
    """Smaller worlds, the boldest first."""
    for i in reversed(range(len(world["files"]))):
        if world["files"][i]["path"] != world["program"]:
            yield without(world, ("files",), i)
    for i in reversed(range(len(world["steps"]))):
        yield without(world, ("steps",), i)
    for name in list(world["env"]):
        smaller = copy.deepcopy(world)
        del smaller["env"][name]
        yield smaller
    if "cwd" in world:
        smaller = copy.deepcopy(world)
        del smaller["cwd"]
        yield smaller
    yield from smaller_libraries(world)


def smaller_libraries(world):
    for i, file in enumerate(world["files"]):
        lib = file.get("lib")
        if not lib:
            continue
        for key in LISTS:
            if len(lib.get(key) or ()) > 1:
                smaller = copy.deepcopy(world)
                smaller["files"][i]["lib"][key] = []
                yield smaller
            for k in reversed(range(len(lib.get(key) or ()))):
                yield without(world, ("files", i, "lib", key), k)
        for key in KEYS:
            if lib.get(key):
                smaller = copy.deepcopy(world)
                del smaller["files"][i]["lib"][key]
                yield smaller
        for key in ("rpath", "runpath"):
            parts = (lib.get(key) or "").split(":")
            for k in range(len(parts)) if len(parts) > 1 else ():
                smaller = copy.deepcopy(world)
                smaller["files"][i]["lib"][key] = ":".join(parts[:k] + parts[k + 1:])
                yield smaller
        for key in ("refs", "defs"):
            for k, item in enumerate(lib.get(key) or ()):
                for field in [f for f in item if f not in ("name", "reloc", "type")]:
                    smaller = copy.deepcopy(world)
                    del smaller["files"][i]["lib"][key][k][field]
                    yield smaller


def without(world, path, index):
    smaller = copy.deepcopy(world)
    at = smaller
    for key in path:
        at = at[key]
    del at[index]
    return smaller


def signature(difference):
    """What must stay: the kind, and whether a side ends where the other goes on."""
    if difference[0] in ("loads", "bindings"):
        return difference[0], bool(difference.real), bool(difference.simulated)
    if difference[0] == "results":
        return difference[0], difference.real[:1] if isinstance(difference.real, tuple) else None
    return (difference[0],)


def minimise(world, check, difference, seconds):
    kind, deadline = signature(difference), time.time() + seconds
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in candidates(world):
            if time.time() > deadline:
                return world
            try:
                found = check(smaller)
            except Exception:  # a world that makes no sense any more
                continue
            if found and signature(found) == kind:
                world, shrunk = smaller, True
                break
    return world


def describe(world):
    lines = []
    for file in world["files"]:
        lines.append("%s %s" % (file["path"], json.dumps(file.get("lib", {k: v for k, v in file.items() if k != "path"}))))
    lines.append("env %s cwd %s" % (json.dumps(world["env"]), world.get("cwd", ".")))
    lines += [json.dumps(step) for step in world["steps"]]
    return "\n".join(lines)
