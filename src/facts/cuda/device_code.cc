#include "facts/cuda/device_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/elf/sections.h"

namespace cohabit::cuda {
namespace {

// "50 ED 55 BA", version 1, header size 16
constexpr uint64_t kContainerStart = 0x00100001BA55ED50;
constexpr uint64_t kContainerHeader = 16;
constexpr uint64_t kMinEntryHeader = 64;
constexpr uint64_t kMaxEntryHeader = 4096;
constexpr uint64_t kAlignment = 8;
constexpr uint64_t kMaxEntries = 8 << 20;
constexpr size_t kMaxKinds = 512;
constexpr size_t kMaxProblems = 16;

constexpr uint16_t kKindPtx = 1;
constexpr uint16_t kKindCubin = 2;
constexpr uint16_t kKindOldCubin = 4;
constexpr uint16_t kKindIntermediate = 8;
constexpr uint64_t kFlagOneArchitecture = 0x100000;
constexpr uint64_t kFlagFamily = 0x200000;

uint64_t align_up(uint64_t offset) {
  return (offset + kAlignment - 1) & ~(kAlignment - 1);
}

class Reader {
 public:
  explicit Reader(Bytes file) : file_(file) {}

  void scan(uint64_t begin, uint64_t end) {
    uint64_t at = align_up(begin);
    while (at + kContainerHeader <= end && entries_ < kMaxEntries) {
      if (file_.read<uint64_t>(at) == kContainerStart)
        at = align_up(walk(at, end));
      else
        at += kAlignment;
    }
  }

  DeviceCodes take() {
    for (const auto& [code, row] : rows_) result_.rows.push_back(row);
    if (entries_ >= kMaxEntries)
      add_problem("more entries than any library has: the rest is left out");
    return std::move(result_);
  }

 private:
  void add_problem(std::string text) {
    if (result_.problems.size() < kMaxProblems) result_.problems.push_back(std::move(text));
  }

  // Returns where to go on.
  uint64_t walk(uint64_t start, uint64_t section_end) {
    const uint64_t size = file_.read<uint64_t>(start + 8).value_or(0);
    uint64_t at = start + kContainerHeader;
    if (size > section_end - at) {
      add_problem(fmt::format("the container at {:#x} ends after its section", start));
      return at;
    }
    const uint64_t end = at + size;
    result_.containers++;
    while (at + kMinEntryHeader <= end && entries_ < kMaxEntries) {
      const uint64_t header = file_.read<uint32_t>(at + 4).value_or(0);
      const uint64_t payload = file_.read<uint64_t>(at + 8).value_or(0);
      if (header < kMinEntryHeader || header > kMaxEntryHeader || header > end - at ||
          payload > end - at - header) {
        add_problem(fmt::format("the entry at {:#x} does not fit into its container", at));
        break;
      }
      add_entry(at, payload);
      at += header + payload;
    }
    return end;
  }

  void add_entry(uint64_t at, uint64_t payload) {
    entries_++;
    DeviceCode code;
    switch (file_.read<uint16_t>(at).value_or(0)) {
      case kKindPtx:
        code.kind = CodeKind::kPtx;
        code.ptx_minor = file_.read<uint16_t>(at + 0x18).value_or(0);
        code.ptx_major = file_.read<uint16_t>(at + 0x1a).value_or(0);
        break;
      case kKindCubin:
      case kKindOldCubin:
        break;
      case kKindIntermediate:
        code.kind = CodeKind::kIntermediate;
        break;
      default:
        return;  // a kind that we do not know is no code that we could promise
    }
    const uint32_t sm = file_.read<uint32_t>(at + 0x1c).value_or(0);
    if (sm < 10 || sm > 999) return;
    code.sm = static_cast<int>(sm);
    const uint64_t flags = file_.read<uint64_t>(at + 0x28).value_or(0);
    if (flags & kFlagOneArchitecture)
      code.suffix = 'a';
    else if (flags & kFlagFamily)
      code.suffix = 'f';
    if (rows_.size() >= kMaxKinds && rows_.find(code) == rows_.end()) return;
    DeviceCodes::Row& row = rows_[code];
    row.code = code;
    row.entries++;
    row.bytes += payload;
  }

  Bytes file_;
  DeviceCodes result_;
  std::map<DeviceCode, DeviceCodes::Row> rows_;
  uint64_t entries_ = 0;
};

// Containers are in other sections too than in their own (cuFFT's in .data, .ldata), but not in
// those of the host's compiler, nor is device code of use that only a linker can take.
bool is_searched(const elf::Section& section) {
  if (section.flags & elf::SHF_EXECINSTR) return false;
  for (const std::string_view name :
       {".rodata", ".lrodata", ".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".data.rel.ro",
        ".got", ".got.plt", ".tdata", ".comment", ".interp", ".nvFatBinSegment", "__nv_relfatbin"})
    if (section.name == name) return false;
  return !section.name.starts_with(".debug") && !section.name.starts_with(".note");
}

}  // namespace

DeviceCodes read_device_code(Bytes file) {
  const std::vector<elf::Section> sections = elf::read_sections(file);
  const bool has_code =
      std::any_of(sections.begin(), sections.end(), [](const elf::Section& section) {
        return section.name == ".nv_fatbin" || section.name == ".nvFatBinSegment";
      });
  if (!has_code) return {};
  Reader reader(file);
  for (const elf::Section& section : sections)
    if (is_searched(section)) reader.scan(section.offset, section.offset + section.size);
  return reader.take();
}

uint64_t DeviceCodes::bytes() const {
  uint64_t sum = 0;
  for (const Row& row : rows) sum += row.bytes;
  return sum;
}

bool goes_with(const DeviceCode& code, int sm) {
  if (code.suffix == 'a') return code.sm == sm;
  const bool same_major = code.sm / 10 == sm / 10;
  if (code.suffix == 'f') return same_major && code.sm <= sm;
  if (code.kind == CodeKind::kPtx) return code.sm <= sm;
  return same_major && code.sm <= sm;
}

std::string name_of(const DeviceCode& code) {
  const bool ptx = code.kind == CodeKind::kPtx;
  std::string text = fmt::format("{}_{}",
                                 ptx                                    ? "compute"
                                 : code.kind == CodeKind::kIntermediate ? "lto"
                                                                        : "sm",
                                 code.sm);
  if (code.suffix) text += code.suffix;
  if (ptx) text += fmt::format(" (PTX {}.{})", code.ptx_major, code.ptx_minor);
  return text;
}

}  // namespace cohabit::cuda
