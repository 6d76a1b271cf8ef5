#include <fmt/format.h>

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

// What a row of a table says: its third column is who reads, its fourth where that stands.
Finding told_by(const TableRow& row, Severity severity, std::string headline, std::string help) {
  Finding finding;
  finding.severity = severity;
  finding.certainty = Certainty::kTable;
  finding.headline = std::move(headline);
  finding.evidence.push_back(
      {"declared", fmt::format("{} ({})", row[2], row[3]), "", "", -1, -1, ""});
  finding.help.push_back({std::move(help), "", Safety::kManual});
  return finding;
}

// Children get it: programs that set it for them are right to do so.
Finding read_at_start(const python::PlannedVariable& variable, const TableRow& row) {
  return told_by(
      row, row[1] == "note" ? Severity::kNote : Severity::kWarning,
      fmt::format("{} is set in {}: too late for this process, {} reads it at its start",
                  variable.name, place_of(variable), row[2]),
      "set it before the process is started: in the shell, the service or the container (for "
      "processes that it starts itself it is in time)");
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
    Finding finding = told_by(
        row, Severity::kWarning,
        fmt::format("{} is set in {}: too late, {} was loaded before and reads it then",
                    variable.name, place_of(variable), short_name(examined.process, reader)),
        "set it before the first import that loads this library, or before the process is started");
    finding.libraries.push_back(library_of(examined.process, reader));
    return finding;
  }
  return {};
}

// Why it is too late, if it is.
std::optional<Finding> judge(const Case& examined, const python::PlannedVariable& variable) {
  static const auto at_start = table_rows(kTable, 4), at_load = table_rows(kLoadTable, 4);
  for (const TableRow& row : at_start)
    if (row[0] == variable.name) return read_at_start(variable, row);
  if (!variable.asked_by.empty()) return asked_before(examined, variable);
  return read_at_load(examined, variable, at_load);
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  if (!examined.plan) return findings;
  std::set<std::string_view> told;
  for (const python::PlannedVariable& variable : examined.plan->variables_changed) {
    if (told.contains(variable.name)) continue;
    auto finding = judge(examined, variable);
    if (!finding) continue;
    told.insert(variable.name);
    finding->place = {variable.file, variable.line};
    findings.push_back(std::move(*finding));
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
