// Methods of strings, lists, sets, dictionaries and paths.
#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_set>

#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

// Of text and bytes. Null for all else: who reaches a method through a class calls it on anything,
// and what a builtin type's name makes may be an instance without a value (`bytes((1, 2))`).
const std::string_view* own(Ref self) {
  const bool is = self && (self->type == Type::kStr || self->type == Type::kBytes);
  return is ? &static_cast<Str*>(self)->text : nullptr;
}

// Both "self.method(x)" and "str.method(self, x)".
struct Call {
  Ref self;
  A arguments;
  Call(Ref bound, const A& given) : self(bound), arguments(given) {
    if (!self && !arguments.positional.empty()) {
      self = arguments.positional[0];
      arguments.positional.erase(arguments.positional.begin());
    }
  }
  const std::string_view* text() const { return self ? text_of(self) : nullptr; }
};

std::optional<bool> affix(Ref wanted, std::string_view text, bool start) {
  if (Sequence* several = sequence_of(wanted)) {
    for (Ref item : several->items) {
      const auto one = affix(item, text, start);
      if (!one || *one) return one;
    }
    return false;
  }
  const std::string_view* part = text_of(wanted);
  if (!part) return std::nullopt;
  return start ? text.starts_with(*part) : text.ends_with(*part);
}

template <class F>
Ref transformed(I& in, Ref self, const A& a, F letter) {
  const Call call(self, a);
  if (!call.text()) return in.opaque();
  std::string text(*call.text());
  for (char& c : text) c = static_cast<char>(letter(static_cast<unsigned char>(c)));
  return in.string(std::move(text));
}
Ref str_lower(I& in, Ref self, const A& a) {
  return transformed(in, self, a, [](int c) { return std::tolower(c); });
}
Ref str_upper(I& in, Ref self, const A& a) {
  return transformed(in, self, a, [](int c) { return std::toupper(c); });
}

Ref strip(I& in, Ref self, const A& a, bool left, bool right) {
  const Call call(self, a);
  if (!call.text()) return in.opaque();
  const std::string_view* given = text_of(call.arguments.get(0));
  if (call.arguments.get(0) && !given) return in.opaque();
  const std::string_view letters = given ? *given : " \t\n\r\f\v";
  const std::string_view text = *call.text();
  size_t begin = left ? text.find_first_not_of(letters) : 0;
  if (begin == std::string::npos) return in.string("");
  size_t end = right ? text.find_last_not_of(letters) + 1 : text.size();
  return in.string(end > begin ? text.substr(begin, end - begin) : "");
}
Ref str_strip(I& in, Ref self, const A& a) {
  return strip(in, self, a, true, true);
}
Ref str_lstrip(I& in, Ref self, const A& a) {
  return strip(in, self, a, true, false);
}
Ref str_rstrip(I& in, Ref self, const A& a) {
  return strip(in, self, a, false, true);
}

std::vector<std::string_view> split_text(std::string_view text, const std::string_view* separator,
                                         int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  if (!separator) {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = text.find_first_not_of(" \t\n\r\f\v", at);
      if (begin == std::string::npos) break;
      size_t end = text.find_first_of(" \t\n\r\f\v", begin);
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most) end = text.size();
      if (end == std::string::npos) end = text.size();
      parts.push_back(text.substr(begin, end - begin));
      at = end;
    }
    return parts;
  }
  if (from_right) {
    std::string_view rest = text;
    while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
      const size_t at = rest.rfind(*separator);
      if (at == std::string::npos) break;
      parts.push_back(rest.substr(at + separator->size()));
      rest = rest.substr(0, at);
    }
    parts.push_back(rest);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t at = 0;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t end = text.find(*separator, at);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(at, end - at));
    at = end + separator->size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

Ref split(I& in, Ref self, const A& a, bool from_right) {
  const Call call(self, a);
  Ref given = call.arguments.get(0, "sep");
  const std::string_view* separator = text_of(given);
  if (!call.text() || (given && !separator && given->type != Type::kNone) ||
      (separator && separator->empty()))
    return in.opaque();
  Int* most = as<Int>(call.arguments.get(1, "maxsplit"), Type::kInt);
  auto* result = in.list({});
  for (const std::string_view part :
       split_text(*call.text(), separator, most ? most->value : -1, from_right))
    result->items.push_back(in.constant(part));
  return result;
}
Ref str_split(I& in, Ref self, const A& a) {
  return split(in, self, a, false);
}
Ref str_rsplit(I& in, Ref self, const A& a) {
  return split(in, self, a, true);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
}

