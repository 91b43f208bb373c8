// A region that says a window shows a row no more keys than one sum is for: no launch takes a
// kernel that adds up parts. What lists show whole no window hides.

// RUN: kvbuf-compile %s --target=sm_90a --code=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --implicit-check-not=many_keys
// RUN: sed 's/1000 :/131072 :/' %s | kvbuf-compile - --target=sm_90a --code=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --check-prefix=MANY
// RUN: sed 's/scale = 1.250000e-01 : f32/block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1, 2, 3]>/' %s | kvbuf-compile - --target=sm_90a --code=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --check-prefix=MANY

// CHECK: f_of_few_rows
// MANY: f_of_many_keys
!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!counts = memref<?x?x?xi32>
!blocks = memref<?x?x?x?xi32>
func.func @f(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %a: !counts, %b: !blocks, %c: !counts, %d: !blocks) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = 1.250000e-01 : f32} : !qo, !kv, !kv, !qo
    captures(%a, %b, %c, %d : !counts, !blocks, !counts, !blocks)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %a_: !counts, %b_: !blocks, %c_: !counts, %d_: !blocks):
      %left = arith.constant 1000 : index
      %distance = arith.subi %at, %key : index
      %near = arith.cmpi sle, %distance, %left : index
      %before = arith.cmpi sle, %key, %at : index
      %t = arith.andi %near, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}
