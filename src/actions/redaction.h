// Takes secrets out of what a bundle holds: values of variables that are named as secrets, wherever
// they stand, and credentials in addresses. As many x stand in their place, so that sizes and
// offsets stay.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cohabit {

class Redaction {
 public:
  explicit Redaction(const std::map<std::string, std::string>& variables);
  void apply(std::string& bytes) const;
  // Of a file: the constants of compiled code are not the user's, so nothing is an address there.
  void apply_to_part(std::string& bytes, bool is_elf) const;
  // Of a whole file: in the user's own programs also what they write down (source_secrets.h). A
  // notebook may become larger.
  void apply_to_file(const std::string& path, std::string& bytes, bool is_elf) const;
  // The same variables, with values that may be shown.
  std::map<std::string, std::string> applied(std::map<std::string, std::string> variables) const;

 private:
  void hide_values(std::string& bytes) const;
  std::vector<std::string> values_;
};

}  // namespace cohabit