// Not of bytes, which know fewer ends of a line.
Ref str_splitlines(I& in, Ref self, const A& a) {
  const std::string_view* text = text_of(self);
  Ref keep = a.get(0, "keepends");
  const auto keeps = keep ? in.truth(keep) : std::optional(false);
  if (!text || !keeps || !is_ascii(*text)) return in.opaque();
  auto* result = in.list({});
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find_first_of("\n\r\v\f\x1c\x1d\x1e", at), text->size());
    size_t next = std::min(end + 1, text->size());
    if (text->substr(end).starts_with("\r\n")) next++;
    result->items.push_back(in.constant(text->substr(at, (*keeps ? next : end) - at)));
    at = next;
  }
  return result;
}

Ref partition(I& in, Ref self, const A& a, bool from_right) {
  const Call call(self, a);
  const std::string_view* separator = text_of(call.arguments.get(0));
  if (!call.text() || !separator || separator->empty()) return in.opaque();
  const std::string_view text = *call.text();
  const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
  std::array<std::string_view, 3> parts;
  if (at == std::string::npos) {
    parts[from_right ? 2 : 0] = text;
  } else {
    parts = {text.substr(0, at), *separator, text.substr(at + separator->size())};
  }
  return in.list({in.constant(parts[0]), in.constant(parts[1]), in.constant(parts[2])},
                 Type::kTuple);
}
Ref str_partition(I& in, Ref self, const A& a) {
  return partition(in, self, a, false);
}
Ref str_rpartition(I& in, Ref self, const A& a) {
  return partition(in, self, a, true);
}

Ref str_join(I& in, Ref self, const A& a) {
  const Call call(self, a);
  const auto items = in.elements(call.arguments.get(0));
  if (!call.text() || !items) return in.opaque();
  Sequence* source = sequence_of(call.arguments.get(0));
  if (source && source->open) return in.opaque();
  std::string result;
  for (size_t i = 0; i < items->size(); i++) {
    const std::string_view* text = text_of((*items)[i]);
    if (!text) return in.opaque();
    if (i) result += *call.text();
    result += *text;
    if (result.size() > I::kMostText) return in.opaque();
  }
  return in.string(std::move(result));
}

Ref str_replace(I& in, Ref self, const A& a) {
  const Call call(self, a);
  const std::string_view *from = text_of(call.arguments.get(0)),
                         *to = text_of(call.arguments.get(1));
  Ref count = call.arguments.get(2, "count");
  const auto* most = as<Int>(count, Type::kInt);
  if (!call.text() || !from || !to || from->empty() || (count && !most)) return in.opaque();
  std::string result;
  const std::string_view text = *call.text();
  size_t at = 0;
  int64_t left = most ? most->value : -1;
  for (size_t found; left != 0 && (found = text.find(*from, at)) != std::string::npos;
       at = found + from->size(), left--) {
    result.append(text.substr(at, found - at)).append(*to);
    if (result.size() > (1 << 20)) return in.opaque();
  }
  return in.string(result.append(text.substr(at)));
}

// The part of the text that `(part, start, end)` means, and where it begins; nothing: not known, or
// not all ASCII, where bytes are not letters.
struct Searched {
  std::string_view part, text;
  size_t begin = 0;
};
std::optional<Searched> searched(const Call& call) {
  const std::string_view* part = text_of(call.arguments.get(0));
  if (!call.text() || !part || !is_ascii(*call.text()) || call.arguments.open) return std::nullopt;
  const auto size = static_cast<int64_t>(call.text()->size());
  std::array<int64_t, 2> bounds = {0, size};
  for (size_t i = 0; i < 2; i++) {
    Ref given = call.arguments.get(i + 1);
    const Int* number = as<Int>(given, Type::kInt);
    if (given && !number && given->type != Type::kNone) return std::nullopt;
    if (!number) continue;
    const int64_t at = number->value < 0 ? number->value + size : number->value;
    bounds[i] = std::clamp(at, int64_t{0}, size);
    if (i == 0 && at > size) return std::nullopt;  // even nothing is not found there
  }
  if (bounds[0] > bounds[1]) return std::nullopt;
  const auto begin = static_cast<size_t>(bounds[0]);
  const auto end = static_cast<size_t>(bounds[1]);
  return Searched{*part, call.text()->substr(begin, end - begin), begin};
}

