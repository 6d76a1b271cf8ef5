// The metadata of an environment as it would be after an install, in a scratch directory that
// stands for its site-packages: what stays is linked, what would come is written there. Whatever
// reads METADATA and RECORD of an installed environment reads that one in the same way.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "actions/check/fetch.h"
#include "actions/check/plan.h"
#include "base/result.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"

namespace cohabit::check {

// The directory that the installer fills. The error says that there is none.
Result<std::string> find_site(const Interpreter& python);
wheels::Layout layout_of(const Interpreter& python, const std::string& site);

class ExpectedEnvironment {
 public:
  static Result<ExpectedEnvironment> make(const Interpreter& python, const std::string& site,
                                          const Distributions& present, const Plan& plan,
                                          const Fetched& fetched, Tool tool);
  ExpectedEnvironment(ExpectedEnvironment&& other) noexcept;
  ~ExpectedEnvironment();

  // What arrivals say about the versions of others; for the rules that read modules.
  Result<void> add_modules(const std::vector<wheels::Module>& modules) const;

  const Interpreter& python() const { return python_; }
  const Distributions& distributions() const { return distributions_; }
  // Its site-packages, and those of the environment it stands for.
  const std::string& site() const { return site_; }
  const std::string& present_site() const { return present_site_; }

 private:
  ExpectedEnvironment() = default;
  Result<void> link_what_stays(const Distributions& present, const Plan& plan);
  Result<void> link_metadata(const Distribution& one) const;
  Result<void> write_what_comes(const Plan& plan, const Fetched& fetched, Tool tool);

  std::string scratch_;  // empty: moved from
  std::string site_, present_site_;
  std::string prefix_;             // from site_ to the environment's, "../../.."
  std::set<std::string> scripts_;  // that installers would make: names
  Interpreter python_;
  Distributions distributions_;
};

}  // namespace cohabit::check
