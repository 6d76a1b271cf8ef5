// Regular expressions of `re`, where pattern and text are known and RE2 reads the pattern as Python
// does. What differs is left open: texts that are not printable ASCII (\w and \s know more
// characters, `$` stands before a newline too, and so has re.MULTILINE no meaning), lookaround and
// references back, which RE2 refuses, `{,n}`.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "imports/models.h"

namespace cohabit::python {
namespace {

using A = Arguments;
using I = Interpreter;

constexpr size_t kMostScanned = 1 << 20;  // bytes of text in the searches of one call
constexpr size_t kMostPattern = 4096, kMostText = 64 << 10, kMostKept = 512, kMostGroups = 32;
constexpr std::string_view kGroups = "(groups)", kIndexes = "(indexes)";  // no attribute's names

// Values of flags (Lib/re/_constants.py) that mean something here, and of those that do not.
constexpr int64_t kIgnoreCase = 2, kVerbose = 64, kNoMeaning = 8 | 16 | 32 | 256;

constexpr std::string_view kLookaround[] = {"(?=", "(?!", "(?<=", "(?<!"};

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
}

// How long the beginning of a set is: a bracket that stands first is one of it ("[^]").
size_t set_begins(std::string_view set) {
  size_t length = 1;
  if (set.substr(length).starts_with('^')) length++;
  if (set.substr(length).starts_with(']')) length++;
  return length;
}

// `\Z` of Python is `\z` of RE2. With re.VERBOSE space and comments outside of sets are left out.
std::string translated(std::string_view pattern, int64_t flags) {
  std::string result = flags & kIgnoreCase ? "(?i)" : "";
  bool in_set = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    const char c = pattern[i];
    if ((flags & kVerbose) && !in_set) {
      if (c == '#') i = std::min(pattern.find('\n', i), pattern.size());
      if (c == '#' || (c >= '\t' && c <= '\r') || c == ' ') continue;
    }
    result += c;
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      result += next == 'Z' ? 'z' : next;
    } else if (c == '[' && !in_set) {
      in_set = true;
      const size_t begins = set_begins(pattern.substr(i));
      result += pattern.substr(i + 1, begins - 1);
      i += begins - 1;
    } else if (c == ']') {
      in_set = false;
    }
  }
  return result;
}

// Whether a part of it is another thing to RE2 than to Python, or an error to one of them.
bool reads_otherwise(std::string_view pattern) {
  // A group that may be empty, repeated, keeps another text.
  for (const std::string_view part :
       {"{,", "[:", "(?U", "(?<", "*)*", "*)+", "?)*", "?)+", "(|", "|)"})
    if (pattern.find(part) != pattern.npos) return true;
  for (size_t i = 0; i + 1 < pattern.size(); i++) {
    if (pattern[i] != '\\') continue;
    i++;
    if (std::string_view("QEpPCBz").find(pattern[i]) != std::string_view::npos) return true;
  }
  return false;
}

// Null: it may mean something else to Python.
const RE2* compiled(std::string_view python, int64_t flags) {
  if (python.size() > kMostPattern || flags & ~(kIgnoreCase | kVerbose | kNoMeaning))
    return nullptr;
  if (reads_otherwise(python)) return nullptr;
  const std::string pattern = translated(python, flags);
  if (!is_plain(pattern)) return nullptr;
  // Code that is run for several plans at once keeps its own.
  thread_local std::unordered_map<std::string, std::unique_ptr<RE2>> kept;
  auto place = kept.find(pattern);
  if (place == kept.end()) {
    if (kept.size() >= kMostKept) kept.clear();
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(1 << 20);
    place = kept.emplace(pattern, std::make_unique<RE2>(pattern, options)).first;
  }
  const RE2& made = *place->second;
  const bool is_usable =
      made.ok() && static_cast<size_t>(made.NumberOfCapturingGroups()) < kMostGroups;
  return is_usable ? &made : nullptr;
}

