// What a process was asked to import, the user's own modules looked through: no metadata says what
// those need, but their source does.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/paths.h"
#include "cli/examine.h"
#include "imports/imported_names.h"

namespace cohabit {
namespace {

constexpr size_t kMaxModules = 2000;

class AskedModules {
 public:
  AskedModules(const World& world, python::Finder& finder) : tree_(world.tree), finder_(finder) {
    for (const std::string& site : finder.interpreter().site_directories)
      if (site.ends_with("-packages")) installed_in_.insert(site);
    // What an installer put elsewhere (`pip install --target`); a project in place has an egg-info.
    for (const Distribution& distribution : world.distributions.all())
      if (distribution.metadata.ends_with(".dist-info")) installed_in_.insert(distribution.site);
  }

  Asked follow(const std::vector<std::string>& imports) {
    for (const std::string& name : imports)
      if (!add(name)) asked_.silently = true;  // made while it runs: nothing is known of it
    return follow_own();
  }

  // The code of a program.
  Asked follow_code(const std::string& text) {
    read_text(text, "");
    return follow_own();
  }

  // Neither of the standard library nor of the installed packages.
  bool is_own(const python::ModuleSpec& spec) const {
    if (spec.kind == python::ModuleKind::kBuiltin) return false;
    const std::string place = spec.path.empty() ? spec.search.front() : spec.path;
    const auto lies_in = [&](const std::string& directory) { return is_below(place, directory); };
    return !lies_in(finder_.standard_library()) &&
           std::none_of(installed_in_.begin(), installed_in_.end(), lies_in);
  }

 private:
  Asked follow_own() {
    for (size_t at = 0; at < own_.size() && at < kMaxModules; at++) read(own_[at]);
    if (own_.size() > kMaxModules) asked_.silently = true;
    return std::move(asked_);
  }

  // Importing a.b runs a first. False: there is no such module.
  bool add(const std::string& name) {
    if (!asked_for_.insert(name).second) return true;
    asked_.imports.push_back(name);
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      if (!look_at(name.substr(0, dot))) return false;
    return look_at(name);
  }

  bool look_at(const std::string& name) {
    if (!looked_at_.insert(name).second) return true;
    auto spec = finder_.find_dotted(name);
    const bool found = spec.has_value();
    if (found && is_own(*spec)) own_.push_back(std::move(*spec));
    return found;
  }

  void read(const python::ModuleSpec& spec) {
    if (spec.kind == python::ModuleKind::kNamespace) return;
    const auto text =
        spec.kind == python::ModuleKind::kSource ? tree_.read_text(spec.path) : std::nullopt;
    if (!text) {
      asked_.silently = true;
      return;
    }
    read_text(*text, spec.package());
  }

  void read_text(const std::string& text, std::string_view package) {
    const python::ImportedNames found = python::imported_names(python::Syntax(text), package);
    if (!found.complete) asked_.silently = true;
    for (const python::ImportedName& one : found.names) {
      add(one.module);
      for (const std::string& member : one.members) add_member(one.module, member);
    }
  }

  // `from a import b`: b is a module only if there is one.
  void add_member(const std::string& module, const std::string& member) {
    const std::string name = module + "." + member;
    const auto spec = finder_.find_dotted(name);
    if (spec && is_own(*spec)) add(name);
  }

  const Tree& tree_;
  python::Finder& finder_;
  Asked asked_;
  std::deque<python::ModuleSpec> own_;  // grows while it is read
  std::unordered_set<std::string> asked_for_, looked_at_, installed_in_;
};

// What it starts by itself is another program's to import.
bool starts_python(const std::string& text) {
  for (const char* words : {"sys.executable", "'python", "\"python"})
    if (text.find(words) != text.npos) return true;
  return false;
}

// subprocess.run(command, env=...): LD_PRELOAD goes on only if the program hands it on.
bool gives_environment(const std::string& text) {
  for (size_t at = text.find("env="); at != text.npos; at = text.find("env=", at + 1))
    if (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '(' || text[at - 1] == ',')) return true;
  return false;
}

// Of a module that is run: the user's own, or there would be nothing to look for.
std::optional<std::string> text_of(const Tree& tree, python::Finder& finder,
                                   const python::PlanRequest& program) {
  if (!program.code.empty()) return program.code;
  if (!program.code_file.empty()) return tree.read_text(program.code_file);
  auto module = finder.find_dotted(program.run_module);
  if (module && module->is_package()) module = finder.find_dotted(program.run_module + ".__main__");
  return module ? tree.read_text(module->path) : std::nullopt;
}

}  // namespace

LaterImports find_later_imports(const World& world, const python::PlanRequest& program,
                                const python::Plan& plan) {
  LaterImports later;
  python::Finder finder(world.tree, *world.python, program.directory);
  const auto text = text_of(world.tree, finder, program);
  if (!text) {
    later.are_open = true;
    return later;
  }
  AskedModules modules(world, finder);
  const Asked asked = modules.follow_code(*text);
  later.are_open = asked.silently || starts_python(*text);
  later.gives_environment = starts_python(*text) && gives_environment(*text);
  std::unordered_set<std::string_view> loaded;
  for (const python::PlannedModule& module : plan.modules) loaded.insert(module.name);
  const std::vector<std::string> frameworks = find_frameworks(world);
  const auto has_natives = [&](const python::ModuleSpec& spec) {
    const std::vector<Distribution>& all = world.distributions.all();
    return spec.is_package() && std::any_of(all.begin(), all.end(), [&](const Distribution& one) {
             return one.has_native_files_below(spec.search.front());
           });
  };
  const auto add_to = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& name : asked.imports) {
    const auto spec = finder.find_dotted(name);
    if (!spec || spec->kind == python::ModuleKind::kBuiltin || modules.is_own(*spec)) continue;
    const std::string& place = spec->path.empty() ? spec->search.front() : spec->path;
    const bool is_later = !loaded.contains(name);
    if (is_later) add_to(later.modules, name);
    if (is_below(place, finder.standard_library())) continue;
    const std::string root = name.substr(0, name.find('.'));
    if (is_later)
      add_to(later.named, name);
    else if (has_natives(*spec) || std::count(frameworks.begin(), frameworks.end(), root) > 0)
      add_to(later.named, root);
  }
  return later;
}

Asked what_is_asked(const World& world, ProcessTools& tools,
                    const std::vector<std::string>& imports) {
  if (!world.python) return {imports, true};
  if (!world.first_directory) return AskedModules(world, finder_of(world, tools)).follow(imports);
  python::Finder finder(world.tree, *world.python, world.first_directory);
  return AskedModules(world, finder).follow(imports);
}

}  // namespace cohabit
