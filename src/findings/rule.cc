#include "findings/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "findings/rules/rules.h"
#include "findings/spelling.h"

namespace cohabit {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string_view severity_name(Severity severity) {
  return severity == Severity::kError     ? "error"
         : severity == Severity::kWarning ? "warning"
                                          : "note";
}

std::string_view certainty_name(Certainty certainty) {
  switch (certainty) {
    case Certainty::kObserved:
      return "observed";
    case Certainty::kSimulated:
      return "simulated";
    case Certainty::kDeclared:
      return "declared";
    default:
      return "table";
  }
}

std::string_view safety_name(Safety safety) {
  return safety == Safety::kSafe ? "safe" : safety == Safety::kUnsafe ? "unsafe" : "manual";
}

const std::vector<const Rule*>& all_rules() {
  static const std::vector<const Rule*> kRules = {
      &rules::kCb101, &rules::kCb102, &rules::kCb103, &rules::kCb104, &rules::kCb105,
      &rules::kCb106, &rules::kCu101, &rules::kCu102, &rules::kCu103, &rules::kCu104,
      &rules::kCu105, &rules::kEv001, &rules::kEv002, &rules::kEv003, &rules::kEv004,
      &rules::kFi001, &rules::kFi002, &rules::kFi003, &rules::kIo901, &rules::kIo902,
      &rules::kLd201, &rules::kLd202, &rules::kLd203, &rules::kLd204, &rules::kLd205,
      &rules::kLd206, &rules::kLd207, &rules::kLd208, &rules::kLd209, &rules::kLd210,
      &rules::kMm001, &rules::kPy001, &rules::kPy002, &rules::kPy003, &rules::kPy004,
      &rules::kPy005, &rules::kPy006, &rules::kPy007, &rules::kPy301, &rules::kPy302,
  };
  return kRules;
}

const Rule* find_rule_by_code(std::string_view code) {
  const std::string wanted = upper(code);
  for (const Rule* rule : all_rules())
    if (rule->code == wanted || upper(rule->slug) == wanted) return rule;
  return nullptr;
}

std::string explain_rule(const Rule& rule) {
  return fmt::format(
      "{} {} ({})\n\n{}\n\nWhat it finds\n{}\n\nWhy it matters\n{}\n\nExample\n{}\n\nHow to "
      "fix\n{}\n\n"
      "Limits\n{}\n",
      rule.code, rule.slug, severity_name(rule.severity), rule.summary, rule.finds, rule.matters,
      rule.example, rule.fix, rule.limits);
}

std::vector<Finding> named_by(const Rule& rule, std::vector<Finding> findings) {
  for (Finding& finding : findings) {
    finding.code = rule.code;
    finding.slug = rule.slug;
  }
  return findings;
}

std::vector<Finding> check_all(const Case& examined) {
  std::vector<Finding> findings;
  for (const Rule* rule : all_rules()) {
    if (!rule->check) continue;
    for (Finding& finding : named_by(*rule, rule->check(examined))) {
      finding.imports = examined.imports;
      finding.program = examined.program;
      if (examined.phase != python::Phase::kImport) {
        finding.phase = python::phase_name(examined.phase);
        finding.certainty = Certainty::kDeclared;
      }
      findings.push_back(std::move(finding));
    }
  }
  // A failed run needs a finding of its own only where no other error explains it.
  const bool explained = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError && finding.code != rules::kPy301.code;
  });
  if (explained)
    std::erase_if(findings, [](const Finding& f) { return f.code == rules::kPy301.code; });
  // And an import that fails because a library cannot be opened is that library's finding.
  const bool of_loader = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError && finding.code.starts_with("LD");
  });
  if (of_loader)
    std::erase_if(findings, [](const Finding& f) { return f.code == rules::kPy302.code; });
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return a.symbols.count > b.symbols.count;
  });
  std::map<std::string, int> numbers;
  for (Finding& finding : findings)
    finding.id = fmt::format("{}-{}", finding.code, ++numbers[finding.code]);
  return findings;
}

std::optional<std::string> nearest_name(std::string_view wrong,
                                        const std::vector<std::string>& candidates) {
  const std::string from = upper(wrong);
  size_t best = from.size() / 4 + 2;
  std::optional<std::string> found;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(from, upper(candidate));
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace cohabit
