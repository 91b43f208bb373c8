# RUN: %python %s --seed 1 --count 5
"""Random schedules: each is refused with a message, or its result is right.

Draws problems and parameters of schedules for every chip, and runs each on the
emulator with every row checked. Status 0 (the result is right) and status 2
with a located error pass; everything else fails. Nothing is skipped, so that a
parameter that a kernel takes and gets wrong is found.

    test/Kernels/random-schedules.py --seed 7 --count 500    # about 20 minutes

A case depends on the seed and its number only: --only 7:123 runs one again.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "benchmark"))
from problem import problem  # noqa: E402

CHIPS = ["sm_80", "sm_90a", "gfx942", "gfx950"]
#: Values of each parameter, those that fit some chip and a few that fit none.
VALUES = {
    "BM": [16, 32, 64, 64, 128, 128, 192, 256],
    "BN": [16, 32, 32, 48, 64, 64, 80, 96, 128],
    "BK": [16, 32, 32, 64, 64, 128],
    "stages": [1, 2, 2, 3, 3, 4, 5],
    "warps": [1, 2, 4, 4, 8, 8, 12],
    "mma_shape": ["16x8x16", "64x8x16", "32x32x16", "16x16x32", "32x32x8", "16x16x16"],
    "swap_a_b": ["true", "false"],
    "q_in_regs": ["true", "false"],
    "overlap": ["true", "true", "false"],
    "split_masks": ["true", "false"],
    "sums_in_lds": ["true", "false"],
    "producers": [0, 4, 8],
    "producer_registers": [0, 24, 40],
    "consumer_registers": [0, 160, 232, 240],
    "overlap_products": ["true", "true", "false"],
    "ping_pong": ["true", "true", "false"],
    "tiles": ["grid", "static", "dynamic"],
    "stage_output": ["true", "false"],
    "lazy_rescale": ["true", "true", "false"],
    "k_path": ["direct", "registers", "streaming"],
    "v_path": ["direct", "registers", "streaming"],
    "reg_chunk_depth": [0, 16, 32, 48, 64],
    "full_kv": ["true", "false"],
    "xcds": [1, 2, 2, 4, 8],
    "cluster": [1, 2, 2, 4, 8],
    "warp_cols": [1, 2, 2, 4],
    "split_keys": ["true", "true", "false"],
    "split_size": [0, 32, 64, 100, 128],
    "equal_shares": ["true", "true", "false"],
    "look_ahead": ["true", "true", "false"],
}
#: Parameters that mean something together are often drawn together.
GROUPS = [
    ["overlap", "stages", "BN"], ["overlap", "lazy_rescale", "ping_pong"],
    ["overlap_products", "producers", "stages"], ["BM", "warps"],
    ["producers", "tiles", "xcds"], ["full_kv", "stages"],
    ["k_path", "v_path"], ["BM", "warps", "mma_shape", "BK"],
    ["cluster", "tiles"], ["xcds"], ["warp_cols", "warps", "BM"],
    ["sums_in_lds", "split_masks"], ["look_ahead", "stages"],
    ["split_keys"], ["split_keys", "xcds"], ["split_keys", "equal_shares", "warps"],
    ["split_keys", "BN", "BM"], ["split_keys", "split_size"],
    ["split_keys", "look_ahead", "stages"], ["split_keys", "k_path", "v_path"],
    ["split_keys", "warps", "BM", "swap_a_b"],
    ["producers"],
    ["producers", "BM", "warps", "producer_registers", "consumer_registers"],
]


def draw_problem(rng):
    """Options of a problem and the sizes of a run."""
    kv_heads = rng.choice([1, 1, 2])
    options = {
        "heads": kv_heads * rng.choice([1, 1, 2, 3]), "kv_heads": kv_heads,
        "head_size": rng.choice([8, 16, 32, 40, 48, 64, 64, 64, 80, 96, 120,
                                 128, 128]),
        "dtype": rng.choice(["bf16", "f16"]),
        "causal": rng.random() < 0.5,
        "lse": rng.random() < 0.4, "sink": rng.random() < 0.3,
    }
    if rng.random() < 0.2:
        options["window_left"] = rng.choice([0, 7, 64, 100])
    if rng.random() < 0.15:
        options["softcap"] = 20.0
    options["cache"] = rng.choice(
        ["dense", "dense", "dense", "ragged", "continuous", "paged"])
    if options["cache"] == "paged":
        options["page_size"] = rng.choice([1, 3, 12, 16, 64, 128, 528])
    options["query"] = rng.choice(["dense", "dense", "ragged"])
    if options["head_size"] % 16 == 0 and rng.random() < 0.15:
        options["kv_dtype"] = rng.choice(["f8E4M3FN", "f8E5M2"])
        options["granularity"] = rng.choice(
            ["tensor", "head", "", "16", "32", str(options["head_size"])])
    options["batch_invariant"] = rng.random() < 0.2
    batch = rng.choice([1, 1, 2, 3])
    run = ["--size", f"batch={batch}", "--seed", str(rng.randrange(1000))]
    # The rule on the mean error needs more than a row.
    most = rng.choice([12, 13, 17, 24, 40, 130, 200, 300])
    queries = [rng.randint(12, most) for _ in range(batch)]
    if options["query"] == "ragged":
        run += ["--lengths-q", ",".join(map(str, queries))]
    else:
        queries = [most] * batch
        run += ["--size", f"seq_q={most}"]
    more = [rng.randint(0, 200) for _ in range(batch)]
    if options["cache"] == "dense":
        run += ["--size", f"seq_k={max(queries) + more[0]}"]
    elif options["cache"] == "ragged":
        keys = [q + m for q, m in zip(queries, more)]
        run += ["--lengths-k", ",".join(map(str, keys))]
    else:
        run += ["--cache-lengths", ",".join(map(str, more))]
    if rng.random() < 0.3:
        options["v_head_size"] = rng.choice([8, 16, 48, 64, 80, 112, 128, 192])
    if rng.random() < 0.3:
        options["o_dtype"] = rng.choice(["f32", "bf16", "f16"])
    return options, run


def draw_schedule(rng):
    names = list(rng.choice(GROUPS))
    names += rng.sample(list(VALUES), rng.choice([0, 0, 1, 1, 2, 3]))
    return ",".join(f"{name}={rng.choice(VALUES[name])}"
                    for name in dict.fromkeys(names))


def run_case(seed, number, folder, timeout):
    """(verdict, what happened, how to run it); verdict: passed, refused or
    FAILED."""
    rng = random.Random(f"{seed}:{number}")
    chip = rng.choice(CHIPS)
    options, sizes = draw_problem(rng)
    schedule = draw_schedule(rng)
    path = os.path.join(folder, "problem.mlir")
    with open(path, "w") as file:
        file.write(problem(**options))
    command = ["kvbuf-run", path, "--device=emulator", "--check",
               "--check-rows=all", f"--target={chip}",
               f"--schedule={schedule}", *sizes]
    text = " ".join(
        ["problem.py"] + [f"{n}={str(v).lower() if isinstance(v, bool) else v}"
                          for n, v in options.items()]
        + ["|"] + command)
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return "FAILED", f"not done after {timeout} s", text
    output = done.stdout + done.stderr
    if done.returncode == 0:
        return "passed", output, text
    # One line that begins with a place in the file and says what is wrong.
    located = re.search(r"problem\.mlir:\d+:\d+: error: .+", output)
    if done.returncode == 2 and located:
        return "refused", located.group(), text
    return "FAILED", f"status {done.returncode}\n{output[-2000:]}", text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12,
                        help="how many cases are to pass; those that are "
                        "refused are counted apart")
    parser.add_argument("--only", metavar="SEED:NUMBER", help="one case")
    parser.add_argument("--timeout", type=int, default=120, metavar="SECONDS")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    counts = {"passed": 0, "refused": 0, "FAILED": 0}
    seed, number = args.seed, 0
    if args.only:
        seed, number = args.only.split(":")
        args.count, args.verbose = 1, True
    with tempfile.TemporaryDirectory() as folder:
        while counts["passed"] + counts["FAILED"] < args.count:
            verdict, what, text = run_case(seed, number, folder, args.timeout)
            counts[verdict] += 1
            if verdict == "FAILED" or args.verbose:
                print(f"{verdict} {seed}:{number} {text}\n{what}", flush=True)
            if args.only:
                break
            number += 1
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    sys.exit(1 if counts["FAILED"] else 0)


main()
