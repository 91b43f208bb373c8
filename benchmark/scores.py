#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of scores and visibility on a GPU, beside plain kernels of as many tiles.

    benchmark/scores.py --compile DIR --target=sm_90a    # with a compiler
    benchmark/scores.py --run DIR                        # with a GPU and PyTorch

Each function is checked against float64 (2 sequences of 300 rows on 700 keys, and on 704,
where rows of tensors begin at multiples of 16 bytes), and timed
in turns with the plain kernel that visits the same tiles of keys: 4 sequences of 4096
rows, and one of 16384, 16 heads, bf16. A column says what part of the plain kernel's rate
a function has. `blocks10` to `blocks50` visit the blocks of keys that lists name, so many
percent of all, an eighth of them partly visible: of the plain kernel's rate for that part.

Exit status: 0 all are right; 1 some are not; 2 bad usage.
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402

SIZES = 64, 128, 256
HEADS, CAP, LEFT = 16, 30.0, 1000
ROUNDS, LAUNCHES = 9, 10
#: Of the problems that are checked.
KEYS = 700, 704
#: Errors are in units of those of a softmax whose weights are rounded to bf16.
LARGEST, MEAN = 2.0, 1.15

DISTANCE = "      %distance = arith.subi %key, %position : index\n"
ADD = "      %t = arith.addf %s, %b : f32"

#: Lists of blocks of keys, and the region that hides keys of the partly visible ones: all
#: but a triangle.
BLOCK = 128
LISTS = tuple((name, f"memref<{'?x' * rank}i32>", None) for name, rank in (
    ("kv_num_blocks", 3), ("kv_indices", 4), ("full_kv_num_blocks", 3),
    ("full_kv_indices", 4)))
TRIANGLE = LISTS, False, f"""\
      %block = arith.constant {BLOCK} : index
      %i = arith.remui %row, %block : index
      %j = arith.remui %key, %block : index
      %t = arith.cmpi ule, %j, %i : index""", ""

#: What each function captures (name, type, shape), whether it makes scores, its body, and
#: the mask beside it.
FUNCTIONS = {
    "alibi": ((("captured", f"memref<{HEADS}xf32>", f"[{HEADS}]"),), True, f"""\
      %slope = memref.load %captured_[%head] : memref<{HEADS}xf32>
{DISTANCE}      %n = arith.index_cast %distance : index to i32
      %far = arith.sitofp %n : i32 to f32
      %b = arith.mulf %far, %slope : f32
{ADD}""", "causal = true"),
    "relative": ((("captured", f"memref<{HEADS}x31xf32>", f"[{HEADS}, 31]"),), True, f"""\
      %c15 = arith.constant 15 : index
      %cm15 = arith.constant -15 : index
{DISTANCE}      %least = arith.maxsi %distance, %cm15 : index
      %most = arith.minsi %least, %c15 : index
      %bucket = arith.addi %most, %c15 : index
      %b = memref.load %captured_[%head, %bucket] : memref<{HEADS}x31xf32>
{ADD}""", ""),
    "bias": ((("captured", f"memref<{HEADS}x?x?xbf16>", f'[{HEADS}, "seq_q", "seq_k"]'),), True,
             f"""\
      %narrow = memref.load %captured_[%head, %row, %key] : memref<{HEADS}x?x?xbf16>
      %b = arith.extf %narrow : bf16 to f32
{ADD}""", ""),
    "wide": ((("captured", f"memref<{HEADS}x?x?xf32>", f'[{HEADS}, "seq_q", "seq_k"]'),), True,
             f"""\
      %b = memref.load %captured_[%head, %row, %key] : memref<{HEADS}x?x?xf32>
{ADD}""", ""),
    "softcap": ((), True, f"""\
      %cap = arith.constant {CAP} : f32
      %x = arith.divf %s, %cap : f32
      %y = math.tanh %x : f32
      %t = arith.mulf %y, %cap : f32""", "causal = true"),
    "documents": ((("captured", "memref<?x?xi32>", '["batch", "seq_k"]'),), False, """\
      %c0 = arith.constant 0 : index
      %at = arith.maxsi %position, %c0 : index
      %own = memref.load %captured_[%batch, %at] : memref<?x?xi32>
      %other = memref.load %captured_[%batch, %key] : memref<?x?xi32>
      %t = arith.cmpi eq, %own, %other : i32""", "causal = true"),
    "prefix": ((("captured", "memref<?xi32>", '["batch"]'),), False, """\
      %prefix = memref.load %captured_[%batch] : memref<?xi32>
      %end = arith.index_cast %prefix : i32 to index
      %first = arith.cmpi slt, %key, %end : index
      %before = arith.cmpi sle, %key, %position : index
      %t = arith.ori %first, %before : i1""", ""),
    "window": ((), False, f"""\
      %left = arith.constant {LEFT} : index
      %distance = arith.subi %position, %key : index
      %near = arith.cmpi sle, %distance, %left : index
      %before = arith.cmpi sle, %key, %position : index
      %t = arith.andi %near, %before : i1""", ""),
    "blocks10": TRIANGLE, "blocks25": TRIANGLE, "blocks50": TRIANGLE,
}
#: The part of the blocks that functions with lists visit.
VISIBLE = {"blocks10": 0.1, "blocks25": 0.25, "blocks50": 0.5}
#: Plain kernels by the mask.
PLAIN = {"": "plain", "causal = true": "plain-causal",
         f"causal = true, left = {LEFT}": "plain-window"}


