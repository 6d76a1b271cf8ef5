// cohabit recreate: what there was; an environment beside its place; the wheels; the proof; the
// name.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "actions/check/expected_environment.h"
#include "actions/check/requirements_file.h"
#include "actions/launch.h"
#include "actions/locks/kept_metadata.h"
#include "actions/locks/lock_installed.h"
#include "actions/locks/pylock.h"
#include "actions/locks/recreate.h"
#include "actions/locks/same_files.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/kept_environment.h"
#include "cli/place_options.h"
#include "facts/python/requirement.h"
#include "report/printable.h"

namespace cohabit {
namespace {

struct RecreateOptions {
  std::string source, place;
  std::string environment, python;
  PlaceOptions places;
};

constexpr size_t kLargestLock = 64 << 20;

// What is to be made, and what it has to be equal to.
struct Wanted {
  locks::Lock lock;
  std::string requirements;  // a file that goes to the installer as it is; else the lock does
  std::optional<locks::Side> side;  // nothing: of a file, which knows no files
  std::optional<locks::KeptMetadata> kept;
  size_t expected = 0;  // distributions
};

std::string absolute(const std::string& path) {
  char here[PATH_MAX];
  return join_normal(::getcwd(here, sizeof here) ? here : "", path);
}

std::string setting_of(const std::string& text, std::string_view name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equal = line.find('=');
    if (equal == line.npos) continue;
    const std::string key = line.substr(0, line.find_first_of(" ="));
    const size_t first = line.find_first_not_of(' ', equal + 1);
    if (key == name && first != line.npos) return line.substr(first);
  }
  return "";
}

// The executable that made the environment, as it was named then.
std::string base_python_of(const Interpreter& python, const std::string& settings) {
  const std::string home = setting_of(settings, "home");
  for (const std::string& name :
       {fmt::format("{}/python{}.{}", home, python.major, python.minor), home + "/python3"})
    if (!home.empty() && ::access(name.c_str(), X_OK) == 0) return name;
  return python.real_path;
}

Result<locks::Recipe> recipe_of(const KeptEnvironment& model, const RecreateOptions& options) {
  if (model.python.kind == EnvironmentKind::kConda)
    return fail(
        "conda's packages are conda's to install: `cohabit export --format environment.yml` "
        "writes what `conda env create` reads");
  auto installer =
      locks::usual_installer(model.python, model.distributions, check::kFirstPipForOthers);
  if (!installer) return tl::unexpected<Error>(installer.error());
  const std::string settings = Tree("").read_text(model.prefix + "/pyvenv.cfg").value_or("");
  locks::Recipe recipe;
  recipe.installer = *installer;
  recipe.places = words_of(options.places, installer->tool);
  recipe.base_python = base_python_of(model.python, settings);
  recipe.sees_base_packages = model.python.system_site_packages;
  if (const auto uv = find_command("uv"); uv && !setting_of(settings, "uv").empty()) {
    recipe.by_uv_venv = true;
    recipe.uv = *uv;
  }
  return recipe;
}

locks::Question question_of(const locks::Recipe& recipe, const Interpreter& python,
                            const std::string& prefix, const std::string& site) {
  Interpreter there = python;
  there.prefix = prefix;
  return {recipe.installer, &python, check::layout_of(there, site), recipe.places};
}

Result<Wanted> want_environment(const KeptEnvironment& model, const locks::Recipe& recipe) {
  const auto site = check::find_site(model.python);
  if (!site) return tl::unexpected<Error>(site.error());
  Wanted wanted;
  wanted.lock = locks::lock_installed(question_of(recipe, model.python, model.python.prefix, *site),
                                      model.distributions, model.python.prefix);
  auto side = locks::read_side(model.prefix);
  if (!side) return tl::unexpected<Error>(side.error());
  wanted.side = std::move(*side);
  // What stands in files is what the environment was called when it was made.
  wanted.side->prefix = model.python.prefix;
  wanted.expected = wanted.lock.wheels.size() + wanted.lock.unsaid.size();
  return wanted;
}

Result<Wanted> want_snapshot(KeptEnvironment& model, const locks::Recipe& recipe,
                             const std::string& name) {
  const auto store = std::make_shared<Result<Store>>(open_store(model, Store::Access::kRead));
  if (!*store) return tl::unexpected<Error>(store->error());
  if (!(*store)->exists() || !(*store)->has(name))
    return fail(fmt::format("{} is no file, no environment, and no snapshot of {}",
                            report::printable(name), model.prefix));
  auto snapshot = (*store)->read(name);
  if (!snapshot) return tl::unexpected<Error>(snapshot.error());
  auto kept = locks::read_kept_metadata(**store, *snapshot);
  if (!kept) return tl::unexpected<Error>(kept.error());
  Wanted wanted;
  if (!kept->site.empty())
    wanted.lock =
        locks::lock_installed(question_of(recipe, model.python, kept->prefix(), kept->site),
                              kept->distributions, kept->prefix());
  wanted.lock.python = model.python.version;
  wanted.expected = wanted.lock.wheels.size() + wanted.lock.unsaid.size();
  wanted.side = locks::Side{snapshot->prefix, snapshot->prefix, std::move(snapshot->files), {}};
  wanted.side->text = [store](const SnapshotFile& row) {
    return locks::read_kept(**store, row, kLargestLock);
  };
  for (const SnapshotFile& row : wanted.side->files)
    if (row.path == "pyvenv.cfg") {
      const std::string text = locks::read_kept(**store, row, kLargestLock).value_or("");
      const std::string version = setting_of(text, "version") + setting_of(text, "version_info");
      if (!version.empty() && !version.starts_with(model.python.version))
        return fail(fmt::format("the snapshot is of Python {}, and the environment is of {} now",
                                version, model.python.version));
    }
  wanted.kept = std::move(*kept);
  return wanted;
}

// Of several wheels, the one that fits here.
Result<Wanted> want_pylock(const std::string& path, const std::string& text,
                           const Interpreter& python) {
  const auto file = locks::parse_pylock(text, directory_of(path));
  if (!file) return fail(fmt::format("{}: {}", path, file.error().message));
  if (!file->python.empty() && file->python != python.version)
    return fail(fmt::format("{} is of Python {}, and {} is {}: name another with --python", path,
                            file->python, python.executable, python.version));
  Wanted wanted;
  wanted.lock.python = python.version;
  MarkerEnvironment markers = MarkerEnvironment::of(python);
  markers.extras.emplace();
  markers.dependency_groups = file->default_groups;
  for (const locks::PylockPackage& package : file->packages) {
    if (!package.marker.empty() && !evaluate_marker(package.marker, markers, "").value_or(true))
      continue;
    wanted.expected++;
    std::vector<std::string> names;
    for (const locks::WheelAddress& wheel : package.wheels) names.push_back(wheel.file);
    const auto best = package.is_direct ? std::optional<size_t>(0)
                                        : check::best_wheel(names, check::target_of(python));
    if (!package.has_wheels || !best)
      wanted.lock.unsaid.push_back(
          {package.name, package.version, "the file has no wheel of it that fits here"});
    else if (package.wheels[*best].hash.empty())
      wanted.lock.unsaid.push_back(
          {package.name, package.version, "the file has no sha256 of its wheel"});
    else
      wanted.lock.wheels.push_back(
          {package.name, package.version, package.wheels[*best], package.is_direct, false});
  }
  for (const std::string& pin : file->bundled) {
    const size_t equal = std::min(pin.find("=="), pin.size());
    wanted.expected++;
    const auto wheel = locks::bundled_wheel(python, pin.substr(0, equal),
                                            pin.substr(std::min(equal + 2, pin.size())));
    if (wheel)
      wanted.lock.wheels.push_back(
          {pin.substr(0, equal), pin.substr(equal + 2), *wheel, false, true});
    else
      wanted.lock.unsaid.push_back({pin, "", "this Python does not bring it"});
  }
  return wanted;
}

// Whatever it is called: no line of a requirements file is so.
bool is_pylock(const std::string& text) {
  return text.starts_with("lock-version = ") || text.find("\nlock-version = ") != text.npos;
}

Result<Wanted> want_file(const std::string& path, const Interpreter& python) {
  const auto text = read_file(path, kLargestLock);
  if (!text) return tl::unexpected<Error>(text.error());
  if (path.ends_with(".toml") || is_pylock(*text)) return want_pylock(path, *text, python);
  if (path.ends_with(".yml") || path.ends_with(".yaml"))
    return fail(
        fmt::format("{}: an environment.yml has no hashes; `conda env create` reads it", path));
  check::RequirementLines lines;
  if (auto read = check::read_requirements(path, lines); !read)
    return tl::unexpected<Error>(read.error());
  for (const std::string& line : lines.requirements)
    if (line.find("--hash=sha256:") == line.npos)
      return fail(
          fmt::format("{}: `{}` has no --hash=sha256:...: which files it stands for is not "
                      "certain (`cohabit export --format requirements` writes them)",
                      path, report::printable(line)));
  Wanted wanted;
  wanted.lock.python = python.version;
  wanted.requirements = path;
  wanted.expected = lines.requirements.size();
  return wanted;
}

void tell_files(const std::vector<locks::Unlike>& files, const char* mark) {
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(files.size(), kShown); i++)
    fmt::print("{} {}: {}\n", mark, report::printable(files[i].path),
               report::printable(files[i].why));
  if (files.size() > kShown) fmt::print("{} and {} more\n", mark, files.size() - kShown);
}

