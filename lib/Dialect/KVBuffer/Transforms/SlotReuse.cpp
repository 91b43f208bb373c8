//===- SlotReuse.cpp - Loads into what is still read ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlotReuse.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// The reads of one buffer, and what lies between them and its loads.
class Reads {
public:
  explicit Reads(ArrayRef<DramLoadOp> loads) {
    for (DramLoadOp load : loads)
      for (Operation *user : load.getToken().getUsers())
        if (auto stage = dyn_cast<LdsStageOp>(user))
          for (auto [token, staged] :
               llvm::zip_equal(stage.getTokens(), stage.getStaged()))
            if (token == load.getToken())
              addUsersOf(staged);
  }

  /// The read that a load may overtake; null if all warps meet in between, or
  /// nothing is read before.
  Operation *before(DramLoadOp load) const;

private:
  void addUsersOf(Value staged) {
    for (Operation *user : staged.getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>() || !reads.insert(user).second)
        continue;
      // A part of the tile.
      for (Value result : user->getResults())
        if (isa<StagedType>(result.getType()))
          addUsersOf(result);
    }
  }

  /// Whether all threads of the block, or of a team, wait for each other in an
  /// op, or may.
  static bool isMeeting(Operation *op) {
    if (isa<LdsStageOp, MeetOp, gpu::BarrierOp, TeamsOp>(op))
      return true;
    return isa_and_nonnull<KVBufferDialect>(op->getDialect()) &&
           op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
           !isa<DramLoadOp, FragmentLoadOp, RowStoreOp>(op);
  }

  /// What is met first on the way back from the end of [begin, end).
  enum class Found { Nothing, Meeting, Read };
  Found findBack(Block::iterator begin, Block::iterator end,
                 Operation *&read) const;
  Found findIn(Operation *op, Operation *&read) const;

  llvm::SmallPtrSet<Operation *, 8> reads;
};

} // namespace

Reads::Found Reads::findIn(Operation *op, Operation *&read) const {
  if (reads.contains(op)) {
    read = op;
    return Found::Read;
  }
  if (isMeeting(op))
    return Found::Meeting;
  bool always = isa<scf::IfOp>(op);
  for (Region &region : op->getRegions()) {
    Found found = region.empty() ? Found::Nothing
                                 : findBack(region.front().begin(),
                                            region.front().end(), read);
    if (found == Found::Read)
      return found;
    always &= found == Found::Meeting;
  }
  return always ? Found::Meeting : Found::Nothing;
}

Reads::Found Reads::findBack(Block::iterator begin, Block::iterator end,
                             Operation *&read) const {
  while (end != begin)
    if (Found found = findIn(&*--end, read); found != Found::Nothing)
      return found;
  return Found::Nothing;
}

Operation *Reads::before(DramLoadOp load) const {
  Operation *read = nullptr;
  for (Operation *at = load; at && !isa<FunctionOpInterface, TeamOp>(at);
       at = at->getParentOp()) {
    Block *block = at->getBlock();
    Found found = findBack(block->begin(), at->getIterator(), read);
    // An iteration before.
    Operation *loop = block->getParentOp();
    if (auto both = dyn_cast<scf::WhileOp>(loop);
        both && found == Found::Nothing) {
      Block *other = block == both.getBeforeBody() ? both.getAfterBody()
                                                   : both.getBeforeBody();
      found = findBack(other->begin(), other->end(), read);
    }
    if (found == Found::Nothing && isa<LoopLikeOpInterface>(loop))
      found = findBack(at->getIterator(), block->end(), read);
    if (found != Found::Nothing)
      break;
  }
  return read;
}

LogicalResult kvbuf::checkReuseOfSlot(ArrayRef<DramLoadOp> loads) {
  Reads reads(loads);
  for (DramLoadOp load : loads) {
    // One warp reads what it has asked for before it asks again.
    auto team = load->getParentOfType<TeamOp>();
    if (team && team.getWarps() == 1)
      continue;
    Operation *read = reads.before(load);
    if (!read)
      continue;
    InFlightDiagnostic diag =
        load.emitOpError()
        << "fills the one slot of its buffer, which warps may still read; "
           "expected a kvbuffer.meet behind the last read, or stages of at "
           "least 2";
    diag.attachNote(read->getLoc()) << "it is read here";
    return diag;
  }
  return success();
}
