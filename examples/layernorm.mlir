// Layer normalization: y = (x - mean) / sqrt(variance + eps) * gamma + beta, of rows of
// any length in bf16, by a program of threads. A warp has a row; sums go round it by
// shuffles. There is no problem here that kvbuf would choose a schedule for: it makes the
// launch, its manifest and the check for races of what the program says.
//
//   kvbuf-compile examples/layernorm.mlir --target=sm_90a -o layernorm.kvbuf

!x = memref<?x?xbf16, strided<[?, 1]>>
!row = memref<?xf32>
gpu.module @layernorm_module {
  gpu.func @layernorm(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["rows", "cols"], kvbuffer.access = "read"},
                      %gamma: !row {kvbuffer.name = "gamma", kvbuffer.shape = ["cols"], kvbuffer.access = "read"},
                      %beta: !row {kvbuffer.name = "beta", kvbuffer.shape = ["cols"], kvbuffer.access = "read"},
                      %y: !x {kvbuffer.name = "y", kvbuffer.shape = ["rows", "cols"], kvbuffer.access = "write"})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.phase = #kvbuffer.phase<thread>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 4)>, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %eps = arith.constant 1.0e-5 : f32
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
      %wide = arith.index_cast %cols : index to i32
      %count = arith.sitofp %wide : i32 to f32
      %some = scf.for %c = %lane to %cols step %c32 iter_args(%s = %zero) -> (f32) {
        %narrow = memref.load %x[%row, %c] : !x
        %v = arith.extf %narrow : bf16 to f32
        %t = arith.addf %s, %v : f32
        scf.yield %t : f32
      }
      %ao16, %ak16 = gpu.shuffle xor %some, %w16, %width : f32
      %a16 = arith.addf %some, %ao16 : f32
      %ao8, %ak8 = gpu.shuffle xor %a16, %w8, %width : f32
      %a8 = arith.addf %a16, %ao8 : f32
      %ao4, %ak4 = gpu.shuffle xor %a8, %w4, %width : f32
      %a4 = arith.addf %a8, %ao4 : f32
      %ao2, %ak2 = gpu.shuffle xor %a4, %w2, %width : f32
      %a2 = arith.addf %a4, %ao2 : f32
      %ao1, %ak1 = gpu.shuffle xor %a2, %w1, %width : f32
      %sum = arith.addf %a2, %ao1 : f32
      %mean = arith.divf %sum, %count : f32
      // Of distances from the mean: of squares little would be left.
      %less = scf.for %c = %lane to %cols step %c32 iter_args(%s = %zero) -> (f32) {
        %narrow = memref.load %x[%row, %c] : !x
        %v = arith.extf %narrow : bf16 to f32
        %d = arith.subf %v, %mean : f32
        %t = math.fma %d, %d, %s : f32
        scf.yield %t : f32
      }
      %bo16, %bk16 = gpu.shuffle xor %less, %w16, %width : f32
      %b16 = arith.addf %less, %bo16 : f32
      %bo8, %bk8 = gpu.shuffle xor %b16, %w8, %width : f32
      %b8 = arith.addf %b16, %bo8 : f32
      %bo4, %bk4 = gpu.shuffle xor %b8, %w4, %width : f32
      %b4 = arith.addf %b8, %bo4 : f32
      %bo2, %bk2 = gpu.shuffle xor %b4, %w2, %width : f32
      %b2 = arith.addf %b4, %bo2 : f32
      %bo1, %bk1 = gpu.shuffle xor %b2, %w1, %width : f32
      %squares = arith.addf %b2, %bo1 : f32
      %variance = arith.divf %squares, %count : f32
      %above = arith.addf %variance, %eps : f32
      %factor = math.rsqrt %above : f32
      scf.for %c = %lane to %cols step %c32 {
        %narrow = memref.load %x[%row, %c] : !x
        %v = arith.extf %narrow : bf16 to f32
        %d = arith.subf %v, %mean : f32
        %n = arith.mulf %d, %factor : f32
        %g = memref.load %gamma[%c] : !row
        %b = memref.load %beta[%c] : !row
        %r = math.fma %n, %g, %b : f32
        %rounded = arith.truncf %r : f32 to bf16
        memref.store %rounded, %y[%row, %c] : !x
      }
    }
    gpu.return
  }
}
