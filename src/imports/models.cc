#include "imports/models.h"

#include <fmt/format.h>

#include <unordered_map>

namespace cohabit::python {
namespace {

// "Path.parent()" is the property "parent" of "Path".
std::pair<std::string_view, std::string_view> split(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  std::string_view name = dotted.substr(dot + 1);
  if (name.ends_with("()")) name.remove_suffix(2);
  return {dotted.substr(0, dot), name};
}

struct Hash {
  size_t operator()(std::string_view text) const { return hash_of_text(text); }
};
using Owned = std::unordered_map<std::string_view, const ModelRow*, Hash>;

// By owner (a module or a type), then by name.
const std::unordered_map<std::string_view, Owned, Hash>& table() {
  static const auto made = [] {
    std::unordered_map<std::string_view, Owned, Hash> result;
    for (const auto rows : {builtin_models(), value_models(), system_models(), data_models(),
                            pattern_models(), task_models(), import_models(), entry_point_models()})
      for (const ModelRow& row : rows) {
        const auto [owner, name] = split(row.name);
        result[owner].emplace(name, &row);
      }
    return result;
  }();
  return made;
}

}  // namespace

const ModelRow* find_model(std::string_view owner, std::string_view name) {
  const auto found = table().find(owner);
  if (found == table().end()) return nullptr;
  const auto row = found->second.find(name);
  return row == found->second.end() ? nullptr : row->second;
}

const ModelRow* find_model(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  return find_model(dotted.substr(0, dot), dotted.substr(dot + 1));
}

std::vector<const ModelRow*> models_of(std::string_view module) {
  std::vector<const ModelRow*> result;
  const auto found = table().find(module);
  if (found == table().end()) return result;
  for (const auto& [name, row] : found->second)
    if (!row->name.ends_with("()")) result.push_back(row);
  return result;
}

}  // namespace cohabit::python
