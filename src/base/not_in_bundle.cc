#include "base/not_in_bundle.h"

#include <algorithm>

#include "base/paths.h"

namespace cohabit {
namespace {

bool is_known(const TouchLog& log, const char* kind, const std::string& path) {
  const auto known = log.extracts().find({"", kind});
  return known != log.extracts().end() &&
         std::binary_search(known->second.begin(), known->second.end(), path);
}

}  // namespace

bool knows_names(const TouchLog& log, const std::string& directory) {
  return is_known(log, kKnownListed, directory);
}

bool knows_absence(const TouchLog& log, const std::string& place) {
  return is_known(log, kKnownAbsent, place) || knows_names(log, directory_of(place));
}

}  // namespace cohabit
