// Where a path leads below a root is judged by the kernel itself where it can be: openat2 with
// RESOLVE_IN_ROOT walks as after chroot. Where it is missing, the fixed expectations remain.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <random>

#include "base/tree.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

// The file's status, or the errno, as the kernel resolves `path` below `root`. EAGAIN says that
// something was renamed or mounted somewhere on the machine while it walked over a "..", and that
// the call is to be made again (openat2(2)).
tl::expected<FileStatus, int> kernel_stat(const std::string& root, const std::string& path) {
  const int root_fd = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  int fd = -1;
  do fd = static_cast<int>(::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how));
  while (fd < 0 && errno == EAGAIN);
  const int error = errno;
  ::close(root_fd);
  if (fd < 0) return tl::unexpected(error);
  struct stat status{};
  ::fstat(fd, &status);
  ::close(fd);
  return FileStatus{
      {status.st_dev, status.st_ino}, static_cast<uint64_t>(status.st_size), status.st_mode};
}

bool kernel_can(const std::string& root) {
  return kernel_stat(root, "/").has_value();
}

void fill(const TempTree& temp) {
  temp.file("root/usr/lib/libz.so.1.3", "zlib");
  temp.link("root/usr/lib/libz.so.1", "libz.so.1.3");
  temp.link("root/lib", "usr/lib");
  temp.link("root/absolute", "/usr/lib/libz.so.1");
  temp.link("root/up", "../../../../../../../outside");
  temp.link("root/usr/up", "../../outside");
  temp.link("root/escape", "/../../outside");
  temp.link("root/loop", "loop");
  temp.link("root/ping", "pong");
  temp.link("root/pong", "ping");
  temp.link("root/dangling", "/nowhere");
  temp.link("root/slash", "/usr/lib/");
  temp.file("outside", "not for you");
  temp.file("root/outside", "inside");
}

}  // namespace

TEST_CASE("tree: a path below a root leads where the kernel's chroot would lead") {
  const TempTree temp;
  fill(temp);
  const Tree tree(temp / "root");
  const std::string kPaths[] = {"/usr/lib/libz.so.1.3",
                                "/lib/libz.so.1",
                                "/absolute",
                                "/up",
                                "/usr/up",
                                "/escape",
                                "/../../../outside",
                                "/loop",
                                "/ping",
                                "/dangling",
                                "/lib/libz.so.1/",
                                "/lib/libz.so.1/.",
                                "/lib/libz.so.1/..",
                                "/slash/libz.so.1",
                                "/slash",
                                "//lib//./libz.so.1",
                                "/usr/nothing/../lib",
                                "/",
                                "",
                                "/lib/",
                                "/lib/..",
                                "/lib/../lib/libz.so.1",
                                "usr/lib"};
  for (const std::string& path : kPaths) {
    CAPTURE(path);
    const auto ours = tree.stat(path);
    if (ours && ours->is_regular()) CHECK(ours->size != 11);  // "not for you"
    if (!kernel_can(temp / "root")) continue;
    const auto kernel = kernel_stat(temp / "root", path);
    REQUIRE(ours.has_value() == kernel.has_value());
    if (ours) CHECK(ours->id == kernel->id);
    if (!ours) CHECK(ours.error() == kernel.error());
  }
  CHECK(tree.stat("/loop").error() == ELOOP);
  CHECK(tree.stat("/usr/nothing/../lib").error() == ENOENT);
  CHECK(tree.stat("/lib/libz.so.1/x").error() == ENOTDIR);
  CHECK(tree.real_path("/lib/libz.so.1") == "/usr/lib/libz.so.1.3");
  CHECK(tree.real_path("/escape") == "/outside");
  CHECK(tree.real_path("/") == "/");
  CHECK_FALSE(tree.real_path("/dangling"));
  CHECK(tree.read_link("/absolute") == "/usr/lib/libz.so.1");
  CHECK_FALSE(tree.read_link("/usr"));
  CHECK(tree.host_path("/lib/new.so") == temp / "root/usr/lib/new.so");
  CHECK(tree.host_path("/lib/libz.so.1", false) == temp / "root/usr/lib/libz.so.1");
  CHECK_FALSE(tree.host_path("/nothing/new.so"));
  CHECK(tree.list("/lib") == std::vector<std::string>{"libz.so.1", "libz.so.1.3"});
  CHECK(tree.list("/nothing").empty());
  CHECK(tree.read_text("/absolute") == "zlib");
  CHECK_FALSE(tree.read_text("/absolute", 3));
}

