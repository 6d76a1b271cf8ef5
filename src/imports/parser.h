// Recursive descent over the tokens of one module, or of one function's body.
//
// Python's grammar (Grammar/python.gram of CPython) is a PEG; where CPython tries alternatives, one
// look is enough here: a line that starts with the name "match" is a match statement when it ends
// with a colon, and the items of "with (a, b):" are told from a tuple by the colon behind them.
//
// After an error every token is the end, so that all loops end without asking for it.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "imports/lexer.h"
#include "imports/literals.h"
#include "imports/syntax.h"

namespace cohabit::python {

// How deep an Expr may be, and how often the parser may call itself: the deepest of 49,000 files of
// Python 3.10 to 3.13 and three environments is a sum of 565.
inline constexpr uint16_t kMaxDepth = 2000;

class Parser {
 public:
  Parser(const Syntax& syntax, const LazyBody& body, bool whole_lines);

  Block parse_statements();
  Block parse_simple_suite();

 private:
  // Children of a node on their way to the arena: the last part of a vector that all share.
  template <class T>
  class Gather {
   public:
    Gather(Parser& parser, std::vector<T>& shared)
        : parser_(parser), shared_(shared), begin_(shared.size()) {}
    ~Gather() { shared_.resize(begin_); }
    Gather(const Gather&) = delete;
    void add(T item) { shared_.push_back(std::move(item)); }
    void clear() { shared_.resize(begin_); }
    size_t size() const { return shared_.size() - begin_; }
    T& back() { return shared_.back(); }
    const T& operator[](size_t i) const { return shared_[begin_ + i]; }
    std::span<const T> items() const { return std::span(shared_).subspan(begin_); }
    std::span<const T> take() const { return parser_.keep(items()); }

   private:
    Parser& parser_;
    std::vector<T>& shared_;
    size_t begin_;
  };
  using Exprs = Gather<const Expr*>;

