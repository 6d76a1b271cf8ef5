#include "cli/kept_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/descriptor.h"
#include "base/paths.h"
#include "base/sections.h"
#include "base/sha256.h"
#include "base/variables.h"
#include "cli/arguments.h"
#include "version.h"

namespace cohabit {
namespace {

// The oldest go, and what a run that was killed has left.
void make_room(const std::string& directory, uint64_t most) {
  namespace fs = std::filesystem;
  struct File {
    fs::file_time_type time;
    uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored))
      files.push_back({it->last_write_time(ignored), it->file_size(ignored), it->path()});
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time > b.time; });
  uint64_t total = 0;
  for (const File& file : files) {
    total += file.size;
    if (total > most) fs::remove(file.path, error);
  }
}

constexpr size_t kDigest = 16;  // letters

}  // namespace

std::string kept_path(const std::string& kind, const std::string& prefix) {
  const VariableMap variables = own_variables("");
  if (!variable_of(variables, "COHABIT_NO_CACHE").empty()) return "";
  std::string base = variable_of(variables, "XDG_CACHE_HOME");
  if (!base.starts_with('/')) {
    base = variable_of(variables, "HOME");
    if (!base.starts_with('/')) return "";
    base += "/.cache";
  }
  return base + "/cohabit/" + kind + "/" + digest_of_text(prefix);
}

std::string digest_of_text(std::string_view text) {
  return hexadecimal(sha256(Bytes(text)));
}

namespace {

// XXH3, as of base/sections.h.
std::string digest_against_damage(std::string_view text) {
  return fmt::format("{:016x}", digest_of(Bytes(text)));
}

}  // namespace

namespace {

// Who may read what: the kernel answers another user, or one with other groups, otherwise.
void pack_rights(Packer& packer) {
  packer.number(::geteuid());
  packer.number(::getegid());
  const int count = std::max(::getgroups(0, nullptr), 0);
  std::vector<gid_t> groups(static_cast<size_t>(count));
  groups.resize(static_cast<size_t>(std::max(::getgroups(count, groups.data()), 0)));
  std::sort(groups.begin(), groups.end());
  packer.number(groups.size());
  for (const gid_t group : groups) packer.number(group);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3] = {};
  (void)::syscall(SYS_capget, &header, capabilities);
  for (const auto& some : capabilities) packer.number(some.effective);
}

}  // namespace

// The command itself, or the library that Python has loaded.
void pack_ourselves(Packer& packer) {
  packer.text(COHABIT_VERSION);
  pack_rights(packer);
  Dl_info info{};
  struct stat status{};
  if (::dladdr(reinterpret_cast<const void*>(&pack_ourselves), &info) == 0 || !info.dli_fname)
    return;
  const bool is_library =
      ::stat(info.dli_fname, &status) == 0 && std::strstr(info.dli_fname, ".so");
  if (!is_library && ::stat("/proc/self/exe", &status) != 0) return;
  for (const int64_t number :
       {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
        int64_t{status.st_size}, int64_t{status.st_mtim.tv_sec}, int64_t{status.st_mtim.tv_nsec}})
    packer.number(static_cast<uint64_t>(number));
}

int open_kept(const std::string& path, uint64_t largest) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd;
  struct stat status{};
  const bool is_ours = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
                       static_cast<uint64_t>(status.st_size) <= largest;
  if (is_ours) return fd;
  ::close(fd);
  return -1;
}

// The format, a digest of the text, the text.
std::optional<KeptText> read_kept(const std::string& path, std::string_view format,
                                  uint64_t largest) {
  const Descriptor file(open_kept(path, largest));
  if (!file.is_open()) return std::nullopt;
  auto map = MappedFile::map(file.get(), path);
  if (!map) return std::nullopt;
  MappedFile::populate(map->bytes());
  const std::string_view whole = map->bytes().text();
  if (!whole.starts_with(format)) return std::nullopt;
  const std::string_view rest = whole.substr(format.size());
  if (rest.size() < kDigest ||
      digest_against_damage(rest.substr(kDigest)) != rest.substr(0, kDigest) || map->damaged())
    return std::nullopt;
  return KeptText{std::move(*map), rest.substr(kDigest)};
}

bool replace_kept(const std::string& path, std::string_view format, std::string_view text,
                  uint64_t largest, uint64_t most) {
  if (format.size() + kDigest + text.size() > largest) return false;
  const std::string digest = digest_against_damage(text);
  return replace_kept(path, most, [&](int fd) {
    return write_all(fd, format) && write_all(fd, digest) && write_all(fd, text);
  });
}

bool replace_kept(const std::string& path, uint64_t most, const std::function<bool(int)>& write) {
  const std::string directory = directory_of(path);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::string partial = path + ".XXXXXX";
  const int fd = ::mkostemp(partial.data(), O_CLOEXEC);  // 0600
  if (fd < 0) return false;
  const bool written = write(fd);
  if (::close(fd) == 0 && written && std::rename(partial.c_str(), path.c_str()) == 0) {
    make_room(directory, most);
    return true;
  }
  ::unlink(partial.c_str());
  return false;
}

}  // namespace cohabit
