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

}  // namespace

bool names_secret(std::string_view name) {
  if (name == "PWD" || name == "OLDPWD") return false;  // the shell's directories
  constexpr std::string_view kParts[] = {
      "TOKEN",   "SECRET", "PASS",    "PWD",      "CREDENTIAL",     "KEY",   "AUTH",  "SIGNATURE",
      "PRIVATE", "COOKIE", "WEBHOOK", "CONN_STR", "CONNECTION_STR", "_PAT_", "_PIN_", "_SIG_",
      "_SAS_",   "_DSN_"};  // words of their own
  std::string upper = "_";
  std::transform(name.begin(), name.end(), std::back_inserter(upper), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  upper += '_';
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return upper.find(part) != std::string::npos; });
}

std::vector<std::string> secret_values(const std::map<std::string, std::string>& variables) {
  constexpr size_t kLeast = 6;
  std::vector<std::string> values;
  for (const auto& [name, value] : variables)
    if (names_secret(name) && value.size() >= kLeast) values.push_back(value);
  return values;
}

Ranges find_credentials(std::string_view text) {
  constexpr std::string_view kMark = "://";
  Ranges found;
  for (size_t at = text.find(kMark); at != text.npos;) {
    const size_t begin = at + kMark.size();
    at = text.find(kMark, begin);
    const Address address(text, begin, at, found);
  }
  return found;
}

}  // namespace cohabit
