# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one place that writes problems as modules in MLIR: for the package, and for
benchmark/problem.py, which loads this file alone."""

from __future__ import annotations


def rows_type(rows, heads, size, element):
    """Rows of heads with strides of their own: ``rows`` are the dimensions before
    the heads, "?" or "?x1"."""
    free = "?, " * (rows.count("x") + 2)
    return f"memref<{rows}x{heads}x{size}x{element}, strided<[{free}1]>>"


def cache_type(kind, element, heads, size, page_size=0, granularity="", **row):
    """A cache. ``granularity``: what a scale of its elements is of, "" for none;
    ``row``: where the operand lies in its rows, if they hold more."""
    parts = {"heads": heads, "head_size": size}
    if page_size:
        parts["page_size"] = page_size
    parts |= {name: value for name, value in row.items() if value}
    if granularity:
        parts |= {"scale": "f32", "granularity": granularity}
    text = ", ".join(f"{name} = {value}" for name, value in parts.items())
    return f"!kvbuffer.cache<{kind}, {element}, {text}>"


def attributes(*, causal=False, window_left=-1, window_right=-1, scale=None,
               softcap=0.0, block_mask="", batch_invariant=False, lengths="",
               schedule=""):
    """What an attention says besides its operands."""
    mask = ["causal = true"] * causal
    mask += [f"{side} = {window}" for side, window in (("left", window_left),
                                                       ("right", window_right))
             if window >= 0]
    texts = [f"mask = #kvbuffer.mask<{', '.join(mask)}>"] * bool(mask)
    if scale is not None:
        texts.append(f"scale = {scale:.9e} : f32")
    if softcap:
        texts.append(f"softcap = {softcap:.9e} : f32")
    if block_mask:
        texts.append(f"block_mask = #kvbuffer.block_mask<{block_mask}>")
    if batch_invariant:
        texts.append("batch_invariant")
    if lengths:
        texts.append(f'kvbuffer.lengths = "{lengths}"')
    if schedule:
        texts.append(f"schedule = #kvbuffer.schedule<{schedule}>")
    return ", ".join(texts)


def tree_region(words, word):
    """Captures and visibility of draft tokens, each of which sees the cached keys and
    the tokens that are bits of a word: %words is of type ``words`` [batch, tokens], of
    elements ``word``."""
    return f"""    captures(%words : {words})
    visible {{
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %words_: {words}):
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : {word}
      %first = arith.subi %position, %row : index
      %token = arith.subi %key, %first : index
      %before = arith.cmpi slt, %token, %c0 : index
      %at = arith.maxsi %token, %c0 : index
      %by = arith.index_cast %at : index to {word}
      %word = memref.load %words_[%batch, %row] : {words}
      %shifted = arith.shrui %word, %by : {word}
      %low = arith.andi %shifted, %one : {word}
      %marked = arith.cmpi eq, %low, %one : {word}
      %seen = arith.ori %before, %marked : i1
      kvbuffer.yield %seen : i1
    }}
"""


def append_op(parts, angles="", interleaved=False, turns=""):
    """New tokens into caches. ``parts``: "k" or "v" with the names and types of
    the tokens and of the cache; ``angles``: the type of %cos and %sin; ``turns``: that
    of %rope_at, "" without."""
    text = [f"{part}(%{new} : {type}) to(%{cache} : {cache_type_})"
            for part, (new, type, cache, cache_type_) in parts.items()]
    if angles:
        text.append(f"rope(%cos, %sin : {angles}, {angles})")
    if turns:
        text.append(f"rope_at(%rope_at : {turns})")
    if angles and interleaved:
        text.append("{interleaved}")
    return f"  kvbuffer.cache_append {' '.join(text)}\n"


def function(name, arguments, body):
    """A function of these arguments, (name, type, attributes)."""
    text = ", ".join(f"%{name}: {type}" + (f" {{{said}}}" if said else "")
                     for name, type, said in arguments)
    return f"func.func @{name}({text}) {{\n{body}  return\n}}\n"


def attention_module(name, *, query, out, caches, said, ragged=False, index="i32",
                     wide=False, lse="", sink=False, latent=False, before=None,
                     captures=(), regions=""):
    """The module of an attention.

    ``query``, ``out`` and ``caches`` ("k", "v") are types, ``said`` is the text of
    its attributes, ``index`` the type of offsets; ``wide``: whether the caches'
    own indices are said to be of it. ``lse`` is a type, "" for none. ``before``
    makes of the types of operands what comes before the attention and the
    arguments that it needs, ``captures`` are arguments (name, type, attributes)
    and ``regions`` is the text after the types. In a ``latent`` problem V is the
    beginning of K's rows, and no argument."""
    if latent:
        caches = {"k": caches["k"], "v": caches["k"]}
    alike = caches["k"] == caches["v"]
    aliases = {"!q": query}
    aliases |= {"!kv": caches["k"]} if alike else {"!k": caches["k"],
                                                   "!v": caches["v"]}
    if out != query:
        aliases["!o"] = out
    operands = {"q": "!q", "k": "!kv" if alike else "!k",
                "v": "!kv" if alike else "!v", "out": "!q" if out == query else "!o"}
    if ragged:
        operands["offsets"] = f"memref<?x{index}>"
    if lse:
        operands["lse"] = lse
    if sink:
        operands["sink"] = "memref<?xf32>"
    text, more = before(operands) if before else ("", [])
    own = f"kvbuffer.index = {index}" if wide else ""
    arguments = [(n, t, own if n in ("k", "v") else "") for n, t in operands.items()
                 if n != "v" or not latent]
    arguments += [*more, *captures]
    uses = " ".join(f"{n}(%{'k' if n == 'v' and latent else n})" for n in operands)
    types = ", ".join(t if n in ("q", "k", "v", "out") else f"{n} {t}"
                      for n, t in operands.items())
    body = (f"{text}  kvbuffer.attention {uses} {{{said}}}\n"
            f"    : {types}{regions}\n")
    return ("".join(f"{alias} = {type}\n" for alias, type in aliases.items())
            + "\n" + function(name, arguments, body))
