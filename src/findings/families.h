// Which names belong together.
//
// For C++ names the scope says it (mangled.h). C names have no scope; there the process itself
// knows: a name belongs to the smallest library that exports it. libz.so.1 exports some ninety
// names and a framework with a static zlib exports them among its thousands, so `inflate` belongs
// to libz. Two libraries that export mostly the same names are copies of one family (libz 1.2.3
// and 1.2.13).
//
// All but the home of a name is a matter of the files, and remembered for every process that is
// simulated from them. The files asked about are in a process: indexed (world/images.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "findings/process_view.h"

namespace cohabit {

class Families {
 public:
  explicit Families(const Images& images) : images_(images) {}

  // The C++ family, a small number; kNone for C names and C++ names without a scope. Remembered.
  uint32_t cpp_family(NameId name);
  // It will be asked for soon.
  void prefetch(NameId name) const {
    const size_t at = name / std::tuple_size_v<Block>;
    if (at < cpp_.size() && cpp_[at])
      __builtin_prefetch(&(*cpp_[at])[name % std::tuple_size_v<Block>]);
  }
  // As written; empty: of kNone.
  std::string_view text(uint32_t family) const {
    return family == kNone ? std::string_view() : texts_[family];
  }
  // The smallest exporter of a name in this process, by the size of its symbol table.
  ImageId home(NameId name, const ProcessView& process);
  // How much of the C names of `library` another one exports too: 0 to 1.
  double coverage(ImageId library, ImageId by);
  bool copies(ImageId a, ImageId b);
  const std::unordered_set<NameId>& c_exports(ImageId image);

 private:
  const Images& images_;
  // By NameId: the family + 2, 1: none, 0: not looked at. A process is judged by a few of a million
  // names, which are neighbours as their libraries' are.
  using Block = std::array<uint32_t, 1024>;
  std::vector<std::unique_ptr<Block>> cpp_;
  std::vector<std::string_view> texts_;  // of families, each once
  std::unordered_map<std::string_view, uint32_t> places_;
  std::unordered_map<ImageId, std::unordered_set<NameId>> exports_;
  std::map<std::pair<ImageId, ImageId>, double> coverage_;
  uint32_t size(ImageId image);
  std::unordered_map<ImageId, uint32_t> sizes_;
};

}  // namespace cohabit
