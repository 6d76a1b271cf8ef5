// A zip's list of files is not packed: 46 bytes and a name for each, of TensorFlow 2.9 MB, half a
// hundredth of the wheel. RECORD has the same names, sizes and hashes besides, packed into a third
// of that. By the standard each file of a wheel is in its RECORD. Whether that is so is seen from
// two numbers at the archive's end: how many entries its list has, and in how many bytes. They fit
// the names of RECORD, alone or with an entry for each directory above them (auditwheel makes
// those), or else the list is read as a whole. Of 71 wheels of torch and tensorflow all fit.
//
// To find RECORD, its entry in the list is needed. Those of the metadata are neighbours; they stand
// at the end, where most tools put them (behind them often licenses), or at the beginning.
#include "facts/wheels/wheel_files.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/paths.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit::wheels {
namespace {

constexpr uint64_t kMaxMetadata = 16 << 20;
constexpr uint64_t kMaxRecord = 256 << 20;
constexpr uint64_t kHead = 1 << 10;
constexpr uint64_t kMaxTail = 64 << 10;

constexpr std::string_view kDistInfo = ".dist-info";

const ZipMember* find_member(const ZipDirectory& directory, const std::string& name) {
  const auto found = std::find_if(directory.members.begin(), directory.members.end(),
                                  [&](const ZipMember& member) { return member.name == name; });
  return found == directory.members.end() ? nullptr : &*found;
}

// "torch-2.15.0.dist-info" of a path below it; empty: it is below none.
std::string_view dist_info_of(std::string_view path) {
  const std::string_view part = first_part(path);
  return part.ends_with(kDistInfo) && part.size() != path.size() ? part : std::string_view();
}

bool is_named(std::string_view dist_info, const std::string& name) {
  return normal_name(dist_info.substr(0, dist_info.find('-'))) == normal_name(name);
}

// The one that is named as the distribution; else the only one.
std::string find_dist_info(const ZipDirectory& directory, const std::string& name) {
  std::string any;
  for (const ZipMember& member : directory.members) {
    const std::string_view part = dist_info_of(member.name);
    if (part.empty()) continue;
    if (is_named(part, name)) return std::string(part);
    any = part;
  }
  return any;
}

// The names of a RECORD's rows, all different, and the directories above them.
class Names {
 public:
  static std::optional<Names> of(const RecordRows& rows) {
    Names names;
    std::unordered_set<std::string_view> seen;
    for (const RecordRow& row : rows.rows) {
      if (row.path.empty() || row.path.ends_with('/') || !seen.insert(row.path).second)
        return std::nullopt;
      names.bytes_ += row.path.size();
      for (size_t end = row.path.rfind('/'); end != row.path.npos && end > 0;
           end = row.path.rfind('/', end - 1)) {
        if (!names.directories_.insert(row.path.substr(0, end)).second) break;
        names.bytes_of_directories_ += end + 1;
      }
    }
    names.count_ = rows.rows.size();
    return names;
  }

  bool are_all_of(const ZipEnd& end) const {
    const auto fits = [&](uint64_t count, uint64_t bytes) {
      return end.members == count && end.size == count * kZipEntrySize + bytes;
    };
    return fits(count_, bytes_) ||
           fits(count_ + directories_.size(), bytes_ + bytes_of_directories_);
  }

 private:
  uint64_t count_ = 0, bytes_ = 0, bytes_of_directories_ = 0;
  std::unordered_set<std::string_view> directories_;
};

// What a wheel's metadata says, and the entries by which it was found.
class Metadata {
 public:
  static Result<Metadata> read(ByteSource& source, const ZipDirectory& directory,
                               std::string dist_info) {
    Metadata result;
    const ZipMember* metadata = find_member(directory, dist_info + "/METADATA");
    result.record_member_ = find_member(directory, dist_info + "/RECORD");
    if (!metadata || !result.record_member_)
      return fail("it is no wheel: it has no *.dist-info with METADATA and RECORD");
    result.files.dist_info = std::move(dist_info);
    auto text = read_zip_member(source, directory, *metadata, kMaxMetadata);
    if (!text) return tl::unexpected<Error>(text.error());
    result.files.metadata = std::move(*text);
    text = read_zip_member(source, directory, *result.record_member_, kMaxRecord);
    if (!text) return tl::unexpected<Error>(text.error());
    result.record_ = std::move(*text);
    return result;
  }

  Result<void> read_entry_points(ByteSource& source, const ZipDirectory& directory) {
    const ZipMember* member = find_member(directory, files.dist_info + "/entry_points.txt");
    if (!member) return {};
    auto text = read_zip_member(source, directory, *member, kMaxMetadata);
    if (!text) return tl::unexpected<Error>(text.error());
    files.entry_points = std::move(*text);
    return {};
  }

