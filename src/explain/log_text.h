// A log as people have it: any bytes, colours, progress bars, UTF-16 of a Windows redirection,
// lines of several processes between one another.
#pragma once

#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "explain/escapes.h"

namespace cohabit::explain {

class LogText {
 public:
  // A file, or "-" for standard input.
  static Result<LogText> read(const std::string& path);
  explicit LogText(std::string text);

  std::string_view text() const {
    if (without_escapes_.bytes) return without_escapes_.text();
    return cleaned_ ? std::string_view(own_) : mapped_.bytes().text();
  }

 private:
  LogText() = default;
  void set(std::string text);
  void clean();

  Buffer without_escapes_;
  std::string own_;
  MappedFile mapped_;
  bool cleaned_ = false;
};

// A carriage return ends a line as well: progress bars write over their line.
inline bool ends_line(char c) {
  return c == '\n' || c == '\r';
}
// Where the line at this place begins, and where it ends.
size_t line_begin(std::string_view text, size_t at);
size_t line_end(std::string_view text, size_t at);
// How many are ended by a line feed.
size_t count_lines(std::string_view text);

// Without what a launcher, a container or a logger writes before each line: "[rank0]: ",
// "(EngineCore_0 pid=17) ", "worker-1  | ", a time.
std::string_view without_prefix(std::string_view line);

}  // namespace cohabit::explain
