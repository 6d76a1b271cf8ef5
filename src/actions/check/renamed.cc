#include "actions/check/renamed.h"

namespace cohabit::check {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

void rename_paths(Finding& finding, const std::string& from, const std::string& to) {
  const auto rename = [&](std::string& text) { text = replaced(std::move(text), from, to); };
  rename(finding.headline);
  for (std::string& path : finding.broken) rename(path);
  for (std::string& path : finding.reach.files) rename(path);
  for (Library& library : finding.libraries) rename(library.path);
  for (Evidence& row : finding.evidence)
    for (std::string* text : {&row.text, &row.consumer, &row.library, &row.remark}) rename(*text);
  for (Help& help : finding.help) {
    rename(help.text);
    rename(help.command);
  }
}

}  // namespace cohabit::check
