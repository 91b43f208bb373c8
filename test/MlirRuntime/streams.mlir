// Launches on two streams run at the same time. They may wait for each other;
// what they share without order is a race. One of a stream follows the other.

// RUN: split-file %s %t
// RUN: %nvvm %t/exchange.mlir | %mlir_runner | FileCheck %t/exchange.mlir
// RUN: %nvvm %t/unordered.mlir | not %mlir_runner 2>&1 | FileCheck %t/unordered.mlir
// RUN: %nvvm %t/ordered.mlir | %mlir_runner | FileCheck %t/ordered.mlir

//--- exchange.mlir
// Each kernel raises its flag and awaits the other's.
// CHECK: [11,  22]
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @exchange(%flags: memref<2xi32>, %out: memref<2xi32>, %me: index, %x: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %none = arith.constant 0 : i32
    %other = arith.subi %c1, %me : index
    %r = memref.atomic_rmw addi %one, %flags[%me] : (i32, memref<2xi32>) -> i32
    scf.while : () -> () {
      %v = memref.atomic_rmw addi %none, %flags[%other] : (i32, memref<2xi32>) -> i32
      %wait = arith.cmpi eq, %v, %none : i32
      scf.condition(%wait)
    } do {
      scf.yield
    }
    memref.store %x, %out[%me] : memref<2xi32>
    gpu.return
  }
}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %x = arith.constant 11 : i32
  %y = arith.constant 22 : i32
  %flags = gpu.alloc host_shared () : memref<2xi32>
  %out = gpu.alloc host_shared () : memref<2xi32>
  memref.store %none, %flags[%c0] : memref<2xi32>
  memref.store %none, %flags[%c1] : memref<2xi32>
  %s = gpu.wait async
  %t = gpu.wait async
  %s1 = gpu.launch_func async [%s] @kernels::@exchange blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%flags : memref<2xi32>, %out : memref<2xi32>, %c0 : index, %x : i32)
  %t1 = gpu.launch_func async [%t] @kernels::@exchange blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%flags : memref<2xi32>, %out : memref<2xi32>, %c1 : index, %y : i32)
  gpu.wait [%s1, %t1]
  %u = memref.cast %out : memref<2xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
}

//--- unordered.mlir
// The second kernel reads what the first one writes, and nothing orders them.
// CHECK: error: 'llvm.{{load|store}}' {{.*}}race
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @move(%from: memref<4xi32>, %to: memref<4xi32>) kernel {
    %t = gpu.thread_id x
    %x = memref.load %from[%t] : memref<4xi32>
    memref.store %x, %to[%t] : memref<4xi32>
    gpu.return
  }
}
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %h = memref.alloc() : memref<4xi32>
  %seven = arith.constant 7 : i32
  linalg.fill ins(%seven : i32) outs(%h : memref<4xi32>)
  %w = gpu.wait async
  %a, %wa = gpu.alloc async [%w] () : memref<4xi32>
  %b, %wb = gpu.alloc async [%w] () : memref<4xi32>
  %c, %wc = gpu.alloc async [%w] () : memref<4xi32>
  %w1 = gpu.memcpy async [%w] %a, %h : memref<4xi32>, memref<4xi32>
  %w2 = gpu.memcpy async [%w1] %b, %h : memref<4xi32>, memref<4xi32>
  gpu.wait [%w2]
  %s = gpu.wait async
  %t = gpu.wait async
  %s1 = gpu.launch_func async [%s] @kernels::@move blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%a : memref<4xi32>, %b : memref<4xi32>)
  %t1 = gpu.launch_func async [%t] @kernels::@move blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%b : memref<4xi32>, %c : memref<4xi32>)
  gpu.wait [%s1, %t1]
  return
}
}

//--- ordered.mlir
// The same two, the second one after the first; and a lane that each warp elects.
// CHECK: [7,  7,  7,  7]
// CHECK: [1,  0,  1,  0]
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @move(%from: memref<4xi32>, %to: memref<4xi32>) kernel {
    %t = gpu.thread_id x
    %x = memref.load %from[%t] : memref<4xi32>
    memref.store %x, %to[%t] : memref<4xi32>
    gpu.return
  }
  gpu.func @elect(%count: memref<4xi32>) kernel {
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %warp = arith.divui %t, %c32 : index
    %at = arith.muli %warp, %c2 : index
    %leads = nvvm.elect.sync -> i1
    scf.if %leads {
      %r = memref.atomic_rmw addi %one, %count[%at] : (i32, memref<4xi32>) -> i32
    }
    gpu.return
  }
}
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %n64 = arith.constant 64 : index
  %h = memref.alloc() : memref<4xi32>
  %seven = arith.constant 7 : i32
  %none = arith.constant 0 : i32
  linalg.fill ins(%seven : i32) outs(%h : memref<4xi32>)
  %count = gpu.alloc host_shared () : memref<4xi32>
  linalg.fill ins(%none : i32) outs(%count : memref<4xi32>)
  %w = gpu.wait async
  %a, %w0 = gpu.alloc async [%w] () : memref<4xi32>
  %b, %w1 = gpu.alloc async [%w0] () : memref<4xi32>
  %w2 = gpu.memcpy async [%w1] %a, %h : memref<4xi32>, memref<4xi32>
  %w3 = gpu.launch_func async [%w2] @kernels::@move blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%a : memref<4xi32>, %b : memref<4xi32>)
  %w4 = gpu.launch_func async [%w3] @kernels::@move blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%b : memref<4xi32>, %a : memref<4xi32>)
  %w5 = gpu.launch_func async [%w4] @kernels::@elect blocks in (%c1, %c1, %c1) threads in (%n64, %c1, %c1)
      args(%count : memref<4xi32>)
  %w6 = gpu.memcpy async [%w5] %h, %a : memref<4xi32>, memref<4xi32>
  gpu.wait [%w6]
  %u = memref.cast %h : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  %v = memref.cast %count : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%v) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
}
