#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/rows.h"
#include "facts/python/requirement.h"
#include "findings/environment.h"
#include "findings/expected.h"
#include "findings/importers.h"
#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

// The first part of the missing module's name: what a distribution would provide.
std::string missing_top(const std::string& failure) {
  const std::string name = missing_module(failure);
  return name.substr(0, name.find('.'));
}

// The installed distributions that the message names, "Numba needs NumPy 1.26 or less".
std::vector<Library> named_distributions(const Case& examined, std::string_view failure) {
  constexpr size_t kMost = 5;
  std::vector<Library> named;
  if (!examined.distributions) return named;
  failure = failure.substr(0, failure.find(" (/"));  // not the path of a file
  for (size_t begin = 0; begin < failure.size() && named.size() < kMost;) {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    };
    const auto end = static_cast<size_t>(
        std::find_if_not(failure.begin() + static_cast<ptrdiff_t>(begin), failure.end(), is_part) -
        failure.begin());
    const Distribution* one =
        end > begin ? examined.distributions->find(failure.substr(begin, end - begin)) : nullptr;
    begin = end + 1;
    if (one && std::none_of(named.begin(), named.end(),
                            [&](const Library& known) { return known.path == one->metadata; }))
      named.push_back({one->metadata, one->name, one->version});
  }
  return named;
}

constexpr std::string_view kModuleNames =
#include "data/module_names.inc"
    ;

// What brings a module that has another name than its distribution.
std::optional<std::string> known_requirement(std::string_view module) {
  for (const TableRow& row : table_rows(kModuleNames, 3))
    if (row[0] == module) return std::string(row[1]);
  return std::nullopt;
}

// A name that the user mistyped; one in a package's own code is right.
Help how_to_bring(const Case& examined, const python::Plan& plan, const std::string& module) {
  const auto& there = plan.importable;
  if (std::find(there.begin(), there.end(), module) != there.end())
    return {fmt::format("{} is there, and has no such module: see its name, or install a version "
                        "that has it",
                        module),
            "", Safety::kManual};
  if (const auto known = known_requirement(module); known && examined.distributions)
    return {fmt::format("install {}, which provides the module {}", *known, module),
            installer_command(examined.trace.start.program, *examined.distributions, "install",
                              {*known}),
            Safety::kUnsafe};
  const auto near = plan.failure_file.starts_with('/') ? std::nullopt : nearest_name(module, there);
  return {fmt::format("install what provides the module {}{}", module,
                      near ? fmt::format(" (did you mean {}, which is there?)", *near) : ""),
          "", Safety::kManual};
}

// The installed distribution whose RECORD lists the module: it is lost.
std::optional<Library> brought_by(const Case& examined, const std::string& module) {
  if (!examined.distributions) return std::nullopt;
  const Tree& tree = examined.process.simulation().images().tree();
  for (const Distribution& one : examined.distributions->all()) {
    std::string record("\n");
    record.append(tree.read_text(one.metadata + "/RECORD").value_or(""));
    for (const char* suffix : {"/__init__.py", ".py"}) {
      const std::string file = fmt::format("{}/{}{}", one.site, module, suffix);
      const bool is_listed =
          record.find(fmt::format("\n{}{},", module, suffix)) != std::string::npos;
      if (is_listed && !tree.stat(file)) return Library{file, one.name, one.version};
    }
  }
  return std::nullopt;
}

constexpr std::string_view kOfImports[] = {"ImportError", "ModuleNotFoundError", "AttributeError",
                                           "TypeError",   "NameError",           "OSError"};

std::string what_happens(const python::Plan& plan) {
  if (!plan.failure_is_exit) return plan.failure + " is raised";
  return fmt::format("the process ends in line {} of {}, by {},", plan.failure_line,
                     last_part(plan.failure_file), plan.failure);
}

// "No module named x.__main__; 'x' is a package and cannot be directly executed": x.
std::string package_without_main(std::string_view failure) {
  constexpr std::string_view kEnd = "' is a package and cannot be directly executed";
  if (!failure.ends_with(kEnd)) return "";
  failure.remove_suffix(kEnd.size());
  return std::string(failure.substr(failure.rfind('\'') + 1));
}

// Errors that come of another version of what is imported, or of none. Others are raised on
// purpose.
bool is_of_what_is_imported(const python::Plan& plan) {
  if (plan.failure_declared || !plan.failure_cause.empty()) return true;
  const std::string name = plan.failure.substr(0, plan.failure.find(':'));
  return std::any_of(std::begin(kOfImports), std::end(kOfImports),
                     [&](std::string_view one) { return name == one; });
}

const char* reason_of(const python::Plan& plan) {
  if (plan.failure_is_exit)
    return "it asks for the end of the process, and what comes after is not imported";
  if (plan.failure.starts_with("SyntaxError"))
    return "the file is damaged, or written for another version of Python";
  return is_of_what_is_imported(plan) ? "what it imports is not what it was written for"
                                      : "it raises this error itself, by what it checks there";
}

