#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One captured graph serves batches of any lengths: checked against float64.

    benchmark/verify_graph.py --compile DIR --target=sm_90a    # with a compiler
    benchmark/verify_graph.py --run DIR                        # GPU and PyTorch

A launch of attention over a paged or continuous cache is captured once. Then lengths,
offsets of queries, tables, queries and the caches change in place, and the graph is
replayed: no host knows how long sequences are. What no sequence uses holds NaN, and
entries of tables past a sequence's end ids that no cache has. Each row's error may be
twice that of the same mathematics with weights and O rounded to bfloat16, and a
rounding of the result.

Exit status: 0 all passed; 1 some did not; 2 bad usage.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import common  # noqa: E402
from problem import problem  # noqa: E402

HEADS, KV_HEADS, SIZE, ROOM, BATCH = 8, 2, 128, 4096, 9
#: Name: page (0: a continuous cache) and query rows (0: ragged).
CASES = {"pages of 16": (16, 1), "pages of 64": (64, 1), "pages of 3": (3, 1),
         "pages of 1": (1, 2), "continuous": (0, 1), "pages of 16, ragged": (16, 0),
         "pages of 64, ragged": (64, 0)}
#: Tokens that sequences have in each replay, the new ones among them.
LENGTHS = [
    [1, 4096, 17, 300, 2048, 129, 64, 1000, 33],
    [4096] * 9,
    [1] * 9,
    [3000, 2, 2, 2, 2, 2, 2, 2, 4000],
    [128, 127, 129, 1, 255, 256, 257, 1024, 1025],
]
#: Query rows of ragged batches, of 40 in all.
ROWS = [[1] * 8 + [32], [8, 0, 0, 1, 1, 2, 3, 5, 20], [1] * 9, [0] * 8 + [40],
        [4, 4, 4, 1, 4, 4, 4, 4, 8]]


def build(folder, target, compiler):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (page, rows) in CASES.items():
        options = {"cache": "paged", "page_size": page} if page else {
            "cache": "continuous"}
        subprocess.run(
            [compiler, "-", f"--target={target}", "-o",
             str(folder / f"{name.replace(' ', '-').replace(',', '')}.kvbuf")],
            input=problem(heads=HEADS, kv_heads=KV_HEADS, head_size=SIZE,
                          causal=True, lengths="all", seq_q=rows,
                          query="dense" if rows else "ragged", **options),
            text=True, check=True)


