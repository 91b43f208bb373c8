#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of draft tokens on a GPU, beside decode of one token over the same keys.

    benchmark/trees.py --compile DIR --target=sm_90a    # with a compiler
    benchmark/trees.py --run DIR                        # with a GPU and PyTorch

32 sequences of 8192 cached tokens and 8 to 64 new ones, of which each sees its ancestors
(a bit for each pair, examples/scores/tree-bits.mlir); heads of 128, bf16, dense caches of 8
heads for 32 query heads, and for 8. Contestants take turns: decode of one token, the
tree, and as many tokens under a causal mask. A column says what part of decode's rate
over the same keys each has. Results are checked against float64. Artifacts named
NAME-LABEL.kvbuf in DIR, as of other schedules, are measured beside NAME.

Exit status: 0 all are right; 1 some are not; 2 bad usage.
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
from problem import text  # noqa: E402

BATCH, CACHED, KV_HEADS, SIZE = 32, 8192, 8, 128
#: Query heads, and the numbers of new tokens.
HEADS, TOKENS = (32, 8), (8, 16, 32, 64)
ROUNDS, LAUNCHES = 7, 3
#: Errors are in units of those of a softmax whose weights are rounded to bf16.
LARGEST, MEAN = 2.0, 1.15


def source(heads, tokens, tree):
    """The program of a tree, or of tokens under a causal mask."""
    word = "i64" if tokens > 32 else "i32"
    qo = f"memref<?x{tokens}x{heads}x{SIZE}xbf16, strided<[?, ?, ?, 1]>>"
    kv = f"!kvbuffer.cache<dense, bf16, heads = {KV_HEADS}, head_size = {SIZE}>"
    words = f"memref<?x{tokens}x{word}>"
    call = "kvbuffer.attention q(%q) k(%k) v(%v) out(%o)"
    types = f"{qo}, {kv}, {kv}, {qo}"
    if not tree:
        return (f"func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, %o: {qo}) {{\n  {call} "
                f"{{mask = #kvbuffer.mask<causal = true>}} : {types}\n  return\n}}\n")
    return f"""func.func @f(%q: {qo}, %k: {kv}, %v: {kv},
    %words: {words} {{kvbuffer.name = "words", kvbuffer.shape = ["batch", {tokens}]}},
    %o: {qo}) {{
  {call} : {types}
{text.tree_region(words, word)}  return
}}
"""


def kernels():
    """{file name without .kvbuf: (module, schedule)}."""
    texts = {}
    for heads in HEADS:
        texts[f"decode-{heads}"] = source(heads, 1, False)
        for tokens in TOKENS:
            texts[f"tree-{heads}-{tokens}"] = source(heads, tokens, True)
            texts[f"causal-{heads}-{tokens}"] = source(heads, tokens, False)
    return {name: (text, "") for name, text in texts.items()}


def random_trees(torch, tokens):
    """A word of each token, which sees its ancestors and itself; and its bits."""
    words = torch.zeros(BATCH, tokens, dtype=torch.int64)
    for tree in words:
        for n in range(tokens):
            parent = torch.randint(-1, n, ()).item() if n else -1
            word = (int(tree[parent]) if parent >= 0 else 0) & (2**64 - 1) | 1 << n
            tree[n] = word - 2**64 if word >> 63 else word
    bits = (words[:, :, None] >> torch.arange(tokens) & 1).bool()
    if tokens <= 32:
        words = torch.where(words >> 31 & 1 == 1, words - 2**32, words).int()
    return words.cuda(), bits.cuda()


def is_right(torch, q, k, v, o, bits):
    """Whether two sequences are, of which `bits` says what new tokens see."""
    tokens, group = q.shape[1], q.shape[2] // k.shape[2]
    q, o = q[:2].double(), o[:2].double()
    k, v = (x[:2].double().repeat_interleave(group, 2) for x in (k, v))
    s = torch.einsum("bihd,bjhd->bhij", q, k) / SIZE ** 0.5
    s[..., -tokens:].masked_fill_(~bits[:2, None], float("-inf"))
    weights = torch.exp(s - s.amax(-1, keepdim=True))
    total = weights.sum(-1, keepdim=True)
    exact, usual = (torch.einsum("bhij,bjhd->bihd", w / total, v) for w in (
        weights, weights.to(torch.bfloat16).double()))
    error = (o - exact).abs()
    base = (usual.to(torch.bfloat16).double() - exact).abs()
    return bool(error.max() <= LARGEST * base.max() and
                error.mean() <= MEAN * base.mean())


def contestants(torch, load, folder, heads, tokens):
    """{name: a function that launches}, and {name: whether its result is right}."""
    keys = CACHED + tokens
    q = torch.randn(BATCH, tokens, heads, SIZE, device="cuda").to(torch.bfloat16)
    k, v = (torch.randn(BATCH, keys, KV_HEADS, SIZE, device="cuda").to(torch.bfloat16)
            for _ in range(2))
    o, one = torch.empty_like(q), q[:, :1].contiguous()
    words, bits = random_trees(torch, tokens)
    decode = load(str(folder / f"decode-{heads}.kvbuf"))
    out = torch.empty_like(one)
    runs = {"decode": lambda: decode(q=one, k=k, v=v, o=out)}
    right = {"decode": True}
    for kind in ("tree", "causal"):
        own = {"words": words} if kind == "tree" else {}
        seen = bits if kind == "tree" else torch.ones_like(bits).tril()
        for path in sorted(folder.glob(f"{kind}-{heads}-{tokens}*.kvbuf")):
            kernel = load(str(path))
            runs[path.stem] = lambda f=kernel, more=own: f(q=q, k=k, v=v, o=o, **more)
            o.fill_(float("nan"))
            runs[path.stem]()
            right[path.stem] = is_right(torch, q, k, v, o, seen)
    return runs, right


def run_all(folder):
    import torch
    import kvbuf
    torch.manual_seed(1)
    good = True
    print(f"{'':28}{'right':>8}{'us':>10}{'of decode':>12}")
    for heads in HEADS:
        for tokens in TOKENS:
            runs, right = contestants(torch, kvbuf.load, folder, heads, tokens)
            good &= all(right.values())
            times = {label: [] for label in runs}
            for run in runs.values():
                common.microseconds(torch, run, LAUNCHES)
            for label in common.in_turns(list(runs), ROUNDS):
                times[label] += common.microseconds(torch, runs[label], LAUNCHES)
            median = {label: statistics.median(own) for label, own in times.items()}
            for label, us in median.items():
                print(f"{label:28}{'yes' if right[label] else 'NO':>8}{us:>10.1f}"
                      f"{median['decode'] / us:>12.3f}", flush=True)
            del runs
    return good


def main():
    parser = common.steps_parser(__doc__, target="sm_90a", target_help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", metavar="PATH", default="kvbuf-compile")
    args = parser.parse_args()
    if args.compile:
        sys.exit(1 if common.build(args.compile, kernels(), args.target,
                                   args.kvbuf_compile) else 0)
    if reason := common.why_no_gpu():
        sys.exit(f"trees.py: there is no GPU here: {reason}")
    sys.exit(0 if run_all(args.run) else 1)


if __name__ == "__main__":
    main()
