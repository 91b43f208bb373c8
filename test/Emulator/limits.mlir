// Limits, so that a kernel of unknown origin ends: instructions, calls, memory.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/loop.mlir --block=64 --options='{"max_instructions":100000}' 2>&1 | FileCheck %t/loop.mlir
// RUN: not kvbuf-emu-test %t/loop.mlir --block=32 2>&1 | FileCheck %t/loop.mlir --check-prefix=DEFAULT
// RUN: not kvbuf-emu-test %t/doubling.mlir 2>&1 | FileCheck %t/doubling.mlir
// RUN: not kvbuf-emu-test %t/doubling.mlir --options='{"max_operations":100}' 2>&1 | FileCheck %t/doubling.mlir --check-prefix=FEWER
// RUN: not kvbuf-emu-test %t/depth.mlir --options='{"max_call_depth":2}' 2>&1 | FileCheck %t/depth.mlir
// RUN: kvbuf-emu-test %t/depth.mlir --options='{"max_call_depth":3}'
// RUN: not kvbuf-emu-test %t/alloca.mlir --arg=i64:1 2>&1 | FileCheck %t/alloca.mlir
// RUN: kvbuf-emu-test %t/alloca.mlir --arg=i64:1 --options='{"max_private":1200000}'
// RUN: not kvbuf-emu-test %t/alloca.mlir --arg=i64:1 --block=1024 --options='{"max_private":1200000,"max_memory":100000000}' 2>&1 | FileCheck %t/alloca.mlir --check-prefix=LAUNCH
// RUN: not kvbuf-emu-test %t/huge-alloca.mlir 2>&1 | FileCheck %t/huge-alloca.mlir
// RUN: not kvbuf-emu-test %t/vector.mlir 2>&1 | FileCheck %t/vector.mlir
// RUN: kvbuf-emu-test %t/vector.mlir --options='{"max_value":5000}'
// RUN: not kvbuf-emu-test %t/vector.mlir --options='{"max_value":5000,"max_memory":100000}' 2>&1 | FileCheck %t/vector.mlir --check-prefix=MEMORY
// RUN: not kvbuf-emu-test %t/copies.mlir --block=32 --arg=buf:i32:64:iota 2>&1 | FileCheck %t/copies.mlir
// RUN: not kvbuf-emu-test %t/vector.mlir --options='{"max_value":-1}' 2>&1 | FileCheck %t/vector.mlir --check-prefix=OPTION

