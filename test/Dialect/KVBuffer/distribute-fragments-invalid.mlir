// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-distribute-fragments)))" --split-input-file --verify-diagnostics

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op needs a 'kvbuffer.schedule' and a 'kvbuffer.target' on the module}}
    gpu.func @bare() kernel {
      %row = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x1xf32, row>
      gpu.return
    }
  }
}

// -----

// One operand of two products that contract it in two orders.
#q = #kvbuffer.mma<mfma, a, shape = [32, 32, 16], warps = [1, 1], swapped = true>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @shared(%q: !kvbuffer.fragment<32x32xbf16, a, #q>, %b: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.mma' op needs a fragment in the layout #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true>, which is handed on in the layout #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [1, 1], swapped = true, order = [1, 2, 8, 4]>; expected one layout, a fragment of its own for each use, or a kvbuffer.exchange}}
      %r0 = kvbuffer.mma %q, %b, %s : !kvbuffer.fragment<32x32xbf16, a, #q>, !b, !acc
      %p = kvbuffer.fragment_convert %r0 : !acc -> !a
      %r1 = kvbuffer.mma %p, %b, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// Weights or what comes from memory, by a condition.
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [2, 0, 4], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, warp_size = 64>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @either(%qs: !kvbuffer.staged<#qbuf>, %b: !b, %s: !acc, %c: i1) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      %q = kvbuffer.fragment_load %qs[0, 0] : !kvbuffer.staged<#qbuf> -> !a
      // expected-note @below {{a comes from accumulators here}}
      %p = kvbuffer.fragment_convert %s : !acc -> !a
      %x = scf.if %c -> (!a) {
        scf.yield %q : !a
      } else {
        scf.yield %p : !a
      }
      // expected-error @below {{'kvbuffer.mma' op multiplies what comes from memory or from accumulators, whose contracted elements lie in different orders on gfx950; expected one of them}}
      %r = kvbuffer.mma %x, %b, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// Elements, and a shape, for which there is no instruction.
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xf8E4M3FN, a>
!b = !kvbuffer.fragment<32x32xf8E4M3FN, b>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @m {
    gpu.func @types(%a: !a, %b: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.mma' op has elements of f8E4M3FN, which gfx942 lacks; its 8-bit floats are f8E4M3FNUZ and f8E5M2FNUZ}}
      %r = kvbuffer.mma %a, %b, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @shape(%a: !a, %b: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8]>} {
      // expected-error @below {{'kvbuffer.mma' op multiplies elements of bf16 in a kernel whose schedule has mma_shape = 32x32x8; for bf16 sm_80 has 16x8x16}}
      %r = kvbuffer.mma %a, %b, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// Layouts by hand that do not fit together.
#one = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [2, 1]>
#two = #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>
!acc = !kvbuffer.fragment<32x32xf32, acc, #one>
!a = !kvbuffer.fragment<32x32xbf16, a, #two>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @hand(%a: !a, %b: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.mma' op needs a fragment in the layout #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [2, 1]>, which is handed on in the layout #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1]>; expected one layout, a fragment of its own for each use, or a kvbuffer.exchange}}
      %r = kvbuffer.mma %a, %b, %s : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// One row value for two fragments whose rows lie in different lanes.
#one = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [2, 1]>
#two = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1], swapped = true>
!x = !kvbuffer.fragment<32x32xf32, acc, #one>
!y = !kvbuffer.fragment<32x32xf32, acc, #two>
!row = !kvbuffer.fragment<32x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @rows(%x: !x, %y: !y) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_fill' op has values for each row of fragments whose rows lie in different lanes, #kvbuffer.slice<}}
      %f = kvbuffer.fragment_fill 1.0 : !row
      %x1 = kvbuffer.rescale %x, %f : !x, !row
      %y1 = kvbuffer.rescale %y, %f : !y, !row
      gpu.return
    }
  }
}

// -----

// A warp decides by what it holds of a row whether its maximum is raised.
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 2]>
!s = !kvbuffer.fragment<16x32xf32, acc, #acc>
!row = !kvbuffer.fragment<16x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @lazy(%s: !s, %m: !row) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16], warp_cols = 2>} {
      // expected-error @below {{'kvbuffer.raise_max' op looks at scores or accumulators whose columns several warps share; expected kvbuffer.online_softmax, or warps = [n, 1]}}
      %m1, %f, %any = kvbuffer.raise_max %s, %m {scale = 1.0 : f32} : !s, !row
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @two_orders(%parts: memref<4x8x36xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %a, %m, %l = kvbuffer.partial_load %parts[%c0] valid(%c8) {columns = array<i64: 2, 1>} : memref<4x8x36xf32> -> !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>
      // expected-error @below {{'kvbuffer.partial_load' op has columns in the order [4, 1, 2], and what else goes to its memory in the order [2, 1]; expected one order}}
      %b, %n, %k = kvbuffer.partial_load %parts[%c8] valid(%c8) {columns = array<i64: 4, 1, 2>} : memref<4x8x36xf32> -> !kvbuffer.fragment<8x32xf32, acc>, !kvbuffer.fragment<8x1xf32, row>
      gpu.return
    }
  }
}

