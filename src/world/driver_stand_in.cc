#include "world/driver_stand_in.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/descriptor.h"
#include "base/rows.h"

namespace cohabit {
namespace {

constexpr std::string_view kExports =
#include "data/driver_exports.inc"
    ;
constexpr std::string_view kDirectory = "/assumed-driver/";
constexpr uint64_t kPage = 4096;
constexpr uint32_t kBuckets = 251;

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text) { bytes_.append(text).push_back('\0'); }
  void align() { bytes_.resize((bytes_.size() + 15) / 16 * 16); }
  uint64_t size() const { return bytes_.size(); }
  template <class T>
  void replace(uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A shared object with a soname and functions, and nothing else: one read-only segment, whose
// addresses are offsets in the file.
class StandIn {
 public:
  StandIn(uint16_t machine, const std::string& soname, const std::vector<std::string_view>& exports)
      : machine_(machine), soname_(soname), exports_(exports) {}

  std::string build() {
    constexpr size_t kSegments = 3;
    file_.put(elf::Ehdr{});
    for (size_t i = 0; i < kSegments; i++) file_.put(elf::Phdr{});
    put_strings();
    put_symbols();
    put_hash();
    put_dynamic();
    put_headers();
    return file_.take();
  }

 private:
  void put_strings() {
    strings_at_ = file_.size();
    file_.put_text("");
    soname_offset_ = file_.size() - strings_at_;
    file_.put_text(soname_);
    for (const std::string_view name : exports_) {
      offsets_.push_back(static_cast<uint32_t>(file_.size() - strings_at_));
      file_.put_text(name);
    }
    strings_size_ = file_.size() - strings_at_;
    file_.align();
  }

  void put_symbols() {
    symbols_at_ = file_.size();
    file_.put(elf::Sym{});
    for (const uint32_t offset : offsets_)
      file_.put(elf::Sym{offset, elf::STB_GLOBAL << 4 | elf::STT_FUNC, 0, elf::SHN_ABS, kPage, 0});
    file_.align();
  }

  void put_hash() {
    hash_at_ = file_.size();
    const auto count = static_cast<uint32_t>(exports_.size() + 1);
    std::vector<uint32_t> buckets(kBuckets), chain(count);
    for (uint32_t symbol = 1; symbol < count; symbol++) {
      uint32_t& first = buckets[elf::sysv_hash(exports_[symbol - 1]) % kBuckets];
      chain[symbol] = first;
      first = symbol;
    }
    file_.put(kBuckets);
    file_.put(count);
    for (const uint32_t bucket : buckets) file_.put(bucket);
    for (const uint32_t next : chain) file_.put(next);
    file_.align();
  }

  void put_dynamic() {
    dynamic_at_ = file_.size();
    for (const elf::Dyn& entry :
         {elf::Dyn{elf::DT_SONAME, soname_offset_}, elf::Dyn{elf::DT_HASH, hash_at_},
          elf::Dyn{elf::DT_STRTAB, strings_at_}, elf::Dyn{elf::DT_SYMTAB, symbols_at_},
          elf::Dyn{elf::DT_STRSZ, strings_size_}, elf::Dyn{elf::DT_NULL, 0}})
      file_.put(entry);
  }

  void put_headers() {
    elf::Ehdr header{};
    std::memcpy(header.e_ident,
                "\x7f"
                "ELF\2\1\1",
                7);
    header.e_type = elf::ET_DYN;
    header.e_machine = machine_;
    header.e_version = 1;
    header.e_phoff = sizeof(elf::Ehdr);
    header.e_ehsize = sizeof(elf::Ehdr);
    header.e_phentsize = sizeof(elf::Phdr);
    header.e_phnum = 3;
    file_.replace(0, header);
    const uint64_t size = file_.size();
    const auto put_segment = [&](uint64_t index, uint32_t type, uint64_t at, uint64_t length) {
      const uint32_t rights = type == elf::PT_GNU_STACK ? elf::PF_R | elf::PF_W : elf::PF_R;
      file_.replace(sizeof(elf::Ehdr) + index * sizeof(elf::Phdr),
                    elf::Phdr{type, rights, at, at, at, length, length, kPage});
    };
    put_segment(0, elf::PT_LOAD, 0, size);
    put_segment(1, elf::PT_DYNAMIC, dynamic_at_, size - dynamic_at_);
    put_segment(2, elf::PT_GNU_STACK, 0, 0);
  }

  uint16_t machine_;
  const std::string& soname_;
  const std::vector<std::string_view>& exports_;
  Writer file_;
  std::vector<uint32_t> offsets_;  // of the names
  uint64_t strings_at_ = 0, strings_size_ = 0, soname_offset_ = 0, symbols_at_ = 0, hash_at_ = 0,
           dynamic_at_ = 0;
};

// A file without a name, so that it is mapped and known by device and inode like any other.
Result<void> add_to_images(Images& images, uint16_t machine, const std::string& path,
                           const std::string& content) {
  const Descriptor file(memfd_create(path.c_str(), MFD_CLOEXEC));
  const bool written = file.is_open() && write_all(file.get(), content);
  const int error = errno;
  if (written && images.add_file(path, file.get(), machine)) return {};
  return fail(fmt::format("cannot make a file in memory to stand in for {}: {}", path,
                          std::strerror(error)));
}

}  // namespace

Result<std::vector<AssumedLibrary>> assume_driver(Images& images, uint16_t machine) {
  std::map<std::string, std::vector<std::string_view>> exports;
  for (const TableRow& row : table_rows(kExports, 2))
    exports[std::string(row[0])].push_back(row[1]);
  std::vector<AssumedLibrary> libraries;
  for (const auto& [name, functions] : exports) {
    const std::string path = std::string(kDirectory) + name;
    const std::string content = StandIn(machine, name, functions).build();
    if (auto added = add_to_images(images, machine, path, content); !added)
      return tl::unexpected<Error>(added.error());
    libraries.push_back({name, path});
  }
  return libraries;
}

}  // namespace cohabit
