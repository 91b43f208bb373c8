// RUN: kvbuf-opt %s --kvbuf-choose-target=chip=sm_80 --kvbuf-lower-append --split-input-file --verify-diagnostics
// RUN: not kvbuf-opt %s --split-input-file --kvbuf-choose-target=chip=sm_80 --kvbuf-lower-append=alignment=3 2>&1 | FileCheck %s
// CHECK: error: 'func.func' op is to be lowered with alignment = 3; expected 2, 4, 8 or 16

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @beside(%k: !new, %kc: !paged, %o: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  // expected-error @below {{'arith.constant' op is not supported beside kvbuffer.cache_append: expected a function of one kvbuffer.cache_append and a return}}
  %c = arith.constant 0 : index
  return
}

// -----

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @twice(%k: !new, %kc: !paged, %o: memref<?xi32>) {
  // expected-error @below {{operand 'v_new' is the same argument as 'k_new'; expected one argument for each operand}}
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) v(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
// expected-error @below {{argument 3 is not used by kvbuffer.cache_append}}
func.func @unused(%k: !new, %kc: !paged, %o: memref<?xi32>, %x: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<?x2x96xbf16, strided<[?, ?, 1]>>
!groups = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 96, page_size = 16, scale = f32, granularity = 48>
func.func @groups(%k: !new, %kc: !groups, %o: memref<?xi32>) {
  // expected-error @below {{makes scales for groups of 48 elements of 96; expected groups that divide a head, of 16 times a power of two, or whole heads}}
  kvbuffer.cache_append k(%k : !new) to(%kc : !groups) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<?x1x1024xbf16, strided<[?, ?, 1]>>
!groups = !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 1024, page_size = 16, scale = f32, granularity = 1024>
func.func @wide(%k: !new, %kc: !groups, %o: memref<?xi32>) {
  // expected-error @below {{makes scales for groups of 1024 elements; a wave of sm_80 holds 512}}
  kvbuffer.cache_append k(%k : !new) to(%kc : !groups) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
gpu.module @m {
  func.func @inside(%k: !new, %kc: !paged, %o: memref<?xi32>) {
    // expected-error @below {{stands where it is not lowered; expected a function of one kvbuffer.cache_append and a return, at the top of the module}}
    kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
    return
  }
}

// -----

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
// expected-error @below {{has the attribute 'kvbuffer.grid', which nothing reads on the function of a kvbuffer.cache_append; expected it on a kernel (gpu.func)}}
func.func @grid(%k: !new, %kc: !paged, %o: memref<?xi32>) attributes {kvbuffer.grid = [1, 1, 1]} {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
// expected-error @below {{argument 2 has the attribute 'kvbuffer.access', which nothing reads there: the kvbuffer.cache_append says what it is}}
func.func @access(%k: !new, %kc: !paged, %o: memref<?xi32> {kvbuffer.access = "read"}) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  return
}

// -----

// A function that becomes a kernel is gone for its callers.

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func private @called(%k: !new, %kc: !paged, %o: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) offsets(%o : memref<?xi32>)
  return
}
func.func @caller(%k: !new, %kc: !paged, %o: memref<?xi32>) {
  // expected-error @below {{'func.call' op refers to @called, which becomes a kernel: expected no reference to it}}
  call @called(%k, %kc, %o) : (!new, !paged, memref<?xi32>) -> ()
  return
}

// -----

// The lanes of a group of packed rows find its largest element together.

!new = memref<?x1x120xbf16, strided<[?, ?, 1]>>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 120, page_size = 16, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @groups(%k: !new, %kc: !rows, %o: memref<?xi32>) {
  // expected-error @below {{makes scales for groups of 24 of the 48 elements from 0 on; expected groups that divide a part, of 8 times a power of two up to 32, behind a multiple of them}}
  kvbuffer.cache_append k(%k : !new) to(%kc : !rows) offsets(%o : memref<?xi32>)
  return
}
