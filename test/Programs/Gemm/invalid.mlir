// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @types(%a: memref<8x8xbf16>, %b: memref<8x8xf16>, %c: memref<8x8xf32>) {
  // expected-error @below {{'kvbuffer.gemm' op (C1) multiplies elements of 'bf16' by elements of 'f16'; expected one type}}
  kvbuffer.gemm a(%a) b(%b) out(%c) : memref<8x8xbf16>, memref<8x8xf16>, memref<8x8xf32>
  return
}

// -----

func.func @depths(%a: memref<?x16xbf16>, %b: memref<8x?xbf16>, %c: memref<?x?xbf16>) {
  // expected-error @below {{(C2) has an operand of 'memref<8x?xbf16>', whose size 8 does not fit the others'; expected 16}}
  kvbuffer.gemm a(%a) b(%b) out(%c) : memref<?x16xbf16>, memref<8x?xbf16>, memref<?x?xbf16>
  return
}

// -----

func.func @rows(%a: memref<?x16xbf16>, %b: memref<24x16xbf16>, %c: memref<?x16xbf16>) {
  // expected-error @below {{(C2) has an operand of 'memref<?x16xbf16>', whose size 16 does not fit the others'; expected 24}}
  kvbuffer.gemm a(%a) b(%b) out(%c) {transpose_b} : memref<?x16xbf16>, memref<24x16xbf16>, memref<?x16xbf16>
  return
}

// -----

!columns = memref<?x?xbf16, strided<[1, ?]>>
func.func @strides(%a: !columns, %b: memref<?x?xbf16>, %c: memref<?x?xbf16>) {
  // expected-error @below {{(C3) has an operand of 'memref<?x?xbf16, strided<[1, ?]>>'; expected elements of a row side by side, a last stride of 1}}
  kvbuffer.gemm a(%a) b(%b) out(%c) : !columns, memref<?x?xbf16>, memref<?x?xbf16>
  return
}

// -----

func.func @forms(%a: tensor<8x8xbf16>, %c: memref<8x8xf32>) {
  // expected-error @below {{(C4) has an operand of 'tensor<8x8xbf16>' beside an output of 'memref<8x8xf32>'; expected all to be tensors, or all memrefs}}
  kvbuffer.gemm a(%a) b(%a) out(%c) : tensor<8x8xbf16>, tensor<8x8xbf16>, memref<8x8xf32>
  return
}

// -----

func.func @unknown(%a: memref<8x8xbf16>, %c: memref<8x8xf32>) {
  // expected-error @below {{has an unknown attribute 'transpose'; did you mean 'transpose_b'?}}
  kvbuffer.gemm a(%a) b(%a) out(%c) {transpose} : memref<8x8xbf16>, memref<8x8xbf16>, memref<8x8xf32>
  return
}

// -----

gpu.module @kernels {
  // expected-note @below {{the kernel is here}}
  gpu.func @inside(%a: memref<8x8xbf16>, %c: memref<8x8xf32>) kernel
      attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    // expected-error @below {{is not allowed in phase 'tile': a problem stands in a func.func}}
    kvbuffer.gemm a(%a) b(%a) out(%c) : memref<8x8xbf16>, memref<8x8xbf16>, memref<8x8xf32>
    gpu.return
  }
}
