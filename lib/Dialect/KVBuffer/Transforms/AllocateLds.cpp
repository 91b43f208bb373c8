//===- AllocateLds.cpp - Places of buffers in LDS -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_ALLOCATELDS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-allocate-lds"

/// Buffers begin at multiples of this many bytes: see AllocOp::verify.
static constexpr int64_t kAlignment = 1024;
/// What larger buffers count as.
static constexpr int64_t kMostBytes = int64_t(1) << 40;

namespace {

/// A buffer, its bytes, and the ops of the kernel's own block from the first to
/// the last that touch it.
struct Allocation {
  AllocOp op;
  int64_t bytes = 0;
  Operation *first = nullptr, *last = nullptr;
  std::optional<int64_t> offset;
};

} // namespace

/// Whether a value stands for a buffer, or for a slot of one.
static bool isOfBuffer(Value value) {
  return isa<BufferType, TokenType, StagedType, RingType>(value.getType());
}

/// Finds all that touches a buffer: the users of its value and of what they
/// make of it, also by way of loops and branches.
static Allocation measure(AllocOp op, Block &body) {
  Allocation result;
  result.op = op;
  // More than any chip has is refused later (CheckKernel); here it must not
  // overflow.
  KVBufferAttr params = op.getBuffer().getType().getParams();
  result.bytes = kMostBytes;
  // Each copy of a team has slots of its own.
  auto team = op->getParentOfType<TeamOp>();
  int64_t copies = team ? int64_t(team.getCopies()) : 1;
  if (params.getStages() < kMostBytes / copies / params.getStageBytes())
    result.bytes = copies * llvm::alignTo(params.getBytes(), kAlignment);
  if (std::optional<uint64_t> given = op.getOffset())
    result.offset = int64_t(*given);
  llvm::SmallSetVector<Value, 8> values;
  values.insert(op.getBuffer());
  auto addAll = [&](auto &&range) {
    for (Value value : range)
      if (isOfBuffer(value))
        values.insert(value);
  };
  // The set grows while it is walked.
  for (unsigned i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      Operation *at = body.findAncestorOpInBlock(*user);
      if (!at)
        continue;
      if (!result.first || at->isBeforeInBlock(result.first))
        result.first = at;
      if (!result.last || result.last->isBeforeInBlock(at))
        result.last = at;
      unsigned number = use.getOperandNumber();
      auto loop = dyn_cast<scf::ForOp>(user);
      auto around = dyn_cast<scf::ForOp>(user->getParentOp());
      if (isa<LdsStageOp>(user)) {
        values.insert(user->getResult(number));
      } else if (loop) {
        number -= loop.getNumControlOperands();
        addAll(
            ValueRange{loop.getRegionIterArg(number), loop.getResult(number)});
      } else if (isa<scf::YieldOp>(user) && around) {
        addAll(ValueRange{around.getRegionIterArg(number),
                          around.getResult(number)});
      } else {
        // More than what comes of it, at worst.
        addAll(user->getResults());
        for (Region &region : user->getRegions())
          for (Block &block : region)
            addAll(block.getArguments());
        if (user->hasTrait<OpTrait::IsTerminator>())
          addAll(user->getParentOp()->getResults());
      }
    }
  return result;
}

/// Whether all threads meet between two ops of one block, so that what reads
/// `from` has finished when `to` starts.
static bool meetBetween(Operation *from, Operation *to) {
  for (Operation *op = from->getNextNode(); op && op != to;
       op = op->getNextNode())
    if (isa<LdsStageOp, MeetOp>(op))
      return true;
  return false;
}

/// Whether one of two buffers is done with before the other is touched.
static bool areApart(const Allocation &a, const Allocation &b) {
  if (!a.first || !b.first)
    return true;
  auto before = [](const Allocation &x, const Allocation &y) {
    return x.last->isBeforeInBlock(y.first) && meetBetween(x.last, y.first);
  };
  return before(a, b) || before(b, a);
}

static bool shareBytes(const Allocation &a, const Allocation &b) {
  return *a.offset < *b.offset + b.bytes && *b.offset < *a.offset + a.bytes;
}

namespace {
struct AllocateLdsPass : kvbuf::impl::AllocateLdsBase<AllocateLdsPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    SmallVector<Allocation> all;
    kernel.walk([&](AllocOp op) {
      all.push_back(measure(op, kernel.getBody().front()));
    });
    // What the program places must fit together.
    for (unsigned i = 0; i < all.size(); ++i)
      for (unsigned j = 0; j < i; ++j) {
        Allocation &late = all[i], &early = all[j];
        if (!late.offset || !early.offset || !shareBytes(late, early) ||
            areApart(late, early))
          continue;
        InFlightDiagnostic diag =
            late.op.emitOpError()
            << "lies at bytes " << *late.offset << " to "
            << *late.offset + late.bytes
            << " with a buffer that is in use at the same time; expected a "
               "kvbuffer.lds_stage or kvbuffer.meet between the last use of "
               "one and the first of the other";
        diag.attachNote(early.op.getLoc()) << "the other buffer is here";
        return signalPassFailure();
      }

    int64_t end = 0, sum = 0;
    Builder b(&getContext());
    for (Allocation &one : all) {
      if (!one.offset)
        place(one, all);
      one.op.setOffset(*one.offset);
      end = std::max(end, *one.offset + one.bytes);
      sum += one.bytes;
    }
    if (!all.empty())
      remark::analysis(kernel.getLoc(),
                       remark::RemarkOpts::name("lds").category(DEBUG_TYPE))
          << remark::metric("bytes", end)
          << remark::metric("shared", sum - end);
  }

  /// The lowest place at which a buffer shares bytes with none that is in use
  /// at the same time; without `overlay` with none at all.
  void place(Allocation &one, ArrayRef<Allocation> all) {
    SmallVector<int64_t> candidates{0};
    for (const Allocation &other : all)
      if (other.offset)
        candidates.push_back(*other.offset + other.bytes);
    llvm::sort(candidates);
    for (int64_t candidate : candidates) {
      one.offset = candidate;
      if (llvm::none_of(all, [&](const Allocation &other) {
            return other.op != one.op && other.offset &&
                   shareBytes(one, other) && !(overlay && areApart(one, other));
          }))
        return;
    }
  }
};
} // namespace
