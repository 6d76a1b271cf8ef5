// A finding: one clash, as data. Only report/ makes lines of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

enum class Severity : uint8_t { kNote, kWarning, kError };
// How we know: it happened; it follows from the files; a distribution says so; a table says so.
enum class Certainty : uint8_t { kObserved, kSimulated, kDeclared, kTable };
enum class Safety : uint8_t { kSafe, kUnsafe, kManual };

struct Library {
  std::string path;
  std::string distribution;  // empty: none (the system's)
  std::string version;       // of the distribution
};

// In source. No file: nobody knows of one.
struct Place {
  std::string file;
  uint32_t line = 0;
};

struct Symbols {
  uint32_t count = 0;
  std::vector<std::string> examples;  // as in the file; people get them demangled
};

// One fact. `text` is a sentence part that stands before the library, e.g. "17 of its 30 references
// to itself bind to"; rows with the same consumer belong together.
struct Evidence {
  std::string kind;  // captured, stays, elsewhere, entered, call, opened, search, observed, place
  std::string text;
  std::string consumer;  // whose references, as a path; may be empty
  std::string library;   // the other party, as a path; may be empty
  int64_t count = -1;
  int64_t total = -1;
  std::string remark;
};

struct Help {
  std::string text;
  std::string command;  // can be pasted; may be empty
  Safety safety = Safety::kManual;
};

// Which processes a finding about the environment's files is of importance to: those that load one
// of the files (or one below a directory), and something of one of the distributions; none: of any.
struct Reach {
  std::vector<std::string> files;  // none: every process
  std::vector<std::string> distributions;
  bool is_met = false;  // by the process that was examined
};

struct Finding {
  std::string id;  // "CB101-1": stable within one report
  std::string code;
  std::string slug;
  Severity severity = Severity::kNote;
  Certainty certainty = Certainty::kSimulated;
  std::string headline;
  std::vector<std::string> imports;
  std::string program;  // "python app.py", which imports these; empty: they are all
  // Files that fail when they are imported or first used, of a finding that knows them: it holds
  // for a process if it loads one of them. Empty: what it holds for is known otherwise.
  std::vector<std::string> broken;
  Reach reach;
  std::string phase;  // after the imports: "the first convolution"; empty: at import, or at no time
  Place place;        // where it is raised, or set, where that is known
  std::vector<Library> libraries;  // the parties, the captured one first
  Symbols symbols;
  std::vector<Evidence> evidence;
  std::vector<Help> help;
};

std::string_view severity_name(Severity severity);
std::string_view certainty_name(Certainty certainty);
std::string_view safety_name(Safety safety);

}  // namespace cohabit
