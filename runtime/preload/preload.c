/* libcohabit_preload.so: changes the flags of dlopen calls, as rules say that name the file opened.
 *
 * Why at the call: which libraries stand in the global scope, and which see themselves first, is
 * decided by the flags of the dlopen that maps them, and those are written in other people's
 * packages. Nothing else of the call changes: the entry (preload_entry.S) jumps into the real
 * dlopen with the caller's own return address on the stack, since glibc decides by that address
 * whose RUNPATH is searched.
 *
 * The rules are a text, in the variable COHABIT_PRELOAD_RULES or in the file that it names with an
 * absolute path; every process that inherits the variable reads it again:
 *
 *     cohabit-rules 1
 *     dlopen -global /site/torch/lib/libtorch_global_deps.so
 *     dlopen +deepbind libexample.so
 *
 * Fields are separated by one space, lines end in a newline or in ";". In a name the bytes space,
 * newline, ";" and "%" are written %20, %0a, %3b and %25. A name with a slash means that file, by
 * whatever path it is opened; a name without one means a call that gives exactly this name. Lines
 * of a kind that is not known here (`preload`: done by LD_PRELOAD) are passed over.
 *
 * If anything is wrong (no variable, no file, another version, a line that does not parse, more
 * than fits) no rule applies at all and the program runs as without us. COHABIT_PRELOAD=off does
 * the same. What must not be in here is told in trace.c. docs/design/fix.md.
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "preload/interposer.h"
#include "preload/system_call.h"

extern WEAK char** environ;

enum { kNotReady, kStarting, kReady, kOff };
enum { kMostRules = 64, kMostText = 65536 };
enum { kGlobal = 0x100, kDeepbind = 8 };

struct rule {
  const char* name; /* in `text`, ends with a zero byte */
  const char* base; /* after its last slash */
  unsigned clear, set;
};

static int state = kNotReady;
static void* real_dlopen;
static char text[kMostText];
static struct rule rules[kMostRules];
static int rule_count;

/* --- reading the rules --- */

static int is_same(const char* a, const char* b) {
  const char* rest = after_prefix(a, b);
  return rest && !*rest;
}

static const char* base_of(const char* path) {
  const char* base = path;
  for (; *path; ++path)
    if (*path == '/') base = path + 1;
  return base;
}

static long copy_variable(const char* value) {
  size_t length = length_of(value);
  if (length >= kMostText - 1) return -1;
  for (size_t i = 0; i <= length; ++i) text[i] = value[i];
  return (long)length;
}

static long read_file(const char* path) {
  long descriptor = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  long size = 0, got = 0;
  if (descriptor < 0) return -1;
  while (size < kMostText - 1 &&
         (got = sys_read((int)descriptor, text + size, (unsigned long)(kMostText - 1 - size))) > 0)
    size += got;
  sys_close((int)descriptor);
  if (got < 0 || size == kMostText - 1) return -1;
  text[size] = 0;
  return size;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/* Takes the escapes of a name away, in place. */
static int decode(char* name) {
  char* out = name;
  for (; *name; ++name) {
    if (*name != '%') {
      *out++ = *name;
      continue;
    }
    int high = hex_digit(name[1]);
    int low = high < 0 ? -1 : hex_digit(name[2]);
    if (low < 0 || high + low == 0) return 0;
    *out++ = (char)(high * 16 + low);
    name += 2;
  }
  *out = 0;
  return 1;
}

/* "-global /path": the rest of a line that begins with "dlopen ". */
static int add_rule(char* line) {
  struct rule rule = {NULL, NULL, 0, 0};
  char* name = NULL;
  if ((name = (char*)after_prefix(line, "-global ")))
    rule.clear = kGlobal;
  else if ((name = (char*)after_prefix(line, "+deepbind ")))
    rule.set = kDeepbind;
  if (!name || !*name || !decode(name) || rule_count == kMostRules) return 0;
  rule.name = name;
  rule.base = base_of(name);
  rules[rule_count++] = rule;
  return 1;
}

static int parse_line(char* line) {
  char* rest = (char*)after_prefix(line, "dlopen ");
  return rest ? add_rule(rest) : 1;
}

static int parse(long size) {
  int first = 1;
  for (long begin = 0, end = 0; begin < size; begin = end + 1) {
    for (end = begin; text[end] && text[end] != '\n' && text[end] != ';';) ++end;
    if (!text[end] && end < size) return 0;
    text[end] = 0;
    if (first && !is_same(text + begin, "cohabit-rules 1")) return 0;
    if (!first && !parse_line(text + begin)) return 0;
    first = 0;
  }
  return !first;
}

static void start(char** list) {
  int expected = kNotReady;
  if (!__atomic_compare_exchange_n(&state, &expected, kStarting, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return;
  const char* value = find_variable(list, "COHABIT_PRELOAD_RULES=");
  const char* killed = find_variable(list, "COHABIT_PRELOAD=");
  int next = kOff;
  if (value && !(killed && is_same(killed, "off"))) {
    long size = *value == '/' ? read_file(value) : copy_variable(value);
    if (size > 0 && parse(size) && rule_count) next = kReady;
  }
  __atomic_store_n(&state, next, __ATOMIC_RELEASE);
}

static void* find_real(void) {
  void* function = __atomic_load_n(&real_dlopen, __ATOMIC_ACQUIRE);
  if (function) return function;
  function = next_function("dlopen");
  __atomic_store_n(&real_dlopen, function, __ATOMIC_RELEASE);
  return function;
}

/* glibc hands constructors the arguments of main. The first call of the wrapper may come earlier,
 * from another object's constructor. */
static void construct(int count, char** arguments, char** list) {
  (void)count;
  (void)arguments;
  find_real();
  start(list);
}
__attribute__((section(".init_array"), used)) static void (*const constructor)(int, char**,
                                                                               char**) = construct;

/* --- applying them --- */

static int is_same_file(const char* a, const char* b) {
  struct stat first, second;
  return sys_stat(a, &first) == 0 && sys_stat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/* The file's own name is compared first: it settles nearly every call without a system call. */
static int applies(const struct rule* rule, const char* opened, const char* base) {
  if (!is_same(base, rule->base)) return 0;
  if (is_same(opened, rule->name)) return 1;
  return base != opened && rule->base != rule->name && is_same_file(opened, rule->name);
}

static unsigned change_flags(const char* opened, unsigned flags) {
  const char* base = base_of(opened);
  for (int i = 0; i < rule_count; ++i)
    if (applies(&rules[i], opened, base)) flags = (flags & ~rules[i].clear) | rules[i].set;
  return flags;
}

static void* open_nothing(void) {
  return NULL;
}

/* Called by the entry with what it has saved; gives the function to jump to. */
HIDDEN void* cohabit_preload_call(int kind, struct saved_call* call) {
  (void)kind;
  void* function = find_real();
  const char* opened = (const char*)call->arguments[0];
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == kNotReady && &environ && environ) start(environ);
  if (opened && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == kReady)
    call->arguments[1] = change_flags(opened, (unsigned)call->arguments[1]);
  return function ? function : (void*)open_nothing;
}
