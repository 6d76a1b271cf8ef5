// uv.lock: https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile, a graph that starts at
// the package whose source is the project itself. poetry.lock: a list, each with the groups that
// want it. pylock.toml: PEP 751. environment.yml: conda's; only its pip section is an installer's.
#include "actions/check/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "actions/check/requirements_file.h"
#include "actions/pylock_version.h"
#include "actions/toml_text.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "findings/environment.h"

namespace cohabit::check {
namespace {

constexpr size_t kMaxFile = 64 << 20;

bool holds(const std::string& marker, const MarkerEnvironment& environment,
           std::string_view extra = "") {
  return marker.empty() || evaluate_marker(marker, environment, extra).value_or(true);
}

// The tables of an array; others in it are nothing.
template <class Node>
std::vector<const toml::table*> tables_of(const Node& node) {
  std::vector<const toml::table*> tables;
  if (const toml::array* list = node.as_array())
    for (const toml::node& one : *list)
      if (const toml::table* table = one.as_table()) tables.push_back(table);
  return tables;
}

// What a lock takes from a path, a repository or an address is no version of an index.
class Elsewhere {
 public:
  void add(const toml::table& package) { names_.insert(text_at(package, "name")); }
  void tell(const std::string& path, Input& input) const {
    if (!names_.empty())
      input.unknowns.push_back(
          fmt::format("{}: left out, since not from an index: {}", path,
                      list_some(std::vector<std::string>(names_.begin(), names_.end()))));
  }

 private:
  std::set<std::string> names_;
};

std::string pin(const toml::table& package) {
  return fmt::format("{}=={}", text_at(package, "name"), text_at(package, "version"));
}

bool has_version(const toml::table& package) {
  return !text_at(package, "name").empty() && !text_at(package, "version").empty();
}

// What stands in a file never becomes an option of the installer.
void keep_requirements(const std::string& path, Input& input) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> others;
  std::erase_if(input.words, [&](const std::string& word) {
    if (PackageRequirement::parse(word)) return false;
    others.push_back(without_credentials(word));
    return true;
  });
  if (others.empty()) return;
  const std::span<const std::string> named(others.data(), std::min(others.size(), kNamed));
  input.unknowns.push_back(fmt::format("{}: {} entr{} no requirement by name, and left out: {}{}",
                                       path, others.size(), others.size() == 1 ? "y is" : "ies are",
                                       fmt::join(named, ", "),
                                       others.size() > kNamed ? ", ..." : ""));
}

// "-c FILE" of a file, where all of FILE are requirements by name: an installer takes options from
// it too.
bool is_plain_constraint(const std::string& option, std::string& file) {
  constexpr std::string_view kConstraint = "-c ";
  if (!option.starts_with(kConstraint)) return false;
  file = option.substr(kConstraint.size());
  RequirementLines lines;
  if (::access(file.c_str(), R_OK) != 0 || !read_requirements(file, lines)) return false;
  return lines.options.empty() &&
         std::all_of(lines.requirements.begin(), lines.requirements.end(),
                     [](const std::string& line) { return PackageRequirement::parse(line); });
}

// Poetry 2 reads [project] as others do, where that has dependencies.
bool is_poetrys(const toml::table& file) {
  return file["tool"]["poetry"]["dependencies"].is_table() &&
         !file["project"]["dependencies"].is_array();
}

Input read_project(const toml::table& file) {
  Input input;
  input.words = texts_of(file["project"]["dependencies"]);
  return input;
}

Input read_pylock(const toml::table& file, MarkerEnvironment environment, const std::string& path) {
  environment.extras.emplace();
  environment.dependency_groups = texts_of(file["default-groups"]);
  Input input;
  input.is_lock = true;
  Elsewhere elsewhere;
  for (const toml::table* package : tables_of(file["packages"])) {
    if (!holds(text_at(*package, "marker"), environment)) continue;
    const bool is_elsewhere =
        package->contains("vcs") || package->contains("directory") || package->contains("archive");
    if (is_elsewhere)
      elsewhere.add(*package);
    else if (has_version(*package))
      input.words.push_back(pin(*package));
  }
  elsewhere.tell(path, input);
  return input;
}

// Of the group that is installed: before Poetry 1.5 in its `category`, since 2.0 with a marker of
// its own.
bool is_main(const toml::table& package) {
  const std::vector<std::string> groups = texts_of(package["groups"]);
  return groups.empty() ? package["category"].value_or(std::string("main")) == "main"
                        : std::find(groups.begin(), groups.end(), "main") != groups.end();
}

std::string marker_of(const toml::table& package) {
  const toml::table* by_group = package["markers"].as_table();
  return by_group ? text_at(*by_group, "main") : text_at(package, "markers");
}

Result<Input> read_poetry_lock(const toml::table& file, const MarkerEnvironment& environment,
                               const std::string& path) {
  // Poetry writes it last, in every release (poetry, packages/locker.py).
  if (!file["metadata"].is_table())
    return fail("it has no [metadata] at its end: it was cut short");
  Input input;
  input.is_lock = true;
  Elsewhere elsewhere;
  for (const toml::table* package : tables_of(file["package"])) {
    if (!has_version(*package) || !is_main(*package) || (*package)["optional"].value_or(false) ||
        !holds(marker_of(*package), environment))
      continue;
    const std::string source = (*package)["source"]["type"].value_or(std::string("legacy"));
    if (source == "legacy")
      input.words.push_back(pin(*package));
    else
      elsewhere.add(*package);
  }
  elsewhere.tell(path, input);
  return input;
}

// From the project along the dependencies that hold here; from all members of a workspace that has
// no project at its root.
class UvLock {
 public:
  UvLock(const toml::table& file, const MarkerEnvironment& environment)
      : environment_(environment),
        packages_(tables_of(file["package"])),
        members_(texts_of(file["manifest"]["members"])) {
    for (const toml::table* package : packages_)
      by_name_[text_at(*package, "name")].push_back(package);
  }

