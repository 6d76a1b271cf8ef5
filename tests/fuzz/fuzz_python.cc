// The import plan of any program. Input that starts with a NUL is decoded to a program of calls
// that fit nothing: every modelled function and method on values of every kind, which text that is
// mutated byte by byte would hardly reach. All other input is source text. The plan must end
// without touching memory that is not its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../unit/temp_tree.h"
#include "imports/models.h"

using namespace cohabit;
using namespace cohabit::python;

namespace {

constexpr size_t kMostInput = 2048;

using Names = std::vector<std::pair<std::string, std::string>>;  // owner, name

const Names& all_models() {
  static const Names names = [] {
    Names result;
    for (const auto rows :
         {builtin_models(), value_models(), system_models(), data_models(), import_models()})
      for (const ModelRow& row : rows) {
        std::string name(row.name);
        if (name.ends_with("()")) name.resize(name.size() - 2);
        const size_t dot = name.rfind('.');
        result.emplace_back(name.substr(0, dot), name.substr(dot + 1));
      }
    return result;
  }();
  return names;
}

bool is_module(std::string_view owner) {
  constexpr std::array<std::string_view, 9> kTypes = {"str",  "bytes", "list",    "tuple",   "set",
                                                      "dict", "Path",  "Version", "builtins"};
  return std::find(kTypes.begin(), kTypes.end(), owner) == kTypes.end();
}

// A standard library of nothing but the names that have models.
class World {
 public:
  World() {
    std::map<std::string, std::string> sources;
    for (const auto& [owner, name] : all_models())
      if (is_module(owner)) sources[owner] += fmt::format("def {}(*a, **k): pass\n", name);
    for (const char* name : {"package/__init__", "package/part", "other"})
      sources[name] += "value = __name__\ndef function(*a): return a\nclass Class: pass\n";
    for (const auto& [owner, source] : sources) {
      std::string path = owner;
      for (char& letter : path)
        if (letter == '.') letter = '/';
      const bool is_package = sources.lower_bound(owner + ".") != sources.end() &&
                              sources.lower_bound(owner + ".")->first.starts_with(owner + ".");
      temp_.file("lib/" + path + (is_package ? "/__init__.py" : ".py"), source);
    }
    temp_.file("lib/data.json", R"({"a": [1, "2", null, {"b": 1.5}]})");
    interpreter_.implementation = "CPython";
    interpreter_.version = "3.12.1";
    interpreter_.major = 3;
    interpreter_.minor = 12;
    interpreter_.elf_machine = 62;
    interpreter_.standard_library = temp_ / "lib";
    interpreter_.module_path = {temp_ / "lib"};
  }
  const cohabit::Interpreter& python() const { return interpreter_; }

 private:
  TempTree temp_;
  cohabit::Interpreter interpreter_;
};

// Every other open fails.
class Loader : public NativeLoader {
 public:
  std::optional<std::string> open(const std::optional<std::string>&, int,
                                  const std::string&) override {
    if (opens_++ % 2) return "lib.so: cannot open shared object file";
    return std::nullopt;
  }

 private:
  int opens_ = 0;
};

class Writer {
 public:
  explicit Writer(std::string_view bytes) : bytes_(bytes) {}

  std::string program() {
    for (const auto& [owner, name] : all_models())
      if (is_module(owner) && seen_.emplace(owner, 1).second)
        text_ += fmt::format("try:\n  import {}\nexcept ImportError: pass\n", owner);
    text_ += "Path = pathlib.Path\nVersion = packaging.version.Version\n";
    for (int i = 0; i < 60 && at_ < bytes_.size(); i++) statement();
    return std::move(text_);
  }

 private:
  unsigned take(unsigned below) {
    if (at_ >= bytes_.size()) return 0;
    return static_cast<unsigned char>(bytes_[at_++]) % below;
  }
  const std::pair<std::string, std::string>& model() {
    const unsigned high = take(256);
    return all_models()[(high * 256 + take(256)) % all_models().size()];
  }
  std::string variable() { return fmt::format("v{}", take(variables_ + 1)); }

