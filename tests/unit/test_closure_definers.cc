// Who else defines what a library refers to: as files come to the index, one definition becomes
// several, and what was known of a closure before that is not true any more.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/read_file.h"
#include "findings/closure_definers.h"
#include "loaded.h"
#include "temp_tree.h"

using namespace cohabit;

TEST_CASE("a closure is looked at again once another file defines the same names") {
  const TempTree temp;
  const Tree tree;
  Images images(tree);
  std::string user_path, definer_path;
  for (const std::string& path : really_loaded()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libm.so") || name.starts_with("libm-")) user_path = path;
    if (name.starts_with("libc.so") || name.starts_with("libc-")) definer_path = path;
  }
  REQUIRE(!user_path.empty());
  REQUIRE(!definer_path.empty());
  const auto indexed = [&](const std::string& path) {
    const std::string text = *read_file(path);
    const uint16_t machine = *Bytes(std::string_view(text)).read<uint16_t>(18);  // e_machine
    const ImageId id = images.open(path, machine).image;
    REQUIRE(id != kNone);
    images.index(id);
    return id;
  };
  const ImageId user = indexed(user_path), definer = indexed(definer_path);
  const std::vector<ImageId> closure = {user, definer};
  ClosureDefiners definers(images);
  (void)definers.of(user, closure);
  temp.file("copy.so", *read_file(definer_path));
  const ImageId other = indexed(temp / "copy.so");

  const ClosureDefiners::Closure& now = definers.of(user, closure);
  const auto& references = images[user].references;
  size_t seen = 0;
  for (size_t slot = 0; slot < references.size(); slot++) {
    std::set<ImageId> all;
    for (uint32_t at = images.first_definition(references[slot].name); at != kNone;
         at = images.definition(at).next)
      all.insert(images.definition(at).image);
    if (all != std::set<ImageId>{definer, other}) continue;
    CHECK(images.has_several(references[slot].name));
    CHECK(now.definers[slot] == definer);
    seen++;
  }
  CHECK(seen > 5);
}
