#include "facts/cuda/gpu_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/paths.h"
#include "base/rows.h"

namespace cohabit::cuda {
namespace {

constexpr std::string_view kChips =
#include "data/gpu_chips.inc"
    ;
constexpr uint64_t kSmallFile = 1 << 16;
constexpr size_t kMaxGpus = 256;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The first word of the form 550.54.14 or 610.43: three digits, a point, digits and points.
std::string driver_version_in(std::string_view text) {
  for (size_t at = 0; at < text.size(); at++) {
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) continue;
    const size_t end = std::min(text.find_first_not_of("0123456789.", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (word.find('.') == 3 && word.back() != '.' && word.size() <= 16) return std::string(word);
    at = end;
  }
  return "";
}

uint32_t hexadecimal(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// ---- driver

void read_kernel_driver(const Tree& tree, GpuHost& host) {
  for (const char* path : {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"}) {
    const auto text = tree.read_text(path, kSmallFile);
    if (!text) continue;
    host.kernel_driver = driver_version_in(*text);
    host.kernel_driver_source = path;
    if (!host.kernel_driver.empty()) return;
  }
}

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(":;", begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class LibraryFinder {
 public:
  LibraryFinder(const Tree& tree, std::string name) : tree_(tree), name_(std::move(name)) {}

  void try_directory(const std::string& directory, const char* found_by) {
    try_file(join_normal(directory, name_), found_by);
  }
  void try_file(const std::string& path, const char* found_by) {
    const auto status = tree_.stat(path);
    if (!status || !status->is_regular()) return;
    if (std::find(seen_.begin(), seen_.end(), status->id) != seen_.end()) return;
    seen_.push_back(status->id);
    const std::string real = tree_.real_path(path).value_or(path);
    found.push_back({path, driver_version_in(real.substr(real.rfind('/') + 1)), found_by});
  }

  std::vector<DriverLibrary> found;

 private:
  const Tree& tree_;
  std::string name_;
  std::vector<FileId> seen_;
};

std::vector<DriverLibrary> find_library(const Tree& tree, const Machine& machine,
                                        const std::string& library_path, const std::string& name) {
  LibraryFinder finder(tree, name);
  for (const std::string& directory : split_path(library_path))
    finder.try_directory(directory, "LD_LIBRARY_PATH");
  if (const auto path = find_in_cache(machine, name)) finder.try_file(*path, "ld.so.cache");
  for (const std::string& directory : machine.default_directories)
    finder.try_directory(directory, "default directory");
  // Where drivers are put for programs that name the directory.
  for (const char* directory :
       {"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib64-nvidia",
        "/usr/local/cuda/compat"})
    finder.try_directory(directory, "");
  return std::move(finder.found);
}

// ---- GPUs

void look_up_chip(Gpu& gpu) {
  for (const TableRow& row : table_rows(kChips, 4)) {
    if (gpu.device < hexadecimal(row[0]) || gpu.device > hexadecimal(row[1])) continue;
    gpu.sm = parse_sm(row[3]);
    if (gpu.name.empty()) gpu.name = row[2];
    return;
  }
}

uint32_t read_id(const Tree& tree, const std::string& path) {
  return hexadecimal(tree.read_text(path, kSmallFile).value_or(""));
}

bool is_nvidia_gpu(const Tree& tree, const std::string& directory) {
  constexpr uint32_t kNvidia = 0x10de;
  constexpr uint32_t kDisplayController = 0x03;
  return read_id(tree, directory + "/vendor") == kNvidia &&
         read_id(tree, directory + "/class") >> 16 == kDisplayController;
}

// "Model: \t\t NVIDIA H200"
std::string model_of(const Tree& tree, const std::string& directory) {
  const std::string text = tree.read_text(directory + "/information", kSmallFile).value_or("");
  const size_t at = text.find("Model:");
  if (at == std::string::npos) return "";
  const std::string_view line = std::string_view(text).substr(at + 6);
  return std::string(trim(line.substr(0, line.find('\n'))));
}

std::vector<Gpu> read_gpus(const Tree& tree) {
  const std::string kOfDriver = "/proc/driver/nvidia/gpus/";
  const std::string kOfBus = "/sys/bus/pci/devices/";
  std::vector<Gpu> gpus;
  // A container sees the whole bus, and of the driver's list what it was given.
  std::vector<std::string> addresses = tree.list(kOfDriver);
  if (addresses.empty()) {
    addresses = tree.list(kOfBus);
    std::erase_if(addresses, [&](const auto& name) { return !is_nvidia_gpu(tree, kOfBus + name); });
  }
  if (addresses.size() > kMaxGpus) addresses.resize(kMaxGpus);
  for (const std::string& address : addresses) {
    Gpu gpu;
    gpu.address = address;
    gpu.device = static_cast<uint16_t>(read_id(tree, kOfBus + address + "/device"));
    gpu.name = model_of(tree, kOfDriver + address);
    look_up_chip(gpu);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// ---- surroundings

std::string container_of(const Tree& tree) {
  if (tree.stat("/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (tree.stat("/.dockerenv")) return "docker";
  if (tree.stat("/run/.containerenv")) return "podman";
  const std::string groups = tree.read_text("/proc/1/cgroup", kSmallFile).value_or("");
  for (const char* word : {"kubepods", "docker", "lxc"})
    if (groups.find(word) != std::string::npos)
      return word == std::string_view("kubepods") ? "kubernetes" : word;
  return "";
}

}  // namespace

const std::string& GpuHost::driver() const {
  if (!asked_driver.empty()) return asked_driver;
  for (const DriverLibrary& library : libcuda)
    if (!library.found_by.empty() && !library.version.empty()) return library.version;
  return kernel_driver;
}

bool GpuHost::has_driver() const {
  return std::any_of(libcuda.begin(), libcuda.end(),
                     [](const DriverLibrary& library) { return !library.found_by.empty(); });
}

std::vector<int> GpuHost::sms() const {
  std::vector<int> result;
  for (const Gpu& gpu : gpus)
    if (gpu.sm) result.push_back(gpu.sm);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

GpuHost read_gpu_host(const Tree& tree, const Machine& machine, const std::string& library_path) {
  GpuHost host;
  read_kernel_driver(tree, host);
  host.libcuda = find_library(tree, machine, library_path, "libcuda.so.1");
  host.nvml = find_library(tree, machine, library_path, "libnvidia-ml.so.1");
  host.gpus = read_gpus(tree);
  host.is_wsl = tree.stat("/dev/dxg").has_value() || tree.stat("/usr/lib/wsl/lib").has_value();
  host.container = container_of(tree);
  return host;
}

int parse_sm(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "sm", "compute_"})
    if (text.starts_with(prefix)) {
      text.remove_prefix(prefix.size());
      break;
    }
  std::string digits(text);
  const size_t point = digits.find('.');
  if (point != std::string::npos && digits.size() != point + 2) return 0;
  if (point != std::string::npos) digits.erase(point, 1);
  if (digits.size() < 2 || digits.size() > 3 ||
      !std::all_of(digits.begin(), digits.end(), is_digit))
    return 0;
  return std::stoi(digits);
}

uint64_t parse_size(std::string_view text) {
  double number = 0;
  text = trim(text);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || !(number > 0) || number > 1e9) return 0;
  const std::string_view unit = trim(text.substr(static_cast<size_t>(parsed.ptr - text.data())));
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"GiB", 1 << 30},           {"G", 1 << 30}, {"GB", 1e9},
                                    {"MiB", 1 << 20},           {"M", 1 << 20}, {"MB", 1e6},
                                    {"TiB", 1024.0 * (1 << 30)}};
  for (const Unit& known : kUnits)
    if (unit == known.name) return static_cast<uint64_t>(std::llround(number * known.bytes));
  return 0;
}

std::string sm_text(int sm) {
  return fmt::format("{}.{}", sm / 10, sm % 10);
}

Result<void> ask_for(const AskedHost& asked, GpuHost& host) {
  if (!asked.driver.empty()) {
    const bool good = asked.driver.size() >= 3 && asked.driver.size() <= 16 &&
                      asked.driver.find_first_not_of("0123456789.") == std::string::npos &&
                      std::all_of(asked.driver.begin(), asked.driver.begin() + 3, is_digit) &&
                      (asked.driver.size() == 3 || asked.driver[3] == '.') &&
                      asked.driver.back() != '.';
    if (!good)
      return fail(
          fmt::format("--driver cannot be {}; it is the version of NVIDIA's driver, such as "
                      "550.54.14 (nvidia-smi prints it)",
                      asked.driver));
    host.asked_driver = asked.driver;
  }
  if (!asked.sm.empty()) {
    Gpu gpu;
    gpu.sm = parse_sm(asked.sm);
    if (!gpu.sm)
      return fail(fmt::format("--sm cannot be {}; it is a compute capability, such as 8.6 or sm_86",
                              asked.sm));
    host.gpus = {gpu};
  }
  if (!asked.memory.empty()) {
    host.memory = parse_size(asked.memory);
    if (!host.memory)
      return fail(fmt::format("{} cannot be {}; it is a size with its unit, such as 24GiB",
                              asked.memory_option, asked.memory));
  }
  return {};
}

}  // namespace cohabit::cuda
