/* Entries of interposed functions: save the arguments, let a handler look at them and say which
 * function is the real one, restore everything, jump. The real function then sees the caller's own
 * return address, by which glibc decides who the caller of dlopen is.
 *
 * Each entry is exported under the two version names that glibc has for it, as references with
 * either version, without one, and dlvsym all have to find it. */

#if defined(__x86_64__)
#define BASE GLIBC_2.2.5
#define BASE_DLMOPEN GLIBC_2.3.4
#else
#define BASE GLIBC_2.17
#define BASE_DLMOPEN GLIBC_2.17
#endif

#define VERSIONED2(name, version) .symver name##_base, name@version
#define VERSIONED(name, version) VERSIONED2(name, version)
#define BEGIN(name, version)                 \
  .globl name##_base;                        \
  .globl name##_new;                         \
  .type name##_base, %function;              \
  .type name##_new, %function;               \
  .balign 16;                                \
  name##_base:;                              \
  name##_new:;                               \
  VERSIONED(name, version);                  \
  .symver name##_new, name@@GLIBC_2.34;      \
  .cfi_startproc
#define END(name)                            \
  .cfi_endproc;                              \
  .size name##_base, . - name##_base;        \
  .size name##_new, . - name##_new

#if defined(__x86_64__)

#define ENTRY(name, version, kind, handler)  \
  BEGIN(name, version);                      \
  endbr64;                                   \
  pushq %rdx;                                \
  .cfi_adjust_cfa_offset 8;                  \
  pushq %rsi;                                \
  .cfi_adjust_cfa_offset 8;                  \
  pushq %rdi;                                \
  .cfi_adjust_cfa_offset 8;                  \
  movl $kind, %edi;                          \
  movq %rsp, %rsi;                           \
  call handler;                   \
  popq %rdi;                                 \
  .cfi_adjust_cfa_offset -8;                 \
  popq %rsi;                                 \
  .cfi_adjust_cfa_offset -8;                 \
  popq %rdx;                                 \
  .cfi_adjust_cfa_offset -8;                 \
  jmp *%rax;                                 \
  END(name)

#elif defined(__aarch64__)

/* Numbers stand without their usual "#", which the preprocessor takes for its own here. x16 is the
 * register that a branch to a "bti c" may use. */
#define ENTRY(name, version, kind, handler)  \
  BEGIN(name, version);                      \
  hint 34;                                   \
  stp x0, x1, [sp, -48]!;                    \
  .cfi_adjust_cfa_offset 48;                 \
  stp x2, x30, [sp, 16];                     \
  .cfi_rel_offset x30, 24;                   \
  str x29, [sp, 32];                         \
  .cfi_rel_offset x29, 32;                   \
  mov w0, kind;                              \
  mov x1, sp;                                \
  bl handler;                     \
  mov x16, x0;                               \
  ldr x29, [sp, 32];                         \
  .cfi_restore x29;                          \
  ldp x2, x30, [sp, 16];                     \
  .cfi_restore x30;                          \
  ldp x0, x1, [sp], 48;                      \
  .cfi_adjust_cfa_offset -48;                \
  br x16;                                    \
  END(name)

#endif

#if defined(__x86_64__)
/* Tell the linker that indirect branches land on endbr64 and that a shadow stack is fine, so that
 * a process with these protections keeps them. */
  .section .note.gnu.property, "a"
  .balign 8
  .long 4, 16, 5
  .string "GNU"
  .long 0xc0000002, 4, 3, 0
#endif
  .section .note.GNU-stack, "", %progbits
