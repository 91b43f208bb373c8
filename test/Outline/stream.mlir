// A function with a stream: everything that the launches need goes to it, and nothing
// waits, so that a graph can capture the function. Driven by a stand-in for CUDA's
// driver, which refuses to allocate, to register and to wait while it captures.
//
// REQUIRES: mlir-runner
// RUN: %python %S/Inputs/on_mock_driver.py %build sm_90a %s 2>&1 | FileCheck %s
// Of few rows: keys are split over blocks, which leave parts in a workspace.
// RUN: sed -e 's/<2x256x4x64/<2x8x4x64/' %s > %t.few.mlir
// RUN: %python %S/Inputs/on_mock_driver.py %build sm_80 %t.few.mlir 2>&1 | FileCheck %s --check-prefix=SPLIT

// Without a stream of its own a launch waits for its end, which no capture allows.
// RUN: sed -e 's/ {kvbuffer.stream}//' %t.few.mlir > %t.waits.mlir
// RUN: %python %S/Inputs/on_mock_driver.py %build sm_80 %t.waits.mlir 2>&1 | FileCheck %s --check-prefix=WAITS

// RUN: not %python %S/Inputs/on_mock_driver.py %build sm_80,register-host %s 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: error: 'kvbuffer.attention' op goes to a stream, which nobody waits for here; expected register-host=false: its memory has to stay registered until the launch is over

// While it captures, nothing runs.
// CHECK-NOT: error
// CHECK: encode
// CHECK-NOT: {{launch|error}}
// CHECK: captured
// CHECK-NEXT: allocate 4 bytes on the stream
// CHECK-NEXT: set 1 words
// Two tiles of 192 rows, 4 heads, 2 sequences.
// CHECK-NEXT: launch step_attention grid=16,1,1
// CHECK: free on the stream
// CHECK-NOT: error

// SPLIT-NOT: error
// SPLIT: captured
// SPLIT-NEXT: allocate
// SPLIT-NEXT: allocate
// SPLIT: set
// SPLIT: launch step_attention
// SPLIT: free on the stream
// SPLIT-NEXT: free on the stream
// SPLIT-NOT: error

// WAITS: error: mgpuStreamSynchronize: waiting for a stream failed

!q = memref<2x256x4x64xbf16>
!kv = memref<2x256x2x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>

func.func @step(%q: !q, %k: !kv, %v: !kv, %o: !q, %stream: !llvm.ptr {kvbuffer.stream}) {
  %kc = kvbuffer.make_cache %k : !kv -> !c
  %vc = kvbuffer.make_cache %v : !kv -> !c
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) : !q, !c, !c, !q
  return
}

// The driver's functions, and the stand-in's.
func.func private @cuStreamCreate(!llvm.ptr, i32) -> i32
func.func private @cuStreamBeginCapture_v2(!llvm.ptr, i32) -> i32
func.func private @cuStreamEndCapture(!llvm.ptr, !llvm.ptr) -> i32
func.func private @mockReplay(!llvm.ptr, i32)
func.func private @mockSay()

func.func @main() {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %q = memref.alloc() {alignment = 64} : !q
  %k = memref.alloc() {alignment = 64} : !kv
  %stream_at = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %graph_at = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  call @cuStreamCreate(%stream_at, %one) : (!llvm.ptr, i32) -> i32
  %stream = llvm.load %stream_at : !llvm.ptr -> !llvm.ptr
  call @cuStreamBeginCapture_v2(%stream, %zero) : (!llvm.ptr, i32) -> i32
  call @step(%q, %k, %k, %q, %stream) : (!q, !kv, !kv, !q, !llvm.ptr) -> ()
  call @cuStreamEndCapture(%stream, %graph_at) : (!llvm.ptr, !llvm.ptr) -> i32
  call @mockSay() : () -> ()
  call @mockReplay(%graph_at, %one) : (!llvm.ptr, i32) -> ()
  return
}
