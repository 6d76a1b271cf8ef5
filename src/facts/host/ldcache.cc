// The loader finds a name by binary search and trusts the order of the file, so a cache that is
// sorted otherwise hides entries: a map would find more than ld.so does. Hence the search itself is
// repeated here (search_cache and _dl_cache_libcmp in glibc's elf/dl-cache.c, the same from 2.33 on
// but for the old hwcap bits; 2.31 differs only where no file written by ldconfig can show it).
//
//   old:  "ld.so-1.7.0" pad  u32 count  { i32 flags, u32 key, u32 value }*  strings
//   new:  "glibc-ld.so.cache1.1" u32 count, u32 string bytes, u8 flags, 3 pad, u32 extension, 12
//   pad
//         { i32 flags, u32 key, u32 value, u32 os version, u64 hwcap }*  strings  extension
//   both: old, whose strings begin with new
//
// String offsets count from the end of the old table, or from the start of the new header. Offsets
// in the extension count from the start of the file, in a file with both formats too, although
// ldconfig counts the strings of its hwcaps list from the new header: there ld.so cannot read the
// names, and neither do we.
#include "facts/host/ldcache.h"

#include <algorithm>

namespace cohabit {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr uint64_t kOldHeader = 16;
constexpr uint64_t kNewHeader = 48;
constexpr uint32_t kExtensionMagic = 0xeaa42174;
constexpr uint32_t kHwcapsTag = 1;
constexpr uint64_t kMaxString = 4096;  // PATH_MAX: no longer string can name a file

constexpr uint16_t kX86_64 = 62;
constexpr uint16_t kAArch64 = 183;

struct OldEntry {
  int32_t flags;
  uint32_t key, value;
};
struct NewEntry {
  int32_t flags;
  uint32_t key, value, os_version;
  uint64_t hwcap;
};
struct ExtensionSection {
  uint32_t tag, flags, offset, size;
};

// Up to a NUL or the end of the file (ld.so reads zeros there).
std::optional<std::string_view> string_at(Bytes area, uint64_t offset) {
  if (offset >= area.size()) return std::nullopt;
  const std::string_view text = area.from(offset).text().substr(0, kMaxString);
  const size_t end = text.find('\0');
  if (end != std::string_view::npos) return text.substr(0, end);
  if (text.size() == kMaxString) return std::nullopt;
  return text;
}

bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

// The order of names in the file: runs of digits count as numbers. `char` is signed on x86-64 and
// unsigned on AArch64, and the difference shows in names that are not ASCII.
int compare_names(std::string_view a, std::string_view b, bool signed_char) {
  size_t i = 0;
  size_t j = 0;
  const auto at = [&](std::string_view text, size_t k) -> int {
    if (k >= text.size()) return 0;
    return signed_char ? static_cast<signed char>(text[k]) : static_cast<unsigned char>(text[k]);
  };
  const auto number = [&](std::string_view text, size_t& k) {
    uint32_t value = 0;  // wraps, as the loader's int does in practice
    while (is_digit(at(text, k))) value = value * 10 + static_cast<uint32_t>(at(text, k++) - '0');
    return value;
  };
  while (at(a, i) != 0) {
    const bool digits_a = is_digit(at(a, i));
    const bool digits_b = is_digit(at(b, j));
    if (digits_a && digits_b) {
      const uint32_t value_a = number(a, i);
      const uint32_t value_b = number(b, j);
      if (value_a != value_b) return static_cast<int32_t>(value_a - value_b);
    } else if (digits_a || digits_b) {
      return digits_a ? 1 : -1;
    } else if (at(a, i) != at(b, j)) {
      return at(a, i) - at(b, j);
    } else {
      i++, j++;
    }
  }
  return at(a, i) - at(b, j);
}

// _dl_cache_check_flags and _DL_CACHE_DEFAULT_ID of the machine.
bool flags_fit(int32_t flags, uint16_t elf_machine) {
  if (elf_machine == kX86_64) return flags == 0x0303;
  if (elf_machine == kAArch64) return flags == 0x0a03;
  return flags == 1 || flags == 3;
}

// 1 << ISA level of the entry must be among the levels of the CPU (get-isa-level.h: bit 0 is the
// baseline, bit 1 x86-64-v2, ...).
bool isa_level_fits(uint64_t hwcap, uint32_t isa_bits) {
  const uint32_t level = static_cast<uint32_t>(hwcap >> 32) & 0x3ff;
  return (isa_bits >> (level & 31) & 1) != 0;
}

}  // namespace

uint32_t isa_bits_of(uint16_t elf_machine, const std::vector<std::string>& active_hwcaps) {
  if (elf_machine != kX86_64) return ~uint32_t{0};
  uint32_t bits = 1;
  for (uint32_t level = 2; level <= 4; level++) {
    const std::string name = "x86-64-v" + std::to_string(level);
    if (std::find(active_hwcaps.begin(), active_hwcaps.end(), name) != active_hwcaps.end())
      bits |= uint32_t{1} << (level - 1);
  }
  return bits;
}

