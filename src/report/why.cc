// Drawn as the findings of doctor are: a headline, the lines that say so, what is known and how,
// and help that can be pasted.
#include "report/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/painter.h"
#include "report/printable.h"

namespace cohabit::report {
namespace {

using explain::Answer;
using explain::Explanation;
using explain::Mechanism;
using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kLongLine = 160;
constexpr size_t kWidth = 100;

// A line of a log on one line of the report.
std::string shown(std::string_view line) {
  const std::string_view start = line.substr(0, kLongLine);
  return printable(start) + (line.size() > kLongLine ? " ..." : "");
}

std::string wrap(std::string_view text, const std::string& indent) {
  std::string result;
  std::string line = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kWidth) {
      result.append(line).append("\n");
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    at = end + 1;
  }
  return result.append(line).append("\n");
}

Severity severity_of(const Answer& answer) {
  switch (answer.weight) {
    case explain::Weight::kFailure:
      return Severity::kError;
    case explain::Weight::kDegradation:
      return Severity::kWarning;
    case explain::Weight::kNotice:
      return Severity::kNote;
  }
  return Severity::kNote;
}

std::string code_of(const Mechanism& mechanism) {
  return fmt::format("{}{}{}", mechanism.code, mechanism.code.empty() ? "" : " ", mechanism.slug);
}

std::string draw_lines(const Answer& answer) {
  std::string text;
  for (const explain::MatchedLine& line : answer.matched)
    text += fmt::format("  {} line {}: {}\n", &line == answer.matched.data() ? "-->" : "   ",
                        line.number, shown(line.text));
  if (answer.more > 0) text += fmt::format("      and {} more lines\n", answer.more);
  return text;
}

std::string draw_fixes(const std::vector<explain::ReadyFix>& fixes, const Painter& painter) {
  std::string text;
  for (size_t i = 0; i < fixes.size(); i++) {
    text += i == 0 ? painter.paint("1;32", "help") + ": " : "  or: ";
    text += printable(fixes[i].text) + "\n";
    if (!fixes[i].command.empty()) text += "        " + printable(fixes[i].command) + "\n";
  }
  return text;
}

std::string draw(const Answer& answer, const Painter& painter) {
  const Severity severity = severity_of(answer);
  std::string text = painter.severity(severity, fmt::format("{}[{}]", severity_name(severity),
                                                            code_of(*answer.mechanism))) +
                     painter.bold(": " + printable(answer.headline)) + "\n" + draw_lines(answer) +
                     wrap(printable(answer.explanation), "   |  ");
  text += fmt::format("   = {}; likelihood {:.0f} %\n",
                      answer.status == explain::Status::kNotCheckable
                          ? "not checked on this machine"
                          : std::string(status_name(answer.status)) + " on this machine",
                      answer.confidence * 100);
  for (const Evidence& row : answer.evidence) text += fmt::format("   = {}\n", printable(row.text));
  if (!answer.explains.empty())
    text += fmt::format("   = explains also: {}\n", fmt::join(answer.explains, ", "));
  text += draw_fixes(answer.fixes, painter);
  for (const explain::WrongAdvice& wrong : answer.mechanism->wrong_advice)
    text += fmt::format(" not: {}: {}\n", wrong.advice, wrong.reason);
  return text + fmt::format("more: `cohabit explain {}`\n", answer.mechanism->slug);
}

bool is_close(const Answer& first, const Answer& second) {
  return first.weight == second.weight && first.confidence - second.confidence < 0.2;
}

std::string draw_recognised(const Explanation& explanation) {
  std::string text;
  for (const explain::Recognised& one : explanation.recognised)
    text += fmt::format("  {} in line {}: {}\n", one.kind, one.line, shown(one.text));
  return text;
}

Json to_json(const Answer& answer) {
  Json json = {{"mechanism", answer.mechanism->slug},
               {"code", answer.mechanism->code.empty() ? Json() : Json(answer.mechanism->code)},
               {"severity", severity_name(severity_of(answer))},
               {"headline", answer.headline},
               {"explanation", answer.explanation},
               {"confidence", answer.confidence},
               {"status", status_name(answer.status)},
               {"decides", answer.mechanism->decides},
               {"explains", answer.explains},
               {"matched", Json::array()},
               {"captures", Json::object()},
               {"evidence", Json::array()},
               {"fixes", Json::array()},
               {"wrong_advice", Json::array()}};
  for (const explain::MatchedLine& line : answer.matched)
    json["matched"].push_back({{"line", line.number}, {"text", line.text}});
  for (const explain::Capture& capture : answer.captures)
    json["captures"][capture.name] = capture.value;
  for (const Evidence& row : answer.evidence)
    json["evidence"].push_back({{"kind", row.kind}, {"text", row.text}, {"library", row.library}});
  for (const explain::ReadyFix& fix : answer.fixes)
    json["fixes"].push_back({{"kind", fix.kind},
                             {"text", fix.text},
                             {"command", fix.command.empty() ? Json() : Json(fix.command)},
                             {"safety", safety_name(fix.safety)}});
  for (const explain::WrongAdvice& wrong : answer.mechanism->wrong_advice)
    json["wrong_advice"].push_back({{"advice", wrong.advice}, {"reason", wrong.reason}});
  return json;
}

}  // namespace

std::string why_full(const Explanation& explanation, bool colour) {
  const Painter painter(colour);
  const std::vector<Answer>& answers = explanation.answers;
  std::string text;
  for (const Answer& answer : answers) text += draw(answer, painter) + "\n";
  for (size_t i = 1; i < answers.size(); i++)
    if (is_close(answers[0], answers[i]))
      text += fmt::format("{} or {}: what decides: {}\n", answers[0].mechanism->slug,
                          answers[i].mechanism->slug, answers[i].mechanism->decides);
  if (!answers.empty()) return text;
  text = "Nothing known explains this text.\n";
  if (explanation.recognised.empty()) return text;
  return text + "Recognised in it:\n" + draw_recognised(explanation);
}

std::string why_json(const Explanation& explanation) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["answers"] = Json::array();
  for (const Answer& answer : explanation.answers) json["answers"].push_back(to_json(answer));
  json["recognised"] = Json::array();
  for (const explain::Recognised& one : explanation.recognised)
    json["recognised"].push_back({{"kind", one.kind}, {"line", one.line}, {"text", one.text}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string mechanism_text(const Mechanism& mechanism) {
  const Painter painter(false);
  std::string text =
      fmt::format("{}: {}\n\n", code_of(mechanism), explain::fill_in(mechanism.headline, {})) +
      wrap(explain::fill_in(mechanism.explanation, {}), "  ");
  if (!mechanism.decides.empty()) text += "\nWhat decides\n" + wrap(mechanism.decides, "  ");
  text += "\nWhat to do, best first\n";
  for (const explain::Fix& fix : mechanism.fixes) {
    text += wrap(fmt::format("{}: {}", fix.kind, explain::fill_in(fix.text, {})), "  ");
    if (!fix.command.empty()) text += fmt::format("      {}\n", fix.command);
  }
  if (!mechanism.wrong_advice.empty()) text += "\nAdvice that is wrong\n";
  for (const explain::WrongAdvice& wrong : mechanism.wrong_advice)
    text += wrap(fmt::format("{}: {}", wrong.advice, wrong.reason), "  ");
  if (!mechanism.sources.empty()) text += "\nSources\n";
  for (const std::string_view source : mechanism.sources) text += fmt::format("  {}\n", source);
  return text;
}

}  // namespace cohabit::report
