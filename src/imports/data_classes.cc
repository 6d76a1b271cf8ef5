// Classes that `dataclasses.dataclass` has completed, and their instances.
//
// It writes an __init__ as text and runs that by exec, which is not followed. What it does stands
// in the class when it is decorated: fields are annotated names, those of the bases first, and what
// is not told is the default or what default_factory makes (Lib/dataclasses.py, _process_class and
// _init_fn). Where something of that is not known, what is told by its name is, and nothing else.
#include <algorithm>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

std::string_view last_part_of(const Expr& expression) {
  const bool is_name =
      expression.kind == ExprKind::kName || expression.kind == ExprKind::kAttribute;
  return is_name ? expression.text : std::string_view();
}

// "ClassVar" of typing.ClassVar[int], and of the same as a string.
std::string_view name_of_annotation(const Expr* annotation) {
  if (!annotation) return {};
  if (annotation->kind == ExprKind::kSubscript) return name_of_annotation(annotation->items[0]);
  if (annotation->kind != ExprKind::kString) return last_part_of(*annotation);
  return last_of(annotation->text.substr(0, annotation->text.find('[')));
}

bool is_missing(Ref value) {
  const auto* instance = as<Instance>(value, Type::kInstance);
  return instance && instance->of->name == "_MISSING_TYPE";
}

// What `field(...)` says.
void read_field(Instance& written, DataField& field) {
  const auto part = [&](std::string_view name) {
    Ref value = written.names.get(name);
    return is_missing(value) ? nullptr : value;
  };
  field.initial = part("default");
  field.factory = part("default_factory");
  const auto* parameter = as<Int>(written.names.get("init"), Type::kBool);
  field.is_parameter = !parameter || parameter->value != 0;
  const auto* keyword_only = as<Int>(written.names.get("kw_only"), Type::kBool);
  if (keyword_only) field.keyword_only = keyword_only->value != 0;
}

void add(DataFields& fields, const DataField& field) {
  const auto known = std::find_if(fields.list.begin(), fields.list.end(),
                                  [&](const DataField& one) { return one.name == field.name; });
  if (known == fields.list.end())
    fields.list.push_back(field);
  else
    *known = field;
}

// Fields of the bases, the farthest first; each class once.
void add_bases(const Class& type, DataFields& fields, std::vector<const Class*>& seen) {
  fields.are_all &= !type.open;
  for (size_t i = type.bases.size(); i-- > 0;) {
    const Class* base = type.bases[i];
    if (std::find(seen.begin(), seen.end(), base) != seen.end()) continue;
    seen.push_back(base);
    if (!base->fields) {
      fields.are_all &= !base->names.contains("__dataclass_fields__");
      add_bases(*base, fields, seen);
      continue;
    }
    fields.are_all &= base->fields->are_all;
    for (const DataField& field : base->fields->list) add(fields, field);
  }
}

bool has_annotations_inside(const Stmt& statement) {
  const auto any = [](Block block) {
    return std::any_of(block.begin(), block.end(), [](const Stmt* inner) {
      return inner->kind == StmtKind::kAnnotated || has_annotations_inside(*inner);
    });
  };
  if (statement.kind == StmtKind::kFunction || statement.kind == StmtKind::kClass) return false;
  return any(statement.body) || any(statement.orelse) || any(statement.finally) ||
         std::any_of(statement.handlers.begin(), statement.handlers.end(),
                     [&](const Handler& handler) { return any(handler.body); });
}

// What the decorator was told.
struct Told {
  bool is_seen = false;  // it stands there, and what matters of it are constants
  bool makes_init = true;
  bool keyword_only = false;
  bool is_frozen = false;
};
Told told_by(const Stmt& statement) {
  Told told;
  for (const Expr* decorator : statement.decorators) {
    const bool is_call = decorator->kind == ExprKind::kCall;
    if (last_part_of(is_call ? *decorator->items[0] : *decorator) != "dataclass") continue;
    told.is_seen = true;
    for (size_t i = 1; is_call && i < decorator->items.size(); i++) {
      const Expr& argument = *decorator->items[i];
      const ExprKind value =
          argument.kind == ExprKind::kKeyword ? argument.items[0]->kind : ExprKind::kNone;
      const bool is_constant = value == ExprKind::kTrue || value == ExprKind::kFalse;
      const bool matters = argument.kind != ExprKind::kKeyword || argument.text.empty() ||
                           argument.text == "init" || argument.text == "kw_only";
      if (matters && !is_constant) told.is_seen = false;
      if (argument.text == "init") told.makes_init = value != ExprKind::kFalse;
      if (argument.text == "kw_only") told.keyword_only = value == ExprKind::kTrue;
      if (argument.text == "frozen") told.is_frozen = value == ExprKind::kTrue;
    }
  }
  return told;
}

