// What an installer said when it found no way, as one sentence.
#pragma once

#include <string>
#include <vector>

#include "actions/ask.h"

namespace cohabit::check {

// Its own words, the reasons only.
std::string reasons_of(const Answer& answer);
Error refusal_of(const std::vector<std::string>& command, const Answer& answer, bool allow_build);

}  // namespace cohabit::check
