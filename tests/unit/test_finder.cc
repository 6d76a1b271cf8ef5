// The finder against directories made here; tests/imports/check_finder.py holds it against real
// interpreters.
#include <doctest/doctest.h>

#include <filesystem>

#include "imports/finder.h"
#include "temp_tree.h"

using namespace cohabit;
using namespace cohabit::python;

namespace {

using Strings = std::vector<std::string>;

constexpr const char* kSuffix = ".cpython-312-x86_64-linux-gnu.so";

// An interpreter with this sys.path.
Interpreter with_path(const TempTree& temp, const Strings& directories) {
  Interpreter result;
  result.implementation = "CPython";
  result.major = 3;
  result.minor = 12;
  result.elf_machine = 62;
  result.standard_library = temp / "lib/python3.12";
  for (const std::string& directory : directories) {
    temp.directory(directory);
    result.module_path.push_back(temp / directory);
  }
  return result;
}

std::string found(Finder& finder, const std::string& name) {
  const auto spec = finder.find_dotted(name);
  if (!spec) return "none";
  return std::to_string(static_cast<int>(spec->kind)) + " " + spec->path;
}

std::string at(const TempTree& temp, ModuleKind kind, const std::string& path) {
  return std::to_string(static_cast<int>(kind)) + " " + (temp / path);
}

}  // namespace

TEST_CASE("finder: within a directory packages come first, then native, source, bytecode") {
  const TempTree temp;
  const Interpreter interpreter = with_path(temp, {"a", "b"});
  for (const char* name : {"a/package/__init__.py", "a/package.py", "a/native.abi3.so",
                           "a/native.py", "a/source.py", "a/source.pyc", "a/compiled.pyc",
                           "b/source.so", "b/later.py", "a/both/__init__.so", "a/both/__init__.py"})
    temp.file(name);
  temp.file(std::string("a/tagged") + kSuffix);
  temp.file("a/tagged.so");
  temp.file("a/other.cpython-311-x86_64-linux-gnu.so");
  const Tree tree;
  Finder finder(tree, interpreter);
  CHECK(finder.extension_suffixes() == Strings{kSuffix, ".abi3.so", ".so"});
  CHECK(found(finder, "package") == at(temp, ModuleKind::kSource, "a/package/__init__.py"));
  CHECK(finder.find_dotted("package")->search == Strings{temp / "a/package"});
  CHECK(found(finder, "native") == at(temp, ModuleKind::kNative, "a/native.abi3.so"));
  CHECK(found(finder, "source") == at(temp, ModuleKind::kSource, "a/source.py"));
  CHECK(found(finder, "compiled") == at(temp, ModuleKind::kBytecode, "a/compiled.pyc"));
  CHECK(found(finder, "later") == at(temp, ModuleKind::kSource, "b/later.py"));
  CHECK(found(finder, "both") == at(temp, ModuleKind::kNative, "a/both/__init__.so"));
  CHECK(found(finder, "tagged") ==
        at(temp, ModuleKind::kNative, std::string("a/tagged") + kSuffix));
  CHECK(found(finder, "other") == "none");
  CHECK(found(finder, "package.missing") == "none");
  CHECK(found(finder, "source.inside") == "none");
  CHECK(found(finder, "sys") == "4 ");
  CHECK(finder.is_builtin("sys"));
  CHECK_FALSE(finder.is_builtin("source"));
  CHECK(finder.names_in({temp / "a"}) ==
        Strings{"both", "compiled", "native", "package", "source", "tagged"});
}

TEST_CASE("finder: namespace packages are collected over all directories") {
  const TempTree temp;
  const Interpreter interpreter = with_path(temp, {"a", "b", "c"});
  temp.file("a/space/one.py");
  temp.file("c/space/two.py");
  temp.directory("a/covered");
  temp.file("b/covered.py");
  temp.link("b/loop", "loop");
  temp.link("a/around", ".");
  const Tree tree;
  Finder finder(tree, interpreter);
  const auto space = finder.find_dotted("space");
  REQUIRE(space);
  CHECK(space->kind == ModuleKind::kNamespace);
  CHECK(space->search == Strings{temp / "a/space", temp / "c/space"});
  CHECK(found(finder, "space.two") == at(temp, ModuleKind::kSource, "c/space/two.py"));
  CHECK(found(finder, "covered") == at(temp, ModuleKind::kSource, "b/covered.py"));
  CHECK(found(finder, "loop") == "none");
  CHECK(found(finder, "around.around.space.one") ==
        at(temp, ModuleKind::kSource, "a/around/around/space/one.py"));
}

