// Colours for a terminal; without them the same text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "findings/finding.h"

namespace cohabit::report {

class Painter {
 public:
  explicit Painter(bool colour) : colour_(colour) {}
  std::string paint(std::string_view code, std::string_view text) const {
    return colour_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
  }
  std::string severity(Severity severity, const std::string& text) const {
    return paint(severity == Severity::kError     ? "1;31"
                 : severity == Severity::kWarning ? "1;33"
                                                  : "1;36",
                 text);
  }
  std::string verdict(std::string_view text, std::string_view padded) const {
    return paint(text == "sound" ? "32" : text == "unsound" ? "1;31" : "33", padded);
  }
  std::string bold(std::string_view text) const { return paint("1", text); }

 private:
  bool colour_;
};

}  // namespace cohabit::report
