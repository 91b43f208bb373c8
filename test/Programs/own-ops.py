# Our own ops become lane code, and run on whole tiles, by what everybody's ops are
# offered (`LaneContext`, `TileContext`). Those that still ask for the whole kernel
# stand in a list, which may only become shorter.
#
# RUN: %python %s %src
# It notices who is new, who casts by itself, and who is in the list for nothing.
# RUN: rm -rf %t && mkdir -p %t/lib/Conversion %t/lib/Emulator && cp -r %src/lib/Conversion/KVBufferToGPU %t/lib/Conversion/ && cp -r %src/lib/Emulator/Tile %t/lib/Emulator/
# RUN: sed -i 's/lowerOp(LaneContext &lower, MapOp/lowerOp(Lanes \&lower, MapOp/; $a int x = static_cast<LaneLowering \&>(context).x;' %t/lib/Conversion/KVBufferToGPU/LaneMap.h
# RUN: sed -i 's/lowerOp(LaneLowering &lower, QueueOp/lowerOp(LaneContext \&lower, QueueOp/' %t/lib/Conversion/KVBufferToGPU/LaneQueues.h
# RUN: sed -i '$a int x = static_cast<BlockRun \&>(context).x;' %t/lib/Emulator/Tile/TileModels.cpp
# RUN: not %python %s %t | FileCheck %s
# CHECK-DAG: MapOp asks for the whole kernel: expected LaneContext
# CHECK-DAG: QueueOp is in the list for nothing
# CHECK-DAG: LaneMap.h casts the context to LaneLowering
# CHECK-DAG: TileModels.cpp casts the context to BlockRun
"""Checks what our own ops ask for.

    own-ops.py SOURCE
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
#: What machines emit, which know the kernel: copies into slots and out of them, and what
#: teams meet at, wait for and hand to each other.
WHOLE = """
    AllocOp DramLoadOp LdsStageOp FragmentLoadOp TileFragmentOp FragmentStoreOp
    TeamsOp QueueOp QueuePutOp QueueTakeOp ShelfOp ShelfPutOp ShelfGetOp
    RingOp RingLoadOp RingPutOp RingWaitOp RingReleaseOp MailboxOp MailboxPostOp
    MailboxTakeOp NextTileOp MmaStartOp MmaWaitOp TurnWaitOp TurnPassOp""".split()
#: Where a cast may stand: the models of the ops above.
CASTS = {"LaneModels.cpp"}

asking, count = set(), 0
for path in sorted((ROOT / "lib/Conversion/KVBufferToGPU").glob("Lane*.h")):
    for context, op in re.findall(r"\blowerOp\(\s*(\w+) &\w+,\s*(?:\w+::)*(\w+) op\)",
                                  path.read_text()):
        count += 1
        if context != "LaneContext":
            asking.add(op)
found = count < 70
if found:
    print(f"found {count} emitters: expected those of all ops")
for op in sorted(asking - set(WHOLE)):
    print(f"{op} asks for the whole kernel: expected LaneContext")
    found = True
for op in sorted(set(WHOLE) - asking):
    print(f"{op} is in the list for nothing")
    found = True
for folder in "lib/Conversion/KVBufferToGPU", "lib/Emulator/Tile":
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_dir() or path.name in CASTS:
            continue
        for name in re.findall(r"static_cast<(LaneLowering|Lanes|BlockRun) &>",
                               path.read_text()):
            print(f"{path.name} casts the context to {name}")
            found = True
sys.exit(found)
