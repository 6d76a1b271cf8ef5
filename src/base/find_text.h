// Where a text stands in large files. string_view::find stops at every first letter, and of machine
// code a fifth is zero: memmem of the C library is many times faster there.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace cohabit {

// As text.find(part, from).
inline size_t find_text(std::string_view text, std::string_view part, size_t from = 0) {
  if (from >= text.size()) return text.npos;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : text.npos;
}

}  // namespace cohabit
