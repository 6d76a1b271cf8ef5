// Which words are keywords, and which are names at all.
#pragma once

#include <string_view>

#include "imports/lexer.h"

namespace cohabit::python {

struct Keyword {
  std::string_view text;
  TokenKind kind;
  Operator op = Operator::kNoOperator;
};

// Null when the word is a name. The soft ones (match, case, type, _) are names to the lexer.
const Keyword* find_keyword(std::string_view name);

// Whether the characters beyond ASCII in it may stand in a name.
bool is_identifier(std::string_view name);

}  // namespace cohabit::python