// The class whose generated __init__ runs for instances of `type`.
const DataFields* generated_for(const Class& type, std::vector<const Class*>& seen) {
  if (type.fields && type.fields->is_generated) return type.fields;
  for (const Class* base : type.bases) {
    if (std::find(seen.begin(), seen.end(), base) != seen.end()) continue;
    seen.push_back(base);
    if (const DataFields* found = generated_for(*base, seen)) return found;
  }
  return nullptr;
}

Ref generated_init(Interpreter& in, Ref self, const Arguments& arguments) {
  if (self) {
    auto* instance = as<Instance>(self, Type::kInstance);
    return !instance || in.fill_data_class(instance, arguments) ? in.none() : nullptr;
  }
  // Called by its class: Base.__init__(self, ...).
  auto* instance = as<Instance>(arguments.get(0), Type::kInstance);
  if (!instance) return in.none();
  Arguments rest(in.arena());
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  rest.keywords.assign(arguments.keywords.begin(), arguments.keywords.end());
  rest.open = arguments.open;
  return in.fill_data_class(instance, rest) ? in.none() : nullptr;
}

}  // namespace

// Whether the name means this form of typing or dataclasses, which may have another name there.
bool Interpreter::is_typing(const Class& type, std::string_view annotation, std::string_view form) {
  if (annotation == form) return true;
  Ref value = type.module ? type.module->names.get(annotation) : nullptr;
  if (!value || value->type == Type::kOpaque) return false;
  for (const char* home : {"typing", "dataclasses"})
    if (const auto* module = as<Module>(loaded_module(home), Type::kModule);
        module && module->names.get(form) == value)
      return true;
  return false;
}

void Interpreter::complete_data_class(Class* type, const Stmt& statement, Ref init) {
  auto* fields = make<DataFields>();
  std::vector<const Class*> seen;
  add_bases(*type, *fields, seen);
  const Told told = told_by(statement);
  fields->are_all &= told.is_seen;
  fields->is_generated = told.makes_init && !init;
  fields->is_frozen = told.is_frozen;
  bool keyword_only = told.keyword_only;
  for (const Stmt* inner : statement.body) {
    if (inner->kind != StmtKind::kAnnotated) {
      fields->are_all &= !has_annotations_inside(*inner);
      continue;
    }
    const Expr* target = inner->exprs[0];
    const std::string_view annotation = name_of_annotation(inner->exprs[1]);
    if (target->kind != ExprKind::kName || is_typing(*type, annotation, "ClassVar")) continue;
    if (is_typing(*type, annotation, "KW_ONLY")) {
      keyword_only = true;
      continue;
    }
    DataField field{.name = target->text, .keyword_only = keyword_only};
    field.is_kept = !is_typing(*type, annotation, "InitVar");
    Ref value = type->names.get(target->text);
    auto* written = as<Instance>(value, Type::kInstance);
    if (written && written->of->name == "Field")
      read_field(*written, field);
    else
      field.initial = value;
    add(*fields, field);
  }
  type->fields = fields;
  if (fields->is_generated) init = make<Model>("dataclasses.__init__", generated_init);
  if (init) type->names["__init__"] = init;
}

bool Interpreter::fill_data_class(Instance* instance, const Arguments& arguments) {
  std::vector<const Class*> seen;
  const DataFields* fields = generated_for(*instance->of, seen);
  if (!fields) {
    instance->unseen = true;
    return true;
  }
  const bool is_in_order = fields->are_all && !arguments.open;
  instance->unseen |= !fields->are_all;
  size_t position = 0;
  Arguments for_later(arena_);
  // Those that are told by their names only come behind all others.
  for (const bool keyword_only : {false, true})
    for (const DataField& field : fields->list) {
      if (field.keyword_only != keyword_only) continue;
      Ref value = nullptr;
      if (field.is_parameter) {
        if (is_in_order && !keyword_only && position < arguments.positional.size())
          value = arguments.positional[position++];
        if (!value) value = arguments.get(SIZE_MAX, field.name);
      }
      const bool may_be_told =
          field.is_parameter && !is_in_order && (arguments.open || !arguments.positional.empty());
      if (!value && !may_be_told) {
        value = field.factory ? call(field.factory, {}) : field.initial;
        if (field.factory && !value) return false;
      }
      if (!value) value = opaque_;
      if (field.is_kept)
        instance->names[field.name] = value;
      else
        for_later.positional.push_back(value);
    }
  Ref later = class_attribute(instance->of, "__post_init__");
  return !later || call(bind_method(later, instance, instance->of), for_later);
}

}  // namespace cohabit::python
