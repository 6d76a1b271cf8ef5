// Writes what our parser sees in Python files, in the form that check_syntax.py makes of CPython's
// own tree. Reads paths, one in a line; writes for each "<size> <number of errors>" and the text.
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "imports/syntax.h"

using namespace cohabit::python;

namespace {

const char* name_of(ExprKind kind) {
  static const char* const kNames[] = {
      "Name",      "None",    "True",    "False",     "Ellipsis",  "Int",
      "Number",    "Str",     "Bytes",   "Joined",    "Formatted", "Tuple",
      "List",      "Set",     "Dict",    "Attribute", "Subscript", "Slice",
      "Call",      "Starred", "keyword", "Unary",     "Binary",    "Bool",
      "Compare",   "IfExp",   "Lambda",  "ListComp",  "SetComp",   "DictComp",
      "Generator", "for",     "Named",   "Await",     "Yield",     "YieldFrom"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(StmtKind kind) {
  static const char* const kNames[] = {"Expr",       "Assign",   "AugAssign", "AnnAssign", "Import",
                                       "ImportFrom", "Function", "Class",     "If",        "While",
                                       "For",        "Try",      "With",      "Return",    "Raise",
                                       "Assert",     "Delete",   "Global",    "Nonlocal",  "Pass",
                                       "Break",      "Continue", "Match",     "TypeAlias"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(Operator op) {
  static const char* const kNames[] = {
      "",        "Add",    "Sub",    "Mult",  "Div",    "FloorDiv", "Mod", "Pow",
      "MatMult", "LShift", "RShift", "BitOr", "BitXor", "BitAnd",   "Not", "UAdd",
      "USub",    "Invert", "And",    "Or",    "Eq",     "NotEq",    "Lt",  "LtE",
      "Gt",      "GtE",    "Is",     "IsNot", "In",     "NotIn"};
  return kNames[static_cast<size_t>(op)];
}

class Dump {
 public:
  Dump(const Syntax& syntax, bool field_lines) : syntax_(syntax), field_lines_(field_lines) {}

  void block(Block statements) {
    out_ += '{';
    for (const Stmt* stmt : statements) statement(*stmt);
    out_ += "}\n";
  }
  const std::string& text() const { return out_; }

 private:
  void word(std::string_view text) {
    out_ += ' ';
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte > 0x20 && byte < 0x7f && c != '\\' && c != '(' && c != ')') {
        out_ += c;
        continue;
      }
      static const char kDigits[] = "0123456789abcdef";
      out_ += '\\';
      out_ += kDigits[byte >> 4];
      out_ += kDigits[byte & 15];
    }
  }

  void open(const char* name, uint32_t line) {
    out_ += '(';
    out_ += name;
    if (fields_ == 0 || field_lines_) {
      out_ += ' ';
      out_ += std::to_string(line);
    }
  }

  void exprs(std::span<const Expr* const> items) {
    for (const Expr* item : items) expr(item);
  }

  void expr(const Expr* expr) {
    if (expr == nullptr) {
      out_ += '-';
      return;
    }
    const bool has_line = expr->kind != ExprKind::kFor && expr->kind != ExprKind::kFormatted;
    open(name_of(expr->kind), has_line ? expr->line : 0);
    content(*expr);
    out_ += ')';
  }

  void content(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kName:
      case ExprKind::kString:
      case ExprKind::kBytes:
      case ExprKind::kAttribute:
      case ExprKind::kKeyword:
        word(expr.text);
        exprs(expr.items);
        return;
      case ExprKind::kInteger:
        word(expr.integer != 0 || is_zero(expr.text) ? std::to_string(expr.integer) : "big");
        return;
      case ExprKind::kNumber:
        number(expr.text);
        return;
      case ExprKind::kCall:
        arguments(expr.items);
        return;
      case ExprKind::kLambda:
        parameters(expr.parameters);
        exprs(expr.items);
        return;
      case ExprKind::kJoined:
        fields_++;
        exprs(expr.items);
        fields_--;
        return;
      case ExprKind::kFormatted:
        word(expr.text.starts_with('!') ? expr.text.substr(1, 1) : "");
        exprs(expr.items);
        return;
      case ExprKind::kCompare:
        for (const Operator op : expr.operators) word(name_of(op));
        exprs(expr.items);
        return;
      default:
        if (expr.op != Operator::kNoOperator) word(name_of(expr.op));
        exprs(expr.items);
    }
  }

  static bool is_zero(std::string_view text) {
    return text.find_first_not_of("0_xXoObB") == text.npos;
  }

  void number(std::string_view literal) {
    std::string digits;
    for (const char c : literal)
      if (c != '_') digits += c;
    word(std::to_string(std::bit_cast<uint64_t>(std::strtod(digits.c_str(), nullptr))));
    if ((literal.back() | 0x20) == 'j') out_ += 'j';
  }

  // CPython keeps those by position and those by name apart.
  void arguments(std::span<const Expr* const> items) {
    for (const Expr* item : items)
      if (item->kind != ExprKind::kKeyword) expr(item);
    for (const Expr* item : items)
      if (item->kind == ExprKind::kKeyword) expr(item);
  }

  void parameters(std::span<const Parameter> parameters) {
    for (const Parameter& parameter : parameters) {
      out_ += '[';
      out_ += static_cast<char>('0' + parameter.kind);
      word(parameter.name);
      expr(parameter.initial);
      if (parameter.annotation) expr(parameter.annotation);
      out_ += ']';
    }
  }

  void pattern(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kName:
        open("Capture", expr.line);
        word(expr.text);
        break;
      case ExprKind::kNamed:
        open("As", expr.line);
        word(expr.items[1]->text);
        pattern(*expr.items[0]);
        break;
      case ExprKind::kBinary:
        if (expr.op == Operator::kBitOr) {
          pattern(*expr.items[0]);
          out_ += '|';
          pattern(*expr.items[1]);
          return;
        }
        this->expr(&expr);
        return;
      case ExprKind::kCall:
        class_pattern(expr);
        break;
      case ExprKind::kDict:
        open("Mapping", expr.line);
        for (size_t i = 0; i < expr.items.size(); i += 2) {
          if (expr.items[i] == nullptr) {
            word(expr.items[i + 1]->text);
            continue;
          }
          this->expr(expr.items[i]);
          pattern(*expr.items[i + 1]);
        }
        break;
      case ExprKind::kList:
      case ExprKind::kTuple:
        open("Sequence", expr.line);
        for (const Expr* item : expr.items) pattern(*item);
        break;
      case ExprKind::kStarred:
        open("Star", expr.line);
        word(expr.items[0]->text);
        break;
      default:
        this->expr(&expr);
        return;
    }
    out_ += ')';
  }

  void class_pattern(const Expr& call) {
    open("ClassPattern", call.line);
    expr(call.items[0]);
    for (const Expr* item : call.items.subspan(1)) {
      if (item->kind == ExprKind::kKeyword) word(item->text);
      pattern(item->kind == ExprKind::kKeyword ? *item->items[0] : *item);
    }
  }

  void statement(const Stmt& stmt) {
    open(name_of(stmt.kind), stmt.line);
    if (stmt.is_async) out_ += " async";
    if (stmt.is_star) out_ += " star";
    if (stmt.level > 0) word(std::to_string(stmt.level));
    if (stmt.op != Operator::kNoOperator) word(name_of(stmt.op));
    if (!stmt.name.empty()) word(stmt.name);
    exprs(stmt.decorators);
    parameters(stmt.parameters);
    for (const std::string_view name : stmt.names) word(name);
    for (const Alias& alias : stmt.aliases) {
      word(alias.name);
      if (!alias.bound.empty()) word(alias.bound);
    }
    if (stmt.kind == StmtKind::kClass)
      arguments(stmt.exprs);
    else
      exprs(stmt.exprs);
    blocks(stmt);
    out_ += ")\n";
  }

  void blocks(const Stmt& stmt) {
    if (stmt.kind == StmtKind::kFunction) block(syntax_.body_of(stmt));
    if (!stmt.body.empty()) block(stmt.body);
    for (const Handler& handler : stmt.handlers) {
      out_ += "except ";
      expr(handler.type);
      word(handler.name);
      block(handler.body);
    }
    for (const Case& match_case : stmt.cases) {
      out_ += "case ";
      pattern(*match_case.pattern);
      expr(match_case.guard);
      block(match_case.body);
    }
    if (!stmt.orelse.empty()) {
      out_ += "else";
      block(stmt.orelse);
    }
    if (!stmt.finally.empty()) {
      out_ += "finally";
      block(stmt.finally);
    }
  }

  const Syntax& syntax_;
  bool field_lines_;
  int fields_ = 0;
  std::string out_;
};

}  // namespace

int main(int argc, char**) {
  const bool field_lines = argc == 1;
  for (std::string path; std::getline(std::cin, path);) {
    std::ifstream file(path, std::ios::binary);
    const Syntax syntax(std::string(std::istreambuf_iterator<char>(file), {}));
    Dump dump(syntax, field_lines);
    dump.block(syntax.module());
    std::string errors;
    for (const SyntaxError& error : syntax.errors())
      errors += std::to_string(error.line) + ": " + error.message + "\n";
    std::cout << dump.text().size() << ' ' << errors.size() << '\n' << dump.text() << errors;
    std::cout.flush();
  }
}
