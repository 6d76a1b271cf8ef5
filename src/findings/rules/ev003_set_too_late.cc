#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/paths.h"
#include "base/rows.h"
#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

constexpr std::string_view kTable =
#include "data/read_at_start.inc"
    ;
constexpr std::string_view kLoadTable =
#include "data/read_at_load.inc"
    ;

std::string place_of(const python::PlannedVariable& variable) {
  return fmt::format("line {} of {}", variable.line,
                     variable.file.empty() ? "the program" : variable.file);
}

// Children get it: programs that set it for them are right to do so.
Finding read_at_start(const python::PlannedVariable& variable, const TableRow& row) {
  Finding finding;
  finding.severity = row[1] == "note" ? Severity::kNote : Severity::kWarning;
  finding.certainty = Certainty::kTable;
  finding.headline =
      fmt::format("{} is set in {}: too late for this process, {} reads it at its start",
                  variable.name, place_of(variable), row[2]);
  finding.evidence.push_back(
      {"declared", fmt::format("{} ({})", row[2], row[3]), "", "", -1, -1, ""});
  finding.help.push_back(
      {"set it before the process is started: in the shell, the service or the container (for "
       "processes that it starts itself it is in time)",
       "", Safety::kManual});
  return finding;
}

Finding asked_before(const Case& examined, const python::PlannedVariable& variable) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kSimulated;
  const Library asker = library_at(examined, variable.asked_by);
  finding.headline =
      fmt::format("{} is set in {}, after {} has asked for it", variable.name, place_of(variable),
                  asker.distribution.empty() ? variable.asked_by : asker.distribution);
  finding.libraries.push_back(asker);
  finding.evidence.push_back({"file", fmt::format("asked for in line {} of", variable.asked_line),
                              "", variable.asked_by, -1, -1, ""});
  finding.help.push_back(
      {"set it before the first import of what asks for it, or before the process is started", "",
       Safety::kManual});
  return finding;
}

// The object whose file name begins so, if it was mapped by one of the first opens.
sim::ObjectId mapped_before(const Case& examined, std::string_view name, uint32_t opens) {
  const auto& calls = examined.trace.calls;
  uint32_t end = 0;
  for (uint32_t seen = 0; end < calls.size() && seen < opens; end++)
    seen += calls[end].kind == CallKind::kDlopen;
  const auto& objects = examined.process.simulation().objects();
  for (sim::ObjectId id = 0; id < objects.size(); id++)
    if (last_part(objects[id].name).starts_with(name) &&
        (objects[id].call == kNone || objects[id].call < end))
      return id;
  return kNone;
}

// Its constructor has run: it asks no more.
std::optional<Finding> read_at_load(const Case& examined, const python::PlannedVariable& variable,
                                    const std::vector<TableRow>& rows) {
  for (const TableRow& row : rows) {
    if (row[0] != variable.name) continue;
    const sim::ObjectId reader = mapped_before(examined, row[1], variable.opens_before);
    if (reader == kNone) continue;
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.certainty = Certainty::kTable;
    finding.headline =
        fmt::format("{} is set in {}: too late, {} was loaded before and reads it then",
                    variable.name, place_of(variable), short_name(examined.process, reader));
    finding.libraries.push_back(library_of(examined.process, reader));
    finding.evidence.push_back(
        {"declared", fmt::format("{} ({})", row[2], row[3]), "", "", -1, -1, ""});
    finding.help.push_back(
        {"set it before the first import that loads this library, or before the "
         "process is started",
         "", Safety::kManual});
    return finding;
  }
  return {};
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  if (!examined.plan) return findings;
  const auto rows = table_rows(kTable, 4);
  const auto load_rows = table_rows(kLoadTable, 4);
  std::set<std::string_view> seen;
  for (const python::PlannedVariable& variable : examined.plan->variables_changed) {
    if (seen.contains(variable.name)) continue;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const TableRow& one) { return one[0] == variable.name; });
    if (row == rows.end() && variable.asked_by.empty()) {
      if (auto late = read_at_load(examined, variable, load_rows)) {
        seen.insert(variable.name);
        findings.push_back(std::move(*late));
      }
      continue;
    }
    seen.insert(variable.name);
    findings.push_back(row != rows.end() ? read_at_start(variable, *row)
                                         : asked_before(examined, variable));
  }
  return findings;
}

}  // namespace

const Rule kEv003 = {
    "EV003",
    "set-too-late",
    Severity::kWarning,
    "The program sets a variable after it was read.",
    "  Variables that the user's own code sets to another value: those that ld.so, the C library "
    "or\n"
    "  Python read when a process is started (data/read_at_start.tsv; a note where programs set "
    "them\n"
    "  for their children by habit), those that an installed module has asked for before, and "
    "those\n"
    "  that a library reads when it is loaded (data/read_at_load.tsv), if it was loaded before.",
    "  The setting has no effect, and nobody says so.",
    "  `os.environ[\"LD_LIBRARY_PATH\"] = ...` at the top of a script: ld.so goes on with what was "
    "set "
    "when\n"
    "  the process was started.",
    "  Set it before the process is started, or before the import that reads it.",
    "  What other native code asks for by getenv is not seen; a module may ask again later, and "
    "what "
    "runs\n"
    "  only in functions that are not called is not followed.",
    check,
};

}  // namespace cohabit::rules
