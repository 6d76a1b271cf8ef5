// Which strings of their own stand in a file: "\0name\0", as a C compiler puts a constant there.
//
// Programs ask for thousands of names of one module (hasattr over tables of operators), and each
// search of 10 MB takes milliseconds. All names are found in one pass instead, the first time that
// one is asked for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace cohabit::python {

class FileStrings {
 public:
  explicit FileStrings(MappedFile file) : file_(std::move(file)) {}

  uint64_t size() const { return file_.bytes().size(); }
  // Any text, names or others; those of names are known after the first.
  bool has(std::string_view text);
  // Anywhere, as part of another one too.
  bool contains(std::string_view text) const;
  // Whether code may make this name of texts in the file: it stands there, or the beginning of it
  // before what is filled in ("KEY_F(", "kind_%d"), or its end behind that ("%sTensor").
  bool may_make(std::string_view name) const;
  // Whether it may stand in the code itself, as compilers put short texts there: its first 4, 8 or
  // 16 letters together, the rest elsewhere.
  bool may_be_inlined(std::string_view text) const;

 private:
  void index();
  void add(uint32_t begin, uint32_t size);
  void grow();
  bool is_indexed(std::string_view name) const;

  struct Place {
    uint32_t begin = 0;
    uint32_t size = 0;  // 0: nothing
  };
  MappedFile file_;
  std::vector<Place> table_;  // open addressing, power of two
  size_t count_ = 0;
  int asked_ = 0;
};

}  // namespace cohabit::python
