#include "explain/wrapped_lines.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "explain/log_text.h"

namespace cohabit::explain {
namespace {

constexpr size_t kNarrowest = 40, kWidest = 400;  // columns
constexpr size_t kMostParts = 16;
constexpr std::string_view kBetween = "\n.\n.\n.\n";  // as many as a pattern may go on for

struct Part {
  size_t first = 0, end = 0;  // in the text
  std::string_view content;   // without what a box or a launcher writes around it
  size_t width = 0;           // columns, up to the end of the content
  bool begins_with_space = false;
};

size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

bool take_one_of(std::string_view& text, bool at_end) {
  for (const std::string_view one : {" ", "\t", "\r", "\xE2\x94\x82", "\xE2\x94\x83", "|"}) {
    if (at_end ? !text.ends_with(one) : !text.starts_with(one)) continue;
    if (at_end)
      text.remove_suffix(one.size());
    else
      text.remove_prefix(one.size());
    return true;
  }
  return false;
}

Part part_of(std::string_view text, size_t first, size_t end) {
  std::string_view line = text.substr(first, end - first);
  while (take_one_of(line, true)) {
  }
  Part part{first, end, without_prefix(line), columns(line), line.starts_with(' ')};
  while (take_one_of(part.content, false)) {
  }
  return part;
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find(' '));
}

// Frames, and records that begin alike.
bool begins_something(const Part& part, const Part& before) {
  constexpr size_t kAlike = 4;
  for (const std::string_view one : {"File \"", "Traceback (", "During handling", "The above exc"})
    if (part.content.starts_with(one)) return true;
  return part.content.size() >= kAlike &&
         part.content.substr(0, kAlike) == before.content.substr(0, kAlike);
}

bool goes_on(const Part& part, const Part& next, size_t width) {
  return part.width + 1 + columns(first_word(next.content)) > width &&
         !begins_something(next, part);
}

// A word may have been cut, or stand alone in the next line.
void add(WholeLines& whole, const std::vector<Part>& parts, size_t from, size_t to, size_t width) {
  const bool is_cut = std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(from),
                                  parts.begin() + static_cast<std::ptrdiff_t>(to),
                                  [&](const Part& part) { return part.width == width; });
  for (const bool cut : {false, true}) {
    if (cut && !is_cut) continue;
    whole.lines.push_back({whole.text.size(), parts[from].first, parts[to].end});
    for (size_t i = from; i <= to; i++) {
      const bool is_one_word =
          i > from && cut && parts[i - 1].width == width && !parts[i].begins_with_space;
      if (i > from && !is_one_word) whole.text += ' ';
      whole.text += parts[i].content;
    }
    whole.text += kBetween;
  }
}

void add_paragraph(WholeLines& whole, const std::vector<Part>& parts) {
  // A word that is longer than the line stands out.
  size_t width = 0;
  for (const Part& part : parts)
    if (part.content.find(' ') != part.content.npos) width = std::max(width, part.width);
  if (width < kNarrowest) return;
  for (size_t from = 0, to = 0; from < parts.size(); from = to + 1) {
    to = from;
    while (to + 1 < parts.size() && to - from < kMostParts &&
           goes_on(parts[to], parts[to + 1], width))
      to++;
    if (to > from) add(whole, parts, from, to, width);
  }
}

}  // namespace

const WholeLines::Line& WholeLines::line_at(size_t at) const {
  return *std::prev(
      std::upper_bound(lines.begin(), lines.end(), at,
                       [](size_t place, const Line& line) { return place < line.at; }));
}

WholeLines whole_lines(std::string_view text) {
  WholeLines whole;
  std::vector<Part> paragraph;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    Part part = part_of(text, at, end);
    if (!part.content.empty() && part.width <= kWidest) {
      paragraph.push_back(part);
    } else {
      add_paragraph(whole, paragraph);
      paragraph.clear();
    }
    at = end + 1;
  }
  add_paragraph(whole, paragraph);
  return whole;
}

}  // namespace cohabit::explain
