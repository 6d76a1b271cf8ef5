# COHABIT_DEFER=torch: where a module of another package says `import torch` at its top, it gets a stand-in, and torch
# is loaded when something is really done with that. No package is changed. Code of the program itself, and imports
# inside functions, get the real module at once.
#
# A stand-in may stand in annotations. What is evaluated when the module is imported and is no annotation (the bases of a
# class, a decorator, a default) needs the real thing: `cohabit run` looks for that in the sources before it starts
# anything (--check), and where such a module comes unexpected, its import is not deferred.
import ast
import builtins
import importlib.util
import os
import sys

_TYPES = ("Union", "Optional", "Annotated", "Callable", "Sequence", "Iterable", "Mapping", "TypeVar", "Literal",
          "list", "dict", "tuple", "set", "type", "List", "Dict", "Tuple", "Set", "Type")


def _root(name):
    return name.partition(".")[0]


class _Uses(ast.NodeVisitor):
    """Lines of a module that need one of the deferred modules when the module is imported."""

    def __init__(self, roots):
        self.roots, self.names, self.lines = roots, set(), []

    def visit_Import(self, node):
        for one in node.names:
            if _root(one.name) in self.roots:
                self.names.add(one.asname or _root(one.name))

    def visit_ImportFrom(self, node):
        if node.level or _root(node.module or "") not in self.roots:
            return
        for one in node.names:
            if one.name == "*":
                self.lines.append(node.lineno)
            self.names.add(one.asname or one.name)

    def visit_If(self, node):
        test = node.test
        if getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING":
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def _visit_function(self, node):
        for part in getattr(node, "decorator_list", []) + node.args.defaults + node.args.kw_defaults:
            if part is not None:
                self.visit(part)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_Subscript(self, node):
        base = node.value
        if getattr(base, "id", getattr(base, "attr", "")) not in _TYPES:
            self.generic_visit(node)

    def visit_BinOp(self, node):
        if not isinstance(node.op, ast.BitOr):
            self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.names:
            self.lines.append(node.lineno)


def needed_at_import(file, roots):
    """The lines; a file that cannot be read or parsed is said to need nothing: nobody imports it either."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read(), file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    uses = _Uses(roots)
    uses.visit(tree)
    return sorted(set(uses.lines))


class _Later(object):
    """Stands for a module, or for what is in one, until something is done with it."""

    def __init__(self, path, importer):
        object.__setattr__(self, "_cohabit", (path, importer))

    def _cohabit_real(self):
        path = object.__getattribute__(self, "_cohabit")[0]
        parts = path.split(".")
        real = _import_module(parts[0])
        for at in range(1, len(parts)):
            try:
                real = getattr(real, parts[at])
            except AttributeError:
                try:
                    real = _import_module(".".join(parts[:at + 1]))
                except ImportError:
                    raise AttributeError("module %r has no attribute %r" % (".".join(parts[:at]), parts[at]))
        return real

    def __getattr__(self, name):
        path, importer = object.__getattribute__(self, "_cohabit")
        initializing = getattr(importer.get("__spec__"), "_initializing", False)
        if not initializing or _root(path) in sys.modules or name == "__version__":
            return getattr(self._cohabit_real(), name)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # somebody only asks what this is
        return _Later(path + "." + name, importer)

    def __setattr__(self, name, value):
        setattr(self._cohabit_real(), name, value)

    def __call__(self, *arguments, **named):
        return self._cohabit_real()(*arguments, **named)

    def __getitem__(self, key):
        return self._cohabit_real()[key]

    def __mro_entries__(self, bases):
        return (self._cohabit_real(),)

    def __instancecheck__(self, value):
        return isinstance(value, self._cohabit_real())

    def __subclasscheck__(self, value):
        return issubclass(value, self._cohabit_real())

    def __or__(self, other):
        from typing import Union
        return Union[self, other]

    def __ror__(self, other):
        from typing import Union
        return Union[other, self]

    def __dir__(self):
        return dir(self._cohabit_real())

    def __repr__(self):
        return "<deferred %s>" % object.__getattribute__(self, "_cohabit")[0]


def _import_module(name):
    import importlib
    return importlib.import_module(name)


class _Deferrer(object):
    """In the place of builtins.__import__ as long as there is something to defer."""

    def __init__(self, roots):
        self.roots, self.real, self.judged = set(roots), builtins.__import__, {}
        self.found = {}

    def install(self):
        def cohabit_import(name, globals=None, locals=None, fromlist=(), level=0):
            root = _root(name)
            if level or root not in self.roots:
                return self.real(name, globals, locals, fromlist, level)
            if self.defers(root, sys._getframe(1)):
                return _Later(name if fromlist else root, globals)
            module = self.real(name, globals, locals, fromlist, level)
            self.give_up(root)
            return module

        self.ours = builtins.__import__ = cohabit_import

    def give_up(self, root):
        """It is there, or cannot be: nothing is deferred any more."""
        self.roots.discard(root)
        if not self.roots and builtins.__import__ is self.ours:
            builtins.__import__ = self.real

    def defers(self, root, frame):
        if root in sys.modules:
            self.give_up(root)
            return False
        if frame.f_code.co_name != "<module>":
            return False
        importer = frame.f_globals.get("__name__") or ""
        file = frame.f_code.co_filename
        if _root(importer) in self.roots or "-packages" + os.sep not in file:
            return False
        if file not in self.judged:
            self.judged[file] = needed_at_import(file, self.roots)
            if self.judged[file]:
                sys.stderr.write("cohabit: %s:%d needs %s at import: not deferred\n" % (file, self.judged[file][0], root))
        return not self.judged[file] and self.is_there(root)

    def is_there(self, root):
        if root not in self.found:
            self.found[root] = importlib.util.find_spec(root) is not None
        return self.found[root]


def defer(roots):
    if roots:
        _Deferrer(roots).install()


if __name__ == "__main__" and sys.argv[1:2] == ["--check"]:
    for _file in sys.argv[3:]:
        for _root_name in sys.argv[2].split(","):
            for _line in needed_at_import(_file, {_root_name}):
                print("%s %s:%d" % (_root_name, _file, _line))
