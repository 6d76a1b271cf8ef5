#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/say.h"
#include "report/printable.h"

namespace cohabit {
namespace {

constexpr size_t kBar = 20;
constexpr size_t kText = 48;  // the line stays below 80 columns
constexpr auto kPatience = std::chrono::seconds(1);

}  // namespace

Progress::Progress(size_t steps) : steps_(steps), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (drawn_) say("\r\033[K");
}

void Progress::step(const std::string& what) {
  begun_++;
  if (!terminal_ || std::chrono::steady_clock::now() - start_ < kPatience) return;
  const size_t done = steps_ == 0 ? kBar : std::min(kBar, kBar * (begun_ - 1) / steps_);
  say("\r\033[K[{:#<{}}{:.<{}}] {}/{} {}", "", done, "", kBar - done, begun_, steps_,
      report::printable(what).substr(0, kText));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace cohabit