  Result<Input> read(const std::string& path) {
    const bool has_project =
        std::any_of(packages_.begin(), packages_.end(),
                    [](const toml::table* package) { return is_project(*package); });
    for (const toml::table* package : packages_)
      if (has_project ? is_project(*package) : is_member(*package))
        follow((*package)["dependencies"]);
    if (!missing_.empty())
      return fail(fmt::format("it wants {}, and has no such [[package]]: it was cut short",
                              *missing_.begin()));
    Input input;
    input.is_lock = true;
    Elsewhere elsewhere;
    for (const toml::table* package : chosen_) {
      const toml::table* source = (*package)["source"].as_table();
      if (!source || source->contains("registry"))
        input.words.push_back(pin(*package));
      else if (!is_project(*package))
        elsewhere.add(*package);
    }
    elsewhere.tell(path, input);
    return input;
  }

 private:
  bool is_member(const toml::table& package) const {
    return std::find(members_.begin(), members_.end(), text_at(package, "name")) != members_.end();
  }
  static bool is_project(const toml::table& package) {
    const auto source = package["source"];
    return source["editable"].value_or(std::string()) == "." ||
           source["virtual"].value_or(std::string()) == ".";
  }

  template <class Node>
  void follow(const Node& dependencies) {
    std::vector<const toml::table*> waiting = tables_of(dependencies);
    while (!waiting.empty()) {
      const toml::table& wanted = *waiting.back();
      waiting.pop_back();
      if (!holds(text_at(wanted, "marker"), environment_)) continue;
      const toml::table* package = find(wanted);
      if (!package) continue;
      if (chosen_.insert(package).second) add(tables_of((*package)["dependencies"]), waiting);
      for (const std::string& extra : texts_of(wanted["extra"]))
        if (seen_.emplace(package, extra).second)
          add(tables_of((*package)["optional-dependencies"][extra]), waiting);
    }
  }

  static void add(const std::vector<const toml::table*>& more,
                  std::vector<const toml::table*>& waiting) {
    waiting.insert(waiting.end(), more.begin(), more.end());
  }

  // A name may be locked in several versions; then the dependency names one.
  const toml::table* find(const toml::table& wanted) {
    const std::string name = text_at(wanted, "name");
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      missing_.insert(name);
      return nullptr;
    }
    const std::string version = text_at(wanted, "version");
    for (const toml::table* package : found->second)
      if (version.empty() || version == text_at(*package, "version")) return package;
    return nullptr;
  }

  const MarkerEnvironment& environment_;
  std::vector<const toml::table*> packages_;
  std::vector<std::string> members_;  // of a workspace
  std::map<std::string, std::vector<const toml::table*>> by_name_;
  std::set<const toml::table*> chosen_;
  std::set<std::pair<const toml::table*, std::string>> seen_;
  std::set<std::string> missing_;  // names that nothing in the file has
};

