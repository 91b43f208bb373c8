// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

!acc = !kvbuffer.fragment<16x16xf32, acc>

func.func @one_coordinate(%s: !acc, %i: index) {
  // expected-error @below {{'kvbuffer.map' op expected both coordinates, or none}}
  "kvbuffer.map"(%s, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%x: f32, %r: index, %c: index):
    kvbuffer.yield %x : f32
  }) : (!acc, index) -> !acc
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{'kvbuffer.map' op expected at least one input}}
  "kvbuffer.map"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> ({
  ^bb0(%r: index, %c: index):
    %x = arith.constant 0.0 : f32
    kvbuffer.yield %x : f32
  }) : () -> !kvbuffer.fragment<16x16xf32, acc>
  return
}

// -----

func.func @shapes(%s: !kvbuffer.fragment<16x16xf32, acc>, %t: !kvbuffer.fragment<16x32xf32, acc>) {
  // expected-error @below {{'kvbuffer.map' op expected accumulators of one shape, got '!kvbuffer.fragment<16x32xf32, acc>' and '!kvbuffer.fragment<16x16xf32, acc>'}}
  %r = kvbuffer.map %s, %t : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x32xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %y: f32, %i: index, %j: index):
    kvbuffer.yield %x : f32
  }
  return
}

// -----

// A row value may be a lane's part of a sum.
func.func @parts(%s: !kvbuffer.fragment<16x16xf32, acc>, %m: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-error @below {{'kvbuffer.map' op takes values of rows that may be a lane's part of a sum; expected results of kvbuffer.row_reduce or kvbuffer.fragment_fill}}
  %r = kvbuffer.map %s, %m : !kvbuffer.fragment<16x16xf32, acc>, !kvbuffer.fragment<16x1xf32, row> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %y: f32, %i: index, %j: index):
    kvbuffer.yield %x : f32
  }
  return
}

// -----

// Values of rows are no accumulators.
func.func @rows(%m: !kvbuffer.fragment<16x1xf32, row>) {
  // expected-error @below {{'kvbuffer.map' op expected accumulators of one shape, got '!kvbuffer.fragment<16x1xf32, row>' and '!kvbuffer.fragment<16x1xf32, row>'}}
  %r = kvbuffer.map %m : !kvbuffer.fragment<16x1xf32, row> -> !kvbuffer.fragment<16x1xf32, row> {
  ^bb0(%x: f32, %i: index, %j: index):
    kvbuffer.yield %x : f32
  }
  return
}

// -----

func.func @arguments(%s: !kvbuffer.fragment<16x16xf32, acc>) {
  // expected-error @below {{'kvbuffer.map' op expected a region of the inputs' elements and two coordinates, ('f32', 'index', 'index'), got ('f32')}}
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32):
    kvbuffer.yield %x : f32
  }
  return
}

// -----

func.func @element(%s: !kvbuffer.fragment<16x16xf32, acc>) {
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %i: index, %j: index):
    %y = arith.truncf %x : f32 to bf16
    // expected-error @below {{'kvbuffer.yield' op expected an element of the result, 'f32', got 'bf16'}}
    kvbuffer.yield %y : bf16
  }
  return
}

// -----

func.func @no_yield(%s: !kvbuffer.fragment<16x16xf32, acc>) {
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %i: index, %j: index):
    // expected-error @below {{'llvm.unreachable' op cannot end the region of a kvbuffer.map; expected kvbuffer.yield}}
    llvm.unreachable
  }
  return
}

// -----

func.func @writes(%s: !kvbuffer.fragment<16x16xf32, acc>, %m: memref<?x?xf32>) {
  // expected-note @below {{the region is here}}
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %i: index, %j: index):
    // expected-error @below {{'memref.store' op is not allowed in a kvbuffer.map: it may only read memory}}
    memref.store %x, %m[%i, %j] : memref<?x?xf32>
    kvbuffer.yield %x : f32
  }
  return
}

// -----

func.func @fragments(%s: !kvbuffer.fragment<16x16xf32, acc>) {
  // expected-note @below {{the region is here}}
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %i: index, %j: index):
    // expected-error @below {{'kvbuffer.fragment_fill' op is not allowed in a kvbuffer.map: its values are elements, not fragments}}
    %f = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<16x16xf32, acc>
    kvbuffer.yield %x : f32
  }
  return
}

// -----

func.func @loops(%s: !kvbuffer.fragment<16x16xf32, acc>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{the region is here}}
  %r = kvbuffer.map %s : !kvbuffer.fragment<16x16xf32, acc> -> !kvbuffer.fragment<16x16xf32, acc> {
  ^bb0(%x: f32, %i: index, %j: index):
    // expected-error @below {{'scf.for' op is not allowed in a kvbuffer.map: of ops with regions only scf.if is}}
    %y = scf.for %k = %c0 to %i step %c1 iter_args(%a = %x) -> (f32) {
      %b = arith.addf %a, %a : f32
      scf.yield %b : f32
    }
    kvbuffer.yield %y : f32
  }
  return
}

// -----

func.func @fit_elements(%q: !kvbuffer.fragment<16x64xf16, a>) {
  // expected-error @below {{expected an operand a of bf16 and one of f16, got '!kvbuffer.fragment<16x64xf16, a>' and '!kvbuffer.fragment<16x64xf16, a>'}}
  %h, %f = kvbuffer.fragment_fit %q : !kvbuffer.fragment<16x64xf16, a> -> !kvbuffer.fragment<16x64xf16, a>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @fit_role(%q: !kvbuffer.fragment<16x64xbf16, b>) {
  // expected-error @below {{expected an operand a of bf16 and one of f16, got '!kvbuffer.fragment<16x64xbf16, b>' and '!kvbuffer.fragment<16x64xf16, a>'}}
  %h, %f = kvbuffer.fragment_fit %q : !kvbuffer.fragment<16x64xbf16, b> -> !kvbuffer.fragment<16x64xf16, a>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @fit_shape(%q: !kvbuffer.fragment<16x64xbf16, a>) {
  // expected-error @below {{expected fragments of one shape, got '!kvbuffer.fragment<16x64xbf16, a>' and '!kvbuffer.fragment<16x32xf16, a>'}}
  %h, %f = kvbuffer.fragment_fit %q : !kvbuffer.fragment<16x64xbf16, a> -> !kvbuffer.fragment<16x32xf16, a>, !kvbuffer.fragment<16x1xf32, row>
  return
}

// -----

func.func @fit_rows(%q: !kvbuffer.fragment<16x64xbf16, a>) {
  // expected-error @below {{expected a row value for each row of '!kvbuffer.fragment<16x64xbf16, a>', got '!kvbuffer.fragment<32x1xf32, row>'}}
  %h, %f = kvbuffer.fragment_fit %q : !kvbuffer.fragment<16x64xbf16, a> -> !kvbuffer.fragment<16x64xf16, a>, !kvbuffer.fragment<32x1xf32, row>
  return
}
