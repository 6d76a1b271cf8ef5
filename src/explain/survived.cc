#include "explain/survived.h"

#include <algorithm>
#include <array>
#include <utility>

#include "explain/log_text.h"

namespace cohabit::explain {
namespace {

constexpr size_t kLargest = size_t{8} << 20;  // of a larger text nobody reads the end for this
constexpr size_t kHead = 96;                  // bytes of a line in which its level stands
constexpr size_t kMostFrames = 200;           // lines of a traceback below its record

enum class Level { kNone, kDebug, kInfo, kWarning, kError };

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// As Python's logging and its like write it: a word of capitals. The first in the line counts.
Level level_of(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, Level>, 7> kWords = {
      {{"DEBUG", Level::kDebug},
       {"INFO", Level::kInfo},
       {"WARNING", Level::kWarning},
       {"WARN", Level::kWarning},
       {"ERROR", Level::kError},
       {"CRITICAL", Level::kError},
       {"FATAL", Level::kError}}};
  const std::string_view head = line.substr(0, kHead);
  size_t first = head.npos;
  Level level = Level::kNone;
  for (const auto& [word, meaning] : kWords) {
    const size_t at = head.find(word);
    if (at == head.npos || at >= first) continue;
    const size_t end = at + word.size();
    if ((at > 0 && is_letter(head[at - 1])) || (end < head.size() && is_letter(head[end])))
      continue;
    first = at;
    level = meaning;
  }
  return level;
}

bool is_mild(Level level) {
  return level == Level::kDebug || level == Level::kWarning;
}

// "      4711:\tsymbol=...": what the loader writes with LD_DEBUG.
bool is_of_loader(std::string_view line) {
  const size_t digits = line.find_first_not_of(' ');
  if (digits == line.npos || digits == 0) return false;
  const size_t end = line.find_first_not_of("0123456789", digits);
  return end != line.npos && end > digits && line.substr(end).starts_with(":\t");
}

// "tests/x.py::test_y[CUDA out of memory] PASSED".
bool is_test_that_passes(std::string_view line) {
  return line.find("::") != line.npos && line.find(" PASSED") != line.npos;
}

// As shells, the kernel and Python tell of the end of a process.
bool tells_of_a_crash(std::string_view line) {
  for (const std::string_view words : {"Segmentation fault", "core dumped", "Aborted", "Killed",
                                       "Fatal Python error", "terminate called"})
    if (line.find(words) != line.npos) return true;
  return false;
}

std::string_view line_at(std::string_view text, size_t at) {
  return text.substr(at, line_end(text, at) - at);
}

// Of the record that the line belongs to: its own, or of what a traceback stands under.
Level level_of_record(std::string_view text, size_t at) {
  if (const Level own = level_of(line_at(text, at)); own != Level::kNone) return own;
  bool in_traceback = false;
  for (size_t i = 0; i < kMostFrames && at > 0; i++) {
    at = line_begin(text, at - 1);
    const std::string_view line = line_at(text, at);
    if (const Level level = level_of(line); level != Level::kNone)
      return in_traceback ? level : Level::kNone;
    in_traceback = line.find("Traceback (most recent call last)") != line.npos;
  }
  return Level::kNone;
}

}  // namespace

// Whether a line of level INFO is behind it, and nothing that has failed: an error, or a traceback
// that stands under no record.
bool Survived::goes_on_well_after(size_t at) {
  if (!ends_) {
    ends_.emplace(0, 0);
    for (size_t begin = 0; begin < text_.size();) {
      const std::string_view line = line_at(text_, begin);
      const Level level = level_of(line);
      if (level == Level::kInfo) ends_->first = begin;
      bool is_bad = level == Level::kError || tells_of_a_crash(line);
      if (line.find("Traceback (most recent call last)") != line.npos) {
        const auto before = begin > 0 ? std::optional(line_begin(text_, begin - 1)) : std::nullopt;
        is_bad |= level == Level::kNone && !(before && is_mild(level_of(line_at(text_, *before))));
      }
      if (is_bad) ends_->second = begin + 1;
      begin += line.size() + 1;
    }
  }
  return ends_->first > at && ends_->second <= at;
}

bool Survived::contains(size_t at) {
  const std::string_view line = line_at(text_, at);
  if (is_of_loader(line) || is_test_that_passes(line)) return true;
  if (text_.size() > kLargest) return false;
  return is_mild(level_of_record(text_, at)) && goes_on_well_after(at);
}

}  // namespace cohabit::explain
