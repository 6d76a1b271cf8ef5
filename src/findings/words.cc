#include "findings/words.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <set>

#include "findings/mangled.h"

namespace cohabit {
namespace {

using sim::ObjectId;

constexpr int kRtldGlobal = 0x100;
constexpr size_t kExamples = 12;

std::string program_word(const ProcessView& process, ObjectId id) {
  const std::string& name = process.object(id).name;
  return name.empty() ? "the program" : name.substr(name.rfind('/') + 1);
}

// The import of the statement that an object is there for, by the package directory it lies in.
std::string import_of(const Case& examined, ObjectId id) {
  const std::string path = path_of(examined.process, id);
  for (const std::string& name : examined.imports) {
    const std::string package = name.substr(0, name.find('.'));
    if (path.find("/" + package + "/") != std::string::npos ||
        path.find("/" + package + ".") != std::string::npos)
      return name;
  }
  return "";
}

// The call that put `provider` into the global scope; kNone if it was there from the start.
uint32_t promoting_call(const Case& examined, ObjectId provider) {
  const auto& results = examined.process.simulation().results();
  for (uint32_t i = 0; i < results.size() && i < examined.trace.calls.size(); i++) {
    const ObjectId opened = results[i].object;
    if (opened == kNone || !(examined.trace.calls[i].flags & kRtldGlobal)) continue;
    const auto& list = examined.process.object(opened).search_list;
    if (opened == provider || std::find(list.begin(), list.end(), provider) != list.end()) return i;
  }
  return kNone;
}

void add_library(const Case& examined, ObjectId id, Finding& finding) {
  Library library = library_of(examined.process, id);
  for (const Library& known : finding.libraries)
    if (known.path == library.path) return;
  finding.libraries.push_back(std::move(library));
}

std::string symbol_text(const Case& examined, uint32_t binding) {
  const ProcessView& process = examined.process;
  return std::string(process.simulation().images().name(
      process.reference(process.simulation().bindings()[binding]).name));
}

// Whether the consumer binds more names to their own provider than those of the group's family: a
// framework that carries a part of another library has names of many.
bool is_part_of_more(const Case& examined, const CaptureGroup& group) {
  const ProcessView& process = examined.process;
  std::set<NameId> names;
  process.simulation().bindings().each(
      [&](ObjectId from, ObjectId to) { return from == group.consumer && to == group.own; },
      [&](uint32_t, const sim::Binding& binding) {
        if (names.size() <= group.stays) names.insert(process.reference(binding).name);
      });
  return names.size() > group.stays;
}

std::string reference_words(const Case& examined, const CaptureGroup& group) {
  if (!group.family.empty()) return "references to " + readable_scope(group.family);
  const std::string whom = group.self() ? "itself" : short_name(examined.process, group.own);
  return (is_part_of_more(examined, group) ? "references of this family to " : "references to ") +
         whom;
}

// The counts shown are of all names of the family, harmless ones (templates, type information)
// included, so that they agree with what LD_DEBUG=bindings prints.
void describe_counts(const Case& examined, const CaptureGroup& group, Finding& finding) {
  const ProcessView& process = examined.process;
  const std::string consumer = path_of(process, group.consumer);
  const bool known_family = !group.family.empty() || group.stays > 0;
  // Of a class of the C++ runtime, what stays is what others enter, not references of its own.
  const bool of_runtime = process.is_cpp_runtime(group.consumer);
  std::vector<Tally> tallies = {{group.provider, group.captured}};
  if (known_family && !of_runtime && !group.family.empty())
    tallies = tally_family(process, group);
  else if (group.stays > 0)
    tallies.push_back({group.own, group.stays});
  int64_t total = 0;
  for (const Tally& tally : tallies)
    if (!of_runtime || tally.provider == group.provider) total += tally.names;
  const auto place = [&](const Tally& tally) { return tally.provider == group.provider ? 0 : 1; };
  std::stable_sort(tallies.begin(), tallies.end(),
                   [&](const Tally& a, const Tally& b) { return place(a) < place(b); });
  for (const Tally& tally : tallies) {
    Evidence row;
    row.consumer = consumer;
    row.library = path_of(process, tally.provider);
    row.count = tally.names;
    row.total = known_family ? total : -1;
    if (of_runtime && tally.provider != group.provider) {
      row.kind = "stays";
      row.total = -1;
      row.text = fmt::format("{} of its functions that others call stay{} in", tally.names,
                             tally.names == 1 ? "s" : "");
    } else if (tally.provider == group.provider) {
      row.kind = "captured";
      row.text = known_family
                     ? fmt::format("{} of its {} {} bind to", tally.names, total,
                                   reference_words(examined, group))
                     : fmt::format("{} {} bind to", tally.names, reference_words(examined, group));
      if (group.versioned_to_plain * 2 >= group.captured)
        row.remark = "asked for with a version, given without one";
      if (group.plain_to_versioned * 2 >= group.captured)
        row.remark = "asked for without a version, given another's";
      if (group.verdict == Verdict::kByDesign) row.remark = "by design: made for each other";
    } else {
      const bool own = tally.provider == group.own || tally.provider == group.consumer;
      row.kind = own ? "stays" : "elsewhere";
      row.text = fmt::format("{} {}", tally.names, own ? "stay in" : "bind to");
    }
    finding.evidence.push_back(std::move(row));
  }
}

void describe_entries(const Case& examined, const CaptureGroup& group, Finding& finding) {
  const ProcessView& process = examined.process;
  const elf::Object& own = process.image(group.own).elf;
  if (!group.paths.empty()) {
    const auto& [entered, captured] = group.paths.front();
    finding.evidence.push_back(
        {"call",
         fmt::format(
             "e.g. {} ({}) calls {} ({}), which works on the same object as another version",
             demangle(own.symbol_name(entered)), short_name(process, group.own),
             demangle(own.symbol_name(captured)), short_name(process, group.provider)),
         path_of(process, group.own), path_of(process, group.provider), -1, -1, ""});
  }
  if (group.self() && !group.entered_by.empty()) {
    Evidence row;
    row.kind = "entered";
    row.count = static_cast<int64_t>(group.entered_by.size());
    std::string names;
    for (size_t i = 0; i < group.entered_by.size() && i < 3; i++)
      names += (i ? ", " : "") + short_name(process, group.entered_by[i]);
    if (group.entered_by.size() > 3)
      names += fmt::format(" and {} more", group.entered_by.size() - 3);
    row.text = "entered by " + names;
    row.consumer = path_of(process, group.own);
    finding.evidence.push_back(std::move(row));
    if (const auto unpackers = unpackers_on_request(process, group); !unpackers.empty()) {
      std::string who = short_name(process, unpackers.front());
      if (unpackers.size() > 1) who += fmt::format(" and {} more", unpackers.size() - 1);
      finding.evidence.push_back(
          {"call",
           fmt::format("zlib.decompress unpacks the strings of {} at its import (Cython 3.2)", who),
           path_of(process, unpackers.front()), path_of(process, group.own), -1, -1, ""});
    }
  }
}

// What the machine code of both copies says of the objects that they share.
void describe_layouts(const Case& examined, const CaptureGroup& group, Finding& finding) {
  const LayoutComparison& layouts = group.layouts;
  if (!layouts.is_known()) return;
  Evidence row;
  row.kind = "layout";
  row.text = fmt::format(
      "{} of {} functions look for most members of their objects at the same places in {} and {}{}",
      layouts.itself.alike, layouts.itself.compared, short_name(examined.process, group.own),
      short_name(examined.process, group.provider),
      layouts.keeps_state ? "; they use data of their library too" : "");
  row.count = layouts.itself.alike;
  row.total = layouts.itself.compared;
  const auto says_so = [&](const Evidence& said) { return said.text == row.text; };
  if (std::none_of(finding.evidence.begin(), finding.evidence.end(), says_so))
    finding.evidence.push_back(std::move(row));
}

}  // namespace

std::string short_name(const ProcessView& process, ObjectId id) {
  return program_word(process, id);
}

std::string path_of(const ProcessView& process, ObjectId id) {
  return process.object(id).image == kNone ? process.object(id).name : process.image(id).real_path;
}

Library library_of(const ProcessView& process, ObjectId id) {
  Library library{path_of(process, id), "", ""};
  const auto& owners = process.ownership().owners(id);
  if (!owners.empty()) {
    const OwnerDistribution& owner = process.ownership().distributions[owners.back()];
    if (!owner.package.empty()) return library;  // that is no distribution
    library.distribution = owner.name;
    library.version = owner.version;
  }
  return library;
}

Library library_at(const Case& examined, const std::string& path) {
  Library library{path, "", ""};
  if (!examined.distributions) return library;
  const auto owners = examined.distributions->owners(path);
  if (owners.empty()) return library;
  library.distribution = owners.back()->name;
  library.version = owners.back()->version;
  return library;
}

Help reinstall(const Case& examined, const Library& library) {
  if (library.distribution.empty() || !examined.distributions)
    return {"reinstall the package that the file is from", "", Safety::kManual};
  return {
      fmt::format("reinstall {} {}, which the file is from", library.distribution, library.version),
      installer_command(examined.trace.start.program, *examined.distributions, "install",
                        again(library.distribution, library.version)),
      Safety::kUnsafe};
}

std::string missing_module(std::string_view failure) {
  constexpr std::string_view kNotFound = "ModuleNotFoundError: No module named '";
  if (!failure.starts_with(kNotFound)) return "";
  failure.remove_prefix(kNotFound.size());
  return std::string(failure.substr(0, failure.find('\'')));
}

std::string family_name(const ProcessView& process, const CaptureGroup& group) {
  return group.family.empty() ? short_name(process, group.own) : readable_scope(group.family);
}

std::string when_imported(const Case& examined) {
  std::string statement = examined.program;
  if (statement.empty() && !examined.imports.empty())
    statement = fmt::format("import {}", fmt::join(examined.imports, "; import "));
  if (examined.phase != python::Phase::kImport)
    return fmt::format(" at {}{}", python::phase_name(examined.phase),
                       statement.empty() ? "" : fmt::format(" after `{}`", statement));
  return statement.empty() ? "" : fmt::format(" when `{}` runs", statement);
}

bool crosses_elsewhere(const Case& examined, ObjectId provider) {
  const auto& groups = examined.captures.groups;
  return std::any_of(groups.begin(), groups.end(), [&](const CaptureGroup& group) {
    return group.verdict == Verdict::kVersionCrossing && group.provider == provider;
  });
}

std::vector<std::vector<const CaptureGroup*>> merge_groups(const Case& examined, Verdict verdict,
                                                           bool by_family) {
  std::map<std::tuple<ObjectId, std::string, ObjectId>, std::vector<const CaptureGroup*>> merged;
  for (const CaptureGroup& group : examined.captures.groups) {
    if (group.verdict != verdict) continue;
    const ObjectId own = by_family && group.family.empty() ? group.own : kNone;
    merged[{group.provider, by_family ? group.family : "", own}].push_back(&group);
  }
  std::vector<std::vector<const CaptureGroup*>> result;
  for (auto& [key, groups] : merged) result.push_back(std::move(groups));
  return result;
}

void describe_groups(const Case& examined, const std::vector<const CaptureGroup*>& groups,
                     Finding& finding) {
  std::vector<const CaptureGroup*> sorted = groups;
  const auto shown_first = [](const CaptureGroup* group) {
    return std::pair(group->verdict != Verdict::kByDesign, group->captured);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto* a, const auto* b) { return shown_first(a) > shown_first(b); });
  for (const CaptureGroup* group : sorted) {
    add_library(examined, group->consumer, finding);
    add_library(examined, group->own, finding);
  }
  for (const CaptureGroup* group : sorted) {
    add_library(examined, group->provider, finding);
    finding.symbols.count += group->captured;
    for (const uint32_t binding : group->bindings)
      if (finding.symbols.examples.size() < kExamples)
        finding.symbols.examples.push_back(symbol_text(examined, binding));
    describe_counts(examined, *group, finding);
    describe_entries(examined, *group, finding);
    describe_layouts(examined, *group, finding);
  }
}

