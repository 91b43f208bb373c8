// The passes one after the other on kvbuffer.attention: that each still finds what
// the one before leaves. What a pass does by itself, its own test shows; the AMD
// kernels without turns are those of amd-stages.mlir.

// DEFINE: %{chip} = sm_90a
// DEFINE: %{schedule} =
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled="chip=%{chip} schedule=%{schedule} split-loops=false" 2>&1

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// Roles, one tile a block, nothing rotated.
// REDEFINE: %{schedule} = BM=128,BN=64,warps=8,producers=4,tiles=grid,overlap_products=false,ping_pong=false,stage_output=false
// RUN: %{run} | FileCheck %s --check-prefix=PLAIN --implicit-check-not=warning
// PLAIN:      kvbuffer.team @consumers
// PLAIN:        kvbuffer.ring_wait %qring[%c0]
// PLAIN:        scf.for
// PLAIN:          kvbuffer.ring_wait %kring
// PLAIN:          kvbuffer.mma_start
// PLAIN-NOT:      kvbuffer.mma_start
// PLAIN:          kvbuffer.mma_wait {{.*}} {younger = 0 : i64}
// PLAIN-NEXT:     kvbuffer.ring_release %kring
// PLAIN:          kvbuffer.online_softmax
// PLAIN:          kvbuffer.ring_wait %vring
// PLAIN:          kvbuffer.mma_start
// PLAIN-NOT:      kvbuffer.mma_start
// PLAIN:          kvbuffer.mma_wait {{.*}} {younger = 0 : i64}
// PLAIN-NEXT:     kvbuffer.ring_release %vring
// PLAIN:        kvbuffer.fragment_store
// PLAIN:      kvbuffer.team @producers
// PLAIN:        kvbuffer.ring_load {{.*}} into %qring[%c0]
// PLAIN:        scf.for %[[I:.*]] = %c0 to
// PLAIN:          kvbuffer.ring_load {{.*}} into %kring[%[[I]]]
// PLAIN:          kvbuffer.ring_load {{.*}} into %vring[%[[I]]]

// Products that overlap, turns, tiles out of a counter.
// REDEFINE: %{schedule} = BM=128,BN=64,warps=8,producers=4,tiles=dynamic,overlap_products=true,ping_pong=true,stage_output=false
// RUN: %{run} | FileCheck %s --check-prefix=TURNS --implicit-check-not=warning
// TURNS:      kvbuffer.mailbox from @producers to [@consumers] {
// TURNS:      kvbuffer.team @consumers
// TURNS:        kvbuffer.mailbox_take
// TURNS:        scf.while
// TURNS:          kvbuffer.mma_start
// TURNS:          scf.for
// TURNS:            kvbuffer.turn_wait
// TURNS-NEXT:       %[[S:.*]] = kvbuffer.mma_start
// TURNS-NEXT:       kvbuffer.ring_wait %vring
// TURNS-NEXT:       %[[O:.*]] = kvbuffer.mma_start
// TURNS-NEXT:       kvbuffer.turn_pass
// TURNS:            kvbuffer.mma_wait %[[S]] {younger = 1 : i64}
// TURNS-NEXT:       kvbuffer.ring_release %kring
// TURNS:            kvbuffer.online_softmax
// TURNS-NEXT:       kvbuffer.mma_wait %[[O]] {younger = 0 : i64}
// TURNS-NEXT:       kvbuffer.ring_release %vring
// TURNS-NEXT:       kvbuffer.rescale
// TURNS:          kvbuffer.softmax_finish
// TURNS:          kvbuffer.mailbox_take
// TURNS:      kvbuffer.team @producers
// TURNS:        kvbuffer.next_tile
// TURNS-NEXT:   kvbuffer.mailbox_post
// TURNS:        scf.while
// TURNS:          kvbuffer.ring_load {{.*}} into %qring
// TURNS:          kvbuffer.ring_load {{.*}} into %kring
// TURNS:          scf.for
// TURNS:            kvbuffer.ring_load {{.*}} into %kring[%{{.*}}] {whole}
// TURNS:            kvbuffer.ring_load {{.*}} into %vring
// TURNS:          kvbuffer.ring_load {{.*}} into %vring

// A cluster's blocks fill rings of keys for each other; groups pass over tiles that
// they do not see, and take their turns.
// REDEFINE: %{schedule} = BM=192,BN=80,warps=12,producers=4,tiles=static,cluster=2,ping_pong=true,q_in_regs=false,producer_registers=32,consumer_registers=160
// RUN: %{run} | FileCheck %s --check-prefix=CLUSTER --implicit-check-not=warning
// CLUSTER:      kvbuffer.ring %qbuf from @producers to [@consumers] :
// CLUSTER-NEXT: kvbuffer.ring %kbuf from @producers to [@consumers] {shared} :
// CLUSTER-NEXT: kvbuffer.ring %vbuf from @producers to [@consumers] {shared} :
// CLUSTER:      consumers
// CLUSTER:        kvbuffer.key_range {{.*}}per_group}
// CLUSTER:        scf.for
// CLUSTER:          kvbuffer.ring_wait %kring
// CLUSTER-NEXT:     kvbuffer.ring_release %kring
// CLUSTER-NEXT:     kvbuffer.turn_wait
// CLUSTER-NEXT:     kvbuffer.turn_pass
// CLUSTER-NEXT:     kvbuffer.ring_wait %vring
// CLUSTER-NEXT:     kvbuffer.ring_release %vring
// CLUSTER-NEXT:   }

