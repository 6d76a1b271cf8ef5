#include <fmt/format.h>

#include <algorithm>

#include "base/tree.h"
#include "facts/wheels/byte_source.h"

namespace cohabit::wheels {

Result<LocalFile> LocalFile::open(const std::string& path) {
  auto map = Tree("").map(path);
  if (!map) return tl::unexpected<Error>(map.error());
  return LocalFile(std::move(*map));
}

Result<std::string> LocalFile::read_end(uint64_t length) {
  const uint64_t size = map_.bytes().size();
  return read(size - std::min(size, length), std::min(size, length));
}

Result<std::string> LocalFile::read(uint64_t offset, uint64_t length) {
  const auto part = map_.bytes().slice(offset, length);
  if (!part) return fail(fmt::format("bytes {} to {} are behind its end", offset, offset + length));
  std::string text(part->text());
  if (map_.damaged()) return fail("it cannot be read to its end");
  return text;
}

}  // namespace cohabit::wheels
