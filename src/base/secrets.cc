#include "base/secrets.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace cohabit {
namespace {

using Ranges = std::vector<std::pair<size_t, size_t>>;

constexpr std::string_view kEndOfAddress = std::string_view(" \t\r\n'\"`<>\\\0", 11);

// What a program puts in: "{token}", "%s", "%(user)s".
bool is_template(std::string_view text) {
  return text.find('{') != text.npos || text.find("%s") != text.npos ||
         text.find("%(") != text.npos || text.find("%d") != text.npos;
}

// One address, from behind "://" to its end.
class Address {
 public:
  // It ends where the next one begins, so that a text of marks takes linear time.
  Address(std::string_view text, size_t begin, size_t next, Ranges& found)
      : text_(text.substr(0, std::min(next, text.size()))),
        end_(std::min(text_.find_first_of(kEndOfAddress, begin), text_.size())),
        found_(found) {
    const size_t host_end = std::min(text_.find_first_of("/?#", begin), end_);
    find_user(begin, host_end);
    find_channel_token(host_end);
    find_parameters(host_end);
  }

 private:
  void add(size_t begin, size_t end) {
    if (begin < end && !is_template(text_.substr(begin, end - begin)))
      found_.emplace_back(begin, end);
  }
  void find_user(size_t begin, size_t end) {
    const size_t mark = text_.substr(begin, end - begin).rfind('@');
    if (mark != text_.npos) add(begin, begin + mark);
  }
  void find_channel_token(size_t at) {
    constexpr std::string_view kToken = "/t/";
    if (text_.substr(at, std::min(kToken.size(), end_ - at)) != kToken) return;
    at += kToken.size();
    add(at, std::min(text_.find('/', at), end_));
  }
  void find_parameters(size_t at) {
    at = text_.find('?', at);
    while (at < end_) {
      const size_t next = std::min(text_.find_first_of("&;#", at + 1), end_);
      const std::string_view one = text_.substr(at + 1, next - at - 1);
      const size_t equals = one.find('=');
      if (equals != one.npos && names_secret(one.substr(0, equals))) add(at + equals + 2, next);
      if (next < end_ && text_[next] == '#') return;
      at = next;
    }
  }

