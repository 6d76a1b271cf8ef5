// What a program says on its standard output, where it answers in time; or all it has to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit {

// Found by PATH, with our environment; its standard input is empty, its errors are nobody's. Empty:
// it cannot be started, or said nothing within the patience (milliseconds).
std::string ask_program(const std::vector<std::string>& command, int patience);

// A program that may take its time, and needs to: what it wrote, and its status as of wait().
struct Answer {
  int status = 0;
  std::string output, errors;
};
// Started as ask_program does, with `input` on its standard input; its errors are kept too. Fails
// where it cannot be started, writes without end, or has not ended within the patience
// (milliseconds; none: it may take as long as it likes), and is then killed.
Result<Answer> hear_program(const std::vector<std::string>& command, const std::string& input = "",
                            std::optional<int> patience = {});

// Of what it wrote, without the line feed: where most programs say what went wrong.
std::string last_line(std::string text);

}  // namespace cohabit
