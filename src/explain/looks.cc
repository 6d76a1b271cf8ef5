#include "explain/looks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "explain/inventory.h"
#include "facts/host/memory.h"

namespace cohabit::explain {
namespace {

constexpr uint64_t kContainerShm = 64 << 20;

}  // namespace

Seen is_shm_small(const Look& look) {
  Seen seen;
  struct statvfs status{};
  if (!look.examined.tree.root().empty() || ::statvfs("/dev/shm", &status) != 0) return seen;
  const uint64_t size = status.f_blocks * status.f_frsize;
  const uint64_t free = status.f_bavail * status.f_frsize;
  seen.facts.push_back(fmt::format("/dev/shm has {} MiB, {} MiB free", size >> 20, free >> 20));
  if (size <= kContainerShm) seen.status = Status::kConfirmed;
  return seen;
}

// Where glibc gives no reason, the file system of the file that the text names does.
Seen is_mounted_noexec(const Look& look) {
  Seen seen;
  if (has_hole(look.argument) || !look.examined.tree.root().empty()) return seen;
  std::vector<std::string> paths;
  if (look.argument.starts_with('/'))
    paths.push_back(look.argument);
  else
    for (const Copy& copy : copies_of(look.argument, look.examined, look.machine))
      paths.push_back(copy.path);
  for (const std::string& path : paths) {
    struct statvfs status{};
    if (::statvfs(path.c_str(), &status) != 0) continue;
    const bool is_noexec = (status.f_flag & ST_NOEXEC) != 0;
    seen.facts.push_back(fmt::format("{} lies on a file system mounted {}", path,
                                     is_noexec ? "noexec" : "with the right to execute"));
    if (is_noexec)
      seen.status = Status::kConfirmed;
    else if (seen.status == Status::kNotCheckable)
      seen.status = Status::kContradicted;
  }
  return seen;
}

// Of this process; the one that failed may have had others.
Seen is_address_space_limited(const Look& look) {
  Seen seen;
  struct rlimit limit{};
  if (!look.examined.tree.root().empty() || ::getrlimit(RLIMIT_AS, &limit) != 0) return seen;
  if (limit.rlim_cur == RLIM_INFINITY) return seen;
  seen.status = Status::kConfirmed;
  seen.facts.push_back(
      fmt::format("the address space is limited to {} MiB here", limit.rlim_cur >> 20));
  return seen;
}

// Of the container, or the service, that we are in; what has failed may have been in another.
Seen is_memory_limited(const Look& look) {
  Seen seen;
  const auto group = group_memory(look.examined.tree);
  if (!group) return seen;
  seen.facts.push_back(fmt::format("the control group here may use {} MiB, {} MiB are in use ({})",
                                   group->limit >> 20, group->used >> 20, group->group));
  if (group->killed == 0) return seen;
  seen.status = Status::kConfirmed;
  seen.facts.push_back(
      fmt::format("the kernel has killed {} for this limit",
                  group->killed == 1 ? "one process" : fmt::format("{} processes", group->killed)));
  return seen;
}

}  // namespace cohabit::explain
