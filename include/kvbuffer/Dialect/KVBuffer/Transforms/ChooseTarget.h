//===- ChooseTarget.h - Which chip a module is lowered for ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CHOOSETARGET_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CHOOSETARGET_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvbuf {

/// The `kvbuffer.target` of a module or, where it has none, of the first
/// `gpu.module` in it that has one; null if there is none.
mlir::StringAttr namedTarget(mlir::ModuleOp module);

/// The chip that the `kvbuffer.target` of the module around `op`, or of `op`
/// itself, names; none where it names none or one that is not known.
std::optional<TargetInfo> targetOf(mlir::Operation *op);

/// The chip to lower a module for; the same rule for every tool, pipeline and
/// API. `option`, where it is not empty, is what the user asks for and wins;
/// then the module's `kvbuffer.target` counts; then `byDefault`. Where the
/// option overrules the module, a remark says so. A module with kernels that
/// are lowered already stays with its chip: another one is an error there, and
/// so is a chip that is not known.
mlir::FailureOr<TargetInfo> chooseTarget(mlir::ModuleOp module,
                                         llvm::StringRef option,
                                         llvm::StringRef byDefault);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CHOOSETARGET_H
