// What the emulator does not execute, it names; exit status 2.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/asm.mlir 2>&1 | FileCheck %t/asm.mlir
// RUN: not kvbuf-emu-test %t/call.mlir 2>&1 | FileCheck %t/call.mlir
// RUN: not kvbuf-emu-test %t/library.mlir --arg=f32:1 2>&1 | FileCheck %t/library.mlir
// RUN: not kvbuf-emu-test %t/op.mlir 2>&1 | FileCheck %t/op.mlir
// RUN: not kvbuf-emu-test %t/type.mlir 2>&1 | FileCheck %t/type.mlir
// RUN: not kvbuf-emu-test %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not kvbuf-emu-test %t/ok.mlir --entry=other 2>&1 | FileCheck %t/ok.mlir --check-prefix=ENTRY
// RUN: not kvbuf-emu-test %t/ok.mlir 2>&1 | FileCheck %t/ok.mlir --check-prefix=ARGS
// RUN: not kvbuf-emu-test %t/ok.mlir --arg=i64:1 2>&1 | FileCheck %t/ok.mlir --check-prefix=SIZE
// RUN: not kvbuf-emu-test %t/ok.mlir --arg=i32:1 --block=2048 2>&1 | FileCheck %t/ok.mlir --check-prefix=BLOCK
// RUN: not kvbuf-emu-test %t/ok.mlir --arg=i32:1 --shared=300000 2>&1 | FileCheck %t/ok.mlir --check-prefix=SHARED
// RUN: not kvbuf-emu-test %t/ok.mlir --arg=i32:1 --options='{"lading":"late"}' 2>&1 | FileCheck %t/ok.mlir --check-prefix=OPTION
// RUN: not kvbuf-emu-test %t/ok.mlir --arg=i32:1 --options='{"landing":"soon"}' 2>&1 | FileCheck %t/ok.mlir --check-prefix=LANDING
// RUN: kvbuf-emu-test %t/ok.mlir --arg=i32:1

//--- asm.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  // CHECK: asm.mlir:[[#@LINE+1]]:3: error: the emulator does not execute 'llvm.inline_asm': the statement 'tcgen05.wait::ld.sync.aligned' of the template 'tcgen05.wait::ld.sync.aligned;'
  llvm.inline_asm has_side_effects "tcgen05.wait::ld.sync.aligned;", "" : () -> ()
  llvm.return
}
//--- call.mlir
module {
  llvm.func @__nv_unknownf(f32) -> f32
  llvm.func @kernel(%x: f32) attributes {nvvm.kernel} {
    // CHECK: call.mlir:[[#@LINE+1]]:10: error: the emulator does not execute 'llvm.call': function '__nv_unknownf' has no body here
    %y = llvm.call @__nv_unknownf(%x) : (f32) -> f32
    llvm.return
  }
}
//--- library.mlir
// A kernel of this project is linked with no library, unlike those of others.
module {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @kernel(%x: f32) attributes {nvvm.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
    // CHECK: library.mlir:[[#@LINE+1]]:10: error: the emulator does not execute 'llvm.call': function '__nv_expf' has no body here
    %y = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.return
  }
}
//--- op.mlir
llvm.func @kernel() attributes {nvvm.kernel} {
  // CHECK: op.mlir:[[#@LINE+1]]:3: error: the emulator does not execute 'nvvm.tcgen05.wait'
  nvvm.tcgen05.wait <load>
  llvm.return
}
//--- type.mlir
llvm.func @kernel(%x: i64) attributes {nvvm.kernel} {
  // CHECK: type.mlir:[[#@LINE+1]]:8: error: the emulator does not execute 'llvm.zext': values of type 'i128' do not fit its registers
  %y = llvm.zext %x : i64 to i128
  llvm.return
}
//--- none.mlir
// CHECK: error: the module has no kernel: no function is marked 'nvvm.kernel' or 'rocdl.kernel'
llvm.func @kernel() {
  llvm.return
}
//--- ok.mlir
llvm.func @kernel(%x: i32) attributes {nvvm.kernel} {
  llvm.return
}
// ENTRY: error: no kernel 'other'
// ARGS: ok.mlir:1:1: error: kernel 'kernel' takes 1 arguments, not 0
// SIZE: error: kernel 'kernel' takes 4 bytes as argument 0, not 8
// BLOCK: error: a block of 2048 threads; the machine takes 1024
// SHARED: error: a block needs 300000 bytes of shared memory; the machine has 232448
// OPTION: error: emulator options: unknown name or value for 'lading'
// LANDING: error: emulator options: 'landing' is late, random or eager
