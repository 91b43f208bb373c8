# Our own ops become lane code, and run on whole tiles, by what everybody's ops are
# offered (`LaneContext`, `TileContext`): none asks for the whole kernel or block.
#
# RUN: %python %s %src
# It notices who does, and who casts by itself.
# RUN: rm -rf %t && mkdir -p %t/lib/Conversion %t/lib/Emulator && cp -r %src/lib/Conversion/KVBufferToGPU %t/lib/Conversion/ && cp -r %src/lib/Emulator/Tile %t/lib/Emulator/
# RUN: sed -i 's/lowerOp(LaneContext &lower, MapOp/lowerOp(Lanes \&lower, MapOp/' %t/lib/Conversion/KVBufferToGPU/LaneMap.h
# RUN: sed -i '$a int x = static_cast<LaneLowering \&>(context).x;' %t/lib/Conversion/KVBufferToGPU/LaneModels.cpp
# RUN: sed -i '$a int x = static_cast<BlockRun *>(context)->x;' %t/lib/Emulator/Tile/TileModels.cpp
# RUN: not %python %s %t | FileCheck %s
# CHECK-DAG: MapOp asks for Lanes: expected LaneContext
# CHECK-DAG: LaneModels.cpp casts the context to LaneLowering
# CHECK-DAG: TileModels.cpp casts the context to BlockRun
"""Checks what our own ops ask for.

    own-ops.py SOURCE
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
#: An emitter by lanes, and a model on tiles: its context and its op.
EMITTERS = (("lib/Conversion/KVBufferToGPU", "Lane*.h", "lowerOp", "LaneContext", 75),
            ("lib/Emulator/Tile", "OwnOps.h", "execute", "TileContext", 60))
found = False
for folder, files, name, expected, least in EMITTERS:
    count = 0
    for path in sorted((ROOT / folder).glob(files)):
        for context, op in re.findall(rf"\b{name}\(\s*(\w+) &\w+,\s*(?:\w+::)*(\w+Op)\b",
                                      path.read_text()):
            count += 1
            if context != expected:
                print(f"{op} asks for {context}: expected {expected}")
                found = True
    if count < least:
        print(f"{folder} has {count} ops: expected {least} or more")
        found = True
    for path in sorted((ROOT / folder).rglob("*")):
        text = "" if path.is_dir() else path.read_text()
        for name in re.findall(r"static_cast<(?:const )?(LaneLowering|Lanes|BlockRun) ?[&*]>", text):
            print(f"{path.name} casts the context to {name}")
            found = True
sys.exit(found)
