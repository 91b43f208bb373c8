# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"portable":true,"landing":"random","seed":7}'
# RUN: %python %s %bin/kvbuf-emu-test %t.mlir --options='{"landing":"eager"}'
"""wgmma against products in integers: every operand layout and swizzle.

Tiles come from global memory by bulk tensor copies with the swizzle that the
descriptor names. Where a tile's bytes lie, and with it the descriptor's
offsets, follows from the PTX ISA's canonical layouts: in units of `span` bytes
along the contiguous dimension, a block of rows for each such unit.
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from hopper import Kernel, Runner

runner = Runner(sys.argv[1:])
K = 64


class Tile:
    """A tile of `rows` x `columns` elements, columns contiguous, and how its
    copy and its descriptor see it."""

    def __init__(self, offset, rows, columns, span, k_major):
        unit = span or 16  # bytes of a row of a block
        self.offset, self.box = offset, (unit // 2, rows)
        self.blocks = columns * 2 // unit
        self.block_bytes = rows * unit
        self.bytes = rows * columns * 2
        self.span = span
        if k_major:
            # Two halves of k in one row, or in two blocks.
            self.leading = self.block_bytes if not span else 16
            self.stride = 8 * unit
            at = lambda k: k * 2 // unit * self.block_bytes + k * 2 % unit
            self.steps = [at(16 * s) // 16 for s in range(columns // 16)]
        else:
            along, down = self.block_bytes, 8 * unit
            self.leading, self.stride = (along, down) if span else (down, along)
            self.steps = [16 * s * unit // 16 for s in range(rows // 16)]

    def load(self, k, map, mbarrier):
        for b in range(self.blocks):
            k.load_box(k.at(self.offset + b * self.block_bytes), map, mbarrier,
                       (b * self.box[0], 0))

    def descriptor(self, k):
        return k.descriptor(k.at(self.offset), self.leading, self.stride, self.span)


def a_at(m, k):
    return (m * K + k) % 61


def b_at(i):
    return i % 53


def product(n, b_is_k_major, passes=1):
    b = (lambda k, c: b_at(c * K + k)) if b_is_k_major else (lambda k, c: b_at(k * n + c))
    return [passes * sum(a_at(m, k) * b(k, c) for k in range(K)) for m in range(64) for c in range(n)]


def case(n, element, span_a, span_b, b_k_major, a_in_registers=False, twice=False):
    k = Kernel()
    a_buffer, b_buffer, out = k.buffer(), k.buffer(), k.buffer()
    map_a, map_b = k.map(), k.map()
    a = Tile(0, 64, K, span_a, True)
    b = Tile(8192, n, K, span_b, True) if b_k_major else Tile(8192, K, n, span_b, False)
    full = k.mbarrier()
    k.setup((full, 1))

    def copies():
        k.expect(full, a.bytes + b.bytes)
        a.load(k, map_a, full)
        b.load(k, map_b, full)
    k.once(copies)
    k.wait(full, 0)
    registers = None
    if a_in_registers:
        # As mma.m16n8k16 has them, straight from global memory.
        row = k.bin("add", k.bin("lshr", k.lane, 2), k.bin("mul", k.warp, 16))
        word = k.bin("add", k.bin("mul", row, K // 2), k.bin("and", k.lane, 3))
        registers = []
        for s in range(K // 16):
            for x in range(4):
                index = k.bin("add", word, 8 * s + 8 * K // 2 * (x % 2) + 4 * (x // 2))
                registers.append(k.op(f"llvm.bitcast {k.load(a_buffer, 'i32', index)} : i32 to vector<1xi32>"))
    common = dict(element=element, transpose_b=not b_k_major)
    if a_in_registers:
        common["registers"] = registers
    else:
        common.update(a=a.descriptor(k), a_steps=a.steps)
    s = k.wgmma(n, b.descriptor(k), b.steps, **common)
    if twice:  # onto the accumulators in flight
        s = k.wgmma(n, b.descriptor(k), b.steps, c=s, **common)
    s = k.wgmma_wait(s)
    k.store_product(s, out, n)
    size_b = f"{K}x{n}" if b_k_major else f"{n}x{K}"
    box = lambda tile: "x".join(map(str, tile.box))
    got = runner.good(k, [
        f"buf:{element}:{64 * K}:mod=61", f"buf:{element}:{n * K}:mod=53", f"buf:f32:{64 * n}:uninit",
        f"map:0:2:{K}x64:{box(a)}:{span_a}", f"map:1:2:{size_b}:{box(b)}:{span_b}"], 2)
    want = product(n, b_k_major, 2 if twice else 1)
    for i, (x, y) in enumerate(zip(got, want)):
        assert x == y, (n, element, span_a, span_b, b_k_major, a_in_registers, divmod(i, n), x, y)
    assert len(got) == len(want)


def nvvm_case(n, span, b_k_major, a_m_major):
    """nvvm.wgmma.mma_async, one instruction a step, with a from memory in
    either order; its results are there after the wait."""
    k = Kernel()
    k.buffer(), k.buffer()
    out, map_a, map_b = k.buffer(), k.map(), k.map()
    a = Tile(0, K, 64, span, False) if a_m_major else Tile(0, 64, K, span, True)
    b = Tile(8192, n, K, span, True) if b_k_major else Tile(8192, K, n, span, False)
    full = k.mbarrier()
    k.setup((full, 1))

    def copies():
        k.expect(full, a.bytes + b.bytes)
        a.load(k, map_a, full)
        b.load(k, map_b, full)
    k.once(copies)
    k.wait(full, 0)
    struct = f"!llvm.struct<({', '.join(['f32'] * (n // 2))})>"
    acc = k.op(f"llvm.mlir.undef : {struct}")
    da, db = a.descriptor(k), b.descriptor(k)
    k.emit("nvvm.wgmma.fence.aligned")
    for s in range(K // 16):
        x, y = k.bin("add", da, a.steps[s], "i64"), k.bin("add", db, b.steps[s], "i64")
        acc = k.op(f"nvvm.wgmma.mma_async {x}, {y}, {acc}, <m = 64, n = {n}, k = 16>, "
                   f"D [<f32>, #nvvm.wgmma_scale_out<{'one' if s else 'zero'}>], "
                   f"A [<bf16>, #nvvm.wgmma_scale_in<one>, <{'col' if a_m_major else 'row'}>], "
                   f"B [<bf16>, #nvvm.wgmma_scale_in<neg>, <{'col' if b_k_major else 'row'}>] : {struct} -> {struct}")
    k.emit("nvvm.wgmma.commit.group.sync.aligned")
    k.emit("nvvm.wgmma.wait.group.sync.aligned 0")
    values = []
    for i in range(0, n // 2, 4):
        v = k.op("llvm.mlir.undef : vector<4xf32>")
        for x in range(4):
            e = k.op(f"llvm.extractvalue {acc}[{i + x}] : {struct}")
            v = k.op(f"llvm.insertelement {e}, {v}[{k.const(x)} : i32] : vector<4xf32>")
        values.append(v)
    k.store_product(values, out, n)
    size_a = f"64x{K}" if a_m_major else f"{K}x64"
    size_b = f"{K}x{n}" if b_k_major else f"{n}x{K}"
    box = lambda tile: "x".join(map(str, tile.box))
    got = runner.good(k, [
        f"buf:bf16:{64 * K}:mod=61", f"buf:bf16:{n * K}:mod=53", f"buf:f32:{64 * n}:uninit",
        f"map:0:2:{size_a}:{box(a)}:{span}", f"map:1:2:{size_b}:{box(b)}:{span}"], 2)
    a_of = (lambda m, x: (x * 64 + m) % 61) if a_m_major else a_at
    b_of = (lambda x, c: b_at(c * K + x)) if b_k_major else (lambda x, c: b_at(x * n + c))
    want = [-sum(a_of(m, x) * b_of(x, c) for x in range(K)) for m in range(64) for c in range(n)]
    assert got == want, (n, span, b_k_major, a_m_major)


def placed(start, span):
    """Operands laid out here, not by a copy: the pattern begins at `start`,
    which need not be where it would by the address's own bits. The base offset
    says so (PTX ISA, "Matrix Descriptor Format")."""
    unit = span
    block = 64 * unit

    def image(value):
        bytes = bytearray(64 * K * 2)
        for row in range(64):
            for x in range(K):
                chunk, byte = divmod(x * 2 % unit, 16)
                # Rows of 128 bytes count, whatever the span.
                chunk ^= (row * unit // 128) % (unit // 16)
                at = x * 2 // unit * block + row * unit + chunk * 16 + byte
                struct.pack_into("<e", bytes, at, value(row, x))
        return bytes

    path = runner.path + ".image"
    with open(path, "wb") as f:
        f.write(image(lambda m, x: (m * K + x) % 61) + image(lambda n, x: (n * K + x) % 53))
    k = Kernel()
    source, out = k.buffer(), k.buffer()
    full = k.mbarrier()
    k.setup((full, 1))

    def copy():
        k.expect(full, 4 * 64 * K)
        k.emit(f"nvvm.cp.async.bulk.shared.cluster.global {k.at(start)}, {source}, {full}, {k.const(4 * 64 * K)} "
               ": !llvm.ptr<3>, !llvm.ptr<1>")
    k.once(copy)
    k.wait(full, 0)
    base = start >> 7 & 7
    steps = [(32 * s // unit * block + 32 * s % unit) // 16 for s in range(K // 16)]
    a, b = (k.descriptor(k.at(start + x), 16, 8 * unit, span, base) for x in (0, 2 * 64 * K))
    s = k.wgmma_wait(k.wgmma(64, b, steps, a=a, a_steps=steps, element="f16"))
    k.store_product(s, out, 64)
    got = runner.good(k, [f"buf:f16:{2 * 64 * K}:file={path}", f"buf:f32:{64 * 64}:uninit"], 1)
    want = [sum((m * K + x) % 61 * ((n * K + x) % 53) for x in range(K)) for m in range(64) for n in range(64)]
    assert got == want, (start, span)


def number(byte, kind):
    """OCP's OFP8: e4m3 has a bias of 7 and no infinities, e5m2 one of 15."""
    mantissa, bias = (3, 7) if kind == "f8E4M3FN" else (2, 15)
    exponent, fraction = (byte & 127) >> mantissa, (byte & (1 << mantissa) - 1) / (1 << mantissa)
    size = (1 + fraction) * 2.0 ** (exponent - bias) if exponent else fraction * 2.0 ** (1 - bias)
    return -size if byte & 128 else size


