// A syntax error after ops that refer to later values.

// RUN: not kvbuf-opt %s 2>&1 | FileCheck %s

func.func @f() {
  kvbuffer.teams {
    kvbuffer.team @consumers warps(8) {
      arith.addi %later, %later : index
      arith.addi %later, %later : index
    }
    // CHECK: teams-syntax.mlir:[[#@LINE+1]]:35: error: expected '('
    kvbuffer.team @producers warps[4] {
    }
  }
  return
}
