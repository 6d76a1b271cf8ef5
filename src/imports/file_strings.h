// Which strings of their own stand in a file: "\0name\0", as a C compiler puts a constant there;
// and which words stand there at all.
//
// Programs ask for thousands of names of one module (hasattr over tables of operators), and each
// search of 10 MB takes milliseconds. All words are found in one pass instead. What is read for an
// answer so depends on what was asked before: a bundle has the answers (MappedFile::answer).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/mapped_file.h"

namespace cohabit::python {

class FileStrings {
 public:
  explicit FileStrings(MappedFile file);
  FileStrings(FileStrings&& other) noexcept;
  ~FileStrings();

  uint64_t size() const { return file_.bytes().size(); }
  // Any text, names or others; those of names are known after the first.
  bool has(std::string_view text);
  // As part of another text, too.
  bool has_part(std::string_view text) const;
  // Whether code may make this name of texts in the file: it stands there, as part of another too,
  // or the beginning of it before what is filled in ("KEY_F(", "kind_%d"), or its end behind that
  // ("%sTensor").
  bool may_make(std::string_view name);
  // Whether it may stand in the code itself, as compilers put short texts there: its first 4, 8 or
  // 16 letters together, the rest elsewhere.
  bool may_be_inlined(std::string_view text) const;

 private:
  struct Words;
  const Words& words_of(std::string_view bytes);

  MappedFile file_;
  std::unique_ptr<Words> words_;
  int asked_ = 0;
};

}  // namespace cohabit::python