// Without what only looks ahead or behind: it fits whatever the pattern itself does, and more.
std::string without_lookaround(std::string_view pattern) {
  std::string result;
  bool in_set = false;
  int left_out = 0;  // brackets that are open in what is left out
  for (size_t i = 0; i < pattern.size(); i++) {
    const std::string_view rest = pattern.substr(i);
    const bool starts = !in_set && std::any_of(std::begin(kLookaround), std::end(kLookaround),
                                               [rest](auto one) { return rest.starts_with(one); });
    const bool opens_set = rest[0] == '[' && !in_set;
    const size_t length = rest[0] == '\\' ? std::min<size_t>(2, rest.size())
                          : opens_set     ? set_begins(rest)
                                          : 1;
    if (!in_set && (starts || (left_out > 0 && rest[0] == '('))) left_out++;
    if (left_out == 0) result += rest.substr(0, length);
    if (opens_set)
      in_set = true;
    else if (rest[0] == ']')
      in_set = false;
    else if (rest[0] == ')' && !in_set && left_out > 0)
      left_out--;
    i += length - 1;
  }
  return result;
}

Instance* pattern_in(Ref value) {
  auto* instance = as<Instance>(value, Type::kInstance);
  return instance && instance->of->name == "Pattern" ? instance : nullptr;
}

// A pattern that re.compile was given, or a text with flags.
const RE2* pattern_of(Ref value, Ref flags, bool wider) {
  if (Instance* known = pattern_in(value)) {
    value = known->names.get("pattern");
    flags = known->names.get("flags");
  }
  const auto* text = as<Str>(value, Type::kStr);
  const auto* number = as<Int>(flags, Type::kInt);
  if (!text || (flags && !number)) return nullptr;
  const int64_t bits = number ? number->value : 0;
  return wider ? compiled(without_lookaround(text->text), bits) : compiled(text->text, bits);
}

struct Call {
  const RE2* pattern = nullptr;
  std::string_view text;
};
using Groups = std::vector<re2::StringPiece>;  // the whole first

// Of `re.match(pattern, text, flags=0)`, and of `pattern.match(text)`: self is the pattern then.
// The text is the last of `count` arguments. Nothing: not known. `wider`: what the pattern looks
// for around itself is left out.
std::optional<Call> read_call(Ref self, const A& a, size_t count, bool wider = false) {
  const bool is_method = pattern_in(self) != nullptr;
  const size_t shift = is_method ? 0 : 1, text = count - 1;
  Ref flags = nullptr;
  for (const auto& [name, value] : a.keywords) {
    if (name != "flags" || is_method) return std::nullopt;
    flags = value;
  }
  // Behind the text others have the flags, re.sub and re.split have a count before them.
  const bool has_flags = !is_method && count == 1 && a.positional.size() == 3 && !flags;
  if (has_flags) flags = a.positional[2];
  if (a.open || a.positional.size() != count + shift + (has_flags ? 1 : 0)) return std::nullopt;
  const auto* given = as<Str>(a.get(text + shift), Type::kStr);
  if (!given || given->text.size() > kMostText || !is_plain(given->text)) return std::nullopt;
  const RE2* pattern = pattern_of(is_method ? self : a.get(0), flags, wider);
  return pattern ? std::optional(Call{pattern, given->text}) : std::nullopt;
}

Ref group_value(I& in, const re2::StringPiece& group) {
  return group.data() ? in.constant({group.data(), group.size()}) : in.none();
}

Ref make_match(I& in, const Call& call, const Groups& groups) {
  Instance* result = in.instance_of("Match");
  Sequence* all = in.list({}, Type::kTuple);
  for (const re2::StringPiece& group : groups) all->items.push_back(group_value(in, group));
  auto* indexes = in.make<Dict>();
  for (const auto& [name, index] : call.pattern->NamedCapturingGroups())
    in.dict_set(indexes, in.keep(name), in.integer(index));
  result->names[kGroups] = all;
  result->names[kIndexes] = indexes;
  result->names["string"] = in.constant(call.text);
  result->is_true = result->open = true;
  return result;
}

