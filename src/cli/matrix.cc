// cohabit matrix: which builds of the frameworks go with which machine, and which pairs of them go
// with each other; by the tables of data/ alone.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/addresses.h"
#include "base/rows.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "findings/compatibility.h"
#include "report/matrix.h"
#include "report/printable.h"

namespace cohabit {
namespace {

constexpr size_t kShownMinors = 8;

struct MatrixOptions {
  std::vector<std::string> frameworks;
  std::string wanted, python, platform, environment;
  std::vector<std::string> indexes;  // "cu126=URL"
  std::string format = "table";
  bool all = false, no_configuration = false;
};

using IndexMap = std::map<std::string, std::string>;

bool is_backend(std::string_view name) {
  return name.starts_with("cu") && name.size() >= 4 &&
         name.find_first_not_of("0123456789", 2) == name.npos;
}

Result<IndexMap> read_indexes(const MatrixOptions& options) {
  IndexMap indexes;
  if (!options.no_configuration) {
    auto configuration = read_configuration("");
    if (!configuration) return tl::unexpected<Error>(configuration.error());
    indexes = std::move(configuration->index_for);
  }
  for (const std::string& one : options.indexes) {
    const size_t equals = one.find('=');
    if (equals == one.npos || !is_backend(one.substr(0, equals)) || equals + 1 == one.size())
      return fail(
          fmt::format("--index-for cannot be {}; it is a CUDA and an address: cu126=URL", one));
    indexes[one.substr(0, equals)] = one.substr(equals + 1);
  }
  return indexes;
}

// As a shell takes it back.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// With what they import and do not require: an environment that has only what was asked for (of uv,
// of a venv for Python 3.12 and later) would lack it.
std::string requirements_of(const std::vector<const cuda::Build*>& builds, int python) {
  std::string text;
  std::vector<std::string> others;
  for (const cuda::Build* build : builds) {
    text += " " + quoted(build->install);
    for (const cuda::Undeclared* one : cuda::undeclared_of(*build, python))
      if (std::find(others.begin(), others.end(), one->needs) == others.end())
        others.push_back(one->needs);
  }
  for (const std::string& other : others) text += " " + quoted(other);
  return text;
}

// What installs these together: pip needs an address for builds that are not on the package index,
// uv knows those of torch by itself.
std::vector<report::InstallCommand> commands_for(const std::vector<const cuda::Build*>& builds,
                                                 int python, const IndexMap& indexes) {
  const std::string requirements = requirements_of(builds, python);
  std::string backend;
  bool only_torch = true;
  for (const cuda::Build* build : builds) {
    if (build->backend.empty()) continue;
    backend = build->backend;
    only_torch = only_torch && build->framework == "torch";
  }
  const std::string pip = "pip install" + requirements, uv = "uv pip install" + requirements;
  if (backend.empty()) return {{"pip", pip, ""}, {"uv", uv, ""}};
  const auto index = indexes.find(backend);
  // uv's own option: it goes before what its variables say, which --index-url does not.
  if (index != indexes.end()) {
    // What is printed ends in logs: the user's own configuration knows who they are.
    const std::string address = quoted(without_credentials(index->second));
    return {{"pip", pip + " --index-url " + address, ""},
            {"uv", uv + " --default-index " + address, ""}};
  }
  const std::string missing = fmt::format(
      "needs the address of an index with builds for {0}: --index-for {0}=URL", backend);
  return {{"pip", "", missing},
          only_torch ? report::InstallCommand{"uv", uv + " --torch-backend " + backend, ""}
                     : report::InstallCommand{"uv", "", missing}};
}

std::string own_platform() {
  utsname name{};
  return uname(&name) == 0 ? name.machine : "x86_64";
}

// What is known of this machine; what was asked for stays.
Result<void> fill_from_here(const MatrixOptions& options, WantedMachine& wanted) {
  const Tree tree("");
  World world(tree);
  if (find_environment(world, options.environment)) {
    if (!wanted.python && world.python->major == 3) wanted.python = 300 + world.python->minor;
    world.machine =
        read_machine(tree, world.python->elf_machine, "", world.python->elf_interpreter);
  } else if (!options.environment.empty()) {
    return fail("no Python environment in " + options.environment);
  } else {
    world.machine = read_machine(tree, wanted.platform == "aarch64" ? 183 : 62);
  }
  const auto host = gpu_host_of(tree, world.machine, own_variables(""), {});
  if (!host) return tl::unexpected<Error>(host.error());
  const bool asked_gpu = wanted.asks_gpu();
  if (wanted.driver.empty() && !wanted.has_no_gpu) wanted.driver = host->driver();
  if (wanted.sms.empty() && !wanted.has_no_gpu) wanted.sms = host->sms();
  wanted.has_no_gpu = !asked_gpu && wanted.driver.empty() && wanted.sms.empty();
  const GlibcVersion& glibc = world.machine.glibc;
  if (wanted.glibc.empty() && glibc.major > 0)
    wanted.glibc = fmt::format("{}.{}", glibc.major, glibc.minor);
  return {};
}

Result<WantedMachine> wanted_of(const MatrixOptions& options) {
  WantedMachine wanted;
  bool here = false;
  if (!options.wanted.empty())
    if (auto done = read_wanted(options.wanted, wanted, here); !done)
      return tl::unexpected<Error>(done.error());
  if (!options.python.empty()) {
    wanted.python = cuda::parse_python(options.python);
    if (!wanted.python)
      return fail(
          fmt::format("--python cannot be {}; it is a version such as 3.11", options.python));
  }
  if (!options.platform.empty()) wanted.platform = options.platform;
  if (wanted.platform.empty()) wanted.platform = own_platform();
  if (here)
    if (auto done = fill_from_here(options, wanted); !done)
      return tl::unexpected<Error>(done.error());
  return wanted;
}

// Each framework once, as the tables have them.
std::vector<std::string> all_frameworks() {
  std::vector<std::string> names;
  for (const cuda::Build& build : cuda::known_builds())
    if (std::find(names.begin(), names.end(), build.framework) == names.end())
      names.push_back(build.framework);
  return names;
}

report::MatrixPart builds_part(const MatrixOptions& options, const AskedFramework& asked,
                               const WantedMachine& wanted) {
  report::MatrixPart part;
  part.name = asked.name;
  std::vector<const cuda::Build*> builds;
  for (const cuda::Build* build : builds_of(asked)) {
    const bool fits = build->platform == wanted.platform || build->platform == "source";
    if (fits && (!wanted.python || build->takes_python(wanted.python))) builds.push_back(build);
  }
  if (!options.all && asked.version.empty()) builds = newest_patches(builds);
  const size_t limit = options.all || !asked.version.empty() ? builds.size()
                       : options.frameworks.empty()          ? 1
                                                             : kShownMinors;
  std::map<std::string, std::set<std::string>> minors;  // shown of a distribution
  for (const cuda::Build* build : builds) {
    std::set<std::string>& shown = minors[build->distribution];
    const std::string minor = minor_of(*build);
    if (!shown.contains(minor) && shown.size() >= limit) {
      part.left_out++;
      continue;
    }
    shown.insert(minor);
    part.builds.push_back({build, Fit::kRuns, {}});
  }
  return part;
}

report::MatrixPart chosen_part(const AskedFramework& asked, const WantedMachine& wanted,
                               const IndexMap& indexes) {
  report::MatrixPart part;
  part.name = asked.name;
  for (Judged& judged : best_builds(asked, wanted)) {
    std::vector<report::InstallCommand> commands;
    if (judged.build->platform != "source")
      commands = commands_for({judged.build}, wanted.python, indexes);
    auto undeclared = cuda::undeclared_of(*judged.build, wanted.python);
    part.chosen.push_back({std::move(judged), std::move(undeclared), std::move(commands)});
  }
  if (part.chosen.empty()) part.miss = nearest_miss(asked, wanted);
  return part;
}

bool is_sound(const cuda::SimulatedPair& row, const WantedMachine& wanted) {
  const bool on_gpu = wanted.asks_gpu();
  const std::string& outcome = on_gpu ? row.with_gpu : row.outcome;
  if (outcome != "sound") return false;
  for (const std::string_view one : split_list(row.alone, ','))
    if (on_gpu || !one.ends_with(" with a GPU")) return false;
  return true;
}

struct FoundPair {
  const cuda::SimulatedPair* row;
  const cuda::Build *first, *second;
  // What decides which comes first: how many leave the GPU alone that is there, or are built for
  // one that is not; the day of the newer, then that of the older.
  int on_cpu = 0;
  std::string newer, older;

