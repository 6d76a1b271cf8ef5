// The environment rules alone, for case files and measurements: environment_probe [--times]
// [--hashes] [--evidence] ENV prints findings, one line each. Exit 1 if one is an error.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "findings/environment.h"

using namespace cohabit;

namespace {

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void print(const Finding& finding, bool evidence) {
  fmt::print("{}[{}]: {}\n", severity_name(finding.severity), finding.code, finding.headline);
  if (!evidence) return;
  for (const Evidence& row : finding.evidence) fmt::print("    {}: {}\n", row.kind, row.text);
  for (const Help& help : finding.help) fmt::print("  help: {} `{}`\n", help.text, help.command);
}

}  // namespace

int main(int argc, char** argv) {
  bool times = false, evidence = false, failed = false;
  EnvironmentOptions options;
  std::string path;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "--times")
      times = true;
    else if (word == "--evidence")
      evidence = true;
    else if (word == "--hashes")
      options.verify_hashes = true;
    else
      path = word;
  }
  const Tree tree;
  const auto interpreter = find_interpreter(tree, path);
  if (!interpreter) {
    fmt::print("{}\n", interpreter.error().message);
    return 2;
  }
  auto begin = std::chrono::steady_clock::now();
  const Distributions distributions = Distributions::read(tree, *interpreter);
  const double read = since(begin);
  begin = std::chrono::steady_clock::now();
  const EnvironmentCase examined(tree, *interpreter, distributions, options);
  const double files = since(begin);
  begin = std::chrono::steady_clock::now();
  const std::vector<Finding> findings = check_environment(examined);
  const double rules = since(begin);
  for (const Finding& finding : findings) {
    print(finding, evidence);
    failed = failed || finding.severity == Severity::kError;
  }
  if (times)
    fmt::print("{} distributions, {} rows; metadata {:.0f} ms, files {:.0f} ms, rules {:.0f} ms\n",
               distributions.all().size(), examined.files.rows().size(), read, files, rules);
  return failed ? 1 : 0;
}
