// Files are made by hand, as the format is described in device_code.h; real libraries are compared
// with cuobjdump in tests/metadata/test_device_code.py.
#include <doctest/doctest.h>

#include <cstring>

#include "facts/cuda/device_code.h"
#include "facts/cuda/driver_table.h"
#include "facts/elf/format.h"

using namespace cohabit;

namespace {

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Entry {
  uint16_t kind = 2;
  uint32_t sm = 80;
  uint64_t flags = 0;
  uint16_t major = 0, minor = 0;
  uint32_t header = 64;
  uint64_t payload = 24;
};

std::string entry(const Entry& e) {
  std::string bytes;
  put<uint16_t>(bytes, e.kind);
  put<uint16_t>(bytes, 0x0101);
  put<uint32_t>(bytes, e.header);
  put<uint64_t>(bytes, e.payload);
  put<uint64_t>(bytes, 0);
  put<uint16_t>(bytes, e.minor);
  put<uint16_t>(bytes, e.major);
  put<uint32_t>(bytes, e.sm);
  put<uint64_t>(bytes, 0);
  put<uint64_t>(bytes, e.flags);
  bytes.resize(e.header);
  return bytes + std::string(e.payload, '\x50');
}

std::string container(const std::vector<Entry>& entries) {
  std::string body;
  for (const Entry& e : entries) body += entry(e);
  std::string bytes;
  put<uint32_t>(bytes, 0xBA55ED50);
  put<uint16_t>(bytes, 1);
  put<uint16_t>(bytes, 16);
  put<uint64_t>(bytes, body.size());
  return bytes + body;
}

// Sections in a row behind the ELF header, their table at the end.
std::string file_of(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string bytes(sizeof(elf::Ehdr), '\0'), names(1, '\0'), table(sizeof(elf::Shdr), '\0');
  const auto add = [&](const std::string& name, const std::string& text, uint32_t type) {
    elf::Shdr header{};
    header.sh_name = static_cast<uint32_t>(names.size());
    header.sh_type = type;
    bytes.resize((bytes.size() + 7) / 8 * 8);
    header.sh_offset = bytes.size();
    names += name + '\0';
    const std::string& content = type == elf::SHT_PROGBITS ? text : names;
    header.sh_size = content.size();
    bytes += content;
    put(table, header);
  };
  for (const auto& [name, text] : sections) add(name, text, elf::SHT_PROGBITS);
  add(".shstrtab", "", 3);
  elf::Ehdr header{};
  std::memcpy(&header,
              "\x7f"
              "ELF\2\1\1",
              7);
  header.e_shoff = bytes.size();
  header.e_shnum = static_cast<uint16_t>(sections.size() + 2);
  header.e_shstrndx = static_cast<uint16_t>(sections.size() + 1);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + table;
}

std::vector<std::string> names(const std::string& file) {
  std::vector<std::string> result;
  for (const auto& row : cuda::read_device_code(Bytes(file)).rows)
    result.push_back(cuda::name_of(row.code) + " x" + std::to_string(row.entries));
  return result;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("device code: kinds, architectures and suffixes, over several containers") {
  const std::string one = container({{2, 80, 0x11},
                                     {2, 90, 0x100011},
                                     {2, 100, 0x200011},
                                     {1, 90, 0x11, 8, 4},
                                     {8, 80, 0x11},
                                     {2, 86, 0x11, 0, 0, 112}});
  const Strings all = {"sm_80 x2", "sm_86 x1", "sm_90a x1", "sm_100f x1", "compute_90 (PTX 8.4) x1",
                       "lto_80 x1"};
  CHECK(names(file_of({{".nv_fatbin", one + std::string(8, '\0') + container({{2, 80}})}})) == all);
}

TEST_CASE("device code: sections of any name count, those for linkers do not") {
  const std::string segment(24, '\1');
  CHECK(names(file_of({{".nvFatBinSegment", segment},
                       {".ldata", std::string(40, '\1') + container({{2, 75}})},
                       {".data", container({{2, 90}})},  // cuFFT 11.2
                       {"__nv_relfatbin", container({{2, 86}})},
                       {".text", "x"}})) == Strings{"sm_75 x1", "sm_90 x1"});
  CHECK(names(file_of({{".ldata", container({{2, 75}})}})).empty());
}

TEST_CASE("device code: a damaged file gives what fits, and says so") {
  std::string file = file_of({{".nv_fatbin", container({{2, 80}, {2, 86}})}});
  const size_t at = sizeof(elf::Ehdr) + 16;  // the first entry
  std::string wrong = file;
  const uint64_t huge = ~uint64_t{0};
  std::memcpy(wrong.data() + at + 8, &huge, 8);  // its payload
  cuda::DeviceCodes codes = cuda::read_device_code(Bytes(wrong));
  CHECK(codes.empty());
  CHECK(codes.problems.size() == 1);
  wrong = file;
  std::memcpy(wrong.data() + at - 8, &huge, 8);  // the container
  CHECK(cuda::read_device_code(Bytes(wrong)).problems.size() == 1);
  wrong = file;
  std::memset(wrong.data() + at + 4, 0, 4);  // a header of no size: must not stand still
  CHECK(cuda::read_device_code(Bytes(wrong)).problems.size() == 1);
  for (size_t size = 0; size < file.size(); size++)
    (void)cuda::read_device_code(Bytes(file.data(), size));
}

TEST_CASE("driver table: what a driver can do") {
  using cuda::CudaVersion;
  CHECK(cuda::is_driver_at_least("550.54.14", "525.60.13"));
  CHECK_FALSE(cuda::is_driver_at_least("525.60.12", "525.60.13"));
  CHECK(cuda::is_driver_at_least("525", "525.60.13"));
  CHECK_FALSE(cuda::is_driver_at_least("520", "525.60.13"));
  CHECK(cuda::cuda_of_driver("550.54.15") == CudaVersion{12, 4});
  CHECK(cuda::cuda_of_driver("300.1") == std::nullopt);
  CHECK(cuda::oldest_driver_for({12, 8}) == "525.60.13");
  CHECK(cuda::oldest_driver_for({10, 2}) == "440.33");
  CHECK(cuda::oldest_driver_for({99, 0}).empty());
  CHECK(cuda::full_driver_for({12, 8}) == "570.26");
  CHECK(cuda::cuda_of_ptx(8, 7) == CudaVersion{12, 8});
  CHECK(cuda::cuda_of_ptx(99, 0) == std::nullopt);
  CHECK(cuda::parse_cuda_version("12.4.127") == CudaVersion{12, 4});
  CHECK(cuda::parse_cuda_version("None") == std::nullopt);
}
