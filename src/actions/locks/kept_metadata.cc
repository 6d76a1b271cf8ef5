#include "actions/locks/kept_metadata.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/write_file.h"

namespace cohabit::locks {
namespace {

constexpr size_t kMostMetadata = 256 << 20;

// "lib/python3.11/site-packages" of ".../torch-2.6.0.dist-info/RECORD"; empty: it is no such file.
std::string site_of(const std::string& path) {
  constexpr std::string_view kMark = ".dist-info/";
  const size_t mark = path.find(kMark);
  if (mark == path.npos || path.find('/', mark + kMark.size()) != path.npos) return "";
  const size_t slash = path.rfind('/', mark);
  return slash == path.npos ? "" : path.substr(0, slash);
}

}  // namespace

std::optional<std::string> read_kept(const Store& store, const SnapshotFile& row, size_t limit) {
  if (row.kind != EntryKind::kFile || row.size > limit) return std::nullopt;
  std::vector<std::string> objects = store.objects_with(row.hash);
  objects.insert(objects.begin(), row.object);
  for (const std::string& object : objects) {
    auto text = read_file(store.object_path(object), limit);
    if (text && sha256(Bytes(*text)) == row.hash) return std::move(*text);
  }
  return std::nullopt;
}

Result<KeptMetadata> read_kept_metadata(const Store& store, const Snapshot& snapshot) {
  KeptMetadata kept;
  kept.scratch = std::make_unique<ScratchDirectory>("cohabit-kept");
  if (kept.scratch->path().empty()) return fail("cannot make an empty directory in $TMPDIR");
  for (const SnapshotFile& row : snapshot.files) {
    const std::string site = site_of(row.path);
    if (site.empty() || row.kind != EntryKind::kFile || !stays_below(row.path)) continue;
    const auto text = read_kept(store, row, kMostMetadata);
    if (!text) continue;
    const std::string place = kept.prefix() + "/" + row.path;
    std::error_code error;
    std::filesystem::create_directories(directory_of(place), error);
    if (auto written = write_file(place, *text); !written)
      return tl::unexpected<Error>(written.error());
    kept.site = kept.prefix() + "/" + site;
  }
  if (!kept.site.empty()) kept.distributions = Distributions::read(Tree(""), {kept.site}, {});
  return kept;
}

}  // namespace cohabit::locks
