#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cohabit/cohabit.h"

int main(int argc, char** argv) {
  const int status = cohabit_main(argc, argv);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "cohabit: cannot write to standard output: %s\n", std::strerror(errno));
  return status == 0 ? 2 : status;
}