  bool operator<(const FoundPair& other) const {
    if (on_cpu != other.on_cpu) return on_cpu < other.on_cpu;
    return std::tie(newer, older) > std::tie(other.newer, other.older);
  }
};

// Rows of these two, the first what is to be taken if it is sound; `left_out`: against the machine.
std::vector<FoundPair> pairs_for(const AskedFramework& first, const AskedFramework& second,
                                 bool is_for_machine, const WantedMachine& wanted,
                                 size_t& left_out) {
  std::vector<FoundPair> found;
  for (const cuda::SimulatedPair& row : cuda::simulated_pairs()) {
    const cuda::Build* a = build_of_pin(row.first);
    const cuda::Build* b = build_of_pin(row.second);
    if (!a || !b || a->framework == b->framework) continue;
    if (!(first.takes(*a) && second.takes(*b)) && !(first.takes(*b) && second.takes(*a))) continue;
    FoundPair one{
        &row, a, b, 0, std::max(a->released, b->released), std::min(a->released, b->released)};
    bool fits = true;
    for (const cuda::Build* build : {a, b}) {
      const Fit fit = is_for_machine ? judge(*build, wanted).fit : Fit::kRuns;
      fits = fits && fit != Fit::kNot;
      one.on_cpu += fit == Fit::kCpuOnly ? 1 : 0;
    }
    if (fits)
      found.push_back(std::move(one));
    else
      left_out++;
  }
  std::stable_sort(found.begin(), found.end());
  return found;
}

report::MatrixPair pair_of(const AskedFramework& first, const AskedFramework& second,
                           bool is_for_machine, const WantedMachine& wanted,
                           const IndexMap& indexes) {
  report::MatrixPair pair;
  pair.first = first.name;
  pair.second = second.name;
  for (const FoundPair& one : pairs_for(first, second, is_for_machine, wanted, pair.left_out)) {
    pair.rows.push_back(*one.row);
    if (!pair.sound.empty() || !is_sound(*one.row, wanted)) continue;
    pair.sound = {one.row->first, one.row->second};
    if (!is_for_machine) continue;
    pair.commands = commands_for({one.first, one.second}, wanted.python, indexes);
    for (const cuda::Build* build : {one.first, one.second})
      for (const cuda::Undeclared* row : cuda::undeclared_of(*build, wanted.python))
        pair.undeclared.push_back(row);
  }
  return pair;
}

Result<int> run_matrix(const MatrixOptions& options) {
  if (options.format != "table" && options.format != "json")
    return fail("--format cannot be " + options.format + "; it is one of table, json");
  if (!options.platform.empty() && options.platform != "x86_64" && options.platform != "aarch64")
    return fail("--platform cannot be " + options.platform + "; it is one of x86_64, aarch64");
  auto indexes = read_indexes(options);
  if (!indexes) return tl::unexpected<Error>(indexes.error());
  auto wanted = wanted_of(options);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  report::Matrix matrix;
  matrix.wanted = std::move(*wanted);
  matrix.is_for_machine = !options.wanted.empty();
  std::vector<AskedFramework> asked;
  for (const std::string& name :
       options.frameworks.empty() ? all_frameworks() : options.frameworks) {
    auto one = read_framework(name);
    if (!one) return tl::unexpected<Error>(one.error());
    asked.push_back(std::move(*one));
  }
  bool misses = false;
  if (matrix.is_for_machine || options.frameworks.size() < 2)
    for (const AskedFramework& one : asked) {
      matrix.parts.push_back(matrix.is_for_machine ? chosen_part(one, matrix.wanted, *indexes)
                                                   : builds_part(options, one, matrix.wanted));
      const report::MatrixPart& part = matrix.parts.back();
      misses = misses || (matrix.is_for_machine ? part.chosen.empty() : part.builds.empty());
    }
  for (size_t i = 0; !options.frameworks.empty() && i < asked.size(); i++)
    for (size_t j = i + 1; j < asked.size(); j++) {
      matrix.pairs.push_back(
          pair_of(asked[i], asked[j], matrix.is_for_machine, matrix.wanted, *indexes));
      misses = misses || matrix.pairs.back().rows.empty();
    }
  const std::string text =
      options.format == "json" ? report::json(matrix) : report::table(matrix, wants_colour());
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return misses && !options.frameworks.empty() ? 1 : 0;
}

}  // namespace

void add_matrix_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MatrixOptions>();
  CLI::App* command = app.add_subcommand(
      "matrix", "Say which builds of frameworks go with which machine, and with each other");
  command->footer(
      "Examples: cohabit matrix torch\n"
      "          cohabit matrix torch paddlepaddle\n"
      "          cohabit matrix torch --for \"driver 535, sm_75, python 3.10\"\n"
      "          cohabit matrix --for here\n"
      "From tables that come with this command; nothing is downloaded.\n"
      "Exit code: 0; 1 where no build or pair is known of what was asked for, or nothing fits; 2\n"
      "Cohabit failed, or does not know a name.");
  command->add_option("frameworks", options->frameworks,
                      "Modules or distributions: torch, paddlepaddle-gpu, torch==2.8; two or more: "
                      "the pairs of them");
  CLI::Option* wanted = command->add_option(
      "--for", options->wanted,
      "A machine: \"driver 535, sm_75, python 3.10\" (also glibc 2.31, cuda 12.6, "
      "x86_64, aarch64, here)");
  wanted->check([](const std::string& text) {
    return text.find_first_not_of(' ') == text.npos ? std::string("names no machine")
                                                    : std::string();
  });
  command->add_option("--index-for", options->indexes,
                      "cu126=URL: the address of an index with builds for that CUDA");
  command->add_option("--python", options->python, "Only what has wheels for this Python: 3.11");
  command->add_option("--platform", options->platform,
                      "x86_64 or aarch64 (default: this machine's)");
  command->add_option(
      "--env", options->environment,
      "With --for here: the environment whose Python counts (default: the active one)");
  command->add_flag("--all", options->all,
                    "All releases (default: the newest patch of the newest minors)");
  command->add_option("--format", options->format, "table or json")->capture_default_str();
  command->add_flag("--no-config", options->no_configuration, "Read no configuration");
  command->callback([options, &exit_code] {
    exit_code = exit_code_of(run_matrix(*options).map_error(
        [](const Error& error) { return Error{report::printable(error.message)}; }));
  });
}

}  // namespace cohabit
