#include "cli/shell_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "actions/launch.h"
#include "base/paths.h"
#include "base/rows.h"
#include "base/text.h"
#include "facts/python/interpreter.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 8;  // sourced, and started
constexpr int kMaxDepth = 20;    // texts within texts

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_name_letter);
}

// Behind the bracket that closes the one at `begin`.
size_t end_of_bracket(std::string_view text, size_t begin, char open, char close) {
  int depth = 0;
  for (size_t at = begin; at < text.size(); at++) {
    if (text[at] == open) depth++;
    if (text[at] == close && --depth == 0) return at + 1;
  }
  return text.size();
}

class ShellReader {
 public:
  ShellReader(const Tree& tree, const std::string& directory) : tree_(tree) {
    std::error_code error;
    for (const std::string& base : {fs::current_path(error).string(), directory})
      if (!base.empty()) bases_.push_back(base);
    variables_["PATH"] = "";  // what stands in front of it is what the text adds
  }

  std::optional<std::string> find(const std::string& text) {
    read(text);
    if (!strong_.empty()) return strong_;
    for (const std::string& name : names_)
      if (auto found = interpreter_of_word(tree_, name)) return found->interpreter;
    return std::nullopt;
  }

 private:
  // As the shell makes it, variables put in; what cannot be known of it is left out.
  struct Word {
    std::string text;
    bool is_quoted = false;
  };

  void read(const std::string& text) {
    if (!strong_.empty() || depth_ == kMaxDepth) return;
    depth_++;
    size_t at = 0;
    std::vector<Word> command;
    while (at < text.size() && strong_.empty()) {
      const char c = text[at];
      if (c == '#' && (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0)) {
        at = std::min(text.find('\n', at), text.size());
      } else if (c == '\\' && text.compare(at, 2, "\\\n") == 0) {
        at += 2;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        at++;
      } else if (std::string_view("\n;|&()`").find(c) != std::string_view::npos) {
        run(command);
        command.clear();
        at++;
      } else {
        command.push_back(next_word(text, at));
      }
    }
    run(command);
    depth_--;
  }

