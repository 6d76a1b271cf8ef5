/* System calls without libc: they leave errno alone and need nothing at run time. */
#ifndef COHABIT_PRELOAD_SYSTEM_CALL_H
#define COHABIT_PRELOAD_SYSTEM_CALL_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#if defined(__x86_64__)

static inline long system_call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

static inline long system_call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}

#else
#error "the interposers know x86-64 and AArch64"
#endif

static inline long sys_open(const char* path, int flags, int mode) {
  return system_call(SYS_openat, AT_FDCWD, (long)path, flags, mode);
}
static inline long sys_close(int descriptor) {
  return system_call(SYS_close, descriptor, 0, 0, 0);
}
static inline long sys_fcntl(int descriptor, int command, long argument) {
  return system_call(SYS_fcntl, descriptor, command, argument, 0);
}
static inline long sys_dup3(int descriptor, int number, int flags) {
  return system_call(SYS_dup3, descriptor, number, flags, 0);
}
static inline long sys_fstat(int descriptor, struct stat* status) {
  return system_call(SYS_fstat, descriptor, (long)status, 0, 0);
}
static inline long sys_mprotect(uintptr_t start, unsigned long size, int protection) {
  return system_call(SYS_mprotect, (long)start, (long)size, protection, 0);
}
static inline long sys_getrlimit(int resource, void* limit) {
  return system_call(SYS_prlimit64, 0, resource, 0, (long)limit);
}
static inline long sys_read(int descriptor, void* buffer, unsigned long size) {
  return system_call(SYS_read, descriptor, (long)buffer, (long)size, 0);
}
static inline long sys_write(int descriptor, const void* bytes, unsigned long size) {
  return system_call(SYS_write, descriptor, (long)bytes, (long)size, 0);
}
static inline long sys_stat(const char* path, struct stat* status) {
  return system_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)status, 0);
}
static inline long sys_writev(int descriptor, const struct iovec* parts, int count) {
  return system_call(SYS_writev, descriptor, (long)parts, count, 0);
}
static inline long sys_getcwd(char* buffer, unsigned long size) {
  return system_call(SYS_getcwd, (long)buffer, (long)size, 0, 0);
}
static inline long sys_readlink(const char* path, char* buffer, unsigned long size) {
  return system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer, (long)size);
}
static inline long sys_getpid(void) {
  return system_call(SYS_getpid, 0, 0, 0, 0);
}
static inline long sys_getppid(void) {
  return system_call(SYS_getppid, 0, 0, 0, 0);
}
static inline long sys_gettid(void) {
  return system_call(SYS_gettid, 0, 0, 0, 0);
}
static inline long sys_tgkill(long process, long thread, int number) {
  return system_call(SYS_tgkill, process, thread, number, 0);
}
static inline long sys_sigaltstack(const void* stack) {
  return system_call(SYS_sigaltstack, (long)stack, 0, 0, 0);
}

#endif
