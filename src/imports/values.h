// What the abstract interpreter knows about Python objects.
//
// A value is exact or opaque. Opaque stands for anything that only a running program knows; it
// carries the dotted name by which the program reached it, when there is one, because the table of
// native functions that open libraries goes by name. Values are never freed before the plan is
// made.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "imports/finder.h"
#include "imports/syntax.h"

namespace cohabit::python {

class Interpreter;

enum class Type : uint8_t {
  kOpaque,
  kNone,
  kBool,
  kInt,
  kStr,
  kBytes,
  kTuple,
  kList,
  kSet,
  kDict,
  kModule,
  kFunction,
  kMethod,  // a function with its first argument
  kClass,
  kInstance,
  kModel,    // a function of the interpreter itself, see models.h
  kPath,     // pathlib.Path
  kVersion,  // packaging.version.Version
};

struct Value {
  Type type;
  explicit Value(Type kind) : type(kind) {}
  Value(const Value&) = delete;
  virtual ~Value() = default;
};
using Ref = Value*;

using Namespace = std::unordered_map<std::string_view, Ref>;

struct Opaque : Value {
  std::string name;  // "torch._C._cuda_init"; empty: not known
  explicit Opaque(std::string dotted = "") : Value(Type::kOpaque), name(std::move(dotted)) {}
};

struct Int : Value {  // kBool, kInt
  int64_t value;
  Int(Type kind, int64_t number) : Value(kind), value(number) {}
};

struct Str : Value {  // kStr, kBytes, kPath, kVersion
  std::string text;
  Str(Type kind, std::string characters) : Value(kind), text(std::move(characters)) {}
};

struct Sequence : Value {  // kTuple, kList, kSet
  std::vector<Ref> items;
  bool open = false;  // more items than these may be there
  explicit Sequence(Type kind) : Value(kind) {}
};

// Keys are kept by their text: "s:name", "i:3"; others make the dictionary open.
struct Dict : Value {
  std::vector<std::pair<Ref, Ref>> items;
  std::unordered_map<std::string, size_t> index;
  bool open = false;
  Dict() : Value(Type::kDict) {}
};

struct Module : Value {
  enum State : uint8_t { kFresh, kRunning, kDone, kFailed };
  ModuleSpec spec;
  std::string package;  // __package__
  Namespace names;
  // Names that we do not know of may be there: native code, a star import of such, globals().
  bool open = false;
  State state = kFresh;
  const Syntax* syntax = nullptr;
  Module() : Value(Type::kModule) {}
};

// Variables of a module, a function call or a class body. Not movable.
struct Scope {
  Namespace own;
  Namespace* names = &own;  // a module's: those of the module
  Scope* outer = nullptr;   // the enclosing function's
  Module* module = nullptr;
  std::vector<std::string_view> globals;
  std::vector<std::string_view> nonlocals;
  struct Class* defining = nullptr;  // in a class body
  Ref self = nullptr;                // first argument of the running function
  bool is_module() const { return names != &own; }
  struct Class* owner = nullptr;  // the class that the running function belongs to: super()
};

struct Function : Value {
  std::string_view name;
  const Stmt* statement = nullptr;  // one of these two
  const Expr* lambda = nullptr;
  const Syntax* syntax = nullptr;  // that has the body
  std::span<const Parameter> parameters;
  std::vector<Ref> defaults;  // by parameter; null: none
  Module* module = nullptr;
  Scope* outer = nullptr;
  Class* owner = nullptr;
  enum Binding : uint8_t { kPlain, kStatic, kClassMethod, kProperty } binding = kPlain;
  Namespace attributes;
  uint8_t dull_runs = 0;  // runs that did nothing and told nothing
  bool checked = false, is_generator = false;
  Function() : Value(Type::kFunction) {}
};

struct Method : Value {
  Ref self;
  Ref function;
  Method(Ref first, Ref callee) : Value(Type::kMethod), self(first), function(callee) {}
};

struct Class : Value {
  std::string_view name;
  Module* module = nullptr;
  std::vector<Class*> bases;
  bool open = false;  // a base is opaque
  Namespace names;
  Class() : Value(Type::kClass) {}
};

struct Instance : Value {
  Class* of;
  Namespace names;
  bool open = false;
  Dict* items = nullptr;  // of subclasses of dict
  Sequence* arguments = nullptr;
  Instance* target = nullptr;  // of super(): whose methods they are; `of` has the bases
  explicit Instance(Class* type_of) : Value(Type::kInstance), of(type_of) {}
};

struct Arguments {
  std::vector<Ref> positional;
  std::vector<std::pair<std::string_view, Ref>> keywords;
  bool open = false;  // * or ** of something opaque was among them

  Ref get(size_t position, std::string_view keyword = "") const {
    if (position < positional.size()) return positional[position];
    for (const auto& [name, value] : keywords)
      if (!keyword.empty() && name == keyword) return value;
    return nullptr;
  }
};

// Returns null when it raised.
using ModelFunction = Ref (*)(Interpreter&, Ref self, const Arguments&);

struct Model : Value {
  std::string_view name;
  ModelFunction function;
  Ref self = nullptr;
  Model(std::string_view dotted, ModelFunction callee, Ref bound = nullptr)
      : Value(Type::kModel), name(dotted), function(callee), self(bound) {}
};

template <class T>
T* as(Ref value, Type type) {
  return value && value->type == type ? static_cast<T*>(value) : nullptr;
}
inline const std::string* text_of(Ref value) {
  if (!value) return nullptr;
  if (value->type == Type::kStr || value->type == Type::kPath)
    return &static_cast<const Str*>(value)->text;
  return nullptr;
}
inline Sequence* sequence_of(Ref value) {
  if (!value) return nullptr;
  const bool is =
      value->type == Type::kTuple || value->type == Type::kList || value->type == Type::kSet;
  return is ? static_cast<Sequence*>(value) : nullptr;
}

}  // namespace cohabit::python
