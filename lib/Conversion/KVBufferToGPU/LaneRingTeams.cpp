//===- LaneRingTeams.cpp - Teams that rings join ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What every machine with rings shares: how their teams begin and end. How
/// registers are handed out and who moves a tile is the machine's.
///
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

int64_t kvbuf::registerShare(const Lanes &lower) {
  return llvm::alignDown<int64_t>(lower.target.registersPerBlock /
                                      lower.blockThreads(),
                                  lower.target.registerStep);
}

bool kvbuf::partOfRegisterGroup(TeamOp op, int64_t group) {
  int64_t registers = op.getRegisters(), warps = 0;
  if (!registers || !group)
    return false;
  auto warpsOf = [](TeamOp team) {
    return int64_t(team.getWarps() * team.getCopies());
  };
  // From the team that the group's first warp is of to that of its last one.
  TeamOp first = op;
  while (first.getFirstWarp() % group)
    if (first = dyn_cast_or_null<TeamOp>(first->getPrevNode()); !first)
      return false;
  bool found = false;
  for (TeamOp team = first; warps < group;
       team = dyn_cast_or_null<TeamOp>(team->getNextNode())) {
    if (!team || int64_t(team.getRegisters()) != registers)
      return false;
    found |= team == op;
    warps += warpsOf(team);
  }
  return found && warps == group && warpsOf(op) < group;
}

/// Whether the block has the registers that teams ask for, and what follows can
/// do without them.
static LogicalResult checkRegisters(Lanes &lower, TeamsOp op) {
  int64_t share = registerShare(lower), first = 0, taken = 0,
          group = lower.target.warpsPerRegisterGroup;
  bool anew = false;
  for (auto member : op.getBody().getOps<TeamOp>()) {
    int64_t registers = member.getRegisters();
    int64_t warps = int64_t(member.getWarps() * member.getCopies());
    if (registers && (first % group || warps % group) &&
        !partOfRegisterGroup(member, group))
      return member.emitOpError()
             << "has registers(" << registers << ") for " << warps
             << " warps, from warp " << first << " on; " << lower.target.chip
             << " hands them out to whole groups of " << group;
    anew |= registers;
    taken += warps * (registers ? registers : share);
    first += warps;
  }
  if (!anew)
    return success();
  if (taken > first * share)
    return op.emitOpError()
           << "has teams of " << taken * int64_t(lower.target.waveSize)
           << " registers together; a block of " << lower.blockThreads()
           << " threads starts with "
           << first * share * int64_t(lower.target.waveSize) << " on "
           << lower.target.chip;
  // What follows would run with what each warp has then.
  Operation *next = op->getNextNode();
  if (op->getParentOp() == lower.kernel &&
      next->hasTrait<OpTrait::IsTerminator>())
    return success();
  InFlightDiagnostic diag =
      op.emitOpError()
      << "hands out registers anew, after which nothing else can run; expected "
         "it to be the last op of the kernel, or teams without registers";
  diag.attachNote(next->getLoc()) << "what follows is here";
  return diag;
}

LogicalResult kvbuf::startRings(LaneLowering &lower, TeamsOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  if (failed(checkRegisters(lower, op)))
    return failure();
  for (auto [place, words] : lower.rings.placesOfWords)
    place.setValueAttr(b.getIndexAttr(
        lower.takeBesideBarriers(sizeof(int32_t) * words) / sizeof(int32_t)));
  lower.rings.placesOfWords.clear();
  Operation *meanwhile = std::exchange(lower.rings.whileReady, nullptr);
  // Barriers are made ready once.
  if (op->getParentOp() != lower.kernel)
    return op.emitOpError() << "is in " << op->getParentOp()->getName()
                            << "; expected it in the kernel's body, as rings "
                               "join its teams";
  // All warps that run arrive at every block's end; of a team that moves
  // perhaps one lane does.
  if (lower.cluster() > 1) {
    int64_t arrivals = 0;
    for (auto member : op.getBody().getOps<TeamOp>())
      arrivals +=
          int64_t(member.getCopies()) *
          (!member.isMover()                  ? int64_t(member.getWarps())
           : moverThreads(lower, member) == 1 ? 1
                                              : moverWarps(lower, member));
    lower.rings.endBarrier = lower.lds.addBarrier(arrivals * lower.cluster());
  }
  ArrayRef<LdsBarrier> barriers =
      lower.lds.barriers().drop_front(lower.rings.readyBarriers);
  lower.rings.readyBarriers = lower.lds.barriers().size();
  if (barriers.empty())
    return success();
  {
    OpBuilder::InsertionGuard guard(b);
    if (meanwhile)
      b.setInsertionPoint(meanwhile);
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        lower.thread, lower.i32(0));
    auto init = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    b.setInsertionPointToStart(init.thenBlock());
    lower.phases().emitBarrierInit(lower, barriers);
    // Another block of the cluster may arrive as soon as it has started.
    b.setInsertionPointAfter(init);
    if (lower.cluster() > 1)
      lower.phases().emitClusterEnter(lower);
  }
  // Behind what is done meanwhile the block has met.
  if (!meanwhile)
    gpu::BarrierOp::create(b);
  if (lower.cluster() > 1) {
    lower.rings.rank =
        lower.toI32(gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
    lower.phases().emitClusterMeet(lower);
  }
  return success();
}