class Batch:
    """Tensors of a case, whose contents change."""

    def __init__(self, torch, page, rows):
        self.torch, self.page, self.rows = torch, page, rows
        size = page or ROOM
        self.pages = -(-ROOM // size)
        self.blocks = BATCH * self.pages + 3

        def make(*shape, dtype=torch.bfloat16):
            return torch.zeros(shape, dtype=dtype, device="cuda")
        shape = (BATCH, rows) if rows else (40,)
        self.q, self.out = make(*shape, HEADS, SIZE), make(*shape, HEADS, SIZE)
        self.k, self.v = (make(self.blocks, size, KV_HEADS, SIZE) for _ in "kv")
        self.table = make(BATCH, self.pages, dtype=torch.int32)
        if not page:
            self.table = self.table[:, 0]
        self.lengths = make(BATCH, dtype=torch.int32)
        self.offsets = make(BATCH + 1, dtype=torch.int32)

    def given(self):
        given = dict(q=self.q, k=self.k, v=self.v, out=self.out, k_table=self.table,
                     v_table=self.table, k_lengths=self.lengths,
                     v_lengths=self.lengths)
        if not self.rows:
            given |= {"q_offsets": self.offsets, "seq_q": 40}
        return given

    def change(self, number):
        torch = self.torch
        self.counts = ROWS[number] if not self.rows else [self.rows] * BATCH
        self.tokens = [max(n, c) for n, c in zip(LENGTHS[number], self.counts)]
        for tensor in self.k, self.v, self.out:
            tensor.fill_(float("nan"))
        self.q.normal_()
        size, places = self.page or ROOM, torch.randperm(self.blocks).tolist()
        table = torch.full((BATCH, self.pages), 1 << 30, dtype=torch.int32)
        self.own = []
        for b, count in enumerate(self.tokens):
            own = [torch.randn(count, KV_HEADS, SIZE, device="cuda").bfloat16()
                   for _ in "kv"]
            self.own.append(own)
            for p in range(-(-count // size)):
                table[b, p] = place = places.pop()
                for cache, rows in zip((self.k, self.v), own):
                    part = rows[p * size:(p + 1) * size]
                    cache[place, :len(part)] = part
        self.table.copy_(table if self.page else table[:, 0])
        self.lengths.copy_(torch.tensor(self.tokens, dtype=torch.int32))
        ends = torch.tensor([0, *self.counts]).cumsum(0)
        self.offsets.copy_(ends.to(torch.int32))
        torch.cuda.synchronize()

    def wrong(self):
        """What is wrong with O, if anything is."""
        torch, at = self.torch, 0
        group = HEADS // KV_HEADS
        for b, (count, tokens) in enumerate(zip(self.counts, self.tokens)):
            rows = slice(at, at + count)
            at += count
            q, out = ((x[b] if self.rows else x[rows]).double()
                      for x in (self.q, self.out))
            k, v = (x.double().repeat_interleave(group, 1) for x in self.own[b])
            s = torch.einsum("ihd,jhd->hij", q, k) / SIZE ** 0.5
            i = torch.arange(count, device="cuda")[:, None] + tokens - count
            s.masked_fill_(torch.arange(tokens, device="cuda") > i, -torch.inf)
            p = (s - s.max(-1, keepdim=True)[0]).exp() if count else s
            total = p.sum(-1, keepdim=True)
            exact, base = (torch.einsum("hij,jhd->ihd", w / total, v) for w in
                           (p, p.bfloat16().double()))
            base = base.bfloat16().double()
            ulp = 2.0 ** (torch.frexp(exact)[1] - 8)
            error, usual = (out - exact).abs(), (base - exact).abs()
            if count and not ((error - ulp).max() <= 2 * usual.max()):
                return (f"sequence {b} of {count} rows and {tokens} keys: error "
                        f"{error.max():.3g}, usual {usual.max():.3g}")
        if not self.rows and at < 40 and not self.out[at:].isnan().all():
            return "rows of no sequence have changed"
        return ""


def run(folder):
    import torch
    import kvbuf
    failed = 0
    for name, (page, rows) in CASES.items():
        path = folder / f"{name.replace(' ', '-').replace(',', '')}.kvbuf"
        artifact, batch = kvbuf.load(str(path)), Batch(torch, page, rows)
        given = batch.given()
        batch.change(0)
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            artifact(**given)
            stream.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                artifact(**given)
        for number in [*range(len(LENGTHS)), 0, 3]:
            batch.change(number)
            graph.replay()
            torch.cuda.synchronize()
            said = batch.wrong()
            failed += bool(said)
            print(f"{name:22} lengths {number}  {'FAILED ' + said if said else 'pass'}",
                  flush=True)
    print("all passed" if not failed else f"{failed} failed")
    return 1 if failed else 0


def main():
    parser = common.steps_parser(__doc__, target="sm_90", target_help="chip [sm_90]")
    built = pathlib.Path(__file__).resolve().parent.parent / "build/bin/kvbuf-compile"
    parser.add_argument("--kvbuf-compile", metavar="PATH",
                        default=str(built) if built.exists() else "kvbuf-compile")
    args = parser.parse_args()
    if args.compile:
        build(args.compile, args.target, args.kvbuf_compile)
        return 0
    return run(args.run)


if __name__ == "__main__":
    sys.exit(main())
