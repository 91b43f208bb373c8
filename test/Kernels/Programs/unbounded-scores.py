# Scores of any size that a region makes, on the emulator: tiles of keys that were all
# given a very low score, before and after others, rows of nothing else, very high
# scores, hidden ones among them; many rows, and few rows whose keys are split.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t sm_80 bf16 sinks tiles
# RUN: %python %s %t sm_90a f16
# RUN: %python %s %t sm_90a bf16 biases
# RUN: %python %s %t sm_90a bf16 biases doubled sloped
# RUN: %python %s %t sm_90a bf16 biases steep
# RUN: %python %s %t sm_100a bf16
# RUN: %if ld.lld %{ %python %s %t gfx950 bf16 sinks %}
# RUN: %if ld.lld %{ %python %s %t gfx942 f16 %}
"""Runs sequences of such scores against a softmax in float64.

    unbounded-scores.py FOLDER CHIP bf16|f16 [sinks] [tiles] [biases] [doubled] [steep] [sloped]

A result passes by the rule of kvbuf-run: errors in units of those of the same
mathematics with P and O rounded to 16 bits. With `tiles` the interpreter of tiles
runs the same program as well. With `biases` a tensor of rows and keys has what is added,
which products begin with where a team brings tiles of it; the emulator cuts their sums as
an H200 does. Sums that are `doubled`, and a scale above 1 (`steep`), are multiplied by more
than 2 in base 2: none of the lowest scores may leave the range on its way, nor where what is
read has a factor of its head (`sloped`).
"""

import pathlib
import subprocess
import sys

import numpy as np

import kvbuf

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Inputs"))
from numbers16 import attend, from_bf16, to_bf16

CHIP, TYPE, *OPTIONS = sys.argv[2:]
FOLDER = pathlib.Path(sys.argv[1])
RNG = np.random.default_rng()
HEADS, SIZE, KEYS = 4, 64, 200
LOWEST = float(np.finfo(np.float32).min)
LOWEST_BF16 = -3.3895313892515355e38
TIMES = 2 if "doubled" in OPTIONS else 1
SCALE = 1.5 if "steep" in OPTIONS else SIZE**-0.5
# From here on products with log2(e) are not taken any more.
LIMIT = 2**28 / np.log2(np.e)