TEST_CASE("finder: what is asked for again is the same, also from another search path") {
  const TempTree temp;
  const Interpreter interpreter = with_path(temp, {"a", "b"});
  for (const char* name : {"a/space/one.py", "b/space/two.py", "b/space/inside/__init__.py",
                           "a/part/x.py", "b/part/__init__.py", "a/module.py"})
    temp.file(name);
  const Tree tree;
  Finder finder(tree, interpreter);
  for (int turn = 0; turn < 2; turn++) {
    CHECK(finder.find_dotted("space")->search == Strings{temp / "a/space", temp / "b/space"});
    CHECK(finder.find_dotted("space.inside")->search == Strings{temp / "b/space/inside"});
    CHECK(found(finder, "space.two") == at(temp, ModuleKind::kSource, "b/space/two.py"));
    CHECK(finder.find_dotted("part")->search == Strings{temp / "b/part"});
    CHECK(finder.find("part", {temp / "a"})->kind == ModuleKind::kNamespace);
    CHECK(finder.find("part", {temp / "a"})->search == Strings{temp / "a/part"});
    CHECK_FALSE(finder.find_dotted("module")->is_package());
    CHECK_FALSE(finder.find("module", {temp / "b"}));
  }
  const auto asked_before = finder.find("inside", {temp / "b/space"});
  REQUIRE(asked_before);
  CHECK(asked_before->path == temp / "b/space/inside/__init__.py");
}

TEST_CASE("finder: hostile names") {
  const TempTree temp;
  const Interpreter interpreter = with_path(temp, {"a"});
  temp.file("a/two\nlines.py");
  temp.file("a/\xff\xfe.py");
  temp.file("a/.hidden.py");
  temp.file("a/sub/x.py");
  temp.directory("a/directory.py");
  temp.file("a/__init__.py");
  const Tree tree;
  Finder finder(tree, interpreter);
  for (const std::string& name : Strings{"", ".", "..", "a.", ".a", "sub/x", "two\nlines",
                                         "directory", "../a", std::string(100000, 'x')})
    CHECK(found(finder, name) == "none");
  CHECK(found(finder, std::string("sub\0x", 5)) == "none");
  CHECK(finder.names_in({temp / "a", temp / "missing"}) == Strings{"directory", "\xff\xfe"});
}

TEST_CASE("finder: the script's directory stands first, but not for what start-up imports") {
  const TempTree temp;
  const Interpreter interpreter = with_path(temp, {"lib"});
  for (const char* name : {"lib/os.py", "lib/json.py", "script/os.py", "script/json.py"})
    temp.file(name);
  const Tree tree;
  Finder finder(tree, interpreter, temp / "script");
  CHECK(finder.path() == Strings{temp / "script", temp / "lib"});
  CHECK(found(finder, "json") == at(temp, ModuleKind::kSource, "script/json.py"));
  CHECK(found(finder, "os") == at(temp, ModuleKind::kSource, "lib/os.py"));
}

TEST_CASE("finder: below another root the current directory is the root") {
  const TempTree temp;
  temp.file("image/here.py");
  Interpreter interpreter;
  interpreter.major = 3;
  interpreter.minor = 11;
  const Tree tree(temp / "image");
  Finder finder(tree, interpreter, "");
  const auto here = finder.find_dotted("here");
  REQUIRE(here);
  CHECK(std::filesystem::path(here->path).lexically_normal() == "/here.py");
}

TEST_CASE("finder: suffixes of musl, aarch64, debug and free-threaded builds") {
  const TempTree temp;
  temp.directory("lib/python3.13t");
  Interpreter interpreter = with_path(temp, {});
  interpreter.elf_machine = 183;
  interpreter.elf_interpreter = "/lib/ld-musl-aarch64.so.1";
  const Tree tree;
  CHECK(Finder(tree, interpreter).extension_suffixes()[0] == ".cpython-312-aarch64-linux-musl.so");
  interpreter.minor = 13;
  interpreter.standard_library = temp / "lib/python3.13t";
  CHECK(Finder(tree, interpreter).extension_suffixes() ==
        Strings{".cpython-313t-aarch64-linux-musl.so", ".so"});
  temp.file("lib/python3.12/lib-dynload/math.cpython-312d-x86_64-linux-gnu.so");
  interpreter.standard_library = temp / "lib/python3.12";
  CHECK(Finder(tree, interpreter).extension_suffixes() ==
        Strings{".cpython-312d-x86_64-linux-gnu.so", kSuffix, ".abi3.so", ".so"});
}
