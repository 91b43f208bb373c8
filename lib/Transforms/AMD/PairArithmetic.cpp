//===- PairArithmetic.cpp - f32 of two registers by one instruction -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// v_pk_fma_f32 and its like compute on two registers that follow each other in
// the time of one, but beside no MFMA. So a pair pays where vector instructions
// take more cycles than the MFMAs of their stage: it takes two instructions
// from the shadow of these for one that stands alone. What fits that shadow
// stays as it is, and so does a stage all of whose registers are live. Elements
// of accumulators lie in registers that follow each other; results of a pair
// do, and so do what is computed of both alike.
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Analysis/Liveness.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_PAIRARITHMETIC
#include "kvbuffer/Transforms/AMD/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-pair-arithmetic"

/// Whether an op on f32 has an instruction on pairs.
static bool hasPairs(Operation *op) {
  return isa<LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp, LLVM::FMAOp>(op) &&
         op->getResult(0).getType().isF32();
}

/// Whether LLVM makes one op of this and of a product.
static bool takesProduct(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && VectorCostModel::isFusedProduct(def);
  });
}

/// The vector and the constant place of an element of it; none for others.
static std::optional<std::pair<Value, int64_t>> elementOf(Value value) {
  auto extract = value.getDefiningOp<LLVM::ExtractElementOp>();
  APInt place;
  if (!extract || !matchPattern(extract.getPosition(), m_ConstantInt(&place)))
    return std::nullopt;
  return std::pair(extract.getVector(), place.getSExtValue());
}

/// Whether two f32 are, or can be made, registers that follow each other, the
/// first one of them with an even place in its vector; or are the same.
static bool liesInPair(Value x, Value y, unsigned depth = 0) {
  constexpr unsigned mostDepth = 4;
  if (x == y)
    return true;
  auto first = elementOf(x), second = elementOf(y);
  if (first || second)
    return first && second && first->first == second->first &&
           first->second % 2 == 0 && second->second == first->second + 1;
  // What one op each computes of such.
  Operation *one = x.getDefiningOp(), *other = y.getDefiningOp();
  return depth < mostDepth && one && other &&
         one->getBlock() == other->getBlock() &&
         one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() &&
         (hasPairs(one) || isa<ROCDL::ROCDLExp2>(one)) &&
         llvm::all_of(
             llvm::zip_equal(one->getOperands(), other->getOperands()),
             [&](auto operands) {
               return liesInPair(std::get<0>(operands), std::get<1>(operands),
                                 depth + 1);
             });
}

/// The number of an element of a vector.
static Value place(ImplicitLocOpBuilder &b, int64_t i) {
  return LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(i));
}

/// Two values as a vector.
static Value asPair(ImplicitLocOpBuilder &b, Value x, Value y) {
  auto pair = VectorType::get(2, b.getF32Type());
  auto first = elementOf(x), second = elementOf(y);
  if (x != y && first && second) {
    if (first->first.getType() == pair)
      return first->first;
    auto at = static_cast<int32_t>(first->second);
    return LLVM::ShuffleVectorOp::create(b, first->first, first->first,
                                         ArrayRef<int32_t>{at, at + 1});
  }
  Value vector = LLVM::PoisonOp::create(b, pair);
  for (auto [i, element] : llvm::enumerate(std::initializer_list<Value>{x, y}))
    vector = LLVM::InsertElementOp::create(b, vector, element, place(b, i));
  return vector;
}

/// An element of a pair.
static Value elementAt(ImplicitLocOpBuilder &b, Value pair, int64_t i) {
  return LLVM::ExtractElementOp::create(b, pair, place(b, i));
}

/// Registers that a lane has of a value, about, or a wave of a uniform one.
static int64_t registersOf(Value value, bool uniform,
                           const VectorCostModel &costs) {
  if (costs.isDivergent(value) == uniform || matchPattern(value, m_Constant()))
    return 0;
  constexpr int64_t registerBits = 32;
  Type element = getElementTypeOrSelf(value.getType());
  if (!element.isIntOrFloat())
    return 1;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    bits *= vector.getNumElements();
  return llvm::divideCeil(bits, registerBits);
}

/// The most registers that hold at once what is read later, in a piece.
static int64_t registersIn(const StagePiece &piece, bool uniform,
                           const VectorCostModel &costs) {
  Block *block = piece.ops.front()->getBlock();
  Liveness liveness(block->getParentOp());
  DenseSet<Value> live;
  int64_t now = 0, most = 0;
  auto begin = [&](Value value) {
    if (live.insert(value).second)
      now += registersOf(value, uniform, costs);
  };
  for (Value value : liveness.getLiveOut(block))
    begin(value);
  // From the end, where values begin to live.
  for (Operation *op = &block->back(); op != piece.ops.front();
       op = op->getPrevNode()) {
    for (Value operand : op->getOperands())
      begin(operand);
    if (op->isBeforeInBlock(piece.ops.back()))
      most = std::max(most, now);
    for (Value result : op->getResults())
      if (live.erase(result))
        now -= registersOf(result, uniform, costs);
  }
  return most;
}

