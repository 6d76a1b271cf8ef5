#include "actions/archive_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace cohabit {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameField = 100;
constexpr uint64_t kMaxOctalSize = uint64_t{1} << 33;
constexpr int kLevel = 6;

// POSIX.1-2017, pax, "ustar Interchange Format".
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
  char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
  char padding[12];
};
static_assert(sizeof(Header) == kBlock);

using Records = std::vector<std::pair<std::string, std::string>>;

// "LENGTH key=value\n", where the length counts itself.
std::string pax_record(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest;
  while (length != rest + fmt::formatted_size("{}", length))
    length = rest + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

void put(char* field, size_t size, std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), size));
}

// `path` shortened to its field: who reads pax records does not look at it.
std::string make_header(char type, const std::string& path, const std::string& target,
                        uint64_t size, unsigned mode) {
  Header header{};
  put(header.name, sizeof header.name, path);
  put(header.mode, sizeof header.mode, fmt::format("{:07o}", mode));
  put(header.uid, sizeof header.uid, "0000000");
  put(header.gid, sizeof header.gid, "0000000");
  put(header.size, sizeof header.size, fmt::format("{:011o}", size % kMaxOctalSize));
  put(header.mtime, sizeof header.mtime, "00000000000");
  header.type = type;
  put(header.link, sizeof header.link, target);
  put(header.magic, sizeof header.magic, std::string_view("ustar\0", 6));
  put(header.version, sizeof header.version, "00");
  std::memset(header.checksum, ' ', sizeof header.checksum);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  unsigned sum = 0;
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
  const std::string checksum = fmt::format("{:06o}", sum) + '\0';
  bytes.replace(offsetof(Header, checksum), checksum.size(), checksum);
  return bytes;
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0 && c < 0x7f; });
}

bool is_plain(const std::string& text) {
  return text.size() <= kNameField && is_ascii(text);
}

}  // namespace

struct ArchiveWriter::State {
  uint64_t left;
  bool failed = false, is_full = false;
  ZSTD_CCtx* compressor = ZSTD_createCCtx();
  std::vector<char> output = std::vector<char>(ZSTD_CStreamOutSize());
  std::string archive;

  explicit State(uint64_t most_bytes) : left(most_bytes) {
    (void)ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, kLevel);
    (void)ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1);
  }
  State(const State&) = delete;
  ~State() { ZSTD_freeCCtx(compressor); }

  void compress(std::string_view bytes, ZSTD_EndDirective how) {
    is_full = is_full || bytes.size() > left;
    if (failed || is_full) return;
    left -= bytes.size();
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{output.data(), output.size(), 0};
      const size_t rest = ZSTD_compressStream2(compressor, &out, &in, how);
      failed = ZSTD_isError(rest) != 0;
      archive.append(output.data(), out.pos);
      if (failed || (how == ZSTD_e_end ? rest == 0 : in.pos == in.size)) return;
    }
  }

  void data(std::string_view bytes) { compress(bytes, ZSTD_e_continue); }
  void file(const std::string& path, std::string_view content, unsigned mode) {
    entry('0', path, "", content.size(), mode);
    data(content);
    pad(content.size());
  }
  void pad(uint64_t size) {
    static const std::string kZeros(kBlock, '\0');
    if (size % kBlock != 0) data(std::string_view(kZeros).substr(size % kBlock));
  }

  void entry(char type, const std::string& name, const std::string& target, uint64_t size,
             unsigned mode, Records records = {}) {
    const bool sparse = !records.empty();
    if (!sparse && !is_plain(name)) records.emplace_back("path", name);
    if (!is_plain(target)) records.emplace_back("linkpath", target);
    if (size >= kMaxOctalSize) records.emplace_back("size", std::to_string(size));
    if (!records.empty()) {
      std::string text;
      // Names are bytes, of no character set.
      if (!is_ascii(name) || !is_ascii(target)) text = pax_record("hdrcharset", "BINARY");
      for (const auto& [key, value] : records) text += pax_record(key, value);
      data(make_header('x', "pax", "", text.size(), 0644));
      data(text);
      pad(text.size());
    }
    data(make_header(type, name, target, size, mode));
  }
};

ArchiveWriter::ArchiveWriter(uint64_t most_bytes) : state_(std::make_unique<State>(most_bytes)) {}
ArchiveWriter::~ArchiveWriter() = default;

void ArchiveWriter::add_directory(const std::string& path) {
  state_->entry('5', path + "/", "", 0, 0755);
}

void ArchiveWriter::add_symlink(const std::string& path, const std::string& target) {
  state_->entry('2', path, target, 0, 0777);
}

void ArchiveWriter::add_hard_link(const std::string& path, const std::string& target) {
  state_->entry('1', path, target, 0, 0644);
}

void ArchiveWriter::add_fifo(const std::string& path) {
  state_->entry('6', path, "", 0, 0644);
}

void ArchiveWriter::add_text(const std::string& path, std::string_view text) {
  state_->file(path, text, 0644);
}

void ArchiveWriter::add_sparse(const std::string& path, const Sparse& file) {
  const unsigned mode = file.is_executable ? 0755 : 0644;
  const auto& parts = file.parts;
  if (file.size == 0) return state_->file(path, "", mode);
  if (parts.size() == 1 && parts.begin()->second.size() == file.size)
    return state_->file(path, parts.begin()->second, mode);
  uint64_t bytes = 0;
  std::string map;
  for (const auto& [offset, part] : parts) {
    fmt::format_to(std::back_inserter(map), "{}\n{}\n", offset, part.size());
    bytes += part.size();
  }
  // An empty part at the end says how long the file is.
  map = fmt::format("{}\n{}{}\n0\n", parts.size() + 1, map, file.size);
  map.resize((map.size() + kBlock - 1) / kBlock * kBlock);
  const uint64_t packed = map.size() + bytes;
  state_->entry('0', path, "", packed, mode,
                {{"GNU.sparse.major", "1"},
                 {"GNU.sparse.minor", "0"},
                 {"GNU.sparse.name", path},
                 {"GNU.sparse.realsize", std::to_string(file.size)}});
  state_->data(map);
  for (const auto& [offset, part] : parts) state_->data(part);
  state_->pad(packed);
}

Result<std::string> ArchiveWriter::finish() {
  state_->data(std::string(2 * kBlock, '\0'));
  state_->compress("", ZSTD_e_end);
  if (state_->is_full) return fail("it would hold more data than a bundle may");
  if (state_->failed) return fail("zstd cannot compress it");
  return std::move(state_->archive);
}

}  // namespace cohabit