namespace {

// What a recorded open brought, by the name that is shown.
std::string opened_name(const Case& examined, uint32_t call) {
  const auto& results = examined.process.simulation().results();
  if (call < results.size() && results[call].object != kNone)
    return short_name(examined.process, results[call].object);
  return examined.trace.calls[call].name.value_or("the program");
}

}  // namespace

void describe_provider(const Case& examined, const CaptureGroup& group, Finding& finding) {
  const ProcessView& process = examined.process;
  Evidence row;
  row.kind = "opened";
  row.library = path_of(process, group.provider);
  if (process.object(group.provider).global) {
    const uint32_t call = promoting_call(examined, group.provider);
    row.text = call == kNone
                   ? fmt::format("{} stands in the global scope from the start",
                                 short_name(process, group.provider))
                   : fmt::format("{} is in the global scope: RTLD_GLOBAL at the open of {}",
                                 short_name(process, group.provider), opened_name(examined, call));
  } else {
    const uint32_t call = process.object(group.consumer).call;
    const auto& results = process.simulation().results();
    const ObjectId opened = call < results.size() ? results[call].object : kNone;
    row.text =
        opened == kNone
            ? fmt::format("{} stands before it in its scope", short_name(process, group.provider))
            : fmt::format("{} was first mapped inside the scope of {}",
                          short_name(process, group.consumer), short_name(process, opened));
    if (opened != kNone) row.library = path_of(process, opened);
  }
  finding.evidence.push_back(std::move(row));
}

