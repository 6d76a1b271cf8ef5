#include "cli/kept_words.h"

#include <memory>
#include <string_view>

#include "base/packed.h"
#include "base/watched_files.h"
#include "cli/kept_files.h"

namespace cohabit {
namespace {

constexpr std::string_view kFormat = "cohabit words 2\n";
constexpr uint64_t kLargestFile = uint64_t{16} << 20;
constexpr uint64_t kLargestCache = uint64_t{64} << 20;  // all files together

}  // namespace

KeptWords::KeptWords(std::string path, std::string key, KnownWords& words)
    : path_(std::move(path)), key_(std::move(key)), words_(words), start_(WatchedFiles::now()) {}

std::unique_ptr<KeptWords> KeptWords::open(const std::string& prefix, KnownWords& words) {
  const std::string path = kept_path("words", prefix);
  if (path.empty()) return nullptr;
  Packer packer;
  pack_ourselves(packer);
  std::unique_ptr<KeptWords> kept(new KeptWords(path, packer.bytes(), words));
  if (const auto text = read_kept(kept->path_, kFormat, kLargestFile)) {
    // A copy: words are asked for until the end, and somebody may write to the file meanwhile.
    const auto owner = std::make_shared<const std::string>(text->text);
    Unpacker unpacker(*owner);
    if (unpacker.text() == kept->key_)
      (void)words.unpack(std::string_view(*owner).substr(owner->size() - unpacker.left()), owner);
  }
  return kept;
}

void KeptWords::save() const {
  if (!words_.has_new()) return;
  for (const bool with_unasked : {true, false}) {
    Packer packer;
    packer.text(key_);
    words_.pack(packer, start_ - WatchedFiles::kTick, with_unasked);
    if (replace_kept(path_, kFormat, packer.bytes(), kLargestFile, kLargestCache)) return;
  }
}

}  // namespace cohabit
