# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""One small kernel for each rule about mbarriers, bulk copies, fences between
the proxies, asynchronous products and registers: as it should be, and broken.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from hopper import Kernel, Runner

runner = Runner(sys.argv[1:])
BOX = 64 * 64 * 2  # bytes of the box that `tile` describes


def tile(count=64 * 64, box="64x64", dims="64x64", swizzle=128, size=2):
    return [f"buf:bf16:{count}:mod=61", f"map:0:{size}:{dims}:{box}:{swizzle}"]


def kernel(threads=128, **more):
    """A kernel with a buffer, a tensor map of it, and one mbarrier."""
    k = Kernel(threads=threads, **more)
    k.input, k.tile, k.full = k.buffer(), k.map(), k.mbarrier()
    return k


def copy(k, at=0, where=(0, 0), bytes=BOX):
    def body():
        k.expect(k.full, bytes)
        k.load_box(k.at(at), k.tile, k.full, where)
    k.once(body)


def loaded(threads=128, at=0):
    """A kernel that has copied the tile to shared byte `at` and waited for it."""
    k = kernel(threads)
    k.setup((k.full, 1))
    copy(k, at)
    k.wait(k.full, 0)
    return k


def matrix(k):
    """The descriptor of the tile at shared byte 0."""
    return k.descriptor(k.at(0), 16, 1024, 128)


def read(k, at=0):
    return k.load(k.at(k.bin("add", k.bin("mul", k.tid, 4), at)), space=3)


def write(k, at=0):
    k.store(k.tid, k.at(k.bin("add", k.bin("mul", k.tid, 4), at)), space=3)


failed = []


def check_all(build, good, faults, args=None):
    """`build` with `good` runs clean; with each key of `faults` it fails as the
    pattern, or the patterns, of the key say."""
    args = args or tile()
    case = good
    try:
        code, _, messages = runner.run(build(good), args)
        assert code == 0, f"a fault in what is good: {messages}"
        for case, patterns in faults.items():
            runner.bad(build(case), args, *((patterns,) if isinstance(patterns, str) else patterns))
    except AssertionError as e:
        failed.append(f"{build.__name__}({case}): {e}")


def check(build, good, bad, *patterns, args=None):
    """The same for one fault."""
    check_all(build, good, {bad: patterns}, args)


#===----------------------------------------------------------------------===#
# mbarriers
#===----------------------------------------------------------------------===#


def arrivals(count):
    """128 threads arrive at an mbarrier for `count`."""
    k = kernel()
    k.setup((k.full, count))
    k.arrive(k.full)
    k.wait(k.full, 0)
    return k


check_all(arrivals, 128, {
    129: r"'nvvm.mbarrier.try_wait.parity' by warp 0 .*: waits for parity 0 of the mbarrier at "
         r"shared byte 0xfff8 \(phase 0: 128 of 129 arrivals\), and nothing can go on",
    0: r"'nvvm.mbarrier.init' by thread 0 .*: an mbarrier for 0 arrivals; 1 to 1048575 are possible",
    1 << 20: "an mbarrier for 1048576 arrivals; 1 to 1048575 are possible",
})


def over_count(count):
    k = kernel(threads=32)
    k.setup((k.full, 4))

    def body():
        k.op(f"nvvm.mbarrier.arrive {k.full}, {k.const(count)} : !llvm.ptr<3>, i32 -> i64".replace(
            ": !llvm.ptr<3>, i32", ": !llvm.ptr<3>"))
        k.op(f"nvvm.mbarrier.arrive.nocomplete {k.full}, {k.const(1)} : !llvm.ptr<3>, i32 -> i64")
    k.once(body)
    return k


check_all(over_count, 2, {
    5: r"'nvvm.mbarrier.arrive' by thread 0 .*: arrives 5 times at the mbarrier at shared byte "
       r"0xfff8, more than it awaits \(phase 0: 0 of 4 arrivals\)",
    3: r"'nvvm.mbarrier.arrive.nocomplete' .*: must not complete the phase of the mbarrier at shared "
       "byte 0xfff8, but is its last arrival",
})