  // `whole`: to the end of the text, whatever stands between.
  Word next_word(const std::string& text, size_t& at, bool whole = false) {
    Word word;
    char quote = 0;
    for (; at < text.size(); at++) {
      const char c = text[at];
      if (quote ? c == quote : c == '"' || c == '\'') {
        quote = quote ? 0 : c;
        word.is_quoted = true;
      } else if (c == '$' && quote != '\'') {
        word.text += dollar(text, at);
        at--;
      } else if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
        if (text[++at] != '\n') word.text += text[at];
      } else if (!quote && !whole &&
                 std::string_view(" \t\r\n;|&()`").find(c) != std::string_view::npos) {
        break;
      } else {
        word.text += c;
      }
    }
    if (word.text.starts_with("~/"))
      if (const char* home = std::getenv("HOME")) word.text.replace(0, 1, home);
    return word;
  }

  // $NAME, ${NAME:-default}, $(command), and $(NAME) and $$ of makefiles; `at` goes behind it.
  std::string dollar(const std::string& text, size_t& at) {
    const size_t begin = ++at;
    if (begin >= text.size()) return "";
    if (text[begin] == '$') return dollar(text, at);
    if (text[begin] == '(') {
      at = end_of_bracket(text, begin, '(', ')');
      const std::string inner = text.substr(begin + 1, at - begin - 2);
      if (is_name(inner)) return value_of(inner);
      read(inner);
      return "";
    }
    if (text[begin] == '{') {
      at = end_of_bracket(text, begin, '{', '}');
      const std::string inner = text.substr(begin + 1, at - begin - 2);
      const size_t end = static_cast<size_t>(
          std::find_if_not(inner.begin(), inner.end(), is_name_letter) - inner.begin());
      std::string value = value_of(inner.substr(0, end));
      const std::string_view rest = std::string_view(inner).substr(end);
      if (depth_ < kMaxDepth && value.empty() &&
          (rest.starts_with(":-") || rest.starts_with("-"))) {
        size_t from = 0;
        depth_++;
        value = next_word(std::string(rest.substr(rest[0] == ':' ? 2 : 1)), from, true).text;
        depth_--;
      }
      return value;
    }
    while (at < text.size() && is_name_letter(text[at])) at++;
    if (at == begin) at++;  // $@, $#, ...
    return value_of(text.substr(begin, at - begin));
  }

  std::string value_of(const std::string& name) const {
    if (const auto set = variables_.find(name); set != variables_.end()) return set->second;
    const char* value = is_name(name) ? std::getenv(name.c_str()) : nullptr;
    return value ? value : "";
  }

  // As it stands and, where a part in front was left out or it is relative, below each directory.
  std::vector<std::string> places(const std::string& path) const {
    std::vector<std::string> found;
    if (path.starts_with('/')) found.push_back(path);
    for (auto base = bases_.rbegin(); base != bases_.rend(); ++base)
      found.push_back(*base + (path.starts_with('/') ? "" : "/") + path);
    return found;
  }

  bool take(const std::string& path) {
    for (const std::string& place : places(path))
      if (auto found = interpreter_of_word(tree_, place)) {
        strong_ = found->interpreter;
        return true;
      }
    return false;
  }

  bool take_environment(const std::string& bin) {
    return take(bin + "/python") || take(bin + "/python3");
  }

  void run(const std::vector<Word>& command) {
    size_t first = 0;
    for (size_t at = 0; at < command.size() && strong_.empty(); at++) {
      std::string word = command[at].text;
      if (at == first) word.erase(0, word.find_first_not_of("@-+"));  // a makefile's recipe
      const std::string next = at + 1 < command.size() ? command[at + 1].text : "";
      const bool goes_before = word == "export" || word == "exec" || word == "then" ||
                               word == "do" || word == "else" || word == "{";
      if (goes_before || (at == first && assign(word))) {
        first = at + 1;
      } else if (at == first && (next == "=" || next == ":=" || next == "?=" || next == "::=")) {
        std::string value;  // a makefile's: the rest of the line
        for (size_t rest = at + 2; rest < command.size(); rest++)
          value += (value.empty() ? "" : " ") + command[rest].text;
        return set(word, value);
      } else {
        read_word(command, at, word);
      }
    }
  }

  bool assign(const std::string& word) {
    const size_t equals = word.find('=');
    if (equals == word.npos || !is_name(word.substr(0, equals))) return false;
    set(word.substr(0, equals), word.substr(equals + 1));
    return true;
  }

  void set(const std::string& name, const std::string& value) {
    variables_[name] = value;
    if (name != "PATH") return;
    for (const std::string_view directory : split(value, ':'))
      if (directory.empty() || take_environment(std::string(directory))) return;
  }

  void read_word(const std::vector<Word>& command, size_t at, const std::string& word) {
    const std::string next = at + 1 < command.size() ? command[at + 1].text : "";
    const std::string name = last_part(word);
    if (word == "cd" || word == "pushd") {
      for (const std::string& place : places(next))
        if (const auto status = tree_.stat(place); status && status->is_directory()) {
          bases_.push_back(place);
          return;
        }
    } else if (word == "source" || word == ".") {
      if (last_part(next).starts_with("activate"))
        take_environment(directory_of(next).empty() ? "." : directory_of(next));
      else
        read_file(next);
    } else if (is_conda(name)) {
      read_conda(command, at);
    } else if (name.starts_with("python")) {
      const bool makes_environment =
          next == "-m" && at + 2 < command.size() && command[at + 2].text.ends_with("env");
      if (word.find('/') == word.npos)
        names_.push_back(word);
      else if (!makes_environment)
        take(word);
    } else if (name.ends_with(".sh")) {
      read_file(word);
    } else if (word.find("/bin/") != word.npos && !word.starts_with("/bin/") &&
               !word.starts_with("/usr/")) {
      take(word);  // a script of an environment: uvicorn, torchrun
    }
    // A text for another shell: bash -c "...", su -c '...'.
    if (command[at].is_quoted && word.find(' ') != word.npos) read(word);
  }

  void read_conda(const std::vector<Word>& command, size_t at) {
    const std::string verb = at + 1 < command.size() ? command[at + 1].text : "";
    for (size_t i = at + 2; i < command.size(); i++) {
      const std::string& word = command[i].text;
      const bool is_choice = verb == "activate"
                                 ? !word.starts_with('-')
                                 : verb == "run" && chooses_conda_environment(command[i - 1].text);
      if (!is_choice) continue;
      if (const auto prefix = conda_environment(tree_, word)) take_environment(*prefix + "/bin");
      return;
    }
  }

  void read_file(const std::string& path) {
    for (const std::string& place : places(path)) {
      if (files_.size() >= kMaxFiles || files_.contains(place)) return;
      const auto text = text_of_script(tree_, place);
      if (!text) continue;
      files_.insert(place);
      bases_.push_back(directory_of(place));
      return read(*text);
    }
  }

  const Tree& tree_;
  std::vector<std::string> bases_;  // the last is tried first
  std::map<std::string, std::string> variables_;
  std::set<std::string> files_;
  int depth_ = 0;
  std::string strong_;  // by a path
  std::vector<std::string> names_;
};

}  // namespace

