// A syntax error after ops that refer to later values.

// RUN: not kvbuf-opt %s 2>&1 | FileCheck %s

func.func @f() {
  kvbuffer.warp_roles producers(4, 24) {
    arith.addi %later, %later : index
    arith.addi %later, %later : index
  // CHECK: warp-roles-syntax.mlir:[[#@LINE+1]]:14: error: expected '('
  } consumers[8, 240] {
  }
  return
}
