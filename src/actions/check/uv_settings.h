// uv's configuration files, as far as requests for wheels go by them: where its indexes are (with
// their credentials) and its proxies.
#pragma once

#include <string>
#include <vector>

namespace cohabit::check {

struct UvSettings {
  std::string text;  // of the files, the most important first
  std::string http_proxy, https_proxy, no_proxy;
};

// `arguments`: of the command, which may name a file or none (--config-file, --no-config).
UvSettings uv_settings(const std::vector<std::string>& arguments);

}  // namespace cohabit::check
