// What can be told of a block of statements without running it, for where it is not known whether
// it runs. Worked out once for each block: a function that is called often skips the same one again
// and again.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "imports/syntax.h"

namespace cohabit::python {

// The names of the errors that a handler with this type catches, or that a try statement does; ""
// for a bare except.
void add_errors(const Expr* type, std::vector<std::string_view>& names);
std::vector<std::string_view> errors_of(const Stmt& statement);
// The class in `raise Error(...)`, `raise errors.Error`; null: it names none.
const Expr* raised_error(const Stmt& statement);

struct BlockFacts {
  struct Place {  // a name, or an attribute of a name
    std::string_view name;
    std::string_view owner;  // empty: it is no attribute
  };
  bool makes_names = false;      // that its text does not show
  bool names_elsewhere = false;  // likewise, not for its own object: of code inside a function
  bool returns_value = false;    // a function that holds it may end in it with a value
  bool returns = false;          // or without one
  bool leaves_loop = false;      // a loop that holds it may end in it
  bool leaves_round = false;     // or a round of the loop
  std::vector<std::string_view> raises;  // the names of errors
  std::vector<const Stmt*> imports;      // not those of functions and classes in it
  bool imports_by_name = false;          // likewise, of a name that is computed
  // With the value if it is one name and one value; not of functions and classes in it.
  struct Assigned {
    Place place;
    const Expr* value;
  };
  std::vector<Assigned> assigned;
  // The same of what is no name and no attribute of one: `a.b.c = 1`, `a["b"] = 1`, `a[0] += 1`.
  struct AssignedWithin {
    const Expr* target;  // an attribute or a subscript; any of its items: `a.update(...)`: a
    const Expr* value;   // null: not known
  };
  std::vector<AssignedWithin> assigned_within;
  // A name that stands where something is put into what it is (`x.append(1)`, `x[1] = 2`), or that
  // counts (`x += 1`); in the order of the text, not of functions and classes in it.
  struct Collected {
    Place place;
    bool counts;
    bool removes;  // something is taken out: `x.pop()`, `del x[1]`
  };
  std::vector<Collected> collected;
  // Attributes that are given to what these expressions are (`a.b.c = 1`, `setattr(a.b, "c", 1)`,
  // `a.b.__dict__["c"] = 1`: a.b); not of functions and classes in it.
  struct Given {
    const Expr* owner;
    std::string_view name;  // empty: not known
  };
  std::vector<Given> given;
};

template <typename Visit>
void for_each_call(const Expr* expression, const Visit& visit) {
  if (!expression || expression->kind == ExprKind::kLambda) return;
  if (expression->kind == ExprKind::kCall) visit(*expression);
  for (const Expr* item : expression->items) for_each_call(item, visit);
}

// Not of the functions and classes in it.
template <typename Visit>
void for_each_call(Block block, const Visit& visit) {
  for (const Stmt* statement : block) {
    for (const Expr* expression : statement->exprs) for_each_call(expression, visit);
    if (statement->kind == StmtKind::kFunction || statement->kind == StmtKind::kClass) continue;
    for_each_block(*statement, [&](Block inner) { for_each_call(inner, visit); });
  }
}

bool imports_all(const Stmt& statement);  // `from a import *`

// Whether functions of the module may give names to it, or to another one, that their text does not
// show (setattr, what globals() gives). Parses them all.
bool functions_write_names(const Syntax& module);

class KnownBlocks {
 public:
  // The block must live as long as this.
  const BlockFacts& of(Block block);

 private:
  std::unordered_map<const Stmt* const*, BlockFacts> facts_;  // by where its statements stand
  const BlockFacts nothing_;
};

}  // namespace cohabit::python