def plain_of(name):
    """The plain kernel that visits the same tiles."""
    return PLAIN[f"causal = true, left = {LEFT}" if name == "window"
                 else FUNCTIONS[name][3]]


def source(size, mask, function=None):
    """The program of a function, or of none."""
    capture, scores, body = (), False, ""
    if function:
        capture, scores, body, mask = FUNCTIONS[function]
    qo = f"memref<?x?x{HEADS}x{size}xbf16, strided<[?, ?, ?, 1]>>"
    kv = f"!kvbuffer.cache<dense, bf16, heads = {HEADS}, head_size = {size}>"
    argument = captured = inner = region = ""
    for name, kind, shape in capture:
        sizes = f", kvbuffer.shape = {shape}" if shape else ""
        argument += f'%{name}: {kind} {{kvbuffer.name = "{name}"{sizes}}}, '
        inner += f", %{name}_: {kind}"
    if capture:
        captured = (f"    captures({', '.join(f'%{name}' for name, _, _ in capture)} : "
                    f"{', '.join(kind for _, kind, _ in capture)})\n")
    if function:
        first = "%s: f32, " if scores else ""
        region = (f"    {'score' if scores else 'visible'} {{\n    ^bb0({first}%batch: "
                  "index, %head: index, %row: index, %position: index, %key: index"
                  f"{inner}):\n{body}\n      kvbuffer.yield %t : "
                  f"{'f32' if scores else 'i1'}\n    }}\n")
    attributes = [f"mask = #kvbuffer.mask<{mask}>"] if mask else []
    if capture == LISTS:
        attributes.append(f"block_mask = #kvbuffer.block_mask<rows = {BLOCK}, keys = "
                          f"{BLOCK}, lists = [0, 1, 2, 3]>")
    attributes = f" {{{', '.join(attributes)}}}" if attributes else ""
    return (f"func.func @f(%q: {qo}, %k: {kv}, %v: {kv}, {argument}%o: {qo}) {{\n"
            f"  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){attributes} : "
            f"{qo}, {kv}, {kv}, {qo}\n{captured}{region}  return\n}}\n")


def kernels(sizes=SIZES):
    """{file name without .kvbuf: (module, schedule)}."""
    texts = {f"{name}{size}": source(size, mask)
             for size in sizes for mask, name in PLAIN.items()}
    texts |= {f"{name}{size}": source(size, "", name)
              for size in sizes for name in FUNCTIONS}
    return {name: (text, "") for name, text in texts.items()}