struct LdCache::Query {
  std::string_view name;
  uint16_t elf_machine;
  bool signed_char;
  const std::vector<std::string>& active_hwcaps;
  const LegacyHwcap& legacy;
};

LdCache LdCache::parse(Bytes file) {
  LdCache cache;
  auto copy = std::make_shared<const std::string>(file.text());
  cache.text_ = copy;
  file = Bytes(std::string_view(*copy));
  const std::string_view text = file.text();
  if (text.starts_with(kNewMagic) && file.size() > kNewHeader) {
    const uint64_t count = *file.read<uint32_t>(20);
    if (count > (file.size() - kNewHeader) / sizeof(NewEntry)) {
      cache.problems_.push_back("ld.so.cache: its count of " + std::to_string(count) +
                                " entries does not fit in " + std::to_string(file.size()) +
                                " bytes; ld.so ignores such a file");
      return cache;
    }
    cache.parse_new(file, 0);
  } else if (text.starts_with(kOldMagic) && file.size() > kOldHeader) {
    const uint64_t count = *file.read<uint32_t>(12);
    if (count > (file.size() - kOldHeader) / sizeof(OldEntry)) {
      cache.problems_.push_back("ld.so.cache: its count of " + std::to_string(count) +
                                " old entries does not fit; ld.so ignores such a file");
      return cache;
    }
    const uint64_t old_size = kOldHeader + count * sizeof(OldEntry);
    const uint64_t base = (old_size + 7) & ~uint64_t{7};
    if (file.contains(base, kNewHeader) && file.from(base).text().starts_with(kNewMagic)) {
      cache.parse_new(file, base);
    } else {
      cache.parse_old(file, count);
    }
  } else {
    cache.problems_.push_back("ld.so.cache: neither magic \"" + std::string(kNewMagic) +
                              "\" nor \"" + std::string(kOldMagic) + "\" found in its " +
                              std::to_string(file.size()) + " bytes; ld.so ignores such a file");
  }
  return cache;
}

void LdCache::parse_old(Bytes file, uint64_t count) {
  const Bytes strings = file.from(kOldHeader + count * sizeof(OldEntry));
  const auto table = file.table<OldEntry>(kOldHeader, count);
  for (uint64_t i = 0; table && i < count; i++) {
    const OldEntry raw = (*table)[i];
    Entry entry;
    entry.flags = raw.flags;
    set_strings(entry, strings, raw.key, raw.value);
    entries_.push_back(entry);
  }
}

void LdCache::parse_new(Bytes file, uint64_t base) {
  const Bytes area = file.from(base);
  const uint8_t flags = *area.read<uint8_t>(28);
  if (flags != 0 && (flags & 3) != 2) {
    problems_.push_back("ld.so.cache: written for a big-endian machine; ld.so ignores such a file");
    return;
  }
  uint64_t count = *area.read<uint32_t>(20);
  if (count > (area.size() - kNewHeader) / sizeof(NewEntry)) {  // only behind an old table
    problems_.push_back("ld.so.cache: its count of " + std::to_string(count) +
                        " entries does not fit; ld.so would read past the end of the file");
    count = (area.size() - kNewHeader) / sizeof(NewEntry);
  }
  parse_extension(file, *area.read<uint32_t>(32));
  const auto table = area.table<NewEntry>(kNewHeader, count);
  for (uint64_t i = 0; table && i < count; i++) {
    const NewEntry raw = (*table)[i];
    Entry entry;
    entry.flags = raw.flags;
    entry.hwcap = raw.hwcap;
    set_strings(entry, area, raw.key, raw.value);
    const uint64_t index = raw.hwcap & 0xffffffff;
    if (entry.is_named() && index < hwcaps_names_.size()) entry.hwcaps_name = hwcaps_names_[index];
    entries_.push_back(entry);
  }
}

void LdCache::set_strings(Entry& entry, Bytes strings, uint32_t key, uint32_t value) {
  const auto name = string_at(strings, key);
  const auto path = string_at(strings, value);
  entry.name_readable = name.has_value();
  entry.path_readable = path.has_value();
  entry.name = name.value_or("");
  entry.path = path.value_or("");
  constexpr size_t kEnough = 8;
  if ((!name || !path) && problems_.size() < kEnough)
    problems_.push_back("ld.so.cache: entry " + std::to_string(entries_.size()) +
                        " has a string outside of the file");
}

