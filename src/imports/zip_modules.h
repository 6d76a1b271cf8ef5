// Modules in zip archives that stand on sys.path (Lib/zipimport.py): "app.zip", "lib.egg/part". An
// archive is like a directory that has source and byte code, and no native files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tree.h"
#include "facts/wheels/byte_source.h"
#include "facts/wheels/zip_directory.h"

namespace cohabit::python {

class ZipModules {
 public:
  explicit ZipModules(const Tree& tree) : tree_(tree) {}

  // Names in a directory of an archive, sorted; empty: it is none.
  std::vector<std::string> list(const std::string& path);
  // Of archives that were listed.
  bool is_file(const std::string& path) const { return member_of(path) != nullptr; }
  bool is_directory(const std::string& path) const;
  struct Source {
    std::string text;
    bool is_packed = false;  // zipimport imports zlib for it
  };
  // A file of an archive; nothing: it is none, or cannot be read.
  std::optional<Source> read(const std::string& path, uint64_t limit) const;

 private:
  struct Archive {
    wheels::LocalFile file;
    wheels::ZipDirectory directory;
    std::map<std::string, const wheels::ZipMember*, std::less<>> members;   // by name
    std::map<std::string, std::vector<std::string>, std::less<>> listings;  // by directory
  };
  struct Place {
    Archive* archive;
    std::string_view inside;  // "" is the archive itself
  };

  const Archive* open(const std::string& path);
  std::optional<Place> find(const std::string& path);
  std::optional<Place> find_known(const std::string& path) const;
  const wheels::ZipMember* member_of(const std::string& path) const;

  const Tree& tree_;
  std::unordered_map<std::string, std::unique_ptr<Archive>> archives_;  // null: it is none
};

}  // namespace cohabit::python
