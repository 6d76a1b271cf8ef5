// The files that distributions claim in their RECORDs, all of an environment at once: 94,000 rows
// where torch, TensorFlow and JAX are installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/tree.h"
#include "facts/python/distributions.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit {

class InstalledFiles {
 public:
  struct Row {
    uint32_t distribution = 0;  // index into Distributions::all()
    RecordRow record;
  };

  InstalledFiles() = default;
  static InstalledFiles read(const Tree& tree, const Distributions& distributions);
  // The rows of some distributions only, by their indices; none is looked for that is claimed
  // twice.
  static InstalledFiles read_some(const Tree& tree, const Distributions& distributions,
                                  const std::vector<uint32_t>& which);

  // Rows of one distribution are neighbours, in the order of its RECORD.
  const std::vector<Row>& rows() const { return rows_; }
  // First and last + 1 row of a distribution; empty if it has no RECORD.
  std::pair<size_t, size_t> rows_of(uint32_t distribution) const { return ranges_[distribution]; }
  // Where a row's file is: absolute, without "." and "..".
  std::string path_of(const Row& row) const;
  // Groups of two or more rows, of different distributions, that name one file.
  const std::vector<std::vector<uint32_t>>& claimed_twice() const { return claimed_twice_; }

 private:
  void add(MappedFile map, uint32_t index);
  void find_claimed_twice();

  std::vector<std::string> sites_;  // by distribution
  std::vector<Row> rows_;
  std::vector<std::pair<size_t, size_t>> ranges_;
  std::vector<std::vector<uint32_t>> claimed_twice_;
  std::vector<MappedFile> maps_;     // what the rows point into
  std::vector<RecordRows> records_;  // and their unescaped names
};

// The module that a path of a RECORD brings to the top level: "cv2" of "cv2/__init__.py", "six" of
// "six.py", "_cffi" of "_cffi.cpython-311-x86_64-linux-gnu.so"; empty: none.
std::string_view import_name(std::string_view path);

// "sha256=BASE64" of a file as RECORD writes it; nothing if it cannot be read.
std::optional<std::string> record_hash(const Tree& tree, const std::string& path);

}  // namespace cohabit
