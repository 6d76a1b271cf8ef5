// The text is split into words, literals and signs; no tree is made: code that Python does not take
// holds secrets, too.
#include "base/source_secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"

namespace cohabit {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

bool is_made_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || others.find(c) != others.npos;
  });
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Behind the "}" of the field of a format that begins here, with what is nested in it; 0: it has
// none.
size_t end_of_field(const std::string& text, size_t begin, size_t end) {
  int depth = 0;
  for (size_t i = begin; i < end; i++) {
    if (text[i] == '{') depth++;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return 0;
}

// No word of a sentence.
bool looks_made(std::string_view value) {
  return std::any_of(value.begin(), value.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

// Where a sign comes next, for places that only grow: each part of a text is searched once.
class NextSign {
 public:
  explicit NextSign(char sign) : sign_(sign) {}
  size_t from(std::string_view text, size_t at) {
    if (at_ == text.npos || (is_found_ && at_ >= at)) return at_;
    is_found_ = true;
    return at_ = text.find(sign_, at);
  }

 private:
  char sign_;
  bool is_found_ = false;
  size_t at_ = 0;
};

// What programs fill in stays: "{name}", "%s", "%(name)s"; in an f-string all of {...} is code.
// Line breaks stay, and quotes with a backslash: by them a text goes on and ends where it did.
void hide(std::string& text, size_t begin, size_t end, bool is_format) {
  NextSign brace('}'), bracket(')');
  for (size_t i = begin; i < end; i++) {
    if (is_format && text[i] == '{') {
      const size_t behind = end_of_field(text, i, end);
      if (behind == 0) return;
      i = behind - 1;
      continue;
    }
    if (is_format && text[i] == '}') continue;
    if (text[i] == '{') {
      const size_t close = std::min(brace.from(text, i), end);
      const std::string_view field = std::string_view(text).substr(i + 1, close - i - 1);
      if (close < end && (field.empty() || is_made_of(field, "_."))) {
        i = close;
        continue;
      }
    }
    if (text[i] == '%' && i + 1 < end) {
      const size_t close = text[i + 1] == '(' ? std::min(bracket.from(text, i), end) : i;
      if (close + 1 < end && std::string_view("sdr").find(text[close + 1]) != std::string::npos) {
        i = close + 1;
        continue;
      }
    }
    if (text[i] == '\\') {
      if (i + 1 >= end) return;
      const bool stays = std::string_view("\r\n'\"").find(text[i + 1]) != std::string::npos;
      if (!stays) text[i] = text[i + 1] = 'x';
      i++;
      continue;
    }
    if (text[i] != '\n' && text[i] != '\r') text[i] = 'x';
  }
}

// What a text tells of: "API_KEY=...", "password: ...", "'token': '...'", "--token ...", headers
// ("Authorization: Bearer ..."), "curl -u user:...".
class ToldSecrets {
 public:
  ToldSecrets(std::string& text, size_t begin, size_t end, bool is_format)
      : text_(text), end_(end), is_format_(is_format), at_(begin) {}

  void run() {
    while (at_ < end_) {
      const size_t begin = at_;
      while (at_ < end_ && is_of_name(text_[at_])) at_++;
      if (at_ == begin)
        at_++;
      else
        look_behind(begin);
    }
  }

 private:
  static bool is_of_name(char c) { return is_word(c) || c == '-' || c == '.'; }

  // Behind a word: is it a name, and of what?
  void look_behind(size_t begin) {
    const std::string word = text_.substr(begin, at_ - begin);
    const std::string name = word.substr(std::min(word.find_first_not_of("-."), word.size()));
    if (is_one_of(word, {"-u", "--user"}))
      return hide_next([](std::string_view value) { return value.find(':') != value.npos; });
    if (is_one_of(word, {"Bearer", "bearer", "Basic"}))
      return hide_next([](std::string_view value) {
        return holds_secret("TOKEN", value) && value.find_first_of("0123456789=") != value.npos;
      });
    if (!names_secret(name)) return;
    const auto is_secret = [&](std::string_view value) { return holds_secret(name, value); };
    size_t sign = at_;
    if (sign < end_ && is_quote(text_[sign])) sign++;
    if (sign < end_ && text_[sign] == '\\') sign++;
    sign = skip_blanks(sign);
    if (sign < end_ && (text_[sign] == '=' || text_[sign] == ':')) {
      const char next = sign + 1 < end_ ? text_[sign + 1] : '\0';
      if (next == '=' || next == ':' || next == '/') return;
      at_ = sign + 1;
      skip_scheme();
      return hide_next(is_secret);
    }
    constexpr std::string_view kIs = "is ";  // "the password is ..."
    if (text_.compare(sign, kIs.size(), kIs) == 0 && sign > at_) {
      at_ = sign + kIs.size();
      return hide_next(
          [&](std::string_view value) { return is_secret(value) && looks_made(value); });
    }
    if (word.starts_with("-")) hide_next(is_secret);
  }

  static bool is_quote(char c) { return c == '\'' || c == '"' || c == '`'; }

  size_t skip_blanks(size_t at) const {
    while (at < end_ && (text_[at] == ' ' || text_[at] == '\t')) at++;
    return at;
  }

  // "Bearer" of "Authorization: Bearer ...".
  void skip_scheme() {
    const size_t begin = skip_blanks(at_);
    size_t end = begin;
    while (end < end_ && is_word(text_[end])) end++;
    std::string word = text_.substr(begin, end - begin);
    std::transform(word.begin(), word.end(), word.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    const bool goes_on = end < end_ && text_[end] == ' ';
    if (goes_on && is_one_of(word, {"bearer", "basic", "token", "digest", "apikey"})) at_ = end;
  }

  // The word that comes next, or what is quoted; in an f-string it may be a literal of its own.
  template <class F>
  void hide_next(F is_secret) {
    size_t begin = skip_blanks(at_);
    if (is_format_ && begin < end_ && text_[begin] == '{') {
      begin++;
      if (begin == end_ || !is_quote(text_[begin])) return;
    }
    if (begin < end_ && text_[begin] == '\\') begin++;
    const char quote = begin < end_ && is_quote(text_[begin]) ? text_[begin++] : '\0';
    const std::string ends = quote != '\0' ? std::string{quote, '\n'} : " \t\r\n,;&|<>()[]'\"`\\";
    size_t end = std::min(text_.find_first_of(ends, begin), end_);
    while (end > begin && (text_[end - 1] == '\\' || text_[end - 1] == '\r')) end--;
    at_ = std::max(at_, end);
    const std::string_view value = std::string_view(text_).substr(begin, end - begin);
    if (!value.empty() && !value.starts_with("--") && is_secret(value))
      hide(text_, begin, end, is_format_);
  }

  std::string& text_;
  size_t end_;
  bool is_format_;
  size_t at_;
};

// One pass over a program.
class Program {
 public:
  explicit Program(std::string& text) : text_(text) {}

  void run() {
    while (at_ < text_.size()) step();
  }
  // What the literals held that were hidden whole.
  const std::vector<std::string>& hidden() const { return hidden_; }

 private:
  enum class Kind : uint8_t { kNone, kWord, kLiteral, kOpen, kClose, kSign };
  struct Token {
    Kind kind = Kind::kNone;
    std::string text;  // of a literal: what it holds
  };
  struct Bracket {
    bool is_display = false;  // no call and no subscript
    std::string callee;
    std::string name;        // that the value here is given to, if it is one of a secret
    std::string first_name;  // that was annotated
  };

  void step() {
    const char c = text_[at_];
    if (c == '#') {
      hide_comment();
    } else if (c == '\\' && at_ + 1 < text_.size()) {
      at_ += 2;
    } else if (c == '\n' || c == ';') {
      at_++;
      if (brackets_.size() == 1 || c == ';') end_statement();
    } else if (c == '\'' || c == '"') {
      read_literal("");
    } else if (is_word(c)) {
      read_word();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      at_++;
    } else {
      read_sign(c);
    }
  }

  // What is said in one decides nothing, but for the first two lines: who runs it, how it is coded.
  void hide_comment() {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view comment = std::string_view(text_).substr(at_, end - at_);
    const bool is_read =
        std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n') < 2 &&
        (comment.starts_with("#!") || comment.find("coding") != comment.npos);
    for (size_t i = at_ + 1; i < end && !is_read; i++)
      if (text_[i] != ' ' && text_[i] != '\r') text_[i] = 'x';
    at_ = end;
  }

  void end_statement() {
    brackets_.assign(1, {true, "", "", ""});
    targets_.clear();
    last_ = {};
  }

  void read_word() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) at_++;
    const std::string word = text_.substr(begin, at_ - begin);
    const bool is_prefix = at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"') &&
                           word.size() <= 2 &&
                           word.find_first_not_of("rRbBuUfFtT") == std::string::npos;
    if (is_prefix) return read_literal(word);
    if (brackets_.size() == 1) targets_.push_back(word);
    last_ = {Kind::kWord, word};
  }

  void read_literal(const std::string& prefix) {
    const char quote = text_[at_];
    const bool is_long = text_.compare(at_, 3, std::string(3, quote)) == 0;
    const std::string mark(is_long ? 3 : 1, quote);
    const size_t begin = at_ + mark.size();
    size_t end = begin;
    while (end < text_.size() && text_.compare(end, mark.size(), mark) != 0 &&
           (is_long || text_[end] != '\n'))
      end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    at_ =
        std::min(end + (end < text_.size() && text_[end] == quote ? mark.size() : 0), text_.size());
    const std::string value = text_.substr(begin, end - begin);
    const bool is_format = prefix.find_first_of("fFtT") != std::string::npos;
    if (is_value() && holds_secret(name_here(), value)) {
      hide(text_, begin, end, is_format);
      if (!is_format && hidden_.size() < kMostHidden) hidden_.push_back(value);
    } else {
      ToldSecrets(text_, begin, end, is_format).run();
    }
    if (brackets_.size() <= 2 && !brackets_.back().is_display) targets_.push_back(value);
    last_ = {Kind::kLiteral, value};
  }

  // What is compared decides; what is looked up is no value.
  bool is_value() const {
    if (is_one_of(last_.text, {"==", "!=", "<", ">", "<=", ">=", "in"}) &&
        last_.kind != Kind::kLiteral)
      return false;
    const size_t next = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    const std::string_view rest = std::string_view(text_).substr(next, 3);
    return !rest.starts_with("==") && !rest.starts_with("!=") && !rest.starts_with("in ") &&
           !rest.starts_with(":") && rest.substr(0, 1) != "[";
  }

  // The name to which the value at this place is given.
  std::string name_here() const {
    int levels = 50;  // more is nobody's program
    for (auto at = brackets_.rbegin(); at != brackets_.rend() && levels > 0; ++at, levels--) {
      if (!at->name.empty()) return at->name;
      if (!at->is_display && !wraps_secret(at->callee)) return "";
      if (!at->is_display && names_secret(at->callee)) return at->callee;
    }
    return "";
  }

  static bool wraps_secret(std::string_view callee) {
    return is_one_of(callee, {"str", "bytes"}) || callee.find("Secret") != callee.npos ||
           callee.find("Credential") != callee.npos;
  }

  static bool sets_by_name(std::string_view callee) {
    return is_one_of(callee, {"setdefault", "putenv", "setenv", "set", "get", "getenv", "pop",
                              "setattr", "__setattr__", "setitem", "__setitem__", "add_header"});
  }

  void read_sign(char c) {
    Bracket& here = brackets_.back();
    std::string sign(1, c);
    if (at_ + 1 < text_.size() && text_[at_ + 1] == '=' &&
        std::string_view("=!<>:+").find(c) != std::string_view::npos)
      sign += '=';
    at_ += sign.size();
    if (c == '(' || c == '[' || c == '{') {
      const bool follows = last_.kind == Kind::kWord
                               ? !is_keyword(last_.text)
                               : last_.kind == Kind::kClose || last_.kind == Kind::kLiteral;
      const bool is_display = c == '{' || !follows;
      brackets_.push_back({is_display, c == '(' && follows ? last_.text : "", "", ""});
      last_ = {Kind::kOpen, sign};
      return;
    }
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.size() > 1) brackets_.pop_back();
      last_ = {Kind::kClose, sign};
      return;
    }
    if (sign == "=" || sign == ":=" || sign == "+=") {
      give(here);
    } else if (sign == ":") {
      if (brackets_.size() == 1 && !targets_.empty() && is_keyword(targets_.front()))
        return end_statement();
      if (last_.kind == Kind::kLiteral && brackets_.size() > 1) {
        here.name = is_made_of(last_.text, "_.-") && names_secret(last_.text) ? last_.text : "";
      } else if (last_.kind == Kind::kWord) {
        here.first_name = last_.text;
        if (brackets_.size() > 1) here.name = names_secret(last_.text) ? last_.text : "";
      }
    } else if (sign == "," && brackets_.size() > 1) {
      here.name.clear();
      here.first_name.clear();
      const std::string_view text = last_.text;
      const std::string_view name = text.substr(std::min(text.find_first_not_of('-'), text.size()));
      const bool is_name =
          last_.kind == Kind::kLiteral && is_made_of(name, "_-") && names_secret(name);
      if (is_name && (here.is_display ? tells_of_secret(name) : sets_by_name(here.callee)))
        here.name = name;
    }
    last_ = {Kind::kSign, sign};
  }

  void give(Bracket& here) {
    if (brackets_.size() > 1) {
      const std::string& name = here.first_name.empty() ? last_.text : here.first_name;
      here.name = names_secret(name) ? name : "";
      return;
    }
    const auto secret = std::find_if(targets_.begin(), targets_.end(), [](const auto& name) {
      return is_made_of(name, "_.-") && names_secret(name);
    });
    if (secret != targets_.end()) here.name = *secret;
    targets_.clear();
  }

  static bool is_keyword(std::string_view word) {
    return is_one_of(
        word, {"and", "assert", "await", "elif", "else", "for", "if", "in", "is", "lambda", "not",
               "or", "print", "raise", "return", "try", "while", "with", "yield"});
  }

  std::string& text_;
  size_t at_ = 0;
  Token last_;
  std::vector<Bracket> brackets_{{true, "", "", ""}};
  std::vector<std::string> targets_;          // names of the statement, up to its "="
  static constexpr size_t kMostHidden = 200;  // that are sought elsewhere, too
  std::vector<std::string> hidden_;
};

