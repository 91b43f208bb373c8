# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""Blocks of a grid run interleaved, in an order that the seed decides."""
import json
import subprocess
import sys

tool, path = sys.argv[1:3]

VENDORS = {
    "nvidia": ("nvvm.kernel", 32, "nvvm.read.ptx.sreg.tid.x : i32", "nvvm.read.ptx.sreg.ctaid.x : i32",
               "nvvm.barrier0", "device"),
    "amd": ("rocdl.kernel", 64, "rocdl.workitem.id.x : i32", "rocdl.workgroup.id.x : i32",
            "rocdl.barrier", "agent"),
}


def run(vendor, body, args, grid, threads=1, seed=1, **options):
    kernel, lanes, tid, cta, barrier, scope = VENDORS[vendor]
    params = ", ".join(f"%p{i}: !llvm.ptr<1>" for i in range(len(args)))
    constants = "".join(f"\n    %c{n} = llvm.mlir.constant({n} : i32) : i32" for n in (0, 1, 2, grid - 1, grid))
    if grid - 1 in (0, 1, 2) or grid in (0, 1, 2):
        constants = "".join(f"\n    %c{n} = llvm.mlir.constant({n} : i32) : i32" for n in {0, 1, 2, grid - 1, grid})
    with open(path, "w") as f:
        f.write(f"""module {{
  llvm.func @kernel({params}) attributes {{{kernel}}} {{
    %t = {tid}
    %b = {cta}{constants}
    %first = llvm.icmp "eq" %t, %c0 : i32
    {body.replace("SCOPE", f'syncscope("{scope}")').replace("BARRIER", barrier)}
  }}
}}
""")
    command = [tool, path, f"--grid={grid}", f"--block={threads}",
               "--options=" + json.dumps({"seed": seed, **options})]
    command += [f"--arg={a}" for a in args] + [f"--print={i}" for i in range(len(args))]
    done = subprocess.run(command, capture_output=True, text=True)
    values = [[int(x) for x in line.split()[1:]] for line in done.stdout.splitlines()]
    return done.returncode, values, done.stderr


# Each block counts itself; the one that finds all others counted says so.
LAST = """
    %n = llvm.atomicrmw add %p0, %c1 SCOPE acq_rel : !llvm.ptr<1>, i32
    %last = llvm.icmp "eq" %n, %cLAST : i32
    llvm.cond_br %last, ^say, ^end
  ^say:
    llvm.store %b, %p1 : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return"""

# Block 0 waits until all others have arrived: it must not keep them from it.
SPIN = """
    %zero = llvm.icmp "eq" %b, %c0 : i32
    llvm.cond_br %zero, ^wait, ^arrive
  ^arrive:
    %n = llvm.atomicrmw add %p0, %c1 SCOPE acq_rel : !llvm.ptr<1>, i32
    llvm.br ^end
  ^wait:
    %seen = llvm.atomicrmw _or %p0, %c0 SCOPE acq_rel : !llvm.ptr<1>, i32
    %done = llvm.icmp "eq" %seen, %cLAST : i32
    llvm.cond_br %done, ^say, ^wait
  ^say:
    llvm.store %seen, %p1 : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return"""

# Blocks take numbers until there are no more, and note how many each has got.
PERSISTENT = """
    llvm.br ^next(%c0 : i32)
  ^next(%got: i32):
    %n = llvm.atomicrmw add %p0, %c1 SCOPE monotonic : !llvm.ptr<1>, i32
    %more = llvm.icmp "slt" %n, %tiles : i32
    %plus = llvm.add %got, %c1 : i32
    llvm.cond_br %more, ^next(%plus : i32), ^say
  ^say:
    %mine = llvm.getelementptr %p1[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %got, %mine : i32, !llvm.ptr<1>
    llvm.return"""

for vendor in VENDORS:
    # Any block may be the last one, be the window large or small.
    for window, grid in ((0, 5), (1, 5), (2, 40)):
        last = set()
        for seed in range(1, 7):
            status, values, errors = run(vendor, LAST.replace("cLAST", f"c{grid - 1}"),
                                         ["buf:i32:1:zero", "buf:i32:1:uninit"], grid, seed=seed, window=window)
            assert status == 0 and values[0] == [grid], errors
            last.add(values[1][0])
            # And the seed says which.
            again = run(vendor, LAST.replace("cLAST", f"c{grid - 1}"),
                        ["buf:i32:1:zero", "buf:i32:1:uninit"], grid, seed=seed, window=window)
            assert again == (status, values, errors)
        assert len(last) >= 3, (vendor, window, last)

    # A wait ends, though no more than two blocks run at first.
    for grid in (5, 100):
        for seed in (1, 2):
            status, values, errors = run(vendor, SPIN.replace("cLAST", f"c{grid - 1}"),
                                         ["buf:i32:1:zero", "buf:i32:1:uninit"], grid, seed=seed, window=2)
            assert status == 0 and values[1] == [grid - 1], errors

    # One arrival too few.
    status, _, errors = run(vendor, SPIN.replace("cLAST", "c5"), ["buf:i32:1:zero", "buf:i32:1:uninit"], 5)
    assert status == 1, errors
    assert "'llvm.atomicrmw' by warp 0 (block 0,0,0): waits for global memory to change, and nothing can go on\n" \
        in errors, errors

    # Tiles are shared.
    tiles = "\n    %tiles = llvm.mlir.constant(64 : i32) : i32" + PERSISTENT
    status, values, errors = run(vendor, tiles, ["buf:i32:1:zero", "buf:i32:4:uninit"], 4)
    assert status == 0 and sum(values[1]) == 64, errors
    assert min(values[1]) > 0, values
