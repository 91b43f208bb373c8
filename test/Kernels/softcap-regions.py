# RUN: %python %s
"""Rows whose scores are near zero, far from it, both, or hidden below the maximum.

A soft cap is a polynomial where a lane's scores allow it, and the softmax adds it
then; far scores take another way. Which one depends on the tile of keys, so rows
meet both in turn. Here every row and tile has a level of its own, so that each way
follows each other, and each end of the polynomial's range is met from both sides.

    test/Kernels/softcap-regions.py --seed 7        # other levels
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "benchmark"))
from problem import problem  # noqa: E402

ROWS, KEYS, TILE = 66, 200, 32
#: Weights alone, rounded to bf16.
PLAIN = {"dtype": "bf16", "lse": False}


def bits16(x, bf16):
    """A number of 16 bits, little end first; bf16 rounded to even."""
    if not bf16:
        return struct.pack("<e", x)
    bits, = struct.unpack("<I", struct.pack("<f", x))
    return struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)


def save(path, values, shape, bf16):
    kind = "<u2" if bf16 else "<f2"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
                   + header.encode())
        file.write(b"".join(bits16(x, bf16) for x in values))


#: Levels of tiles, in caps, on both sides of where one way ends: polynomials of two to
#: five terms with a cap of 30, and exponentials that are not limited.
LEVELS = [0, 0.15, 0.19, 0.38, 0.42, 0.63, 0.68, 0.85, 0.95, 1.2, 3, 9, 13,
          -0.15, -0.19, -0.42, -0.68, -0.95, -1.5, -3]
#: Rows that no key lifts: what lies below a polynomial's range has weight.
LOW = [-0.15, -0.19, -0.42, -0.68, -0.95, -1.2, -1.5, -3, -13]
#: One score near zero for each lane of a row, and what might hide below it.
HIDDEN = [-0.6, -0.65, -0.7, -0.75, -0.8]
#: The same below a cap that no smallest score is looked for: weights that are next to
#: nothing, however far below.
DEEP = [-0.4, -0.6, -0.8, -1.2, -1.5, -2, -5]
#: All scores below zero, so far apart that weights overflow without the right maximum.
NEGATIVE = [-0.6]
#: How far scores of a tile are apart: in these lists, and in others.
SPREADS = {tuple(HIDDEN): [0.1], tuple(DEEP): [0.1], tuple(NEGATIVE): [4]}


def inputs(rng, cap, levels, head):
    """q, k and v. Scores are a row's gain times the level of a tile of keys, with
    noise from the other columns."""
    q, k = [], []
    for _ in range(ROWS):
        # Rows that see the keys' levels as they are, turned round, or hardly.
        gain = (1 if levels in (LOW, HIDDEN, DEEP, NEGATIVE) else
                rng.choice([1, 1, -1, 0.25, 0.05]))
        q += [gain, 1.0] + [rng.gauss(0, 0.1) for _ in range(head - 2)]
    level = 0
    for key in range(KEYS):
        if key % TILE == 0:
            level = rng.choice(levels) * cap
            spread = rng.choice(SPREADS.get(tuple(levels), [0.5, 4]))
        if levels in (HIDDEN, DEEP) and key % TILE in (0, 2, 4, 6):
            k += [0.01] + [0.0] * (head - 1)
            continue
        k += [level + rng.gauss(0, spread), rng.gauss(0, 0.5)]
        k += [rng.gauss(0, 1) for _ in range(head - 2)]
    return q, k, [rng.gauss(0, 1) for _ in range(KEYS * head)]


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seed", type=int, default=3)
args = parser.parse_args()
rng = random.Random(args.seed)
failed = 0
with tempfile.TemporaryDirectory() as folder:
    for chip, cap, levels, head, extra in [
            ("sm_80", 50, LEVELS, 64, {}), ("sm_90a", 30, LEVELS, 64, {}),
            ("sm_90a", 30, LOW, 64, {}), ("sm_80", 50, LOW, 128, {}),
            ("sm_90a", 8, LEVELS, 64, {"causal": True}),
            ("sm_80", 8, LOW, 64, {}), ("sm_90a", 50, LEVELS, 128, {}),
            ("sm_90a", 8, HIDDEN, 128, {}), ("sm_90a", 15, HIDDEN, 128, {}),
            ("sm_90a", 15, HIDDEN, 64, {}), ("sm_90a", 50, HIDDEN, 128, {}),
            ("sm_90a", 50, NEGATIVE, 128, {}), ("sm_80", 50, NEGATIVE, 64, {}),
            # No sum is seen.
            ("sm_90a", 30, LEVELS, 64, PLAIN), ("sm_90a", 30, LOW, 128, PLAIN),
            ("sm_90a", 30, DEEP, 64, PLAIN), ("sm_90a", 50, DEEP, 128, PLAIN),
            ("sm_90a", 15, DEEP, 64, PLAIN), ("sm_90a", 30, NEGATIVE, 64, PLAIN),
            ("sm_80", 30, DEEP, 64, PLAIN)]:
        kernel = os.path.join(folder, "k.kvbuf")
        text = problem(**{"heads": 1, "head_size": head, "dtype": "f16", "softcap": cap,
                          "scale": 1.0, "lse": True} | extra)
        done = subprocess.run(
            ["kvbuf-compile", "-", f"--target={chip}", "--code=none",
             "--no-alternatives", "-o", kernel, f"--schedule=BN={TILE}"],
            input=text, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        command = ["kvbuf-run", kernel, "--device=emulator", "--check",
                   "--size", "batch=1", "--size", f"seq_q={ROWS}",
                   "--size", f"seq_k={KEYS}"]
        for name, values in zip("qkv", inputs(rng, cap, levels, head)):
            path = os.path.join(folder, f"{name}.npy")
            rows = len(values) // head
            save(path, values, (1, rows, 1, head), extra is PLAIN)
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command, capture_output=True, text=True)
        print(f"{chip}, head size {head}, cap {cap}, levels from {levels[0]}: "
              f"status {done.returncode}")
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-1000:])
            failed += 1
sys.exit(1 if failed else 0)
