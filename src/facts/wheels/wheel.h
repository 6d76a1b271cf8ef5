// What a wheel would install, known from its RECORD, its METADATA and, where it needs that, its
// list of files.
//
// A wheel's RECORD has paths as in the archive. Installers put x.data/purelib and platlib into
// site-packages, scripts into bin, data into the prefix (PyPA's "Binary distribution format"), and
// write a RECORD with those paths: here is that text, so that what reads installed ones reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/python/entry_points.h"
#include "facts/wheels/byte_source.h"

namespace cohabit::wheels {

struct Module {
  std::string path;  // "numba/__init__.py"
  std::string text;
};

struct Wheel {
  std::string dist_info;  // "torch-2.15.0.dist-info"
  std::string metadata;   // the text of METADATA
  std::string record;     // as installed, see above
  uint64_t size = 0;      // of the archive
  uint64_t installed_size = 0;
  std::vector<Script> scripts;        // that installers make: not in `record`
  std::vector<std::string> problems;  // what is odd about it, in words
};

// `name`: of the distribution; which of several dist-info directories is meant. `prefix`: from
// site-packages to the environment's prefix, "../../.."; `headers`: from the prefix to where header
// files of distributions go, "include/site/python3.12".
struct Layout {
  std::string prefix, headers;
};
Result<Wheel> read_wheel(ByteSource& source, const std::string& name, const Layout& layout);

// Of its packages those whose __init__.py raises ImportError: they may refuse another
// distribution's version. Reads the archive's whole list of files.
Result<std::vector<Module>> read_refusing_modules(ByteSource& source);

// Where an installer puts a member of a wheel, from site-packages; empty: nowhere.
std::string installed_path(const std::string& member, const std::string& name,
                           const Layout& layout);

}  // namespace cohabit::wheels
