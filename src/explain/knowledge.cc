#include "explain/knowledge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/together.h"
#include "explain/families.h"

namespace cohabit::explain {
namespace {

// Text of several lines in a file is one paragraph.
std::string flatten(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::string text_of(const toml::table& table, std::string_view key) {
  return flatten(table[key].value_or(std::string_view()));
}

std::vector<std::string> texts_of(const toml::table& table, std::string_view key) {
  std::vector<std::string> result;
  if (const toml::array* array = table[key].as_array())
    for (const toml::node& node : *array) result.push_back(flatten(node.value_or(std::string())));
  return result;
}

template <class Function>
void for_each_table(const toml::table& table, std::string_view key, Function function) {
  if (const toml::array* array = table[key].as_array())
    for (const toml::node& node : *array)
      if (const toml::table* entry = node.as_table()) function(*entry);
}

Weight weight_of(const toml::table& entry) {
  const auto name = entry["weight"].value_or(std::string_view("failure"));
  if (name == "notice") return Weight::kNotice;
  return name == "degradation" ? Weight::kDegradation : Weight::kFailure;
}

Safety safety_of(const toml::table& entry) {
  const auto name = entry["safety"].value_or(std::string_view("manual"));
  if (name == "safe") return Safety::kSafe;
  return name == "unsafe" ? Safety::kUnsafe : Safety::kManual;
}

std::vector<int64_t> numbers_of(const toml::array& array) {
  std::vector<int64_t> numbers;
  for (const toml::node& node : array) numbers.push_back(node.value_or(int64_t{0}));
  return numbers;
}

std::vector<std::string> patterns_of(const toml::table& entry) {
  if (const toml::array* numbers = entry["cuda_errors"].as_array())
    return patterns_of_cuda_errors(numbers_of(*numbers));
  if (const toml::array* numbers = entry["windows_errors"].as_array())
    return patterns_of_windows_errors(numbers_of(*numbers));
  if (const auto name = entry["missing_header"].value<std::string>())
    return patterns_of_missing_header(*name);
  return {entry["pattern"].value_or(std::string())};
}

void read_signal(const toml::table& entry, Mechanism& mechanism) {
  for (std::string& pattern : patterns_of(entry))
    mechanism.signals.push_back({std::move(pattern), entry["confidence"].value_or(0.0),
                                 weight_of(entry), entry["fix"].value_or(std::string()),
                                 entry["at_end"].value_or(false)});
}

void read_lists(const toml::table& table, Mechanism& mechanism) {
  for_each_table(table, "signals",
                 [&](const toml::table& entry) { read_signal(entry, mechanism); });
  for_each_table(table, "tells", [&](const toml::table& entry) {
    mechanism.tells.push_back(
        {entry["pattern"].value_or(std::string()), entry["adds"].value_or(0.0)});
  });
  for_each_table(table, "fixes", [&](const toml::table& entry) {
    mechanism.fixes.push_back({text_of(entry, "id"), text_of(entry, "kind"), text_of(entry, "text"),
                               text_of(entry, "command"), safety_of(entry)});
  });
  for_each_table(table, "wrong_advice", [&](const toml::table& entry) {
    mechanism.wrong_advice.push_back({text_of(entry, "advice"), text_of(entry, "reason")});
  });
  for_each_table(table, "checks", [&](const toml::table& entry) {
    mechanism.checks.push_back({text_of(entry, "kind"), text_of(entry, "argument")});
  });
}

}  // namespace

Result<Mechanism> parse_mechanism(std::string_view name, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return fail(fmt::format("{}, line {}: {}", name, parsed.error().source().begin.line,
                            parsed.error().description()));
  const toml::table& table = parsed.table();
  Mechanism mechanism;
  mechanism.slug = text_of(table, "slug");
  mechanism.code = text_of(table, "code");
  mechanism.headline = text_of(table, "headline");
  mechanism.explanation = text_of(table, "explanation");
  mechanism.decides = text_of(table, "decides");
  mechanism.consequence_of = texts_of(table, "consequence_of");
  mechanism.specializes = texts_of(table, "specializes");
  mechanism.sources = texts_of(table, "sources");
  read_lists(table, mechanism);
  if (mechanism.slug.empty() || mechanism.headline.empty() || mechanism.fixes.empty())
    return fail(fmt::format("{}: a mechanism needs slug, headline and fixes", name));
  return mechanism;
}

// Half of what a short text takes: to parse is the same work for each file.
Result<std::vector<Mechanism>> read_knowledge() {
  const auto& files = embedded_mechanisms();
  std::vector<Result<Mechanism>> parsed(files.size());
  together(files.size(),
           [&](size_t i) { parsed[i] = parse_mechanism(files[i].name, files[i].text); });
  std::vector<Mechanism> all;
  for (Result<Mechanism>& mechanism : parsed) {
    if (!mechanism) return tl::unexpected<Error>(mechanism.error());
    all.push_back(std::move(*mechanism));
  }
  return all;
}

std::string fill_in(std::string_view text, const std::vector<Capture>& captures) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    const size_t close = open == text.npos ? open : text.find('}', open);
    if (close == text.npos) return result.append(text.substr(at));
    result.append(text.substr(at, open - at));
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const size_t bar = std::min(inside.find('|'), inside.size());
    const auto found = std::find_if(captures.begin(), captures.end(), [&](const Capture& capture) {
      return capture.name == inside.substr(0, bar);
    });
    // What may be missing follows a sentence that is whole without it.
    const bool is_added =
        bar < inside.size() && !result.empty() &&
        (std::isalpha(static_cast<unsigned char>(result.back())) || result.back() == ')');
    if (found != captures.end())
      result.append(is_added ? fmt::format(" ({})", found->value) : found->value);
    else if (bar < inside.size())
      result.append(inside.substr(bar + 1));
    else
      result.append(text.substr(open, close + 1 - open));
    at = close + 1;
  }
  return result;
}

}  // namespace cohabit::explain