  std::string literal() {
    constexpr std::array<const char*, 24> kLiterals = {"''",
                                                       "'a.b/c'",
                                                       "b'x'",
                                                       "0",
                                                       "-1",
                                                       "2.5",
                                                       "True",
                                                       "None",
                                                       "(1, 'a')",
                                                       "['x', 2]",
                                                       "{'a'}",
                                                       "{'a': 1, 2: 'b'}",
                                                       "b''",
                                                       "()",
                                                       "[]",
                                                       "{}",
                                                       "object()",
                                                       "bytes((1, 2))",
                                                       "'%s %d %(a)s'",
                                                       "'{} {0} {a}'",
                                                       "1 << 40",
                                                       "__file__",
                                                       "pathlib.Path('/a/b.c')",
                                                       "packaging.version.Version('1.2+cu')"};
    return kLiterals[take(kLiterals.size())];
  }
  std::string value(int depth = 0) {
    switch (take(depth > 2 ? 3 : 12)) {
      case 0:
      case 1:
        return variable();
      case 2:
        return literal();
      case 3:
        return call(depth + 1);
      case 4:
        return fmt::format("{}.{}", value(depth + 1), model().second);
      case 5: {
        constexpr std::array<const char*, 10> kOperators = {"+",  "%",  "*",  "/",  "|",
                                                            "==", "in", "<<", "or", "is"};
        const char* name = kOperators[take(kOperators.size())];
        return fmt::format("({} {} {})", value(depth + 1), name, value(depth + 1));
      }
      case 6:
        return fmt::format("{}[{}]", value(depth + 1), value(depth + 1));
      case 7:
        return fmt::format("{}[{}:{}]", value(depth + 1), value(depth + 1), value(depth + 1));
      case 8:
        return fmt::format("[x.{} for x in {}]", model().second, value(depth + 1));
      case 9:
        return fmt::format("f'{{{}}} {{{}!r:>5}}'", variable(), variable());
      case 10:
        return fmt::format("(lambda *a, **k: {})", value(depth + 1));
      default:
        return fmt::format("{{{}: {}, **{}}}", value(depth + 1), value(depth + 1), variable());
    }
  }
  std::string arguments(int depth) {
    std::string text;
    const unsigned count = take(4);
    for (unsigned i = 0; i < count; i++) {
      constexpr std::array<const char*, 8> kBefore = {"", "", "", "*", "**", "key=", "name=", "a="};
      text += fmt::format("{}{}{}", i ? ", " : "", kBefore[take(kBefore.size())], value(depth));
    }
    return text;
  }
  std::string call(int depth = 0) {
    const auto& [owner, name] = model();
    switch (take(4)) {
      case 0:
        return fmt::format("{}.{}({})", value(depth + 1), name, arguments(depth + 1));
      case 1:
        return fmt::format("{}({})", variable(), arguments(depth + 1));
      case 2:
        return fmt::format("getattr({}, '{}')({})", value(depth + 1), name, arguments(depth + 1));
      default:
        if (owner == "builtins") return fmt::format("{}({})", name, arguments(depth + 1));
        return fmt::format("{}.{}({})", owner, name, arguments(depth + 1));
    }
  }
  void statement() {
    const std::string fresh = fmt::format("v{}", variables_ + 1);
    switch (take(9)) {
      case 0: {
        constexpr std::array<const char*, 8> kBases = {"str",  "bytes", "dict",      "list",
                                                       "type", "int",   "Exception", "object"};
        text_ += fmt::format("class C{}({}):\n  x = {}\n  def __call__(self, *a): return {}\n",
                             variables_, take(2) ? variable() : kBases[take(kBases.size())],
                             value(), value());
        text_ += fmt::format("{} = C{}({})\n", fresh, variables_, arguments(0));
        break;
      }
      case 1:
        text_ += fmt::format("for {} in {}:\n  {}\n", fresh, value(), call());
        break;
      case 2:
        text_ += fmt::format("if {}:\n  {} = {}\nelse:\n  {} = {}\n", value(), fresh, call(), fresh,
                             literal());
        break;
      case 3:
        text_ +=
            fmt::format("def f{}(a, b={}, *c, **d):\n  return a.{}({})\n{} = f{}({})\n", variables_,
                        value(), model().second, value(), fresh, variables_, arguments(0));
        break;
      case 4:
        text_ += fmt::format("{}.{} = {}\n{} = {}\n", variable(), model().second, value(), fresh,
                             literal());
        break;
      case 5:
        text_ +=
            fmt::format("{}[{}] = {}\n{}, *w = {}\n", variable(), value(), value(), fresh, value());
        break;
      case 6:
        text_ += fmt::format("with {} as {}:\n  {} += {}\n", call(), fresh, fresh, value());
        break;
      default:
        text_ += fmt::format("try:\n  {} = {}\nexcept Exception as e:\n  {} = e\n", fresh,
                             take(2) ? call() : value(), fresh);
    }
    variables_++;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  unsigned variables_ = 0;
  std::map<std::string, int> seen_;
  std::string text_ = "v0 = 'start'\n";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  static const Tree tree;
  static const Distributions distributions;
  if (size > kMostInput) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  PlanRequest request;
  request.code = size && !data[0] ? Writer(text.substr(1)).program() : std::string(text);
  request.code_file = "/program.py";
  if (std::getenv("SHOW_PROGRAM")) std::puts(request.code.c_str());
  Finder finder(tree, world.python());
  Images images(tree);
  Loader loader;
  PlanCache cache;
  (void)make_plan(finder, images, distributions, loader, request, cache);
  return 0;
}
