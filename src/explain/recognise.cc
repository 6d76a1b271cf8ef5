#include "explain/recognise.h"

#include <re2/re2.h>

#include "explain/log_text.h"

namespace cohabit::explain {
namespace {

constexpr size_t kSearched = 1 << 18;  // bytes at the end
constexpr size_t kMostLines = 8;
constexpr size_t kMostText = 300;

bool matches(const RE2& expression, std::string_view line) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), expression);
}

std::string_view kind_of(std::string_view line) {
  static const RE2 kException(
      "^[A-Za-z_][\\w.]*(?:Error|Exception|Interrupt|Exit)(?::|$)|^error: |^ERROR: |^FATAL"
      "|^[a-z_]\\w*(?:\\.\\w+)+\\.[A-Z]\\w*[a-z]\\w*: ",  // in a module: others end in anything
      RE2::Latin1);
  static const RE2 kCrash(
      "Segmentation fault|core dumped|Fatal Python error|terminate called|Bus error"
      "|SIGSEGV|SIGABRT|SIGBUS|SIGKILL|\\bKilled\\b|Illegal instruction|access violation"
      "|exited with code [1-9]",
      RE2::Latin1);
  if (matches(kException, line)) return "exception";
  return matches(kCrash, line) ? "crash" : "";
}

}  // namespace

void recognise(std::string_view text, std::vector<Recognised>& recognised) {
  size_t found = 0;
  const size_t from = text.size() > kSearched ? line_begin(text, text.size() - kSearched) : 0;
  for (size_t at = from; at < text.size() && found < kMostLines;) {
    const size_t end = line_end(text, at);
    const std::string_view line = without_prefix(text.substr(at, end - at));
    if (const std::string_view kind = kind_of(line); !kind.empty()) {
      recognised.push_back({std::string(kind), at, std::string(line.substr(0, kMostText))});
      found++;
    }
    at = std::max(end, at) + 1;
  }
}

}  // namespace cohabit::explain
