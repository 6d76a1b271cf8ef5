// What nobody else should see: values of variables and options that are named as secrets, tokens of
// known shape, credentials in addresses ("https://user:token@host/", "/t/TOKEN/", "?token=").
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohabit {

// What is shown in the place of one.
inline constexpr std::string_view kHiddenSecret = "***";

// Whether a variable, or a parameter of an address, of this name may hold a secret...
bool names_secret(std::string_view name);
// ...and whether it can hardly hold anything else: DB_PASSWORD, but not KEY_TYPE, nor MONKEY.
bool tells_of_secret(std::string_view name);
// Whether the value of a variable of this name is nobody's business. Switches ("0", "true") and
// paths from the root are not; words and numbers are where the name tells of a secret.
bool holds_secret(std::string_view name, std::string_view value);
// Those of them that can be looked for in other text, the longest first: short ones and common
// words are everywhere.
std::vector<std::string> secret_values(const std::map<std::string, std::string>& variables);
// With common words.
std::vector<std::string> all_secret_values(const std::map<std::string, std::string>& variables);

// What a bundle has in the place of one: as many x, but for '/', by which paths stay paths, and
// line breaks.
std::string stand_in_of(std::string_view secret);

// Whether a text is one...
bool is_stand_in(std::string_view text);
// ...and hardly anything else.
inline bool stands_for_secret(std::string_view text) {
  constexpr size_t kLeast = 3;
  return text.size() >= kLeast && text[0] == 'x' && is_stand_in(text);
}

// The words of a command, with kHiddenSecret for the values of options that are named as secrets:
// "--api-key K", "--token=T", "HF_TOKEN=T".
std::vector<std::string> without_secret_arguments(std::vector<std::string> words);
// The same, with stand-ins, and only where holds_secret: the others decide
// what a program does.
std::vector<std::string> with_stand_ins(std::vector<std::string> words);
// To the variables, those values, under names of their own.
std::map<std::string, std::string> with_secret_arguments(
    std::map<std::string, std::string> variables, std::vector<std::string> words);

// Where credentials of addresses stand, and what follows "ghp_", "hf_"...: begin, end, in order.
std::vector<std::pair<size_t, size_t>> find_credentials(std::string_view text);

}  // namespace cohabit
