# RUN: %python %s %bin/kvbuf-compile %bin/kvbuf-emu-test %t
"""kvbuffer.share_pairs by lanes, on the emulator, against its definition.

Each worker counts the units that it has, and each unit who has it: all units are somebody's,
once, and each worker has as many as it should. Pairs are made of as many items as workers,
of fewer, in no order, of one length but for a few; where they cannot even items out, shares
lie one behind the other. A division with a fault is found.
"""
import random
import subprocess
import sys

compiler, emulator, path = sys.argv[1:4]
UNITS, NONE = 64, 2147483647

TEXT = """
module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @kernel(%lengths: memref<?xi32> {kvbuffer.access = "read", kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]},
                    %seen: memref<?xi32> {kvbuffer.access = "counter", kvbuffer.name = "seen", kvbuffer.shape = ["units"]},
                    %had: memref<?xi32> {kvbuffer.access = "counter", kvbuffer.name = "had", kvbuffer.shape = ["all"]})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.grid = ["workers", 1, 1],
          kvbuffer.phase = #kvbuffer.phase<scheduled>,
          kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, stages = 2, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %room = arith.constant UNITS : index
      %none = arith.constant 2147483647 : index
      %many = arith.constant 1000000 : index
      %pause = arith.constant 5 : index
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      %workers = kvbuffer.launch_value "workers"
      %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %block of %workers over %batch least %c1 pause %pause {
      ^bb0(%i: index):
        %n = memref.load %lengths[%i] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        kvbuffer.yield %units : index
      }
      %paired = arith.cmpi ne, %keep, %c0 : index
      %rest = arith.cmpi ne, %other, %none : index
      %begin = arith.muli %block, %size : index
      %stop = arith.addi %begin, %size : index
      %all = arith.select %rest, %none, %keep : index
      %upto = arith.select %paired, %all, %stop : index
      %done = scf.for %i = %first to %end step %c1 iter_args(%at = %start) -> (index) {
        %is_first = arith.cmpi eq, %i, %first : index
        %is_rest = arith.andi %is_first, %rest : i1
        %of_pair = arith.select %is_rest, %other, %block : index
        %item = arith.select %paired, %of_pair, %i : index
        %n = memref.load %lengths[%item] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        %before = arith.select %paired, %c0, %at : index
        %next = arith.addi %before, %units : index
        %pair_from = arith.select %is_rest, %keep, %c0 : index
        %share_from = arith.maxui %begin, %before : index
        %from = arith.select %paired, %pair_from, %share_from : index
        %to = arith.minui %upto, %next : index
        scf.for %unit = %from to %to step %c1 {
          %own = arith.subi %unit, %before : index
          %row = arith.muli %item, %room : index
          %place = arith.addi %row, %own : index
          %a = kvbuffer.arrive_last %seen[%place] of %many : memref<?xi32>
          %b = kvbuffer.arrive_last %had[%block] of %many : memref<?xi32>
        }
        scf.yield %next : index
      }
      gpu.return
    }
  }
}
""".replace("UNITS", str(UNITS))


def compiled(text, name):
    with open(f"{path}.{name}.mlir", "w") as f:
        f.write(text)
    done = subprocess.run([compiler, f"{path}.{name}.mlir", "--target=sm_80", "--code=none", "--emit=target", "-o", "-"],
                          capture_output=True, text=True, check=True)
    lines = done.stdout.rstrip().splitlines()
    first = next(i for i, line in enumerate(lines) if "gpu.module" in line)
    with open(f"{path}.{name}.target.mlir", "w") as f:
        # The kernel alone.
        f.write("\n".join(line for line in lines if line.startswith("#")) + "\nmodule {\n"
                + "\n".join(lines[first + 1:-2]) + "\n}\n")


