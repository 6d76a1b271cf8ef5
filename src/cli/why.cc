// cohabit why: read the text; match; rank; look at the environment; report.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/commands.h"
#include "explain/answer.h"
#include "explain/log_text.h"
#include "findings/rule.h"
#include "report/why.h"

namespace cohabit {
namespace {

struct WhyOptions {
  std::string log = "-";
  std::string format = "full";
  std::string environment;
  std::vector<std::string> command;
};

std::string draw(const WhyOptions& options, const explain::Explanation& explanation) {
  if (options.format == "json") return report::why_json(explanation);
  const char* no_colour = std::getenv("NO_COLOR");
  return report::why_full(explanation, isatty(STDOUT_FILENO) && !(no_colour && *no_colour));
}

Result<explain::Explanation> explain_log(const explain::LogText& log,
                                         const std::vector<explain::Mechanism>& mechanisms) {
  auto matcher = explain::Matcher::make(mechanisms);
  if (!matcher) return tl::unexpected<Error>(matcher.error());
  return explain::explain_text(log.text(), mechanisms, *matcher);
}

Result<int> why(const WhyOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail(fmt::format("--format cannot be {}; it is full or json", options.format));
  const auto mechanisms = explain::read_knowledge();
  if (!mechanisms) return tl::unexpected<Error>(mechanisms.error());
  const auto log = explain::LogText::read(options.log);
  if (!log) return tl::unexpected<Error>(log.error());
  const auto explanation = explain_log(*log, *mechanisms);
  if (!explanation) return tl::unexpected<Error>(explanation.error());
  fmt::print("{}", draw(options, *explanation));
  return explanation->answers.empty() ? 0 : 1;
}

}  // namespace

void add_why_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* command = app.add_subcommand(
      "why", "Explain an error text: what happened, what this machine says to it, what to do");
  command->footer("Exit code: 0 nothing known in the text, 1 answers, 2 Cohabit failed.");
  command->add_option("log", options->log, "A file, or - for standard input")
      ->capture_default_str();
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->add_option("--env", options->environment,
                      "The environment to look at (a prefix or an interpreter)");
  command->callback([options, &exit_code] {
    const auto code = why(*options);
    if (code) {
      exit_code = *code;
      return;
    }
    fmt::print(stderr, "cohabit: {}\n", code.error().message);
    exit_code = 2;
  });
}

}  // namespace cohabit
