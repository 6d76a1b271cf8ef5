#include "actions/check/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "actions/ask.h"
#include "actions/check/requirements_file.h"
#include "actions/check/uv_settings.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/rows.h"
#include "facts/python/requirement.h"
#include "facts/wheels/web_file.h"

namespace cohabit::check {
namespace {

constexpr size_t kThreads = 8;

struct Reading {
  Result<wheels::Wheel> wheel = fail("not read");
  std::unique_ptr<wheels::ByteSource> source;
};

Reading read_one(const Arrival& arrival, const wheels::WebSettings& settings,
                 const wheels::Layout& layout) {
  const auto refuse = [](Error error) {
    return Reading{tl::unexpected(std::move(error)), nullptr};
  };
  if (arrival.has_no_wheel)
    return refuse({"there is no wheel of it for this Python here, so it would be built"});
  if (arrival.address.empty()) return refuse({"the installer does not say where it is"});
  std::error_code ignored;
  const auto path = path_of_address(arrival.address);
  if (path && std::filesystem::is_directory(*path, ignored))
    return refuse({"it is a directory, whose files only building it tells"});
  auto source = open_wheel(arrival.address, settings);
  if (!source) return refuse(source.error());
  auto wheel = wheels::read_wheel(**source, arrival.name, layout);
  return {std::move(wheel), std::move(*source)};
}

std::string name_of(const Arrival& arrival) {
  const std::string address = arrival.address.substr(0, arrival.address.find_first_of("?#"));
  return address.empty() ? fmt::format("{} {}", arrival.name, arrival.version)
                         : percent_decoded(last_part(address));
}

void add(const Arrival& arrival, Reading reading, Fetched& result) {
  result.sources.push_back(std::move(reading.source));
  if (!reading.wheel) {
    result.unknowns.push_back(
        fmt::format("{} cannot be read, so what it would overwrite is unknown: {}",
                    name_of(arrival), without_credentials(reading.wheel.error().message)));
    result.wheels.emplace_back();
    return;
  }
  result.bytes_of_wheels += reading.wheel->size;
  for (const std::string& problem : reading.wheel->problems)
    result.unknowns.push_back(fmt::format("{}: {}", name_of(arrival), problem));
  if (result.sources.back()->came_whole())
    result.unknowns.push_back(
        fmt::format("the server of {} gives no ranges: all of its {} bytes were fetched",
                    name_of(arrival), reading.wheel->size));
  result.wheels.emplace_back(std::move(*reading.wheel));
}

// "${TOKEN}" in a requirements file is a variable's value, as pip and uv read it.
std::string with_variables(std::string text) {
  std::string result;
  for (size_t begin = text.find("${"); begin != text.npos; begin = text.find("${")) {
    const size_t end = text.find('}', begin);
    if (end == text.npos) break;
    const char* value = std::getenv(text.substr(begin + 2, end - begin - 2).c_str());
    result += text.substr(0, begin) + (value ? value : "");
    text.erase(0, end + 1);
  }
  return result + text;
}

}  // namespace

// Variables stand last, as pip weighs them.
std::string setting_of_pip(std::string_view listed, std::string_view option) {
  std::string value;
  for (std::string_view line : split(listed, '\n')) {
    const size_t equals = line.find("='");
    if (equals == line.npos || !line.ends_with('\'')) continue;
    const std::string_view name = line.substr(0, equals);
    const size_t dot = name.rfind('.');
    if (dot == name.npos || name.substr(dot + 1) != option) continue;
    const std::string_view section = name.substr(0, dot);
    if (section == "global" || section == "install" || section == ":env:")
      value = line.substr(equals + 2, line.size() - equals - 3);
  }
  return value;
}

std::string settings_of_pip(const Installer& installer) {
  if (installer.tool != Tool::kPip) return "";
  std::vector<std::string> command = installer.command;
  command.insert(command.end(), {"config", "list", "--disable-pip-version-check"});
  const auto answer = hear_program(command);
  return answer ? answer->output : "";
}

// Credentials stand where the indexes are named. What netrc holds, libcurl reads itself.
wheels::WebSettings web_settings(const Installer& installer, const Request& request) {
  wheels::WebSettings settings;
  for (const char* name : {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL",
                           "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"})
    if (const char* value = std::getenv(name)) wheels::collect_credentials(value, settings);
  for (const std::string& argument : request.arguments)
    wheels::collect_credentials(argument, settings);
  const RequirementLines lines = lines_of(request.arguments);
  for (const auto* list : {&lines.options, &lines.requirements})
    for (const std::string& line : *list)
      wheels::collect_credentials(with_variables(line), settings);
  const std::string of_pip = settings_of_pip(installer);
  wheels::collect_credentials(of_pip, settings);
  settings.http_proxy = settings.https_proxy = setting_of_pip(of_pip, "proxy");
  if (installer.tool == Tool::kUv) {
    const UvSettings of_uv = uv_settings(request.arguments);
    wheels::collect_credentials(of_uv.text, settings);
    settings.http_proxy = of_uv.http_proxy;
    settings.https_proxy = of_uv.https_proxy;
    settings.no_proxy = of_uv.no_proxy;
    settings.offline_by = of_uv.offline_by;
  }
  for (const char* name : {"PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    const char* value = std::getenv(name);
    if (value && *value && settings.certificates.empty()) settings.certificates = value;
  }
  return settings;
}

Result<std::unique_ptr<wheels::ByteSource>> open_wheel(const std::string& address,
                                                       const wheels::WebSettings& settings) {
  if (const auto path = path_of_address(address)) {
    auto file = wheels::LocalFile::open(*path);
    if (!file) return tl::unexpected<Error>(file.error());
    return std::make_unique<wheels::LocalFile>(std::move(*file));
  }
  if (!settings.offline_by.empty())
    return fail(
        fmt::format("it is on a server, and {} forbids to ask that; leave it out, or give "
                    "the wheel by --find-links DIR",
                    settings.offline_by));
  auto file = wheels::WebFile::open(address, settings);
  if (!file) return tl::unexpected<Error>(file.error());
  return std::make_unique<wheels::WebFile>(std::move(*file));
}

bool needs_web(const Plan& plan) {
  return std::any_of(plan.arrivals.begin(), plan.arrivals.end(), [](const Arrival& arrival) {
    return !arrival.address.empty() && !path_of_address(arrival.address);
  });
}

Fetched fetch_wheels(const Plan& plan, const wheels::WebSettings& settings,
                     const wheels::Layout& layout) {
  std::vector<Reading> readings(plan.arrivals.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < readings.size(); i = next.fetch_add(1))
      readings[i] = read_one(plan.arrivals[i], settings, layout);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(kThreads, readings.size()); i++) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  Fetched result;
  for (size_t i = 0; i < readings.size(); i++)
    add(plan.arrivals[i], std::move(readings[i]), result);
  return result;
}

std::vector<wheels::Module> fetch_refusals(const Plan& plan, const std::set<std::string>& names,
                                           Fetched& fetched) {
  std::vector<wheels::Module> all;
  for (size_t i = 0; i < plan.arrivals.size(); i++) {
    if (!fetched.wheels[i] || !names.contains(normal_name(plan.arrivals[i].name))) continue;
    auto modules = wheels::read_refusing_modules(*fetched.sources[i]);
    if (modules)
      std::move(modules->begin(), modules->end(), std::back_inserter(all));
    else
      fetched.unknowns.push_back(fmt::format(
          "{} cannot be read, so whether it refuses the versions of others is unknown: {}",
          name_of(plan.arrivals[i]), without_credentials(modules.error().message)));
  }
  return all;
}

uint64_t Fetched::bytes_fetched() const {
  uint64_t sum = 0;
  for (const auto& source : sources) sum += source ? source->fetched() : 0;
  return sum;
}

}  // namespace cohabit::check
