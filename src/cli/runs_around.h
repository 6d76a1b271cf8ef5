// What really works before an install, and whether it does after it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/verified_row.h"
#include "facts/python/installed_files.h"
#include "facts/snapshots/difference.h"

namespace cohabit {

class RunsAround {
 public:
  // Runs the frameworks, alone and in pairs in both orders, as far as doctor calls the order sound
  // (`verdicts`, by "torch, tensorflow") and one of them uses a distribution that the install is
  // expected to change (`expected`: normal names; nothing: it is not known, so all). And the
  // modules of those distributions and of what requires them, the nearest first, those of their
  // entry points too, and their scripts with --help, where it is known which.
  Result<void> run_before(const std::string& python,
                          const std::map<std::string, std::string>& verdicts,
                          const std::optional<std::set<std::string>>& expected);

  struct Broken {
    std::string what;                 // "import torch, tensorflow", "black --help"
    std::string how;                  // "signal 11 (Segmentation fault) at ..."
    std::vector<PackageChange> used;  // changes of what they use
    // Those of `used` that the exception itself speaks of: by a module's name in it, else by the
    // innermost file of its traceback. Empty: it tells of none.
    std::vector<PackageChange> blamed;
    // Another version of its own package, which was asked for, has it no more, and no installed
    // file imports it: that is said, and is no reason to take anything back.
    bool is_dropped = false;
  };
  // Whether what an earlier guard has run may be taken for known: not where files have changed that
  // no list of an installer tells of.
  enum class Known { kMayBe, kNothing };
  // What worked before, comes to one of the changes, and does not work now. An exception that does
  // not come again is told, and does not count. `asked`: normal names of what the request names.
  Result<std::vector<Broken>> run_after(const std::string& python,
                                        const std::vector<PackageChange>& changes, Known known,
                                        const std::set<std::string>& asked);
  // What cannot be imported of these distributions.
  static Result<std::vector<Broken>> run_own(const std::string& python,
                                             const std::vector<PackageChange>& packages,
                                             Known known);

 private:
  using Uses = std::map<std::string, std::set<std::string>>;

  std::vector<std::vector<std::string>> add_own(World& world, const InstalledFiles& files,
                                                const std::set<std::string>& expected);
  void add_brought(const World& world, const InstalledFiles& files);
  bool is_gone(const std::string& module, World& world) const;
  bool has_left(const std::string& module, World& world) const;
  void judge_gone(const std::string& module, const World& world, const InstalledFiles& files,
                  const std::set<std::string>& asked, Broken& broken) const;
  std::vector<PackageChange> blamed_by(const VerifiedRun& run,
                                       const std::vector<PackageChange>& used, const World& world,
                                       const InstalledFiles& files) const;

  Uses brought_;  // by normal name of a distribution: the top-level modules, before and after
  Uses uses_;     // by module: normal names of the distributions that its import comes to
  // Modules and scripts that are no frameworks, with the normal names of those that have them or
  // name them as their entry points.
  Uses own_;
  std::vector<std::vector<std::string>> worked_;
  std::map<std::string, std::string> verdicts_;
};

}  // namespace cohabit