template <bool start>
Ref str_affix(I& in, Ref self, const A& a) {
  const Call call(self, a);
  Ref wanted = call.arguments.get(0);
  if (!call.text() || !wanted) return in.opaque();
  if (call.arguments.positional.size() == 1) return in.boolean(affix(wanted, *call.text(), start));
  const auto in_text = searched(call);
  return in_text ? in.boolean(affix(wanted, in_text->text, start)) : in.opaque();
}

template <bool from_right, bool must>
Ref str_find(I& in, Ref self, const A& a) {
  const auto in_text = searched(Call(self, a));
  if (!in_text) return in.opaque();
  const size_t at =
      from_right ? in_text->text.rfind(in_text->part) : in_text->text.find(in_text->part);
  if (at != std::string::npos) return in.integer(static_cast<int64_t>(in_text->begin + at));
  if (!must) return in.integer(-1);
  return in.expects("ValueError") ? in.raise("ValueError", "substring not found") : in.opaque();
}

Ref str_count(I& in, Ref self, const A& a) {
  const auto in_text = searched(Call(self, a));
  if (!in_text || in_text->part.empty()) return in.opaque();
  int64_t count = 0;
  for (size_t at = 0; (at = in_text->text.find(in_text->part, at)) != std::string::npos; count++)
    at += in_text->part.size();
  return in.integer(count);
}

// Whether there are letters and all are such; of texts that are not ASCII it is not known.
template <class F>
Ref all_letters(I& in, Ref self, F is) {
  const std::string_view* text = own(self);
  if (!text || !is_ascii(*text)) return in.opaque();
  return in.boolean(!text->empty() && std::all_of(text->begin(), text->end(), [is](char c) {
    return is(static_cast<unsigned char>(c)) != 0;
  }));
}
Ref str_isdigit(I& in, Ref self, const A&) {
  return all_letters(in, self, [](int c) { return std::isdigit(c); });
}
Ref str_isalpha(I& in, Ref self, const A&) {
  return all_letters(in, self, [](int c) { return std::isalpha(c); });
}
Ref str_isalnum(I& in, Ref self, const A&) {
  return all_letters(in, self, [](int c) { return std::isalnum(c); });
}
Ref str_isspace(I& in, Ref self, const A&) {
  return all_letters(in, self, [](int c) { return std::isspace(c); });
}
Ref str_isidentifier(I& in, Ref self, const A&) {
  const std::string_view* text = own(self);
  if (text && !text->empty() && std::isdigit(static_cast<unsigned char>(text->front())))
    return in.boolean(false);
  return all_letters(in, self, [](int c) { return c == '_' || std::isalnum(c); });
}
// Of letters that have two forms one is there, and none of the other.
template <bool upper>
Ref str_has_case(I& in, Ref self, const A&) {
  const std::string_view* text = own(self);
  if (!text || !is_ascii(*text)) return in.opaque();
  const auto is = [](unsigned char c) { return (upper ? std::isupper(c) : std::islower(c)) != 0; };
  const auto is_other = [](unsigned char c) {
    return (upper ? std::islower(c) : std::isupper(c)) != 0;
  };
  return in.boolean(std::any_of(text->begin(), text->end(), is) &&
                    std::none_of(text->begin(), text->end(), is_other));
}

