// Functions and types of the module builtins.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

#include "imports/missing_files.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

Ref model_len(I& in, Ref, const A& a) {
  Ref value = a.get(0);
  if (!value) return in.opaque();
  if (Sequence* sequence = sequence_of(value); sequence && !sequence->open && !sequence->may_lack)
    return in.integer(static_cast<int64_t>(sequence->items.size()));
  in.observe_all(as<Dict>(value, Type::kDict));
  if (Dict* dict = as<Dict>(value, Type::kDict); dict && !dict->open && !dict->may_lack)
    return in.integer(static_cast<int64_t>(dict->items.size()));
  if (value->type == Type::kStr || value->type == Type::kBytes)
    return in.integer(static_cast<int64_t>(static_cast<Str*>(value)->text.size()));
  const bool has_none = value->type == Type::kInt || value->type == Type::kNone;
  if (has_none && in.expects("TypeError")) return in.raise("TypeError", "object has no len()");
  return in.opaque();
}

Ref model_isinstance(I& in, Ref, const A& a) {
  Ref value = a.get(0), types = a.get(1);
  return value && types ? in.boolean(in.is_instance(value, types)) : in.opaque();
}

Ref model_issubclass(I& in, Ref, const A& a) {
  Class* type = as<Class>(a.get(0), Type::kClass);
  // Where a program tries what is a class.
  if (a.get(0) && a.get(0)->type == Type::kModule && in.expects("TypeError"))
    return in.raise("TypeError", "issubclass() arg 1 must be a class");
  return type && a.get(1) ? in.boolean(in.is_subclass(type, a.get(1))) : in.opaque();
}

// Whether a native module's file has this name as a string of its own: so do the names of methods
// and attributes stand there. That it has not tells nothing, libraries beside it may have it.
bool is_named_in_file(I& in, const Opaque* attribute, std::string_view name) {
  constexpr size_t kMostRead = 32 << 20;
  const std::string library = in.library_of(attribute->name);
  if (library.empty()) return false;
  FileStrings* strings = in.strings_in(library);
  return strings && strings->size() <= kMostRead && strings->has(name);
}

Ref model_hasattr(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(1));
  if (!a.get(0) || !name) return in.opaque();
  bool raised = false;
  const I::Catching catching(in, {"AttributeError"});
  Ref value = in.find_attribute(a.get(0), *name, &raised);
  if (raised) {
    if (!in.raised_is("AttributeError")) return nullptr;
    in.clear_raised();
    return in.boolean(false);
  }
  if (!value) return in.boolean(false);
  if (Opaque* unknown = as<Opaque>(value, Type::kOpaque))
    return is_named_in_file(in, unknown, *name) ? in.boolean(true) : in.opaque();
  return in.boolean(true);
}

Ref model_getattr(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(1));
  if (!a.get(0) || !name) {
    // A method of it, and what that may fill (lazy_loader reads a stub so, by an ast.NodeVisitor).
    if (auto* instance = as<Instance>(a.get(0), Type::kInstance)) {
      for (const auto& [attribute, value] : instance->names) open_if_empty(value);
      in.let_out(instance);
    }
    return in.opaque();
  }
  bool raised = false;
  const I::Catching catching(in, a.get(2) ? std::vector<std::string_view>{"AttributeError"}
                                          : std::vector<std::string_view>{});
  Ref value = in.find_attribute(a.get(0), *name, &raised);
  if (value) return value;
  if (raised && !in.raised_is("AttributeError")) return nullptr;
  if (a.get(2)) {
    in.clear_raised();
    return a.get(2);
  }
  if (raised) return nullptr;
  return in.attribute(a.get(0), *name);
}

Ref model_setattr(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(1));
  if (a.get(0) && name && a.get(2)) {
    in.set_attribute(a.get(0), *name, a.get(2));
  } else if (Module* module = as<Module>(a.get(0), Type::kModule)) {
    module->open = true;
  } else if (Instance* instance = as<Instance>(a.get(0), Type::kInstance)) {
    instance->open = true;
  } else if (Class* type = as<Class>(a.get(0), Type::kClass)) {
    type->open = true;
  }
  return in.none();
}

Ref model_str(I& in, Ref, const A& a) {
  if (a.positional.empty()) return in.string("");
  Ref shown = in.shown(a.positional[0]);
  if (!shown) return nullptr;
  const auto text = in.display(shown);
  return text ? in.string(*text) : in.opaque();
}

