// Which copies of a library define what a text says is missing.
#pragma once

#include <string_view>
#include <vector>

#include "base/tree.h"
#include "explain/inventory.h"

namespace cohabit::explain {

struct Definers {
  std::vector<Copy> with, without;  // copies that cannot be read are in neither
};

// `symbol`: a name of the dynamic symbol table; empty: the version itself (DT_VERDEF).
Definers find_definers(const std::vector<Copy>& copies, std::string_view symbol,
                       std::string_view version, const Tree& tree);

}  // namespace cohabit::explain
