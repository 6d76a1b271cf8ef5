"""Two packages that clash like TensorFlow and Paddle, in a few lines of C.

`first` puts a codec of its own into the global scope; `second` needs libcodec.so.1. Imported after it, second opens a codec
with the one's function and closes it with the other's, which aborts.
"""
from __future__ import annotations

import subprocess
from pathlib import Path

CODEC = """
#include <stdlib.h>
struct codec { int magic; };
int codec_check(struct codec* c) { return c->magic == MAGIC; }
struct codec* codec_open(void) { struct codec* c = malloc(sizeof *c); c->magic = MAGIC; return c; }
"""
CLOSE = "void codec_close(struct codec* c) { if (c->magic != MAGIC) abort(); free(c); }\n"
SECOND = """
struct codec; struct codec* codec_open(void); int codec_check(struct codec*); void codec_close(struct codec*);
int second_use(void) { struct codec* c = codec_open(); int good = codec_check(c); codec_close(c); return good; }
"""
IMPORT = """import ctypes, os
_library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), {file!r}), mode={mode})
__version__ = "1.0"
"""


def make(site: Path) -> None:
    """Writes the packages first and second, each of a distribution of its own, below `site`."""
    for name in ("first", "second"):
        (site / name).mkdir(parents=True)
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    _compile(site / "first" / "libfirst.so", CODEC.replace("MAGIC", "1"))
    _compile(site / "second" / "libcodec.so.1", (CODEC + CLOSE).replace("MAGIC", "2"), "-Wl,-soname,libcodec.so.1")
    _compile(site / "second" / "libsecond.so", SECOND, str(site / "second" / "libcodec.so.1"), "-Wl,-rpath,$ORIGIN")
    (site / "first" / "__init__.py").write_text(IMPORT.format(file="libfirst.so", mode="ctypes.RTLD_GLOBAL"))
    (site / "second" / "__init__.py").write_text(IMPORT.format(file="libsecond.so", mode="ctypes.DEFAULT_MODE")
                                                 + "def use():\n    return _library.second_use()\n")
    for name in ("first", "second"):
        files = [f"{path.relative_to(site)},," for path in sorted((site / name).rglob("*")) if path.is_file()]
        (site / f"{name}-1.0.dist-info" / "RECORD").write_text("\n".join(files) + "\n")


def _compile(out: Path, source: str, *arguments: str) -> None:
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(out), "-x", "none", *arguments], input=source, text=True,
                   check=True)
