// Loads by AMD's waves: a part of each row, tails, windows, pages.

// RUN: sed s/PAGE/16/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" --split-input-file | FileCheck %s
// RUN: sed s/PAGE/4/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=MANY

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [2, 0, 4], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 64, cache_depth = 192, head_dim_offset = 128, stages = 1, warp_size = 64>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 192, head_dim_offset = 128>
module attributes {gpu.container_module, kvbuffer.target = "gfx950"} {
gpu.module @m {
  // The last 64 columns of rows of 192: the tile's base is 128 elements further.
  // Four units of 32 rows x 32 columns, one a wave: two copies each.
  // CHECK-LABEL: gpu.func @part(
  // CHECK-SAME:    %{{.*}}: memref<bf16, #gpu.address_space<global>>
  // CHECK-DAG:     %[[C128:.*]] = arith.constant 128 : index
  // CHECK:         %[[WARP:.*]] = gpu.subgroup_broadcast %{{.*}}, first_active_lane : i32
  // CHECK:         %[[BASE:.*]] = arith.addi %{{.*}}, %[[C128]] : index
  // CHECK:         %[[RANGE:.*]] = kvbuffer.dram_range %{{.*}}[%[[BASE]]] bytes(%[[BYTES:.*]])
  // CHECK-COUNT-2: kvbuffer.range_copy %[[RANGE]]{{.*}}bytes = 16 : i64
  // CHECK-NOT:     kvbuffer.range_copy
  // CHECK:         amdgpu.memory_counter_wait load(0) ds(0)
  // CHECK-NEXT:    kvbuffer.wave_barrier
  gpu.func @part(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 1, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %keys = kvbuffer.cache.num_keys %k[%c0] new(%c64) : !kv
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %lo, %hi, %flo, %fhi = kvbuffer.key_range %c0 of %c64 keys %keys {BM = 128, mask = #kvbuffer.mask<>}
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %lo upto %keys : !kv -> !kvbuffer.tile<64x192xbf16>
    %t = kvbuffer.dram_load %tile into %buf[%c0] : !kvbuffer.tile<64x192xbf16>, !kvbuffer.buffer<#kbuf>
    %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [2, 0, 4], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 64, stages = 1, warp_size = 64>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
module attributes {gpu.container_module, kvbuffer.target = "gfx950"} {
gpu.module @m {
  // Pages of 16: each wave looks up those of its own rows, none where no row is
  // valid; each copy's 16 rows are in one of them.
  // CHECK-LABEL: gpu.func @paged(
  // CHECK:         %[[LINE:.*]] = scf.if %{{.*}} -> (index) {
  // CHECK:           memref.load
  // CHECK-NOT:       memref.load
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %c0
  // CHECK-NOT:     scf.if
  // CHECK-NOT:     memref.load
  // CHECK:         %[[RANGE:.*]] = kvbuffer.dram_range %{{.*}}[%[[LINE]]]
  // CHECK:         kvbuffer.range_copy %[[RANGE]]
  // CHECK:         %[[LINE1:.*]] = scf.if %{{.*}} -> (index) {
  // CHECK:           memref.load
  // CHECK-NOT:       memref.load
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %c0
  // CHECK-NOT:     scf.if
  // CHECK-NOT:     memref.load
  // CHECK:         %[[RANGE1:.*]] = kvbuffer.dram_range %{{.*}}[%[[LINE1]]]
  // CHECK:         kvbuffer.range_copy %[[RANGE1]]
  // CHECK-NOT:     kvbuffer.range_copy
  gpu.func @paged(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !kv {kvbuffer.name = "k"}) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 1, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %keys = kvbuffer.cache.num_keys %k[%c0] new(%c64) : !kv
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %lo, %hi, %flo, %fhi = kvbuffer.key_range %c0 of %c64 keys %keys {BM = 128, mask = #kvbuffer.mask<>}
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %lo upto %keys : !kv -> !kvbuffer.tile<64x64xbf16, page_size = 16>
    %t = kvbuffer.dram_load %tile into %buf[%c0] : !kvbuffer.tile<64x64xbf16, page_size = 16>, !kvbuffer.buffer<#kbuf>
    %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], swizzle = [2, 0, 4], BN = 32, WN = 32, BK = 32, num_threads = 256, depth = 128, reg_chunk_depth = 64, stages = 1, warp_size = 64>
!q = !kvbuffer.fragment<128x64xbf16, a>
!kf = !kvbuffer.fragment<32x64xbf16, b>
!s = !kvbuffer.fragment<128x32xf32, acc>
module attributes {gpu.container_module, kvbuffer.target = "gfx950"} {
gpu.module @m {
  // The second chunk of K is not read before the first is multiplied: neither LDS
  // reads nor products cross the barrier. 32 keys x 64 columns: four reads each.
  // CHECK-LABEL: gpu.func @chunks(
  // CHECK-NOT:     amdgpu.sched_barrier
  // CHECK-COUNT-4: vector.load {{.*}} : memref<{{.*}}xi8, #gpu.address_space<workgroup>>, vector<16xi8>
  // CHECK-COUNT-4: kvbuffer.lane_mma
  // CHECK:         amdgpu.sched_barrier allow = <non_mem_non_sideffect|valu|salu|all_vmem|vmem_read|vmem_write|ds_write|transcendental>
  // CHECK-COUNT-4: vector.load {{.*}} : memref<{{.*}}xi8, #gpu.address_space<workgroup>>, vector<16xi8>
  // CHECK-COUNT-4: kvbuffer.lane_mma
  // CHECK-NOT:     amdgpu.sched_barrier
  gpu.func @chunks(%q: memref<?x?x1x128xbf16> {kvbuffer.name = "q"}, %k: !kvbuffer.cache<dense, bf16, heads = 1, head_size = 128> {kvbuffer.name = "k"}) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<tile>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 32, BK = 32, stages = 1, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, reg_chunk_depth = 64>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %qt = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c32) : memref<?x?x1x128xbf16> -> !kvbuffer.tile<128x128xbf16>
    %qf = kvbuffer.tile_fragment %qt : !kvbuffer.tile<128x128xbf16> -> !kvbuffer.fragment<128x128xbf16, a>
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !kvbuffer.cache<dense, bf16, heads = 1, head_size = 128> -> !kvbuffer.tile<32x128xbf16>
    %t = kvbuffer.dram_load %tile into %buf[%c0] : !kvbuffer.tile<32x128xbf16>, !kvbuffer.buffer<#kbuf>
    %ks = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !s
    %q0 = kvbuffer.fragment_slice %qf[0, 0] : !kvbuffer.fragment<128x128xbf16, a> -> !q
    %k0 = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !kf
    %s0 = kvbuffer.mma %q0, %k0, %zero {transpose_b} : !q, !kf, !s
    %q1 = kvbuffer.fragment_slice %qf[0, 64] : !kvbuffer.fragment<128x128xbf16, a> -> !q
    %k1 = kvbuffer.fragment_load %ks[0, 64] : !kvbuffer.staged<#kbuf> -> !kf
    %s1 = kvbuffer.mma %q1, %k1, %s0 {transpose_b} : !q, !kf, !s
    %s16 = kvbuffer.fragment_convert %s1 : !s -> !kvbuffer.fragment<128x32xbf16, acc>
    %o = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c32) : memref<?x?x1x128xbf16> -> !kvbuffer.tile<128x32xbf16>
    kvbuffer.fragment_store %s16, %o : !kvbuffer.fragment<128x32xbf16, acc>, !kvbuffer.tile<128x32xbf16>
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 8], swizzle = [2, 0, 3], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 64, stages = 1, warp_size = 64>
#vbuf = #kvbuffer.kv_buffer<v, bf16, register_staged, mma_shape = [32, 32, 8], BN = 64, WN = 64, BK = 32, num_threads = 256, depth = 64, stages = 1, warp_size = 64>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = PAGE>
module attributes {gpu.container_module, kvbuffer.target = "gfx942"} {
gpu.module @m {
  // V through registers: of few pages each wave looks up that of its own rows, and
  // its lanes load a range, zeros past its end, so that the wait for K counts V's
  // four loads.
  // CHECK-LABEL: gpu.func @staged(
  // CHECK-COUNT-4: kvbuffer.range_copy
  // CHECK:         %[[V:.*]] = kvbuffer.dram_range
  // CHECK-COUNT-4: kvbuffer.range_load %[[V]]
  // CHECK-NOT:     kvbuffer.range_load
  // CHECK:         amdgpu.memory_counter_wait load(4) ds(0)
  // Of many pages each lane looks up that of one row, by a range of the table, past
  // whose end it is zero, and makes the row's place of it. The others ask for both
  // words of that, copies once for their four rows; V's lanes for each of theirs, of
  // which those that are not there lie where zeros do. The wait counts V's loads, too.
  // MANY-LABEL:  gpu.func @staged(
  // MANY-NOT:      scf.if
  // MANY:          %[[TABLE:.*]] = kvbuffer.dram_range
  // MANY:          kvbuffer.range_load %[[TABLE]]{{.*}} : vector<1xi32>
  // MANY-COUNT-8:  gpu.subgroup_broadcast {{.*}}specific_lane
  // MANY-NOT:      gpu.subgroup_broadcast
  // MANY:          kvbuffer.range_load {{.*}} : vector<1xi32>
  // MANY:          memref.get_global @kvbuf_zeros_128
  // MANY:          arith.select %{{.*}}, %{{.*}}, %c0{{.*}} : index
  // MANY-COUNT-2:  gpu.shuffle {{ *}}idx
  // MANY:          vector.load {{.*}} #gpu.address_space<global>>, vector<4xbf16>
  // MANY-COUNT-2:  gpu.shuffle {{ *}}idx
  // MANY:          vector.load {{.*}} #gpu.address_space<global>>, vector<4xbf16>
  // MANY-COUNT-2:  gpu.shuffle {{ *}}idx
  // MANY:          vector.load {{.*}} #gpu.address_space<global>>, vector<4xbf16>
  // MANY-COUNT-2:  gpu.shuffle {{ *}}idx
  // MANY:          vector.load {{.*}} #gpu.address_space<global>>, vector<4xbf16>
  // MANY-NOT:      scf.if
  // MANY:          amdgpu.memory_counter_wait load(4) ds(0)
  gpu.func @staged(%q: memref<?x?x1x64xbf16> {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}, %v: !k {kvbuffer.name = "v"}) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<scheduled>,
      kvbuffer.schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 1, warps = 4, mma_shape = [32, 32, 8], swap_a_b = true, v_path = registers>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %keys = kvbuffer.cache.num_keys %k[%c0] new(%c64) : !k
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %lo, %hi, %flo, %fhi = kvbuffer.key_range %c0 of %c64 keys %keys {BM = 128, mask = #kvbuffer.mask<>}
    %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %lo upto %keys : !k -> !kvbuffer.tile<64x64xbf16, page_size = PAGE>
    %kl = kvbuffer.dram_load %kt into %kbuf[%c0] : !kvbuffer.tile<64x64xbf16, page_size = PAGE>, !kvbuffer.buffer<#kbuf>
    %vt = kvbuffer.cache_tile %v[%c0, %c0, %c64] from %lo upto %keys : !k -> !kvbuffer.tile<64x64xbf16, page_size = PAGE>
    %vl = kvbuffer.dram_load %vt into %vbuf[%c0] : !kvbuffer.tile<64x64xbf16, page_size = PAGE>, !kvbuffer.buffer<#vbuf>
    %ks = kvbuffer.lds_stage %kl {younger = 1 : i64} : !kvbuffer.token<#kbuf>
    %vs = kvbuffer.lds_stage %vl {younger = 0 : i64} : !kvbuffer.token<#vbuf>
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 16], swizzle = [2, 0, 3], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, stages = 1, warp_size = 64>
#vbuf = #kvbuffer.kv_buffer<v, bf16, register_staged, mma_shape = [16, 16, 16], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 64, stages = 1, warp_size = 64>
!k = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
module attributes {gpu.container_module, kvbuffer.target = "gfx942"} {
gpu.module @m {
  // One wave has no barrier to keep V's loads from being awaited early: neither
  // vector instructions nor writes of LDS move to before the wait that stores
  // them. K's wait, which only copies, has no fence.
  // CHECK-LABEL: gpu.func @alone(
  // CHECK-COUNT-4: kvbuffer.range_load
  // CHECK-NOT:     amdgpu.sched_barrier
  // CHECK:         amdgpu.memory_counter_wait load(4) ds(0)
  // CHECK:         amdgpu.sched_barrier allow = <salu|mfma_wmma|all_vmem|vmem_read|vmem_write|ds_read>
  // CHECK-NOT:     amdgpu.memory_counter_wait
  // CHECK-COUNT-8: vector.store
  // CHECK:         amdgpu.memory_counter_wait ds(0)
  // CHECK-NOT:     amdgpu.sched_barrier
  gpu.func @alone(%k: !k {kvbuffer.name = "k"}, %v: !k {kvbuffer.name = "v"}) kernel attributes {
      kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.grid = [1, 1, 1],
      kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, stages = 1, warps = 1, mma_shape = [16, 16, 16], swap_a_b = true, v_path = registers>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c32 : !k -> !kvbuffer.tile<32x64xbf16>
    %kl = kvbuffer.dram_load %kt into %kbuf[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#kbuf>
    %vt = kvbuffer.cache_tile %v[%c0, %c0, %c0] from %c0 upto %c32 : !k -> !kvbuffer.tile<32x64xbf16>
    %vl = kvbuffer.dram_load %vt into %vbuf[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.buffer<#vbuf>
    %ks = kvbuffer.lds_stage %kl {younger = 1 : i64} : !kvbuffer.token<#kbuf>
    %vs = kvbuffer.lds_stage %vl {younger = 0 : i64} : !kvbuffer.token<#vbuf>
    gpu.return
  }
}
}
