// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected a matrix unit: mma_sync, wgmma, mfma or wmma}}
func.func private @f() attributes {a = #kvbuffer.mma<imma, acc, shape = [16, 16, 16], warps = [1, 1]>}

// -----

// expected-error @below {{wgmma has no instruction of shape 16x8x16}}
func.func private @f() attributes {a = #kvbuffer.mma<wgmma, acc, shape = [16, 8, 16], warps = [4, 1]>}

// -----

// expected-error @below {{groups of 4 warps have the rows of wgmma; expected warps = [n, 1] with a multiple of 4, without swapped}}
func.func private @f() attributes {a = #kvbuffer.mma<wgmma, acc, shape = [64, 8, 16], warps = [2, 1]>}

// -----

// expected-error @below {{groups of 4 warps have the rows of wgmma; expected warps = [n, 1] with a multiple of 4, without swapped}}
func.func private @f() attributes {a = #kvbuffer.mma<wgmma, acc, shape = [64, 8, 16], warps = [4, 2]>}

// -----

// expected-error @below {{mma_sync has no instruction of shape 32x32x16}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, acc, shape = [32, 32, 16], warps = [1, 1]>}

// -----

// expected-error @below {{mfma has no instruction of shape 32x32x16 in groups of 3}}
func.func private @f() attributes {a = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], group = 3, warps = [1, 1]>}

// -----

// expected-error @below {{expected warps = [rows, columns]}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4]>}

// -----

// expected-error @below {{expected group and warps from 1 to 65536, got 0}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [0, 1]>}

// -----

// expected-error @below {{expected order with each of the 4 powers of two below 16 once}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], order = [1, 2, 4, 4]>}

// -----

// expected-error @below {{accumulators are not contracted; expected no order}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], order = [1, 2, 4, 8]>}

// -----

// expected-error @below {{operand a has no columns of the product; expected no columns}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], columns = [1, 2, 4]>}

// -----

// expected-error @below {{expected columns with each of the 4 powers of two below 16 once}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true, columns = [1, 2, 4]>}

// -----

// expected-error @below {{expected powers of two from 1 to 65536 as lanes, width and warps, got 3}}
func.func private @f() attributes {a = #kvbuffer.blocked<lanes = [4, 8], width = 3>}

// -----

// expected-error @below {{expected columns with each of the powers of two below another, 2^20 or less, once, got [8, 1, 2]}}
func.func private @f() attributes {a = #kvbuffer.blocked<lanes = [4, 8], width = 4, columns = [8, 1, 2]>}

// -----

// expected-error @below {{transpose_b is of operand b, got operand a}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], transpose_b = true>}

// -----

// expected-error @below {{expected operand a, b or acc; row values have the layout #kvbuffer.slice}}
func.func private @f() attributes {a = #kvbuffer.mma<mma_sync, row, shape = [16, 8, 16], warps = [1, 1]>}

// -----

// expected-error @below {{expected the layout of a fragment, as #kvbuffer.mma<...>, got "x"}}
func.func private @f(!kvbuffer.fragment<16x8xf32, acc, "x">)

// -----

#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1]>
// expected-error @below {{a fragment of role row has the layout of a slice, got #kvbuffer.mma<}}
func.func private @f(!kvbuffer.fragment<16x1xf32, row, #acc>)

// -----

#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1]>
// expected-error @below {{a fragment of role acc has no layout of a slice, got #kvbuffer.slice<}}
func.func private @f(!kvbuffer.fragment<16x8xf32, acc, #kvbuffer.slice<row of #acc>>)

// -----

// Operands that stand in two orders along the contraction.
#acc = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#a = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], warps = [1, 1], swapped = true, order = [1, 2, 8, 4]>
#b = #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true>
func.func @orders(%a: !kvbuffer.fragment<32x16xbf16, a, #a>, %b: !kvbuffer.fragment<16x32xbf16, b, #b>, %c: !kvbuffer.fragment<32x32xf32, acc, #acc>) {
  // expected-error @below {{'kvbuffer.mma' op contracts a in the order [1, 2, 8, 4] and b in the natural order; expected one order}}
  %d = kvbuffer.mma %a, %b, %c : !kvbuffer.fragment<32x16xbf16, a, #a>, !kvbuffer.fragment<16x32xbf16, b, #b>, !kvbuffer.fragment<32x32xf32, acc, #acc>
  return
}

// -----

// Operands of two instructions.
#acc = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#a = #kvbuffer.mma<mfma, a, shape = [16, 16, 32], warps = [1, 1], swapped = true>
#b = #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true>
func.func @instructions(%a: !kvbuffer.fragment<32x32xbf16, a, #a>, %b: !kvbuffer.fragment<32x32xbf16, b, #b>, %c: !kvbuffer.fragment<32x32xf32, acc, #acc>) {
  // expected-error @below {{'kvbuffer.mma' op expected the layouts of one matrix instruction's operands a, b and acc, got #kvbuffer.mma<}}
  %d = kvbuffer.mma %a, %b, %c : !kvbuffer.fragment<32x32xbf16, a, #a>, !kvbuffer.fragment<32x32xbf16, b, #b>, !kvbuffer.fragment<32x32xf32, acc, #acc>
  return
}

// -----

#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1]>
#a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>
#b = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [1, 1]>
func.func @turned(%a: !kvbuffer.fragment<16x16xbf16, a, #a>, %b: !kvbuffer.fragment<16x16xbf16, b, #b>, %c: !kvbuffer.fragment<16x16xf32, acc, #acc>) {
  // expected-error @below {{'kvbuffer.mma' op multiplies by a fragment whose layout has transpose_b = false; expected true}}
  %d = kvbuffer.mma %a, %b, %c {transpose_b} : !kvbuffer.fragment<16x16xbf16, a, #a>, !kvbuffer.fragment<16x16xbf16, b, #b>, !kvbuffer.fragment<16x16xf32, acc, #acc>
  return
}

// -----

#a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>
func.func @other(%x: !kvbuffer.fragment<16x16xbf16, a>) {
  // expected-error @below {{'kvbuffer.exchange' op expected fragments that differ in their layout only, got}}
  %y = kvbuffer.exchange %x : !kvbuffer.fragment<16x16xbf16, a> -> !kvbuffer.fragment<16x32xbf16, a, #a>
  return
}

// -----

#a = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>
func.func @part(%x: !kvbuffer.fragment<16x32xbf16, a, #a>) {
  // expected-error @below {{'kvbuffer.fragment_slice' op expected the source's layout}}
  %y = kvbuffer.fragment_slice %x [0, 16] : !kvbuffer.fragment<16x32xbf16, a, #a> -> !kvbuffer.fragment<16x16xbf16, a>
  return
}

// -----

// The read and the layout say two things of one fragment.
#buf = #kvbuffer.kv_buffer<32x32xbf16>
#b = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [1, 1]>
func.func @read(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{'kvbuffer.fragment_load' op loads contracted(cols) into a layout without transpose_b; expected one with it}}
  %y = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x32xbf16, b, #b>
  return
}

// -----

#buf = #kvbuffer.kv_buffer<32x32xbf16>
#b = #kvbuffer.mma<mma_sync, b, shape = [16, 8, 16], warps = [1, 1], transpose_b = true>
func.func @read(%s: !kvbuffer.staged<#buf>) {
  // expected-error @below {{'kvbuffer.fragment_load' op loads contracted(rows) into a layout with transpose_b; expected one without it}}
  %y = kvbuffer.fragment_load %s[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<32x32xbf16, b, #b>
  return
}

// -----

func.func @row_reduce(%x: !kvbuffer.fragment<16x16xbf16, a>) {
  // expected-error @below {{'kvbuffer.row_reduce' op expected accumulators of f32 and a value for each of their rows, got '!kvbuffer.fragment<16x16xbf16, a>' and '!kvbuffer.fragment<16x1xf32, row>'}}
  %y = kvbuffer.row_reduce sum %x : !kvbuffer.fragment<16x16xbf16, a> -> !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @warp_reduce(%x: !kvbuffer.fragment<16x16xf32, acc>) {
  // expected-error @below {{'kvbuffer.warp_reduce' op expected a value for each row, got '!kvbuffer.fragment<16x16xf32, acc>'}}
  %y = kvbuffer.warp_reduce %x : !kvbuffer.fragment<16x16xf32, acc>
  return
}

// -----

// One more step of the softmax would count the sum once for each warp.
func.func @goes_on(%s: !kvbuffer.fragment<16x16xf32, acc>, %l: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-error @below {{'kvbuffer.warp_reduce' op expected no use but as the sum of kvbuffer.softmax_finish or kvbuffer.partial_store, which end a softmax}}
  %whole = kvbuffer.warp_reduce %l : !kvbuffer.fragment<16x1xf32, row>
  // expected-note @below {{it is used here}}
  %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %l, %whole {scale = 1.0 : f32} : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !kvbuffer.fragment<16x16xbf16, a>
  return
}
