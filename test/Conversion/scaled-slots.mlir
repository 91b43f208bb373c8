// Queries are multiplied by a scale that is a power of two where they lie, once, and not each
// bias by its inverse: lanes of each group of warps multiply the rows that its products read,
// fence what they have stored for the matrix unit, and meet. At 128 columns, whose scale is no
// power of two, biases are multiplied.
// RUN: kvbuf-compile %s --function=exact --target=sm_90a --no-alternatives --emit=scheduled -o %t
// RUN: FileCheck %s --check-prefix=RING --input-file=%t
// RUN: kvbuf-compile %s --function=exact --target=sm_90a --no-alternatives --emit=thread | FileCheck %s --check-prefix=LANES
// RUN: kvbuf-compile %s --function=inexact --target=sm_90a --no-alternatives --emit=scheduled | FileCheck %s --check-prefix=INEXACT

// A kernel that forgets to is wrong, which is seen by numbers (they are compared with float64
// in test/Kernels/Programs/scores.py).
// RUN: %python -c "import numpy as np; r = np.random.default_rng(1); [np.save('%t.' + n + '.npy', (r.standard_normal(s).astype('f').view('u4') >> 16).astype('u2')) for n, s in (('q', (1, 192, 4, 64)), ('k', (1, 160, 4, 64)), ('v', (1, 160, 4, 64)), ('bias', (4, 192, 160)), ('o', (1, 192, 4, 64)))]"
// DEFINE: %{run} = kvbuf-tile-run - --input q=%t.q.npy --input k=%t.k.npy --input v=%t.v.npy --input bias=%t.bias.npy --input o=%t.o.npy
// RUN: %{run} --output o=%t.right.npy < %t
// RUN: sed 's/ {kvbuffer.scaled_by = 1.250000e-01 : f32}//' %t | not %{run} --expect o=%t.right.npy | FileCheck %s --check-prefix=FORGOTTEN
// FORGOTTEN: EXCEEDED
// And by tiles as by teams.
// RUN: kvbuf-compile %s --function=exact --target=sm_90a --no-alternatives --emit=tile -o %t.tile
// RUN: %{run} --expect o=%t.right.npy < %t.tile

// What is no power of two, and what awaits no slot of bf16, are errors.
// RUN: sed 's/scaled_by = 1.250000e-01/scaled_by = 3.000000e-01/' %t | not kvbuf-compile - --emit=thread 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: sed 's/kvbuffer.turn_pass/kvbuffer.turn_pass {kvbuffer.scaled_by = 1.0 : f32}/' %t | not kvbuf-compile - --emit=thread 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: 'kvbuffer.turn_pass' op has the attribute 'kvbuffer.scaled_by', which nothing reads here; expected it on what awaits one slot of bf16
// POWER: error: 'kvbuffer.ring_wait' op attribute 'kvbuffer.scaled_by' must be a power of two of f32, from 2^-60 to 1

!qo64 = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv64 = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!qo128 = memref<?x?x4x128xbf16, strided<[?, ?, ?, 1]>>
!kv128 = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>
!bias = memref<4x?x?xbf16>

// RING:      kvbuffer.ring_wait %qring[%{{.*}}] {kvbuffer.scaled_by = 1.250000e-01 : f32}
// RING-NOT:  arith.mulf
// RING:      kvbuffer.online_softmax {{.*}}scale = 1.000000e+00 : f32, unbounded
// RING:      kvbuffer.softmax_finish {{.*}}scale = 1.000000e+00 : f32, unbounded

// The tile of 192 rows has 8192 bytes of a group's: four vectors of a lane.
// LANES:         %[[BY:.*]] = arith.constant dense<1.250000e-01> : vector<8xf32>
// LANES-COUNT-4: arith.mulf %{{.*}}, %[[BY]] : vector<8xf32>
// LANES-NOT:     arith.mulf %{{.*}}, %[[BY]]
// LANES:         nvvm.fence.proxy
// LANES:         nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// LANES:         kvbuffer.wgmma
func.func @exact(%q: !qo64, %k: !kv64, %v: !kv64, %bias: !bias {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]}, %o: !qo64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo64, !kv64, !kv64, !qo64
    captures(%bias : !bias)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %bias_: !bias):
      %narrow = memref.load %bias_[%head, %row, %key] : !bias
      %b = arith.extf %narrow : bf16 to f32
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}

// INEXACT-NOT: scaled_by
// INEXACT:     arith.mulf %{{.*}} {kvbuffer.finite_product}
// INEXACT-NOT: scaled_by
func.func @inexact(%q: !qo128, %k: !kv128, %v: !kv128, %bias: !bias {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]}, %o: !qo128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !kv128, !kv128, !qo128
    captures(%bias : !bias)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %bias_: !bias):
      %narrow = memref.load %bias_[%head, %row, %key] : !bias
      %b = arith.extf %narrow : bf16 to f32
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
