// Names in native modules, on images made here; tests/imports/check_natives.py holds them against
// what real extension modules import.
#include <doctest/doctest.h>

#include "imports/inflate.h"
#include "imports/lzss.h"
#include "imports/native_names.h"
#include "temp_tree.h"

using namespace cohabit;
using namespace cohabit::python;

namespace {

using Strings = std::vector<std::string>;

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// An object whose only segment is `data`.
struct Image {
  std::string data;
  elf::Object object;
  explicit Image(std::string text) : data(std::move(text)) {
    elf::Phdr segment{};
    segment.p_type = elf::PT_LOAD;
    segment.p_flags = elf::PF_R;
    segment.p_filesz = data.size();
    object.segments.push_back(segment);
  }
};

struct World {
  TempTree temp;
  Tree tree;
  Interpreter interpreter;
  World() {
    interpreter.major = 3;
    interpreter.minor = 12;
    interpreter.module_path = {temp.path()};
    for (const char* name :
         {"pkg/__init__.py", "pkg/_core/__init__.py", "pkg/_core/api.py", "pkg/core/__init__.py",
          "pkg/core/api.py", "pkg/sibling.py", "plain.py", "space/module.py"})
      temp.file(name);
  }
  Strings imports(const std::string& data) {
    Finder finder(tree, interpreter);
    ModuleSpec self;
    self.name = "pkg.native";
    const Image image(data);
    Strings result;
    for (const NativeImport& import : native_imports(image.object, Bytes(image.data), self, finder))
      result.push_back(import.name + (import.likely ? " likely" : ""));
    return result;
  }
};

std::string zero(std::initializer_list<const char*> words) {
  std::string text(1, '\0');
  for (const char* word : words) text += std::string(word) + '\0';
  return text;
}

}  // namespace

TEST_CASE("native names: whole strings that are modules here") {
  World world;
  CHECK(world.imports(zero({"plain", "pkg._core.api", "pkg.native", "pkg.missing", "no.module",
                            "see pkg.core.api", "space.module"})) ==
        Strings{"plain", "pkg._core.api likely", "space.module"});  // somebody else's: when needed
  CHECK(world.imports("") == Strings{});
  CHECK(world.imports("pkg._core.api") == Strings{"pkg._core.api likely"});  // no NUL at the end
}

TEST_CASE("native names: the old name of a module is only a second try") {
  World world;
  CHECK(world.imports(zero({"pkg.core.api", "pkg._core.api"})) ==
        Strings{"pkg.core.api", "pkg._core.api likely"});
  CHECK(world.imports(zero({"pkg.core.api"})) == Strings{"pkg.core.api likely"});
}

TEST_CASE("native names: NumPy's C interface, and its package, which pybind11 joins later") {
  World world;
  for (const char* name : {"numpy/__init__.py", "numpy/lib/__init__.py", "numpy/_core/__init__.py",
                           "numpy/_core/multiarray.py"})
    world.temp.file(name);
  CHECK(world.imports(zero({"_ARRAY_API", "numpy._core.multiarray"})) ==
        Strings{"numpy._core.multiarray likely"});
  CHECK(world.imports(zero({"_ARRAY_API", "numpy", "numpy._core", "numpy.lib"})) ==
        Strings{"numpy", "numpy._core", "numpy.lib"});
}

TEST_CASE("native names: an import statement stands, whatever else the strings name") {
  World world;
  world.temp.file("_plain.py");
  Finder finder(world.tree, world.interpreter);
  ModuleSpec self;
  self.name = "pkg.native";
  NativeStrings strings;
  strings.names = {"plain", "_plain"};
  strings.compiled_python = strings.code.known = strings.code.statements_known = true;
  strings.code.imported = {"plain"};
  Strings likely;
  for (const NativeImport& import : native_imports(strings, self, finder))
    if (import.likely) likely.push_back(import.name);
  CHECK(likely == Strings{"plain"});
}

TEST_CASE("native names: mypyc's literals") {
  World world;
  const std::string literal = "\x03\x05plain\x07sibling\x0bnot_a_module";
  CHECK(world.imports(zero({"mypyc_x", literal.c_str()})) == Strings{});  // a length too short
  const std::string good = "\x02\x05plain\x07sibling";
  CHECK(world.imports(zero({"mypyc_x", good.c_str()})) == Strings{"plain", "pkg.sibling likely"});
  CHECK(world.imports(zero({good.c_str()})) == Strings{});  // bytes that only look like one
}