Ref model_int(I& in, Ref, const A& a) {
  Ref value = a.get(0);
  if (!value) return in.integer(0);
  if (Int* number = as<Int>(value, Type::kInt)) return number;
  if (Int* number = as<Int>(value, Type::kBool)) return in.integer(number->value);
  if (value->type == Type::kNone && in.expects("TypeError"))
    return in.raise("TypeError", "int() argument must not be 'NoneType'");
  const std::string_view* text = text_of(value);
  if (!text || a.positional.size() > 1 || a.get(SIZE_MAX, "base")) return in.opaque();
  const std::string digits(*text);
  char* end = nullptr;
  const int64_t number = std::strtoll(digits.c_str(), &end, 10);
  if ((text->empty() || *end != 0) && !in.expects("ValueError")) return in.opaque();
  if (text->empty() || *end != 0)
    return in.raise("ValueError", "invalid literal for int() with base 10: '" + digits + "'");
  return in.integer(number);
}

// Python's grammar of a number: https://docs.python.org/3/library/functions.html#float. Written
// otherwise than in ASCII it may be one all the same.
bool is_no_number(std::string_view text) {
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; })) return false;
  while (!text.empty() && !is_plain(text.front())) text.remove_prefix(1);
  while (!text.empty() && !is_plain(text.back())) text.remove_suffix(1);
  std::string digits(text);
  std::erase(digits, '_');
  if (digits.empty() || digits.find_first_of("xX") != digits.npos) return true;
  char* end = nullptr;
  std::strtod(digits.c_str(), &end);
  return *end != 0;
}

// Numbers with a fraction are not known.
Ref model_float(I& in, Ref, const A& a) {
  const Ref value = a.get(0);
  if (value && value->type == Type::kNone && in.expects("TypeError"))
    return in.raise("TypeError", "float() argument must not be 'NoneType'");
  const std::string_view* text = text_of(value);
  if (text && is_no_number(*text) && in.expects("ValueError"))
    return in.raise("ValueError", fmt::format("could not convert string to float: '{}'", *text));
  return in.opaque();
}

Ref model_bool(I& in, Ref, const A& a) {
  return a.get(0) ? in.boolean(in.truth(a.get(0))) : in.boolean(false);
}

Ref make_sequence(I& in, const A& a, Type type) {
  auto* result = in.list({}, type);
  if (!a.get(0)) return result;
  Ref given = in.iterated(a.get(0));
  if (!given) return nullptr;
  if (type == Type::kSet) {
    find_model("set.update")->function(in, result, A(in.arena(), {given}));
    return result;
  }
  const auto items = in.elements(given);
  Sequence* source = sequence_of(given);
  result->open = !items || (source && source->open);
  if (items) result->items.assign(items->begin(), items->end());
  return result;
}

// One that begins with items, which is a list to us. One that begins empty is filled by whoever
// comes: other threads, an event loop.
Ref model_deque(I& in, Ref, const A& a) {
  const Ref limit = a.get(1, "maxlen");
  const bool is_limited = limit && limit->type != Type::kNone;
  return a.positional.empty() || is_limited ? in.opaque() : make_sequence(in, a, Type::kList);
}

Ref model_list(I& in, Ref, const A& a) {
  return make_sequence(in, a, Type::kList);
}
Ref model_tuple(I& in, Ref, const A& a) {
  return make_sequence(in, a, Type::kTuple);
}
Ref model_set(I& in, Ref, const A& a) {
  return make_sequence(in, a, Type::kSet);
}

Ref model_sorted(I& in, Ref, const A& a) {
  Ref made = make_sequence(in, a, Type::kList);
  if (!made) return nullptr;
  A order(in.arena());
  order.keywords = a.keywords;
  return find_model("list.sort")->function(in, made, order) ? made : nullptr;
}

Ref model_reversed(I& in, Ref, const A& a) {
  auto* result = static_cast<Sequence*>(make_sequence(in, a, Type::kList));
  if (!result) return nullptr;
  std::reverse(result->items.begin(), result->items.end());
  return result;
}

Ref model_dict(I& in, Ref, const A& a) {
  auto* result = in.make<Dict>();
  result->open = a.open;
  if (Dict* source = as<Dict>(a.get(0), Type::kDict)) {
    for (const auto& [key, value] : source->items) in.dict_set(result, key, value);
    result->open |= source->open;
    result->of_environment = source->of_environment;
  } else if (a.get(0)) {
    const auto items = in.elements(a.get(0));
    result->open |= !items;
    for (Ref item : items.value_or(std::span<const Ref>())) {
      Sequence* pair = sequence_of(item);
      if (pair && pair->items.size() == 2) {
        in.dict_set(result, pair->items[0], pair->items[1]);
      } else {
        result->open = true;
      }
    }
  }
  for (const auto& [name, value] : a.keywords) in.dict_set(result, name, value);
  return result;
}

