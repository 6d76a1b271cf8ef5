// A bundle: what an examination read of a machine's files, as a tree with holes, so that the same
// examination elsewhere reads the same (docs/design/capture.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/redaction.h"
#include "base/result.h"
#include "base/touch_log.h"

namespace cohabit {

// The names in the archive.
inline constexpr const char* kBundleTree = "tree";               // the files
inline constexpr const char* kBundleManifest = "manifest.json";  // what was examined, and how
inline constexpr const char* kBundleAbsent = "absent";  // paths that are known not to be there...
inline constexpr const char* kBundleListed = "listed";  // ...directories of which all names are
inline constexpr const char* kBundlePartlyListed = "partly-listed";  // ...or only those asked for
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

// What an unpacked bundle knows besides its files. `directory`: where its process was.
void read_known(const std::string& bundle, const std::string& directory, TouchLog& log);

// What an examination of an unpacked bundle asked for in vain.
struct BundleGaps {
  std::vector<std::string> contents;  // files that are there, without what was read of them
  std::vector<std::string> paths;     // of which the bundle does not know what is there
};
BundleGaps find_gaps(const TouchLog& log, const std::string& bundle, const std::string& directory);

}  // namespace cohabit
