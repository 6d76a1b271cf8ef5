// One install under guard: predict; examine; run what it touches; snapshot; install; examine and
// run again; keep or take back.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "actions/snapshots/store.h"
#include "base/result.h"
#include "base/say.h"
#include "cli/kept_environment.h"

namespace cohabit {

struct GuardedInstall {
  std::string path;                  // of the installer
  std::vector<std::string> command;  // with its arguments
  std::string what;                  // for people: "pip install torch"
  bool force = false;                // keeps what it did, whatever comes of it
  bool verify = true;                // runs what it touches
};

// Refused, or what it did was taken back.
constexpr int kTakenBack = 1;

// The installer's exit code, or kTakenBack. Says what happens on stderr.
Result<int> install_guarded(const GuardedInstall& install, KeptEnvironment environment,
                            Store store);

template <class... Arguments>
void say_guarding(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  say("cohabit guard: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace cohabit
