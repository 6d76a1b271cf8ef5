#include <fcntl.h>
#include <malloc.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/lasting.h"
#include "cohabit/cohabit.h"

namespace {

// The next file that is opened would take the number of a standard descriptor that is closed, and
// get what is meant for people. Nothing can be done with what takes it here that could not be done
// before, and what we start finds it closed.
void keep_closed(int descriptor, int flags) {
  if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
    (void)::open("/dev/null", flags | O_CLOEXEC);
}

}  // namespace

int main(int argc, char** argv) {
  keep_closed(0, O_WRONLY);
  keep_closed(1, O_RDONLY);
  keep_closed(2, O_RDONLY);
#ifdef __GLIBC__
  // The heap of the first thread grows in large steps. Each other thread has one of its own: they
  // allocate little and often (plans have arenas), and would wait for each other.
  constexpr int kStep = 64 << 20;
  mallopt(M_TOP_PAD, kStep);
#endif
  cohabit::process_ends_with_command = true;
  const int status = cohabit_main(argc, argv);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "cohabit: cannot write to standard output: %s\n", std::strerror(errno));
  return status == 0 ? 2 : status;
}
