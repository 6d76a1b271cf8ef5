#include "cli/guard_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "actions/check/check.h"
#include "actions/check/requirements_file.h"
#include "base/write_file.h"

namespace cohabit {

Result<std::vector<InstallStep>> steps_of(const std::vector<std::string>& given,
                                          const std::string& directory) {
  const std::vector<std::string> command = check::with_files_apart(given);
  const auto verb = std::find(command.begin(), command.end(), "install");
  std::vector<std::string> common(command.begin(), verb);
  std::vector<std::pair<std::string, std::vector<std::string>>> wanted;  // what, its words
  check::RequirementLines lines;
  for (auto word = verb; word != command.end(); ++word) {
    const bool has_next = word + 1 != command.end();
    if (*word == "-r" && has_next) {
      const size_t known = lines.requirements.size();
      if (auto read = check::read_requirements(std::filesystem::absolute(*++word), lines); !read)
        return tl::unexpected<Error>(read.error());
      for (size_t i = known; i < lines.requirements.size(); i++)
        wanted.push_back({check::without_options(lines.requirements[i]),
                          {"-r", fmt::format("{}/step-{}.txt", directory, i + 1)}});
    } else if (*word == "-e" && has_next) {
      const std::string project = *++word;
      wanted.push_back({"-e " + project, {"-e", project}});
    } else if (check::takes_value(*word) && has_next) {
      common.push_back(*word);
      common.push_back(*++word);
    } else if (word == verb || word->starts_with('-')) {
      common.push_back(*word);
    } else {
      wanted.push_back({*word, {*word}});
    }
  }
  if (wanted.empty())
    return fail(
        "expected an install of requirements after --step (pip install -r FILE), and found none");
  const std::string options = fmt::format("{}\n", fmt::join(lines.options, "\n"));
  for (size_t i = 0; i < lines.requirements.size(); i++)
    if (auto written = write_file(fmt::format("{}/step-{}.txt", directory, i + 1),
                                  options + lines.requirements[i] + "\n");
        !written)
      return tl::unexpected<Error>(written.error());
  std::vector<InstallStep> steps;
  for (auto& [what, words] : wanted) {
    InstallStep step{what, common};
    step.command.insert(step.command.end(), words.begin(), words.end());
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace cohabit