// functools.partial(function, *arguments, **keywords)
Ref model_partial(I& in, Ref, const A& a) {
  if (!a.get(0) || a.open) return in.opaque();
  Instance* result = in.call_for_later("partial", a.get(0), a, 1);
  result->is_true = true;
  return result;
}

Ref call_partial(I& in, Ref self, const A& a) {
  auto* partial = as<Instance>(self, Type::kInstance);
  Ref function = partial ? partial->names.get("func") : nullptr;
  if (!function) return in.opaque();
  const Sequence* given = sequence_of(partial->names.get("args"));
  A all(in.arena());
  if (given) all.positional.assign(given->items.begin(), given->items.end());
  all.add(a);
  if (const auto* keywords = as<Dict>(partial->names.get("keywords"), Type::kDict))
    for (const auto& [name, value] : keywords->items)
      if (const std::string_view* text = text_of(name); text && !a.get(SIZE_MAX, *text))
        all.keywords.emplace_back(*text, value);
  return in.call(function, all);
}

Ref model_defaultdict(I& in, Ref self, const A& a) {
  A rest(in.arena());
  rest.add(a, 1);
  Ref made = model_dict(in, self, rest);
  Ref factory = a.get(0);
  if (Dict* dict = as<Dict>(made, Type::kDict); dict && factory && factory->type != Type::kNone)
    dict->factory = factory;
  return made;
}

Ref model_range(I& in, Ref, const A& a) {
  int64_t bounds[3] = {0, 0, 1};
  if (a.positional.empty() || a.positional.size() > 3) return in.opaque();
  for (size_t i = 0; i < a.positional.size(); i++) {
    Int* number = as<Int>(a.positional[i], Type::kInt);
    if (!number) return in.opaque();
    bounds[a.positional.size() == 1 ? 1 : i] = number->value;
  }
  auto* result = in.list({}, Type::kTuple);
  if (bounds[2] == 0) return in.opaque();
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    if (result->items.size() == 1000) {
      result->open = true;
      break;
    }
    result->items.push_back(in.integer(i));
  }
  return result;
}

Ref model_enumerate(I& in, Ref, const A& a) {
  const auto items = in.elements(a.get(0));
  Ref start = a.get(1, "start");
  const auto* first = as<Int>(start, Type::kInt);
  if (!items) return in.opaque();
  auto* result = in.list({});
  for (size_t i = 0; i < items->size(); i++) {
    Ref number = in.opaque();
    if (first || !start) number = in.integer((first ? first->value : 0) + static_cast<int64_t>(i));
    result->items.push_back(in.list({number, (*items)[i]}, Type::kTuple));
  }
  result->open = holds_more(a.get(0));
  return result;
}

Ref model_zip(I& in, Ref, const A& a) {
  std::vector<std::span<const Ref>> columns;
  size_t rows = SIZE_MAX;
  bool is_open = false;
  for (Ref item : a.positional) {
    auto items = in.elements(item);
    if (!items) return in.opaque();
    is_open |= holds_more(item);
    rows = std::min(rows, items->size());
    columns.push_back(*items);
  }
  auto* result = in.list({});
  result->open = is_open;
  if (columns.empty()) return result;
  for (size_t i = 0; i < rows; i++) {
    std::vector<Ref> row;
    for (const auto& column : columns) row.push_back(column[i]);
    result->items.push_back(in.list(row, Type::kTuple));
  }
  return result;
}

Ref chained(I& in, std::span<const Ref> parts) {
  auto* result = in.list({});
  for (Ref part : parts) {
    const auto items = in.elements(part);
    if (!items) return in.opaque();
    result->items.insert(result->items.end(), items->begin(), items->end());
    result->open |= holds_more(part);
  }
  return result;
}
Ref model_chain(I& in, Ref, const A& a) {
  return a.open ? in.opaque() : chained(in, a.positional);
}
Ref model_chain_of(I& in, Ref, const A& a) {
  const auto parts = in.elements(a.get(0));
  return parts && !holds_more(a.get(0)) ? chained(in, *parts) : in.opaque();
}

Ref model_map(I& in, Ref, const A& a) {
  const auto items = in.elements(a.get(1));
  if (!items || !a.get(0)) return in.opaque();
  const I::Early early(in);
  auto* result = in.list({});
  for (Ref item : *items) {
    const A one(in.arena(), {item});
    Ref value = in.call(a.get(0), one);
    if (!value) return nullptr;
    result->items.push_back(value);
  }
  result->open = holds_more(a.get(1));
  return result;
}