def added():
    """What is added to the scores of each sequence, [sequences, keys]."""
    def fill(*parts):
        return np.concatenate([np.full(n, value, np.float64) for n, value in parts])

    def pick(values):
        return RNG.choice(values, KEYS)
    near = 16.0 * (np.arange(-3, 4) + LIMIT // 16)
    scattered = np.where(np.arange(KEYS) % 67 == 5, 1e10, 0.0)
    highest = np.where(np.arange(KEYS) % 90 == 5, -LOWEST, 0.0)
    sums = np.array([
        np.zeros(KEYS),
        # Blocks walk from the last key to the first.
        fill((70, 0), (130, -1e10)),
        fill((130, -1e30), (70, 0)),
        fill((64, LOWEST), (64, 0), (72, LOWEST_BF16)),
        fill((64, 0), (64, -np.inf), (72, LOWEST)),
        fill((64, -1e9), (64, -3e9), (72, -1e12)),
        fill((66, -1e30), (134, -np.inf)),
        np.full(KEYS, -1e10), np.full(KEYS, LOWEST), np.full(KEYS, LOWEST_BF16),
        np.full(KEYS, -np.inf), np.full(KEYS, 1e10), np.full(KEYS, 5e8),
        scattered, highest, pick(near), pick(-near),
        np.sort(pick(-near)), np.sort(pick(-near))[::-1],
        pick([0, -1e4, -1e8, -1e9, -1e38, LOWEST, -np.inf]),
        # The next number that there is, behind the tiles that are looked at for maxima:
        # as far above as a maximum may stay behind elsewhere, where products with
        # log2(e) lose as much again.
        *(fill((72, step + 8), (128, step)) for step in 1.2e8 + 8.0 * np.arange(8)),
    ])
    # Twice as much is in the range, too.
    finite = np.isfinite(sums)
    sums[finite] = np.clip(sums[finite], LOWEST / TIMES, -LOWEST / TIMES)
    return sums.astype(np.float32)


def source():
    sink = ", %sink: memref<4xf32>" if "sinks" in OPTIONS else ""
    # A kernel that gives log-sum-exps adds biases behind its products.
    lse = (f", %lse: memref<?x{HEADS}x?xf32>", " lse(%lse)",
           f", lse memref<?x{HEADS}x?xf32>")
    if "biases" in OPTIONS:
        lse = ("",) * 3
    by_row, rows, row = ("x?", ' "seq_q",', " %row,") if "biases" in OPTIONS else ("",) * 3
    more = (" sink(%sink)", ", sink memref<4xf32>") if sink else ("", "")
    slopes, slope = [("", "", "")] * 2
    if "sloped" in OPTIONS:
        slopes = (f', %slopes: memref<{HEADS}xf32> {{kvbuffer.name = "slopes"}}', ", %slopes",
                  f", memref<{HEADS}xf32>")
        slope = (f", %slopes_: memref<{HEADS}xf32>",
                 f"%slope = memref.load %slopes_[%head] : memref<{HEADS}xf32>",
                 "%more = arith.mulf %own, %slope : f32")
    name = "own" if "sloped" in OPTIONS else "more"
    return f"""
!q = memref<?x?x{HEADS}x{SIZE}x{TYPE}>
!c = !kvbuffer.cache<dense, {TYPE}, heads = 1, head_size = {SIZE}>
!t = memref<?x?{by_row}xf32>
func.func @own(%q: !q, %k: !c, %v: !c, %o: !q{lse[0]}{sink},
    %t: !t {{kvbuffer.name = "t", kvbuffer.shape = ["batch",{rows} "seq_k"]}}{slopes[0]}) {{
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o){lse[1]}{more[0]} {{scale = {SCALE} : f32}}
    : !q, !c, !c, !q{lse[2]}{more[1]}
    captures(%t{slopes[1]} : !t{slopes[2]}) score {{
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index,
         %t_: !t{slope[0]}):
      {slope[1]}
      %{name} = memref.load %t_[%batch,{row} %key] : !t
      {slope[2]}
      %sum = arith.addf %s, %more : f32
      %times = arith.constant {TIMES}.0 : f32
      %all = arith.mulf %sum, %times : f32
      kvbuffer.yield %all : f32
    }}
  return
}}
"""


to_bits, from_bits = to_bf16, from_bf16
if TYPE == "f16":
    to_bits = lambda x: np.asarray(x, np.float16)
    from_bits = lambda x: x.astype(np.float64)
SINKS = np.array([-np.inf, -1e30, 0.5, LOWEST], np.float32)


def run_device(kernel, arrays):
    kernel(**arrays, device=kvbuf.Device("emulator", seed=int(RNG.integers(1 << 30)),
                                         cut_sums="biases" in OPTIONS))


def run_tiles(schedule):
    """Runs arrays by the interpreter of tiles."""
    def run(_, arrays):
        options = []
        for name, array in arrays.items():
            np.save(FOLDER / f"{name}.npy", array)
            options += ["--input", f"{name}={FOLDER}/{name}.npy"]
            if name in ("o", "lse"):
                options += ["--output", f"{name}={FOLDER}/{name}.npy"]
        subprocess.run(
            ["kvbuf-opt", FOLDER / "source.mlir",
             f"--kvbuf-to-tile=chip={CHIP} schedule={schedule}", "-o",
             FOLDER / "tile.mlir"], check=True)
        subprocess.run(["kvbuf-tile-run", FOLDER / "tile.mlir", *options], check=True)
        for name in ("o", "lse"):
            arrays[name][...] = np.load(FOLDER / f"{name}.npy")
    return run


def check_rows(run, kernel, queries):
    more = added()
    batch = len(more)
    q = to_bits(RNG.standard_normal((batch, queries, HEADS, SIZE)) / 4)
    k, v = (to_bits(RNG.standard_normal((batch, KEYS, 1, SIZE))) for _ in "kv")
    o = to_bits(np.full(q.shape, np.nan, np.float32))
    lse = np.full((batch, HEADS, queries), np.nan, np.float32)
    sinks = {"sink": SINKS} if "sinks" in OPTIONS else {}
    t, sums_of = more, {"lse": lse}
    if "biases" in OPTIONS:
        sums_of = {}
        t = np.ascontiguousarray(np.broadcast_to(more[:, None], (batch, queries, KEYS)))
    slopes = {"slopes": np.ones(HEADS, np.float32)} if "sloped" in OPTIONS else {}
    run(kernel, dict(q=q, k=k, v=v, o=o, t=t, **sums_of, **sinks, **slopes))
    s = np.einsum("bihd,bjd->bhij", from_bits(q), from_bits(k)[:, :, 0]) * SCALE
    # The region's sum is rounded once.
    s = (s + more[:, None, None].astype(np.float64)).astype(np.float32)
    s, values = TIMES * s.astype(np.float64), from_bits(v)[:, None, :, 0]
    if sinks:
        column = np.broadcast_to(SINKS[None, :, None, None], (*s.shape[:3], 1))
        s = np.concatenate([s, column], 3)
        values = np.concatenate([values, 0 * values[:, :, :1]], 2)
    exact, base, sums = attend(s, True, values,
                               lambda x: from_bits(to_bits(x)))
    got = from_bits(o).transpose(0, 2, 1, 3)
    ulp = np.ldexp(1.0, np.frexp(exact)[1] - (8 if TYPE == "bf16" else 11))
    error, usual = abs(got - exact), abs(base - exact)
    for b in range(batch):
        print(CHIP, TYPE, queries, more[b, [0, 100, -1]], error[b].max(),
              usual[b].max(), error[b].mean(), usual[b].mean())
    if not ((error - ulp).max() <= 2 * usual.max() and
            error.mean() <= 1.15 * usual.mean() + 1e-6):
        sys.exit("the kernel computes something else")
    if not sums_of:
        return
    empty = np.isneginf(sums)
    with np.errstate(invalid="ignore"):
        off = abs(lse - sums) / np.maximum(abs(sums), 1)
    print("log-sum-exps are off by", off[~empty].max())
    if not (np.array_equal(empty, np.isneginf(lse)) and
            off[~empty].max() < 1e-5):
        sys.exit("the log-sum-exps are others")


def check_infinite_sinks(run, kernel, queries):
    """Sinks have all of the weight: an infinite one, and one near the largest number."""
    q = to_bits(RNG.standard_normal((2, queries, HEADS, SIZE)))
    k, v = (to_bits(RNG.standard_normal((2, KEYS, 1, SIZE))) for _ in "kv")
    o = to_bits(np.full(q.shape, np.nan, np.float32))
    lse = np.full((2, HEADS, queries), np.nan, np.float32)
    t = np.stack([np.zeros(KEYS, np.float32), np.full(KEYS, LOWEST, np.float32)])
    sinks = np.array([np.inf, 1, 3e38, -np.inf], np.float32)
    run(kernel, dict(q=q, k=k, v=v, o=o, t=t, lse=lse, sink=sinks))
    most = sinks > 1e38
    if (from_bits(o)[:, :, most].any() or not np.isfinite(lse[:, ~most]).all() or
            not np.allclose(lse[:, most], sinks[most][:, None], rtol=1e-6)):
        sys.exit(f"rows of infinite sinks have others' log-sum-exps: {lse[:, :, 0]}")


(FOLDER / "source.mlir").write_text(source())
# Of many rows, and of few rows whose keys are split.
shapes = (20, "BN=64"), (1, "split_keys=true")
for rows, schedule in shapes[:1] if "biases" in OPTIONS else shapes:
    subprocess.run(["kvbuf-compile", FOLDER / "source.mlir", f"--target={CHIP}",
                    f"--schedule={schedule}", "--ptxas=none", "--no-alternatives",
                    "-o", FOLDER / "own.kvbuf"], check=True)
    check_rows(run_device, kvbuf.load(FOLDER / "own.kvbuf"), rows)
    if "sinks" in OPTIONS:
        check_infinite_sinks(run_device, kvbuf.load(FOLDER / "own.kvbuf"), rows)
    if "tiles" in OPTIONS:
        own = schedule if rows == 1 else "BM=16,BN=64,warps=1"
        check_rows(run_tiles(own), None, rows)
        check_infinite_sinks(run_tiles(own), None, rows)
