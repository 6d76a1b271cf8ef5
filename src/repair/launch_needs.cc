#include "repair/launch_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/paths.h"
#include "base/rows.h"
#include "facts/cuda/builds.h"
#include "facts/cuda/driver_table.h"
#include "findings/environment.h"
#include "findings/toolkit.h"
#include "findings/variables.h"

namespace cohabit {
namespace {

constexpr std::string_view kTable =
#include "data/environment.inc"
    ;
// The first driver with lazy loading, and the first that does it unasked (CUDA 11.7 and 12.2).
constexpr std::string_view kFirstLazyDriver = "515";
constexpr std::string_view kLazyByDefault = "535";
constexpr cuda::CudaVersion kFirstLazyCuda = {11, 7};

struct Row {
  std::string name, value;
  std::vector<std::string_view> readers, files, unless;
  std::string_view when, reason, source;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> read;
    for (const TableRow& row : table_rows(kTable, 8))
      read.push_back({std::string(row[0]), std::string(row[1]), split_list(row[2], ','),
                      split_list(row[3], ','), split_list(row[5], ','), row[4], row[6], row[7]});
    return read;
  }();
  return kRows;
}

void put(std::string& text, std::string_view key, std::string_view value) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + value.size()))
    text.replace(at, key.size(), value);
}

// What a condition found out.
struct Need {
  std::string place, origin;
};

class Needs {
 public:
  explicit Needs(const LaunchFacts& facts) : facts_(facts) {
    for (cuda::FrameworkBuild& build :
         cuda::read_builds(facts.tree, facts.interpreter, facts.distributions))
      if (build.cuda) builds_.push_back(std::move(build));
    if (!builds_.empty())
      toolkits_ =
          find_toolkits(facts.tree, facts.interpreter, facts.distributions, facts.variables);
  }

  LaunchNeeds find();

 private:
  using Build = cuda::FrameworkBuild;

  bool is_set(std::string_view name) const { return facts_.variables.contains(std::string(name)); }
  std::string variable(const std::string& name) const {
    return variable_of(facts_.variables, name);
  }
  static std::string name_of(const Build& build) {
    return build.distribution ? label(*build.distribution) : build.module;
  }
  std::string others_than(const Build& build) const;
  bool has_word(const Row& row, std::string_view word) const {
    return stands_in_package(facts_.tree, facts_.interpreter, row.files, word);
  }
  std::optional<Need> examine(const Row& row, const Build& build) const;
  std::optional<Need> libdevice_for(const Build& build) const;
  std::optional<Need> ptxas_for(const Build& build) const;
  std::optional<Need> nvcc_for(const Build& build) const;
  bool is_eager(const Build& build) const;
  std::optional<Need> renamed(const Row& row) const;
  const Toolkit* toolkit_for(const Build& build, bool Toolkit::* has) const;
  void apply(const Row& row, LaunchNeeds& needs) const;
  void add(const Row& row, const Build& build, const Need& need, LaunchNeeds& needs) const;
  void describe_tools(LaunchNeeds& needs) const;

  const LaunchFacts& facts_;
  std::vector<Build> builds_;  // for CUDA
  std::vector<Toolkit> toolkits_;
};

std::string Needs::others_than(const Build& build) const {
  std::vector<std::string> names;
  for (const Build& other : builds_)
    if (other.module != build.module) names.push_back(name_of(other));
  return list_some(names, 4);
}

// Of the build's CUDA if there is one, else the first that has it.
const Toolkit* Needs::toolkit_for(const Build& build, bool Toolkit::* has) const {
  const Toolkit* best = nullptr;
  for (const Toolkit& toolkit : toolkits_) {
    if (!(toolkit.*has)) continue;
    if (toolkit.major == build.cuda->major) return &toolkit;
    if (!best) best = &toolkit;
  }
  return best;
}

