#include "facts/wheels/web_library.h"

#include <dlfcn.h>

namespace cohabit::wheels {
namespace {

constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool load(WebLibrary& web) {
  for (const char* name : kNames) {
    void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    decltype(&curl_global_init) start = nullptr;
    const bool whole = find(library, "curl_global_init", start) &&
                       find(library, "curl_easy_init", web.easy_init) &&
                       find(library, "curl_easy_setopt", web.set) &&
                       find(library, "curl_easy_perform", web.perform) &&
                       find(library, "curl_easy_getinfo", web.info) &&
                       find(library, "curl_easy_cleanup", web.cleanup) &&
                       find(library, "curl_easy_strerror", web.error_text);
    if (whole && start(CURL_GLOBAL_DEFAULT) == CURLE_OK) return true;
    ::dlclose(library);
  }
  return false;
}

}  // namespace

Result<const WebLibrary*> web_library() {
  static WebLibrary web;
  static const bool loaded = load(web);
  if (loaded) return &web;
  return fail(
      "libcurl.so.4 is not on this machine, which reads wheels on servers: install it (Debian: "
      "apt-get install libcurl4)");
}

}  // namespace cohabit::wheels
