// What the schedule asks for and the kernel's items do not allow; and programs whose
// items or rows cannot be told.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-work)))"

#loop = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = dynamic>
#pairs = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = static, cluster = 2>
module attributes {kvbuffer.target = "sm_90a"} {
gpu.module @m {
  // expected-error @below {{'gpu.func' op has no kvbuffer.work_item, whose items blocks take one after the other by tiles = dynamic; expected one, or tiles = grid}}
  gpu.func @no_item() kernel attributes {kvbuffer.grid = [#kvbuffer.size<ceildiv(rows, 64)>, 4, 1], kvbuffer.schedule = #loop} {
    gpu.return
  }

  gpu.func @ids(%o: memref<?xindex>) kernel {
    // expected-note @below {{it is here}}
    %item = kvbuffer.work_item [<"rows" by 64>]
    // expected-error @below {{'gpu.block_id' op stands in a kernel with a kvbuffer.work_item, which does not say where in the grid blocks are; expected results of that op}}
    %id = gpu.block_id x
    memref.store %item, %o[%id] : memref<?xindex>
    gpu.return
  }

  gpu.func @alone(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #pairs} {
    // expected-warning @below {{no clusters of 2: along no coordinate 2 neighbouring items read the same, or all that are counted in rows}}
    %tile, %head = kvbuffer.work_item [<"rows" by 64>, <6, sharing = 3>]
    memref.store %tile, %o[%head] : memref<?xindex>
    gpu.return
  }

  // Numbers over sequences that something but a search reads.
  gpu.func @numbers(%o: memref<?xindex>) kernel attributes {kvbuffer.schedule = #pairs} {
    // expected-warning @below {{no clusters of 2}}
    %number = kvbuffer.work_item [<"rows" by 64 over "users", sharing = all>]
    memref.store %number, %o[%number] : memref<?xindex>
    gpu.return
  }

  gpu.func @other_row(%n: index) kernel attributes {kvbuffer.schedule = #pairs} {
    %tile = kvbuffer.work_item [<"rows" by 64, sharing = all>]
    // expected-note @below {{the rows are here}}
    %first, %row = kvbuffer.item_rows %tile by 64
    %c32 = arith.constant 32 : index
    %half = arith.addi %first, %c32 : index
    // expected-error @below {{'kvbuffer.key_range' op begins at a row that is computed from the first row of a cluster's blocks; expected that row itself, or the block's own}}
    %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %half of %n keys %n {BM = 32, mask = #kvbuffer.mask<>}
    gpu.return
  }

  // The same through a branch, and through what a loop carries.
  gpu.func @branch(%n: index, %c: i1) kernel attributes {kvbuffer.schedule = #pairs} {
    %tile = kvbuffer.work_item [<"rows" by 64, sharing = all>]
    // expected-note @below {{the rows are here}}
    %first, %row = kvbuffer.item_rows %tile by 64
    %some = scf.if %c -> (index) {
      scf.yield %first : index
    } else {
      scf.yield %n : index
    }
    // expected-error @below {{begins at a row that is computed from the first row of a cluster's blocks}}
    %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %some of %n keys %n {BM = 64, mask = #kvbuffer.mask<>}
    gpu.return
  }
  gpu.func @carried(%n: index) kernel attributes {kvbuffer.schedule = #pairs} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %tile = kvbuffer.work_item [<"rows" by 64, sharing = all>]
    // expected-note @below {{the rows are here}}
    %first, %row = kvbuffer.item_rows %tile by 64
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first) -> (index) {
      // expected-error @below {{begins at a row that is computed from the first row of a cluster's blocks}}
      %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %at of %n keys %n {BM = 64, mask = #kvbuffer.mask<>}
      scf.yield %hi : index
    }
    gpu.return
  }

  // Rows counted otherwise than the items.
  gpu.func @half_rows(%o: memref<?xindex>) kernel {
    // expected-note @below {{the items are here}}
    %tile = kvbuffer.work_item [<"rows" by 128>]
    // expected-error @below {{'kvbuffer.item_rows' op has rows = 64 for items of 128 rows; expected 128}}
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %row, %o[%first] : memref<?xindex>
    gpu.return
  }
  gpu.func @no_rows(%o: memref<?xindex>) kernel {
    // expected-note @below {{the items are here}}
    %tile = kvbuffer.work_item [<"rows">]
    // expected-error @below {{'kvbuffer.item_rows' op has rows = 64 for items that are not counted in rows; expected a coordinate with 'by'}}
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %row, %o[%first] : memref<?xindex>
    gpu.return
  }
  gpu.func @found(%o: memref<?xindex>, %offsets: memref<?xi32>, %users: index, %rows: index) kernel {
    %number = kvbuffer.work_item [<"rows" by 128 over "users">]
    // expected-note @below {{the items are here}}
    %user, %tile = kvbuffer.find_tile %number in %offsets of %users upto %rows by 128 : memref<?xi32>
    // expected-error @below {{'kvbuffer.item_rows' op has rows = 64 for items of 128 rows; expected 128}}
    %first, %row = kvbuffer.item_rows %tile by 64
    memref.store %row, %o[%user] : memref<?xindex>
    gpu.return
  }
  gpu.func @search(%o: memref<?xindex>, %offsets: memref<?xi32>, %users: index, %rows: index) kernel {
    // expected-note @below {{the items are here}}
    %number = kvbuffer.work_item [<"rows" by 128 over "users">]
    // expected-error @below {{'kvbuffer.find_tile' op has BM = 64 for items of 128 rows; expected 128}}
    %user, %tile = kvbuffer.find_tile %number in %offsets of %users upto %rows by 64 : memref<?xi32>
    memref.store %tile, %o[%user] : memref<?xindex>
    gpu.return
  }

  // Other ways to ask where a block is.
  gpu.func @clusters(%o: memref<?xindex>) kernel {
    // expected-note @below {{it is here}}
    %item = kvbuffer.work_item [<"rows" by 64>]
    // expected-error @below {{'gpu.cluster_id' op stands in a kernel with a kvbuffer.work_item}}
    %id = gpu.cluster_id x
    memref.store %item, %o[%id] : memref<?xindex>
    gpu.return
  }
  gpu.func @global(%o: memref<?xindex>) kernel {
    // expected-note @below {{it is here}}
    %item = kvbuffer.work_item [<"rows" by 64>]
    // expected-error @below {{'gpu.global_id' op stands in a kernel with a kvbuffer.work_item}}
    %id = gpu.global_id x
    memref.store %item, %o[%id] : memref<?xindex>
    gpu.return
  }
}
}

// -----

#dies = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, warps = 4, mma_shape = [16, 16, 16], xcds = 4>
module attributes {kvbuffer.target = "gfx942"} {
gpu.module @m {
  gpu.func @dies(%o: memref<?x6xindex>) kernel attributes {kvbuffer.schedule = #dies} {
    // expected-warning @below {{items are not dealt to 4 dies: expected a first coordinate along which all read the same (sharing = all), or two, and one more}}
    %tile, %head, %batch = kvbuffer.work_item [<16>, <6, sharing = 2>, <"batch">]
    memref.store %tile, %o[%batch, %head] : memref<?x6xindex>
    gpu.return
  }
}
}
