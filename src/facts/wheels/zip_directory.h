// The directory of a zip archive, and single members of it, of a file that is read in parts.
//
// A wheel of 900 MB keeps its list of files in its last 1.5 MB, and installers' metadata stands
// just in front of it: to know every path, size and hash of a wheel takes two or three ranges, a
// thousandth of its bytes. Layout: APPNOTE.TXT 4.3 (end of central directory 4.3.16, its 64-bit
// form 4.3.14, entries 4.3.12). Deflated members are unpacked by zlib.
#pragma once

#include <cstdint>
#include <string>
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

// Fails where the directory does not fit the file, or what it says is beyond our limits.
Result<ZipDirectory> read_zip_directory(ByteSource& source);
// A member, unpacked; its size and checksum are compared with what the directory says. Fails for
// more than `limit` bytes, before they are unpacked.
Result<std::string> read_zip_member(ByteSource& source, const ZipDirectory& directory,
                                    const ZipMember& member, uint64_t limit);

}  // namespace cohabit::wheels