  RecordRows rows() const { return parse_record(record_); }
  uint64_t size_of_record() const { return record_member_->size; }

  WheelFiles files;

 private:
  std::string record_;
  const ZipMember* record_member_ = nullptr;
};

bool has_metadata(const ZipDirectory& directory, const std::string& name) {
  return std::any_of(directory.members.begin(), directory.members.end(),
                     [&](const ZipMember& member) {
                       const std::string_view part = dist_info_of(member.name);
                       return !part.empty() && is_named(part, name) &&
                              find_member(directory, std::string(part) + "/RECORD") &&
                              find_member(directory, std::string(part) + "/METADATA");
                     });
}

// The entries of the metadata and what stands beside them, if less than a quarter of the list is
// enough to find them. What is read of the list's end goes to `end`.
std::optional<ZipDirectory> find_metadata(ByteSource& source, ZipEnd& end,
                                          const std::string& name) {
  ZipDirectory found{entries_at_end(end.tail), end.start};
  if (has_metadata(found, name)) return found;
  if (end.size / 4 < kHead) return std::nullopt;
  const auto head = source.read(end.start, kHead);
  if (!head) return std::nullopt;
  found.members = entries_at_start(*head);
  if (has_metadata(found, name)) return found;
  // In steps of which one costs little beside the wheel.
  uint64_t length = std::clamp(source.size() >> 14, kHead << 2, kMaxTail);
  for (; length <= std::min(kMaxTail, end.size / 4); length *= 2) {
    if (!read_more_of_tail(source, end, length)) return std::nullopt;
    found.members = entries_at_end(end.tail);
    if (has_metadata(found, name)) return found;
  }
  return std::nullopt;
}

// By RECORD alone; nothing: that is not certain, or it cannot be read so.
std::optional<WheelFiles> read_by_record(ByteSource& source, ZipEnd& end, const std::string& name) {
  if (end.tail.size() >= end.size) return std::nullopt;
  const auto directory = find_metadata(source, end, name);
  if (!directory) return std::nullopt;
  auto metadata = Metadata::read(source, *directory, find_dist_info(*directory, name));
  if (!metadata) return std::nullopt;
  const RecordRows rows = metadata->rows();
  const auto names = Names::of(rows);
  if (!names || !names->are_all_of(end)) return std::nullopt;
  WheelFiles& files = metadata->files;
  const std::string own = files.dist_info + "/RECORD";
  bool has_entry_points = false;
  for (const RecordRow& row : rows.rows) {
    const std::string_view part = dist_info_of(row.path);
    const bool is_another = !part.empty() && part != files.dist_info && is_named(part, name);
    const bool is_own = row.path == own;
    if (is_another || (row.size < 0 && !is_own)) return std::nullopt;
    has_entry_points |= row.path == files.dist_info + "/entry_points.txt";
    files.files.push_back({std::string(row.path), std::string(row.hash),
                           is_own ? metadata->size_of_record() : static_cast<uint64_t>(row.size),
                           true});
  }
  if (!metadata->read_entry_points(source, *directory)) return std::nullopt;
  if (has_entry_points && files.entry_points.empty() &&
      !find_member(*directory, files.dist_info + "/entry_points.txt"))
    return std::nullopt;
  return std::move(files);
}

// The zip's list decides what is there, the RECORD which content that has.
Result<WheelFiles> read_by_directory(ByteSource& source, const ZipEnd& end,
                                     const std::string& name) {
  const auto directory = read_zip_directory(source, end);
  if (!directory) return tl::unexpected<Error>(directory.error());
  auto metadata = Metadata::read(source, *directory, find_dist_info(*directory, name));
  if (!metadata) return tl::unexpected<Error>(metadata.error());
  if (auto read = metadata->read_entry_points(source, *directory); !read)
    return tl::unexpected<Error>(read.error());
  const RecordRows rows = metadata->rows();
  std::unordered_map<std::string_view, std::string_view> hashes;
  for (const RecordRow& row : rows.rows) hashes.emplace(row.path, row.hash);
  std::unordered_set<std::string_view> seen;
  for (const ZipMember& member : directory->members) {
    if (member.name.ends_with('/') || !seen.insert(member.name).second) continue;
    const auto hash = hashes.find(member.name);
    const bool is_recorded = hash != hashes.end();
    metadata->files.files.push_back(
        {member.name, is_recorded ? std::string(hash->second) : "", member.size, is_recorded});
  }
  return std::move(metadata->files);
}

}  // namespace

Result<WheelFiles> read_wheel_files(ByteSource& source, const std::string& name) {
  auto end = read_zip_end(source);
  if (!end) return tl::unexpected<Error>(end.error());
  if (auto files = read_by_record(source, *end, name)) return std::move(*files);
  return read_by_directory(source, *end, name);
}

}  // namespace cohabit::wheels
