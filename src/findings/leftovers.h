// What installs and removals leave behind, in the directories of packages of an environment, in the
// user's site directory, and in the caches of compilers.
//
// Nothing is judged by its name alone: a file is a leftover because no RECORD lists it, because its
// source is gone, or because nobody requires or needs what it belongs to.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/variables.h"
#include "facts/python/file_claims.h"
#include "findings/environment.h"

namespace cohabit {

enum class LeftoverKind {
  kStoppedUninstall,  // "~orch": what a pip that was stopped had put aside
  kBrokenMetadata,    // x.dist-info without METADATA: no installer sees it, importlib trips over it
  kBytecode,          // compiled files whose source is gone, or of another Python
  kEmptyDirectory,    // importable as an empty package
  kOrphan,            // an nvidia-* distribution that nobody requires, asked for or needs
  kUnused,            // the same, but somebody asked for it, or for one that requires it, by name
  kUnclaimed,         // files of no RECORD
  kUserSite,          // a distribution in the user's site directory that hides the environment's
  kCompileCache,      // entries older than the framework that made them
};
constexpr size_t kLeftoverKinds = 9;
std::string_view leftover_name(LeftoverKind kind);  // "stopped-uninstall"

struct Leftover {
  LeftoverKind kind = LeftoverKind::kUnclaimed;
  std::string root;                // the environment, the user's site directory, or the cache
  std::vector<std::string> paths;  // absolute; a directory means all that is below it
  std::string what, why;
  size_t files = 0;
  uint64_t bytes = 0;
};

// Those that nobody can want back. The others may be somebody's own work, or be shared with another
// environment.
std::set<LeftoverKind> certain_leftovers();

// The directories in which frameworks keep what they compile, for these variables.
std::vector<std::string> compile_caches(const VariableMap& variables);

// `prefix`: that of the environment, without symlinks. A directory is named as a whole only if all
// that is in it is of one of the kinds in `wanted`. Fails if a directory cannot be read.
Result<std::vector<Leftover>> find_leftovers(const EnvironmentCase& examined,
                                             const FileClaims& claims, const std::string& prefix,
                                             const std::set<LeftoverKind>& wanted);

}  // namespace cohabit
