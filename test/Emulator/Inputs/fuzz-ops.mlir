// Kernels that use what the emulator knows, for fuzz.test to damage.

//--- hopper
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.mlir.global internal @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<32768 x i8>
  llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i64} {
    %s = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %bytes = llvm.mlir.constant(1024 : i32) : i32
    %bar = llvm.getelementptr %s[32760] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = llvm.icmp "eq" %t, %c0 : i32
    llvm.cond_br %first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    llvm.br ^ready
  ^ready:
    nvvm.barrier0
    %leader = nvvm.elect.sync -> i1
    %of0 = llvm.and %leader, %first : i1
    llvm.cond_br %of0, ^copy, ^wait(%c0 : i32)
  ^copy:
    nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
    %to = llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %bar, box[%c0, %c0] : !llvm.ptr<7>, !llvm.ptr
    nvvm.cp.async.bulk.shared.cluster.global %to, %x, %bar, %bytes : !llvm.ptr<7>, !llvm.ptr<1>
    llvm.br ^wait(%c1 : i32)
  ^wait(%sent: i32):
    nvvm.mbarrier.try_wait.parity %bar, %c0, %c1 : !llvm.ptr<3>, i32, i32
    %desc = llvm.mlir.constant(4611686293305294848 : i64) : i64
    %p:2 = kvbuffer.wgmma a_desc(%desc) b(%desc) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = bf16, n = 16 : i64} : vector<4xf32>, vector<4xf32>
    %q:2 = kvbuffer.wgmma_wait %p#0, %p#1 {pending = 0 : i64} : vector<4xf32>, vector<4xf32>
    %acc = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.fence.aligned
    %m = nvvm.wgmma.mma_async %desc, %desc, %acc, <m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %f = llvm.extractvalue %m[1] : !llvm.struct<(f32, f32, f32, f32)>
    %v = llvm.shufflevector %q#0, %q#1 [0, 5, 2, 7] : vector<4xf32>
    %e = llvm.extractelement %v[%c1 : i32] : vector<4xf32>
    %sum = llvm.fadd %e, %f : f32
    %two = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%sum) : (f32) -> f32
    %fma = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%two, %two, %sum) : (f32, f32, f32) -> f32
    %at = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %fma, %at : f32, !llvm.ptr<1>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %s, box[%c0, %c0] : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    nvvm.setmaxregister increase 240
    %state = nvvm.mbarrier.arrive %bar : !llvm.ptr<3> -> i64
    %done = nvvm.mbarrier.test.wait %bar, %state : !llvm.ptr<3>, i64 -> i1
    nvvm.cluster.arrive
    nvvm.cluster.wait
    nvvm.mbarrier.inval %bar : !llvm.ptr<3>
    llvm.return
  }
}
//--- ampere
module attributes {kvbuffer.target = "sm_80"} {
  llvm.mlir.global internal @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
  llvm.func @twice(%x: f32, %n: i32) -> f32 {
    %c = llvm.mlir.constant(3 : i32) : i32
    %less = llvm.icmp "slt" %n, %c : i32
    llvm.cond_br %less, ^a, ^b
  ^a:
    %y = llvm.fadd %x, %x : f32
    llvm.return %y : f32
  ^b:
    llvm.return %x : f32
  }
  llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {
    %s = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %n4 = llvm.mlir.constant(4 : i64) : i64
    %from = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
    %to = llvm.getelementptr %s[%t, 0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.struct<(i64, vector<2xi32>)>
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %c16 : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier id = %c0 number_of_threads = %c16
    nvvm.barrier0
    %m = nvvm.ldmatrix %to {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %a = llvm.bitcast %m0 : i32 to vector<2xf16>
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %d = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%zero, %zero, %zero, %zero] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    %sh = nvvm.shfl.sync bfly %all, %m0, %c1, %c31 : i32 -> i32
    %odd = llvm.trunc %sh : i32 to i1
    %vote = nvvm.vote.sync ballot %all, %odd -> i32
    %call = llvm.call @twice(%d0, %vote) : (f32, i32) -> f32
    %wide = llvm.fpext %call : f32 to f64
    %root = llvm.intr.sqrt(%wide) : (f64) -> f64
    %int = llvm.fptosi %root : f64 to i64
    %max = llvm.intr.smax(%int, %n4) : (i64, i64) -> i64
    %local = llvm.alloca %n4 x vector<3xi16> : (i64) -> !llvm.ptr
    %pieces = llvm.bitcast %max : i64 to vector<4xi16>
    %three = llvm.shufflevector %pieces, %pieces [0, 6, 3] : vector<4xi16>
    llvm.store %three, %local : vector<3xi16>, !llvm.ptr
    %back = llvm.load %local {alignment = 2 : i64} : !llvm.ptr -> vector<3xi16>
    %e = llvm.extractelement %back[%c1 : i32] : vector<3xi16>
    %k = llvm.mlir.constant(dense<[1, 2, 3]> : vector<3xi16>) : vector<3xi16>
    %in = llvm.insertelement %e, %k[%t : i32] : vector<3xi16>
    %red = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    %total = "llvm.intr.vector.reduce.add"(%red) : (vector<4xi32>) -> i32
    %old = llvm.atomicrmw add %y, %total monotonic : !llvm.ptr<1>, i32
    %agg = llvm.mlir.undef : !llvm.struct<(i32, array<2 x i64>)>
    %agg1 = llvm.insertvalue %max, %agg[1, 1] : !llvm.struct<(i32, array<2 x i64>)>
    %ex = llvm.extractvalue %agg1[1, 1] : !llvm.struct<(i32, array<2 x i64>)>
    %cmp = llvm.icmp "ugt" %ex, %n4 : i64
    %sel = llvm.select %cmp, %three, %in : i1, vector<3xi16>
    %out = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
    llvm.store %sel, %out : vector<3xi16>, !llvm.ptr<1>
    llvm.switch %old : i32, ^end [
      0: ^more,
      7: ^end
    ]
  ^more:
    %addr = llvm.ptrtoint %out : !llvm.ptr<1> to i64
    %ptr = llvm.inttoptr %addr : i64 to !llvm.ptr<1>
    %asm = llvm.inline_asm has_side_effects "// pin", "=r,0" %t : (i32) -> i32
    llvm.store %asm, %ptr : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
//--- amd
module attributes {kvbuffer.target = "gfx950"} {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<8192 x i8>
  llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) attributes {rocdl.kernel} {
    %t = rocdl.workitem.id.x : i32
    %s = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %records = llvm.mlir.constant(16384 : i64) : i64
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %b = rocdl.make.buffer.rsrc %x, %stride, %records, %flags : !llvm.ptr<1> to !llvm.ptr<8>
    %at = llvm.mul %t, %c16 : i32
    %v = rocdl.raw.ptr.buffer.load %b, %at, %c0, %c0 : vector<4xi32>
    rocdl.raw.ptr.buffer.store %v, %b, %at, %c0, %c0 : vector<4xi32>
    rocdl.raw.ptr.buffer.load.lds %b, %s, %c16, %at, %c0, %c0, %c0
    rocdl.global.load.lds %x, %s, 16, 32, 0
    rocdl.load.to.lds %x, %s, 4, 0, 0 : !llvm.ptr<1>
    %fat = llvm.addrspacecast %b : !llvm.ptr<8> to !llvm.ptr<7>
    %place = llvm.getelementptr %fat[%t] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32
    %w = llvm.load %place : !llvm.ptr<7> -> i32
    rocdl.s.waitcnt 3952
    rocdl.s.barrier
    %my = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    %tr = rocdl.ds.read.tr16.b64 %my : !llvm.ptr<3> -> vector<4xbf16>
    %dpp = rocdl.update.dpp %w, %t with 273, 15, 15, true : i32
    %perm = rocdl.ds_bpermute %at, %dpp : (i32, i32) -> i32
    %swz = rocdl.ds_swizzle %perm, %c16 : (i32, i32) -> i32
    %swap = rocdl.permlane32.swap %swz, %w, false, false : (i32, i32) -> !llvm.struct<(i32, i32)>
    %sw0 = llvm.extractvalue %swap[0] : !llvm.struct<(i32, i32)>
    %lane = rocdl.readlane %sw0, %c4 : (i32, i32) -> i32
    %first = rocdl.readfirstlane %lane : i32
    %odd = llvm.trunc %first : i32 to i1
    %ballot = rocdl.ballot %odd : i64
    %bytes = llvm.call_intrinsic "llvm.amdgcn.perm"(%first, %w, %c4) : (i32, i32, i32) -> i32
    %f = llvm.bitcast %bytes : i32 to f32
    %e = llvm.call_intrinsic "llvm.amdgcn.exp2"(%f) : (f32) -> f32
    %med = llvm.call_intrinsic "llvm.amdgcn.fmed3"(%e, %f, %e) : (f32, f32, f32) -> f32
    %half = llvm.call_intrinsic "llvm.amdgcn.cvt.pkrtz"(%e, %med) : (f32, f32) -> vector<2xf16>
    %no = llvm.mlir.constant(false) : i1
    %dot = llvm.call_intrinsic "llvm.amdgcn.fdot2"(%half, %half, %med, %no) : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
    %h4 = llvm.bitcast %ballot : i64 to vector<4xf16>
    %acc = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
    %d = rocdl.mfma.f32.32x32x8f16 %h4, %h4, %acc, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %acc4 = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
    %d8 = rocdl.mfma.f32.16x16x32.fp8.bf8 %ballot, %ballot, %acc4, %c0, %c0, %c0 : (i64, i64, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
    %d0 = llvm.extractelement %d[%c4 : i32] : vector<16xf32>
    %d1 = llvm.extractelement %d8[%c0 : i32] : vector<4xf32>
    %sum = llvm.fadd %d0, %d1 : f32
    %all = llvm.fadd %sum, %dot : f32
    %out = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %all, %out : f32, !llvm.ptr<1>
    llvm.return
  }
}