//--- loop.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  llvm.br ^bb1
^bb1:
  // CHECK: loop.mlir:[[#@LINE+2]]:3: error: 'llvm.br' by warp {{[01]}} (block 0,0,0): the warp has executed more than 100000 instructions in this block ('max_instructions'); it may never end
  // DEFAULT: loop.mlir:[[#@LINE+1]]:3: error: 'llvm.br' by warp 0 (block 0,0,0): the warp has executed more than 268435456 instructions in this block ('max_instructions'); it may never end
  llvm.br ^bb1
}
//--- doubling.mlir
llvm.func @f0() {
  llvm.call @f1() : () -> ()
  llvm.call @f1() : () -> ()
  llvm.return
}
llvm.func @f1() {
  llvm.call @f2() : () -> ()
  llvm.call @f2() : () -> ()
  llvm.return
}
llvm.func @f2() {
  llvm.call @f3() : () -> ()
  llvm.call @f3() : () -> ()
  llvm.return
}
llvm.func @f3() {
  llvm.call @f4() : () -> ()
  llvm.call @f4() : () -> ()
  llvm.return
}
llvm.func @f4() {
  llvm.call @f5() : () -> ()
  llvm.call @f5() : () -> ()
  llvm.return
}
llvm.func @f5() {
  llvm.call @f6() : () -> ()
  llvm.call @f6() : () -> ()
  llvm.return
}
llvm.func @f6() {
  llvm.call @f7() : () -> ()
  llvm.call @f7() : () -> ()
  llvm.return
}
llvm.func @f7() {
  llvm.call @f8() : () -> ()
  llvm.call @f8() : () -> ()
  llvm.return
}
llvm.func @f8() {
  llvm.call @f9() : () -> ()
  llvm.call @f9() : () -> ()
  llvm.return
}
llvm.func @f9() {
  llvm.call @f10() : () -> ()
  llvm.call @f10() : () -> ()
  llvm.return
}
llvm.func @f10() {
  llvm.call @f11() : () -> ()
  llvm.call @f11() : () -> ()
  llvm.return
}
llvm.func @f11() {
  llvm.call @f12() : () -> ()
  llvm.call @f12() : () -> ()
  llvm.return
}
llvm.func @f12() {
  llvm.call @f13() : () -> ()
  llvm.call @f13() : () -> ()
  llvm.return
}
llvm.func @f13() {
  llvm.call @f14() : () -> ()
  llvm.call @f14() : () -> ()
  llvm.return
}
llvm.func @f14() {
  llvm.call @f15() : () -> ()
  llvm.call @f15() : () -> ()
  llvm.return
}
llvm.func @f15() {
  llvm.call @f16() : () -> ()
  llvm.call @f16() : () -> ()
  llvm.return
}
llvm.func @f16() {
  llvm.call @f17() : () -> ()
  llvm.call @f17() : () -> ()
  llvm.return
}
llvm.func @f17() {
  llvm.call @f18() : () -> ()
  llvm.call @f18() : () -> ()
  llvm.return
}
llvm.func @f18() {
  llvm.call @f19() : () -> ()
  llvm.call @f19() : () -> ()
  llvm.return
}
llvm.func @f19() {
  llvm.call @f20() : () -> ()
  llvm.call @f20() : () -> ()
  llvm.return
}
llvm.func @f20() {
  llvm.call @f21() : () -> ()
  llvm.call @f21() : () -> ()
  llvm.return
}
llvm.func @f21() {
  llvm.call @f22() : () -> ()
  llvm.call @f22() : () -> ()
  llvm.return
}
llvm.func @f22() {
  llvm.call @f23() : () -> ()
  llvm.call @f23() : () -> ()
  llvm.return
}
llvm.func @f23() {
  llvm.call @f24() : () -> ()
  llvm.call @f24() : () -> ()
  llvm.return
}
// CHECK: doubling.mlir:{{[0-9]+}}:{{[0-9]+}}: error: the emulator does not execute 'llvm.{{.*}}': the kernel has more than 1048576 operations, those of its calls included ('max_operations')
// FEWER: doubling.mlir:{{[0-9]+}}:{{[0-9]+}}: error: the emulator does not execute 'llvm.{{.*}}': the kernel has more than 100 operations, those of its calls included ('max_operations')
llvm.func @f24() {
  llvm.return
}
llvm.func @kernel() attributes {nvvm.kernel} {
  llvm.call @f0() : () -> ()
  llvm.return
}
//--- depth.mlir
llvm.func @f0() {
  llvm.call @f1() : () -> ()
  llvm.return
}
llvm.func @f1() {
  // CHECK: depth.mlir:[[#@LINE+1]]:3: error: the emulator does not execute 'llvm.call': calls are nested more than 2 deep ('max_call_depth')
  llvm.call @f2() : () -> ()
  llvm.return
}
llvm.func @f2() {
  llvm.return
}
llvm.func @kernel() attributes {nvvm.kernel} {
  llvm.call @f0() : () -> ()
  llvm.return
}
//--- alloca.mlir
// LAUNCH: alloca.mlir:[[#@LINE+1]]:1: error: a block needs {{[0-9]+}} bytes of host memory for its registers, private and shared memory; at most 100000000 are possible ('max_memory')
llvm.func @kernel(%x: i64) attributes {nvvm.kernel} {
  %n = llvm.mlir.constant(150000 : i32) : i32
  // CHECK: alloca.mlir:[[#@LINE+1]]:8: error: the emulator does not execute 'llvm.alloca': more than 1048576 bytes of private memory a lane ('max_private')
  %p = llvm.alloca %n x i64 : (i32) -> !llvm.ptr
  llvm.store %x, %p : i64, !llvm.ptr
  llvm.return
}
//--- huge-alloca.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  // All ones: no negative number of elements.
  %n = llvm.mlir.constant(-1 : i64) : i64
  // CHECK: huge-alloca.mlir:[[#@LINE+1]]:8: error: the emulator does not execute 'llvm.alloca': more than 1048576 bytes of private memory a lane ('max_private')
  %p = llvm.alloca %n x !llvm.array<4294967297 x i64> : (i64) -> !llvm.ptr
  llvm.return
}
//--- vector.mlir
// OPTION: error: emulator options: unknown name or value for 'max_value'
llvm.func @kernel() attributes {nvvm.kernel} {
  // CHECK: vector.mlir:[[#@LINE+1]]:8: error: the emulator does not execute 'llvm.mlir.undef': values of type 'vector<5000xi32>' take 5000 registers; at most 4096 are possible ('max_value')
  %v = llvm.mlir.undef : vector<5000xi32>
  %w = llvm.add %v, %v : vector<5000xi32>
  // MEMORY: vector.mlir:[[#@LINE+1]]:3: error: the emulator does not execute 'llvm.return': the decoded kernel takes more than 100000 bytes of memory ('max_memory')
  llvm.return
}
//--- copies.mlir
llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<512 x i8>
llvm.func @kernel(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %s = llvm.mlir.addressof @s : !llvm.ptr<3>
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %d = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  llvm.br ^bb1
^bb1:
  // CHECK: copies.mlir:[[#@LINE+1]]:3: error: 'nvvm.cp.async.shared.global' by warp 0 (block 0,0,0): more than 4096 copies of a warp that nothing has waited for
  nvvm.cp.async.shared.global %d, %x, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  llvm.br ^bb1
}
