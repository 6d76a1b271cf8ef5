#include "base/json_text.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/hexadecimal.h"
#include "base/utf8.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

// In upper case too: a trace may be written by others.
int digit_of(char c) {
  return hexadecimal_digit(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_of(digits[i]), low = digit_of(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

Json json_of(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  return Json{{"hex", hexadecimal_of(bytes)}};
}

Json json_of(const std::vector<std::string>& list) {
  Json array = Json::array();
  for (const std::string& bytes : list) array.push_back(json_of(bytes));
  return array;
}

std::optional<std::string> bytes_of(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (!value.is_object() || value.size() != 1) return std::nullopt;
  const auto digits = value.find("hex");
  if (digits == value.end() || !digits->is_string()) return std::nullopt;
  return from_hex(digits->get_ref<const std::string&>());
}

}  // namespace cohabit
