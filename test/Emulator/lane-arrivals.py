# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""A lane that arrives at an mbarrier tells nothing of the other lanes of its warp, unless
they have met before. Two warps: the first one reads (or writes) words of shared memory and
arrives, the second one waits and writes (or reads) the same words.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from hopper import Kernel, Runner

runner = Runner(sys.argv[1:])


def kernel(arrive, writes=False, box=False, back=False):
    """`arrive`: "all" lanes, lane 0 "alone", lane 0 "met" by the others before it, or lanes 0
    and 16, each having met its "half"; "read again" behind the meeting, before lane 0
    arrives. The second warp copies a `box`, or accesses words plainly. `back`: it has
    arrived at a barrier of the block as well, by which all is known."""
    k = Kernel(threads=64)
    if box:
        k.input, k.tile, k.loaded = k.buffer(), k.map(), k.mbarrier()
    k.empty = k.mbarrier()
    k.setup((k.empty, {"all": 32, "half": 2}.get(arrive, 1)), *([(k.loaded, 1)] if box else []))
    own = k.at(k.bin("mul", k.lane, 4))

    def access(write):
        if write:
            k.store(k.tid, own, space=3)
        else:
            k.load(own, space=3)
    if not writes:
        k.once(lambda: [k.store(k.tid, k.at(4 * l), space=3) for l in range(32)])
        k.sync()

    def first():
        access(writes)
        if box:
            k.fence_proxy()
        if arrive == "all":
            k.arrive(k.empty)
            return
        if arrive in ("met", "read again"):
            k.emit(f"nvvm.bar.warp.sync {k.const(-1)} : i32")
        if arrive == "read again":
            access(writes)
        if arrive == "half":
            low = k.cmp("ult", k.lane, 16)
            k.branch(low, lambda: k.emit(f"nvvm.bar.warp.sync {k.const(0xFFFF)} : i32"),
                     lambda: k.emit(f"nvvm.bar.warp.sync {k.const(0xFFFF0000 - 2**32)} : i32"))
            k.branch(k.cmp("eq", k.bin("and", k.lane, 15), 0), lambda: k.arrive(k.empty))
            return
        k.branch(k.cmp("eq", k.lane, 0), lambda: k.arrive(k.empty))

    def second():
        k.wait(k.empty, 0)
        if box:
            def copy():
                k.expect(k.loaded, 64 * 64 * 2)
                k.load_box(k.at(0), k.tile, k.loaded, (0, 0))
            k.branch(k.cmp("eq", k.lane, 0), copy)
            k.wait(k.loaded, 0)
        elif not back:
            access(not writes)
    k.branch(k.cmp("eq", k.warp, 0), first, second)
    if back:
        k.sync()
        k.branch(k.cmp("eq", k.warp, 1), lambda: access(not writes))
    return k


RACE = (r"shared-memory race: {} of shared byte 0x4 .*after the {} by lane 1 of warp 0, 'llvm.{}'.*, "
        "for which another lane arrived with no 'nvvm.bar.warp.sync'")
READ, WRITTEN = RACE.format("write", "read", "load"), RACE.format("read", "write", "store")
BOX = ["buf:bf16:4096:mod=61", "map:0:2:64x64:64x64:128"]

for arrive in ("all", "met", "half"):
    for more in ({}, {"writes": True}, {"box": True}):
        code, _, messages = runner.run(kernel(arrive, **more), BOX if "box" in more else [])
        assert code == 0 and not messages, (arrive, more, messages)
for arrive in ("alone", "read again"):
    runner.bad(kernel(arrive), [], READ)
    runner.bad(kernel(arrive, writes=True), [], WRITTEN)
    code, _, messages = runner.run(kernel(arrive, back=True), [])
    assert code == 0 and not messages, (arrive, messages)
runner.bad(kernel("alone", box=True), BOX, r"'nvvm.cp.async.bulk.tensor.*" + READ)
