// What a module holds beside the kernel stays out of the artifact: the emulator
// does not know its dialect.

// RUN: kvbuf-compile %s --target=sm_80 --ptxas=none -o %t.kvbuf
// RUN: kvbuf-run %t.kvbuf --device=emulator --size seq=9 --check | FileCheck %s
// CHECK: PASS

!qo = memref<?x?x1x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

memref.global "private" @table : memref<4xf32>

func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
