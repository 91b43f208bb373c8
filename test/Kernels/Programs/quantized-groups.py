# Random groups of elements with a scale, on the emulator, against float64.
# RUN: %python %s --chip sm_80 --cases 4
# RUN: %python %s --chip sm_90a --cases 4
# RUN: %if ld.lld %{ %python %s --chip gfx942 --cases 3 %}
# RUN: %if ld.lld %{ %python %s --chip gfx950 --cases 3 %}
"""Draws quantized caches with a scale for each group of a token's elements.

    quantized-groups.py --chip sm_80 --seed 7 --cases 100
    quantized-groups.py --chip sm_80 --only 7:23            # one of them again

Few query rows and many; caches of every kind, pages of any size; groups that divide
a head and groups that do not, K's and V's apart; lengths of a few tiles. A case
depends on the seed and its number; without a seed each run draws others. kvbuf-run
checks every row, and what no sequence uses holds NaN, scales too.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[3] / "benchmark"))
from problem import problem  # noqa: E402


def draw(rng, chip):
    """(options of a problem, options of kvbuf-run)"""
    amd, fnuz = chip.startswith("gfx"), "FNUZ" if chip == "gfx942" else ""
    # Elements of K, or columns of V, that a product of any schedule takes.
    unit = 32 if amd else 16
    size, value_size = rng.choice([(64, 64), (96, 96), (128, 128), (128, 128),
                                   (192, 128), (80, 112), (256, 256)])
    kv_heads = rng.choice([1, 2])

    def granularity(of):
        groups = range(unit, of, unit)
        return str(rng.choice(groups)) if rng.random() < 0.8 else rng.choice(
            ["tensor", "head", str(of)])

    options = {
        "dtype": rng.choice(["bf16", "f16"]),
        "kv_dtype": rng.choice(["f8E4M3" + (fnuz or "FN"), "f8E5M2" + fnuz]),
        "head_size": size, "v_head_size": value_size,
        "granularity": granularity(size), "v_granularity": granularity(value_size),
        "heads": kv_heads * rng.choice([1, 2, 4]), "kv_heads": kv_heads,
        "cache": rng.choice(["dense", "ragged", "continuous", "paged", "paged"]),
        "lse": rng.random() < 0.5, "causal": rng.random() < 0.5,
    }
    if options["cache"] == "paged":
        options["page_size"] = rng.choice([1, 3, 12, 16, 64, 128])
    if rng.random() < 0.3:
        options["window_left"] = rng.choice([20, 70])
    batch = rng.choice([1, 2, 3])
    cached = [rng.randint(40, 200) for _ in range(batch)]
    run = ["--size", f"batch={batch}", "--seed", str(rng.randrange(1000))]
    few = rng.random() < 0.5
    rows = rng.choice([1, 1, 2, 4]) if few else rng.choice([20, 33, 50])
    if few:
        options["seq_q"] = rows
    else:
        run += ["--size", f"seq_q={rows}"]
    if options["cache"] == "dense":
        run += ["--size", f"seq_k={cached[0] + rows}"]
    elif options["cache"] == "ragged":
        run += ["--lengths-k", ",".join(str(n + rows) for n in cached)]
    else:
        run += ["--cache-lengths", ",".join(map(str, cached))]
    return options, run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6))
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--only")
    args = parser.parse_args()
    cases = range(args.cases)
    if args.only:
        args.seed, number = map(int, args.only.split(":"))
        cases = [number]
    failed = 0
    for number in cases:
        options, run = draw(random.Random(f"{args.seed}:{number}"), args.chip)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/kernel.kvbuf"
            done = subprocess.run(
                ["kvbuf-compile", "-", f"--target={args.chip}", "--code=none",
                 "-o", path],
                input=problem(**options), capture_output=True, text=True)
            if done.returncode == 0:
                done = subprocess.run(
                    ["kvbuf-run", path, "--device=emulator", "--check",
                     "--check-rows=all", *run], capture_output=True, text=True)
        if done.returncode:
            failed += 1
            print(f"{args.chip} {args.seed}:{number} failed: "
                  + " ".join(f"{k}={v}" for k, v in options.items()), *run)
            print(done.stdout[-2000:], done.stderr[-2000:])
    print(f"{args.chip}: {len(cases)} cases of seed {args.seed}, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
