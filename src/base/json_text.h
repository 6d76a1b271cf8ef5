#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohabit {

// The text at that key, of nlohmann's values of either order; empty where there is none, or the
// value is no object.
template <class Json>
std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

// Paths and variables are bytes, JSON's strings are UTF-8: bytes that are not stand as
// {"hex": "2f746d70ff"}, two digits each.
nlohmann::ordered_json json_of(const std::string& bytes);
nlohmann::ordered_json json_of(const std::vector<std::string>& list);
// Nothing where the value is neither a string nor {"hex": digits}.
std::optional<std::string> bytes_of(const nlohmann::ordered_json& value);

}  // namespace cohabit
