// The driver has two halves, the kernel module and the libraries that programs load, and both must
// be of one version. An update replaces the files at once and the module at the next start.
// Packages for forward compatibility bring a newer libcuda on purpose; they live in directories
// named compat.
#include <fmt/format.h>

#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

const cuda::DriverLibrary* mismatch(const std::vector<cuda::DriverLibrary>& places,
                                    const std::string& kernel) {
  for (const cuda::DriverLibrary& library : places) {
    if (library.found_by.empty() || library.version.empty()) continue;
    const bool on_purpose = library.path.find("/compat/") != std::string::npos;
    return library.version == kernel || on_purpose ? nullptr : &library;  // the first one counts
  }
  return nullptr;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  const cuda::GpuHost& host = examined.options.gpu;
  if (host.kernel_driver.empty() || !host.asked_driver.empty()) return {};
  const cuda::DriverLibrary* cuda_library = mismatch(host.libcuda, host.kernel_driver);
  const cuda::DriverLibrary* nvml = mismatch(host.nvml, host.kernel_driver);
  const cuda::DriverLibrary* first = cuda_library ? cuda_library : nvml;
  if (!first) return {};
  Finding finding;
  finding.severity = Severity::kError;
  finding.headline = fmt::format(
      "the libraries of NVIDIA's driver are of {}, but the loaded kernel module is of {}",
      first->version, host.kernel_driver);
  finding.evidence.push_back(
      fact("file", fmt::format("the kernel module is of {} says", host.kernel_driver),
           host.kernel_driver_source));
  for (const cuda::DriverLibrary* library : {cuda_library, nvml}) {
    if (!library) continue;
    finding.libraries.push_back({library->path, "", library->version});
    finding.evidence.push_back(
        fact("file", fmt::format("{}, found by {}, is", library->version, library->found_by),
             library->path));
  }
  finding.help.push_back(
      {"restart the machine, so that the module of the installed driver is loaded; in a "
       "container, leave libcuda to the host's runtime",
       "", Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

const Rule kCu104 = {
    "CU104",
    "driver-halves",
    Severity::kError,
    "The driver's libraries and its kernel module are of different versions.",
    "  The version of the loaded kernel module, in /sys/module/nvidia/version or "
    "/proc/driver/nvidia/version,\n"
    "  against the names of the files behind libcuda.so.1 and libnvidia-ml.so.1 that ld.so finds.",
    "  No program finds a GPU: `Failed to initialize NVML: Driver/library version mismatch`, CUDA "
    "error 803.",
    "  The driver was updated to 550.54.14 while the module of 535.104.05 is still loaded.",
    "  Restart the machine, or load the new module. In a container, remove the driver's libraries "
    "from the\n"
    "  image.",
    "  Directories named compat are passed over: packages for forward compatibility put a newer "
    "libcuda\n"
    "  there on purpose.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
