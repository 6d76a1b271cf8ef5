// What CPython does with the same text was looked up with its ast module; tests/imports compares
// the two over whole installations.
#include <doctest/doctest.h>

#include <string>

#include "imports/syntax.h"

using namespace cohabit::python;

namespace {

std::string first_error(const Syntax& syntax) {
  if (syntax.errors().empty()) return "";
  const SyntaxError& error = syntax.errors().front();
  return std::to_string(error.line) + ": " + error.message;
}

// Parses the bodies of all functions as well.
void parse_bodies(const Syntax& syntax, Block block) {
  for (const Stmt* stmt : block) {
    if (stmt->kind == StmtKind::kFunction) parse_bodies(syntax, syntax.body_of(*stmt));
    for (const Block inner : {stmt->body, stmt->orelse, stmt->finally}) parse_bodies(syntax, inner);
    for (const Handler& handler : stmt->handlers) parse_bodies(syntax, handler.body);
    for (const Case& match_case : stmt->cases) parse_bodies(syntax, match_case.body);
  }
}

bool is_valid(const std::string& text) {
  const Syntax syntax(text);
  parse_bodies(syntax, syntax.module());
  return syntax.errors().empty();
}

std::string repeat(const std::string& text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; i++) result += text;
  return result;
}

// The value of a module that is one expression.
const Expr& value_of(const Syntax& syntax) {
  REQUIRE_MESSAGE(syntax.errors().empty(), first_error(syntax));
  REQUIRE(syntax.module().size() == 1);
  REQUIRE(syntax.module()[0]->kind == StmtKind::kExpression);
  return *syntax.module()[0]->exprs[0];
}

std::string string_value(const std::string& text) {
  const Syntax syntax(text);
  return std::string(value_of(syntax).text);
}

}  // namespace

TEST_CASE("imports, classes and control flow have their parts") {
  const Syntax syntax(
      "import a.b as c, d\n"
      "from . . import (x as y,\n"
      "  z,)\n"
      "from ...pkg import *\n"
      "class C(Base, metaclass=M):\n"
      "  x: int = 1\n"
      "if a: b\n"
      "elif c: d; e\n"
      "else:\n"
      "\tf\n");
  REQUIRE_MESSAGE(syntax.errors().empty(), first_error(syntax));
  const Block module = syntax.module();
  REQUIRE(module.size() == 5);
  CHECK(module[0]->aliases[0].name == "a.b");
  CHECK(module[0]->aliases[0].bound == "c");
  CHECK(module[0]->aliases[1].name == "d");
  CHECK(module[1]->level == 2);
  CHECK(module[1]->aliases.size() == 2);
  CHECK(module[2]->level == 3);
  CHECK(module[2]->name == "pkg");
  CHECK(module[2]->aliases[0].name == "*");
  CHECK(module[3]->exprs.size() == 2);
  CHECK(module[3]->exprs[1]->text == "metaclass");
  CHECK(module[3]->body[0]->kind == StmtKind::kAnnotated);
  CHECK(module[4]->line == 7);
  REQUIRE(module[4]->orelse.size() == 1);
  CHECK(module[4]->orelse[0]->body.size() == 2);
  CHECK(module[4]->orelse[0]->orelse.size() == 1);
}