// -----

// Weights of two products, by a condition, whose accumulators lie in different orders.
#wide = #kvbuffer.mma<mfma, acc, shape = [32, 32, 16], warps = [1, 1], swapped = true>
#small = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1], swapped = true>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @orders(%b: !b, %s: !kvbuffer.fragment<32x32xf32, acc, #wide>, %t: !kvbuffer.fragment<32x32xf32, acc, #small>, %o: !acc, %c: i1) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      %p = kvbuffer.fragment_convert %s : !kvbuffer.fragment<32x32xf32, acc, #wide> -> !a
      %q = kvbuffer.fragment_convert %t : !kvbuffer.fragment<32x32xf32, acc, #small> -> !a
      %x = scf.if %c -> (!a) {
        scf.yield %p : !a
      } else {
        scf.yield %q : !a
      }
      // expected-error @below {{'kvbuffer.mma' op multiplies weights of products whose accumulators lie in different orders; expected one matrix instruction}}
      %r = kvbuffer.mma %x, %b, %o : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// What rounding has added, to sums that two warps share.
#shared = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 2]>
!acc = !kvbuffer.fragment<16x32xf32, acc, #shared>
!row = !kvbuffer.fragment<16x1xf32, row>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @excess(%acc: !acc, %m: !row, %l: !row, %e: !row) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 16, warps = 2, mma_shape = [16, 8, 16], warp_cols = 2>} {
      // expected-error @below {{'kvbuffer.softmax_finish' op takes what rounding has added to weights whose columns 2 warps share; expected a softmax without lazy_rescale}}
      %o, %lse = kvbuffer.softmax_finish %acc, %m, %l excess(%e) {scale = 1.0 : f32} : !acc, !row
      gpu.return
    }
  }
}

// -----

// Each warp needs all of operand b.
!acc = !kvbuffer.fragment<32x32xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @shared_b(%a: !kvbuffer.fragment<32x32xbf16, a>, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1], kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 2, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.fragment_convert' op makes operand b, of which each warp needs all, of accumulators that 2 warps share; expected warps = 1 in the schedule}}
      %b = kvbuffer.fragment_convert %s : !acc -> !kvbuffer.fragment<32x32xbf16, b>
      %r = kvbuffer.mma %a, %b, %s : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !acc
      gpu.return
    }
  }
}

// -----

// The product that the schedule names another chip's instruction for.
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, scores = #kvbuffer.instruction<mma_sync, [16, 8, 16]>, values = #kvbuffer.instruction<mfma, [32, 32, 8]>>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @shape(%a: !a, %b: !b, %k: !b, %s: !acc, %o: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %one = kvbuffer.mma %a, %k, %s {transpose_b} : !a, !b, !acc
      // expected-error @below {{'kvbuffer.mma' op multiplies elements of bf16 in a kernel whose schedule has values = 32x32x8; for bf16 sm_80 has 16x8x16}}
      %r = kvbuffer.mma %a, %b, %o : !a, !b, !acc
      gpu.return
    }
  }
}

// -----

// One sum of two kinds of products, for which the schedule has two instructions.
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, scores = #kvbuffer.instruction<mfma, [32, 32, 16]>, values = #kvbuffer.instruction<mfma, [16, 16, 32]>, swap_a_b = true>
!acc = !kvbuffer.fragment<32x32xf32, acc>
!a = !kvbuffer.fragment<32x32xbf16, a>
!b = !kvbuffer.fragment<32x32xbf16, b>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @one_sum(%a: !a, %c: !a, %b: !b, %k: !b, %s: !acc) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %one = kvbuffer.mma %a, %k, %s {transpose_b} : !a, !b, !acc
      // expected-error @below {{'kvbuffer.mma' op adds to accumulators of a product by scores = 32x32x16, in a kernel whose schedule has values = 16x16x32 for it; expected accumulators of its own}}
      %r = kvbuffer.mma %c, %b, %one : !a, !b, !acc
      gpu.return
    }
  }
}
