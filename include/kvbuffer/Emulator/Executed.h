//===- Executed.h - What the emulator executes ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_EXECUTED_H
#define KVBUFFER_EMULATOR_EXECUTED_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

namespace kvbuf::emu {

/// Whether the decoder has something for the operations of a name.
bool executesOperation(llvm::StringRef name);

/// What is executed and what is refused, from the tables that the decoder asks:
/// operations by dialect, PTX's statements, functions of device libraries,
/// and what the detectors call their faults.
llvm::json::Value listExecuted(mlir::MLIRContext &context);

} // namespace kvbuf::emu

#endif // KVBUFFER_EMULATOR_EXECUTED_H
