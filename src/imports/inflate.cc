#include "imports/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <memory>

namespace cohabit::python {
namespace {

constexpr uint64_t kPiece = 1 << 16;

}  // namespace

std::optional<Inflated> inflate_zlib(Bytes data, uint64_t limit) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  const std::string_view packed = data.text();
  // zlib does not write to its input, though it has no const there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(packed.size(), UINT_MAX));
  Inflated result;
  int status = Z_OK;
  while (status == Z_OK) {
    const uint64_t before = stream.total_out;
    if (before > limit) return std::nullopt;
    result.text.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(result.text.data() + before);
    stream.avail_out = static_cast<uInt>(kPiece);
    status = inflate(&stream, Z_NO_FLUSH);
  }
  if (status != Z_STREAM_END || stream.total_out > limit) return std::nullopt;
  result.text.resize(stream.total_out);
  result.used = stream.total_in;
  return result;
}

}  // namespace cohabit::python
