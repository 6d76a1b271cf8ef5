// CPython finds itself by landmarks (Modules/getpath.py since 3.11, getpath.c before): pyvenv.cfg
// beside the executable as it was named, or one directory up, makes a venv whose `home` is where
// the base interpreter lives; else the standard library's os.py is looked for from the directory of
// the real executable upward. The same steps, on files only.
#include "facts/python/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/paths.h"
#include "base/rows.h"
#include "base/variables.h"
#include "facts/elf/object.h"
#include "facts/python/site_path.h"

namespace cohabit {
namespace {

constexpr size_t kMaxShims = 4;  // scripts that name scripts
constexpr size_t kMaxScriptHead = 8192;
constexpr uint64_t kMaxText = 1 << 20;  // of pyvenv.cfg, .pth and the like

// ---- paths as text

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string join(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

// Absolute, without "//", "/./" and a slash at the end; ".." stays, as symlinks give it a meaning.
std::string absolute(const Tree& tree, const std::string& path) {
  const std::string whole = path.starts_with('/') ? path : join(tree.current_directory(), path);
  std::string result;
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string part = whole.substr(begin, end - begin);
    if (!part.empty() && part != ".") result += "/" + part;
    begin = end + 1;
  }
  return result.empty() ? "/" : result;
}

std::string trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_directory(const Tree& tree, const std::string& path) {
  const auto status = tree.stat(path);
  return status && status->is_directory();
}
bool is_file(const Tree& tree, const std::string& path) {
  const auto status = tree.stat(path);
  return status && status->is_regular();
}

// ---- versions

struct Version {
  int major = 0, minor = 0;
  std::string text;
};

// "3.11", "3.11.7" or "3.12.0rc1" at the start of text; major 0 if it is not there.
Version parse_version(std::string_view text) {
  Version version;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto major = std::from_chars(begin, end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc() || version.major < 2 || version.major > 3 || version.minor < 0)
    return {};
  const char* stop = minor.ptr;
  if (stop + 1 < end && *stop == '.' && stop[1] >= '0' && stop[1] <= '9') {
    stop++;
    while (stop < end &&
           ((*stop >= '0' && *stop <= '9') || (*stop >= 'a' && *stop <= 'c') || *stop == 'r'))
      stop++;
  }
  version.text.assign(begin, stop);
  return version;
}

// Of a directory or program named python3.11, pypy3.10 or libpython3.11.so.1.0.
Version version_in_name(const std::string& name) {
  const size_t digit = name.find_first_of("0123456789");
  if (digit == std::string::npos) return {};
  Version version = parse_version(std::string_view(name).substr(digit));
  if (version.major != 0)
    version.text = std::to_string(version.major) + "." + std::to_string(version.minor);
  return version;
}

// ---- the standard library as landmark

struct StandardLibrary {
  std::string prefix;
  std::string directory;  // prefix/lib/python3.11
  Version version;
};

// prefix/lib/python3.11 with os.py in it; `wanted` (major 0: any) decides between several, the
// newest is taken otherwise.
StandardLibrary library_in(const Tree& tree, const std::string& prefix, const Version& wanted) {
  StandardLibrary best;
  for (const char* lib : {"lib", "lib64"}) {
    const std::string directory = join(prefix, lib);
    for (const std::string& name : tree.list(directory)) {
      if (!name.starts_with("python") && !name.starts_with("pypy")) continue;
      const Version version = version_in_name(name);
      if (version.major == 0) continue;
      if (wanted.major != 0 && (version.major != wanted.major || version.minor != wanted.minor))
        continue;
      if (std::pair(version.major, version.minor) <=
          std::pair(best.version.major, best.version.minor))
        continue;
      if (is_file(tree, join(join(directory, name), "os.py")))
        best = {prefix, join(directory, name), version};
    }
  }
  return best;
}

// Not in "/" itself: getpath's search ends before, and /lib is often a symlink to /usr/lib.
StandardLibrary search_up(const Tree& tree, std::string directory, const Version& wanted) {
  for (; directory.size() > 1; directory = parent_of(directory)) {
    StandardLibrary found = library_in(tree, directory, wanted);
    if (!found.prefix.empty()) return found;
  }
  return {};
}

// ---- pyvenv.cfg

using Configuration = std::map<std::string, std::string>;

Configuration parse_configuration(std::string_view text) {
  Configuration values;
  for (const std::string& line : split(text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string key = trim(std::string_view(line).substr(0, equals));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    values[key] = trim(std::string_view(line).substr(equals + 1));
  }
  return values;
}

// The directory of pyvenv.cfg for this executable; empty if it is not of a venv.
std::string venv_of(const Tree& tree, const std::string& executable) {
  const std::string bin = parent_of(executable);
  for (const std::string& directory : {bin, parent_of(bin)})
    if (!directory.empty() && is_file(tree, join(directory, "pyvenv.cfg"))) return directory;
  return "";
}

// ---- from what the user names to an executable

const std::vector<std::string> kProgramNames = {"python", "python3", "pypy3", "pypy"};

bool is_python_name(const std::string& name) {
  return name.starts_with("python") || name.starts_with("pypy") || name.starts_with("graalpy");
}

// The interpreter in a bin directory; empty if none. Names that lead nowhere count: they are the
// better error.
std::string program_in(const Tree& tree, const std::string& bin) {
  for (const std::string& name : kProgramNames)
    if (tree.stat(join(bin, name))) return join(bin, name);
  for (const std::string& name : tree.list(bin))
    if (is_python_name(name) && version_in_name(name).major != 0 &&
        name.find_first_not_of("0123456789.", name.find_first_of("0123456789")) ==
            std::string::npos)
      return join(bin, name);
  for (const std::string& name : kProgramNames)
    if (tree.read_link(join(bin, name))) return join(bin, name);
  return "";
}

std::string program_on_path(const Tree& tree, const std::string& path,
                            const std::vector<std::string>& names) {
  for (const std::string& directory : split(path, ':'))
    for (const std::string& name : names)
      if (directory.starts_with('/') && is_file(tree, join(directory, name)))
        return join(directory, name);
  return "";
}

// pyenv puts scripts named python into its shims directory, which ask it for the version.
std::string behind_pyenv_shim(const Tree& tree, const std::string& shim,
                              const PythonVariables& variables) {
  const std::string root = parent_of(parent_of(shim));
  std::vector<std::string> chosen = {variables.pyenv_version};
  if (tree.has_process())
    for (std::string at = absolute(tree, "."); !at.empty(); at = at == "/" ? "" : parent_of(at))
      chosen.push_back(tree.read_text(join(at, ".python-version"), kMaxText).value_or(""));
  chosen.push_back(tree.read_text(join(root, "version"), kMaxText).value_or(""));
  for (const std::string& text : chosen) {
    const std::string first = trim(std::string_view(text).substr(0, text.find_first_of(":\n")));
    if (first.empty()) continue;
    return program_in(tree, join(join(join(root, "versions"), first), "bin"));
  }
  return "";
}

// The interpreter that a script's first lines name: "#!/path/python", "#!/usr/bin/env python3", or
// pip's form for long paths, "#!/bin/sh" and then '''exec' /path/python "$0" "$@".
std::string interpreter_of_script(const Tree& tree, std::string_view text,
                                  const PythonVariables& variables) {
  const std::vector<std::string> lines = split(text.substr(0, kMaxScriptHead), '\n');
  const std::vector<std::string> words = split(trim(lines[0].substr(2)), ' ');
  if (is_python_name(name_of(words[0]))) return words[0];
  if (name_of(words[0]) == "env" && words.size() > 1)
    return program_on_path(tree, variables.path, {words.back()});
  constexpr std::string_view kExec = "'''exec' ";
  if (lines.size() > 1 && lines[1].starts_with(kExec)) {
    const std::string rest = lines[1].substr(kExec.size());
    const char quote = rest.empty() ? ' ' : rest[0];
    if (quote == '"' || quote == '\'') return rest.substr(1, rest.find(quote, 1) - 1);
    return rest.substr(0, rest.find(' '));
  }
  return "";
}

// What is near a directory that holds no interpreter.
std::string nearest(const Tree& tree, const std::string& directory) {
  for (const char* name : {".venv", "venv", "env"}) {
    const std::string program = program_in(tree, join(join(directory, name), "bin"));
    if (!program.empty()) return "; the environment beside it is " + join(directory, name);
  }
  for (std::string at = directory; at.size() > 1; at = parent_of(at)) {
    const std::string program = program_in(tree, join(at, "bin"));
    if (!program.empty()) return "; it lies in the environment " + at;
  }
  return "";
}

Result<std::string> executable_in(const Tree& tree, const std::string& directory) {
  std::string program = program_in(tree, join(directory, "bin"));
  if (!program.empty()) return program;
  std::string here = program_in(tree, directory);
  if (!here.empty() && name_of(directory) == "bin") return here;
  return fail("expected a Python environment at " + directory +
              ", found a directory without bin/python" + nearest(tree, directory) +
              "; name the environment's directory or its interpreter");
}

struct Found {
  std::string path;  // of an executable
  std::string by;    // how, where nobody named it
};

// What a user would mean: what is activated, the project's own, conda's (whose base is often active
// everywhere), and what `python` starts.
Result<Found> active_executable(const Tree& tree, const PythonVariables& variables) {
  const std::string own = tree.has_process() ? absolute(tree, ".venv") : "";
  for (const auto& [prefix, by] :
       {std::pair(variables.virtual_env, "$VIRTUAL_ENV"), std::pair(own, ".venv"),
        std::pair(variables.conda_prefix, "$CONDA_PREFIX")}) {
    if (prefix.empty() || !is_directory(tree, prefix)) continue;
    const Result<std::string> program = executable_in(tree, prefix);
    if (!program) return fail(program.error().message);
    return Found{*program, by};
  }
  std::string program = program_on_path(tree, variables.path, {"python3", "python"});
  if (!program.empty()) return Found{program, "PATH"};
  return fail(
      "no Python environment was named, none is active (VIRTUAL_ENV, CONDA_PREFIX), there is no "
      ".venv here, and no python3 or python in PATH (" +
      variables.path + "); name an environment's directory or its interpreter");
}

bool is_lost(int error) {
  return error == ENOENT || error == ENOTDIR;
}

Error missing(const Tree& tree, const std::string& path, int error) {
  if (const auto target = tree.read_link(path))
    return {"expected a Python interpreter at " + path + ", found a symlink to " + *target +
            (is_lost(error) ? " that leads nowhere (" : " that cannot be followed (") +
            std::strerror(error) +
            (is_lost(error)
                 ? "): its base interpreter was moved or removed; create the environment again"
                 : "): let this user enter its directories (chmod a+x), or run as one who may")};
  std::string at = parent_of(path);
  while (at.size() > 1 && !tree.stat(at)) at = parent_of(at);
  return {"expected a Python environment at " + path + ", but: " + std::strerror(error) +
          (error == ENOENT && at.size() > 1 ? "; the nearest directory that exists is " + at : "")};
}

// "../env", as the kernel walks it: everything below is compared with this path.
std::string without_parents(const Tree& tree, const std::string& path) {
  if ((path + "/").find("/../") == std::string::npos) return path;
  if (is_directory(tree, path)) return tree.real_path(path).value_or(path);
  const auto directory = tree.real_path(parent_of(path));
  return directory ? join(*directory, name_of(path)) : path;
}

// An executable that is not a script. Shims and scripts are followed.
Result<Found> find_executable(const Tree& tree, const std::string& path,
                              const PythonVariables& variables) {
  std::string at, by;
  if (path.empty()) {
    const Result<Found> active = active_executable(tree, variables);
    if (!active) return active;
    at = active->path;
    by = active->by;
  } else {
    at = without_parents(tree, absolute(tree, path));
  }
  for (size_t i = 0; i < kMaxShims; i++) {
    const auto status = tree.stat(at);
    if (!status) return tl::unexpected(missing(tree, at, status.error()));
    if (status->is_directory()) {
      const Result<std::string> inside = executable_in(tree, at);
      if (!inside) return fail(inside.error().message);
      at = *inside;
      continue;
    }
    const Result<MappedFile> file = tree.map(at);
    if (!file) return fail("expected a Python interpreter: " + file.error().message);
    const std::string_view text = file->bytes().text();
    if (text.starts_with("\x7f"
                         "ELF"))
      return Found{at, by};
    std::string next;
    if (name_of(parent_of(at)) == "shims") next = behind_pyenv_shim(tree, at, variables);
    if (next.empty() && text.starts_with("#!")) next = interpreter_of_script(tree, text, variables);
    if (next.empty())
      return fail("expected a Python interpreter at " + at + ", found " +
                  (text.starts_with("#!") ? "a script that names no Python interpreter"
                                          : "a file that is neither a program nor a script") +
                  "; name the environment's directory or its interpreter");
    at = absolute(tree, next);
  }
  return fail("expected a Python interpreter at " + path + ", found scripts that name each other");
}

// ---- the steps of find_interpreter

Result<Interpreter> read_program(const Tree& tree, const std::string& executable) {
  Interpreter result;
  result.executable = executable;
  result.real_path = tree.real_path(executable).value_or(executable);
  const Result<MappedFile> file = tree.map(executable);
  if (!file) return fail("expected a Python interpreter: " + file.error().message);
  const elf::Object object = elf::parse(file->bytes());
  result.elf_machine = object.machine;
  result.elf_interpreter = object.interpreter;
  for (const elf::Dependency& dependency : object.dependencies)
    if (dependency.name.starts_with("libpython") || dependency.name.starts_with("libpypy"))
      result.libpython_soname = dependency.name;
  const bool named =
      is_python_name(name_of(executable)) || is_python_name(name_of(result.real_path));
  if (!named && result.libpython_soname.empty())
    return fail("expected a Python interpreter at " + executable +
                ", found a program that is neither named python nor linked to libpython; name the "
                "environment's directory or its interpreter");
  return result;
}

void set_version(Interpreter& result, const Version& version) {
  if (version.major == 0) return;
  const bool agrees = version.major == result.major && version.minor == result.minor;
  if (result.major != 0 && !agrees) return;
  result.major = version.major;
  result.minor = version.minor;
  if (version.text.size() > result.version.size()) result.version = version.text;
}

Version declared_version(const Configuration& configuration) {
  for (const char* key : {"version_info", "version"}) {
    const auto found = configuration.find(key);
    if (found == configuration.end()) continue;
    const Version version = parse_version(found->second);
    if (version.major != 0) return version;
  }
  return {};
}

// By the names of the program and its library; 0.0: they do not tell.
Version program_version(const Interpreter& result) {
  const Version version = version_in_name(name_of(result.real_path));
  return version.major != 0 ? version : version_in_name(result.libpython_soname);
}

void read_venv(const Tree& tree, Interpreter& result, const std::string& venv) {
  const Configuration configuration =
      parse_configuration(tree.read_text(join(venv, "pyvenv.cfg"), kMaxText).value_or(""));
  const auto value = [&](const char* key) {
    const auto found = configuration.find(key);
    return found == configuration.end() ? std::string() : found->second;
  };
  result.kind = EnvironmentKind::kVenv;
  result.prefix = venv;
  result.implementation = value("implementation");
  // As site.py: true when nothing is said.
  const std::string system_site = value("include-system-site-packages");
  result.system_site_packages = system_site.empty() || system_site == "true" ||
                                system_site == "True" || system_site == "TRUE";
  const std::string home = value("home");
  // A venv that was made again over an older one keeps the older's link: what runs is the program.
  const Version declared = declared_version(configuration), own = program_version(result);
  const bool is_another =
      own.major != 0 && declared.major != 0 &&
      std::pair(own.major, own.minor) != std::pair(declared.major, declared.minor);
  set_version(result, is_another ? own : declared);
  if (is_another)
    result.problems.push_back(fmt::format(
        "{} says version {}, and {} is Python {}.{}: the environment should be created again",
        join(venv, "pyvenv.cfg"), declared.text, result.real_path, own.major, own.minor));
  const Version wanted{result.major, result.minor, ""};
  StandardLibrary base;
  if (is_another) base = search_up(tree, parent_of(result.real_path), wanted);
  if (base.prefix.empty() && !home.empty()) base = search_up(tree, home, wanted);
  if (base.prefix.empty() && !home.empty()) {  // it may hold symlinks only
    if (const auto real = tree.real_path(program_in(tree, home)))
      base = search_up(tree, parent_of(*real), wanted);
  }
  if (base.prefix.empty()) {
    base = search_up(tree, parent_of(result.real_path), wanted);
    result.problems.push_back(
        join(venv, "pyvenv.cfg") +
        (home.empty() ? " has no `home`" : " says home = " + home + ", where no Python is") +
        "; the environment should be created again");
  }
  result.base_prefix = base.prefix;
  result.standard_library = base.directory;
  set_version(result, base.version);
}

// Where there is no venv, or nothing usable in its pyvenv.cfg.
void read_installation(const Tree& tree, Interpreter& result) {
  const Version wanted = program_version(result);
  const StandardLibrary library = search_up(tree, parent_of(result.real_path), wanted);
  set_version(result, wanted);
  set_version(result, library.version);
  result.prefix = library.prefix;
  result.standard_library = library.directory;
  if (library.prefix.empty()) {
    result.prefix = parent_of(parent_of(result.real_path));
    result.problems.push_back("no standard library (lib/python*/os.py) was found above " +
                              result.real_path);
  }
  result.base_prefix = result.prefix;
}

// The patch level, which only messages need: from the C header or conda's list, if they are there.
void refine_version(const Tree& tree, Interpreter& result) {
  const std::string short_version =
      std::to_string(result.major) + "." + std::to_string(result.minor);
  if (result.version.size() > short_version.size()) return;
  const std::string header =
      tree.read_text(result.base_prefix + "/include/python" + short_version + "/patchlevel.h",
                     kMaxText)
          .value_or("");
  constexpr std::string_view kDefine = "PY_VERSION";
  const size_t at = header.find('"', std::min(header.find(kDefine), header.size()));
  if (at != std::string::npos)
    set_version(result, parse_version(std::string_view(header).substr(at + 1)));
  for (const std::string& name : tree.list(result.base_prefix + "/conda-meta"))
    if (name.starts_with("python-" + short_version))
      set_version(result, parse_version(std::string_view(name).substr(7)));
}

std::string implementation_of(const Interpreter& result) {
  const std::string name = name_of(result.real_path);
  if (name.starts_with("pypy") || result.libpython_soname.starts_with("libpypy")) return "PyPy";
  return name.starts_with("graalpy") ? "GraalVM" : "CPython";
}

// pre-commit installs a hook into an environment of its own (py_env-...) and makes that the active
// one. The user's may still be behind it in PATH.
void leave_hooks_environment(PythonVariables& variables) {
  const std::string own = join_normal(variables.virtual_env, "bin");
  if (!last_part(variables.virtual_env).starts_with("py_env")) return;
  variables.virtual_env.clear();
  std::string kept;
  for (const std::string_view entry : split(variables.path, ':'))
    if (entry != own) kept.append(kept.empty() ? "" : ":").append(entry);
  variables.path = kept;
}

}  // namespace

PythonVariables PythonVariables::from_environment() {
  std::map<std::string, std::string> variables;
  for (const char* name : kNames)
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  return of(variables);
}

PythonVariables PythonVariables::of(const std::map<std::string, std::string>& variables) {
  const auto get = [&](const char* name) { return variable_of(variables, name); };
  PythonVariables result;
  result.virtual_env = get("VIRTUAL_ENV");
  result.conda_prefix = get("CONDA_PREFIX");
  result.path = get("PATH");
  result.home = get("HOME");
  result.python_path = get("PYTHONPATH");
  result.pyenv_version = get("PYENV_VERSION");
  result.user_base = get("PYTHONUSERBASE");
  result.no_user_site = !get("PYTHONNOUSERSITE").empty();
  result.safe_path = !get("PYTHONSAFEPATH").empty();
  if (!get("PRE_COMMIT").empty()) leave_hooks_environment(result);
  return result;
}

PythonVariables PythonVariables::seen_in(const Tree& tree) const {
  if (tree.has_process()) return *this;
  PythonVariables usual;
  usual.path = "/usr/local/bin:/usr/bin:/bin";
  usual.home = "/root";
  return usual;
}

Result<Interpreter> find_interpreter(const Tree& tree, const std::string& path,
                                     const PythonVariables& variables) {
  const PythonVariables seen = variables.seen_in(tree);
  const Result<Found> found = find_executable(tree, path, seen);
  if (!found) return fail(found.error().message);
  const std::string& executable = found->path;
  Result<Interpreter> result = read_program(tree, executable);
  if (!result) return result;
  result->found_by = found->by;

  const std::string venv = venv_of(tree, executable);
  if (!venv.empty()) read_venv(tree, *result, venv);
  if (result->base_prefix.empty()) {
    const std::string prefix = result->prefix;
    read_installation(tree, *result);
    if (!prefix.empty()) result->prefix = prefix;
  }
  if (result->major == 0)
    return fail("expected a Python interpreter at " + executable +
                ", but no version of Python could be found for it (no pyvenv.cfg, no libpython, no "
                "lib/python3.* above " +
                result->real_path + "); name another interpreter");
  if (is_directory(tree, join(result->prefix, "conda-meta")))
    result->kind = EnvironmentKind::kConda;
  if (result->implementation.empty()) result->implementation = implementation_of(*result);
  refine_version(tree, *result);
  read_site_path(tree, *result, seen);
  if (result->site_directories.empty())
    result->problems.push_back("no site-packages directory was found below " + result->prefix);
  return result;
}

}  // namespace cohabit
