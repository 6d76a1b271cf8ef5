// Tables of C++, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/knowledge.h"

namespace cohabit::explain {

// A string literal of these bytes.
std::string quoted(std::string_view text);
// The definition of known_mechanisms().
std::string table_of(const std::vector<Mechanism>& mechanisms);

}  // namespace cohabit::explain
