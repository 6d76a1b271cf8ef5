#include "actions/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/file_size_limit.h"
#include "base/paths.h"

namespace cohabit {
namespace {

constexpr size_t kMaxDepth = 100;
// Links and pipes are packed below it only; what is read by its name is a file.
constexpr std::string_view kTree = "tree/";
// What may stand in front of a file's data: its headers and the map of its parts. The library keeps
// the map in memory, ten times as large.
constexpr uint64_t kMaxHead = 4 << 20;
// Bundles are up to a hundred times as large without their compression: what is far beyond is made
// to fill a disk.
constexpr uint64_t kAlwaysFree = 64 << 20, kMaxRatio = 500;

bool stays_inside(std::string_view path) {
  return path.size() < PATH_MAX && stays_below(path, kMaxDepth);
}

std::string_view text_of(const char* text) {
  return text ? std::string_view(text) : std::string_view();
}

// The bytes of the archive, decompressed and counted.
class Input {
 public:
  Input(const std::string& path, uint64_t most)
      : path_(path),
        most_(most),
        input_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
        open_error_(errno),
        stream_(ZSTD_createDStream(), ZSTD_freeDStream) {}

  Result<void> check_open() const {
    if (input_.is_open()) return {};
    return fail(fmt::format("cannot read {}: {}", path_, std::strerror(open_error_)));
  }

  // The next bytes; none: the end, or error() says why.
  std::string_view next() {
    while (error_.empty()) {
      if (in_.pos == in_.size && !refill()) return {};
      ZSTD_outBuffer out{unpacked_.data(), unpacked_.size(), 0};
      const size_t state = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(state))
        return refuse(
            fmt::format("expected a bundle of `cohabit capture`, but byte {} and what "
                        "follows are no zstd data: {}",
                        consumed_ - (in_.size - in_.pos), ZSTD_getErrorName(state)));
      in_frame_ = state != 0;
      if (out.pos == 0) continue;
      produced_ += out.pos;
      head_ += out.pos;
      if (produced_ > std::min(most_, kAlwaysFree + kMaxRatio * consumed_))
        return refuse("it holds more data than a bundle may");
      if (head_limited_ && head_ > kMaxHead)
        return refuse("the headers of a file are longer than those of a bundle may be");
      return {unpacked_.data(), out.pos};
    }
    return {};
  }

  const std::string& error() const { return error_; }
  // Until the data of an entry are reached only so much may be read.
  void limit_head(bool limited) {
    head_limited_ = limited;
    head_ = 0;
  }

 private:
  bool refill() {
    ssize_t count = 0;
    do count = ::read(input_.get(), packed_.data(), packed_.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) refuse(std::strerror(errno));
    if (count == 0 && in_frame_) refuse(fmt::format("it ends too early, at byte {}", consumed_));
    if (count <= 0) return false;
    consumed_ += static_cast<uint64_t>(count);
    in_ = {packed_.data(), static_cast<size_t>(count), 0};
    return true;
  }
  std::string_view refuse(std::string why) {
    error_ = std::move(why);
    return {};
  }

  const std::string& path_;
  const uint64_t most_;
  const Descriptor input_;
  const int open_error_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  std::vector<char> packed_ = std::vector<char>(ZSTD_DStreamInSize());
  std::vector<char> unpacked_ = std::vector<char>(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in_{nullptr, 0, 0};
  uint64_t consumed_ = 0, produced_ = 0, head_ = 0;
  bool in_frame_ = true, head_limited_ = true;
  std::string error_;
};

class Unpacker {
 public:
  Unpacker(const std::string& path, std::string directory, const UnpackLimits& limits)
      : path_(path),
        directory_(std::move(directory)),
        limits_(limits),
        input_(path, limits.bytes),
        archive_(archive_read_new(), archive_read_free) {}

  Result<void> run() {
    if (auto good = input_.check_open(); !good) return good;
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open(archive_.get(), &input_, nullptr, read_input, nullptr) != ARCHIVE_OK)
      return damaged();
    for (uint64_t count = 0; count <= limits_.entries; count++) {
      archive_entry* entry = nullptr;
      input_.limit_head(true);
      const int status = archive_read_next_header(archive_.get(), &entry);
      if (status == ARCHIVE_EOF) return finish();
      if (status < ARCHIVE_WARN) return damaged();
      input_.limit_head(false);
      if (auto done = unpack(entry); !done) return done;
    }
    return refuse(fmt::format("it has more than {} entries", limits_.entries));
  }

 private:
  using Links = std::vector<std::pair<std::string, std::string>>;

  static la_ssize_t read_input(archive* handle, void* input, const void** bytes) {
    const std::string_view next = static_cast<Input*>(input)->next();
    *bytes = next.data();
    if (static_cast<Input*>(input)->error().empty()) return static_cast<la_ssize_t>(next.size());
    archive_set_error(handle, EIO, "%s", static_cast<Input*>(input)->error().c_str());
    return ARCHIVE_FATAL;
  }

