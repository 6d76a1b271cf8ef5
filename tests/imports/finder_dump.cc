// Prints what the finder finds, one JSON document, for check_finder.py.
//   finder_dump ENVIRONMENT < names, one per line; dotted names are found from the top
// With --natives the names are modules, and what their native code imports is printed.
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "imports/finder.h"
#include "imports/native_names.h"

using namespace cohabit;
using namespace cohabit::python;

namespace {

nlohmann::json describe(const std::optional<ModuleSpec>& spec) {
  if (!spec) return nullptr;
  return {{"kind", static_cast<int>(spec->kind)}, {"path", spec->path}, {"search", spec->search}};
}

nlohmann::json natives_of(const ModuleSpec& spec, Finder& finder) {
  const Result<MappedFile> file = finder.tree().map(spec.path);
  if (!file) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  const elf::Object object = elf::parse(file->bytes());
  nlohmann::json names = nlohmann::json::array();
  for (const NativeImport& import : native_imports(object, file->bytes(), spec, finder))
    names.push_back({import.name, import.likely});
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  return {{"path", spec.path},
          {"imports", names},
          {"own", own_submodules(object, file->bytes(), spec)},
          {"milliseconds", spent.count()}};
}

}  // namespace

int main(int argc, char** argv) {
  const bool natives = argc > 2 && std::string(argv[2]) == "--natives";
  const Tree tree;
  const Result<Interpreter> interpreter = find_interpreter(tree, argc > 1 ? argv[1] : "");
  if (!interpreter) {
    std::cerr << interpreter.error().message << "\n";
    return 2;
  }
  Finder finder(tree, *interpreter);
  nlohmann::json answer;
  answer["executable"] = interpreter->executable;
  answer["path"] = finder.path();
  answer["suffixes"] = finder.extension_suffixes();
  answer["pth_lines"] = finder.pth_lines().size();
  if (!natives) answer["names"] = finder.names_in(finder.path());
  for (std::string name; std::getline(std::cin, name);) {
    const std::optional<ModuleSpec> spec = finder.find_dotted(name);
    if (natives && spec && spec->kind == ModuleKind::kNative)
      answer["found"][name] = natives_of(*spec, finder);
    else if (!natives)
      answer["found"][name] = describe(spec);
    if (finder.is_builtin(name)) answer["builtin"].push_back(name);
  }
  std::cout << answer.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}
