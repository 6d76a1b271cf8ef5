#include "imports/import_statements.h"

#include <algorithm>
#include <unordered_map>

#include "imports/module_name.h"
#include "imports/registers.h"

namespace cohabit::python {
namespace {

constexpr int kWrappers = 4;      // functions between a statement and CPython's
constexpr size_t kMaxTaken = 64;  // names that one statement takes

class Statements {
 public:
  Statements(const std::vector<CodeStep>& steps, CythonNames& names)
      : steps_(steps), names_(names) {}

  ImportStatements run(const std::unordered_set<uint64_t>& addresses) {
    find_wrappers();
    std::vector<uint64_t> loads, modules;
    for (const CodeStep& step : steps_) {
      if (step.kind == CodeStep::kLoad) loads.push_back(step.variable);
      if (is_import(step) && step.variable != 0) modules.push_back(step.variable);
    }
    names_.place_tables(loads, addresses, modules);
    find_shared();
    for (size_t i = 0; i < steps_.size(); i++)
      if (is_import(steps_[i])) calls_.push_back(i);
    for (size_t i = 0; i < calls_.size(); i++) add(i);
    result_.complete = read_ >= not_read_;
    return std::move(result_);
  }

 private:
  // The relative import's level that the function hands on, if it does not take it itself.
  using Level = std::optional<int>;

  bool is_import(const CodeStep& step) const {
    return step.kind == CodeStep::kCall && (step.is_import || wrappers_.contains(step.callee));
  }

  Level level_of(const CodeStep& call) const {
    const auto wrapper = wrappers_.find(call.callee);
    if (wrapper != wrappers_.end() && wrapper->second) return wrapper->second;
    if (call.is_by_variable) return call.sixth;
    // What Cython's own function is given: (name, list, level), (name, names, count, qualified
    // name, level), and the same with the module's dictionary before the level.
    if (call.is_import || call.fifth) return call.fifth;
    return call.sixth ? call.sixth : call.third;
  }

  void find_wrappers() {
    for (int round = 0; round < kWrappers; round++) {
      std::unordered_map<uint64_t, Level> further;
      for (const CodeStep& step : steps_)
        if (is_import(step) && step.variable == 0 && step.is_small) {
          const auto [known, is_new] = further.emplace(step.caller, level_of(step));
          if (!is_new && known->second != level_of(step)) known->second = std::nullopt;
        }
      wrappers_.insert(further.begin(), further.end());
    }
  }

  void find_shared() {
    std::unordered_map<uint64_t, bool> given_names;
    for (const CodeStep& step : steps_) {
      if (step.kind != CodeStep::kCall || !step.is_by_variable) continue;
      const std::string* name = names_.find(step.variable);
      const bool is_name = name && is_module_name(*name);
      const auto [known, is_new] = given_names.emplace(step.callee, is_name);
      known->second &= is_name;
    }
    for (const auto& [variable, is_import] : given_names)
      if (is_import) wrappers_.emplace(variable, std::nullopt);
  }

  void add(size_t which) {
    const CodeStep& call = steps_[calls_[which]];
    const std::string* module = names_.find(call.variable);
    if (!module) {
      if (!call.is_small || call.variable != 0) not_read_++;
      return;
    }
    read_++;
    const int level = level_of(call).value_or(0);
    std::string name(static_cast<size_t>(std::clamp(level, 0, 8)), '.');
    if (module->empty() && name.empty()) return;
    name += *module;
    add_name(name);
    if (name.back() != '.') name += '.';
    for (const std::string& taken : names_taken(which)) add_name(name + taken);
  }

  // A list of the names is made before the call, and each is asked for after it.
  std::vector<std::string> names_taken(size_t which) const {
    const size_t at = calls_[which];
    const size_t first = which == 0 ? 0 : calls_[which - 1] + 1;
    const size_t end = which + 1 == calls_.size() ? steps_.size() : calls_[which + 1];
    std::unordered_set<uint64_t> before;
    for (size_t i = at; i > first && before.size() < kMaxTaken; i--)
      if (steps_[i - 1].caller == steps_[at].caller && steps_[i - 1].kind == CodeStep::kLoad)
        before.insert(steps_[i - 1].variable);
    std::vector<std::string> taken;
    for (size_t i = at + 1; i < end && steps_[i].caller == steps_[at].caller; i++) {
      if (steps_[i].kind != CodeStep::kLoad || before.erase(steps_[i].variable) == 0) continue;
      const std::string* name = names_.find(steps_[i].variable);
      if (name && !name->empty() && steps_[i].variable != steps_[at].variable)
        taken.push_back(*name);
    }
    return taken;
  }

  void add_name(const std::string& name) {
    if (seen_.insert(name).second) result_.names.push_back(name);
  }

  const std::vector<CodeStep>& steps_;
  CythonNames& names_;
  std::unordered_map<uint64_t, Level> wrappers_;
  std::vector<size_t> calls_;  // steps
  size_t read_ = 0, not_read_ = 0;
  std::unordered_set<std::string> seen_;
  ImportStatements result_;
};

}  // namespace

namespace {

// The steps as they are where the strings are in a state that functions return, or are not.
std::vector<CodeStep> steps_of(const std::vector<CodeStep>& steps, bool state) {
  std::vector<CodeStep> result;
  for (const CodeStep& step : steps) {
    const bool other = step.variable != 0 && Registers::is_in_state(step.variable) != state;
    if (other && step.kind == CodeStep::kLoad) continue;
    result.push_back(step);
    if (other) result.back().variable = 0;
  }
  return result;
}

}  // namespace

ImportStatements read_statements(const std::vector<CodeStep>& steps,
                                 const std::unordered_set<uint64_t>& addresses,
                                 CythonNames& names) {
  const std::vector<CodeStep> plain = steps_of(steps, false);
  ImportStatements read = Statements(plain, names).run(addresses);
  if (read.complete && !read.names.empty()) return read;
  const std::vector<CodeStep> in_state = steps_of(steps, true);
  ImportStatements of_state = Statements(in_state, names).run(addresses);
  return of_state.complete && !of_state.names.empty() ? of_state : read;
}

}  // namespace cohabit::python
