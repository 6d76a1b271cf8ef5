#include "base/addresses.h"

#include <algorithm>

#include "base/secrets.h"

namespace cohabit {
namespace {

constexpr const char* kHidden = "***";

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string without_credentials(std::string text) {
  const auto found = find_credentials(text);
  for (auto at = found.rbegin(); at != found.rend(); ++at)
    text.replace(at->first, at->second - at->first, kHidden);
  return text;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); i++) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
                         digit_of(text[i + 2]) >= 0;
    if (!is_code) {
      result += text[i];
      continue;
    }
    result += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
    i += 2;
  }
  return result;
}

std::string percent_encoded(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~+!$&'()*,;=:@";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != kPlain.npos)
      result += c;
    else
      result.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
  }
  return result;
}

std::string bare_address(std::string address) {
  const size_t scheme = address.find("://");
  if (scheme == address.npos) return address;
  const size_t end = std::min(address.find_first_of("/?#", scheme + 3), address.size());
  const size_t mark = address.rfind('@', end);
  if (mark != address.npos && mark > scheme && mark < end)
    address.erase(scheme + 3, mark - scheme - 2);
  return address;
}

std::optional<std::string> path_of_address(std::string_view address) {
  constexpr std::string_view kFile = "file://";
  if (!address.starts_with(kFile)) return std::nullopt;
  std::string_view rest = address.substr(kFile.size());
  if (rest.starts_with("localhost/")) rest.remove_prefix(std::string_view("localhost").size());
  if (!rest.starts_with('/')) return std::nullopt;
  return percent_decoded(rest.substr(0, rest.find_first_of("?#")));
}

}  // namespace cohabit
