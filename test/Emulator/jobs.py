# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""Blocks run on several threads, and nothing depends on how many those are.

Values, counts, messages and verdicts are compared byte by byte, with faults and
without. Blocks take long enough for the threads to be woken, and their times
differ. Some programs compute what no rule promises; they do it every time.
"""
import json
import subprocess
import sys

tool, path = sys.argv[1:3]
GRID = 12
THREADS = 64


def kernel(body):
    """Two warps; %p0 holds %work for each thread, %p1 is a counter, %p2 sums."""
    return f"""module {{
  llvm.mlir.global internal @said() {{addr_space = 3 : i32}} : i32
  llvm.mlir.global internal constant @text("%d from %d\\0A\\00") {{addr_space = 4 : i32}}
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @kernel(%p0: !llvm.ptr<1>, %p1: !llvm.ptr<1>, %p2: !llvm.ptr<1>) attributes {{nvvm.kernel}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %goal = llvm.mlir.constant({GRID - 1} : i32) : i32
    %grid = llvm.mlir.constant({GRID} : i32) : i32
    %threads = llvm.mlir.constant({THREADS} : i32) : i32
    %long = llvm.mlir.constant(300 : i32) : i32
    %said = llvm.mlir.addressof @said : !llvm.ptr<3>
    %first = llvm.icmp "eq" %t, %c0 : i32
    %row = llvm.mul %b, %threads : i32
    %at = llvm.add %row, %t : i32
    %mine = llvm.getelementptr %p0[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %of = llvm.urem %b, %c3 : i32
    %thirds = llvm.add %of, %c1 : i32
    %times = llvm.mul %thirds, %long : i32
    llvm.br ^work(%c0, %t : i32, i32)
  ^work(%i: i32, %x: i32):
    %x3 = llvm.mul %x, %c3 : i32
    %y = llvm.add %x3, %b : i32
    %i1 = llvm.add %i, %c1 : i32
    %busy = llvm.icmp "slt" %i1, %times : i32
    llvm.cond_br %busy, ^work(%i1, %y : i32, i32), ^worked
  ^worked:
{body}
    llvm.return
  }}
}}
"""


# The block that arrives last adds up.
LAST = """
    llvm.store %y, %mine : i32, !llvm.ptr<1>
    nvvm.barrier0
    llvm.cond_br %first, ^arrive, ^meet
  ^arrive:
    %n = llvm.atomicrmw add %p1, %c1 syncscope("device") ORDER : !llvm.ptr<1>, i32
    llvm.store %n, %said : i32, !llvm.ptr<3>
    llvm.br ^meet
  ^meet:
    nvvm.barrier0
    %ticket = llvm.load %said : !llvm.ptr<3> -> i32
    %last = llvm.icmp "eq" %ticket, %goal : i32
    llvm.cond_br %last, ^add(%c0, %c0 : i32, i32), ^end
  ^add(%k: i32, %sum: i32):
    %start = llvm.mul %k, %threads : i32
    %here = llvm.add %start, %t : i32
    %part = llvm.getelementptr %p0[%here] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %part : !llvm.ptr<1> -> i32
    %next = llvm.add %sum, %v : i32
    %k1 = llvm.add %k, %c1 : i32
    %more = llvm.icmp "slt" %k1, %grid : i32
    llvm.cond_br %more, ^add(%k1, %next : i32, i32), ^say
  ^say:
    %o = llvm.getelementptr %p2[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %next, %o : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:"""

# Blocks draw numbers from a counter, and note who got which.
DRAW = """
    llvm.cond_br %first, ^draw, ^end
  ^draw:
    %n = llvm.atomicrmw add %p1, %c1 syncscope("device") monotonic : !llvm.ptr<1>, i32
    %there = llvm.getelementptr %p0[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %b, %there : i32, !llvm.ptr<1>
    %wanted = llvm.mul %grid, %c3 : i32
    %more = llvm.icmp "slt" %n, %wanted : i32
    llvm.cond_br %more, ^draw, ^end
  ^end:"""

# A block writes where its neighbour reads, and goes where that leads.
RACE = """
    llvm.store %y, %mine : i32, !llvm.ptr<1>
    %b1 = llvm.add %b, %c1 : i32
    %other = llvm.urem %b1, %grid : i32
    %start = llvm.mul %other, %threads : i32
    %here = llvm.add %start, %t : i32
    %theirs = llvm.getelementptr %p0[%here] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %theirs : !llvm.ptr<1> -> i32
    %low = llvm.and %v, %c7 : i32
    %to = llvm.getelementptr %p2[%low] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %to : i32, !llvm.ptr<1>
    %back = llvm.load %to : !llvm.ptr<1> -> i32
    %sum = llvm.add %back, %y : i32
    llvm.store %sum, %mine : i32, !llvm.ptr<1>"""

# Some blocks leave the buffer, others read what nothing has written.
WILD = """
    %far = llvm.mul %b, %threads : i32
    %beyond = llvm.add %far, %at : i32
    %to = llvm.getelementptr %p0[%beyond] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %y, %to : i32, !llvm.ptr<1>
    %v = llvm.load %mine : !llvm.ptr<1> -> i32
    %o = llvm.getelementptr %p2[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %o : i32, !llvm.ptr<1>"""

# A block that goes on with what it has written: bytes, words and all at once.
OWN = """
    llvm.store %y, %mine : i32, !llvm.ptr<1>
    %upper = llvm.getelementptr %mine[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %byte = llvm.trunc %b : i32 to i8
    llvm.store %byte, %upper : i8, !llvm.ptr<1>
    %v = llvm.load %mine : !llvm.ptr<1> -> i32
    nvvm.barrier0
    %flip = llvm.xor %at, %long : i32
    %low = llvm.and %t, %c7 : i32
    %base = llvm.sub %at, %low : i32
    %turned = llvm.sub %c7, %low : i32
    %there = llvm.add %base, %turned : i32
    %near = llvm.getelementptr %p0[%there] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %w = llvm.load %near : !llvm.ptr<1> -> i32
    nvvm.barrier0
    %sum = llvm.add %v, %w : i32
    llvm.store %sum, %mine : i32, !llvm.ptr<1>"""

# Blocks wait for more arrivals than there are.
FEW = """
    llvm.cond_br %first, ^arrive, ^end
  ^arrive:
    %n = llvm.atomicrmw add %p1, %c1 syncscope("device") acq_rel : !llvm.ptr<1>, i32
    llvm.br ^wait
  ^wait:
    %seen = llvm.load %p1 atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    %done = llvm.icmp "sgt" %seen, %grid : i32
    llvm.cond_br %done, ^end, ^wait
  ^end:"""


def run(body, jobs, seed, parts, **options):
    with open(path, "w") as f:
        f.write(kernel(body))
    done = subprocess.run(
        [tool, path, f"--grid={GRID}", f"--block={THREADS}", "--report", "--print=0", "--print=1", "--print=2",
         "--options=" + json.dumps({"seed": seed, "jobs": jobs, **options}),
         f"--arg=buf:i32:{GRID * THREADS}:{parts}:parts", "--arg=buf:i32:1:zero:count",
         f"--arg=buf:i32:{THREADS}:zero:sums"], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "second" not in line]
    return done.returncode, lines, done.stderr


def compare(body, status, *messages, parts="uninit", **options):
    orders = set()
    for seed in (1, 2, 3):
        one = run(body, 1, seed, parts, **options)
        assert one[0] == status, one
        assert all(m in one[2] for m in messages), one[2]
        for jobs in (2, 4):
            other = run(body, jobs, seed, parts, **options)
            assert one == other, (seed, jobs, one, other)
        orders.add(str(one))
    return orders


compare(LAST.replace("ORDER", "acq_rel"), 0)
compare(LAST.replace("ORDER", "acq_rel"), 0, landing="random", window=3)
for order in ("acquire", "release", "monotonic"):
    compare(LAST.replace("ORDER", order), 1, "global-memory race: read of 4 bytes", parts="zero")
assert len(compare(DRAW, 0)) == 3, "the seed says who draws which number"
compare(RACE, 1, "global-memory race", parts="zero")
compare(RACE, 1, "global-memory race", "which nothing has written")
compare(RACE, 0, parts="zero", races=False)
compare(RACE, 1, "different errors; the launch stops here", max_errors=2)
compare(WILD, 1, "out of bounds: writes 4 bytes", "which nothing has written")
compare(OWN, 0)
compare(FEW, 1, "waits for global memory to change, and nothing can go on")
