// IPython decides by tokens which lines are its own; so the strings and brackets that a line starts
// in are followed here: "%" continues an expression inside brackets, and is text inside quotes.
#include "imports/notebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/source_secrets.h"

namespace cohabit::python {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxCells = 100'000;

// Cell magics whose cell is Python all the same.
constexpr std::string_view kPythonCells[] = {"time", "timeit", "capture",
                                             "prun", "python", "python3"};

// What the end of a line leaves open.
class OpenParts {
 public:
  bool any() const { return depth_ > 0 || quote_ != 0 || continued_; }

  void read(std::string_view line) {
    continued_ = false;
    for (size_t i = 0; i < line.size(); i++) i = step(line, i);
    if (quote_ != 0 && !triple_ && !continued_) quote_ = 0;  // an error, or the line's end
  }

 private:
  static bool is_triple(std::string_view line, size_t at) {
    return line.size() - at >= 3 && line[at + 1] == line[at] && line[at + 2] == line[at];
  }

  // Returns the last character that was looked at.
  size_t step(std::string_view line, size_t i) {
    const char c = line[i];
    if (c == '\\') {
      continued_ = i + 1 == line.size();
      return i + 1;
    }
    if (quote_ != 0) {
      if (c != quote_ || (triple_ && !is_triple(line, i))) return i;
      quote_ = 0;
      return triple_ ? i + 2 : i;
    }
    if (c == '#') return line.size();
    if (c == '"' || c == '\'') {
      quote_ = c;
      triple_ = is_triple(line, i);
      return triple_ ? i + 2 : i;
    }
    if (c == '(' || c == '[' || c == '{') depth_++;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) depth_--;
    return i;
  }

  int depth_ = 0;
  char quote_ = 0;
  bool triple_ = false;
  bool continued_ = false;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// What a variable is set to for a command (!TOKEN=... app) may be a secret.
std::string_view word_after(std::string_view text, size_t begin) {
  return text.substr(begin, text.find_first_of(" \t=", begin) - begin);
}

// What a command may make or install, as a call that the import plan knows. Only words that may be
// names of files are kept: others may hold what is nobody's business (%env TOKEN=).
std::string call_of_shell(std::string_view command) {
  constexpr std::string_view kBetween = " \t\n;&|<>'\"()";
  std::string words;
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find_first_of(kBetween, begin), command.size());
    const std::string_view word = command.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty() || word[0] == '-' || word.find_first_of("=@:$`{}\\") != word.npos) continue;
    words += fmt::format("{} ", word);
  }
  return words.empty() ? "pass" : fmt::format("__import__('os').system('{}')", words);
}

std::string call_of_magic(std::string_view line) {
  const std::string_view magic = word_after(line, 0);
  const std::string_view rest = line.substr(magic.size());
  if (magic == "%cd" && rest.find_first_of("'\"\\-{$") == rest.npos && rest.size() > 1)
    // IPython's sys.path has the current directory, wherever that is.
    return fmt::format("__import__('os').chdir('{}'); __import__('sys').path.insert(0, '')",
                       rest.substr(rest.find_last_of(" \t") + 1));
  if (magic == "%pip" || magic == "%conda" || magic == "%mamba" || magic == "%uv" ||
      magic == "%sx" || magic == "%system")
    return call_of_shell(rest);
  return "pass";
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  void add_cell(int number, std::string_view source) {
    const std::vector<std::string_view> lines = lines_of(source);
    result_.cells.push_back({number, line_ + 1});
    size_t first = 0;
    if (!lines.empty() && lines[0].starts_with("%%")) {
      const std::string_view magic = word_after(lines[0], 2);
      const bool python = std::find(std::begin(kPythonCells), std::end(kPythonCells), magic) !=
                          std::end(kPythonCells);
      // `%%writefile` names a file; the lines of a shell's cell may name others.
      const bool writes = magic == "writefile" || magic == "file",
                 is_shell =
                     magic == "bash" || magic == "sh" || magic == "script" || magic == "system";
      skip(python     ? ""
           : writes   ? call_of_shell(lines[0].substr(2))
           : is_shell ? call_of_shell(source.substr(lines[0].size()))
                      : "pass",
           fmt::format("the cell magic %%{}", magic));
      if (!python) return;
      first = 1;
    }
    OpenParts open;
    for (size_t i = first; i < lines.size(); i++) add_line(lines[i], open);
  }

  Notebook take() { return std::move(result_); }

 private:
  void add_line(std::string_view line, OpenParts& open) {
    const size_t begin = line.find_first_not_of(" \t");
    if (!open.any() && begin != line.npos) {
      const std::string indent(line.substr(0, begin));
      const std::string_view text = line.substr(begin);
      if (text[0] == '%' || text[0] == '!')
        return skip(indent + (text[0] == '%' ? call_of_magic(text) : call_of_shell(text.substr(1))),
                    fmt::format("the {} {}", text[0] == '%' ? "magic" : "shell command",
                                word_after(text, 0)));
      if (is_help(text)) return write(indent + "pass");
      if (const size_t at = assigned_magic(text); at != text.npos)
        // input() is a value that nobody knows before the program runs.
        return skip(fmt::format("{}{}= input()", indent, text.substr(0, at)),
                    fmt::format("the value of {}", word_after(text, text.find_first_of("%!", at))));
    }
    open.read(line);
    write(std::string(line));
  }

  // "files = !ls", "here = %pwd": where the "=" is.
  static size_t assigned_magic(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) return text.npos;
    const size_t value = text.find_first_not_of(" \t", equals + 1);
    if (value == text.npos || (text[value] != '!' && text[value] != '%')) return text.npos;
    const std::string_view name = text.substr(0, text.find_last_not_of(" \t", equals - 1) + 1);
    return is_made_of(name, "_, ") ? equals : text.npos;
  }

  // "?torch", "torch.load??"
  static bool is_help(std::string_view text) {
    return text[0] == '?' || (text.ends_with('?') && is_made_of(text, "_.?"));
  }

  static bool is_made_of(std::string_view text, std::string_view others) {
    return std::all_of(text.begin(), text.end(), [&](char c) {
      return others.find(c) != others.npos || (c >= '0' && c <= '9') ||
             ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    });
  }

  // Only the command's name is kept: its arguments may hold what is nobody's business (%env
  // TOKEN=).
  void skip(const std::string& instead, const std::string& what) {
    write(instead);
    result_.skipped.push_back({name_, line_, what + " is not followed"});
  }

  void write(const std::string& line) {
    result_.code.append(line).append("\n");
    line_++;
  }

  const std::string& name_;
  Notebook result_;
  uint32_t line_ = 0;  // written so far
};

