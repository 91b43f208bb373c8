// Layouts of fragments: how they are printed, and that programs without them stay
// without.

// RUN: kvbuf-opt %s --verify-roundtrip --canonicalize | FileCheck %s

// CHECK-DAG: #[[ACC:.*]] = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>
// CHECK-DAG: #[[ROW:.*]] = #kvbuffer.slice<row of #[[ACC]]>
// CHECK-DAG: #[[B:.*]] = #kvbuffer.mma<mfma, b, shape = [32, 32, 8], group = 2, warps = [2, 4], transpose_b = true, swapped = true, order = [1, 2, 8, 4]>

// CHECK-DAG: #blocked = #kvbuffer.blocked<lanes = [4, 8], width = 4, columns = [8, 16, 1, 2, 4]>
// CHECK-DAG: #blocked_row = #kvbuffer.slice<row of #blocked>
// CHECK-DAG: #blocked1 = #kvbuffer.blocked<lanes = [4, 8], width = 4>
// CHECK-DAG: #blocked2 = #kvbuffer.blocked<warps = 4, lanes = [2, 16], width = 8>

#blocked = #kvbuffer.blocked<lanes = [4, 8], width = 4, columns = [8, 16, 1, 2, 4]>
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>
#b = #kvbuffer.mma<mfma, b, order = [1, 2, 8, 4], swapped = true, transpose_b = true, warps = [2, 4], group = 2, shape = [32, 32, 8]>

// CHECK: func.func private @fragments(!kvbuffer.fragment<64x16xf32, acc, #[[ACC]]>, !kvbuffer.fragment<64x1xf32, row, #[[ROW]]>, !kvbuffer.fragment<128x32xbf16, b, #[[B]]>, !kvbuffer.pending<64x16xf32, #[[ACC]]>)
func.func private @fragments(!kvbuffer.fragment<64x16xf32, acc, #acc>, !kvbuffer.fragment<64x1xf32, row, #kvbuffer.slice<row of #acc>>, !kvbuffer.fragment<128x32xbf16, b, #b>, !kvbuffer.pending<64x16xf32, #acc>)
// CHECK: func.func private @blocked(!kvbuffer.fragment<8x32xf32, acc, #blocked>, !kvbuffer.fragment<8x1xf32, row, #blocked_row>, !kvbuffer.fragment<8x32xf32, acc, #blocked1>, !kvbuffer.fragment<8x128xf16, a, #blocked2>)
func.func private @blocked(!kvbuffer.fragment<8x32xf32, acc, #blocked>, !kvbuffer.fragment<8x1xf32, row, #kvbuffer.slice<row of #blocked>>, !kvbuffer.fragment<8x32xf32, acc, #kvbuffer.blocked<lanes = [4, 8], width = 4>>, !kvbuffer.fragment<8x128xf16, a, #kvbuffer.blocked<warps = 4, lanes = [2, 16], width = 8>>)
// CHECK: func.func private @plain(!kvbuffer.fragment<64x16xf32, acc>, !kvbuffer.pending<64x16xf32>)
func.func private @plain(!kvbuffer.fragment<64x16xf32, acc>, !kvbuffer.pending<64x16xf32>)

// An exchange into the layout that there is already is none.
// CHECK-LABEL: func.func @same(
// CHECK-NEXT:    return %arg0
func.func @same(%x: !kvbuffer.fragment<64x16xf32, acc, #acc>) -> !kvbuffer.fragment<64x16xf32, acc, #acc> {
  %y = kvbuffer.exchange %x : !kvbuffer.fragment<64x16xf32, acc, #acc> -> !kvbuffer.fragment<64x16xf32, acc, #acc>
  return %y : !kvbuffer.fragment<64x16xf32, acc, #acc>
}