TEST_CASE("the bodies of functions are parsed when they are asked for") {
  const Syntax syntax(
      "@wraps(f)\n"
      "async def outer(a, /, b: int = 1, *c, d, **e) -> str:  # :\n"
      "    '''\n"
      "not the end ''' ; x = [1,\n"
      "2]\n"
      "# nor this\n"
      "    y = f'{z[\"q\"]}' \\\n"
      "+ 'w'\n"
      "    def inner(): return (\n"
      "1)\n"
      "    broken = = 1\n"
      "after = 1\n");
  REQUIRE(syntax.errors().empty());
  REQUIRE(syntax.module().size() == 2);
  const Stmt& outer = *syntax.module()[0];
  CHECK(outer.line == 2);
  CHECK(outer.is_async);
  CHECK(outer.decorators.size() == 1);
  REQUIRE(outer.parameters.size() == 5);
  CHECK(outer.parameters[1].initial->integer == 1);
  CHECK(outer.parameters[2].kind == Parameter::kVarArgs);
  CHECK(outer.parameters[3].kind == Parameter::kKeywordOnly);
  CHECK(outer.parameters[4].kind == Parameter::kVarKeywords);
  CHECK(syntax.text_of(outer).starts_with("    '''\n"));
  CHECK(syntax.text_of(outer).ends_with("broken = = 1\n"));
  const Block body = syntax.body_of(outer);
  REQUIRE(body.size() == 4);
  CHECK(syntax.body_of(*body[3])[0]->kind == StmtKind::kReturn);
  CHECK(first_error(syntax) == "11: invalid syntax");
  CHECK(syntax.body_of(outer).data() == body.data());
  CHECK(syntax.module()[1]->line == 12);
}

TEST_CASE("operators bind as CPython's") {
  const Syntax syntax("-a ** b + c * d < e is not f not in g and not h or i if j else k\n");
  const Expr& conditional = value_of(syntax);
  REQUIRE(conditional.kind == ExprKind::kConditional);
  const Expr& either = *conditional.items[0];
  REQUIRE(either.op == Operator::kOr);
  const Expr& compare = *either.items[0]->items[0];
  REQUIRE(compare.kind == ExprKind::kCompare);
  REQUIRE(compare.operators.size() == 3);
  CHECK(compare.operators[1] == Operator::kIsNot);
  CHECK(compare.operators[2] == Operator::kNotIn);
  const Expr& sum = *compare.items[0];
  CHECK(sum.op == Operator::kAdd);
  CHECK(sum.items[0]->op == Operator::kMinus);
  CHECK(sum.items[0]->items[0]->op == Operator::kPower);
}

TEST_CASE("literals have their values") {
  CHECK(string_value("'a' \"b\" r'\\n'") == "ab\\n");
  CHECK(string_value("'\\x41\\u00e9\\101\\\\\\\n'") ==
        "A\xc3\xa9"
        "A\\");
  CHECK(string_value("'''a\r\nb\rc'''") == "a\nb\nc");
  CHECK(string_value("(b'\\xff' B'x')") ==
        "\xff"
        "x");
  CHECK(string_value("# coding: latin-1\n'\xe9'") == "\xc3\xa9");
  CHECK(string_value("\xef\xbb\xbf'x'") == "x");
  const Syntax integers("0x_ff, 1_000, 0o17, 0b11, 99999999999999999999\n");
  const Expr& tuple = value_of(integers);
  CHECK(tuple.items[0]->integer == 255);
  CHECK(tuple.items[1]->integer == 1000);
  CHECK(tuple.items[2]->integer == 15);
  CHECK(tuple.items[3]->integer == 3);
  CHECK(tuple.items[4]->text == "99999999999999999999");
  const std::string text = "'plain'";
  const Syntax plain(text);
  CHECK(plain.module()[0]->exprs[0]->text == "plain");
}

TEST_CASE("f-strings: nested quotes, formats and conversions") {
  const Syntax syntax(
      "f'a{{{x!r:>{width}}}}' 'b' rf\"{f\"{d[\"k\"]}\"}\\{y = }{lambda_ if z else '}'}\"\n");
  const Expr& joined = value_of(syntax);
  REQUIRE(joined.kind == ExprKind::kJoined);
  REQUIRE(joined.items.size() == 7);
  CHECK(joined.items[0]->text == "a{");
  CHECK(joined.items[1]->text == "!r:>{width}");
  CHECK(joined.items[1]->items[1]->items[0]->text == "width");
  CHECK(joined.items[2]->text == "}b");
  CHECK(joined.items[3]->items[0]->kind == ExprKind::kJoined);
  CHECK(joined.items[4]->text == "\\y = ");
  CHECK(joined.items[5]->text == "!r");
  CHECK(joined.items[6]->items[0]->kind == ExprKind::kConditional);
  CHECK(is_valid("t'{x:%H:%M}' f'''{\nx # }\n:\n}'''\n"));
  CHECK_FALSE(is_valid("f'{x'\n"));
  CHECK_FALSE(is_valid("f'}'\n"));
  CHECK_FALSE(is_valid("f'{}'\n"));
  CHECK_FALSE(is_valid("f'{lambda x: 1}'\n"));
}

