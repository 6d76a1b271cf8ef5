"""What stays after a dlclose for reasons that no call to the loader shows, and opens that the tracer does not see: what ld.so mapped by
its own log, beside what `cohabit replay` says."""
from __future__ import annotations

import fcntl
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from test_replay import compile_c, mapped

SHARED = ("-shared", "-fPIC", "-Wl,-z,lazy")
HEAD = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n"

KEPT = {
    "a destructor of a thread_local object": ("""
        int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);
        extern void* __dso_handle;
        static void destroy(void* object) { (void)object; }
        int wanted(void) { return 1; }
        int use(void) { return __cxa_thread_atexit_impl(destroy, 0, &__dso_handle); }""", "((int (*)(void))dlsym(first, \"use\"))();"),
    "dlsym in another library": ("int wanted(void) { return 1; }", """
        void* asker = dlopen("./libasker.so", RTLD_NOW);
        ((void* (*)(void))dlsym(asker, "ask"))();"""),
    "dlsym in a library that goes too": ("int wanted(void) { return 1; }", """
        later = dlopen("./libasker.so", RTLD_NOW);
        ((void* (*)(void))dlsym(later, "ask"))();"""),
    "nothing": ("int wanted(void) { return 1; }", ""),
    "a lazy symbol that is not called": ("int wanted(void) { return 1; }", 'dlopen("./liblazy.so", RTLD_LAZY);'),
    "a lazy symbol that is called": ("int wanted(void) { return 1; }", """
        void* lazy = dlopen("./liblazy.so", RTLD_LAZY);
        ((int (*)(void))dlsym(lazy, "call"))();"""),
}


def loads(world, directory: Path, command: list[str]) -> tuple[list[str], list[str], str]:
    """The names that link maps were made for, by ld.so and by replay; and what was said."""
    log = subprocess.run(command, env={"LD_DEBUG": "files"}, cwd=directory, capture_output=True, text=True, check=True).stderr
    run = world.trace(command=command, out=str(directory / "out.trace"), cwd=str(directory))
    assert run.status == 0, run.stderr
    done = subprocess.run([world.cohabit, "replay", directory / "out.trace", "--loads", directory / "loads"], capture_output=True, text=True)
    rows = [line.split("\t") for line in (directory / "loads").read_text().splitlines()]
    really = mapped(log)
    return really, [row[1] for row in rows], done.stderr + str(run.end)


@pytest.mark.parametrize("what", KEPT)
def test_what_keeps_a_library(what: str, world, tmp_path: Path) -> None:
    library, step = KEPT[what]
    compile_c(tmp_path, "libfirst.so", library, *SHARED)
    compile_c(tmp_path, "libasker.so", HEAD + 'void* ask(void) { return dlsym(RTLD_DEFAULT, "wanted"); }', *SHARED)
    compile_c(tmp_path, "liblazy.so", "int wanted(void); int call(void) { return wanted(); }", *SHARED)
    compile_c(tmp_path, "libweak.so", "int wanted(void) __attribute__((weak)); int call(void) { return wanted ? wanted() : 0; }", *SHARED)
    program = compile_c(tmp_path, "program", HEAD + f"""
        int main(void) {{
          void* later = NULL;
          void* first = dlopen("./libfirst.so", RTLD_NOW | RTLD_GLOBAL);
          {step}
          dlclose(first);
          if (later) dlclose(later);
          dlopen("./libweak.so", RTLD_NOW);
          first = dlopen("./libfirst.so", RTLD_NOW);
          return !first || dlclose(first);
        }}""")
    really, replayed, said = loads(world, tmp_path, [program])
    stays = what not in ("nothing", "a lazy symbol that is not called", "dlsym in a library that goes too")
    assert really.count("./libfirst.so") == (1 if stays else 2)
    assert replayed == really, said


BYPASS = HEAD + """
int main(int count, char** words) {
  void* libc = dlopen("libc.so.6", RTLD_NOW);
  void* (*hidden)(const char*, int) = dlsym(libc, "dlopen");
  hidden("./libfirst.so", RTLD_NOW);
  for (int i = 1; i < count; i++) hidden(words[i], words[i][0] == '+' ? RTLD_NOW | RTLD_NOLOAD : RTLD_NOW);
  hidden("./libfirst.so", RTLD_NOW | RTLD_GLOBAL);
  return hidden("./libuser.so", RTLD_NOW) ? 0 : 3;
}
"""


