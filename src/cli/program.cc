#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hidden_values.h"
#include "base/paths.h"
#include "base/secrets.h"
#include "cli/arguments.h"
#include "findings/environment.h"

namespace cohabit {
namespace {

constexpr uint64_t kMaxNotebook = 256 << 20;  // they hold the pictures that they made

bool is_program(const std::string& word) {
  return word.ends_with(".py") || word.ends_with(".ipynb") || word.ends_with(".pyw");
}

// A text file without such an ending whose first line names Python: `#!/usr/bin/env python3`, the
// commands that installers make.
bool is_python_script(const Tree& tree, const std::string& path) {
  constexpr uint64_t kLargest = 1 << 20;
  const auto text = tree.read_text(path, kLargest);
  if (!text || !text->starts_with("#!") || text->find('\0') != std::string::npos) return false;
  return text->substr(0, text->find('\n')).find("python") != std::string::npos;
}

// Secrets go before anything is quoted: by quotes they would not be found any more.
std::string command_line(const std::string& start, const std::string& word,
                         const Targets& targets) {
  const std::vector<std::string> values =
      secret_values(with_secret_arguments(targets.variables, targets.arguments));
  std::string text = start;
  const auto add = [&](std::string one) {
    hide_values(one, values);
    text.append(" ").append(shell_word(one));
  };
  add(word);
  for (const std::string& argument : without_secret_arguments(targets.arguments)) add(argument);
  return text;
}

std::string current_directory(const Tree& tree) {
  return tree.real_path(".").value_or("/");
}

// CPython resolves links of the script before it takes the directory.
std::optional<std::string> directory_of_script(const Tree& tree, const std::string& file,
                                               const PythonVariables& variables) {
  if (variables.safe_path) return std::nullopt;
  return directory_of(tree.real_path(file).value_or(file));
}

Result<Program> read_script(const Tree& tree, const Targets& targets,
                            const PythonVariables& variables) {
  const std::string& word = targets.program;
  const auto status = tree.stat(word);
  if (!status || !status->is_regular())
    return fail(fmt::format("expected a program at {}, but: {}", word,
                            status ? "it is no regular file" : std::strerror(status.error())));
  Program program;
  program.file = join_normal(word.starts_with('/') ? "" : current_directory(tree), word);
  program.directory = directory_of_script(tree, word, variables);
  program.arguments = targets.arguments;
  if (!word.ends_with(".ipynb")) {
    program.title = command_line("python", word, targets);
    return program;
  }
  program.title = "jupyter execute " + shell_word(word);
  const auto text = tree.read_text(program.file, kMaxNotebook);
  if (!text) return fail(fmt::format("cannot read {}, or it is larger than 256 MiB", word));
  auto notebook = python::read_notebook(*text, program.file);
  if (!notebook) return tl::unexpected<Error>(notebook.error());
  program.notebook = std::move(*notebook);
  return program;
}

}  // namespace

std::optional<std::string> first_directory(const Tree& tree, const PythonVariables& variables) {
  if (!tree.has_process() || variables.safe_path) return std::nullopt;
  return tree.real_path(".");
}

std::optional<std::string> directory_of_imports(const Tree& tree,
                                                const PythonVariables& variables) {
  auto directory = first_directory(tree, variables);
  if (!directory) return std::nullopt;
  const std::vector<std::string> names = tree.list(*directory);
  const bool has_modules = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    for (const char* suffix : {".py", ".pyc", ".so"})
      if (name.ends_with(suffix)) return true;
    const auto status = name.find('.') == std::string::npos
                            ? tree.stat(*directory + "/" + name)
                            : tl::expected<FileStatus, int>(FileStatus{});
    return status && status->is_directory();
  });
  return has_modules ? directory : std::nullopt;
}

Result<Targets> split_targets(const Tree& tree, const std::vector<std::string>& words,
                              bool has_module) {
  Targets targets;
  size_t next = 0;
  const auto starts_program = [&](size_t at) {
    const auto status = tree.stat(words[at]);
    if (status && status->is_directory()) return false;
    const bool is_file = status && status->is_regular();
    return is_program(words[at]) || (is_file && is_python_script(tree, words[at]));
  };
  if (next < words.size() && !starts_program(next)) targets.environment = words[next++];
  if (!has_module && next < words.size()) {
    if (!starts_program(next))
      return fail(
          fmt::format("expected a program (a file that ends in .py or .ipynb, or whose first line "
                      "names Python) after the environment, found {}",
                      words[next]));
    targets.program = words[next++];
  }
  targets.arguments.assign(words.begin() + static_cast<ptrdiff_t>(next), words.end());
  return targets;
}

Result<std::optional<Program>> read_program(const Tree& tree, const Targets& targets,
                                            const std::string& module,
                                            const PythonVariables& variables) {
  if (!module.empty()) {
    Program program;
    program.title = command_line("python -m", module, targets);
    program.module = module;
    program.arguments = targets.arguments;
    program.directory = first_directory(tree, variables);
    return std::optional(std::move(program));
  }
  if (targets.program.empty()) return std::optional<Program>();
  auto script = read_script(tree, targets, variables.seen_in(tree));
  if (!script) return tl::unexpected<Error>(script.error());
  return std::optional(std::move(*script));
}

Result<Target> read_target(const Tree& tree, const TargetWords& given,
                           const PythonVariables& variables,
                           const std::map<std::string, std::string>& environment) {
  if (!given.module.empty())
    if (auto module = read_module_list(given.module); !module || module->size() != 1)
      return fail("-m takes the name of one module, not " + given.module);
  std::vector<std::string> words;
  for (const std::string& word : given.words)
    if (!word.empty()) words.push_back(word);
  words.insert(words.end(), given.arguments.begin(), given.arguments.end());
  auto targets = split_targets(tree, words, !given.module.empty());
  if (!targets) return tl::unexpected<Error>(targets.error());
  targets->variables = environment;
  auto program = read_program(tree, *targets, given.module, variables);
  if (!program) return tl::unexpected<Error>(program.error());
  return Target{std::move(targets->environment), std::move(*program)};
}

python::PlanRequest request_of(const Program& program,
                               const std::map<std::string, std::string>& environment) {
  python::PlanRequest request;
  request.code_file = program.file;
  request.run_module = program.module;
  request.directory = program.directory;
  request.arguments = program.arguments;
  request.environment = environment;
  if (program.notebook) request.code = program.notebook->code;
  return request;
}

}  // namespace cohabit
