//===- ProblemFunction.h - Functions that become kernels --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the passes that make a kernel of a problem ask of its function.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMFUNCTION_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMFUNCTION_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kvbuf {

/// Checks a function that becomes the kernel of `problem`, an op in it: nothing
/// refers to it, it has no results, and it has no attribute of the dialect that
/// would be dropped, as the kernel gets its own. `reads(argument, name)` says
/// which attributes of arguments are read. An error at the function, or at what
/// refers to it, if not.
mlir::LogicalResult verifyProblemFunction(
    mlir::func::FuncOp func, mlir::Operation *problem,
    llvm::function_ref<bool(unsigned, llvm::StringRef)> reads);

/// Checks that a function consists of `problem` and a return.
mlir::LogicalResult verifyAlone(mlir::func::FuncOp func,
                                mlir::Operation *problem);

/// The names that a problem's operands give a function's arguments, by number;
/// an error where an operand is no argument, or another's, and where an
/// argument is no operand.
mlir::FailureOr<llvm::SmallVector<llvm::StringRef>>
nameArguments(mlir::func::FuncOp func, mlir::Operation *problem,
              llvm::ArrayRef<NamedOperand> operands);

/// Makes the kernel that takes a function's place, with its name and arguments,
/// in a module of its own, where `b` stands.
mlir::gpu::GPUFuncOp createKernel(mlir::ImplicitLocOpBuilder &b,
                                  mlir::func::FuncOp func);
/// Ends that kernel, which is one of a phase, and erases the function.
void endKernel(mlir::ImplicitLocOpBuilder &b, mlir::gpu::GPUFuncOp kernel,
               Phase phase, mlir::func::FuncOp func);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMFUNCTION_H