namespace {

// What searches a repair by simulation: it takes imports only, and looks at them alone. Copies that
// are alike fail nothing that it could repair.
void advise_fix(const Case& examined, const CaptureGroup& group, Finding& finding) {
  if (group.verdict == Verdict::kAlikeSplit || examined.imports.empty() ||
      !examined.program.empty() || examined.phase != python::Phase::kImport)
    return;
  finding.help.push_back(
      {"let the smallest change to how the process is started be searched",
       fmt::format("cohabit fix {} --imports {}", shell_word(examined.trace.start.program),
                   fmt::join(examined.imports, ",")),
       Safety::kSafe});
}

}  // namespace

void advise(const Case& examined, const std::vector<const CaptureGroup*>& groups,
            Finding& finding) {
  const ProcessView& process = examined.process;
  const CaptureGroup& group = *groups.front();
  if (!process.object(group.provider).global) {
    finding.help.push_back(
        {fmt::format("map {} before {}: start with it preloaded (changes no file)",
                     short_name(process, group.own), short_name(process, group.provider)),
         fmt::format("LD_PRELOAD={} python app.py", shell_word(path_of(process, group.own))),
         Safety::kSafe});
    finding.help.push_back({fmt::format("or import a module that needs {} before everything else",
                                        short_name(process, group.own)),
                            "", Safety::kManual});
    advise_fix(examined, group, finding);
    return;
  }
  const std::string first = import_of(examined, group.provider);
  const std::string second = import_of(examined, group.consumer);
  if (!first.empty() && !second.empty() && first != second && !finding.code.empty())
    finding.help.push_back(
        {fmt::format("see whether {} before {} is sound (a prediction, and a run)", second, first),
         fmt::format("cohabit doctor {} --imports {},{} --trace", examined.trace.start.program,
                     second, first),
         Safety::kSafe});
  const uint32_t call = promoting_call(examined, group.provider);
  if (call != kNone)
    finding.help.push_back(
        {fmt::format("have {} opened without RTLD_GLOBAL (sys.setdlopenflags, or the `mode` of "
                     "ctypes.CDLL, in the code that opens it)",
                     opened_name(examined, call)),
         "", Safety::kUnsafe});
  advise_fix(examined, group, finding);
}

void add_observed_end(const Case& examined, Finding& finding) {
  const auto& status = examined.trace.exit_status;
  if (!status || !WIFSIGNALED(*status)) return;
  finding.evidence.push_back({"observed",
                              fmt::format("the recorded run was killed by signal {} ({})",
                                          WTERMSIG(*status), strsignal(WTERMSIG(*status))),
                              "", "", -1, -1, ""});
}

}  // namespace cohabit
