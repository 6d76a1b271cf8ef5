// Lines that a terminal, a console or a box was too narrow for, made whole again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohabit::explain {

struct WholeLines {
  struct Line {
    size_t at = 0;              // in `text`
    size_t first = 0, end = 0;  // its parts, in the text that they were found in
  };
  std::string text;         // one after the other, with lines of a point between them
  std::vector<Line> lines;  // those that had parts

  const Line& line_at(size_t at) const;
};

// Nobody says that a line goes on. It may, where the first word of the next one had no room in it;
// what is put together wrongly is not looked for by anything.
WholeLines whole_lines(std::string_view text);

}  // namespace cohabit::explain
