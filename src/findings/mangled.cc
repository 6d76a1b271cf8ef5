#include "findings/mangled.h"

#include <cxxabi.h>

#include <cstdlib>
#include <optional>

namespace cohabit {
namespace {

constexpr int kMaxDepth = 200;  // nested template arguments of a hostile name

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// Walks over the parts of a mangled name. A part it cannot read makes it fail, never guess.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  std::string_view since(size_t start) const { return text_.substr(start, at_ - start); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void skip(size_t count) { at_ = std::min(at_ + count, text_.size()); }

  bool source_name() {
    size_t length = 0;
    if (!is_digit(peek())) return false;
    while (is_digit(peek()) && length < text_.size()) length = length * 10 + (text_[at_++] - '0');
    if (length == 0 || length > text_.size() - at_) return false;
    at_ += length;
    return abi_tags();
  }

  // S_, S0_, St, Sa, ...
  bool substitution() {
    if (!take("S")) return false;
    if (is_lower(peek())) {
      skip(1);
      return true;
    }
    while (is_digit(peek()) || is_upper(peek())) skip(1);
    return take("_");
  }

  bool template_arguments() {
    if (!take("I")) return false;
    return until_end();
  }

  // Everything up to the E that closes what was just opened.
  bool until_end() {
    if (++depth_ > kMaxDepth) return false;
    while (!take("E"))
      if (!any_part()) return false;
    depth_--;
    return true;
  }

  bool operator_name() {  // two letters, or cv <type>, or li/v<digit> <source-name>
    if (!is_lower(peek())) return false;
    if (take("cv")) return type();
    if (take("li")) return source_name();
    if (peek() == 'v' && is_digit(peek(1))) {
      skip(2);
      return source_name();
    }
    if (!is_lower(peek(1)) && !is_upper(peek(1))) return false;
    skip(2);
    return abi_tags();
  }

  bool type() {
    while (true) {
      if (take("K") || take("P") || take("R") || take("O") || take("V") || take("r") || take("G") ||
          take("C"))
        continue;
      break;
    }
    return any_part();
  }

 private:
  bool abi_tags() {
    while (peek() == 'B' && is_digit(peek(1))) {
      skip(1);
      if (!source_name()) return false;
    }
    return true;
  }

  bool literal() {  // L <type> <value> E, or L_Z <encoding> E
    if (take("_Z")) return until_end();
    if (is_lower(peek())) {
      skip(1);
    } else if (!type()) {
      return false;
    }
    const size_t end = text_.find('E', at_);
    if (end == std::string_view::npos) return false;
    at_ = end + 1;
    return true;
  }

  bool d_part() {  // Dp, Dn, DT..E, Dt..E, Da, ...
    skip(1);
    const char c = peek();
    skip(1);
    return c == 'T' || c == 't' ? until_end() : c != '\0';
  }

