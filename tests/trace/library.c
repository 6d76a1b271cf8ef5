/* The libraries of the tests. OPENS, OPENS_LATE: what the constructor and the destructor open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void* open_here(const char* name, int flags) {
  void* handle = dlopen(name, flags);
  __asm__ volatile("" ::: "memory"); /* a tail call would have another caller */
  return handle;
}

void* call_open(const char* name, int flags) {
  return open_here(name, flags);
}

void* call_mopen(const char* name, int flags) {
  void* handle = dlmopen(LM_ID_NEWLM, name, flags);
  __asm__ volatile("" ::: "memory");
  return handle;
}

#ifdef OPENS
__attribute__((constructor)) static void construct(void) {
  open_here(OPENS, RTLD_NOW | RTLD_GLOBAL);
  open_here("libnot-there.so", RTLD_LAZY);
  open_here(NULL, RTLD_LAZY);
}
#endif

#ifdef OPENS_LATE
__attribute__((destructor)) static void destruct(void) {
  open_here(OPENS_LATE, RTLD_LAZY);
}
#endif