bool sets_variable(std::string_view text, size_t begin) {
  text.remove_prefix(begin);
  return text.starts_with("%env ") || text.starts_with("%set_env ");
}

// "%env NAME=VALUE", "%env NAME VALUE", "!NAME=VALUE command", "!command --token VALUE".
void hide_command_secrets(std::string& text, size_t begin, size_t end) {
  std::string name;  // of which the value comes next
  bool is_variable = false;
  for (size_t at = begin; at < end;) {
    at = std::min(text.find_first_not_of(" \t", at), end);
    const size_t stop = std::min(text.find_first_of(" \t\n", at), end);
    std::string_view word = std::string_view(text).substr(at, stop - at);
    if (!name.empty() && !(is_variable ? false : word.starts_with("--"))) {
      hide(text, at, is_variable ? end : stop, false);
      if (is_variable) return;
      name.clear();
      at = stop;
      continue;
    }
    const size_t skip = std::min(word.find_first_not_of("!%-'\""), word.size());
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(skip, equals == word.npos ? equals : equals - skip);
    const bool names = is_made_of(key, "_-") && names_secret(key);
    if (names && equals != word.npos) {
      const bool takes_all = sets_variable(text, begin);
      hide(text, at + equals + 1, takes_all ? end : stop, false);
    } else if (names && word.starts_with("--")) {
      name = key;
    } else if (names && sets_variable(text, begin)) {
      name = key;
      is_variable = true;
    }
    at = stop;
  }
}

