# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""Launches at the same time: what they share has to be made for that.

A persistent kernel takes the numbers of its tiles from a counter that begins at
0. Two launches with a counter each are right; with one for both each tile is
computed by one of them only, and its block may not even see the other's.
"""
import json
import subprocess
import sys

tool, path = sys.argv[1:3]
TILES = 12
VENDORS = {"nvidia": ("nvvm.kernel", "nvvm.read.ptx.sreg.tid.x : i32", "device"),
           "amd": ("rocdl.kernel", "rocdl.workitem.id.x : i32", "agent")}


def run(vendor, use, beside, seed):
    kernel, tid, scope = VENDORS[vendor]
    with open(path, "w") as f:
        f.write(f"""module {{
  llvm.func @kernel(%count: !llvm.ptr<1>, %in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {{{kernel}}} {{
    %t = {tid}
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %tiles = llvm.mlir.constant({TILES} : i32) : i32
    llvm.br ^next
  ^next:
    %n = llvm.atomicrmw add %count, %c1 syncscope("{scope}") monotonic : !llvm.ptr<1>, i32
    %more = llvm.icmp "slt" %n, %tiles : i32
    llvm.cond_br %more, ^tile, ^end
  ^tile:
    %i = llvm.getelementptr %in[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %i : !llvm.ptr<1> -> i32
    %o = llvm.getelementptr %out[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %o : i32, !llvm.ptr<1>
    llvm.br ^next
  ^end:
    llvm.return
  }}
}}
""")
    command = [tool, path, "--grid=3", "--block=1", "--options=" + json.dumps({"seed": seed}),
               f"--use={use}", f"--beside=kernel:{beside}"]
    buffers = ["i32:1:zero:count1", f"i32:{TILES}:iota:in", f"i32:{TILES}:const=-1:out1",
               "i32:1:zero:count2", f"i32:{TILES}:const=-1:out2"]
    done = subprocess.run(command + [f"--arg=buf:{b}" for b in buffers] + ["--print=2", "--print=4"],
                          capture_output=True, text=True)
    outs = [[int(x) for x in line.split()[1:]] for line in done.stdout.splitlines()]
    return done.returncode, outs, done.stderr


for vendor in VENDORS:
    for seed in range(1, 5):
        # Each its own.
        status, outs, errors = run(vendor, "0,1,2", "3,1,4", seed)
        assert status == 0, errors
        assert outs == [list(range(TILES))] * 2, outs
        # One counter: each tile is missing in one of the outputs.
        status, outs, errors = run(vendor, "0,1,2", "0,1,4", seed)
        assert status == 0, errors
        for i, pair in enumerate(zip(*outs)):
            assert sorted(pair) == [-1, i], outs
        assert -1 in outs[0] and -1 in outs[1], outs
        # One output: both write every tile, and nothing orders them.
        status, outs, errors = run(vendor, "0,1,2", "3,1,2", seed)
        assert status == 1, errors
        error, note = errors.splitlines()[:2]
        assert "'llvm.store' by thread 0" in error and "global-memory race: write of 4 bytes at offset" in error, error
        launches = {"of launch 1)", "of launch 2)"}
        assert any(l in error for l in launches), error
        mine = "1" if "of launch 1)" in error else "2"
        assert f"of launch {3 - int(mine)}, 'llvm.store'" in note, note
