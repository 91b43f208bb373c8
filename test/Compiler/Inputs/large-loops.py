"""Writes a module in which words stand for what is repeated, COUNT times.

Usage: large-loops.py FILE COUNT

    SCALARS, VECTORS   loads of numbers that all lanes have in common, or not
    LARGE, LARGE2      what the first and the second loop do with each of them
    LANES to LANES3    a store where the bits of a lane's number say
"""

import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
count = int(sys.argv[2])


def repeat(form):
    return "\n".join(form.replace("#", str(i)) for i in range(count))


def large(loop):
    return repeat(f"%v#_{loop or 1} = llvm.xor %turn{loop}, %s# : i32\n"
                  f"llvm.store volatile %v#_{loop or 1}, %p : i32, !llvm.ptr<1>")


def lanes(loop):
    return "\n".join([f"%a{loop} = llvm.and %lane, %c19 : i32",
                      f"%b{loop} = llvm.shl %a{loop}, %one : i32",
                      f"%c{loop} = llvm.and %lane, %c4 : i32",
                      f"%d{loop} = llvm.shl %c{loop}, %three : i32",
                      f"%e{loop} = llvm.or %b{loop}, %d{loop} : i32",
                      f"%f{loop} = llvm.and %lane, %c8 : i32",
                      f"%g{loop} = llvm.or %e{loop}, %f{loop} : i32",
                      f"%h{loop} = llvm.getelementptr %p[%g{loop}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32",
                      f"llvm.store volatile %n, %h{loop} : i32, !llvm.ptr<1>"])


words = {
    "SCALARS": repeat("%at# = llvm.getelementptr %q[#] : (!llvm.ptr<4>) -> !llvm.ptr<4>, i32\n"
                      "%s# = llvm.load %at# invariant : !llvm.ptr<4> -> i32"),
    "VECTORS": repeat("%s# = llvm.load volatile %q : !llvm.ptr<1> -> i32"),
    "LARGE": large(""), "LARGE2": large("2"),
    "LANES": lanes(""), "LANES2": lanes("2"), "LANES3": lanes("3")}
print(re.sub("|".join(rf"\b{word}\b" for word in words), lambda m: words[m[0]], text))
