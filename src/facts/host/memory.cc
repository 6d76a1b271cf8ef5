// proc(5) has MemAvailable; the limits of a control group are where containers have theirs mounted:
// memory.max and memory.current of version 2 (the kernel's cgroup-v2 document), limit_in_bytes and
// usage_in_bytes of version 1.
#include "facts/host/memory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/rows.h"

namespace cohabit {
namespace {

// The number at the start, after blanks; nothing for "max".
std::optional<uint64_t> number_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> number_in(const Tree& tree, const std::string& path) {
  const auto text = tree.read_text(path);
  return text ? number_of(*text) : std::nullopt;
}

std::optional<uint64_t> of_the_kernel(const Tree& tree) {
  constexpr std::string_view kName = "MemAvailable:";
  const std::string text = tree.read_text("/proc/meminfo").value_or("");
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(kName))
      if (const auto kilobytes = number_of(line.substr(kName.size()))) return *kilobytes << 10;
  return std::nullopt;
}

// Behind a word at the start of a line: "oom_kill 3".
uint64_t counted_in(const Tree& tree, const std::string& path, std::string_view word) {
  const std::string text = tree.read_text(path).value_or("");
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(word) && line.substr(word.size()).starts_with(' '))
      return number_of(line.substr(word.size())).value_or(0);
  return 0;
}

struct Version {
  const char *root, *limit, *usage, *events;
};
constexpr Version kVersions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "memory.events"},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "memory.oom_control"},
};

std::optional<GroupMemory> read_group(const Tree& tree, const Version& version,
                                      const std::string& directory) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes the largest number of pages
  const auto limit = number_in(tree, directory + "/" + version.limit);
  const auto used = number_in(tree, directory + "/" + version.usage);
  if (!limit || !used || *limit >= kNoLimit) return std::nullopt;
  return GroupMemory{directory, *limit, *used,
                     counted_in(tree, directory + "/" + version.events, "oom_kill")};
}

// cgroups(7): "0::/a/b" of version 2, "4:memory:/a/b" of version 1; in a container with a name
// space of its own "/", and what is mounted is its own group.
std::string own_group(const Tree& tree, bool is_first_version) {
  const std::string text = tree.read_text("/proc/self/cgroup").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (is_first_version ? controllers == "memory" : controllers.empty())
      return std::string(line.substr(second + 1));
  }
  return "";
}

}  // namespace

std::optional<GroupMemory> group_memory(const Tree& tree) {
  std::optional<GroupMemory> tightest;
  for (const Version& version : kVersions) {
    std::string group = own_group(tree, &version != kVersions);
    if (group.find("/..") != group.npos) group.clear();  // of a name space outside of ours
    for (;;) {
      while (group.ends_with('/')) group.pop_back();
      const auto found = read_group(tree, version, version.root + group);
      if (found && (!tightest || found->limit < tightest->limit)) tightest = found;
      if (group.empty()) break;
      const size_t slash = group.rfind('/');
      group.resize(slash == group.npos ? 0 : slash);
    }
  }
  return tightest;
}

uint64_t available_memory(const Tree& tree) {
  const auto kernel = of_the_kernel(tree);
  std::optional<uint64_t> left;
  if (const auto group = group_memory(tree))
    left = group->limit > group->used ? group->limit - group->used : 1;
  if (kernel && left) return std::min(*kernel, *left);
  return kernel.value_or(left.value_or(0));
}

}  // namespace cohabit
