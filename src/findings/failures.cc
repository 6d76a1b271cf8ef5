#include "findings/failures.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

#include "findings/words.h"

namespace cohabit {
namespace {

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
      if (needed.name == name) return id;
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

bool ended_with_error(const Case& examined) {
  if (examined.plan) return !examined.plan->failure.empty();
  const auto& status = examined.trace.exit_status;
  return status && WIFEXITED(*status) && WEXITSTATUS(*status) != 0;
}

std::vector<Failure> fatal_failures(const Case& examined) {
  const sim::Simulation& simulation = examined.process.simulation();
  if (!simulation.start_error().empty())
    return {{examined.trace.start.program,
             simulation.start_error(),
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
    return {{name, results[i].error, calls[i].caller, results[i].search, static_cast<uint32_t>(i),
             opened_by(simulation, static_cast<uint32_t>(i))}};
  }
  return {};
}

// "{}" in a headline stands for what the loader's message is about.
std::string with_subject(std::string_view headline, const Failure& failure,
                         const std::string& party) {
  std::string text(headline);
  std::string subject = failure.message.substr(0, failure.message.find(": "));
  subject.erase(0, subject.rfind('/') + 1);
  const size_t at = text.find("{}");
  if (at == text.npos) return text;
  if (subject == party) return "the file itself is not found";
  return text.replace(at, 2, subject);
}

std::string describe(const Case& examined, const Failure& failure, sim::ObjectId party,
                     std::string_view headline) {
  const std::string asked = failure.name.substr(failure.name.rfind('/') + 1);
  const std::string name = party == kNone ? asked : short_name(examined.process, party);
  std::string text = fmt::format("{}: {}", name, with_subject(headline, failure, name));
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
  if (finding.libraries.empty()) finding.libraries.push_back({failure.name, "", ""});
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

std::vector<Finding> failed_opens(const Case& examined, std::string_view phrase,
                                  std::string_view headline, std::string_view help) {
  std::vector<Finding> findings;
  for (const Failure& failure : fatal_failures(examined)) {
    if (failure.message.find(phrase) == std::string::npos) continue;
    const Blame blame = blame_of(examined.process.simulation(), failure);
    if (is_need_cut_off(examined, failure, blame)) continue;
    Finding finding;
    finding.severity = Severity::kError;
    finding.headline = describe(examined, failure, blame.needs, headline);
    add_parties(examined, failure, blame, finding);
    finding.evidence.push_back(
        {"search", "ld.so says: " + failure.message, failure.caller, failure.name, -1, -1, ""});
    for (const sim::SearchStep& step : failure.search)
      finding.evidence.push_back({"place",
                                  fmt::format("{} ({}): {}", step.path, step.because, step.outcome),
                                  "", step.path, -1, -1, ""});
    finding.help.push_back({std::string(help), "", Safety::kManual});
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace cohabit
