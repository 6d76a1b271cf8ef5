// Scripts that installers make for entry points are in no wheel, and each installer writes others.
// What tells two of them apart is the function that they call: it stands in place of a hash, for
// what comes and for what is there.
#include "actions/check/expected_environment.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "base/paths.h"
#include "base/rows.h"
#include "base/tree.h"
#include "base/write_file.h"
#include "facts/python/entry_points.h"
#include "facts/python/installed_files.h"
#include "facts/python/requirement.h"

namespace cohabit::check {
namespace {

constexpr std::string_view kModule = "/__init__.py";
constexpr uint64_t kMaxText = 16 << 20;

// Names from wheels become names of files.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+!";
  return !name.empty() && name.front() != '.' && name.size() < 200 &&
         name.find_first_not_of(kPlain) == name.npos;
}

// "numba" of "numba/__init__.py"; empty: no package, or no name for one.
std::string package_of(std::string_view path) {
  if (!path.ends_with(kModule)) return "";
  const std::string_view name = path.substr(0, path.size() - kModule.size());
  return is_plain_name(name) ? std::string(name) : "";
}

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail(fmt::format("cannot make {}: {}", path, std::strerror(errno)));
}

// Headers of METADATA, of a wheel that could not be read.
std::string poor_metadata(const Arrival& arrival) {
  return fmt::format("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", arrival.name,
                     arrival.version);
}

// A row of RECORD.
std::string row_of(const Script& script, const std::string& prefix) {
  return fmt::format("{}/bin/{},entry-point={},\n", prefix, script.name, script.call);
}

std::set<std::string> names_that_go(const Plan& plan) {
  std::set<std::string> names;
  for (const Arrival& one : plan.arrivals) names.insert(normal_name(one.name));
  for (const Departure& one : plan.departures) names.insert(normal_name(one.name));
  return names;
}

}  // namespace

Result<std::string> find_site(const Interpreter& python) {
  for (const std::string& site : python.site_directories)
    if (is_below(site, python.prefix)) return site;
  return fail(
      fmt::format("{} has no site-packages below it that an installer would fill", python.prefix));
}

wheels::Layout layout_of(const Interpreter& python, const std::string& site) {
  wheels::Layout layout;
  for (std::string at = site; at.size() > python.prefix.size(); at = directory_of(at))
    layout.prefix += layout.prefix.empty() ? ".." : "/..";
  layout.headers = fmt::format("include/site/python{}.{}", python.major, python.minor);
  return layout;
}

Result<ExpectedEnvironment> ExpectedEnvironment::make(const Interpreter& python,
                                                      const std::string& site,
                                                      const Distributions& present,
                                                      const Plan& plan, const Fetched& fetched,
                                                      Tool tool) {
  ExpectedEnvironment result;
  const char* set = std::getenv("TMPDIR");
  std::string place = fmt::format("{}/cohabit-XXXXXX", set && *set ? set : "/tmp");
  if (!::mkdtemp(place.data()))
    return fail(fmt::format("cannot make a directory for scratch files, {}: {}", place,
                            std::strerror(errno)));
  result.scratch_ = place;
  result.present_site_ = site;
  // Of the same name, so that a finding's place in it is the same.
  result.site_ = fmt::format("{}/{}", place, last_part(site));
  result.prefix_ = layout_of(python, site).prefix;
  if (auto made = make_directory(result.site_); !made) return tl::unexpected<Error>(made.error());
  if (auto done = result.write_what_comes(plan, fetched, tool); !done)
    return tl::unexpected<Error>(done.error());
  if (auto done = result.link_what_stays(present, plan); !done)
    return tl::unexpected<Error>(done.error());
  result.python_ = python;
  for (std::vector<std::string>* list :
       {&result.python_.site_directories, &result.python_.module_path})
    std::replace(list->begin(), list->end(), site, result.site_);
  result.distributions_ = Distributions::read(Tree(""), result.python_);
  return result;
}