namespace {
struct PairArithmeticPass
    : kvbuf::impl::PairArithmeticBase<PairArithmeticPass> {
  using Base::Base;

  void runOnOperation() override {
    forLoopStages(
        getOperation(),
        [&](const StagePiece &piece, const VectorCostModel &costs) {
          pairIn(piece, costs);
        },
        /*withoutMfmas=*/true);
    // The order of sums is that of the ops from here on.
    getOperation().walk([](LLVM::FAddOp op) {
      op.setFastmathFlags(op.getFastmathFlags() &
                          ~LLVM::FastmathFlags::reassoc);
    });
  }

  /// Cycles of plain instructions that a piece's MFMAs do not hide. Each hides
  /// whole instructions of the slow unit only, as many as fit; what these leave
  /// is for the others.
  static double exposedCycles(const StagePiece &piece,
                              const VectorCostModel &costs) {
    const IssueModel &model = costs.issueModel();
    double plain = 0, slow = 0, windows = 0, hiddenSlow = 0;
    for (Operation *op : piece.ops) {
      VectorCost cost = costs.cost(op);
      // Of addresses LLVM needs fewer than there are ops.
      bool isPlace = llvm::any_of(op->getResultTypes(), [](Type type) {
        return isa<IntegerType, LLVM::LLVMPointerType>(type);
      });
      if (!isPlace)
        plain += cost.plain * model.vector;
      slow += cost.transcendental;
      if (unsigned cycles = mfmaCycles(op, model)) {
        unsigned window = cycles - model.matrixIssue;
        windows += window;
        hiddenSlow += window / model.transcendental;
      }
    }
    windows -= std::min(slow, hiddenSlow) * model.transcendental;
    return plain - windows;
  }

  /// Whether a pair finds registers that follow each other for an operand and a
  /// result, and what is uniform in it, scalar ones. Where all are live it does
  /// not, and LLVM spills.
  static bool hasRegisters(const StagePiece &piece,
                           const VectorCostModel &costs) {
    constexpr int64_t taken = 4;
    for (bool uniform : {false, true}) {
      int64_t live = registersIn(piece, uniform, costs);
      int64_t all = uniform ? costs.issueModel().namedScalars
                            : costs.issueModel().namedRegisters;
      if (live + taken <= all)
        continue;
      remark::missed(piece.ops.back()->getLoc(),
                     remark::RemarkOpts::name("registers").category(DEBUG_TYPE))
          << llvm::formatv("no pairs of f32 in a stage that has {0} {1} of {2} "
                           "live",
                           live, uniform ? "scalar registers" : "registers",
                           all)
                 .str();
      return false;
    }
    return true;
  }

  void pairIn(const StagePiece &piece, const VectorCostModel &costs) {
    const IssueModel &model = costs.issueModel();
    if (!model.pairsOfF32)
      return;
    double exposed = exposedCycles(piece, costs);
    // Each takes two instructions away that may be hidden.
    auto most = static_cast<int64_t>(exposed / (2 * model.vector));
    if (most < 1 || !hasRegisters(piece, costs))
      return;
    int64_t made = 0;
    // Ops go, the last one perhaps, too.
    Location loc = piece.ops.back()->getLoc();
    SmallVector<Operation *> left(piece.ops);
    made += splitSums(left, costs, most);
    SmallVector<Operation *> alone;
    for (Operation *op : left)
      if (hasPairs(op) && !VectorCostModel::isFusedProduct(op) &&
          !takesProduct(op) && costs.isDivergent(op->getResult(0)))
        alone.push_back(op);
    for (size_t i = 0; i < alone.size() && made < most; ++i) {
      Operation *first = alone[i];
      auto it =
          std::find_if(alone.begin() + i + 1, alone.end(), [&](Operation *op) {
            return op && first && areAlike(first, op);
          });
      if (!first || it == alone.end())
        continue;
      replace(first, *it);
      *it = nullptr;
      ++made;
    }
    if (made)
      remark::passed(loc,
                     remark::RemarkOpts::name("paired").category(DEBUG_TYPE))
          << llvm::formatv("{0} pairs of f32 in a stage whose vector "
                           "instructions take {1:f0} cycles more than its "
                           "MFMAs hide",
                           made, exposed)
                 .str();
  }

  /// The numbers that a chain of sums of any order adds up, which ends at
  /// `last`, and its links; nothing else reads what is in between.
  static void followSum(LLVM::FAddOp last, SmallVector<Value> &numbers,
                        SmallVector<Operation *> &links) {
    LLVM::FAddOp link = last;
    while (link) {
      links.push_back(link);
      numbers.push_back(link.getRhs());
      auto before = link.getLhs().getDefiningOp<LLVM::FAddOp>();
      if (!before || !isFreeSum(before) || !before->hasOneUse() ||
          before->getBlock() != last->getBlock()) {
        numbers.push_back(link.getLhs());
        break;
      }
      link = before;
    }
    std::reverse(numbers.begin(), numbers.end());
  }

  static bool isFreeSum(Operation *op) {
    auto sum = dyn_cast<LLVM::FAddOp>(op);
    return sum && sum.getType().isF32() &&
           bitEnumContainsAll(sum.getFastmathFlags(),
                              LLVM::FastmathFlags::reassoc);
  }

  /// Adds up numbers in pairs where the order of a sum is free; returns how
  /// many pairs of ops that spares. Takes what is gone out of `ops`.
  static int64_t splitSums(SmallVector<Operation *> &ops,
                           const VectorCostModel &costs, int64_t most) {
    int64_t made = 0;
    SmallVector<Operation *> ends;
    for (Operation *op : ops)
      if (isFreeSum(op) && costs.isDivergent(op->getResult(0)) &&
          !(op->hasOneUse() && isFreeSum(*op->user_begin()) &&
            op->user_begin()->getBlock() == op->getBlock()))
        ends.push_back(op);
    for (Operation *end : ends) {
      SmallVector<Value> numbers, alone;
      SmallVector<Operation *> links;
      followSum(cast<LLVM::FAddOp>(end), numbers, links);
      SmallVector<std::pair<Value, Value>> pairs;
      for (size_t i = 0; i < numbers.size(); ++i) {
        bool pays = made + static_cast<int64_t>(pairs.size()) <= most;
        if (pays && i + 1 < numbers.size() && numbers[i] != numbers[i + 1] &&
            liesInPair(numbers[i], numbers[i + 1])) {
          pairs.push_back({numbers[i], numbers[i + 1]});
          ++i;
          continue;
        }
        alone.push_back(numbers[i]);
      }
      // The last step adds the two parts.
      constexpr size_t fewest = 3;
      if (pairs.size() < fewest)
        continue;
      ImplicitLocOpBuilder b(end->getLoc(), end);
      // Two sums: one that waits for the last has a cycle more to wait.
      Value sums[2];
      for (auto [i, numbers] : llvm::enumerate(pairs)) {
        Value pair = asPair(b, numbers.first, numbers.second);
        Value &sum = sums[i % 2];
        sum = sum ? LLVM::FAddOp::create(b, sum, pair) : pair;
      }
      Value sum = LLVM::FAddOp::create(b, sums[0], sums[1]);
      Value total =
          LLVM::FAddOp::create(b, elementAt(b, sum, 0), elementAt(b, sum, 1));
      for (Value number : alone)
        total = LLVM::FAddOp::create(b, total, number);
      end->getResult(0).replaceAllUsesWith(total);
      llvm::erase_if(
          ops, [&](Operation *op) { return llvm::is_contained(links, op); });
      for (Operation *link : links)
        link->erase();
      made += pairs.size() - 1;
    }
    return made;
  }

  /// Whether two ops do the same to registers that follow each other.
  static bool areAlike(Operation *first, Operation *second) {
    return first->getName() == second->getName() &&
           first->getAttrDictionary() == second->getAttrDictionary() &&
           first->getOperands() != second->getOperands() &&
           llvm::all_of(
               llvm::zip_equal(first->getOperands(), second->getOperands()),
               [&](auto operands) {
                 auto [x, y] = operands;
                 return y != first->getResult(0) && liesInPair(x, y);
               }) &&
           placeOf(first, second);
  }

  /// The last op that has to stand in front of a pair; null where the first
  /// one's result is needed before.
  static Operation *placeOf(Operation *first, Operation *second) {
    Operation *place = first;
    for (auto [x, y] :
         llvm::zip_equal(first->getOperands(), second->getOperands())) {
      Operation *def = y.getDefiningOp();
      if (x != y && !elementOf(y) && def->getBlock() == first->getBlock() &&
          place->isBeforeInBlock(def))
        place = def;
    }
    bool early = llvm::any_of(first->getUsers(), [&](Operation *user) {
      return user == place || (user->getBlock() == place->getBlock() &&
                               user->isBeforeInBlock(place));
    });
    return early ? nullptr : place;
  }

  static void replace(Operation *first, Operation *second) {
    ImplicitLocOpBuilder b(second->getLoc(), second);
    b.setInsertionPointAfter(placeOf(first, second));
    SmallVector<Value> operands;
    for (auto [x, y] :
         llvm::zip_equal(first->getOperands(), second->getOperands()))
      operands.push_back(asPair(b, x, y));
    OperationState state(b.getLoc(), first->getName());
    state.addOperands(operands);
    state.addTypes(operands.front().getType());
    state.addAttributes(first->getAttrs());
    Value pair = b.create(state)->getResult(0);
    for (auto [i, op] :
         llvm::enumerate(std::initializer_list<Operation *>{first, second})) {
      op->getResult(0).replaceAllUsesWith(elementAt(b, pair, i));
      op->erase();
    }
  }
};
} // namespace
