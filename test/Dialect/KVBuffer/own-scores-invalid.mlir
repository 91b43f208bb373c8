// Regions of attention that are none.

// RUN: kvbuf-opt %s --split-input-file --kvbuf-to-tile="chip=sm_80" --verify-diagnostics

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @arguments(%q: !qo, %k: !kv, %o: !qo) {
  // expected-error @below {{expected a region of a score, the sequence, the head, the row, its position, the key and the captures, ('f32', 'index', 'index', 'index', 'index', 'index'), got ('f32', 'index')}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %key: index):
      kvbuffer.yield %s : f32
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @result(%q: !qo, %k: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      // expected-error @below {{expected an element of the result, 'i1', got 'index'}}
      kvbuffer.yield %key : index
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @outside(%q: !qo, %k: !kv, %slopes: memref<4xf32>, %o: !qo) {
  // expected-note @below {{the region is here}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      // expected-error @below {{uses a value from outside of the region; expected it among the captures, or a constant inside}}
      %x = memref.load %slopes[%head] : memref<4xf32>
      kvbuffer.yield %x : f32
    }
  return
}

// -----

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
func.func @writes(%q: !qo, %k: !kv, %slopes: memref<4xf32>, %o: !qo) {
  // expected-note @below {{the region is here}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %x: memref<4xf32>):
      // expected-error @below {{is not allowed in a kvbuffer.attention: it may only read memory}}
      memref.store %s, %x[%head] : memref<4xf32>
      kvbuffer.yield %s : f32
    }
  return
}
