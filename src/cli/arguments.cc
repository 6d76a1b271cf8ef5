#include "cli/arguments.h"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file_size_limit.h"
#include "base/rows.h"
#include "base/say.h"
#include "report/printable.h"

namespace cohabit {
namespace {

bool is_module_name(const std::string& name) {
  bool start = true;  // of a part between dots
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (c == '.' ? start : !letter && (!digit || start)) return false;
    start = c == '.';
  }
  return !start;
}

}  // namespace

Result<std::vector<std::string>> read_module_list(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    begin = end + 1;
    if (name.empty()) continue;
    if (!is_module_name(name)) return fail("not the name of a Python module: " + name);
    names.push_back(std::move(name));
  }
  return names;
}

std::string refuse_empty_list(const std::string& text) {
  return text.find_first_not_of(" ,") == std::string::npos
             ? "it names no module (a variable that is not set?); expected a,b"
             : "";
}

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "it is empty (a variable that is not set?); leave it out, or give a value"
                      : "";
}

std::map<std::string, std::string> own_variables(const std::string& root) {
  std::map<std::string, std::string> result;
  for (char** entry = root.empty() ? environ : nullptr; entry && *entry; entry++) {
    const std::string text = *entry;
    if (const size_t equals = text.find('='); equals != std::string::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

Result<void> print_report(const std::string& text) {
  const BearsFileSizeLimit bears;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return {};
  auto failure = fail(fmt::format("cannot write the report: {}", std::strerror(errno)));
  // Said once: nothing is left that main() would fail to write too.
  __fpurge(stdout);
  std::clearerr(stdout);
  return failure;
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
}

int exit_code_of(const Result<int>& result) {
  if (result) return *result;
  // Some have several lines; names in them may have anything.
  std::string text;
  for (const std::string_view line : split(result.error().message, '\n'))
    text.append(text.empty() ? "" : "\n").append(report::printable(line));
  say("cohabit: {}\n", text);
  return 2;
}

int exit_code_of_process(int status) {
  constexpr int kSignalBase = 128;
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cohabit
