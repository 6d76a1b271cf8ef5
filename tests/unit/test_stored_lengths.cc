// Stores as GCC 14 made them without -O in the modules of h5py 3.16 (objdump -d): whole bytes,
// parts of words, and the forms of their constants.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "imports/stored_lengths.h"

using namespace cohabit;
using namespace cohabit::python;
using namespace std::string_view_literals;

namespace {

using Lengths = std::vector<uint32_t>;

Lengths read(std::string_view code, uint64_t sum) {
  return stored_lengths(Bytes(code), sum);
}

// movb $0x1,-0x110(%rbp); movb $0x30,-0x10c(%rbp); ... and one with a displacement of 8 bits.
constexpr std::string_view kBytes =
    "\x48\x89\xbd\xe8\xfe\xff\xff"
    "\xc6\x85\xf0\xfe\xff\xff\x01"
    "\xc6\x85\xf4\xfe\xff\xff\x30"
    "\xc6\x85\xf8\xfe\xff\xff\x2d"
    "\xc6\x85\xfc\xfe\xff\xff\x1d"
    "\xc6\x85\x00\xff\xff\xff\x00"
    "\xc6\x85\x04\xff\xff\xff\x1a"
    "\x48\x8d\x05\xff\x4e\x00\x00"
    "\xc6\x45\xa0\x05\xc6\x45\xa4\x06\xc6\x45\xa8\x07\xc6\x45\xac\x08"sv;

// movzwl x(%rbp),%eax; and $0xf800,%ax; or ...; mov %ax,x(%rbp), with each form of `or` and none.
constexpr std::string_view kParts =
    "\x0f\xb7\x85\x10\xff\xff\xff\x66\x25\x00\xf8\x83\xc8\x04\x66\x89\x85\x10\xff\xff\xff"
    "\x0f\xb7\x85\x14\xff\xff\xff\x66\x25\x00\xf8\x66\x0d\x1c\x04\x66\x89\x85\x14\xff\xff\xff"
    "\x0f\xb7\x85\x18\xff\xff\xff\x66\x25\x00\xf8\x0c\xe8\x66\x89\x85\x18\xff\xff\xff"
    "\x0f\xb7\x85\x1c\xff\xff\xff\x66\x25\x00\xf8\x66\x89\x85\x1c\xff\xff\xff"
    "\x0f\xb6\x85\x20\xff\xff\xff\x83\xe0\xc0\x83\xc8\x07\x88\x85\x20\xff\xff\xff"sv;

}  // namespace

TEST_CASE("stored lengths: bytes, one behind the other") {
  CHECK(read(kBytes, 0x01 + 0x30 + 0x2d + 0x1d + 0x1a) == Lengths{1, 0x30, 0x2d, 0x1d, 0, 0x1a});
  CHECK(read(kBytes, 0x30 + 0x2d) == Lengths{});  // two are too few
  CHECK(read(kBytes, 0x30 + 0x2d + 0x1d + 0x1a) == Lengths{0x30, 0x2d, 0x1d, 0, 0x1a});
  CHECK(read(kBytes, 5 + 6 + 7 + 8) == Lengths{5, 6, 7, 8});
  CHECK(read(kBytes, 0x1a + 5 + 6 + 7 + 8) == Lengths{});  // two arrays
}

TEST_CASE("stored lengths: parts of words, with every form of their constants") {
  CHECK(read(kParts, 4 + 0x41c + 0xe8 + 0 + 7) == Lengths{4, 0x41c, 0xe8, 0, 7});
}

TEST_CASE("stored lengths: code that is cut short") {
  for (const std::string_view code : {kBytes, kParts})
    for (size_t size = 0; size < code.size(); size++) read(code.substr(0, size), 1 << 20);
}