Ref str_capitalize(I& in, Ref self, const A&) {
  const std::string_view* text = own(self);
  if (!text || !is_ascii(*text)) return in.opaque();
  std::string result(*text);
  for (size_t i = 0; i < result.size(); i++) {
    const auto c = static_cast<unsigned char>(result[i]);
    result[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
  }
  return in.string(result);
}

Ref str_removeprefix(I& in, Ref self, const A& a) {
  const std::string_view *text = own(self), *part = text_of(a.get(0));
  if (!text || !part) return in.opaque();
  return in.string(text->starts_with(*part) ? text->substr(part->size()) : *text);
}

Ref str_removesuffix(I& in, Ref self, const A& a) {
  const std::string_view *text = own(self), *part = text_of(a.get(0));
  if (!text || !part) return in.opaque();
  return in.string(text->ends_with(*part) ? text->substr(0, text->size() - part->size()) : *text);
}

// "{} {0} {name}" without format specifications.
Ref str_format(I& in, Ref self, const A& a) {
  const Call call(self, a);
  if (!call.text()) return in.opaque();
  const std::string_view text = *call.text();
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); i++) {
    if ((text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i]) {
      result += text[i++];
      continue;
    }
    if (text[i] != '{') {
      result += text[i];
      continue;
    }
    const size_t end = text.find('}', i);
    if (end == std::string::npos) return in.opaque();
    const std::string field(text.substr(i + 1, end - i - 1));
    const bool number =
        std::all_of(field.begin(), field.end(), [](unsigned char c) { return std::isdigit(c); });
    Ref value = nullptr;
    if (field.empty()) {
      value = call.arguments.get(next++);
    } else if (number && field.size() < 4) {
      value = call.arguments.get(static_cast<size_t>(std::stoi(field)));
    } else {
      value = call.arguments.get(SIZE_MAX, field);
    }
    const auto part = value ? in.display(value) : std::nullopt;
    if (!part) return in.opaque();
    result += *part;
    i = end;
  }
  return in.string(std::move(result));
}

// "%s %d %(name)s"
Ref str_percent(I& in, Ref self, const A& a) {
  if (!own(self)) return in.opaque();
  const std::string_view text = *own(self);
  Ref right = a.get(1);
  Sequence* tuple = as<Sequence>(right, Type::kTuple);
  Dict* dict = as<Dict>(right, Type::kDict);
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (++i >= text.size()) return in.opaque();
    if (text[i] == '%') {
      result += '%';
      continue;
    }
    Ref value = nullptr;
    if (text[i] == '(') {
      const size_t end = text.find(')', i);
      if (end == std::string::npos || !dict) return in.opaque();
      value = in.dict_get(dict, text.substr(i + 1, end - i - 1));
      i = end + 1;
    } else if (tuple) {
      value = next < tuple->items.size() ? tuple->items[next] : nullptr;
      next++;
    } else if (next++ == 0) {
      value = right;
    }
    if (i >= text.size() || (text[i] != 's' && text[i] != 'd' && text[i] != 'i'))
      return in.opaque();
    const auto part = value ? in.display(value) : std::nullopt;
    if (!part) return in.opaque();
    result += *part;
  }
  return in.string(std::move(result));
}

Ref str_encode(I& in, Ref self, const A&) {
  const std::string_view* text = own(self);
  return text ? in.make<Str>(Type::kBytes, *text) : in.opaque();
}
Ref bytes_decode(I& in, Ref self, const A&) {
  const std::string_view* text = own(self);
  return text ? in.constant(*text) : in.opaque();
}

// --- lists and sets

Ref list_append(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  if (list && a.get(0)) in.append(list, a.get(0));
  in.count_effect();
  return in.none();
}

Ref list_extend(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  if (!list) return in.none();
  for (Ref given : a.positional) {
    if (const auto items = in.elements(given)) {
      in.append(list, *items);
    } else {
      list->open = true;
    }
  }
  in.count_effect();
  return in.none();
}

Ref list_insert(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  Int* at = as<Int>(a.get(0), Type::kInt);
  if (list && a.get(1)) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t given = at ? at->value : 0;
    const int64_t place = std::clamp(given < 0 ? given + size : given, int64_t{0}, size);
    list->items.insert(list->items.begin() + static_cast<ptrdiff_t>(place), a.get(1));
  }
  in.count_effect();
  return in.none();
}

// `error`: where it is not there; empty: none.
Ref take_out(I& in, Ref self, const A& a, std::string_view error) {
  Sequence* list = sequence_of(self);
  if (!list || !a.get(0)) return in.none();
  bool sure = !list->open;
  for (size_t i = 0; i < list->items.size(); i++) {
    const auto same = in.equal(list->items[i], a.get(0));
    sure &= same.has_value();
    if (same != std::optional(true)) continue;
    list->items.erase(list->items.begin() + static_cast<ptrdiff_t>(i));
    return in.none();
  }
  if (sure && !error.empty() && in.expects(error)) return in.raise(error, "it is not there");
  return in.none();
}
Ref list_remove(I& in, Ref self, const A& a) {
  return take_out(in, self, a, "ValueError");
}
Ref set_remove(I& in, Ref self, const A& a) {
  return take_out(in, self, a, "KeyError");
}
Ref set_discard(I& in, Ref self, const A& a) {
  return take_out(in, self, a, "");
}

