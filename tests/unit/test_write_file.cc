// What a command writes is there whole, or what stood there before still is.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/write_file.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t entries(const TempTree& tree) {
  const std::filesystem::directory_iterator all(tree.path());
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// Writing more than `bytes` to a file fails with EFBIG, as a full disk fails with ENOSPC.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace

TEST_CASE("a file is written, and written over with its mode kept") {
  const TempTree tree;
  REQUIRE(write_file(tree / "a", "one"));
  CHECK(text_of(tree / "a") == "one");
  REQUIRE(chmod((tree / "a").c_str(), 0640) == 0);
  REQUIRE(write_file(tree / "a", "two"));
  CHECK(text_of(tree / "a") == "two");
  struct stat status{};
  REQUIRE(stat((tree / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
  CHECK(entries(tree) == 1);
}

TEST_CASE("through a link, the file is replaced and the link stays") {
  const TempTree tree;
  tree.file("real/a", "old");
  tree.link("link", "real/a");
  REQUIRE(write_file(tree / "link", "new"));
  CHECK(std::filesystem::is_symlink(tree / "link"));
  CHECK(text_of(tree / "real/a") == "new");
}

TEST_CASE("a name that stands for a file with other names is written in place") {
  const TempTree tree;
  tree.file("a", "old");
  std::filesystem::create_hard_link(tree / "a", tree / "b");
  REQUIRE(write_file(tree / "a", "new"));
  CHECK(text_of(tree / "b") == "new");
}

TEST_CASE("a disk that is full leaves what stood there") {
  const TempTree tree;
  tree.file("a", "old");
  const std::string much(100000, 'x');
  {
    const SmallDisk disk(4096);
    const auto done = write_file(tree / "a", much);
    REQUIRE(!done);
    CHECK(done.error().message.find("cannot write " + (tree / "a")) == 0);
    CHECK(!write_file(tree / "b", much));
  }
  CHECK(text_of(tree / "a") == "old");
  CHECK(entries(tree) == 1);
}

TEST_CASE("devices are written to, not replaced; a missing directory is an error") {
  CHECK(write_file("/dev/null", "x"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  const auto full = write_file("/dev/full", "x");
  REQUIRE(!full);
  CHECK(full.error().message == "cannot write /dev/full: No space left on device");
  CHECK(!write_file("/no/such/directory/a", "x"));
}