// cache_extension_load: any section that does not fit makes the whole extension void.
void LdCache::parse_extension(Bytes file, uint32_t offset) {
  if (offset == 0) return;
  const auto magic = file.read<uint32_t>(offset);
  const auto count = file.read<uint32_t>(uint64_t{offset} + 4);
  const auto sections = file.table<ExtensionSection>(uint64_t{offset} + 8, count.value_or(0));
  if (offset % 4 != 0 || magic != kExtensionMagic || !count || !sections) {
    problems_.push_back("ld.so.cache: its extension (glibc-hwcaps names) cannot be read");
    return;
  }
  ExtensionSection hwcaps{};
  for (uint64_t i = 0; i < sections->size(); i++) {
    const ExtensionSection section = (*sections)[i];
    if (!file.contains(section.offset, section.size)) {
      problems_.push_back("ld.so.cache: a section of its extension is outside of the file");
      return;
    }
    if (section.tag == kHwcapsTag) hwcaps = section;
  }
  if (hwcaps.size % 4 != 0 || hwcaps.offset % 4 != 0) return;
  const auto names = file.table<uint32_t>(hwcaps.offset, hwcaps.size / 4);
  for (uint64_t i = 0; names && i < names->size(); i++)
    hwcaps_names_.push_back(string_at(file, (*names)[i]).value_or(""));
}

// For each name of the file's list 0 (not for this CPU) or 1 + its place in `active`. Both lists
// are merged in sorted order, as glibc_hwcaps_priorities_init does: an unsorted list loses names.
std::vector<uint32_t> LdCache::hwcaps_priorities(const std::vector<std::string>& active) const {
  std::vector<std::pair<std::string_view, uint32_t>> wanted;
  wanted.reserve(active.size());
  for (const std::string& name : active)
    wanted.emplace_back(name, static_cast<uint32_t>(wanted.size() + 1));
  std::sort(wanted.begin(), wanted.end());
  std::vector<uint32_t> result(hwcaps_names_.size(), 0);
  size_t left = 0;
  size_t right = 0;
  while (left < hwcaps_names_.size() && right < wanted.size()) {
    const int order = hwcaps_names_[left].compare(wanted[right].first);
    if (order == 0) {
      result[left++] = wanted[right++].second;
    } else {
      order < 0 ? left++ : right++;
    }
  }
  return result;
}

bool LdCache::name_is(int64_t index, const Query& query) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return entry.name_readable && compare_names(query.name, entry.name, query.signed_char) == 0;
}

// `middle` is an entry of that name. The run around it is read from its start to at most `right`.
std::optional<std::string> LdCache::best_of_run(int64_t middle, int64_t right,
                                                const Query& query) const {
  const int64_t known = middle;
  while (middle > 0 && name_is(middle - 1, query)) middle--;
  const uint32_t isa_bits = isa_bits_of(query.elf_machine, query.active_hwcaps);
  std::vector<uint32_t> priorities;
  const Entry* best = nullptr;
  uint32_t best_priority = 0;
  for (; middle <= right; middle++) {
    if (middle > known && !name_is(middle, query)) break;
    const Entry& entry = entries_[static_cast<size_t>(middle)];
    if (!flags_fit(entry.flags, query.elf_machine) || !entry.path_readable) continue;
    if (entry.is_named()) {
      if (!isa_level_fits(entry.hwcap, isa_bits)) continue;
      if (priorities.empty()) priorities = hwcaps_priorities(query.active_hwcaps);
      const uint64_t index = entry.hwcap & 0xffffffff;
      const uint32_t priority = index < priorities.size() ? priorities[index] : 0;
      if (priority == 0 || (best && priority >= best_priority)) continue;
      best_priority = priority;
      best = &entry;
      continue;
    }
    if (best) break;  // named entries come first
    if (entry.hwcap & ~(query.legacy.accepted | query.legacy.platform_mask)) continue;
    const uint64_t platform = entry.hwcap & query.legacy.platform_mask;
    if (platform != 0 && platform != query.legacy.platform) continue;
    best = &entry;
    break;
  }
  if (!best) return std::nullopt;
  return std::string(best->path);
}

std::optional<std::string> LdCache::lookup(std::string_view name, uint16_t elf_machine,
                                           const std::vector<std::string>& active_hwcaps,
                                           const LegacyHwcap& legacy) const {
  const Query query{name, elf_machine, elf_machine != kAArch64, active_hwcaps, legacy};
  int64_t left = 0;
  int64_t right = static_cast<int64_t>(entries_.size()) - 1;
  while (left <= right) {
    const int64_t middle = (left + right) / 2;
    const Entry& entry = entries_[static_cast<size_t>(middle)];
    if (!entry.name_readable) return std::nullopt;
    const int order = compare_names(name, entry.name, query.signed_char);
    if (order == 0) return best_of_run(middle, right, query);
    if (order < 0) {  // the file is sorted in descending order
      left = middle + 1;
    } else {
      right = middle - 1;
    }
  }
  return std::nullopt;
}

}  // namespace cohabit
