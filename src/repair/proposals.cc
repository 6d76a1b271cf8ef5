// Where to look for a repair. Captured bindings come about in two ways, and each has its cure:
//  - the provider was made global by a call (RTLD_GLOBAL): take the flag from the calls that did,
//  or
//    let the consumer look at its own libraries first (RTLD_DEEPBIND on the call that mapped it);
//  - the consumer's own provider was first mapped inside the scope of another library: map it
//    before, which at launch is LD_PRELOAD.
// Which of the two it was is not asked here: all are proposed, and the simulation decides.
// A library that is not found may lie in another package, whose directory LD_LIBRARY_PATH can name.
#include "repair/proposals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/paths.h"

namespace cohabit {
namespace {

using sim::ObjectId;

constexpr int kRtldGlobal = 0x100;
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";
// Enough for every module of an environment that brings its own thread-local variables.
constexpr std::string_view kTlsTunable = "glibc.rtld.optional_static_tls=16384";

class Collector {
 public:
  explicit Collector(const JudgedProcess& process)
      : process_(process), objects_(process.simulation().objects()) {}

  void look_at(const CaptureGroup& group) {
    propose_preload(group.own);
    propose_drops(group.provider);
    propose_deepbind(group.consumer);
  }
  void look_at(const Finding& finding);
  void look_at_failed_opens();
  std::vector<Repair> take();

 private:
  void add(Repair repair) {
    if (std::find(found_.begin(), found_.end(), repair) == found_.end())
      found_.push_back(std::move(repair));
  }
  void propose_preload(ObjectId own);
  void propose_drops(ObjectId provider);
  void propose_deepbind(ObjectId consumer);
  std::vector<std::string> directories_of(const std::string& missing) const;
  std::string variable(std::string_view name) const;