def states(late):
    """Waits for the state that an arrival returned; arrive_drop."""
    k = kernel(threads=64)
    k.setup((k.full, 2))

    def body():
        state = k.arrive(k.full)
        k.emit(f"llvm.br ^poll")
        k.block("poll")
        done = k.op(f"nvvm.mbarrier.test.wait {k.full}, {state} : !llvm.ptr<3>, i64 -> i1")
        k.emit(f"llvm.cond_br {done}, ^over, ^poll")
        k.block("over")
    k.once(body)

    def other():
        k.op(f"nvvm.mbarrier.arrive_drop {k.full} : !llvm.ptr<3> -> i64")
        k.wait(k.full, 0)
        if late:
            k.arrive(k.full)  # only one arrival is awaited now
            k.arrive(k.full)
            k.wait(k.full, 1)
            k.wait(k.full, 0)
            k.wait(k.full, 1)
    k.branch(k.cmp("eq", k.tid, 32), other)
    return k


check(states, False, True, r"'nvvm.mbarrier.try_wait.parity' by warp 1 .*: waits for parity 1 of the mbarrier at "
      r"shared byte 0xfff8 \(phase 3: 0 of 1 arrivals\), and nothing can go on")


def uninitialised(op):
    k = kernel(threads=32)
    k.once(lambda: (k.init(k.full, 1), k.fence_init()))
    other = k.at(128)
    at = other if op else k.full
    k.once(lambda: (k.arrive(at) if op != "wait" else k.wait(at, 0)))
    return k


check_all(uninitialised, "", {
    "arrive": r"'nvvm.mbarrier.arrive' .*: arrives at shared byte 0x80, where there is no "
              "initialised mbarrier",
    "wait": r"'nvvm.mbarrier.try_wait.parity' .*: waits for shared byte 0x80, where there is no "
            "initialised mbarrier",
})


def invalidated(when):
    k = kernel(threads=32)
    inval = lambda: k.emit(f"nvvm.mbarrier.inval {k.full} : !llvm.ptr<3>")

    def body():
        k.init(k.full, 2)
        k.arrive(k.full)
        if when == "within":
            inval()
        k.arrive(k.full)
        if when != "never":
            inval()
        k.init(k.full, 1)
    k.once(body)
    return k


check_all(invalidated, "after", {
    "within": (r"'nvvm.mbarrier.inval' .*: invalidates the mbarrier at shared byte 0xfff8 "
               r"within a phase \(phase 0: 1 of 2 arrivals\)",
               "note: 'nvvm.mbarrier.init': its initialisation"),
    "never": r"'nvvm.mbarrier.init' .*: initialises the mbarrier at shared byte 0xfff8, which "
             r"is in use \(phase 1: 0 of 2 arrivals\)",
})


def own_bytes(access):
    """Accesses to the bytes of an mbarrier."""
    k = kernel(threads=32)
    k.setup((k.full, 1))

    def body():
        if access == "store":
            k.store(k.const(0), k.full, space=3)
        if access == "load":
            k.load(k.full, space=3)
    k.once(body)
    return k


check_all(own_bytes, "", {
    "store": (r"'llvm.store' .*: writes shared byte 0xfff8, a part of an mbarrier in use",
              "note: 'nvvm.mbarrier.init': its initialisation"),
    "load": r"'llvm.load' .*: reads shared byte 0xfff8, a part of an mbarrier in use",
})


def order(parity):
    """What an arrival releases, a wait acquires."""
    k = kernel(threads=64)
    k.setup((k.full, 32))

    def first():
        write(k)
        k.arrive(k.full)

    def second():
        k.wait(k.full, parity)
        k.load(k.at(k.bin("mul", k.lane, 4)), space=3)
    k.branch(k.cmp("ult", k.tid, 32), first, second)
    return k


# Parity 1 is that of the phase before the first: it never waits.
check(order, 0, 1, r"'llvm.load' by thread \d+ .*: (shared-memory race: read of shared byte 0x0 with no barrier after "
      "the write by warp 0|reads shared byte 0x0, which nothing has written)|waits for parity 1 of the mbarrier")


