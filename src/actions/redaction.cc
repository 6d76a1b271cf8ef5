#include "actions/redaction.h"

#include <algorithm>

#include "actions/source_secrets.h"
#include "base/secrets.h"

namespace cohabit {

namespace {

// What cannot stand in a library or a wheel by chance.
bool is_long(const std::string& value) {
  constexpr size_t kLong = 16;
  return value.size() >= kLong;
}

void hide(std::string& bytes, const std::string& value) {
  const std::string by = stand_in_of(value);
  for (size_t at = bytes.find(value); at != std::string::npos;
       at = bytes.find(value, at + by.size()))
    bytes.replace(at, by.size(), by);
}

// What others wrote: code of the standard library and of installed packages, and native files.
bool is_public(const std::string& path, bool is_elf) {
  if (is_elf) return true;
  const bool is_code = path.ends_with(".py") || path.ends_with(".pyi");
  return is_code && !is_own_source(path, "");
}

}  // namespace

Redaction::Redaction(const std::map<std::string, std::string>& variables,
                     const std::vector<std::string>& arguments)
    : values_(secret_values(with_secret_arguments(variables, arguments))) {}

void Redaction::apply(std::string& text) const {
  for (const std::string& value : values_) hide(text, value);
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
  for (const std::string& value : values_)
    if (is_long(value)) hide(text, value);
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
