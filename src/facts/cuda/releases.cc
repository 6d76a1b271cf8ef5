#include "facts/cuda/releases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/rows.h"

namespace cohabit::cuda {
namespace {

constexpr std::string_view kReleases =
#include "data/releases.inc"
    ;
constexpr std::string_view kOtherBuilds =
#include "data/other_builds.inc"
    ;
constexpr std::string_view kUndeclared =
#include "data/undeclared.inc"
    ;
constexpr std::string_view kPairs =
#include "data/pairs.inc"
    ;

constexpr std::string_view kUnknown = "?";
constexpr size_t kReleaseFields = 14;
constexpr size_t kOtherFields = 9;
constexpr size_t kUndeclaredFields = 8;
constexpr size_t kPairFields = 8;

std::string known(std::string_view text) {
  return std::string(text == kUnknown ? "" : text);
}

BuiltFor parse_cuda(std::string_view text) {
  BuiltFor built;
  built.is_cpu_only = text == "none";
  built.at_least = text.starts_with(">=");
  if (built.at_least) text.remove_prefix(2);
  built.version = parse_cuda_version(text);
  if (built.version && text.find('.') == text.npos) built.version->minor = kAnyMinor;
  return built;
}

// "90a"
DeviceCode parse_code(std::string_view text, CodeKind kind) {
  DeviceCode code;
  code.kind = kind;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), code.sm);
  if (parsed.ptr != text.data() + text.size()) code.suffix = *parsed.ptr;
  return code;
}

void add_code(Build& build, std::string_view machine_code, std::string_view ptx) {
  build.is_scanned = machine_code != kUnknown;
  if (!build.is_scanned) return;
  if (machine_code != "none")
    for (const std::string_view one : split_list(machine_code, ','))
      build.code.push_back(parse_code(one, CodeKind::kMachineCode));
  if (ptx == "none" || ptx == kUnknown) return;
  for (const std::string_view one : split_list(ptx, ',')) {  // "120:8.8", or "120" alone
    const std::vector<std::string_view> parts = split(one, ':');
    DeviceCode code = parse_code(parts[0], CodeKind::kPtx);
    if (parts.size() > 1)
      if (const auto version = parse_cuda_version(parts[1])) {
        code.ptx_major = version->major;
        code.ptx_minor = version->minor;
      }
    build.code.push_back(code);
  }
}

void add_pythons(Build& build, std::string_view text) {
  build.any_later_python = text.ends_with('+');
  if (build.any_later_python) text.remove_suffix(1);
  for (const std::string_view one : split_list(text, ','))
    if (const int python = parse_python(one)) build.pythons.push_back(python);
}

std::vector<Undeclared> parse_undeclared(std::string_view table) {
  std::vector<Undeclared> rows;
  for (const TableRow& row : table_rows(table, kUndeclaredFields)) {
    Undeclared one{std::string(row[0]), std::string(row[1]), {},
                   std::string(row[3]), std::string(row[4]), std::string(row[5]),
                   std::string(row[6]), std::string(row[7])};
    for (const std::string_view python : split_list(row[2], ','))
      one.pythons.push_back(parse_python(python));
    rows.push_back(std::move(one));
  }
  return rows;
}

// "2.6" of 2.6.2
std::string_view minor_of(std::string_view version) {
  const size_t point = version.find('.');
  return version.substr(0, point == version.npos ? point : version.find('.', point + 1));
}

std::vector<SimulatedPair> parse_pairs(std::string_view table) {
  std::vector<SimulatedPair> pairs;
  for (const TableRow& row : table_rows(table, kPairFields))
    pairs.push_back({std::string(row[0]), std::string(row[1]), parse_python(row[2]),
                     std::string(row[3]), std::string(row[4]), std::string(row[5]),
                     std::string(row[6]), std::string(row[7])});
  return pairs;
}

}  // namespace

int parse_python(std::string_view text) {
  int minor = 0;
  if (!text.starts_with("3.")) return 0;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), minor);
  const bool ends = parsed.ptr == text.data() + text.size() || *parsed.ptr == '.';
  return parsed.ec == std::errc() && ends && minor >= 0 && minor < 100 ? 300 + minor : 0;
}

std::string python_text(int python) {
  return fmt::format("{}.{}", python / 100, python % 100);
}

bool Build::takes_python(int python) const {
  if (any_later_python && !pythons.empty() && python >= pythons.front()) return true;
  return std::find(pythons.begin(), pythons.end(), python) != pythons.end();
}

std::vector<Build> parse_releases(std::string_view table) {
  std::vector<Build> builds;
  for (const TableRow& row : table_rows(table, kReleaseFields)) {
    Build build;
    build.framework = row[0];
    build.distribution = row[1];
    build.version = row[2];
    build.released = known(row[3]);
    build.platform = row[4];
    add_pythons(build, row[5]);
    build.glibc = known(row[6]);
    build.install = row[7];
    build.cuda = parse_cuda(row[8]);
    build.cuda_text = known(row[8]);
    build.cuda_from = known(row[9]);
    add_code(build, row[10], row[11]);
    build.source = row[12];
    build.read = row[13];
    builds.push_back(std::move(build));
  }
  return builds;
}

std::vector<Build> parse_other_builds(std::string_view table) {
  std::vector<Build> builds;
  for (const TableRow& row : table_rows(table, kOtherFields)) {
    Build build;
    build.framework = row[0];
    build.distribution = row[1];
    build.version = row[2];
    build.platform = "x86_64";
    add_pythons(build, row[3]);
    build.install = fmt::format("{}=={}.*", row[1], row[2]);
    build.cuda = parse_cuda(row[4]);
    build.cuda_text = row[4];
    build.cuda_from = "documented";
    build.backend = "cu" + std::string(row[4]);
    std::erase(build.backend, '.');
    add_code(build, row[5], row[6]);
    build.source = row[7];
    build.read = row[8];
    builds.push_back(std::move(build));
  }
  return builds;
}

const std::vector<Build>& known_builds() {
  static const std::vector<Build> builds = [] {
    std::vector<Build> all = parse_releases(kReleases);
    std::vector<Build> others = parse_other_builds(kOtherBuilds);
    std::move(others.begin(), others.end(), std::back_inserter(all));
    return all;
  }();
  return builds;
}

const std::vector<Undeclared>& known_undeclared() {
  static const std::vector<Undeclared> rows = parse_undeclared(kUndeclared);
  return rows;
}

std::vector<const Undeclared*> undeclared_of(const Build& build, int python) {
  std::vector<const Undeclared*> found;
  for (const Undeclared& one : known_undeclared()) {
    if (one.distribution != build.distribution || minor_of(one.version) != minor_of(build.version))
      continue;
    const auto& pythons = one.pythons;
    if (!python || std::find(pythons.begin(), pythons.end(), python) != pythons.end())
      found.push_back(&one);
  }
  return found;
}

const std::vector<SimulatedPair>& simulated_pairs() {
  static const std::vector<SimulatedPair> pairs = parse_pairs(kPairs);
  return pairs;
}

std::string_view name_of_pin(std::string_view pin) {
  return pin.substr(0, pin.find_first_of("[=<>!~ "));
}

}  // namespace cohabit::cuda
