#include "actions/runtime_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace cohabit {
namespace {

namespace fs = std::filesystem;

// Where our own code lies: beside the executable, or beside the Python module that it is part of.
std::vector<std::string> own_directories() {
  std::error_code error;
  std::vector<std::string> directories;
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&find_runtime_library), &info) && info.dli_fname) {
    fs::path file = fs::canonical(info.dli_fname, error);
    if (!error) directories.push_back(file.parent_path().string());
  }
  directories.push_back(fs::read_symlink("/proc/self/exe", error).parent_path().string());
  return directories;
}

// A directory that nobody else can write in.
Result<std::string> own_link_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string base = runtime && *runtime == '/' && !std::strpbrk(runtime, " :;$\t\n")
                         ? runtime
                         : fmt::format("/tmp/cohabit-{}", ::getuid());
  struct stat status{};
  if (::mkdir(base.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("cannot make the directory {}: {}", base, std::strerror(errno)));
  if (::lstat(base.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::getuid() || (status.st_mode & 022) != 0)
    return fail(fmt::format("{} must be a directory that only you can write in", base));
  return base;
}

}  // namespace

Result<std::string> find_runtime_library(const std::string& name, const char* variable) {
  const char* set = std::getenv(variable);
  std::vector<std::string> places;
  if (set && *set) {
    std::error_code error;
    places.push_back(fs::absolute(set, error).string());
  } else {
    for (const auto& directory : own_directories()) {
      for (const char* below : {"", "../lib/cohabit", "../lib64/cohabit"}) {
        fs::path place = fs::path(directory) / below / name;
        places.push_back(place.lexically_normal().string());
      }
    }
  }
  for (const auto& place : places)
    if (::access(place.c_str(), R_OK) == 0) return place;
  return fail(fmt::format("{} is not there (tried {}); set {} to its path", name,
                          fmt::join(places, ", "), variable));
}

Result<std::string> preloadable_path(const std::string& library) {
  if (library.find_first_of(" :;$\t\n") == std::string::npos) return library;
  auto directory = own_link_directory();
  if (!directory) return directory;
  std::string link = *directory + "/" + fs::path(library).filename().string();
  std::error_code error;
  if (fs::read_symlink(link, error) == library) return link;
  ::unlink(link.c_str());
  if (::symlink(library.c_str(), link.c_str()) == 0) return link;
  return fail(fmt::format("cannot make the link {}: {}", link, std::strerror(errno)));
}

}  // namespace cohabit
