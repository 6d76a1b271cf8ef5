#include "families.h"

#include <fmt/format.h>

namespace cohabit::explain {
namespace {

void add(std::string& alternatives, const std::string& one) {
  if (!alternatives.empty()) alternatives += '|';
  alternatives += one;
}

}  // namespace

// Their names and their sentences are in the mechanisms; this is for programs that print the number
// only. What comes before the number is whole words: a line is filtered by them.
std::vector<std::string> patterns_of_cuda_errors(const std::vector<int64_t>& numbers) {
  std::string either;
  for (const int64_t number : numbers) add(either, std::to_string(number));
  const std::string number = fmt::format("(?P<error_number>{})(?:\\.?[^.\\d]|\\.?$)", either);
  return {
      "(?i)(?:CUDA error|CUDA_ERROR|CUDA failure|CUDA runtime error|CUDA driver error"
      "|CUDA API error|cudaError)(?:[ _]code)?[ :=#(\\[]{1,3}" +
          number,
      "(?i)(?:CUDA initialization failure with error: |cudaGetDeviceCount returned "
      "|cudaGetDeviceCount\\(\\) returned |cuInit\\(0\\) returned |cuInit\\(0\\) failed with )" +
          number,
      fmt::format("\\[(?P<error_number>{})\\] Call to cu", either)};
}

// "error code: 126", "(error code is 0x7e)", and the same number as an HRESULT.
std::vector<std::string> patterns_of_windows_errors(const std::vector<int64_t>& numbers) {
  std::string either, results;
  for (const int64_t number : numbers) {
    add(either, fmt::format("{0}|0x0*{0:x}", number));
    add(results, fmt::format("0x8007{:04x}", number));
  }
  return {fmt::format("(?i)(?:load|dll|library).*(?:error code|errorcode|error number"
                      "|with error|GetLastError|Win32 error|Windows error)[^\\n\\d]{{0,12}}"
                      "(?P<error_number>{})\\b",
                      either),
          fmt::format("\\.(?:dll|pyd), errno (?P<error_number>{})\\b", either),
          fmt::format("(?i)(?P<error_number>{})\\b", results)};
}

// As gcc, clang, cl, nvcc and tcc say it.
std::vector<std::string> patterns_of_missing_header(std::string_view name) {
  return {fmt::format("fatal error(?: C1083)?: '?(?P<tool>{})'?"
                      "(?:: No such file| file not found)",
                      name),
          fmt::format("(?:[Cc]annot open include file: |include file |cannot open source file )"
                      "['\"](?P<tool>{})['\"]",
                      name)};
}

}  // namespace cohabit::explain
