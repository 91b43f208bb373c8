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
  %0, %1 = kvbuffer.softmax_tail %x, %l, %l : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row> -> !kvbuffer.fragment<128x32xbf16, a>
  return
}
