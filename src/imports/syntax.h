// The syntax of Python source, as far as following imports needs it: CPython 3.8 to 3.14.
//
// Nodes live in the Syntax that parsed them and point into its text. Function bodies are kept as
// text until somebody calls the function: most never are, and an environment holds 60 MB of source.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "imports/source_text.h"

namespace cohabit::python {

enum class ExprKind : uint8_t {
  kName,  // text
  kNone,
  kTrue,
  kFalse,
  kEllipsis,
  kInteger,      // text as written; integer when it fits
  kNumber,       // text as written: float or complex
  kString,       // text: the value, escapes resolved, adjacent literals joined (UTF-8)
  kBytes,        // text
  kJoined,       // f-string (and t-string): items are kString and kFormatted, in order
  kFormatted,    // items[0]: the expression of one {...}; text: "!r" conversion or ":spec" as
                 // written; items[1...]: kFormatted of the fields in the spec
  kTuple,        // items
  kList,         // items
  kSet,          // items
  kDict,         // items: key, value, key, value...; a null key is a ** entry
  kAttribute,    // items[0] . text
  kSubscript,    // items[0] [ items[1] ]
  kSlice,        // items: start, stop, step; null where absent
  kCall,         // items[0] is called with items[1..]: plain, kStarred or kKeyword
  kStarred,      // * items[0]
  kKeyword,      // text = items[0]; ** items[0] when text is empty
  kUnary,        // op items[0]
  kBinary,       // items[0] op items[1]
  kBool,         // items joined by op (kAnd or kOr)
  kCompare,      // items[0] op items[1] op items[2]...; operators[i] stands before items[i + 1]
  kConditional,  // items: then, condition, otherwise (as written: a if b else c)
  kLambda,       // parameters; items[0] is the body
  kListComp,     // items[0] the element; then one kFor per for clause
  kSetComp,
  kDictComp,  // items[0] key, items[1] value; then kFor
  kGenerator,
  kFor,        // items: target, iterable, conditions...
  kNamed,      // items[0] := items[1]; in a pattern: items[0] as items[1]
  kAwait,      // items[0]
  kYield,      // items[0], may be null
  kYieldFrom,  // items[0]
};

enum class Operator : uint8_t {
  kNoOperator,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kMatMultiply,
  kLeftShift,
  kRightShift,
  kBitOr,
  kBitXor,
  kBitAnd,
  kNot,
  kPlus,
  kMinus,
  kInvert,
  kAnd,
  kOr,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIs,
  kIsNot,
  kIn,
  kNotIn,
};

struct Expr;

struct Parameter {
  enum Kind : uint8_t { kPositional, kKeywordOnly, kVarArgs, kVarKeywords };
  std::string_view name;
  Kind kind = kPositional;
  const Expr* initial = nullptr;  // default value
  const Expr* annotation = nullptr;
};

struct Expr {
  ExprKind kind;
  Operator op = Operator::kNoOperator;
  uint16_t depth = 0;  // levels of items below this one: less than 2000, chains included
  uint32_t line = 0;
  int64_t integer = 0;
  std::string_view text;
  std::span<const Expr* const> items;
  std::span<const Operator> operators;
  std::span<const Parameter> parameters;
};

enum class StmtKind : uint8_t {
  kExpression,  // exprs[0]
  kAssign,      // exprs: targets..., value (last)
  kAugmented,   // exprs: target, value; op
  kAnnotated,   // exprs: target, annotation, value (null: no value)
  kImport,      // aliases
  kImportFrom,  // level dots, name, aliases; a single alias "*" for a star import
  kFunction,    // name, parameters, decorators, exprs[0] behind "->" or none, body_of(); is_async
  kClass,       // name, exprs: bases and kKeyword, decorators, body
  kIf,          // exprs[0], body, orelse (elif: an orelse of one kIf)
  kWhile,       // exprs[0], body, orelse
  kFor,         // exprs: target, iterable; body, orelse; is_async
  kTry,         // body, handlers, orelse, finally; is_star for except*
  kWith,        // exprs: context, target (null where absent), context, target...; body; is_async
  kReturn,      // exprs[0] may be null
  kRaise,       // exprs: exception, cause; null where absent
  kAssert,      // exprs: condition, message (null where absent)
  kDelete,      // exprs
  kGlobal,      // names
  kNonlocal,    // names
  kPass,
  kBreak,
  kContinue,
  kMatch,      // exprs[0] the subject; cases
  kTypeAlias,  // name; exprs[0] the value
};

struct Stmt;
using Block = std::span<const Stmt* const>;

struct Alias {
  std::string_view name;   // dotted in an import
  std::string_view bound;  // "as" name; empty: none
};

struct Handler {
  const Expr* type = nullptr;  // null: catches all
  std::string_view name;
  Block body;
};

struct Case {
  const Expr* pattern;
  const Expr* guard = nullptr;
  Block body;
};

// A function body that has not been parsed yet: a run of the text, or what became of it.
struct LazyBody {
  uint32_t begin = 0, end = 0;  // offsets into the text: whole logical lines, or a simple suite
  uint32_t line = 0;
  uint32_t level = 0;  // blocks around it
  bool parsed = false;
  Block block;
};

struct Stmt {
  StmtKind kind;
  Operator op = Operator::kNoOperator;
  bool is_async = false;
  bool is_star = false;
  uint32_t line = 0;
  uint32_t level = 0;
  std::string_view name;
  std::span<const Expr* const> exprs;
  Block body, orelse, finally;
  std::span<const Alias> aliases;
  std::span<const Handler> handlers;
  std::span<const Case> cases;
  std::span<const Expr* const> decorators;
  std::span<const Parameter> parameters;
  std::span<const std::string_view> names;
  LazyBody* lazy = nullptr;  // of a kFunction
};

struct SyntaxError {
  uint32_t line = 0;
  std::string message;
};

// The blocks that a statement holds, those of a function (parsed later) left out.
template <typename Visit>
void for_each_block(const Stmt& statement, const Visit& visit) {
  for (const Block block : {statement.body, statement.orelse, statement.finally}) visit(block);
  for (const Handler& handler : statement.handlers) visit(handler.body);
  for (const Case& one : statement.cases) visit(one.body);
}

// A parsed file. Keeps its text; not movable, because nodes point into it.
class Syntax {
 public:
  // Text as in the file: UTF-8, or Latin-1 with a coding line; a BOM is skipped.
  explicit Syntax(std::string text) : Syntax(std::move(text), nullptr) {}
  // With its nodes in an arena that outlives it.
  Syntax(std::string text, Arena& nodes) : Syntax(std::move(text), &nodes) {}
  Syntax(const Syntax&) = delete;

