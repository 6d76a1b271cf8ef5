// The directory of a zip archive, and single members of it, of a file that is read in parts.
//
// A wheel of 900 MB keeps its list of files in its last 1.5 MB: to know every path and size takes
// two ranges, and often less is enough (wheel_files.h). Layout: APPNOTE.TXT 4.3 (end of central
// directory 4.3.16, its 64-bit form 4.3.14, entries 4.3.12). Deflated members are unpacked by zlib.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/wheels/byte_source.h"

namespace cohabit::wheels {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // of its local header
  uint64_t packed = 0;  // bytes in the archive
  uint64_t size = 0;    // bytes unpacked
  uint32_t crc = 0;
  uint16_t method = 0;  // 0 stored, 8 deflated
  bool is_encrypted = false;
};

struct ZipDirectory {
  std::vector<ZipMember> members;
  uint64_t start = 0;  // of the directory itself: members end here
};

// Where an archive's list of files is, and the last bytes of that list, as many as were read.
struct ZipEnd {
  uint64_t start = 0, size = 0, members = 0;
  std::string tail;
};
constexpr uint64_t kZipEntrySize = 46;  // of an entry without its name and extra fields

// Fails where the list does not fit the file, or what is said of it is beyond our limits.
Result<ZipEnd> read_zip_end(ByteSource& source);
// At least `length` bytes of tail, if the list has as many.
Result<void> read_more_of_tail(ByteSource& source, ZipEnd& end, uint64_t length);

Result<ZipDirectory> read_zip_directory(ByteSource& source, const ZipEnd& end);
Result<ZipDirectory> read_zip_directory(ByteSource& source);

// Entries in the first bytes of a list, up to one that is cut off.
std::vector<ZipMember> entries_at_start(std::string_view first);
// Entries in the last bytes of one, from the first from which entry follows upon entry to the end.
std::vector<ZipMember> entries_at_end(std::string_view last);

// A member, unpacked; its size and checksum are compared with what the directory says. Fails for
// more than `limit` bytes, before they are unpacked. Of the directory only its start is used.
Result<std::string> read_zip_member(ByteSource& source, const ZipDirectory& directory,
                                    const ZipMember& member, uint64_t limit);

}  // namespace cohabit::wheels
