#include "facts/wheels/wheel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/paths.h"
#include "facts/wheels/wheel_files.h"
#include "facts/wheels/zip_directory.h"

namespace cohabit::wheels {
namespace {

constexpr uint64_t kMaxModule = 256 << 10;  // of what is read for a refusal
constexpr size_t kMaxModules = 8;

constexpr std::string_view kData = ".data/";

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

void make_record(const WheelFiles& files, const std::string& name, const Layout& layout,
                 Wheel& wheel) {
  size_t outside = 0, unrecorded = 0;
  for (const WheelFile& file : files.files) {
    const std::string path = installed_path(file.name, name, layout);
    if (path.empty()) continue;
    if (!is_inside(file.name)) {
      outside++;
      continue;
    }
    const bool is_own = file.name.starts_with(wheel.dist_info + "/RECORD");
    if (!file.is_recorded && !is_own) unrecorded++;
    fmt::format_to(std::back_inserter(wheel.record), "{},{},{}\n", quoted(path), file.hash,
                   is_own ? "" : std::to_string(file.size));
    wheel.installed_size += file.size;
  }
  if (outside)
    wheel.problems.push_back(fmt::format(
        "{} of its files lie outside of the environment: installers refuse it", outside));
  if (unrecorded)
    wheel.problems.push_back(fmt::format(
        "{} of its files are not in its RECORD: their content is not compared", unrecorded));
}

}  // namespace

Result<Wheel> read_wheel(ByteSource& source, const std::string& name, const Layout& layout) {
  auto files = read_wheel_files(source, name);
  if (!files) return tl::unexpected<Error>(files.error());
  Wheel wheel;
  wheel.size = source.size();
  wheel.dist_info = std::move(files->dist_info);
  wheel.metadata = std::move(files->metadata);
  wheel.scripts = parse_scripts(files->entry_points);
  make_record(*files, name, layout, wheel);
  return wheel;
}

Result<std::vector<Module>> read_refusing_modules(ByteSource& source) {
  const auto directory = read_zip_directory(source);
  if (!directory) return tl::unexpected<Error>(directory.error());
  std::vector<Module> modules;
  size_t read = 0;
  for (const ZipMember& member : directory->members) {
    const size_t slash = member.name.find('/');
    if (slash == member.name.npos || member.name.substr(slash + 1) != "__init__.py") continue;
    if (member.size > kMaxModule || read++ == kMaxModules) continue;
    auto text = read_zip_member(source, *directory, member, kMaxModule);
    if (text && text->find("ImportError") != text->npos)
      modules.push_back({member.name, std::move(*text)});
  }
  return modules;
}

}  // namespace cohabit::wheels
