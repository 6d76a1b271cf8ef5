// What the abstract interpreter knows about Python objects.
//
// A value is exact or opaque. Opaque stands for anything that only a running program knows; it
// carries the dotted name by which the program reached it, when there is one, because the table of
// native functions that open libraries goes by name. Values live in the interpreter's arena until
// the plan is made: they are never destroyed, and hold nothing but memory of that arena. Texts
// point into it too, or into source that lives as long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "imports/finder.h"
#include "imports/syntax.h"
#include "imports/tables.h"

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
  kIterator,
};

struct Value {
  Type type;
  bool doubted = false;  // a number or text that another branch may have made another one
  bool lacking = false;  // None, a truth value or a status that a failed import has left
  explicit Value(Type kind) : type(kind) {}
  Value(const Value&) = delete;
};
using Ref = Value*;
using List = std::pmr::vector<Ref>;

struct NameTraits {
  static uint32_t hash(std::string_view name) { return hash_of_text(name); }
  static bool equal(std::string_view a, std::string_view b) { return a == b; }
};
using Namespace = OrderedTable<std::string_view, Ref, NameTraits>;

struct Opaque : Value {
  std::string_view name;        // "torch._C._cuda_init"; empty: not known
  std::optional<bool> guessed;  // its truth, by the branch that was taken before
  explicit Opaque(std::string_view dotted = "") : Value(Type::kOpaque), name(dotted) {}
};

struct Int : Value {  // kBool, kInt
  int64_t value;
  Int(Type kind, int64_t number) : Value(kind), value(number) {}
};

struct Str : Value {  // kStr, kBytes, kPath, kVersion
  std::string_view text;
  Str(Type kind, std::string_view characters) : Value(kind), text(characters) {}
};

struct Sequence : Value {  // kTuple, kList, kSet
  List items;
  bool open = false;  // more items than these may be there
  // A skipped branch may have added some, which most do not: for whether a module lacks a name.
  bool partial = false;
  bool may_lack = false;  // some of these may be gone
  Sequence(Arena& arena, Type kind) : Value(kind), items(&arena) {}
};

// Whether a value can be a key of a dictionary that is found again. Others make it open.
bool is_key(Ref value);
struct KeyTraits {
  static uint32_t hash(Ref key);
  static bool equal(Ref a, Ref b);
};

struct Instance;
struct Module;

struct Dict : Value {
  OrderedTable<Ref, Ref, KeyTraits> items;  // all of them are keys in the sense of is_key
  bool open = false, partial = false, may_lack = false;  // as of sequences
  bool of_environment = false;                           // os.environ, or a copy of it
  Module* variables_of = nullptr;     // what is put into it is a variable of this module too
  Instance* attributes_of = nullptr;  // an attribute of this object: its __dict__
  void open_all();                    // these too
  Ref factory = nullptr;              // of a defaultdict
  explicit Dict(Arena& arena) : Value(Type::kDict), items(arena) {}
};

struct Module : Value {
  enum State : uint8_t { kFresh, kRunning, kDone, kFailed };
  const ModuleSpec& spec;    // the interpreter's
  std::string_view package;  // __package__
  Namespace names;
  // Names that we do not know of may be there: globals(), setattr() of what is not known.
  bool open = false;
  // Likewise, but only by what comes with the interpreter: its files tell which they may be
  // (missing_names.cc).
  bool partly_seen = false;
  State state = kFresh;
  const Syntax* syntax = nullptr;
  // Those of native modules may be there: it is one, or takes all names of one.
  std::pmr::vector<const Module*> natives;
  std::pmr::vector<std::string_view> refused;  // names that its __getattr__ takes away
  Module(Arena& arena, const ModuleSpec& found)
      : Value(Type::kModule), spec(found), names(arena), natives(&arena), refused(&arena) {}
  bool may_have_more() const { return open || partly_seen || !natives.empty(); }
  void add_natives(const Module& other) {
    for (const Module* native : other.natives)
      if (std::find(natives.begin(), natives.end(), native) == natives.end())
        natives.push_back(native);
  }
};

// Variables of a module, a function call or a class body. Not movable.
struct Scope {
  Namespace own;
  Namespace* names = &own;  // a module's: those of the module
  Scope* outer = nullptr;   // the enclosing function's
  Module* module = nullptr;
  std::pmr::vector<std::string_view> globals;
  std::pmr::vector<std::string_view> nonlocals;
  struct Class* defining = nullptr;  // in a class body
  Ref self = nullptr;                // first argument of the running function
  bool is_module() const { return names != &own; }
  struct Class* owner = nullptr;  // the class that the running function belongs to: super()
  bool captured = false;          // a function that was made in it may ask it later
  explicit Scope(Arena& arena) : own(arena), globals(&arena), nonlocals(&arena) {}
  void clear() {
    own.clear();
    globals.clear();
    nonlocals.clear();
    names = &own;
    outer = nullptr;
    module = nullptr;
    defining = owner = nullptr;
    self = nullptr;
  }
  Scope(const Scope&) = delete;
};

struct Function : Value {
  std::string_view name;
  const Stmt* statement = nullptr;  // one of these two
  const Expr* lambda = nullptr;
  const Syntax* syntax = nullptr;  // that has the body
  std::span<const Parameter> parameters;
  List defaults;  // by parameter; null: none
  Module* module = nullptr;
  Scope* outer = nullptr;
  Class* owner = nullptr;
  enum Binding : uint8_t { kPlain, kStatic, kClassMethod, kProperty } binding = kPlain;
  Namespace attributes;
  uint8_t dull_work = 0;  // runs that did nothing and told nothing
  bool checked = false, is_generator = false;
  bool yields_once = false;  // at most, in one run of a generator
  bool guessed = false;      // an unknown decorator made something of it
  explicit Function(Arena& arena) : Value(Type::kFunction), defaults(&arena), attributes(arena) {}
};

