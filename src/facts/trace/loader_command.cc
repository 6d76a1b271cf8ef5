#include "facts/trace/loader_command.h"

#include <algorithm>

namespace cohabit {

LoaderOptions parse_loader_command(const std::vector<std::string>& words) {
  LoaderOptions options;
  size_t at = std::min<size_t>(1, words.size());
  for (; at < words.size(); at++) {
    const std::string& word = words[at];
    if (word == "--inhibit-cache") {
      options.inhibit_cache = true;
      continue;
    }
    const bool has_value = at + 1 < words.size();
    if (!word.starts_with("--") || !has_value) break;
    const std::string& value = words[at + 1];
    if (word == "--library-path") {
      options.library_path = value;
    } else if (word == "--inhibit-rpath") {
      options.inhibit_rpath = value;
    } else if (word == "--preload") {
      options.preload = value;
    } else if (word == "--audit") {
      options.audit = true;
    } else if (word != "--argv0" && !word.starts_with("--glibc-hwcaps-")) {
      break;
    }
    at++;
  }
  options.program = at < words.size() && !words[at].starts_with("--") ? at : words.size();
  return options;
}

}  // namespace cohabit