  const JudgedProcess& process_;
  const std::vector<sim::Object>& objects_;
  std::vector<Repair> found_;
};

// A library of the system by its soname, as every process finds it; others by their path.
std::string preload_name(const JudgedProcess& process, ObjectId id) {
  const std::string& path = process.simulation().objects()[id].name;
  if (!process.view().ownership().owners(id).empty()) return path;
  const auto soname = process.simulation().elf(id).soname;
  return path.starts_with("/lib") || path.starts_with("/usr/lib")
             ? std::string(soname.value_or(path))
             : path;
}

void Collector::propose_preload(ObjectId own) {
  if (own == kNone || objects_[own].call == kNone) return;  // there from the start already
  const std::string name = preload_name(process_, own);
  if (name.empty() || name.find_first_of(" :;$\t\n") != std::string::npos) return;
  Repair repair;
  repair.preloads.push_back(name);
  add(std::move(repair));
}

// Each call alone and all together: the flag counts as long as one call sets it.
void Collector::propose_drops(ObjectId provider) {
  Repair all;
  for (const size_t at : opens_that_promote(process_, provider)) {
    Repair one;
    one.flags.push_back({FlagChange::kDropGlobal, *process_.trace().calls[at].name});
    all = combine(all, one);
    add(std::move(one));
  }
  if (all.size() > 1) add(std::move(all));
}

void Collector::propose_deepbind(ObjectId consumer) {
  std::string name = open_that_mapped(process_, consumer);
  if (name.empty()) return;
  Repair repair;
  repair.flags.push_back({FlagChange::kAddDeepbind, std::move(name)});
  add(std::move(repair));
}

std::string Collector::variable(std::string_view name) const {
  for (const auto& [key, text] : process_.trace().start.environment)
    if (key == name) return text;
  return "";
}

// Where installed packages have a file of this name, and what it needs in turn.
std::vector<std::string> Collector::directories_of(const std::string& missing) const {
  std::unordered_map<std::string, std::string> installed;
  for (const Distribution& distribution : process_.distributions().all())
    for (const std::string& path : distribution.native_files)
      installed.try_emplace(last_part(path), path);
  std::vector<std::string> directories;
  std::vector<std::string> wanted = {missing};
  for (size_t at = 0; at < wanted.size(); at++) {
    const auto found = installed.find(wanted[at]);
    if (found == installed.end()) continue;
    const std::string directory = directory_of(found->second);
    if (std::find(directories.begin(), directories.end(), directory) == directories.end())
      directories.push_back(directory);
    const ImageId image = process_.open(found->second);
    if (image == kNone) continue;
    for (const elf::Dependency& needed : process_.simulation().images()[image].elf.dependencies)
      if (std::find(wanted.begin(), wanted.end(), needed.name) == wanted.end())
        wanted.emplace_back(needed.name);
  }
  return directories;
}

void Collector::look_at_failed_opens() {
  constexpr std::string_view kNotFound = ": cannot open shared object file";
  for (const sim::CallResult& result : process_.simulation().results()) {
    const size_t end = result.error.find(kNotFound);
    if (!result.failed || end == std::string::npos) continue;
    const auto directories = directories_of(result.error.substr(0, end));
    if (directories.empty()) continue;
    const std::string before = variable(kLibraryPath);
    Repair repair;
    repair.variables.emplace_back(kLibraryPath, fmt::format("{}{}{}", fmt::join(directories, ":"),
                                                            before.empty() ? "" : ":", before));
    add(std::move(repair));
  }
}

void Collector::look_at(const Finding& finding) {
  if (!process_.counts(finding)) return;
  if (finding.code == "LD201") look_at_failed_opens();
  if (!variable(kLibraryPath).empty()) {
    Repair repair;
    repair.variables.emplace_back(kLibraryPath, "");
    add(std::move(repair));
  }
  if (finding.code == "LD204") {
    const std::string before = variable("GLIBC_TUNABLES");
    Repair repair;
    repair.variables.emplace_back(
        "GLIBC_TUNABLES",
        before.empty() ? std::string(kTlsTunable) : fmt::format("{}:{}", before, kTlsTunable));
    add(std::move(repair));
  }
}

std::vector<Repair> Collector::take() {
  std::stable_sort(found_.begin(), found_.end(),
                   [](const Repair& a, const Repair& b) { return risk_of(a) < risk_of(b); });
  return std::move(found_);
}

}  // namespace

int risk_of(const Repair& repair) {
  if (!repair.order.empty()) return 0;
  int risk = repair.variables.empty() ? 0 : 1;
  for (const std::string& name : repair.preloads)
    risk = std::max(risk, name.find('/') == std::string::npos ? 2 : 4);  // a package's: everywhere
  for (const FlagRule& rule : repair.flags)
    risk = std::max(risk, rule.change == FlagChange::kDropGlobal ? 3 : 5);
  return risk;
}

std::vector<size_t> opens_that_promote(const JudgedProcess& process, ObjectId object) {
  const auto& calls = process.trace().calls;
  const auto& results = process.simulation().results();
  std::vector<size_t> opens;
  for (size_t at = 0; at < calls.size() && at < results.size(); at++) {
    const LoaderCall& call = calls[at];
    const ObjectId opened = results[at].object;
    if (call.kind != CallKind::kDlopen || !(call.flags & kRtldGlobal) || !call.name ||
        opened == kNone)
      continue;
    const auto& list = process.simulation().objects()[opened].search_list;
    if (std::find(list.begin(), list.end(), object) != list.end()) opens.push_back(at);
  }
  return opens;
}

std::string open_that_mapped(const JudgedProcess& process, ObjectId object) {
  const uint32_t at = process.simulation().objects()[object].call;
  const auto& calls = process.trace().calls;
  if (at == kNone || at >= calls.size() || calls[at].kind != CallKind::kDlopen) return "";
  return calls[at].name.value_or("");
}

std::vector<Repair> propose_repairs(const JudgedProcess& process) {
  Collector collector(process);
  for (const Finding& finding : process.findings()) collector.look_at(finding);
  for (const CaptureGroup& group : process.captures().groups)
    if (group.verdict == Verdict::kLiveSplit || group.verdict == Verdict::kVersionCrossing ||
        group.verdict == Verdict::kLatentSplit)
      collector.look_at(group);
  return collector.take();
}

}  // namespace cohabit
