// The files of all RECORDs are looked at once: 94,000 of them in an environment with three
// frameworks. What an installer may rewrite (scripts, its own notes, compiled files) is not ours;
// nor are headers, half of all files, which nothing opens that runs.
#include "findings/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "findings/rule.h"

namespace cohabit {
namespace {

constexpr int64_t kMaxHashed = 64 << 20;

bool is_compared(std::string_view path) {
  if (path.starts_with("../") || path.starts_with('/') || path.ends_with(".pyc")) return false;
  // virtualenv names directories of compiled files too, which nothing has made yet.
  if (path.ends_with("/__pycache__") || path.ends_with('/')) return false;
  for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1)) {
    const std::string_view directory = path.substr(0, at);
    if (directory.ends_with(".dist-info") || directory.ends_with("__pycache__") ||
        directory.ends_with(".data/scripts") || directory.ends_with("/include"))
      return false;
  }
  return true;
}

// System packagers change files after the RECORD was made: they strip libraries and patch prefixes.
// Debian leaves INSTALLER out, which every installer of wheels writes (PEP 627).
bool is_repackaged(const Distribution& distribution) {
  return distribution.installer.empty() || distribution.installer == "debian" ||
         distribution.installer == "rpm" || distribution.installer == "conda";
}

std::vector<ChangedFile> find_changed(const EnvironmentCase& examined) {
  std::vector<ChangedFile> changed;
  Neighbours neighbours;
  const std::vector<InstalledFiles::Row>& rows = examined.files.rows();
  for (uint32_t i = 0; i < rows.size(); i++) {
    const RecordRow& record = rows[i].record;
    const Distribution& owner = examined.owner(rows[i]);
    if (!is_compared(record.path) || !owner.editable.empty() || is_repackaged(owner)) continue;
    const std::string path = examined.files.path_of(rows[i]);
    const auto status = examined.tree.stat(path, neighbours);
    if (!status) {
      // "No permission" is not "not there".
      if (status.error() == ENOENT || status.error() == ENOTDIR) changed.push_back({i, true, 0});
      continue;
    }
    const auto size = static_cast<int64_t>(status->size);
    if (record.size >= 0 && size != record.size) {
      changed.push_back({i, false, size});
    } else if (examined.options.verify_hashes && record.hash.starts_with("sha256=") &&
               size <= kMaxHashed) {
      const auto hash = record_hash(examined.tree, path);
      if (hash && *hash != record.hash) changed.push_back({i, false, size});
    }
  }
  return changed;
}

}  // namespace

EnvironmentCase::EnvironmentCase(const Tree& given_tree, const Interpreter& given_interpreter,
                                 const Distributions& given_distributions,
                                 EnvironmentOptions given_options)
    : tree(given_tree),
      interpreter(given_interpreter),
      distributions(given_distributions),
      options(std::move(given_options)),
      files(InstalledFiles::read(given_tree, given_distributions)) {
  changed = find_changed(*this);
}

std::vector<Finding> check_environment(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  for (const Rule* rule : all_rules()) {
    if (!rule->check_environment) continue;
    for (Finding& finding : named_by(*rule, rule->check_environment(examined)))
      findings.push_back(std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  std::map<std::string, int> numbers;
  for (Finding& finding : findings)
    finding.id = fmt::format("{}-{}", finding.code, ++numbers[finding.code]);
  return findings;
}

std::string label(const Distribution& distribution) {
  return distribution.version.empty() ? distribution.name
                                      : distribution.name + " " + distribution.version;
}

Library library_of(const Distribution& distribution, const std::string& path) {
  return {path, distribution.name, distribution.version};
}

std::string list_some(const std::vector<std::string>& names, size_t shown) {
  const size_t count = std::min(shown, names.size());
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(count), ", "));
  if (names.size() > count) text += fmt::format(" and {} more", names.size() - count);
  return text;
}

std::string count_of(size_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

Evidence fact(std::string kind, std::string text, std::string library) {
  Evidence row;
  row.kind = std::move(kind);
  row.text = std::move(text);
  row.library = std::move(library);
  return row;
}

std::string shell_word(std::string_view text) {
  static constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=+:@,%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += "'\\'";
    result += c;
  }
  return result + "'";
}

std::string installer_command(const std::string& python, const Distributions& distributions,
                              std::string_view verb, const std::vector<std::string>& arguments) {
  const bool has_pip = distributions.find("pip") != nullptr;
  std::string command = has_pip ? fmt::format("{} -m pip {}", shell_word(python), verb)
                                : fmt::format("uv pip {} --python {}", verb, shell_word(python));
  if (has_pip && verb == "uninstall") command += " -y";
  for (const std::string& argument : arguments) command += " " + shell_word(argument);
  return command;
}

std::string installer_command(const EnvironmentCase& examined, std::string_view verb,
                              const std::vector<std::string>& arguments) {
  return installer_command(examined.interpreter.executable, examined.distributions, verb,
                           arguments);
}

std::vector<std::string> again(const std::string& distribution, const std::string& version) {
  return {"--force-reinstall", "--no-deps", distribution + "==" + version};
}

bool is_by_the_way(std::string_view path) {
  const std::string_view first = path.substr(0, path.find_first_of("/."));
  for (const std::string_view name : {"test", "tests", "doc", "docs", "example", "examples",
                                      "benchmark", "benchmarks", "scripts", "LICENSE", "README"})
    if (first == name) return true;
  return false;
}

void add_reinstall(Finding& finding, const EnvironmentCase& examined,
                   const Distribution& distribution, const std::vector<std::string>& examples,
                   size_t files, std::string advice) {
  for (const std::string& example : examples) finding.evidence.push_back(fact("file", example));
  if (files > examples.size())
    finding.evidence.push_back(fact("file", fmt::format("and {} more", files - examples.size())));
  finding.libraries.push_back(library_of(distribution, distribution.metadata));
  finding.help.push_back(
      {std::move(advice),
       installer_command(examined, "install", again(distribution.name, distribution.version)),
       Safety::kUnsafe});
}

}  // namespace cohabit
