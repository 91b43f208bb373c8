# A type of caches that kvbuf does not know, in a plugin (Foreign/), is a cache for
# the ops by lanes.
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so nvvm sm_80
# RUN: %python %s %build/test/Plugin/Foreign/KVBufferForeign.so rocdl gfx950
"""A kernel by lanes copies tokens from one cache whose rows stand backwards into
another, one token on, on the emulator.

    foreign-cache.py PLUGIN CONVERSION CHIP
"""

import re
import subprocess
import sys

import numpy as np

import kvbuf

PLUGIN, CONVERSION, CHIP = sys.argv[1:]
LANES = 32 if CONVERSION == "nvvm" else 64
PROGRAM = f"""
!cache = !foreign.backwards
module attributes {{kvbuffer.target = "{CHIP}"}} {{
gpu.module @m {{
  gpu.func @shift(%from: !cache {{kvbuffer.name = "from"}}, %to: !cache {{kvbuffer.name = "to"}}) kernel
      attributes {{known_block_size = array<i32: {LANES}, 1, 1>, kvbuffer.grid = ["batch", 1, 1], kvbuffer.phase = #kvbuffer.phase<thread>}} {{
    %batch = gpu.block_id x
    %token = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %next = arith.addi %token, %c1 : index
    %x = kvbuffer.cache.load %from[%batch, %c1, %token, %c0] : !cache -> vector<8xf32>
    kvbuffer.cache.store %x, %to[%batch, %c0, %next, %c0] : vector<8xf32>, !cache
    gpu.return
  }}
}}
}}
"""


def opt(text, passes):
    done = subprocess.run(
        ["kvbuf-opt", "-", f"--load-dialect-plugin={PLUGIN}",
         f"--pass-pipeline=builtin.module({passes})"],
        input=text, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


lowered = opt(PROGRAM, f"kvbuf-lower-to-{CONVERSION}{{chip={CHIP}}}")
assert "foreign" not in lowered, lowered
# Rows that no token has are neither read nor written.
batch, rows = 3, 21
rng = np.random.default_rng()
given = {n: rng.standard_normal((batch, rows, 2, 8)).astype(np.float32)
         for n in ("from", "to")}
expected = given["to"].copy()
expected[:, :rows - 1, 0] = given["from"][:, 1:, 1]
kvbuf.compile(lowered, target=CHIP,
              machine_code=False)(**given, device=kvbuf.Device("emulator"))
assert (given["to"] == expected).all(), np.argwhere(given["to"] != expected)[:4]