// The nodes of a YAML file. Aliases are references here: nothing is multiplied.
class Yaml {
 public:
  explicit Yaml(const std::string& text) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
    is_read_ = yaml_parser_load(&parser_, &document_) == 1;
  }
  Yaml(const Yaml&) = delete;
  Yaml& operator=(const Yaml&) = delete;
  ~Yaml() {
    if (is_read_) yaml_document_delete(&document_);
    yaml_parser_delete(&parser_);
  }

  yaml_node_t* root() { return is_read_ ? yaml_document_get_root_node(&document_) : nullptr; }
  yaml_node_t* node(int index) { return yaml_document_get_node(&document_, index); }
  static std::string text(const yaml_node_t* node) {
    if (!node || node->type != YAML_SCALAR_NODE) return "";
    return {reinterpret_cast<const char*>(node->data.scalar.value), node->data.scalar.length};
  }
  yaml_node_t* value(const yaml_node_t* map, std::string_view key) {
    if (!map || map->type != YAML_MAPPING_NODE) return nullptr;
    for (auto* pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++)
      if (text(node(pair->key)) == key) return node(pair->value);
    return nullptr;
  }
  std::vector<yaml_node_t*> items(const yaml_node_t* list) {
    std::vector<yaml_node_t*> result;
    if (!list || list->type != YAML_SEQUENCE_NODE) return result;
    for (auto* item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++)
      result.push_back(node(*item));
    return result;
  }

 private:
  yaml_parser_t parser_{};
  yaml_document_t document_{};
  bool is_read_ = false;
};

Result<Input> read_conda(const std::string& path, const std::string& text) {
  Yaml yaml(text);
  if (!yaml.root()) return fail(fmt::format("{}: expected YAML with a list of dependencies", path));
  size_t of_conda = 0;
  std::string lines;  // conda hands them to pip as a requirements file beside this one
  for (const yaml_node_t* item : yaml.items(yaml.value(yaml.root(), "dependencies"))) {
    if (!Yaml::text(item).empty()) of_conda++;
    for (const yaml_node_t* wanted : yaml.items(yaml.value(item, "pip")))
      if (const std::string word = Yaml::text(wanted); !word.empty()) lines += word + "\n";
  }
  RequirementLines wanted;
  if (auto done = read_requirements_text(lines, path, wanted); !done)
    return tl::unexpected<Error>(done.error());
  Input input;
  for (const std::string& line : wanted.requirements) input.words.push_back(without_options(line));
  std::vector<std::string> constraints;
  for (const std::string& option : wanted.options)
    if (std::string file; is_plain_constraint(option, file))
      constraints.insert(constraints.end(), {"-c", file});
    else
      input.words.push_back(option);
  keep_requirements(path, input);
  if (input.words.empty())
    return fail(fmt::format("{} has no pip section that names requirements", path));
  input.words.insert(input.words.end(), constraints.begin(), constraints.end());
  if (of_conda)
    input.unknowns.push_back(fmt::format(
        "{}: its {} conda packages are left to conda; only its pip section is looked at", path,
        of_conda));
  return input;
}

// What no installer reads as it is; a pyproject.toml or pylock.toml uv does.
Result<Input> read_toml(const std::string& name, const toml::table& file,
                        const MarkerEnvironment& environment, const std::string& path) {
  if (name == "uv.lock") return UvLock(file, environment).read(path);
  if (name == "poetry.lock") return read_poetry_lock(file, environment, path);
  if (name == "pyproject.toml") return read_project(file);
  return read_pylock(file, environment, path);
}

}  // namespace

Result<Input> read_input(const std::string& path, Tool tool, const MarkerEnvironment& environment) {
  const std::string name = last_part(path);
  const bool is_pylock = name.starts_with("pylock.") && name.ends_with(".toml");
  const bool is_project = name == "pyproject.toml";
  const bool is_conda = name.ends_with(".yml") || name.ends_with(".yaml");
  const bool is_lock = name == "uv.lock" || name == "poetry.lock";
  const bool is_ours = is_conda || is_lock || is_pylock || is_project;
  if (!is_ours) return Input{{"-r", path}, false, {}};
  const auto text = read_file(path, kMaxFile);
  if (!text) return tl::unexpected<Error>(text.error());
  if (is_conda) return read_conda(path, *text);
  const toml::parse_result parsed = toml::parse(*text);
  if (!parsed)
    return fail(fmt::format("{}: expected TOML, line {}: {}", path,
                            parsed.error().source().begin.line, parsed.error().description()));
  if (is_project && is_poetrys(parsed.table()))
    return fail(
        fmt::format("{}: its dependencies are Poetry's ([tool.poetry.dependencies]), which are not "
                    "read here: give its poetry.lock, or what `poetry export` writes, with -r",
                    path));
  const auto newer = is_pylock ? check_pylock_version(parsed.table()) : std::string();
  if (!newer) return fail(fmt::format("{}: {}", path, newer.error().message));
  Input input{{"-r", path}, false, {}};
  if (tool == Tool::kPip || is_lock) {
    Result<Input> read = read_toml(name, parsed.table(), environment, path);
    if (!read) return fail(fmt::format("{}: {}", path, read.error().message));
    input = std::move(*read);
    keep_requirements(path, input);
    if (input.words.empty())
      return fail(fmt::format("{} names nothing that would be installed here", path));
  }
  if (!newer->empty()) input.unknowns.push_back(fmt::format("{}: {}", path, *newer));
  return input;
}

}  // namespace cohabit::check
