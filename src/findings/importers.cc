#include "findings/importers.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/together.h"
#include "findings/environment.h"
#include "imports/imported_names.h"

namespace cohabit {
namespace {

constexpr uint64_t kLargestSource = uint64_t{4} << 20;

// "a.b" of "a/b/c.py" and of "a/b/__init__.py": what its relative imports start from.
std::string package_of(std::string_view path) {
  std::string package(path.substr(0, std::min(path.rfind('/'), path.size())));
  if (path.find('/') == path.npos) return "";
  std::replace(package.begin(), package.end(), '/', '.');
  return package;
}

bool names(const python::ImportedNames& found, const std::string& module) {
  const auto is_it = [&](const std::string& name) {
    return name == module || name.starts_with(module + ".");
  };
  return std::any_of(found.names.begin(), found.names.end(), [&](const python::ImportedName& one) {
    if (one.may_fail) return false;
    return is_it(one.module) ||
           std::any_of(one.members.begin(), one.members.end(),
                       [&](const std::string& member) { return is_it(one.module + "." + member); });
  });
}

bool is_test(std::string_view path) {
  return is_by_the_way(path) || path.find("/tests/") != path.npos ||
         path.find("/test/") != path.npos || path.ends_with("conftest.py");
}

// Most files do not have the word, and need not be parsed.
bool imports(const Tree& tree, const std::string& file, std::string_view path,
             const std::string& module) {
  const std::string word = module.substr(module.rfind('.') + 1);
  auto text = tree.read_text(file, kLargestSource);
  if (!text || text->find(word) == std::string::npos) return false;
  return names(python::imported_names(python::Syntax(std::move(*text)), package_of(path)), module);
}

}  // namespace

std::string importer_of(const Tree& tree, const InstalledFiles& files, const std::string& module,
                        const std::function<bool(uint32_t distribution)>& counts) {
  std::vector<const InstalledFiles::Row*> sources;
  for (const InstalledFiles::Row& row : files.rows())
    if (row.record.path.ends_with(".py") && !is_test(row.record.path) && counts(row.distribution))
      sources.push_back(&row);
  std::mutex finding;
  std::string found;  // the first by name, so that it is the same each time
  together(sources.size(), [&](size_t i) {
    const std::string file = files.path_of(*sources[i]);
    if (!imports(tree, file, sources[i]->record.path, module)) return;
    const std::lock_guard lock(finding);
    if (found.empty() || file < found) found = file;
  });
  return found;
}

}  // namespace cohabit