// Not where the user's XLA_FLAGS name a directory: that is judged by `cohabit env --check`.
std::optional<Need> Needs::libdevice_for(const Build& build) const {
  if (variable("XLA_FLAGS").find("--xla_gpu_cuda_data_dir") != std::string::npos)
    return std::nullopt;
  if (search_toolkit(facts_.tree, facts_.variables, build).complete) return std::nullopt;
  const Toolkit* toolkit = toolkit_for(build, &Toolkit::has_libdevice);
  if (!toolkit) return std::nullopt;
  return Need{toolkit->root, toolkit->origin};
}

std::optional<Need> Needs::ptxas_for(const Build& build) const {
  const ToolkitSearch search = search_toolkit(facts_.tree, facts_.variables, build);
  if (search.has_ptxas || !find_on_path(facts_.tree, variable("PATH"), "ptxas").empty())
    return std::nullopt;
  if (const auto set = libdevice_for(build); set && facts_.tree.stat(set->place + "/bin/ptxas"))
    return std::nullopt;  // the directory that XLA_FLAGS will name has it
  const Toolkit* toolkit = toolkit_for(build, &Toolkit::has_ptxas);
  if (!toolkit) return std::nullopt;
  return Need{toolkit->root + "/bin", toolkit->origin};
}

std::optional<Need> Needs::nvcc_for(const Build& build) const {
  if (!find_on_path(facts_.tree, variable("PATH"), "nvcc").empty() ||
      facts_.tree.stat("/usr/local/cuda"))
    return std::nullopt;
  for (const Toolkit& toolkit : toolkits_)  // of another CUDA, torch refuses it
    if (toolkit.has_nvcc && toolkit.major == build.cuda->major)
      return Need{toolkit.root, toolkit.origin};
  return std::nullopt;
}

// torch asks for lazy loading itself, just before its own first use.
bool Needs::is_eager(const Build& build) const {
  const std::string& driver = facts_.gpu.driver();
  return build.module != "torch" && *build.cuda >= kFirstLazyCuda && !driver.empty() &&
         cuda::is_driver_at_least(driver, kFirstLazyDriver) &&
         !cuda::is_driver_at_least(driver, kLazyByDefault);
}

std::optional<Need> Needs::renamed(const Row& row) const {
  const std::string other = row.value.substr(1);
  if (!is_set(other) || has_word(row, other)) return std::nullopt;
  return Need{};
}

std::optional<Need> Needs::examine(const Row& row, const Build& build) const {
  const auto when = [](bool needed) { return needed ? std::optional<Need>(Need{}) : std::nullopt; };
  if (row.when == "shared") return when(!others_than(build).empty());
  if (row.when == "no-libdevice") return libdevice_for(build);
  if (row.when == "no-ptxas") return ptxas_for(build);
  if (row.when == "no-nvcc") return nvcc_for(build);
  if (row.when == "eager-driver") return when(is_eager(build));
  if (row.when == "renamed") return renamed(row);
  if (row.when != "mixed-gpus") return std::nullopt;
  std::set<uint16_t> kinds;
  for (const cuda::Gpu& gpu : facts_.gpu.gpus) kinds.insert(gpu.device);
  return when(kinds.size() > 1);
}

void Needs::add(const Row& row, const Build& build, const Need& need, LaunchNeeds& needs) const {
  NeededVariable variable;
  variable.name = row.name;
  variable.part = row.value;
  variable.setting = row.value.starts_with('$') ? Setting::kCopy
                     : row.name == "PATH"       ? Setting::kPrepend
                     : is_set(row.name)         ? Setting::kAppend
                                                : Setting::kSet;
  if (variable.setting == Setting::kCopy) variable.part.erase(0, 1);
  if (variable.setting == Setting::kPrepend) variable.separator = ":";
  variable.reason = row.reason;
  variable.source = row.source;
  for (std::string* text : {&variable.part, &variable.reason}) {
    put(*text, "{reader}", name_of(build));
    put(*text, "{others}", others_than(build));
    put(*text, "{driver}", facts_.gpu.driver());
    put(*text, "{origin}", need.origin);
    put(*text, "{place}", need.place);
  }
  needs.variables.push_back(std::move(variable));
}

