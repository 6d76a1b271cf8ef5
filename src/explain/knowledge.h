// What is known about failures: data/mechanisms/*.toml, one file per mechanism, embedded into the
// command. The files' format is described in docs/design/why.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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
  std::string pattern;
  double confidence = 0;
  Weight weight = Weight::kFailure;
  std::string fix;  // the id of the fix that is best here; empty: in the mechanism's order
  // Looked for in the last lines only, without a literal: a shell's "Killed".
  bool at_end = false;
};

// Something elsewhere in the text that makes the mechanism more or less likely.
struct Tell {
  std::string pattern;
  double adds = 0;
};

struct Fix {
  std::string id;
  std::string kind;  // version change, import order, env var, library path, ...
  std::string text, command;
  Safety safety = Safety::kManual;
};

struct WrongAdvice {
  std::string advice, reason;
};

// Something to look at in an environment: see checks.h.
struct Check {
  std::string kind, argument;
};

struct Mechanism {
  std::string slug;
  std::string code;         // of the doctor rule that finds the same thing; may be empty
  std::string headline;     // {name|otherwise}: a capture, and what stands there without it
  std::string explanation;  // may hold captures too
  std::string decides;      // what tells it from its look-alikes
  std::vector<std::string> consequence_of;  // where one of these is there too, it is the cause
  std::vector<std::string> specializes;     // on the same line, this one says more than those
  std::vector<Signal> signals;
  std::vector<Tell> tells;
  std::vector<Fix> fixes;
  std::vector<WrongAdvice> wrong_advice;
  std::vector<Check> checks;
  std::vector<std::string> sources;
};

// The embedded files. An error is a mistake in them, with the file's name.
Result<std::vector<Mechanism>> read_knowledge();
Result<Mechanism> parse_mechanism(std::string_view name, std::string_view text);

// "{library|a library} of {owner|another package}" with the captures that are there; in parentheses
// where a letter is right in front: "the driver is too old{version|}".
struct Capture {
  std::string name, value;
};
std::string fill_in(std::string_view text, const std::vector<Capture>& captures);

// The generated table: cmake/embed_mechanisms.cmake.
struct EmbeddedFile {
  std::string_view name, text;
};
const std::vector<EmbeddedFile>& embedded_mechanisms();

}  // namespace cohabit::explain
