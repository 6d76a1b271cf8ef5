#!/usr/bin/env python3
"""Compares our parser with CPython's, for all Python files below directories.

    PYTHON check_syntax.py SYNTAX_DUMP DIRECTORY...

Run it with the interpreter that the files are for. Both trees are written as the same text, function
bodies included; where a file's differ, the first lines that do are shown. Known and not counted:

- \\N{NAME}: our parser has no table of names and puts U+FFFD.
- identifiers that are not ASCII: CPython makes them NFKC.
- rare encodings: ours reads everything but UTF-8 as Latin-1.
- "except A, B:" is valid as of 3.14, and except* as of 3.11: an older CPython refuses them.
"""

import ast
import os
import re
import struct
import subprocess
import sys
import unicodedata
import warnings

warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)

FIELD_LINES = sys.version_info >= (3, 12)
ESCAPES = {i: "\\%02x" % i for i in range(256) if not 0x20 < i < 0x7F or chr(i) in "\\()"}
KINDS = {"Constant": None, "JoinedStr": "Joined", "FormattedValue": "Formatted", "BinOp": "Binary",
         "UnaryOp": "Unary", "BoolOp": "Bool", "GeneratorExp": "Generator", "NamedExpr": "Named",
         "AsyncFunctionDef": "Function", "FunctionDef": "Function", "ClassDef": "Class",
         "AsyncFor": "For", "AsyncWith": "With", "TryStar": "Try", "TemplateStr": "Joined",
         "Interpolation": "Formatted"}


