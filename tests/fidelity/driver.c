// Plays a script of loader calls inside a generated program. Generated programs give fid_main to
// __libc_start_main; it reads the script named by argv[1] and writes a record to descriptor 2
// around each call, so that records and ld.so's own log (LD_DEBUG goes to the same descriptor)
// interleave.
//
// dlopen is called through a trampoline inside the calling library, found by the entry table that
// tests/images/elfimage.py puts into each file: glibc takes the return address for the caller.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_TAG 0x6000F1DE
#define SLOTS 64

struct entries {
  uint64_t id, count, at[];
};
typedef void* open_fn(const char*, int);
typedef void* mopen_fn(Lmid_t, const char*, int);

static struct link_map* slots[SLOTS];
static Lmid_t slot_ns[SLOTS];
static sigjmp_buf after_call;
static volatile sig_atomic_t in_call;

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  char text[4096];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (size >= (int)sizeof text) size = sizeof text - 1;
  if (write(2, text, (size_t)size) < 0) _exit(98);
}

static void on_fault(int signal_number) {
  if (in_call) siglongjmp(after_call, signal_number);
  say("@X fault\n");
  _exit(99);
}

static struct entries* entries_of(struct link_map* map) {
  for (ElfW(Dyn)* d = map->l_ld; d && d->d_tag != DT_NULL; d++)
    if (d->d_tag == ENTRY_TAG) return (struct entries*)(map->l_addr + d->d_un.d_ptr);
  return 0;
}

// The first link map of a namespace: that of a slot's object, or of the program for -1.
static struct link_map* chain(int slot) {
  struct link_map* map = slot < 0 ? _r_debug.r_map : slots[slot];
  while (map && map->l_prev) map = map->l_prev;
  return map;
}

static struct link_map* find(unsigned long id, int slot) {
  for (struct link_map* map = chain(slot); map; map = map->l_next) {
    struct entries* e = entries_of(map);
    if (e && e->id == id) return map;
  }
  return 0;
}

static void* entry(struct link_map* map, unsigned long index) {
  struct entries* e = entries_of(map);
  return e && index < e->count && e->at[index] ? (char*)map->l_addr + e->at[index] : 0;
}

static void report(int step, int slot, void* handle) {
  slots[slot] = handle;
  if (handle) {
    slot_ns[slot] = -9;
    dlinfo(handle, RTLD_DI_LMID, &slot_ns[slot]);
    say("@E s %d ok\t%s\t%ld\n", step, slots[slot]->l_name, (long)slot_ns[slot]);
    return;
  }
  const char* error = dlerror();
  if (error)
    say("@E s %d failed\t%s\n", step, error);
  else
    say("@E s %d none\n", step);
}

// Object of the script's "id@slot"; ns gets its namespace. id 0 is this library.
static struct link_map* object(unsigned long id, int in_slot, long* ns) {
  *ns = in_slot < 0 ? 0 : slot_ns[in_slot];
  if (id == 0) return 0;
  if (in_slot >= 0 && !slots[in_slot]) return 0;
  return find(id, in_slot);
}

static void do_open(int step, char* line) {
  int slot, in_slot, flags, use = 0;
  unsigned long id;
  char target[16];
  if (sscanf(line, "%d %lu %d %15s %d %n", &slot, &id, &in_slot, target, &flags, &use) < 5)
    exit(97);
  const char* name = line + use;
  if (strcmp(name, "-") == 0) name = 0;
  long ns;
  struct link_map* caller = object(id, in_slot, &ns);
  int moves = strcmp(target, "here") != 0;
  open_fn* open_it = caller ? (open_fn*)entry(caller, 0) : dlopen;
  mopen_fn* mopen_it = caller ? (mopen_fn*)entry(caller, 1) : dlmopen;
  Lmid_t lmid = atol(target);
  if (target[0] == 's') {
    int other = atoi(target + 1);
    if (!slots[other]) moves = -1;
    lmid = slot_ns[other];
  }
  if ((id && !caller) || !open_it || !mopen_it || moves < 0) {
    say("@S s %d\n", step);
    slots[slot] = 0;
    return;
  }
  Dl_info self;
  if (!caller) dladdr((void*)do_open, &self);
  say("@B s %d %s\t%ld\t%ld\n", step, caller ? caller->l_name : self.dli_fname, caller ? ns : 0L,
      (long)lmid);
  report(step, slot, moves ? mopen_it(lmid, name, flags) : open_it(name, flags));
}

static void do_close(int step, char* line) {
  int slot = atoi(line);
  if (!slots[slot]) {
    say("@S s %d\n", step);
    return;
  }
  say("@B s %d %s\t%ld\n", step, slots[slot]->l_name, (long)slot_ns[slot]);
  void* handle = slots[slot];
  slots[slot] = 0;
  if (dlclose(handle) == 0)
    say("@E s %d ok\n", step);
  else
    say("@E s %d failed\t%s\n", step, dlerror());
}

static void do_call(int step, char* line) {
  unsigned long id, index;
  int in_slot;
  if (sscanf(line, "%lu %d %lu", &id, &in_slot, &index) < 3) exit(97);
  long ns;
  struct link_map* map = object(id, in_slot, &ns);
  void (*function)(void) = map ? (void (*)(void))entry(map, index + 2) : 0;
  if (!function) {
    say("@S s %d\n", step);
    return;
  }
  say("@B s %d %s\t%ld\n", step, map->l_name, ns);
  if (sigsetjmp(after_call, 1) == 0) {
    in_call = 1;
    function();
    in_call = 0;
    say("@E s %d ok\n", step);
  } else {
    in_call = 0;
    say("@E s %d fault\n", step);
  }
}

static void play(int step, char* line) {
  char verb = line[0];
  line += 2;
  if (verb == 'o') do_open(step, line);
  if (verb == 'c') do_close(step, line);
  if (verb == 'p') do_call(step, line);
  if (verb == 'd' && chdir(line) == 0) say("@D s %d %s\n", step, line);
}

int fid_main(int argc, char** argv) {
  static char script[1 << 16];
  struct sigaction action = {.sa_handler = on_fault};
  sigaction(SIGSEGV, &action, 0);
  sigaction(SIGILL, &action, 0);
  sigaction(SIGBUS, &action, 0);
  if (argc < 2) return 97;
  int fd = open(argv[1], O_RDONLY);
  ssize_t size = read(fd, script, sizeof script - 1);
  if (size < 0) return 97;
  close(fd);
  say("@M main\n");
  int step = 0;
  for (char* line = script; *line; step++) {
    char* end = strchr(line, '\n');
    if (end) *end = 0;
    play(step, line);
    if (!end) break;
    line = end + 1;
  }
  say("@Q\n");
  _exit(0);
}
