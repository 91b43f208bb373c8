// Alignments that are none, and kernels that cannot be made for less than 16.

// DEFINE: %{bytes} =
// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu{alignment=%{bytes}}))"
// REDEFINE: %{bytes} = 6
// RUN: not %{pass} %s 2>&1 | FileCheck %s --check-prefix=SIX
// SIX: error: 'gpu.func' op is to be lowered with alignment = 6; expected 2, 4, 8 or 16
// REDEFINE: %{bytes} = 32
// RUN: not %{pass} %s 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: 'gpu.func' op is to be lowered with alignment = 32; expected 2, 4, 8 or 16
// REDEFINE: %{bytes} = 8
// RUN: not %{pass} %s 2>&1 | FileCheck %s --check-prefix=RINGS
// RINGS: error: 'gpu.func' op is to be lowered with alignment = 8, but has rings, whose copy engine needs 16 bytes; expected a schedule with producers = 0
// Without the teams it is a kernel like others, on every chip.
// DEFINE: %{alike} = sed -e 's/, producers = 4//' -e '/kvbuffer.team/d' -e '/} .. teams/d' %s
// RUN: %{alike} | %{pass} -o /dev/null
// REDEFINE: %{bytes} = 2
// RUN: %{alike} | sed -e 's/sm_90a/gfx950/' -e 's/64, 8, 16./16, 16, 32], swap_a_b = true/' | %{pass} -o /dev/null

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @teams(%x: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.name = "x", kvbuffer.shape = ["m", "n"]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
        } // teams
        kvbuffer.team @producers warps(4) registers(24) {
        } // teams
      } // teams
      gpu.return
    }
  }
}
