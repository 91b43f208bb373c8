// The parts of an iteration in which halves of a block take turns, and what
// keeps the halves one part apart. A wait stands two meetings in front of the
// reads that it is for: V's in A, its fragments in C; K's in C, its fragments in
// the next A.

// DEFINE: %{pipeline} = kvbuf-opt %src/examples/prefill.mlir --kvbuf-to-scheduled="chip=gfx950 split-loops=false
// RUN: %{pipeline}" | FileCheck %s
// RUN: %{pipeline} ping-pong=false" | FileCheck %s --check-prefix=OFF --implicit-check-not=kvbuffer.meet --implicit-check-not=kvbuffer.stagger
// OFF: kvbuffer.softmax_tail

// The first scores' slot is loaded again behind a meeting of all.
// CHECK: kvbuffer.softmax_head
// CHECK: kvbuffer.meet
// CHECK: kvbuffer.stagger{{$}}
// CHECK-NEXT: scf.for

// A
// CHECK: kvbuffer.apply_raise
// CHECK: %[[K:.*]] = kvbuffer.fragment_load %{{.*}}[0, 0] : <#kbuf>
// CHECK-NOT: kvbuffer.mma
// CHECK: kvbuffer.dram_load {{.*}} <#vbuf>
// CHECK: %[[V:.*]] = kvbuffer.lds_stage {{.*}} {younger = 2 : i64} : !kvbuffer.token<#vbuf>

// B
// CHECK-NOT: kvbuffer.fragment_load
// CHECK: %[[S:.*]] = kvbuffer.mma %{{.*}}, %[[K]], %{{.*}} {transpose_b}
// CHECK: kvbuffer.softmax_tail
// CHECK-NOT: kvbuffer.mma
// CHECK: kvbuffer.meet

// C
// CHECK: %[[V0:.*]] = kvbuffer.fragment_load %[[V]][0, 0]
// CHECK: %[[V1:.*]] = kvbuffer.fragment_load %[[V]][16, 0]
// CHECK: kvbuffer.dram_load {{.*}} <#kbuf>
// CHECK: kvbuffer.lds_stage {{.*}} {younger = 2 : i64} : !kvbuffer.token<#kbuf>

// D: a quarter of the product beside the maximum, the rest beside the head.
// CHECK-NOT: kvbuffer.fragment_load
// CHECK: kvbuffer.mma %{{.*}}, %[[V0]],
// CHECK: kvbuffer.raise_max
// CHECK: kvbuffer.mma %{{.*}}, %[[V1]],
// CHECK: kvbuffer.softmax_head
// CHECK: kvbuffer.meet
// CHECK-NEXT: scf.yield

// CHECK: kvbuffer.stagger {end}

// V of the last tile was loaded in the loop.
// CHECK-NOT: kvbuffer.dram_load
// CHECK: kvbuffer.lds_stage {{.*}} : !kvbuffer.token<#vbuf>
// CHECK-NOT: kvbuffer.dram_load

// A schedule without lazy rescaling has no head to run ahead.
// RUN: %{pipeline} lazy-rescale=false" --remark-format=emitRemark --remarks-filter=kvbuf-ping-pong 2>&1 >/dev/null | FileCheck %s --check-prefix=MISSED
// MISSED: no turns in this loop: its softmax is not rescaled lazily
