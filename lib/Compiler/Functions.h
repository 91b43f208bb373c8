//===- Functions.h - The functions of a module ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module may have several functions, each of which a launch runs by itself: a
// func.func with a problem, or a gpu.module, whose kernels run one after the
// other. An artifact holds them all, by name, each with code of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_FUNCTIONS_H
#define KVBUFFER_LIB_COMPILER_FUNCTIONS_H

#include "kvbuffer/Runtime/Artifact.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"
#include <string>

namespace kvbuf {

/// One function of a module.
struct ModuleFunction {
  /// The func.func or gpu.module.
  mlir::Operation *op;
  /// The op whose name it has: the func.func, or the first kernel.
  mlir::Operation *named;
  std::string name;
};

/// The functions of a module, in its order; none if it has no kernel and no
/// problem at its top. Emits a diagnostic where one computes two problems,
/// where two have one name, and where one of several has no kernel.
llvm::FailureOr<llvm::SmallVector<ModuleFunction>>
findFunctions(mlir::ModuleOp module);

/// A module with one function of `module` and nothing else.
mlir::OwningOpRef<mlir::ModuleOp> extractFunction(mlir::ModuleOp module,
                                                  const ModuleFunction &which);

/// Erases what is not the function of this name. Emits a diagnostic with the
/// names that there are if it is none of `functions`, which are the module's.
llvm::LogicalResult keepFunction(mlir::ModuleOp module,
                                 llvm::ArrayRef<ModuleFunction> functions,
                                 llvm::StringRef name);

/// Says at the second of `functions` that `what` takes one, and which there
/// are.
llvm::LogicalResult failForSeveral(llvm::ArrayRef<ModuleFunction> functions,
                                   const llvm::Twine &what);

/// The artifact of several functions, of which each element holds one.
Artifact joinArtifacts(llvm::ArrayRef<Artifact> functions,
                       llvm::StringRef name);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_FUNCTIONS_H
