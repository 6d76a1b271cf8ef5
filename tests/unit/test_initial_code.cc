// What an extension module's code imports while the module is initialised, on one that the build's
// own compiler has made (data/sample_extension.c).
#include <doctest/doctest.h>

#include <algorithm>

#include "base/tree.h"
#include "imports/initial_code.h"
#include "imports/native_names.h"
#include "imports/native_strings.h"
#include "temp_tree.h"

using namespace cohabit;
using namespace cohabit::python;

namespace {

// What a module of this name is likely to import at once, where there are these files.
std::vector<std::string> likely_imports(const NativeStrings& strings, const char* name,
                                        const std::vector<const char*>& files) {
  TempTree temp;
  Tree tree;
  Interpreter interpreter;
  interpreter.major = 3;
  interpreter.minor = 12;
  interpreter.module_path = {temp.path()};
  for (const char* file : files) temp.file(file);
  Finder finder(tree, interpreter);
  ModuleSpec self;
  self.name = name;
  std::vector<std::string> likely;
  for (const NativeImport& import : native_imports(strings, self, finder))
    if (import.likely) likely.push_back(import.name);
  return likely;
}

// So that a failed check shows them.
std::string words(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

TEST_CASE("initial code: what is imported at first, and not what a method would import") {
  const auto file = Tree().map(COHABIT_SAMPLE_EXTENSION);
  REQUIRE(file);
  const elf::Object object = elf::parse(file->bytes());
  const InitialCode code = read_initial_code(object, file->bytes());
  if (object.machine != elf::EM_X86_64) {
    CHECK(!code.known);
    return;
  }
  CHECK(code.known);
  CHECK(words(code.imported) ==
        "plain package.module._C_API through.helper home other_home by_once by_text by_object "
        "by_another by_source source.below source");
  CHECK(code.mentioned == std::vector<std::string>{});

  std::vector<std::string> likely = likely_imports(
      read_native_strings(object, file->bytes()), "sample",
      {"plain.py", "only_later.py", "package/__init__.py", "package/module.py",
       "through/__init__.py", "through/helper.py", "only/__init__.py", "only/later.py", "home.py",
       "other_home.py", "attribute.py", "other.py", "by_text.py", "never_at_once.py"});
  std::sort(likely.begin(), likely.end());
  CHECK(words(likely) == "by_text home other_home package.module plain through.helper");
}

TEST_CASE(
    "initial code: a definition inside of something else, whose function is given to another, one "
    "that is made, and functions in records that are given away") {
  for (const char* path : {COHABIT_SAMPLE_RUST, COHABIT_SAMPLE_BUILT, COHABIT_SAMPLE_BOUND}) {
    CAPTURE(path);
    const auto file = Tree().map(path);
    REQUIRE(file);
    const elf::Object object = elf::parse(file->bytes());
    if (object.machine != elf::EM_X86_64) return;
    CHECK(words(read_initial_code(object, file->bytes()).imported) ==
          "plain package.module._C_API through.helper home other_home by_once by_text by_object "
          "by_another by_source source.below source");
  }
}

TEST_CASE("initial code: import statements of Cython, however it keeps their names") {
  for (const char* path : {COHABIT_SAMPLE_CYTHON0, COHABIT_SAMPLE_CYTHON1, COHABIT_SAMPLE_CYTHON2,
                           COHABIT_SAMPLE_CYTHON3, COHABIT_SAMPLE_CYTHON4}) {
    CAPTURE(path);
    const auto file = Tree().map(path);
    REQUIRE(file);
    const elf::Object object = elf::parse(file->bytes());
    if (object.machine != elf::EM_X86_64) continue;
    const NativeStrings strings = read_native_strings(object, file->bytes());
    CHECK(strings.compiled_python);
    CHECK(strings.code.statements_known);
    CHECK(strings.code.imported == std::vector<std::string>{"types_of", "plain", "package",
                                                            "package.part", ".neighbour", "sys"});
    const std::vector<std::string> words = words_of(strings);
    CHECK(words_of(native_strings_of(words)) == words);

    CHECK(likely_imports(strings, "own.sample",
                         {"plain.py", "only_later.py", "neighbour.py", "own/__init__.py",
                          "own/neighbour.py", "own/only_later.py", "package/__init__.py",
                          "package/part.py", "package/other.py"}) ==
          std::vector<std::string>{"plain", "package", "package.part", "own.neighbour", "sys"});

    const std::string whole(file->bytes().text());
    for (size_t at = 0; at + 8 < whole.size(); at += 61) {
      std::string damaged = whole;
      damaged.replace(at, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f");
      read_native_strings(elf::parse(Bytes(damaged)), Bytes(damaged));
    }
  }
}

TEST_CASE("native names: modules that a library of mypyc loads without their files") {
  const auto file = Tree().map(COHABIT_SAMPLE_EXTENSION);
  REQUIRE(file);
  const ModulesInside inside(elf::parse(file->bytes()));
  CHECK(inside.contains("package.sub._leaf"));
  CHECK(inside.contains("package.a___b"));
  CHECK(!inside.contains("package.other"));
  CHECK(!inside.contains("package.sub"));
}

TEST_CASE("initial code: damaged tables") {
  const auto file = Tree().map(COHABIT_SAMPLE_EXTENSION);
  REQUIRE(file);
  const std::string whole(file->bytes().text());
  for (size_t size = 0; size < whole.size(); size += 97) {
    const Bytes part(std::string_view(whole).substr(0, size));
    read_initial_code(elf::parse(part), part);
  }
  for (size_t at = 0; at + 8 < whole.size(); at += 31) {
    std::string damaged = whole;
    damaged.replace(at, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f");
    read_initial_code(elf::parse(Bytes(damaged)), Bytes(damaged));
  }
}