struct Method : Value {
  Ref self;
  Ref function;
  Method(Ref first, Ref callee) : Value(Type::kMethod), self(first), function(callee) {}
};

// What is known of the __init__ that dataclasses.dataclass gives a class.
struct DataField {
  std::string_view name;
  Ref initial = nullptr;  // null: none is known
  Ref factory = nullptr;
  bool is_parameter = true;
  bool keyword_only = false;
  bool is_kept = true;  // not an InitVar, which only __post_init__ gets
};
struct DataFields {
  std::pmr::vector<DataField> list;  // those of the bases first
  bool are_all = true;               // and their order is known
  bool is_generated = true;          // the __init__ is the generated one
  bool is_frozen = false;            // a __setattr__ that refuses was generated
  explicit DataFields(Arena& arena) : list(&arena) {}
};

struct Class : Value {
  std::string_view name;
  Module* module = nullptr;
  std::pmr::vector<Class*> bases;
  const DataFields* fields = nullptr;  // dataclasses.dataclass has completed it
  Ref metaclass = nullptr;             // that its statement names
  bool open = false;                   // a base is opaque
  bool decorated = false;              // something may have added methods: dataclass
  bool is_property = false;            // a subclass of property
  bool has_setters = false;            // some attributes of its instances are set by functions
  Namespace names;
  explicit Class(Arena& arena) : Value(Type::kClass), bases(&arena), names(arena) {}
};

struct Instance : Value {
  Class* of;
  Namespace names;
  bool open = false;
  Dict* items = nullptr;  // of subclasses of dict
  Str* text = nullptr;    // of subclasses of str
  bool unseen = false;    // made out of sight: what its class has may be something else in it
  bool is_true = false;   // whatever is not known of its class
  Sequence* arguments = nullptr;
  Instance* target = nullptr;  // of super(): whose methods they are; `of` has the bases
  Instance(Arena& arena, Class* type_of) : Value(Type::kInstance), of(type_of), names(arena) {}
};

inline void Dict::open_all() {
  open = true;
  if (variables_of) variables_of->open = true;
  if (attributes_of) attributes_of->open = true;
}

struct Arguments {
  List positional;
  std::pmr::vector<std::pair<std::string_view, Ref>> keywords;
  bool open = false;  // * or ** of something opaque was among them

  Arguments() = default;
  explicit Arguments(Arena& arena) : positional(&arena), keywords(&arena) {}
  Arguments(Arena& arena, std::initializer_list<Ref> values)
      : positional(values, &arena), keywords(&arena) {}

  // Behind those that are there, without the first `left_out`.
  void add(const Arguments& others, size_t left_out = 0) {
    const auto first = others.positional.begin() +
                       static_cast<std::ptrdiff_t>(std::min(left_out, others.positional.size()));
    positional.insert(positional.end(), first, others.positional.end());
    keywords.insert(keywords.end(), others.keywords.begin(), others.keywords.end());
    open |= others.open;
  }

  Ref get(size_t position, std::string_view keyword = "") const {
    if (position < positional.size()) return positional[position];
    for (const auto& [name, value] : keywords)
      if (!keyword.empty() && name == keyword) return value;
    return nullptr;
  }
};

// What iter() gives, and the call of a generator function.
struct Iterator : Value {
  Function* function = nullptr;  // a generator's, which is run when its items are asked for
  Arguments arguments;           // of the call
  Sequence* items = nullptr;     // all of them, once they are known
  size_t next = 0;               // of `items`
  bool is_left = false;          // the generator has run, up to some yield
  bool is_generator() const { return function && !items; }
  explicit Iterator(Arena& arena) : Value(Type::kIterator), arguments(arena) {}
  Iterator(Arena& arena, Function* of, const Arguments& given) : Iterator(arena) {
    function = of;
    arguments.add(given);
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
inline const std::string_view* text_of(Ref value) {
  if (!value) return nullptr;
  if (value->type == Type::kStr || value->type == Type::kPath)
    return &static_cast<const Str*>(value)->text;
  return nullptr;
}
// A list, set or dictionary that has nothing yet may be filled out of sight.
inline void open_if_empty(Ref value) {
  if (auto* items = as<Dict>(value, Type::kDict)) items->open |= items->items.empty();
  for (const Type type : {Type::kList, Type::kSet})
    if (auto* items = as<Sequence>(value, type)) items->open |= items->items.empty();
}
inline void open_all(Ref value) {
  if (auto* items = as<Dict>(value, Type::kDict)) items->open_all();
  for (const Type type : {Type::kList, Type::kSet})
    if (auto* items = as<Sequence>(value, type)) items->open = true;
}
inline void let_lack(Ref value) {
  if (auto* items = as<Dict>(value, Type::kDict)) items->may_lack = true;
  for (const Type type : {Type::kList, Type::kSet})
    if (auto* items = as<Sequence>(value, type)) items->may_lack = true;
}
// Not code: in a class, each instance may have a value of its own in its place.
inline bool is_data(Ref value) {
  return value->type != Type::kFunction && value->type != Type::kModel &&
         value->type != Type::kMethod && value->type != Type::kClass;
}
inline Sequence* sequence_of(Ref value) {
  if (!value) return nullptr;
  const bool is =
      value->type == Type::kTuple || value->type == Type::kList || value->type == Type::kSet;
  return is ? static_cast<Sequence*>(value) : nullptr;
}

// Whether a container may hold more than is known.
inline bool holds_more(Ref items) {
  const Sequence* sequence = sequence_of(items);
  const Dict* dict = as<Dict>(items, Type::kDict);
  return (sequence && sequence->open) || (dict && dict->open);
}

}  // namespace cohabit::python