Ref model_filter(I& in, Ref, const A& a) {
  const auto items = in.elements(a.get(1));
  if (!items || !a.get(0)) return in.opaque();
  const I::Early early(in);
  auto* result = in.list({});
  for (Ref item : *items) {
    Ref keep = item;
    if (a.get(0)->type != Type::kNone) {
      const A one(in.arena(), {item});
      keep = in.call(a.get(0), one);
      if (!keep) return nullptr;
    }
    const auto decided = in.truth(keep);
    if (!decided) result->open = true;
    if (decided.value_or(false)) result->items.push_back(item);
  }
  return result;
}

Ref any_all(I& in, const A& a, bool wanted) {
  if (auto* generator = as<Iterator>(a.get(0), Type::kIterator);
      generator && generator->is_generator() && !generator->is_left) {
    bool sure = true, is_there = false;
    const Flow flow = in.each(generator, [&](Ref item) {
      const auto decided = item->doubted ? std::nullopt : in.truth(item);
      sure &= decided.has_value();
      is_there = decided && *decided == wanted;
      return is_there ? Flow::kBreak : Flow::kNext;
    });
    if (flow == Flow::kRaise) return nullptr;
    return is_there ? in.boolean(wanted) : sure ? in.boolean(!wanted) : in.opaque();
  }
  const auto items = in.elements(a.get(0));
  if (!items) return in.opaque();
  Sequence* source = sequence_of(a.get(0));
  bool sure = !(source && source->open);
  for (Ref item : *items) {
    const auto decided = item->doubted ? std::nullopt : in.truth(item);
    if (decided && *decided == wanted) return in.boolean(wanted);
    sure &= decided.has_value();
  }
  return sure ? in.boolean(!wanted) : in.opaque();
}
Ref model_any(I& in, Ref, const A& a) {
  return any_all(in, a, true);
}
Ref model_all(I& in, Ref, const A& a) {
  return any_all(in, a, false);
}

Ref model_next(I& in, Ref, const A& a) {
  if (Iterator* iterator = as<Iterator>(a.get(0), Type::kIterator))
    return in.next_of(iterator, a.get(1));
  const auto items = in.elements(a.get(0));
  if (!items) return in.opaque();
  if (!items->empty()) return items->front();
  if (a.get(1)) return a.get(1);
  return in.expects("StopIteration") ? in.raise("StopIteration", "") : in.opaque();
}

Ref generator_next(I& in, Ref self, const A&) {
  Iterator* iterator = as<Iterator>(self, Type::kIterator);
  return iterator ? in.next_of(iterator, nullptr) : in.opaque();
}
// Another value than None is nothing that the generator can be given here.
Ref generator_send(I& in, Ref self, const A& a) {
  const bool is_next = a.get(0) && a.get(0)->type == Type::kNone;
  if (is_next) return generator_next(in, self, a);
  in.let_out(self);
  return in.opaque();
}
Ref generator_close(I& in, Ref self, const A&) {
  if (Iterator* iterator = as<Iterator>(self, Type::kIterator)) iterator->is_left = true;
  return in.none();
}

// With a second argument the first is called until it gives that.
Ref model_iter(I& in, Ref, const A& a) {
  return a.get(0) && !a.get(1) ? in.iterator_over(a.get(0)) : in.opaque();
}

Ref model_import(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  if (!name) {
    in.undecided("the name of a module that is imported");
    return in.opaque();
  }
  std::string full(*name);
  if (Int* level = as<Int>(a.get(4, "level"), Type::kInt); level && level->value > 0) {
    const Dict* variables = as<Dict>(a.get(1, "globals"), Type::kDict);  // the importer's
    Module* importer =
        variables && variables->variables_of ? variables->variables_of : in.current_module();
    const auto absolute = in.absolute_name(importer, static_cast<uint32_t>(level->value), *name);
    if (!absolute) return in.raise("ImportError", "attempted relative import");
    full = *absolute;
  }
  Ref module = in.import_dotted(full);
  if (!module) return in.forgive_import(a.get(0, "name"));
  if (Ref wanted = a.get(3, "fromlist")) {
    const auto names = in.elements(wanted);
    for (Ref item : names.value_or(std::span<const Ref>()))
      if (const std::string_view* text = text_of(item)) {
        if (!in.import_from(module, *text)) in.clear_raised();
      }
    if (in.truth(wanted) != std::optional(false)) return module;
  }
  Ref top = in.loaded_module(full.substr(0, full.find('.')));
  return top ? top : in.opaque();
}

Ref model_globals(I& in, Ref, const A&) {
  if (Module* module = in.current_module()) return in.variables_of(module);
  auto* dict = in.make<Dict>();
  dict->open = true;
  return dict;
}