TEST_CASE("soft keywords are names elsewhere") {
  CHECK(
      is_valid("match = 1\nmatch.x\nmatch[a:b]\nmatch(x)\ncase = type = _ = match\nprint(type)\n"));
  CHECK(is_valid("type(x)\ntype\ntype in y\nmatch: int = 1\n"));
  const Syntax syntax(
      "match x, *(y):  # no colon\n"
      "  case [1, -2+3j, *rest] | {'k': v, **others} as whole if whole: pass\n"
      "  case a.b(c, d=(e | f)): pass\n"
      "  case _: pass\n"
      "type A[T: int = str, *Ts, **P] = list[T]\n");
  REQUIRE_MESSAGE(syntax.errors().empty(), first_error(syntax));
  REQUIRE(syntax.module()[0]->cases.size() == 3);
  CHECK(syntax.module()[0]->cases[0].pattern->kind == ExprKind::kNamed);
  CHECK(syntax.module()[0]->cases[0].guard != nullptr);
  CHECK(syntax.module()[1]->kind == StmtKind::kTypeAlias);
}

TEST_CASE("parentheses behind with are items where a colon follows") {
  const Syntax syntax(
      "with (a as b, c,): pass\n"
      "with (a, b) as c: pass\n"
      "with (a).b(), (c): pass\n"
      "with (a) - b, (yield): pass\n"
      "with (x for x in y): pass\n"
      "with (a, *b): pass\n");
  REQUIRE_MESSAGE(syntax.errors().empty(), first_error(syntax));
  CHECK(syntax.module()[0]->exprs.size() == 4);
  CHECK(syntax.module()[1]->exprs[0]->kind == ExprKind::kTuple);
  CHECK(syntax.module()[2]->exprs.size() == 4);
  CHECK(syntax.module()[3]->exprs[0]->op == Operator::kSubtract);
  CHECK(syntax.module()[4]->exprs[0]->kind == ExprKind::kGenerator);
  CHECK(syntax.module()[5]->exprs[0]->kind == ExprKind::kTuple);
}

TEST_CASE("newer grammar") {
  CHECK(is_valid("try: pass\nexcept* (A, B) as e: pass\n"));
  CHECK(is_valid("try: pass\nexcept A, B: pass\n"));
  CHECK_FALSE(is_valid("try: pass\nexcept A, B as e: pass\n"));
  CHECK(is_valid("def f[T](x: T) -> T: return x\nclass C[T, *U]: pass\n"));
  CHECK(is_valid("x[*a, 1:2, ::3, (y := 4)]\nwhile (n := f()): pass\nf(n := 1)\n"));
  CHECK(is_valid("def f(*args: *Ts): return *a, b\n"));
  CHECK(is_valid("x = [1for x in y if 0x1for z]\n"));
}

