#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

// No program does that to itself: a limit, a supervisor or the kernel's out-of-memory killer did.
std::string what_to_read(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return "something outside ended it: see whether memory ran out (`dmesg`, the container's "
           "limits), or who sets a time limit";
  return "read what the program printed: the cause is in its own code, or in what is missing from "
         "the environment";
}

bool has_sleeping_split(const Case& examined) {
  const auto& groups = examined.captures.groups;
  return std::any_of(groups.begin(), groups.end(), [](const CaptureGroup& group) {
    const bool is_split =
        group.verdict == Verdict::kLatentSplit || group.verdict == Verdict::kAlikeSplit;
    return is_split && !group.entered_by.empty();
  });
}

std::vector<Finding> check(const Case& examined) {
  if (!examined.failed()) return {};
  Finding finding;
  finding.severity = Severity::kError;
  finding.certainty = Certainty::kObserved;
  if (const std::string& why = examined.process.simulation().start_error(); !why.empty()) {
    finding.headline = fmt::format("the process would not start here, as things are now: {}", why);
    finding.help.push_back(
        {"record the run again, or give the environment as it was then "
         "(--root DIR)",
         "", Safety::kManual});
    return {std::move(finding)};
  }
  const bool suspicious = WIFSIGNALED(*examined.trace.exit_status) && has_sleeping_split(examined);
  finding.headline = fmt::format(
      "the run {}, and {}{}", how_it_ended(*examined.trace.exit_status),
      suspicious ? "what is bound to two copies (CB105, CB106) may be why, if the program uses it"
                 : "nothing in its loading and binding explains it",
      when_imported(examined));
  finding.help.push_back({what_to_read(*examined.trace.exit_status), "", Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

const Rule kPy301 = {
    "PY301",
    "run-failed",
    Severity::kError,
    "The recorded run failed, and no other finding says why.",
    "  The process ended with a signal or an exit code other than 0, and no rule found an error.",
    "  An environment in which the statement fails is not sound, whatever the reason.",
    "  `import a_module_that_is_not_installed`",
    "  Read what the program printed before it ended.",
    "  It says that, not why. It is left out when another error was found.",
    check,
};

}  // namespace cohabit::rules
