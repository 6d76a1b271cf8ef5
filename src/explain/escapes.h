// Escape sequences (ECMA-48) of a text: colours, cursor movements, titles, links.
#pragma once

#include <memory>
#include <string_view>

namespace cohabit::explain {

// Bytes of which none is set before it is written.
struct Buffer {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  std::string_view text() const { return {bytes.get(), size}; }
};

bool has_escapes(std::string_view text);
// All line feeds stay, so that lines keep their numbers.
Buffer without_escapes(std::string_view text);

}  // namespace cohabit::explain