  tl::unexpected<Error> refuse(const std::string& why) const {
    return fail(fmt::format("{} cannot be used: {}", path_, why));
  }
  tl::unexpected<Error> damaged() const {
    if (!input_.error().empty()) return refuse(input_.error());
    return refuse(fmt::format("expected a bundle of `cohabit capture`, but it is no sound tar: {}",
                              text_of(archive_error_string(archive_.get()))));
  }
  tl::unexpected<Error> cannot_make(const std::string& inside) const {
    if (errno == EEXIST) return refuse(fmt::format("\"{}\" is in it twice", inside));
    if (errno == ENOTDIR) return refuse(fmt::format("a part of \"{}\" is a file in it", inside));
    return fail(fmt::format("cannot unpack {} of {} below {}: {}", inside, path_, directory_,
                            std::strerror(errno)));
  }

  // Entries of directories say nothing that the names in them do not, but for empty ones.
  Result<void> make_directories(std::string_view inside) {
    for (size_t end = inside.find('/');; end = inside.find('/', end + 1)) {
      const std::string part(inside.substr(0, end));
      if (!part.empty() && made_.insert(part).second &&
          ::mkdir((directory_ + "/" + part).c_str(), 0700) != 0) {
        if (errno == EEXIST) errno = ENOTDIR;  // a file
        return cannot_make(std::string(inside));
      }
      if (end == inside.npos) return {};
    }
  }

  Result<void> unpack(archive_entry* entry) {
    std::string inside(text_of(archive_entry_pathname(entry)));
    const std::string_view hard_link = text_of(archive_entry_hardlink(entry));
    if (inside.empty()) return refuse("it has an entry without a name");
    if (inside.ends_with('/')) inside.pop_back();
    if (!stays_inside(inside) || (!hard_link.empty() && !stays_inside(hard_link)))
      return refuse(fmt::format("\"{}\" would lie outside of its directory", inside));
    const auto type = archive_entry_filetype(entry);
    const bool is_plain = hard_link.empty() && (type == AE_IFREG || type == AE_IFDIR);
    if (!is_plain && !inside.starts_with(kTree))
      return refuse(fmt::format("\"{}\" is neither a file nor below {}", inside, kTree));
    if (hard_link.empty() && type == AE_IFDIR) return make_directories(inside);
    if (const size_t slash = inside.rfind('/'); slash != inside.npos)
      if (auto done = make_directories(std::string_view(inside).substr(0, slash)); !done)
        return done;
    if (!hard_link.empty()) {
      hard_links_.emplace_back(inside, hard_link);
    } else if (type == AE_IFLNK) {
      symlinks_.emplace_back(inside, text_of(archive_entry_symlink(entry)));
    } else if (type == AE_IFIFO) {
      if (::mkfifo((directory_ + "/" + inside).c_str(), 0600) != 0) return cannot_make(inside);
    } else if (type == AE_IFREG) {
      return unpack_file(entry, inside);
    } else {
      return refuse(fmt::format("\"{}\" is neither file nor directory nor link", inside));
    }
    return {};
  }

  Result<void> unpack_file(archive_entry* entry, const std::string& inside) {
    const int64_t size = archive_entry_size(entry);
    if (size < 0 || static_cast<uint64_t>(size) > limits_.file_size)
      return refuse(fmt::format("\"{}\" claims to have {} bytes", inside, size));
    const mode_t mode = (archive_entry_perm(entry) & 0111) != 0 ? 0700 : 0600;
    const Descriptor file(::open((directory_ + "/" + inside).c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file.is_open() || ::ftruncate(file.get(), size) != 0) return cannot_make(inside);
    while (true) {
      const void* block = nullptr;
      size_t length = 0;
      la_int64_t offset = 0;
      const int status = archive_read_data_block(archive_.get(), &block, &length, &offset);
      if (status == ARCHIVE_EOF) return {};
      if (status < ARCHIVE_WARN) return damaged();
      if (offset < 0 || offset > size || length > static_cast<uint64_t>(size - offset))
        return refuse(fmt::format("a part of \"{}\" lies behind its end", inside));
      if (!write_at(file.get(), static_cast<const char*>(block), length, offset))
        return cannot_make(inside);
    }
  }

  static bool write_at(int fd, const char* bytes, size_t size, int64_t offset) {
    for (size_t at = 0; at < size;) {
      const ssize_t count = ::pwrite(fd, bytes + at, size - at, offset + static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      at += static_cast<size_t>(count);
    }
    return true;
  }

  // Symlinks last: nothing is written or linked through one.
  Result<void> finish() {
    while (!input_.next().empty()) continue;  // what is wrong behind the last entry counts too
    if (!input_.error().empty()) return refuse(input_.error());
    for (const auto& [inside, target] : hard_links_)
      if (::link((directory_ + "/" + target).c_str(), (directory_ + "/" + inside).c_str()) != 0)
        return cannot_make(inside);
    for (const auto& [inside, target] : symlinks_)
      if (::symlink(target.c_str(), (directory_ + "/" + inside).c_str()) != 0)
        return cannot_make(inside);
    return {};
  }

  const std::string& path_;
  const std::string directory_;
  const UnpackLimits& limits_;
  Input input_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::unordered_set<std::string> made_;
  Links hard_links_, symlinks_;
};

}  // namespace

Result<void> unpack_archive(const std::string& path, const std::string& directory,
                            const UnpackLimits& limits) {
  const BearsFileSizeLimit bears;
  return Unpacker(path, directory, limits).run();
}

}  // namespace cohabit
