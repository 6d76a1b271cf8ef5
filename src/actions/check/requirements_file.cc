#include "actions/check/requirements_file.h"

#include <fmt/format.h>
#include <iconv.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/paths.h"
#include "base/read_file.h"

namespace cohabit::check {
namespace {

constexpr size_t kMaxFile = 16 << 20;
constexpr int kMaxNesting = 8;

// Lines that end with a backslash go on in the next; comments are none.
std::vector<std::string> logical_lines(const std::string& text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
       begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    line += text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    const bool is_comment =
        line.find_first_not_of(" \t") != line.npos && line[line.find_first_not_of(" \t")] == '#';
    if (line.ends_with('\\') && !is_comment) {
      line.back() = ' ';
      continue;
    }
    if (const size_t comment = std::min(line.find(" #"), line.find("\t#")); comment != line.npos)
      line.resize(comment);
    const size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
    if (first != line.npos && line[first] != '#')
      lines.push_back(line.substr(first, last - first + 1));
    line.clear();
  }
  return lines;
}

// The value of "-r x", "-rx", "--requirement x", "--requirement=x"; empty: another option.
std::string value_of(const std::string& line, std::string_view brief, std::string_view full) {
  std::string_view rest = line;
  if (rest.starts_with(full))
    rest.remove_prefix(full.size());
  else if (rest.starts_with(brief) && !rest.starts_with("--"))
    rest.remove_prefix(brief.size());
  else
    return "";
  rest.remove_prefix(std::min(rest.find_first_not_of(" =\t"), rest.size()));
  return std::string(rest);
}

// As pip does: by the mark at its beginning (Windows' PowerShell writes UTF-16 by `>`). Nothing: it
// is not what the mark says.
std::optional<std::string> decode(const std::string& text) {
  if (!text.starts_with("\xff\xfe") && !text.starts_with("\xfe\xff")) return text;
  const iconv_t converter = ::iconv_open("UTF-8", "UTF-16");
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string decoded(text.size() * 2, '\0');  // of two bytes at most three
  std::string from = text;
  char* in = from.data();
  char* out = decoded.data();
  size_t in_left = from.size(), out_left = decoded.size();
  const bool done = ::iconv(converter, &in, &in_left, &out, &out_left) != static_cast<size_t>(-1);
  ::iconv_close(converter);
  if (!done) return std::nullopt;
  decoded.resize(decoded.size() - out_left);
  return decoded;
}

// Files that a file names lie beside it.
std::string beside(const std::string& file, const std::string& name) {
  const std::string directory = directory_of(file);
  const bool is_elsewhere = name.starts_with('/') || name.find("://") != name.npos;
  return is_elsewhere || directory.empty() ? name : directory + "/" + name;
}

Result<void> read_file_lines(const std::string& path, int nesting, RequirementLines& lines);

Result<void> read_lines(const std::string& text, const std::string& path, int nesting,
                        RequirementLines& lines) {
  for (std::string& line : logical_lines(text)) {
    if (const auto file = value_of(line, "-r", "--requirement"); !file.empty()) {
      if (auto done = read_file_lines(beside(path, file), nesting + 1, lines); !done) return done;
    } else if (const auto constraint = value_of(line, "-c", "--constraint"); !constraint.empty()) {
      lines.options.push_back("-c " + beside(path, constraint));
    } else if (const auto links = value_of(line, "-f", "--find-links"); !links.empty()) {
      // pip takes it from where it runs if it is not beside the file.
      const std::string place = beside(path, links);
      lines.options.push_back("-f " + (::access(place.c_str(), F_OK) == 0 ? place : links));
    } else if (line[0] == '-' && value_of(line, "-e", "--editable").empty()) {
      lines.options.push_back(std::move(line));
    } else {
      lines.requirements.push_back(std::move(line));
    }
  }
  return {};
}

Result<void> read_file_lines(const std::string& path, int nesting, RequirementLines& lines) {
  if (nesting > kMaxNesting)
    return fail(fmt::format("{}: files that name each other {} deep", path, kMaxNesting));
  const auto text = read_file(path, kMaxFile);
  if (!text) return tl::unexpected<Error>(text.error());
  const auto decoded = decode(*text);
  if (!decoded)
    return fail(fmt::format("{}: begins as UTF-16 and is none: write it again, as UTF-8", path));
  return read_lines(*decoded, path, nesting, lines);
}

}  // namespace

Result<void> read_requirements(const std::string& path, RequirementLines& lines) {
  return read_file_lines(path, 0, lines);
}

Result<void> read_requirements_text(const std::string& text, const std::string& path,
                                    RequirementLines& lines) {
  return read_lines(text, path, 0, lines);
}

std::vector<std::string> with_files_apart(const std::vector<std::string>& words) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"-r", "--requirements"}, {"-r", "--requirement"}, {"-e", "--editable"}};
  std::vector<std::string> result;
  for (const std::string& word : words) {
    const auto option =
        std::find_if(std::begin(kOptions), std::end(kOptions), [&](const auto& one) {
          return word.starts_with(one.second) ||
                 (word.starts_with(one.first) && !word.starts_with("--"));
        });
    if (option == std::end(kOptions)) {
      result.push_back(word);
      continue;
    }
    result.emplace_back(option->first);
    if (auto value = value_of(word, option->first, option->second); !value.empty())
      result.push_back(std::move(value));
  }
  return result;
}

RequirementLines lines_of(const std::vector<std::string>& arguments) {
  RequirementLines lines;
  const std::vector<std::string> words = with_files_apart(arguments);
  for (size_t i = 1; i < words.size(); i++)
    if (words[i - 1] == "-r" && !words[i].ends_with(".toml"))
      (void)read_requirements(words[i], lines);
  return lines;
}

std::string without_options(const std::string& line) {
  const std::string_view text = std::string_view(line).substr(0, line.find(" --"));
  return std::string(text.substr(0, text.find_last_not_of(" \t") + 1));
}

}  // namespace cohabit::check
