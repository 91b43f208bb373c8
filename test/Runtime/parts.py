# What a tensor is called is the kernel's affair: neither the runtime nor a pass
# after attention's lowering knows a part of attention by its name, or a size of
# it. Only the implementations of problems do.
#
# RUN: %python %s %src/lib/Runtime %src/lib/MlirRuntime %src/lib/CAPI %src/lib/Conversion \
# RUN:   %src/lib/Dialect/KVBuffer/Transforms %src/lib/Pipelines %src/lib/Target %src/lib/Layout
# It notices one that does.
# RUN: rm -rf %t && mkdir %t && echo 'bound.at("q").shape[0];' > %t/Launch.cpp
# RUN: not %python %s %t | FileCheck %s
# CHECK: Launch.cpp:1: "q"
import pathlib
import re
import sys

# The runtime's problems, what becomes one, and the ops' lowerings; ProblemLimits
# names the op's operands in its messages.
OWN = {"Problems", "RaiseAttention", "LowerAttention.cpp", "LowerAppend.cpp",
       "ProblemLimits.cpp"}
NAMES = re.compile(r'"(q|k|v|o|lse|sink|[qkv]_offsets|[kv]_new|seq_[qk]|total_[qk])"')
found, files = 0, 0
for root in map(pathlib.Path, sys.argv[1:]):
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".cpp", ".h") or OWN & set(path.relative_to(root).parts):
            continue
        files += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in NAMES.findall(line.partition("//")[0]):
                print(f'{path}:{number}: "{name}"')
                found += 1
sys.exit(found != 0 or not files)
