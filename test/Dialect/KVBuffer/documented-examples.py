# Every example in the dialect's documentation parses. Examples use values that
# they do not define: this gives each its type by its name.
#
# RUN: %python %s %src/include/kvbuffer/Dialect/KVBuffer/IR > %t.mlir
# RUN: kvbuf-opt %t.mlir --split-input-file --verify-roundtrip -o %t.out
# RUN: FileCheck %s --input-file=%t.out

# An op, an attribute and a type, to see that something was parsed at all.
# CHECK-DAG: kvbuffer.attention
# CHECK-DAG: kvbuffer.online_softmax
# CHECK-DAG: #kvbuffer.mask<causal = true, left = 1024>
# CHECK-DAG: !kvbuffer.tile<64x128xbf16, page_size = 16>

import pathlib
import re
import sys

BUFFER = ("#kvbuffer.kv_buffer<{}, bf16, double_buffered, mma_shape = [16, 8, 16], "
          "swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, "
          "depth = 128, stages = 2>")
ALIASES = f"#kbuf = {BUFFER.format('k')}\n#vbuf = {BUFFER.format('v')}\n"

# Names that mean the same in every example.
TYPES = {
    "k": "!kvbuffer.cache<{kind}, bf16, heads = 8, head_size = 128{page}>",
    "q": "memref<?x?x16x128xbf16>",
    "mem": "memref<?x16x?xf32>",
    "kbuf": "!kvbuffer.buffer<#kbuf>",
    "kt": "!kvbuffer.token<#kbuf>",
    "vt": "!kvbuffer.token<#vbuf>",
    "ks": "!kvbuffer.staged<#kbuf>",
    "kring": "!kvbuffer.ring<#kbuf>",
    "word": "i32",
    "box": "!kvbuffer.mailbox",
}
INDEX = {"token", "zero", "encoded", "batch", "head", "start", "lo", "hi", "row", "n", "new", "queries",
         "keys", "key", "slot", "fill", "total", "row", "col", "rows", "cols"}


def fragment(shape, role):
    return f"!kvbuffer.fragment<{shape}, {role}>"


