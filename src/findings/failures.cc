#include "findings/failures.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/paths.h"
#include "facts/python/requirement.h"
#include "findings/words.h"

namespace cohabit {
namespace {

// No file is at fault, and another of the same would do the same.
constexpr std::string_view kUnreadable = "Permission denied";
constexpr std::string_view kNoStaticRoom = "static TLS block";

struct Failure {
  std::string name;
  std::string message;
  std::string caller;
  std::vector<sim::SearchStep> search;
  uint32_t call = kNone;  // kNone: the start of the process
  sim::ObjectId opened = kNone;
};

// Whose need was not met (kNone: the caller's own), and what does not meet it.
struct Blame {
  sim::ObjectId needs = kNone;
  sim::ObjectId needed = kNone;
};

sim::ObjectId last_object(const sim::Simulation& simulation, std::string_view name) {
  const auto& objects = simulation.objects();
  for (sim::ObjectId id = static_cast<sim::ObjectId>(objects.size()); id-- > 0;)
    if (objects[id].name == name || objects[id].requested == name) return id;
  return kNone;
}

sim::ObjectId who_needs(const sim::Simulation& simulation, std::string_view name, uint32_t call) {
  const auto& objects = simulation.objects();
  for (sim::ObjectId id = 0; id < objects.size(); id++) {
    if (objects[id].call != call || objects[id].image == kNone) continue;
    for (const elf::Dependency& needed : simulation.elf(id).dependencies)
      if (needed.name == name || name.ends_with("/" + std::string(needed.name))) return id;
  }
  return kNone;
}

// ld.so's messages begin with the file that they are about: one that is not there, one that lacks a
// version of a name, or the one whose own need is not met.
Blame blame_of(const sim::Simulation& simulation, const Failure& failure) {
  constexpr std::string_view kRequiredBy = "(required by ";
  const std::string_view message = failure.message;
  const std::string_view about = message.substr(0, message.find(": "));
  if (const size_t at = message.rfind(kRequiredBy); at != message.npos) {
    std::string_view user = message.substr(at + kRequiredBy.size());
    user.remove_suffix(user.ends_with(')') ? 1 : 0);
    return {last_object(simulation, user), last_object(simulation, about)};
  }
  const sim::ObjectId found = last_object(simulation, about);
  return {found != kNone ? found : who_needs(simulation, about, failure.call), kNone};
}

// What the call mapped first, even if that was undone.
sim::ObjectId opened_by(const sim::Simulation& simulation, uint32_t call) {
  const auto& objects = simulation.objects();
  for (sim::ObjectId id = 0; id < objects.size(); id++)
    if (objects[id].how == sim::How::kDlopen && objects[id].call == call) return id;
  return kNone;
}

// Something new was mapped behind this call: the program went on without what it had asked for, and
// what ended it came later. What glibc opens for itself (libgcc_s at a thread's end) says nothing.
bool went_on_after(const Case& examined, size_t call) {
  const sim::Simulation& simulation = examined.process.simulation();
  const auto& objects = simulation.objects();
  const auto& calls = examined.trace.calls;
  return std::any_of(objects.begin(), objects.end(), [&](const sim::Object& object) {
    return object.how == sim::How::kDlopen && object.call != kNone && object.call > call &&
           !simulation.results()[object.call].failed &&
           last_part(calls[object.call].caller) != "libc.so.6";
  });
}

bool ended_with_error(const Case& examined) {
  if (examined.plan) return !examined.plan->failure.empty();
  const auto& status = examined.trace.exit_status;
  return status && WIFEXITED(*status) && WEXITSTATUS(*status) != 0;
}

// "python: error while loading shared libraries: libx.so: ...": what follows is as of any open.
std::string without_program(const std::string& message) {
  constexpr std::string_view kStart = "error while loading shared libraries: ";
  const size_t at = message.find(kStart);
  return at == std::string::npos ? message : message.substr(at + kStart.size());
}

std::vector<Failure> fatal_failures(const Case& examined) {
  const sim::Simulation& simulation = examined.process.simulation();
  if (!simulation.start_error().empty())
    return {{examined.trace.start.program,
             without_program(simulation.start_error()),
             "",
             {},
             kNone,
             simulation.objects().empty() ? kNone : 0}};
  if (!ended_with_error(examined)) return {};
  const auto& results = simulation.results();
  const auto& calls = examined.trace.calls;
  for (size_t i = std::min(results.size(), calls.size()); i-- > 0;) {
    if (!results[i].failed) continue;
    const std::string name = calls[i].name.value_or("");
    for (size_t later = i + 1; later < std::min(results.size(), calls.size()); later++)
      if (calls[later].name == calls[i].name && results[later].object != kNone) return {};
    if (went_on_after(examined, i)) return {};
    return {{name, results[i].error, calls[i].caller, results[i].search, static_cast<uint32_t>(i),
             opened_by(simulation, static_cast<uint32_t>(i))}};
  }
  return {};
}

// What the loader's message is about: it begins with that.
std::string subject_of(const Failure& failure) {
  return failure.message.substr(0, failure.message.find(": "));
}

std::string word_behind(const std::string& message, std::string_view before,
                        std::string_view ends) {
  const size_t at = message.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  return message.substr(begin, message.find_first_of(ends, begin) - begin);
}

std::string missing_symbol(const Failure& failure) {
  return word_behind(failure.message, "undefined symbol: ", ", (");
}

std::string missing_version(const Failure& failure) {
  return word_behind(failure.message, "version `", "'");
}

// Fills in {file}, {symbol} and {version}.
std::string fill(std::string_view headline, const Failure& failure, const std::string& party) {
  const std::string file = last_part(subject_of(failure));
  std::string text(headline);
  const auto put = [&](std::string_view place, const std::string& word) {
    if (const size_t at = text.find(place); at != text.npos) text.replace(at, place.size(), word);
  };
  put("{file}", file == party ? "it" : file + ", which it needs,");
  put("{symbol}", missing_symbol(failure));
  put("{version}", missing_version(failure));
  return text;
}

std::string describe(const Case& examined, const Failure& failure, sim::ObjectId party,
                     std::string_view headline) {
  const std::string asked = last_part(failure.name);
  const std::string name = party == kNone ? asked : short_name(examined.process, party);
  std::string text = fmt::format("{}: {}", name, fill(headline, failure, name));
  if (party != kNone && failure.opened != kNone && party != failure.opened)
    text += fmt::format(", so {} does not load", asked);
  return text + when_imported(examined);
}

// Who is at fault comes first, what was asked for last.
void add_parties(const Case& examined, const Failure& failure, const Blame& blame,
                 Finding& finding) {
  std::vector<sim::ObjectId> known;
  for (const sim::ObjectId id : {blame.needs, blame.needed, failure.opened}) {
    if (id == kNone || std::find(known.begin(), known.end(), id) != known.end()) continue;
    known.push_back(id);
    finding.libraries.push_back(library_of(examined.process, id));
  }
  // A file that was found and not taken is no object.
  const std::string subject = subject_of(failure);
  const bool is_named = std::any_of(finding.libraries.begin(), finding.libraries.end(),
                                    [&](const Library& one) { return one.path == subject; });
  if (subject.starts_with('/') && !is_named && blame.needed == kNone &&
      last_object(examined.process.simulation(), subject) == kNone)
    finding.libraries.insert(finding.libraries.begin(), library_at(examined, subject));
  if (finding.libraries.empty()) finding.libraries.push_back({failure.name, "", ""});
}

// Of a file that is there, why the loader has not come to it, and what leads to it.
Help help_to_reach(const Failure& failure, const Library& wanted, const std::string& user) {
  const std::string name = last_part(wanted.path);
  for (const sim::SearchStep& step : failure.search)
    if (join_normal("/", step.path) == wanted.path)
      return {fmt::format("{} is where the loader looks, as {}, and is not taken: {}; reinstall {}",
                          name, wanted.path, step.outcome, wanted.distribution),
              "", Safety::kManual};
  if (const std::string subject = subject_of(failure); subject.find('/') != subject.npos)
    return {fmt::format("{} is asked for as {}, and lies at {}: a name with a directory is looked "
                        "for there only, LD_LIBRARY_PATH does not help; reinstall the two "
                        "packages, in versions that go together",
                        name, subject, wanted.path),
            "", Safety::kManual};
  return {fmt::format("{} is there, as {}, but nothing leads to it: no RUNPATH of {} itself names "
                      "its directory (that of another library does not count here), and nothing "
                      "opened it before; reinstall its package if that changed, or lead to it",
                      name, wanted.path, user),
          fmt::format("LD_LIBRARY_PATH={} python app.py", shell_word(directory_of(wanted.path))),
          Safety::kManual};
}

// A file of that name that some distribution lists: it is there and not found, or it is lost.
std::optional<Help> help_for_missing(const Case& examined, const Failure& failure,
                                     const Finding& finding) {
  if (!examined.distributions || failure.message.find("No such file") == std::string::npos)
    return std::nullopt;
  const std::string wanted = last_part(subject_of(failure));
  const Tree& tree = examined.process.simulation().images().tree();
  for (const Distribution& one : examined.distributions->all())
    for (const std::string& file : one.native_files) {
      if (last_part(file) != wanted) continue;
      if (!tree.stat(file)) return reinstall(examined, {file, one.name, one.version});
      return help_to_reach(failure, {file, one.name, one.version},
                           last_part(finding.libraries.front().path));
    }
  return std::nullopt;
}

// A need of a file as its distribution made it: no distribution here has a library of that name, so
// the system is to bring it.
std::optional<Help> help_for_system_library(const Case& examined, const Failure& failure,
                                            const Blame& blame) {
  const std::string subject = subject_of(failure);
  if (blame.needs == kNone || subject.find('/') != std::string::npos ||
      failure.message.find("No such file") == std::string::npos)
    return std::nullopt;
  return Help{
      fmt::format("{} is needed by {}, and no installed distribution lists it: install what "
                  "brings it, a package of the system or a version of another distribution "
                  "(on Debian `apt-file search {}` names it); reinstalling {} does not",
                  subject, short_name(examined.process, blame.needs), subject,
                  short_name(examined.process, blame.needs)),
      "", Safety::kManual};
}

// All are of one distribution: other versions of others do not help.
bool is_of_one_distribution(const Finding& finding) {
  return std::all_of(finding.libraries.begin(), finding.libraries.end(), [&](const Library& one) {
    return !one.distribution.empty() && one.distribution == finding.libraries[0].distribution;
  });
}

// The variable by which ld.so came to this object before all else; empty: it did not.
std::string variable_to(const sim::Object& object) {
  if (object.how == sim::How::kPreload) return "LD_PRELOAD";
  const bool is_listed =
      !object.search.empty() && object.search.back().because.starts_with("LD_LIBRARY_PATH");
  return is_listed ? "LD_LIBRARY_PATH" : "";
}

// Whether the object stands for this need: under its name it was looked for, or is there already.
bool stands_for(const sim::Simulation& simulation, sim::ObjectId id, std::string_view needed) {
  const sim::Object& object = simulation.objects()[id];
  return object.image != kNone &&
         (object.requested == needed || simulation.elf(id).soname.value_or("") == needed ||
          last_part(object.name) == needed);
}

// What meets the needs of the file in question, in the wrong version or not at all, and is there
// because of a variable.
std::vector<sim::ObjectId> led_to(const Case& examined, const Blame& blame) {
  const sim::Simulation& simulation = examined.process.simulation();
  std::vector<sim::ObjectId> suspects, found;
  if (blame.needed != kNone) {
    suspects.push_back(blame.needed);
  } else if (blame.needs != kNone && simulation.objects()[blame.needs].image != kNone) {
    for (const elf::Dependency& needed : simulation.elf(blame.needs).dependencies)
      for (sim::ObjectId id = 0; id < simulation.objects().size(); id++)
        if (stands_for(simulation, id, needed.name)) suspects.push_back(id);
  }
  for (const sim::ObjectId id : suspects)
    if (!variable_to(simulation.objects()[id]).empty() &&
        std::find(found.begin(), found.end(), id) == found.end())
      found.push_back(id);
  return found;
}

// What is to be taken out of LD_LIBRARY_PATH for ld.so not to look there.
std::string entry_of_search_path(const sim::Object& object, const std::string& path) {
  if (object.name.starts_with('/')) return directory_of(object.name);
  return fmt::format("the entry that leads to {} (an empty one is the current directory)",
                     directory_of(path));
}

// Says what the variables led to, and how to do without.
void add_detours(const Case& examined, const std::vector<sim::ObjectId>& led, Finding& finding) {
  for (const sim::ObjectId id : led) {
    const sim::Object& object = examined.process.object(id);
    const std::string variable = variable_to(object), path = path_of(examined.process, id);
    const std::string name = short_name(examined.process, id);
    const bool is_named = std::any_of(finding.libraries.begin(), finding.libraries.end(),
                                      [&](const Library& one) { return one.path == path; });
    if (!is_named) finding.libraries.push_back(library_of(examined.process, id));
    finding.evidence.push_back(
        fact("place", fmt::format("{} is {}, found by {}", name, path, variable)));
    const std::string entry = variable == "LD_PRELOAD" ? path : entry_of_search_path(object, path);
    finding.help.push_back(
        {fmt::format("take {} out of {}: its {} comes before every other", entry, variable, name),
         "", Safety::kManual});
  }
}

// Where a library lacks a version: that of the system's libc is the system's.
std::optional<Help> help_for_version(const Case& examined, const Failure& failure,
                                     const Blame& blame) {
  const std::string version = missing_version(failure);
  if (version.empty() || blame.needed == kNone) return std::nullopt;
  const std::string found = path_of(examined.process, blame.needed);
  const std::string name = last_part(subject_of(failure));
  const std::string user = blame.needs == kNone ? "it" : short_name(examined.process, blame.needs);
  if (version.starts_with("GLIBC_"))
    return Help{fmt::format("{} is built for a newer glibc than this system's {}, which nothing at "
                            "launch can replace: install a build of it for an older one (a wheel "
                            "with a lower manylinux tag), or run it on a newer system",
                            user, examined.trace.start.glibc),
                "", Safety::kManual};
  if (examined.distributions)
    for (const Distribution& one : examined.distributions->all())
      for (const std::string& file : one.native_files)
        if (last_part(file) == name && join_normal("/", file) != found)
          return Help{
              fmt::format("if {} of {} has that version, let it be mapped first", name, one.name),
              fmt::format("LD_PRELOAD={} python app.py", shell_word(file)), Safety::kManual};
  return Help{fmt::format("{} is older than what {} is built for: have a newer {} found (the "
                          "system's, or one in the environment), or install a build for this one",
                          found, user, name),
              "", Safety::kManual};
}

bool is_cut_short(const Case& examined, sim::ObjectId id) {
  return id != kNone && examined.process.object(id).image != kNone &&
         cut_short(examined.process.image(id)) != 0;
}

// The file that should have met the need is not whole; of a symbol that nobody defines, any file
// could have been the one.
bool is_need_cut_off(const Case& examined, const Failure& failure, const Blame& blame) {
  if (is_cut_short(examined, blame.needs) || is_cut_short(examined, blame.needed)) return true;
  if (failure.message.find("undefined symbol") == std::string::npos) return false;
  for (sim::ObjectId id = 0; id < examined.process.object_count(); id++)
    if (is_cut_short(examined, id)) return true;
  return false;
}

}  // namespace

uint64_t cut_short(const Image& image) {
  constexpr uint64_t kPage = 4096;
  const uint64_t mapped = (image.file_size + kPage - 1) / kPage * kPage;
  uint64_t wanted = 0;
  for (const elf::Phdr& segment : image.elf.segments)
    if (segment.p_filesz <= UINT64_MAX - segment.p_offset)
      wanted = std::max(wanted, segment.p_offset + segment.p_filesz);
  return wanted > mapped ? wanted : 0;
}

namespace {

// The file that asks for what does not load, and of source the line; none: the statement itself.
Place asked_at(const Case& examined, uint32_t call) {
  if (!examined.plan || call >= examined.plan->opens.size()) return {};
  const python::PlannedOpen& open = examined.plan->opens[call];
  return open.file.starts_with('/') ? Place{open.file, open.line} : Place{};
}

Finding finding_of(const Case& examined, const Failure& failure, std::string_view headline,
                   std::string_view help) {
  const Blame blame = blame_of(examined.process.simulation(), failure);
  Finding finding;
  finding.severity = Severity::kError;
  finding.headline = describe(examined, failure, blame.needs, headline);
  const Place asked = asked_at(examined, failure.call);
  if (asked.line) finding.place = asked;
  add_parties(examined, failure, blame, finding);
  finding.evidence.push_back(
      {"search", "ld.so says: " + failure.message, failure.caller, failure.name, -1, -1, ""});
  if (!asked.file.empty())
    finding.evidence.push_back(
        {"call", asked.line ? fmt::format("asked for in line {} of", asked.line) : "asked for by",
         "", asked.file, -1, -1, ""});
  for (const sim::SearchStep& step : failure.search)
    finding.evidence.push_back({"place",
                                fmt::format("{} ({}): {}", step.path, step.because, step.outcome),
                                "", step.path, -1, -1, ""});
  const auto says = [&](std::string_view phrase) {
    return failure.message.find(phrase) != std::string::npos;
  };
  add_detours(examined, led_to(examined, blame), finding);
  if (!finding.help.empty()) return finding;
  if (auto better = help_for_missing(examined, failure, finding))
    finding.help.push_back(std::move(*better));
  else if (auto system = help_for_system_library(examined, failure, blame))
    finding.help.push_back(std::move(*system));
  else if (auto version = help_for_version(examined, failure, blame))
    finding.help.push_back(std::move(*version));
  else if (is_of_one_distribution(finding) && !says(kUnreadable) && !says(kNoStaticRoom))
    finding.help.push_back(reinstall(examined, finding.libraries[0]));
  else
    finding.help.push_back({std::string(help), "", Safety::kManual});
  return finding;
}

bool is_need_cut_off(const Case& examined, const Failure& failure) {
  return is_need_cut_off(examined, failure, blame_of(examined.process.simulation(), failure));
}

// The loader itself ends the process in that call (IO901).
bool asserts_in(const Case& examined, uint32_t call) {
  const sim::Simulation& simulation = examined.process.simulation();
  const auto& assertions = simulation.assertions();
  return std::any_of(assertions.begin(), assertions.end(), [&](const auto& one) {
    return simulation.objects()[one.object].call == call;
  });
}

// What the distribution of a library requires and the installed version of that is not.
std::string unmet_requirement(const Distributions& all, const std::string& path) {
  for (const Distribution* owner : all.owners(path))
    for (const std::string& text : owner->requires_dist) {
      const auto requirement = PackageRequirement::parse(text);
      const Distribution* other =
          requirement && requirement->marker.empty() ? all.find(requirement->name) : nullptr;
      const auto version = other ? PythonVersion::parse(other->version) : std::nullopt;
      if (version && !requirement->specifiers.contains(*version))
        return fmt::format("{} {} requires {}, and {} {} is installed", owner->name, owner->version,
                           text, other->name, other->version);
    }
  return "";
}

}  // namespace

std::vector<Finding> failed_opens(const Case& examined, std::string_view phrase,
                                  std::string_view headline, std::string_view help) {
  std::vector<Finding> findings;
  for (const Failure& failure : fatal_failures(examined))
    if (failure.message.find(phrase) != std::string::npos && !is_need_cut_off(examined, failure))
      findings.push_back(finding_of(examined, failure, headline, help));
  return findings;
}

std::vector<Finding> survived_opens(const Case& examined, std::string_view phrase,
                                    std::string_view headline, std::string_view help) {
  const auto& results = examined.process.simulation().results();
  const auto& calls = examined.trace.calls;
  std::vector<Finding> findings;
  if (examined.trace.exit_status && WIFSIGNALED(*examined.trace.exit_status)) return findings;
  std::set<std::string> fatal, known;
  for (const Failure& failure : fatal_failures(examined)) fatal.insert(failure.message);
  for (size_t i = 0; i < std::min(results.size(), calls.size()); i++) {
    if (!results[i].failed || results[i].error.find(phrase) == std::string::npos) continue;
    if (fatal.contains(results[i].error) || !known.insert(results[i].error).second) continue;
    const auto call = static_cast<uint32_t>(i);
    const Failure failure{calls[i].name.value_or(""),
                          results[i].error,
                          calls[i].caller,
                          results[i].search,
                          call,
                          opened_by(examined.process.simulation(), call)};
    if (is_need_cut_off(examined, failure) || asserts_in(examined, call)) continue;
    Finding finding = finding_of(examined, failure, headline, help);
    const std::string unmet =
        examined.distributions
            ? unmet_requirement(*examined.distributions, finding.libraries.front().path)
            : "";
    if (unmet.empty()) {
      finding.severity = Severity::kWarning;
    } else {
      finding.evidence.push_back(fact("declared", unmet));
      finding.help = {{"install versions that go together: " + unmet, "", Safety::kManual}};
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace cohabit
