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

#include "LaneTeams.h"
#include "LaneLowering.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace kvbuf;

void LaneLowering::takeRegisters(TeamOp op) {
  // What warps have when the kernel starts is an equal share of all.
  if (int64_t registers = op.getRegisters();
      registers && registers != registerShare(*this))
    machine.teamRegisters()->emitSetRegisters(*this, registers,
                                              registerShare(*this));
}

LogicalResult LaneLowering::lowerTeam(TeamOp op, int64_t firstWarp) {
  LaneLowering &lower = *this;
  int64_t warps = op.getWarps(), copies = op.getCopies();
  bool rings = lower.machine.hasRings();
  ScheduleAttr outerSchedule = lower.schedule;
  Value outerThread = lower.thread, outerWarp = lower.warp;
  llvm::scope_exit restore([&] {
    lower.schedule = outerSchedule;
    lower.thread = outerThread;
    lower.warp = outerWarp;
    lower.team = nullptr;
  });
  b.setLoc(op.getLoc());
  // Teams that are a group of warps together have got theirs.
  if (rings && !partOfRegisterGroup(op, lower.target.warpsPerRegisterGroup))
    takeRegisters(op);
  LaneTeam own{op, lower.i32(0), Value(), warps};
  bool isBlock = warps * lower.target.waveSize == lower.blockThreads();
  // Beside rings a lane's number is that in the block, less what is before the
  // team.
  bool byThread = rings && copies == 1;
  if (byThread && firstWarp)
    lower.thread = arith::SubIOp::create(
        b, lower.thread, lower.i32(firstWarp * lower.target.waveSize));
  Value inTeam = lower.warp;
  if (firstWarp)
    inTeam = arith::SubIOp::create(b, lower.warp, lower.i32(firstWarp));
  if (copies > 1 && warps > 1) {
    own.copy = arith::DivUIOp::create(b, inTeam, lower.i32(warps));
    inTeam = arith::RemUIOp::create(b, inTeam, lower.i32(warps));
  } else if (copies > 1) {
    own.copy = inTeam;
    inTeam = lower.i32(0);
  } else if (warps == 1) {
    inTeam = lower.i32(0);
  }
  // Beside rings a team has its barrier when it first needs one: few meet.
  if (warps > 1 && !isBlock && !rings) {
    if (lower.target.namedBarriers < 2)
      return op.emitOpError()
             << "has " << warps << " warps, which cannot meet by themselves: a "
             << "block of " << lower.target.chip
             << " has no barrier but its own; expected warps(1)";
    own.barrier = lower.i32(lower.barriers.take(copies));
    if (copies > 1)
      own.barrier = arith::AddIOp::create(b, own.barrier, own.copy);
    if (lower.barriers.taken() > lower.target.namedBarriers)
      return op.emitOpError()
             << "needs " << lower.barriers.taken()
             << " named barriers, a block of " << lower.target.chip << " has "
             << lower.target.namedBarriers;
  }

  lower.schedule = op.getSchedule(lower.blockSchedule);
  lower.warp = inTeam;
  if (!isBlock && !byThread)
    lower.thread = arith::AddIOp::create(
        b, lower.lane,
        arith::MulIOp::create(b, lower.warp, lower.i32(lower.target.waveSize)));
  lower.team = isBlock ? nullptr : &own;
  if (BlockArgument index = op.getIndex())
    lower.set(index, {lower.toIndex(own.copy)});
  auto teams = op->getParentOfType<TeamsOp>();
  openQueues(lower, teams, op);
  if (failed(rings ? lowerRingTeam(lower, op)
                   : lower.lowerBlock(op.getBody().front())))
    return failure();
  b.setLoc(op.getLoc());
  closeQueues(lower, teams, op);
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, TeamsOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  int64_t warps = op.getWarps(), first = 0;
  bool rings = lower.hasRings();
  if (failed(lower.startTeams(op)))
    return failure();
  // Warps are few: either way of comparing them is right. Where rings are,
  // loops and branches count in signed numbers.
  auto less = rings ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
  auto ip = b.saveInsertionPoint();
  for (auto member : op.getBody().getOps<TeamOp>()) {
    int64_t end = first + int64_t(member.getWarps() * member.getCopies());
    // All warps of a group meet at one instruction, before teams part.
    int64_t group = lower.chip().warpsPerRegisterGroup;
    if (rings && partOfRegisterGroup(member, group) && first % group == 0) {
      if (first + group < warps)
        return member.emitOpError()
               << "has a part of a group of " << group
               << " warps that get registers together, and other teams come "
                  "after it; expected that group to be the last";
      lower.takeRegisters(member);
    }
    if (end < warps) {
      Value mine =
          arith::CmpIOp::create(b, less, lower.ownWarp(), lower.i32(end));
      auto branch = scf::IfOp::create(b, mine, /*withElseRegion=*/true);
      b.setInsertionPointToStart(branch.thenBlock());
      if (failed(lower.lowerTeam(member, first)))
        return failure();
      b.setInsertionPointToStart(branch.elseBlock());
    } else if (failed(lower.lowerTeam(member, first))) {
      return failure();
    }
    first = end;
  }
  b.restoreInsertionPoint(ip);
  b.setLoc(op.getLoc());
  if (rings && lower.namedBarriersTaken() > lower.chip().namedBarriers)
    return op.emitOpError()
           << "needs " << lower.namedBarriersTaken()
           << " named barriers, a block has " << lower.chip().namedBarriers;
  // Teams that rings join end when they like, and nobody waits for the last of
  // them unless something follows.
  bool isLast = isa<gpu::GPUFuncOp>(op->getParentOp()) &&
                op->getNextNode()->hasTrait<OpTrait::IsTerminator>();
  if (!rings || !isLast)
    gpu::BarrierOp::create(b);
  return success();
}

Value Lanes::teamBarrier() {
  if (team->barrier || team->warps == 1)
    return team->barrier;
  int64_t copies = TeamOp(team->op).getCopies();
  if (!team->firstBarrier)
    team->firstBarrier = barriers.take(copies);
  Value barrier = i32(team->firstBarrier);
  if (copies > 1)
    barrier = arith::AddIOp::create(b, barrier, team->copy);
  return barrier;
}
