#include <algorithm>

#include "actions/check/check.h"
#include "base/paths.h"
#include "base/read_file.h"

namespace cohabit::check {
namespace {

constexpr size_t kMaxFile = 16 << 20;
constexpr int kMaxNesting = 8;

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

void add(std::string_view text, std::vector<PackageRequirement>& result) {
  if (auto requirement = PackageRequirement::parse(text)) result.push_back(std::move(*requirement));
}

// A requirements file: what pip reads of it by name. Options and addresses are the installer's.
void read_requirements(const std::string& path, int nesting,
                       std::vector<PackageRequirement>& result) {
  const auto text = nesting < kMaxNesting ? read_file(path, kMaxFile) : fail("");
  if (!text) return;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    if (const size_t comment = line.find(" #"); comment != line.npos) line.resize(comment);
    if (const size_t options = line.find(" --"); options != line.npos) line.resize(options);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\\' || line.back() == '\r'))
      line.pop_back();
    if (line.starts_with("-r ") && !line.ends_with(".toml")) {
      std::string file = line.substr(3);
      if (const std::string directory = directory_of(path);
          !directory.empty() && !file.starts_with('/'))
        file.insert(0, "/").insert(0, directory);
      read_requirements(file, nesting + 1, result);
    } else if (!line.empty() && line[0] != '#' && line[0] != '-') {
      add(line, result);
    }
  }
}

}  // namespace

std::vector<PackageRequirement> requested_of(const std::vector<std::string>& arguments) {
  std::vector<PackageRequirement> result;
  for (size_t i = 0; i < arguments.size(); i++) {
    const std::string& word = arguments[i];
    if ((word == "-r" || word == "--requirement") && i + 1 < arguments.size())
      read_requirements(arguments[++i], 0, result);
    else if (!word.starts_with('-') && (i == 0 || !kWithValue.contains(arguments[i - 1])))
      add(word, result);
  }
  return result;
}

}  // namespace cohabit::check
