/* libcohabit_trace.so: writes down each call to dlopen, dlmopen and dlclose, and changes nothing.
 *
 * glibc decides by return address who the caller of dlopen is: whose RUNPATH is searched, which
 * namespace is meant. So the wrappers (trace_entry.S) log and then jump into the real function with
 * registers and stack as they were; nothing of ours is on the stack while it runs. The price: we
 * never see a result or a return. ld.so's own log has them, and ours is appended to the same file,
 * so that both stand in their true order; src/actions/trace_merge.cc reads them together.
 *
 * What would disturb, and is therefore not here:
 *  - DT_NEEDED: one for libc would move libc in the breadth-first order of the start-up closure.
 *    The few things taken from libc are weak references, the rest are system calls;
 *  - thread-local variables (static TLS is scarce), allocation, locks, stdio, vector registers,
 *    writing to errno;
 *  - low file descriptors, and descriptors or variables that children inherit.
 * If anything is wrong, nothing is written and the program runs as without us. COHABIT_TRACE=off
 * switches the logging off. The record format is in docs/design/trace.md.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "preload/interposer.h"
#include "preload/system_call.h"

/* glibc 2.35 and later: lock-free, and meant for unwinders. Declared here for older headers. */
struct found_object {
  unsigned long long flags;
  void *map_start, *map_end;
  struct link_map* map;
  void* unwind_data[10];
};
extern WEAK int find_object(void* address, struct found_object* result) __asm__("_dl_find_object");
extern WEAK int dlinfo(void* handle, int request, void* result);
extern WEAK int dl_iterate_phdr(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data);
extern WEAK unsigned long getauxval(unsigned long type);
extern WEAK const char* gnu_get_libc_version(void);
extern WEAK char** environ;
extern WEAK char _rtld_global_ro[];
extern WEAK int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void*);

enum { kDlopen, kDlmopen, kDlclose, kKinds };
enum { kNotReady, kStarting, kReady, kOff };
enum { kPathSize = 4096, kNonceLength = 16 };

static int state = kNotReady;
static void* real_function[kKinds];
static unsigned sequence;

/* Taken from COHABIT_TRACE_RUN, see parse_run. */
static char nonce[kNonceLength];
static int children, owns_debug;
static int log_descriptor = -1, loader_descriptor = -1, high_descriptor;
static uint64_t log_device, log_inode, filler_device, filler_inode;
static char log_path[kPathSize];

/* --- a little text --- */

static char* put_text(char* out, const char* s, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = s[i];
  return out + n;
}

static char* put_number(char* out, long value) {
  char digits[24];
  int n = 0;
  unsigned long rest = value < 0 ? -(unsigned long)value : (unsigned long)value;
  *out++ = ' ';
  if (value < 0) *out++ = '-';
  do digits[n++] = (char)('0' + rest % 10);
  while (rest /= 10);
  while (n) *out++ = digits[--n];
  return out;
}

static const char* get_number(const char* s, uint64_t* value) {
  for (*value = 0; *s >= '0' && *s <= '9'; ++s) *value = *value * 10 + (uint64_t)(*s - '0');
  return *s == ';' ? s + 1 : s;
}

/* --- the log --- */

