// The order of sys.path, which decides between two copies of a module: PYTHONPATH, python3XY.zip,
// the standard library, lib-dynload; then site.py adds a venv's packages, the user's, those of the
// base, and after each directory what its .pth files name. A directory counts as known by its text
// alone, as os.path.abspath makes it: a symlink to lib is another entry. Details that changed
// between 3.8 and 3.14 stand where they matter; Debian's site.py has directories of its own.
#include "facts/python/site_path.h"

#include <algorithm>
#include <cstdlib>

namespace cohabit {
namespace {

constexpr uint64_t kMaxPthFile = 1 << 20;

std::string join(const std::string& directory, const std::string& name) {
  if (name.starts_with('/')) return name;
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

// os.path.abspath: "..", unlike in the kernel, takes away the component before it.
std::string make_absolute(const Tree& tree, const std::string& path) {
  const std::string whole = path.starts_with('/') ? path : join(tree.current_directory(), path);
  std::string result;
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string part = whole.substr(begin, end - begin);
    if (part == "..")
      result.erase(std::min(result.rfind('/'), result.size()));
    else if (!part.empty() && part != ".")
      result += "/" + part;
    begin = end + 1;
  }
  return result.empty() ? "/" : result;
}

bool is_directory(const Tree& tree, const std::string& path) {
  const auto status = tree.stat(path);
  return status && status->is_directory();
}

// The patch level of "3.11.7"; `unknown` if it is not told.
int patch_of(const std::string& version, int unknown) {
  const size_t dot = version.find('.', version.find('.') + 1);
  return dot == std::string::npos ? unknown : std::atoi(version.c_str() + dot + 1);
}

// Files named ".x.pth" were read until early 2024 (gh-113659).
bool reads_hidden_pth_files(const Interpreter& interpreter) {
  constexpr int kFirstWithout[] = {19, 19, 14, 8, 2};  // of 3.8 to 3.12
  if (interpreter.major != 3 || interpreter.minor > 12) return false;
  if (interpreter.minor < 8) return true;
  const int first = kFirstWithout[interpreter.minor - 8];
  return patch_of(interpreter.version, first) < first;
}

// Since 3.13 a .pth file is UTF-8, with or without a byte order mark, split by str.splitlines.
std::vector<std::string> lines_of(std::string_view text, bool as_since_3_13) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (as_since_3_13 && text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text) {
    const bool ends = c == '\n' || c == '\r' ||
                      (as_since_3_13 && (c == '\v' || c == '\f' || (c >= 0x1c && c <= 0x1e)));
    if (ends) {
      if (!line.empty()) lines.push_back(std::move(line));
      line.clear();
    } else {
      line += c;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string without_end(const std::string& line) {  // str.rstrip
  return line.substr(0, line.find_last_not_of(" \t\r\n\v\f\x1c\x1d\x1e\x1f") + 1);
}

class SitePath {
 public:
  SitePath(const Tree& tree, Interpreter& result) : tree_(tree), result_(result) {}

  void add_python_path(const std::string& variable) {
    if (variable.empty()) return;
    for (size_t begin = 0; begin <= variable.size();) {
      const size_t end = std::min(variable.find(':', begin), variable.size());
      add(make_absolute(tree_, variable.substr(begin, end - begin)), true);
      begin = end + 1;
    }
  }

  void add_standard_library() {
    const std::string& library = result_.standard_library;
    if (library.empty()) return;
    const std::string lib = library.substr(0, library.rfind('/'));
    add(join(lib,
             "python" + std::to_string(result_.major) + std::to_string(result_.minor) + ".zip"),
        false);
    add(library, false);
    add(join(library, "lib-dynload"), false);
  }

  // site.addsitedir: a directory that is known already has its .pth files read all the same.
  void add_site(const std::string& directory) {
    if (!is_directory(tree_, directory)) return;
    const std::string site = make_absolute(tree_, directory);
    add(site, true);
    if (!contains(sites_read_, site)) {
      sites_read_.push_back(site);
      const bool hidden = reads_hidden_pth_files(result_);
      for (const std::string& name : tree_.list(site))
        if (name.ends_with(".pth") && (hidden || name[0] != '.')) add_pth(site, name);
    }
  }

  // site.getsitepackages for one prefix.
  void add_prefix(const std::string& prefix) {
    if (prefix.empty()) return;
    const std::string& library = result_.standard_library;
    const std::string python = library.empty() ? "python" + std::to_string(result_.major) + "." +
                                                     std::to_string(result_.minor)
                                               : library.substr(library.rfind('/') + 1);
    if (is_debian()) return add_debian_prefix(prefix, python);
    // sys.platlibdir is lib64 in some distributions.
    if (library.ends_with("/lib64/" + python)) add_site(join(prefix, "lib64/" + python) + kSite);
    add_site(join(prefix, "lib/" + python) + kSite);
  }

 private:
  static constexpr const char* kSite = "/site-packages";

  // Debian's own Python, told by its dist-packages.
  bool is_debian() const {
    return result_.base_prefix == "/usr" && is_directory(tree_, "/usr/lib/python3/dist-packages");
  }

  void add_debian_prefix(const std::string& prefix, const std::string& python) {
    if (result_.prefix != result_.base_prefix) add_site(join(prefix, "lib/" + python) + kSite);
    add_site(join(prefix, "local/lib/" + python + "/dist-packages"));
    add_site(join(prefix, "lib/python3/dist-packages"));
    add_site(join(prefix, "lib/" + python + "/dist-packages"));
  }

  void add_pth(const std::string& directory, const std::string& name) {
    const std::string file = join(directory, name);
    const std::string text = tree_.read_text(file, kMaxPthFile).value_or("");
    for (const std::string& line : lines_of(text, result_.minor >= 13)) {
      if (line[0] == '#') continue;
      const std::string entry = without_end(line);
      if (entry.empty()) continue;
      if (line.starts_with("import ") || line.starts_with("import\t"))
        result_.pth_lines.push_back({file, line});
      else
        add(make_absolute(tree_, join(directory, entry)), true);
    }
  }

  void add(const std::string& entry, bool is_site) {
    const auto status = tree_.stat(entry);
    if (!status || contains(result_.module_path, entry)) return;
    result_.module_path.push_back(entry);
    if (!is_site || !status->is_directory()) return;
    // Whoever looks for distributions wants each directory once, by whatever name.
    if (std::find(seen_.begin(), seen_.end(), status->id) != seen_.end()) return;
    seen_.push_back(status->id);
    result_.site_directories.push_back(entry);
  }

  static bool contains(const std::vector<std::string>& list, const std::string& entry) {
    return std::find(list.begin(), list.end(), entry) != list.end();
  }

  const Tree& tree_;
  Interpreter& result_;
  std::vector<FileId> seen_;
  std::vector<std::string> sites_read_;
};

std::string user_site_of(const Tree& tree, const Interpreter& interpreter,
                         const PythonVariables& variables) {
  const bool is_venv = interpreter.kind == EnvironmentKind::kVenv;
  // As site.getuserbase: the variable is taken as it is, "~" too.
  if (variables.no_user_site || (variables.home.empty() && variables.user_base.empty())) return "";
  const std::string base = variables.user_base.empty() ? join(variables.home, ".local")
                                                       : make_absolute(tree, variables.user_base);
  if (is_venv && !interpreter.system_site_packages) return "";
  const std::string user = join(base, "lib/python" + std::to_string(interpreter.major) + "." +
                                          std::to_string(interpreter.minor) + "/site-packages");
  return is_directory(tree, user) ? user : "";
}

}  // namespace

void read_site_path(const Tree& tree, Interpreter& interpreter, const PythonVariables& variables) {
  SitePath path(tree, interpreter);
  path.add_python_path(variables.python_path);
  path.add_standard_library();
  const bool is_venv = interpreter.kind == EnvironmentKind::kVenv;
  if (is_venv) path.add_prefix(interpreter.prefix);  // before the user's
  interpreter.user_site = user_site_of(tree, interpreter, variables);
  if (!interpreter.user_site.empty()) path.add_site(interpreter.user_site);
  if (!is_venv || interpreter.system_site_packages) path.add_prefix(interpreter.base_prefix);
}

}  // namespace cohabit
