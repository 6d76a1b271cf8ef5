// What can be seen in a text without knowing its cause: exceptions, crashes. Shown where there is
// no answer, so that the user sees what was read.
#pragma once

#include <string_view>
#include <vector>

#include "explain/answer.h"

namespace cohabit::explain {

// Looks at the end of the text. The line is its place in the text.
void recognise(std::string_view text, std::vector<Recognised>& recognised);

}  // namespace cohabit::explain