  // Counts how deep the parser is in itself.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.level_ > kMaxDepth) parser_.fail("too deeply nested");
    }
    ~Level() { parser_.level_--; }
    Level(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // parser.cc
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_name(std::string_view name) const;
  bool accept(TokenKind kind);
  void expect(TokenKind kind, std::string_view what);
  void advance();
  void fail(std::string message);
  void note_newer(int minor, uint32_t line);
  std::string_view text(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  template <class T>
  std::span<const T> keep(std::span<const T> items);
  Expr* node(ExprKind kind, uint32_t line);
  Expr* node(ExprKind kind, uint32_t line, std::span<const Expr* const> items);
  Expr* node(ExprKind kind, uint32_t line, std::initializer_list<const Expr*> items);
  Stmt* statement_node(StmtKind kind, uint32_t line);
  std::span<const Expr* const> keep(std::initializer_list<const Expr*> items);

  // parser_expressions.cc
  const Expr* parse_expression();
  const Expr* parse_named_expression();
  const Expr* parse_star_expression(bool named);
  const Expr* parse_star_expressions();
  bool at_expression() const;
  const Expr* parse_yield_or_star_expressions();
  const Expr* parse_yield();
  const Expr* parse_disjunction();
  const Expr* parse_conjunction();
  const Expr* parse_inversion();
  const Expr* parse_comparison();
  Operator take_comparison();
  const Expr* parse_binary(int precedence);
  const Expr* parse_unary();
  const Expr* parse_power();
  const Expr* parse_primary();
  const Expr* parse_trailers(const Expr* expr, uint32_t line);
  const Expr* parse_lambda();
  const Expr* parse_subscript();
  const Expr* parse_slice();
  bool is_plain(const Expr* expr, uint32_t begin) const;
  bool is_bare_name(const Expr* expr, uint32_t begin) const;

  // parser_atoms.cc
  const Expr* parse_atom();
  const Expr* parse_group();
  const Expr* parse_list();
  const Expr* parse_braces();
  const Expr* parse_dict(uint32_t line, const Expr* first);
  const Expr* parse_set(uint32_t line, const Expr* first);
  void parse_more_items(Exprs& items, TokenKind close);
  const Expr* parse_number();
  std::string_view take_name(std::string_view what);
  bool at_comprehension() const { return at(TokenKind::kFor) || at(TokenKind::kAsync); }
  const Expr* parse_comprehension(ExprKind kind, uint32_t line,
                                  std::initializer_list<const Expr*> elements);
  const Expr* parse_for_clause();
  void parse_arguments(Exprs& arguments, bool may_be_generator);
  const Expr* parse_argument();
  const Expr* parse_target_list();
  const Expr* parse_star_target();
  void check_target(const Expr* target, std::string_view action);

  // parser_strings.cc
  struct StringParts;
  const Expr* parse_strings();
  const Expr* parse_plain_string(const Token& token);
  void check_encoding(std::string_view literal);
  const Expr* parse_joined_strings(const Token& first);
  void parse_formatted(StringParts& parts);
  const Expr* parse_field(StringParts& parts, const FStringQuote& quote);
  void parse_format(Exprs& fields, FStringQuote quote);
  void append_text(StringParts& parts, std::string_view literal, const StringPrefix& prefix);
  void end_text(StringParts& parts);

  // parser_statements.cc
  Block parse_block();
  void parse_statement(Gather<const Stmt*>& block);
  void parse_simple_line(Gather<const Stmt*>& block);
  const Stmt* parse_simple();
  void fail_behind(const Stmt& statement);
  static bool is_single_target(const Expr* target);
  const Stmt* parse_keyword_only(StmtKind kind);
  const Stmt* parse_expression_statement();
  const Stmt* parse_assignment(const Expr* first, uint32_t line);
  const Stmt* parse_augmented(const Expr* target, uint32_t line);
  const Stmt* parse_annotated(const Expr* target, uint32_t line);
  const Stmt* parse_return();
  const Stmt* parse_raise();
  const Stmt* parse_assert();
  const Stmt* parse_delete();
  const Stmt* parse_names(StmtKind kind);
  const Stmt* parse_import();
  const Stmt* parse_import_from();
  void parse_imported_names(Gather<Alias>& aliases);
  std::string_view parse_dotted_name();
  Alias parse_alias(bool dotted);
  bool at_type_alias() const;
  const Stmt* parse_type_alias();

  // parser_compound.cc
  const Stmt* parse_compound();
  const Stmt* parse_if();
  const Stmt* parse_while();
  const Stmt* parse_for(bool is_async);
  const Stmt* parse_try();
  Handler parse_handler(bool& is_star);
  const Expr* parse_exceptions();
  const Stmt* parse_with(bool is_async);
  bool parse_with_parentheses(Exprs& items);
  const Expr* make_group(const Exprs& items, uint32_t line, bool has_comma);
  void parse_with_item(Exprs& items);
  const Expr* parse_with_target();
  Block parse_else();
  Block parse_suite(std::string_view what);

  // parser_definitions.cc
  const Stmt* parse_decorated();
  const Stmt* parse_async();
  const Stmt* parse_definition(std::span<const Expr* const> decorators);
  Stmt* parse_function();
  Stmt* parse_class();
  void parse_type_parameters();
  void parse_type_parameter();
  std::span<const Parameter> parse_parameters(TokenKind end);
  Parameter parse_parameter(TokenKind end, Parameter::Kind kind);

  // parser_patterns.cc
  bool at_match() const;
  const Stmt* parse_match();
  Case parse_case();
  const Expr* parse_patterns();
  const Expr* parse_pattern();
  const Expr* parse_star_pattern();
  const Expr* parse_capture();
  const Expr* parse_or_pattern();
  const Expr* parse_closed_pattern();
  const Expr* parse_number_pattern();
  const Expr* parse_signed_number();
  const Expr* parse_name_pattern();
  const Expr* parse_class_pattern(const Expr* callee);
  const Expr* parse_sequence_pattern(TokenKind close);
  const Expr* parse_mapping_pattern();
  const Expr* parse_mapping_key();

  const Syntax& syntax_;
  std::string_view text_;
  Lexer lexer_;
  Token token_;
  const Expr* parsed_ = nullptr;  // what a token kParsed stands for
  Token following_;               // the one behind it
  uint32_t level_ = 0;
  bool failed_ = false;
  std::vector<const Expr*> exprs_;
  std::vector<const Stmt*> statements_;
  std::vector<Operator> operators_;
  std::vector<Parameter> parameters_;
  std::vector<Alias> aliases_;
  std::vector<Handler> handlers_;
  std::vector<Case> cases_;
  std::vector<std::string_view> names_;
};

template <class T>
std::span<const T> Parser::keep(std::span<const T> items) {
  if (items.empty()) return {};
  void* memory = syntax_.nodes_.allocate(items.size_bytes(), alignof(T));
  T* copy = static_cast<T*>(memory);
  std::uninitialized_copy(items.begin(), items.end(), copy);
  return {copy, items.size()};
}

}  // namespace cohabit::python