  std::string_view text_;
  size_t end_;
  Ranges& found_;
};

// How tokens of the services that models and packages come from begin, and what follows: at least
// `least` letters, digits and `others`.
struct TokenShape {
  std::string_view prefix;
  std::string_view others;
  size_t least;
};
constexpr TokenShape kTokenShapes[] = {
    {"ghp_", "", 20},  {"gho_", "", 20},   {"ghu_", "", 20},    {"ghs_", "", 20},
    {"ghr_", "", 20},  {"hf_", "", 20},    {"AKIA", "", 16},    {"github_pat_", "_", 20},
    {"sk-", "_-", 20}, {"xoxb-", "-", 20}, {"glpat-", "_-", 20}};

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Words have no digits and no two cases: those of "sk-learn-contrib-extensions" are none. What a
// bundle has in the place of a token is one.
bool looks_random(std::string_view run) {
  const auto is = [](int (*kind)(int)) {
    return [kind](char c) { return kind(static_cast<unsigned char>(c)) != 0; };
  };
  return std::any_of(run.begin(), run.end(), is(std::isdigit)) ||
         std::any_of(run.begin(), run.end(), is(std::isupper)) ||
         run.find_first_not_of('x') == run.npos;
}

void find_tokens_of(const TokenShape& shape, std::string_view text, Ranges& found) {
  for (size_t at = text.find(shape.prefix); at != text.npos; at = text.find(shape.prefix, at + 1)) {
    if (at > 0 && (is_letter_or_digit(text[at - 1]) || text[at - 1] == '_')) continue;
    const size_t begin = at + shape.prefix.size();
    size_t end = begin;
    while (end < text.size() &&
           (is_letter_or_digit(text[end]) || shape.others.find(text[end]) != shape.others.npos))
      end++;
    const std::string_view run = text.substr(begin, end - begin);
    if (run.size() >= shape.least && looks_random(run)) found.emplace_back(begin, end);
  }
}

// Those that are part of others are left out.
Ranges without_overlaps(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges result;
  for (const auto& [begin, end] : ranges) {
    if (!result.empty() && begin < result.back().second)
      result.back().second = std::max(result.back().second, end);
    else
      result.emplace_back(begin, end);
  }
  return result;
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// "_HF_TOKEN_" of "hf_token"; a tokenizer takes no token, an author has no key.
std::string upper_word(std::string_view name) {
  std::string upper = "_";
  std::transform(name.begin(), name.end(), std::back_inserter(upper), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  upper += '_';
  const auto drop = [&](std::string_view part, std::string_view unless) {
    const size_t at = upper.find(part);
    if (at == upper.npos) return;
    const std::string_view rest = std::string_view(upper).substr(at + part.size());
    if (unless.empty() || !rest.starts_with(unless)) upper.erase(at, part.size());
  };
  drop("TOKENIZ", "");
  drop("AUTHOR", "IZ");
  return upper;
}

// Of a kind of thing that is on or off.
bool is_switch(std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kAll[] = {"",   "0",  "1",   "true", "false", "yes",
                                       "no", "on", "off", "none", "null"};
  return std::find(std::begin(kAll), std::end(kAll), lower) != std::end(kAll);
}

// use(part): no more of them where it says no. Whether it said so never.
template <class F>
bool all_parts(std::string_view text, std::string_view separators, F use) {
  while (true) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (!use(text.substr(0, end))) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

size_t letters_at_start(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_letter) - text.begin());
}

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

// Paths from the root, with ':' between them: what is at such a place may be secret, where it is
// may not. Keys in Base64 may begin like one.
bool are_places(std::string_view value) {
  constexpr size_t kLongest = 16;
  const auto is_key = [](std::string_view name) {
    const auto has = [&](int (*kind)(int)) {
      return std::any_of(name.begin(), name.end(),
                         [&](char c) { return kind(static_cast<unsigned char>(c)) != 0; });
    };
    return name.size() > kLongest && has(std::isupper) && has(std::islower) && has(std::isdigit) &&
           name.find_first_of("-_. @") == name.npos;
  };
  return all_parts(value, ":", [&](std::string_view path) {
    return path.starts_with('/') && path.find('/', 1) != path.npos &&
           path.find("//") == path.npos && path.find('=') == path.npos &&
           all_parts(path.substr(1), "/", [&](std::string_view name) { return !is_key(name); });
  });
}

constexpr std::string_view kSeparators = "-_./:, ";
constexpr size_t kLongestNumber = 9;

// Words and numbers, as settings of any kind hold them: "ldap", "ed25519", "keyring.backends.null".
bool is_ordinary(std::string_view value) {
  constexpr size_t kLongest = 16, kLongestUpper = 10, kMostDigits = 5;
  return value.find("://") == value.npos &&
         all_parts(value, kSeparators, [](std::string_view part) {
           const size_t letters = letters_at_start(part);
           const std::string_view word = part.substr(0, letters), digits = part.substr(letters);
           const bool is_upper = std::none_of(word.begin(), word.end(), [](char c) {
             return std::islower(static_cast<unsigned char>(c)) != 0;
           });
           const bool is_short = letters <= (is_upper ? kLongestUpper : kLongest);
           return is_short && are_digits(digits) &&
                  digits.size() <= (letters > 0 ? kMostDigits : kLongestNumber);
         });
}

// What other text is full of, so that it cannot be looked for: "python", "correct-horse",
// "python3.8", "3.8.18".
bool is_common(std::string_view value) {
  if (is_stand_in(value) || are_digits(value)) return false;
  constexpr size_t kLongest = 20;
  constexpr std::string_view kPython = "python";
  if (value.starts_with(kPython)) value.remove_prefix(kPython.size());
  const bool is_version = value.size() <= kLongest && all_parts(value, ".", are_digits);
  const auto is_word = [](std::string_view part) {
    return part.size() <= kLongest && std::all_of(part.begin(), part.end(), [](char c) {
             return std::islower(static_cast<unsigned char>(c)) != 0;
           });
  };
  return is_version || all_parts(value, "-_./:, ", is_word);
}

// "api_key" of "--api-key" and "--api-key=K"; empty: the word is no option.
std::string option_name(std::string_view word) {
  word = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  std::string name(word.substr(0, word.find('=')));
  for (char& c : name) {
    if (c == '-') c = '_';
    if (!is_letter(c) && !std::isdigit(static_cast<unsigned char>(c)) && c != '_' && c != '.')
      return "";
  }
  return name;
}

// A secret may begin with a dash: "-x" and "--word" are options.
bool looks_like_option(std::string_view word) {
  return word.starts_with("--") || (word.size() == 2 && word[0] == '-');
}

// use(name, word, where in the word the value begins)
template <class F>
void for_each_secret(std::vector<std::string>& words, F use) {
  for (size_t i = 0; i < words.size(); i++) {
    if (i > 0 && (words[i - 1] == "-u" || words[i - 1] == "--user"))  // of curl
      if (const size_t colon = words[i].find(':'); colon != std::string::npos) {
        use("password", words[i], colon + 1);
        continue;
      }
    const std::string name = option_name(words[i]);
    if (!names_secret(name)) continue;
    if (const size_t equals = words[i].find('='); equals != std::string::npos)
      use(name, words[i], equals + 1);
    else if (words[i].starts_with('-') && i + 1 < words.size() && !looks_like_option(words[i + 1]))
      use(name, words[++i], 0);
  }
}

}  // namespace

bool is_stand_in(std::string_view value) {
  return value.starts_with('x') && value.find_first_not_of("x/\r\n") == value.npos;
}

bool names_secret(std::string_view name) {
  if (name == "PWD" || name == "OLDPWD") return false;  // the shell's directories
  constexpr std::string_view kParts[] = {
      "TOKEN",   "SECRET", "PASS",    "PWD",      "CREDENTIAL",     "KEY",   "AUTH",  "SIGNATURE",
      "PRIVATE", "COOKIE", "WEBHOOK", "CONN_STR", "CONNECTION_STR", "_PAT_", "_PIN_", "_SIG_",
      "_SAS_",   "_DSN_"};  // words of their own
  const std::string upper = upper_word(name);
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return upper.find(part) != std::string::npos; });
}

