// What libraries open after they are loaded: data/later_opens.tsv, and parts of their own that they
// name in their strings.
//
// Nothing in a file says when a name among its strings is handed to dlopen. The table says it for
// libraries whose source or traces were read, and takes the names from the library itself wherever
// they stand there. Without a row, names of files that lie where the library itself looks first
// (RPATH, RUNPATH) are parts of it, opened at some first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "world/images.h"

namespace cohabit::python {

enum class Phase : uint8_t {
  kImport,
  kDevice,
  kConvolution,
  kLinearAlgebra,
  kCompile,
  kUse,  // some first use: parts that no row speaks of
  kNever
};
constexpr Phase kLaterPhases[] = {Phase::kDevice, Phase::kConvolution, Phase::kLinearAlgebra,
                                  Phase::kCompile, Phase::kUse};
// "device initialisation", "the first convolution"
std::string_view phase_name(Phase phase);

enum class OnFailure : uint8_t { kIgnored, kWarning, kError };

struct LaterRow {
  std::string_view opener, names, when, source;
  Phase phase = Phase::kNever;
  int flags = 0;
  bool by_path = false;   // as a file in the opener's own directory
  bool if_asked = false;  // only in a process that was asked for the opener's distribution
  OnFailure failure = OnFailure::kIgnored;
  bool same_version = false;

  bool needs_gpu() const { return when != "always"; }
};
const std::vector<LaterRow>& later_rows();

// A library that may open others, and where its own are.
struct Opener {
  const Image* image = nullptr;
  std::string file;     // the last part of its path
  std::string version;  // "9.28.0": of its name or its distribution; may be empty
  std::string cuda;     // "cuda12": what its distribution is made for; may be empty
  std::vector<std::string> directories;  // its own, then those of RPATH or RUNPATH
};
bool matches(const LaterRow& row, const Opener& opener);
// Whether a row may be about a file of this name; its soname could still match another.
bool may_open_later(const std::string& file);

// One open: names to be tried, one after the other.
using Attempts = std::vector<std::string>;
std::vector<Attempts> opens_of(const LaterRow& row, const Opener& opener, const Tree& tree);
// What no row of the table accounts for.
std::vector<Attempts> own_parts(const Opener& opener, const Tree& tree);
// The file that one of these names means where the opener's own libraries are; empty: none.
std::string own_file(const Attempts& attempts, const Opener& opener, const Tree& tree);
// The numbers after ".so." in a file name: "9.1.0" of libcudnn-74a4c495.so.9.1.0.
std::string version_in(std::string_view file);
// "9.28.0" of "9.28.0.42": what libraries compare.
std::string three_numbers(const std::string& version);

}  // namespace cohabit::python