Ref model_locals(I& in, Ref self, const A& a) {
  Scope* scope = in.scope();
  if (const Module* module = in.current_module(); scope && module && scope->names == &module->names)
    return model_globals(in, self, a);
  auto* dict = in.make<Dict>();
  if (scope)
    for (const auto& [name, value] : *scope->names) in.dict_set(dict, name, value);
  if (scope && scope->defining) scope->defining->open = true;  // what is put there, the class has
  dict->open = true;
  return dict;
}

Ref model_vars(I& in, Ref self, const A& a) {
  if (a.positional.empty() && !a.open) return model_locals(in, self, a);
  Module* module = as<Module>(a.get(0), Type::kModule);
  if (module) return in.variables_of(module);
  return as<Instance>(a.get(0), Type::kInstance) ? in.attribute(a.get(0), "__dict__") : in.opaque();
}

Ref model_dir(I& in, Ref, const A& a) {
  Module* module = as<Module>(a.get(0), Type::kModule);
  Instance* instance = as<Instance>(a.get(0), Type::kInstance);
  if (!module && !(instance && in.is_known(instance))) return in.opaque();
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : module ? module->names : instance->names) names.insert(name);
  if (instance) in.add_names_of(instance->of, names);
  auto* result = in.list({});
  for (const std::string_view name : names) result->items.push_back(in.constant(name));
  std::sort(result->items.begin(), result->items.end(),
            [](Ref x, Ref y) { return *text_of(x) < *text_of(y); });
  result->open = !module || module->may_have_more();  // object's own are not among them
  return result;
}

Ref model_callable(I& in, Ref, const A& a) {
  Ref value = a.get(0);
  if (!value || value->type == Type::kOpaque || value->type == Type::kInstance) return in.opaque();
  return in.boolean(value->type == Type::kFunction || value->type == Type::kMethod ||
                    value->type == Type::kClass || value->type == Type::kModel);
}

// The classes from `type` on, in the order in which an attribute is looked for (C3, see
// https://docs.python.org/3/howto/mro.html); empty: there is no such order, or it is too long.
using Order = std::vector<Class*>;
const Order& method_order(Class* type, std::unordered_map<Class*, Order>& known) {
  constexpr size_t kMostClasses = 200;
  if (const auto found = known.find(type); found != known.end()) return found->second;
  Order& result = known[type];  // empty until it is known
  if (known.size() > kMostClasses) return result;
  std::vector<Order> lists;
  for (Class* base : type->bases) {
    lists.push_back(method_order(base, known));
    if (lists.back().empty()) return result;
  }
  lists.emplace_back(type->bases.begin(), type->bases.end());
  Order order = {type};
  const auto stands_behind = [&](Class* one) {
    return std::any_of(lists.begin(), lists.end(), [one](const auto& list) {
      return std::find(list.begin() + 1, list.end(), one) != list.end();
    });
  };
  for (;;) {
    std::erase_if(lists, [](const auto& list) { return list.empty(); });
    const auto next = std::find_if(lists.begin(), lists.end(),
                                   [&](const auto& list) { return !stands_behind(list[0]); });
    if (next == lists.end()) {
      if (lists.empty()) result = std::move(order);
      return result;
    }
    Class* one = (*next)[0];
    order.push_back(one);
    for (auto& list : lists)
      if (list[0] == one) list.erase(list.begin());
  }
}

// Where super() looks in a method of `owner`, of an object of this class.
std::pmr::vector<Class*> behind(Class* type, Class* owner) {
  const Class* last = type;
  while (last->bases.size() == 1) last = last->bases[0];
  if (last->bases.empty()) return owner->bases;
  std::unordered_map<Class*, Order> known;
  const Order& order = method_order(type, known);
  const auto at = std::find(order.begin(), order.end(), owner);
  if (at == order.end()) return owner->bases;
  std::pmr::vector<Class*> rest(owner->bases.get_allocator());
  rest.assign(at + 1, order.end());
  return rest;
}

// super() of the running method: an instance-like view that starts behind the method's class.
Ref model_super(I& in, Ref, const A&) {
  Scope* scope = in.scope();
  while (scope && !scope->owner) scope = scope->outer;
  Instance* self = scope ? as<Instance>(scope->self, Type::kInstance) : nullptr;
  if (!self) return in.opaque();
  auto* view = in.make<Class>();
  view->name = "super";
  view->module = scope->module;
  view->bases = behind(self->of, scope->owner);
  view->open = true;
  auto* instance = in.make<Instance>(view);
  instance->target = self;
  instance->open = true;
  return instance;
}

