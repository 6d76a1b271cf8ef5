// What an installer would do: its own answer to a dry run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actions/check/wheel_tags.h"
#include "base/result.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"

namespace cohabit::check {

enum class Tool : uint8_t { kPip, kUv };

struct Installer {
  Tool tool = Tool::kPip;
  std::vector<std::string> command;  // "ENV/bin/python -m pip"; "/usr/bin/uv pip"
};

enum class Verb : uint8_t { kInstall, kUninstall, kSync };

// As the user gave it.
struct Request {
  std::vector<std::string> arguments;  // of "install": requirements and options
  bool allow_build = false;
  Verb verb = Verb::kInstall;
};

// A distribution that would be installed.
struct Arrival {
  std::string name, version;
  std::string address;        // of the wheel: https:, http:, or file:; empty: unknown
  bool has_no_wheel = false;  // for this Python here: the installer would build it
  std::string hash;           // "sha256=HEX"; empty: not said
  bool is_requested = false;  // by name, in the request
  std::string from;           // "name @ address" as asked for; empty: from an index
};

struct Departure {
  std::string name, version;
};

struct Plan {
  std::vector<Arrival> arrivals;
  std::vector<Departure> departures;  // without what arrives in another version
  std::vector<std::string> unknowns;

  // Something comes, and where any of it is nobody says.
  bool is_blind() const {
    for (const Arrival& one : arrivals)
      if (!one.address.empty()) return false;
    return !arrivals.empty();
  }
};

// pip where the environment has it, else uv from PATH. The error says what to do.
Result<Installer> find_installer(const Interpreter& python, const Distributions& distributions);

// The same where it only has to answer: a pip that is too old for that leaves it to uv. `wanted`:
// what it is asked to do, for the error.
constexpr const char* kFirstPip = "22.2";           // install --dry-run --report
constexpr const char* kFirstPipForOthers = "22.3";  // pip --python
Result<Installer> find_answering(const Interpreter& python, const Distributions& distributions,
                                 const char* first_pip = kFirstPip);

// How to ask it so that no build can be started. --only-binary does not hold for directories,
// repositories and archives that are named by place: pip runs their code for their metadata. It
// starts them by sys.executable, and nothing else in a dry run (pip 22.2 to 26.3). As it is: uv,
// and a pip that starts another one (--python).
std::vector<std::string> command_without_builds(const Installer& installer);

// What asking it costs, or that it is another one than the environment's; a sentence for people.
// Empty: nothing to say.
std::string cost_of_asking(const Installer& installer, const Distributions& distributions);

// This machine, and that interpreter.
TagTarget target_of(const Interpreter& python);

// Asks it. Its configuration decides where packages come from, with which credentials and proxy.
Result<Plan> ask_installer(const Installer& installer, const Interpreter& python,
                           const Request& request);

// The two installers' ways to it.
Result<Plan> ask_pip(const Installer& installer, const Request& request);
Result<Plan> ask_uv(const Installer& installer, const Interpreter& python, const Request& request);
// pip's --report.
Result<Plan> read_pip_report(const std::string& text);
// The lines " + name==version" and " - name==version" of uv's dry run.
Plan read_uv_lines(const std::string& text);
// Puts the addresses of a pylock.toml (PEP 751) into the plan.
Result<void> add_addresses(const std::string& pylock, const TagTarget& target, Plan& plan);

}  // namespace cohabit::check