@pytest.mark.parametrize("between", ["", "./libnot-there.so", "libnot-there.so", "./libnot-there.so ./liblink.so", "./libother.so"])
def test_an_unseen_open_after_a_failed_one(between: str, world, tmp_path: Path) -> None:
    """dlopen taken by address from libc: what makes the loaded library global must not pass for the end of the failed open."""
    compile_c(tmp_path, "libfirst.so", "int wanted(void) { return 1; }", *SHARED)
    compile_c(tmp_path, "libother.so", "int other(void) { return 1; }", *SHARED)
    compile_c(tmp_path, "libuser.so", "int wanted(void); int (*user)(void) = wanted;", *SHARED)
    (tmp_path / "liblink.so").symlink_to("libfirst.so")
    program = compile_c(tmp_path, "program", BYPASS)
    really, replayed, said = loads(world, tmp_path, [program, *between.split()])
    assert replayed == really and "./libuser.so" in really
    replay = subprocess.run([world.cohabit, "replay", tmp_path / "out.trace"], capture_output=True, text=True, check=True)
    assert "0 missing" in replay.stdout, said


def test_dlmopen_makes_nothing_global(world, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", HEAD + """
        int main(void) {
          void* handle = dlmopen(LM_ID_NEWLM, "./libfirst.so", RTLD_NOW | RTLD_GLOBAL);
          puts(handle ? "opened" : dlerror());
        }""")
    compile_c(tmp_path, "libfirst.so", "int wanted;", *SHARED)
    really, replayed, _ = loads(world, tmp_path, [program])
    assert replayed == really == ["libc.so.6"]
    said = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--results", tmp_path / "results"], check=True)
    assert (tmp_path / "results").read_text().strip() == "failed\t" + said


def test_the_program_opens_itself(world, tmp_path: Path) -> None:
    """/proc/self is the traced process, not the one that replays."""
    program = compile_c(tmp_path, "program", HEAD + 'int main(void) { puts(dlopen("/proc/self/exe", RTLD_NOW) ? "opened" : dlerror()); }')
    loads(world, tmp_path, [program])
    assert str(tmp_path / "program") in (tmp_path / "loads").read_text()


@pytest.mark.parametrize("options", [None, "", "detect_leaks=0", "verify_asan_link_order=1"])
def test_address_sanitizer(options: str | None, world, tmp_path: Path) -> None:
    """Its runtime wants to be the first library."""
    program = compile_c(tmp_path, "program", HEAD + """
        #include <stdlib.h>
        int main(void) {
          printf("%s %d\\n", getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "none", dlopen("./libfirst.so", RTLD_NOW) != 0);
        }""", "-fsanitize=address")
    compile_c(tmp_path, "libfirst.so", "int wanted;", *SHARED)
    variables = {} if options is None else {"ASAN_OPTIONS": options}
    run = world.trace(command=[program], out=str(tmp_path / "out.trace"), cwd=str(tmp_path), **variables)
    assert (run.status, run.stdout) == (0, f"{'none' if options is None else options} 1\n"), run.stderr
    assert [call["name"] for call in run.calls if "libfirst" in (call["name"] or "")] == ["./libfirst.so"]


TAKES_DESCRIPTORS = HEAD + """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** words) {
  for (int i = 3; i < 1024; i++) close(i);
  for (int i = 3; i < 1024; i++) open(words[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
  return (dlopen(words[2], RTLD_NOW) && dlopen(words[3], RTLD_NOW)) ? count - 4 : 5;
}
"""


def test_nothing_is_written_into_the_programs_files(world, tmp_path: Path) -> None:
    """ld.so keeps the number of its log: a program that closes all and opens its own gets none of it."""
    program = compile_c(tmp_path, "program", TAKES_DESCRIPTORS)
    names = [compile_c(tmp_path, f"lib{name}.so", f"int {name};", *SHARED) for name in ("first", "second")]
    run = world.trace(command=[program, str(tmp_path / "file"), *names], out=str(tmp_path / "out.trace"))
    assert run.status == 0, run.stderr
    assert (tmp_path / "file").read_bytes() == b""
    assert [call["name"] for call in run.calls] == names
    assert "that log was ended" in str(run.end)


def test_a_name_that_is_too_long(world, tmp_path: Path) -> None:
    """What is written can be replayed."""
    program = compile_c(tmp_path, "program", HEAD + """
        static char name[200001];
        int main(void) {
          for (int i = 0; i < 200000; i++) name[i] = 'x';
          return dlopen(name, RTLD_NOW) != 0;
        }""")
    run = world.trace(command=[program], out=str(tmp_path / "out.trace"))
    assert run.status == 0
    done = subprocess.run([world.cohabit, "replay", tmp_path / "out.trace"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_limit_on_the_size_of_files(world, tmp_path: Path) -> None:
    """The program sets it; without us nothing is written, so with us nothing may be killed for writing."""
    program = compile_c(tmp_path, "program", HEAD + """
        #include <sys/resource.h>
        int main(int count, char** words) {
          setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});
          return dlopen(words[1], RTLD_NOW) ? 7 : count;
        }""")
    library = compile_c(tmp_path, "libfirst.so", "int wanted;", *SHARED)
    run = world.trace(command=[program, library], out=str(tmp_path / "out.trace"))
    assert run.status == 7 and "RLIMIT_FSIZE" in str(run.end) and "_exit" not in str(run.end)


def test_who_outlives_the_trace(world, tmp_path: Path) -> None:
    """What a survivor starts later has a place for its log still, and writes none of it to its output."""
    later, done = tmp_path / "later", tmp_path / "done"
    script = f"while [ ! -e {later} ]; do sleep 0.05; done; /bin/echo told > {tmp_path}/said 2>&1; /bin/true; touch {done}"
    command = ["/bin/sh", "-c", f"(setsid /bin/sh -c '{script}' > /dev/null 2>&1 &); exit 0"]
    run = world.trace(command=command, options=("--children",), out=str(tmp_path / "out.trace"), TMPDIR=str(tmp_path))
    assert run.status == 0
    (left,) = tmp_path.glob("cohabit-trace-*")
    os.utime(left, (0, 0))
    world.trace(command=["/bin/true"], out=str(tmp_path / "other.trace"), TMPDIR=str(tmp_path))
    assert left.exists(), "removed while a process still needs it"
    later.touch()
    while not done.exists():
        time.sleep(0.02)
    assert (tmp_path / "said").read_text() == "told\n"
    while list(tmp_path.glob("cohabit-trace-*")):  # when the last of them is gone
        os.utime(left, (0, 0))
        world.trace(command=["/bin/true"], out=str(tmp_path / "other.trace"), TMPDIR=str(tmp_path))


def test_a_library_that_is_gone_since(world, tmp_path: Path) -> None:
    """Compilers at run time load what they have made and remove it."""
    program = compile_c(tmp_path, "program", HEAD + """
        #include <unistd.h>
        int main(int count, char** words) { return !dlopen(words[1], RTLD_NOW) || unlink(words[1]) || count != 2; }""")
    library = compile_c(tmp_path, "libfirst.so", "int wanted;", *SHARED)
    run = world.trace(command=[program, library], out=str(tmp_path / "out.trace"))
    assert run.status == 0 and f"gone since, so that no simulation can open them: {library}" in str(run.end)


def test_what_a_killed_trace_leaves(world, tmp_path: Path) -> None:
    """The next one removes it, unless it is in use or just being made."""
    for name, age in (("old", 3600), ("used", 3600), ("young", 0)):
        place = tmp_path / f"cohabit-trace-{name}"
        place.mkdir()
        (place / "lock").touch()
        os.utime(place, (time.time() - age, time.time() - age))
    with open(tmp_path / "cohabit-trace-used/lock") as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        run = world.trace(command=["/bin/true"], out=str(tmp_path / "out.trace"), TMPDIR=str(tmp_path))
    assert run.status == 0
    assert sorted(path.name for path in tmp_path.glob("cohabit-trace-*")) == ["cohabit-trace-used", "cohabit-trace-young"]


def test_no_room_for_a_log(world, tmp_path: Path) -> None:
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; {world.cohabit} trace --out {tmp_path}/out.trace -- true"], capture_output=True, text=True)
    assert done.returncode == 125 and "ulimit -f" in done.stderr


def test_every_place_looked_at(world, tmp_path: Path) -> None:
    """`replay --search` beside the places that ld.so writes down with LD_DEBUG=libs, which knows no folders that are not there."""
    (tmp_path / "near").mkdir()
    program = compile_c(tmp_path, "program", HEAD + """
        int main(void) { return dlopen("libfirst.so", RTLD_NOW) && !dlopen("libnot-there.so", RTLD_NOW) ? 0 : 5; }""",
                        f"-Wl,--disable-new-dtags,-rpath,{tmp_path}/none:{tmp_path}/near")
    compile_c(tmp_path / "near", "libfirst.so", "int wanted;", *SHARED)
    variables = {"LD_LIBRARY_PATH": str(tmp_path)}
    log = subprocess.run([program], env={"LD_DEBUG": "libs", **variables}, capture_output=True, text=True, check=True).stderr
    assert world.trace(command=[program], out=str(tmp_path / "out.trace"), **variables).status == 0
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--search", tmp_path / "search"], check=True)
    rows = [line.split("\t") for line in (tmp_path / "search").read_text().splitlines()]
    tried = [place for place in re.findall(r"trying file=(\S+)", log)]
    places = [row[1] for row in rows if "/" in row[1]]
    existing = [place for place in tried if Path(place).parent.is_dir()]
    assert [place for place in places if Path(place).parent.is_dir()] == existing
    assert {row[3] for row in rows} >= {"found", "no such directory", "no such file"}
    assert set(tried) <= set(places)


def test_flags_of_an_unseen_open_with_symbolic(world, tmp_path: Path) -> None:
    """Who was opened with RTLD_DEEPBIND is not seen to open; a scope that begins with the object alone is DT_SYMBOLIC's."""
    for name, value in (("global", 1), ("dep", 2)):
        compile_c(tmp_path, f"lib{name}.so", f"int value(void) {{ return {value}; }}", *SHARED)
    compile_c(tmp_path, "libsym.so", "int value(void); int (*const found)(void) = value; int own; int* at = &own;", *SHARED, "-Wl,-Bsymbolic",
              f"-L{tmp_path}", "-ldep", f"-Wl,-rpath,{tmp_path}")
    compile_c(tmp_path, "libdeep.so", HEAD + 'void* deep(void) { return dlopen("./libsym.so", RTLD_NOW); }', *SHARED)
    program = compile_c(tmp_path, "program", HEAD + """
        int main(void) {
          dlopen("./libglobal.so", RTLD_NOW | RTLD_GLOBAL);
          void* (*deep)(void) = dlsym(dlopen("./libdeep.so", RTLD_NOW | RTLD_DEEPBIND), "deep");
          int (**found)(void) = dlsym(deep(), "found");
          return (*found)();
        }""")
    run = world.trace(command=[program], out=str(tmp_path / "out.trace"), cwd=str(tmp_path))
    assert run.status == 1, run.stderr
    subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--bindings", tmp_path / "bindings"], check=True)
    rows = [line.split("\t") for line in (tmp_path / "bindings").read_text().splitlines()]
    assert [Path(row[1]).name for row in rows if row[2] == "value"] == ["libglobal.so"], run.lines


