#include <algorithm>

#include "actions/check/check.h"
#include "actions/check/inputs.h"
#include "actions/check/requirements_file.h"
#include "actions/check/wheel_tags.h"

namespace cohabit::check {
namespace {

// Options of pip and uv whose next word is no requirement.
const std::set<std::string, std::less<>> kWithValue = {"-c",
                                                       "--constraint",
                                                       "-e",
                                                       "--editable",
                                                       "-i",
                                                       "--index-url",
                                                       "--extra-index-url",
                                                       "--index",
                                                       "--default-index",
                                                       "-f",
                                                       "--find-links",
                                                       "--index-strategy",
                                                       "--python",
                                                       "-p",
                                                       "--only-binary",
                                                       "--no-binary",
                                                       "--prerelease",
                                                       "--torch-backend",
                                                       "--group",
                                                       "--extra",
                                                       "--upgrade-package",
                                                       "-P",
                                                       "--reinstall-package",
                                                       "--config-file",
                                                       "--cache-dir",
                                                       "--exclude-newer",
                                                       "--overrides",
                                                       "--override",
                                                       "-b",
                                                       "--build-constraint",
                                                       "--platform",
                                                       "--abi",
                                                       "--implementation",
                                                       "--python-version",
                                                       "--cert",
                                                       "--client-cert",
                                                       "--proxy",
                                                       "--timeout",
                                                       "--retries",
                                                       "--trusted-host",
                                                       "--use-feature",
                                                       "--progress-bar",
                                                       "--log",
                                                       "--upgrade-strategy",
                                                       "--keyring-provider",
                                                       "--allow-insecure-host",
                                                       "--link-mode",
                                                       "--resolution",
                                                       "--color"};

// A wheel's path says its name.
void add(std::string_view text, std::vector<PackageRequirement>& result) {
  if (const auto wheel = split_wheel_name(text.substr(text.rfind('/') + 1))) text = wheel->name;
  if (auto requirement = PackageRequirement::parse(text)) result.push_back(std::move(*requirement));
}

// What cannot be read is the installer's to complain of.
void read_file_of(const std::string& path, const MarkerEnvironment& environment,
                  std::vector<PackageRequirement>& result) {
  if (path.ends_with(".toml")) {
    if (const auto input = read_input(path, Tool::kPip, environment))
      for (const std::string& word : input->words)
        if (!word.starts_with('-')) add(word, result);
    return;
  }
  RequirementLines lines;
  (void)read_requirements(path, lines);
  for (const std::string& line : lines.requirements) add(without_options(line), result);
}

}  // namespace

bool takes_value(const std::string& option) {
  return kWithValue.contains(option);
}

std::vector<PackageRequirement> requested_of(const Request& request,
                                             const MarkerEnvironment& environment) {
  const std::vector<std::string> arguments = with_files_apart(request.arguments);
  std::vector<PackageRequirement> result;
  for (size_t i = 0; i < arguments.size(); i++) {
    const std::string& word = arguments[i];
    if (word == "-r" && i + 1 < arguments.size())
      read_file_of(arguments[++i], environment, result);
    else if (word.starts_with('-') || (i > 0 && takes_value(arguments[i - 1])))
      continue;
    else if (request.verb == Verb::kSync)
      read_file_of(word, environment, result);
    else
      add(word, result);
  }
  return result;
}

}  // namespace cohabit::check
