// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-rocdl,canonicalize,cse))" --split-input-file | FileCheck %s
// Blocks of four waves that have more than half of a unit's LDS are alone there.
// RUN: sed -e 's/block = \[512, 1, 1\], dynamic_shared_bytes = 2048/block = [256, 1, 1], dynamic_shared_bytes = 122880/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-rocdl,canonicalize,cse))" --split-input-file | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: llvm.func @move(
// ALONE-SAME: ["amdgpu-waves-per-eu", "1,2"]

#lds = #gpu.address_space<workgroup>

module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // Sums of pairs are products with ones.
  // CHECK-LABEL: llvm.func @pairs(
  // CHECK-SAME:    %[[L:.*]]: f32, %[[X:.*]]: vector<2xbf16>, %[[Y:.*]]: vector<2xf16>,
  // CHECK-DAG:     %[[ONES:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<2xbf16>)
  // CHECK-DAG:     %[[HALVES:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<2xf16>)
  // CHECK-DAG:     %[[NO:.*]] = llvm.mlir.constant(false) : i1
  // CHECK:         %[[L1:.*]] = llvm.call_intrinsic "llvm.amdgcn.fdot2.f32.bf16"(%[[X]], %[[ONES]], %[[L]], %[[NO]])
  // CHECK:         llvm.call_intrinsic "llvm.amdgcn.fdot2"(%[[Y]], %[[HALVES]], %[[L1]], %[[NO]])
  gpu.func @pairs(%l: f32, %x: vector<2xbf16>, %y: vector<2xf16>, %out: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %l1 = kvbuffer.pair_sum %l, %x : vector<2xbf16>
    %l2 = kvbuffer.pair_sum %l1, %y : vector<2xf16>
    memref.store %l2, %out[%c0] : memref<1xf32>
    gpu.return
  }

  // Of all lanes of a wave any is there: the instruction takes its place by its number. Of half
  // of them a lane may name one that is not, and has its own number then.
  // CHECK-LABEL: llvm.func @exchange(
  // CHECK-SAME:    %[[X:[a-z0-9]+]]: f32, %[[LANE:[a-z0-9]+]]: i32,
  // CHECK-DAG:     %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG:     %[[AT:.*]] = llvm.shl %[[LANE]], %[[TWO]] : i32
  // CHECK-DAG:     %[[WORD:.*]] = llvm.bitcast %[[X]] : f32 to i32
  // CHECK:         %[[TAKEN:.*]] = rocdl.ds_bpermute %[[AT]], %[[WORD]] : (i32, i32) -> i32
  // CHECK:         llvm.bitcast %[[TAKEN]] : i32 to f32
  // CHECK:         llvm.icmp
  // CHECK:         llvm.select
  // CHECK:         rocdl.ds_bpermute
  gpu.func @exchange(%x: f32, %lane: i32, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %half = arith.constant 32 : i32
    %all = arith.constant 64 : i32
    %y, %y_valid = gpu.shuffle idx %x, %lane, %all : f32
    memref.store %y, %out[%c0] : memref<2xf32>
    %z, %z_valid = gpu.shuffle idx %x, %lane, %half : f32
    memref.store %z, %out[%c1] : memref<2xf32>
    gpu.return
  }

  // A barrier of scheduling that loads may not pass, and stores may: LLVM sinks none across it.
  // CHECK-LABEL: llvm.func @front(
  // CHECK:         llvm.load
  // CHECK:         llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  // CHECK-NOT:     llvm.inline_asm
  // CHECK:         rocdl.sched.barrier 1999
  // CHECK-NOT:     llvm.inline_asm
  // CHECK:         rocdl.sched.barrier 1935
  // CHECK:         llvm.return
  gpu.func @front(%in: memref<1xf32>, %out: memref<1xf32>) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<block = [128, 1, 1], dynamic_shared_bytes = 0>,
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %c0 = arith.constant 0 : index
    %x = memref.load %in[%c0] : memref<1xf32>
    amdgpu.sched_barrier allow = <non_mem_non_sideffect|valu|salu|mfma_wmma|vmem_write|all_ds|ds_read|ds_write|transcendental>
    memref.store %x, %out[%c0] : memref<1xf32>
    amdgpu.sched_barrier allow = <non_mem_non_sideffect|valu|salu|mfma_wmma|all_ds|ds_read|ds_write|transcendental>
    gpu.return
  }

  // CHECK-LABEL: llvm.func @mfma(
  // CHECK:         rocdl.mfma.f32.32x32x16.bf16 %{{.*}} : (vector<8xbf16>, vector<8xbf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
  // CHECK:         rocdl.mfma.f32.16x16x32.f16 %{{.*}} : (vector<8xf16>, vector<8xf16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
  gpu.func @mfma(%a: vector<8xbf16>, %c: vector<16xf32>, %h: vector<8xf16>, %d: vector<4xf32>, %out: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = kvbuffer.lane_mma a(%a : vector<8xbf16>) b(%a : vector<8xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
    vector.store %x, %out[%c0] : memref<16xf32>, vector<16xf32>
    %y = kvbuffer.lane_mma a(%h : vector<8xf16>) b(%h : vector<8xf16>) c(%d : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
    vector.store %y, %out[%c0] : memref<16xf32>, vector<4xf32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // CDNA3's instructions take bf16 as integers.
  // CHECK-LABEL: llvm.func @mfma(
  // CHECK:         llvm.bitcast %{{.*}} : vector<4xbf16> to vector<4xi16>
  // CHECK:         rocdl.mfma.f32.32x32x8bf16.1k %{{.*}} : (vector<4xi16>, vector<4xi16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
  // CHECK-NOT:     bitcast
  // CHECK:         rocdl.mfma.f32.16x16x16f16
  gpu.func @mfma(%a: vector<4xbf16>, %c: vector<16xf32>, %h: vector<4xf16>, %d: vector<4xf32>, %out: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = kvbuffer.lane_mma a(%a : vector<4xbf16>) b(%a : vector<4xbf16>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 8>}
    vector.store %x, %out[%c0] : memref<16xf32>, vector<16xf32>
    %y = kvbuffer.lane_mma a(%h : vector<4xf16>) b(%h : vector<4xf16>) c(%d : vector<4xf32>) {shape = array<i64: 16, 16, 16>}
    vector.store %y, %out[%c0] : memref<16xf32>, vector<4xf32>
    gpu.return
  }
}
}

// -----

// 8-bit floats: eight of them are a number of 64 bits; the operands' types may
// differ. Their format is the chip's.
module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // CHECK-LABEL: llvm.func @float8_fnuz(
  // CHECK-SAME:    %[[A:[a-z0-9]+]]: vector<8xi8>, %[[B:[a-z0-9]+]]: vector<8xi8>
  // CHECK:         %[[FP8:.*]] = llvm.bitcast %[[A]] : vector<8xi8> to i64
  // CHECK:         rocdl.mfma.f32.32x32x16.fp8.fp8 %[[FP8]], %[[FP8]], %{{.*}} : (i64, i64, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
  // CHECK:         %[[BF8:.*]] = llvm.bitcast %[[B]] : vector<8xi8> to i64
  // CHECK:         rocdl.mfma.f32.32x32x16.fp8.bf8 %[[FP8]], %[[BF8]]
  // CHECK:         rocdl.mfma.f32.16x16x32.bf8.fp8 %[[BF8]], %[[FP8]], %{{.*}} : (i64, i64, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
  // CHECK:         rocdl.mfma.f32.16x16x32.bf8.bf8 %[[BF8]], %[[BF8]]
  gpu.func @float8_fnuz(%a: vector<8xf8E4M3FNUZ>, %b: vector<8xf8E5M2FNUZ>, %c: vector<16xf32>, %d: vector<4xf32>, %out: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %w = kvbuffer.lane_mma a(%a : vector<8xf8E4M3FNUZ>) b(%a : vector<8xf8E4M3FNUZ>) c(%c : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
    %x = kvbuffer.lane_mma a(%a : vector<8xf8E4M3FNUZ>) b(%b : vector<8xf8E5M2FNUZ>) c(%w : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
    vector.store %x, %out[%c0] : memref<16xf32>, vector<16xf32>
    %y = kvbuffer.lane_mma a(%b : vector<8xf8E5M2FNUZ>) b(%a : vector<8xf8E4M3FNUZ>) c(%d : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
    %z = kvbuffer.lane_mma a(%b : vector<8xf8E5M2FNUZ>) b(%b : vector<8xf8E5M2FNUZ>) c(%y : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
    vector.store %z, %out[%c0] : memref<16xf32>, vector<4xf32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // CHECK-LABEL: llvm.func @float8_ocp(
  // CHECK:         rocdl.mfma.f32.16x16x32.fp8.bf8
  gpu.func @float8_ocp(%a: vector<8xf8E4M3FN>, %b: vector<8xf8E5M2>, %d: vector<4xf32>, %out: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %y = kvbuffer.lane_mma a(%a : vector<8xf8E4M3FN>) b(%b : vector<8xf8E5M2>) c(%d : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
    vector.store %y, %out[%c0] : memref<16xf32>, vector<4xf32>
    gpu.return
  }
}
}

// -----

// Arrivals: the release waits for the write-back of L2, of which LLVM's backend makes
// an instruction and no wait. What orders nothing is an addition alone; what is early
// acquires before it.
module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // CHECK-LABEL: llvm.func @arrive(
  // CHECK:         llvm.fence syncscope("agent") release
  // CHECK-NEXT:    rocdl.s.waitcnt 3952
  // CHECK-NEXT:    llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("agent") monotonic
  // CHECK-NEXT:    llvm.fence syncscope("agent") acquire
  // CHECK-NOT:     {{fence|waitcnt}}
  // CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("agent") monotonic
  // CHECK-NOT:     {{fence|waitcnt}}
  // CHECK:         llvm.fence syncscope("agent") acquire
  // CHECK-NEXT:    llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("agent") monotonic
  // CHECK-NOT:     {{fence|waitcnt}}
  // CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("agent") monotonic
  // CHECK-NOT:     {{fence|waitcnt}}
  // CHECK:         llvm.return
  gpu.func @arrive(%arrived: memref<4xi32>, %out: memref<4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = kvbuffer.lane_arrive %arrived[%c0] : memref<4xi32>
    memref.store %x, %out[%c0] : memref<4xi32>
    %y = kvbuffer.lane_arrive %arrived[%c1] relaxed : memref<4xi32>
    memref.store %y, %out[%c1] : memref<4xi32>
    %z = kvbuffer.lane_arrive %arrived[%c1] early : memref<4xi32>
    memref.store %z, %out[%c1] : memref<4xi32>
    %one = arith.constant 1 : i32
    %w = memref.atomic_rmw addi %one, %arrived[%c1] {kvbuffer.relaxed} : (i32, memref<4xi32>) -> i32
    memref.store %w, %out[%c1] : memref<4xi32>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>
#lds = #gpu.address_space<workgroup>

// The same scope nodes on all: copies on one side, reads and writes of LDS on the
// other. (Named by what they are, in the order in which they are printed.)
// CHECK-DAG: #[[$DOMAIN:.*]] = #llvm.alias_scope_domain<id = {{.*}}, description = "AsyncOps">
// CHECK-DAG: #[[$COPIES:.*]] = #llvm.alias_scope<id = {{.*}}, domain = #[[$DOMAIN]], description = "AsyncCopies">
// CHECK-DAG: #[[$LOCAL:.*]] = #llvm.alias_scope<id = {{.*}}, domain = #[[$DOMAIN]], description = "LocalLoads">
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // LDS is a global of the module, as large as the kernel asked; the launch
  // brings none.
  // CHECK:       llvm.mlir.global internal @kvbuf_lds() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2048 x i8>
  // CHECK-LABEL: llvm.func @move(
  // CHECK-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[OFFSET:[a-z0-9]+]]: i64, %[[LANE:[a-z0-9]+]]: i32, %[[AT:[a-z0-9]+]]: i64
  // CHECK-SAME:    dynamic_shared_bytes = 0
  // CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<target>
  // CHECK-SAME:    ["amdgpu-waves-per-eu", "2,2"]
  // CHECK-SAME:    rocdl.flat_work_group_size = "512,512"
  // CHECK-SAME:    rocdl.reqd_work_group_size = array<i32: 512, 1, 1>
  // CHECK-DAG:     %[[FLAGS:.*]] = llvm.mlir.constant(159744 : i32)
  // CHECK-DAG:     %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK-DAG:     %[[BYTES:.*]] = llvm.mlir.constant(16 : i32)
  // CHECK-DAG:     %[[IMM:.*]] = llvm.mlir.constant(64 : i32)
  // CHECK-DAG:     %[[SKIP:.*]] = llvm.mlir.constant(64 : i64)
  // CHECK-DAG:     %[[LDS:.*]] = llvm.mlir.addressof @kvbuf_lds
  // CHECK:         %[[BASE:.*]] = llvm.getelementptr %[[K]][%[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
  // CHECK:         %[[RANGE:.*]] = rocdl.make.buffer.rsrc %[[BASE]], %{{.*}}, %{{.*}}, %[[FLAGS]] : <1> to <8>
  // The immediate offset is added to LDS as well, so it is taken out there.
  // CHECK:         %[[LESS:.*]] = llvm.sub %[[AT]], %[[SKIP]]
  // CHECK:         %[[TO:.*]] = llvm.getelementptr %[[LDS]][%[[LESS]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
  // CHECK:         rocdl.raw.ptr.buffer.load.lds %[[RANGE]], %[[TO]], %[[BYTES]], %[[LANE]], %[[ZERO]], %[[IMM]], %[[ZERO]] {alias_scopes = [#[[$COPIES]]]}
  // Each lane's own address.
  // CHECK:         rocdl.global.load.lds %[[BASE]], %{{.*}}, 16, 64, 0 {alias_scopes = [#[[$COPIES]]]}
  // CHECK:         rocdl.raw.ptr.buffer.load %[[RANGE]], %[[LANE]], %[[ZERO]], %[[ZERO]] : vector<4xi32>
  // vmcnt(5) lgkmcnt(0), and a barrier that drains nothing.
  // CHECK:         rocdl.s.waitcnt 117
  // CHECK-NOT:     fence
  // CHECK:         rocdl.s.barrier
  // CHECK-NOT:     rocdl.barrier
  // CHECK:         llvm.load %{{.*}} {alias_scopes = [#[[$LOCAL]]], alignment = 16 : i64, noalias_scopes = [#[[$COPIES]]]} : !llvm.ptr<3>
  // CHECK:         rocdl.ds.read.tr16.b64 %{{.*}} {alias_scopes = [#[[$LOCAL]]], noalias_scopes = [#[[$COPIES]]]}
  // CHECK:         llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[$LOCAL]]]{{.*}}noalias_scopes = [#[[$COPIES]]]}
  // Nothing says that the kernel only reads from there.
  // CHECK:         llvm.load %{{[^ ]*}} : !llvm.ptr<1>
  gpu.func @move(%k: memref<bf16, #global>, %offset: index, %lane: i32, %at: index, %n: i32) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<block = [512, 1, 1], dynamic_shared_bytes = 2048>,
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %lds = gpu.dynamic_shared_memory : memref<?xi8, #lds>
    %range = kvbuffer.dram_range %k[%offset] bytes(%n) : memref<bf16, #global>
    kvbuffer.range_copy %range[%lane] to %lds[%at] {bytes = 16 : i64, skip = 64 : i64} : memref<?xi8, #lds>
    kvbuffer.lane_copy %k[%offset] to %lds[%at] {bytes = 16 : i64, skip = 64 : i64} : memref<bf16, #global>, memref<?xi8, #lds>
    %x = kvbuffer.range_load %range[%lane] : vector<8xbf16>
    amdgpu.memory_counter_wait load(5) ds(0)
    kvbuffer.wave_barrier
    %y = vector.load %lds[%at] {alignment = 16 : i64} : memref<?xi8, #lds>, vector<16xi8>
    %z = amdgpu.transpose_load %lds[%at] : memref<?xi8, #lds> -> vector<4xbf16>
    %w = vector.bitcast %x : vector<8xbf16> to vector<16xi8>
    vector.store %w, %lds[%at] : memref<?xi8, #lds>, vector<16xi8>
    %s = memref.load %k[] : memref<bf16, #global>
    memref.store %s, %k[] : memref<bf16, #global>
    vector.store %y, %lds[%at] : memref<?xi8, #lds>, vector<16xi8>
    %v = vector.bitcast %z : vector<4xbf16> to vector<8xi8>
    vector.store %v, %lds[%at] : memref<?xi8, #lds>, vector<8xi8>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>
#lds = #gpu.address_space<workgroup>

module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // Two bytes of a lane are loaded as half a word.
  // CHECK-LABEL: llvm.func @half_word(
  // CHECK:         %[[HALF:.*]] = rocdl.raw.ptr.buffer.load %{{.*}} : i16
  // CHECK:         llvm.bitcast %[[HALF]] : i16 to vector<
  gpu.func @half_word(%k: memref<i8, #global>, %offset: index, %lane: i32, %at: index, %n: i32) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<block = [512, 1, 1], dynamic_shared_bytes = 2048>,
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %lds = gpu.dynamic_shared_memory : memref<?xi8, #lds>
    %range = kvbuffer.dram_range %k[%offset] bytes(%n) : memref<i8, #global>
    %x = kvbuffer.range_load %range[%lane] : vector<1xi16>
    %bytes = vector.bitcast %x : vector<1xi16> to vector<2xi8>
    vector.store %bytes, %lds[%at] : memref<?xi8, #lds>, vector<2xi8>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // Loads of tensors that the kernel only reads are invariant, whatever their
  // addresses are computed from; those of one that it writes are not, nor are
  // atomic ones.
  // CHECK-LABEL: llvm.func @access(
  // CHECK-SAME:      %[[READ:[a-z0-9]+]]: !llvm.ptr<1>, %{{[a-z0-9]+}}: i64, %[[WRITTEN:[a-z0-9]+]]: !llvm.ptr<1>)
  // CHECK:         %[[AT:.*]] = llvm.getelementptr {{.*}}%[[READ]][
  // CHECK:         llvm.load %[[AT]] invariant : !llvm.ptr<1> -> i32
  // CHECK:         llvm.load %{{[^ ]*}} : !llvm.ptr<1> -> i32
  // CHECK-NOT:     invariant
  gpu.func @access(%read: memref<64xi32, #global>, %i: index, %written: memref<64xi32, #global>) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<
        block = [512, 1, 1],
        dynamic_shared_bytes = 0,
        args = [<pointer "k">, <size seq_q>, <pointer "o">]>,
      kvbuffer.tensors = [#kvbuffer.tensor<"k" : i32[64], read>,
                          #kvbuffer.tensor<"o" : i32[64], write>],
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %x = memref.load %read[%i] : memref<64xi32, #global>
    %y = memref.load %written[%i] : memref<64xi32, #global>
    %z = arith.addi %x, %y : i32
    memref.store %z, %written[%i] : memref<64xi32, #global>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // No call of a library that is not there, no guard against subnormal numbers.
  // CHECK-LABEL: llvm.func @math(
  // CHECK-NOT:     llvm.call @
  // CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2.885390e+00 : f32)
  // CHECK-NOT:     llvm.call @
  // CHECK:         rocdl.exp2
  // CHECK:         rocdl.log
  // CHECK:         llvm.intr.maxnum
  // tanh x = 1 - 2 / (exp2(2 x log2 e) + 1).
  // CHECK:         %[[X:.*]] = llvm.fmul %{{.*}}, %[[TWO]]
  // CHECK:         %[[E:.*]] = rocdl.exp2 %[[X]]
  // CHECK:         %[[SUM:.*]] = llvm.fadd %[[E]], %{{.*}}
  // CHECK:         %[[R:.*]] = rocdl.rcp %[[SUM]]
  // CHECK:         llvm.intr.fma(%[[R]], %{{.*}}, %{{.*}})
  gpu.func @math(%x: f32, %out: memref<f32>) kernel {
    %e = math.exp2 %x : f32
    %l = math.log2 %e : f32
    %m = arith.maxnumf %l, %x : f32
    %t = math.tanh %m : f32
    memref.store %t, %out[] : memref<f32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // The product of a finite number stays finite; others do not change.
  // CHECK-LABEL: llvm.func @finite(
  // CHECK-SAME:    %[[X:.*]]: f32
  // CHECK:         %[[P:.*]] = llvm.fmul %[[X]], %{{.*}}
  // CHECK:         %[[ABOVE:.*]] = llvm.intr.maxnum(%[[P]], %{{.*}})
  // CHECK:         %[[WITHIN:.*]] = llvm.intr.minnum(%[[ABOVE]], %{{.*}})
  // CHECK:         %[[SIZE:.*]] = llvm.intr.fabs(%[[X]])
  // CHECK:         %[[FINITE:.*]] = llvm.fcmp "olt" %[[SIZE]], %{{.*}}
  // CHECK:         llvm.select %[[FINITE]], %[[WITHIN]], %[[P]]
  // CHECK:         llvm.fmul
  // CHECK-NOT:     llvm.select
  gpu.func @finite(%x: f32, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %eight = arith.constant 8.0 : f32
    %p = arith.mulf %x, %eight {kvbuffer.finite_product} : f32
    memref.store %p, %out[%c0] : memref<2xf32>
    %r = arith.mulf %x, %x : f32
    memref.store %r, %out[%c1] : memref<2xf32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // CHECK-LABEL: llvm.func @lanes(
  // CHECK:         %[[VOTE:.*]] = rocdl.ballot %{{.*}} : i64
  // CHECK:         %[[COUNT:.*]] = llvm.intr.ctpop(%[[VOTE]]) : (i64) -> i64
  // CHECK:         llvm.trunc %[[COUNT]] : i64 to i32
  gpu.func @lanes(%mine: i1, %out: memref<i32>) kernel {
    %count = kvbuffer.lane_count %mine
    memref.store %count, %out[] : memref<i32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx1250"} {
gpu.module @m {
  // CHECK-LABEL: llvm.func @votes(
  // CHECK:         %[[BITS:.*]] = rocdl.ballot %{{.*}} : i32
  // CHECK:         llvm.store %[[BITS]]
  gpu.func @votes(%mine: i1, %out: memref<i32>) kernel {
    %bits = kvbuffer.lane_vote %mine
    memref.store %bits, %out[] : memref<i32>
    gpu.return
  }
}
}

// -----

module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  // Words of bytes of two words take an instruction each: bytes of its third
  // operand are 0 to 3, the second's 4 to 7. A word as it is takes none.
  // CHECK-LABEL: llvm.func @bytes(
  // CHECK-DAG:     %[[ZIP:.*]] = llvm.mlir.constant(83952640 : i32)
  // CHECK-DAG:     %[[I0:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK-DAG:     %[[I1:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK:         %[[A1:.*]] = llvm.extractelement %{{.*}}[%[[I1]] : i32] : vector<2xi32>
  // CHECK:         %[[B0:.*]] = llvm.extractelement %{{.*}}[%[[I0]] : i32] : vector<2xi32>
  // CHECK:         llvm.call_intrinsic "llvm.amdgcn.perm"(%[[B0]], %[[A1]], %[[ZIP]]) : (i32, i32, i32) -> i32
  // CHECK-NOT:     llvm.amdgcn.perm
  // CHECK-NOT:     llvm.shufflevector
  gpu.func @bytes(%a: vector<8xi8>, %b: vector<8xi8>, %out: memref<8xi8>) kernel {
    %zip = vector.shuffle %a, %b [4, 8, 5, 9, 12, 13, 14, 15] : vector<8xi8>, vector<8xi8>
    %c0 = arith.constant 0 : index
    vector.store %zip, %out[%c0] : memref<8xi8>, vector<8xi8>
    gpu.return
  }

  // Bytes of three words do not.
  // CHECK-LABEL: llvm.func @of_three(
  // CHECK:         llvm.shufflevector %{{.*}} [0, 4, 8, 12]
  // CHECK-NOT:     llvm.amdgcn.perm
  gpu.func @of_three(%a: vector<8xi8>, %b: vector<8xi8>, %out: memref<4xi8>) kernel {
    %four = vector.shuffle %a, %b [0, 4, 8, 12] : vector<8xi8>, vector<8xi8>
    %c0 = arith.constant 0 : index
    vector.store %four, %out[%c0] : memref<4xi8>, vector<4xi8>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>
#lds = #gpu.address_space<workgroup>
module attributes {kvbuffer.target = "gfx1250"} {
gpu.module @m {
  // The words of a descriptor of three dimensions, which
  // amdgpu.make_dma_descriptor of 2 x 64 x 16 elements of 16 bits becomes, too: the
  // tensor has as many rows as are valid.
  // CHECK-LABEL: llvm.func @boxes(
  // CHECK-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[BASE:[a-z0-9]+]]: i64, %[[STRIDE:[a-z0-9]+]]: i64, %[[N:[a-z0-9]+]]: i32, %[[IS:[a-z0-9]+]]: i1
  // CHECK-DAG:     %[[HALFWORD:.*]] = llvm.mlir.constant(16 : i32)
  // CHECK-DAG:     %[[TWO:.*]] = llvm.mlir.constant(-2147483648 : i32)
  // CHECK-DAG:     %[[BOX:.*]] = llvm.mlir.constant(131136 : i32)
  // CHECK:         %[[FROM:.*]] = llvm.getelementptr %[[K]][%[[BASE]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
  // CHECK:         llvm.ptrtoint %[[FROM]] : !llvm.ptr<1> to i64
  // CHECK:         %[[ASKED:.*]] = llvm.zext %[[IS]] : i1 to i32
  // CHECK:         llvm.or %{{.*}}, %[[TWO]]
  // CHECK:         llvm.insertelement %[[ASKED]], %{{.*}} : vector<4xi32>
  // CHECK:         llvm.shl %[[N]], %[[HALFWORD]]
  // CHECK:         llvm.insertelement %[[BOX]], %{{.*}} : vector<8xi32>
  // CHECK:         rocdl.tensor.load.to.lds {alias_scopes = {{.*}}} %{{.*}} cachepolicy 0 : vector<4xi32>, vector<8xi32>
  // CHECK:         rocdl.s.wait.tensorcnt 1
  // CHECK:         rocdl.ds.load.tr16.b128 %{{.*}} {alias_scopes = {{.*}}, noalias_scopes = {{.*}}} : !llvm.ptr<3> -> vector<8xbf16>
  gpu.func @boxes(%k: memref<bf16, #global>, %base: index, %stride: index, %n: i32, %is: i1, %at: index) kernel attributes {
      kvbuffer.kernel = #kvbuffer.launch<block = [128, 1, 1], dynamic_shared_bytes = 4096>,
      kvbuffer.phase = #kvbuffer.phase<thread>} {
    %lds = gpu.dynamic_shared_memory : memref<?xi8, #lds>
    kvbuffer.box_copy %k[%base] stride(%stride) valid(%n) if %is to %lds[%at]
      {blocks = 2 : i64, rows = 64 : i64, columns = 16 : i64} : memref<bf16, #global>, memref<?xi8, #lds>
    amdgpu.memory_counter_wait tensor(1)
    %x = kvbuffer.turned_read %lds[%at] : memref<?xi8, #lds> -> vector<8xbf16>
    %y = vector.bitcast %x : vector<8xbf16> to vector<16xi8>
    vector.store %y, %lds[%at] : memref<?xi8, #lds>, vector<16xi8>
    gpu.return
  }
}
}
