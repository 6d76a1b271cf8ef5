#include "actions/pylock_version.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohabit {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "1.7"
bool is_of_first_major(const std::string& version) {
  return version.starts_with("1.") && is_number(std::string_view(version).substr(2));
}

}  // namespace

Result<std::string> check_pylock_version(const toml::table& file) {
  constexpr const char* kExpected = "expected lock-version = \"1.0\" (PEP 751; any 1.x is read)";
  constexpr size_t kLongest = 16;
  const auto found = file["lock-version"];
  if (!found) return fail(fmt::format("{}, found no lock-version", kExpected));
  const auto line = found.node()->source().begin.line;
  if (!found.is_string())
    return fail(
        fmt::format("{}, found a lock-version that is no string, line {}", kExpected, line));
  const std::string version = text_at(file, "lock-version");
  if (version.size() > kLongest || !is_of_first_major(version))
    return fail(
        fmt::format("{}, found \"{}\", line {}", kExpected, version.substr(0, kLongest), line));
  if (version == "1.0") return std::string();
  return fmt::format(
      "lock-version is {} (line {}), and 1.0 is known here: what is new in it is not looked at",
      version, line);
}

}  // namespace cohabit
