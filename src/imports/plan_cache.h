// What plans over the same files share.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/arena.h"
#include "imports/file_strings.h"
#include "imports/native_strings.h"
#include "imports/syntax.h"

namespace cohabit::python {

class Brings;

// Sources once parsed, strings once found.
struct PlanCache {
  Arena nodes;                                                       // of the sources
  std::unordered_map<std::string, std::unique_ptr<Syntax>> sources;  // by path; null: unreadable
  std::unordered_map<std::string, NativeStrings> natives;            // by path
  std::unordered_map<std::string, std::unique_ptr<FileStrings>> strings;  // by path; null: so too
  std::shared_ptr<Brings> brings;                                         // made when first needed
};

}  // namespace cohabit::python
