// Addresses (https://host/path, file:///path) as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cohabit {

// "https://user:token@host/x" -> "https://***@host/x", wherever such stand in a text.
std::string without_credentials(std::string text);
// "%2B" -> "+"
std::string percent_decoded(std::string_view text);
// What stands for bytes of a path that mean something else in an address, or nothing.
std::string percent_encoded(std::string_view path);
// "https://user:token@host/x" -> "https://host/x"
std::string bare_address(std::string address);
// The path that file:///path names, on this machine; nothing if it is another kind of address.
std::optional<std::string> path_of_address(std::string_view address);

}  // namespace cohabit
