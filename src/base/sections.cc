#include "base/sections.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/descriptor.h"

namespace cohabit {
namespace {

// The file: this, the sizes of the key and of all sections, then these, each at a multiple of
// kAlignment and filled up with zeros.
struct Header {
  char magic[16];
  uint64_t digest;  // of all that follows it
  uint64_t count;
};
constexpr char kMagic[16] = "cohabit columns";
constexpr uint64_t kDigested = offsetof(Header, count);

uint64_t padded(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

}  // namespace

uint64_t digest_of(Bytes text) {
  return XXH3_64bits(text.text().data(), text.size());
}

uint64_t SectionWriter::size() const {
  uint64_t size = 0;
  for (const Bytes& section : sections_) size += padded(section.size(), SectionReader::kAlignment);
  return size;
}

bool SectionWriter::write(int fd, std::string_view key) const {
  static constexpr char kZeros[SectionReader::kAlignment] = {};
  std::vector<Bytes> sections = {Bytes(key)};
  sections.insert(sections.end(), sections_.begin(), sections_.end());
  std::vector<uint64_t> sizes;
  for (const Bytes& section : sections) sizes.push_back(section.size());
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.count = sizes.size();

  std::string start(reinterpret_cast<const char*>(&header), sizeof header);
  start.append(reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof sizes[0]);
  start.resize(padded(start.size(), SectionReader::kAlignment));
  const auto filling = [](const Bytes& section) {
    return std::string_view(kZeros,
                            padded(section.size(), SectionReader::kAlignment) - section.size());
  };
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, start.data() + kDigested, start.size() - kDigested);
  for (const Bytes& section : sections) {
    XXH3_64bits_update(&state, section.text().data(), section.size());
    XXH3_64bits_update(&state, kZeros, filling(section).size());
  }
  header.digest = XXH3_64bits_digest(&state);
  std::memcpy(start.data(), &header, sizeof header);
  return write_all(fd, start) &&
         std::all_of(sections.begin(), sections.end(), [&](const Bytes& section) {
           return write_all(fd, section.text()) && write_all(fd, filling(section));
         });
}

std::optional<SectionReader> SectionReader::open(Bytes file, std::string_view key, bool is_known) {
  const auto header = file.read<Header>(0);
  if (!header || std::memcmp(header->magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  const auto sizes = file.table<uint64_t>(sizeof(Header), header->count);
  if (!sizes) return std::nullopt;
  SectionReader reader;
  reader.file_ = file;
  reader.sizes_ = *sizes;
  reader.at_ = padded(sizeof(Header) + sizes->size() * sizeof(uint64_t), kAlignment);
  // Before the digest, which takes longer.
  if (reader.next_text() != key || reader.failed_) return std::nullopt;
  reader.is_known_ = is_known;
  if (!is_known && digest_of(file.from(kDigested)) != header->digest) return std::nullopt;
  return reader;
}

Bytes SectionReader::next_bytes() {
  const auto section = index_ < sizes_.size() ? file_.slice(at_, sizes_[index_]) : std::nullopt;
  if (!section || failed_) {
    failed_ = true;
    return {};
  }
  at_ += padded(section->size(), kAlignment);
  index_++;
  return *section;
}

}  // namespace cohabit
