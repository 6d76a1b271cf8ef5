// What a command writes, shown as it comes and kept.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace cohabit {

// Of much output the begin and the end, with a line feed in place of what is between them.
struct KeptOutput {
  std::string text;
  size_t lines_before_gap = 0;   // ended there
  ptrdiff_t lines_left_out = 0;  // -1 where the gap is within one line, which are two in the text
};

// The command keeps what it can see of its outputs: a terminal stays one. Standard output that is a
// terminal is left alone and not kept (messages of failures go to standard error); everything else
// passes through here.
class Tee {
 public:
  static Result<Tee> make();
  Tee(Tee&& other) noexcept;
  Tee(const Tee&) = delete;
  Tee& operator=(const Tee&) = delete;
  ~Tee();

  // For the command; -1: its output is ours.
  int standard_output() const { return output_.child; }
  int standard_error() const { return error_.child; }

  void start();
  // After the command has ended: what was kept. What its own children still write is not waited
  // for.
  KeptOutput finish();

 private:
  struct Channel {
    int ours = -1;   // read
    int child = -1;  // written by the command
    int shown = -1;  // where it is shown
  };
  Tee() = default;
  Result<void> open(Channel& channel, int shown);
  void keep(std::string_view bytes);
  void copy();
  void copy_some(Channel& channel);

  Channel output_, error_;
  std::string first_, last_;  // what is between them is not kept
  size_t line_feeds_left_out_ = 0;
  bool has_gap_ = false;  // then last_ begins with a line feed of ours
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace cohabit
