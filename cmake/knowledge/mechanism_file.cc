#include "mechanism_file.h"

#include <fmt/format.h>

#include "families.h"

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

}  // namespace

std::string_view MechanismFiles::keep(std::string text) {
  return texts_.emplace_back(std::move(text));
}

Texts MechanismFiles::texts_of(const toml::table& table, std::string_view key) {
  std::vector<std::string_view> result;
  if (const toml::array* array = table[key].as_array())
    for (const toml::node& node : *array)
      result.push_back(keep(flatten(node.value_or(std::string()))));
  return keep_all(std::move(result));
}

std::string_view MechanismFiles::text_of(const toml::table& table, std::string_view key) {
  return keep(flatten(table[key].value_or(std::string_view())));
}

std::span<const Signal> MechanismFiles::signals_of(const toml::table& table) {
  std::vector<Signal> signals;
  for_each_table(table, "signals", [&](const toml::table& entry) {
    for (std::string& pattern : patterns_of(entry))
      signals.push_back({keep(std::move(pattern)), entry["confidence"].value_or(0.0),
                         weight_of(entry), keep(entry["fix"].value_or(std::string())),
                         entry["at_end"].value_or(false)});
  });
  return keep_all(std::move(signals));
}

template <class Row, class Function>
std::span<const Row> MechanismFiles::rows_of(const toml::table& table, std::string_view key,
                                             Function make) {
  std::vector<Row> rows;
  for_each_table(table, key, [&](const toml::table& entry) { rows.push_back(make(entry)); });
  return keep_all(std::move(rows));
}

void MechanismFiles::read_lists(const toml::table& table, Mechanism& mechanism) {
  mechanism.signals = signals_of(table);
  mechanism.tells = rows_of<Tell>(table, "tells", [&](const toml::table& entry) {
    return Tell{keep(entry["pattern"].value_or(std::string())), entry["adds"].value_or(0.0)};
  });
  mechanism.fixes = rows_of<Fix>(table, "fixes", [&](const toml::table& entry) {
    return Fix{text_of(entry, "id"), text_of(entry, "kind"), text_of(entry, "text"),
               text_of(entry, "command"), safety_of(entry)};
  });
  mechanism.wrong_advice =
      rows_of<WrongAdvice>(table, "wrong_advice", [&](const toml::table& entry) {
        return WrongAdvice{text_of(entry, "advice"), text_of(entry, "reason")};
      });
  mechanism.checks = rows_of<Check>(table, "checks", [&](const toml::table& entry) {
    return Check{text_of(entry, "kind"), text_of(entry, "argument")};
  });
}

Result<void> MechanismFiles::add(const std::string& path) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed)
    return fail(fmt::format("{}, line {}: {}", path, parsed.error().source().begin.line,
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
    return fail(fmt::format("{}: a mechanism needs slug, headline and fixes", path));
  mechanisms_.push_back(mechanism);
  return {};
}

}  // namespace cohabit::explain
