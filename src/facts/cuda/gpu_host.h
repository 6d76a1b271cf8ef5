// What files say about the NVIDIA GPUs of a machine and their driver. No library of NVIDIA is
// loaded and no device is opened: the kernel module writes its version to /proc and /sys, the
// user's half of the driver has it in its file name, and PCI ids say which chip a GPU has.
//
// What files do not say stays unknown: the memory of a GPU, and anything about it under WSL, where
// the driver is on the other side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tree.h"
#include "facts/host/machine.h"

namespace cohabit::cuda {

struct Gpu {
  std::string address;  // on the PCI bus: "0000:01:00.0"
  uint16_t device = 0;  // its PCI device id
  std::string name;     // as the driver calls it, else its chip: "NVIDIA H200", "GH100"
  int sm = 0;           // compute capability without its point: 86, 120; 0: unknown
};

// A file of the user's half of the driver.
struct DriverLibrary {
  std::string path;
  std::string version;   // from the name of the file that it is: "550.54.14"; or empty
  std::string found_by;  // "LD_LIBRARY_PATH", "ld.so.cache", "default directory"; empty: ld.so
                         // does not look there
};

struct GpuHost {
  std::string kernel_driver;           // version of the kernel module; empty: unknown or not loaded
  std::string kernel_driver_source;    // the file that says so
  std::vector<DriverLibrary> libcuda;  // libcuda.so.1, the one that ld.so takes first
  std::vector<DriverLibrary> nvml;     // libnvidia-ml.so.1
  std::vector<Gpu> gpus;
  uint64_t memory = 0;  // bytes of a GPU; 0: unknown
  bool is_wsl = false;
  std::string container;     // "docker", "podman", "kubernetes", "lxc"; empty: no sign of one
  std::string asked_driver;  // --driver: another machine's

  // The version that decides what CUDA can do; empty: unknown.
  const std::string& driver() const;
  // Compute capabilities of the GPUs, each once, ascending.
  std::vector<int> sms() const;
  bool has_gpu() const { return !gpus.empty(); }
  // Whether ld.so finds libcuda.
  bool has_driver() const;
};

// `library_path`: LD_LIBRARY_PATH of the examined process.
GpuHost read_gpu_host(const Tree& tree, const Machine& machine,
                      const std::string& library_path = "");

// Another machine: what is not empty takes the place of what was found.
struct AskedHost {
  std::string driver;                          // "550.54.14", "550"
  std::string sm;                              // "8.6", "sm_86", "86"
  std::string memory;                          // "24GiB", "24000 MB"
  std::string memory_option = "--gpu-memory";  // by which it was asked for
  bool asks_gpu() const { return !driver.empty() || !sm.empty(); }
};
Result<void> ask_for(const AskedHost& asked, GpuHost& host);

// 86 of "8.6", "sm_86", "86", "120"; 0 if it is none of these.
int parse_sm(std::string_view text);
// Bytes. 0 if it is no size with its unit.
uint64_t parse_size(std::string_view text);
// "8.6" of 86
std::string sm_text(int sm);

}  // namespace cohabit::cuda
