# Which kernel a launch takes where types leave rows open, against a model of time.
# RUN: %python %s sm_90a paged 4 0
# RUN: %python %s sm_90a dense 1 0
"""Walks the kernels of an artifact over a grid of rows, keys and batches.

    launch-choice.py CHIP CACHE GROUP CAUSAL

Nothing runs: the conditions of the manifest say what would. The model is a roofline of
the chip's peaks. A tile of a kernel of many rows is one block's, which has a
multiprocessor's share of the products, and of the bandwidth as much as a few of them
draw; tiles take turns on the multiprocessors. Kernels that split keys give all
multiprocessors the same. Blocks of a cluster that share no heads come in pairs, whose
second one may have no rows. A kernel of few rows is a candidate for the rows that its
tiles hold; what a launch takes may be slower than the fastest candidate by a tenth.
"""

import itertools
import re
import sys

import kvbuf
from kvbuf._compiled import _evaluate as evaluate

CHIP, CACHE, GROUP, CAUSAL = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
HEADS, SIZE, PAGE, SMS = 8, 128, 16, 132
#: Multiprocessors' shares of the bandwidth that one of them can draw.
DRAWS = 2


def compile():
    page = f", page_size = {PAGE}" if CACHE == "paged" else ""
    kv = f"!kvbuffer.cache<{CACHE}, bf16, heads = {HEADS // GROUP}, head_size = {SIZE}{page}>"
    q = f"memref<?x?x{HEADS}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>"
    mask = "mask = #kvbuffer.mask<causal = true>" if CAUSAL else ""
    return kvbuf.compile(f"""func.func @f(%q: {q}, %k: {kv}, %v: {kv}, %o: {q}) {{
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {{{mask}}} : {q}, {kv}, {kv}, {q}
      return }}""", target=CHIP, machine_code=False).manifest


MANIFEST = compile()
KERNELS = {k["entry"]: k for k in MANIFEST["kernels"]}
PEAK = MANIFEST["target"]["peaks"][0]
FLOPS, BYTES = PEAK["matrix_flops"], PEAK["memory_bytes"]


def field(kernel, name):
    return int(re.search(rf"\b{name} = (\d+)", kernel["schedule"])[1])


def is_split(kernel):
    return "split_keys" in kernel["schedule"]


def chosen(sizes):
    kernel = MANIFEST["kernels"][0]
    while "launch_if" in kernel and evaluate(kernel["launch_if"], sizes) <= 0:
        kernel = KERNELS[kernel["instead"]]
    return kernel


def takes(kernel, rows):
    """Whether the model knows the kernel: any number of rows, or those of a tile."""
    return not is_split(kernel) or rows * GROUP <= max(field(kernel, "BM"), 8 * GROUP)


def seconds(kernel, rows, keys, batch):
    # Of a tensor's rows that a kernel of few rows packs, several heads' are one tile.
    seen = max(keys - (rows - 1) / 2 * CAUSAL, 0)
    tile = field(kernel, "BM")
    flops, moved = 4 * tile * SIZE * seen, 4 * SIZE * seen
    if is_split(kernel):
        tiles = batch * HEADS // GROUP * -(-rows * GROUP // tile)
        return max(tiles * flops / FLOPS,
                   batch * HEADS // GROUP * moved / BYTES)
    pair = kernel.get("cluster", [1])[0] if GROUP == 1 else 1
    tiles = batch * HEADS * -(-rows // (tile * pair)) * pair
    turns = -(-tiles // SMS)
    return max(turns * flops / (FLOPS / SMS),
               turns * moved / GROUP / (BYTES / SMS * DRAWS),
               batch * HEADS // GROUP * moved / BYTES)


def main():
    taken, wrong = set(), 0
    own = [k for k in KERNELS.values() if not k["entry"].endswith(
        ("_unaligned", "_without_maps"))]
    for rows, keys, batch in itertools.product(
            (1, 2, 4, 5, 8, 9, 16, 64, 128, 200, 256, 1000, 4096),
            (1, 100, 1000, 4200, 8192, 40000, 131072, 300000), (1, 2, 16, 64, 256)):
        if CAUSAL and keys < rows:
            continue
        sizes = {"seq_q": rows, "seq_k": keys, "batch": batch, "sms": SMS,
                 "pages_per_seq": -(-keys // PAGE)}
        kernel = chosen(sizes)
        taken.add(kernel["entry"])
        candidates = [k for k in own if takes(k, rows)]
        fastest = min(candidates, key=lambda k: seconds(k, rows, keys, batch))
        ours, least = (seconds(k, rows, keys, batch) for k in (kernel, fastest))
        if kernel not in candidates or ours > 1.1 * least:
            wrong += 1
            print(f"{rows} rows, {keys} keys, batch {batch}: takes "
                  f"{kernel['entry']}, {ours * 1e6:.1f} us by the model; "
                  f"{fastest['entry']} has {least * 1e6:.1f} us")
    # The grid reaches all of them.
    for kernel in own:
        if kernel["entry"] not in taken:
            wrong += 1
            print(f"{kernel['entry']} is never taken")
    print(", ".join(sorted(taken)))
    return int(wrong > 0)


sys.exit(main())
