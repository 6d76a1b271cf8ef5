// What is known about failures: data/mechanisms/*.toml, one file per mechanism, which a program of
// the build makes tables of (cmake/knowledge): to parse them would be a third of the time that a
// log of 100 MB takes. The files' format is described in docs/design/why.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "findings/finding.h"

namespace cohabit::explain {

// How a text that matches is to be taken.
enum class Weight : uint8_t {
  kFailure,      // something failed
  kDegradation,  // it goes on, with less: a GPU that is not used
  kNotice,       // healthy runs print it too: an answer only where somebody asks about these lines
};

// One line (or a line and its continuation) that speaks for a mechanism. Named groups are captures.
struct Signal {
  std::string_view pattern;
  double confidence = 0;
  Weight weight = Weight::kFailure;
  std::string_view fix;  // the id of the fix that is best here; empty: in the mechanism's order
  // Looked for in the last lines only, without a literal: a shell's "Killed".
  bool at_end = false;
};

// Something elsewhere in the text that makes the mechanism more or less likely.
struct Tell {
  std::string_view pattern;
  double adds = 0;
};

struct Fix {
  std::string_view id;
  std::string_view kind;  // version change, import order, env var, library path, ...
  std::string_view text, command;
  Safety safety = Safety::kManual;
};

struct WrongAdvice {
  std::string_view advice, reason;
};

// Something to look at in an environment: see evidence.cc.
struct Check {
  std::string_view kind, argument;
};

using Texts = std::span<const std::string_view>;

struct Mechanism {
  std::string_view slug;
  std::string_view code;         // of the doctor rule that finds the same thing; may be empty
  std::string_view headline;     // {name|otherwise}: a capture, and what stands there without it
  std::string_view explanation;  // may hold captures too
  std::string_view decides;      // what tells it from its look-alikes
  Texts consequence_of;          // where one of these is there too, it is the cause
  Texts specializes;             // on the same line, this one says more than those
  std::span<const Signal> signals;
  std::span<const Tell> tells;
  std::span<const Fix> fixes;
  std::span<const WrongAdvice> wrong_advice;
  std::span<const Check> checks;
  Texts sources;
};

// By slug.
std::span<const Mechanism> known_mechanisms();

// "{library|a library} of {owner|another package}" with the captures that are there; in parentheses
// where a letter is right in front: "the driver is too old{version|}".
struct Capture {
  std::string name, value;
};
std::string fill_in(std::string_view text, const std::vector<Capture>& captures);

}  // namespace cohabit::explain
