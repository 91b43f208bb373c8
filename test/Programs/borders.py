# Who may name whom: a problem is known in its folders, a kind of cache where caches
# are, a chip in tables, an engine where engines are. What is still known elsewhere
# stands in a list, which may only become shorter. Tables of chips include no dialect.
#
# RUN: %python %s %src
# It notices who is new, and who is in a list for nothing.
# RUN: rm -rf %t && mkdir -p %t/lib/Compiler %t/lib/Target %t/lib/Emulator && cp -r %src/include %t/
# RUN: echo 'if (isa<GemmOp>(op)) return "sm_80", BlockRun();' > %t/lib/Compiler/New.cpp
# RUN: echo '#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"' > %t/lib/Target/New.cpp
# RUN: sed -i '1i #include "mlir/IR/Types.h"' %t/include/kvbuffer/Target/TargetInfo.h
# RUN: not %python %s %t | FileCheck %s
# CHECK-DAG: lib/Compiler/New.cpp names the whole block (1): expected it in lib/Emulator/Tile/BlockRun
# CHECK-DAG: lib/Compiler/New.cpp names Gemm (1): expected it in lib/Programs/Gemm
# CHECK-DAG: lib/Compiler/New.cpp names a chip (1): expected it in lib/Target
# CHECK-DAG: lib/Target/New.cpp includes kvbuffer/Dialect/KVBuffer/IR/Schedule.h: tables of chips know no dialect
# CHECK-DAG: include/kvbuffer/Target/TargetInfo.h includes mlir/IR/Types.h: tables of chips know no dialect
# CHECK-DAG: lib/Dialect/KVBuffer/IR/KnownAttributes.cpp is in the list of Attention for nothing
"""Checks the borders between parts of the sources.

    borders.py SOURCE

Comments do not count, nor do examples' names.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
I, T = "include/kvbuffer/", "lib/Dialect/KVBuffer/"
#: A border: a name, what is looked for, where it belongs, who still has it.
BORDERS = [
    # cuBLAS has functions of that name, too.
    ("Gemm", r"\bgemm\b|Gemm", ["lib/Programs/Gemm", "lib/Runtime/Problems/Gemm",
                               "tools/kvbuf-emulate/device/libraries.h"],
     [I + "Problems.def"]),
    ("Attention", r"\bAttentionOp\b|\bAttentionProblem\b",
     ["lib/Programs/Attention", "lib/Runtime/Problems", T + "IR/KVBufferProblemOps.cpp",
      "lib/Conversion/RaiseAttention", "lib/Conversion/ConvertAttentionOps"],
     [I + "Dialect/KVBuffer/IR/KVBufferMapOps.td", I + "Dialect/KVBuffer/IR/Lengths.h",
      I + "Runtime/Manifest.h",
      I + "Runtime/Workload.h", T + "IR/KVBufferMapOps.cpp",
      T + "IR/KnownAttributes.cpp", T + "Transforms/BufferizableOpInterfaceImpl.cpp",
      "tools/kvbuf-tile-run/kvbuf-tile-run.cpp"]),
    ("Append", r"\bCacheAppendOp\b|\bAppendSpec\b|\bAppendProblem\b",
     ["lib/Programs/Append", "lib/Runtime/Problems", I + "Runtime/AppendProblem.h",
      T + "IR/KVBufferProblemOps.cpp", T + "IR/KVBufferCacheOps.cpp",
      T + "Transforms/LowerAppend.cpp"],
     [I + "Dialect/KVBuffer/Transforms/Problems.h", I + "Runtime/Manifest.h",
      T + "Transforms/BufferizableOpInterfaceImpl.cpp", "lib/Programs/Attention/DecodeProgram.h",
      "lib/Programs/Attention/LowerAttention.cpp", "lib/Programs/Attention/LowerDecode.cpp",
      "lib/Programs/Attention/LowerDecode.h", "lib/Programs/Attention/Attention.h",
      "lib/Runtime/CMakeLists.txt"]),
    ("a kind of cache", r"\bCacheKind\b",
     [T + "IR/CacheLayout.cpp", T + "IR/KVBufferTypes.cpp",
      I + "Dialect/KVBuffer/IR/KVBufferEnums.td", I + "Dialect/KVBuffer/IR/KVBufferTypes.td"],
     # Which kind of cache it makes of a graph that gathers by a table; of a tensor.
     ["lib/Conversion/RaiseAttention/AttentionBuilder.cpp",
      "lib/Conversion/RaiseAttention/AttentionBuilder.h",
      T + "IR/KVBufferProblemOps.cpp",
      # Its words.
      "tools/kvbuf-lsp-server/Knowledge.cpp"]),
    # Programs ask a cache by `CacheLayout`, which types of other dialects have, too;
    # problems are of caches of this type.
    ("our type of caches", r"\bCacheType\b",
     [T + "IR", I + "Dialect/KVBuffer/IR", "lib/Programs", "lib/Conversion/RaiseAttention",
      T + "Transforms/LowerAppend.cpp"],
     [T + "Transforms/KernelArguments.cpp"]),
    # What a driver calls a chip, and what a tool takes where nobody names one.
    ("a chip", r'"(sm_\d|gfx\d)',
     ["lib/Target", I + "Target", "lib/Runtime/HipDriver.cpp", "tools/kvbuf-emulate"],
     [I + "Dialect/KVBuffer/Transforms/Passes.td"]),
    # Ops are executed by what `TileContext` offers to everybody's.
    ("the whole block", r"\bBlockRun\b",
     ["lib/Emulator/Tile/BlockRun", "lib/Emulator/Tile/TileInterpreter.cpp",
      "lib/Emulator/Tile/CMakeLists.txt"], []),
    ("an engine", r"DeviceAsyncCopy|CpAsync|RangeCopyOp|BulkTensor|\bTmaTile\b",
     ["lib/Conversion/KVBufferToGPU/AMD/Machine", "lib/Conversion/KVBufferToGPU/NVIDIA",
      "lib/Conversion/KVBufferToNVVM", "lib/Conversion/KVBufferToROCDL",
      T + "IR/KVBufferTma", "lib/Emulator", I + "Dialect/KVBuffer/IR/TmaTile.h",
      I + "Dialect/KVBuffer/IR/KVBufferAMDOps.td"],
     ["lib/Conversion/Common/CheckLanes.cpp", T + "Transforms/ExpandArguments.cpp",
      T + "Transforms/ExpandCacheOps.cpp"]),
]


def code(path):
    """A file without comments and the names of examples."""
    text = path.read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"examples/\w+", "", text)


#: Who writes problems as text, in Python.
WRITES = r"kvbuffer\.(attention|cache_append) [^`]*[({]|!kvbuffer\.cache<"
WRITER = "python/kvbuf/_module_text.py"
#: Regions of its own.
OTHERS = {"benchmark/scores.py", "benchmark/trees.py"}

sources = {}
for folder in "lib", "include/kvbuffer", "tools":
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".cpp", ".h", ".td", ".def", ".inc") or path.name == "CMakeLists.txt":
            sources[str(path.relative_to(ROOT))] = code(path)
found = not sources
for name, pattern, homes, known in BORDERS:
    named = {}
    for path, text in sources.items():
        count = len(re.findall(pattern, text))
        if count and not path.startswith(tuple(homes)):
            named[path] = count
    for path in sorted(set(named) - set(known)):
        print(f"{path} names {name} ({named[path]}): expected it in {homes[0]}")
        found = True
    for path in sorted(set(known) - set(named)):
        print(f"{path} is in the list of {name} for nothing")
        found = True
for folder in "python", "benchmark":
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        writes = re.search(WRITES, path.read_text())
        if bool(writes) != (name == WRITER or name in OTHERS):
            print(f"{name} writes problems as text: expected {WRITER}" if writes
                  else f"{name} is in the list of writers for nothing")
            found = True
# What tables of chips are made of: themselves, layouts, LLVM's containers.
BELOW = re.compile(r"Vendors\.h|kvbuffer/(Target|Layout)/\w+\.(h|def)|llvm/(ADT|Support)/")
for path, text in sources.items():
    if path.startswith(("lib/Target/", I + "Target/")):
        for name in re.findall(r'#\s*include\s*"([^"]+)"', text):
            if not BELOW.match(name):
                print(f"{path} includes {name}: tables of chips know no dialect")
                found = True
sys.exit(found)
