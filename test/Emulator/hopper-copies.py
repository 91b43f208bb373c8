# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"landing":"random","seed":11}'
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"landing":"eager"}'
"""Bulk tensor copies: where each element of a box lies, for every swizzle, rank
and element size, and what boxes have outside of their tensor.

The swizzle is written down again here as the PTX ISA's section "Swizzling
modes" draws it: within rows of 128 bytes, 16-byte units are exchanged by the
number of the row, of 8, 4 or 2 rows that count.
"""
import itertools
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from hopper import Kernel, Runner

runner = Runner(sys.argv[1:])
SENTINEL = -9


def unit_of(address, span):
    """The 16-byte unit, counted from 0, where the one at `address` goes."""
    row, unit = divmod(address // 16, 8)
    if span == 128:
        unit ^= row % 8
    if span == 64:
        unit ^= row % 4
    if span == 32:
        unit ^= row % 2
    return row * 8 + unit


def strides(dims, size, pad):
    """Bytes between elements of dimensions 1 and up, `pad` bytes between rows."""
    result, stride = [], dims[0] * size + pad
    stride += -stride % 16
    for d in dims[1:]:
        result.append(stride)
        stride *= d
    return result, stride


def place(point, step, size):
    return point[0] * size + sum(p * s for p, s in zip(point[1:], step))


def inside(point, dims):
    return all(0 <= p < d for p, d in zip(point, dims))


def box_points(box, at):
    """Points of a box in the order in which they lie, dimension 0 first."""
    for p in itertools.product(*[range(b) for b in reversed(box)]):
        yield tuple(a + x for a, x in zip(at, reversed(p)))


def maps(argument, dims, box, span, step, size):
    x = lambda v: "x".join(map(str, v))
    text = f"map:{argument}:{size}:{x(dims)}:{x(box)}:{span}"
    return text + (":" + x(step) if step else "")


def load(dims, box, at, span, size=2, pad=0, base=0):
    """A box into shared memory at `base`, read back in the order of addresses."""
    step, total = strides(dims, size, pad)
    bytes = math.prod(box) * size
    k = Kernel(threads=32)
    k.buffer()
    out, map = k.buffer(), k.map()
    full = k.mbarrier()
    k.setup((full, 1))

    def copy():
        k.expect(full, bytes)
        k.load_box(k.at(base), map, full, at)
    k.once(copy)
    k.wait(full, 0)

    def back(i):
        index = k.bin("add", k.bin("mul", i, 32), k.lane)

        def move():
            k.store(k.load(k.at(base), "i32", index, 3), out, "i32", index)
        k.branch(k.cmp("ult", index, bytes // 4), move)
    k.loop((bytes // 4 + 31) // 32, back)
    type = {1: "i8", 2: "i16", 4: "i32"}[size]
    modulus = {1: 113, 2: 30011, 4: 1000003}[size]
    got = runner.good(k, [f"buf:{type}:{total // size}:mod={modulus}", f"buf:{type}:{bytes // size}:uninit",
                          maps(0, dims, box, span, step, size)], 1)
    want = [None] * (bytes // size)
    for i, p in enumerate(box_points(box, at)):
        value = place(p, step, size) // size % modulus if inside(p, dims) else 0
        address = base + i * size
        to = unit_of(address, span) * 16 + address % 16 - base
        want[to // size] = value
    assert got == want, (dims, box, at, span, size)


def store(dims, box, at, span, size=2):
    """A box out of shared memory; elements outside of the tensor stay away."""
    step, total = strides(dims, size, 0)
    bytes = math.prod(box) * size
    k = Kernel(threads=32)
    source, out = k.buffer(), k.buffer()
    map = k.map()

    def fill(i):
        index = k.bin("add", k.bin("mul", i, 32), k.lane)

        def move():
            k.store(k.load(source, "i32", index), k.at(0), "i32", index, 3)
        k.branch(k.cmp("ult", index, bytes // 4), move)
    k.loop((bytes // 4 + 31) // 32, fill)
    k.fence_proxy()
    k.sync()

    def copy():
        k.store_box(map, k.at(0), at)
        k.commit()
        k.wait_stores(read=False)
    k.once(copy)
    got = runner.good(k, [f"buf:i16:{bytes // 2}:iota", f"buf:i16:{total // 2}:const={SENTINEL}",
                          maps(1, dims, box, span, step, size)], 1)
    want = [SENTINEL] * (total // 2)
    for i, p in enumerate(box_points(box, at)):
        if inside(p, dims):
            address = i * size
            want[place(p, step, size) // 2] = (unit_of(address, span) * 16 + address % 16) // 2
    assert got == want, (dims, box, at, span)


for span in (0, 32, 64, 128):
    wide = (span or 64) // 2
    load((200, 40), (wide, 16), (32, 8), span)
    # Past the end in both dimensions, and before the beginning.
    load((wide + 5, 9), (wide, 16), (8, 4), span, pad=6)
    load((wide + 5, 9), (wide, 16), (-8, -3), span)
    load((64, 8), (wide, 8), (64, 0), span)  # nothing of it
    load((64, 24), (wide, 8), (0, 8), span, base=128 * 11)
    store((200, 40), (wide, 16), (32, 8), span)
    store((wide + 8, 9), (wide, 16), (16, 4), span)
    store((wide + 8, 9), (wide, 16), (-8, -3), span)
load((100,), (64,), (50,), 0)
load((40, 6, 5), (32, 4, 3), (16, 3, -1), 64)
load((24, 5, 4, 3), (16, 2, 3, 2), (8, 4, 2, 2), 32)
load((24, 3, 3, 3, 3), (8, 2, 2, 2, 2), (20, 1, 2, 0, 2), 0)
load((70, 12), (64, 8), (16, 6), 64, size=1)
load((70, 12), (32, 8), (48, 6), 128, size=4)
store((24, 5, 4, 3), (16, 2, 3, 2), (8, 4, 2, 2), 32)


def rows():
    """The copies without a tensor map: bytes in a row, in and out."""
    k = Kernel(threads=32)
    source, out = k.buffer(), k.buffer()
    full = k.mbarrier()
    k.setup((full, 1))

    def copy():
        k.expect(full, 512)
        p = k.element(source, 8, "i16")
        k.emit(f"nvvm.cp.async.bulk.shared.cluster.global {k.at(64)}, {p}, {full}, {k.const(512)} "
               ": !llvm.ptr<3>, !llvm.ptr<1>")
        k.wait(full, 0)
        q = k.element(out, 16, "i16")
        k.emit(f"nvvm.cp.async.bulk.global.shared.cta {q}, {k.at(80)}, {k.const(480)} "
               ": !llvm.ptr<1>, !llvm.ptr<3>")
        k.commit()
        k.wait_stores()
    k.once(copy)
    got = runner.good(k, ["buf:i16:300:iota", f"buf:i16:300:const={SENTINEL}"], 1)
    want = [SENTINEL] * 300
    want[16:256] = range(16, 256)
    assert got == want


rows()
print("good")
