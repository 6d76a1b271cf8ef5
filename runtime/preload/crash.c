/* libcohabit_crash.so: where in native code a process died, for `cohabit verify`.
 *
 * A debugger's way (ptrace) is forbidden in many containers, and core files go where the machine
 * wants them. So the process tells it itself: a handler on a stack of its own writes, into a file
 * that the parent has opened before (COHABIT_CRASH_REPORT holds its descriptor), the registers,
 * /proc/self/maps and the addresses of the frames, as numbers. Names are made of them by the parent
 * (src/actions/crash_report.cc), from the files.
 *
 *     crash PID SIGNAL FAULT PC CALLER  FAULT: 0 where the signal was sent; CALLER: who called a
 * bad pointer, else 0; addresses are hexadecimal maps                              then the lines
 * of /proc/self/maps frame ADDRESS                     from the handler outwards end
 *
 * In the handler nothing is allocated and no lock of ours is taken. The frames are found by the
 * unwinder of libgcc_s, if the process has mapped it (C++ code brings it); otherwise there is only
 * what the registers say. It is called last: should it fail in a damaged process, the rest is
 * written.
 *
 * Programs install handlers of their own (faulthandler, glog, abseil). sigaction and signal are
 * ours for these five signals: what they install is remembered and called after us, and what they
 * ask for is what they have installed. A process that dies does it by its own signal. In a child
 * they are the real ones: behind vfork it would write into our memory (subprocess puts all handlers
 * back there). In the main thread sigaltstack is ours as well: stacks that programs set for their
 * handlers can have 8 KiB, which is too small for the unwinder beside the registers of AVX-512.
 *
 * Without the variable, or where it holds no descriptor of a regular file, nothing is done. What
 * must not be in here is told in trace.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <ucontext.h>

#include "preload/interposer.h"
#include "preload/system_call.h"

#define EXPORTED __attribute__((visibility("default")))

enum { kSignals = 5, kMostReports = 8, kMostFrames = 64, kStackSize = 1 << 19, kTextSize = 8192 };
enum { kGoOn = 0, kEndOfStack = 5 }; /* _Unwind_Reason_Code */

typedef int sigaction_function(int, const struct sigaction*, struct sigaction*);
typedef sighandler_t signal_function(int, sighandler_t);
typedef int sigaltstack_function(const stack_t*, stack_t*);
typedef int backtrace_function(int (*)(void*, void*), void*);
typedef uintptr_t address_function(void*);

static const int kCrashes[kSignals] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static sigaction_function* real_sigaction;
static signal_function* real_signal;
static sigaltstack_function* real_sigaltstack;
static struct sigaction actions[kSignals]; /* the program's */
static stack_t stack_of_program = {NULL, SS_DISABLE, 0};
static int ready;
static int descriptor = -1;
static struct stat file;
static long owner; /* children of fork have nothing to tell */
static int busy, reports;
static char handler_stack[kStackSize];
static char text[kTextSize]; /* of the one that has `busy` */
static unsigned long text_size;

/* --- writing --- */

static void flush(void) {
  sys_write(descriptor, text, text_size);
  text_size = 0;
}

static void put(const char* s) {
  for (; *s; ++s) {
    if (text_size == kTextSize) flush();
    text[text_size++] = *s;
  }
}

static void put_number(uintptr_t number, unsigned base) {
  char digits[24];
  unsigned at = sizeof digits - 1;
  digits[at] = 0;
  do {
    digits[--at] = "0123456789abcdef"[number % base];
    number /= base;
  } while (number);
  put(" ");
  put(digits + at);
}

static void put_maps(void) {
  long maps = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  long got = 0;
  put("maps\n");
  flush();
  while (maps >= 0 && (got = sys_read((int)maps, text, kTextSize)) > 0)
    sys_write(descriptor, text, (unsigned long)got);
  if (maps >= 0) sys_close((int)maps);
}

/* --- the frames --- */

static const char* base_of(const char* path) {
  const char* base = path;
  for (; *path; ++path)
    if (*path == '/') base = path + 1;
  return base;
}

static const struct link_map* find_unwinder(void) {
  const struct link_map* map = &_r_debug ? _r_debug.r_map : NULL;
  for (; map; map = map->l_next)
    if (map->l_name && after_prefix(base_of(map->l_name), "libgcc_s.so.1")) return map;
  return NULL;
}

struct walk {
  address_function* address_of;
  int frames;
};

static int put_frame(void* context, void* state) {
  struct walk* walk = state;
  put("frame");
  put_number(walk->address_of(context), 16);
  put("\n");
  return ++walk->frames < kMostFrames ? kGoOn : kEndOfStack;
}

static void put_frames(void) {
  const struct link_map* map = find_unwinder();
  backtrace_function* backtrace = map ? (backtrace_function*)find_in(map, "_Unwind_Backtrace") : 0;
  struct walk walk = {map ? (address_function*)find_in(map, "_Unwind_GetIP") : 0, 0};
  if (backtrace && walk.address_of) backtrace(put_frame, &walk);
}

struct place {
  uintptr_t pc, caller;
};

