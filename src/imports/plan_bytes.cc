// One description for both directions: each field stands once, in visit(), so that what is written
// is what is read.
#include "imports/plan_bytes.h"

#include <algorithm>
#include <type_traits>

namespace cohabit::python {
namespace {

struct Writing {
  static constexpr bool kReads = false;
  Packer& packer;
  void text(const std::string& value) { packer.text(value); }
  template <class T>
  void number(const T& value) {
    packer.number(static_cast<uint64_t>(value));
  }
  template <class List>
  void count(const List& list) {
    packer.number(list.size());
  }
};

struct Reading {
  static constexpr bool kReads = true;
  Unpacker& unpacker;
  void text(std::string& value) { value = unpacker.text(); }
  template <class T>
  void number(T& value) {
    value = static_cast<T>(unpacker.number());
  }
  template <class T>
  void count(std::vector<T>& list) {
    list.resize(unpacker.count());
  }
};

template <class Way, class T>
void visit(Way& way, T& value);

template <class Way, class T>
void visit_list(Way& way, T& list) {
  way.count(list);
  for (auto& item : list) visit(way, item);
}

// What is shared is made whole before it is.
void visit_list(Reading& way, PlannedModules& modules) {
  const size_t count = way.unpacker.count();
  modules.reserve(count);
  for (size_t i = 0; i < count; i++) {
    PlannedModule module;
    visit(way, module);
    modules.push_back(std::move(module));
  }
}

template <class Way, class T>
void visit_optional(Way& way, T& text) {
  bool is_there = text.has_value();
  way.number(is_there);
  if constexpr (Way::kReads)
    if (is_there) text.emplace();
  if (is_there) way.text(*text);
}

template <class Way, class Whole>
void visit_plan(Way& way, Whole& plan) {
  visit_list(way, plan.modules);
  visit_list(way, plan.wanted);
  visit_list(way, plan.opens);
  visit_list(way, plan.undecided);
  visit_list(way, plan.raises);
  way.text(plan.failure);
  way.text(plan.failure_cause);
  way.text(plan.failure_file);
  way.number(plan.failure_line);
  way.number(plan.failure_declared);
  way.number(plan.failure_is_exit);
  visit_list(way, plan.importable);
  visit_list(way, plan.problems);
  visit_list(way, plan.events);
  visit_list(way, plan.sought);
  visit_list(way, plan.variables_changed);
  visit_list(way, plan.loaded);
  visit_list(way, plan.variables_set);
  visit_list(way, plan.path_added);
  way.number(plan.changes_imports);
}

template <class Way, class T>
void visit(Way& way, T& value) {
  using Kind = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Kind, std::string>) {
    way.text(value);
  } else if constexpr (std::is_same_v<Kind, std::pair<std::string, std::string>>) {
    way.text(value.first);
    way.text(value.second);
  } else if constexpr (std::is_same_v<Kind, PlannedModule>) {
    auto& [name, kind, path, importer, line] = value;
    way.text(name);
    way.number(kind);
    way.text(path);
    way.text(importer);
    way.number(line);
  } else if constexpr (std::is_same_v<Kind, PlannedOpen>) {
    auto& [name, flags, caller, cause, module, file, line, error, symbols] = value;
    visit_optional(way, name);
    way.number(flags);
    way.text(caller);
    way.number(cause);
    way.text(module);
    way.text(file);
    way.number(line);
    way.text(error);
    visit_list(way, symbols);
  } else if constexpr (std::is_same_v<Kind, AskedSymbol>) {
    auto& [name, is_there] = value;
    way.text(name);
    way.number(is_there);
  } else if constexpr (std::is_same_v<Kind, Undecided>) {
    auto& [file, line, what, may_fail] = value;
    way.text(file);
    way.number(line);
    way.text(what);
    way.number(may_fail);
  } else if constexpr (std::is_same_v<Kind, PlanEvent>) {
    auto& [kind, index] = value;
    way.number(kind);
    way.number(index);
  } else {
    static_assert(std::is_same_v<Kind, PlannedVariable>);
    auto& [name, file, line, asked_by, asked_line, opens_before] = value;
    way.text(name);
    way.text(file);
    way.number(line);
    way.text(asked_by);
    way.number(asked_line);
    way.number(opens_before);
  }
}

// How many things an event of this kind may speak of.
size_t most_of(const Plan& plan, PlanEvent::Kind kind) {
  switch (kind) {
    case PlanEvent::kEnter:
    case PlanEvent::kLeave:
      return plan.modules.size();
    case PlanEvent::kOpen:
      return plan.opens.size();
    case PlanEvent::kMissing:
    case PlanEvent::kVariable:
      return plan.sought.size();
  }
  return 0;
}

}  // namespace

void pack_plan(const Plan& plan, Packer& packer) {
  Writing way{packer};
  visit_plan(way, plan);
}

Plan unpack_plan(Unpacker& unpacker) {
  Plan plan;
  Reading way{unpacker};
  visit_plan(way, plan);
  std::erase_if(plan.events,
                [&](const PlanEvent& event) { return event.index >= most_of(plan, event.kind); });
  return plan;
}

}  // namespace cohabit::python