def later(relation):
    """Only what precedes the arrival is released by it."""
    k = kernel(threads=64)
    k.setup((k.full, 32))

    def first():
        if relation == "before":
            write(k)
        k.arrive(k.full)
        if relation == "after":
            write(k)

    def second():
        k.wait(k.full, 0)
        k.load(k.at(k.bin("mul", k.lane, 4)), space=3)
    k.branch(k.cmp("ult", k.tid, 32), first, second)
    return k


check(later, "before", "after", r"(read|write) of shared byte 0x\w+ with no barrier after the (write|read) by warp|"
      "which nothing has written")


def late(case):
    """A warp that looks for a parity only when so many phases are over."""
    phases, parity = case
    k = kernel(threads=64)
    go = k.mbarrier()
    k.setup((k.full, 1), (go, 1))

    def first():
        for i in range(phases):
            k.arrive(k.full)
            k.wait(k.full, i & 1)
        k.arrive(go)

    def second():
        k.wait(go, 0)
        k.wait(k.full, parity)
    k.branch(k.cmp("eq", k.tid, 0), first, lambda: k.branch(k.cmp("eq", k.tid, 32), second))
    return k


check(late, (3, 0), (3, 1), r"'nvvm.mbarrier.try_wait.parity' by (warp 1|thread 32) .*: waits for parity 1 of the "
      r"mbarrier at shared byte 0xfff8 \(phase 3: 0 of 1 arrivals\), and nothing can go on")
check(late, (1, 0), (2, 0), r"'nvvm.mbarrier.try_wait.parity' by thread 32 .*: waits for phase 0 of the mbarrier at "
      "shared byte 0xfff8, but phase 1 has completed already: the parity does not tell them apart",
      "note: 'nvvm.mbarrier.arrive': its last arrival")

#===----------------------------------------------------------------------===#
# Bulk copies
#===----------------------------------------------------------------------===#


def landing(waits):
    k = kernel()
    k.setup((k.full, 1))
    copy(k)
    if waits:
        k.wait(k.full, 0)
    read(k)
    if not waits:
        k.wait(k.full, 0)
    return k


check(landing, True, False, r"'llvm.load' by thread \d+ .*: reads shared byte 0x\w+: read of bytes an asynchronous "
      "copy still owes", "note: 'nvvm.cp.async.bulk.tensor.shared.cluster.global': the copy, by the copy engine, for "
      "the mbarrier at shared byte 0xfff8")


def nobody(waits):
    k = kernel()
    k.setup((k.full, 1))
    copy(k)
    if waits:
        k.wait(k.full, 0)
    return k


check(nobody, True, False, r"'nvvm.cp.async.bulk.tensor.shared.cluster.global' by thread 0 .*: still in flight when "
      r"the block ends: nothing waited for the mbarrier at shared byte 0xfff8 \(phase 0: 1 of 1 arrivals, 8192 bytes "
      r"awaited, 8192 in flight\)")


def reuse(between):
    """A copy onto bytes that other warps have read."""
    k = kernel()
    again = k.mbarrier()
    k.setup((k.full, 1), (again, 128))
    copy(k)
    k.wait(k.full, 0)
    read(k)
    if between == "barrier":
        k.sync()
    if "mbarrier" in between:
        # What an arrival says of loads is not said to the copy engine.
        if "fence" in between:
            k.fence_proxy()
        k.arrive(again)
        k.wait(again, 0)
    copy(k)
    k.wait(k.full, 1)
    return k


check(reuse, "mbarrier, fence", "mbarrier",
      r"the asynchronous proxy writes shared byte 0x\w+ with no 'nvvm.fence.proxy' after the "
      r"generic read by warp \d", "note: 'llvm.load': the read by warp")
for between in ("barrier", "mbarrier, fence"):
    check(reuse, between, "", r"shared-memory race: write of shared byte 0x\w+ with no barrier after the read by warp "
          r"\d|read of bytes an asynchronous copy still owes|the parity does not tell")