void hide_commands(std::string& cell) {
  for (size_t begin = 0; begin < cell.size();) {
    const size_t end = std::min(cell.find('\n', begin), cell.size());
    const size_t first = cell.find_first_not_of(" \t", begin);
    // All behind `%%bash` is commands.
    if (first < end && cell.compare(first, 2, "%%") == 0) {
      hide_told_secrets(cell);
      return;
    }
    if (first < end && (cell[first] == '%' || cell[first] == '!')) {
      hide_command_secrets(cell, first, end);
      ToldSecrets(cell, first, end, false).run();
    }
    begin = end + 1;
  }
}

using Json = nlohmann::ordered_json;

// Markdown and raw cells, metadata.
void hide_texts(Json& json) {
  if (json.is_string()) {
    auto text = json.get<std::string>();
    ToldSecrets(text, 0, text.size(), false).run();
    json = std::move(text);
  } else if (json.is_array()) {
    for (Json& item : json) hide_texts(item);
  } else if (json.is_object()) {
    for (auto& [name, value] : json.items()) {
      const bool is_secret = value.is_string() && holds_secret(name, value.get<std::string>());
      if (is_secret)
        value = stand_in_of(value.get<std::string>());
      else
        hide_texts(value);
    }
  }
}

void hide_cell(Json& source) {
  std::string text;
  if (source.is_string()) text = source.get<std::string>();
  if (source.is_array())
    for (const Json& line : source)
      if (line.is_string()) text += line.get<std::string>();
  hide_cell_secrets(text);
  if (source.is_string()) source = text;
  size_t at = 0;
  if (source.is_array())
    for (Json& line : source)
      if (line.is_string()) {
        const size_t size = line.get<std::string>().size();
        line = text.substr(at, size);
        at += size;
      }
}

