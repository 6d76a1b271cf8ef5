#include "imports/later_opens.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/paths.h"
#include "base/rows.h"
#include "facts/elf/library_names.h"

namespace cohabit::python {
namespace {

constexpr std::string_view kTable =
#include "data/later_opens.inc"
    ;
constexpr int kLazy = 1, kNow = 2, kGlobal = 0x100;
constexpr size_t kMostOpens = 64;  // of one row or library

bool matches_pattern(std::string_view pattern, const std::string& text) {
  return fnmatch(std::string(pattern).c_str(), text.c_str(), 0) == 0;
}

// The part after a prefix like "strings:"; nothing if it does not begin so.
std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

Phase phase_of(std::string_view name) {
  return name == "import"           ? Phase::kImport
         : name == "device"         ? Phase::kDevice
         : name == "convolution"    ? Phase::kConvolution
         : name == "linear-algebra" ? Phase::kLinearAlgebra
         : name == "compile"        ? Phase::kCompile
                                    : Phase::kNever;
}

LaterRow read_row(const TableRow& fields) {
  LaterRow row;
  row.opener = fields[0];
  row.phase = phase_of(fields[1]);
  row.names = fields[2];
  for (const std::string_view flag : split(fields[3], ',')) {
    row.flags |= flag == "lazy" ? kLazy : flag == "now" ? kNow : flag == "global" ? kGlobal : 0;
    row.by_path |= flag == "path";
    row.if_asked |= flag == "asked";
  }
  row.when = fields[4];
  row.same_version = fields[5] == "same-version";
  row.failure = row.same_version || fields[5] == "error" ? OnFailure::kError
                : fields[5] == "warning"                 ? OnFailure::kWarning
                                                         : OnFailure::kIgnored;
  row.source = fields[6];
  return row;
}

bool imports_dlopen(const elf::Object& object) {
  for (uint64_t i = 0; i < object.symbols.size(); i++)
    if (object.symbols[i].st_shndx == elf::SHN_UNDEF &&
        object.symbol_name(static_cast<uint32_t>(i)) == "dlopen")
      return true;
  return false;
}

std::vector<std::string> names_in(const Opener& opener) {
  return opener.image->extract("library names", elf::library_names);
}

// "x.so" for version 9.1.0: x.so.9.1.0, x.so.9.1, x.so.9, x.so
Attempts with_versions(const std::string& name, const std::string& full) {
  Attempts attempts;
  std::string version = three_numbers(full);
  while (!version.empty() && name.ends_with(".so")) {
    attempts.push_back(fmt::format("{}.{}", name, version));
    version.resize(version.find('.') == version.npos ? 0 : version.rfind('.'));
  }
  attempts.push_back(name);
  return attempts;
}

// Paths that exist, part by part from the opener's directory; in the order of their names.
std::vector<std::string> files_like(std::string_view pattern, const Opener& opener,
                                    const Tree& tree) {
  if (opener.directories.empty()) return {};
  std::vector<std::string> found = {opener.directories.front()};
  for (const std::string_view part : split(pattern, '/')) {
    std::vector<std::string> next;
    for (const std::string& directory : found) {
      if (part.find('*') == part.npos) {
        next.push_back(join_normal(directory, part));
        continue;
      }
      for (const std::string& name : tree.list(directory))
        if (matches_pattern(part, name) && next.size() < kMostOpens)
          next.push_back(fmt::format("{}/{}", directory, name));
    }
    found = std::move(next);
  }
  std::erase_if(found, [&](const std::string& path) { return !tree.stat(path); });
  return found;
}

bool has_row_for(const std::string& name, const Opener& opener) {
  return std::any_of(later_rows().begin(), later_rows().end(), [&](const LaterRow& row) {
    std::string_view pattern = row.names;
    for (const std::string_view prefix : {"strings:", "versioned:"})
      if (const auto rest = after(row.names, prefix)) pattern = *rest;
    return matches_pattern(pattern, name) && matches(row, opener);
  });
}

}  // namespace

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kImport:
      return "import";
    case Phase::kDevice:
      return "device initialisation";
    case Phase::kConvolution:
      return "the first convolution";
    case Phase::kLinearAlgebra:
      return "the first linear algebra";
    case Phase::kCompile:
      return "the first compilation";
    default:
      return "a first use";
  }
}

const std::vector<LaterRow>& later_rows() {
  static const std::vector<LaterRow> kRows = [] {
    std::vector<LaterRow> rows;
    for (const TableRow& fields : table_rows(kTable, 7)) rows.push_back(read_row(fields));
    return rows;
  }();
  return kRows;
}

bool may_open_later(const std::string& file) {
  return std::any_of(later_rows().begin(), later_rows().end(),
                     [&](const LaterRow& row) { return matches_pattern(row.opener, file); });
}

bool matches(const LaterRow& row, const Opener& opener) {
  if (row.when.starts_with("cuda") && row.when != opener.cuda) return false;
  return matches_pattern(row.opener, opener.file) ||
         matches_pattern(row.opener, std::string(opener.image->elf.soname.value_or("")));
}

std::vector<Attempts> opens_of(const LaterRow& row, const Opener& opener, const Tree& tree) {
  std::vector<Attempts> opens;
  if (const auto files = after(row.names, "files:")) {
    for (std::string& path : files_like(*files, opener, tree)) opens.push_back({std::move(path)});
    return opens;
  }
  const auto strings = after(row.names, "strings:"), versioned = after(row.names, "versioned:");
  if (!strings && !versioned) {
    Attempts attempts;
    for (const std::string_view name : split(row.names, '|')) attempts.emplace_back(name);
    return {attempts};
  }
  for (const std::string& name : names_in(opener))
    if (matches_pattern(strings ? *strings : *versioned, name) && opens.size() < kMostOpens)
      opens.push_back(versioned ? with_versions(name, opener.version) : Attempts{name});
  return opens;
}

std::vector<Attempts> own_parts(const Opener& opener, const Tree& tree) {
  std::vector<Attempts> opens;
  if (!imports_dlopen(opener.image->elf)) return opens;
  for (const std::string& name : names_in(opener)) {
    if (name == opener.file || opens.size() >= kMostOpens || has_row_for(name, opener)) continue;
    Attempts attempts = with_versions(name, opener.version);
    if (!own_file(attempts, opener, tree).empty()) opens.push_back(std::move(attempts));
  }
  return opens;
}

std::string own_file(const Attempts& attempts, const Opener& opener, const Tree& tree) {
  for (const std::string& name : attempts)
    for (const std::string& directory : opener.directories)
      if (std::string path = fmt::format("{}/{}", directory, name); tree.stat(path)) return path;
  return "";
}

std::string three_numbers(const std::string& version) {
  size_t end = 0;
  for (int i = 0; i < 3 && end != version.npos; i++) end = version.find('.', i ? end + 1 : 0);
  return version.substr(0, end);
}

std::string version_in(std::string_view file) {
  const size_t at = file.rfind(".so.");
  if (at == file.npos) return "";
  const std::string_view version = file.substr(at + 4);
  const bool is_number = version.find_first_not_of(".0123456789") == version.npos;
  return is_number && !version.empty() && version.back() != '.' ? std::string(version) : "";
}

}  // namespace cohabit::python
