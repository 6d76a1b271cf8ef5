// Two rows name one file if site directory and text are the same: installers write paths in one
// way. Nothing is asked of the disk, and no string is made: 94,000 rows are compared by a hash of
// their text in an open table, 12 ms in all.
#include "facts/python/installed_files.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/not_in_bundle.h"
#include "base/paths.h"
#include "base/sha256.h"

namespace cohabit {
namespace {

std::string base64_url(const std::array<uint8_t, 32>& digest) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string result;
  uint32_t bits = 0;
  int count = 0;
  for (const uint8_t byte : digest) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 6; count -= 6) result += kLetters[(bits >> (count - 6)) & 63];
  }
  if (count > 0) result += kLetters[(bits << (6 - count)) & 63];
  return result;
}

}  // namespace

void InstalledFiles::add(MappedFile map, uint32_t index) {
  ranges_[index].first = rows_.size();
  RecordRows& record = records_.emplace_back(parse_record(map.bytes().text()));
  for (const RecordRow& row : record.rows) rows_.push_back({index, row});
  record.rows = {};
  ranges_[index].second = rows_.size();
  maps_.push_back(std::move(map));
}

InstalledFiles InstalledFiles::read_some(const Tree& tree, const Distributions& distributions,
                                         const std::vector<uint32_t>& which) {
  InstalledFiles result;
  const std::vector<Distribution>& all = distributions.all();
  result.ranges_.resize(all.size());
  for (const Distribution& one : all) result.sites_.push_back(one.site);
  std::vector<std::pair<uint32_t, MappedFile>> maps;
  size_t size = 0;
  for (const uint32_t index : which) {
    if (all[index].is_conda_package) continue;
    Result<MappedFile> map = tree.map(all[index].metadata + "/RECORD");
    if (!map) continue;
    size += map->bytes().size();
    maps.emplace_back(index, std::move(*map));
  }
  // Growing copies, room costs nothing. A row has a hundred bytes, about.
  constexpr size_t kShortRow = 80, kMostRoom = 1 << 20;
  result.rows_.reserve(std::min(size / kShortRow, kMostRoom));
  for (auto& [index, map] : maps) result.add(std::move(map), index);
  return result;
}

InstalledFiles InstalledFiles::read(const Tree& tree, const Distributions& distributions) {
  std::vector<uint32_t> all(distributions.all().size());
  std::iota(all.begin(), all.end(), 0);
  InstalledFiles result = read_some(tree, distributions, all);
  result.find_claimed_twice();
  return result;
}

std::string InstalledFiles::path_of(const Row& row) const {
  return join_normal(sites_[row.distribution], row.record.path);
}

void InstalledFiles::find_claimed_twice() {
  size_t size = 1024;
  while (size < rows_.size() * 2) size *= 2;
  std::vector<uint32_t> table(size, UINT32_MAX);
  std::map<uint32_t, std::vector<uint32_t>> groups;  // by first row
  const std::hash<std::string_view> hash;
  for (uint32_t i = 0; i < rows_.size(); i++) {
    const Row& row = rows_[i];
    size_t slot = hash(row.record.path) & (size - 1);
    for (; table[slot] != UINT32_MAX; slot = (slot + 1) & (size - 1)) {
      const Row& other = rows_[table[slot]];
      if (other.record.path == row.record.path &&
          sites_[other.distribution] == sites_[row.distribution])
        break;
    }
    if (table[slot] == UINT32_MAX) {
      table[slot] = i;
    } else if (rows_[table[slot]].distribution != row.distribution) {
      std::vector<uint32_t>& group = groups[table[slot]];
      if (group.empty()) group.push_back(table[slot]);
      if (rows_[group.back()].distribution != row.distribution) group.push_back(i);
    }
  }
  for (auto& [first, group] : groups) claimed_twice_.push_back(std::move(group));
}

std::string_view import_name(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash != path.npos)
    return path.substr(slash + 1) == "__init__.py" ? path.substr(0, slash) : std::string_view();
  const bool module = path.ends_with(".py") || path.ends_with(".so");
  return module ? path.substr(0, path.find('.')) : std::string_view();
}

std::optional<std::string> record_hash(const Tree& tree, const std::string& path) {
  const Result<MappedFile> map = tree.map(path);
  if (!map) return std::nullopt;
  const auto hash = [](Bytes bytes) { return "sha256=" + base64_url(sha256(bytes)); };
  if (!tree.has_log() || tree.words() || map->bytes().empty()) {
    std::string text = hash(map->bytes());
    return map->damaged() ? std::nullopt : std::optional(std::move(text));
  }
  // A bundle keeps the hash, not the content, in which secrets are replaced.
  const auto words = map->extract("sha256", [&](Bytes bytes) {
    return is_of_bundle(tree) ? MappedFile::Words() : MappedFile::Words{hash(bytes)};
  });
  return words.empty() || map->damaged() ? std::nullopt : std::optional(words.front());
}

}  // namespace cohabit
