// Divergence: every lane goes its own way and meets the others again.
//
// RUN: split-file %s %t
// RUN: kvbuf-emu-test %t/collatz.mlir --block=32 --arg=buf:i32:32:uninit --print=0 | FileCheck %t/collatz.mlir
// RUN: kvbuf-emu-test %t/switch.mlir --block=32 --arg=buf:i32:32:uninit --print=0 | FileCheck %t/switch.mlir
// RUN: kvbuf-emu-test %t/swap.mlir --block=32 --arg=buf:i32:64:uninit --print=0 | FileCheck %t/swap.mlir
// RUN: kvbuf-emu-test %t/call.mlir --block=32 --arg=buf:i32:32:uninit --print=0 | FileCheck %t/call.mlir
// RUN: kvbuf-emu-test %t/exit.mlir --block=40 --arg=buf:i32:40:zero --print=0 | FileCheck %t/exit.mlir
// RUN: kvbuf-emu-test %t/grid.mlir --block=2,3,2 --grid=2,1,3 --arg=buf:i32:72:uninit --print=0 --print=0:71:1 | FileCheck %t/grid.mlir
// RUN: kvbuf-emu-test %t/never.mlir --block=32 --arg=buf:i32:32:uninit --print=0 | FileCheck %t/never.mlir

//--- never.mlir
// The default of a switch that names all cases, and a trap that no lane comes
// to: lanes meet behind them for a shuffle of all.
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %last = llvm.mlir.constant(31 : i32) : i32
  %a = llvm.mlir.constant(100 : i32) : i32
  %b = llvm.mlir.constant(200 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %k = llvm.and %t, %c1 : i32
  llvm.switch %k : i32, ^never [
    0: ^even,
    1: ^join(%b : i32)
  ]
^even:
  %high = llvm.icmp "ugt" %t, %last : i32
  llvm.cond_br %high, ^trap, ^join(%a : i32)
^trap:
  llvm.intr.trap
  llvm.unreachable
^never:
  llvm.unreachable
^join(%y: i32):
  %z = nvvm.shfl.sync bfly %all, %y, %c1, %last : i32 -> i32
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %z, %p : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK: arg0: 200 100 200 100 200 100

//--- collatz.mlir
// Steps of 3n + 1 from the lane's number plus one: a loop with a branch in it
// and another number of turns in each lane.
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %n0 = llvm.add %t, %c1 : i32
  llvm.br ^head(%n0, %c0 : i32, i32)
^head(%n: i32, %steps: i32):
  %done = llvm.icmp "eq" %n, %c1 : i32
  llvm.cond_br %done, ^end, ^body
^body:
  %bit = llvm.and %n, %c1 : i32
  %odd = llvm.icmp "eq" %bit, %c1 : i32
  llvm.cond_br %odd, ^up, ^down
^up:
  %m = llvm.mul %n, %c3 : i32
  %u = llvm.add %m, %c1 : i32
  llvm.br ^next(%u : i32)
^down:
  %d = llvm.lshr %n, %c1 : i32
  llvm.br ^next(%d : i32)
^next(%v: i32):
  %more = llvm.add %steps, %c1 : i32
  llvm.br ^head(%v, %more : i32, i32)
^end:
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %steps, %p : i32, !llvm.ptr<1>
  llvm.return
}
// Known lengths (OEIS A006577).
// CHECK: arg0: 0 1 7 2 5 8 16 3 19 6 14 9 9 17 17 4 12 20 20 7 7 15 15 10 23 10 111 18 18 18 106 5

