// Who imports a module, by the statements of the installed distributions' files.
#pragma once

#include <set>
#include <string>

#include "cli/examine.h"
#include "facts/python/installed_files.h"

namespace cohabit {

// A file that names `module` ("a.b"), or what is in it, in an import: of another distribution than
// its `owners` (normal names). Every branch and every function counts; tests and examples do not.
// Empty: there is none.
std::string importer_of(const World& world, const InstalledFiles& files, const std::string& module,
                        const std::set<std::string>& owners);

}  // namespace cohabit
