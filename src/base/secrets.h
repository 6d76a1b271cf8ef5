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

// Whether a variable, or a parameter of an address, of this name holds a secret.
bool names_secret(std::string_view name);
// Those of them that are long enough to be found in other text: short ones are everywhere.
std::vector<std::string> secret_values(const std::map<std::string, std::string>& variables);

// The words of a command, with kHiddenSecret for the values of options that are named as secrets:
// "--api-key K", "--token=T", "HF_TOKEN=T".
std::vector<std::string> without_secret_arguments(std::vector<std::string> words);
// To the variables, those values, under names of their own. A word of letters alone is left out: it
// is likelier a module's name ("--tokenizer transformers"), which other text is full of.
std::map<std::string, std::string> with_secret_arguments(
    std::map<std::string, std::string> variables, std::vector<std::string> words);

// Where credentials of addresses stand, and what follows "ghp_", "hf_"...: begin, end, in order.
std::vector<std::pair<size_t, size_t>> find_credentials(std::string_view text);

}  // namespace cohabit
