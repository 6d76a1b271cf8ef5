// Fuzz target: the text of a snapshot. Its last line, the hash of all others, is put right first:
// what lies behind that check is to be reached. What is read must survive writing and reading
// again, and no path may lead out of the environment.
#include <cstdlib>
#include <string>

#include "base/paths.h"
#include "base/sha256.h"
#include "facts/snapshots/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohabit;
  std::string text(reinterpret_cast<const char*>(data), size);
  (void)parse_snapshot(text);
  (void)parse_snapshot(text, false);
  text += "end\t" + hexadecimal(sha256(Bytes(std::string_view(text)))) + "\n";
  const auto snapshot = parse_snapshot(text);
  if (!snapshot) return 0;
  for (const SnapshotFile& file : snapshot->files) {
    if (!stays_below(file.path) || file.path.starts_with('/')) std::abort();
    if (file.kind == EntryKind::kFile && !is_object_name(file.object)) std::abort();
  }
  const std::string written = format_snapshot(*snapshot);
  const auto again = parse_snapshot(written);
  if (!again || format_snapshot(*again) != written) std::abort();
  return 0;
}
