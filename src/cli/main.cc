#include <malloc.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cohabit/cohabit.h"

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // The plan's thread allocates much and frees at the end: one heap that grows in large steps,
  // instead of one for the thread that grows page by page (a tenth of the time of a plan).
  constexpr int kStep = 64 << 20;
  // The threads of `why` allocate little and often, and would wait for each other.
  const bool is_why = argc > 1 && std::strcmp(argv[1], "why") == 0;
  if (!is_why) mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, kStep);
#endif
  const int status = cohabit_main(argc, argv);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "cohabit: cannot write to standard output: %s\n", std::strerror(errno));
  return status == 0 ? 2 : status;
}