def overwrite(fenced):
    """A copy onto bytes that this thread's block has written."""
    k = kernel()
    k.setup((k.full, 1))
    write(k)
    if fenced:
        k.fence_proxy()
    k.sync()
    copy(k)
    k.wait(k.full, 0)
    return k


check(overwrite, True, False, r"the asynchronous proxy writes shared byte 0x0 with no 'nvvm.fence.proxy' after the "
      "generic write by warp 0", "note: 'llvm.store': the write by warp 0")


def fence_order(where):
    """The fence may be on either side of the barrier, but between the accesses."""
    k = kernel()
    if where == "before":
        k.fence_proxy()
    write(k)
    if where == "writer":
        k.fence_proxy()
    k.sync()
    if where == "reader":
        k.fence_proxy()
    k.once(lambda: (k.store_box(k.tile, k.at(0), (0,)), k.commit(), k.wait_stores()))
    return k


out = ["buf:i32:128:uninit", "map:0:4:128:128:0"]
for where in ("writer", "reader"):
    check(fence_order, where, "", r"'nvvm.cp.async.bulk.tensor.global.shared.cta' by .*: the asynchronous proxy reads "
          r"shared byte 0x\w+ with no 'nvvm.fence.proxy' after the generic write by warp \d", args=out)
check(fence_order, "writer", "before", "with no 'nvvm.fence.proxy' after the generic write by warp", args=out)


def one_copy(at):
    return loaded(at=at)


check_all(one_copy, 128, {
    64: r"misaligned: shared byte 0x40 needs an alignment of 128",
    61440: r"out of bounds: a box of 8192 bytes at shared byte 0xf000; the block has 65536",
})
for bad, why in ((dict(dims="64x65", box="64x65"), r"out of bounds: reads 128 bytes at offset 8192 of buffer 'arg0' \(8192 bytes\)"),
                 (dict(box="64x257", dims="64x64"), "the box in dimension 1 is 257; 1 to 256 are possible"),
                 (dict(box="65x64", swizzle=0), "a box row of 130 bytes, no multiple of 16"),
                 (dict(swizzle=64), "a box row of 128 bytes does not fit the swizzle of 64"),
                 (dict(swizzle=48), "a swizzle of 48 bytes; 0, 32, 64 or 128 are possible"),
                 (dict(size=3), "elements of 3 bytes; 1, 2, 4 or 8 are possible"),
                 (dict(dims="64", box="64", size=2), "it has 1 dimensions, and 2 coordinates are given"),
                 (dict(dims="64x64", size=2, box="64x0"), "the box in dimension 1 is 0; 1 to 256 are possible")):
    runner.bad(one_copy(0), tile(**bad), why)
runner.bad(one_copy(0), [tile()[0], "map:0:2:64x64:64x64:128:72"], "the stride of dimension 1 is 72 bytes; multiples of "
           r"16 below 2\^40 are possible")
runner.bad(one_copy(0), ["buf:bf16:4096:uninit", tile()[1]], r"reads 128 bytes at offset 0 of buffer 'arg0' .*some of "
           "which nothing has written")


def unannounced(expects):
    k = kernel()
    k.setup((k.full, 1))

    def body():
        k.load_box(k.at(0), k.tile, k.full, (0, 0))
        k.expect(k.full, BOX) if expects else k.arrive(k.full)
    k.once(body)
    k.wait(k.full, 0)
    return k


check(unannounced, True, False, r"'nvvm.mbarrier.arrive' by warp 0 .*: the mbarrier at shared byte 0xfff8 awaits 0 "
      r"bytes, but copies of 8192 are in flight \(phase 0\)", "note: 'nvvm.cp.async.bulk.tensor.shared.cluster.global': "
      "a copy")

#===----------------------------------------------------------------------===#
# cp.async that an mbarrier awaits
#===----------------------------------------------------------------------===#