//--- switch.mlir
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %a = llvm.mlir.constant(100 : i32) : i32
  %b = llvm.mlir.constant(200 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %k = llvm.urem %t, %c3 : i32
  llvm.switch %k : i32, ^other(%t : i32) [
    0: ^join(%a : i32),
    2: ^join(%b : i32)
  ]
^other(%x: i32):
  llvm.br ^join(%x : i32)
^join(%y: i32):
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %y, %p : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK: arg0: 100 1 200 100 4 200 100 7 200

//--- swap.mlir
// The branch exchanges its arguments, so that their copies form a cycle, and a
// third one rotates with a 64-bit one. Lane l turns l times.
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %w3 = llvm.mlir.constant(3 : i64) : i64
  %w4 = llvm.mlir.constant(4 : i64) : i64
  %t = nvvm.read.ptx.sreg.tid.x : i32
  llvm.br ^head(%c0, %c1, %c2, %w3, %w4 : i32, i32, i32, i64, i64)
^head(%i: i32, %x: i32, %y: i32, %a: i64, %b: i64):
  %done = llvm.icmp "eq" %i, %t : i32
  %j = llvm.add %i, %c1 : i32
  llvm.cond_br %done, ^end, ^head(%j, %y, %x, %b, %a : i32, i32, i32, i64, i64)
^end:
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %x, %p : i32, !llvm.ptr<1>
  %q = llvm.getelementptr %p[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %n = llvm.trunc %a : i64 to i32
  llvm.store %n, %q : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK: arg0: 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 1 2 3 4 3 4 3 4 3 4

//--- call.mlir
module {
  llvm.func @clamp(%x: i32, %most: i32) -> i32 {
    %high = llvm.icmp "ugt" %x, %most : i32
    llvm.cond_br %high, ^cut, ^keep
  ^cut:
    llvm.return %most : i32
  ^keep:
    llvm.return %x : i32
  }
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c5 = llvm.mlir.constant(5 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %a = llvm.call @clamp(%t, %c3) : (i32, i32) -> i32
    %b = llvm.call @clamp(%t, %c5) : (i32, i32) -> i32
    %s = llvm.add %a, %b : i32
    %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %s, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
// CHECK: arg0: 0 2 4 6 7 8 8 8

//--- exit.mlir
// Odd threads leave early; the last warp has only 8 threads from the start.
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %bit = llvm.and %t, %c1 : i32
  %odd = llvm.icmp "eq" %bit, %c1 : i32
  llvm.cond_br %odd, ^leave, ^stay
^leave:
  llvm.return
^stay:
  %x = llvm.add %t, %c1 : i32
  %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  nvvm.barrier0
  llvm.store %x, %p : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK: arg0: 1 0 3 0 5 {{.*}} 33 0 35 0 37 0 39 0{{$}}

//--- grid.mlir
// out[block][thread] = tid.z * 1000 + tid.y * 100 + tid.x * 10 + ctaid.z
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %k10 = llvm.mlir.constant(10 : i32) : i32
  %bx = nvvm.read.ptx.sreg.ctaid.x : i32
  %bz = nvvm.read.ptx.sreg.ctaid.z : i32
  %gx = nvvm.read.ptx.sreg.nctaid.x : i32
  %nx = nvvm.read.ptx.sreg.ntid.x : i32
  %ny = nvvm.read.ptx.sreg.ntid.y : i32
  %nz = nvvm.read.ptx.sreg.ntid.z : i32
  %x = nvvm.read.ptx.sreg.tid.x : i32
  %y = nvvm.read.ptx.sreg.tid.y : i32
  %z = nvvm.read.ptx.sreg.tid.z : i32
  %b0 = llvm.mul %bz, %gx : i32
  %b = llvm.add %b0, %bx : i32
  %i0 = llvm.mul %b, %nz : i32
  %i1 = llvm.add %i0, %z : i32
  %i2 = llvm.mul %i1, %ny : i32
  %i3 = llvm.add %i2, %y : i32
  %i4 = llvm.mul %i3, %nx : i32
  %i = llvm.add %i4, %x : i32
  %v0 = llvm.mul %z, %k10 : i32
  %v1 = llvm.add %v0, %y : i32
  %v2 = llvm.mul %v1, %k10 : i32
  %v3 = llvm.add %v2, %x : i32
  %v4 = llvm.mul %v3, %k10 : i32
  %v = llvm.add %v4, %bz : i32
  %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %v, %p : i32, !llvm.ptr<1>
  llvm.return
}
// CHECK: arg0: 0 10 100 110 200 210 1000 1010 1100 1110 1200 1210 0 10
// CHECK: arg0: 1212
