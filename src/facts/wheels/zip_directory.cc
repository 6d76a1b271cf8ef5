#include "facts/wheels/zip_directory.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"

namespace cohabit::wheels {
namespace {

constexpr uint64_t kFirstRead = 1 << 10;  // holds the entries of the metadata of most wheels
constexpr uint64_t kMaxComment = 0xffff;
constexpr uint64_t kMaxDirectory = 256 << 20;
constexpr uint64_t kMaxMembers = 1'000'000;
constexpr uint64_t kMaxName = 4096;  // PATH_MAX

constexpr uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kLocalSize = 30;
constexpr uint32_t kEndMark = 0x06054b50, kLocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50,
                   kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr uint16_t kMax16 = 0xffff;
constexpr uint32_t kMax32 = 0xffffffff;
constexpr uint16_t kExtra64 = 1;  // the header ID of the extra field with 64-bit numbers
constexpr uint16_t kStored = 0, kDeflated = 8;

uint16_t u16(Bytes bytes, uint64_t at) {
  return bytes.read<uint16_t>(at).value_or(0);
}
uint32_t u32(Bytes bytes, uint64_t at) {
  return bytes.read<uint32_t>(at).value_or(0);
}
uint64_t u64(Bytes bytes, uint64_t at) {
  return bytes.read<uint64_t>(at).value_or(0);
}

// The last place in `tail` that can be the end record: its comment reaches the end of the file.
std::optional<uint64_t> find_end(Bytes tail) {
  if (tail.size() < kEndSize) return std::nullopt;
  for (uint64_t at = tail.size() - kEndSize + 1; at-- > 0;) {
    if (u32(tail, at) != kEndMark) continue;
    if (u16(tail, at + 20) == tail.size() - at - kEndSize) return at;
  }
  return std::nullopt;
}

// The 64-bit end record that a locator in front of the end record names.
Result<ZipEnd> read_end64(ByteSource& source, Bytes tail, uint64_t at) {
  const uint64_t offset = u64(tail, at - kLocatorSize + 8);
  if (offset > source.size() || source.size() - offset < kEnd64Size)
    return fail("its 64-bit end record is said to be behind its end");
  const auto record = source.read(offset, kEnd64Size);
  if (!record) return tl::unexpected<Error>(record.error());
  const Bytes bytes(*record);
  if (u32(bytes, 0) != kEnd64Mark) return fail("its 64-bit end record is not where it is said");
  return ZipEnd{u64(bytes, 48), u64(bytes, 40), u64(bytes, 32), {}};
}

Result<ZipEnd> read_end(ByteSource& source, Bytes tail, uint64_t at) {
  ZipEnd end{u32(tail, at + 16), u32(tail, at + 12), u16(tail, at + 10), {}};
  const bool is_64 = end.start == kMax32 || end.size == kMax32 || end.members == kMax16;
  if (is_64 && at >= kLocatorSize && u32(tail, at - kLocatorSize) == kLocatorMark) {
    auto large = read_end64(source, tail, at);
    if (!large) return large;
    end = *large;
  }
  if (end.start > source.size() || end.size > source.size() - end.start)
    return fail("its list of files is said to lie behind its end");
  if (end.size > kMaxDirectory || end.members > kMaxMembers)
    return fail(fmt::format("its list of files has {} entries in {} bytes, which is too much",
                            end.members, end.size));
  return end;
}

// Numbers that did not fit into 32 bits stand in an extra field, in this order.
void read_extra64(Bytes extra, ZipMember& member) {
  for (uint64_t at = 0; extra.contains(at, 4);) {
    const uint16_t id = u16(extra, at), length = u16(extra, at + 2);
    const auto field = extra.slice(at + 4, length);
    if (!field) return;
    if (id == kExtra64) {
      uint64_t next = 0;
      for (uint64_t* number : {&member.size, &member.packed, &member.offset})
        if (*number == kMax32) {
          *number = u64(*field, next);
          next += 8;
        }
      return;
    }
    at += 4 + uint64_t{length};
  }
}

// The entry at `at`, which moves behind it; nothing: there is none that is whole.
std::optional<ZipMember> read_entry(Bytes bytes, uint64_t& at) {
  if (!bytes.contains(at, kZipEntrySize) || u32(bytes, at) != kEntryMark) return std::nullopt;
  const uint64_t name_size = u16(bytes, at + 28), extra_size = u16(bytes, at + 30);
  const uint64_t comment_size = u16(bytes, at + 32);
  const auto name = bytes.slice(at + kZipEntrySize, name_size);
  const auto extra = bytes.slice(at + kZipEntrySize + name_size, extra_size);
  if (!name || !extra) return std::nullopt;
  const uint64_t size = kZipEntrySize + name_size + extra_size + comment_size;
  if (!bytes.contains(at, size)) return std::nullopt;
  ZipMember member;
  member.name = name->text();
  member.is_encrypted = (u16(bytes, at + 8) & 1) != 0;
  member.method = u16(bytes, at + 10);
  member.crc = u32(bytes, at + 16);
  member.packed = u32(bytes, at + 20);
  member.size = u32(bytes, at + 24);
  member.offset = u32(bytes, at + 42);
  read_extra64(*extra, member);
  at += size;
  return member;
}

Result<ZipDirectory> parse_directory(Bytes bytes, const ZipEnd& end) {
  ZipDirectory directory;
  directory.start = end.start;
  directory.members.reserve(std::min(end.members, bytes.size() / kZipEntrySize));
  uint64_t at = 0;
  for (uint64_t i = 0; i < end.members; i++) {
    auto member = read_entry(bytes, at);
    if (!member) return fail(fmt::format("its list of files ends after {} of {}", i, end.members));
    if (member->name.size() <= kMaxName) directory.members.push_back(std::move(*member));
  }
  return directory;
}

// Exactly `size` bytes, or nothing.
std::optional<std::string> inflate_raw(std::string_view packed, uint64_t size) {
  std::string text(size + 1, '\0');  // one more, to see that it ends
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int status = inflate(&stream, Z_FINISH);
  const uint64_t made = stream.total_out;
  inflateEnd(&stream);
  if (status != Z_STREAM_END || made != size) return std::nullopt;
  text.resize(size);
  return text;
}

// Where the bytes of a member begin: its local header has a name and extra fields of its own.
Result<std::string> read_packed(ByteSource& source, const ZipDirectory& directory,
                                const ZipMember& member) {
  constexpr uint64_t kUsualExtra = 64;
  if (member.offset > directory.start ||
      directory.start - member.offset < kLocalSize + member.packed)
    return fail(member.name + " is said to lie behind the members");
  // One range for header and bytes, unless the header has unusually much in it.
  const uint64_t most = directory.start - member.offset;
  const uint64_t first =
      std::min(most, kLocalSize + member.name.size() + kUsualExtra + member.packed);
  auto text = source.read(member.offset, first);
  if (!text) return text;
  const Bytes bytes(*text);
  if (u32(bytes, 0) != kLocalMark) return fail(member.name + " is not where the list says");
  const uint64_t begin = kLocalSize + u16(bytes, 26) + u16(bytes, 28);
  if (const auto packed = bytes.slice(begin, member.packed)) return std::string(packed->text());
  if (most < begin || most - begin < member.packed)
    return fail(member.name + " is said to lie behind the members");
  return source.read(member.offset + begin, member.packed);
}

}  // namespace

Result<ZipEnd> read_zip_end(ByteSource& source) {
  auto tail = source.read_end(kFirstRead);
  if (!tail) return tl::unexpected<Error>(tail.error());
  auto at = find_end(Bytes(*tail));
  if (!at && source.size() > tail->size()) {  // behind a long comment
    tail = source.read_end(kEndSize + kLocatorSize + kMaxComment);
    if (!tail) return tl::unexpected<Error>(tail.error());
    at = find_end(Bytes(*tail));
  }
  if (!at) return fail("it is no zip archive, or is cut short");
  auto end = read_end(source, Bytes(*tail), *at);
  if (!end) return end;
  const uint64_t tail_begin = source.size() - tail->size();
  const uint64_t begin = std::max(end->start, tail_begin);
  if (begin < end->start + end->size)
    end->tail = tail->substr(begin - tail_begin, end->start + end->size - begin);
  return end;
}

Result<void> read_more_of_tail(ByteSource& source, ZipEnd& end, uint64_t length) {
  const uint64_t wanted = std::min(length, end.size);
  if (wanted <= end.tail.size()) return {};
  const uint64_t missing = wanted - end.tail.size();
  auto more = source.read(end.start + end.size - wanted, missing);
  if (!more) return tl::unexpected<Error>(more.error());
  end.tail.insert(0, *more);
  return {};
}

Result<ZipDirectory> read_zip_directory(ByteSource& source, const ZipEnd& end) {
  ZipEnd whole = end;
  if (auto read = read_more_of_tail(source, whole, whole.size); !read)
    return tl::unexpected<Error>(read.error());
  return parse_directory(Bytes(whole.tail), whole);
}

Result<ZipDirectory> read_zip_directory(ByteSource& source) {
  const auto end = read_zip_end(source);
  if (!end) return tl::unexpected<Error>(end.error());
  return read_zip_directory(source, *end);
}

std::vector<ZipMember> entries_at_start(std::string_view first) {
  std::vector<ZipMember> members;
  uint64_t at = 0;
  while (auto member = read_entry(Bytes(first), at)) members.push_back(std::move(*member));
  return members;
}

std::vector<ZipMember> entries_at_end(std::string_view last) {
  constexpr std::string_view kMark("PK\1\2", 4);
  for (size_t begin = last.find(kMark); begin != last.npos; begin = last.find(kMark, begin + 1)) {
    const std::string_view rest = last.substr(begin);
    std::vector<ZipMember> members;
    uint64_t at = 0;
    while (auto member = read_entry(Bytes(rest), at)) members.push_back(std::move(*member));
    if (at == rest.size()) return members;
  }
  return {};
}

Result<std::string> read_zip_member(ByteSource& source, const ZipDirectory& directory,
                                    const ZipMember& member, uint64_t limit) {
  if (member.size > limit || member.packed > limit)
    return fail(fmt::format("{} has {} bytes, more than {}", member.name, member.size, limit));
  if (member.is_encrypted) return fail(member.name + " is encrypted");
  if (member.method != kStored && member.method != kDeflated)
    return fail(fmt::format("{} is packed by method {}, which wheels do not have", member.name,
                            member.method));
  auto packed = read_packed(source, directory, member);
  if (!packed) return packed;
  auto text = member.method == kStored ? std::move(*packed)
                                       : inflate_raw(*packed, member.size).value_or("");
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  if (text.size() != member.size || crc != member.crc)
    return fail(member.name + " is damaged: size or checksum are not those in the list of files");
  return text;
}

}  // namespace cohabit::wheels