Ref match(I& in, Ref self, const A& a, RE2::Anchor anchor) {
  auto call = read_call(self, a, 1);
  const bool is_wider = !call.has_value();
  if (is_wider) call = read_call(self, a, 1, true);
  if (!call) return in.opaque();
  const int count = call->pattern->NumberOfCapturingGroups() + 1;
  Groups groups(static_cast<size_t>(count));
  const re2::StringPiece text(call->text.data(), call->text.size());
  if (!call->pattern->Match(text, 0, text.size(), anchor, groups.data(), count)) return in.none();
  return is_wider ? in.opaque() : make_match(in, *call, groups);
}

Ref re_match(I& in, Ref self, const A& a) {
  return match(in, self, a, RE2::ANCHOR_START);
}
Ref re_fullmatch(I& in, Ref self, const A& a) {
  return match(in, self, a, RE2::ANCHOR_BOTH);
}
Ref re_search(I& in, Ref self, const A& a) {
  return match(in, self, a, RE2::UNANCHORED);
}

Ref re_compile(I& in, Ref, const A& a) {
  if (Instance* known = pattern_in(a.get(0))) return known;
  const auto* text = as<Str>(a.get(0, "pattern"), Type::kStr);
  Ref flags = a.get(1, "flags");
  if (!text || a.open) return in.opaque();
  Instance* result = in.instance_of("Pattern");
  result->names["flags"] = flags ? flags : in.integer(0);
  result->names["pattern"] = in.constant(text->text);
  result->is_true = result->open = true;
  return result;
}

// A call, and all places that it finds, none of which is empty.
struct Found {
  Call call;
  std::vector<Groups> places;
};

// Nothing: not known.
std::optional<Found> find_all(const std::optional<Call>& given) {
  if (!given) return std::nullopt;
  const Call& call = *given;
  const int count = call.pattern->NumberOfCapturingGroups() + 1;
  Found found{call, {}};
  const re2::StringPiece text(call.text.data(), call.text.size());
  size_t scanned = 0;
  for (size_t at = 0; at <= text.size();) {
    scanned += text.size() - at;
    if (scanned > kMostScanned) return std::nullopt;
    Groups groups(static_cast<size_t>(count));
    if (!call.pattern->Match(text, at, text.size(), RE2::UNANCHORED, groups.data(), count)) break;
    if (groups[0].empty()) return std::nullopt;
    at = static_cast<size_t>(groups[0].data() - text.data()) + groups[0].size();
    found.places.push_back(std::move(groups));
  }
  return found;
}

Ref re_findall(I& in, Ref self, const A& a) {
  const auto found = find_all(read_call(self, a, 1));
  if (!found) return in.opaque();
  Sequence* result = in.list({});
  for (const Groups& groups : found->places) {
    const auto text = [&](size_t i) {
      return groups[i].data() ? group_value(in, groups[i]) : in.string("");
    };
    if (groups.size() <= 2) {
      in.append(result, text(groups.size() - 1));
      continue;
    }
    Sequence* row = in.list({}, Type::kTuple);
    for (size_t i = 1; i < groups.size(); i++) row->items.push_back(text(i));
    in.append(result, row);
  }
  return result;
}

Ref re_finditer(I& in, Ref self, const A& a) {
  const auto found = find_all(read_call(self, a, 1));
  if (!found) return in.opaque();
  Sequence* result = in.list({});
  for (const Groups& groups : found->places) in.append(result, make_match(in, found->call, groups));
  return in.iterator_over(result);
}

// The pieces between, with the groups of what stands between them.
Ref re_split(I& in, Ref self, const A& a) {
  const auto found = find_all(a.positional.size() < 3 ? read_call(self, a, 1) : std::nullopt);
  if (!found) return in.opaque();
  Sequence* result = in.list({});
  const std::string_view text = found->call.text;
  size_t at = 0;
  for (const Groups& groups : found->places) {
    const auto begin = static_cast<size_t>(groups[0].data() - text.data());
    in.append(result, in.constant(text.substr(at, begin - at)));
    for (size_t i = 1; i < groups.size(); i++) in.append(result, group_value(in, groups[i]));
    at = begin + groups[0].size();
  }
  in.append(result, in.constant(text.substr(at)));
  return result;
}

