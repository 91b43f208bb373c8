// Every op and type: parses, prints what it parsed, and survives bytecode.

// RUN: kvbuf-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvbuf-opt %s --mlir-print-op-generic | kvbuf-opt | FileCheck %s
// RUN: kvbuf-opt %s --emit-bytecode | kvbuf-opt | FileCheck %s

#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 128, WN = 32, BK = 64, num_threads = 128, depth = 128, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
#bbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, full_kv = false, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>

!dense = !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>
!ragged = !kvbuffer.cache<ragged, f16, heads = 4, head_size = 64>
!continuous = !kvbuffer.cache<continuous, bf16, heads = 8, head_size = 128>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>

// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[Q:.*]]: memref<?x?x16x128xbf16>, %[[K:.*]]: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>, %[[V:.*]]: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>, %[[O:.*]]: memref<?x?x16x128xbf16>
func.func @attention(%q: memref<?x?x16x128xbf16>, %k: !dense, %v: !dense, %o: memref<?x?x16x128xbf16>,
                     %lse: memref<?x16x?xf32>, %sink: memref<16xf32>) {
  // CHECK:      kvbuffer.attention q(%[[Q]]) k(%[[K]]) v(%[[V]]) out(%[[O]])
  // CHECK-SAME:   : memref<?x?x16x128xbf16>, <dense, bf16, heads = 16, head_size = 128>, <dense, bf16, heads = 16, head_size = 128>, memref<?x?x16x128xbf16>{{$}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    : memref<?x?x16x128xbf16>, !dense, !dense, memref<?x?x16x128xbf16>
  // CHECK:      kvbuffer.attention
  // CHECK-SAME:   lse(%{{.*}}) {mask = #kvbuffer.mask<causal = true>} :
  // CHECK-SAME:   memref<?x?x16x128xbf16>, lse memref<?x16x?xf32>{{$}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : memref<?x?x16x128xbf16>, !dense, !dense, memref<?x?x16x128xbf16>, lse memref<?x16x?xf32>
  // CHECK:      kvbuffer.attention
  // CHECK-SAME:   sink(%{{.*}}) {schedule = #schedule} :
  // CHECK-SAME:   memref<?x?x16x128xbf16>, sink memref<16xf32>{{$}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) sink(%sink)
      {schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, mma_shape = [16, 8, 16]>}
    : memref<?x?x16x128xbf16>, !dense, !dense, memref<?x?x16x128xbf16>, sink memref<16xf32>
  return
}

// CHECK-LABEL: func.func @attention_ragged
func.func @attention_ragged(%q: memref<?x8x64xf16>, %k: !ragged, %v: !ragged, %o: memref<?x8x64xf16>,
                            %offsets: memref<?xi32>, %lse: memref<8x?xf32>, %sink: memref<?xf32>) {
  // CHECK:      kvbuffer.attention
  // CHECK-SAME:   offsets(%{{.*}}) lse(%{{.*}}) sink(%{{.*}}) {mask = #kvbuffer.mask<left = 7, right = 0>, scale = 1.250000e-01 : f32, softcap = 3.000000e+01 : f32}
  // CHECK-SAME:   , offsets memref<?xi32>, lse memref<8x?xf32>, sink memref<?xf32>
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) sink(%sink)
      {mask = #kvbuffer.mask<left = 7, right = 0>, scale = 0.125 : f32, softcap = 30.0 : f32}
    : memref<?x8x64xf16>, !ragged, !ragged, memref<?x8x64xf16>, offsets memref<?xi32>, lse memref<8x?xf32>, sink memref<?xf32>
  return
}

