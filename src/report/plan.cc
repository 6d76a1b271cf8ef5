#include <nlohmann/json.hpp>

#include "base/secrets.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

std::string_view kind_name(python::ModuleKind kind) {
  switch (kind) {
    case python::ModuleKind::kSource:
      return "source";
    case python::ModuleKind::kNative:
      return "native";
    case python::ModuleKind::kBytecode:
      return "bytecode";
    case python::ModuleKind::kNamespace:
      return "namespace";
    default:
      return "builtin";
  }
}

Json place(const std::string& file, uint32_t line) {
  return {{"file", file}, {"line", line}};
}

Json points(const std::vector<python::Undecided>& list) {
  Json result = Json::array();
  for (const python::Undecided& point : list)
    result.push_back({{"what", point.what}, {"at", place(point.file, point.line)}});
  return result;
}

// In all texts: a name that a program imports or opens can be made of a variable's value.
void hide(Json& json, const std::vector<std::string>& values) {
  if (json.is_string()) json = without_secrets(json.get<std::string>(), values);
  if (!json.is_structured()) return;
  for (Json& item : json) hide(item, values);
}

}  // namespace

std::string plan_json(const python::Plan& plan, const std::vector<std::string>& imports,
                      const std::map<std::string, std::string>& variables) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["imports"] = imports;
  json["opens"] = Json::array();
  for (const python::PlannedOpen& open : plan.opens)
    json["opens"].push_back(
        {{"name", open.name ? Json(*open.name) : Json()},
         {"flags", open.flags},
         {"caller", open.caller},
         {"cause", open.cause == python::OpenCause::kExtension ? "extension" : "call"},
         {"module", open.module},
         {"at", place(open.file, open.line)},
         {"error", open.error.empty() ? Json() : Json(open.error)}});
  json["modules"] = Json::array();
  for (const python::PlannedModule& module : plan.modules)
    json["modules"].push_back({{"name", module.name},
                               {"kind", kind_name(module.kind)},
                               {"path", module.path},
                               {"importer", module.importer},
                               {"line", module.line}});
  json["undecided"] = points(plan.undecided);
  json["raises"] = points(plan.raises);
  json["failure"] =
      plan.failure.empty()
          ? Json()
          : Json({{"error", plan.failure}, {"at", place(plan.failure_file, plan.failure_line)}});
  json["problems"] = plan.problems;
  hide(json, secret_values(variables));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