/* A call of a bad pointer: the caller is known only by the return address, just now pushed. */
static struct place place_of(const siginfo_t* info, const void* context) {
  const mcontext_t* registers = &((const ucontext_t*)context)->uc_mcontext;
  struct place place = {0, 0};
#if defined(__x86_64__)
  place.pc = (uintptr_t)registers->gregs[REG_RIP];
  if (info->si_code > 0 && (uintptr_t)info->si_addr == place.pc)
    place.caller = *(const uintptr_t*)registers->gregs[REG_RSP];
#else
  place.pc = (uintptr_t)registers->pc;
  if (info->si_code > 0 && (uintptr_t)info->si_addr == place.pc)
    place.caller = (uintptr_t)registers->regs[30];
#endif
  return place;
}

/* The program may have closed the descriptor, and opened something else by that number. */
static int is_ours(void) {
  struct stat now;
  return sys_fstat(descriptor, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino;
}

static void report(int number, const siginfo_t* info, const void* context) {
  if (sys_getpid() != owner || !is_ours() || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
    return;
  if (reports++ < kMostReports) {
    const struct place place = place_of(info, context);
    put("crash");
    put_number((uintptr_t)owner, 10);
    put_number((uintptr_t)number, 10);
    put_number(info->si_code > 0, 10);
    put_number(place.pc, 16);
    put_number(place.caller, 16);
    put("\n");
    put_maps();
    put_frames();
    put("end\n");
    flush();
  }
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* --- the program's own handlers --- */

static struct sigaction* action_of(int number) {
  for (int i = 0; i < kSignals; ++i)
    if (kCrashes[i] == number) return &actions[i];
  return NULL;
}

/* None: the system has it. */
static struct sigaction* kept_action(int number) {
  struct sigaction* kept = ready ? action_of(number) : NULL;
  return kept && sys_getpid() == owner ? kept : NULL;
}

static void copy_action(struct sigaction* to, const struct sigaction* from) {
  const unsigned char* source = (const unsigned char*)from;
  for (unsigned i = 0; i < sizeof *to; ++i) ((unsigned char*)to)[i] = source[i];
}

static void clear_action(struct sigaction* action) {
  for (unsigned i = 0; i < sizeof *action; ++i) ((unsigned char*)action)[i] = 0;
}

/* A fault comes again when the handler returns; a signal that was sent has to be sent again. */
static void die(int number, const siginfo_t* info) {
  struct sigaction standard;
  clear_action(&standard);
  real_sigaction(number, &standard, NULL);
  if (info->si_code <= 0) sys_tgkill(sys_getpid(), sys_gettid(), number);
}

static void on_crash(int number, siginfo_t* info, void* context) {
  struct sigaction action;
  struct sigaction* kept = action_of(number);
  report(number, info, context);
  copy_action(&action, kept);
  if (action.sa_flags & (int)SA_RESETHAND) clear_action(kept);
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
    die(number, info);
  else if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(number, info, context);
  else
    action.sa_handler(number);
}

EXPORTED int sigaction(int number, const struct sigaction* wanted, struct sigaction* before) {
  struct sigaction* kept = kept_action(number);
  if (!kept) {
    if (!real_sigaction) real_sigaction = (sigaction_function*)next_function("sigaction");
    return real_sigaction ? real_sigaction(number, wanted, before) : -1;
  }
  struct sigaction old;
  copy_action(&old, kept);
  if (wanted) copy_action(kept, wanted);
  if (before) copy_action(before, &old);
  return 0;
}

EXPORTED sighandler_t signal(int number, sighandler_t handler) {
  struct sigaction* kept = kept_action(number);
  if (!kept) {
    if (!real_signal) real_signal = (signal_function*)next_function("signal");
    return real_signal ? real_signal(number, handler) : SIG_ERR;
  }
  sighandler_t before = kept->sa_handler;
  clear_action(kept);
  kept->sa_handler = handler;
  return before;
}

EXPORTED int sigaltstack(const stack_t* wanted, stack_t* before) {
  if (!ready || sys_gettid() != owner) {
    if (!real_sigaltstack) real_sigaltstack = (sigaltstack_function*)next_function("sigaltstack");
    return real_sigaltstack ? real_sigaltstack(wanted, before) : -1;
  }
  const stack_t old = stack_of_program;
  if (wanted) stack_of_program = *wanted;
  if (before) *before = old;
  return 0;
}

/* --- the start --- */

static int read_descriptor(const char* value) {
  int number = 0;
  if (!value || !*value) return -1;
  for (; *value; ++value) {
    if (*value < '0' || *value > '9' || number > 1000000) return -1;
    number = number * 10 + (*value - '0');
  }
  return number;
}

static void construct(int count, char** arguments, char** list) {
  (void)count;
  (void)arguments;
  descriptor = read_descriptor(find_variable(list, "COHABIT_CRASH_REPORT="));
  real_sigaction = (sigaction_function*)next_function("sigaction");
  if (descriptor < 0 || !real_sigaction || sys_fstat(descriptor, &file) != 0 ||
      !S_ISREG(file.st_mode))
    return;
  owner = sys_getpid();
  const stack_t stack = {handler_stack, 0, sizeof handler_stack};
  sys_sigaltstack(&stack);
  struct sigaction ours;
  clear_action(&ours);
  ours.sa_sigaction = on_crash;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < kSignals; ++i) real_sigaction(kCrashes[i], &ours, &actions[i]);
  ready = 1;
}
__attribute__((section(".init_array"), used)) static void (*const constructor)(int, char**,
                                                                               char**) = construct;
