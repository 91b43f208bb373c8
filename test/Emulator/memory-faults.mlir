// Reads of unwritten bytes, bounds, alignment and conflicting stores.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/unwritten.mlir --block=32 --arg=buf:f32:32:uninit:out 2>&1 | FileCheck %t/unwritten.mlir
// RUN: not kvbuf-emu-test %t/bounds.mlir --block=32 --arg=buf:f32:31:iota:q --arg=buf:f32:32:uninit:out 2>&1 | FileCheck %t/bounds.mlir
// RUN: not kvbuf-emu-test %t/aligned.mlir --block=32 --arg=buf:f32:64:iota:q 2>&1 | FileCheck %t/aligned.mlir
// RUN: not kvbuf-emu-test %t/conflict.mlir --block=32 2>&1 | FileCheck %t/conflict.mlir
// RUN: kvbuf-emu-test %t/bytes.mlir --block=64 --arg=buf:i32:32:uninit --print=0 | FileCheck %t/bytes.mlir
// RUN: sed 's,^.*// BARRIER$,,' %t/bytes.mlir > %t/racy.mlir
// RUN: not kvbuf-emu-test %t/racy.mlir --block=64 --arg=buf:i32:32:uninit 2>&1 | FileCheck %t/bytes.mlir --check-prefix=RACE
// RUN: not kvbuf-emu-test %t/many.mlir --block=32 --options='{"max_errors":2}' 2>&1 | FileCheck %t/many.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/trap.mlir --block=32 2>&1 | FileCheck %t/trap.mlir

//--- unwritten.mlir
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i16>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %h = llvm.trunc %t : i32 to i16
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %even = llvm.mul %t, %c2 : i32
    %p = llvm.getelementptr %sh[%even] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
    llvm.store %h, %p : i16, !llvm.ptr<3>
    // Every other half word is missing.
    // CHECK: :[[#@LINE+1]]:10: error: 'llvm.load' by thread 0 (lane 0 of warp 0, block 0,0,0): reads shared byte 0x2 (byte 2 of 'sh'), which nothing has written
    %x = llvm.load %p : !llvm.ptr<3> -> i32
    %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    // CHECK: :[[#@LINE+1]]:10: error: 'llvm.load' by thread 0 {{.*}}: reads 4 bytes at offset 0 of buffer 'out' (128 bytes), which nothing has written
    %y = llvm.load %o : !llvm.ptr<1> -> f32
    llvm.return
  }
}

//--- bounds.mlir
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>
  llvm.func @kernel(%in: !llvm.ptr, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = llvm.getelementptr %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    // CHECK: :[[#@LINE+1]]:10: error: 'llvm.load' by thread 31 {{.*}}: out of bounds: reads 4 bytes at offset 124 of buffer 'q' (124 bytes)
    %x = llvm.load %p : !llvm.ptr -> f32
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %s = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %next = llvm.getelementptr %s[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
    // CHECK: :[[#@LINE+1]]:5: error: 'llvm.store' by thread 31 {{.*}}: out of bounds: writes 4 bytes at shared byte 0x80; the block has 128
    llvm.store %x, %next : f32, !llvm.ptr<3>
    %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %before = llvm.getelementptr %o[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    // CHECK: :[[#@LINE+1]]:5: error: 'llvm.store' by thread 0 {{.*}}: out of bounds: writes 4 bytes at
    llvm.store %x, %before : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- aligned.mlir
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x f32>
  llvm.func @kernel(%in: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    // CHECK: :[[#@LINE+1]]:10: error: 'llvm.load' by thread 1 {{.*}}: misaligned: reads 8 bytes at offset 4 of buffer 'q' (256 bytes), which needs an alignment of 8
    %x = llvm.load %p : !llvm.ptr<1> -> vector<2xf32>
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %s = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<2xf32>
    // CHECK: :[[#@LINE+1]]:5: error: 'nvvm.cp.async.shared.global' by thread 1 {{.*}}: misaligned: writes 16 bytes at shared byte 0x8 {{.*}}, which needs an alignment of 16
    nvvm.cp.async.shared.global %s, %in, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    // A copy of nothing may point anywhere, but no less aligned.
    %none = llvm.mlir.constant(0 : i32) : i32
    %row = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xf32>
    // CHECK: :[[#@LINE+1]]:5: error: 'nvvm.cp.async.shared.global' by thread 1 {{.*}}: misaligned: reads 0 bytes at offset 4 of buffer 'q' (256 bytes), which needs an alignment of 16
    nvvm.cp.async.shared.global %row, %p, 16, cache = cg, %none : !llvm.ptr<3>, !llvm.ptr<1>, i32
    llvm.return
  }
}

//--- conflict.mlir
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i32>
  llvm.func @kernel() attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %low = llvm.and %t, %c15 : i32
    %p = llvm.getelementptr %sh[%low] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // Equal values are no conflict.
    llvm.store %low, %p : i32, !llvm.ptr<3>
    // CHECK-NOT: :[[#@LINE-1]]:5: error
    // CHECK: :[[#@LINE+1]]:5: error: 'llvm.store' by thread 0 {{.*}}: another lane of the same instruction stores a different value to the same place, shared byte 0x0
    llvm.store %t, %p : i32, !llvm.ptr<3>
    llvm.return
  }
}

//--- bytes.mlir
// Two warps share each word: warp 0 owns the lower halves, warp 1 the upper
// ones. That is no race, until the words are read whole.
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i16>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %warp = nvvm.read.ptx.sreg.warpid : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %even = llvm.shl %lane, %c1 : i32
    %at = llvm.or %even, %warp : i32
    %p = llvm.getelementptr %sh[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
    %h = llvm.trunc %t : i32 to i16
    llvm.store %h, %p : i16, !llvm.ptr<3>
    %again = llvm.load %p : !llvm.ptr<3> -> i16
    nvvm.barrier0 // BARRIER
    %first = llvm.icmp "eq" %warp, %c0 : i32
    llvm.cond_br %first, ^read, ^end
  ^read:
    // RACE: :[[#@LINE+2]]:10: error: 'llvm.load' by thread {{.*}}: {{shared-memory race: read of shared byte 0x2|reads shared byte 0x2}}
    %w = llvm.getelementptr %sh[%even] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
    %x = llvm.load %w : !llvm.ptr<3> -> i32
    %o = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %o : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
// Lane l: l + 65536 (l + 32).
// CHECK: arg0: 2097152 2162689 2228226

//--- many.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  %c8 = llvm.mlir.constant(8 : i64) : i64
  %p = llvm.inttoptr %c8 : i64 to !llvm.ptr<1>
  // CHECK: error: 'llvm.load' {{.*}}: out of bounds: reads 4 bytes at 0x8, in no buffer
  %a = llvm.load %p : !llvm.ptr<1> -> i32
  // CHECK: error: 'llvm.load'
  // CHECK: note: 2 different errors; the launch stops here
  %b = llvm.load %p : !llvm.ptr<1> -> i32
  llvm.br ^next
^next:
  %c = llvm.load %p : !llvm.ptr<1> -> i32
  llvm.return
}

//--- trap.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  // CHECK: :[[#@LINE+1]]:3: error: 'llvm.unreachable' by warp 0 {{.*}}: execution reaches 'unreachable'
  llvm.unreachable
}
