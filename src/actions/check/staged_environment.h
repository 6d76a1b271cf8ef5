// The environment after an install, really made: a copy beside it that shares its bytes by hard
// links, into which the installer installs. What it downloads stays in the installer's own cache,
// for the real install.
#pragma once

#include <memory>
#include <string>

#include "actions/check/plan.h"
#include "base/result.h"
#include "base/scratch.h"
#include "facts/python/interpreter.h"

namespace cohabit::check {

class StagedEnvironment {
 public:
  // Fails where no directory can be made on the environment's file system, and for the system's
  // own.
  static Result<StagedEnvironment> make(const Interpreter& python);

  // The installer is the copy's own, where it is a part of the environment.
  Result<void> install(const Installer& installer, const Request& request) const;
  const std::string& python() const { return python_; }
  const std::string& prefix() const { return prefix_; }

 private:
  StagedEnvironment() = default;
  std::unique_ptr<ScratchDirectory> directory_;
  std::string prefix_, present_prefix_;  // the copy's; what it is a copy of
  std::string python_;
};

}  // namespace cohabit::check
