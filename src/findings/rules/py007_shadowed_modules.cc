// `python app.py` puts the directory of app.py first in sys.path, `python -m`, `-c` and an
// interactive Python the current one; PYTHONPATH comes next. A file torch.py there is what `import
// torch` gets, for the program and for every package that wanted the real one.
#include <fmt/format.h>

#include <set>

#include "base/paths.h"
#include "findings/rules/rules.h"
#include "imports/finder.h"

namespace cohabit::rules {
namespace {

constexpr size_t kMaxFindings = 20;

// Where a module comes from: its file, or for a namespace its first directory.
std::string file_of(const python::ModuleSpec& spec) {
  return spec.path.empty() && !spec.search.empty() ? spec.search.front() : spec.path;
}

struct Shadowed {
  std::string module;
  std::string front, behind;
  const Distribution* distribution = nullptr;  // null: of the standard library
};

class Search {
 public:
  explicit Search(const EnvironmentCase& examined)
      : examined_(examined), finder_(examined.tree, examined.interpreter) {}

  // What `directory` has that a directory after it in sys.path has too. `rest`: those after it.
  void look(const std::string& directory, const std::vector<std::string>& rest) {
    python::Finder& finder = finder_;
    for (const std::string& name : finder.names_in({directory})) {
      if (found_.size() == kMaxFindings) return;
      if (is_by_the_way(name) || finder.is_builtin(name)) continue;
      const auto front = finder.find(name, {directory});
      const auto behind = finder.find(name, rest);
      if (!front || !behind || front->kind == python::ModuleKind::kNamespace ||
          behind->kind == python::ModuleKind::kNamespace)
        continue;
      add({name, file_of(*front), file_of(*behind), nullptr});
    }
  }

  std::vector<Shadowed> take() { return std::move(found_); }

 private:
  void add(Shadowed one) {
    const Tree& tree = examined_.tree;
    // An editable install, or the project's own directory named twice.
    if (tree.real_path(one.front) == tree.real_path(one.behind)) return;
    one.distribution = owner_of(one.behind);
    const std::string& standard = examined_.interpreter.standard_library;
    const bool is_standard =
        is_below(one.behind, standard) && one.behind.find("/site-packages/") == std::string::npos;
    if ((one.distribution || is_standard) && names_.insert(one.module).second)
      found_.push_back(std::move(one));
  }

  const Distribution* owner_of(const std::string& path) const {
    for (const InstalledFiles::Row& row : examined_.files.rows()) {
      const Distribution& owner = examined_.owner(row);
      if (path.ends_with(row.record.path) && path.starts_with(owner.site) &&
          examined_.files.path_of(row) == path)
        return &owner;
    }
    return nullptr;
  }

  const EnvironmentCase& examined_;
  python::Finder finder_;
  std::set<std::string> names_;
  std::vector<Shadowed> found_;
};

// The entries of sys.path that PYTHONPATH put there: those before the standard library.
size_t leading_entries(const Interpreter& interpreter) {
  const std::string& standard = interpreter.standard_library;
  const std::string zip_directory = standard.substr(0, standard.rfind('/') + 1);
  size_t count = 0;
  for (const std::string& entry : interpreter.module_path) {
    if (entry == standard || (entry.ends_with(".zip") && entry.starts_with(zip_directory))) break;
    count++;
  }
  return count == interpreter.module_path.size() ? 0 : count;
}

Finding describe(const Shadowed& one, const std::string& why) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kSimulated;
  const std::string whose =
      one.distribution ? label(*one.distribution) : std::string("the standard library");
  finding.headline = fmt::format("`import {}` finds {}, which hides {} of {}", one.module,
                                 one.front, one.module, whose);
  finding.libraries.push_back({one.front, "", ""});
  finding.libraries.push_back(one.distribution ? library_of(*one.distribution, one.behind)
                                               : Library{one.behind, "", ""});
  finding.evidence.push_back(fact("place", why, one.front));
  finding.evidence.push_back(fact("place", fmt::format("hidden: {}", one.behind), one.behind));
  finding.help.push_back(
      {"rename the file, if it is not meant to stand in for " + whose, "", Safety::kManual});
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const std::vector<std::string>& path = examined.interpreter.module_path;
  const auto look = [&](const std::string& directory, size_t first_after, const char* why) {
    Search search(examined);
    search.look(directory, {path.begin() + static_cast<ptrdiff_t>(first_after), path.end()});
    for (const Shadowed& one : search.take())
      if (findings.size() < kMaxFindings)
        findings.push_back(
            describe(one, fmt::format("found: {}; {} {}", one.front, directory, why)));
  };
  if (examined.options.first_directory)
    look(*examined.options.first_directory, 0,
         "is first in sys.path (the program's directory; with -c, -m or an interactive Python the "
         "current one)");
  const size_t leading = leading_entries(examined.interpreter);
  for (size_t i = 0; i < leading; i++) look(path[i], i + 1, "is in PYTHONPATH");
  return findings;
}

}  // namespace

const Rule kPy007 = {
    "PY007",
    "shadowed-modules",
    Severity::kWarning,
    "A file beside the program, in the current directory, or in PYTHONPATH, hides an installed "
    "module.",
    "  Modules and packages in the directory that stands first in sys.path (of the script; without "
    "one\n"
    "  the current one, as for -c, -m and an interactive Python) or in PYTHONPATH that have the "
    "name of a module of a distribution or of "
    "the\n"
    "  standard library. Tests, documentation and examples are left out.",
    "  `import` takes the first file it finds. Packages that need the real module get the other "
    "one\n"
    "  too, and fail in places that do not point to it (\"has no attribute\", circular imports).",
    "  A file torch.py beside app.py: `import torch` runs that file.",
    "  Rename the file and remove its __pycache__. PYTHONSAFEPATH=1 (or python -P) leaves the\n"
    "  directory out of sys.path.",
    "  A copy that is meant (vendored, patched) is reported too; an editable install is not.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