int tell(const locks::Sameness& sameness, const Wanted& wanted, const std::string& place) {
  std::map<std::string, size_t> reasons;
  for (const locks::Unlike& one : sameness.explained) reasons[one.why]++;
  tell_files(sameness.differing, "differs");
  for (const locks::Unsaid& one : wanted.lock.unsaid)
    fmt::print("left out: {} {}: {}\n", report::printable(one.name), report::printable(one.version),
               report::printable(one.why));
  for (const auto& [why, count] : reasons)
    fmt::print("{} file{} not byte for byte: {}\n", count, count == 1 ? "" : "s", why);
  const bool equal = sameness.differing.empty() && wanted.lock.unsaid.empty();
  fmt::print(
      "{}: {} files are equal{}{}\n", place, sameness.equal,
      sameness.compiled > 0 ? fmt::format(", {} compiled ones were not compared", sameness.compiled)
                            : "",
      equal ? "" : fmt::format("; {} differ: it is not the same", sameness.differing.size()));
  return equal ? 0 : 1;
}

Result<locks::Sameness> prove(const Wanted& wanted, const locks::NewEnvironment& made,
                              const std::string& place) {
  auto side = locks::read_side(made.prefix());
  if (!side) return tl::unexpected<Error>(side.error());
  if (!wanted.side) {
    auto sameness = locks::compare_with_records(*side, {made.site()});
    const Distributions distributions = Distributions::read(Tree(""), {made.site()}, {});
    const size_t there = distributions.all().size();
    if (there + wanted.lock.unsaid.size() != wanted.expected)
      sameness.differing.push_back(
          {place, fmt::format("{} distributions of {}", there, wanted.expected)});
    return sameness;
  }
  side->prefix = place;
  return locks::compare_sides(*wanted.side, *side);
}