std::string text_of(const Json& source) {
  if (source.is_string()) return source.get<std::string>();
  std::string text;
  if (source.is_array())
    for (const Json& line : source)
      if (line.is_string()) text += line.get<std::string>();
  return text;
}

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

std::string language_of(const Json& notebook) {
  const Json& metadata = member(notebook, "metadata");
  for (const Json* place : {&member(member(metadata, "kernelspec"), "language"),
                            &member(member(metadata, "language_info"), "name")})
    if (place->is_string()) return place->get<std::string>();
  return "python";
}

}  // namespace

Result<Notebook> read_notebook(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const Json* cells = &member(json, "cells");
  const Json& sheets = member(json, "worksheets");  // nbformat 3
  if (!cells->is_array() && sheets.is_array() && !sheets.empty())
    cells = &member(sheets[0], "cells");
  if (!cells->is_array())
    return fail("expected a notebook (JSON with a list of cells) at " + name +
                (json.is_discarded() ? ", found a text that is no JSON" : ", found other JSON"));
  if (const std::string language = language_of(json); language != "python")
    return fail("expected a notebook in Python at " + name + ", found one in " + language);
  if (cells->size() > kMaxCells)
    return fail(
        fmt::format("{} has {} cells; more than {} are not read", name, cells->size(), kMaxCells));
  Reader reader(name);
  int number = 0;
  for (const Json& cell : *cells) {
    number++;
    const Json& type = member(cell, "cell_type");
    if (!type.is_string() || type.get<std::string>() != "code") continue;
    const Json& source = member(cell, "source");
    std::string code = text_of(source.is_null() ? member(cell, "input") : source);
    hide_cell_secrets(code);  // as a bundle has it
    reader.add_cell(number, code);
  }
  return reader.take();
}

namespace {

void name_cell(const Notebook& notebook, const std::string& name, std::string& file,
               uint32_t& line) {
  if (file != name || line == 0) return;
  const auto after = std::upper_bound(
      notebook.cells.begin(), notebook.cells.end(), line,
      [](uint32_t at, const Notebook::Cell& cell) { return at < cell.first_line; });
  if (after == notebook.cells.begin()) return;
  const Notebook::Cell& cell = *(after - 1);
  file += fmt::format(" (cell {})", cell.number);
  line -= cell.first_line - 1;
}

}  // namespace

void name_cells(const Notebook& notebook, const std::string& name, Plan& plan) {
  plan.undecided.insert(plan.undecided.begin(), notebook.skipped.begin(), notebook.skipped.end());
  for (Undecided& point : plan.undecided) name_cell(notebook, name, point.file, point.line);
  for (Undecided& point : plan.raises) name_cell(notebook, name, point.file, point.line);
  for (PlannedOpen& open : plan.opens) name_cell(notebook, name, open.file, open.line);
  name_cell(notebook, name, plan.failure_file, plan.failure_line);
}

}  // namespace cohabit::python