Ref bound_as(I& in, const A& a, Function::Binding binding) {
  Function* function = as<Function>(a.get(0), Type::kFunction);
  if (!function) return a.get(0) ? a.get(0) : in.opaque();
  function->binding = binding;
  return function;
}
Ref model_property(I& in, Ref, const A& a) {
  return bound_as(in, a, Function::kProperty);
}
// `@x.setter`: what decorates another function stays the property that it was.
Ref property_setter(I& in, Ref self, const A& a) {
  Function* setter = as<Function>(a.get(0), Type::kFunction);
  if (auto* property = as<Function>(self, Type::kFunction); property && setter)
    property->attributes["fset"] = setter;
  if (auto* property = as<Instance>(self, Type::kInstance); property && setter)
    property->names["fset"] = setter;
  return self ? self : in.opaque();
}
Ref property_deleter(I& in, Ref self, const A&) {
  return self ? self : in.opaque();
}
Ref model_staticmethod(I& in, Ref, const A& a) {
  return bound_as(in, a, Function::kStatic);
}
Ref model_classmethod(I& in, Ref, const A& a) {
  return bound_as(in, a, Function::kClassMethod);
}

Ref model_type(I& in, Ref, const A& a) {
  if (a.positional.size() == 3) {
    auto* type = in.make<Class>();
    const std::string_view* name = text_of(a.positional[0]);
    type->name = name ? *name : "";
    type->module = in.current_module();
    for (Ref base : in.elements(a.positional[1]).value_or(std::span<const Ref>())) {
      if (Class* known = as<Class>(base, Type::kClass)) {
        type->bases.push_back(known);
      } else {
        type->open = true;
      }
    }
    if (Dict* names = as<Dict>(a.positional[2], Type::kDict)) {
      for (const auto& [key, value] : names->items)
        if (const std::string_view* text = text_of(key)) type->names[*text] = value;
      type->open |= names->open;
    } else {
      type->open = true;
    }
    return type;
  }
  if (Instance* instance = as<Instance>(a.get(0), Type::kInstance)) return instance->of;
  static constexpr std::pair<Type, std::string_view> kTypes[] = {
      {Type::kStr, "str"},          {Type::kBytes, "bytes"}, {Type::kInt, "int"},
      {Type::kBool, "bool"},        {Type::kTuple, "tuple"}, {Type::kList, "list"},
      {Type::kSet, "set"},          {Type::kDict, "dict"},   {Type::kNone, "NoneType"},
      {Type::kModule, "ModuleType"}};
  for (const auto& [type, name] : kTypes)
    if (a.get(0) && a.get(0)->type == type) return in.builtin_class(name);
  return in.opaque();
}

// A copy of a container or an object, and where it is deep of all that is in it, as far as that
// goes.
class Copies {
 public:
  Copies(I& in, bool deep) : in_(in), deep_(deep) {}
  Ref of(Ref value) {
    if (const auto made = made_.find(value); made != made_.end()) return made->second;
    if (made_.size() > kMost) return value;
    if (const Sequence* sequence = sequence_of(value)) {
      Sequence* copy = in_.list({}, sequence->type);
      made_[value] = copy;
      copy->open = sequence->open;
      copy->may_lack = sequence->may_lack;
      for (size_t i = 0; i < sequence->items.size(); i++)
        in_.append(copy, within(sequence->items[i]));
      return copy;
    }
    if (Dict* dict = as<Dict>(value, Type::kDict)) return of_dict(*dict);
    auto* instance = as<Instance>(value, Type::kInstance);
    return instance && instance->of->module ? of_instance(*instance) : value;
  }

 private:
  static constexpr size_t kMost = 10'000;
  Ref within(Ref item) {
    if (!deep_ || depth_ > kDeepest) return item;
    depth_++;
    Ref copy = of(item);
    depth_--;
    return copy;
  }
  Dict* of_dict(Dict& dict) {
    auto* copy = in_.make<Dict>();
    made_[&dict] = copy;
    copy->open = dict.open;
    copy->may_lack = dict.may_lack;
    copy->factory = dict.factory;
    for (const auto& [key, item] : dict.items) in_.dict_set(copy, key, within(item));
    return copy;
  }
  Instance* of_instance(Instance& instance) {
    auto* copy = in_.make<Instance>(instance.of);
    made_[&instance] = copy;
    for (const auto& [name, attribute] : instance.names) copy->names[name] = within(attribute);
    if (instance.items) copy->items = of_dict(*instance.items);
    copy->open = instance.open;
    copy->text = instance.text;
    copy->unseen = instance.unseen;
    copy->is_true = instance.is_true;
    copy->arguments = instance.arguments;
    copy->target = instance.target;
    return copy;
  }

