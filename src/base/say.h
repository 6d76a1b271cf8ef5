// Messages for people, on stderr. One that cannot be written (nobody reads it, the disk is full) is
// lost, and nothing else is: fmt::print would throw, and a pipe without a reader end the process.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace cohabit {

void write_message(const std::string& text);

template <class... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  write_message(fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace cohabit