Result<int> run_recreate(const RecreateOptions& options) {
  const std::string place = absolute(options.place);
  const bool is_file = std::filesystem::is_regular_file(options.source) &&
                       ::access(options.source.c_str(), X_OK) != 0;
  const bool is_environment = !is_file && ::access(options.source.c_str(), F_OK) == 0;
  const std::string& named = is_environment            ? options.source
                             : !options.python.empty() ? options.python
                                                       : options.environment;
  auto model = find_kept_environment(named);
  if (!model) return tl::unexpected<Error>(model.error());
  if (const auto halfway = halfway_changed(model->prefix); is_environment && !halfway.empty())
    return fail(halfway);
  const auto recipe = recipe_of(*model, options);
  if (!recipe) return tl::unexpected<Error>(recipe.error());
  // Before anything is asked: a name that is taken costs nothing then.
  auto made = locks::NewEnvironment::make(*recipe, place);
  if (!made) return tl::unexpected<Error>(made.error());
  const auto wanted = is_file          ? want_file(absolute(options.source), model->python)
                      : is_environment ? want_environment(*model, *recipe)
                                       : want_snapshot(*model, *recipe, options.source);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  if (auto done = wanted->requirements.empty()
                      ? made->install(*recipe, wanted->lock)
                      : made->install_requirements(*recipe, wanted->requirements);
      !done)
    return fail(done.error().message + ": nothing was made");
  if (auto done = made->name_place(); !done)
    return fail(done.error().message + ": nothing was made");
  const auto sameness = prove(*wanted, *made, place);
  if (!sameness) return fail(sameness.error().message + ": nothing was made");
  if (auto done = made->put_in_place(); !done) return tl::unexpected<Error>(done.error());
  return tell(*sameness, *wanted, place);
}

}  // namespace

void add_recreate_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RecreateOptions>();
  CLI::App* command =
      app.add_subcommand("recreate", "Make an equal environment, and prove it file by file");
  command->footer(
      "Examples: cohabit recreate .venv other\n"
      "          cohabit recreate pylock.toml other --python .venv\n"
      "          cohabit recreate before-upgrade other --env .venv\n"
      "It is made beside its place by pip or uv, compared, and renamed when it is whole.\n"
      "Exit code: 0 equal, 1 made and not equal (what differs is named), 2 nothing was made.");
  command
      ->add_option("source", options->source,
                   "A pylock.toml, a requirements file with hashes, an environment, or a snapshot")
      ->required();
  command->add_option("place", options->place, "The new environment: nothing is there yet")
      ->required();
  command->add_option("--env", options->environment,
                      "Whose snapshot it is; whose Python and installer are taken (default: the "
                      "active environment)");
  command->add_option("--python", options->python,
                      "With a file: the environment or interpreter to take instead");
  add_place_options(*command, options->places);
  command->callback([options, &exit_code] { exit_code = exit_code_of(run_recreate(*options)); });
}

}  // namespace cohabit
