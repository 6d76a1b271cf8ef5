// A repair: what is changed about a process so that clashing libraries live in it together. Data
// that can be written down (the rules of runtime/preload/preload.c and `cohabit run --repair FILE`)
// and applied to a process that is simulated. docs/design/fix.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/trace/trace.h"

namespace cohabit {

enum class RepairKind : uint8_t {
  kNothing,
  kOrder,
  kEnvironment,
  kPreload,
  kDlopenFlags,
  kCombination,
  kProcesses,
  kPackage,
};
std::string_view repair_kind_name(RepairKind kind);

enum class FlagChange : uint8_t { kDropGlobal, kAddDeepbind };

// Changes the flags of the dlopen calls that open this file: a path, or a name as it is given.
struct FlagRule {
  FlagChange change = FlagChange::kDropGlobal;
  std::string file;
  bool operator==(const FlagRule&) const = default;
};

struct Repair {
  std::vector<std::string> order;                              // import in this order instead
  std::vector<std::pair<std::string, std::string>> variables;  // set before the start
  std::vector<std::string> preloads;                           // in front of LD_PRELOAD, in order
  std::vector<FlagRule> flags;
  std::vector<std::string> processes;  // modules, each in a process of its own
  std::string package;                 // what is to be done to packages, in words

  // How many things are changed.
  size_t size() const {
    return (order.empty() ? 0 : 1) + variables.size() + preloads.size() + flags.size();
  }
  bool empty() const { return size() == 0; }
  // Whether `cohabit run` can carry it out: it changes how a process starts and nothing else.
  bool launches() const { return order.empty() && processes.empty() && package.empty(); }
  RepairKind kind() const;
  bool operator==(const Repair&) const = default;
};

// Both together.
Repair combine(const Repair& first, const Repair& second);
// In words, one line: "preload libz.so.1; open libx.so without RTLD_GLOBAL".
std::string describe(const Repair& repair);
// As it could be typed or written: "LD_PRELOAD=libz.so.1", "import b; import a".
std::string spec_of(const Repair& repair);

// The text of the rules, lines ended by `separator` ('\n' in a file, ';' in a variable).
std::string format_rules(const Repair& repair, char separator);
Result<Repair> parse_rules(std::string_view text);

// The environment with the repair's variables and preloads. `interposer`: path of
// libcohabit_preload.so, put in front of the preloads where there are flags to change; may be
// empty.
using Variables = std::vector<std::pair<std::string, std::string>>;
void apply_variables(const Repair& repair, const std::string& interposer, Variables& environment);
// The process, changed: how it starts and the flags of its calls. The calls themselves stay.
Trace apply(const Repair& repair, Trace trace);

}  // namespace cohabit
