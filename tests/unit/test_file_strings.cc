// Strings of their own in a file: by the index of all of them as by a search.
#include <doctest/doctest.h>

#include <string>

#include "base/tree.h"
#include "imports/file_strings.h"
#include "temp_tree.h"

using namespace cohabit;

TEST_CASE("the index of a file's strings says what a search says") {
  const TempTree temp;
  std::string text("start\0one\0\0two\0a b\0th-ree\0", 26);
  for (int i = 0; i < 40000; i++) text += "name_" + std::to_string(i) + '\0';
  text += "end";
  temp.file("a", text);
  const auto open = [&] { return python::FileStrings(std::move(*Tree().map(temp.path() + "/a"))); };
  python::FileStrings many = open();
  for (int i = 0; i < 10; i++) CHECK(many.has("one"));
  for (const char* name : {"start", "one", "two", "a b", "a", "b", "th-ree", "th", "ree", "name_0",
                           "name_", "name_39999", "name_40000", "ame_7", "end", "nd", "en", ""}) {
    python::FileStrings once = open();
    CAPTURE(name);
    CHECK(many.has(name) == once.has(name));
    const std::string whole = std::string(1, '\0') + name + '\0';
    CHECK(many.has(name) == (text.find(whole) != std::string::npos));
  }
}

TEST_CASE("files without strings") {
  const TempTree temp;
  temp.file("empty", "");
  temp.file("none", "text");
  temp.file("zeros", std::string(10, '\0'));
  for (const char* name : {"empty", "none", "zeros"}) {
    python::FileStrings strings(std::move(*Tree().map(temp.path() + "/" + name)));
    for (int i = 0; i < 6; i++) CHECK(!strings.has("text"));
  }
}
