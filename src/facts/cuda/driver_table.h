// What a driver version can do, from tables of NVIDIA's documentation (data/cuda_*.tsv,
// data/ptx_versions.tsv), and what its toolkits make code for. What the tables do not know has no
// answer.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace cohabit::cuda {

constexpr int kAnyMinor = -1;

struct CudaVersion {
  int major = 0;
  int minor = 0;  // kAnyMinor: not known
  auto operator<=>(const CudaVersion&) const = default;
  std::string text() const;
};
// Of "12.4", "12.4.127", "12"; nothing if it does not begin with a number.
std::optional<CudaVersion> parse_cuda_version(std::string_view text);

// Whether `driver` is `wanted` or later. A driver given by its branch alone ("550") counts as the
// last of that branch.
bool is_driver_at_least(std::string_view driver, std::string_view wanted);

// The newest CUDA of which this driver has everything: 12.4 for 550.54.14.
std::optional<CudaVersion> cuda_of_driver(std::string_view driver);
// The oldest driver that runs programs made with this CUDA at all, and the oldest that has all of
// that version (PTX). Empty: not in the tables.
std::string_view oldest_driver_for(CudaVersion cuda);
std::string_view full_driver_for(CudaVersion cuda);
// The oldest compute capability (75 for 7.5) that toolkits of this major make code for; 0: not
// known.
int oldest_target_of(CudaVersion cuda);
// The CUDA whose driver compiles this version of PTX.
std::optional<CudaVersion> cuda_of_ptx(int major, int minor);
// Whether this driver compiles it. Where a table has no answer, and of no driver ("") at all, it
// gets the benefit of the doubt.
bool driver_compiles(std::string_view driver, int ptx_major, int ptx_minor);

}  // namespace cohabit::cuda
