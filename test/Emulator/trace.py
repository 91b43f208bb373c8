"""What the emulator notes of a block: copies in flight, waits, barriers, and
the bytes that each operation touches.

RUN: kvbuf-emulate %S/async-pipeline.mlir --block=64 "f32[1024]=1" "f32[256]" \
RUN:   --options="{\"trace\": true}" --report=%t.json
RUN: %python %s %t.json
RUN: kvbuf-emulate %S/async-pipeline.mlir --block=64 "f32[1024]=1" "f32[256]" --report=%t.plain.json
RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t.plain.json
PLAIN-NOT: "trace"
PLAIN-NOT: "operations"
"""

import json
import sys

report = json.load(open(sys.argv[1]))["kernels"][0]
trace = report["trace"]
assert trace["block"] == "block 0,0,0" and trace["warps"] == 2, trace["block"]
assert not trace["truncated"]
name = [op["op"] for op in trace["ops"]]

# Two warps, four tiles of 256 floats through two slots. A warp copies its half
# of each tile: 32 lanes of 16 bytes.
for warp in (0, 1):
    mine = [e for e in trace["events"] if e["warp"] == warp]
    copies = [e for e in mine if e["kind"] == "copy"]
    assert [e["bytes"] for e in copies] == [512] * 4, copies
    assert all(e["begin"] < e["end"] for e in copies), copies
    # The next tile is on its way while one is awaited, and no third one.
    for one, two, three in zip(copies, copies[1:], copies[2:]):
        assert two["begin"] < one["end"] <= three["begin"], copies
    # A wait and two barriers for each tile.
    assert sum(e["kind"] == "wait" for e in mine) == 4
    assert sum(e["kind"] == "barrier" for e in mine) == 8

# Both leave a barrier at the same time, which is the later arrival's.
barriers = [[e for e in trace["events"]
             if e["kind"] == "barrier" and e["warp"] == w] for w in (0, 1)]
for a, b in zip(*barriers):
    assert a["end"] == b["end"] == max(a["begin"], b["begin"]), (a, b)

# Lane t writes vector t, of 16 bytes, of a slot of 64, thread t reads vector
# 63 - t. The first copy fills slot 0; that in the loop slots 1, 0, 1.
touched = {}
for s in trace["shared"]:
    key = (name[s["op"]], s["store"], s["warp"])
    each = 16 // trace["unit_bytes"]
    firsts, lasts = s["units"][::2], s["units"][1::2]
    assert all(u % each == 0 for u in firsts), s
    assert all(u % each == each - 1 for u in lasts), s
    touched.setdefault(key, []).append([u // each for u in s["units"]])
cp = "nvvm.cp.async.shared.global"
assert sorted(touched[cp, True, 0]) == [[0, 31], [0, 31, 64, 95]], touched
assert sorted(touched[cp, True, 1]) == [[32, 63], [32, 63, 96, 127]], touched
assert touched["llvm.load", False, 0] == [[32, 63, 96, 127]], touched
assert touched["llvm.load", False, 1] == [[0, 31, 64, 95]], touched

# How often each operation ran: the copies once and three times by each warp.
counts = sorted(op["warp"] for op in report["operations"] if op["op"] == cp)
assert counts == [2, 6], counts
lanes = sorted(op["lane"] for op in report["operations"] if op["op"] == cp)
assert lanes == [64, 192], lanes
