// A file that is cut short while it is mapped must not end the process.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/mapped_file.h"
#include "base/tree.h"

using namespace cohabit;

namespace {

constexpr uint64_t kSize = 5 * 4096;

struct Scratch {
  std::string path = "/tmp/cohabit-mapped-XXXXXX";
  int fd = mkstemp(path.data());
  ~Scratch() {
    close(fd);
    unlink(path.c_str());
  }
};

}  // namespace

TEST_CASE("a file that shrinks while mapped reads as zeros and is marked") {
  Scratch scratch;
  REQUIRE(scratch.fd >= 0);
  const std::string content(kSize, 'x');
  REQUIRE(write(scratch.fd, content.data(), content.size()) == static_cast<ssize_t>(kSize));
  const Tree tree;
  const auto map = tree.map(scratch.path);
  REQUIRE(map);
  REQUIRE(map->bytes().size() == kSize);
  CHECK(*map->bytes().read<uint8_t>(kSize - 1) == 'x');
  CHECK_FALSE(map->damaged());
  REQUIRE(ftruncate(scratch.fd, 4096) == 0);
  CHECK(*map->bytes().read<uint8_t>(kSize - 1) == 0);
  CHECK(*map->bytes().read<uint8_t>(2 * 4096) == 0);
  CHECK(*map->bytes().read<uint8_t>(0) == 'x');
  CHECK(map->damaged());
}

TEST_CASE("bytes cannot be read past their end") {
  const std::string text("abc\0def", 7);
  const Bytes bytes(text);
  CHECK(bytes.c_string(0) == "abc");
  CHECK_FALSE(bytes.c_string(4));  // no NUL follows
  CHECK_FALSE(bytes.c_string(7));
  CHECK_FALSE(bytes.slice(1, ~uint64_t{0}));
  CHECK_FALSE(bytes.slice(8, 0));
  CHECK_FALSE(bytes.read<uint64_t>(0));
  CHECK_FALSE(bytes.table<uint32_t>(0, uint64_t{1} << 62));
  CHECK(bytes.from(100).empty());
  CHECK(bytes.table<uint16_t>(1, 3)->size() == 3);
}
