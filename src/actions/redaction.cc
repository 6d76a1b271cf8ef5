#include "actions/redaction.h"

#include <algorithm>

#include "actions/source_secrets.h"
#include "base/secrets.h"

namespace cohabit {

Redaction::Redaction(const std::map<std::string, std::string>& variables)
    : values_(secret_values(variables)) {}

void Redaction::hide_values(std::string& bytes) const {
  for (const std::string& value : values_)
    for (size_t at = bytes.find(value); at != std::string::npos; at = bytes.find(value, at))
      bytes.replace(at, value.size(), value.size(), 'x');
}

void Redaction::apply(std::string& bytes) const {
  apply_to_part(bytes, false);
}

void Redaction::apply_to_part(std::string& bytes, bool is_elf) const {
  hide_values(bytes);
  if (is_elf) return;
  for (const auto& [begin, end] : find_credentials(bytes))
    bytes.replace(begin, end - begin, end - begin, 'x');
}

void Redaction::apply_to_file(const std::string& path, std::string& bytes, bool is_elf) const {
  if (!is_elf && is_own_source(path, bytes)) {
    if (path.ends_with(".ipynb"))
      hide_notebook_secrets(bytes);
    else
      hide_source_secrets(bytes);
  }
  apply_to_part(bytes, is_elf);
}

std::map<std::string, std::string> Redaction::applied(
    std::map<std::string, std::string> variables) const {
  for (auto& [name, value] : variables) {
    if (names_secret(name))
      value.assign(value.size(), 'x');
    else
      apply(value);
  }
  return variables;
}

}  // namespace cohabit
