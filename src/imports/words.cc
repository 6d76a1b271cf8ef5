#include "imports/words.h"

namespace cohabit::python {
namespace {

// By length, so that a name is compared with few.
constexpr Keyword kKeywords[] = {
    {"as", TokenKind::kAs},
    {"if", TokenKind::kIf},
    {"in", TokenKind::kIn, Operator::kIn},
    {"is", TokenKind::kIs, Operator::kIs},
    {"or", TokenKind::kOr},
    {"and", TokenKind::kAnd},
    {"def", TokenKind::kDef},
    {"del", TokenKind::kDel},
    {"for", TokenKind::kFor},
    {"not", TokenKind::kNot},
    {"try", TokenKind::kTry},
    {"None", TokenKind::kNone},
    {"True", TokenKind::kTrue},
    {"elif", TokenKind::kElif},
    {"else", TokenKind::kElse},
    {"from", TokenKind::kFrom},
    {"pass", TokenKind::kPass},
    {"with", TokenKind::kWith},
    {"False", TokenKind::kFalse},
    {"async", TokenKind::kAsync},
    {"await", TokenKind::kAwait},
    {"break", TokenKind::kBreak},
    {"class", TokenKind::kClass},
    {"raise", TokenKind::kRaise},
    {"while", TokenKind::kWhile},
    {"yield", TokenKind::kYield},
    {"assert", TokenKind::kAssert},
    {"except", TokenKind::kExcept},
    {"global", TokenKind::kGlobal},
    {"import", TokenKind::kImport},
    {"lambda", TokenKind::kLambda},
    {"return", TokenKind::kReturn},
    {"finally", TokenKind::kFinally},
    {"continue", TokenKind::kContinue},
    {"nonlocal", TokenKind::kNonlocal},
};
constexpr uint8_t kFirstOfLength[] = {0, 0, 0, 5, 11, 18, 26, 32, 33, 35};

// Blocks of Unicode without any letter, as far as they occur in broken files: spaces that no
// keyboard has, typographic quotes, arrows, emoji. All of what an identifier may hold would be a
// table of 700 ranges.
bool is_no_letter(uint32_t code) {
  if (code < 0xc0) return code != 0xaa && code != 0xb5 && code != 0xb7 && code != 0xba;
  if (code == 0xd7 || code == 0xf7) return true;
  if (code >= 0x2000 && code <= 0x206f) return code != 0x203f && code != 0x2040 && code != 0x2054;
  if (code >= 0x20a0 && code <= 0x20cf) return true;
  if (code >= 0x2190 && code <= 0x2bff) return true;
  if (code >= 0x3000 && code <= 0x3003) return true;
  if (code >= 0x3008 && code <= 0x3020) return true;
  if (code >= 0xe000 && code <= 0xf8ff) return true;
  if (code >= 0xff01 && code <= 0xff0f) return true;
  return code == 0xff1a || code == 0xff1b || code == 0xfeff || code == 0xfffd ||
         (code >= 0x1f000 && code <= 0x1fbef);
}

// The text was checked to be UTF-8 when it was read.
uint32_t code_point(std::string_view text, size_t& at) {
  const auto first = static_cast<uint8_t>(text[at++]);
  if (first < 0x80) return first;
  const int following = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  uint32_t code = first & (0x3f >> following);
  for (int i = 0; i < following && at < text.size(); i++)
    code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3f);
  return code;
}

}  // namespace

const Keyword* find_keyword(std::string_view name) {
  if (name.size() < 2 || name.size() > 8) return nullptr;
  for (uint8_t i = kFirstOfLength[name.size()]; i < kFirstOfLength[name.size() + 1]; i++)
    if (kKeywords[i].text[0] == name[0] && kKeywords[i].text == name) return &kKeywords[i];
  return nullptr;
}

bool is_identifier(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const uint32_t code = code_point(name, at);
    if (code >= 0x80 && is_no_letter(code)) return false;
  }
  return true;
}

}  // namespace cohabit::python
