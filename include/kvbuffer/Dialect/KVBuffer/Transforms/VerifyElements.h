//===- VerifyElements.h - Types that kernels multiply -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_VERIFYELEMENTS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_VERIFYELEMENTS_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/raw_ostream.h"

namespace kvbuf {

/// The name by which a `TargetInfo` knows a type: as MLIR prints it.
inline std::string elementName(mlir::Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

/// Says at `op` if there are no kernels on `target` whose operands are of a
/// type: which of what it asks for the chip lacks, and what it has.
inline llvm::LogicalResult verifyElements(mlir::Operation *op, mlir::Type type,
                                          const TargetInfo &target) {
  std::string name = elementName(type);
  if (std::optional<std::string> why = target.whyNoKernel(name))
    return op->emitOpError() << "has elements of " << name << *why;
  return llvm::success();
}

/// Says at a problem on tensors that kernels are made of problems on memrefs.
template <typename Problem> llvm::LogicalResult verifyOnMemrefs(Problem op) {
  if (op.isOnTensors())
    return op.emitOpError(
        "is on tensors; expected memrefs: run one-shot-bufferize first");
  return llvm::success();
}

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_VERIFYELEMENTS_H
