// From the matches in a text to answers: which mechanism, how likely, what follows from what.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "explain/knowledge.h"
#include "explain/matcher.h"

namespace cohabit::explain {

enum class Status : uint8_t { kConfirmed, kContradicted, kNotCheckable };

struct MatchedLine {
  size_t number = 0;  // from 1
  std::string text;
};

// Captures filled in.
struct ReadyFix {
  std::string_view id, kind;
  std::string text, command;
  Safety safety = Safety::kManual;
};

struct Answer {
  const Mechanism* mechanism = nullptr;
  double confidence = 0;
  Weight weight = Weight::kFailure;
  size_t at = 0;                     // of the first line that matched
  std::vector<MatchedLine> matched;  // the first lines
  size_t more = 0;                   // that matched too
  std::vector<Capture> captures;
  std::vector<std::string_view> explains;  // mechanisms found too that are its consequences
  Status status = Status::kNotCheckable;
  std::vector<Evidence> evidence;
  std::vector<ReadyFix> fixes;  // the best first
  std::string headline, explanation;
};

// What stands in the text without being an answer: an exception, a signal, a message of healthy
// runs.
struct Recognised {
  std::string kind;  // exception, crash, notice
  size_t line = 0;
  std::string text;
};

struct Explanation {
  std::vector<Answer> answers;
  std::vector<Recognised> recognised;
};

Explanation explain_text(std::string_view text, const Matcher& matcher);

// Lines that a part of the text is missing before: their numbers are those of the whole.
void count_missing_lines(Explanation& explanation, size_t lines_before, ptrdiff_t missing);

std::string_view status_name(Status status);
std::string_view weight_name(Weight weight);

}  // namespace cohabit::explain
