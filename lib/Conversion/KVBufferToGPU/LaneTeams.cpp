//===- LaneTeams.cpp - Warps that work in teams -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A team's code is lowered as a kernel's, with a schedule of its own and with
/// threads and warps that count from its first warp. What its warps meet at is
/// the machine's.
///
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace kvbuf;

LogicalResult LaneLowering::lower(TeamsOp op) {
  int64_t warps = op.getWarps(), first = 0;
  auto ip = b.saveInsertionPoint();
  for (auto member : op.getBody().getOps<TeamOp>()) {
    int64_t end = first + int64_t(member.getWarps() * member.getCopies());
    if (end < warps) {
      Value mine =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, warp, i32(end));
      auto branch = scf::IfOp::create(b, mine, /*withElseRegion=*/true);
      b.setInsertionPointToStart(branch.thenBlock());
      if (failed(lowerTeam(member, first)))
        return failure();
      b.setInsertionPointToStart(branch.elseBlock());
    } else if (failed(lowerTeam(member, first))) {
      return failure();
    }
    first = end;
  }
  b.restoreInsertionPoint(ip);
  b.setLoc(op.getLoc());
  gpu::BarrierOp::create(b);
  return success();
}

LogicalResult LaneLowering::lowerTeam(TeamOp op, int64_t firstWarp) {
  int64_t warps = op.getWarps(), copies = op.getCopies();
  b.setLoc(op.getLoc());
  LaneTeam own{op, i32(0), Value()};
  Value inTeam = warp;
  if (firstWarp)
    inTeam = arith::SubIOp::create(b, warp, i32(firstWarp));
  if (copies > 1 && warps > 1) {
    own.copy = arith::DivUIOp::create(b, inTeam, i32(warps));
    inTeam = arith::RemUIOp::create(b, inTeam, i32(warps));
  } else if (copies > 1) {
    own.copy = inTeam;
    inTeam = i32(0);
  } else if (warps == 1) {
    inTeam = i32(0);
  }
  bool isBlock = warps * target.waveSize == blockThreads();
  if (warps > 1 && !isBlock) {
    if (target.namedBarriers < 2)
      return op.emitOpError()
             << "has " << warps << " warps, which cannot meet by themselves: a "
             << "block of " << target.chip
             << " has no barrier but its own; expected warps(1)";
    own.barrier = i32(barriers.take(copies));
    if (copies > 1)
      own.barrier = arith::AddIOp::create(b, own.barrier, own.copy);
    if (barriers.taken() > target.namedBarriers)
      return op.emitOpError()
             << "needs " << barriers.taken() << " named barriers, a block of "
             << target.chip << " has " << target.namedBarriers;
  }

  ScheduleAttr outerSchedule = schedule;
  Value outerThread = thread, outerWarp = warp;
  llvm::scope_exit restore([&] {
    schedule = outerSchedule;
    thread = outerThread;
    warp = outerWarp;
    team = nullptr;
  });
  schedule = op.getSchedule(blockSchedule);
  warp = inTeam;
  if (!isBlock)
    thread = arith::AddIOp::create(
        b, lane, arith::MulIOp::create(b, warp, i32(target.waveSize)));
  team = isBlock ? nullptr : &own;
  if (BlockArgument index = op.getIndex())
    set(index, {toIndex(own.copy)});
  auto teams = op->getParentOfType<TeamsOp>();
  openQueues(teams, op);
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  b.setLoc(op.getLoc());
  closeQueues(teams, op);
  return success();
}
