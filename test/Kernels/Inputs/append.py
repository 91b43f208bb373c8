"""Writes a kvbuffer.cache_append problem: append.py [kind=paged] [type=bf16] ...

Options: kind, type (of the cache's elements), page_size, heads, head_size, ragged,
values, at, rope (columns of the tables), rope_at (their rows by a tensor), interleaved,
granularity, new (type of the new tokens), cache_depth, head_dim_offset, v_head_size (V's, if it is another one).
"""

import sys

o = dict(kind="paged", type="bf16", page_size=16, heads=4, head_size=64, ragged=True,
         values=True, at=False, rope=0, rope_at=False, interleaved=False, granularity="", new="bf16",
         cache_depth=0, head_dim_offset=0, v_head_size=0)
for text in sys.argv[1:]:
    key, value = text.split("=")
    o[key] = {"true": True, "false": False}.get(value, value)

h, d = o["heads"], o["head_size"]


def types(d):
    """Those of new tokens and of their cache, with heads of `d` elements."""
    new = (f"memref<?x{h}x{d}x{o['new']}, strided<[?, ?, 1]>>" if o["ragged"] else
           f"memref<?x?x{h}x{d}x{o['new']}, strided<[?, ?, ?, 1]>>")
    cache = f"!kvbuffer.cache<{o['kind']}, {o['type']}, heads = {h}, head_size = {d}"
    if o["kind"] == "paged":
        cache += f", page_size = {o['page_size']}"
    if o["cache_depth"]:
        cache += (f", cache_depth = {o['cache_depth']}"
                  f", head_dim_offset = {o['head_dim_offset']}")
    if o["granularity"]:
        cache += f", scale = f32, granularity = {o['granularity']}"
    return new, cache + ">"


new, cache = types(d)
v_new, v_cache = types(o["v_head_size"] or d)
angles = f"memref<?x{o['rope']}xf32>"
arguments = [("k", new), ("kc", cache)]
text = f"k(%k : {new}) to(%kc : {cache})"
if o["values"]:
    arguments += [("v", v_new), ("vc", v_cache)]
    text += f" v(%v : {v_new}) to(%vc : {v_cache})"
if o["ragged"]:
    arguments.append(("offsets", "memref<?xi32>"))
    text += " offsets(%offsets : memref<?xi32>)"
if o["at"]:
    arguments.append(("at", "memref<?xi32>"))
    text += " at(%at : memref<?xi32>)"
if o["rope"]:
    arguments += [("cos", angles), ("sin", angles)]
    text += f" rope(%cos, %sin : {angles}, {angles})"
if o["rope_at"]:
    arguments.append(("rope_at", "memref<?xi64>"))
    text += " rope_at(%rope_at : memref<?xi64>)"
if o["interleaved"]:
    text += " {interleaved}"
names = ", ".join(f"%{name}: {type_}" for name, type_ in arguments)
print(f"func.func @append({names}) {{\n  kvbuffer.cache_append {text}\n  return\n}}")
