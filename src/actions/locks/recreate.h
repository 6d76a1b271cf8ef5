// Making an equal environment: the same Python, the same wheels, by an installer.
//
// It is made beside its place, under a name of its own, and renamed when all of it is there. The
// place stands in scripts and in what activates the environment: they are written again with the
// final name, and their rows in RECORD with them. Nothing that came out of a wheel holds the name,
// which nobody could guess.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actions/check/plan.h"
#include "actions/locks/lock.h"
#include "base/result.h"
#include "base/scratch.h"

namespace cohabit::locks {

struct Recipe {
  check::Installer installer;
  std::string base_python;  // the executable that the new environment is made of
  bool by_uv_venv = false;  // `uv venv` makes it, else `python -m venv`
  std::string uv;           // where that is
  bool sees_base_packages = false;
  std::vector<std::string> places;  // "--index-url X" as the user gave them
};

class NewEnvironment {
 public:
  // `place`: absolute; there is nothing yet. Makes an empty environment beside it.
  static Result<NewEnvironment> make(const Recipe& recipe, const std::string& place);

  std::string python() const { return directory_->path() + "/bin/python"; }
  const std::string& prefix() const { return directory_->path(); }  // until it is in its place
  std::string site() const;

  // Nothing but these wheels; their hashes are checked.
  Result<void> install(const Recipe& recipe, const Lock& lock) const;
  // The same of a requirements file with hashes.
  Result<void> install_requirements(const Recipe& recipe, const std::string& file) const;
  // Has files name the final place.
  Result<void> name_place();
  // The last step: it is there, under its name.
  Result<void> put_in_place();

 private:
  NewEnvironment() = default;
  Result<void> run_installer(const Recipe& recipe, const std::vector<std::string>& more) const;

  std::unique_ptr<ScratchDirectory> directory_;
  std::string place_;
};

}  // namespace cohabit::locks
