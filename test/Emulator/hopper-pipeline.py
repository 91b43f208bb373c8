# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""A kernel with warp roles: a producer warpgroup keeps a ring of tiles filled,
two consumer warpgroups multiply, and the result leaves through shared memory.
Whole it is clean and right, for every landing; each planted fault is found.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from hopper import Kernel, Runner

runner = Runner(sys.argv[1:])
N, K, TILES, STAGES = 64, 64, 5, 2
A_BYTES, B_BYTES, OUT_BYTES = 64 * K * 2, N * K * 2, 64 * N * 4
AT_A, AT_B, AT_OUT = 0, 2 * A_BYTES, 2 * A_BYTES + STAGES * B_BYTES
# Named barriers.
STAGED = 1


def pipeline(fault="", poll=False, overlap=False):
    """`fault` names what is wrong. `poll`: waits are loops of tests. `overlap`:
    two products are in flight at a time."""
    is_ = lambda *names: fault in names
    k = Kernel(threads=384, shared=128 * 1024,
               attributes=", nvvm.maxntid = array<i32: 384>")
    k.buffer(), k.buffer(), k.buffer()
    map_a, map_b, map_out = k.map(), k.map(), k.map()
    q_full = k.mbarrier()
    full = [k.mbarrier() for _ in range(STAGES)]
    empty = [k.mbarrier() for _ in range(STAGES)]

    def init():
        k.init(q_full, 1)
        for s in range(STAGES):
            k.init(full[s], 1)
            k.init(empty[s], 3 if is_("too many releases awaited") else
                   1 if is_("too few releases awaited") else 2)
        if is_("initialised twice"):
            k.init(q_full, 1)
        if not is_("no fence after init"):
            k.fence_init()
    k.once(init)
    if not is_("no barrier after init"):
        k.sync()

    full_base, empty_base = full[STAGES - 1], empty[STAGES - 1]

    def slot_of(base, i):  # mbarriers lie downwards
        s = k.bin("sub", STAGES - 1, k.bin("and", i, STAGES - 1))
        return k.op(f"llvm.getelementptr {base}[{s}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64")

    def parity_of(i, flip=0):
        return k.bin("xor", k.bin("and", k.bin("lshr", i, 1), 1), flip)

    def wait(mbarrier, parity):
        if not poll:
            return k.wait(mbarrier, parity)
        k.labels += 1
        n = k.labels
        parity = k.const(parity)
        k.emit(f"llvm.br ^poll{n}")
        k.block(f"poll{n}")
        op = "try_wait" if poll == "try_wait" else "test.wait"
        done = k.op(f"nvvm.mbarrier.{op} {mbarrier}, {parity} : !llvm.ptr<3>, i32 -> i1")
        k.emit(f"llvm.cond_br {done}, ^go{n}, ^poll{n}")
        k.block(f"go{n}")

    def produce():
        if not is_("registers not given back"):
            k.emit("nvvm.setmaxregister decrease 24")

        def alone():
            k.expect(q_full, 2 * A_BYTES)
            for half in range(2):
                k.load_box(k.at(AT_A + half * A_BYTES), map_a, q_full, (0, 64 * half))

            def fill(i):
                if not is_("no wait for empty"):
                    wait(slot_of(empty_base, i), parity_of(i, 0 if is_("wrong parity of empty") else 1))
                mbarrier = slot_of(full_base, i)
                bytes = B_BYTES + {"expects too few bytes": -16, "expects too many bytes": 16}.get(fault, 0)
                if not is_("no expect_tx"):
                    k.expect(mbarrier, bytes)
                else:
                    k.arrive(mbarrier)
                to = k.bin("add", k.bin("mul", k.bin("and", i, STAGES - 1), B_BYTES), AT_B)
                if is_("misaligned box"):
                    to = k.bin("add", to, 16)
                k.load_box(k.at(to), map_b, mbarrier, (0, k.bin("mul", i, N)))
            k.loop(TILES - 1 if is_("a tile is missing") else
                   TILES + 1 if is_("a tile too many") else TILES, fill)
        k.branch(k.cmp("eq", k.tid, 256), alone)

    def consume():
        k.emit("nvvm.setmaxregister increase " + ("160" if is_("increases to less") else "240"))
        group = k.bin("lshr", k.tid, 7)
        wait(q_full, 0)
        address = k.at(k.bin("add", k.bin("mul", group, A_BYTES), AT_A))
        desc_a = k.descriptor(address, 16, 1024, 128)
        b_at_0 = k.at(AT_B)
        first = k.descriptor(b_at_0, 16, 1024, 128)
        steps = [0, 2, 4, 6]
        leader = k.cmp("eq", k.bin("and", k.tid, 127), 0)
        zero = k.op("llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>")
        n = k.labels = k.labels + 1
        names = [f"%acc{i}" for i in range(N // 8)]
        types = ", ".join(["vector<4xf32>"] * len(names))
        i0, one, tiles = k.const(0), k.const(1), k.const(TILES)
        k.emit(f"llvm.br ^tile{n}({', '.join([i0] + [zero] * len(names))} : i32, {types})")
        k.lines.append(f"  ^tile{n}(%t: i32, {', '.join(f'{x}: vector<4xf32>' for x in names)}):")
        if not is_("no wait for full"):
            wait(slot_of(full_base, "%t"), parity_of("%t"))
        step = k.bin("mul", k.bin("and", "%t", STAGES - 1), B_BYTES // 16)
        desc_b = k.bin("add", first, k.op(f"llvm.zext {step} : i32 to i64"), "i64")
        release = lambda: k.branch(leader, lambda: k.arrive(slot_of(empty_base, "%t")))

        def product(c):
            return k.wgmma(N, desc_b, steps, a=desc_a, a_steps=steps, c=c)
        if is_("divergent product"):
            low = k.cmp("ult", k.lane, 16)
            k.branch(low, lambda: product(names))
        if is_("three warps multiply"):
            k.branch(k.cmp("ne", k.warp, 3), lambda: k.wgmma_wait(product(names)))
        if is_("different descriptors"):
            other = k.op(f"llvm.zext {k.bin('mul', k.warp, 64)} : i32 to i64")
            desc_b = k.bin("add", desc_b, other, "i64")
        s = product(names)
        if overlap:  # twice the same, on accumulators of their own
            u = product([zero] * len(names))
            s = k.wgmma_wait(s, 1)
            u = k.wgmma_wait(u)
            minus = [k.op(f"llvm.fsub {x}, {y} : vector<4xf32>") for x, y in zip(s, u)]
            s = [k.op(f"llvm.fadd {x}, {y} : vector<4xf32>") for x, y in zip(minus, u)]
        if is_("released too early"):
            release()
        if is_("operand overwritten"):
            index = k.bin("add", k.bin("mul", k.bin("and", "%t", STAGES - 1), B_BYTES), AT_B)
            k.branch(leader, lambda: k.store(k.const(0), k.at(index), space=3))
        if is_("result read too early"):
            k.op(f"llvm.fadd {s[0]}, {s[0]} : vector<4xf32>")
        if is_("result of another group"):
            other = product([zero] * len(names))
            s = k.wgmma_wait(s + other, 1)[:len(s)]
            k.wgmma_wait(other)
        elif not overlap:
            waited = k.wgmma_wait(s[:-1] if is_("result not handed out") else s)
            s = waited + s[len(waited):]
        if is_("result dropped"):
            product(names)
            k.wgmma_wait(names[:1])
        if not is_("released too early", "never released"):
            release()
        following = k.bin("add", "%t", one)
        more = k.cmp("slt", following, tiles)
        k.emit(f"llvm.cond_br {more}, ^tile{n}({', '.join([following] + s)} : i32, {types}), ^tiles{n}")
        k.block(f"tiles{n}")

        # The result through shared memory: row-major, fp32.
        out = k.at(k.bin("add", k.bin("mul", group, OUT_BYTES), AT_OUT))
        warp = k.bin("and", k.warp, 3)
        row = k.bin("add", k.bin("lshr", k.lane, 2), k.bin("mul", warp, 16))
        start = k.bin("add", k.bin("mul", row, N), k.bin("mul", k.bin("and", k.lane, 3), 2))
        for i in range(N // 2):
            x = k.op(f"llvm.extractelement {s[i // 4]}[{k.const(i % 4)} : i32] : vector<4xf32>")
            k.store(x, out, "f32", k.bin("add", start, 8 * N * (i // 2 % 2) + 8 * (i // 4) + i % 2), 3)
        if not is_("no proxy fence"):
            k.fence_proxy()
        barrier = k.bin("add", group, STAGED)
        count = k.const(128)
        if is_("barrier counts differ"):
            count = k.op(f"llvm.select {k.cmp('eq', warp, 0)}, {k.const(96)}, {count} : i1, i32")
        if not is_("no barrier before the store"):
            k.emit(f"nvvm.barrier id = {barrier} number_of_threads = {count}")

        def store():
            k.store_box(map_out, out, (0, k.bin("mul", group, 64)))
            if not is_("no commit"):
                k.commit()
            if not is_("no wait for the store", "source overwritten"):
                k.wait_stores()
            if is_("source overwritten"):
                k.store(k.const(0), out, space=3)
                k.wait_stores()
        k.branch(leader, store)

        def after():  # another warp writes the source while it may be read
            k.store(k.const(0), out, space=3)
        if is_("source overwritten by another warp"):
            k.branch(k.cmp("eq", k.bin("and", k.tid, 127), 64), after)
    k.branch(k.cmp("ult", k.tid, 256), consume, produce)
    return k


def args(rows=TILES * N):
    return [f"buf:bf16:{128 * K}:mod=61", f"buf:bf16:{rows * K}:mod=53", f"buf:f32:{128 * N}:uninit",
            f"map:0:2:{K}x128:{K}x64:128", f"map:1:2:{K}x{rows}:{K}x{N}:128", f"map:2:4:{N}x128:{N}x64:0"]


def a_at(m, k):
    return (m * K + k) % 61


def b_at(t, n, k):
    return ((t * N + n) * K + k) % 53


WANT = [sum(a_at(m, k) * sum(b_at(t, n, k) for t in range(TILES)) for k in range(K))
        for m in range(128) for n in range(N)]

for options in ("{}", '{"landing":"random","seed":3}', '{"landing":"random","seed":4}', '{"landing":"eager"}',
                '{"seed":5}', '{"portable":true,"seed":6}'):
    for poll in (False, "try_wait", "test.wait"):
        got = runner.good(pipeline(poll=poll), args(), 2, [f"--options={options}"])
        assert got == WANT, (options, poll)
assert runner.good(pipeline(overlap=True), args(), 2) == WANT

ARRIVED = r"the mbarrier at shared byte \w+ "
FAULTS = {
    "no barrier after init": [r"where there is no initialised mbarrier|with no barrier after its initialisation by warp 0"],
    "no fence after init": [
        r"'nvvm.cp.async.bulk.tensor.shared.cluster.global' by .*the copy engine may not see the mbarrier at "
        r"shared byte \w+: no 'nvvm.fence.mbarrier.init' after its initialisation",
        "note: 'nvvm.mbarrier.init': the initialisation"],
    "initialised twice": [r"'nvvm.mbarrier.init' by thread 0 .*initialises " + ARRIVED.rstrip() +
                          r", which is in use \(phase 0: 0 of 1 arrivals\)"],
    "too many releases awaited": [
        r"error: '.*' by .* and nothing can go on",
        r"waits for parity \d of the mbarrier at shared byte \w+ \(phase \d: 2 of 3 arrivals\)"],
    "too few releases awaited": [
        r"shared-memory race: write of shared byte \w+ with no wait after the read by the matrix unit, for warpgroup|"
        r"the parity does not tell them apart|write of bytes an asynchronous copy still owes|more than it awaits"],
    "no wait for empty": [
        r"write of bytes an asynchronous copy still owes|no wait after the read by the matrix unit|more than it awaits"],
    "wrong parity of empty": [
        r"and nothing can go on",
        r"'nvvm.mbarrier.try_wait.parity': warp 8 waits for parity 0 of the mbarrier at shared byte \w+ "
        r"\(phase 0: 0 of 2 arrivals\)"],
    "expects too few bytes": [r"copies 8192 bytes for the mbarrier at shared byte \w+, more than it awaits "
                              r"\(phase 0: 1 of 1 arrivals, 8176 bytes awaited, 0 in flight\)"],
    "expects too many bytes": [r"\(phase 0: 1 of 1 arrivals, 8208 bytes awaited, 8192 in flight\)"],
    "no expect_tx": [r"read of bytes an asynchronous copy still owes|reads .*which nothing has written|"
                     "more than it awaits|are in flight"],
    "misaligned box": [r"misaligned: shared byte 0x\w+ needs an alignment of 128"],
    "a tile is missing": [r"waits for parity 0 of the mbarrier at shared byte \w+ \(phase 2: 0 of 1 arrivals\)"
                          r".*and nothing can go on"],
    "a tile too many": [r"out of bounds|still in flight when the block ends: nothing waited for the mbarrier"],
    "no wait for full": [r"'kvbuffer.wgmma' by warp .*(read of bytes an asynchronous copy still owes|"
                         "which nothing has written)"],
    "released too early": [r"'nvvm.cp.async.bulk.tensor.shared.cluster.global' by .*shared-memory race: write of "
                           r"shared byte \w+ with no wait after the read by the matrix unit, for warpgroup \d",
                           r"note: 'kvbuffer.wgmma': the read by the matrix unit, for warpgroup \d"],
    "never released": [r"warp 8 waits for parity 0 of the mbarrier at .*\(phase 0: 0 of 2 arrivals\)|and nothing can go on"],
    "operand overwritten": [r"'llvm.store' by thread .*with no (wait|barrier) after the (read|write) by",
                            r"'kvbuffer.wgmma'"],
    "result read too early": [r"'llvm.fadd' by thread .*reads the result of a product that may still be in flight",
                              r"note: 'kvbuffer.wgmma': the product"],
    "result not handed out": [r"reads the result of a product past the wait|accumulates onto a result that no wait "
                              r"handed out"],
    "result of another group": [r"'kvbuffer.wgmma_wait' by warp .*hands out a result that may still be in flight: "
                                r"it waits for all but 1 groups"],
    "result dropped": [r"'kvbuffer.wgmma' by warp .*(no wait took its result|still in flight when the warp ends)"],
    "divergent product": [r"'kvbuffer.wgmma' by warp .*executed by a part of the warp"],
    "three warps multiply": [r"the warps of a warpgroup do not execute the same instruction"],
    "different descriptors": [r"the warps of a warpgroup have different descriptors"],
    "no proxy fence": [r"'nvvm.cp.async.bulk.tensor.global.shared.cta' by warp .*the asynchronous proxy reads shared "
                       r"byte \w+ with no 'nvvm.fence.proxy' after the generic write by warp \d",
                       r"note: 'llvm.store': the write by warp"],
    "no barrier before the store": [r"(read of shared byte \w+ with no barrier after the write by warp|"
                                    "which nothing has written)"],
    "barrier counts differ": [r"barrier \d for \d+ threads meets one for \d+"],
    "no commit": [r"may still read shared memory when the warp ends: no 'nvvm.cp.async.bulk.wait_group' after it"],
    "no wait for the store": [r"may still read shared memory when the warp ends"],
    "source overwritten by another warp": [
        r"'llvm.store' by thread .*shared-memory race: write of shared byte \w+ with no wait after the read by the "
        r"copy engine, for warp|'nvvm.cp.async.bulk.tensor.global.shared.cta' by .*read of shared byte \w+ with no "
        "barrier after the write by warp"],
    "source overwritten": [r"'llvm.store' by thread .*shared-memory race: write of shared byte \w+ with no wait after "
                           r"the read by the copy engine, for warp \d"],
    "registers not given back": [r"'nvvm.setmaxregister' by warp \d .*waits for 2304 registers, of which 0 are free, "
                                 "and nothing can go on"],
    "increases to less": [r"increases to 160 registers, but the lane has 168"],
}
# Warps that poll in vain wait as well, if nothing else happens.
for fault in ("wrong parity of empty", "a tile is missing"):
    runner.bad(pipeline(fault, poll="test.wait"), args(), r"'nvvm.mbarrier.test.wait' by warp \d+ .*and nothing can go on")
failed = []
for fault, patterns in FAULTS.items():
    try:
        runner.bad(pipeline(fault), args(), *patterns)
    except AssertionError as e:
        failed.append(f"{fault}: {e}")
assert not failed, "\n".join(failed)
print("good")
