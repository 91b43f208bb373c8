// RUN: kvbuf-opt %s --kvbuf-choose-schedule --kvbuf-lower-problems --split-input-file --verify-diagnostics

!m = memref<?x?xbf16>
func.func @same(%a: !m, %c: !m) {
  // expected-error @below {{'kvbuffer.gemm' op operand 'b' is the same argument as 'a'; expected one argument for each operand}}
  kvbuffer.gemm a(%a) b(%a) out(%c) : !m, !m, !m
  return
}

// -----

!m = memref<?x?xbf16>
// expected-error @below {{argument 1 is not used by kvbuffer.gemm}}
func.func @unused(%a: !m, %more: !m, %b: !m, %c: !m) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : !m, !m, !m
  return
}

// -----

!m = memref<?x?xbf16>
func.func @beside(%a: !m, %b: !m, %c: !m) {
  // expected-error @below {{'memref.copy' op is not supported beside kvbuffer.gemm: expected a function of one kvbuffer.gemm and a return}}
  memref.copy %a, %b : !m to !m
  kvbuffer.gemm a(%a) b(%b) out(%c) : !m, !m, !m
  return
}

// -----

!m = memref<?x?xbf16>
func.func @made(%a: !m, %b: !m) {
  // expected-error @below {{'memref.alloc' op is not supported beside kvbuffer.gemm}}
  %c = memref.alloc() : memref<8x8xbf16>
  kvbuffer.gemm a(%a) b(%b) out(%c) : !m, !m, memref<8x8xbf16>
  return
}

// -----

!m = memref<?x?xbf16>
// expected-note @below {{the module is here}}
module {
  gpu.module @inside {
    func.func @product(%a: !m, %b: !m, %c: !m) {
      // expected-error @below {{stands in a function of a nested 'gpu.module', where it is not lowered; expected a function of one kvbuffer.gemm and a return, at the top of the module}}
      kvbuffer.gemm a(%a) b(%b) out(%c) : !m, !m, !m
      return
    }
  }
}
