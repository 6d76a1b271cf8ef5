// What the user of an environment imports, as far as the environment tells: its frameworks, and the
// packages that somebody asked the installer for by name.
#pragma once

#include <string>
#include <vector>

#include "cli/examine.h"
#include "facts/python/installed_files.h"

namespace cohabit {

// What a user of the distribution would import: the module of its name, else all that do not begin
// with an underscore; of one that is in a namespace alone (PEP 420) "google.cloud.storage", the
// outermost of its packages, a few of them at most. Packages in namespaces that are an empty file
// are none.
std::vector<std::string> own_modules(const InstalledFiles& files, uint32_t distribution,
                                     const std::string& name);
// And what else lies at the top of it (pkg_resources of setuptools), a few of them at most.
std::vector<std::string> all_modules(const InstalledFiles& files, uint32_t distribution,
                                     const std::string& name);
// Modules besides those that its entry points name, those of scripts first, a few at most.
std::vector<std::string> modules_of_entry_points(const World& world,
                                                 const Distribution& distribution);
// Scripts in bin/ that it installs and whose module reads its options by a library that knows
// --help (argparse, click, ...): asked for that, they do nothing else. A few at most.
std::vector<std::string> scripts_with_help(World& world, const Distribution& distribution);

// Paired are the frameworks, then other distributions with native files that were asked for, where
// these are few; the rest of what was asked for is looked at alone.
// Asked for: marked as REQUESTED, and not there for another that was asked for and names it in a
// requirement, one of an extra included. Lock files mark everything that they install.
ExaminedModules find_examined_modules(const World& world);

}  // namespace cohabit
