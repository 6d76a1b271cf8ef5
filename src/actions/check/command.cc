#include "actions/check/command.h"

#include <algorithm>

#include "base/paths.h"

namespace cohabit::check {
namespace {

// uv is asked about this environment in any case, to be heard, and with these options once.
std::vector<std::string> as_question(std::vector<std::string> words) {
  const auto is_any = [](const std::string& word, std::initializer_list<const char*> of) {
    return std::find(of.begin(), of.end(), word) != of.end();
  };
  for (size_t i = 0; i < words.size();) {
    const std::string& word = words[i];
    const bool valued = is_any(word, {"--python", "-p", "--color"});
    const bool whole = is_any(word, {"-q", "-qq", "--quiet", "-v", "--verbose", "--no-progress"}) ||
                       word.starts_with("--python=") || word.starts_with("--color=") ||
                       (word.starts_with("-p") && !word.starts_with("--") && word != "-p");
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    if (valued || whole)
      words.erase(at, at + (valued && i + 1 < words.size() ? 2 : 1));
    else
      i++;
  }
  return words;
}

std::optional<Verb> verb_of(std::string_view word) {
  if (word == "install") return Verb::kInstall;
  if (word == "uninstall") return Verb::kUninstall;
  if (word == "sync") return Verb::kSync;
  return std::nullopt;
}

}  // namespace

bool is_pip(std::string_view name) {
  return name.starts_with("pip") && name.substr(3).find_first_not_of("0123456789.") == name.npos;
}

bool is_module_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('m');
}

std::optional<AskedInstall> read_command(const std::string& path,
                                         const std::vector<std::string>& command) {
  const auto verb = std::find_if(command.begin(), command.end(),
                                 [](const std::string& word) { return verb_of(word).has_value(); });
  if (verb == command.end() ||
      std::find(command.begin(), command.end(), "--dry-run") != command.end())
    return std::nullopt;
  AskedInstall asked;
  asked.request.verb = *verb_of(*verb);
  asked.installer.command.assign(command.begin(), verb);
  if (asked.installer.command.empty()) return std::nullopt;
  const std::string name = last_part(command[0]);
  asked.installer.command[0] = path;
  asked.request.arguments.assign(verb + 1, command.end());
  const bool by_module = asked.installer.command.size() >= 3 && is_module_option(*(verb - 2)) &&
                         *(verb - 1) == "pip" && name.starts_with("python");
  if (is_pip(name) || by_module)
    return asked.request.verb == Verb::kSync ? std::nullopt : std::optional(std::move(asked));
  if (name != "uv" || *(verb - 1) != "pip") return std::nullopt;
  asked.installer.tool = Tool::kUv;
  asked.installer.command = as_question(std::move(asked.installer.command));
  asked.request.arguments = as_question(std::move(asked.request.arguments));
  return asked;
}

}  // namespace cohabit::check
