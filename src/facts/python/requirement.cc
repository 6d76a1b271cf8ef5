// The grammar of PEP 508, by recursive descent. Markers nest, so the depth is bounded. A marker
// that cannot be decided does not apply: a requirement that we do not understand is no reason to
// complain.
#include "facts/python/requirement.h"

#include <algorithm>
#include <array>

namespace cohabit {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxLength = 16 << 10;
constexpr uint16_t kX86_64 = 62, kAArch64 = 183;  // e_machine

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

std::string_view strip(std::string_view text) {
  while (!text.empty() && (is_blank(text.front()) || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// ---- markers

class MarkerReader {
 public:
  MarkerReader(std::string_view text, const MarkerEnvironment& environment, std::string_view extra)
      : rest_(text), environment_(environment), extra_(extra) {}

  std::optional<bool> read() {
    const bool value = read_or(0);
    skip();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  struct Value {
    std::string text;
    std::string variable;  // empty: a literal
  };

  void skip() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }
  bool fail() {
    failed_ = true;
    return false;
  }
  bool take(std::string_view text) {
    skip();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool take_word(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && is_word(rest_[word.size()])) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // Both sides are always read: their text must be passed over.
  bool read_or(int depth) {
    bool value = read_and(depth);
    while (!failed_ && take_word("or")) value = read_and(depth) || value;
    return value;
  }
  bool read_and(int depth) {
    bool value = read_atom(depth);
    while (!failed_ && take_word("and")) value = read_atom(depth) && value;
    return value;
  }
  bool read_atom(int depth) {
    if (depth > kMaxDepth) return fail();
    if (!take("(")) return read_comparison();
    const bool value = read_or(depth + 1);
    return take(")") ? value : fail();
  }

  bool read_comparison() {
    const std::optional<Value> left = read_value();
    if (!left) return fail();
    const std::string op = read_operator();
    const std::optional<Value> right = read_value();
    if (op.empty() || !right) return fail();
    if (left->variable.empty() == right->variable.empty()) return fail();
    const std::string& variable = left->variable.empty() ? right->variable : left->variable;
    return compare(*left, op, *right, variable);
  }

  std::string read_operator() {
    for (const std::string_view op : {"===", "==", "~=", "!=", "<=", ">=", "<", ">"})
      if (take(op)) return std::string(op);
    if (take_word("in")) return "in";
    if (take_word("not") && take_word("in")) return "not in";
    return "";
  }

  std::optional<Value> read_value() {
    skip();
    if (rest_.empty()) return std::nullopt;
    if (const char quote = rest_.front(); quote == '"' || quote == '\'') {
      const size_t end = rest_.find(quote, 1);
      if (end == rest_.npos) return std::nullopt;
      Value value{std::string(rest_.substr(1, end - 1)), ""};
      rest_.remove_prefix(end + 1);
      return value;
    }
    size_t length = 0;
    while (length < rest_.size() && (is_word(rest_[length]) || rest_[length] == '.')) length++;
    std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    std::replace(name.begin(), name.end(), '.', '_');
    if (name == "python_implementation") name = "platform_python_implementation";
    const auto found = lookup(name);
    if (!found) return std::nullopt;
    return Value{*found, name};
  }

  std::optional<std::string> lookup(const std::string& name) const {
    const MarkerEnvironment& e = environment_;
    const std::array<std::pair<std::string_view, std::string_view>, 12> table = {{
        {"python_version", e.python_version},
        {"python_full_version", e.python_full_version},
        {"os_name", e.os_name},
        {"sys_platform", e.sys_platform},
        {"platform_system", e.platform_system},
        {"platform_machine", e.platform_machine},
        {"platform_python_implementation", e.platform_python_implementation},
        {"implementation_name", e.implementation_name},
        {"implementation_version", e.python_full_version},
        {"platform_release", e.platform_release},
        {"platform_version", e.platform_version},
        {"extra", extra_},
    }};
    for (const auto& [key, value] : table)
      if (key == name) return std::string(value);
    return set_of(name) ? std::optional<std::string>("") : std::nullopt;
  }

  const std::vector<std::string>* set_of(std::string_view variable) const {
    const auto at = [](const std::optional<std::vector<std::string>>& set) {
      return set ? &*set : nullptr;
    };
    return variable == "extras"              ? at(environment_.extras)
           : variable == "dependency_groups" ? at(environment_.dependency_groups)
                                             : nullptr;
  }

  bool compare(const Value& left, const std::string& op, const Value& right,
               const std::string& variable) {
    if (const auto* set = set_of(variable)) {
      const bool has = std::any_of(set->begin(), set->end(), [&](const std::string& one) {
        return normal_name(one) == normal_name(left.text);
      });
      return op == "in" ? has : op == "not in" ? !has : fail();
    }
    const bool is_version = variable == "python_version" || variable == "python_full_version" ||
                            variable == "implementation_version" || variable == "platform_release";
    if (is_version)
      if (const auto specifier = VersionSpecifier::parse(op + right.text)) {
        const auto version = PythonVersion::parse(left.text);
        return version && specifier->contains(*version);
      }
    if (variable == "extra")
      return compare_text(normal_name(left.text), op, normal_name(right.text));
    return compare_text(left.text, op, right.text);
  }

  // Text has no order: `packaging` lets "<=" and ">=" mean equality, and "<" and ">" nothing.
  bool compare_text(const std::string& left, const std::string& op, const std::string& right) {
    if (op == "==" || op == "<=" || op == ">=") return left == right;
    if (op == "!=") return left != right;
    if (op == "in") return right.find(left) != right.npos;
    if (op == "not in") return right.find(left) == right.npos;
    if (op == "<" || op == ">") return false;
    return fail();
  }

  std::string_view rest_;
  const MarkerEnvironment& environment_;
  std::string_view extra_;
  bool failed_ = false;
};

// ---- requirements

// "name", with letters, digits and "-_." inside; empty if there is none. Moves text behind it.
std::string_view take_name(std::string_view& text) {
  const auto inside = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  size_t length = 0;
  while (length < text.size() && inside(text[length])) length++;
  while (length > 0 && (!is_word(text[length - 1]) || text[length - 1] == '_')) length--;
  if (length == 0 || text[0] == '_' || !is_word(text[0])) return "";
  const std::string_view name = text.substr(0, length);
  text.remove_prefix(length);
  return name;
}

// "[a, b]" behind a name; false if it is not closed or holds no names.
bool take_extras(std::string_view& text, std::vector<std::string>& extras) {
  text = strip(text);
  if (!text.starts_with('[')) return true;
  const size_t end = text.find(']');
  if (end == text.npos) return false;
  std::string_view inside = strip(text.substr(1, end - 1));
  text = strip(text.substr(end + 1));
  while (!inside.empty()) {
    const std::string_view name = take_name(inside);
    if (name.empty()) return false;
    extras.push_back(normal_name(name));
    inside = strip(inside);
    if (inside.empty()) return true;
    if (!inside.starts_with(',')) return false;
    inside = strip(inside.substr(1));
    if (inside.empty()) return false;
  }
  return true;
}

}  // namespace

std::string normal_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      result += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    else if (!result.ends_with('-'))
      result += '-';
  }
  return result;
}

MarkerEnvironment MarkerEnvironment::of(const Interpreter& interpreter) {
  MarkerEnvironment result;
  result.python_version =
      std::to_string(interpreter.major) + "." + std::to_string(interpreter.minor);
  const bool patch_known = interpreter.version.size() > result.python_version.size();
  result.python_full_version = patch_known ? interpreter.version : result.python_version + ".99";
  result.platform_machine = interpreter.elf_machine == kX86_64    ? "x86_64"
                            : interpreter.elf_machine == kAArch64 ? "aarch64"
                                                                  : "unknown";
  result.platform_python_implementation = interpreter.implementation;
  for (const char c : interpreter.implementation)
    result.implementation_name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

std::optional<bool> evaluate_marker(std::string_view marker, const MarkerEnvironment& environment,
                                    std::string_view extra) {
  if (marker.size() > kMaxLength) return std::nullopt;
  return MarkerReader(marker, environment, extra).read();
}

std::optional<PackageRequirement> PackageRequirement::parse(std::string_view text) {
  PackageRequirement result;
  if (text.size() > kMaxLength) return std::nullopt;
  text = strip(text);
  result.name = take_name(text);
  if (result.name.empty() || !take_extras(text, result.extras)) return std::nullopt;
  text = strip(text);
  if (text.starts_with('@')) {  // a URL may hold semicolons: a marker stands behind a blank
    text = strip(text.substr(1));
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    result.url = text.substr(0, end);
    text = strip(text.substr(end));
    if (result.url.empty() || (!text.empty() && !text.starts_with(';'))) return std::nullopt;
    if (text.empty()) return result;
    result.marker = strip(text.substr(1));
    return result.marker.empty() ? std::nullopt : std::optional(std::move(result));
  }
  const size_t semicolon = text.find(';');
  if (semicolon != text.npos) {
    result.marker = strip(text.substr(semicolon + 1));
    if (result.marker.empty()) return std::nullopt;
    text = strip(text.substr(0, semicolon));
  }
  if (text.starts_with('(')) {
    if (!text.ends_with(')')) return std::nullopt;
    text = text.substr(1, text.size() - 2);
  }
  auto specifiers = VersionSpecifiers::parse(text);
  if (!specifiers) return std::nullopt;
  result.specifiers = std::move(*specifiers);
  return result;
}

bool PackageRequirement::applies(const MarkerEnvironment& environment,
                                 std::string_view extra) const {
  return marker.empty() || evaluate_marker(marker, environment, extra).value_or(false);
}

bool PackageRequirement::may_apply(const MarkerEnvironment& environment,
                                   const std::vector<std::string>& own_extras) const {
  return applies(environment, "") ||
         std::any_of(own_extras.begin(), own_extras.end(),
                     [&](const std::string& extra) { return applies(environment, extra); });
}

}  // namespace cohabit