static int is_file(int descriptor, uint64_t device, uint64_t inode) {
  struct stat status;
  return sys_fstat(descriptor, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/* Opens the log at a descriptor so high that the program will not meet it. */
static void open_log(void) {
  struct stat status;
  long low = sys_open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (low < 0) return;
  long high = sys_fcntl((int)low, F_DUPFD_CLOEXEC, high_descriptor);
  if (high >= 0) sys_close((int)low);
  int descriptor = (int)(high >= 0 ? high : low);
  if (sys_fstat(descriptor, &status) != 0) return;
  log_device = status.st_dev;
  log_inode = status.st_ino;
  __atomic_store_n(&log_descriptor, descriptor, __ATOMIC_RELEASE);
}

struct text {
  const char* data; /* NULL is told apart from empty */
  size_t size;
};

static struct text text_of(const char* s) {
  return (struct text){s, s ? length_of(s) : 0};
}

/* One record in one write, so that records and ld.so's lines never mix. */
static void write_record(char kind, const long numbers[3], const struct text texts[3]) {
  char head[kNonceLength + 12 * 24];
  char* end = head;
  *end++ = '\n'; /* ld.so writes some lines in pieces, and another thread may be in one */
  end = put_text(end, nonce, kNonceLength);
  *end++ = ' ';
  *end++ = kind;
  end = put_number(end, sys_getpid());
  end = put_number(end, sys_gettid());
  end = put_number(end, (long)__atomic_fetch_add(&sequence, 1, __ATOMIC_RELAXED));
  for (int i = 0; i < 3; ++i) end = put_number(end, numbers[i]);
  for (int i = 0; i < 3; ++i) end = put_number(end, texts[i].data ? (long)texts[i].size : -1);
  *end++ = '\n';
  struct iovec parts[5] = {{head, (size_t)(end - head)}};
  for (int i = 0; i < 3; ++i) parts[i + 1] = (struct iovec){(void*)texts[i].data, texts[i].size};
  parts[4] = (struct iovec){(void*)"\n", 1};
  sys_writev(__atomic_load_n(&log_descriptor, __ATOMIC_ACQUIRE), parts, 5);
}

/* Is the log near the size at which SIGXFSZ would end the program? */
static int limits_files(void) {
  enum { kMargin = 4 << 20 };
  struct rlimit limit;
  struct stat status;
  if (sys_getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  if (sys_fstat(log_descriptor, &status) != 0) return 1;
  return (rlim_t)status.st_size + kMargin > limit.rlim_cur;
}

/* Ends ld.so's log: the mask of what it writes is the first word of what it keeps read-only. */
static int silence_loader(void) {
  enum { kFilesScopesReloc = 64 + 512 + 32 + 2 };
  int* mask = (int*)_rtld_global_ro;
  if (!mask || *mask != kFilesScopesReloc) return 0;
  const uintptr_t page = (uintptr_t)mask & ~(uintptr_t)4095;
  if (sys_mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) return 0;
  *mask = 0;
  sys_mprotect(page, 4096, PROT_READ);
  return 1;
}

/* The program may have closed our descriptor and ld.so's (closefrom), or opened other files under
 * their numbers: looked at before each call is written. ld.so does not look, so its number is taken
 * again if it is free, and ld.so writes no more if it is not; what ld.so has said in between is
 * lost, and a record says so. */
static void check_log(void) {
  int lost = 0, ended = 0;
  if (limits_files()) {
    /* An empty file beside the log can still be made: it says why the log ends. */
    char beside[kPathSize + 8];
    const struct text path = text_of(log_path);
    *put_text(put_text(beside, path.data, path.size), ".full", 5) = '\0';
    long made = sys_open(beside, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made >= 0) sys_close((int)made);
    silence_loader();
    __atomic_store_n(&state, kOff, __ATOMIC_RELEASE);
    return;
  }
  if (!is_file(__atomic_load_n(&log_descriptor, __ATOMIC_ACQUIRE), log_device, log_inode)) {
    open_log();
    lost = 1;
  }
  if (loader_descriptor >= high_descriptor && !is_file(loader_descriptor, log_device, log_inode)) {
    if (sys_fcntl(loader_descriptor, F_GETFD, 0) < 0) {
      sys_dup3(log_descriptor, loader_descriptor, O_CLOEXEC);
    } else {
      ended = silence_loader();
      loader_descriptor = -1;
    }
    lost = 1;
  }
  const long what[3] = {ended, 0, 0};
  const struct text texts[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  if (lost) write_record('R', what, texts);
}

static struct text current_directory(char* buffer, size_t size) {
  long length = sys_getcwd(buffer, size);
  if (length <= 0) return (struct text){NULL, 0};
  return (struct text){buffer, (size_t)length - 1};
}

/* --- who is who --- */

struct owner {
  uintptr_t address;
  const char* name;
};

static int holds_address(struct dl_phdr_info* info, size_t size, void* data) {
  struct owner* owner = data;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    if (header->p_type == PT_LOAD &&
        owner->address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz) {
      owner->name = info->dlpi_name;
      return 1;
    }
  }
  return 0;
}

/* The l_name of the object that holds the address; the program's, "", where there is none: glibc
 * takes such a caller for the program. */
static const char* owner_of(const void* address) {
  struct found_object found;
  if (find_object) {
    if (find_object((void*)address, &found) != 0) return "";
    return found.map->l_name;
  }
  struct owner owner = {(uintptr_t)address, ""};
  if (dl_iterate_phdr) dl_iterate_phdr(holds_address, &owner);
  return owner.name;
}

static int is_alive(struct dl_phdr_info* info, size_t size, void* data) {
  const struct link_map* map = data;
  (void)size;
  return info->dlpi_name == map->l_name && info->dlpi_addr == map->l_addr;
}

/* Is the handle a link map that is alive? Programs close handles twice, and glibc survives it, so
 * we read no string through a handle before we know. */
static int is_link_map(struct link_map* handle) {
  struct found_object found;
  if (!handle || (uintptr_t)handle < 4096) return 0;
  if (find_object) return find_object((void*)handle->l_ld, &found) == 0 && found.map == handle;
  return dl_iterate_phdr && dl_iterate_phdr(is_alive, handle);
}

static long namespace_of(struct link_map* map) {
  long ns = 0;
  return dlinfo && dlinfo(map, 1 /* RTLD_DI_LMID */, &ns) == 0 ? ns : 0;
}

/* --- starting --- */

static void write_environment(char** list) {
  const long none[3] = {0, 0, 0};
  for (; list && *list; ++list) {
    if (!after_prefix(*list, "LD_") && !after_prefix(*list, "GLIBC_TUNABLES=")) continue;
    const struct text texts[3] = {text_of(*list), {NULL, 0}, {NULL, 0}};
    write_record('E', none, texts);
  }
}

static void write_arguments(int count, char** list) {
  for (int i = 0; i < count; ++i) {
    const long numbers[3] = {i, count, 0};
    const struct text texts[3] = {text_of(list[i]), {NULL, 0}, {NULL, 0}};
    write_record('A', numbers, texts);
  }
}

/* The words of a command like `ld.so --library-path D program`: ld.so takes its own away from the
 * arguments. The kernel gives no AT_BASE to what it starts without an interpreter. */
static void write_loader_command(void) {
  static char words[4 * kPathSize];
  const long descriptor = getauxval && !getauxval(AT_BASE)
                              ? sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0)
                              : -1;
  if (descriptor < 0) return;
  const long size = sys_read((int)descriptor, words, sizeof words - 1);
  sys_close((int)descriptor);
  for (long at = 0; at < size;) {
    const size_t length = length_of(words + at);
    if (at + (long)length >= size) break; /* cut off */
    const long none[3] = {0, 0, 0};
    const struct text texts[3] = {{words + at, length}, {NULL, 0}, {NULL, 0}};
    write_record('L', none, texts);
    at += (long)length + 1;
  }
}

static void write_start(void) {
  char executable[kPathSize], directory[kPathSize];
  long length = sys_readlink("/proc/self/exe", executable, sizeof executable);
  const char* exec_name = getauxval ? (const char*)getauxval(AT_EXECFN) : NULL;
  const char* platform = getauxval ? (const char*)getauxval(AT_PLATFORM) : NULL;
  const char* version = gnu_get_libc_version ? gnu_get_libc_version() : NULL;
  const char* self = owner_of((const void*)&write_start);
  const long start[3] = {getauxval ? (long)getauxval(AT_SECURE) : 0, sys_getppid(), 0};
  const struct text who[3] = {text_of(exec_name),
                              {length > 0 ? executable : NULL, length > 0 ? (size_t)length : 0},
                              current_directory(directory, sizeof directory)};
  write_record('S', start, who);
  const long none[3] = {0, 0, 0};
  const struct text where[3] = {text_of(platform), text_of(version), text_of(self)};
  write_record('P', none, where);
  write_loader_command();
}

/* COHABIT_TRACE_RUN is version;children;LD_DEBUG is ours;high descriptor;filler's device;its
 * inode;nonce;log path without ".pid". Numbers in decimal. */
static int parse_run(const char* run) {
  uint64_t version, wants_children, debug, high;
  run = get_number(run, &version);
  run = get_number(run, &wants_children);
  run = get_number(run, &debug);
  run = get_number(run, &high);
  run = get_number(run, &filler_device);
  run = get_number(run, &filler_inode);
  size_t length = length_of(run);
  if (version != 1 || length <= kNonceLength + 1 || length + 32 > sizeof log_path) return 0;
  children = wants_children != 0;
  owns_debug = debug != 0;
  high_descriptor = (int)high;
  put_text(nonce, run, kNonceLength);
  char* end = put_text(log_path, run + kNonceLength + 1, length - kNonceLength - 1);
  char* number = end;
  end = put_number(end, sys_getpid());
  *number = '.';
  *end = '\0';
  return 1;
}

/* `cohabit trace` has filled the low descriptors, so that ld.so opened its log above them: a
 * program that closes or re-uses low descriptors then does not meet it. Now they go; and the log
 * goes too when the program runs another one. */
static void tidy_descriptors(void) {
  for (int i = 0; filler_inode && i < high_descriptor; ++i)
    if (is_file(i, filler_device, filler_inode)) sys_close(i);
  const int places[2] = {3, high_descriptor};
  for (int i = 0; i < 2; ++i)
    for (int d = places[i]; d < places[i] + 64; ++d)
      if (d != log_descriptor && is_file(d, log_device, log_inode)) {
        sys_fcntl(d, F_SETFD, FD_CLOEXEC);
        loader_descriptor = d;
      }
}

/* LD_PRELOAD without our path and the colon that goes with it; nothing where it was all. The
 * library with the rules may stand before us (cohabit run). */
static char* users_preload(char* entry) {
  static const char name[] = "LD_PRELOAD=";
  const char* own = owner_of((const void*)&users_preload);
  char* at = entry + sizeof name - 1;
  const char* rest = after_prefix(at, own);
  if (rest && !*rest) return NULL;
  for (; *own && *at; ++at) {
    const int first = at == entry + sizeof name - 1;
    if (!first && *at != ':') continue;
    rest = after_prefix(first ? at : at + 1, own);
    if (!rest || (first && *rest != ':')) continue;
    rest += first;
    put_text(at, rest, length_of(rest) + 1);
    return entry;
  }
  return entry;
}

/* Without the option that let the tracer stand before AddressSanitizer's runtime. */
static char* users_asan_options(char* entry) {
  static const char option[] = "verify_asan_link_order=no";
  const size_t length = length_of(entry), own = sizeof option - 1;
  if (length < own || !after_prefix(entry + length - own, option)) return entry;
  char* end = entry + length - own;
  if (end[-1] == '=') return NULL;
  end[-1] = '\0';
  return entry;
}

/* The program shall see the environment that it would have seen: our variables go, in place. */
static void tidy_environment(char** list) {
  char** out = list;
  for (; *list; ++list) {
    char* entry = *list;
    if (after_prefix(entry, "LD_PRELOAD="))
      entry = users_preload(entry);
    else if (after_prefix(entry, "ASAN_OPTIONS="))
      entry = users_asan_options(entry);
    else if (after_prefix(entry, "COHABIT_TRACE_RUN="))
      entry = NULL;
    else if (owns_debug && after_prefix(entry, "LD_DEBUG="))
      entry = NULL;
    else if (owns_debug && after_prefix(entry, "LD_DEBUG_OUTPUT="))
      entry = NULL;
    if (entry) *out++ = entry;
  }
  *out = NULL;
}

static void after_fork(void) {
  const long none[3] = {sys_getppid(), 0, 0};
  const struct text texts[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  write_record('F', none, texts);
}

static void* find_real(int kind);

static void start(char** list) {
  int expected = kNotReady;
  if (!__atomic_compare_exchange_n(&state, &expected, kStarting, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return;
  const char* run = find_variable(list, "COHABIT_TRACE_RUN=");
  const char* killed = find_variable(list, "COHABIT_TRACE=off");
  int next = kOff;
  if (run && parse_run(run)) {
    open_log();
    tidy_descriptors();
    if (log_descriptor >= 0 && !killed) {
      write_start();
      write_environment(list);
      next = kReady;
    }
    if (!children) tidy_environment(list);
    if (children && __register_atfork && next == kReady)
      __register_atfork(NULL, NULL, after_fork, &state);
  }
  __atomic_store_n(&state, next, __ATOMIC_RELEASE);
}

/* glibc hands constructors the arguments of main. The first call of a wrapper may come earlier,
 * from another object's constructor. */
static void construct(int count, char** arguments, char** list) {
  for (int kind = 0; kind < kKinds; ++kind) find_real(kind);
  start(list);
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == kReady) write_arguments(count, arguments);
}
__attribute__((section(".init_array"), used)) static void (*const constructor)(int, char**,
                                                                               char**) = construct;

/* --- the real functions --- */

static void* find_real(int kind) {
  static const char* const names[kKinds] = {"dlopen", "dlmopen", "dlclose"};
  void* function = __atomic_load_n(&real_function[kind], __ATOMIC_ACQUIRE);
  if (function) return function;
  function = next_function(names[kind]);
  __atomic_store_n(&real_function[kind], function, __ATOMIC_RELEASE);
  return function;
}

static void log_call(int kind, const struct saved_call* call) {
  char directory[kPathSize];
  long ns = 0;
  int flags = 0;
  const char* name = NULL;
  if (kind == kDlopen) {
    name = (const char*)call->arguments[0];
    flags = (int)call->arguments[1];
  } else if (kind == kDlmopen) {
    ns = (long)call->arguments[0];
    name = (const char*)call->arguments[1];
    flags = (int)call->arguments[2];
  } else if (is_link_map((struct link_map*)call->arguments[0])) {
    struct link_map* map = (struct link_map*)call->arguments[0];
    name = map->l_name;
    ns = namespace_of(map);
  }
  const struct text texts[3] = {text_of(name), text_of(owner_of(call->return_address)),
                                current_directory(directory, sizeof directory)};
  const long numbers[3] = {flags, ns, 0};
  check_log();
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != kReady) return;
  write_record("OMC"[kind], numbers, texts);
}

static void* open_nothing(void) {
  return NULL;
}

/* Called by the entries; gives the function to jump to. */
HIDDEN void* cohabit_trace_call(int kind, const struct saved_call* call) {
  void* function = find_real(kind);
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == kNotReady && &environ && environ) start(environ);
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == kReady) log_call(kind, call);
  return function ? function : (void*)open_nothing;
}
