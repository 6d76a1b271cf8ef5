#include "facts/wheels/wheel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/paths.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"
#include "facts/wheels/zip_directory.h"

namespace cohabit::wheels {
namespace {

constexpr uint64_t kMaxMetadata = 16 << 20;
constexpr uint64_t kMaxRecord = 256 << 20;
constexpr uint64_t kMaxModule = 256 << 10;  // of what is read for a refusal
constexpr size_t kMaxModules = 8;

constexpr std::string_view kDistInfo = ".dist-info", kData = ".data/";

const ZipMember* find_member(const ZipDirectory& directory, const std::string& name) {
  const auto found = std::find_if(directory.members.begin(), directory.members.end(),
                                  [&](const ZipMember& member) { return member.name == name; });
  return found == directory.members.end() ? nullptr : &*found;
}

// The one that is named as the distribution; else the only one.
std::string find_dist_info(const ZipDirectory& directory, const std::string& name) {
  std::string any;
  for (const ZipMember& member : directory.members) {
    const std::string_view part = first_part(member.name);
    if (!part.ends_with(kDistInfo) || part.size() == member.name.size()) continue;
    if (normal_name(part.substr(0, part.find('-'))) == normal_name(name)) return std::string(part);
    any = part;
  }
  return any;
}

// An archive that writes outside of the environment is refused by installers.
bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string installed_path(const std::string& member, const std::string& name,
                           const Layout& layout) {
  const size_t at = first_part(member).size() + 1;
  if (at > member.size() || !std::string_view(member).substr(0, at).ends_with(kData)) return member;
  const size_t slash = member.find('/', at);
  if (slash == member.npos) return "";
  const std::string kind = member.substr(at, slash - at);
  std::string rest = member.substr(slash + 1);
  if (kind == "purelib" || kind == "platlib") return rest;
  if (kind == "scripts") return fmt::format("{}/bin/{}", layout.prefix, rest);
  if (kind == "data") return fmt::format("{}/{}", layout.prefix, rest);
  if (kind == "headers")
    return fmt::format("{}/{}/{}/{}", layout.prefix, layout.headers, name, rest);
  return "";
}

namespace {

// A field of CSV.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string result = "\"";
  for (const char c : text) result.append(c == '"' ? 2 : 1, c);
  return result + "\"";
}

// The list of files decides what is there, the RECORD which content that has.
void make_record(const ZipDirectory& directory, const std::string& record, const std::string& name,
                 const Layout& layout, Wheel& wheel) {
  const RecordRows rows = parse_record(record);
  std::unordered_map<std::string_view, std::string_view> hashes;
  for (const RecordRow& row : rows.rows) hashes.emplace(row.path, row.hash);
  std::unordered_set<std::string_view> seen;
  size_t outside = 0, unrecorded = 0;
  for (const ZipMember& member : directory.members) {
    if (member.name.ends_with('/') || !seen.insert(member.name).second) continue;
    const std::string path = installed_path(member.name, name, layout);
    if (path.empty()) continue;
    if (!is_inside(member.name)) {
      outside++;
      continue;
    }
    const auto hash = hashes.find(member.name);
    const bool is_own = member.name.starts_with(wheel.dist_info + "/RECORD");
    if (hash == hashes.end() && !is_own) unrecorded++;
    fmt::format_to(std::back_inserter(wheel.record), "{},{},{}\n", quoted(path),
                   hash == hashes.end() ? "" : hash->second,
                   is_own ? "" : std::to_string(member.size));
    wheel.installed_size += member.size;
  }
  if (outside)
    wheel.problems.push_back(fmt::format(
        "{} of its files lie outside of the environment: installers refuse it", outside));
  if (unrecorded)
    wheel.problems.push_back(fmt::format(
        "{} of its files are not in its RECORD: their content is not compared", unrecorded));
}

// Packages whose __init__.py may refuse another distribution's version.
void read_modules(ByteSource& source, const ZipDirectory& directory, Wheel& wheel) {
  size_t read = 0;
  for (const ZipMember& member : directory.members) {
    const size_t slash = member.name.find('/');
    if (slash == member.name.npos || member.name.substr(slash + 1) != "__init__.py") continue;
    if (member.size > kMaxModule || read++ == kMaxModules) continue;
    auto text = read_zip_member(source, directory, member, kMaxModule);
    if (text && text->find("ImportError") != text->npos)
      wheel.modules.push_back({member.name, std::move(*text)});
  }
}

}  // namespace

Result<Wheel> read_wheel(ByteSource& source, const std::string& name, const Layout& layout) {
  const auto directory = read_zip_directory(source);
  if (!directory) return tl::unexpected<Error>(directory.error());
  Wheel wheel;
  wheel.size = source.size();
  wheel.dist_info = find_dist_info(*directory, name);
  const ZipMember* metadata = find_member(*directory, wheel.dist_info + "/METADATA");
  const ZipMember* record = find_member(*directory, wheel.dist_info + "/RECORD");
  if (!metadata || !record)
    return fail("it is no wheel: it has no *.dist-info with METADATA and RECORD");
  auto text = read_zip_member(source, *directory, *metadata, kMaxMetadata);
  if (!text) return tl::unexpected<Error>(text.error());
  wheel.metadata = std::move(*text);
  const auto rows = read_zip_member(source, *directory, *record, kMaxRecord);
  if (!rows) return tl::unexpected<Error>(rows.error());
  make_record(*directory, *rows, name, layout, wheel);
  read_modules(source, *directory, wheel);
  return wheel;
}

}  // namespace cohabit::wheels
