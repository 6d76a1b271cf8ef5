// UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace cohabit {

// Where the first byte is that is not UTF-8; the text's end: nowhere.
size_t find_stray_byte(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace cohabit
