// A bundle: what an examination read of a machine's files, as a tree with holes, so that the same
// examination elsewhere reads the same (docs/design/capture.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actions/redaction.h"
#include "base/result.h"
#include "base/touch_log.h"

namespace cohabit {

// The names in the archive.
inline constexpr const char* kBundleTree = "tree";               // the files
inline constexpr const char* kBundleManifest = "manifest.json";  // what was examined, and how
inline constexpr const char* kBundleAbsent = "absent";  // paths that are known not to be there...
inline constexpr const char* kBundleListed = "listed";  // ...directories of which all names are
inline constexpr const char* kBundleExtracts = "extracts";  // what was worked out of whole files
inline constexpr const char* kBundleConfiguration = "configuration";

struct BundleText {
  std::string name;
  std::string text;
};

struct BundleRequest {
  const TouchLog& log;
  const Redaction& redaction;
  std::string directory;          // where relative paths of the log start
  std::string home;               // of which no names count but those that were asked for
  std::vector<BundleText> texts;  // the manifest first
  std::string out;
};

// The size of the bundle.
Result<uint64_t> write_bundle(const BundleRequest& request);

// What was worked out of files of an unpacked bundle.
TouchLog::Extracts read_extracts(const std::string& bundle);

// Paths that an examination of an unpacked bundle asked for and of which the bundle does not know
// what is there.
std::vector<std::string> find_gaps(const TouchLog& log, const std::string& bundle,
                                   const std::string& directory);

}  // namespace cohabit
