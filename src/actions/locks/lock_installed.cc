#include "actions/locks/lock_installed.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "actions/locks/same_files.h"
#include "base/addresses.h"
#include "base/json_text.h"
#include "base/paths.h"
#include "facts/files/walk.h"
#include "facts/python/installed_files.h"
#include "facts/python/requirement.h"

namespace cohabit::locks {
namespace {

// conda writes where it was fetched from: with the platform's directory, and maybe with a token
// ("/t/TOKEN/channel").
template <class Json>
std::string channel_of(const Json& package) {
  std::string channel = bare_address(text_at(package, "channel"));
  const std::string platform = "/" + text_at(package, "subdir");
  if (platform.size() > 1 && channel.ends_with(platform))
    channel.resize(channel.size() - platform.size());
  constexpr std::string_view kToken = "/t/";
  if (const size_t token = channel.find(kToken); token != channel.npos)
    channel.erase(token,
                  std::min(channel.find('/', token + kToken.size()), channel.size()) - token);
  return channel;
}

CondaPackage read_conda(const Distribution& one) {
  CondaPackage package{one.name, one.version, "", ""};
  const auto text = Tree("").read_text(one.metadata);
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  package.build = text_at(json, "build");
  package.channel = channel_of(json);
  return package;
}

// Sorted by name, each once.
std::vector<const Distribution*> wheels_of(const Distributions& distributions,
                                           const std::string& prefix, Lock& lock) {
  std::map<std::string, std::vector<const Distribution*>> by_name;
  std::set<std::string> of_conda;
  size_t outside = 0;
  for (const Distribution& one : distributions.all())
    if (one.is_conda_package) of_conda.insert(normal_name(one.name));
  for (const Distribution& one : distributions.all()) {
    if (one.is_conda_package) {
      lock.conda.push_back(read_conda(one));
    } else if (one.site != prefix && !is_below(one.site, prefix)) {
      outside++;
    } else if (one.installer != "conda" || !of_conda.contains(normal_name(one.name))) {
      by_name[normal_name(one.name)].push_back(&one);
    }
  }
  if (outside > 0)
    lock.unsaid.push_back(
        {fmt::format("{} distributions", outside), "",
         "they lie outside of the environment (of its base Python, of the user)"});
  std::vector<const Distribution*> result;
  for (const auto& [name, all] : by_name) {
    const Distribution& one = *all.front();
    if (all.size() > 1)
      lock.unsaid.push_back({one.name, one.version,
                             fmt::format("there are {} of it: which one is meant is not certain "
                                         "(`cohabit doctor` names them)",
                                         all.size())});
    else if (!one.metadata.ends_with(".dist-info"))
      lock.unsaid.push_back({one.name, one.version, "it was not installed from a wheel"});
    else if (one.version.empty())
      lock.unsaid.push_back({one.name, one.version, "its metadata names no version"});
    else
      result.push_back(&one);
  }
  return result;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string notes_of(const Lock& lock) {
  std::string text;
  for (const Unsaid& one : lock.unsaid)
    text += one_line(fmt::format("# not here: {} {}: {}", one.name, one.version, one.why)) + "\n";
  for (const ChangedFile& one : lock.changed)
    text += one_line(fmt::format("# not as in the wheel of {}: {}: {}", one.distribution, one.path,
                                 one.why)) +
            "\n";
  return text;
}

// A single-quoted YAML text, where it could be taken for something else.
std::string yaml_text(const std::string& text) {
  std::string result = "'";
  for (const char c : one_line(text)) result.append(c == '\'' ? 2 : 1, c);
  return result + "'";
}

}  // namespace

std::string requirement_of(const LockedWheel& one) {
  return one.is_direct ? fmt::format("{} @ {}", one.name, one.wheel.address)
                       : fmt::format("{}=={}", one.name, one.version);
}

Lock lock_installed(const Question& question, const Distributions& distributions,
                    const std::string& prefix) {
  Lock lock;
  lock.python = question.python->version;
  const std::vector<const Distribution*> installed = wheels_of(distributions, prefix, lock);
  const std::vector<FoundWheel> found = find_wheels(question, installed);
  for (size_t i = 0; i < installed.size(); i++) {
    const Distribution& one = *installed[i];
    if (found[i].wheel.address.empty())
      lock.unsaid.push_back({one.name, one.version, found[i].why});
    else
      lock.wheels.push_back(
          {one.name, one.version, found[i].wheel, found[i].is_direct, found[i].is_bundled});
  }
  return lock;
}

std::vector<ChangedFile> find_changed(const Distributions& distributions, bool all) {
  const Tree tree("");
  const InstalledFiles files = InstalledFiles::read(tree, distributions);
  std::set<uint32_t> disputed;
  for (const std::vector<uint32_t>& group : files.claimed_twice())
    disputed.insert(group.begin(), group.end());
  std::vector<ChangedFile> changed;
  for (uint32_t i = 0; i < distributions.all().size(); i++) {
    const Distribution& one = distributions.all()[i];
    Entry record;
    if (!look_at(one.metadata + "/RECORD", record)) continue;
    const auto [begin, end] = files.rows_of(i);
    for (size_t row = begin; row < end; row++) {
      const RecordRow& claim = files.rows()[row].record;
      if (!claim.hash.starts_with("sha256=") || is_compiled(claim.path)) continue;
      const std::string path = files.path_of(files.rows()[row]);
      struct stat status{};
      if (::stat(path.c_str(), &status) != 0) {
        changed.push_back({one.name, path, "it is gone"});
        continue;
      }
      const int64_t modified =
          status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
      const bool believed = claim.size == status.st_size && modified <= record.modified &&
                            !disputed.contains(static_cast<uint32_t>(row));
      if (believed && !all) continue;
      const auto hash = record_hash(tree, path);
      std::string_view wanted = claim.hash;
      while (wanted.ends_with('=')) wanted.remove_suffix(1);
      if (!hash)
        changed.push_back({one.name, path, "it cannot be read"});
      else if (std::string_view(*hash).substr(0, wanted.size()) != wanted)
        changed.push_back({one.name, path, "its bytes are others"});
    }
  }
  return changed;
}

std::string format_requirements(const Lock& lock) {
  std::string text = fmt::format(
      "# made by `cohabit export`, of Python {}; for pip with --no-deps\n", lock.python);
  for (const CondaPackage& one : lock.conda)
    text += one_line(fmt::format("# not here: {} {}: it is conda's", one.name, one.version)) + "\n";
  for (const LockedWheel& one : lock.wheels) {
    if (one.is_bundled)
      text += fmt::format("# {}=={} comes with Python itself (ensurepip)\n", one.name, one.version);
    else
      text += fmt::format("{} \\\n    --hash=sha256:{}\n", requirement_of(one), one.wheel.hash);
  }
  return text + notes_of(lock);
}

std::string format_environment_yml(const Lock& lock, const std::string& name) {
  std::string text = fmt::format("name: {}\n", yaml_text(name));
  std::set<std::string> channels;
  for (const CondaPackage& one : lock.conda)
    if (!one.channel.empty()) channels.insert(one.channel);
  if (!channels.empty()) text += "channels:\n";
  for (const std::string& channel : channels) text += fmt::format("  - {}\n", yaml_text(channel));
  text += "dependencies:\n";
  for (const CondaPackage& one : lock.conda)
    text +=
        fmt::format("  - {}\n", yaml_text(fmt::format("{}={}{}{}", one.name, one.version,
                                                      one.build.empty() ? "" : "=", one.build)));
  // Outside of conda nobody has said in which channel that Python is: conda's settings decide.
  if (lock.conda.empty())
    text += fmt::format("  - {}\n  - pip\n", yaml_text("python=" + lock.python));
  std::string wheels;
  for (const LockedWheel& one : lock.wheels)
    if (!one.is_bundled) wheels += fmt::format("    - {}\n", yaml_text(requirement_of(one)));
  if (!wheels.empty()) text += "  - pip:\n" + wheels;
  return text + notes_of(lock);
}

}  // namespace cohabit::locks
