// uv's configuration files, as far as requests for wheels go by them: where its indexes are (with
// their credentials), its proxies, and whether there are to be none.
#pragma once

#include <string>
#include <vector>

namespace cohabit::check {

struct UvSettings {
  std::string text;  // of the files, the most important first
  std::string http_proxy, https_proxy, no_proxy;
  // "--offline": who says that nothing may be asked of the network; empty: nobody does.
  std::string offline_by;
};

// `arguments`: of the command, which may name a file or none (--config-file, --no-config).
UvSettings uv_settings(const std::vector<std::string>& arguments);

}  // namespace cohabit::check
