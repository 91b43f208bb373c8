// What kernels with roles use besides: the elected lane, a shuffled warp index,
// a mailbox in shared memory, pointers from integers, clusters of one block, a
// parameter passed by value.
//
// RUN: split-file %s %t
// RUN: kvbuf-emu-test %t/mailbox.mlir --block=64 --arg=buf:i32:64:uninit --print=0:0:3 --print=0:32:3 | FileCheck %t/mailbox.mlir
// RUN: kvbuf-emu-test %t/param.mlir --block=32 --arg=buf:i16:64:iota --arg=map:0:2:64:64:0 --arg=buf:i32:32:uninit --print=2:0:4 --report | FileCheck %t/param.mlir
// RUN: not kvbuf-emu-test %t/registers.mlir --block=128 2>&1 | FileCheck %t/registers.mlir
// RUN: not kvbuf-emu-test %t/chip.mlir --block=128 2>&1 | FileCheck %t/chip.mlir
// RUN: not kvbuf-emu-test %t/multicast.mlir --block=32 2>&1 | FileCheck %t/multicast.mlir
// RUN: not kvbuf-emu-test %t/write.mlir --block=32 --arg=buf:i16:64:iota --arg=map:0:2:64:64:0 2>&1 | FileCheck %t/write.mlir

//--- mailbox.mlir
// Warp 0 posts 7 n for n = 0, 1, 2 in a single slot, warp 1 sums up.
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @box() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<8 x i32>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %c1000 = llvm.mlir.constant(1000 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %box = llvm.mlir.addressof @box : !llvm.ptr<3>
    %base = llvm.ptrtoint %box : !llvm.ptr<3> to i32
    %at1 = llvm.add %base, %c8 : i32
    %at2 = llvm.add %base, %c16 : i32
    %full = llvm.inttoptr %at1 : i32 to !llvm.ptr<3>
    %free = llvm.inttoptr %at2 : i32 to !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %lane = llvm.and %t, %c31 : i32
    %w0 = llvm.lshr %t, %c5 : i32
    %w = nvvm.shfl.sync idx %all, %w0, %c0, %c31 : i32 -> i32
    %first = llvm.icmp "eq" %t, %c0 : i32
    llvm.cond_br %first, ^init, ^split
  ^init:
    nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %free, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    llvm.br ^split
  ^split:
    nvvm.barrier0
    %producer = llvm.icmp "eq" %w, %c0 : i32
    llvm.cond_br %producer, ^post(%c0 : i32), ^take(%c0, %c0 : i32, i32)
  ^post(%n: i32):
    %one = nvvm.elect.sync -> i1
    %parity = llvm.and %n, %c1 : i32
    %before = llvm.xor %parity, %c1 : i32
    nvvm.mbarrier.try_wait.parity %free, %before, %c1000 : !llvm.ptr<3>, i32, i32
    llvm.cond_br %one, ^put, ^posted
  ^put:
    %v = llvm.mul %n, %c7 : i32
    llvm.store volatile %v, %box : i32, !llvm.ptr<3>
    nvvm.mbarrier.arrive %full : !llvm.ptr<3>
    llvm.br ^posted
  ^posted:
    %n1 = llvm.add %n, %c1 : i32
    %more = llvm.icmp "slt" %n1, %c3 : i32
    llvm.cond_br %more, ^post(%n1 : i32), ^end(%all : i32)
  ^take(%m: i32, %sum: i32):
    %p = llvm.and %m, %c1 : i32
    nvvm.mbarrier.try_wait.parity %full, %p, %c1000 : !llvm.ptr<3>, i32, i32
    %x = llvm.load volatile %box : !llvm.ptr<3> -> i32
    %leader = nvvm.elect.sync -> i1
    %nothing = llvm.mlir.constant(0 : i32) : i32
    // With a predicate, as one lane releases for its warp.
    nvvm.mbarrier.arrive.expect_tx %free, %nothing, predicate = %leader : !llvm.ptr<3>, i32, i1
    %s = llvm.add %sum, %x : i32
    %m1 = llvm.add %m, %c1 : i32
    %again = llvm.icmp "slt" %m1, %c3 : i32
    llvm.cond_br %again, ^take(%m1, %s : i32, i32), ^end(%s : i32)
  ^end(%r: i32):
    %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %o : i32, !llvm.ptr<1>
    llvm.return
  }
}
// CHECK: arg0: -1 -1 -1
// CHECK: arg0: 21 21 21

//--- param.mlir
// The 128 bytes are memory that can be read; a copy reads 128 bytes more.
module {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i16>
  llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : i64
  llvm.func @kernel(%in: !llvm.ptr<1>, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %c1000 = llvm.mlir.constant(1000 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %cluster = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
    %clock = nvvm.read.ptx.sreg.clock : i32
    %first = llvm.icmp "eq" %t, %rank : i32
    llvm.cond_br %first, ^one, ^all
  ^one:
    nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    nvvm.mbarrier.arrive.expect_tx %bar, %c128 : !llvm.ptr<3>, i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %cluster, %map, %bar, box[%c0] : !llvm.ptr<7>, !llvm.ptr
    llvm.br ^all
  ^all:
    %lanes = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %lanes : i32
    nvvm.mbarrier.try_wait.parity %bar, %c0, %c1000 : !llvm.ptr<3>, i32, i32
    // The tensor map's first word, through a generic pointer.
    %magic = llvm.load %map : !llvm.ptr -> i32
    %p = llvm.getelementptr %tile[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %p : !llvm.ptr<3> -> i32
    %nonzero = llvm.icmp "eq" %magic, %c0 : i32
    %r = llvm.select %nonzero, %c0, %x : i1, i32
    %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %o : i32, !llvm.ptr<1>
    llvm.return
  }
}
// Words of two elements: 2 i + 1 above 2 i.
// CHECK: arg2: 65536 196610 327684 458758
// CHECK: "async_copy": {
// CHECK-NEXT: "lane": 1,
// CHECK: "op": "nvvm.cp.async.bulk.tensor.shared.cluster.global",
// CHECK: "sectors": 4

//--- registers.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  // CHECK: registers.mlir:[[#@LINE+1]]:3: error: 'nvvm.setmaxregister' op has no effect in a kernel without 'nvvm.maxntid' or 'nvvm.reqntid': the registers at its entry are unknown
  nvvm.setmaxregister decrease 40
  llvm.return
}

//--- chip.mlir
module attributes {kvbuffer.target = "sm_90"} {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // CHECK: error: the emulator does not execute 'nvvm.wgmma.fence.aligned': sm_90 does not have it
    nvvm.wgmma.fence.aligned
    llvm.return
  }
}

//--- multicast.mlir
module {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i16>
  llvm.func @kernel() attributes {nvvm.kernel} {
    %bytes = llvm.mlir.constant(16 : i32) : i32
    %from = llvm.mlir.zero : !llvm.ptr<1>
    %mask = llvm.mlir.constant(3 : i16) : i16
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %cluster = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
    // CHECK: error: the emulator does not execute 'nvvm.cp.async.bulk.shared.cluster.global': multicast
    nvvm.cp.async.bulk.shared.cluster.global %cluster, %from, %tile, %bytes multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    llvm.return
  }
}

//--- write.mlir
llvm.func @kernel(%in: !llvm.ptr<1>, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64}) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  // CHECK: error: 'llvm.store' by thread 0 {{.*}}: writes 4 bytes at offset 0 of buffer 'parameter 1' (128 bytes), which is read-only
  llvm.store %c0, %map : i32, !llvm.ptr
  llvm.return
}
