// Items of work print as they are read.
// RUN: kvbuf-opt %s | kvbuf-opt | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: gpu.func @items
  gpu.func @items(%o: memref<?x?xindex>) kernel {
    // CHECK: %item, %item_0, %item_1, %item_2 = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <8, sharing = 4>, <ceildiv(batch, 2)>, <4>] reads product(keys, 512)
    %tile, %head, %batch, %other = kvbuffer.work_item [<"rows" by 64, growing, sharing = all>, <8, sharing = 4>, <ceildiv(batch, 2)>, <4>] reads product(keys, 512)
    // CHECK: %first, %row = kvbuffer.item_rows %item by 64
    %first, %row = kvbuffer.item_rows %tile by 64
    gpu.return
  }

  // CHECK-LABEL: gpu.func @ragged
  gpu.func @ragged() kernel {
    // CHECK: kvbuffer.work_item [<"rows" by 64 over "batch">]{{$}}
    %number = kvbuffer.work_item [<"rows" by 64 over "batch">]
    gpu.return
  }
  // CHECK-LABEL: gpu.func @longest
  gpu.func @longest() kernel {
    // CHECK: kvbuffer.work_item [<4096 by 64 over "batch" longest min(seq, 4096), growing, sharing = all>] {kvbuffer.group}
    %number = kvbuffer.work_item [<4096 by 64 over "batch" longest min(seq, 4096), sharing = all, growing>] {kvbuffer.group}
    gpu.return
  }
}

// CHECK: #kvbuffer.coordinate<"rows" by 8, sharing = 2>
func.func private @attribute() attributes {some.coordinate = #kvbuffer.coordinate<"rows" by 8, sharing = 2>}