// By a text without references to groups.
Ref re_sub(I& in, Ref self, const A& a) {
  const auto found = find_all(read_call(self, a, 2));
  const auto* by = found ? as<Str>(a.get(a.positional.size() - 2), Type::kStr) : nullptr;
  if (!by || by->text.find('\\') != by->text.npos) return in.opaque();
  std::string result;
  const std::string_view text = found->call.text;
  size_t at = 0;
  for (const Groups& groups : found->places) {
    const auto begin = static_cast<size_t>(groups[0].data() - text.data());
    result.append(text.substr(at, begin - at)).append(by->text);
    at = begin + groups[0].size();
    if (result.size() > I::kMostText) return in.opaque();
  }
  return in.string(result.append(text.substr(at)));
}

// The characters are those of CPython's re.escape since 3.7.
Ref re_escape(I& in, Ref, const A& a) {
  const auto* text = as<Str>(a.get(0, "pattern"), Type::kStr);
  if (!text) return in.opaque();
  std::string result;
  for (const char c : text->text) {
    if (std::string_view("()[]{}?*+-|^$\\.&~# \t\n\r\v\f").find(c) != std::string_view::npos)
      result += '\\';
    result += c;
  }
  return in.string(result);
}

Sequence* groups_of(Ref self) {
  auto* match = as<Instance>(self, Type::kInstance);
  return match ? sequence_of(match->names.get(kGroups)) : nullptr;
}

// By number or name; null: not known.
Ref group_by(Ref self, Ref key) {
  Sequence* groups = groups_of(self);
  if (!groups) return nullptr;
  if (key && key->type == Type::kStr)
    key = I::dict_get(static_cast<Dict*>(static_cast<Instance*>(self)->names.get(kIndexes)), key);
  const auto* index = as<Int>(key, Type::kInt);
  if (!index || index->value < 0 || static_cast<size_t>(index->value) >= groups->items.size())
    return nullptr;
  return groups->items[static_cast<size_t>(index->value)];
}

Ref match_group(I& in, Ref self, const A& a) {
  if (a.open || !groups_of(self)) return in.opaque();
  if (a.positional.empty()) return groups_of(self)->items[0];
  Sequence* several = in.list({}, Type::kTuple);
  for (Ref key : a.positional) {
    Ref group = group_by(self, key);
    several->items.push_back(group ? group : in.opaque());
  }
  return several->items.size() == 1 ? several->items[0] : several;
}

Ref match_groups(I& in, Ref self, const A& a) {
  Sequence* groups = groups_of(self);
  if (!groups) return in.opaque();
  Sequence* result = in.list(std::span<const Ref>(groups->items).subspan(1), Type::kTuple);
  for (Ref& group : result->items)
    if (group->type == Type::kNone && a.get(0, "default")) group = a.get(0, "default");
  return result;
}

Ref match_groupdict(I& in, Ref self, const A& a) {
  if (!groups_of(self)) return in.opaque();
  auto* result = in.make<Dict>();
  auto* indexes = static_cast<Dict*>(static_cast<Instance*>(self)->names.get(kIndexes));
  for (const auto& [name, index] : indexes->items) {
    Ref group = group_by(self, index);
    const bool is_absent = group && group->type == Type::kNone && a.get(0, "default");
    in.dict_set(result, name, is_absent ? a.get(0, "default") : group ? group : in.opaque());
  }
  return result;
}

constexpr ModelRow kRows[] = {
    {"re.compile", re_compile},
    {"re.escape", re_escape},
    {"re.match", re_match},
    {"re.fullmatch", re_fullmatch},
    {"re.search", re_search},
    {"re.findall", re_findall},
    {"re.finditer", re_finditer},
    {"re.split", re_split},
    {"re.sub", re_sub},
    {"Pattern.match", re_match},
    {"Pattern.fullmatch", re_fullmatch},
    {"Pattern.search", re_search},
    {"Pattern.findall", re_findall},
    {"Pattern.finditer", re_finditer},
    {"Pattern.split", re_split},
    {"Pattern.sub", re_sub},
    {"Match.group", match_group},
    {"Match.__getitem__", match_group},
    {"Match.groups", match_groups},
    {"Match.groupdict", match_groupdict},
};

}  // namespace

std::span<const ModelRow> pattern_models() {
  return kRows;
}

}  // namespace cohabit::python
