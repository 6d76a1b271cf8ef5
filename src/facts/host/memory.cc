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

std::optional<uint64_t> of_the_group(const Tree& tree) {
  static constexpr std::pair<const char*, const char*> kFiles[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const auto& [limit, usage] : kFiles)
    if (const auto most = number_in(tree, limit), used = number_in(tree, usage); most && used)
      return *most > *used ? *most - *used : 1;
  return std::nullopt;
}

}  // namespace

uint64_t available_memory(const Tree& tree) {
  const auto kernel = of_the_kernel(tree), group = of_the_group(tree);
  if (kernel && group) return std::min(*kernel, *group);
  return kernel.value_or(group.value_or(0));
}

}  // namespace cohabit
