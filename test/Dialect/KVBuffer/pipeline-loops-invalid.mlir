// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-pipeline-loops)))" --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @no_pipeline(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'memref.store' op has the attribute 'kvbuffer.stage', which nothing reads here; expected it in the body of a loop with 'kvbuffer.pipeline'}}
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @in_a_branch(%out: memref<?xi32>, %x: i32, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      scf.if %some {
        // expected-error @below {{'memref.store' op has the attribute 'kvbuffer.stage', which nothing reads here; expected it in the body of a loop with 'kvbuffer.pipeline'}}
        memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 1>} : memref<?xi32>
      } {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>}
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @no_place(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'memref.store' op has no place in the loop that is to be made of its own; expected 'kvbuffer.stage', as in #kvbuffer.stage<0 ahead, own, at 0>}}
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @one_place(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-note @below {{the other op is here}}
      %y = arith.addi %x, %x {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 3>} : i32
      // expected-error @below {{'memref.store' op has place 3, which another op of the loop has; expected a place of its own}}
      memref.store %y, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 3>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @three(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'arith.addi' op runs 2 iterations ahead in a loop of which two overlap; expected 0 or 1}}
      %y = arith.addi %x, %x {kvbuffer.stage = #kvbuffer.stage<2 ahead, own, at 0>} : i32
      memref.store %y, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 1>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<peeled_now>}
    gpu.return
  }
}

// -----

// A store cannot run for iterations that there are not.
gpu.module @m {
  gpu.func @store_ahead(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{cannot pipeline the loop by the stages of its ops}}
    scf.for %i = %c0 to %n step %c1 {
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, own, at 0>} : memref<?xi32>
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 1>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @both(%out: memref<?xi32>, %x: i32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-note @below {{the loop around is here}}
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'scf.for' op is to be made of its ops' stages, and so is a loop around it; expected one of them at a time}}
      scf.for %j = %c0 to %n step %c1 {
        memref.store %x, %out[%j] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
      } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>, kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>}
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @one_more(%list: memref<?xi32>, %out: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // expected-error @below {{'scf.for' op has a step other than 1, and an op that runs ahead for one more iteration; expected the step 1}}
    scf.for %i = %c0 to %n step %c2 {
      // expected-note @below {{the op is here}}
      %x = memref.load %list[%i] {kvbuffer.stage = #kvbuffer.stage<1 ahead, one_more, at 1>} : memref<?xi32>
      memref.store %x, %out[%i] {kvbuffer.stage = #kvbuffer.stage<0 ahead, own, at 0>} : memref<?xi32>
    } {kvbuffer.pipeline = #kvbuffer.pipeline<predicated>}
    gpu.return
  }
}

// -----

// expected-error @below {{before_wait is for loops whose ops run ahead by predicates; expected it beside predicated or turns, got peeled_now}}
#how = #kvbuffer.pipeline<peeled_now, before_wait>