Help what_to_see(const Case& examined, const python::Plan& plan) {
  std::string module = missing_top(plan.failure);
  if (module.empty()) module = missing_top(plan.failure_cause);
  if (const auto lost = module.empty() ? std::nullopt : brought_by(examined, module))
    return reinstall(examined, *lost);
  if (!module.empty()) return how_to_bring(examined, plan, module);
  if (const std::string package = package_without_main(plan.failure); !package.empty())
    return {fmt::format("{0} is there, and is not made to be run: name one of its modules that is, "
                        "or examine `import {0}` with --imports {0}",
                        package),
            "", Safety::kManual};
  const std::string line = plan.failure_file.starts_with('/') && plan.failure_line
                               ? fmt::format("line {} of {}", plan.failure_line, plan.failure_file)
                               : "that line";
  return {fmt::format("see {}: {}", line, reason_of(plan)), "", Safety::kManual};
}

std::vector<Finding> check(const Case& examined) {
  if (!examined.plan || examined.plan->failure.empty()) return {};
  const python::Plan& plan = *examined.plan;
  Finding finding;
  finding.severity = Severity::kError;
  finding.certainty = plan.failure_declared ? Certainty::kDeclared : Certainty::kSimulated;
  finding.headline = what_happens(plan) + when_imported(examined);
  if (plan.failure_file.starts_with('/')) {  // else it is the statement itself
    // Native code has no lines.
    if (plan.failure_line) finding.place = {plan.failure_file, plan.failure_line};
    finding.libraries.push_back({plan.failure_file, "", ""});
    const std::string_view how = plan.failure_is_exit ? "ends" : "raised";
    finding.evidence.push_back({"raised",
                                plan.failure_line
                                    ? fmt::format("{} in line {} of", how, plan.failure_line)
                                    : fmt::format("{} in", how),
                                "", plan.failure_file, -1, -1, ""});
  }
  if (!plan.failure_cause.empty())
    finding.evidence.push_back(fact("raised", "raised for " + plan.failure_cause));
  for (Library& library : named_distributions(examined, plan.failure))
    finding.libraries.push_back(std::move(library));
  finding.help.push_back(what_to_see(examined, plan));
  return {std::move(finding)};
}

Finding withdrawn(const std::string& module, const std::string& importer, const Distribution& old,
                  const Distribution& next) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  finding.headline =
      fmt::format("{} has no module {} any more, and {} imports it", label(next), module, importer);
  finding.libraries.push_back(library_of(old, old.metadata));
  finding.evidence.push_back(fact("file", fmt::format("{} brings {}", label(old), module)));
  finding.evidence.push_back(fact("file", importer + " imports it", importer));
  finding.help.push_back(
      {fmt::format("keep a version of {} that has {}", next.name, module), "", Safety::kManual});
  return finding;
}

}  // namespace

std::vector<Finding> expect_withdrawn(const EnvironmentCase& before, const EnvironmentCase& after,
                                      const std::set<std::string>& changed) {
  std::set<std::string_view> stay, known;
  for (const InstalledFiles::Row& row : after.files.rows()) {
    stay.insert(import_name(row.record.path));
    known.insert(after.owner(row).name);
  }
  const auto is_there_after = [&](uint32_t distribution) {
    return !changed.contains(normal_name(before.all()[distribution].name));
  };
  std::vector<Finding> findings;
  for (const std::string& name : changed) {
    const Distribution* old = before.distributions.find(name);
    const Distribution* next = after.distributions.find(name);
    if (!old || !next || !known.contains(next->name)) continue;
    const auto [begin, end] =
        before.files.rows_of(static_cast<uint32_t>(old - before.all().data()));
    for (size_t i = begin; i < end; i++) {
      const std::string_view module = import_name(before.files.rows()[i].record.path);
      if (module.empty() || module[0] == '_' || !stay.insert(module).second) continue;
      const std::string importer =
          importer_of(before.tree, before.files, std::string(module), is_there_after);
      if (!importer.empty())
        findings.push_back(withdrawn(std::string(module), importer, *old, *next));
    }
  }
  return findings;
}

const Rule kPy302 = {
    "PY302",
    "import-fails",
    Severity::kError,
    "The import would end with an ImportError, or end the process, by the source alone.",
    "  The modules' source was followed as Python would run it, and an ImportError, or an OSError "
    "of\n"
    "  a library that cannot be opened, reached the top: a module that is not installed, a name "
    "that\n"
    "  another version has, an extension module whose libraries are not found. So does a module "
    "that\n"
    "  ends the process where it is imported (sys.exit, os._exit, os.abort).",
    "  The program does not start.",
    "  paddle imports setuptools, which its metadata does not ask for: in an environment without "
    "it\n"
    "  `import paddle` ends with ModuleNotFoundError: No module named 'setuptools'.",
    "  Install what is missing, or the version that the importing module was written for.",
    "  Other errors are predicted where a module raises them itself: at its own level, where an "
    "import\n"
    "  has failed, or because of a version (`declared`); and an AttributeError of a module that "
    "certainly\n"
    "  has no such name. What only a running program knows is taken the way that raises nothing.",
    check,
};

}  // namespace cohabit::rules
