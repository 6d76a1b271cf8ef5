#include "base/redaction.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/secrets.h"
#include "base/source_secrets.h"
#include "base/text.h"

namespace cohabit {

namespace {

// What cannot stand in a library or a wheel by chance.
bool is_long(const std::string& value) {
  constexpr size_t kLong = 16, kMixed = 8;
  const auto has = [&](int (*kind)(int)) {
    return std::any_of(value.begin(), value.end(),
                       [&](char c) { return kind(static_cast<unsigned char>(c)) != 0; });
  };
  const bool is_mixed = has(std::isupper) && has(std::islower) && has(std::isdigit);
  return value.size() >= (is_mixed ? kMixed : kLong);
}

// As a literal of Python, TOML or JSON has it, and what stands for it there.
std::pair<std::string, std::string> literal_of(const std::string& value) {
  std::string text, by;
  for (const char c : value) {
    const bool is_escaped = c == '\\' || c == '"' || c == '\'';
    const std::string one = c == '\n'    ? "\\n"
                            : is_escaped ? std::string{'\\', c}
                                         : std::string(1, c);
    text += one;
    by += c == '\n' || (c == '/' && !by.empty()) ? one : std::string(one.size(), 'x');
  }
  return {text, by};
}

// What others wrote: code of the standard library and of installed packages, and native files.
bool is_public(const std::string& path, bool is_elf) {
  if (is_elf) return true;
  const bool is_code = path.ends_with(".py") || path.ends_with(".pyi");
  return is_code && !is_own_source(path, "");
}

}  // namespace

Redaction::Redaction(const std::map<std::string, std::string>& variables,
                     const std::vector<std::string>& arguments) {
  const auto values = secret_values(with_secret_arguments(variables, arguments));
  for (const std::string& value : values)
    if (auto literal = literal_of(value); literal.first != value)
      values_.push_back(std::move(literal));
  for (const std::string& value : values) values_.emplace_back(value, stand_in_of(value));
}

void Redaction::apply(std::string& text) const {
  for (const auto& [value, by] : values_) replace_all(text, value, by);
  hide_credentials(text);
}

void Redaction::hide_credentials(std::string& text) {
  for (const auto& [begin, end] : find_credentials(text))
    text.replace(begin, end - begin, end - begin, 'x');
}

std::string Redaction::applied(std::string text) const {
  apply(text);
  return text;
}

void Redaction::apply_to_extracts(std::string& text) const {
  for (const auto& [value, by] : values_)
    if (is_long(value)) replace_all(text, value, by);
}

void Redaction::apply_to_part(const std::string& path, std::string& bytes, bool is_elf) const {
  if (!is_public(path, is_elf)) return apply(bytes);
  apply_to_extracts(bytes);
  if (!is_elf) hide_credentials(bytes);
}

void Redaction::apply_to_file(const std::string& path, std::string& bytes, bool is_elf) const {
  if (!is_elf && is_own_source(path, bytes)) {
    if (path.ends_with(".ipynb"))
      hide_notebook_secrets(bytes);
    else
      hide_source_secrets(bytes);
  } else if (!is_elf && is_settings(path)) {
    hide_told_secrets(bytes);
  }
  apply_to_part(path, bytes, is_elf);
}

std::map<std::string, std::string> Redaction::applied(
    std::map<std::string, std::string> variables) const {
  for (auto& [name, value] : variables) {
    if (holds_secret(name, value))
      value = stand_in_of(value);
    else
      apply(value);
  }
  return variables;
}

}  // namespace cohabit
