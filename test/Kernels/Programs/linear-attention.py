# Operand a that lies turned and accumulators as operand b, on the emulator.
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %src/examples/linear_attention.mlir %t sm_80 sm_90a
# RUN: %if ld.lld %{ %python %s %src/examples/linear_attention.mlir %t gfx942 gfx950 gfx1250 %}
"""Causal linear attention, examples/linear_attention.mlir, and K^T V by several warps,
against float64.

    linear-attention.py EXAMPLE FOLDER CHIP...
"""

import pathlib
import subprocess
import sys

import numpy as np

import kvbuf

EXAMPLE, FOLDER = (pathlib.Path(x) for x in sys.argv[1:3])
RNG = np.random.default_rng()
BATCH, TOKENS, HEADS, SIZE = 1, 70, 4, 64
# Scores of size 1; the state grows as the root of the tokens.
q, k, v = (kvbuf.to_bf16(RNG.standard_normal((BATCH, TOKENS, HEADS, SIZE)) / by)
           for by in (8, 1, 1))
exact = [kvbuf.from_bf16(x).astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v)]
scores = np.tril(exact[0] @ exact[1].swapaxes(-1, -2))
result = (scores @ exact[2]).transpose(0, 2, 1, 3)
# Weights and the state are rounded to 8 bits: each by 2^-9 of it at most, by a third
# of that in the mean of squares, and errors add up as roots do. Eight times that, of
# the largest of some thousand numbers, is no kernel's rounding.
spread = np.sqrt((scores**2).sum(-1).max() * 2) * 2.0**-9 / 3 * 8


def check(out, name):
    off = np.abs(out - result).max()
    assert off < spread, f"{name}: {off} off, more than {spread}"
    assert not np.isnan(out).any(), name


#: S = K^T V. Warps have columns of K each, also of several blocks of its slot.
STATE = """
#schedule = #kvbuffer.schedule<BM = 128, BN = 64, {more}>
#kbuf = #kvbuffer.kv_buffer<64x128xbf16, open>
#vbuf = #kvbuffer.kv_buffer<64x32xbf16, open>
!k_in = memref<?x?xbf16, strided<[?, 1]>>
!v_in = memref<?x?xbf16, strided<[?, 1]>>
!out = memref<?x?xf32, strided<[?, 1]>>
!state = !kvbuffer.fragment<128x32xf32, acc>
gpu.module @m {{
  gpu.func @state(%k: !k_in {{kvbuffer.name = "k", kvbuffer.shape = [64, 128]}},
                  %v: !v_in {{kvbuffer.name = "v", kvbuffer.shape = [64, 32]}},
                  %s: !out {{kvbuffer.name = "s", kvbuffer.shape = [128, 32], kvbuffer.access = "write"}})
      kernel attributes {{kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %k_slot = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %v_slot = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %k_tile = kvbuffer.dram_tile %k[%c0, %c0] valid(%c64, %c128) : !k_in -> !kvbuffer.tile<64x128xbf16>
    %v_tile = kvbuffer.dram_tile %v[%c0, %c0] valid(%c64, %c32) : !v_in -> !kvbuffer.tile<64x32xbf16>
    %k_token = kvbuffer.dram_load %k_tile into %k_slot : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
    %v_token = kvbuffer.dram_load %v_tile into %v_slot : !kvbuffer.tile<64x32xbf16>, !kvbuffer.buffer<#vbuf>
    %ks, %vs = kvbuffer.lds_stage %k_token, %v_token : !kvbuffer.token<#kbuf>, !kvbuffer.token<#vbuf>
    %kt = kvbuffer.fragment_load %ks[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<128x64xbf16, a>
    %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<64x32xbf16, b>
    %zero = kvbuffer.fragment_fill 0.0 : !state
    %state = kvbuffer.mma %kt, %vf, %zero : !kvbuffer.fragment<128x64xbf16, a>, !kvbuffer.fragment<64x32xbf16, b>, !state
    %s_tile = kvbuffer.dram_tile %s[%c0, %c0] valid(%c128, %c32) : !out -> !kvbuffer.tile<128x32xf32>
    kvbuffer.fragment_store %state, %s_tile : !state, !kvbuffer.tile<128x32xf32>
    gpu.return
  }}
}}
"""
keys, values = (kvbuf.to_bf16(RNG.standard_normal((64, n))) for n in (128, 32))
state = kvbuf.from_bf16(keys).T.astype(np.float64) @ kvbuf.from_bf16(values)


def compile(source, chip):
    subprocess.run(["kvbuf-compile", source, f"--target={chip}", "--ptxas=none",
                    "--no-alternatives", "-o", FOLDER / "own.kvbuf"], check=True)
    return kvbuf.load(FOLDER / "own.kvbuf")


for chip in sys.argv[3:]:
    o = np.full((BATCH, TOKENS, HEADS, SIZE), np.nan, np.float32)
    compile(EXAMPLE, chip)(q=q, k=k, v=v, o=o)
    check(o, chip)
    # Warps by themselves; and groups of them, whose operand a is in registers, with
    # tiles that others move.
    schedules = ["warps = 4, stages = 1"]
    if chip == "sm_90a":
        schedules.append("BK = 64, stages = 2, warps = 8, warp_cols = 1, producers = 4, "
                         "mma_shape = [64, 8, 16], swap_a_b = false")
    for schedule in schedules:
        (FOLDER / "state.mlir").write_text(STATE.format(more=schedule))
        s = np.full((128, 32), np.nan, np.float32)
        compile(FOLDER / "state.mlir", chip)(k=keys, v=values, s=s)
        # Sums of 64 products in f32.
        np.testing.assert_allclose(s, state, rtol=0, atol=1e-4, err_msg=chip)
for name, array in ("q", q), ("k", k), ("v", v), ("o", np.zeros_like(result, np.float32)):
    np.save(FOLDER / f"{name}.npy", array)
subprocess.run(["kvbuf-tile-run", EXAMPLE,
                *(f"--input={n}={FOLDER}/{n}.npy" for n in "qkvo"),
                f"--output=o={FOLDER}/out.npy"], check=True)
check(np.load(FOLDER / "out.npy"), "tiles")
