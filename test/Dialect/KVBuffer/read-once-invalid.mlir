// RUN: kvbuf-opt %s --verify-diagnostics

func.func @elsewhere() {
  // expected-error @below {{'arith.constant' op has the attribute 'kvbuffer.read_once', which nothing reads here; expected it on a kvbuffer.ring_load}}
  %c0 = arith.constant {kvbuffer.read_once} 0 : index
  return
}