THREADS = HEAD + """
#include <iconv.h>
#include <link.h>
#include <pthread.h>
static const char* const codes[] = {"EUC-JP", "KOI8-R", "ISO-8859-15", "CP1251", "EUC-KR", "BIG5", "GBK", "SJIS"};
static void* handles[4][6];
static void* open_some(void* which) {
  const long k = (long)which;
  for (int i = 0; i < 6; i++) {
    char name[32];
    sprintf(name, "./l%ld_%d.so", k, i);
    handles[k][i] = dlopen(name, (i ^ k) & 1 ? RTLD_NOW : RTLD_NOW | RTLD_GLOBAL);
    if (i % 3 == 0) dlopen("./nosuch.so", RTLD_NOW);
    if (i % 4 == 1) dlopen(name, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }
  return NULL;
}
static void* convert(void* which) {
  for (int i = 0; i < 8; i++) iconv_open(codes[((long)which + i) % 8], "UTF-16");
  return NULL;
}
int main(void) {
  pthread_t threads[8];
  for (long i = 0; i < 8; i++) pthread_create(threads + i, NULL, i & 1 ? open_some : convert, (void*)(i / 2));
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < 6; i++) printf("found l%d_%d.so %d\\n", k, i, ((int (*)(void))dlsym(handles[k][i], "ask"))());
  for (struct link_map* map = _r_debug.r_map; map; map = map->l_next) printf("mapped %s\\n", map->l_name);
}
"""


