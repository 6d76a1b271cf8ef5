// The last line of a log is seldom the cause. Three relations find it:
//   specializes     two mechanisms match one line: who says more takes the line
//   consequence_of  where the cause was found in the text as well, its consequences are no answers
//   position        of what is left, and equally likely, the earliest event comes first
// What healthy runs print too (notices) answers only somebody who shows nothing else.
#include "explain/answer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "explain/log_text.h"
#include "explain/recognise.h"
#include "explain/survived.h"
#include "explain/wrapped_lines.h"

namespace cohabit::explain {
namespace {

constexpr size_t kShownLines = 3;
constexpr double kLeastConfidence = 0.2;
constexpr double kMostConfidence = 0.99;
constexpr double kFurtherSignal = 0.03;  // each other signal of the same mechanism
constexpr size_t kShortText = 3;         // lines that somebody picked out to ask about
constexpr size_t kMostWrapped = size_t{1}
                                << 20;  // larger texts are files, not what a screen showed

bool contains(Texts names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Lines that a more special mechanism takes. The matches are in the order of their lines.
std::vector<Match> without_general(const std::vector<Match>& matches) {
  const auto mechanisms = known_mechanisms();
  std::vector<Match> kept;
  for (auto line = matches.begin(); line != matches.end();) {
    const auto end =
        std::find_if(line, matches.end(), [&](const Match& other) { return other.at != line->at; });
    std::copy_if(line, end, std::back_inserter(kept), [&](const Match& match) {
      return std::none_of(line, end, [&](const Match& other) {
        return !other.is_tell && !match.is_tell &&
               contains(mechanisms[other.mechanism].specializes, mechanisms[match.mechanism].slug);
      });
    });
    line = end;
  }
  return kept;
}

void add_line(Answer& answer, std::string_view text, const Match& match) {
  if (answer.matched.size() >= kShownLines) {
    answer.more++;
    return;
  }
  // Until lines are counted, their place stands for their number.
  if (answer.matched.empty() || answer.matched.back().number != match.at)
    answer.matched.push_back({match.at, Matcher::line_of(text, match)});
}

double confidence_of(const Mechanism& mechanism, const std::set<uint32_t>& signals,
                     const std::set<uint32_t>& tells) {
  double best = 0;
  for (const uint32_t signal : signals) best = std::max(best, mechanism.signals[signal].confidence);
  double sum = best + kFurtherSignal * static_cast<double>(signals.size() - 1);
  for (const uint32_t tell : tells) sum += mechanism.tells[tell].adds;
  return std::round(std::clamp(sum, 0.0, kMostConfidence) * 100) / 100;
}

std::string_view preferred_fix(const Mechanism& mechanism, const std::set<uint32_t>& signals) {
  const Signal* best = nullptr;
  for (const uint32_t index : signals) {
    const Signal& signal = mechanism.signals[index];
    if (!signal.fix.empty() && (!best || signal.confidence > best->confidence)) best = &signal;
  }
  return best ? best->fix : "";
}

void describe(Answer& answer, std::string_view first_fix) {
  const Mechanism& mechanism = *answer.mechanism;
  answer.headline = fill_in(mechanism.headline, answer.captures);
  answer.explanation = fill_in(mechanism.explanation, answer.captures);
  for (const Fix& fix : mechanism.fixes)
    answer.fixes.push_back({fix.id, fix.kind, fill_in(fix.text, answer.captures),
                            fill_in(fix.command, answer.captures), fix.safety});
  if (!first_fix.empty())
    std::stable_partition(answer.fixes.begin(), answer.fixes.end(),
                          [&](const ReadyFix& fix) { return fix.id == first_fix; });
  for (ReadyFix& fix : answer.fixes) {
    // A command with a hole cannot be pasted.
    if (fix.command.find('{') != fix.command.npos && fix.command.find("${") == fix.command.npos)
      fix.command.clear();
  }
}

// What a line says only when its parts are put together is said where the first part stands, and
// what the parts say is said there too: a special mechanism takes it.
void add_wrapped(const Matcher& matcher, const WholeLines& whole, std::vector<Match>& matches) {
  std::set<uint32_t> said;  // patterns
  for (const Match& match : matches) said.insert(match.pattern);
  const size_t as_they_are = matches.size();
  for (Match& match : matcher.find(whole.text)) {
    if (said.contains(match.pattern)) continue;
    const WholeLines::Line& line = whole.line_at(match.at);
    match.at = line.first;
    match.in_whole = true;
    matches.push_back(match);
    for (size_t i = 0; i < as_they_are; i++)
      if (matches[i].at >= line.first && matches[i].at < line.end) matches[i].at = line.first;
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.at < b.at; });
}

std::vector<Answer> collect(std::string_view text, const Matcher& matcher) {
  const auto mechanisms = known_mechanisms();
  WholeLines whole;
  if (text.size() <= kMostWrapped) whole = whole_lines(text);
  std::vector<Match> matches = matcher.find(text);
  add_wrapped(matcher, whole, matches);
  struct Seen {
    Answer answer;
    std::set<uint32_t> signals, tells;
  };
  std::map<uint32_t, Seen> seen;
  Survived survived(text);
  for (const Match& match : without_general(matches)) {
    Seen& entry = seen[match.mechanism];
    const std::string_view log = match.in_whole ? std::string_view(whole.text) : text;
    matcher.add_captures(log, match, entry.answer.captures);
    if (match.is_tell) {
      entry.tells.insert(match.index);
      continue;
    }
    Weight weight = mechanisms[match.mechanism].signals[match.index].weight;
    if (weight == Weight::kFailure && !match.in_whole && survived.contains(match.at))
      weight = Weight::kNotice;
    Answer& answer = entry.answer;
    // The lines of the gravest kind speak for the answer.
    if (entry.signals.empty() || weight < answer.weight) {
      answer.weight = weight;
      answer.at = match.at;
    }
    entry.signals.insert(match.index);
    add_line(answer, log, match);
  }
  std::vector<Answer> answers;
  for (auto& [index, entry] : seen) {
    if (entry.signals.empty()) continue;
    entry.answer.mechanism = &mechanisms[index];
    entry.answer.confidence = confidence_of(mechanisms[index], entry.signals, entry.tells);
    if (entry.answer.confidence < kLeastConfidence) continue;
    describe(entry.answer, preferred_fix(mechanisms[index], entry.signals));
    answers.push_back(std::move(entry.answer));
  }
  return answers;
}

// "*": a consequence of whatever else there is, as a crash is.
bool follows_from(const Answer& effect, const Answer& cause) {
  const Texts causes = effect.mechanism->consequence_of;
  if (cause.weight == Weight::kNotice || cause.mechanism == effect.mechanism) return false;
  if (contains(causes, cause.mechanism->slug)) return true;
  return contains(causes, "*") && !contains(cause.mechanism->consequence_of, "*");
}

void drop_consequences(std::vector<Answer>& answers) {
  const std::vector<Answer> all = answers;
  std::erase_if(answers, [&](const Answer& answer) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Answer& cause) { return follows_from(answer, cause); });
  });
  for (Answer& cause : answers)
    for (const Answer& effect : all)
      if (follows_from(effect, cause)) cause.explains.push_back(effect.mechanism->slug);
}

