// The files are as cgroups(7), the kernel's cgroup-v2 and its memory controller's document (version
// 1) describe them.
#include <doctest/doctest.h>

#include "facts/host/memory.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

void write_group(const TempTree& files, const std::string& directory, const std::string& limit,
                 const std::string& used, const std::string& events) {
  const bool is_first = directory.starts_with("/sys/fs/cgroup/memory");
  const std::string base = directory + "/memory.";
  files.file(base + (is_first ? "limit_in_bytes" : "max"), limit + "\n");
  files.file(base + (is_first ? "usage_in_bytes" : "current"), used + "\n");
  files.file(base + (is_first ? "oom_control" : "events"), events);
}

}  // namespace

TEST_CASE("memory: the tightest limit of the groups around us, and what was killed for it") {
  TempTree files;
  files.file("/proc/self/cgroup", "0::/a.slice/b.service\n");
  files.file("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:  3000 kB\n");
  write_group(files, "/sys/fs/cgroup/a.slice/b.service", "max", "70", "oom_kill 9\n");
  write_group(files, "/sys/fs/cgroup/a.slice", "4096", "1024",
              "low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 5\n");
  write_group(files, "/sys/fs/cgroup", "8192", "100", "oom_kill 1\n");
  const Tree tree(files.path());
  const auto found = group_memory(tree);
  REQUIRE(found);
  CHECK(found->group == "/sys/fs/cgroup/a.slice");
  CHECK(found->limit == 4096);
  CHECK(found->used == 1024);
  CHECK(found->killed == 2);
  CHECK(available_memory(tree) == 3072);
}

TEST_CASE(
    "memory: version 1, whose largest number is no limit; a container sees its own as the root") {
  TempTree files;
  files.file("/proc/self/cgroup", "9:name=systemd:/x\n4:memory:/docker/77\n0::/\n");
  write_group(files, "/sys/fs/cgroup/memory", "9223372036854771712", "5", "oom_kill_disable 0\n");
  const Tree tree(files.path());
  CHECK_FALSE(group_memory(tree));
  write_group(files, "/sys/fs/cgroup/memory", "1000", "5",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  const auto found = group_memory(tree);
  REQUIRE(found);
  CHECK(found->limit == 1000);
  CHECK(found->killed == 1);
}

TEST_CASE("memory: nothing there, and odd names of groups") {
  TempTree files;
  CHECK_FALSE(group_memory(Tree(files.path())));
  CHECK(available_memory(Tree(files.path())) == 0);
  for (const char* text : {"0::", "0::x", "0::/../..", "::", "0::////", "junk\n0::/a/b"}) {
    files.file("/proc/self/cgroup", text);
    write_group(files, "/sys/fs/cgroup", "10", "20", "");
    const Tree tree(files.path());
    REQUIRE(group_memory(tree));
    CHECK(group_memory(tree)->group == "/sys/fs/cgroup");
    CHECK(available_memory(tree) == 1);
  }
}
