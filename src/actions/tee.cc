#include "actions/tee.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/descriptor.h"

namespace cohabit {
namespace {

// Of much output the begin and the end are kept: that is where causes and failures stand.
constexpr size_t kFirst = size_t{16} << 20;
constexpr size_t kLast = size_t{24} << 20;
constexpr int kPatience = 100;  // milliseconds for what comes after the end

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

// A terminal of our own in place of the user's: same size, and nothing done to the bytes, which the
// user's terminal treats afterwards.
bool open_terminal(int shown, int& ours, int& child) {
  struct termios settings{};
  struct winsize size{};
  if (::tcgetattr(shown, &settings) != 0) return false;
  ::cfmakeraw(&settings);
  ::ioctl(shown, TIOCGWINSZ, &size);
  return ::openpty(&ours, &child, nullptr, &settings, &size) == 0;
}

size_t count_line_feeds(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

Tee::Tee(Tee&& other) noexcept
    : output_(std::exchange(other.output_, {})),
      error_(std::exchange(other.error_, {})),
      first_(std::move(other.first_)),
      last_(std::move(other.last_)),
      line_feeds_left_out_(other.line_feeds_left_out_),
      has_gap_(other.has_gap_) {}

Tee::~Tee() {
  ended_ = true;
  if (thread_.joinable()) thread_.join();
  for (Channel* channel : {&output_, &error_}) {
    close_if_open(channel->ours);
    close_if_open(channel->child);
  }
}

Result<Tee> Tee::make() {
  Tee tee;
  if (!::isatty(STDOUT_FILENO))
    if (auto done = tee.open(tee.output_, STDOUT_FILENO); !done)
      return tl::unexpected<Error>(done.error());
  if (auto done = tee.open(tee.error_, STDERR_FILENO); !done)
    return tl::unexpected<Error>(done.error());
  return tee;
}

Result<void> Tee::open(Channel& channel, int shown) {
  channel.shown = shown;
  if (::isatty(shown) && open_terminal(shown, channel.ours, channel.child)) {
    ::fcntl(channel.ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(channel.child, F_SETFD, FD_CLOEXEC);
    return {};
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("cannot make a pipe for the command's output");
  channel.ours = ends[0];
  channel.child = ends[1];
  return {};
}

void Tee::start() {
  thread_ = std::thread([this] { copy(); });
}

KeptOutput Tee::finish() {
  close_if_open(output_.child);
  close_if_open(error_.child);
  ended_ = true;
  if (thread_.joinable()) thread_.join();
  KeptOutput kept;
  if (has_gap_) {
    kept.lines_before_gap = count_line_feeds(first_);
    kept.lines_left_out = static_cast<ptrdiff_t>(line_feeds_left_out_) - 1;
  }
  kept.text = std::move(first_.append(last_));
  return kept;
}

void Tee::keep(std::string_view bytes) {
  if (first_.size() < kFirst) {
    first_.append(bytes);
    return;
  }
  last_.append(bytes);
  if (last_.size() < 2 * kLast) return;
  const size_t left_out = last_.size() - kLast;
  line_feeds_left_out_ += count_line_feeds(std::string_view(last_).substr(0, left_out));
  if (has_gap_) line_feeds_left_out_--;  // ours
  has_gap_ = true;
  last_.replace(0, left_out, "\n");
}

void Tee::copy_some(Channel& channel) {
  char buffer[16384];
  const ssize_t got = ::read(channel.ours, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  // A terminal whose other side is closed gives EIO.
  if (got <= 0) return close_if_open(channel.ours);
  const bool is_read =
      write_all(channel.shown, {buffer, static_cast<size_t>(got)}) || errno != EPIPE;
  keep({buffer, static_cast<size_t>(got)});
  // Nobody reads it any more: the command learns it by its next write, as without us.
  if (!is_read) close_if_open(channel.ours);
}

void Tee::copy() {
  // Of this thread alone: a write to a pipe that nobody reads fails instead of ending us.
  sigset_t broken_pipe;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  while (output_.ours >= 0 || error_.ours >= 0) {
    struct pollfd waiting[2] = {{output_.ours, POLLIN, 0}, {error_.ours, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, kPatience);
    if (ready == 0 && ended_) return;
    if (waiting[0].revents != 0) copy_some(output_);
    if (waiting[1].revents != 0) copy_some(error_);
  }
}

}  // namespace cohabit
