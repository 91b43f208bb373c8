// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @place() {
  // expected-error @below {{'kvbuffer.work_item' op expected the first block of a gpu.func: a kernel has one item at a time}}
  %item = kvbuffer.work_item [<8>]
  return
}

// -----

gpu.module @m {
  gpu.func @nested(%c: i1) kernel {
    scf.if %c {
      // expected-error @below {{'kvbuffer.work_item' op expected the first block of a gpu.func: a kernel has one item at a time}}
      %item = kvbuffer.work_item [<8>]
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @none() kernel {
    // expected-error @below {{'kvbuffer.work_item' op expected a coordinate or more}}
    "kvbuffer.work_item"() {coordinates = []} : () -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @results() kernel {
    // expected-error @below {{'kvbuffer.work_item' op inferred type(s) 'index' are incompatible with return type(s) of operation 'index', 'index'}}
    // expected-error @below {{'kvbuffer.work_item' op failed to infer returned types}}
    %item, %other = "kvbuffer.work_item"() {coordinates = [#kvbuffer.coordinate<8>]} : () -> (index, index)
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two() kernel {
    // expected-note @below {{the first one is here}}
    %item = kvbuffer.work_item [<8>]
    // expected-error @below {{'kvbuffer.work_item' op is a second one; expected one for all of a kernel's work}}
    %other = kvbuffer.work_item [<8>]
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @grid() kernel attributes {kvbuffer.grid = [8, 1, 1]} {
    // expected-error @below {{'kvbuffer.work_item' op stands in a kernel with 'kvbuffer.grid', which follows from the items; expected one of them}}
    %item = kvbuffer.work_item [<8>]
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @growing() kernel {
    // expected-error @below {{'kvbuffer.work_item' op expected items to grow along one coordinate at most}}
    %i, %j = kvbuffer.work_item [<8, growing>, <8, growing>]
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @reads() kernel {
    // expected-error @below {{'kvbuffer.work_item' op reads: expected an integer, the name of a size or #kvbuffer.size<...>, got {power = [2, 3]}}}
    %i = kvbuffer.work_item [<8>] reads {power = [2, 3]}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @unknown() kernel {
    // expected-error @below {{'kvbuffer.work_item' op has an unknown attribute 'grows'}}
    %i = kvbuffer.work_item [<8>] {grows}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @rows(%i: index) kernel {
    // expected-error @below {{'kvbuffer.item_rows' op attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
    %first, %row = kvbuffer.item_rows %i by 0
    gpu.return
  }
}

// -----

// expected-error @below {{expected an integer, the name of a size or #kvbuffer.size<...>, got {}}}
func.func private @extent() attributes {some.coordinate = #kvbuffer.coordinate<{}>}

// -----

// expected-error @below {{expected an extent of 0 or more, got -1}}
func.func private @negative() attributes {some.coordinate = #kvbuffer.coordinate<-1>}

// -----

// expected-error @below {{expected items of 1 row or more, got -64}}
func.func private @step() attributes {some.coordinate = #kvbuffer.coordinate<"rows" by -64>}

// -----

// expected-error @below {{expected rows of an item (by) before the sequences that have them (over)}}
func.func private @over() attributes {some.coordinate = #kvbuffer.coordinate<"rows" over "batch">}

// -----

// expected-error @below {{expected sequences (over) before the rows of the longest one (longest)}}
func.func private @longest() attributes {some.coordinate = #kvbuffer.coordinate<"rows" by 64 longest "seq">}

// -----

// expected-error @below {{expected sharing = all, or a number of 1 or more, got 0}}
func.func private @sharing() attributes {some.coordinate = #kvbuffer.coordinate<8, sharing = 0>}

// -----

// expected-error @below {{expected growing or sharing}}
func.func private @word() attributes {some.coordinate = #kvbuffer.coordinate<8, shrinking>}
