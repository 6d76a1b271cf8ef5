// libcurl, of the machine, opened when a wheel on a server is first looked at: the command itself
// needs the C library alone. Its ABI has been libcurl.so.4 since 2006.
#pragma once

#include <curl/curl.h>

#include "base/result.h"

namespace cohabit::wheels {

struct WebLibrary {
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) info = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_strerror) error_text = nullptr;
};

// Once for the process; thread-safe. The error says what to install.
Result<const WebLibrary*> web_library();

}  // namespace cohabit::wheels
