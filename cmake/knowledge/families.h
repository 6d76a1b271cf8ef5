// Messages that many programs print, each in words of its own: an error number of CUDA or of
// Windows, a header that a compiler does not find. A mechanism says which number or header it
// means; here is how it is said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit::explain {

// Expressions of RE2, each with a literal in every alternative. They capture `error_number`.
std::vector<std::string> patterns_of_cuda_errors(const std::vector<int64_t>& numbers);
std::vector<std::string> patterns_of_windows_errors(const std::vector<int64_t>& numbers);
// Of an expression for the header's name; it captures `tool`.
std::vector<std::string> patterns_of_missing_header(std::string_view name);

}  // namespace cohabit::explain
