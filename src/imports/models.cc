#include "imports/models.h"

#include <unordered_map>

namespace cohabit::python {
namespace {

const std::unordered_map<std::string_view, ModelFunction>& by_name() {
  static const auto table = [] {
    std::unordered_map<std::string_view, ModelFunction> result;
    for (const auto rows :
         {builtin_models(), value_models(), system_models(), data_models(), import_models()})
      for (const ModelRow& row : rows) result.emplace(row.name, row.function);
    return result;
  }();
  return table;
}

const std::unordered_map<std::string_view, std::vector<std::pair<std::string_view, ModelFunction>>>&
by_module() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::vector<std::pair<std::string_view, ModelFunction>>>
        result;
    for (const auto& [name, function] : by_name()) {
      const size_t dot = name.rfind('.');
      if (dot != std::string_view::npos && !name.ends_with("()"))
        result[name.substr(0, dot)].emplace_back(name.substr(dot + 1), function);
    }
    return result;
  }();
  return table;
}

}  // namespace

ModelFunction find_model(std::string_view dotted) {
  const auto found = by_name().find(dotted);
  return found == by_name().end() ? nullptr : found->second;
}

std::vector<std::pair<std::string_view, ModelFunction>> models_of(std::string_view module) {
  const auto found = by_module().find(module);
  if (found == by_module().end()) return {};
  return found->second;
}

}  // namespace cohabit::python
