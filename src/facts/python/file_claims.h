// What installers say about the contents of files: the hashes of RECORD (PEP 376) and of
// conda-meta.
//
// A claim is about the moment of the install. It is believed without reading the file if nothing
// speaks against it: the size is the claimed one, the file was not written after the list that
// claims it (installers write RECORD last), and nobody claims anything else of the same path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/sha256.h"
#include "base/tree.h"
#include "facts/files/walk.h"
#include "facts/python/distributions.h"

namespace cohabit {

class FileClaims {
 public:
  FileClaims() = default;
  // `prefix`: without symlinks. Claims about files outside of it are left out.
  static FileClaims read(const Tree& tree, const Distributions& distributions,
                         const std::string& prefix);

  // The hash that this file has if the claim holds; nothing if it has to be read. `entry.path` is
  // below the prefix.
  std::optional<Sha256> believed(const Entry& entry) const;
  // Whether an installer says anything of this path, below the prefix.
  bool contains(const std::string& path) const { return claims_.contains(path); }
  // What it says, and the distribution's number in what was read; nothing where several say
  // different things, or nobody anything.
  struct Claimed {
    Sha256 hash{};
    uint32_t distribution = 0;
  };
  std::optional<Claimed> claimed(const std::string& path) const;

 private:
  struct Claim {
    Sha256 hash{};
    int64_t size = -1;
    int64_t made = 0;  // when the list was written
    uint32_t distribution = 0;
    bool disputed = false;
  };
  void add(const std::string& path, const Claim& claim);
  void add_record(const Tree& tree, const Distribution& distribution, uint32_t number,
                  const std::string& prefix);
  void add_conda(const Tree& tree, const Distribution& distribution, uint32_t number);

  std::unordered_map<std::string, Claim> claims_;  // by path below the prefix
};

}  // namespace cohabit
