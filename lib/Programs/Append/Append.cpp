//===- Append.cpp - What passes ask of appends
//---------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Programs/Programs.h"

using namespace mlir;
using namespace kvbuf;

/// An alignment with which a kernel asks nothing of addresses but what elements
/// ask.
static constexpr int64_t kElementsAlone = 2;

/// Whether a kernel by lanes asks more of a tensor's address and strides than
/// its elements do; it says nothing where it does not.
static bool asksMoreThanElements(LLVM::LLVMFuncOp kernel) {
  return llvm::any_of(LaunchAttr::of(kernel).getArgs(), [](Attribute arg) {
    return cast<ArgumentAttr>(arg).getNumber("alignment").value_or(1) > 1;
  });
}

namespace {
struct AppendModel
    : ProblemInterface::ExternalModel<AppendModel, CacheAppendOp> {
  SmallVector<NamedOperand> getNamedOperands(Operation *op) const {
    return namedOperands(cast<CacheAppendOp>(op));
  }
  bool isOnTensors(Operation *op) const {
    return cast<CacheAppendOp>(op).isOnTensors();
  }
  bool isByLanes(Operation *) const { return true; }
  KernelVariants getVariants(Operation *, const VariantQuery &query) const {
    LLVM::LLVMFuncOp kernel = query.kernel;
    KernelVariants variants;
    variants.complete = true;
    // Kernels by lanes keep to the alignment of their accesses.
    if (!asksMoreThanElements(kernel))
      return variants;
    KernelAlternative &any = variants.list.emplace_back();
    any.name = (kernel.getName() + "_unaligned").str();
    any.alignment = kElementsAlone;
    any.when = "which runs for tensors whose addresses or strides are no "
               "multiples of 16 bytes";
    return variants;
  }
};
} // namespace

void kvbuf::registerAppendProgram(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    CacheAppendOp::attachInterface<AppendModel>(*context);
  });
}
