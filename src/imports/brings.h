// What a distribution brings with it, by its metadata.
//
// The strings of a compiled module do not tell whether an import stands at the module's level or in
// a function. Requirements tell it: a module that imports at its level what its distribution does
// not require would fail wherever that is not installed. pyarrow names pandas, scipy and fsspec for
// when they are there; it requires none of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "facts/python/distributions.h"
#include "facts/python/requirement.h"

namespace cohabit::python {

class Brings {
 public:
  Brings(const Distributions& distributions, const cohabit::Interpreter& python);

  // False: `module` is of an installed distribution that the one of `file`, and what that requires,
  // do not ask for. True wherever metadata does not tell.
  bool may_need(const std::string& file, std::string_view module);
  // Whether the distribution of `file` requires, here and without an extra, one of the name of this
  // top-level module that is not installed.
  bool lacks_required(const std::string& file, std::string_view module) const;

 private:
  using Names = std::unordered_set<std::string>;

  // The distribution of a top-level module, by its files, else by its name; null: not known.
  const Distribution* provider(std::string_view module) const;
  const Names& brought_by(const Distribution& one);  // normal names, its own included

  const Distributions& distributions_;
  MarkerEnvironment markers_;
  std::unordered_map<std::string, const Distribution*> by_module_;  // null: several have it
  std::unordered_map<const Distribution*, Names> brought_;
};

}  // namespace cohabit::python