  // The statements of the module. Those before a syntax error are there; CPython would run none.
  Block module() const { return module_; }
  // The statements of a function; parses them the first time. Errors in it count as those of the
  // module, but are only seen when it is asked for.
  Block body_of(const Stmt& function) const;
  const std::vector<SyntaxError>& errors() const { return errors_; }
  // Parses all functions, for what is wrong in them; CPython does it for each file.
  void parse_functions() const { parse_functions(module_); }
  // The first line that Python 3.`minor` does not take, of what was parsed; nothing: it takes all.
  std::optional<SyntaxError> first_error(int minor) const;
  // A byte that is not UTF-8; with one, the functions are parsed too, for what else is wrong.
  const StrayByte& stray() const { return stray_; }
  // `from __future__ import annotations`: they are kept as text.
  bool keeps_annotations() const { return keeps_annotations_; }
  // The text of a function's body, unparsed: to see whether it can be of interest.
  std::string_view text_of(const Stmt& function) const;

 private:
  friend class Parser;
  Syntax(std::string text, Arena* nodes);

  void parse_functions(Block block) const;

  // Syntax that came with 3.minor, where it is first used.
  struct Newer {
    int minor;
    uint32_t line;
  };

  std::string text_;
  StrayByte stray_;
  std::unique_ptr<Arena> own_nodes_;
  Arena& nodes_;
  mutable std::deque<std::string> strings_;  // values of literals that are not plain text
  mutable std::vector<SyntaxError> errors_;
  mutable std::vector<Newer> newer_;
  mutable bool keeps_annotations_ = false;
  Block module_;
};

}  // namespace cohabit::python
