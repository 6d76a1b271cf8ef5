#pragma once

#include <string>

namespace cohabit {

// The text at that key, of nlohmann's values of either order; empty where there is none, or the
// value is no object.
template <class Json>
std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

}  // namespace cohabit
