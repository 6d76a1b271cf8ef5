// What was worked out of whole files (base/known_words.h), kept from one run to the next in the
// user's cache directory. Taken again only of a file that is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/known_words.h"

namespace cohabit {

class KeptWords {
 public:
  // Takes those that an earlier run has kept of the environment with this prefix. Null: the user
  // has no place for them, or does not want them. `words` outlives it.
  static std::unique_ptr<KeptWords> open(const std::string& prefix, KnownWords& words);
  // Writes them down, if there are new ones.
  void save() const;

 private:
  KeptWords(std::string path, std::string key, KnownWords& words);

  std::string path_, key_;
  KnownWords& words_;
  int64_t start_;
};

}  // namespace cohabit