Result<void> ExpectedEnvironment::write_what_comes(const Plan& plan, const Fetched& fetched,
                                                   Tool tool) {
  for (size_t i = 0; i < plan.arrivals.size(); i++) {
    const Arrival& arrival = plan.arrivals[i];
    const wheels::Wheel* wheel = fetched.wheels[i] ? &*fetched.wheels[i] : nullptr;
    std::string name = wheel ? wheel->dist_info : "";
    if (!wheel) name = fmt::format("{}-{}.dist-info", arrival.name, arrival.version);
    if (!is_plain_name(name)) name = fmt::format("arrival-{}.dist-info", i);
    const std::string directory = fmt::format("{}/{}", site_, name);
    if (auto made = make_directory(directory); !made) return made;
    std::string record = wheel ? wheel->record : "";
    if (wheel)
      for (const Script& script : wheel->scripts) {
        record += row_of(script, prefix_);
        scripts_.insert(script.name);
      }
    const std::pair<const char*, std::string> files[] = {
        {"METADATA", wheel ? wheel->metadata : poor_metadata(arrival)},
        {"RECORD", std::move(record)},
        {"INSTALLER", tool == Tool::kPip ? "pip" : "uv"}};
    for (const auto& [file, text] : files)
      if (auto done = write_file(fmt::format("{}/{}", directory, file), text); !done) return done;
  }
  return {};
}

Result<void> ExpectedEnvironment::add_modules(const std::vector<wheels::Module>& modules) const {
  for (const wheels::Module& module : modules) {
    const std::string package = package_of(module.path);
    if (package.empty()) continue;
    if (auto made = make_directory(fmt::format("{}/{}", site_, package)); !made) return made;
    const std::string path = fmt::format("{}/{}", site_, module.path);
    (void)::unlink(path.c_str());  // a link, where what stays has it too
    if (auto done = write_file(path, module.text); !done) return done;
  }
  return {};
}

// As it is, but for the scripts that somebody else would make too.
Result<void> ExpectedEnvironment::link_metadata(const Distribution& one) const {
  const auto link = [](const std::string& from, const std::string& to) -> Result<void> {
    if (::symlink(from.c_str(), to.c_str()) == 0 || errno == EEXIST) return {};
    return fail(fmt::format("cannot make {}: {}", to, std::strerror(errno)));
  };
  const std::string place = fmt::format("{}/{}", site_, last_part(one.metadata));
  const Tree tree("");
  std::vector<Script> common =
      parse_scripts(tree.read_text(one.metadata + "/entry_points.txt", kMaxText).value_or(""));
  std::erase_if(common, [&](const Script& script) { return !scripts_.contains(script.name); });
  const auto record = tree.read_text(one.metadata + "/RECORD", kMaxText);
  if (common.empty() || !record) return link(one.metadata, place);
  if (auto made = make_directory(place); !made) return made;
  std::string text;
  for (std::string_view row : split(*record, '\n')) {
    const bool is_told = std::any_of(common.begin(), common.end(), [&](const Script& script) {
      return row.starts_with(fmt::format("{}/bin/{},", prefix_, script.name));
    });
    if (!is_told) text.append(row).append("\n");
  }
  for (const Script& script : common) text += row_of(script, prefix_);
  if (auto done = write_file(place + "/RECORD", text); !done) return done;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(one.metadata, error))
    if (auto done =
            link(entry.path(), fmt::format("{}/{}", place, last_part(entry.path().string())));
        !done)
      return done;
  return {};
}

Result<void> ExpectedEnvironment::link_what_stays(const Distributions& present, const Plan& plan) {
  const std::set<std::string> going = names_that_go(plan);
  const Tree tree("");
  const InstalledFiles files = InstalledFiles::read(tree, present);
  for (uint32_t i = 0; i < present.all().size(); i++) {
    const Distribution& one = present.all()[i];
    if (one.site != present_site_ || going.contains(normal_name(one.name))) continue;
    if (auto linked = link_metadata(one); !linked) return linked;
    // What a package says about the versions of others stands in its __init__.py.
    const auto [begin, end] = files.rows_of(i);
    for (size_t row = begin; row < end; row++) {
      const std::string package = package_of(files.rows()[row].record.path);
      if (package.empty()) continue;
      const std::string module = fmt::format("{}{}", package, kModule);
      if (auto made = make_directory(fmt::format("{}/{}", site_, package)); !made) return made;
      const std::string from = fmt::format("{}/{}", present_site_, module);
      (void)::symlink(from.c_str(), fmt::format("{}/{}", site_, module).c_str());
    }
  }
  return {};
}

ExpectedEnvironment::ExpectedEnvironment(ExpectedEnvironment&& other) noexcept
    : scratch_(std::exchange(other.scratch_, "")),
      site_(std::move(other.site_)),
      present_site_(std::move(other.present_site_)),
      prefix_(std::move(other.prefix_)),
      scripts_(std::move(other.scripts_)),
      python_(std::move(other.python_)),
      distributions_(std::move(other.distributions_)) {}

ExpectedEnvironment::~ExpectedEnvironment() {
  std::error_code ignored;
  if (!scratch_.empty()) std::filesystem::remove_all(scratch_, ignored);
}

}  // namespace cohabit::check
