// The wheels of a plan, read where they are: on disk, or on a server in ranges, several at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actions/check/plan.h"
#include "facts/wheels/web_file.h"
#include "facts/wheels/wheel.h"

namespace cohabit::check {

struct Fetched {
  std::vector<std::optional<wheels::Wheel>> wheels;  // of the plan's arrivals; nothing: unreadable
  uint64_t bytes_fetched = 0;                        // from servers
  uint64_t bytes_of_wheels = 0;                      // of those that could be read
  std::vector<std::string> unknowns;
};

// Of `pip config list`, whose configuration files and variables it has weighed: the value of an
// option of "pip install"; empty: none. `listed`: "global.proxy='...'", ":env:.proxy='...'".
std::string setting_of_pip(std::string_view listed, std::string_view option);
// What that command says; empty: it is another installer, or does not answer.
std::string settings_of_pip(const Installer& installer);

// What requests for wheels say: reports of installers have no credentials in their addresses.
wheels::WebSettings web_settings(const Installer& installer, const Request& request);
// A wheel where it is.
Result<std::unique_ptr<wheels::ByteSource>> open_wheel(const std::string& address,
                                                       const wheels::WebSettings& settings);

Fetched fetch_wheels(const Installer& installer, const Plan& plan, const Request& request,
                     const wheels::Layout& layout);

}  // namespace cohabit::check
