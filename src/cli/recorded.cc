#include "cli/recorded.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "actions/trace.h"
#include "imports/syntax.h"

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

// Of all statements that run when the code does: not those of functions.
void collect_imports(python::Block block, std::vector<std::string>& names) {
  for (const python::Stmt* one : block) {
    if (one->kind == python::StmtKind::kImport)
      for (const python::Alias& alias : one->aliases) names.emplace_back(alias.name);
    if (one->kind == python::StmtKind::kImportFrom && one->level == 0)
      names.emplace_back(one->name);
    for (const python::Block inner : {one->body, one->orelse, one->finally})
      collect_imports(inner, names);
    for (const python::Handler& handler : one->handlers) collect_imports(handler.body, names);
    for (const python::Case& match : one->cases) collect_imports(match.body, names);
  }
}

}  // namespace

std::vector<std::string> imports_of_command(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i + 1 < arguments.size(); i++) {
    if (arguments[i] != "-c") continue;
    const python::Syntax syntax(arguments[i + 1]);
    std::vector<std::string> names;
    collect_imports(syntax.module(), names);
    return names;
  }
  return {};
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
