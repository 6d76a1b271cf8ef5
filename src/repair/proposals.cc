// Where to look for a repair. Captured bindings come about in two ways, and each has its cure:
//  - the provider was made global by a call (RTLD_GLOBAL): take the flag from the calls that did,
//  or
//    let the consumer look at its own libraries first (RTLD_DEEPBIND on the call that mapped it);
//  - the consumer's own provider was first mapped inside the scope of another library: map it
//    before, which at launch is LD_PRELOAD.
// Which of the two it was is not asked here: all are proposed, and the simulation decides.
#include "repair/proposals.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohabit {
namespace {

using sim::ObjectId;

constexpr int kRtldGlobal = 0x100;
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
  std::vector<Repair> take();

 private:
  void add(Repair repair) {
    if (std::find(found_.begin(), found_.end(), repair) == found_.end())
      found_.push_back(std::move(repair));
  }
  void propose_preload(ObjectId own);
  void propose_drops(ObjectId provider);
  void propose_deepbind(ObjectId consumer);

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

void Collector::look_at(const Finding& finding) {
  if (!process_.counts(finding)) return;
  const auto& environment = process_.trace().start.environment;
  const auto value = [&](std::string_view name) {
    for (const auto& [key, text] : environment)
      if (key == name) return text;
    return std::string();
  };
  if (!value("LD_LIBRARY_PATH").empty()) {
    Repair repair;
    repair.variables.emplace_back("LD_LIBRARY_PATH", "");
    add(std::move(repair));
  }
  if (finding.code == "LD204") {
    const std::string before = value("GLIBC_TUNABLES");
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