/// Which of a team that moves have code.
static Movers moversOf(Lanes &lower, TeamOp op) {
  Movers result = Movers::Lane;
  op.walk([&](RingLoadOp load) {
    result = std::max(result, lower.boxes().moversOf(lower, load));
  });
  return result;
}

int64_t kvbuf::moverWarps(LaneContext &lower, TeamOp op) {
  int64_t all = op.getWarps(), most = 0, next = 0;
  if (!lower.chip().warpsPerMatrixGroup())
    return all;
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  kernel.walk([&](RingOp ring) {
    int64_t stages = ring.getRing().getType().getParams().getStages();
    for (Operation *user : ring.getRing().getUsers()) {
      if (user->getParentOfType<TeamOp>() != op)
        continue;
      auto load = dyn_cast<RingLoadOp>(user);
      int64_t together = load ? lower.warpsOfSlot(load) : all;
      for (int64_t slot = 0; slot < stages; ++slot)
        most = std::max(most, fillerOf(next + slot, all, together) + together);
    }
    next += stages;
  });
  return most ? std::min(most, all) : all;
}

int64_t kvbuf::moverThreads(LaneContext &lower, TeamOp op) {
  bool byWarps = false;
  op.walk([&](RingLoadOp load) { byWarps |= lower.takesWarps(load); });
  return byWarps ? moverWarps(lower, op) * int64_t(lower.chip().waveSize) : 1;
}

/// Begins a team that moves: perhaps one lane of it goes on.
static LogicalResult beginMover(LaneLowering &lower, TeamOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  lower.rings.movers = moversOf(lower, op);
  lower.rings.numberWord.reset();
  lower.rings.firstOfTeam = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                  lower.thread, lower.i32(0));
  if (lower.rings.movers == Movers::Lane) {
    lower.enter(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.warp,
                                      lower.i32(0)));
    // Of one lane the assembler knows that coordinates are the same for all.
    lower.enter(lower.boxes().emitElect(lower));
    lower.rings.alone = true;
  } else if (int64_t warps = moverWarps(lower, op);
             warps < int64_t(op.getWarps())) {
    // Others would do nothing but ask, all the time, for the next tile.
    lower.enter(arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      lower.ownWarp(), lower.i32(warps)));
  }
  return success();
}

