#include "actions/check/renamed.h"

#include "base/text.h"

namespace cohabit::check {

void rename_paths(Finding& finding, const std::string& from, const std::string& to) {
  const auto rename = [&](std::string& text) { replace_all(text, from, to); };
  rename(finding.headline);
  rename(finding.place.file);
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
