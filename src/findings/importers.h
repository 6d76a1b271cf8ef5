// Who imports a module, by the statements of the installed distributions' files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/tree.h"
#include "facts/python/installed_files.h"

namespace cohabit {

// A file that names `module` ("a.b"), or what is in it, in an import, of the distributions
// (indices) that count. Every branch and every function does, but for a `try` that catches an
// ImportError; tests and examples do not. Empty: there is none.
std::string importer_of(const Tree& tree, const InstalledFiles& files, const std::string& module,
                        const std::function<bool(uint32_t distribution)>& counts);

}  // namespace cohabit
