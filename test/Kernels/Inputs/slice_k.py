"""Multiplies Q by K in two products, of halves of the columns that they
contract, which are slices of the fragments."""
import re
import sys

text = sys.stdin.read()
product = re.compile(
    r"( *)(%\w+) = kvbuffer\.mma (%\w+), (%\w+), (%\w+) \{transpose_b\} : "
    r"<(\d+)x(\d+)x(\w+), a>, <(\d+)x(\d+)x(\w+), b>, (<[^>]*>)\n")


def halves(match):
    indent, result, a, b, acc, rows, cols, type_, keys, _, _, accType = match.groups()
    half = int(cols) // 2
    fragment = "!kvbuffer.fragment"
    lines = []
    for part, (into, out) in enumerate([(acc, "%half"), ("%half", result)]):
        lines += [
            f"%a{part} = kvbuffer.fragment_slice {a} [0, {part * half}] : "
            f"{fragment}<{rows}x{cols}x{type_}, a> -> {fragment}<{rows}x{half}x{type_}, a>",
            f"%b{part} = kvbuffer.fragment_slice {b} [0, {part * half}] : "
            f"{fragment}<{keys}x{cols}x{type_}, b> -> {fragment}<{keys}x{half}x{type_}, b>",
            f"{out} = kvbuffer.mma %a{part}, %b{part}, {into} {{transpose_b}} : "
            f"{fragment}<{rows}x{half}x{type_}, a>, {fragment}<{keys}x{half}x{type_}, b>, {fragment}{accType}"]
    return "".join(indent + line + "\n" for line in lines)


text, count = product.subn(halves, text)
if count != 1:
    sys.exit(f"{count} products of K; expected 1")
sys.stdout.write(text)