def word(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return " " + data.decode("latin-1").translate(ESCAPES)


class Dump:
    def __init__(self):
        self.out = []
        self.fields = 0

    def open(self, name, line):
        self.out.append(f"({name} {line}" if FIELD_LINES or not self.fields else f"({name}")

    def block(self, statements):
        self.out.append("{")
        for statement in statements:
            self.statement(statement)
        self.out.append("}\n")

    def exprs(self, items):
        for item in items:
            self.expr(item)

    def expr(self, node):
        if node is None:
            self.out.append("-")
            return
        name = type(node).__name__
        if name == "Constant":
            self.constant(node)
        elif name == "Index":  # before 3.9
            return self.expr(node.value)
        else:
            self.open(KINDS.get(name, name), getattr(node, "lineno", 0) if name != "FormattedValue"
                      else 0)
            getattr(self, "expr_" + name, self.other)(node)
        self.out.append(")")

    def constant(self, node):
        value = node.value
        kind = {str: "Str", bytes: "Bytes", int: "Int", float: "Number", complex: "Number"}.get(
            type(value), str(value))
        self.open(kind, node.lineno)
        if isinstance(value, (str, bytes)):
            self.out.append(word(value))
        elif isinstance(value, bool):
            pass
        elif isinstance(value, int):
            self.out.append(f" {value}" if value < 1 << 63 else " big")
        elif isinstance(value, (float, complex)):
            real = value.imag if isinstance(value, complex) else value
            self.out.append(" %d" % struct.unpack("<Q", struct.pack("<d", real)))
            self.out.append("j" if isinstance(value, complex) else "")

    def other(self, node):
        for field in node._fields:
            value = getattr(node, field)
            if isinstance(value, list):
                self.exprs(value)
            elif isinstance(value, str):
                self.out.append(word(value))
            elif not isinstance(value, ast.expr_context):
                self.expr(value)

    def expr_Attribute(self, node):
        self.out.append(word(node.attr))
        self.expr(node.value)

    def expr_keyword(self, node):
        self.out.append(word(node.arg or ""))
        self.expr(node.value)

    def expr_Constant(self, node):
        self.constant(node)

    def operation(self, op):
        self.out.append(word(type(op).__name__))

    def expr_BinOp(self, node):
        self.operation(node.op)
        self.exprs([node.left, node.right])

    def expr_UnaryOp(self, node):
        self.operation(node.op)
        self.expr(node.operand)

    def expr_BoolOp(self, node):
        self.operation(node.op)
        self.exprs(node.values)

    def expr_Compare(self, node):
        for op in node.ops:
            self.operation(op)
        self.exprs([node.left, *node.comparators])

    def expr_IfExp(self, node):
        self.exprs([node.body, node.test, node.orelse])

    def expr_Dict(self, node):
        for key, value in zip(node.keys, node.values):
            self.exprs([key, value])

    def expr_Call(self, node):
        self.exprs([node.func, *node.args, *node.keywords])

    def expr_Lambda(self, node):
        self.parameters(node.args)
        self.expr(node.body)

    def comprehension(self, node):
        self.exprs([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        for clause in node.generators:
            self.open("for", 0)
            self.exprs([clause.target, clause.iter, *clause.ifs])
            self.out.append(")")

    expr_ListComp = expr_SetComp = expr_DictComp = expr_GeneratorExp = comprehension

    def expr_JoinedStr(self, node):
        self.fields += 1
        text, line = "", 0
        for value in [*node.values, None]:
            if isinstance(value, ast.Constant):
                text, line = text + value.value, line or node.lineno
                continue
            if text:
                self.expr(ast.Constant(text, lineno=line))
            text, line = "", 0
            if value is not None:
                self.expr(value)
        self.fields -= 1

    def expr_FormattedValue(self, node):
        self.out.append(word(chr(node.conversion) if node.conversion > 0 else ""))
        self.expr(node.value)
        if node.format_spec:
            self.exprs(v for v in node.format_spec.values if not isinstance(v, ast.Constant))

    expr_TemplateStr = expr_JoinedStr
    expr_Interpolation = expr_FormattedValue

    def parameters(self, args):
        positional = args.posonlyargs + args.args
        missing = [None] * (len(positional) - len(args.defaults))
        rows = [(0, arg, initial) for arg, initial in zip(positional, missing + args.defaults)]
        if args.vararg:
            rows.append((2, args.vararg, None))
        rows += [(1, arg, initial) for arg, initial in zip(args.kwonlyargs, args.kw_defaults)]
        if args.kwarg:
            rows.append((3, args.kwarg, None))
        for kind, arg, initial in rows:
            self.out.append(f"[{kind}{word(arg.arg)}")
            self.expr(initial)
            if arg.annotation:
                self.expr(arg.annotation)
            self.out.append("]")

    def pattern(self, node):
        name = type(node).__name__
        if name == "MatchValue":
            return self.expr(node.value)
        if name == "MatchSingleton":
            return self.expr(ast.Constant(node.value, lineno=node.lineno))
        if name == "MatchOr":
            for i, part in enumerate(node.patterns):
                self.out.append("|" if i else "")
                self.pattern(part)
            return None
        if name == "MatchAs":
            self.open("As" if node.pattern else "Capture", node.lineno)
            self.out.append(word(node.name or "_"))
            if node.pattern:
                self.pattern(node.pattern)
        elif name == "MatchStar":
            self.open("Star", node.lineno)
            self.out.append(word(node.name or "_"))
        elif name == "MatchSequence":
            self.open("Sequence", node.lineno)
            for part in node.patterns:
                self.pattern(part)
        elif name == "MatchMapping":
            self.open("Mapping", node.lineno)
            for key, part in zip(node.keys, node.patterns):
                self.expr(key)
                self.pattern(part)
            if node.rest:
                self.out.append(word(node.rest))
        elif name == "MatchClass":
            self.open("ClassPattern", node.lineno)
            self.expr(node.cls)
            for part in node.patterns:
                self.pattern(part)
            for key, part in zip(node.kwd_attrs, node.kwd_patterns):
                self.out.append(word(key))
                self.pattern(part)
        self.out.append(")")
        return None

    def statement(self, node):
        name = type(node).__name__
        self.open(KINDS.get(name, name), node.lineno)
        if name.startswith("Async"):
            self.out.append(" async")
        if name == "TryStar":
            self.out.append(" star")
        getattr(self, "statement_" + name.replace("Async", ""), self.other)(node)
        self.out.append(")\n")

    def block_if_any(self, label, statements):
        if statements:
            self.out.append(label)
            self.block(statements)

    def statement_Assign(self, node):
        self.exprs([*node.targets, node.value])

    def statement_AugAssign(self, node):
        self.operation(node.op)
        self.exprs([node.target, node.value])

    def statement_AnnAssign(self, node):
        self.exprs([node.target, node.annotation, node.value])

    def aliases(self, aliases):
        for alias in aliases:
            self.out.append(word(alias.name) + (word(alias.asname) if alias.asname else ""))

    def statement_Import(self, node):
        self.aliases(node.names)

    def statement_ImportFrom(self, node):
        self.out.append(f" {node.level}" if node.level else "")
        self.out.append(word(node.module) if node.module else "")
        self.aliases(node.names)

    def statement_Global(self, node):
        for name in node.names:
            self.out.append(word(name))

    statement_Nonlocal = statement_Global

    def statement_FunctionDef(self, node):
        self.out.append(word(node.name))
        self.exprs(node.decorator_list)
        self.parameters(node.args)
        if node.returns:
            self.expr(node.returns)
        self.block(node.body)

    def statement_ClassDef(self, node):
        self.out.append(word(node.name))
        self.exprs([*node.decorator_list, *node.bases, *node.keywords])
        self.block(node.body)

    def loop(self, node):
        self.exprs([node.test] if hasattr(node, "test") else [node.target, node.iter])
        self.block(node.body)
        self.block_if_any("else", node.orelse)

    statement_If = statement_While = statement_For = loop

    def statement_Try(self, node):
        self.block(node.body)
        for handler in node.handlers:
            self.out.append("except ")
            self.expr(handler.type)
            self.out.append(word(handler.name or ""))
            self.block(handler.body)
        self.block_if_any("else", node.orelse)
        self.block_if_any("finally", node.finalbody)

    statement_TryStar = statement_Try

    def statement_With(self, node):
        for item in node.items:
            self.exprs([item.context_expr, item.optional_vars])
        self.block(node.body)

    def statement_Match(self, node):
        self.expr(node.subject)
        for case in node.cases:
            self.out.append("case ")
            self.pattern(case.pattern)
            self.expr(case.guard)
            self.block(case.body)

    def statement_TypeAlias(self, node):
        self.out.append(word(node.name.id))
        self.expr(node.value)


def python_dump(data):
    """The text, or None where CPython refuses the file, and why."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError, LookupError) as error:
        return None, repr(error)
    dump = Dump()
    dump.block(tree.body)
    return "".join(dump.out), ""


def files_below(directory):
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if name.endswith(".py") and os.path.isfile(path) and "\n" not in path:
                yield path


def plain(text):
    """Identifiers as CPython makes them, and no values of strings."""
    text = re.sub(r"(\(Str(?: \d+)?) [^()]*", r"\1", text)
    data = re.sub(rb"\\(..)", lambda match: bytes.fromhex(match[1].decode()), text.encode())
    return unicodedata.normalize("NFKC", data.decode("utf-8", "replace"))


def is_known(theirs, ours, errors, data):
    start = b"\n".join(data.split(b"\n")[:2])
    if re.search(rb"coding[:=]", start) and not re.search(rb"utf-8|latin-1|iso-8859-1\b", start):
        return True
    if theirs is None:
        return re.search(rb"^\s*except( [\w.]+, *\w+|\*.*):", data, re.M)
    return not errors and plain(theirs) == plain(ours)


def show(path, theirs, ours, why, errors):
    print(f"\n{path}")
    if why or errors:
        print(f"  CPython: {why or 'accepts'}\n  ours: {errors or 'accepts'}")
        return
    for ours_line, theirs_line in zip(ours.splitlines(), theirs.splitlines()):
        if ours_line != theirs_line:
            at = next((i for i, (a, b) in enumerate(zip(ours_line, theirs_line)) if a != b), 0)
            begin = max(at - 60, 0)
            print(f"  CPython: {theirs_line[begin:at + 90]}\n  ours:    {ours_line[begin:at + 90]}")
            return


def main():
    command = [sys.argv[1]] + ([] if FIELD_LINES else ["--no-field-lines"])
    ours_process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    files = same = known = refused = different = 0
    for directory in sys.argv[2:]:
        for path in files_below(directory):
            ours_process.stdin.write(os.fsencode(path) + b"\n")
            ours_process.stdin.flush()
            with open(path, "rb") as file:
                data = file.read()
            theirs, why = python_dump(data)
            size, error_size = map(int, ours_process.stdout.readline().split())
            ours = ours_process.stdout.read(size).decode()
            errors = ours_process.stdout.read(error_size).decode()
            files += 1
            refused += theirs is None
            if (errors and theirs is None) or (not errors and ours == theirs):
                same += 1
            elif is_known(theirs, ours, errors, data):
                known += 1
            else:
                different += 1
                show(path, theirs, ours, why, errors.strip())
    ours_process.stdin.close()
    print(f"{files} files, {same} the same ({refused} refused), {known} known to differ, "
          f"{different} different")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
