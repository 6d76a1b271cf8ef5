// Which wheel an installed distribution is of. The installer says which wheels there are of its
// version, and where; the one that is meant has the installed list of files, hash by hash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actions/check/plan.h"
#include "actions/locks/lock.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"
#include "facts/wheels/wheel.h"

namespace cohabit::locks {

// Who is asked, and of which interpreter.
struct Question {
  check::Installer installer;
  const Interpreter* python = nullptr;
  wheels::Layout layout;            // of the site-packages that is meant
  std::vector<std::string> places;  // "--index-url X", "--no-index", ... as the user gave them
};

struct FoundWheel {
  WheelAddress wheel;
  bool is_direct = false, is_bundled = false;
  std::string why;  // it was not found
};

// One for each; all have a dist-info directory that can be read.
std::vector<FoundWheel> find_wheels(const Question& question,
                                    const std::vector<const Distribution*>& distributions);

// The wheel that this Python brings for ensurepip, with its hash.
std::optional<WheelAddress> bundled_wheel(const Interpreter& python, const std::string& name,
                                          const std::string& version);

// The installer that has installed most of it, where it is at hand; else pip, if it is new enough
// for what it has to do; else uv.
Result<check::Installer> usual_installer(const Interpreter& python,
                                         const Distributions& distributions,
                                         const char* first_pip = check::kFirstPip);

}  // namespace cohabit::locks