Ref list_pop(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  if (!list || list->open) return in.opaque();
  Ref given = a.get(0);
  const auto* at = as<Int>(given, Type::kInt);
  if (given && !at) return in.opaque();
  const auto size = static_cast<int64_t>(list->items.size());
  int64_t place = at ? at->value : -1;
  if (place < 0) place += size;
  if (place < 0 || place >= size)
    return in.expects("IndexError") ? in.raise("IndexError", "pop index out of range")
                                    : in.opaque();
  Ref value = list->items[static_cast<size_t>(place)];
  list->items.erase(list->items.begin() + static_cast<ptrdiff_t>(place));
  return value;
}

// What a deque has besides: it is kept as a list.
Ref deque_popleft(I& in, Ref self, const A&) {
  return list_pop(in, self, A(in.arena(), {in.integer(0)}));
}
Ref deque_appendleft(I& in, Ref self, const A& a) {
  return list_insert(in, self, A(in.arena(), {in.integer(0), a.get(0) ? a.get(0) : in.opaque()}));
}
// Other items than before, or others in their places.
Ref deque_mix(I& in, Ref self, const A&) {
  Sequence* list = sequence_of(self);
  if (!list) return in.none();
  std::fill(list->items.begin(), list->items.end(), in.opaque());
  list->open = true;
  in.count_effect();
  return in.none();
}

Ref list_copy(I& in, Ref self, const A&) {
  Sequence* list = sequence_of(self);
  if (!list) return in.opaque();
  Sequence* copy = in.list(list->items, list->type);
  copy->open = list->open;
  return copy;
}

constexpr size_t kMostCompared = 1000;  // items of a set that each new one is held against

// Objects with an __eq__ of their own may be one item where they are two here.
void add_to_set(I& in, Sequence* set, Ref item) {
  const auto* instance = as<Instance>(item, Type::kInstance);
  if (instance && !set->items.empty() &&
      (instance->of->fields || instance->of->open || instance->of->decorated ||
       in.class_attribute(instance->of, "__eq__")))
    set->may_lack = true;
  in.append(set, item);
}

struct HashOfKey {
  size_t operator()(Ref key) const { return KeyTraits::hash(key); }
};
struct SameKey {
  bool operator()(Ref a, Ref b) const { return KeyTraits::equal(a, b); }
};

using Keys = std::unordered_set<Ref, HashOfKey, SameKey>;

// Adds what is not known to be in it already; what may be there makes it open.
void unite(I& in, Sequence* set, Ref given) {
  const auto items = in.elements(given);
  const Sequence* source = sequence_of(given);
  set->open |= !items || (source && source->open);
  if (!items) return;
  Keys keys;                // those that are certainly in it
  bool has_others = false;  // which may equal a key
  const auto see = [&](Ref item) {
    if (is_key(item) && !item->doubted)
      keys.insert(item);
    else
      has_others = true;
  };
  std::for_each(set->items.begin(), set->items.end(), see);
  const auto is_there = [&](Ref item) {
    if (!set->may_lack && keys.contains(item)) return true;
    return has_others && set->items.size() <= kMostCompared &&
           in.contains(set, item) == std::optional(true);
  };
  for (Ref item : *items) {
    if (!is_key(item)) {
      set->open = true;  // who knows which it equals
    } else if (!is_there(item)) {
      add_to_set(in, set, item);
      see(item);
    }
  }
}

// What is there already is not added again. What is no key in our sense may be there twice.
Ref set_add(I& in, Ref self, const A& a) {
  Sequence* set = sequence_of(self);
  Ref item = a.get(0);
  const bool is_there = set && item && is_key(item) && set->items.size() <= kMostCompared &&
                        std::any_of(set->items.begin(), set->items.end(), [item](Ref one) {
                          return is_key(one) && KeyTraits::equal(one, item);
                        });
  if (set && item && !is_there) {
    add_to_set(in, set, item);
    in.count_effect();
  }
  return set ? in.none() : list_append(in, self, a);
}

