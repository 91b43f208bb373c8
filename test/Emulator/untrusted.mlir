// Modules may come from anywhere. What MLIR's verifier lets pass and the emulator
// cannot execute is an error at the operation: unknown operations, intrinsics
// with other operands, indices beyond the end, types without a place in
// registers or memory, constants of other kinds, attributes that are no numbers
// to compute with.
//
// RUN: split-file %s %t
// RUN: not kvbuf-emu-test %t/unknown.mlir 2>&1 | FileCheck %t/unknown.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/fewer.mlir 2>&1 | FileCheck %t/fewer.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/none.mlir 2>&1 | FileCheck %t/none.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/wide.mlir 2>&1 | FileCheck %t/wide.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/amd-none.mlir 2>&1 | FileCheck %t/amd-none.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/amd-noresult.mlir 2>&1 | FileCheck %t/amd-noresult.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/amd-result.mlir 2>&1 | FileCheck %t/amd-result.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/amd-buffer.mlir 2>&1 | FileCheck %t/amd-buffer.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/array.mlir 2>&1 | FileCheck %t/array.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/nested.mlir 2>&1 | FileCheck %t/nested.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/vector.mlir 2>&1 | FileCheck %t/vector.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/complex.mlir 2>&1 | FileCheck %t/complex.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/string.mlir 2>&1 | FileCheck %t/string.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/shuffle.mlir 2>&1 | FileCheck %t/shuffle.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/extract.mlir 2>&1 | FileCheck %t/extract.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/insert.mlir 2>&1 | FileCheck %t/insert.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/i48.mlir 2>&1 | FileCheck %t/i48.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/sizeless.mlir 2>&1 | FileCheck %t/sizeless.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/larger.mlir 2>&1 | FileCheck %t/larger.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/alignment.mlir 2>&1 | FileCheck %t/alignment.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/cluster-pointer.mlir 2>&1 | FileCheck %t/cluster-pointer.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/shared.mlir 2>&1 | FileCheck %t/shared.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/registers.mlir 2>&1 | FileCheck %t/registers.mlir --implicit-check-not=error:
// RUN: not kvbuf-emu-test %t/by-value.mlir 2>&1 | FileCheck %t/by-value.mlir --implicit-check-not=error:

//--- unknown.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: unknown.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'foo.bar'{{$}}
    "foo.bar"() : () -> ()
    llvm.return
  }
}

//--- fewer.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = llvm.mlir.constant(1.0 : f32) : f32
    // CHECK: fewer.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': 'llvm.nvvm.fma.rn.f' has 3 operands, not 1
    %v = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%a) : (f32) -> f32
    llvm.return
  }
}

//--- none.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: none.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': 'llvm.nvvm.fma.rn.f' has 3 operands, not 0
    %v = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"() : () -> f32
    llvm.return
  }
}

//--- wide.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = llvm.mlir.undef : vector<8xf32>
    %b = llvm.mlir.constant(1.0 : f32) : f32
    // CHECK: wide.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': operand 0 of 'llvm.nvvm.fma.rn.f' has type 'vector<8xf32>'; expected f32
    %v = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%a, %b, %b) : (vector<8xf32>, f32, f32) -> f32
    llvm.return
  }
}

//--- amd-none.mlir
module attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {rocdl.kernel} {
    // CHECK: amd-none.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': 'readlane' has 2 operands, not 0
    %v = llvm.call_intrinsic "llvm.amdgcn.readlane"() : () -> i32
    llvm.return
  }
}

//--- amd-noresult.mlir
module attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {rocdl.kernel} {
    %c = llvm.mlir.constant(7.0 : f32) : f32
    // CHECK: amd-noresult.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': 'exp2' has 1 results, not 0
    llvm.call_intrinsic "llvm.amdgcn.exp2"(%c) : (f32) -> ()
    llvm.return
  }
}

//--- amd-result.mlir
module attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {rocdl.kernel} {
    %c = llvm.mlir.constant(7 : i32) : i32
    // CHECK: amd-result.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.call_intrinsic': result 0 of 'perm' has type 'vector<64xi32>'; expected i32
    %v = llvm.call_intrinsic "llvm.amdgcn.perm"(%c, %c, %c) : (i32, i32, i32) -> vector<64xi32>
    llvm.return
  }
}

//--- amd-buffer.mlir
module attributes {kvbuffer.target = "gfx950"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {rocdl.kernel} {
    %c = llvm.mlir.constant(7 : i64) : i64
    // CHECK: amd-buffer.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.inttoptr': its result of type '!llvm.ptr<8>' is not what its operands make
    %p = llvm.inttoptr %c : i64 to !llvm.ptr<8>
    llvm.return
  }
}

//--- array.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: array.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.undef': values of type '!llvm.array<4294967297 x i32>' take 4294967297 registers; at most 4096 are possible ('max_value')
    %v = llvm.mlir.undef : !llvm.array<4294967297 x i32>
    llvm.return
  }
}

