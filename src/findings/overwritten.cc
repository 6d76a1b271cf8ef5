#include "findings/overwritten.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/paths.h"

namespace cohabit {
namespace {

using Records = std::unordered_map<uint32_t, std::string>;  // texts, by distribution

const std::string& record_of(const Tree& tree, const Distributions& distributions, uint32_t owner,
                             Records& records) {
  const auto [found, fresh] = records.try_emplace(owner);
  if (fresh)
    found->second =
        "\n" + tree.read_text(distributions.all()[owner].metadata + "/RECORD").value_or("");
  return found->second;
}

// The last field of the row of `file` (below the site directory). Names with quotes are not found.
std::optional<uint64_t> recorded_size(const std::string& record, const std::string& file) {
  const std::string start = fmt::format("\n{},", file);
  const size_t at = record.find(start);
  if (at == record.npos) return std::nullopt;
  std::string_view row = std::string_view(record).substr(at + start.size());
  row = row.substr(0, row.find_first_of("\r\n"));
  row.remove_prefix(row.rfind(',') == row.npos ? row.size() : row.rfind(',') + 1);
  uint64_t size = 0;
  const auto parsed = std::from_chars(row.data(), row.data() + row.size(), size);
  return parsed.ec == std::errc() ? std::optional(size) : std::nullopt;
}

}  // namespace

void narrow_owners(const Tree& tree, const Distributions& distributions,
                   const sim::Simulation& simulation, Ownership& ownership) {
  Records records;
  for (uint32_t id = 0; id < ownership.of_object.size(); id++) {
    std::vector<uint32_t>& owners = ownership.of_object[id];
    if (owners.size() < 2) continue;
    const Image& image = simulation.images()[simulation.objects()[id].image];
    std::vector<uint32_t> fitting;
    for (const uint32_t owner : owners) {
      const std::string& site = distributions.all()[owner].site;
      if (!is_below(image.real_path, site)) continue;
      const std::string file = image.real_path.substr(site.size() + 1);
      if (recorded_size(record_of(tree, distributions, owner, records), file) == image.file_size)
        fitting.push_back(owner);
    }
    if (fitting.size() == 1) owners = std::move(fitting);
  }
}

}  // namespace cohabit
