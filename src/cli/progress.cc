#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/say.h"
#include "report/printable.h"

namespace cohabit {
namespace {

constexpr size_t kBar = 20;
constexpr size_t kLongest = 79;  // a longer line is no easier to read
constexpr auto kPatience = std::chrono::seconds(1);

// One that wraps could not be taken away.
size_t longest_line() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::min<size_t>(kLongest, size.ws_col - 1u) : kLongest;
}

}  // namespace

Progress::Progress() {
  if (isatty(STDERR_FILENO)) drawing_ = std::thread([this] { draw_when_due(); });
}

Progress::~Progress() {
  if (!drawing_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  drawing_.join();
}

void Progress::expect(size_t steps) {
  const std::lock_guard lock(mutex_);
  steps_ += steps;
}

void Progress::step(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    begun_++;
    what_ = what;
    is_new_ = true;
  }
  changed_.notify_one();
}

// On a thread of its own: a step can be what takes long.
void Progress::draw_when_due() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kPatience, [this] { return is_over_; })) return;
  while (!is_over_) {
    if (is_new_) say("\r\033[K{}", line());
    is_new_ = false;
    changed_.wait(lock, [this] { return is_over_ || is_new_; });
  }
  say("\r\033[K");
}

std::string Progress::line() const {
  const size_t done = steps_ == 0 ? 0 : std::min(kBar, kBar * (begun_ - 1) / steps_);
  const std::string text = fmt::format("[{:#<{}}{:.<{}}] {}/{} {}", "", done, "", kBar - done,
                                       begun_, std::max(steps_, begun_), report::printable(what_));
  return text.substr(0, longest_line());
}

}  // namespace cohabit
