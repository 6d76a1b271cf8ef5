#include "repair/repair.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"

namespace cohabit {
namespace {

constexpr int kRtldDeepbind = 8;
constexpr int kRtldGlobal = 0x100;

template <class T>
void add_missing(const std::vector<T>& from, std::vector<T>& to) {
  for (const T& item : from)
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
}

std::vector<std::string> words_of(const Repair& repair) {
  std::vector<std::string> words;
  if (!repair.order.empty())
    words.push_back(fmt::format("import in the order {}", fmt::join(repair.order, ", ")));
  for (const auto& [name, value] : repair.variables)
    words.push_back(value.empty() ? fmt::format("unset {}", name)
                                  : fmt::format("set {}={}", name, value));
  for (const std::string& name : repair.preloads)
    words.push_back(fmt::format("preload {}", last_part(name)));
  for (const FlagRule& rule : repair.flags)
    words.push_back(fmt::format(
        "open {} {}", last_part(rule.file),
        rule.change == FlagChange::kDropGlobal ? "without RTLD_GLOBAL" : "with RTLD_DEEPBIND"));
  if (!repair.processes.empty())
    words.push_back(
        fmt::format("a process of its own for each of {}", fmt::join(repair.processes, ", ")));
  if (!repair.package.empty()) words.push_back(repair.package);
  return words;
}

// Two changes on one file are one rule less than a path can be matched by: files are compared by
// name here, and by the interposer by what they are.
bool names(const FlagRule& rule, const LoaderCall& call) {
  return call.kind == CallKind::kDlopen && call.name && *call.name == rule.file;
}

std::string joined(const std::vector<std::string>& parts, const std::string& more) {
  std::string text = fmt::format("{}", fmt::join(parts, ":"));
  if (!more.empty()) text.append(text.empty() ? "" : ":").append(more);
  return text;
}

}  // namespace

std::string_view repair_kind_name(RepairKind kind) {
  static constexpr std::string_view kNames[] = {"none",      "order",        "environment",
                                                "preload",   "dlopen-flags", "combination",
                                                "processes", "package"};
  return kNames[static_cast<size_t>(kind)];
}

RepairKind Repair::kind() const {
  if (!package.empty()) return RepairKind::kPackage;
  if (!processes.empty()) return RepairKind::kProcesses;
  const int kinds =
      int{!order.empty()} + int{!variables.empty()} + int{!preloads.empty()} + int{!flags.empty()};
  if (kinds > 1 || size() > 1) return RepairKind::kCombination;
  if (!order.empty()) return RepairKind::kOrder;
  if (!variables.empty()) return RepairKind::kEnvironment;
  if (!preloads.empty()) return RepairKind::kPreload;
  return flags.empty() ? RepairKind::kNothing : RepairKind::kDlopenFlags;
}

Repair combine(const Repair& first, const Repair& second) {
  Repair both = first;
  if (both.order.empty()) both.order = second.order;
  add_missing(second.variables, both.variables);
  add_missing(second.preloads, both.preloads);
  add_missing(second.flags, both.flags);
  return both;
}

std::string describe(const Repair& repair) {
  return fmt::format("{}", fmt::join(words_of(repair), "; "));
}

std::string spec_of(const Repair& repair) {
  std::vector<std::string> parts;
  for (const std::string& module : repair.order) parts.push_back("import " + module);
  for (const auto& [name, value] : repair.variables)
    parts.push_back(fmt::format("{}={}", name, value));
  if (!repair.preloads.empty()) parts.push_back("LD_PRELOAD=" + joined(repair.preloads, ""));
  for (const FlagRule& rule : repair.flags)
    parts.push_back(fmt::format("dlopen {} {}",
                                rule.change == FlagChange::kDropGlobal ? "-global" : "+deepbind",
                                rule.file));
  if (!repair.processes.empty())
    parts.push_back(fmt::format("{}", fmt::join(repair.processes, " | ")));
  if (!repair.package.empty()) parts.push_back(repair.package);
  return fmt::format("{}", fmt::join(parts, "; "));
}

void apply_variables(const Repair& repair, const std::string& interposer, Variables& environment) {
  const auto find = [&](const std::string& name) {
    return std::find_if(environment.begin(), environment.end(),
                        [&](const auto& entry) { return entry.first == name; });
  };
  const auto set = [&](const std::string& name, const std::string& value) {
    const auto at = find(name);
    if (at != environment.end() && value.empty()) {
      environment.erase(at);
    } else if (at != environment.end()) {
      at->second = value;
    } else if (!value.empty()) {
      environment.emplace_back(name, value);
    }
  };
  for (const auto& [name, value] : repair.variables) set(name, value);
  std::vector<std::string> preloads;
  if (!repair.flags.empty() && !interposer.empty()) preloads.push_back(interposer);
  preloads.insert(preloads.end(), repair.preloads.begin(), repair.preloads.end());
  if (preloads.empty()) return;
  const auto before = find("LD_PRELOAD");
  set("LD_PRELOAD", joined(preloads, before == environment.end() ? "" : before->second));
}

Trace apply(const Repair& repair, Trace trace) {
  apply_variables(repair, "", trace.start.environment);
  for (const FlagRule& rule : repair.flags)
    for (LoaderCall& call : trace.calls) {
      if (!names(rule, call)) continue;
      if (rule.change == FlagChange::kDropGlobal)
        call.flags &= ~kRtldGlobal;
      else
        call.flags |= kRtldDeepbind;
    }
  return trace;
}

}  // namespace cohabit