TEST_CASE("what CPython refuses is an error with its line") {
  CHECK(first_error(Syntax("x = 1\nprint 'a'\n")) == "2: missing parentheses in call to 'print'");
  for (const char* text : {"f() = 1",
                           "x + 1 = 2",
                           "a, b: int",
                           "(a, b) += 1",
                           "x = yield = 1",
                           "del f()",
                           "del *a",
                           "for f() in x: pass",
                           "f(a=1, b)",
                           "f(**a, *b)",
                           "f(x for x in y, 1)",
                           "f((a)=1)",
                           "(a) := 1",
                           "x := 1",
                           "(*a)",
                           "{**a for a in b}",
                           "[*a for a in b]",
                           "{*a: 1}",
                           "def f(a=1, b): pass",
                           "def f(*): pass",
                           "def f(*, **k): pass",
                           "def f(**k, a): pass",
                           "def f(/, a): pass",
                           "def f(): pass pass",
                           "lambda *: 1",
                           "import",
                           "from x import",
                           "from x import (a",
                           "from . import a,",
                           "if x:\npass",
                           "if x: if y: pass",
                           "try: pass",
                           "try: pass\nexcept: pass\nexcept* A: pass",
                           "else: pass",
                           "x = 'a",
                           "x = '''a",
                           "x = 1 2",
                           "x = 012",
                           "x = 1__0",
                           "x = 0xg",
                           "x = 1_",
                           "x = (",
                           "x = )",
                           "x = (]",
                           "x \\ y",
                           "x = $",
                           "x = a?b",
                           "b'\xc3\xa9'",
                           "b'a' 'b'",
                           "'\\x1'",
                           "'\\u12'",
                           "  x",
                           "if x:\n    a\n  b",
                           "if x:\n        a\n\tb",
                           "class",
                           "class C(x for x in y): pass",
                           "async x",
                           "await",
                           "match x:\n  case a, b as _: pass",
                           "match x:\n  case *a: pass",
                           "x = \xe2\x80\x9c",
                           "x \\",
                           "with (a as b) as c: pass",
                           "@x\ny",
                           "print >>f, 'x' 1",
                           "raise A, B",
                           "assert"})
    CHECK_MESSAGE(!is_valid(std::string(text) + "\n"), text);
  CHECK(first_error(Syntax(std::string("a\0b\n", 4))) ==
        "1: source code cannot contain null bytes");
  CHECK(first_error(Syntax("'\xff'\n")) ==
        "1: (unicode error) 'utf-8' codec can't decode a byte of a string");
}

TEST_CASE("statements before an error are there") {
  const Syntax syntax("import a\nclass C:\n  import b\n  x y\nimport c\n");
  CHECK(syntax.errors().size() == 1);
  REQUIRE(syntax.module().size() == 1);
  CHECK(syntax.module()[0]->kind == StmtKind::kImport);
}

TEST_CASE("deep nesting is an error, not a crash") {
  const size_t many = 100000;
  for (const char* open :
       {"(", "[", "{", "x(", "x[", "-", "not ", "await ", "lambda: ", "x ** ", "x if y else ",
        "lambda x=", "f'{", "f\"{x:{", "*", "a.", "a + ", "a and "})
    CHECK_FALSE(is_valid(repeat(open, many) + "\n"));
  for (const char* close : {"()", "[0]", ".x", " + 1", "(", " if y else (z)"})
    CHECK_FALSE(is_valid("x" + repeat(close, many) + "\n"));
  CHECK_FALSE(is_valid("if x: y\n" + repeat("elif x: y\n", many)));
  CHECK_FALSE(is_valid("match x:\n  case " + repeat("(", many) + "\n"));
  CHECK_FALSE(is_valid("match x:\n  case " + repeat("a|", many) + "a: pass\n"));
  CHECK(is_valid(repeat("(", 150) + repeat(")", 150) + "\n"));
  CHECK(is_valid("x = 1" + repeat(" + 1", 1900) + "\n"));
  CHECK(is_valid("x = [" + repeat("1, ", many) + "]\n"));
  std::string blocks;
  for (size_t i = 0; i < 300; i++)
    blocks += repeat(" ", i) + (i % 2 == 0 ? "def f():\n" : "if x:\n");
  CHECK_FALSE(is_valid(blocks + repeat(" ", 300) + "pass\n"));
}
