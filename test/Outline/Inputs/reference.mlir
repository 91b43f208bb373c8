// What the tests of this folder share: numbers that host and device agree on, and
// attention in f64 by plain loops. Tests put this file before their own.

// A number from -1 to 1 in eighths, by a hash of the place.
func.func @number(%seed: i32, %b: index, %s: index, %h: index, %d: index) -> f32 {
  %m = arith.constant 1664525 : i32
  %a = arith.constant 1013904223 : i32
  %c13 = arith.constant 13 : i32
  %bi = arith.index_cast %b : index to i32
  %si = arith.index_cast %s : index to i32
  %hi = arith.index_cast %h : index to i32
  %di = arith.index_cast %d : index to i32
  %0 = arith.addi %seed, %bi : i32
  %1 = arith.muli %0, %m : i32
  %2 = arith.addi %1, %si : i32
  %3 = arith.muli %2, %m : i32
  %4 = arith.addi %3, %hi : i32
  %5 = arith.muli %4, %m : i32
  %6 = arith.addi %5, %di : i32
  %7 = arith.shrui %6, %c13 : i32
  %8 = arith.xori %6, %7 : i32
  %9 = arith.muli %8, %m : i32
  %10 = arith.addi %9, %a : i32
  %c20 = arith.constant 20 : i32
  %11 = arith.shrui %10, %c20 : i32
  %c17 = arith.constant 17 : i32
  %12 = arith.remui %11, %c17 : i32
  %c8 = arith.constant 8 : i32
  %13 = arith.subi %12, %c8 : i32
  %f = arith.sitofp %13 : i32 to f32
  %eighth = arith.constant 0.125 : f32
  %r = arith.mulf %f, %eighth : f32
  return %r : f32
}

// Such numbers are exact in bf16: the upper half of their bits.
func.func @to_bf16(%f: f32) -> bf16 {
  %bits = arith.bitcast %f : f32 to i32
  %c16 = arith.constant 16 : i32
  %high = arith.shrui %bits, %c16 : i32
  %half = arith.trunci %high : i32 to i16
  %y = arith.bitcast %half : i16 to bf16
  return %y : bf16
}

// Row %i of head %h of sequence %b: softmax(q k^T / 8) v over the first %seen keys
// of head %kh, into %out. Query, key and value are numbers of seeds 1, 2 and 3.
func.func @attend_row(%b: index, %i: index, %h: index, %kh: index, %seen: index, %out: memref<64xf64>) {
  %seed1 = arith.constant 1 : i32
  %seed2 = arith.constant 2 : i32
  %seed3 = arith.constant 3 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f64
  %low = arith.constant -1.0e30 : f64
  %scale = arith.constant 0.125 : f64
  %p = memref.alloc(%seen) : memref<?xf64>
  %max = scf.for %j = %c0 to %seen step %c1 iter_args(%m = %low) -> f64 {
    %dot = scf.for %d = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f64 {
      %qf = func.call @number(%seed1, %b, %i, %h, %d) : (i32, index, index, index, index) -> f32
      %kf = func.call @number(%seed2, %b, %j, %kh, %d) : (i32, index, index, index, index) -> f32
      %x = arith.mulf %qf, %kf : f32
      %x64 = arith.extf %x : f32 to f64
      %next = arith.addf %acc, %x64 : f64
      scf.yield %next : f64
    }
    %s = arith.mulf %dot, %scale : f64
    memref.store %s, %p[%j] : memref<?xf64>
    %m1 = arith.maximumf %m, %s : f64
    scf.yield %m1 : f64
  }
  %sum = scf.for %j = %c0 to %seen step %c1 iter_args(%l = %zero) -> f64 {
    %s = memref.load %p[%j] : memref<?xf64>
    %away = arith.subf %s, %max : f64
    %x = math.exp %away : f64
    memref.store %x, %p[%j] : memref<?xf64>
    %l1 = arith.addf %l, %x : f64
    scf.yield %l1 : f64
  }
  scf.for %d = %c0 to %c64 step %c1 {
    %o = scf.for %j = %c0 to %seen step %c1 iter_args(%acc = %zero) -> f64 {
      %x = memref.load %p[%j] : memref<?xf64>
      %vf = func.call @number(%seed3, %b, %j, %kh, %d) : (i32, index, index, index, index) -> f32
      %v64 = arith.extf %vf : f32 to f64
      %pv = arith.mulf %x, %v64 : f64
      %next = arith.addf %acc, %pv : f64
      scf.yield %next : f64
    }
    %mean = arith.divf %o, %sum : f64
    memref.store %mean, %out[%d] : memref<64xf64>
  }
  memref.dealloc %p : memref<?xf64>
  return
}

// Whether two numbers are as close as two roundings to bf16 of numbers up to 1
// leave them; no NaN is.
func.func @close(%got: f64, %want: f64) -> i1 {
  %limit = arith.constant 0.0078125 : f64
  %diff = arith.subf %got, %want : f64
  %error = math.absf %diff : f64
  %ok = arith.cmpf ole, %error, %limit : f64
  return %ok : i1
}