def own_types(op):
    """Types of names that an op's example uses in a meaning of its own."""
    scores, acc = fragment("128x64xf32", "acc"), fragment("128x128xf32", "acc")
    rows = fragment("128x1xf32", "row")
    vector = "vector<2xbf16>"
    few, few_rows = fragment("16x128xf32", "acc"), fragment("16x1xf32", "row")
    state = {f"{name}{i}": type_ for i in ("", "0", "1")
             for name, type_ in (("a", few), ("m", few_rows), ("l", few_rows))}
    parts = {"parts": "memref<?x16x132xf32>", "split": "index", "acc": few}
    return {
        "dram_range": {"k": "memref<bf16>", "base": "index", "n": "i32"},
        "range_load": {"range": "!kvbuffer.range", "offset": "i32"},
        "range_copy": {"range": "!kvbuffer.range", "offset": "i32", "at": "index",
                       "lds": "memref<?xi8, #gpu.address_space<workgroup>>"},
        "lane_copy": {"k": "memref<bf16>", "offset": "index", "at": "index",
                      "lds": "memref<?xi8, #gpu.address_space<workgroup>>"},
        "box_copy": {"k": "memref<bf16>", "base": "index", "stride": "index", "rows": "i32",
                     "asked": "i1", "at": "index",
                     "lds": "memref<?xi8, #gpu.address_space<workgroup>>"},
        "pair_sum": {"l": "f32", "pair": vector},
        "turned_read": {"at": "index", "lds": "memref<?xi8, #gpu.address_space<workgroup>>"},
        "append_tokens": {"first": "index", "end": "index",
                          "k": "!kvbuffer.cache<paged, bf16, heads = 8, "
                               "head_size = 128, page_size = 16>",
                          "new": "memref<?x1x8x128xbf16>"},
        "cache_scale": {"k": "!kvbuffer.cache<paged, f8E4M3FN, heads = 8, "
                             "head_size = 128, page_size = 64, scale = f32, "
                             "granularity = tensor>", "dim": "index"},
        "tile_fragment": {"qtile": "!kvbuffer.tile<256x80xbf16>"},
        "dram_tile": {"m": "memref<?x?xbf16, strided<[?, 1]>>",
                      "numbers": "memref<?xi32>",
                      "x": "memref<?x?x16x512xbf16>"},
        "fragment_load": {"bs": "!kvbuffer.staged<#kvbuffer.kv_buffer<"
                                "64x128xbf16, BK = 64>>"},
        "dram_load": {"tile": "!kvbuffer.tile<64x128xbf16>"},
        "ring_load": {"tile": "!kvbuffer.tile<64x128xbf16>", "next": "index"},
        "ring_put": {"wide": fragment("64x128xbf16", "a")},
        "mailbox_post": {"tile": "index"},
        "item_rows": {"tile": "index"},
        "find_tile": {"offsets": "memref<?xi32>", "rows": "index"},
        "number_tiles": {"offsets": "memref<?xi32>", "rows": "index",
                         "numbers": "memref<?x?xi32>", "block": "index"},
        "mma_start": {"qf": fragment("128x128xbf16", "a")},
        "mma_wait": {"pending": "!kvbuffer.pending<128x64xf32>"},
        "wgmma": {"qd": "i64", "kd": "i64"},
        "cluster_arrive": {"barrier": "!llvm.ptr<3>", "rank": "i32", "first": "i1"},
        "cluster_copy": {"bytes": "i32", "address": "!llvm.ptr<3>", "barrier": "!llvm.ptr<3>", "rank": "i32", "first": "i1"},
        "cluster_store": {"value": "i32", "address": "!llvm.ptr<3>", "barrier": "!llvm.ptr<3>", "rank": "i32"},
        "wgmma_wait": {"s0": "vector<4xf32>", "s1": "vector<4xf32>"},
        "fragment_store": {"o": fragment("128x128xbf16", "acc"),
                           "tile": "!kvbuffer.tile<128x128xbf16>"},
        "row_store": {"lse": rows},
        "fragment_slice": {"p": fragment("128x64xbf16", "a")},
        "mma": {"q": fragment("128x16xbf16", "a"),
                "k": fragment("64x16xbf16", "b"), "zero": scores},
        "fragment_convert": {"o": acc},
        "exchange": {"p": fragment("8x64xbf16", "a, #kvbuffer.mma<mma_sync, acc, "
                                   "shape = [16, 8, 16], warps = [1, 1], swapped = true>")},
        "row_reduce": {"s": fragment("64x64xf32", "acc")},
        "warp_reduce": {"a": fragment("64x128xf32", "acc"),
                        "m": fragment("64x1xf32", "row"),
                        "l": fragment("64x1xf32", "row")},
        "map": {"s": scores},
        "fragment_fit": {"q": fragment("16x128xbf16", "a"), "k_scale": "f32",
                         "k": fragment("32x128xf16", "b"),
                         "zero": fragment("16x32xf32", "acc")},
        "staged_fit": {"qs": "!kvbuffer.staged<<64x128xbf16, BK = 64>>",
                       "k_scale": "f32"},
        "softcap": {"s": scores},
        "fragment_scale": {"s": scores},
        "mask": {"s": scores},
        "online_softmax": {"s": scores, "m": rows, "l": rows},
        "rescale": {"a": acc, "r": rows, "t": acc},
        "softmax_finish": {"a": acc, "m": rows, "l": rows},
        "raise_max": {"s": scores, "m": rows, "few": "i1"},
        "apply_raise": {"raised": "i1", "f": rows, "a": acc, "l": rows},
        "softmax_head": {"s": scores, "m": rows},
        "softmax_tail": {"x": scores, "e": rows, "l": rows},
        "softmax_settle": {"x": scores, "all": scores, "m": rows, "l": rows, "a": scores},
        "carry_excess": {"c": rows, "f": rows, "e": rows},
        "make_cache": {"data": "memref<?x64x8x128xbf16>",
                       "table": "memref<?x?xi32>", "lengths": "memref<?xi32>"},
        "cache.store": {"x": "vector<8xbf16>"},
        "cache.store_scale": {"s": "vector<1xf32>"},
        "arrive_last": {"counters": "memref<?x8xi32>"},
        "after_all": {"counters": "memref<?x3xi32>", "last": "i1"} | {
            n: "index" for n in ("head", "count", "shares")},
        "share_work": {n: "index" for n in ("block", "blocks", "least", "c1")},
        "share_pairs": {n: "index" for n in ("block", "blocks", "least", "c1", "c4")},
        "partial_store": state | parts,
        "partial_load": parts,
        "partial_join": {"parts": "memref<8x?x16x132xf32>"} | {
            n: "index" for n in ("head", "first", "count")},
        "softmax_merge": state,
        "softmax_sink": state | {"sink": "memref<32xf32>"},
        "lane_arrive": {"counters": "memref<?xi32>", "i": "index"},
        "counter_add": {"words": "memref<?xi32, #gpu.address_space<workgroup>>",
                        "i": "index", "last": "i32"},
        "counter_read": {"words": "memref<?xi32, #gpu.address_space<workgroup>>",
                         "i": "index"},
        "any_negative": {"m": rows},
        "lane_any": {"mine": "i1"},
        "barrier_any": {"mine": "i1", "id": "i32"},
        "lane_count": {"mine": "i1"},
        "lane_vote": {"mine": "i1"},
        "lane_mma": {**{n: vector for n in ("a0", "a1", "a2", "a3", "b0", "b1")},
                     "c": "vector<4xf32>"},
    }.get(op, {})