def cp_async(fault):
    """Producer warps copy 16 bytes a lane, consumers multiply the tile."""
    k = kernel(threads=256)
    k.setup((k.full, 128))

    def produce():
        for i in range(4):
            at = k.bin("add", k.bin("mul", k.bin("and", k.tid, 127), 16), 2048 * i)
            source = k.element(k.input, k.bin("lshr", at, 1), "bf16")
            k.emit(f"nvvm.cp.async.shared.global {k.at(at)}, {source}, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>")
        if fault == "arrives at once":
            k.arrive(k.full)
        else:
            noinc = "" if fault == "one more" else " {noinc = true}"
            k.emit(f"nvvm.cp.async.mbarrier.arrive {k.full}{noinc} : !llvm.ptr<3>")

    def consume():
        k.wait(k.full, 0)
        if fault != "no fence":
            k.fence_proxy()
        d = matrix(k)
        k.wgmma_wait(k.wgmma(64, d, [0], a=d, a_steps=[0]))
    k.branch(k.cmp("ult", k.tid, 128), consume, produce)
    return k


check_all(cp_async, "", {
    "no fence": (r"'kvbuffer.wgmma' by warp \d .*: the asynchronous proxy reads shared byte 0x\w+ with no "
                 "'nvvm.fence.proxy' after the generic write by cp.async for the mbarrier at shared byte 0xfff8",
                 "note: 'nvvm.cp.async.shared.global'"),
    "arrives at once":
        r"'kvbuffer.wgmma' by warp \d .*: reads shared byte 0x\w+: read of bytes an "
        "asynchronous copy still owes",
    "one more": r"waits for parity 0 of the mbarrier at shared byte 0xfff8 \(phase 0: .* of 128 "
                r"arrivals, 128 due from cp.async\), and nothing can go on",
})

#===----------------------------------------------------------------------===#
# Products
#===----------------------------------------------------------------------===#


