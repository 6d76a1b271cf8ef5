// Which of a Cython module's variables holds which string: import statements are given variables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/object.h"

namespace cohabit::python {

using StringTable = std::vector<std::string>;  // in the order of the file, others than names too

class CythonNames {
 public:
  // `tables` are those without an address of their own: packed ones.
  CythonNames(const elf::Object& object, Bytes file, std::vector<StringTable> tables);

  // Takes the entries that a function has stored in its frame: addresses, by their place there.
  void read_frame(const elf::Object& object, Bytes file, const std::map<int64_t, uint64_t>& frame);

  // Finds where the module keeps the strings of its tables: at one of the addresses that its code
  // computes, so that all `names` are names. `loads`: the variables that the code reads, in order.
  void place_tables(const std::vector<uint64_t>& loads,
                    const std::unordered_set<uint64_t>& addresses,
                    const std::vector<uint64_t>& names);

  // Null if none is known.
  const std::string* find(uint64_t variable) const;
  bool empty() const { return strings_.empty(); }

 private:
  void read_entries(const elf::Object& object, Bytes file);

  std::vector<StringTable> tables_;
  std::unordered_map<uint64_t, std::string> strings_;  // by the variable's address
};

}  // namespace cohabit::python
