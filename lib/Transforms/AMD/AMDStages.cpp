//===- AMDStages.cpp - Stages of AMD kernels at the target stage ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

bool kvbuf::isMfma(Operation *op) {
  return op->getName().getStringRef().starts_with("rocdl.mfma.");
}

unsigned kvbuf::mfmaCycles(Operation *op, const IssueModel &model) {
  // "rocdl.mfma.f32.32x32x8bf16.1k": result type, then MxNxK.
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("rocdl.mfma."))
    return 0;
  name = name.split('.').second;
  unsigned m, n, k;
  if (name.consumeInteger(10, m) || !name.consume_front("x") ||
      name.consumeInteger(10, n) || !name.consume_front("x") ||
      name.consumeInteger(10, k))
    return 0;
  return m * n * k / model.matrixMacs;
}

static bool isFence(Operation *op) {
  auto fence = dyn_cast<ROCDL::SchedBarrier>(op);
  return fence && fence.getMask() == 0;
}

bool kvbuf::isInLoop(Block *block) {
  SmallVector<Block *> pending(block->getSuccessors());
  llvm::SmallPtrSet<Block *, 16> seen;
  while (!pending.empty()) {
    Block *next = pending.pop_back_val();
    if (next == block)
      return true;
    if (seen.insert(next).second)
      llvm::append_range(pending, next->getSuccessors());
  }
  return false;
}

/// The pieces of a block, in order, appended to `pieces`.
static void splitAtBarriers(Block &block, bool withoutMfmas,
                            SmallVectorImpl<StagePiece> &pieces) {
  StagePiece piece;
  auto finish = [&](bool beforeBarrier) {
    while (!piece.ops.empty() && isFence(piece.ops.back()))
      piece.ops.pop_back();
    piece.beforeBarrier = beforeBarrier;
    if (piece.mfmas || (withoutMfmas && !piece.ops.empty()))
      pieces.push_back(std::move(piece));
    piece = StagePiece();
    piece.behindBarrier = beforeBarrier;
  };
  for (Operation &op : block) {
    if (isa<ROCDL::SBarrierOp>(op)) {
      finish(true);
      continue;
    }
    if (piece.ops.empty() && isFence(&op))
      continue;
    piece.ops.push_back(&op);
    piece.mfmas += isMfma(&op);
  }
  finish(false);
}

/// The issue model of the chip that encloses `op`.
static std::optional<IssueModel> issueModelOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto chip = op->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr))
      return lookupIssueModel(chip.getValue());
  return std::nullopt;
}

void kvbuf::forLoopStages(
    LLVM::LLVMFuncOp kernel,
    function_ref<void(const StagePiece &, const VectorCostModel &)> fn,
    bool withoutMfmas) {
  std::optional<IssueModel> model = issueModelOf(kernel);
  if (!model || kernel.isExternal())
    return;
  SmallVector<StagePiece> pieces;
  for (Block &block : kernel.getBody())
    if (isInLoop(&block))
      splitAtBarriers(block, withoutMfmas, pieces);
  if (pieces.empty())
    return;
  VectorCostModel costs(kernel, *model);
  for (const StagePiece &piece : pieces)
    fn(piece, costs);
}

//===----------------------------------------------------------------------===//
// Divergence
//===----------------------------------------------------------------------===//

/// Whether all lanes get the same of an op, whatever its operands are.
static bool isAlwaysUniform(Operation *op) {
  return isa<ROCDL::ReadfirstlaneOp, ROCDL::BallotOp, ROCDL::BlockIdXOp,
             ROCDL::BlockIdYOp, ROCDL::BlockIdZOp>(op);
}

/// Whether lanes may differ in the results of an op by its nature.
static bool isDivergenceSource(Operation *op) {
  return isa<ROCDL::ThreadIdXOp, ROCDL::ThreadIdYOp, ROCDL::ThreadIdZOp,
             ROCDL::MbcntLoOp, ROCDL::MbcntHiOp, ROCDL::DsBpermuteOp>(op) ||
         isMfma(op) ||
         op->getName().getStringRef().starts_with("rocdl.permlane") ||
         op->getName().getStringRef().starts_with("rocdl.ds.read");
}

void VectorCostModel::findDivergence(LLVM::LLVMFuncOp kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    auto mark = [&](Value value) { changed |= divergent.insert(value).second; };
    kernel.walk([&](Operation *op) {
      bool spreads = !isAlwaysUniform(op) &&
                     (isDivergenceSource(op) ||
                      llvm::any_of(op->getOperands(), [&](Value operand) {
                        return isDivergent(operand);
                      }));
      if (spreads)
        for (Value result : op->getResults())
          mark(result);
      // What a branch hands over; whether lanes take different branches does
      // not matter for how a value is computed.
      auto branch = dyn_cast<BranchOpInterface>(op);
      if (!branch)
        return;
      for (unsigned i = 0; i < op->getNumSuccessors(); ++i) {
        SuccessorOperands operands = branch.getSuccessorOperands(i);
        for (unsigned arg = 0; arg < operands.size(); ++arg)
          if (operands[arg] && isDivergent(operands[arg]))
            mark(op->getSuccessor(i)->getArgument(arg));
      }
    });
  }
}

