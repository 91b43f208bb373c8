# RUN: %python %s %bin %t
"""A program of lanes that multiplies 8-bit floats, from the thread stage to the
emulator's result and to the backend's instruction, on each AMD chip.

Each lane loads its part of A and B as one vector of eight. Which part that is
follows from the definition of the instructions (see Emulator/amd-matrix.py,
which also has every code of every format): lane M (k // (K / G)) + row has k's
element k % (K / G), with G = 64 / M.
"""
import subprocess
import sys

bin, path = sys.argv[1:]

#: Codes of the integers -4 to 4: sign, then the exponent's bias and 2 or 3 bits
#: of mantissa.
def codes(mantissa, bias):
    def code(x):
        if x == 0:
            return 0
        exponent = abs(x).bit_length() - 1
        fraction = (abs(x) - 2 ** exponent) << mantissa >> exponent
        return (x < 0) << 7 | (exponent + bias) << mantissa | fraction
    return code


FORMATS = {"gfx942": {"f8E4M3FNUZ": codes(3, 8), "f8E5M2FNUZ": codes(2, 16)},
           "gfx950": {"f8E4M3FN": codes(3, 7), "f8E5M2": codes(2, 15)}}
NAMES = {"f8E4M3FN": "fp8", "f8E4M3FNUZ": "fp8", "f8E5M2": "bf8", "f8E5M2FNUZ": "bf8"}


def module(chip, m, k, left, right):
    n = m * m // 64
    return f"""module attributes {{gpu.container_module, kvbuffer.target = "{chip}"}} {{
  gpu.module @m {{
    gpu.func @kernel(%a: memref<512x{left}, 1>, %b: memref<512x{right}, 1>, %d: memref<{64 * n}xf32, 1>) kernel
        attributes {{kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 64, 1, 1>}} {{
      %lane = gpu.thread_id x
      %c8 = arith.constant 8 : index
      %cn = arith.constant {n} : index
      %from = arith.muli %lane, %c8 : index
      %to = arith.muli %lane, %cn : index
      %x = vector.load %a[%from] : memref<512x{left}, 1>, vector<8x{left}>
      %y = vector.load %b[%from] : memref<512x{right}, 1>, vector<8x{right}>
      %zero = arith.constant dense<0.0> : vector<{n}xf32>
      %r = kvbuffer.lane_mma a(%x : vector<8x{left}>) b(%y : vector<8x{right}>) c(%zero : vector<{n}xf32>) {{shape = array<i64: {m}, {m}, {k}>}}
      vector.store %r, %d[%to] : memref<{64 * n}xf32, 1>, vector<{n}xf32>
      gpu.return
    }}
  }}
}}
"""


def words(data):
    """Bytes as the emulator's list of numbers."""
    return "buf:i32:128:list=" + "/".join(str(int.from_bytes(bytes(data[i:i + 4]), "little", signed=True))
                                          for i in range(0, 512, 4))


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(chip, m, k, left, right):
    groups, count = 64 // m, m * m // 64
    a = lambda i, kk: (7 * i + 3 * kk) % 9 - 4
    b = lambda kk, j: (5 * kk + 2 * j + kk * j) % 7 - 3
    parts = [[0] * 512, [0] * 512]
    for kk in range(k):
        for x in range(m):
            lane = m * (kk // (k // groups)) + x
            parts[0][8 * lane + kk % (k // groups)] = FORMATS[chip][left](a(x, kk))
            parts[1][8 * lane + kk % (k // groups)] = FORMATS[chip][right](b(kk, x))
    with open(path + ".mlir", "w") as f:
        f.write(module(chip, m, k, left, right))
    target = run([bin + "/kvbuf-compile", path + ".mlir", "--emit=target"])
    with open(path + ".target.mlir", "w") as f:
        f.write(target)
    out = run([bin + "/kvbuf-emu-test", path + ".target.mlir", "--block=64", f"--arg={words(parts[0])}",
               f"--arg={words(parts[1])}", f"--arg=buf:f32:{64 * count}:uninit", "--print=2"])
    got = [float(x) for x in out.split(":")[1].split()]
    for i in range(m):
        for j in range(m):
            lane, register = m * (i // 4 % groups) + j, 4 * (i // (4 * groups)) + i % 4
            want = sum(a(i, kk) * b(kk, j) for kk in range(k))
            assert got[count * lane + register] == want, (chip, m, left, right, i, j, got[count * lane + register], want)
    assembly = run([bin + "/kvbuf-compile", path + ".mlir", "--emit=asm"])
    instruction = f"v_mfma_f32_{m}x{m}x{k}_{NAMES[left]}_{NAMES[right]} "
    assert instruction in assembly, (chip, instruction)


for chip, formats in FORMATS.items():
    first, second = formats
    check(chip, 32, 16, first, first)
    check(chip, 32, 16, second, first)
    check(chip, 16, 32, first, second)
    check(chip, 16, 32, second, second)
