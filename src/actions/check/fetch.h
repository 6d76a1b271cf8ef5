// The wheels of a plan, read where they are: on disk, or on a server in ranges, several at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actions/check/plan.h"
#include "facts/wheels/web_file.h"
#include "facts/wheels/wheel.h"

namespace cohabit::check {

struct Fetched {
  std::vector<std::optional<wheels::Wheel>> wheels;  // of the plan's arrivals; nothing: unreadable
  std::vector<std::unique_ptr<wheels::ByteSource>> sources;  // of them; null: could not be opened
  uint64_t bytes_of_wheels = 0;                              // of those that could be read
  std::vector<std::string> unknowns;

  uint64_t bytes_fetched() const;  // from servers, until now
};

// Of `pip config list`, whose configuration files and variables it has weighed: the value of an
// option of "pip install"; empty: none. `listed`: "global.proxy='...'", ":env:.proxy='...'".
std::string setting_of_pip(std::string_view listed, std::string_view option);
// What that command says; empty: it is another installer, or does not answer.
std::string settings_of_pip(const Installer& installer);

// Whether any of its wheels is on a server.
bool needs_web(const Plan& plan);
// What requests for wheels say: reports of installers have no credentials in their addresses.
wheels::WebSettings web_settings(const Installer& installer, const Request& request);
// A wheel where it is.
Result<std::unique_ptr<wheels::ByteSource>> open_wheel(const std::string& address,
                                                       const wheels::WebSettings& settings);

Fetched fetch_wheels(const Plan& plan, const wheels::WebSettings& settings,
                     const wheels::Layout& layout);
// What these arrivals (normal names) say about the versions of others.
std::vector<wheels::Module> fetch_refusals(const Plan& plan, const std::set<std::string>& names,
                                           Fetched& fetched);

}  // namespace cohabit::check
