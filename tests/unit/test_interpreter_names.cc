// Names that native code of an interpreter may give: those that its strings end with.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/tree.h"
#include "imports/interpreter_names.h"
#include "temp_tree.h"
#include "this_process.h"

using namespace cohabit;

namespace {

// Of these two, one is constant and the other one initialised.
const char* const kConstant = "standing_before.name_of_a_constant";
char variable[] = "name_of_a_variable";

std::vector<std::string> names_of(const std::string& path) {
  const auto file = Tree().map(path);
  REQUIRE(file);
  return python::names_of_interpreter(elf::parse(file->bytes()), file->bytes());
}

}  // namespace

TEST_CASE("names that strings of a file end with") {
  const std::vector<std::string> names = names_of(this_process().program);
  CHECK(std::string(kConstant).size() + std::string(variable).size() > 0);
  for (const char* name : {"name_of_a_constant", "constant", "name_of_a_variable", "variable"}) {
    CAPTURE(name);
    CHECK(python::may_name(names, name));
  }
  // A beginning, what stands before a dot, and what nobody has: written backwards, as they must not
  // stand in this file.
  for (const std::string backwards : {"natsnoc_a_fo_eman", "erofeb_gnidnats", "rebmun_reven"}) {
    const std::string name(backwards.rbegin(), backwards.rend());
    CAPTURE(name);
    CHECK(!python::may_name(names, name));
  }
}

TEST_CASE("no names where there is no file of that kind") {
  const TempTree temp;
  temp.file("text", std::string("one\0two\0", 8));
  temp.file("empty", "");
  for (const char* name : {"text", "empty"}) CHECK(names_of(temp.path() + "/" + name).empty());
}