def lists(torch, part, queries, keys):
    """Lists that show a part of the blocks, chosen by chance; and all that is seen."""
    tall, wide = -(-queries // BLOCK), -(-keys // BLOCK)
    count = max(1, round(part * wide))
    partly = -(-count // 8)
    order = torch.rand(tall, wide, device="cuda").argsort()[None, None].int()
    numbers = [torch.full((1, 1, tall), n, device="cuda", dtype=torch.int32)
               for n in (partly, count - partly)]
    which = [order[..., :partly].sort().values, order[..., partly:count].sort().values]
    which = [torch.nn.functional.pad(x, (0, wide - x.shape[-1])).contiguous()
             for x in which]
    seen = torch.zeros(tall * BLOCK, wide * BLOCK, device="cuda", dtype=torch.bool)
    if queries <= 1024:
        triangle = torch.ones(BLOCK, BLOCK, device="cuda", dtype=torch.bool).tril()
        tiles = seen.view(tall, BLOCK, wide, BLOCK)
        for row in range(tall):
            for n, column in enumerate(order[0, 0, row, :count].tolist()):
                tiles[row, :, column] = triangle if n < partly else True
    tensors = dict(zip((name for name, _, _ in LISTS),
                       (numbers[0], which[0], numbers[1], which[1])))
    return tensors, seen[:queries, :keys]


def captures(torch, name, batch, queries, keys):
    """The tensor that a function captures; of lists all, and what is seen."""
    if name in VISIBLE:
        return lists(torch, VISIBLE[name], queries, keys)
    if name == "alibi":
        return torch.rand(HEADS, device="cuda") / 8
    if name == "relative":
        return torch.randn(HEADS, 31, device="cuda")
    if name == "bias":
        return torch.randn(HEADS, queries, keys, device="cuda").to(torch.bfloat16)
    if name == "wide":
        return torch.randn(HEADS, queries, keys, device="cuda")
    if name == "documents":
        return torch.randint(0, 8, (batch, keys), device="cuda").sort().values.int()
    if name == "prefix":
        return torch.randint(0, keys, (batch,), device="cuda").int()
    return None


def expected(torch, name, tensor, q, k, v):
    """The exact result, and what weights rounded to bf16 give."""
    queries, keys = q.shape[1], k.shape[1]
    i = torch.arange(queries, device="cuda")[:, None] + keys - queries
    j = torch.arange(keys, device="cuda")[None]
    s = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / q.shape[-1] ** 0.5
    seen = torch.ones_like(s, dtype=torch.bool)
    if name == "alibi":
        s = s + tensor.double()[:, None, None] * (j - i)
    elif name == "relative":
        s = s + tensor.double()[:, (j - i).clamp(-15, 15) + 15]
    elif name in ("bias", "wide"):
        s = s + tensor.double()
    elif name == "softcap":
        s = CAP * torch.tanh(s / CAP)
    elif name == "documents":
        seen = seen & (tensor[:, i[:, 0]][:, :, None] == tensor[:, None, :])[:, None]
    elif name == "prefix":
        seen = seen & ((j < tensor[:, None, None]) | (j <= i))[:, None]
    elif name == "window":
        seen = seen & (j <= i) & (i - j <= LEFT)
    elif name in VISIBLE:
        seen = seen & tensor[1]
    if FUNCTIONS[name][3]:
        seen = seen & (j <= i)
    s = s.masked_fill(~seen, float("-inf"))
    weights = torch.exp(s - s.amax(-1, keepdim=True))
    total = weights.sum(-1, keepdim=True)
    # Rows that see no key are 0.
    weights, total = weights.nan_to_num(), total.nan_to_num().clamp(min=1e-300)

    def times_values(w):
        return torch.einsum("bhij,bjhd->bihd", w / total, v.double())
    return times_values(weights), times_values(weights.to(torch.bfloat16).double()).to(
        torch.bfloat16).double()


def inputs(torch, batch, queries, keys, size):
    return [torch.randn(batch, n, HEADS, size, device="cuda").to(torch.bfloat16)
            for n in (queries, keys, keys)]


def given(tensor):
    """What a launch is given of what `captures` returns."""
    if isinstance(tensor, tuple):
        return tensor[0]
    return {} if tensor is None else {"captured": tensor}


def check(torch, kernel, name, size, keys):
    q, k, v = inputs(torch, 2, 300, keys, size)
    tensor = captures(torch, name, 2, 300, keys)
    o = torch.full_like(q, float("nan"))
    kernel(q=q, k=k, v=v, o=o, **given(tensor))
    exact, usual = expected(torch, name, tensor, q, k, v)
    error, base = (o.double() - exact).abs(), (usual - exact).abs()
    return bool(error.max() <= LARGEST * base.max() and
                error.mean() <= MEAN * base.mean())


class Work:
    """Tensors of rows on as many keys, what functions capture of them, and functions
    that launch."""

    def __init__(self, torch, batch, rows, size):
        self.torch, self.rows = torch, rows
        self.q, self.k, self.v = inputs(torch, batch, rows, rows, size)
        self.o = torch.empty_like(self.q)
        self.captured = {}

    def runner(self, kernel, name=None):
        """Launches the kernel of a function, or a plain one."""
        more = {}
        if name:
            self.captured[name] = captures(self.torch, name, len(self.q), self.rows,
                                           self.rows)
            more = given(self.captured[name])

        def run():
            kernel(q=self.q, k=self.k, v=self.v, o=self.o, **more)
            return self.o
        return run

    def share(self, name):
        """The part of the plain kernel's tiles that a function visits."""
        blocks = self.rows // BLOCK
        return round(VISIBLE.get(name, 1) * blocks) / blocks

    def flex_arguments(self, name):
        """What flex_attention is called with for a function's mathematics."""
        from torch.nn.attention import flex_attention as flex
        torch, tensor, rows = self.torch, self.captured[name], self.rows
        # Rows stand at keys of their own number: as many rows as keys.
        masks = {
            "documents": lambda b, h, i, j: (tensor[b, i] == tensor[b, j]) & (j <= i),
            "prefix": lambda b, h, i, j: (j < tensor[b]) | (j <= i),
            "window": lambda b, h, i, j: (j <= i) & (i - j <= LEFT)}
        scores = {
            "alibi": lambda s, b, h, i, j: s + tensor[h] * (j - i),
            "relative": lambda s, b, h, i, j:
                s + tensor[h, (j - i).clamp(-15, 15) + 15],
            "bias": lambda s, b, h, i, j: s + tensor[h, i, j],
            "softcap": lambda s, b, h, i, j: CAP * torch.tanh(s / CAP)}
        mask = masks.get(name)
        if not mask and FUNCTIONS[name][3]:
            def mask(b, h, i, j):
                return j <= i
        blocks = mask and flex.create_block_mask(
            mask, len(self.q) if name in ("documents", "prefix") else None, None,
            rows, rows)
        q, k, v = (x.transpose(1, 2) for x in (self.q, self.k, self.v))
        return {"query": q, "key": k, "value": v, "score_mod": scores.get(name),
                "block_mask": blocks}

    def flex(self, name):
        """Calls torch's flex_attention, compiled."""
        from torch.nn.attention import flex_attention as flex
        call = self.torch.compile(flex.flex_attention, dynamic=False)
        arguments = self.flex_arguments(name)
        return lambda: call(**arguments).transpose(1, 2)

    def own_flex(self, name):
        """Calls kvbuf's flex_attention, with the same arguments."""
        import kvbuf.torch
        if name not in self.captured:
            self.captured[name] = captures(self.torch, name, len(self.q), self.rows,
                                           self.rows)
        arguments = self.flex_arguments(name)

        def run():
            return kvbuf.torch.flex_attention(**arguments).transpose(1, 2)
        run()
        if (report := kvbuf.torch.flex_report()) and ", 0 by torch" not in report:
            raise RuntimeError(report)
        return run

    def flash4(self, name):
        """Calls FlashAttention 4 with a function's mathematics."""
        import flash4
        return flash4.runner(self.torch, name, self.captured[name], self.q, self.k, self.v,
                             CAP, LEFT)


def run_all(folder, sizes):
    import torch
    import kvbuf
    torch.manual_seed(1)
    good = True

    def load(name):
        return kvbuf.load(str(folder / f"{name}.kvbuf"))
    print(f"{'':16}{'right':>8}{'4096 x 4':>12}{'of plain':>10}{'16384':>12}"
          f"{'of plain':>10}   (us)")
    for size in sizes:
        for name in FUNCTIONS:
            kernel, plain = load(f"{name}{size}"), load(f"{plain_of(name)}{size}")
            right = all([check(torch, kernel, name, size, keys) for keys in KEYS])
            good &= right
            cells = f"{f'{name} {size}':16}{'yes' if right else 'NO':>8}"
            for batch, rows in ((4, 4096), (1, 16384)):
                work = Work(torch, batch, rows, size)
                contestants = {"own": work.runner(kernel, name),
                               "plain": work.runner(plain)}
                times = {label: [] for label in contestants}
                for run in contestants.values():
                    common.microseconds(torch, run, LAUNCHES)
                for label in common.in_turns(list(contestants), ROUNDS):
                    times[label] += common.microseconds(
                        torch, contestants[label], LAUNCHES)
                own, other = (statistics.median(times[x]) for x in ("own", "plain"))
                other *= work.share(name)
                cells += f"{own:>12.1f}{other / own:>10.3f}"
                del work, contestants
            print(cells, flush=True)
    return good


def main():
    parser = common.steps_parser(__doc__, target="sm_90a", target_help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", metavar="PATH", default="kvbuf-compile")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES,
                        help="head sizes [64 128 256]")
    args = parser.parse_args()
    if args.compile:
        sys.exit(1 if common.build(args.compile, kernels(args.sizes), args.target,
                                   args.kvbuf_compile) else 0)
    if reason := common.why_no_gpu():
        sys.exit(f"scores.py: there is no GPU here: {reason}")
    sys.exit(0 if run_all(args.run, args.sizes) else 1)


if __name__ == "__main__":
    main()