TEST_CASE("native names: parts of dunder names and of mypyc's groups") {
  World world;
  world.temp.file("0123__mypyc.so");
  world.temp.file("pkg/__main__.py");
  CHECK(world.imports(zero({"\x01\x08__main__", "0123__mypyc"})) == Strings{"0123__mypyc likely"});
}

TEST_CASE("native names: submodules that the module makes itself") {
  const Image image(zero({"pkg.native.inner", "pkg.native", "pkg.nativex.y"}));
  ModuleSpec self;
  self.name = "pkg.native";
  CHECK(own_submodules(image.object, Bytes(image.data), self) == Strings{"pkg.native.inner"});
}

TEST_CASE("inflate: stored, fixed and dynamic blocks, and anything else") {
  const std::string stored = unhex("7801010500faff68656c6c6f062c0215");
  const std::string fixed = unhex("789ccb48cdc9c957c8402701680308b1");
  const std::string dynamic = unhex(
      "78da5d924d0a82310c442f2492bfa6ed6944d09d9faebcbf82b898b70c6992d799395eb7f7e37eb1f3f37adc"
      "4fc7af72a94aaaad2f5bca1852a6764b675b172fbdea06a640bf0a2420db40035b0cf497ce6714fe0255c057"
      "85fed2f911ba7f4cbddfe06bf427e627f62fdcdfe0db4d7df1413728e00e899c1a7a40644fba50b469d0c7a6"
      "d1cd244c24c557d16b242d8c6e3b931aa63b224daf44992331208de68bc91d8b57363892a4e9f8cb37884866"
      "428facbf621fd4d14bc1");
  auto text = inflate_zlib(Bytes(stored), 100);
  REQUIRE(text);
  CHECK(text->text == "hello");
  CHECK(text->used == stored.size());
  for (size_t size = 0; size < stored.size(); size++)
    CHECK_FALSE(inflate_zlib(Bytes(std::string_view(stored).substr(0, size)), 100));
  CHECK_FALSE(inflate_zlib(Bytes(stored), 4));
  text = inflate_zlib(Bytes(fixed + "more"), 100);
  REQUIRE(text);
  CHECK(text->text == "hello hello hello hello");
  CHECK(text->used == fixed.size());
  std::string names;
  for (int i = 0; i < 60; i++) names += "module_" + std::to_string(i * i) + ".name,";
  text = inflate_zlib(Bytes(dynamic), 10000);
  REQUIRE(text);
  CHECK(text->text == names);
  // Every byte changed once: never a crash, and never a wrong text that the checksum allows.
  for (const std::string& good : {stored, fixed, dynamic})
    for (size_t i = 0; i < good.size(); i++)
      for (int value = 0; value < 256; value += 5) {
        std::string bad = good;
        bad[i] = static_cast<char>(value);
        inflate_zlib(Bytes(bad), 1000);
      }
}

namespace {

// As lzss_compress does with text that has no repetitions.
std::string pack(const std::string& text) {
  std::string packed;
  for (size_t i = 0; i < text.size(); i++) {
    if (i % 8 == 0) packed += '\xff';
    packed += text[i];
  }
  return packed;
}

std::string lengths_of(const Strings& strings) {
  std::string bytes;
  for (const std::string& string : strings) {
    bytes += static_cast<char>(string.size());
    bytes += std::string(3, '\0');
  }
  return bytes;
}

}  // namespace

TEST_CASE("lzss: Cython's table is found before and after its lengths") {
  Strings strings = {".", "?", "disable", "secrets", "__name__", "__main__", "__test__"};
  for (char c = 'a'; c <= 'z'; c++) strings.emplace_back(3, c);
  std::string text;
  for (const std::string& string : strings) text += string;
  const std::string gap(32, '\0');
  std::string before = pack(text) + gap;
  before.resize(before.size() / 16 * 16);
  std::string after = lengths_of(strings) + gap;
  after.resize(after.size() / 16 * 16);
  for (const std::string& data :
       {gap + before + lengths_of(strings) + gap, gap + after + pack(text) + gap}) {
    Strings found = find_lzss_strings(Bytes(data), 0x1000);
    REQUIRE(found.size() >= strings.size());
    found.resize(strings.size());
    CHECK(found == strings);
    for (size_t size = 0; size < data.size(); size += 7)  // reads nothing outside
      find_lzss_strings(Bytes(std::string_view(data).substr(0, size)), 0x1000);
  }
  CHECK(find_lzss_strings(Bytes(), 0).empty());
}