def product(fault):
    k = loaded()
    d = matrix(k)
    if fault == "lanes":
        d = k.bin("add", d, k.op(f"llvm.zext {k.bin('and', k.lane, 1)} : i32 to i64"), "i64")
    if fault == "reserved":
        d = k.bin("or", d, 1 << 46, "i64")
    if fault == "beyond":
        d = k.bin("add", d, (65536 - 1024) // 16, "i64")
    s = k.wgmma(64, d, [0, 2], a=d, a_steps=[0, 2])
    if fault == "accumulates onto another":
        s = k.wgmma(64, d, [0], a=d, a_steps=[0], c=s[::-1])
    if fault == "operand in flight":
        words = [k.op(f"llvm.bitcast {x} : vector<4xf32> to vector<4xi32>") for x in s[:1]]
        words = [k.op(f"llvm.shufflevector {words[0]}, {words[0]} [{i}] : vector<4xi32>") for i in range(4)]
        s = k.wgmma(64, d, [0], registers=words)
    k.wgmma_wait(s)
    return k


check_all(product, "", {
    "lanes": r"'kvbuffer.wgmma' by warp \d .*: the lanes of the warp have different descriptors",
    "reserved": r"reserved bits are set in the descriptor \d+",
    "beyond": r"out of bounds: the descriptor leads to shared byte 0x10000; the block has 65536|"
              "which nothing has written",
    "accumulates onto another": (r"accumulates onto other registers of a product in flight",
                                 "note: 'kvbuffer.wgmma': the product"),
    "operand in flight":
        r"operand a is the result of a product in flight",
})


def through_nvvm(fault):
    n, struct = 8, "!llvm.struct<(f32, f32, f32, f32)>"
    k = loaded()
    d = matrix(k)
    if fault != "no fence":
        k.emit("nvvm.wgmma.fence.aligned")
    acc = k.op(f"llvm.mlir.undef : {struct}")
    for s in range(2):
        acc = k.op(f"nvvm.wgmma.mma_async {d}, {d}, {acc}, <m = 64, n = {n}, k = 16>, "
                   f"D [<f32>, #nvvm.wgmma_scale_out<{'one' if s else 'zero'}>], "
                   f"A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], "
                   f"B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : {struct} -> {struct}")
    if fault != "not committed":
        k.emit("nvvm.wgmma.commit.group.sync.aligned")
    use = lambda: k.op(f"llvm.fneg {k.op(f'llvm.extractvalue {acc}[1] : {struct}')} : f32")
    if fault == "read before the wait":
        use()
    k.emit("nvvm.wgmma.wait.group.sync.aligned " + ("1" if fault == "waits for too few" else "0"))
    use()
    k.emit("nvvm.wgmma.wait.group.sync.aligned 0")
    return k


for fault in ("read before the wait", "waits for too few", "not committed"):
    check(through_nvvm, "", fault, r"'llvm.fneg' by thread \d+ .*: reads the result of a product that may still be in "
          "flight", "note: 'nvvm.wgmma.mma_async': the product")
check(through_nvvm, "", "no fence", r"'nvvm.wgmma.mma_async' by warp \d .*: no 'nvvm.wgmma.fence.aligned' between earlier "
      "accesses of its registers and it")


def small_block(threads):
    k = loaded(threads)
    d = matrix(k)
    k.wgmma_wait(k.wgmma(8, d, [0], a=d, a_steps=[0]))
    return k


check(small_block, 128, 96, "warpgroup 0 has fewer than 4 warps")


def around_the_loop(_):
    """A product in flight across the back edge, waited for at the loop's top."""
    k = loaded()
    d = matrix(k)
    start = k.wgmma(8, d, [0], a=d, a_steps=[0])[0]
    zero, one = k.const(0), k.const(1)
    k.emit(f"llvm.br ^top({zero}, {start} : i32, vector<4xf32>)")
    k.lines.append("  ^top(%i: i32, %s: vector<4xf32>):")
    done = k.wgmma_wait(["%s"])
    k.op(f"llvm.fneg {done[0] if _ == 'good' else '%s'} : vector<4xf32>")
    following = k.wgmma(8, d, [0], a=d, a_steps=[0], c=done)[0]
    i = k.bin("add", "%i", one)
    k.emit(f"llvm.cond_br {k.cmp('slt', i, 3)}, ^top({i}, {following} : i32, vector<4xf32>), ^end")
    k.block("end")
    k.wgmma_wait([following])
    return k


check(around_the_loop, "good", "bad", r"'llvm.fneg' by thread \d+ .*: reads the result of a product past the wait, not "
      "what the wait handed out")

#===----------------------------------------------------------------------===#
# Registers
#===----------------------------------------------------------------------===#


def registers(plan):
    """Each warpgroup's sequence of counts; 384 threads have 168 at entry."""
    k = Kernel(threads=384, attributes=", nvvm.maxntid = array<i32: 384>")
    k.buffer(), k.map()
    group = k.bin("lshr", k.tid, 7)
    for g, counts in enumerate(plan):
        def body():
            for n in counts:
                k.emit(f"nvvm.setmaxregister {'increase' if n > 0 else 'decrease'} {abs(n)}")
        k.branch(k.cmp("eq", group, g), body)
    return k


fits = ((-24,), (240,), (240,))
check_all(registers, fits, {
    ((-40,), (240,), (240,)):
        r"'nvvm.setmaxregister' by warp \d+ .*: waits for 2304 registers, of "
        r"which \d+ are free, and nothing can go on",
    ((-176,), (), ()):
        "decreases to 176 registers, but the lane has 168",
    ((160,), (), ()):
        "increases to 160 registers, but the lane has 168",
})
check(registers, ((-24, 168), (-24, 168), ()), ((-24,), (240, 248), (240,)), r"waits for \d+ registers, of which \d+ are "
      "free, and nothing can go on")


def part_of_a_group(warps):
    k = Kernel(threads=128, attributes=", nvvm.maxntid = array<i32: 128>")
    k.buffer(), k.map()
    k.branch(k.cmp("ult", k.warp, warps), lambda: k.emit("nvvm.setmaxregister decrease 40"))
    return k


check(part_of_a_group, 4, 3, r"'nvvm.setmaxregister' by warp 0 .*: executed by 3 of the 4 warps of warpgroup 0")
assert not failed, "\n".join(failed)
print("good")