Ref set_update(I& in, Ref self, const A& a) {
  Sequence* set = sequence_of(self);
  if (!set) return in.none();
  Keys keys;
  for (Ref item : set->items)
    if (is_key(item)) keys.insert(item);
  for (Ref given : a.positional) {
    if (given == self) continue;
    const auto items = in.elements(given);
    for (Ref item : items.value_or(std::span<const Ref>()))
      if (!is_key(item) || keys.insert(item).second) add_to_set(in, set, item);
    set->open |= !items || holds_more(given);
  }
  in.count_effect();
  return in.none();
}

// Keeps those that are in what is given, or those that are not.
template <bool inside>
Ref set_keep(I& in, Ref self, const A& a) {
  Sequence* set = sequence_of(self);
  for (Ref given : a.positional) {
    if (!set) break;
    bool sure = true;
    List kept(set->items.get_allocator());
    const std::vector<Ref> items(set->items.begin(), set->items.end());  // it may ask a program
    for (Ref item : items) {
      const auto is_in = in.contains(given, item);
      sure &= is_in.has_value();
      if (is_in != std::optional(!inside)) kept.push_back(item);
    }
    set->items = std::move(kept);
    set->may_lack |= !sure;
  }
  in.count_effect();
  return in.none();
}

Ref set_union(I& in, Ref self, const A& a) {
  const Call call(self, a);
  if (!call.self) return in.opaque();
  Sequence* result = in.list({}, Type::kSet);
  unite(in, result, call.self);
  for (Ref given : call.arguments.positional) unite(in, result, given);
  result->open |= a.open;
  return result;
}

Ref set_issubset(I& in, Ref self, const A& a) {
  const Call call(self, a);
  const Sequence* set = sequence_of(call.self);
  Ref other = call.arguments.get(0);
  return set && other ? in.boolean(is_subset(in, *set, other)) : in.opaque();
}

Ref list_clear(I& in, Ref self, const A&) {
  if (Sequence* list = sequence_of(self)) list->items.clear();
  return in.none();
}

// False: it raised. What is not known to be in order may be anything at each place.
bool sort(I& in, Sequence& sequence, Ref key, Ref reverse) {
  constexpr size_t kMostSorted = 10'000;
  struct Row {
    Ref key, item;
  };
  std::vector<Row> rows;
  for (Ref item : std::vector<Ref>(sequence.items.begin(), sequence.items.end())) {
    const bool has_key = key && key->type != Type::kNone;
    Ref by = has_key ? in.call(key, Arguments(in.arena(), {item})) : item;
    if (!by) return false;
    rows.push_back({by, item});
  }
  const auto reversed = reverse ? in.truth(reverse) : std::optional(false);
  bool sure = reversed && !sequence.open && rows.size() <= kMostSorted;
  // What is equal keeps its order, in both directions.
  if (sure)
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& x, const Row& y) {
      const auto less = *reversed ? in.compare(Operator::kLess, y.key, x.key)
                                  : in.compare(Operator::kLess, x.key, y.key);
      sure &= less.has_value() && !x.key->doubted && !y.key->doubted;
      return less.value_or(false);
    });
  for (size_t i = 0; i < rows.size(); i++)
    sequence.items[i] = sure || rows.size() < 2 ? rows[i].item : in.doubt(rows[i].item);
  return true;
}

Ref list_sort(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  if (!list) return in.none();
  // Its keys are computed by the program's own code, which may look at the list.
  Sequence* sorted = in.list(list->items);
  if (!sort(in, *sorted, a.get(SIZE_MAX, "key"), a.get(SIZE_MAX, "reverse"))) return nullptr;
  list->items.assign(sorted->items.begin(), sorted->items.end());
  in.count_effect();
  return in.none();
}

Ref list_reverse(I& in, Ref self, const A&) {
  if (Sequence* list = sequence_of(self)) std::reverse(list->items.begin(), list->items.end());
  in.count_effect();
  return in.none();
}

Ref list_index(I& in, Ref self, const A& a) {
  Sequence* list = sequence_of(self);
  if (!list || !a.get(0)) return in.opaque();
  for (size_t i = 0; i < list->items.size(); i++) {
    const auto same = in.equal(list->items[i], a.get(0));
    if (!same) return in.opaque();
    if (*same) return in.integer(static_cast<int64_t>(i));
  }
  return in.opaque();
}