  static constexpr int kDeepest = 50;
  I& in_;
  bool deep_;
  int depth_ = 0;
  std::unordered_map<Ref, Ref> made_;
};
Ref model_copy(I& in, Ref, const A& a) {
  return a.get(0) ? Copies(in, false).of(a.get(0)) : in.opaque();
}
Ref model_deepcopy(I& in, Ref, const A& a) {
  return a.get(0) ? Copies(in, true).of(a.get(0)) : in.opaque();
}

// Counts what it is given: collections.Counter.
Ref model_count_elements(I& in, Ref, const A& a) {
  auto* counter = as<Instance>(a.get(0), Type::kInstance);
  auto* counts = counter ? counter->items : as<Dict>(a.get(0), Type::kDict);
  if (!counts) return in.none();
  counts->open = true;
  for (const auto& [key, value] : counts->items) *counts->items.find(key) = in.opaque();
  return in.none();
}

// object.__new__(class)
Ref model_object_new(I& in, Ref self, const A& a) {
  auto* type = as<Class>(a.get(0), Type::kClass);
  if (!type) type = as<Class>(self, Type::kClass);
  return type ? static_cast<Ref>(in.make<Instance>(type)) : in.opaque();
}

// open(path): only what reading on import needs.
Ref model_open(I& in, Ref, const A& a) {
  const std::string_view* path = text_of(a.get(0, "file"));
  const std::string_view* mode = text_of(a.get(1, "mode"));
  if (path && mode && mode->find_first_of("wax+") != mode->npos) {
    in.note_written(*path);
    return in.opaque();
  }
  if ((mode || !a.get(1, "mode")) && refuses_missing(in, path)) return nullptr;
  if (!path || !in.absolute(*path)) in.may_raise("FileNotFoundError");
  if (!path || !path->starts_with("/")) return in.opaque();
  Instance* file = in.instance_of("File");
  file->names["name"] = in.string(*path);
  file->open = true;
  return file;
}

// Nobody may be there to answer.
Ref model_input(I& in, Ref, const A&) {
  in.may_raise("EOFError");
  return in.opaque();
}

Ref path_open(I& in, Ref self, const A& a) {
  Arguments all(in.arena(), {self});
  all.add(a);
  return model_open(in, nullptr, all);
}

// os.open(path, flags): flags that are not plainly those of reading may make the file.
Ref model_posix_open(I& in, Ref, const A& a) {
  const std::string_view* path = text_of(a.get(0, "path"));
  const Ref flags = a.get(1, "flags");
  const auto* number = as<Int>(flags, Type::kInt);
  const auto* named = as<Opaque>(flags, Type::kOpaque);
  const bool is_read =
      number ? (number->value & O_CREAT) == 0 : named && named->name == "posix.O_RDONLY";
  if (is_read && refuses_missing(in, path)) return nullptr;
  if (!is_read && path) in.note_written(*path);
  return in.opaque();
}

Ref file_read(I& in, Ref self, const A&) {
  constexpr uint64_t kMost = 1 << 20;
  Instance* file = as<Instance>(self, Type::kInstance);
  const std::string_view* name = file ? text_of(file->names.get("name")) : nullptr;
  if (!name) return in.opaque();
  const auto text = text_for_program(in, *name, kMost);
  return text ? in.string(*text) : in.opaque();
}

// With flags it may be a syntax tree (ast.PyCF_ONLY_AST).
Ref model_compile(I& in, Ref, const A& a) {
  const Ref flags = a.get(3, "flags");
  return flags && in.truth(flags).value_or(true) ? in.opaque() : a.get(0);
}

// exec(text, globals, locals): runs it and puts its names into the dictionary.
Ref model_exec(I& in, Ref, const A& a) {
  const std::string_view* code = text_of(a.get(0));
  Dict* locals = as<Dict>(a.get(a.get(2) ? 2 : 1), Type::kDict);
  if (code && (locals || !a.get(1))) return in.run_text(*code, locals) ? in.none() : nullptr;
  Module* module = in.current_module();
  if (locals) locals->open_all();
  if (module) module->open = true;
  // Those make methods so.
  if (!module || module->spec.name != "dataclasses") in.undecided("code made at run time (exec)");
  return in.none();
}

// With names of its own it is not followed.
Ref model_eval(I& in, Ref, const A& a) {
  const std::string_view* code = text_of(a.get(0));
  if (!code || a.positional.size() != 1) return in.opaque();
  return in.evaluate_text(code->substr(std::min(code->find_first_not_of(" \t"), code->size())));
}

