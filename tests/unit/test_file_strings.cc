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

// A name is made of a part of a word, or of what stands before or behind what is filled in.
TEST_CASE("names that code may make of a file's texts") {
  const TempTree temp;
  constexpr char kText[] =
      "\xb8pi\0xis_busday\0KEY_F(%d)\0kind_%d\0%sTensor\0{}_total\0lib_\0%dab\0ab%\0plain (x)\0"
      "\x48\xb8register\x89\0";
  const std::string text(kText, sizeof kText - 1);
  temp.file("a", text);
  python::FileStrings strings(std::move(*Tree().map(temp.path() + "/a")));
  const auto made = [&](const char* name) {
    CAPTURE(name);
    return strings.may_make(name);
  };
  for (const char* name :
       {"pi", "busday", "is_busday", "xis", "d", "KEY_F12", "kind_3", "IntTensor", "grand_total",
        "lib_name", "Tensor", "plain", "KEY_F", "register", "registered"})
    CHECK(made(name));
  for (const char* name : {"pie", "busdays", "kinds_3", "IntTensors", "KEY", "KEY_G1", "plain_text",
                           "libname", "crab", "abc", "total", "registry"})
    CHECK(made(name) == (text.find(name) != std::string::npos));
  CHECK(!made("na\xc3\xafve"));
  CHECK(!made(std::string(1000, 'x').c_str()));
  CHECK(made(std::string(2000, 'x').c_str()));  // nobody looks for all of its parts
}
