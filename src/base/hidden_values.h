// Values of secrets in other text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/secrets.h"
#include "base/text.h"

namespace cohabit {

// The values first become what a bundle has in their place (base/redaction.h), and this what is
// shown: so the same is shown of a bundle, where the values are not known.
inline void hide_values(std::string& text, const std::vector<std::string>& values) {
  constexpr size_t kLeast = 6;
  for (const std::string& value : values) replace_all(text, value, stand_in_of(value));
  for (size_t at = text.find('x'); at != std::string::npos; at = text.find('x', at)) {
    const size_t end = std::min(text.find_first_not_of('x', at), text.size());
    if (end - at >= kLeast) text.replace(at, end - at, kHiddenSecret);
    at = end - at >= kLeast ? at + kHiddenSecret.size() : end;
  }
}

}  // namespace cohabit
