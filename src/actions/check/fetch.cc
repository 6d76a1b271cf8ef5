#include "actions/check/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "actions/ask.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/rows.h"
#include "facts/wheels/web_file.h"

namespace cohabit::check {
namespace {

constexpr size_t kThreads = 8;

// One wheel, and what reading it took.
struct Reading {
  Result<wheels::Wheel> wheel = fail("not read");
  uint64_t fetched = 0;
  bool came_whole = false;
};

Reading read_one(const Arrival& arrival, const wheels::WebSettings& settings,
                 const wheels::Layout& layout) {
  Reading reading;
  std::error_code ignored;
  if (arrival.address.empty()) {
    reading.wheel = fail("the installer does not say where it is");
  } else if (const auto path = path_of_address(arrival.address);
             path && std::filesystem::is_directory(*path, ignored)) {
    reading.wheel = fail("it is a directory, whose files only building it tells");
  } else if (path) {
    auto file = wheels::LocalFile::open(*path);
    if (file)
      reading.wheel = wheels::read_wheel(*file, arrival.name, layout);
    else
      reading.wheel = tl::unexpected<Error>(file.error());
  } else {
    auto file = wheels::WebFile::open(arrival.address, settings);
    if (!file) {
      reading.wheel = tl::unexpected<Error>(file.error());
      return reading;
    }
    reading.wheel = wheels::read_wheel(*file, arrival.name, layout);
    reading.fetched = file->fetched();
    reading.came_whole = file->came_whole();
  }
  return reading;
}

std::string name_of(const Arrival& arrival) {
  const std::string address = arrival.address.substr(0, arrival.address.find_first_of("?#"));
  return address.empty() ? fmt::format("{} {}", arrival.name, arrival.version)
                         : percent_decoded(last_part(address));
}

void add(const Arrival& arrival, Reading reading, Fetched& result) {
  result.bytes_fetched += reading.fetched;
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
  if (reading.came_whole)
    result.unknowns.push_back(
        fmt::format("the server of {} gives no ranges: all of its {} bytes were fetched",
                    name_of(arrival), reading.wheel->size));
  result.wheels.emplace_back(std::move(*reading.wheel));
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
  const std::string of_pip = settings_of_pip(installer);
  wheels::collect_credentials(of_pip, settings);
  settings.proxy = setting_of_pip(of_pip, "proxy");
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
  auto file = wheels::WebFile::open(address, settings);
  if (!file) return tl::unexpected<Error>(file.error());
  return std::make_unique<wheels::WebFile>(std::move(*file));
}

Fetched fetch_wheels(const Installer& installer, const Plan& plan, const Request& request,
                     const wheels::Layout& layout) {
  const bool on_servers =
      std::any_of(plan.arrivals.begin(), plan.arrivals.end(), [](const Arrival& arrival) {
        return !arrival.address.empty() && !path_of_address(arrival.address);
      });
  const wheels::WebSettings settings =
      on_servers ? web_settings(installer, request) : wheels::WebSettings{};
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

}  // namespace cohabit::check
