#include "cli/kept_plans.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/descriptor.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "base/variables.h"
#include "cli/arguments.h"
#include "imports/plan_bytes.h"
#include "version.h"

namespace cohabit {
namespace {

constexpr std::string_view kFormat = "cohabit plans 3\n";
constexpr size_t kMostPlans = 32;  // of one environment
constexpr uint64_t kLargestFile = uint64_t{32} << 20;
constexpr uint64_t kLargestCache = uint64_t{128} << 20;  // all files together
constexpr size_t kDigest = 64;                           // letters

std::string digest(std::string_view text) {
  return hexadecimal(sha256(Bytes(text)));
}

void pack_list(Packer& packer, const std::vector<std::string>& list) {
  packer.number(list.size());
  for (const std::string& text : list) packer.text(text);
}

// Another build may plan otherwise: the command itself, or the library that Python has loaded.
void pack_ourselves(Packer& packer) {
  packer.text(COHABIT_VERSION);
  packer.number(::geteuid());
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

void pack_interpreter(Packer& packer, const Interpreter& python) {
  for (const std::string* text :
       {&python.executable, &python.real_path, &python.prefix, &python.base_prefix,
        &python.implementation, &python.version, &python.user_site, &python.standard_library,
        &python.elf_interpreter, &python.libpython_soname})
    packer.text(*text);
  for (const auto number : {python.major, python.minor, static_cast<int>(python.kind),
                            static_cast<int>(python.system_site_packages), int{python.elf_machine}})
    packer.number(static_cast<uint64_t>(number));
  pack_list(packer, python.module_path);
  pack_list(packer, python.site_directories);
  for (const PthLine& line : python.pth_lines) {
    packer.text(line.file);
    packer.text(line.code);
  }
}

void pack_distribution(Packer& packer, const Distribution& one) {
  for (const std::string* text : {&one.name, &one.version, &one.installer, &one.metadata, &one.site,
                                  &one.editable, &one.requires_python})
    packer.text(*text);
  packer.number((one.is_conda_package ? 1u : 0u) | (one.has_metadata ? 2u : 0u) |
                (one.is_requested ? 4u : 0u));
  for (const auto* list :
       {&one.requires_dist, &one.provides_extra, &one.native_files, &one.owned_packages})
    pack_list(packer, *list);
}

// A shell's own book-keeping: another value at each command.
bool is_of_shell(std::string_view name) {
  return name == "_" || name == "OLDPWD" || name == "SHLVL";
}

bool asks_shell(const python::Plan& plan) {
  return std::any_of(plan.events.begin(), plan.events.end(), [&](const python::PlanEvent& event) {
    return event.kind == python::PlanEvent::kVariable && is_of_shell(plan.sought[event.index]);
  });
}

std::string digest_of(const python::PlanRequest& request) {
  Packer packer;
  pack_list(packer, request.imports);
  for (const std::string* text : {&request.code, &request.code_file, &request.run_module})
    packer.text(*text);
  packer.number(request.directory ? 1 : 0);
  packer.text(request.directory.value_or(""));
  pack_list(packer, request.arguments);
  packer.number(request.assume_gpu ? 1 : 0);
  for (const auto& [name, value] : request.environment) {
    if (is_of_shell(name)) continue;
    packer.text(name);
    packer.text(value);
  }
  return digest(packer.bytes());
}

// XDG_CACHE_HOME if it is absolute, else ~/.cache, as the base directory specification has it.
std::string cache_directory() {
  const VariableMap variables = own_variables("");
  if (!variable_of(variables, "COHABIT_NO_CACHE").empty()) return "";
  std::string base = variable_of(variables, "XDG_CACHE_HOME");
  if (!base.starts_with('/')) {
    base = variable_of(variables, "HOME");
    if (!base.starts_with('/')) return "";
    base += "/.cache";
  }
  return base + "/cohabit/plans";
}

// Ours alone: nobody else has had a hand in it.
std::optional<std::string> read_own(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  const Descriptor descriptor(fd);
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 077) != 0 || static_cast<uint64_t>(status.st_size) > kLargestFile)
    return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = ::read(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<size_t>(count);
  }
  return text;
}

bool write_own(const std::string& path, std::string_view text) {
  std::string partial = path + ".XXXXXX";
  const int fd = ::mkostemp(partial.data(), O_CLOEXEC);  // 0600
  if (fd < 0) return false;
  const bool written = write_all(fd, text);
  if (::close(fd) == 0 && written && std::rename(partial.c_str(), path.c_str()) == 0) return true;
  ::unlink(partial.c_str());
  return false;
}

// The oldest go, and what a run that was killed has left.
void make_room(const std::string& directory) {
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
    if (total > kLargestCache) fs::remove(file.path, error);
  }
}

}  // namespace