def test_threads_and_opens_inside_libc(world, tmp_path: Path) -> None:
    """Eight threads, four of which make libc open converters: the program says itself what was mapped, and whose symbols it got."""
    for k in range(4):
        for i in range(6):
            compile_c(tmp_path, f"l{k}_{i}.so", f"int shared_{i} = {k}; int ask(void) {{ return shared_{i}; }}", *SHARED)
    program = compile_c(tmp_path, "program", THREADS, "-pthread")
    for _ in range(6):
        run = world.trace(command=[program], out=str(tmp_path / "out.trace"), cwd=str(tmp_path))
        assert run.status == 0, run.stderr
        subprocess.run([world.cohabit, "replay", tmp_path / "out.trace", "--loads", tmp_path / "loads", "--bindings", tmp_path / "bindings"], check=True)
        loads = {Path(line.split("\t")[0]).name for line in (tmp_path / "loads").read_text().splitlines()}
        words = [line.split() for line in run.stdout.splitlines()]
        mapped = {Path(word[1]).resolve().name for word in words if word[0] == "mapped" and "/" in "".join(word[1:])}
        assert {name for name in mapped if not name.startswith(("ld-", "libcohabit"))} <= loads
        rows = [line.split("\t") for line in (tmp_path / "bindings").read_text().splitlines()]
        bound = {Path(row[0]).name: Path(row[1]).name for row in rows if row[2].startswith("shared_")}
        assert bound == {word[1]: f"l{word[2]}_{word[1][3]}.so" for word in words if word[0] == "found"}
