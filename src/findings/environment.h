// An environment as its metadata and files describe it, for the rules that need no process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tree.h"
#include "facts/cuda/gpu_host.h"
#include "facts/python/distributions.h"
#include "facts/python/installed_files.h"
#include "facts/python/interpreter.h"
#include "findings/finding.h"

namespace cohabit {

// A file whose size is not what the RECORD says, or that is gone.
struct ChangedFile {
  uint32_t row = 0;  // of InstalledFiles
  bool missing = false;
  int64_t size = 0;  // on disk
};

struct EnvironmentOptions {
  // Hash every file of a RECORD up to a limit, not only compare its size. Reads all of it.
  bool verify_hashes = false;
  // What stands before everything else in sys.path: the script's directory or the current one.
  std::optional<std::string> first_directory;
  // The GPUs and their driver, of this machine or of the one asked for.
  cuda::GpuHost gpu;
  // The variables that a process would start with.
  std::map<std::string, std::string> variables;
};

// Holds references: the facts must outlive it.
struct EnvironmentCase {
  const Tree& tree;
  const Interpreter& interpreter;
  const Distributions& distributions;
  EnvironmentOptions options;
  InstalledFiles files;
  std::vector<ChangedFile> changed;

  EnvironmentCase(const Tree& tree, const Interpreter& interpreter,
                  const Distributions& distributions, EnvironmentOptions options = {});

  const std::vector<Distribution>& all() const { return distributions.all(); }
  const Distribution& owner(const InstalledFiles::Row& row) const {
    return all()[row.distribution];
  }
};

// Like the rest of the report: all findings of all environment rules, worst first, with ids.
std::vector<Finding> check_environment(const EnvironmentCase& examined);

// ---- what several rules say in the same way

std::string label(const Distribution& distribution);  // "torch 2.6.0"
Library library_of(const Distribution& distribution, const std::string& path);
// "a, b, c and 4 more"
std::string list_some(const std::vector<std::string>& names, size_t shown = 3);
std::string count_of(size_t number, std::string_view thing);  // "1 file", "2 files"
Evidence fact(std::string kind, std::string text, std::string library = "");

// A command line for the installer that is in use here: verb is "install" or "uninstall". `python`
// is the environment's interpreter.
std::string installer_command(const std::string& python, const Distributions& distributions,
                              std::string_view verb, const std::vector<std::string>& arguments);
std::string installer_command(const EnvironmentCase& examined, std::string_view verb,
                              const std::vector<std::string>& arguments);
// The arguments of "install" that bring the files of one back and touch no other.
std::vector<std::string> again(const std::string& distribution, const std::string& version);
// The files of a distribution that are not as they were installed: some by name, how many more, and
// the command that installs the distribution again.
void add_reinstall(Finding& finding, const EnvironmentCase& examined,
                   const Distribution& distribution, const std::vector<std::string>& examples,
                   size_t files, std::string advice);
// Single quotes, where a shell would do something with the text.
std::string shell_word(std::string_view text);

// A name that pure tests and documentation have, of which every environment has several.
bool is_by_the_way(std::string_view path);

}  // namespace cohabit
