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
    for (size_t at = 0; at < own_.size() && at < kMaxModules; at++) read(own_[at]);
    if (own_.size() > kMaxModules) asked_.silently = true;
    return std::move(asked_);
  }

 private:
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

  // Neither of the standard library nor of the installed packages.
  bool is_own(const python::ModuleSpec& spec) const {
    if (spec.kind == python::ModuleKind::kBuiltin) return false;
    const std::string place = spec.path.empty() ? spec.search.front() : spec.path;
    const auto lies_in = [&](const std::string& directory) { return is_below(place, directory); };
    return !lies_in(finder_.standard_library()) &&
           std::none_of(installed_in_.begin(), installed_in_.end(), lies_in);
  }

  void read(const python::ModuleSpec& spec) {
    if (spec.kind == python::ModuleKind::kNamespace) return;
    const auto text =
        spec.kind == python::ModuleKind::kSource ? tree_.read_text(spec.path) : std::nullopt;
    if (!text) {
      asked_.silently = true;
      return;
    }
    const python::ImportedNames found =
        python::imported_names(python::Syntax(*text), spec.package());
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

}  // namespace

Asked what_is_asked(const World& world, ProcessTools& tools,
                    const std::vector<std::string>& imports) {
  if (!world.python) return {imports, true};
  return AskedModules(world, finder_of(world, tools)).follow(imports);
}

}  // namespace cohabit
