// The place of the largest number of each row (greedy sampling of logits), the first of
// equal ones, by a program of threads: a warp has a row, and lanes exchange a number and
// its place by shuffles.
//
//   kvbuf-compile examples/argmax.mlir --target=sm_90a -o argmax.kvbuf

!x = memref<?x?xf32, strided<[?, 1]>>
!place = memref<?xi32>
gpu.module @argmax_module {
  gpu.func @argmax(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["rows", "cols"], kvbuffer.access = "read"},
                   %place: !place {kvbuffer.name = "place", kvbuffer.shape = ["rows"], kvbuffer.access = "write"})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.phase = #kvbuffer.phase<thread>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 4)>, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %lowest = arith.constant 0xFF800000 : f32
    %none = arith.constant 2147483647 : i32
    %width = arith.constant 32 : i32
    %w16 = arith.constant 16 : i32
    %w8 = arith.constant 8 : i32
    %w4 = arith.constant 4 : i32
    %w2 = arith.constant 2 : i32
    %w1 = arith.constant 1 : i32
    %rows = memref.dim %x, %c0 : !x
    %cols = memref.dim %x, %c1 : !x
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %first = arith.muli %block, %c4 : index
    %row = arith.addi %first, %warp : index
    %exists = arith.cmpi ult, %row, %rows : index
    scf.if %exists {
      %best, %at = scf.for %c = %lane to %cols step %c32
          iter_args(%b = %lowest, %i = %none) -> (f32, i32) {
        %v = memref.load %x[%row, %c] : !x
        %n = arith.index_cast %c : index to i32
        %more = arith.cmpf ogt, %v, %b : f32
        // A row of -inf alone has a first element, too.
        %new = arith.cmpi eq, %i, %none : i32
        %take = arith.ori %more, %new : i1
        %b1 = arith.select %take, %v, %b : f32
        %i1 = arith.select %take, %n, %i : i32
        scf.yield %b1, %i1 : f32, i32
      }
      %o16, %k16 = gpu.shuffle xor %best, %w16, %width : f32
      %p16, %l16 = gpu.shuffle xor %at, %w16, %width : i32
      %m16 = arith.cmpf ogt, %o16, %best : f32
      %e16 = arith.cmpf oeq, %o16, %best : f32
      %f16 = arith.cmpi slt, %p16, %at : i32
      %t16 = arith.andi %e16, %f16 : i1
      %take16 = arith.ori %m16, %t16 : i1
      %best16 = arith.select %take16, %o16, %best : f32
      %at16 = arith.select %take16, %p16, %at : i32
      %o8, %k8 = gpu.shuffle xor %best16, %w8, %width : f32
      %p8, %l8 = gpu.shuffle xor %at16, %w8, %width : i32
      %m8 = arith.cmpf ogt, %o8, %best16 : f32
      %e8 = arith.cmpf oeq, %o8, %best16 : f32
      %f8 = arith.cmpi slt, %p8, %at16 : i32
      %t8 = arith.andi %e8, %f8 : i1
      %take8 = arith.ori %m8, %t8 : i1
      %best8 = arith.select %take8, %o8, %best16 : f32
      %at8 = arith.select %take8, %p8, %at16 : i32
      %o4, %k4 = gpu.shuffle xor %best8, %w4, %width : f32
      %p4, %l4 = gpu.shuffle xor %at8, %w4, %width : i32
      %m4 = arith.cmpf ogt, %o4, %best8 : f32
      %e4 = arith.cmpf oeq, %o4, %best8 : f32
      %f4 = arith.cmpi slt, %p4, %at8 : i32
      %t4 = arith.andi %e4, %f4 : i1
      %take4 = arith.ori %m4, %t4 : i1
      %best4 = arith.select %take4, %o4, %best8 : f32
      %at4 = arith.select %take4, %p4, %at8 : i32
      %o2, %k2 = gpu.shuffle xor %best4, %w2, %width : f32
      %p2, %l2 = gpu.shuffle xor %at4, %w2, %width : i32
      %m2 = arith.cmpf ogt, %o2, %best4 : f32
      %e2 = arith.cmpf oeq, %o2, %best4 : f32
      %f2 = arith.cmpi slt, %p2, %at4 : i32
      %t2 = arith.andi %e2, %f2 : i1
      %take2 = arith.ori %m2, %t2 : i1
      %best2 = arith.select %take2, %o2, %best4 : f32
      %at2 = arith.select %take2, %p2, %at4 : i32
      %o1, %k1 = gpu.shuffle xor %best2, %w1, %width : f32
      %p1, %l1 = gpu.shuffle xor %at2, %w1, %width : i32
      %m1 = arith.cmpf ogt, %o1, %best2 : f32
      %e1 = arith.cmpf oeq, %o1, %best2 : f32
      %f1 = arith.cmpi slt, %p1, %at2 : i32
      %t1 = arith.andi %e1, %f1 : i1
      %take1 = arith.ori %m1, %t1 : i1
      %largest = arith.select %take1, %o1, %best2 : f32
      %where = arith.select %take1, %p1, %at2 : i32
      %leads = arith.cmpi eq, %lane, %c0 : index
      scf.if %leads {
        memref.store %where, %place[%row] : !place
      }
    }
    gpu.return
  }
}
