// What `cohabit why` found, onto paper.
#pragma once

#include <string>

#include "explain/answer.h"

namespace cohabit::report {

std::string why_full(const explain::Explanation& explanation, bool colour);
// data/schema/why.schema.json describes it.
std::string why_json(const explain::Explanation& explanation);
// For `cohabit explain SLUG`: everything that is known of a mechanism.
std::string mechanism_text(const explain::Mechanism& mechanism);

}  // namespace cohabit::report
