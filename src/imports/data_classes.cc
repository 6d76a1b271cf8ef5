// Instances of classes that `dataclasses.dataclass` was asked to complete.
//
// It writes their __init__ as text and runs that by exec, which is not followed. What it does
// stands in the class: fields are annotated names, those of the bases first, and what is not told
// is the default or what default_factory makes (Lib/dataclasses.py, _process_class and _init_fn).
#include <algorithm>

#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

constexpr int kMostBases = 30;  // levels

struct Field {
  std::string_view name;
  Ref initial = nullptr;  // null: none is known
  Ref factory = nullptr;
  bool is_parameter = true;
  bool keyword_only = false;
  bool is_kept = true;  // not an InitVar, which only __post_init__ gets
};

struct Fields {
  std::vector<Field> list;
  bool are_all = true;  // nothing of a base is unknown
};

// "ClassVar" of typing.ClassVar[int], and of the same as a string.
std::string_view name_of_annotation(const Expr* annotation) {
  if (!annotation) return {};
  switch (annotation->kind) {
    case ExprKind::kSubscript:
      return name_of_annotation(annotation->items[0]);
    case ExprKind::kName:
    case ExprKind::kAttribute:
      return annotation->text;
    case ExprKind::kString: {
      const std::string_view whole = annotation->text.substr(0, annotation->text.find('['));
      return whole.substr(whole.rfind('.') + 1);
    }
    default:
      return {};
  }
}

bool is_missing(Ref value) {
  const auto* instance = as<Instance>(value, Type::kInstance);
  return instance && instance->of->name == "_MISSING_TYPE";
}

// What `field(...)` says.
void read_field(Instance& written, Field& field) {
  const auto part = [&](std::string_view name) {
    Ref value = written.names.get(name);
    return is_missing(value) ? nullptr : value;
  };
  field.initial = part("default");
  field.factory = part("default_factory");
  const auto* parameter = as<Int>(written.names.get("init"), Type::kBool);
  field.is_parameter = !parameter || parameter->value != 0;
  const auto* keyword_only = as<Int>(written.names.get("kw_only"), Type::kBool);
  field.keyword_only |= keyword_only && keyword_only->value != 0;
}

void add(Fields& fields, const Field& field) {
  const auto known = std::find_if(fields.list.begin(), fields.list.end(),
                                  [&](const Field& one) { return one.name == field.name; });
  if (known == fields.list.end())
    fields.list.push_back(field);
  else
    *known = field;
}

bool is_completed(const Class& type) {
  return type.statement && type.names.contains("__dataclass_fields__");
}

void collect(const Class& type, Fields& fields, int depth = 0) {
  if (depth > kMostBases || type.open) {
    fields.are_all = false;
    if (depth > kMostBases) return;
  }
  for (size_t i = type.bases.size(); i-- > 0;) collect(*type.bases[i], fields, depth + 1);
  if (!is_completed(type)) return;
  bool keyword_only = false;
  for (const Stmt* statement : type.statement->body) {
    if (statement->kind != StmtKind::kAnnotated) continue;
    const Expr* target = statement->exprs[0];
    const std::string_view annotation = name_of_annotation(statement->exprs[1]);
    if (target->kind != ExprKind::kName || annotation == "ClassVar") continue;
    if (annotation == "KW_ONLY") {
      keyword_only = true;
      continue;
    }
    Field field{.name = target->text, .keyword_only = keyword_only};
    field.is_kept = annotation != "InitVar";
    Ref value = type.names.get(target->text);
    auto* written = as<Instance>(value, Type::kInstance);
    if (written && written->of->name == "Field")
      read_field(*written, field);
    else
      field.initial = value;
    add(fields, field);
  }
}

}  // namespace

// The class whose generated __init__ makes instances of `type`; null: they are made otherwise.
const Class* Interpreter::data_class(Class* type) const {
  const Class* at = type;
  for (int depth = 0; depth < kMostBases; depth++) {
    if (as<Function>(at->names.get("__init__"), Type::kFunction)) return nullptr;
    if (is_completed(*at)) return at;
    if (at->bases.size() != 1) return nullptr;
    at = at->bases[0];
  }
  return nullptr;
}

bool Interpreter::fill_data_class(Instance* instance, const Class& type,
                                  const Arguments& arguments) {
  Fields fields;
  collect(type, fields);
  std::stable_partition(fields.list.begin(), fields.list.end(),
                        [](const Field& field) { return !field.keyword_only; });
  size_t position = 0;
  Arguments for_later(arena_);
  for (const Field& field : fields.list) {
    const bool is_told = field.is_parameter && !field.keyword_only && fields.are_all &&
                         position < arguments.positional.size();
    Ref value = is_told ? arguments.positional[position++] : nullptr;
    if (!value && field.is_parameter) value = arguments.get(SIZE_MAX, field.name);
    const bool may_be_told = arguments.open || (!fields.are_all && !arguments.positional.empty());
    if (!value && !(field.is_parameter && may_be_told)) {
      value = field.factory ? call(field.factory, {}) : field.initial;
      if (field.factory && !value) return false;
    }
    if (!value) value = opaque_;
    if (field.is_kept)
      instance->names[field.name] = value;
    else
      for_later.positional.push_back(value);
  }
  instance->open |= !fields.are_all;
  Ref later = class_attribute(instance->of, "__post_init__");
  return !later || call(bind_method(later, instance, instance->of), for_later);
}

}  // namespace cohabit::python
