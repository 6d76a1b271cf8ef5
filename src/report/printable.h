// Names come from strangers' files: a line break in one could forge a line of the report, an escape
// sequence could write to the terminal. Reports for people show such bytes as \n, \x1b and the
// like.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "report/report.h"

namespace cohabit::report {

// Valid UTF-8 without control characters, line separators and direction marks.
std::string printable(std::string_view text);
Report printable(Report report);
// Credentials in addresses ("https://user:token@host/", from direct_url.json) are nobody's
// business.
// So are the values of variables that are named as secrets, which `variables` may hold.
Report without_secrets(Report report, const std::map<std::string, std::string>& variables);
// Of one text. `values`: secret_values (base/secrets.h).
std::string without_secrets(std::string text, const std::vector<std::string>& values);

}  // namespace cohabit::report
