// Opens that failed, and which of them ended the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "findings/rule.h"

namespace cohabit {

// Many healthy programs probe for libraries and go on without them. A failed open is a finding only
// if the recorded process itself ended with an error, nothing opened the same name later, and it
// was the last one to fail: Python raises on it, unwinds and exits. Several rules share this; each
// takes the messages with its phrase.
std::vector<Finding> failed_opens(const Case& examined, std::string_view phrase,
                                  std::string_view headline, std::string_view help);

}  // namespace cohabit
