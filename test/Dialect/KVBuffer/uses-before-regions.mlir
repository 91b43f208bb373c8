// Names are looked up late: what stands in front of an op may use a name of its regions. That is
// an error at the region, where it was a use of what is gone when the rest of the op is wrong.
// RUN: not kvbuf-opt %s --split-input-file -o %t 2>&1 | FileCheck %s

// CHECK: [[@LINE+7]]:{{[0-9]+}}: error: custom op 'kvbuffer.attention' a value of this region is used in front of it, where there is none
!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @attention(%doc: memref<?x?xi32>, %q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  %other = memref.load %doc[%batch, %key] : memref<?x?xi32>
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    // (The first of its two regions.)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      kvbuffer.yield %s : f32
    }
    visible {
      %wrong
    }
  return
}

// -----

// CHECK: [[@LINE+5]]:{{[0-9]+}}: error: custom op 'kvbuffer.map' a value of this region is used in front of it, where there is none
!acc = !kvbuffer.fragment<16x16xf32, acc>
func.func @map(%s: !acc, %r: index) {
  %0 = arith.addi %inner, %inner : index
  // The operand is of another type, which is found out behind the region.
  %t = kvbuffer.map %r at(%r, %r) : !acc -> !acc { ^bb0(%x: f32, %i: index, %j: index):
    %inner = arith.addi %i, %j : index
    kvbuffer.yield %x : f32
  }
  return
}

// -----

// CHECK: [[@LINE+5]]:{{[0-9]+}}: error: custom op 'kvbuffer.team' a value of this region is used in front of it, where there is none
gpu.module @m {
  gpu.func @team() kernel {
    kvbuffer.teams {
      %0 = arith.addi %inner, %inner : index
      kvbuffer.team @first warps(4) {
        %inner = arith.constant 1 : index
      }
    }
    gpu.return
  }
}

// -----

// A region that says nothing is no region that is left out.
// CHECK: error: empty block: expect at least a terminator
!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @empty(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    }
  return
}