Ref model_none(I& in, Ref, const A&) {
  return in.none();
}

Ref model_ord(I& in, Ref, const A& a) {
  const std::string_view* text = text_of(a.get(0));
  return text && text->size() == 1 ? in.integer(static_cast<unsigned char>((*text)[0]))
                                   : in.opaque();
}

Ref extreme(I& in, const A& a, Operator op) {
  std::span<const Ref> items = a.positional;
  if (items.size() == 1) {
    auto known = in.elements(items[0]);
    if (!known) return in.opaque();
    items = *known;
  }
  const bool is_empty = items.empty() && a.positional.size() == 1 && a.keywords.empty();
  if (is_empty && in.expects("ValueError"))
    return in.raise("ValueError", "arg is an empty sequence");
  if (items.empty() || !a.keywords.empty()) return in.opaque();
  Ref best = items[0];
  for (Ref item : items) {
    const auto better = in.compare(op, item, best);
    if (!better) return in.opaque();
    if (*better) best = item;
  }
  return best;
}
Ref model_min(I& in, Ref, const A& a) {
  return extreme(in, a, Operator::kLess);
}
Ref model_max(I& in, Ref, const A& a) {
  return extreme(in, a, Operator::kGreater);
}

Ref model_repr(I& in, Ref, const A& a) {
  if (a.get(0) && a.get(0)->type == Type::kStr)
    return in.string(fmt::format("'{}'", *text_of(a.get(0))));
  if (as<Instance>(a.get(0), Type::kInstance)) return in.opaque();
  return model_str(in, nullptr, a);
}

constexpr ModelRow kRows[] = {
    {"builtins.len", model_len},
    {"builtins.isinstance", model_isinstance},
    {"builtins.issubclass", model_issubclass},
    {"builtins.hasattr", model_hasattr},
    {"builtins.getattr", model_getattr},
    {"builtins.setattr", model_setattr},
    {"object.__setattr__", model_setattr},
    {"builtins.sorted", model_sorted},
    {"builtins.reversed", model_reversed},
    {"builtins.range", model_range},
    {"builtins.enumerate", model_enumerate},
    {"builtins.zip", model_zip},
    {"itertools.chain", model_chain},
    {"itertools.chain.from_iterable", model_chain_of},
    {"builtins.map", model_map},
    {"builtins.filter", model_filter},
    {"builtins.any", model_any},
    {"builtins.all", model_all},
    {"builtins.next", model_next},
    {"builtins.iter", model_iter},
    {"builtins.__import__", model_import},
    {"builtins.globals", model_globals},
    {"builtins.locals", model_locals},
    {"builtins.vars", model_vars},
    {"builtins.dir", model_dir},
    {"builtins.callable", model_callable},
    {"builtins.super", model_super},
    {"builtins.property", model_property},
    {"property.getter", model_property},
    {"property.setter", property_setter},
    {"property.deleter", property_deleter},
    {"builtins.staticmethod", model_staticmethod},
    {"builtins.classmethod", model_classmethod},
    {"builtins.input", model_input},
    {"builtins.open", model_open},
    {"io.open", model_open},
    {"Path.open", path_open},
    {"posix.open", model_posix_open},
    {"File.read", file_read},
    {"builtins.compile", model_compile},
    {"builtins.exec", model_exec},
    {"builtins.eval", model_eval},
    {"builtins.print", model_none},
    {"builtins.ord", model_ord},
    {"builtins.min", model_min},
    {"builtins.max", model_max},
    {"builtins.repr", model_repr},
    {"str.__new__", model_str},
    {"int.__new__", model_int},
    {"float.__new__", model_float},
    {"_collections.deque", model_deque},
    {"collections.deque", model_deque},
    {"bool.__new__", model_bool},
    {"list.__new__", model_list},
    {"tuple.__new__", model_tuple},
    {"set.__new__", model_set},
    {"frozenset.__new__", model_set},
    {"dict.__new__", model_dict},
    {"_collections.defaultdict", model_defaultdict},
    {"_functools.partial", model_partial},
    {"partial.__call__", call_partial},
    {"generator.__next__", generator_next},
    {"generator.send", generator_send},
    {"generator.close", generator_close},
    {"type.__new__", model_type},
    {"copy.copy", model_copy},
    {"copy.deepcopy", model_deepcopy},
    {"_collections._count_elements", model_count_elements},
    {"object.__new__", model_object_new},
};

}  // namespace

std::span<const ModelRow> builtin_models() {
  return kRows;
}

}  // namespace cohabit::python