bool tells_of_secret(std::string_view name) {
  if (!names_secret(name)) return false;
  constexpr std::string_view kParts[] = {
      "TOKEN",      "SECRET", "PASSW",   "PASSPH",     "_PASS_",         "_PWD_",
      "CREDENTIAL", "APIKEY", "API_KEY", "ACCESS_KEY", "_AUTH_",         "AUTHORIZATION",
      "SIGNATURE_", "COOKIE", "WEBHOOK", "CONN_STR",   "CONNECTION_STR", "_PAT_",
      "_PIN_",      "_SIG_",  "_SAS_",   "_DSN_"};
  const std::string upper = upper_word(name);
  if (upper.ends_with("_KEY_") && upper != "_KEY_") return true;
  if (upper.starts_with("_AUTH_") && upper != "_AUTH_") return false;  // of kinds and places of it
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return upper.find(part) != std::string::npos; });
}

bool holds_secret(std::string_view name, std::string_view value) {
  name = name.substr(0, name.find('='));
  if (!names_secret(name) || is_switch(value)) return false;
  if (is_stand_in(value)) return true;
  return !are_places(value) && (tells_of_secret(name) || !is_ordinary(value));
}

namespace {

std::vector<std::string> find_values(const std::map<std::string, std::string>& variables,
                                     bool with_common) {
  constexpr size_t kLeast = 6;
  std::vector<std::string> values;
  const auto add = [&](std::string_view value) {
    const bool known = std::find(values.begin(), values.end(), value) != values.end();
    if (value.size() >= kLeast && (with_common || !is_common(value)) && !known)
      values.emplace_back(value);
    return true;
  };
  for (const auto& [name, value] : variables) {
    for (const auto& [begin, end] : find_credentials(value)) {
      const std::string_view credentials = std::string_view(value).substr(begin, end - begin);
      add(credentials.substr(credentials.find(':') + 1));  // of user and password
    }
    if (!holds_secret(name, value)) continue;
    add(value);
    all_parts(value, "/", add);  // of a path it may be more than one
  }
  // The longest first: one may be a part of another.
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return values;
}

}  // namespace

std::vector<std::string> secret_values(const std::map<std::string, std::string>& variables) {
  return find_values(variables, false);
}

std::vector<std::string> all_secret_values(const std::map<std::string, std::string>& variables) {
  return find_values(variables, true);
}

std::string stand_in_of(std::string_view secret) {
  std::string result(secret);
  for (char& c : result)
    if (c != '/' && c != '\n' && c != '\r') c = 'x';
  if (!result.empty()) result[0] = 'x';
  return result;
}

std::vector<std::string> without_secret_arguments(std::vector<std::string> words) {
  for_each_secret(words, [](const std::string&, std::string& word, size_t value) {
    word.replace(value, std::string::npos, kHiddenSecret);
  });
  return words;
}

std::vector<std::string> with_stand_ins(std::vector<std::string> words) {
  for_each_secret(words, [](const std::string& name, std::string& word, size_t at) {
    const std::string value = word.substr(at);
    if (holds_secret(name, value)) word.replace(at, value.size(), stand_in_of(value));
  });
  return words;
}

std::map<std::string, std::string> with_secret_arguments(
    std::map<std::string, std::string> variables, std::vector<std::string> words) {
  for_each_secret(words, [&](const std::string& name, const std::string& word, size_t at) {
    const std::string value = word.substr(at);
    variables.insert_or_assign(name + "=" + value, value);
  });
  return variables;
}

Ranges find_credentials(std::string_view text) {
  constexpr std::string_view kMark = "://";
  Ranges found;
  for (size_t at = text.find(kMark); at != text.npos;) {
    const size_t begin = at + kMark.size();
    at = text.find(kMark, begin);
    const Address address(text, begin, at, found);
  }
  for (const TokenShape& shape : kTokenShapes) find_tokens_of(shape, text, found);
  return without_overlaps(std::move(found));
}

}  // namespace cohabit
