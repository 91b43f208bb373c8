# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers that compute attention by code of their own, as bloom does.

Such a model takes any name of AttentionInterface without a word, asks that name for its
mask, and reads it as its own code would have made it: a mask that says less, because
the attention function of that name knows more, gives wrong numbers. So it has to be
known before, and only the code tells."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys

#: By which code goes through the interface.
_INTERFACE = "ALL_ATTENTION_FUNCTIONS"


def _names(part):
    return {x.id for x in ast.walk(part) if isinstance(x, ast.Name)}


class _Code:
    """What the classes of a module are made of."""

    def __init__(self, source):
        self.uses, self.own = {}, set()
        # Where nothing asks for a mask, what the rest does with one is its own matter.
        self.asks = bool(re.search(r"\bcreate_\w*mask\w*\(", source))
        self.none = _INTERFACE not in source
        for part in ast.parse(source).body:
            if isinstance(part, ast.ClassDef):
                self.uses[part.name] = self._made_of(part)
                if "Attention" in part.name and self._computes(part):
                    self.own.add(part.name)
            elif isinstance(part, ast.Assign):  # tables of classes
                for x in part.targets:
                    if isinstance(x, ast.Name):
                        self.uses[x.id] = _names(part)

    @staticmethod
    def _made_of(part):
        """Names of which some are a class's bases and its parts. Other functions
        than __init__ name what they look for among other modules, too."""
        made = [x for x in part.body if isinstance(x, ast.Assign)
                or getattr(x, "name", "") == "__init__"]
        return set().union(*map(_names, part.bases + made))

    def _computes(self, part):
        """Whether a class normalizes scores itself, under a mask that is asked for."""
        called = {x.func.attr for x in ast.walk(part) if isinstance(x, ast.Call)
                  and isinstance(x.func, ast.Attribute)}
        masked = any("mask" in x.arg for f in part.body
                     if isinstance(f, ast.FunctionDef) and f.name == "forward"
                     for x in f.args.args)
        return (_INTERFACE not in _names(part)
                and bool(called & {"softmax", "Softmax",
                                   "scaled_dot_product_attention"})
                and (self.none or (self.asks and masked)))

    def reached(self, name):
        """The classes with attention of their own that a class is made of."""
        seen, todo = set(), [name]
        while todo:
            now = todo.pop()
            if now in self.uses and now not in seen:
                seen.add(now)
                todo += self.uses[now]
        return seen & self.own


@functools.lru_cache(maxsize=None)
def _code(module_name):
    try:
        return _Code(inspect.getsource(sys.modules[module_name]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return None  # Nothing tells.


@functools.lru_cache(maxsize=None)
def of(model_class) -> str:
    """Why AttentionInterface does not reach a model's attention, or ""."""
    for kind in model_class.__mro__:
        code = _code(kind.__module__) if ".modeling_" in kind.__module__ else None
        own = code and code.reached(kind.__name__)
        if own:
            return (f"{model_class.__name__} computes attention by its own code "
                    f"({', '.join(sorted(own))}), not through transformers' "
                    "AttentionInterface")
    return ""
