// What an installer said when it found no way, as one sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actions/ask.h"

namespace cohabit::check {

// Its own words, the reasons only.
std::string reasons_of(const Answer& answer);
// Ends a refusal where no builds were allowed and nothing speaks for another reason.
constexpr std::string_view kBuildHint =
    "\n(No build was made to find out: `cohabit check --allow-build` lets the installer build "
    "source distributions and directories, which runs their code.)";
Error refusal_of(const std::vector<std::string>& command, const Answer& answer, bool allow_build);

}  // namespace cohabit::check
