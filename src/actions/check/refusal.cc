#include "actions/check/refusal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/addresses.h"
#include "base/paths.h"

namespace cohabit::check {
namespace {

constexpr size_t kLongest = 1500;

// pip prefixes its reasons with "ERROR: " after pages of what it looked at.
std::string last_reasons(const std::string& errors) {
  const size_t first = errors.find("ERROR: ");
  std::string text = first == std::string::npos ? errors : errors.substr(first);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kLongest) text = "... " + text.substr(text.size() - kLongest);
  return without_credentials(text);
}

// What no build would have changed, as pip and uv say it: a request that cannot be read, a server
// that does not answer.
bool has_other_reason(const std::string& errors) {
  for (const char* words :
       {"Invalid requirement", "Could not open requirements file", "Could not find requirements",
        "Failed to parse", "File not found", "NewConnectionError", "ConnectTimeout",
        "DO NOT MATCH THE HASHES", "Hash mismatch", "Failed to establish a new connection",
        "error sending request", "Failed to fetch"})
    if (errors.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

std::string reasons_of(const Answer& answer) {
  return last_reasons(answer.errors);
}

Error refusal_of(const std::vector<std::string>& command, const Answer& answer, bool allow_build) {
  std::string text =
      fmt::format("{} finds no way to install this: {}", last_part(command[0]), reasons_of(answer));
  if (!allow_build && !has_other_reason(answer.errors)) text += kBuildHint;
  return {std::move(text)};
}

}  // namespace cohabit::check