void hide_cells(Json& cells) {
  for (Json& cell : cells) {
    if (!cell.is_object()) continue;
    if (const auto outputs = cell.find("outputs"); outputs != cell.end()) *outputs = Json::array();
    cell.erase("attachments");
    if (const auto metadata = cell.find("metadata"); metadata != cell.end()) hide_texts(*metadata);
    if (const auto kind = cell.find("cell_type"); kind == cell.end() || *kind != "code") {
      hide_texts(cell);
      continue;
    }
    for (const char* name : {"source", "input"})
      if (const auto source = cell.find(name); source != cell.end()) hide_cell(*source);
  }
}

// Bytes for which Python refuses a program: it is told of them.
void keep_strange_bytes(const std::string& before, std::string& source) {
  const bool is_strange = !is_utf8(before);
  for (size_t i = 0; i < source.size(); i++)
    if (before[i] == '\0' || (is_strange && (before[i] & 0x80) != 0)) source[i] = before[i];
}

}  // namespace

bool is_own_source(std::string_view path, std::string_view text) {
  if (path.find("-packages/") != path.npos) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name == "sitecustomize.py" || name == "usercustomize.py";
  }
  if (const size_t library = path.find("/lib/python3"); library != path.npos) return false;
  return path.ends_with(".py") || path.ends_with(".pyw") || path.ends_with(".ipynb") ||
         (text.starts_with("#!") && text.substr(0, text.find('\n')).find("python") != text.npos);
}

