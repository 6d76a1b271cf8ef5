#include "actions/check/wheel_tags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "base/paths.h"

namespace cohabit::check {
namespace {

// Larger is better: interpreter and ABI decide before the platform does, then the build number.
using Rank = std::tuple<int, int, int>;

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "cp312" -> 312, "py3" -> 300, "py38" -> 308; nothing: another implementation.
std::optional<int> version_of(std::string_view tag) {
  if (!tag.starts_with("cp") && !tag.starts_with("py")) return std::nullopt;
  tag.remove_prefix(2);
  if (tag.empty()) return std::nullopt;
  const auto major = number(tag.substr(0, 1));
  const auto minor = tag.size() == 1 ? std::optional(0) : number(tag.substr(1));
  if (!major || !minor) return std::nullopt;
  return *major * 100 + *minor;
}

// Nothing: this interpreter cannot use it.
std::optional<int> rank_of_interpreter(std::string_view python, std::string_view abi,
                                       const TagTarget& target) {
  constexpr int kOwnAbi = 4000, kStableAbi = 3000, kOwnVersion = 2000, kAnyPython = 1000;
  const auto version = version_of(python);
  if (!version || *version > target.python || *version / 100 != target.python / 100)
    return std::nullopt;
  const bool is_cpython = python.starts_with("cp");
  if (is_cpython && abi == python && *version == target.python) return kOwnAbi;
  if (is_cpython && abi == "abi3") return kStableAbi + *version;
  if (abi != "none") return std::nullopt;
  if (is_cpython) return *version == target.python ? std::optional(kOwnVersion) : std::nullopt;
  return kAnyPython + *version;
}

std::optional<int> rank_of_platform(std::string_view tag, const TagTarget& target) {
  if (tag == "any") return -1;
  if (!tag.ends_with("_" + target.machine)) return std::nullopt;
  tag.remove_suffix(target.machine.size() + 1);
  if (tag == "linux") return 0;
  constexpr std::array<std::pair<std::string_view, int>, 3> kOld = {
      {{"manylinux1", 5}, {"manylinux2010", 12}, {"manylinux2014", 17}}};
  for (const auto& [name, glibc] : kOld)
    if (tag == name) return glibc <= target.glibc ? std::optional(glibc) : std::nullopt;
  constexpr std::string_view kNew = "manylinux_2_";
  if (!tag.starts_with(kNew)) return std::nullopt;
  const auto glibc = number(tag.substr(kNew.size()));
  return glibc && *glibc <= target.glibc ? glibc : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<Rank> rank_of(std::string_view name, const TagTarget& target) {
  if (!name.ends_with(".whl")) return std::nullopt;
  name.remove_suffix(4);
  const std::vector<std::string_view> parts = split(name, '-');
  if (parts.size() != 5 && parts.size() != 6) return std::nullopt;
  const size_t tags = parts.size() - 3;
  int build = 0;
  if (parts.size() == 6)
    build = number(parts[2].substr(0, parts[2].find_first_not_of("0123456789"))).value_or(0);
  std::optional<Rank> best;
  for (const std::string_view python : split(parts[tags], '.'))
    for (const std::string_view abi : split(parts[tags + 1], '.'))
      for (const std::string_view platform : split(parts[tags + 2], '.')) {
        const auto interpreter = rank_of_interpreter(python, abi, target);
        const auto machine = rank_of_platform(platform, target);
        if (interpreter && machine) best = std::max(best, {{*interpreter, *machine, build}});
      }
  return best;
}

}  // namespace

std::optional<WheelName> split_wheel_name(std::string_view file) {
  const size_t first = file.find('-'), second = file.find('-', first + 1);
  if (!file.ends_with(".whl") || first == file.npos || second == file.npos) return std::nullopt;
  return WheelName{file.substr(0, first), file.substr(first + 1, second - first - 1)};
}

std::set<std::string> tags_of(std::string_view file) {
  std::set<std::string> tags;
  if (!file.ends_with(".whl")) return tags;
  file.remove_suffix(4);
  const std::vector<std::string_view> parts = split(file, '-');
  if (parts.size() != 5 && parts.size() != 6) return tags;
  const size_t at = parts.size() - 3;
  for (const std::string_view python : split(parts[at], '.'))
    for (const std::string_view abi : split(parts[at + 1], '.'))
      for (const std::string_view platform : split(parts[at + 2], '.'))
        tags.insert(fmt::format("{}-{}-{}", python, abi, platform));
  return tags;
}

std::optional<size_t> best_wheel(const std::vector<std::string>& names, const TagTarget& target) {
  std::optional<size_t> best;
  std::optional<Rank> rank;
  for (size_t i = 0; i < names.size(); i++) {
    const auto one = rank_of(last_part(names[i]), target);
    if (!one || one <= rank) continue;
    best = i;
    rank = one;
  }
  return best;
}

}  // namespace cohabit::check
