"""Moves the weights of a kernel at the scheduled stage into another layout and
back, right after each softmax: kvbuffer.exchange must not change them."""
import re
import sys

#: Another instruction's operand a, by a part of the own one's layout.
OTHERS = {
    "mma_sync, a, shape = [16, 8, 16]": "mma_sync, a, shape = [16, 8, 16], warps = [{}, 1], swapped = true",
    "mfma, a, shape = [32, 32, 16]": "mfma, a, shape = [16, 16, 32], warps = [{}, 1], swapped = true",
    "mfma, a, shape = [32, 32, 8]": "mfma, a, shape = [16, 16, 16], group = 2, warps = [{}, 1], swapped = true",
}

lines, renamed, moved = [], {}, 0
aliases = {}
for line in sys.stdin:
    if alias := re.match(r"(#\w+) = #kvbuffer\.mma<(.*)>$", line.strip()):
        aliases[alias[1]] = alias[2]
    for old, new in renamed.items():
        line = re.sub(rf"{re.escape(old)}(?![\w])", new, line)
    lines.append(line)
    softmax = re.match(r"\s*(%\w+), .* = kvbuffer\.online_softmax .* -> <(\w+), a, (#\w+)>", line)
    if not softmax:
        continue
    name, shape, layout = softmax.groups()
    own = aliases[layout]
    other = next(value for key, value in OTHERS.items() if own.startswith(key))
    warps = re.search(r"warps = \[(\d+), 1\]", own)[1]
    here = f"!kvbuffer.fragment<{shape}, a, {layout}>"
    there = f"!kvbuffer.fragment<{shape}, a, #kvbuffer.mma<{other.format(warps)}>>"
    lines.append(f"%there{moved} = kvbuffer.exchange {name} : {here} -> {there}\n"
                 f"%back{moved} = kvbuffer.exchange %there{moved} : {there} -> {here}\n")
    renamed[name] = f"%back{moved}"
    moved += 1
assert moved, "no softmax"
sys.stdout.write("".join(lines))
