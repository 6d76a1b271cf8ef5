// The version of a pylock.toml's format (PEP 751): of another major version nothing may be read,
// for the same keys may mean something else; a minor one adds keys that are not known here.
#pragma once

#include <string>

#include "actions/toml_text.h"
#include "base/result.h"

namespace cohabit {

// Empty: the version that is known here; else a sentence about what may be missed. Fails where the
// file cannot be read: says what was expected, what is there and in which line.
Result<std::string> check_pylock_version(const toml::table& file);

}  // namespace cohabit
