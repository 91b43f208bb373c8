// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

func.func @scale(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.raise_max' op expected a finite scale above 0: the maximum is taken before the scores are scaled}}
  %0, %1, %2 = kvbuffer.raise_max %s, %m {scale = 0.0 : f32} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  return
}

// -----

func.func @rows(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<64x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_head' op expected scores in accumulators and a row value for each of their rows, got}}
  %0, %1 = kvbuffer.softmax_head %s, %m {scale = 1.0 : f32, operand = bf16} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<64x1xf32, row>
  return
}

// -----

func.func @weights(%x: !kvbuffer.fragment<128x64xf32, acc>, %l: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_tail' op expected exponents in accumulators and weights in their shape in role a, got}}
  %0, %1 = kvbuffer.softmax_tail %x, %l excess(%l) : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x32xbf16, a>
  return
}

// -----

func.func @operand(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_head' op attribute 'operand' failed to satisfy constraint: type attribute of bfloat16 type or 16-bit float}}
  %0, %1 = kvbuffer.softmax_head %s, %m {scale = 1.0 : f32, operand = f32} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  return
}

// -----

func.func @carried(%s: !kvbuffer.fragment<128x64xf32, acc>) {
  // expected-error@+1 {{'kvbuffer.carry_excess' op expected row values, got '!kvbuffer.fragment<128x64xf32, acc>'}}
  %0 = kvbuffer.carry_excess %s, %s, %s : !kvbuffer.fragment<128x64xf32, acc>
  return
}

// -----

// An excess has the type of the sum.
// expected-note@+1 {{prior use here}}
func.func @excess(%x: !kvbuffer.fragment<128x64xf32, acc>, %l: !kvbuffer.fragment<128x1xf32, row>, %e: !kvbuffer.fragment<64x1xf32, row>) {
  // expected-error@+1 {{use of value '%e' expects different type than prior uses}}
  %0, %1 = kvbuffer.softmax_tail %x, %l excess(%e) : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x64xbf16, a>
  return
}

// -----

func.func @sign_of_scores(%s: !kvbuffer.fragment<64x32xf32, acc>) {
  // expected-error @below {{'kvbuffer.any_negative' op has rows of '!kvbuffer.fragment<64x32xf32, acc>', expected a fragment of role 'row' and type f32}}
  %some = kvbuffer.any_negative %s : !kvbuffer.fragment<64x32xf32, acc>
  return
}

// -----

func.func @exact_only(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.raise_max' op has 'exact_only'; expected 'exact', which says where maxima are raised at all}}
  %0, %1, %2 = kvbuffer.raise_max %s, %m {scale = 1.0 : f32, exact_only} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  return
}

// -----

func.func @any_size(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>, %few: i1) {
  // expected-error@+1 {{'kvbuffer.raise_max' op has 'exact_only' and 'unbounded'; expected one of them: a sum does not tell by how much scores of any size are above a maximum}}
  %0, %1, %2 = kvbuffer.raise_max %s, %m exact(%few) {scale = 1.0 : f32, exact_only, unbounded} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
  return
}

// -----

func.func @rounded(%x: !kvbuffer.fragment<128x64xf32, acc>, %l: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_tail' op has 'rounded', by which the sum is of rounded weights; expected no excess}}
  %0, %1 = kvbuffer.softmax_tail %x, %l excess(%l) {rounded} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x64xbf16, a>
  return
}

// -----

func.func @settled(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>, %a: !kvbuffer.fragment<64x32xf32, acc>) {
  // expected-error@+1 {{'kvbuffer.softmax_settle' op expected accumulators of as many rows as the exponents have, got '!kvbuffer.fragment<64x32xf32, acc>'}}
  %0, %1, %2, %3 = kvbuffer.softmax_settle %s, %s, %m, %m, %a {scale = 1.0 : f32} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<64x32xf32, acc> -> !kvbuffer.fragment<128x64xbf16, a>
  return
}

// -----

func.func @settled_weights(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_settle' op expected exponents in accumulators and weights in their shape in role a, got}}
  %0, %1, %2, %3 = kvbuffer.softmax_settle %s, %s, %m, %m, %s {scale = 1.0 : f32} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x64xf32, acc> -> !kvbuffer.fragment<128x32xbf16, a>
  return
}

// -----

func.func @settled_scale(%s: !kvbuffer.fragment<128x64xf32, acc>, %m: !kvbuffer.fragment<128x1xf32, row>) {
  // expected-error@+1 {{'kvbuffer.softmax_settle' op expected a finite scale above 0: the maximum is taken before the scores are scaled}}
  %0, %1, %2, %3 = kvbuffer.softmax_settle %s, %s, %m, %m, %s {scale = -1.0 : f32} : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x64xf32, acc> -> !kvbuffer.fragment<128x64xbf16, a>
  return
}
