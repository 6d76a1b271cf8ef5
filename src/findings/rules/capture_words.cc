#include "findings/rules/capture_words.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace cohabit {
namespace {

constexpr size_t kExamples = 5;
constexpr int kGlobalFlag = 0x100;

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : symbol;
}

std::string symbol_name(const ProcessView& process, const sim::Binding& binding) {
  return std::string(process.image(binding.from).elf.symbol_name(binding.reference));
}

// The open that made the provider global; null when the scope of a dependency did it.
const LoaderCall* global_open(const Evidence& evidence, sim::ObjectId provider,
                              sim::ObjectId& opened) {
  const sim::Simulation& simulation = evidence.process.simulation();
  const auto& calls = evidence.trace.calls;
  for (size_t i = 0; i < calls.size() && i < simulation.results().size(); i++) {
    if (!(calls[i].flags & kGlobalFlag) || simulation.results()[i].object == kNone) continue;
    const auto& list = simulation.objects()[simulation.results()[i].object].search_list;
    if (std::find(list.begin(), list.end(), provider) == list.end()) continue;
    opened = simulation.results()[i].object;
    return &calls[i];
  }
  return nullptr;
}

std::string why_in_scope(const Evidence& evidence, const CaptureGroup& group) {
  const ProcessView& process = evidence.process;
  sim::ObjectId opened = kNone;
  const std::string provider = short_path(process.image(group.provider).real_path);
  if (global_open(evidence, group.provider, opened))
    return fmt::format("{} is in the global scope since {} was opened with RTLD_GLOBAL", provider,
                       short_path(process.image(opened).real_path));
  if (process.object(group.provider).global)
    return fmt::format("{} is in the global scope since the start of the process", provider);
  return fmt::format("{} was first mapped inside the scope of the open that brought {}",
                     short_path(process.image(group.consumer).real_path), provider);
}

std::string consumer_line(const Evidence& evidence, const CaptureGroup& group) {
  const ProcessView& process = evidence.process;
  std::string line = fmt::format(
      "{} of {} references of {}{} bind to {}", group.captured, group.captured + group.stays,
      object_label(process, group.consumer), group.self() ? " to itself" : "",
      short_path(process.image(group.provider).real_path));
  if (group.stays) line += fmt::format(", {} stay", group.stays);
  return line;
}

}  // namespace

std::vector<std::vector<const CaptureGroup*>> merge_groups(const Captures& captures,
                                                           const std::vector<Verdict>& verdicts) {
  std::map<std::tuple<uint32_t, uint32_t, std::string>, std::vector<const CaptureGroup*>> merged;
  for (const CaptureGroup& group : captures.groups)
    if (std::find(verdicts.begin(), verdicts.end(), group.verdict) != verdicts.end())
      merged[{group.provider, group.family.empty() ? group.own : kNone, group.family}].push_back(
          &group);
  std::vector<std::vector<const CaptureGroup*>> result;
  for (auto& [key, groups] : merged) {
    std::stable_sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) {
      return a->captured > b->captured;
    });
    result.push_back(std::move(groups));
  }
  return result;
}

std::string family_words(const Evidence& evidence, const CaptureGroup& group) {
  const ProcessView& process = evidence.process;
  if (group.family.empty()) return short_path(process.image(group.own).real_path);
  // "6google8protobuf" -> "google::protobuf"
  std::string words;
  for (size_t at = 0; at < group.family.size();) {
    size_t length = 0;
    while (at < group.family.size() && group.family[at] >= '0' && group.family[at] <= '9')
      length = std::min<size_t>(length * 10 + (group.family[at++] - '0'), group.family.size());
    if (length == 0 || at + length > group.family.size()) return group.family;
    words += (words.empty() ? "" : "::") + group.family.substr(at, length);
    at += length;
  }
  return words;
}

Finding describe_groups(const Evidence& evidence, const RuleInfo& info,
                        const std::vector<const CaptureGroup*>& groups) {
  const ProcessView& process = evidence.process;
  Finding finding = start_finding(info);
  const CaptureGroup& first = *groups.front();
  std::set<sim::ObjectId> named;
  const auto name_library = [&](sim::ObjectId id) {
    if (id != kNone && named.insert(id).second)
      finding.libraries.push_back(library_ref(process, id));
  };
  name_library(first.provider);
  for (const CaptureGroup* group : groups) {
    name_library(group->own);
    name_library(group->consumer);
    finding.symbols.count += group->captured;
    finding.evidence.push_back(consumer_line(evidence, *group));
    for (const uint32_t binding : group->bindings) {
      if (finding.symbols.examples.size() == kExamples) break;
      finding.symbols.examples.push_back(
          readable(symbol_name(process, process.simulation().bindings()[binding])));
    }
  }
  finding.evidence.push_back(why_in_scope(evidence, first));
  const std::string own_path = process.image(first.own).real_path;
  sim::ObjectId opened = kNone;
  if (global_open(evidence, first.provider, opened)) {
    finding.help.push_back({"keep " + short_path(process.image(opened).real_path) +
                                " out of the global scope: open it without RTLD_GLOBAL",
                            "", Safety::kManual});
    finding.help.push_back(
        {"import in another order and look again; what is mapped first keeps its own bindings", "",
         Safety::kManual});
  } else {
    finding.help.push_back(
        {fmt::format("map {} before {}", short_path(own_path),
                     short_path(process.image(first.provider).real_path)),
         fmt::format("LD_PRELOAD={} python app.py", own_path), Safety::kSafe});
  }
  return finding;
}

}  // namespace cohabit