std::optional<FoundWord> interpreter_of_word(const Tree& tree, const std::string& word) {
  if (word.empty() || word[0] == '-') return std::nullopt;
  const auto path = find_command(word);
  if (!path || ::access(path->c_str(), X_OK) != 0) return std::nullopt;
  const auto status = tree.stat(fs::absolute(*path).lexically_normal().string());
  if (!status || !status->is_regular()) return std::nullopt;
  auto python = find_interpreter(tree, *path);
  if (!python) return std::nullopt;
  return FoundWord{python->executable, *path};
}

std::optional<std::string> text_of_script(const Tree& tree, const std::string& path) {
  constexpr uint64_t kLongestScript = 256 << 10;
  std::error_code error;
  auto text = tree.read_text(fs::absolute(path, error).string(), kLongestScript);
  if (text && text->find('\0') != std::string::npos) text.reset();
  return text;
}

bool is_conda(std::string_view command) {
  return command == "conda" || command == "mamba" || command == "micromamba";
}

bool chooses_conda_environment(const std::string& option) {
  return option == "-n" || option == "--name" || option == "-p" || option == "--prefix";
}

// In envs/ below the installation ("base" is it itself), or in ~/.conda/envs.
std::optional<std::string> conda_environment(const Tree& tree, const std::string& name) {
  std::vector<std::string> places;
  if (name.find('/') != name.npos) {
    places.push_back(name);
  } else {
    std::vector<std::string> roots;
    if (const char* conda = std::getenv("CONDA_EXE"))
      roots.push_back(directory_of(directory_of(conda)));
    for (const char* variable : {"MAMBA_ROOT_PREFIX", "CONDA_PREFIX"})
      if (const char* root = std::getenv(variable)) roots.emplace_back(root);
    for (const std::string& root : roots) {
      const std::string above = directory_of(root);  // CONDA_PREFIX may be an environment itself
      for (const std::string& base : {root, last_part(above) == "envs" ? directory_of(above) : ""})
        if (!base.empty())
          places.push_back(name == "base" ? base : fmt::format("{}/envs/{}", base, name));
    }
    if (const char* home = std::getenv("HOME"))
      places.push_back(std::string(home) + "/.conda/envs/" + name);
  }
  for (const std::string& place : places)
    if (interpreter_of_word(tree, place + "/bin/python")) return place;
  return std::nullopt;
}

std::optional<std::string> python_in_shell_text(const Tree& tree, const std::string& text,
                                                const std::string& directory) {
  return ShellReader(tree, directory).find(text);
}

}  // namespace cohabit