//--- nested.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: nested.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.undef': values of type '{{.*}}' take 1099511627776 registers; at most 4096 are possible ('max_value')
    %v = llvm.mlir.undef : !llvm.array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x array<2 x i32>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>
    llvm.return
  }
}

//--- vector.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: vector.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.undef': values of type 'vector<1000000000xi32>' take 1000000000 registers; at most 4096 are possible ('max_value')
    %v = llvm.mlir.undef : vector<1000000000xi32>
    llvm.return
  }
}

//--- complex.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: complex.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.constant': this constant
    %v = llvm.mlir.constant(dense<(1.0,2.0)> : tensor<2xcomplex<f32>>) : !llvm.array<2 x struct<(f32, f32)>>
    llvm.return
  }
}

//--- string.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: string.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.constant': this constant
    %v = llvm.mlir.constant(dense<["a","b"]> : tensor<2x!llvm.ptr>) : !llvm.array<2 x i8>
    llvm.return
  }
}

//--- shuffle.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %v = llvm.mlir.undef : vector<2xi32>
    // CHECK: shuffle.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.shufflevector': index 100000 into two vectors of 2 elements
    %w = llvm.shufflevector %v, %v [1, 100000] : vector<2xi32>
    llvm.return
  }
}

//--- extract.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %v = llvm.mlir.undef : vector<2xf16>
    %c = llvm.mlir.constant(2 : i32) : i32
    // CHECK: extract.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.extractelement': a position that its operand does not have
    %w = llvm.extractelement %v[%c : i32] : vector<2xf16>
    llvm.return
  }
}

//--- insert.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %v = llvm.mlir.undef : vector<3xi16>
    %x = llvm.mlir.constant(1 : i16) : i16
    %c = llvm.mlir.constant(3 : i32) : i32
    // CHECK: insert.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.insertelement': a position that its operand does not have
    %w = llvm.insertelement %x, %v[%c : i32] : vector<3xi16>
    llvm.return
  }
}

//--- i48.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: i48.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.load': values of type 'i48' do not fit its registers
    %v = llvm.load %in : !llvm.ptr<1> -> i48
    llvm.return
  }
}

//--- sizeless.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: sizeless.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.getelementptr': '!llvm.struct<(x86_amx, i32)>' has no size in memory
    %p = llvm.getelementptr %in[0, 1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, !llvm.struct<(x86_amx, i32)>
    llvm.return
  }
}

//--- larger.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: larger.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.getelementptr': '!llvm.array<4611686018427387904 x i64>' has no size in memory
    %p = llvm.getelementptr %in[1, 1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, !llvm.array<4611686018427387904 x i64>
    llvm.return
  }
}

//--- alignment.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: alignment.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.load': an alignment of 3, which is no power of two up to 2^30
    %v = llvm.load %in {alignment = 3 : i64} : !llvm.ptr<1> -> i32
    llvm.return
  }
}

//--- cluster-pointer.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.mlir.global internal @smem() {addr_space = 3 : i32} : !llvm.array<1024 x i8>
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %s = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %p = llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>
    llvm.br ^bb1(%p : !llvm.ptr<7>)
  ^bb1(%q: !llvm.ptr<7>):
    %r = llvm.addrspacecast %q : !llvm.ptr<7> to !llvm.ptr<3>
    %c = llvm.mlir.constant(7 : i32) : i32
    llvm.store %c, %r : i32, !llvm.ptr<3>
    %v = llvm.load %r : !llvm.ptr<3> -> i32
    // CHECK: cluster-pointer.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'foo.done'{{$}}
    "foo.done"() : () -> ()
    llvm.return
  }
}

//--- shared.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.mlir.global internal @smem() {addr_space = 3 : i32} : !llvm.array<4294967297 x i8>
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // CHECK: shared.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: the emulator does not execute 'llvm.mlir.addressof': the variables in shared memory take more than 16777216 bytes
    %s = llvm.mlir.addressof @smem : !llvm.ptr<3>
    llvm.return
  }
}

//--- registers.mlir
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 1073741824>, nvvm.minctasm = 17179869184 : i64} {
    // CHECK: registers.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'nvvm.setmaxregister' op leaves no registers at the kernel's entry: 'nvvm.maxntid' or 'nvvm.reqntid' promises 1073741824 threads, 'nvvm.minctasm' 17179869184 blocks, of 65536 registers
    nvvm.setmaxregister increase 40
    llvm.return
  }
}

//--- by-value.mlir
// CHECK: by-value.mlir:[[#@LINE+1]]:1: error: the emulator passes no parameter of type '!llvm.ptr' by value; expected a pointer to global memory for 1 to 32764 bytes, not 4294967297
llvm.func @kernel(%map: !llvm.ptr {llvm.byval = !llvm.array<4294967297 x i8>}) attributes {nvvm.kernel} {
  llvm.return
}
