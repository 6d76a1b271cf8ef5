// The environment rules alone, for case files and measurements: environment_probe [--times]
// [--hashes] [--evidence] [--sm 8.6] [--driver VERSION] [--gpu-memory 24GiB] [--set NAME=VALUE]
// [--machine DIRECTORY] [--root DIRECTORY] ENV prints findings, one line each. Exit 1 if one is an
// error. --machine: the GPUs and the driver are those of the files below this directory, not this
// machine's.
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

void set_variable(EnvironmentOptions& options, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos)
    options.variables[text.substr(0, equals)] = text.substr(equals + 1);
}

}  // namespace

int main(int argc, char** argv) {
  bool times = false, evidence = false, failed = false;
  EnvironmentOptions options;
  std::string path, machine_root, root;
  cuda::AskedHost asked;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "--times")
      times = true;
    else if (word == "--evidence")
      evidence = true;
    else if (word == "--hashes")
      options.verify_hashes = true;
    else if (word == "--sm" && i + 1 < argc)
      asked.sm = argv[++i];
    else if (word == "--driver" && i + 1 < argc)
      asked.driver = argv[++i];
    else if (word == "--gpu-memory" && i + 1 < argc)
      asked.memory = argv[++i];
    else if (word == "--root" && i + 1 < argc)
      root = argv[++i];
    else if (word == "--machine" && i + 1 < argc)
      machine_root = argv[++i];
    else if (word == "--set" && i + 1 < argc)
      set_variable(options, argv[++i]);
    else
      path = word;
  }
  const Tree tree(root);
  const auto interpreter = find_interpreter(tree, path);
  if (!interpreter) {
    fmt::print("{}\n", interpreter.error().message);
    return 2;
  }
  if (!machine_root.empty()) {
    Machine machine;
    machine.default_directories = {"/lib64/", "/usr/lib64/"};
    options.gpu = cuda::read_gpu_host(Tree(machine_root), machine);
  }
  if (const auto done = cuda::ask_for(asked, options.gpu); !done) {
    fmt::print("{}\n", done.error().message);
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