// CHECK-LABEL: func.func @caches
func.func @caches(%c: !continuous, %p: !paged, %q: memref<?x?x16x128xbf16>, %on: i1,
                  %batch: index, %head: index, %i: index, %lo: index, %hi: index) {
  // CHECK: %{{.*}} = kvbuffer.cache.num_keys %{{.*}}[%{{.*}}] new(%{{.*}}) : <continuous, bf16, heads = 8, head_size = 128>
  %n = kvbuffer.cache.num_keys %c[%batch] new(%i) : !continuous
  // CHECK: %{{.*}} = kvbuffer.cache_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] from %{{.*}} upto %{{.*}} : <continuous, bf16, heads = 8, head_size = 128> -> <64x128xbf16>
  %t0 = kvbuffer.cache_tile %c[%batch, %head, %i] from %lo upto %hi : !continuous -> !kvbuffer.tile<64x128xbf16>
  // CHECK: %{{.*}} = kvbuffer.cache_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] from %{{.*}} upto %{{.*}} if %{{.*}} : <paged, bf16, heads = 8, head_size = 128, page_size = 16> -> <64x128xbf16, page_size = 16>
  %t1 = kvbuffer.cache_tile %p[%batch, %head, %i] from %lo upto %hi if %on : !paged -> !kvbuffer.tile<64x128xbf16, page_size = 16>
  // CHECK: %{{.*}} = kvbuffer.cache_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] from %{{.*}} upto %{{.*}} col %{{.*}} : <continuous, bf16, heads = 8, head_size = 128> -> <64x128xbf16>
  %part = kvbuffer.cache_tile %c[%batch, %head, %i] from %lo upto %hi col %i : !continuous -> !kvbuffer.tile<64x128xbf16>
  // CHECK: %{{.*}} = kvbuffer.dram_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] valid(%{{.*}}) : memref<?x?x16x128xbf16> -> <128x128xbf16>
  %t2 = kvbuffer.dram_tile %q[%batch, %i, %head] valid(%n) : memref<?x?x16x128xbf16> -> !kvbuffer.tile<128x128xbf16>
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = kvbuffer.key_range %{{.*}} of %{{.*}} keys %{{.*}} {BM = 128 : i64, mask = #kvbuffer.mask<causal = true, left = 1024>}
  %r:4 = kvbuffer.key_range %i of %n keys %hi {BM = 128, mask = #kvbuffer.mask<causal = true, left = 1024>}
  // CHECK: kvbuffer.key_range %{{.*}} of %{{.*}} keys %{{.*}} from %{{.*}} {BM = 128 : i64, mask = #kvbuffer.mask<causal = true>}
  %from:4 = kvbuffer.key_range %i of %n keys %hi from %i {BM = 128, mask = #kvbuffer.mask<causal = true>}
  return
}

// CHECK-LABEL: func.func @any_operand
func.func @any_operand(%m: memref<?x?xbf16, strided<[?, 1]>>, %x: memref<?x?x4x64xbf16>, %numbers: memref<?xi64>, %i: index, %n: index, %k: index) {
  // CHECK: %tile = kvbuffer.dram_tile %{{.*}}[%{{.*}}, %{{.*}}] valid(%{{.*}}, %{{.*}}) : memref<?x?xbf16, strided<[?, 1]>> -> <64x128xbf16>
  %t = kvbuffer.dram_tile %m[%i, %k] valid(%n, %k) : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<64x128xbf16>
  // CHECK: kvbuffer.dram_tile %{{.*}}[%{{.*}}, %{{.*}}] gather(%{{.*}}[%{{.*}}]) valid(%{{.*}}, %{{.*}}) : memref<?x?xbf16, strided<[?, 1]>>, memref<?xi64> -> <64x128xbf16, page_size = 1>
  %gt = kvbuffer.dram_tile %m[%i, %k] gather(%numbers[%n]) valid(%n, %k) : memref<?x?xbf16, strided<[?, 1]>>, memref<?xi64> -> !kvbuffer.tile<64x128xbf16, page_size = 1>
  // CHECK: kvbuffer.dram_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] valid(%{{.*}}, %{{.*}}) {row_dim = 1 : i64} : memref<?x?x4x64xbf16> -> <64x128xbf16>
  %h = kvbuffer.dram_tile %x[%i, %i, %i, %k] valid(%n, %k) {row_dim = 1 : i64} : memref<?x?x4x64xbf16> -> !kvbuffer.tile<64x128xbf16>
  // CHECK: kvbuffer.dram_tile %{{.*}} valid(%{{.*}}, %{{.*}}) {group = 4 : i64, row_dim = 1 : i64} : memref<?x?x4x64xbf16> -> <8x32xbf16, page_size = 4>
  %g = kvbuffer.dram_tile %x[%i, %i, %i, %k] valid(%n, %k) {row_dim = 1 : i64, group = 4 : i64} : memref<?x?x4x64xbf16> -> !kvbuffer.tile<8x32xbf16, page_size = 4>
  // CHECK: %buf = kvbuffer.alloc {offset = 2048 : i64} : <#buf>
  %buf = kvbuffer.alloc {offset = 2048 : i64} : !kvbuffer.buffer<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>>
  // CHECK: %t = kvbuffer.dram_load %{{.*}} into %buf[%{{.*}}] : <64x128xbf16>, <#buf>
  %token = kvbuffer.dram_load %t into %buf[%i] : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>>
  // CHECK: %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
  %s = kvbuffer.lds_stage %token : !kvbuffer.token<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>>
  // One slot, read three ways.
  // CHECK: kvbuffer.fragment_load %s[0, 0] : <#buf> -> <64x16xbf16, a>
  %a = kvbuffer.fragment_load %s[0, 0] : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.fragment<64x16xbf16, a>
  // CHECK: kvbuffer.fragment_load %s[0, 0] contracted(cols) : <#buf> -> <64x16xbf16, b>
  %b = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.fragment<64x16xbf16, b>
  // CHECK: %[[V:.*]] = kvbuffer.staged_view %s[0, 64] : <#buf> -> <#buf, 64x64 at [0, 64]>
  %v = kvbuffer.staged_view %s[0, 64] : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>, 64x64 at [0, 64]>
  // CHECK: kvbuffer.fragment_load %[[V]][16, 0] contracted(rows) : <#buf, 64x64 at [0, 64]> -> <16x64xbf16, b>
  %c = kvbuffer.fragment_load %v[16, 0] contracted(rows) : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>, 64x64 at [0, 64]> -> !kvbuffer.fragment<16x64xbf16, b>
  return
}

// CHECK-LABEL: func.func @movement
func.func @movement(%mytile: !kvbuffer.tile<128x80xbf16>, %qtile: !kvbuffer.tile<128x128xbf16>, %tile: !kvbuffer.tile<64x128xbf16>, %slot: index, %on: i1, %n: index,
                    %o: memref<?x?x16x128xbf16>, %lse: memref<?x16x?xf32>,
                    %of: !kvbuffer.fragment<128x128xbf16, acc>, %row: !kvbuffer.fragment<128x1xf32, row>) {
  // What belongs to a buffer with a label has its name.
  // CHECK: %mybuf = kvbuffer.alloc {label = "my"} : <#{{.*}}>
  // CHECK: %myt = kvbuffer.dram_load %{{.*}} into %mybuf
  // CHECK: %mys = kvbuffer.lds_stage %myt
  %b = kvbuffer.alloc {label = "my"} : !kvbuffer.buffer<#kvbuffer.kv_buffer<128x80xbf16, BK = 16, full_kv = false, reg_chunk_depth = 32>>
  %bt = kvbuffer.dram_load %mytile into %b : !kvbuffer.tile<128x80xbf16>, !kvbuffer.buffer<#kvbuffer.kv_buffer<128x80xbf16, BK = 16, full_kv = false, reg_chunk_depth = 32>>
  %bs = kvbuffer.lds_stage %bt : !kvbuffer.token<#kvbuffer.kv_buffer<128x80xbf16, BK = 16, full_kv = false, reg_chunk_depth = 32>>
  // CHECK: %qbuf = kvbuffer.alloc : <#qbuf>
  %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
  // CHECK: %kbuf = kvbuffer.alloc : <#kbuf>
  %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
  // CHECK: %vbuf = kvbuffer.alloc : <#vbuf>
  %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
  // CHECK: %qt = kvbuffer.dram_load %{{.*}} into %qbuf[%{{.*}}] : <128x128xbf16>, <#qbuf>
  %q0 = kvbuffer.dram_load %qtile into %qbuf[%slot] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.buffer<#qbuf>
  // CHECK: %kt = kvbuffer.dram_load %{{.*}} into %kbuf[%{{.*}}] if %{{.*}} : <64x128xbf16>, <#kbuf>
  %k0 = kvbuffer.dram_load %tile into %kbuf[%slot] if %on : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
  // CHECK: %vt = kvbuffer.dram_load %{{.*}} into %vbuf[%{{.*}}] {whole} : <64x128xbf16>, <#vbuf>
  %v0 = kvbuffer.dram_load %tile into %vbuf[%slot] {whole} : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#vbuf>
  %bbuf = kvbuffer.alloc : !kvbuffer.buffer<#bbuf>
  // CHECK: kvbuffer.dram_load %{{.*}} into %kbuf_0[%{{.*}}] {block = 1 : i64} : <64x128xbf16>, <#kbuf1>
  %b1 = kvbuffer.dram_load %tile into %bbuf[%slot] {block = 1 : i64} : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#bbuf>
  // CHECK: %kt{{.*}} = kvbuffer.dram_load %{{.*}} into %kbuf if %{{.*}} : <64x128xbf16>, <#kbuf>
  %kn = kvbuffer.dram_load %tile into %kbuf if %on : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
  // CHECK: %qs = kvbuffer.lds_stage %qt {younger = 2 : i64} : !kvbuffer.token<#qbuf>
  %q1 = kvbuffer.lds_stage %q0 {younger = 2 : i64} : !kvbuffer.token<#qbuf>
  // CHECK: %ks, %vs = kvbuffer.lds_stage %kt, %vt : !kvbuffer.token<#kbuf>, !kvbuffer.token<#vbuf>
  %k1, %v1 = kvbuffer.lds_stage %k0, %v0 : !kvbuffer.token<#kbuf>, !kvbuffer.token<#vbuf>
  // CHECK: %qf = kvbuffer.fragment_load %qs[0, 16] : <#qbuf> -> <128x16xbf16, a>
  %qf = kvbuffer.fragment_load %q1[0, 16] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<128x16xbf16, a>
  // CHECK: %kf = kvbuffer.fragment_load %ks[0, 16] : <#kbuf> -> <64x16xbf16, b>
  %kf = kvbuffer.fragment_load %k1[0, 16] : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xbf16, b>
  // CHECK: %vf = kvbuffer.fragment_load %vs[16, 0] : <#vbuf> -> <16x128xbf16, b>
  %vf = kvbuffer.fragment_load %v1[16, 0] : !kvbuffer.staged<#vbuf> -> !kvbuffer.fragment<16x128xbf16, b>
  // CHECK: kvbuffer.fragment_store %{{.*}}, %{{.*}} : <128x128xbf16, acc>, <128x128xbf16>
  kvbuffer.fragment_store %of, %qtile : !kvbuffer.fragment<128x128xbf16, acc>, !kvbuffer.tile<128x128xbf16>
  // CHECK: kvbuffer.row_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] valid(%{{.*}}) : <128x1xf32, row>, memref<?x16x?xf32>
  kvbuffer.row_store %row, %lse[%slot, %slot, %n] valid(%n) : !kvbuffer.fragment<128x1xf32, row>, memref<?x16x?xf32>
  return
}

// CHECK-LABEL: func.func @fragments
func.func @fragments(%q: !kvbuffer.fragment<128x16xbf16, a>, %k: !kvbuffer.fragment<64x16xbf16, b>,
                     %v: !kvbuffer.fragment<64x128xbf16, b>, %acc: !kvbuffer.fragment<128x128xf32, acc>,
                     %m: !kvbuffer.fragment<128x1xf32, row>, %i: index, %sink: f32) {
  // CHECK: %zero = kvbuffer.fragment_fill 0.000000e+00 : <128x64xf32, acc>
  %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<128x64xf32, acc>
  // CHECK: %s = kvbuffer.mma %{{.*}}, %{{.*}}, %zero {transpose_b} : <128x16xbf16, a>, <64x16xbf16, b>, <128x64xf32, acc>
  %s0 = kvbuffer.mma %q, %k, %zero {transpose_b} : !kvbuffer.fragment<128x16xbf16, a>, !kvbuffer.fragment<64x16xbf16, b>, !kvbuffer.fragment<128x64xf32, acc>
  // CHECK: kvbuffer.softcap %s {cap = 5.000000e+01 : f32, scale = 1.250000e-01 : f32} : <128x64xf32, acc>
  %s1 = kvbuffer.softcap %s0 {scale = 0.125 : f32, cap = 50.0 : f32} : !kvbuffer.fragment<128x64xf32, acc>
  // CHECK: kvbuffer.fragment_scale %{{.*}} {factor = -1.250000e-01 : f32} : <128x64xf32, acc>
  %s2 = kvbuffer.fragment_scale %s1 {factor = -0.125 : f32} : !kvbuffer.fragment<128x64xf32, acc>
  // CHECK: kvbuffer.mask %{{.*}} rows(%{{.*}}, %{{.*}}) keys(%{{.*}}, %{{.*}}) {mask = #kvbuffer.mask<>} : <128x64xf32, acc>
  %s3 = kvbuffer.mask %s2 rows(%i, %i) keys(%i, %i) {mask = #kvbuffer.mask<>} : !kvbuffer.fragment<128x64xf32, acc>
  // CHECK: %p, %newMax, %newSum, %rescale = kvbuffer.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {masked, scale = 1.250000e-01 : f32} : <128x64xf32, acc>, <128x1xf32, row> -> <128x64xbf16, a>
  %p, %m1, %l1, %r = kvbuffer.online_softmax %s3, %m, %m {scale = 0.125 : f32, masked}
    : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x64xbf16, a>
  // CHECK: kvbuffer.rescale %{{.*}}, %rescale : <128x128xf32, acc>, <128x1xf32, row>
  %a1 = kvbuffer.rescale %acc, %r : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  // CHECK: kvbuffer.fragment_slice %p[0, 16] : <128x64xbf16, a> -> <128x16xbf16, a>
  %p0 = kvbuffer.fragment_slice %p[0, 16] : !kvbuffer.fragment<128x64xbf16, a> -> !kvbuffer.fragment<128x16xbf16, a>
  // CHECK: kvbuffer.mma %p, %{{.*}}, %{{.*}} : <128x64xbf16, a>, <64x128xbf16, b>, <128x128xf32, acc>
  %a2 = kvbuffer.mma %p, %v, %a1 : !kvbuffer.fragment<128x64xbf16, a>, !kvbuffer.fragment<64x128xbf16, b>, !kvbuffer.fragment<128x128xf32, acc>
  // CHECK: kvbuffer.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {masked, scale = 1.000000e+00 : f32, unbounded} :
  %p8, %m8, %l8, %r8 = kvbuffer.online_softmax %s3, %m, %m {scale = 1.0 : f32, masked, unbounded}
    : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x64xbf16, a>
  // CHECK: %result, %lse = kvbuffer.softmax_finish %{{.*}}, %newMax, %newSum {scale = 1.250000e-01 : f32} : <128x128xf32, acc>, <128x1xf32, row>
  %o, %lse = kvbuffer.softmax_finish %a2, %m1, %l1 {scale = 0.125 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  // CHECK: kvbuffer.softmax_finish %{{.*}}, %newMax, %newSum sink(%{{.*}}) {scale = 1.250000e-01 : f32} : <128x128xf32, acc>, <128x1xf32, row>
  %o1, %lse1 = kvbuffer.softmax_finish %a2, %m1, %l1 sink(%sink) {scale = 0.125 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  // CHECK: kvbuffer.softmax_finish %{{.*}}, %newMax, %newSum excess(%{{.*}}) sink(%{{.*}}) {scale = 1.250000e-01 : f32} : <128x128xf32, acc>, <128x1xf32, row>
  %o2, %lse2 = kvbuffer.softmax_finish %a2, %m1, %l1 excess(%r) sink(%sink) {scale = 0.125 : f32} : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  // CHECK: kvbuffer.fragment_convert %result : <128x128xf32, acc> -> <128x128xbf16, acc>
  %o16 = kvbuffer.fragment_convert %o : !kvbuffer.fragment<128x128xf32, acc> -> !kvbuffer.fragment<128x128xbf16, acc>
  return
}

// CHECK-LABEL: func.func @lane
func.func @lane(%w: vector<2xbf16>, %c: vector<4xf32>) {
  // CHECK: %{{.*}} = kvbuffer.lane_mma a(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) b(%{{.*}}, %{{.*}} : vector<2xbf16>, vector<2xbf16>) c(%{{.*}} : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
  %d = kvbuffer.lane_mma a(%w, %w, %w, %w : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    b(%w, %w : vector<2xbf16>, vector<2xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
  return
}
