//===- GuardSinking.cpp - Keep vector work beside the MFMAs ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM moves an instruction past a branch when its result is used there only
// (IR sinking in CodeGenPrepare, MachineSink). For a softmax that runs beside
// MFMAs this is a loss: after the branch, or in the next stage, nothing hides
// it. An empty assembly statement with a side effect stays where it is, costs
// no instruction, and holds back what it reads.
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_GUARDSINKING
#include "kvbuffer/Transforms/AMD/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-guard-sinking"

/// Whether a value lies in few enough vector registers for a statement to hold
/// it. Larger ones are accumulators, which only their own MFMAs make.
static bool isHoldable(Type type) {
  constexpr unsigned registerBits = 32, mostBits = 128;
  unsigned bits = 0;
  if (auto vector = dyn_cast<VectorType>(type);
      vector && vector.getElementType().isIntOrFloat())
    bits = vector.getNumElements() *
           vector.getElementType().getIntOrFloatBitWidth();
  else if (type.isF32() || type.isInteger(registerBits))
    bits = registerBits;
  return bits && bits % registerBits == 0 && bits <= mostBits;
}

/// Ops that only name parts of registers.
static bool isRegrouping(Operation *op) {
  return isa<LLVM::InsertElementOp, LLVM::ExtractElementOp,
             LLVM::ShuffleVectorOp, LLVM::BitcastOp, LLVM::InsertValueOp,
             LLVM::ExtractValueOp>(op);
}

namespace {
struct GuardSinkingPass : kvbuf::impl::GuardSinkingBase<GuardSinkingPass> {
  using Base::Base;

  void runOnOperation() override {
    forLoopStages(getOperation(),
                  [&](const StagePiece &piece, const VectorCostModel &costs) {
                    guard(piece, costs);
                  });
  }

  void guard(const StagePiece &piece, const VectorCostModel &costs) {
    // What the vector unit computes in this piece, through any regrouping.
    llvm::DenseSet<Value> computed;
    SmallVector<Value> held;
    for (Operation *op : piece.ops) {
      VectorCost cost = costs.cost(op);
      bool here = cost.plain + cost.transcendental > 0 ||
                  (isRegrouping(op) &&
                   llvm::any_of(op->getOperands(), [&](Value operand) {
                     return computed.contains(operand);
                   }));
      if (!here)
        continue;
      for (Value result : op->getResults()) {
        computed.insert(result);
        if (isHoldable(result.getType()) && costs.isDivergent(result) &&
            isUsedBehind(result))
          held.push_back(result);
      }
    }
    if (held.empty())
      return;
    Operation *last = piece.ops.back();
    OpBuilder b(last);
    if (!last->hasTrait<OpTrait::IsTerminator>())
      b.setInsertionPointAfter(last);
    for (Value value : held) {
      auto statement = LLVM::InlineAsmOp::create(
          b, value.getLoc(), value.getType(), value, /*asm_string=*/"",
          /*constraints=*/"=v,0", /*has_side_effects=*/true,
          /*is_align_stack=*/false, LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(&getContext(), LLVM::AsmDialect::AD_ATT),
          /*operand_attrs=*/ArrayAttr());
      Value kept = statement.getRes();
      value.replaceUsesWithIf(kept, [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return user != statement &&
               (user->getBlock() != statement->getBlock() ||
                statement->isBeforeInBlock(user));
      });
    }
    remark::passed(piece.ops.front()->getLoc(),
                   remark::RemarkOpts::name("held").category(DEBUG_TYPE))
        << std::to_string(held.size()) + " values held beside " +
               std::to_string(piece.mfmas) + " MFMAs";
  }

  /// Whether an op of another block uses a value. What a branch hands over is
  /// made before it in any case.
  static bool isUsedBehind(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user->getBlock() != value.getParentBlock();
    });
  }
};
} // namespace