TEST_CASE("tree: random mazes of symlinks lead where the kernel leads") {
  std::mt19937 random(7);
  const auto pick = [&](auto&& list) { return list[random() % std::size(list)]; };
  const char* kParts[] = {"a", "b", "c", "..", ".", "/", "", "a/b", "c/.."};
  int checked = 0;
  int found = 0;
  for (int world = 0; world < 30; world++) {
    const TempTree temp;
    temp.directory("r/a/b");
    if (!kernel_can(temp / "r")) return;
    const auto path = [&](size_t most) {
      std::string text;
      for (size_t n = 1 + random() % most; n > 0; n--) text += std::string(pick(kParts)) + "/";
      if (random() % 3) text.pop_back();
      return text;
    };
    for (const char* place : {"r/c", "r/a/c", "r/a/b/c", "r/a/b/a", "r/b"}) {
      const std::string target = path(4);
      if (!target.empty() && random() % 5)
        temp.link(place, target);
      else
        temp.file(place);
    }
    const Tree tree(temp / "r");
    for (int i = 0; i < 100; i++) {
      const std::string asked = path(6);
      const auto ours = tree.stat(asked);
      const auto kernel = kernel_stat(temp / "r", asked);
      CAPTURE(world);
      CAPTURE(asked);
      REQUIRE(ours.has_value() == kernel.has_value());
      if (ours) REQUIRE(ours->id == kernel->id);
      if (!ours) REQUIRE(ours.error() == kernel.error());
      checked++;
      found += ours.has_value();
    }
  }
  CHECK(checked == 3000);
  CHECK(found > 300);
}

TEST_CASE("tree: names may hold newlines and any byte, but no NUL") {
  const TempTree temp;
  const std::string odd = "new\nline \xff\xfe\x80.so";
  temp.file("root/" + odd, "odd");
  for (const Tree& tree : {Tree(temp / "root"), Tree()}) {
    const std::string path = tree.root().empty() ? temp / ("root/" + odd) : "/" + odd;
    CHECK(tree.stat(path)->size == 3);
    CHECK(tree.map(path)->bytes().text() == "odd");
    CHECK(tree.real_path(path) == path);
    const std::string with_nul = path + std::string("\0x", 2);
    CHECK(tree.stat(with_nul).error() == ENOENT);
    CHECK_FALSE(tree.open(with_nul));
    CHECK_FALSE(tree.host_path(with_nul));
  }
  CHECK(Tree(temp / "root").list("/") == std::vector<std::string>{odd});
}

TEST_CASE("tree: only regular files are opened, and nothing waits") {
  const TempTree temp;
  temp.directory("root/directory");
  temp.file("root/empty", "");
  REQUIRE(::mkfifo((temp / "root/fifo").c_str(), 0600) == 0);
  const auto begin = std::chrono::steady_clock::now();
  for (const Tree& tree : {Tree(temp / "root"), Tree()}) {
    const std::string base = tree.root().empty() ? temp / "root" : "";
    CHECK(tree.open(base + "/directory").error() == EISDIR);
    CHECK(tree.open(base + "/fifo").error() == ENXIO);
    CHECK(tree.open(base + "/missing").error() == ENOENT);
    CHECK_FALSE(tree.map(base + "/fifo"));
    CHECK(tree.map(base + "/empty")->bytes().empty());
    const auto fd = tree.open(base + "/empty");
    REQUIRE(fd);
    CHECK((::fcntl(*fd, F_GETFD) & FD_CLOEXEC) != 0);
    ::close(*fd);
  }
  CHECK(Tree().open("/dev/null").error() == ENXIO);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("tree: permission errors keep their errno") {
  if (::geteuid() == 0) return;  // root may read everything
  const TempTree temp;
  temp.file("root/closed/file");
  temp.file("root/unreadable");
  ::chmod((temp / "root/closed").c_str(), 0);
  ::chmod((temp / "root/unreadable").c_str(), 0);
  for (const Tree& tree : {Tree(temp / "root"), Tree()}) {
    const std::string base = tree.root().empty() ? temp / "root" : "";
    CHECK(tree.stat(base + "/closed/file").error() == EACCES);
    CHECK(tree.stat(base + "/closed/../unreadable").error() == EACCES);
    CHECK(tree.open(base + "/unreadable").error() == EACCES);
    CHECK(tree.stat(base + "/unreadable"));
  }
  ::chmod((temp / "root/closed").c_str(), 0700);
}

TEST_CASE("tree: the root \"/\" is this machine, and a missing root has no files") {
  CHECK(Tree("/").root().empty());
  CHECK(Tree("/").stat("/proc/self").has_value());
  CHECK(Tree("/nowhere/at/all").stat("/").error() == ENOENT);
}