VectorCostModel::VectorCostModel(LLVM::LLVMFuncOp kernel,
                                 const IssueModel &model)
    : model(model) {
  findDivergence(kernel);
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Lanes' values that a type holds.
static int64_t elementsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

bool VectorCostModel::isFusedMaximum(Operation *op) const {
  // A chain of maxima of n values becomes about n/2 of three operands: from its
  // end on, every second maximum is taken in by the one after it.
  bool fused = false;
  for (Operation *last = op; isa<LLVM::MaxNumOp>(last) && last->hasOneUse();) {
    Operation *user = *last->user_begin();
    if (!isa<LLVM::MaxNumOp>(user) || user->getBlock() != op->getBlock())
      break;
    fused = !fused;
    last = user;
  }
  return fused;
}

bool VectorCostModel::isFusedProduct(Operation *op) {
  auto contracts = [](Operation *op) {
    auto flags = cast<LLVM::FastmathFlagsInterface>(op).getFastmathAttr();
    return flags &&
           bitEnumContainsAll(flags.getValue(), LLVM::FastmathFlags::contract);
  };
  return isa<LLVM::FMulOp>(op) && contracts(op) && op->hasOneUse() &&
         isa<LLVM::FAddOp, LLVM::FSubOp>(*op->user_begin()) &&
         op->user_begin()->getBlock() == op->getBlock() &&
         contracts(*op->user_begin());
}

VectorCost VectorCostModel::cost(Operation *op) const {
  if (op->getNumResults() != 1 || isFusedProduct(op))
    return {};
  Type type = op->getResult(0).getType();
  double elements = elementsOf(type);
  bool isVector = isa<VectorType>(type);
  return llvm::TypeSwitch<Operation *, VectorCost>(op)
      .Case<ROCDL::ROCDLExp2, ROCDL::ROCDLLog, ROCDL::ROCDLRcp,
            ROCDL::ROCDLSqrt, LLVM::Exp2Op, LLVM::Log2Op>(
          [&](auto) { return VectorCost{0, elements}; })
      .Case<LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp, LLVM::FMAOp>([&](auto) {
        // Vectors of fp32 become instructions on pairs, where there are any.
        return isVector && model.pairsOfF32 ? VectorCost{0, 0, elements / 2}
                                            : VectorCost{elements, 0};
      })
      .Case<LLVM::MaxNumOp>([&](auto) {
        return VectorCost{!isVector && isFusedMaximum(op) ? 0 : elements, 0};
      })
      .Case<LLVM::FPTruncOp>([&](auto) {
        // Without a conversion of pairs, rounding to nearest even by hand, or
        // halves that are put together.
        constexpr double roundByHand = 4, toHalf = 1.5;
        if (model.convertsPairs)
          return VectorCost{elements * 0.5, 0};
        return VectorCost{elements * (getElementTypeOrSelf(type).isF16()
                                          ? toHalf
                                          : roundByHand),
                          0};
      })
      .Case<LLVM::MinNumOp, LLVM::FCmpOp, LLVM::FPExtOp, LLVM::CallIntrinsicOp>(
          [&](auto) { return VectorCost{elements, 0}; })
      .Case<LLVM::AddOp, LLVM::SubOp, LLVM::MulOp, LLVM::AndOp, LLVM::OrOp,
            LLVM::XOrOp, LLVM::ShlOp, LLVM::LShrOp, LLVM::AShrOp, LLVM::ICmpOp,
            LLVM::SelectOp>([&](auto) {
        return VectorCost{isDivergent(op->getResult(0)) ? elements : 0, 0};
      })
      // By a constant: the upper half of a product, and what it may lack.
      .Case<LLVM::UDivOp, LLVM::URemOp>([&](auto) {
        constexpr double quotient = 4, rest = 2;
        if (!isDivergent(op->getResult(0)))
          return VectorCost();
        return VectorCost{
            elements * (quotient + (isa<LLVM::URemOp>(op) ? rest : 0)), 0};
      })
      // Halves of registers that do not lie together are put together in pairs.
      .Case<LLVM::ShuffleVectorOp>([&](LLVM::ShuffleVectorOp shuffle) {
        auto vector = cast<VectorType>(type);
        constexpr unsigned halfBits = 16;
        VectorCost cost;
        if (vector.getElementType().getIntOrFloatBitWidth() != halfBits)
          return cost;
        ArrayRef<int32_t> mask = shuffle.getMask();
        for (size_t i = 0; i + 1 < mask.size(); i += 2)
          cost.plain += mask[i] % 2 || mask[i + 1] != mask[i] + 1;
        return cost;
      })
      // An address with an offset that is no constant.
      .Case<LLVM::GEPOp>([&](LLVM::GEPOp gep) {
        bool adds =
            !gep.getDynamicIndices().empty() && isDivergent(op->getResult(0));
        return VectorCost{adds ? 1.0 : 0.0, 0};
      })
      .Default([](Operation *) { return VectorCost(); });
}
