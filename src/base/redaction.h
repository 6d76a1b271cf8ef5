// Takes secrets out of what a bundle holds: values of variables and options that are named as
// secrets, wherever they stand, and credentials in addresses. As many x stand in their place, so
// that sizes and offsets stay; paths are changed as what names them is.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cohabit {

class Redaction {
 public:
  // `arguments`: of the program that is examined.
  Redaction(const std::map<std::string, std::string>& variables,
            const std::vector<std::string>& arguments);
  void apply(std::string& text) const;
  std::string applied(std::string text) const;
  // Of what was worked out of native files.
  void apply_to_extracts(std::string& text) const;
  // Of a file. In the code of others only values that are long are looked for: `sha256` is no
  // secret there. The constants of compiled code are not the user's, so nothing is an address
  // there.
  void apply_to_part(const std::string& path, std::string& bytes, bool is_elf) const;
  // Of a whole file: in the user's own programs also what they write down (source_secrets.h). A
  // notebook may become larger.
  void apply_to_file(const std::string& path, std::string& bytes, bool is_elf) const;
  // The same variables, with values that may be shown.
  std::map<std::string, std::string> applied(std::map<std::string, std::string> variables) const;

 private:
  static void hide_credentials(std::string& text);
  std::vector<std::pair<std::string, std::string>> values_;  // with what stands for each
};

}  // namespace cohabit