/// An op of a group of warps in a team that is no whole groups; null if there
/// is none.
static Operation *findOpOfGroup(TeamOp team) {
  Operation *found = nullptr;
  team.walk([&](Operation *op) {
    if (!isa<MmaStartOp, MmaWaitOp, TurnWaitOp, TurnPassOp, AnyNegativeOp>(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether groups of a team multiply bytes, a tile at a time: they do nothing
/// of their own beside their products, and others have to have their softmax
/// then.
static bool multipliesBytesAlone(LaneLowering &lower, TeamOp op) {
  if (std::holds_alternative<SoftmaxAhead>(lower.schedule.getAhead()))
    return false;
  WalkResult found = op.walk([](MmaStartOp product) {
    Type element = product.getB().getType().getParams().getElementType();
    return element.getIntOrFloatBitWidth() == 8 ? WalkResult::interrupt()
                                                : WalkResult::advance();
  });
  return found.wasInterrupted();
}

/// Begins a team that does not move, whose warps may multiply in groups if it
/// is whole groups.
static LogicalResult beginGroups(LaneLowering &lower, TeamOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t warps = op.getWarps(), size = lower.target.warpsPerMatrixGroup();
  bool isGroups = op.isWholeGroups(size);
  if (Operation *inner = isGroups ? nullptr : findOpOfGroup(op)) {
    InFlightDiagnostic diag = op.emitOpError()
                              << "has " << warps << " warps, from warp "
                              << op.getFirstWarp()
                              << " on; expected whole groups of " << size
                              << ", which multiply together on "
                              << lower.target.chip;
    diag.attachNote(inner->getLoc()) << "this is done by a group";
    return diag;
  }
  lower.rings.signBarriers = lower.rings.turnBarriers = 0;
  if (!isGroups) {
    lower.rings.groups = 0;
    lower.rings.group = lower.rings.firstOfGroup = Value();
    lower.rings.arrivesInCluster = Value();
    lower.rings.teamStart = lower.i32(0).getDefiningOp();
    return success();
  }
  lower.rings.groups = warps / size;
  lower.rings.group =
      arith::ShRUIOp::create(b, lower.warp, lower.i32(llvm::Log2_64(size)));
  // The assembler would read the thread's number in every iteration, into a
  // register that it spills an accumulator for; a result of a shuffle it keeps.
  bool alone = multipliesBytesAlone(lower, op);
  Value thread = lower.thread;
  if (alone)
    thread = gpu::ShuffleOp::create(b, thread, lower.lane,
                                    lower.i32(lower.target.waveSize),
                                    gpu::ShuffleMode::IDX)
                 .getShuffleResult();
  lower.rings.firstOfGroup = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::AndIOp::create(b, thread, lower.i32(lower.rings.groupThreads - 1)),
      lower.i32(0));
  if (lower.cluster() > 1)
    lower.rings.arrivesInCluster = arith::CmpIOp::create(
        b, arith::CmpIPredicate::slt,
        arith::AndIOp::create(b, lower.thread,
                              lower.i32(lower.rings.groupThreads - 1)),
        lower.i32(lower.cluster()));
  // What is shared goes before the first op that follows; that op must
  // exist, and stay.
  lower.rings.teamStart = lower.i32(0).getDefiningOp();
  bool turns = false;
  op.walk(
      [&](Operation *inner) { turns |= isa<TurnWaitOp, TurnPassOp>(inner); });
  if (!turns && alone && lower.rings.groups > 1)
    lower.machine.asyncProducts()->emitStagger(lower, lower.rings.group);
  if (!turns || lower.rings.groups < 2)
    return success();
  // The first turn: the last group passes it as if it had finished one.
  lower.rings.turnBarriers = lower.barriers.take(lower.rings.groups);
  OpBuilder::InsertionGuard guard(b);
  Value last =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.rings.group,
                            lower.i32(lower.rings.groups - 1));
  auto pass = scf::IfOp::create(b, last, /*withElseRegion=*/false);
  b.setInsertionPointToStart(pass.thenBlock());
  lower.machine.namedBarriers()->emitNamedBarrier(
      lower, lower.i32(lower.rings.turnBarriers), 2 * lower.rings.groupThreads,
      /*wait=*/false);
  return success();
}

void kvbuf::emitClusterArrivals(LaneContext &lower, Value barrier,
                                Value arrives) {
  if (!arrives)
    arrives = arith::ConstantIntOp::create(lower.builder(), 1, 1);
  for (int64_t to = 0; to < lower.cluster(); ++to)
    lower.arriveInCluster(barrier, lower.i32(to), arrives);
}

/// Ends a team: says so to all blocks of the cluster, one lane of each warp.
/// One that does not move waits until everybody has, as the block's LDS must
/// outlive what others do there.
static void leaveCluster(LaneLowering &lower, bool moves) {
  ImplicitLocOpBuilder &b = lower.b;
  // The barrier's one phase: every warp that reaches into another block's LDS
  // has done so.
  Value barrier = lower.i32(lower.rings.endBarrier);
  Value arrives;
  if (!lower.rings.alone) {
    lower.meetInWarp();
    arrives = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.lane,
                                    lower.i32(0));
  }
  emitClusterArrivals(lower, barrier, arrives);
  if (!moves)
    lower.phases().emitBarrierWait(lower, barrier, lower.i32(0));
}

LogicalResult kvbuf::lowerRingTeam(LaneLowering &lower, TeamOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  bool moves = op.isMover();
  if (failed(moves ? beginMover(lower, op) : beginGroups(lower, op)) ||
      failed(lower.lowerBlock(op.getBody().front())))
    return failure();
  b.setLoc(op.getLoc());
  if (!moves)
    lower.machine.emitTeamEnd(lower);
  if (lower.cluster() > 1)
    leaveCluster(lower, moves);
  lower.rings.alone = false;
  lower.rings.teamStart = nullptr;
  return success();
}
