// The check of an f32 output catches a program that rounds O to bf16 on its way, as it
// would be right for a bf16 output.

// RUN: kvbuf-opt %s --kvbuf-to-tile="schedule=BM=64,BN=32" -o %t
// RUN: kvbuf-tile-run %t --size seq=70 | FileCheck %s --check-prefix=SOUND
// SOUND: PASS

// RUN: sed 's/kvbuffer.fragment_store %\([a-z_0-9]*\), \(%[a-z_0-9]*\) :.*/%narrow = kvbuffer.fragment_convert %\1 : <64x64xf32, acc> -> <64x64xbf16, acc>\n%wide = kvbuffer.fragment_convert %narrow : <64x64xbf16, acc> -> <64x64xf32, acc>\nkvbuffer.fragment_store %wide, \2 : <64x64xf32, acc>, <64x64xf32>/' %t > %t.rounded
// RUN: FileCheck %s --check-prefix=PLANTED --input-file=%t.rounded
// RUN: not kvbuf-tile-run %t.rounded --size seq=70 | FileCheck %s --check-prefix=FAIL
// PLANTED: kvbuffer.fragment_store %wide
// FAIL: FAIL

!q = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
!o = memref<?x?x1x64xf32, strided<[?, ?, ?, 1]>>
func.func @wide_out(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !o
  return
}
