#include "imports/zip_modules.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cohabit::python {
namespace {

constexpr size_t kMostMembers = 200'000;

// Each name in the directory that has it, and each directory on the way in its own.
void add_listings(std::string_view name,
                  std::map<std::string, std::vector<std::string>, std::less<>>& listings) {
  while (name.ends_with('/')) name.remove_suffix(1);
  while (!name.empty()) {
    const size_t slash = name.rfind('/');
    const std::string_view above = slash == name.npos ? std::string_view() : name.substr(0, slash);
    std::vector<std::string>& names = listings[std::string(above)];
    names.emplace_back(name.substr(slash == name.npos ? 0 : slash + 1));
    name = above;
  }
}

}  // namespace

// Null: it is no archive that can be read. One is mapped once, and stays so.
const ZipModules::Archive* ZipModules::open(const std::string& path) {
  const auto [known, is_new] = archives_.try_emplace(path);
  if (!is_new) return known->second.get();
  auto file = tree_.map(path);
  if (!file) return nullptr;
  wheels::LocalFile source(std::move(*file));
  auto directory = wheels::read_zip_directory(source);
  if (!directory || directory->members.size() > kMostMembers) return nullptr;
  auto archive =
      std::make_unique<Archive>(Archive{std::move(source), std::move(*directory), {}, {}});
  for (const wheels::ZipMember& member : archive->directory.members) {
    add_listings(member.name, archive->listings);
    if (!member.name.ends_with('/')) archive->members.emplace(member.name, &member);
  }
  for (auto& [directory_name, names] : archive->listings) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  known->second = std::move(archive);
  return known->second.get();
}

// The first part of the path that is a file.
std::optional<ZipModules::Place> ZipModules::find(const std::string& path) {
  if (const auto known = find_known(path)) return known;
  size_t end = path.size();
  auto status = tree_.stat(path);
  while (!status && status.error() == ENOTDIR && end != 0 && end != path.npos) {
    end = path.rfind('/', end - 1);
    if (end == 0 || end == path.npos) return std::nullopt;
    status = tree_.stat(path.substr(0, end));
  }
  if (!status || !status->is_regular()) return std::nullopt;
  if (!open(path.substr(0, end))) return std::nullopt;
  return find_known(path);
}

std::optional<ZipModules::Place> ZipModules::find_known(const std::string& path) const {
  if (archives_.empty()) return std::nullopt;
  for (size_t end = path.size(); end != 0 && end != path.npos; end = path.rfind('/', end - 1)) {
    const auto known = archives_.find(path.substr(0, end));
    if (known == archives_.end()) continue;
    if (!known->second) return std::nullopt;
    const std::string_view inside = std::string_view(path).substr(std::min(end + 1, path.size()));
    return Place{known->second.get(), inside};
  }
  return std::nullopt;
}

std::vector<std::string> ZipModules::list(const std::string& path) {
  const auto place = find(path);
  if (!place) return {};
  const auto listing = place->archive->listings.find(place->inside);
  return listing == place->archive->listings.end() ? std::vector<std::string>() : listing->second;
}

bool ZipModules::is_directory(const std::string& path) const {
  const auto place = find_known(path);
  return place && place->archive->listings.contains(place->inside);
}

const wheels::ZipMember* ZipModules::member_of(const std::string& path) const {
  const auto place = find_known(path);
  if (!place) return nullptr;
  const auto member = place->archive->members.find(place->inside);
  return member == place->archive->members.end() ? nullptr : member->second;
}

std::optional<ZipModules::Source> ZipModules::read(const std::string& path, uint64_t limit) const {
  const wheels::ZipMember* member = member_of(path);
  if (!member) return std::nullopt;
  Archive& archive = *find_known(path)->archive;
  auto text = wheels::read_zip_member(archive.file, archive.directory, *member, limit);
  if (!text) return std::nullopt;
  return Source{std::move(*text), member->method != 0};
}

}  // namespace cohabit::python