bool is_settings(std::string_view path) {
  for (const char* installed : {"-packages/", "/conda-meta/"})
    if (path.find(installed) != path.npos) return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 8> kEnds = {".toml", ".cfg",  ".ini", ".conf",
                                                     ".env",  ".yaml", ".yml", ".json"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

void hide_source_secrets(std::string& source) {
  const std::string before = source;
  Program program(source);
  program.run();
  // They may stand elsewhere as well: where they are compared, or printed.
  std::map<std::string, std::string> found;
  for (const std::string& value : program.hidden()) found.emplace("SECRET=" + value, value);
  for (const std::string& value : secret_values(found))
    if (value.find('\\') == std::string::npos) replace_all(source, value, stand_in_of(value));
  keep_strange_bytes(before, source);
}

void hide_told_secrets(std::string& text) {
  ToldSecrets(text, 0, text.size(), false).run();
}

void hide_cell_secrets(std::string& cell) {
  hide_commands(cell);
  hide_source_secrets(cell);
  for (const auto& [begin, end] : find_credentials(cell)) hide(cell, begin, end, false);
}

void hide_notebook_secrets(std::string& notebook) {
  Json json = Json::parse(notebook, nullptr, false);
  if (!json.is_object()) return;
  bool is_notebook = false;
  const auto hide_in = [&](Json& holder) {
    const auto cells = holder.is_object() ? holder.find("cells") : holder.end();
    if (!holder.is_object() || cells == holder.end() || !cells->is_array()) return;
    hide_cells(*cells);
    is_notebook = true;
  };
  hide_in(json);
  if (const auto metadata = json.find("metadata"); metadata != json.end()) hide_texts(*metadata);
  if (const auto sheets = json.find("worksheets"); sheets != json.end() && sheets->is_array())
    for (Json& sheet : *sheets) hide_in(sheet);
  if (!is_notebook) return;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(std::max(text.size(), notebook.size()), '\n');
  notebook = std::move(text);
}

}  // namespace cohabit
