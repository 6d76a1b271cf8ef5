// Orders that `cohabit verify` need not run again: they were ok, and nothing that decides about it
// has changed since.
//
// What decides: the names, versions and lists of files (RECORD, with its hashes) of all installed
// distributions, since one imports another when it is there; size and time of their native files;
// Python, the C library, the driver, variables of frameworks and of the loader; what the repair
// changes; Cohabit. Nothing is known of modules that no distribution brings (a directory on
// PYTHONPATH, a project that is installed in place): an order with one is always run.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "cli/examine.h"
#include "cli/verified_row.h"
#include "repair/repair.h"

namespace cohabit {

class VerifyCache {
 public:
  // Reads what is there; a file that is damaged counts as none.
  VerifyCache(const World& world, const Repair& repair);

  // Makes the row that of the earlier run; false: it is to be run.
  bool find(VerifiedRow& row) const;
  // Writes down those that were ok, and nothing of the others. That it cannot is said on stderr.
  void keep(const std::vector<VerifiedRow>& rows) const;

 private:
  std::string key_of(const std::vector<std::string>& imports) const;
  bool is_known(const std::vector<std::string>& imports) const;

  std::string file_;                         // empty: there is no place for it
  std::string state_;                        // digest of everything but the imports
  std::unordered_set<std::string> brought_;  // top-level names that distributions bring
  std::map<std::string, std::string> runs_;  // by key, as JSON
};

}  // namespace cohabit