def run(name, lengths, workers):
    """How often each unit was had, and how many units each worker had."""
    n = len(lengths)
    done = subprocess.run([emulator, f"{path}.{name}.target.mlir", f"--grid={workers}", "--block=32",
                           f"--arg=buf:i32:{n}:list=" + "/".join(map(str, lengths)),
                           f"--arg=buf:i32:{n * UNITS}:zero:seen", f"--arg=buf:i32:{workers}:zero:had",
                           f"--arg=i32:{n}", f"--arg=i32:{workers}", "--print=1", "--print=2"],
                          capture_output=True, text=True, check=True)
    seen, had = ([int(x) for x in line.split(":")[1].split()] for line in done.stdout.splitlines()[-2:])
    return seen, had


def dealt_to(workers, items):
    items = max(items, 1)
    whole = -(-items // workers)
    even = max(items * (workers // items), -(-items // whole))
    return even if 10 * whole * even >= (10 * whole - 1) * workers else workers


def units_of(lengths, workers, pause=5):
    """The units of each worker, and whether pairs are made."""
    n, total = len(lengths), sum(lengths)
    many = dealt_to(workers, sum(x > 0 for x in lengths))
    size = max(1, -(-total // many))
    shares = [max(0, min(total, (w + 1) * size) - min(total, w * size)) for w in range(workers)]
    if not n <= many < 2 * n or many > 128:
        return shares, False
    own = list(lengths) + [0] * (many - n)
    order = sorted(range(many), key=lambda i: -own[i])
    if all(x == size for x in own) or any(own[x] + own[y] > 2 * (size + pause) for x, y in zip(order, order[::-1])):
        return shares, False
    for x, y in zip(order[:many // 2], order[::-1]):
        if own[x] - own[y] > 2 * pause:
            keep = (own[x] + own[y] + 1) // 2 - pause // 4
            own[x], own[y] = keep, own[x] + own[y] - keep
    return own + [0] * (workers - many), True


def check(name, lengths, workers):
    want, paired = units_of(lengths, workers)
    seen, had = run(name, lengths, workers)
    covered = [int(u < x) for x in lengths for u in range(UNITS)]
    assert seen == covered, (lengths, workers, seen)
    assert had == want, (lengths, workers, had, want)
    return paired


compiled(TEXT, "right")
r = random.Random(7)
pairs = [check("right", lengths, workers) for lengths, workers in (
    ([40, 8, 30, 20], 4), ([8, 20, 40, 30], 4), ([20, 20, 20, 20], 4), ([20, 21, 20, 20], 4),
    ([60, 1, 1, 1], 4), ([40, 8, 24], 3), ([40, 20, 16], 4), ([0, 40, 8, 20], 4), ([50, 9], 2), ([50], 1),
    (list(range(1, 61)), 60), ([r.randint(10, 50) for _ in range(64)], 66),
    ([r.randint(20, 60) for _ in range(61)], 64), ([r.randint(25, 60) for _ in range(128)], 128),
    ([r.randint(25, 60) for _ in range(129)], 129), ([r.randint(25, 60) for _ in range(8)], 16))]
assert pairs == [True, True, False, True, False, True, True, True, True, False,
                 True, True, True, True, False, False], pairs

for i in range(12):
    n = r.randint(2, 40)
    check("right", [r.randint(0, r.choice((3, 30, 60))) for _ in range(n)], r.randint(n, n + n // 2))

# A rest that begins a unit late, one that nobody has, and one that both have.
for number, (what, fault) in enumerate((
        ("%pair_from = arith.select %is_rest, %keep, %c0", "%k1 = arith.addi %keep, %c1 : index\n%pair_from = arith.select %is_rest, %k1, %c0"),
        ("%is_rest = arith.andi %is_first, %rest : i1", "%is_rest = arith.constant false"),
        ("%all = arith.select %rest, %none, %keep", "%all = arith.select %rest, %none, %none"))):
    assert what in TEXT
    compiled(TEXT.replace(what, fault), f"fault{number}")
    try:
        check(f"fault{number}", [40, 8, 30, 20], 4)
    except AssertionError:
        continue
    sys.exit(f"fault {number} was not found")
