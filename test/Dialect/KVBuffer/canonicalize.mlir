// RUN: kvbuf-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @whole_slice
// CHECK-SAME:    (%[[F:.*]]: !kvbuffer.fragment<64x16xbf16, b>)
// CHECK-NEXT:    return %[[F]]
func.func @whole_slice(%f: !kvbuffer.fragment<64x16xbf16, b>) -> !kvbuffer.fragment<64x16xbf16, b> {
  %s = kvbuffer.fragment_slice %f[0, 0] : !kvbuffer.fragment<64x16xbf16, b> -> !kvbuffer.fragment<64x16xbf16, b>
  return %s : !kvbuffer.fragment<64x16xbf16, b>
}

// -----

// CHECK-LABEL: func.func @part_stays
// CHECK:         kvbuffer.fragment_slice
func.func @part_stays(%f: !kvbuffer.fragment<64x16xbf16, b>) -> !kvbuffer.fragment<32x16xbf16, b> {
  %s = kvbuffer.fragment_slice %f[32, 0] : !kvbuffer.fragment<64x16xbf16, b> -> !kvbuffer.fragment<32x16xbf16, b>
  return %s : !kvbuffer.fragment<32x16xbf16, b>
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
!r = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>

// Scores that no mask has touched are finite.
// CHECK-LABEL: func.func @masked
func.func @masked(%q: !a, %k: !b, %acc: !s, %m: !r, %l: !r, %i: index) -> (!a, !a, !a, !a, !a) {
  %s = kvbuffer.mma %q, %k, %acc {transpose_b} : !a, !b, !s
  %c = kvbuffer.softcap %s {scale = 1.0 : f32, cap = 2.0 : f32} : !s
  %f = kvbuffer.fragment_scale %s {factor = -1.0 : f32} : !s
  %h = kvbuffer.mask %s rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !s
  // CHECK: kvbuffer.online_softmax %{{.*}} {scale = 1.000000e+00 : f32}
  %p0:4 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {scale = 2.000000e+00 : f32}
  %p1:4 = kvbuffer.online_softmax %c, %m, %l {scale = 2.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {scale = 3.000000e+00 : f32}
  %p2:4 = kvbuffer.online_softmax %f, %m, %l {scale = 3.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {masked, scale = 4.000000e+00 : f32}
  %p3:4 = kvbuffer.online_softmax %h, %m, %l {scale = 4.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {masked, scale = 5.000000e+00 : f32}
  %p4:4 = kvbuffer.online_softmax %acc, %m, %l {scale = 5.0 : f32, masked} : !s, !r -> !a
  return %p0#0, %p1#0, %p2#0, %p3#0, %p4#0 : !a, !a, !a, !a, !a
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
!r = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>

// What a product begins with, and what another one goes on with, may be -inf.
// CHECK-LABEL: func.func @begun
func.func @begun(%q: !a, %k: !b, %bias: !s, %m: !r, %l: !r) -> (!a, !a, !a, !a) {
  %zero = kvbuffer.fragment_fill 0.0 : !s
  %begin = kvbuffer.map %bias : !s -> !s {
  ^bb0(%x: f32, %i: index, %j: index):
    %e = math.log2 %x : f32
    kvbuffer.yield %e : f32
  }
  %s = kvbuffer.mma %q, %k, %begin {transpose_b} : !a, !b, !s
  %t = kvbuffer.mma %q, %k, %s {transpose_b} : !a, !b, !s
  %u = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !s
  // CHECK: kvbuffer.online_softmax %{{.*}} {masked, scale = 1.000000e+00 : f32}
  %p0:4 = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {masked, scale = 2.000000e+00 : f32}
  %p1:4 = kvbuffer.online_softmax %t, %m, %l {scale = 2.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %{{.*}} {scale = 3.000000e+00 : f32}
  %p2:4 = kvbuffer.online_softmax %u, %m, %l {scale = 3.0 : f32, masked} : !s, !r -> !a
  // A factor changes nothing about that.
  %v = kvbuffer.fragment_scale %s {factor = 2.0 : f32} : !s
  // CHECK: kvbuffer.online_softmax %{{.*}} {masked, scale = 4.000000e+00 : f32}
  %p3:4 = kvbuffer.online_softmax %v, %m, %l {scale = 4.0 : f32, masked} : !s, !r -> !a
  return %p0#0, %p1#0, %p2#0, %p3#0 : !a, !a, !a, !a
}

// -----

!s = !kvbuffer.fragment<16x16xf32, acc>
!r = !kvbuffer.fragment<16x1xf32, row>
!q = !kvbuffer.fragment<16x16xbf16, a>
!a = !kvbuffer.fragment<16x16xf16, a>
!b = !kvbuffer.fragment<16x16xf16, b>

// What a fit leaves to rows is positive: finite scores stay finite, and hidden
// ones -inf, so that a softmax takes it with its own scale.
// CHECK-LABEL: func.func @fit
// CHECK-SAME:    (%[[Q:.*]]: !kvbuffer.fragment<16x16xbf16, a>
func.func @fit(%q: !q, %k: !b, %acc: !s, %m: !r, %l: !r, %i: index, %any: !r) -> (!a, !a, !a, !a, !s) {
  // CHECK: %[[HALF:.*]], %[[FACTOR:.*]] = kvbuffer.fragment_fit
  %half, %factor = kvbuffer.fragment_fit %q : !q -> !a, !r
  // CHECK: %[[S:.*]] = kvbuffer.mma
  %s = kvbuffer.mma %half, %k, %acc {transpose_b} : !a, !b, !s
  %x = kvbuffer.rescale %s, %factor : !s, !r
  // CHECK: %[[X:.*]] = kvbuffer.rescale %[[S]], %[[FACTOR]]
  // CHECK: kvbuffer.online_softmax %[[X]]{{.*}} {scale = 1.000000e+00 : f32}
  %p0:4 = kvbuffer.online_softmax %x, %m, %l {scale = 1.0 : f32, masked} : !s, !r -> !a
  // CHECK: %[[HIDDEN:.*]] = kvbuffer.mask %[[S]] rows
  // CHECK: %[[Y:.*]] = kvbuffer.rescale %[[HIDDEN]], %[[FACTOR]]
  // CHECK: kvbuffer.online_softmax %[[Y]]{{.*}} {masked, scale = 2.000000e+00 : f32}
  %y = kvbuffer.rescale %s, %factor : !s, !r
  %h = kvbuffer.mask %y rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !s
  %p1:4 = kvbuffer.online_softmax %h, %m, %l {scale = 2.0 : f32, masked} : !s, !r -> !a
  // A factor of any sign.
  // CHECK: %[[Z:.*]] = kvbuffer.rescale
  // CHECK: %[[H:.*]] = kvbuffer.mask %[[Z]] rows
  // CHECK: kvbuffer.online_softmax %[[H]]{{.*}} {masked, scale = 3.000000e+00 : f32}
  %z = kvbuffer.rescale %s, %any : !s, !r
  %g = kvbuffer.mask %z rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !s
  %p2:4 = kvbuffer.online_softmax %g, %m, %l {scale = 3.0 : f32, masked} : !s, !r -> !a
  // CHECK: kvbuffer.online_softmax %[[Z]]{{.*}} {masked, scale = 4.000000e+00 : f32}
  %p3:4 = kvbuffer.online_softmax %z, %m, %l {scale = 4.0 : f32, masked} : !s, !r -> !a
  // Somebody else reads what is hidden.
  // CHECK: %[[U:.*]] = kvbuffer.rescale
  // CHECK: kvbuffer.mask %[[U]] rows
  %u = kvbuffer.rescale %s, %factor : !s, !r
  %v = kvbuffer.mask %u rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !s
  return %p0#0, %p1#0, %p2#0, %p3#0, %v : !a, !a, !a, !a, !s
}

// -----

// Pure ops without a user go; loads, waits and allocations stay.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
// CHECK-LABEL: func.func @dead
// CHECK-NEXT:    kvbuffer.dram_load
// CHECK-NEXT:    kvbuffer.lds_stage
// CHECK-NEXT:    return
func.func @dead(%q: memref<?x?x1x16xbf16>, %i: index, %tile: !kvbuffer.tile<16x16xbf16>, %buf: !kvbuffer.buffer<#kbuf>) {
  %t = kvbuffer.dram_tile %q[%i, %i, %i] valid(%i) : memref<?x?x1x16xbf16> -> !kvbuffer.tile<16x16xbf16>
  %r:4 = kvbuffer.key_range %i of %i keys %i {BM = 128, mask = #kvbuffer.mask<>}
  %z = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xf32, acc>
  %token = kvbuffer.dram_load %tile into %buf[%i] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
  %s = kvbuffer.lds_stage %token : !kvbuffer.token<#kbuf>
  %f = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<16x16xbf16, b>
  return
}
