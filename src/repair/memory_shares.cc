#include "repair/memory_shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/rows.h"
#include "base/text.h"
#include "facts/cuda/builds.h"
#include "findings/environment.h"
#include "findings/variables.h"

namespace cohabit {
namespace {

constexpr std::string_view kTable =
#include "data/memory_settings.inc"
    ;
constexpr double kAll = 100;
constexpr double kRounding = 1e-6;
constexpr uint64_t kMegabyte = 1 << 20;

struct Row {
  std::string_view module;
  std::vector<std::string_view> names, files, words;
  std::string_view value, otherwise, source;
};

std::vector<Row> rows_of(std::string_view module) {
  std::vector<Row> rows;
  for (const TableRow& row : table_rows(kTable, 7))
    if (row[0] == module)
      rows.push_back({row[0], split_list(row[1], '|'), split_list(row[2], ','),
                      split_list(row[3], ','), row[4], row[5], row[6]});
  return rows;
}

std::string known_modules() {
  std::vector<std::string_view> names;
  for (const TableRow& row : table_rows(kTable, 7))
    if (names.empty() || names.back() != row[0]) names.push_back(row[0]);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<MemoryShare> parse_share(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string amount = equals == text.npos ? "" : text.substr(equals + 1);
  MemoryShare share;
  share.module = text.substr(0, equals);
  if (amount.ends_with('%')) {
    const char* end = amount.data() + amount.size() - 1;
    const auto parsed = std::from_chars(amount.data(), end, share.percent);
    if (parsed.ec != std::errc() || parsed.ptr != end) share.percent = 0;
  } else if (amount.find_first_of("GMT") != amount.npos) {  // "40" may be meant as either
    share.bytes = cuda::parse_size(amount);
  }
  if (share.module.empty() || (!(share.percent > 0) && share.bytes == 0))
    return fail(fmt::format(
        "not a share of a GPU's memory: '{}'; expected torch=40% or paddle=2GiB", text));
  if (rows_of(share.module).empty())
    return fail(fmt::format("no setting for the memory of {} is known; there are some for {}",
                            share.module, known_modules()));
  return share;
}

// What is common to the rows of one framework.
class Teller {
 public:
  Teller(const MemoryShare& share, const LaunchFacts& facts, std::string name,
         MemorySettings& settings)
      : share_(share), facts_(facts), name_(std::move(name)), settings_(settings) {}

  Result<void> tell(const Row& row);

 private:
  std::string fraction() const { return fmt::format("{:.4g}", percent() / kAll); }
  double percent() const {
    if (share_.percent > 0 || !facts_.gpu.memory) return share_.percent;
    return kAll * static_cast<double>(share_.bytes) / static_cast<double>(facts_.gpu.memory);
  }
  uint64_t bytes() const {
    if (share_.bytes) return share_.bytes;
    return static_cast<uint64_t>(static_cast<double>(facts_.gpu.memory) * share_.percent / kAll);
  }
  bool is_set(std::string_view name) const { return facts_.variables.contains(std::string(name)); }
  // The name that the installed release reads: the one that is set, else the newest.
  std::string name_for(const Row& row) const;
  // The row's value; empty: it cannot be told without the memory of the GPU.
  std::string value_for(const Row& row) const;
  void by_other_means(const Row& row);
  void add(const Row& row, const std::string& name, const std::string& value);

  const MemoryShare& share_;
  const LaunchFacts& facts_;
  std::string name_;  // "torch 2.15.0"
  MemorySettings& settings_;
};

std::string Teller::name_for(const Row& row) const {
  for (const std::string_view word : row.words)
    if (!stands_in_package(facts_.tree, facts_.interpreter, row.files, word)) return "";
  std::string best;
  for (const std::string_view name : row.names) {
    const bool flag = name.starts_with("FLAGS_");  // Paddle defines it without the prefix
    if (!stands_in_package(facts_.tree, facts_.interpreter, row.files,
                           flag ? name.substr(6) : name))
      continue;
    if (best.empty() || (is_set(name) && !is_set(best))) best = name;
  }
  return best;
}

std::string Teller::value_for(const Row& row) const {
  std::string value(row.value);
  const auto put = [&](std::string_view key, bool known, const std::string& text) {
    const size_t at = value.find(key);
    if (at == value.npos) return true;
    value.replace(at, key.size(), text);
    return known;
  };
  const bool is_known = put("{fraction}", percent() > 0, fraction()) &&
                        put("{mb}", bytes() > 0, fmt::format("{}", bytes() / kMegabyte)) &&
                        put("{amount}", true,
                            share_.percent > 0 ? fmt::format("{:.4g}%", share_.percent)
                                               : fmt::format("{}", share_.bytes));
  return is_known ? value : "";
}

void Teller::by_other_means(const Row& row) {
  if (row.otherwise != "hook") {
    settings_.untold.push_back(
        fmt::format("no variable tells {} how much memory it may take; a program can: {}", name_,
                    row.otherwise.empty() ? "nothing is known for this release" : row.otherwise));
    return;
  }
  settings_.hook = fmt::format("{}={}", share_.module,
                               share_.bytes ? fmt::format("{}", share_.bytes) : fraction());
}

void Teller::add(const Row& row, const std::string& name, const std::string& value) {
  const auto set = facts_.variables.find(name);
  const size_t option = value.find(':');
  const bool grows = option != value.npos;
  if (set != facts_.variables.end() &&
      (!grows || set->second.find(value.substr(0, option)) != std::string::npos)) {
    if (set->second != value)
      settings_.untold.push_back(fmt::format("{} is set already and stays as it is", name));
    return;
  }
  NeededVariable variable;
  variable.name = name;
  variable.part = value;
  variable.separator = ",";
  variable.setting = set != facts_.variables.end() ? Setting::kAppend : Setting::kSet;
  variable.reason = fmt::format("the share of {}", name_);
  variable.source = row.source;
  settings_.variables.push_back(std::move(variable));
}

Result<void> Teller::tell(const Row& row) {
  const std::string name = name_for(row);
  if (name.empty()) {
    by_other_means(row);
    return {};
  }
  const std::string value = value_for(row);
  if (!value.empty()) {
    add(row, name, value);
    return {};
  }
  if (row.otherwise == "hook") {
    by_other_means(row);
    return {};
  }
  return fail(
      fmt::format("{} wants {}, and how much memory the GPU has is not known: say it with "
                  "--gpu-total 24GiB",
                  name, share_.percent > 0 ? "an amount" : "a part of the whole"));
}

Result<void> check_sum(const std::vector<MemoryShare>& shares, uint64_t memory) {
  double percent = 0;
  uint64_t bytes = 0;
  for (const MemoryShare& share : shares) {
    percent += share.percent;
    bytes += share.bytes;
  }
  if (memory) percent += kAll * static_cast<double>(bytes) / static_cast<double>(memory);
  if (percent <= kAll + kRounding) return {};
  return fail(fmt::format(
      "the shares are {:.4g} % of the GPU's memory together{}; at most 100 % fit", percent,
      memory
          ? fmt::format(" ({:.4g} GiB)", static_cast<double>(memory) / static_cast<double>(1 << 30))
          : ""));
}

}  // namespace

Result<std::vector<MemoryShare>> parse_memory_shares(const std::string& text) {
  std::vector<MemoryShare> shares;
  for (const std::string_view part : split_list(text, ',')) {
    auto share = parse_share(std::string(trim(part)));
    if (!share) return tl::unexpected<Error>(share.error());
    if (std::any_of(shares.begin(), shares.end(),
                    [&](const MemoryShare& known) { return known.module == share->module; }))
      return fail(fmt::format("{} is given two shares", share->module));
    shares.push_back(std::move(*share));
  }
  if (auto good = check_sum(shares, 0); !good) return tl::unexpected<Error>(good.error());
  return shares;
}

Result<MemorySettings> memory_settings(const std::vector<MemoryShare>& shares,
                                       const LaunchFacts& facts) {
  if (auto good = check_sum(shares, facts.gpu.memory); !good)
    return tl::unexpected<Error>(good.error());
  const auto builds = cuda::read_builds(facts.tree, facts.interpreter, facts.distributions);
  MemorySettings settings;
  for (const MemoryShare& share : shares) {
    const auto build = std::find_if(builds.begin(), builds.end(), [&](const auto& one) {
      return one.module == share.module && one.cuda;
    });
    if (build == builds.end())
      return fail(fmt::format("there is no {} for CUDA in {}: leave its share out", share.module,
                              facts.interpreter.prefix));
    Teller teller(share, facts, build->distribution ? label(*build->distribution) : share.module,
                  settings);
    for (const Row& row : rows_of(share.module))
      if (auto told = teller.tell(row); !told) return tl::unexpected<Error>(told.error());
  }
  return settings;
}

}  // namespace cohabit
