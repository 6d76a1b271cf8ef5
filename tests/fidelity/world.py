"""A world: libraries, a program, variables and a sequence of calls, as plain data.

  {"arch": "x86_64", "files": [{"path": .., "lib": spec} or {"path", "link"} or {"path", "hard"} or
   {"path", "text"}], "program": path, "env": {name: value}, "cwd": path,
   "cache": {name: path} (below a root: its /etc/ld.so.cache),
   "steps": [{"do": "open", "slot": n, "from": path or None, "in": slot or -1, "name": .., "flags": ..,
              "to": "here" or "-1" or "0" or "s3"},
             {"do": "close", "slot": n}, {"do": "call", "object": path, "in": .., "ref": n},
             {"do": "chdir", "to": path}]}

"@W@" in any string is the world's directory. `from` is the file that calls dlopen (None: the driver),
`in` the slot whose namespace it is looked for in, `to` another namespace (dlmopen). `call` runs a
function through the n-th plt reference of the object.
"""
import json
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "images"))

import elfimage  # noqa: E402

DRIVER = "@D@"


class Place:
    """Where worlds of one architecture live: the directory on this machine and how programs see it."""

    def __init__(self, directory, root="", driver="", command=()):
        self.directory, self.root, self.driver, self.command = directory, root, driver, list(command)

    def inside(self, path):
        return path[len(self.root):] if self.root and path.startswith(self.root + "/") else path

    def outside(self, path):
        """The file on this machine for a path as the program sees it."""
        if self.root and path.startswith("/") and not path.startswith(self.root + "/"):
            return self.root + path
        return path


def materialise(world, name, place):
    """Writes the world's files; returns the world with its directory filled in."""
    outside = os.path.join(place.directory, name)
    inside = place.inside(outside)
    text = json.dumps(world)
    world = json.loads(text.replace("@W@", inside).replace(DRIVER, place.driver))
    shutil.rmtree(outside, ignore_errors=True)
    os.makedirs(outside)
    made = {outside}
    ids = {}
    for number, file in enumerate(world["files"]):
        path = os.path.join(outside, file["path"])
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        write_file(file, path, number + 1, world.get("arch", "x86_64"), outside)
        ids[file["path"]] = number + 1
    world["dir"], world["outside"], world["ids"] = inside, outside, ids
    if place.root:
        write_cache(world.get("cache") or {}, place.root, world.get("arch"))
    with open(os.path.join(outside, "script"), "w") as f:
        f.write(script(world))
    return world


def write_file(file, path, number, arch, outside):
    if "link" in file:
        os.symlink(file["link"], path)
    elif "hard" in file:
        os.link(os.path.join(outside, file["hard"]), path)
    elif "dir" in file:
        os.makedirs(path, exist_ok=True)
    else:
        blob = file["text"].encode() if "text" in file else elfimage.build(dict({"arch": arch}, **file["lib"], id=number))
        with open(path, "wb") as f:
            f.write(blob)
        if "lib" in file:
            os.chmod(path, file.get("mode", 0o755))


def write_cache(entries, root, arch):
    """/etc/ld.so.cache below the root: one entry or none (more would have to be sorted)."""
    assert len(entries) <= 1
    strings, rows, first = b"", b"", 48 + 24 * len(entries)
    for name, path in entries.items():
        rows += struct.pack("<iIIIQ", 0x0A03 if arch == "aarch64" else 0x0303, first, first + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    head = b"glibc-ld.so.cache1.1" + struct.pack("<IIB3xI12x", len(entries), len(strings), 2, 0)
    text = head + rows + strings
    path = root + "/etc/ld.so.cache"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path, "rb").read() != text:
        with open(path, "wb") as f:
            f.write(text)


def script(world):
    ids, lines = world["ids"], []
    for step in world["steps"]:
        do = step["do"]
        if do == "open":
            caller = ids.get(step.get("from"), 0) if step.get("from") else 0
            lines.append("o {} {} {} {} {} {}".format(step["slot"], caller, step.get("in", -1), step.get("to", "here"),
                                                      step["flags"], "-" if step["name"] is None else step["name"]))
        elif do == "close":
            lines.append(f"c {step['slot']}")
        elif do == "call":
            lines.append(f"p {ids.get(step['object'], 999999)} {step.get('in', -1)} {step['ref']}")
        else:
            lines.append(f"d {step['to']}")
    return "\n".join(lines)