int level_of(double confidence) {
  if (confidence >= 0.7) return 0;
  return confidence >= 0.45 ? 1 : 2;
}

void rank(std::vector<Answer>& answers) {
  std::stable_sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) {
    if (a.weight != b.weight) return a.weight < b.weight;
    if (level_of(a.confidence) != level_of(b.confidence))
      return level_of(a.confidence) < level_of(b.confidence);
    if (a.at != b.at) return a.at < b.at;
    return a.confidence > b.confidence;
  });
}

bool is_short(std::string_view text) {
  size_t lines = 0;
  for (size_t at = 0; at < text.size() && lines <= kShortText;) {
    const size_t end = line_end(text, at);
    if (text.substr(at, end - at).find_first_not_of(" \t") != text.npos) lines++;
    at = end + 1;
  }
  return lines <= kShortText;
}

// Notices leave the answers, unless they are all that was asked about.
void set_notices_aside(std::string_view text, Explanation& explanation) {
  std::vector<Answer>& answers = explanation.answers;
  const bool only = std::all_of(answers.begin(), answers.end(), [](const Answer& answer) {
    return answer.weight == Weight::kNotice;
  });
  if (only && is_short(text)) return;
  for (const Answer& answer : answers)
    if (answer.weight == Weight::kNotice)
      for (const MatchedLine& line : answer.matched)
        explanation.recognised.push_back({"notice", line.number, line.text});
  std::erase_if(answers, [](const Answer& answer) { return answer.weight == Weight::kNotice; });
}

void number_lines(std::string_view text, Explanation& explanation) {
  std::map<size_t, size_t> numbers;
  for (const Answer& answer : explanation.answers)
    for (const MatchedLine& line : answer.matched) numbers[line.number];
  for (const Recognised& one : explanation.recognised) numbers[one.line];
  size_t number = 1;
  size_t from = 0;
  for (auto& [at, value] : numbers) {
    number += count_lines(text.substr(from, at - from));
    from = at;
    value = number;
  }
  for (Answer& answer : explanation.answers)
    for (MatchedLine& line : answer.matched) line.number = numbers[line.number];
  for (Recognised& one : explanation.recognised) one.line = numbers[one.line];
}

}  // namespace

Explanation explain_text(std::string_view text, const Matcher& matcher) {
  Explanation explanation;
  explanation.answers = collect(text, matcher);
  drop_consequences(explanation.answers);
  rank(explanation.answers);
  set_notices_aside(text, explanation);
  recognise(text, explanation.recognised);
  number_lines(text, explanation);
  return explanation;
}

void count_missing_lines(Explanation& explanation, size_t lines_before, ptrdiff_t missing) {
  const auto count = [&](size_t& number) {
    if (number > lines_before + 1) number += static_cast<size_t>(missing);
  };
  for (Answer& answer : explanation.answers)
    for (MatchedLine& line : answer.matched) count(line.number);
  for (Recognised& one : explanation.recognised) count(one.line);
}

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kConfirmed:
      return "confirmed";
    case Status::kContradicted:
      return "contradicted";
    case Status::kNotCheckable:
      return "not-checkable";
  }
  return "";
}

std::string_view weight_name(Weight weight) {
  switch (weight) {
    case Weight::kFailure:
      return "failure";
    case Weight::kDegradation:
      return "degradation";
    case Weight::kNotice:
      return "notice";
  }
  return "";
}

}  // namespace cohabit::explain
