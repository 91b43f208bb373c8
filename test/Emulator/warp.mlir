// Exchange between the lanes of a warp, and its misuse.
//
// RUN: split-file %s %t
// RUN: kvbuf-emu-test %t/shuffle.mlir --block=32 --arg=buf:i32:160:uninit --print=0:0:160:32 | FileCheck %t/shuffle.mlir
// RUN: kvbuf-emu-test %t/vote.mlir --block=32 --arg=buf:i32:96:uninit --print=0:0:96:32 | FileCheck %t/vote.mlir
// RUN: not kvbuf-emu-test %t/absent.mlir --block=32 2>&1 | FileCheck %t/absent.mlir
// RUN: not kvbuf-emu-test %t/part.mlir --block=32 2>&1 | FileCheck %t/part.mlir

//--- shuffle.mlir
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c31 = llvm.mlir.constant(31 : i32) : i32
  // Segments of 8 lanes: mask 24 in bits 8 to 12, clamp 7 (up: 0).
  %seg = llvm.mlir.constant(6175 : i32) : i32
  %segup = llvm.mlir.constant(6144 : i32) : i32
  %t = nvvm.read.ptx.sreg.laneid : i32
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %a = nvvm.shfl.sync bfly %all, %t, %c1, %c31 : i32 -> i32
  llvm.store %a, %p : i32, !llvm.ptr<1>
  // CHECK: {{^}}  1 0 3 2 5 4 7 6 9 8 11 10 13 12 15 14 17 16 19 18 21 20 23 22 25 24 27 26 29 28 31 30{{$}}
  %p1 = llvm.getelementptr %p[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %b = nvvm.shfl.sync up %all, %t, %c2, %segup : i32 -> i32
  llvm.store %b, %p1 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  0 1 0 1 2 3 4 5 8 9 8 9 10 11 12 13 16 17 16 17 18 19 20 21 24 25 24 25 26 27 28 29{{$}}
  %p2 = llvm.getelementptr %p[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %c = nvvm.shfl.sync down %all, %t, %c3, %c31 {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
  %cv = llvm.extractvalue %c[0] : !llvm.struct<(i32, i1)>
  %cp = llvm.extractvalue %c[1] : !llvm.struct<(i32, i1)>
  llvm.store %cv, %p2 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 29 30 31{{$}}
  %p3 = llvm.getelementptr %p[96] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %valid = llvm.zext %cp : i1 to i32
  llvm.store %valid, %p3 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0{{$}}
  %p4 = llvm.getelementptr %p[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %d = nvvm.shfl.sync idx %all, %t, %c3, %seg : i32 -> i32
  llvm.store %d, %p4 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  3 3 3 3 3 3 3 3 11 11 11 11 11 11 11 11 19 19 19 19 19 19 19 19 27 27 27 27 27 27 27 27{{$}}
  llvm.return
}

//--- vote.mlir
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %t = nvvm.read.ptx.sreg.laneid : i32
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %low = llvm.icmp "ult" %t, %c4 : i32
  %b = nvvm.vote.sync ballot %all, %low -> i32
  llvm.store %b, %p : i32, !llvm.ptr<1>
  // CHECK: {{^}}  15 15 {{.*}} 15{{$}}
  %any = nvvm.vote.sync any %all, %low -> i1
  %every = nvvm.vote.sync all %all, %low -> i1
  %a = llvm.zext %any : i1 to i32
  %e = llvm.zext %every : i1 to i32
  %s = llvm.shl %a, %c4 : i32
  %ae = llvm.or %s, %e : i32
  %p1 = llvm.getelementptr %p[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %ae, %p1 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  16 16 {{.*}} 16{{$}}
  %lead = nvvm.elect.sync -> i1
  %l = llvm.zext %lead : i1 to i32
  %p2 = llvm.getelementptr %p[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %l, %p2 : i32, !llvm.ptr<1>
  // CHECK-NEXT: {{^}}  1 0 0 {{.*}} 0{{$}}
  llvm.return
}

//--- absent.mlir
// Half of the warp shuffles with a mask that names all of it.
llvm.func @kernel() attributes {nvvm.kernel} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c31 = llvm.mlir.constant(31 : i32) : i32
  %t = nvvm.read.ptx.sreg.laneid : i32
  %low = llvm.icmp "ult" %t, %c16 : i32
  llvm.cond_br %low, ^half, ^end
^half:
  // CHECK: :[[#@LINE+1]]:8: error: 'nvvm.shfl.sync' by warp 0 {{.*}}: the member mask names lanes that do not execute it
  %x = nvvm.shfl.sync bfly %all, %t, %c16, %c31 : i32 -> i32
  llvm.br ^end
^end:
  llvm.return
}

//--- part.mlir
module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x f32>
  llvm.func @kernel() attributes {nvvm.kernel} {
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %t = nvvm.read.ptx.sreg.laneid : i32
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>
    %low = llvm.icmp "ult" %t, %c16 : i32
    llvm.cond_br %low, ^half, ^end
  ^half:
    // CHECK: :[[#@LINE+1]]:10: error: 'nvvm.ldmatrix' by warp 0 {{.*}}: executed by a part of the warp, but it needs all lanes
    %x = nvvm.ldmatrix %sh {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    llvm.br ^end
  ^end:
    llvm.return
  }
}
