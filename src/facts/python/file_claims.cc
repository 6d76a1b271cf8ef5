#include "facts/python/file_claims.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/paths.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-' || c == '+') return 62;
  return c == '_' || c == '/' ? 63 : -1;
}

// "sha256=" and base64 without padding, as RECORD writes it.
std::optional<Sha256> parse_record_hash(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256=";
  constexpr size_t kLetters = 43;  // of 256 bits
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() != kLetters) return std::nullopt;
  Sha256 digest;
  uint32_t bits = 0;
  int count = 0;
  size_t at = 0;
  for (const char c : text) {
    const int value = value_of(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8 || at == digest.size()) continue;
    count -= 8;
    digest[at++] = static_cast<uint8_t>(bits >> count);
  }
  return digest;
}

// Below the prefix; empty if it is not.
std::string below(const std::string& prefix, const std::string& path) {
  if (path.size() <= prefix.size() + 1 || !path.starts_with(prefix) || path[prefix.size()] != '/')
    return "";
  return path.substr(prefix.size() + 1);
}

std::optional<Sha256> hash_of_conda(const nlohmann::json& row) {
  // "sha256" is of the package's file, in which conda may have written the prefix since.
  const char* key = row.contains("prefix_placeholder") || row.contains("sha256_in_prefix")
                        ? "sha256_in_prefix"
                        : "sha256";
  const auto found = row.find(key);
  if (found == row.end() || !found->is_string()) return std::nullopt;
  return parse_hexadecimal(found->get_ref<const std::string&>());
}

}  // namespace

void FileClaims::add(const std::string& path, const Claim& claim) {
  if (path.empty()) return;
  const auto [at, is_new] = claims_.emplace(path, claim);
  if (!is_new && at->second.hash != claim.hash) at->second.disputed = true;
}

void FileClaims::add_record(const Tree& tree, const Distribution& distribution, uint32_t number,
                            const std::string& prefix) {
  const std::string record = distribution.metadata + "/RECORD";
  const auto site = tree.real_path(distribution.site);
  Entry status;
  if (!site || !look_at(record, status)) return;
  const Result<MappedFile> map = tree.map(record);
  if (!map) return;
  const RecordRows rows = parse_record(map->bytes().text());
  for (const RecordRow& row : rows.rows)
    if (const auto hash = parse_record_hash(row.hash))
      add(below(prefix, join_normal(*site, row.path)),
          {*hash, row.size, status.modified, number, false});
}

void FileClaims::add_conda(const Tree& tree, const Distribution& distribution, uint32_t number) {
  Entry status;
  if (!look_at(distribution.metadata, status)) return;
  const Result<MappedFile> map = tree.map(distribution.metadata);
  if (!map) return;
  const auto document = nlohmann::json::parse(map->bytes().text(), nullptr, false);
  if (!document.is_object() || !document.contains("paths_data")) return;
  const auto& data = document["paths_data"];
  if (!data.is_object() || !data.contains("paths") || !data["paths"].is_array()) return;
  for (const auto& row : data["paths"]) {
    if (!row.is_object() || !row.contains("_path") || !row["_path"].is_string()) continue;
    if (const auto hash = hash_of_conda(row))
      add(row["_path"].get<std::string>(), {*hash, -1, status.modified, number, false});
  }
}

FileClaims FileClaims::read(const Tree& tree, const Distributions& distributions,
                            const std::string& prefix) {
  FileClaims result;
  const std::vector<Distribution>& all = distributions.all();
  for (uint32_t i = 0; i < all.size(); i++) {
    if (all[i].is_conda_package)
      result.add_conda(tree, all[i], i);
    else
      result.add_record(tree, all[i], i, prefix);
  }
  return result;
}

std::optional<FileClaims::Claimed> FileClaims::claimed(const std::string& path) const {
  const auto found = claims_.find(path);
  if (found == claims_.end() || found->second.disputed) return std::nullopt;
  return Claimed{found->second.hash, found->second.distribution};
}

std::optional<Sha256> FileClaims::believed(const Entry& entry) const {
  const auto found = claims_.find(entry.path);
  if (found == claims_.end()) return std::nullopt;
  const Claim& claim = found->second;
  if (claim.disputed || entry.modified > claim.made) return std::nullopt;
  if (claim.size >= 0 && static_cast<uint64_t>(claim.size) != entry.size) return std::nullopt;
  return claim.hash;
}

}  // namespace cohabit