// --- dictionaries

Dict* dict_of(Ref self) {
  return as<Dict>(self, Type::kDict);
}

Ref dict_get(I& in, Ref self, const A& a) {
  Dict* dict = dict_of(self);
  if (!dict || !a.get(0)) return in.opaque();
  if (!is_key(a.get(0))) return in.opaque();
  in.observe(dict, a.get(0));
  if (Ref value = I::dict_get(dict, a.get(0))) return value;
  if (dict->open) return in.opaque();
  return a.get(1, "default") ? a.get(1, "default") : in.none();
}

Ref dict_setdefault(I& in, Ref self, const A& a) {
  Dict* dict = dict_of(self);
  if (!dict || !a.get(0)) return in.opaque();
  in.observe(dict, a.get(0));
  if (Ref value = I::dict_get(dict, a.get(0))) return value;
  Ref value = a.get(1) ? a.get(1) : in.none();
  const bool is_new = !dict->open || (dict->variables_of && !dict->variables_of->open);
  if (!is_new) {  // something may be there: what is more than this, if it has items
    open_if_empty(value);
    if (!sequence_of(value) && value->type != Type::kDict) value = in.opaque();
  }
  in.dict_set(dict, a.get(0), value);
  return value;
}

Ref dict_pop(I& in, Ref self, const A& a) {
  Dict* dict = dict_of(self);
  Ref key = a.get(0);
  if (!dict || !key || !is_key(key)) return in.opaque();
  in.observe(dict, key);
  if (Ref value = I::dict_get(dict, key)) {
    in.dict_erase(dict, key);
    return value;
  }
  if (dict->open) return in.opaque();
  if (a.get(1)) return a.get(1);
  return in.expects("KeyError") ? in.raise("KeyError", std::string(in.display(key).value_or("")))
                                : in.opaque();
}

Ref dict_update(I& in, Ref self, const A& a) {
  Dict* dict = dict_of(self);
  if (!dict) return in.none();
  if (a.get(0)) in.dict_update(dict, a.get(0));
  for (const auto& [name, value] : a.keywords) in.dict_set(dict, name, value);
  in.count_effect();
  return in.none();
}

Ref dict_parts(I& in, Ref self, bool keys, bool values) {
  Dict* dict = dict_of(self);
  if (!dict) return in.opaque();
  in.observe_all(dict);
  auto* result = in.list({});
  for (const auto& [key, value] : dict->items) {
    result->items.push_back(keys && values ? in.list({key, value}, Type::kTuple)
                            : keys         ? key
                                           : value);
  }
  result->open = dict->open;
  return result;
}
Ref dict_items(I& in, Ref self, const A&) {
  return dict_parts(in, self, true, true);
}
Ref dict_keys(I& in, Ref self, const A&) {
  return dict_parts(in, self, true, false);
}
Ref dict_values(I& in, Ref self, const A&) {
  return dict_parts(in, self, false, true);
}

Ref dict_copy(I& in, Ref self, const A&) {
  auto* copy = in.make<Dict>();
  if (Dict* dict = dict_of(self)) {
    copy->items = dict->items;
    copy->open = dict->open;
    copy->factory = dict->factory;
    copy->of_environment = dict->of_environment;
  }
  return copy;
}

Ref dict_clear(I& in, Ref self, const A&) {
  Dict* dict = dict_of(self);
  if (!dict) return in.none();
  std::vector<Ref> keys;
  for (const auto& [key, value] : dict->items) keys.push_back(key);
  for (Ref key : keys) in.dict_erase(dict, key);
  if (!dict->variables_of) dict->open = dict->may_lack = false;
  in.count_effect();
  return in.none();
}

Ref dict_popitem(I& in, Ref self, const A&) {
  Dict* dict = dict_of(self);
  Ref last = nullptr;
  if (dict && !dict->open)
    for (const auto& [key, value] : dict->items) last = key;
  if (!last) return in.opaque();
  Ref value = I::dict_get(dict, last);
  in.dict_erase(dict, last);
  return in.list({last, value}, Type::kTuple);
}

