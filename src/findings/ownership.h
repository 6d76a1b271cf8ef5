// Which installed distribution a loaded object belongs to, and which distributions know each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tree.h"
#include "facts/python/distributions.h"
#include "sim/simulation.h"

namespace cohabit {

struct OwnerDistribution {
  std::string name;
  std::string version;
  std::vector<uint32_t> needs;   // installed distributions that its metadata asks for, extras too
  std::vector<uint32_t> always;  // those that do not stand in an extra
  bool has_native_files = false;
  std::string package;  // not installed: the directory of a package that nobody claims
};

// What a process was asked to import.
struct Asked {
  std::vector<std::string> imports;  // and what the user's own modules among them import
  // The user's own code imports more, and does not say what: it is compiled, or not to be read.
  bool silently = false;
};

struct Ownership {
  std::vector<OwnerDistribution> distributions;  // the installed, in order; then bare packages
  // By ObjectId: all that claim the file, or the one of them whose record has its size; none:
  // system.
  std::vector<std::vector<uint32_t>> of_object;

  // What the examined statement imports, and the distributions that provide it; empty: a program of
  // which we know nothing, so that everything in it counts as asked for.
  Asked asked;
  std::vector<uint32_t> requested;
  std::vector<std::string> file_of_object;  // the last part of each object's path

  const std::vector<uint32_t>& owners(uint32_t object) const {
    static const std::vector<uint32_t> kNobody;
    return object < of_object.size() ? of_object[object] : kNobody;
  }
  // Nothing of it takes part: it has native files, and none is mapped.
  bool is_absent(uint32_t distribution) const;
  // Some distribution claims both files.
  bool same(uint32_t a, uint32_t b) const;
  // Every distribution that claims `b` is asked for by one that claims `a`. A file claimed by two
  // distributions is whichever was installed last: it counts only if both are asked for.
  bool asks_for(uint32_t a, uint32_t b) const;
  // Whether `object` is there for something that was asked for beside the provider's distribution:
  // a trap that a framework sets for libraries it drags in itself is not sprung by importing it.
  bool serves_request(uint32_t object, uint32_t provider) const;
  // The requested distributions and what they ask for, as if those left out were not there.
  std::vector<uint32_t> brought_without(const std::vector<uint32_t>& left_out) const;
};

// From the installed metadata. Requirements that stand in extras count: what is asked for and
// installed is what the distribution was tried with.
Ownership read_ownership(const Tree& tree, const Distributions& distributions,
                         const sim::Simulation& simulation, Asked asked);
// The objects' part of it anew, for another process of the same imports.
void find_owners(const Tree& tree, const Distributions& distributions,
                 const sim::Simulation& simulation, Ownership& ownership);

}  // namespace cohabit
