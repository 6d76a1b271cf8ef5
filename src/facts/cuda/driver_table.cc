#include "facts/cuda/driver_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/rows.h"

namespace cohabit::cuda {
namespace {

constexpr std::string_view kToolkits =
#include "data/cuda_toolkits.inc"
    ;
constexpr std::string_view kMajors =
#include "data/cuda_majors.inc"
    ;
constexpr std::string_view kTargets =
#include "data/cuda_targets.inc"
    ;
constexpr std::string_view kPtxVersions =
#include "data/ptx_versions.inc"
    ;

// The numbers of "550.54.14", up to what is no number.
std::vector<int> numbers(std::string_view text) {
  std::vector<int> result;
  while (!text.empty()) {
    int number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc()) break;
    result.push_back(number);
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace

std::string CudaVersion::text() const {
  return minor == kAnyMinor ? fmt::format("{}", major) : fmt::format("{}.{}", major, minor);
}

std::optional<CudaVersion> parse_cuda_version(std::string_view text) {
  const std::vector<int> parts = numbers(text);
  if (parts.empty() || parts[0] <= 0) return std::nullopt;
  return CudaVersion{parts[0], parts.size() > 1 ? parts[1] : 0};
}

bool is_driver_at_least(std::string_view driver, std::string_view wanted) {
  const std::vector<int> have = numbers(driver);
  std::vector<int> want = numbers(wanted);
  if (have.size() == 1) want.resize(std::min<size_t>(want.size(), 1));
  return have >= want;
}

std::optional<CudaVersion> cuda_of_driver(std::string_view driver) {
  std::optional<CudaVersion> newest;
  for (const TableRow& row : table_rows(kToolkits, 2))
    if (is_driver_at_least(driver, row[1])) newest = std::max(newest, parse_cuda_version(row[0]));
  return newest;
}

std::string_view full_driver_for(CudaVersion cuda) {
  for (const TableRow& row : table_rows(kToolkits, 2))
    if (parse_cuda_version(row[0]) == cuda) return row[1];
  return "";
}

std::string_view oldest_driver_for(CudaVersion cuda) {
  for (const TableRow& row : table_rows(kMajors, 2))
    if (parse_cuda_version(row[0])->major == cuda.major) return row[1];
  return full_driver_for(cuda);  // before minor-version compatibility
}

int oldest_target_of(CudaVersion cuda) {
  for (const TableRow& row : table_rows(kTargets, 2))
    if (parse_cuda_version(row[0])->major == cuda.major) {
      const std::vector<int> capability = numbers(row[1]);
      return 10 * capability[0] + capability[1];
    }
  return 0;
}

std::optional<CudaVersion> cuda_of_ptx(int major, int minor) {
  for (const TableRow& row : table_rows(kPtxVersions, 2))
    if (parse_cuda_version(row[0]) == CudaVersion{major, minor}) return parse_cuda_version(row[1]);
  return std::nullopt;
}

bool driver_compiles(std::string_view driver, int ptx_major, int ptx_minor) {
  const auto wanted = cuda_of_ptx(ptx_major, ptx_minor);
  const auto has = cuda_of_driver(driver);
  return driver.empty() || !wanted || !has || *has >= *wanted;
}

}  // namespace cohabit::cuda
