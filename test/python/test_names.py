# RUN: %python %s
"""What the package's files say of each other is there: each name that a file takes
from another (`from ._x import name`, `x.name`) is a name of that file. Read from the
text, so that files whose own imports (torch, transformers, engines) are not installed
here are checked too."""

import ast
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "kvbuf"
USERS = [*PACKAGE.glob("*.py"), *(ROOT / "integrations").rglob("*.py"),
         *(ROOT / "benchmark").glob("*.py"), *(ROOT / "test").rglob("*.py")]


def defined(tree):
    """Names of a module: of all its statements outside of functions and classes."""
    names, todo = {"__name__", "__file__", "__doc__", "__all__"}, list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)
                      and isinstance(n.ctx, ast.Store)}
            # Under `if`, `try` and `with`; a function that says `global` too.
            todo += [n for n in ast.iter_child_nodes(node)
                     if isinstance(n, (ast.stmt, ast.ExceptHandler))]
    return names | {n for node in ast.walk(tree) if isinstance(node, ast.Global)
                    for n in node.names}


def module_of(node, file, package):
    """Of `from X import ...`: X's file in the package, the package, or None."""
    if node.level == 1 and file.parent == package:
        name = node.module or ""
    elif node.level == 0 and (node.module or "").split(".")[0] == "kvbuf":
        name = node.module.removeprefix("kvbuf").removeprefix(".")
    else:
        return None
    return name or "__init__"


def missing(users, package):
    """["file:line: what", ...] of names that are not there."""
    modules = {f.stem: defined(ast.parse(f.read_text()))
               for f in package.glob("*.py")}
    # What __init__ fetches when it is asked (module __getattr__).
    lazy = {w for n in ast.walk(ast.parse(
        (package / "__init__.py").read_text()))
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
        for w in [n.value]}
    modules["__init__"] = modules["__init__"] | set(modules) | lazy
    found = []
    for file in users:
        tree, aliases = ast.parse(file.read_text()), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                name = module_of(node, file, package)
                if name not in modules:
                    continue
                for a in node.names:
                    if name == "__init__" and a.name in modules:
                        aliases[a.asname or a.name] = a.name
                    elif a.name not in modules[name] and a.name != "*":
                        found.append(f"{file.name}:{node.lineno}: {name}.{a.name}")
            elif isinstance(node, ast.Import):
                aliases |= {a.asname: a.name.removeprefix("kvbuf.")
                            for a in node.names
                            if a.asname and a.name.startswith("kvbuf.")}
        # A name that is something else somewhere in the file says nothing.
        aliases = {a: m for a, m in aliases.items() if m in modules and not any(
            isinstance(n, (ast.Name, ast.arg)) and a == getattr(n, "id", None)
            and isinstance(n.ctx, ast.Store) or isinstance(n, ast.arg)
            and n.arg == a for n in ast.walk(tree))}
        found += [f"{file.name}:{n.lineno}: {aliases[n.value.id]}.{n.attr}"
                  for n in ast.walk(tree) if isinstance(n, ast.Attribute)
                  and isinstance(n.value, ast.Name) and n.value.id in aliases
                  and n.attr not in modules[aliases[n.value.id]]
                  and isinstance(n.ctx, ast.Load)
                  and not n.attr.startswith("__")]
    return found


class Names(unittest.TestCase):
    def test_all(self):
        self.assertEqual(missing(USERS, PACKAGE), [])

    def test_finds(self):
        """Three planted names."""
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "kvbuf"
            package.mkdir()
            (package / "__init__.py").write_text("from ._a import there\n")
            (package / "_a.py").write_text("there = 1\n")
            user = package / "_b.py"
            user.write_text("from . import _a as a\nfrom ._a import gone\n"
                            "import kvbuf._a as b\n"
                            "print(a.there, a.away, b.there, b.lost)\n")
            self.assertEqual(missing([user], package), [
                "_b.py:2: _a.gone", "_b.py:4: _a.away", "_b.py:4: _a.lost"])


if __name__ == "__main__":
    unittest.main()
