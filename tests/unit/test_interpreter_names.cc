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
const char* const kWhole = "alone_in_its_string";
const char* const kHalves = "one half and the other_half";
const char kLonger[] = "what is pointed_at";
const char* volatile kPointedAt = kLonger + sizeof "what is " - 1;
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

TEST_CASE("a string's end is a name where something points at it") {
  const auto file = Tree().map(this_process().program);
  REQUIRE(file);
  const elf::Object object = elf::parse(file->bytes());
  const auto points = [&](std::string_view name) {
    return python::is_pointed_at(object, file->bytes(), name);
  };
  CHECK(std::string(kPointedAt).size() + std::string(kWhole).size() + std::string(kHalves).size() >
        0);
  CHECK(points("pointed_at"));
  CHECK(points("alone_in_its_string"));
  CHECK(points("name_of_a_variable"));
  CHECK(points("name_of_a_constant"));         // behind a dot: so types say what they are called
  const std::string backwards = "flah_rehto";  // it must not stand in this file
  const std::string name(backwards.rbegin(), backwards.rend());
  CHECK(points(name) == (object.machine != elf::EM_X86_64));
}

TEST_CASE("no names where there is no file of that kind") {
  const TempTree temp;
  temp.file("text", std::string("one\0two\0", 8));
  temp.file("empty", "");
  for (const char* name : {"text", "empty"}) CHECK(names_of(temp.path() + "/" + name).empty());
}