void Needs::apply(const Row& row, LaunchNeeds& needs) const {
  const bool grows = row.name == "PATH" || row.name == "XLA_FLAGS";
  if (is_set(row.name) && !grows) return;
  if (std::any_of(row.unless.begin(), row.unless.end(), [&](auto name) { return is_set(name); }))
    return;
  for (const Build& build : builds_) {
    const bool reads = std::any_of(row.readers.begin(), row.readers.end(), [&](auto reader) {
      return reader == "*" || reader == build.module;
    });
    if (!reads) continue;
    const auto need = examine(row, build);
    if (!need || (!row.files.empty() && !has_word(row, row.name))) continue;
    return add(row, build, *need, needs);
  }
}

// Where XLA gets both from, once what is needed is set.
void Needs::describe_tools(LaunchNeeds& needs) const {
  VariableMap after = facts_.variables;
  for (const NeededVariable& variable : needs.variables)
    if (const auto value = value_of(variable, facts_.variables)) after[variable.name] = *value;
  const auto origin_of = [&](const std::string& path) {
    for (const Toolkit& toolkit : toolkits_)
      if (is_below(path, toolkit.root)) return toolkit.origin;
    return std::string("PATH");
  };
  for (const Build& build : builds_) {
    if (build.module != "tensorflow" && build.module != "jax") continue;
    const ToolkitSearch search = search_toolkit(facts_.tree, after, build);
    if (search.complete) {
      const std::string path = search.taken + "/nvvm/libdevice/libdevice.10.bc";
      needs.tools.push_back({"libdevice", path, origin_of(path), name_of(build)});
    }
    const std::string ptxas = search.has_ptxas
                                  ? search.taken + "/bin/ptxas"
                                  : find_on_path(facts_.tree, variable_of(after, "PATH"), "ptxas");
    if (!ptxas.empty()) needs.tools.push_back({"ptxas", ptxas, origin_of(ptxas), name_of(build)});
  }
}

LaunchNeeds Needs::find() {
  LaunchNeeds needs;
  for (const Row& row : rows()) apply(row, needs);
  describe_tools(needs);
  return needs;
}

}  // namespace

std::string_view setting_name(Setting setting) {
  switch (setting) {
    case Setting::kSet:
      return "set";
    case Setting::kAppend:
      return "append";
    case Setting::kPrepend:
      return "prepend";
    case Setting::kCopy:
      return "copy";
    default:
      return "replace";
  }
}

std::optional<std::string> value_of(const NeededVariable& variable, const VariableMap& variables) {
  const std::string before = variable_of(variables, variable.name);
  switch (variable.setting) {
    case Setting::kAppend:
      return before.empty() ? variable.part : before + variable.separator + variable.part;
    case Setting::kPrepend:
      return before.empty() ? variable.part : variable.part + variable.separator + before;
    case Setting::kCopy:
      return variable_of(variables, variable.part);
    case Setting::kReplace:
      if (variable.part.empty()) return std::nullopt;
      return variable.part;
    default:
      return variable.part;
  }
}

std::string shell_line(const NeededVariable& variable, bool guarded) {
  const std::string& name = variable.name;
  const std::string part = shell_word(variable.part);
  switch (variable.setting) {
    case Setting::kAppend:
      return fmt::format("export {0}=\"${{{0}:+${0}{1}}}\"{2}", name, variable.separator, part);
    case Setting::kPrepend:
      return fmt::format("export {0}={2}\"${{{0}:+{1}${0}}}\"", name, variable.separator, part);
    case Setting::kCopy:
      return fmt::format("export {}=\"${}\"", name, variable.part);
    case Setting::kReplace:
      return variable.part.empty() ? "unset " + name : fmt::format("export {}={}", name, part);
    default:
      return fmt::format("{}export {}={}",
                         guarded ? fmt::format("[ \"${{{}+set}}\" ] || ", name) : "", name, part);
  }
}

LaunchNeeds find_needs(const LaunchFacts& facts) {
  return Needs(facts).find();
}

}  // namespace cohabit
