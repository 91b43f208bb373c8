//===- Attention.cpp - What passes ask of attention
//---------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Programs/Programs.h"
#include "kvbuffer/Programs/ScheduleCandidates.h"

using namespace mlir;
using namespace kvbuf;

namespace {
struct AttentionModel
    : ProblemInterface::ExternalModel<AttentionModel, AttentionOp> {
  SmallVector<NamedOperand> getNamedOperands(Operation *op) const {
    return namedOperands(cast<AttentionOp>(op));
  }
  bool isOnTensors(Operation *op) const {
    return cast<AttentionOp>(op).isOnTensors();
  }
  Operation *getPart(Operation *op) const {
    return appendOf(cast<AttentionOp>(op));
  }
  LogicalResult chooseSchedule(Operation *op,
                               const ScheduleQuery &query) const {
    return kvbuf::chooseSchedule(cast<AttentionOp>(op), query);
  }
  SmallVector<std::string> getCandidates(Operation *op,
                                         const TargetInfo &target) const {
    bool split = splitsKeysByDefault(cast<AttentionOp>(op), target);
    return llvm::map_to_vector(split ? splitKeysCandidates(target)
                                     : scheduleCandidates(target),
                               [](StringRef list) { return list.str(); });
  }
  LogicalResult buildTile(Operation *op, func::FuncOp function,
                          const TargetInfo &target) const {
    return kvbuf::buildTile(cast<AttentionOp>(op), function, target);
  }
  KernelVariants getVariants(Operation *op, const VariantQuery &query) const {
    return attentionVariants(cast<AttentionOp>(op), query);
  }
  void become(Operation *op, const KernelAlternative &alternative) const {
    if (alternative.schedule)
      cast<AttentionOp>(op).removeScheduleAttr();
    if (alternative.sharedRows)
      op->setAttr(kSharedRowsAttr, alternative.sharedRows);
    if (alternative.knownRows)
      op->setAttr(kKnownRowsAttr,
                  Builder(op).getI64IntegerAttr(alternative.knownRows));
    if (alternative.ahead)
      op->setAttr(kWidenedAttr, UnitAttr::get(op->getContext()));
  }
};
} // namespace

void kvbuf::registerAttentionProgram(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    AttentionOp::attachInterface<AttentionModel>(*context);
  });
}