// Of a class, whatever it is called on.
Ref dict_fromkeys(I& in, Ref, const A& a) {
  const auto keys = a.get(0) ? in.elements(a.get(0)) : std::nullopt;
  if (!keys) return in.opaque();
  auto* dict = in.make<Dict>();
  for (Ref key : *keys) in.dict_set(dict, key, a.get(1) ? a.get(1) : in.none());
  dict->open |= holds_more(a.get(0));
  return dict;
}

// Fields of sys.version_info.
template <size_t Place>
Ref tuple_field(I& in, Ref self, const A&) {
  Sequence* tuple = sequence_of(self);
  return tuple && Place < tuple->items.size() ? tuple->items[Place] : in.opaque();
}

constexpr ModelRow kRows[] = {
    {"tuple.major()", tuple_field<0>},
    {"tuple.minor()", tuple_field<1>},
    {"tuple.micro()", tuple_field<2>},
    {"str.startswith", str_affix<true>},
    {"str.endswith", str_affix<false>},
    {"str.lower", str_lower},
    {"str.casefold", str_lower},
    {"str.upper", str_upper},
    {"str.strip", str_strip},
    {"str.lstrip", str_lstrip},
    {"str.rstrip", str_rstrip},
    {"str.split", str_split},
    {"str.rsplit", str_rsplit},
    {"str.splitlines", str_splitlines},
    {"str.partition", str_partition},
    {"str.rpartition", str_rpartition},
    {"str.join", str_join},
    {"str.replace", str_replace},
    {"str.find", str_find<false, false>},
    {"str.rfind", str_find<true, false>},
    {"str.index", str_find<false, true>},
    {"str.rindex", str_find<true, true>},
    {"str.count", str_count},
    {"str.isdigit", str_isdigit},
    {"str.isdecimal", str_isdigit},
    {"str.isnumeric", str_isdigit},
    {"str.isalpha", str_isalpha},
    {"str.isalnum", str_isalnum},
    {"str.isspace", str_isspace},
    {"str.isidentifier", str_isidentifier},
    {"str.isupper", str_has_case<true>},
    {"str.islower", str_has_case<false>},
    {"str.capitalize", str_capitalize},
    {"str.removeprefix", str_removeprefix},
    {"str.removesuffix", str_removesuffix},
    {"str.format", str_format},
    {"str.__mod__", str_percent},
    {"str.encode", str_encode},
    {"bytes.decode", bytes_decode},
    {"list.append", list_append},
    {"list.extend", list_extend},
    {"list.insert", list_insert},
    {"list.remove", list_remove},
    {"list.pop", list_pop},
    {"list.copy", list_copy},
    {"list.clear", list_clear},
    {"list.sort", list_sort},
    {"list.reverse", list_reverse},
    {"list.index", list_index},
    {"tuple.index", list_index},
    {"list.popleft", deque_popleft},
    {"list.appendleft", deque_appendleft},
    {"list.extendleft", deque_mix},
    {"list.rotate", deque_mix},
    {"set.add", set_add},
    {"set.update", set_update},
    {"set.discard", set_discard},
    {"set.remove", set_remove},
    {"set.clear", list_clear},
    {"set.intersection_update", set_keep<true>},
    {"set.difference_update", set_keep<false>},
    {"set.copy", list_copy},
    {"set.issubset", set_issubset},
    {"set.union", set_union},
    {"dict.get", dict_get},
    {"dict.setdefault", dict_setdefault},
    {"dict.pop", dict_pop},
    {"dict.update", dict_update},
    {"dict.items", dict_items},
    {"dict.keys", dict_keys},
    {"dict.values", dict_values},
    {"dict.copy", dict_copy},
    {"dict.clear", dict_clear},
    {"dict.popitem", dict_popitem},
    {"dict.fromkeys", dict_fromkeys},
};

}  // namespace

std::span<const ModelRow> value_models() {
  return kRows;
}

std::optional<bool> is_subset(Interpreter& in, const Sequence& set, Ref whole) {
  bool sure = !set.open;
  for (Ref item : set.items) {
    const auto is_in = in.contains(whole, item);
    if (is_in == std::optional(false)) return false;
    sure &= is_in.has_value();
  }
  return sure ? std::optional(true) : std::nullopt;
}

}  // namespace cohabit::python