KeptPlans::KeptPlans(std::string file, std::string key)
    : file_(std::move(file)), key_(std::move(key)), start_(WatchedFiles::now()) {
  tree_.set_log(&log_);
}

std::unique_ptr<KeptPlans> KeptPlans::open(const Interpreter& python,
                                           const Distributions& distributions) {
  const std::string directory = cache_directory();
  if (directory.empty()) return nullptr;
  Packer packer;
  pack_ourselves(packer);
  packer.text(Tree().current_directory());
  pack_interpreter(packer, python);
  for (const Distribution& one : distributions.all()) pack_distribution(packer, one);
  const std::string key = digest(packer.bytes());
  std::unique_ptr<KeptPlans> plans(
      new KeptPlans(fmt::format("{}/{}", directory, digest(python.prefix)), key));
  plans->read();
  return plans;
}

// The file: what it is, a digest of the rest, the key, the files, the plans.
void KeptPlans::read() {
  const std::optional<std::string> text = read_own(file_);
  if (!text || !text->starts_with(kFormat)) return;
  const std::string_view rest = std::string_view(*text).substr(kFormat.size());
  if (rest.size() < kDigest || digest(rest.substr(kDigest)) != rest.substr(0, kDigest)) return;
  Unpacker unpacker(rest.substr(kDigest));
  if (unpacker.text() != key_) return;
  WatchedFiles files = WatchedFiles::unpack(unpacker);
  Plans plans;
  for (size_t left = unpacker.count(); left > 0 && !unpacker.failed(); left--) {
    std::string of(unpacker.text());
    plans.emplace(std::move(of), unpacker.text());
  }
  if (!unpacker.is_whole() || !files.is_unchanged()) return;
  files_ = std::move(files);
  plans_ = std::move(plans);
}

std::optional<python::Plan> KeptPlans::find(const python::PlanRequest& request) const {
  const auto known = plans_.find(digest_of(request));
  if (known == plans_.end()) return std::nullopt;
  Unpacker unpacker(known->second);
  python::Plan plan = python::unpack_plan(unpacker);
  if (!unpacker.is_whole()) return std::nullopt;
  return plan;
}

void KeptPlans::add(const python::PlanRequest& request, const python::Plan& plan) {
  if (asks_shell(plan)) return;
  Packer packer;
  python::pack_plan(plan, packer);
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_[digest_of(request)] = packer.bytes();
  is_new_ = true;
}

void KeptPlans::forget(const python::PlanRequest& request) {
  plans_.erase(digest_of(request));
}

void KeptPlans::begin_saving() {
  if (!is_new_) return;
  if (writing_.valid()) writing_.get();
  is_new_ = false;
  writing_ = std::async(std::launch::async | std::launch::deferred,
                        [this, plans = plans_] { write(plans); });
}

void KeptPlans::save() {
  begin_saving();
  if (writing_.valid()) writing_.get();
}

void KeptPlans::write(const Plans& plans) const {
  auto files = WatchedFiles::of(log_, start_);
  if (!files || !files->add(files_)) return;
  Packer packer;
  packer.text(key_);
  files->pack(packer);
  packer.number(plans.size());
  std::vector<std::string_view> order;  // the same plans make the same file
  for (const auto& [of, plan] : plans) order.push_back(of);
  std::sort(order.begin(), order.end());
  for (const std::string_view of : order) {
    packer.text(of);
    packer.text(plans.at(std::string(of)));
  }
  if (packer.bytes().size() + kFormat.size() + kDigest > kLargestFile) return;
  const std::string directory = directory_of(file_);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (write_own(file_, std::string(kFormat) + digest(packer.bytes()) + packer.bytes()))
    make_room(directory);
}

}  // namespace cohabit