def bytes_case(a_kind, b_kind, span, a_in_registers, through_nvvm=False):
    """8-bit floats, 32 a step, K-major. Magnitudes are such that sums are exact."""
    n, block = 64, 64 * span
    a = [[56 + (5 * m + 3 * x) % 16 + 128 * ((m + x) % 2) for x in range(K)] for m in range(64)]
    b = [[56 + (7 * c + x) % 13 + 128 * (c % 3 == 1) for x in range(K)] for c in range(n)]

    def image(values):
        data = bytearray(64 * K)
        for row in range(64):
            for x in range(K):
                chunk, byte = divmod(x % span, 16)
                chunk ^= (row * span // 128) % (span // 16)
                data[x // span * block + row * span + chunk * 16 + byte] = values[row][x]
        return data

    path = runner.path + ".image"
    with open(path, "wb") as f:
        f.write(image(a) + image(b) + b"".join(map(bytes, a)))
    k = Kernel()
    source, out = k.buffer(), k.buffer()
    full = k.mbarrier()
    k.setup((full, 1))

    def copy():
        k.expect(full, 2 * 64 * K)
        k.emit(f"nvvm.cp.async.bulk.shared.cluster.global {k.at(0)}, {source}, {full}, {k.const(2 * 64 * K)} "
               ": !llvm.ptr<3>, !llvm.ptr<1>")
    k.once(copy)
    k.wait(full, 0)
    steps = [(x // span * block + x % span) // 16 for x in range(0, K, 32)]
    da, db = (k.descriptor(k.at(x), 16, 8 * span, span) for x in (0, 64 * K))
    if a_in_registers:
        # Register x of a step: rows l / 4, 8 further where x is odd, four bytes
        # from 4 (l % 4) on, 16 further for the upper two.
        row = k.bin("add", k.bin("lshr", k.lane, 2), k.bin("mul", k.warp, 16))
        word = k.bin("add", k.bin("mul", row, K // 4), k.bin("and", k.lane, 3))
        registers = [k.op(f"llvm.bitcast {k.load(source, 'i32', k.bin('add', word, i))} : i32 to vector<1xi32>")
                     for i in (2 * 64 * K // 4 + 8 * s + 8 * K // 4 * (x % 2) + 4 * (x // 2)
                               for s in range(K // 32) for x in range(4))]
        values = k.wgmma_wait(k.wgmma(n, db, steps, registers=registers, element=b_kind, a_element=a_kind))
    elif through_nvvm:
        names = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
        struct = f"!llvm.struct<({', '.join(['f32'] * (n // 2))})>"
        acc = k.op(f"llvm.mlir.undef : {struct}")
        k.emit("nvvm.wgmma.fence.aligned")
        for i, s in enumerate(steps):
            x, y = k.bin("add", da, s, "i64"), k.bin("add", db, s, "i64")
            acc = k.op(f"nvvm.wgmma.mma_async {x}, {y}, {acc}, <m = 64, n = {n}, k = 32>, "
                       f"D [<f32>, #nvvm.wgmma_scale_out<{'one' if i else 'zero'}>], "
                       f"A [<{names[a_kind]}>, #nvvm.wgmma_scale_in<one>, <row>], "
                       f"B [<{names[b_kind]}>, #nvvm.wgmma_scale_in<one>, <col>] : {struct} -> {struct}")
        k.emit("nvvm.wgmma.commit.group.sync.aligned")
        k.emit("nvvm.wgmma.wait.group.sync.aligned 0")
        values = []
        for i in range(0, n // 2, 4):
            v = k.op("llvm.mlir.undef : vector<4xf32>")
            for x in range(4):
                e = k.op(f"llvm.extractvalue {acc}[{i + x}] : {struct}")
                v = k.op(f"llvm.insertelement {e}, {v}[{k.const(x)} : i32] : vector<4xf32>")
            values.append(v)
    else:
        values = k.wgmma_wait(k.wgmma(n, db, steps, a=da, a_steps=steps, element=b_kind, a_element=a_kind))
    k.store_product(values, out, n)
    got = runner.good(k, [f"buf:f16:{3 * 64 * K // 2}:file={path}", f"buf:f32:{64 * n}:uninit"], 1)
    want = [sum(number(a[m][x], a_kind) * number(b[c][x], b_kind) for x in range(K))
            for m in range(64) for c in range(n)]
    # The tool prints six digits.
    want = [float(f"{x:g}") for x in want]
    assert got == want, (a_kind, b_kind, span, a_in_registers, through_nvvm)


for a_kind, b_kind in (("f8E4M3FN",) * 2, ("f8E5M2",) * 2, ("f8E4M3FN", "f8E5M2")):
    for span in (32, 64):
        bytes_case(a_kind, b_kind, span, a_in_registers=False)
        bytes_case(a_kind, b_kind, span, a_in_registers=True)
    bytes_case(a_kind, b_kind, 64, False, through_nvvm=True)
for span in (32, 64, 128):
    for start in (0, 1024, 256, 1024 + 640):
        placed(start, span)
for span in (0, 32, 64, 128):
    for b_k_major in (True, False):
        case(64, "bf16", span, span, b_k_major)
        case(128, "f16", 128, span, b_k_major, a_in_registers=True)
        for a_m_major in (True, False):
            nvvm_case(64, span, b_k_major, a_m_major)
case(8, "bf16", 128, 128, True)
case(24, "f16", 64, 128, True)
case(256, "bf16", 32, 64, False, twice=True)
print("good")