  // One part of a type, an argument list or an expression.
  bool any_part() {
    const char c = peek();
    if (c == '\0') return false;
    if (is_digit(c)) return source_name();
    switch (c) {
      case 'S':
        return substitution();
      case 'L':
        skip(1);
        return literal();
      case 'D':
        return d_part();
      case 'I':
      case 'J':
      case 'N':
      case 'X':
      case 'F':
      case 'Z':
        skip(1);
        return until_end();
      case 'A':  // array: A <number> _ or A <expression> _
        skip(1);
        while (is_digit(peek())) skip(1);
        take("_");
        return true;
      case 'T':  // T_, T0_
        skip(1);
        while (is_digit(peek()) || is_upper(peek())) skip(1);
        return take("_");
      default:
        skip(1);
        return true;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

void take_qualifiers(Walker& walker, MangledName& name) {
  while (true) {
    if (walker.take("K")) {
      name.const_member = true;
    } else if (!walker.take("r") && !walker.take("V") && !walker.take("R") && !walker.take("O")) {
      return;
    }
  }
}

// One component of a nested name, template arguments included.
bool component(Walker& walker, MangledName& name, bool first) {
  name.constructor = name.destructor = false;
  walker.take("L");  // internal linkage
  if (walker.peek() == 'S') {
    if (!first || !walker.substitution()) return false;
    name.standard = true;
    if (walker.peek() == 'B') return false;
  } else if (walker.peek() == 'C' && (is_digit(walker.peek(1)) || walker.peek(1) == 'I')) {
    name.constructor = true;
    walker.skip(walker.peek(1) == 'I' ? 3 : 2);
  } else if (walker.peek() == 'D' && is_digit(walker.peek(1))) {
    name.destructor = true;
    walker.skip(2);
  } else if (walker.peek() == 'U' ||
             walker.peek() == 'D') {  // NOLINT(bugprone-branch-clone): another reason
    return false;                     // closures, decltype: no family to speak of
  } else if (!walker.source_name() && !walker.operator_name()) {
    return false;
  }
  while (walker.peek() == 'B') {
    walker.skip(1);
    if (!walker.source_name()) return false;
  }
  return walker.peek() != 'I' || walker.template_arguments();
}

struct Components {
  std::string_view first, second, last;
  size_t count = 0;
  size_t begin = 0;
  size_t last_begin = 0;

  void add(std::string_view part) {
    if (count == 0) first = part;
    if (count == 1) second = part;
    last = part;
    count++;
  }
};

std::optional<Components> nested_name(Walker& walker, MangledName& name) {
  take_qualifiers(walker, name);
  Components result;
  result.begin = walker.position();
  while (!walker.take("E")) {
    result.last_begin = walker.position();
    if (!component(walker, name, result.count == 0)) return std::nullopt;
    result.add(walker.since(result.last_begin));
  }
  if (result.count == 0) return std::nullopt;
  return result;
}

std::optional<Components> any_name(Walker& walker, MangledName& name) {
  while (walker.take("Z")) {  // a local thing belongs to the scope of its function
  }
  if (walker.take("N")) return nested_name(walker, name);
  Components result;
  result.begin = walker.position();
  if (walker.take("St")) {
    name.standard = true;
    result.add(walker.since(result.begin));
  }
  result.last_begin = walker.position();
  if (!component(walker, name, result.count == 0)) return std::nullopt;
  result.add(walker.since(result.last_begin));
  return result;
}

NameKind special_kind(Walker& walker) {
  if (walker.take("TV") || walker.take("TT") || walker.take("TC")) return NameKind::kVtable;
  if (walker.take("TI") || walker.take("TS")) return NameKind::kTypeInfo;
  if (walker.take("GTt") || walker.take("GTn") || walker.take("GV") || walker.take("GR"))
    return NameKind::kOther;
  if (walker.take("Th") || walker.take("Tv") || walker.take("Tc")) {
    while (is_digit(walker.peek()) || walker.peek() == 'n' || walker.peek() == '_' ||
           walker.peek() == 'h' || walker.peek() == 'v')
      walker.skip(1);
    return NameKind::kThunk;
  }
  return NameKind::kEntity;
}

}  // namespace

MangledName parse_mangled(std::string_view symbol) {
  MangledName name;
  if (symbol.substr(0, 2) != "_Z") return name;
  const std::string_view body = symbol.substr(2);
  Walker walker(body);
  const NameKind kind = special_kind(walker);
  const auto components = any_name(walker, name);
  if (!components) return MangledName();
  name.kind = kind;
  size_t scopes = components->count;
  const size_t end = components->last_begin + components->last.size();
  if (kind == NameKind::kVtable || kind == NameKind::kTypeInfo) {
    // The table of a class is a member of it.
    name.scope = body.substr(components->begin, end - components->begin);
    name.constructor = name.destructor = false;
  } else {
    name.last = components->last;
    scopes--;
    name.scope = body.substr(components->begin, components->last_begin - components->begin);
  }
  if (scopes > 0) name.first = components->first;
  if (scopes > 1) name.second = components->second;
  return name;
}

namespace {

// From the start of one part of a symbol to the end of a later part.
std::string_view stretch(std::string_view first, std::string_view last) {
  const char* begin = first.data();             // NOLINT(bugprone-suspicious-stringview-data-usage)
  const char* end = last.data() + last.size();  // NOLINT(bugprone-suspicious-stringview-data-usage)
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view family_text(const MangledName& name) {
  if (!name.is_cpp() || name.first.empty()) return {};
  if (name.standard && name.second.empty() && name.first == "St")  // St8terminatev
    return stretch(name.first, name.last);
  if (name.second.empty()) return name.first;
  return stretch(name.first, name.second);
}

std::string demangle(std::string_view symbol) {
  std::string text(symbol);
  int status = 0;
  char* readable = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (status != 0 || !readable) return text;
  std::string result = readable;
  std::free(readable);  // NOLINT: __cxa_demangle allocates with malloc
  return result;
}

std::string readable_scope(std::string_view family) {
  // A scope is demangled as the name of a made-up member, whose name is then cut off.
  const std::string made_up = "_ZN" + std::string(family) + "1xE";
  const std::string readable = demangle(made_up);
  if (readable == made_up || readable.size() < 3) return std::string(family);
  return readable.substr(0, readable.size() - 3);
}

}  // namespace cohabit
