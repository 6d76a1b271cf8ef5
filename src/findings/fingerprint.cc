#include "findings/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/paths.h"
#include "base/rows.h"
#include "base/sha256.h"

namespace cohabit {
namespace {

constexpr size_t kDigits = 32;  // of a digest

std::string without_prefix(std::string text, const std::string& environment) {
  if (environment.empty()) return text;
  for (size_t at = text.find(environment); at != std::string::npos; at = text.find(environment, at))
    text.erase(at, environment.size());
  return text;
}

}  // namespace

std::string cause_of(const Finding& finding) {
  std::string cause = finding.code;
  for (const Library& library : finding.libraries) cause += "\n" + library.path;
  if (finding.libraries.empty()) cause += "\n" + finding.headline;
  return cause;
}

std::string place_in(const std::string& path, const std::string& environment) {
  for (const std::string_view site : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.rfind(site); at != std::string::npos)
      return path.substr(at + site.size());
  if (is_below(path, environment)) return path.substr(environment.size() + 1);
  return path.substr(path.rfind('/') + 1);
}

std::string fingerprint(const Finding& finding, const std::string& environment) {
  std::vector<std::string> parties;
  for (const Library& library : finding.libraries)
    parties.push_back(place_in(library.path, environment));
  std::sort(parties.begin(), parties.end());
  // A rule about the environment can find several things about the same files, and says what in the
  // headline. One about a process names the order there, and its files tell it from others.
  const bool of_environment =
      !finding.broken.empty() || (finding.imports.empty() && finding.program.empty());
  if (parties.empty() || of_environment)
    parties.push_back(without_prefix(finding.headline, environment));
  const std::string text = fmt::format("{}\n{}", finding.code, fmt::join(parties, "\n"));
  return hexadecimal(sha256(Bytes(text))).substr(0, kDigits);
}

namespace {

// "2.1.4", "(<2,>=1.23)"; not "nvidia-nccl-cu12".
bool is_version(std::string_view word) {
  if (word.starts_with('(') && word.size() > 1 &&
      std::string_view("<>=!~").find(word[1]) != word.npos)
    return true;
  return !word.empty() && word[0] >= '0' && word[0] <= '9';
}

std::string without_versions(const std::string& text) {
  std::string result;
  for (const std::string_view word : split(text, ' '))
    if (!is_version(word)) result.append(word).append(" ");
  return result;
}

}  // namespace

std::string key_across_versions(const Finding& finding) {
  constexpr std::string_view kExpected = "would overwrite", kHappened = "has overwritten";
  std::string headline = finding.headline;
  if (const size_t at = headline.find(kExpected); at != headline.npos)
    headline.replace(at, kExpected.size(), kHappened);
  return fmt::format("{} {}", finding.code, without_versions(headline));
}

}  // namespace cohabit