// Every warp does everything: rotated loops, and loads that run ahead of them.
// REDEFINE: %{chip} = sm_80
// REDEFINE: %{schedule} = overlap=true,BN=32,q_in_regs=false
// RUN: %{run} | FileCheck %s --check-prefix=SCORES --implicit-check-not=warning
// SCORES:      kvbuffer.mma {{.*}} {transpose_b}
// SCORES:      scf.for {{.*}} iter_args({{.*}}!kvbuffer.token
// SCORES:        kvbuffer.lds_stage
// SCORES:        kvbuffer.mma {{.*}} {transpose_b}
// SCORES:        kvbuffer.dram_load {{.*}} if
// SCORES:        kvbuffer.online_softmax
// SCORES:        scf.yield
// SCORES-NOT:  {transpose_b}
// SCORES:      kvbuffer.online_softmax
// SCORES-NOT:  {transpose_b}
// SCORES:      kvbuffer.softmax_finish
// REDEFINE: %{schedule} = overlap_products=true,BN=32,q_in_regs=false
// RUN: %{run} | FileCheck %s --check-prefix=PRODUCTS --implicit-check-not=warning
// PRODUCTS:    kvbuffer.mma {{.*}} {transpose_b}
// PRODUCTS:    kvbuffer.online_softmax
// PRODUCTS:    scf.for {{.*}} iter_args({{.*}}!kvbuffer.token
// PRODUCTS:      kvbuffer.mma {{.*}} {transpose_b}
// PRODUCTS:      kvbuffer.mma %p
// PRODUCTS:      kvbuffer.online_softmax
// PRODUCTS:      kvbuffer.rescale
// PRODUCTS:      scf.yield
// PRODUCTS-NOT:  {transpose_b}
// PRODUCTS:    kvbuffer.softmax_finish

// Halves of a block that take turns, with the softmax in parts: waits two meetings
// before the reads that they are for.
// REDEFINE: %{chip} = gfx950
// REDEFINE: %{schedule} = ping_pong=true
// RUN: %{run} | FileCheck %s --check-prefix=HALVES --implicit-check-not=warning
// HALVES:      kvbuffer.softmax_head
// HALVES:      kvbuffer.meet
// HALVES:      kvbuffer.stagger{{$}}
// HALVES-NEXT: scf.for
// HALVES:        kvbuffer.apply_raise
// HALVES:        %[[K:.*]] = kvbuffer.fragment_load %{{.*}}[0, 0] contracted(cols)
// HALVES:        kvbuffer.dram_load {{.*}} into %vbuf
// HALVES:        %[[V:.*]] = kvbuffer.lds_stage {{.*}} {younger = 2 : i64} : !kvbuffer.token<
// HALVES:        kvbuffer.mma %{{.*}}, %[[K]], %{{.*}} {transpose_b}
// HALVES:        kvbuffer.softmax_tail
// HALVES:        kvbuffer.meet
// HALVES:        %[[V0:.*]] = kvbuffer.fragment_load %[[V]][0, 0]
// HALVES:        kvbuffer.dram_load {{.*}} into %kbuf
// HALVES:        kvbuffer.lds_stage {{.*}} {younger = 2 : i64} : !kvbuffer.token<
// HALVES:        kvbuffer.mma %{{.*}}, %[[V0]],
// HALVES:        kvbuffer.raise_max
// HALVES:        kvbuffer.softmax_head
// HALVES:        kvbuffer.meet
// HALVES-NEXT:   scf.yield
// HALVES:      kvbuffer.stagger {end}
// HALVES-NOT:  kvbuffer.dram_load
// HALVES:      kvbuffer.softmax_finish

// The whole pipeline ends in rocdl without a chip's name, too.
// RUN: kvbuf-opt %s --kvbuf-lower-to-rocdl | FileCheck %s --check-prefix=DEFAULT
// RUN: kvbuf-opt %s --kvbuf-lower-to-rocdl=chip=gfx942 | FileCheck %s --check-prefix=GFX942
// DEFAULT: kvbuffer.target = "gfx950"
// DEFAULT: rocdl.mfma.f32.32x32x16.bf16
// GFX942:  kvbuffer.target = "gfx942"
// GFX942:  rocdl.mfma.f32.32x32x8bf16.1k
