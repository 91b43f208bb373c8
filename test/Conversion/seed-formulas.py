# What the seed pages state in formulas, against the code that plans the copies.
# RUN: %python %s
"""Buffers of many sizes are loaded; the copies and stores that come of it are counted
and compared with the formulas of the pages KVBuffer and DecodeKVBuffer, written down
again here.

Units of 32 rows x BK columns are what a wave copies, each of two instructions: rows of
64 bytes, 16 a lane, on gfx950. (gfx942 copies 4 bytes a lane, and where units are dealt
unevenly kvbuf makes them smaller: `CopyPlan`.)
"""

import math
import re
import subprocess
import sys

TEXT = """
#buf = #kvbuffer.kv_buffer<{operand}, bf16, {policy}, mma_shape = [{mma}], BN = {BN}, WN = {BN}, BK = {BK}, num_threads = {threads}, depth = {depth}{more}, stages = {stages}, warp_size = {wave}>
#schedule = #kvbuffer.schedule<BM = {BM}, BN = {BN}, BK = {BK}, stages = {stages}, warps = {warps}, mma_shape = [{mma}]{swap}>
!m = memref<?x{depth}xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<{BN}x{depth}xbf16>
module attributes {{kvbuffer.target = "{chip}"}} {{
  gpu.module @m {{
    gpu.func @load(%x: !m {{kvbuffer.name = "x", kvbuffer.shape = ["m", {depth}]}}) kernel attributes {{kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]}} {{
      %c0 = arith.constant 0 : index
      %rows = memref.dim %x, %c0 : !m
      %depth = arith.constant {depth} : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %depth) : !m -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] {{whole}} : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %token {{younger = 0 : i64}} : !kvbuffer.token<#buf>
      gpu.return
    }}
  }}
}}
"""
PIPELINE = "builtin.module(gpu.module(convert-kvbuffer-to-gpu))"


def lowered(chip, policy, BN, BK, depth, warps, full_kv=True, stages=1, operand="k"):
    amd = chip.startswith("gfx")
    wave = 64 if amd else 32
    more = "" if full_kv else ", full_kv = false"
    text = TEXT.format(
        chip=chip, policy=policy, BN=BN, BK=BK, depth=depth, warps=warps, more=more,
        threads=warps * wave, wave=wave, stages=stages, operand=operand,
        BM=(32 if amd else 16) * warps, mma="32, 32, 16" if amd else "16, 8, 16",
        swap=", swap_a_b = true" if amd else "")
    out = subprocess.run(["kvbuf-opt", "-", f"--pass-pipeline={PIPELINE}"], input=text,
                         capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout


def count(text, op):
    return len(re.findall(rf"\b{re.escape(op)} ", text))


checked = 0
# vm_instrs_per_load = ceil((BN // 32) * (smem_depth // BK) / waves) * 2, if full_kv.
for BN in 32, 64, 128:
    for depth in 32, 64, 96, 128, 256:
        for warps in 1, 2, 4, 8:
            BK, smem_depth = 32, math.ceil(depth / 32) * 32
            units = BN // 32 * (smem_depth // BK)
            if units % warps:
                continue
            text = lowered("gfx950", "double_buffered", BN, BK, depth, warps)
            got = count(text, "kvbuffer.range_copy")
            wanted = math.ceil(units / warps) * 2
            assert got == wanted, (BN, depth, warps, got, wanted)
            checked += 1
assert checked > 30, checked
# smem_stage_size = BN * smem_cols; smem_cols = smem_depth if full_kv, else BK.
for full_kv, cols in (True, 128), (False, 32):
    for stages in 1, 2:
        text = lowered("gfx950", "double_buffered", 64, 32, 128, 2, full_kv, stages)
        size = int(re.search(r"dynamic_shared_bytes = (\d+)", text)[1])
        assert size == stages * 64 * cols * 2, (full_kv, stages, size)
# A tile in registers: its elements, dealt to the threads in vectors of simd_width.
for chip in "sm_80", "sm_90a", "gfx950":
    for BN, depth, warps in (32, 64, 1), (64, 128, 4), (64, 64, 2), (128, 32, 4):
        threads = warps * (64 if chip.startswith("gfx") else 32)
        text = lowered(chip, "register_staged", BN, 32, depth, warps)
        vectors = BN * depth // 8 // threads
        got = count(text, "vector.store")
        assert got == vectors, (chip, BN, depth, warps, got, vectors)
# A streaming K has one block of BN x BK in LDS, whatever its depth.
text = lowered("gfx950", "streaming", 64, 32, 256, 2, full_kv=False)
assert "dynamic_shared_bytes = 4096" in text
assert count(text, "kvbuffer.range_copy") == 2 * (64 // 32) // 2