def wrap(example, number):
    """A module in which the example can be parsed."""
    text = example.strip()
    if text.startswith(("func.func", "gpu.module")):
        return text
    if not re.search(r"\bkvbuffer\.\w", re.sub(r"[#!]kvbuffer\.\w+", "", text)):
        # Attributes and types, one a line.
        out = []
        for i, line in enumerate(text.splitlines()):
            name = f"@example_{number}_{i}"
            out.append(f"func.func private {name}({line})" if line.startswith("!")
                       else f"func.func private {name}() attributes {{a = {line}}}")
        return "\n".join(out)
    op = re.search(r"(?<![#!])kvbuffer\.([\w.]+)", text).group(1)
    defined = set()
    for line in text.splitlines():
        if head := re.match(r"\s*(%[\w, %:]+?)\s*=", line):
            defined |= set(re.findall(r"%(\w+)", head.group(1)))
        # A block's arguments, and the number of a team's copy.
        if line.lstrip().startswith(("^", "kvbuffer.team ")):
            defined |= set(re.findall(r"%(\w+)", line))
    cache = re.search(r"<(dense|paged)", text)
    page = re.search(r", page_size = \d+(?=>)", text)
    arguments = []
    for name in dict.fromkeys(re.findall(r"%(\w+)", text)):
        if name in defined:
            continue
        type_ = own_types(op).get(name) or TYPES.get(name)
        if name == "cache":  # of the type that the example writes
            type_ = re.search(r"!kvbuffer\.cache<[^>]*>", text).group(0)
        if name in INDEX and not own_types(op).get(name):
            type_ = "index"
        if not type_:
            sys.exit(f"the example of {op} uses %{name}: give it a type here")
        type_ = type_.format(kind=cache.group(1) if cache else "dense",
                             page=page.group(0) if page else "")
        arguments.append(f"%{name}: {type_}")
    return (f"func.func @example_{number}({', '.join(arguments)}) {{\n"
            f"{text}\nreturn\n}}")


examples, names = [], []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.td")):
    text = path.read_text()
    examples += re.findall(r"```mlir\n(.*?)```", text, re.S)
    names += re.findall(r'KVBuffer_(?:Op<|Attr<"\w+", |Type<"\w+", )"([\w.]+)"', text)
everything = "\n".join(examples)
for name in names:
    if not re.search(rf"kvbuffer\.{re.escape(name)}\b", everything):
        sys.exit(f"kvbuffer.{name} has no example")
chunks = [ALIASES + wrap(example, i) for i, example in enumerate(examples)]
print("\n// -----\n".join(chunks))
