// Texts as the kernel module writes them (open and closed, see the first line of each).
#include <doctest/doctest.h>

#include "facts/cuda/gpu_host.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

constexpr const char* kClosed =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
constexpr const char* kOpen =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (bot)  Sun "
    "Jul 27 06:54:38 UTC 2025\n";

cuda::GpuHost read(const TempTree& root, const std::string& library_path = "") {
  const Tree tree(root.path());
  Machine machine;
  machine.elf_machine = 62;
  machine.default_directories = {"/lib64/", "/usr/lib64/"};
  return cuda::read_gpu_host(tree, machine, library_path);
}

void add_device(const TempTree& root, const std::string& address, const char* vendor,
                const char* device, const char* device_class) {
  const std::string directory = "sys/bus/pci/devices/" + address;
  root.file(directory + "/vendor", vendor);
  root.file(directory + "/device", device);
  root.file(directory + "/class", device_class);
}

}  // namespace

TEST_CASE("gpu host: a machine without a GPU is unknown, not wrong") {
  const TempTree root;
  const cuda::GpuHost host = read(root);
  CHECK(host.driver().empty());
  CHECK(host.gpus.empty());
  CHECK(host.libcuda.empty());
  CHECK_FALSE(host.is_wsl);
  CHECK(host.container.empty());
}

TEST_CASE("gpu host: the kernel module says its version in two places") {
  const TempTree root;
  root.file("proc/driver/nvidia/version", kClosed);
  CHECK(read(root).driver() == "550.54.14");
  root.file("proc/driver/nvidia/version", kOpen);
  CHECK(read(root).kernel_driver == "580.65.06");
  root.file("sys/module/nvidia/version", "535.104.05\n");
  CHECK(read(root).kernel_driver == "535.104.05");
  CHECK(read(root).kernel_driver_source == "/sys/module/nvidia/version");
}

TEST_CASE("gpu host: the user's half decides, the one that ld.so takes first") {
  const TempTree root;
  root.file("sys/module/nvidia/version", "535.104.05\n");
  root.file("usr/lib64/libcuda.so.550.54.14");
  root.link("usr/lib64/libcuda.so.1", "libcuda.so.550.54.14");
  root.file("usr/local/cuda/compat/libcuda.so.590.44.01");
  root.link("usr/local/cuda/compat/libcuda.so.1", "libcuda.so.590.44.01");
  cuda::GpuHost host = read(root);
  REQUIRE(host.libcuda.size() == 2);
  CHECK(host.driver() == "550.54.14");
  CHECK(host.libcuda[0].found_by == "default directory");
  CHECK(host.libcuda[1].found_by.empty());

  host = read(root, "/nothing:/usr/local/cuda/compat");
  CHECK(host.driver() == "590.44.01");
  CHECK(host.libcuda[0].path == "/usr/local/cuda/compat/libcuda.so.1");
  CHECK(host.libcuda.size() == 2);
}

TEST_CASE("gpu host: GPUs of the bus, without other devices of the maker") {
  const TempTree root;
  add_device(root, "0000:01:00.0", "0x10de\n", "0x2684\n", "0x030000\n");
  add_device(root, "0000:01:00.1", "0x10de\n", "0x22ba\n", "0x040300\n");  // its sound
  add_device(root, "0000:02:00.0", "0x8086\n", "0x2684\n", "0x030000\n");
  add_device(root, "0000:03:00.0", "0x10de\n", "0x2335\n", "0x030200\n");
  add_device(root, "0000:04:00.0", "0x10de\n", "0xfffe\n", "0x030200\n");
  const cuda::GpuHost host = read(root);
  REQUIRE(host.gpus.size() == 3);
  CHECK(host.gpus[0].name == "AD102");
  CHECK(host.gpus[0].sm == 89);
  CHECK(host.gpus[1].sm == 90);
  CHECK(host.gpus[2].sm == 0);
  CHECK(host.sms() == std::vector<int>{89, 90});
}

TEST_CASE("gpu host: a container has the GPUs that it was given") {
  const TempTree root;
  add_device(root, "0000:01:00.0", "0x10de", "0x2684", "0x030000");
  add_device(root, "0000:02:00.0", "0x10de", "0x20b0", "0x030200");
  root.file("proc/driver/nvidia/gpus/0000:02:00.0/information",
            "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 31\n");
  root.file(".dockerenv", "");
  const cuda::GpuHost host = read(root);
  REQUIRE(host.gpus.size() == 1);
  CHECK(host.gpus[0].name == "NVIDIA A100-SXM4-40GB");
  CHECK(host.gpus[0].sm == 80);
  CHECK(host.container == "docker");
}

TEST_CASE("gpu host: WSL's driver is there without a version") {
  const TempTree root;
  root.file("usr/lib/wsl/lib/libcuda.so.1.1");
  root.link("usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1.1");
  const cuda::GpuHost host = read(root);
  CHECK(host.is_wsl);
  REQUIRE(host.libcuda.size() == 1);
  CHECK(host.driver().empty());
}

TEST_CASE("gpu host: another machine") {
  const TempTree root;
  root.file("sys/module/nvidia/version", "535.104.05\n");
  cuda::GpuHost host = read(root);
  REQUIRE(cuda::ask_for({"550.54.14", "sm_86", "24GiB"}, host).has_value());
  CHECK(host.driver() == "550.54.14");
  CHECK(host.sms() == std::vector<int>{86});
  CHECK(host.memory == uint64_t{24} << 30);
  for (const cuda::AskedHost& wrong :
       {cuda::AskedHost{"12.4", "", ""}, cuda::AskedHost{"latest", "", ""},
        cuda::AskedHost{"", "8", ""}, cuda::AskedHost{"", "sm_8x", ""},
        cuda::AskedHost{"", "", "much"}, cuda::AskedHost{"", "", "-1GiB"}})
    CHECK_FALSE(cuda::ask_for(wrong, host).has_value());
}

TEST_CASE("gpu host: the ways to write a capability and a size") {
  for (const char* text : {"8.6", "86", "sm_86", "sm86"}) CHECK(cuda::parse_sm(text) == 86);
  CHECK(cuda::parse_sm("10.0") == 100);
  CHECK(cuda::parse_sm("12.10") == 0);
  CHECK(cuda::sm_text(120) == "12.0");
  CHECK(cuda::parse_size("80 GB") == 80000000000);
  CHECK(cuda::parse_size("0.5GiB") == uint64_t{1} << 29);
  CHECK(cuda::parse_size("24GiB") == uint64_t{24} << 30);
  CHECK(cuda::parse_size("24") == 0);
}
