// Kernels whose warps have roles, against attention in double precision. A slot
// that is read or refilled at the wrong time, or a wait without end, would fail the
// run.

// DEFINE: %{keys} = BN=64
// DEFINE: %{schedule} =
// DEFINE: %{sizes} = --size seq=150
// DEFINE: %{options} =
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled="chip=sm_90a schedule=BM=128,%{keys},warps=8,producers=4,producer_registers=24,consumer_registers=240,%{schedule} %{options}" | kvbuf-tile-run %{sizes} | FileCheck %s

// One tile a block, each part switched on.
// REDEFINE: %{schedule} = overlap_products=false,tiles=grid
// RUN: %{run}
// REDEFINE: %{schedule} = overlap_products=true,tiles=grid,q_in_regs=false
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=100 --size seq_k=300 --size batch=2 --row-pad=8
// REDEFINE: %{schedule} = overlap_products=true,tiles=grid,ping_pong=true
// RUN: %{run}
// REDEFINE: %{schedule} = overlap_products=true,tiles=grid,stages=1
// RUN: %{run}
// REDEFINE: %{keys} = BN=48
// REDEFINE: %{schedule} = overlap_products=true,tiles=grid,stages=3
// RUN: %{run}
// REDEFINE: %{keys} = BN=64

// Fewer keys than queries: with a causal mask the first rows see none. One key,
// no key, no query.
// REDEFINE: %{schedule} = tiles=grid
// REDEFINE: %{sizes} = --size seq_q=200 --size seq_k=70 --heads-major
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=1 --size seq_k=1
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=5 --size seq_k=0
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=0 --size seq_k=5
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=130 --size seq_k=300 --init=ramp
// RUN: %{run}

// Loops over tiles: more tiles than blocks, fewer, and none with a key.
// REDEFINE: %{schedule} = tiles=static
// REDEFINE: %{sizes} = --size seq_q=300 --size seq_k=400 --size batch=2
// RUN: %{run}
// REDEFINE: %{schedule} = tiles=dynamic
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=300 --size seq_k=400 --blocks=20
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=300 --size seq_k=0
// RUN: %{run}
// REDEFINE: %{schedule} = tiles=dynamic,q_in_regs=false,stage_output=false,stages=1
// REDEFINE: %{sizes} = --size seq_q=300 --size seq_k=70
// RUN: %{run}

// Clusters, whose blocks load for each other: an odd number of tiles, too.
// REDEFINE: %{schedule} = tiles=dynamic,cluster=2
// REDEFINE: %{sizes} = --size seq_q=300 --size seq_k=400 --size batch=2
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=100 --size seq_k=70
// RUN: %{run}
// REDEFINE: %{schedule} = tiles=static,cluster=2
// REDEFINE: %{sizes} = --size seq_q=500 --size seq_k=600 --blocks=3
// RUN: %{run}

// Passes switched off.
// REDEFINE: %{schedule} = tiles=dynamic
// REDEFINE: %{options} = overlap-products=false
// RUN: %{run}
// REDEFINE: %{options} = persistent=false
// RUN: %{run}
// REDEFINE: %{options} = async-products=false
// RUN: %{run}
// REDEFINE: %{options} = split-loops=false
// RUN: %{run}
// REDEFINE: %{options} = roles=false
// RUN: %{run}

!qo = memref<?x?x2x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>

// CHECK: full:
// CHECK: {{^}}PASS
func.func @full(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// CHECK: causal_lse:
// CHECK: {{^}}PASS
func.func @causal_lse(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: window:
// CHECK: {{^}}PASS
func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<left = 10, right = 20>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: sliding:
// CHECK: {{^}}PASS
func.func @sliding(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {mask = #kvbuffer.mask<causal = true, left = 70>}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>
  return
}

// CHECK: softcap_sink:
// CHECK: {{^}}PASS
func.func @softcap_sink(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x2x?xf32>, %sink: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) sink(%sink)
      {mask = #kvbuffer.mask<causal = true>, softcap = 5.0 : f32, scale = 0.2 : f32}
    : !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>, sink memref<?xf32>
  return
}

// CHECK: negative_scale:
// CHECK: {{^}}PASS
func.func @negative_scale(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = -0.1 : f32} : !qo, !kv, !kv, !qo
  return
}
