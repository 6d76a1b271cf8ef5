#include "actions/check/uv_settings.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/rows.h"

namespace cohabit::check {
namespace {

constexpr size_t kMaxFile = 4 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Of the nearest directory that has settings of uv: its uv.toml, or its pyproject.toml.
std::string file_of_project() {
  char here[PATH_MAX];
  if (!::getcwd(here, sizeof here)) return "";
  for (std::string at = here; !at.empty(); at = at == "/" ? "" : directory_of(at)) {
    if (::access((at + "/uv.toml").c_str(), R_OK) == 0) return at + "/uv.toml";
    const auto project = read_file(at + "/pyproject.toml", kMaxFile);
    if (project && project->find("[tool.uv") != project->npos) return at + "/pyproject.toml";
  }
  return "";
}

std::vector<std::string> files(const std::vector<std::string>& arguments) {
  std::string named = variable("UV_CONFIG_FILE");
  const std::string without = variable("UV_NO_CONFIG");
  bool none = !without.empty() && without != "0" && without != "false";
  for (size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i] == "--config-file" && i + 1 < arguments.size()) named = arguments[i + 1];
    if (arguments[i].starts_with("--config-file=")) named = arguments[i].substr(14);
    none = none || arguments[i] == "--no-config";
  }
  if (!named.empty()) return {named};
  if (none) return {};
  std::string own = variable("XDG_CONFIG_HOME");
  if (own.empty()) own = variable("HOME") + "/.config";
  std::string shared = variable("XDG_CONFIG_DIRS");
  if (shared.empty()) shared = "/etc";
  std::vector<std::string> result = {file_of_project(), own + "/uv/uv.toml"};
  for (const std::string_view directory : split(shared, ':'))
    result.push_back(std::string(directory) + "/uv/uv.toml");
  return result;
}

void add(const toml::table& settings, UvSettings& result) {
  const auto take = [&](const char* key, std::string& value) {
    if (value.empty()) value = settings[key].value<std::string>().value_or("");
  };
  take("http-proxy", result.http_proxy);
  take("https-proxy", result.https_proxy);
  if (result.offline_by.empty() && settings["offline"].value<bool>().value_or(false))
    result.offline_by = "offline in uv's settings";
  std::vector<std::string> hosts;
  if (const toml::array* list = settings["no-proxy"].as_array())
    for (const toml::node& node : *list)
      if (const auto host = node.value<std::string>()) hosts.push_back(*host);
  if (result.no_proxy.empty()) result.no_proxy = fmt::format("{}", fmt::join(hosts, ","));
}

}  // namespace

UvSettings uv_settings(const std::vector<std::string>& arguments) {
  UvSettings result;
  if (std::count(arguments.begin(), arguments.end(), "--offline") > 0)
    result.offline_by = "--offline";
  else if (const std::string said = variable("UV_OFFLINE"); said == "1" || said == "true")
    result.offline_by = "UV_OFFLINE";
  for (const std::string& path : files(arguments)) {
    if (path.empty()) continue;
    const auto text = read_file(path, kMaxFile);
    if (!text) continue;
    const toml::parse_result parsed = toml::parse(*text);
    if (!parsed) continue;  // uv says so itself
    result.text += *text + "\n";
    const bool is_project = last_part(path) == "pyproject.toml";
    const toml::table* settings =
        is_project ? parsed.table()["tool"]["uv"].as_table() : &parsed.table();
    if (settings) add(*settings, result);
  }
  return result;
}

}  // namespace cohabit::check
