// What a change can do about the captures of a process, asked before it is simulated.
//
// A capture across versions stays an error as long as the same names are bound to the same
// provider. So a change that leaves the provider where it is, in front of whoever was meant, need
// not be simulated to be known as no repair: on `newest` that is most of the preloads, which are
// also what costs most (the whole process is bound anew).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "repair/judge.h"

namespace cohabit {

class Clashes {
 public:
  explicit Clashes(const JudgedProcess& process);

  // False: some error stays. True says nothing.
  bool may_clear(const Repair& repair) const;
  // False: all errors stay.
  bool may_help(const Repair& repair) const;

 private:
  struct Clash {
    ImageId provider = kNone;
    std::vector<NameId> names;             // that are captured
    std::vector<std::string> made_global;  // opens that do that to the provider
    std::string opened;                    // by which the consumer was mapped; empty: at start-up
    bool anything_may_clear_it = false;    // an error of another kind
  };
  bool is_touched(const Clash& clash, const Repair& repair) const;
  bool moves(const Clash& clash, const std::string& preload) const;

  const Images& images_;
  std::vector<Clash> clashes_;
  // Of libraries, by the names that they can be preloaded by: they and their dependencies.
  std::unordered_map<std::string, std::vector<ImageId>> brings_;
};

}  // namespace cohabit
