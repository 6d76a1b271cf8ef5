#include "cli/recorded.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <regex>

#include "actions/trace.h"
#include "cli/arguments.h"

namespace cohabit {
namespace {

// An empty directory: files of the current one would shadow modules.
class NeutralDirectory {
 public:
  NeutralDirectory() {
    char name[] = "/tmp/cohabit-doctor-XXXXXX";
    if (mkdtemp(name)) path_ = name;
  }
  ~NeutralDirectory() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  NeutralDirectory(const NeutralDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<Trace> record(const std::string& directory, const std::vector<std::string>& command) {
  RecordOptions options;
  options.working_directory = directory;
  options.standard_output = STDERR_FILENO;
  // Examining leaves no __pycache__ behind, neither do the Pythons that it starts.
  options.environment = {"PYTHONDONTWRITEBYTECODE=1"};
  return record_trace(options, command);
}

}  // namespace

std::vector<std::string> imports_of_command(const std::vector<std::string>& arguments) {
  static const std::regex kImport(
      "(?:^|[;\\n])\\s*(?:import|from)\\s+([A-Za-z_][\\w.]*)((?:\\s*,\\s*[A-Za-z_][\\w.]*)*)");
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < arguments.size(); i++) {
    if (arguments[i] != "-c") continue;
    const std::string& code = arguments[i + 1];
    for (std::sregex_iterator at(code.begin(), code.end(), kImport), end; at != end; ++at) {
      names.push_back((*at)[1]);
      if (auto more = read_module_list((*at)[2].str()))
        names.insert(names.end(), more->begin(), more->end());
    }
    break;
  }
  return names;
}

Result<Trace> record_imports(const Interpreter& python, const std::vector<std::string>& imports) {
  std::string code;
  for (const std::string& name : imports) code += (code.empty() ? "import " : "; import ") + name;
  fmt::print(stderr, "running {} -c '{}'\n", python.executable, code);
  const NeutralDirectory directory;
  return record(directory.path(), {python.executable, "-c", code});
}

Result<Trace> record_program(const Interpreter& python, const Program& program) {
  if (program.notebook)
    return fail(
        "a notebook is read, not run: leave --trace out, or record the kernel with "
        "`cohabit trace`");
  fmt::print(stderr, "running {} of {}\n", program.title, python.prefix);
  std::vector<std::string> command = {python.executable};
  if (program.module.empty())
    command.push_back(program.file);
  else
    command.insert(command.end(), {"-m", program.module});
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return record("", command);
}

}  // namespace cohabit
