//===- kvbuf-lsp-server.cpp - Language server for kvbuffer modules --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
