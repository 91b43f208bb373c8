//===- LaneRoles.cpp - Teams that rings join, and products ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What every machine with rings shares: how their teams begin and end, where
/// slots and barriers lie in LDS, which phase of a barrier a filling is. How a
/// barrier is waited for, a tile copied and a product started is the machine's.
///
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "LaneMovement.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

int64_t LaneLowering::registerShare() const {
  return llvm::alignDown<int64_t>(target.registersPerBlock / blockThreads(),
                                  target.registerStep);
}

LogicalResult LaneLowering::checkRegisters(TeamsOp op) {
  int64_t share = registerShare(), first = 0, taken = 0,
          group = target.warpsPerMatrixGroup;
  bool anew = false;
  for (auto member : op.getBody().getOps<TeamOp>()) {
    int64_t registers = member.getRegisters();
    int64_t warps = int64_t(member.getWarps() * member.getCopies());
    if (registers && (first % group || warps % group))
      return member.emitOpError()
             << "has registers(" << registers << ") for " << warps
             << " warps, from warp " << first << " on; " << target.chip
             << " hands them out to whole groups of " << group;
    anew |= registers;
    taken += warps * (registers ? registers : share);
    first += warps;
  }
  if (!anew)
    return success();
  if (taken > first * share)
    return op.emitOpError()
           << "has teams of " << taken * int64_t(target.waveSize)
           << " registers together; a block of " << blockThreads()
           << " threads starts with "
           << first * share * int64_t(target.waveSize) << " on " << target.chip;
  // What follows would run with what each warp has then.
  Operation *next = op->getNextNode();
  if (op->getParentOp() == kernel && next->hasTrait<OpTrait::IsTerminator>())
    return success();
  InFlightDiagnostic diag =
      op.emitOpError()
      << "hands out registers anew, after which nothing else can run; expected "
         "it to be the last op of the kernel, or teams without registers";
  diag.attachNote(next->getLoc()) << "what follows is here";
  return diag;
}

LogicalResult LaneLowering::startRings(TeamsOp op) {
  if (failed(checkRegisters(op)))
    return failure();
  // Barriers are made ready once.
  if (op->getParentOp() != kernel)
    return op.emitOpError() << "is in " << op->getParentOp()->getName()
                            << "; expected it in the kernel's body, as rings "
                               "join its teams";
  // All threads that run arrive at every block's end; of a team that moves
  // perhaps one does.
  if (cluster() > 1) {
    int64_t arrivals = 0;
    for (auto member : op.getBody().getOps<TeamOp>())
      arrivals += int64_t(member.getCopies()) *
                  (member.isMover()
                       ? moverThreads(member)
                       : int64_t(member.getWarps()) * int64_t(target.waveSize));
    roles.endBarrier = lds.addBarrier(arrivals * cluster());
  }
  ArrayRef<LdsBarrier> barriers =
      lds.barriers().drop_front(roles.readyBarriers);
  roles.readyBarriers = lds.barriers().size();
  if (barriers.empty())
    return success();
  {
    OpBuilder::InsertionGuard guard(b);
    Value first =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, i32(0));
    auto init = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    b.setInsertionPointToStart(init.thenBlock());
    warpRoles().emitBarrierInit(*this, barriers);
  }
  // Another block of the cluster may arrive as soon as it has started.
  if (cluster() > 1) {
    roles.rank = toI32(gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
    warpRoles().emitClusterMeet(*this);
  } else {
    gpu::BarrierOp::create(b);
  }
  return success();
}

Movers LaneLowering::moversOf(TeamOp op) {
  Movers result = Movers::Lane;
  op.walk([&](RingLoadOp load) {
    result = std::max(result, warpRoles().moversOf(*this, load));
  });
  return result;
}

int64_t LaneLowering::moverThreads(TeamOp op) {
  return moversOf(op) == Movers::Lane
             ? 1
             : int64_t(op.getWarps()) * int64_t(target.waveSize);
}

LogicalResult LaneLowering::beginMover(TeamOp op) {
  roles.movers = moversOf(op);
  roles.numberWord.reset();
  roles.firstOfTeam =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, i32(0));
  if (roles.movers == Movers::Lane) {
    enter(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, warp, i32(0)));
    // Of one lane the assembler knows that coordinates are the same for all.
    enter(warpRoles().emitElect(*this));
    roles.alone = true;
  }
  return success();
}

LogicalResult LaneLowering::beginGroups(TeamOp op, int64_t firstWarp) {
  int64_t warps = op.getWarps(), size = target.warpsPerMatrixGroup;
  if (warps % size || firstWarp % size)
    return op.emitOpError()
           << "has " << warps << " warps, from warp " << firstWarp
           << " on; expected whole groups of " << size
           << ", which multiply together on " << target.chip;
  roles.groups = warps / size;
  roles.group = arith::ShRUIOp::create(b, warp, i32(llvm::Log2_64(size)));
  roles.firstOfGroup = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::AndIOp::create(b, thread, i32(roles.groupThreads - 1)), i32(0));
  if (cluster() > 1)
    roles.arrivesInCluster = arith::CmpIOp::create(
        b, arith::CmpIPredicate::slt,
        arith::AndIOp::create(b, thread, i32(roles.groupThreads - 1)),
        i32(cluster()));
  // What is shared goes before the first op that follows; that op must
  // exist, and stay.
  roles.teamStart = i32(0).getDefiningOp();
  roles.signBarriers = roles.turnBarriers = 0;
  bool turns = false;
  op.walk(
      [&](Operation *inner) { turns |= isa<TurnWaitOp, TurnPassOp>(inner); });
  if (!turns || roles.groups < 2)
    return success();
  // The first turn: the last group passes it as if it had finished one.
  roles.turnBarriers = barriers.take(roles.groups);
  OpBuilder::InsertionGuard guard(b);
  Value last = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, roles.group,
                                     i32(roles.groups - 1));
  auto pass = scf::IfOp::create(b, last, /*withElseRegion=*/false);
  b.setInsertionPointToStart(pass.thenBlock());
  machine.namedBarriers()->emitNamedBarrier(*this, i32(roles.turnBarriers),
                                            2 * roles.groupThreads,
                                            /*wait=*/false);
  return success();
}

LogicalResult LaneLowering::lowerRingTeam(TeamOp op, int64_t firstWarp) {
  bool moves = op.isMover();
  if (failed(moves ? beginMover(op) : beginGroups(op, firstWarp)) ||
      failed(lowerBlock(op.getBody().front())))
    return failure();
  b.setLoc(op.getLoc());
  if (!moves)
    warpRoles().emitTeamEnd(*this);
  if (cluster() > 1)
    leaveCluster(moves);
  roles.alone = false;
  roles.teamStart = nullptr;
  return success();
}

void LaneLowering::emitClusterArrivals(Value barrier) {
  Value always = arith::ConstantIntOp::create(b, 1, 1);
  for (int64_t to = 0; to < cluster(); ++to)
    warpRoles().emitClusterArrive(*this, barrier, i32(to), always);
}

void LaneLowering::leaveCluster(bool moves) {
  // The barrier's one phase: every thread that reaches into another block's LDS
  // has done so.
  Value barrier = i32(roles.endBarrier);
  emitClusterArrivals(barrier);
  if (!moves)
    warpRoles().emitBarrierWait(*this, barrier, i32(0));
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

LaneLowering::Filling LaneLowering::filling(Value fill, int64_t stages) {
  Value number = toI32(single(fill));
  if (stages == 1)
    return {i32(0), arith::AndIOp::create(b, number, i32(1))};
  Value slot = arith::RemUIOp::create(b, number, i32(stages));
  Value round = arith::DivUIOp::create(b, number, i32(stages));
  return {slot, arith::AndIOp::create(b, round, i32(1))};
}

Value LaneLowering::fullBarrier(const RingValues &ring, const Filling &at) {
  return arith::AddIOp::create(
      b, ring.barriers, arith::MulIOp::create(b, at.slot, i32(kBarrierBytes)));
}

Value LaneLowering::emptyBarrier(const RingValues &ring, const Filling &at) {
  return arith::AddIOp::create(b, fullBarrier(ring, at),
                               i32(ring.stages * kBarrierBytes));
}

RingValues LaneLowering::ringValues(Value ring, int64_t stages) {
  const Values &values = get(ring);
  return {values[0], values[1], stages};
}

LogicalResult LaneLowering::checkRoles(Operation *op) {
  auto ring = dyn_cast<RingOp>(op);
  auto box = dyn_cast<MailboxOp>(op);
  if (cluster() == 1 &&
      ((ring && ring.getShared()) || (box && box.getShared())))
    return op->emitOpError() << "is shared, but the kernel has no clusters; "
                                "expected 'known_cluster_size'";
  if (!machine.hasRoles())
    return op->emitOpError()
           << "has no per-lane form in a kernel without kvbuffer.ring";
  // Its barriers are made ready once.
  if (ring || box) {
    if (op->getParentOp() == kernel)
      return success();
    return op->emitOpError() << "is in " << op->getParentOp()->getName()
                             << "; expected it in the kernel's body";
  }
  if (!op->getParentOfType<TeamOp>())
    return op->emitOpError() << "is expected in a kvbuffer.team";
  // What is known of a ring or a mailbox hangs on the op that makes it.
  for (Value operand : op->getOperands())
    if (isa<RingType, MailboxType>(operand.getType()) &&
        !operand.getDefiningOp<TeamChannelInterface>())
      return op->emitOpError()
             << "uses a " << operand.getType()
             << " that is passed on; expected the result of "
             << (isa<RingType>(operand.getType()) ? "kvbuffer.ring"
                                                  : "kvbuffer.mailbox");
  return success();
}

/// Whether a product has been waited for before a release, in its block. A
/// product takes all the warps of a group: each of them has then seen the
/// filling that is given back.
static bool followsProduct(RingReleaseOp release) {
  for (Operation *op = release->getPrevNode(); op; op = op->getPrevNode())
    if (isa<MmaWaitOp>(op))
      return true;
  return false;
}

/// Whether nothing but the matrix unit reads a slot or a view of it.
static bool readByProducts(Value staged) {
  return llvm::all_of(staged.getUsers(), [](Operation *read) {
    auto view = dyn_cast<StagedViewOp>(read);
    return view ? readByProducts(view.getView()) : isa<MmaStartOp>(read);
  });
}

/// The `kvbuffer.teams` that a ring or a mailbox joins; null if nobody uses it.
static TeamsOp teamsOf(TeamChannelInterface channel) {
  for (Operation *user : channel.getChannel().getUsers())
    if (auto teams = user->getParentOfType<TeamsOp>())
      return teams;
  return {};
}

LogicalResult LaneLowering::checkReleases(TeamChannelInterface channel,
                                          int64_t releases) {
  TeamsOp teams = teamsOf(channel);
  if (!teams)
    return success();
  int64_t groups = 0;
  for (Attribute name : channel.getTo()) {
    TeamOp team = teams.getTeam(cast<FlatSymbolRefAttr>(name).getValue());
    groups += llvm::divideCeil(int64_t(team.getWarps()),
                               int64_t(target.warpsPerMatrixGroup));
  }
  if (releases == groups)
    return success();
  return channel->emitOpError()
         << "has releases = " << releases << ", expected " << groups
         << ": one for each group of " << target.warpsPerMatrixGroup
         << " warps of " << channel.getTo();
}

LogicalResult LaneLowering::lower(RingOp op) {
  if (failed(checkReleases(op, op.getReleases())))
    return failure();
  // One thread releases for its group where the group's warps are known to be
  // done; else each warp does: a warp that came late would wait for a phase
  // that is over and, by its parity, take it for the next but one.
  bool byWarps = false;
  for (Operation *user : op.getRing().getUsers()) {
    if (auto wait = dyn_cast<RingWaitOp>(user))
      byWarps |= !readByProducts(wait.getStaged());
    if (auto release = dyn_cast<RingReleaseOp>(user))
      byWarps |= !followsProduct(release);
  }
  if (byWarps)
    roles.releasedByWarps.insert(op.getRing());
  int64_t releases = int64_t(op.getReleases()) *
                     (byWarps ? int64_t(target.warpsPerMatrixGroup) : 1);
  if (op.getShared())
    releases *= cluster();
  int64_t stages = op.getRing().getType().getParams().getStages();
  int64_t fills = 1;
  for (Operation *user : op.getRing().getUsers())
    if (auto load = dyn_cast<RingLoadOp>(user))
      fills = std::max(fills, warpRoles().warpsOfSlot(*this, load));
  set(op.getRing(),
      {single(op.getBuffer()), i32(lds.addBarriers(stages, releases, fills))});
  roles.firstSlots[op.getRing()] = roles.nextSlot;
  roles.nextSlot += stages;
  return success();
}

LogicalResult LaneLowering::lower(RingLoadOp op) {
  auto at = coordinates.find(op.getTile());
  if (at == coordinates.end())
    return op.emitOpError() << "expected a tile that kvbuffer.cache_tile or "
                               "kvbuffer.dram_tile makes";
  KVBufferAttr params = op.getRing().getType().getParams();
  RingValues ring = ringValues(op.getRing(), params.getStages());
  Filling to = filling(op.getFill(), params.getStages());
  Value slot = arith::AddIOp::create(
      b, ring.slots,
      arith::MulIOp::create(b, to.slot, i32(params.getStageBytes())));
  // The phase before the filling's own: slots start empty, as if phase -1 had
  // completed.
  Value emptyParity = arith::XOrIOp::create(b, to.parity, i32(1));
  TileValues tile = sourceOf(*this, op.getTile(), params);
  OpBuilder::InsertionGuard guard(b);
  // A slot is always filled by the same warps, which so see each of its phases,
  // and neighbouring slots by different ones: every instruction of a warp that
  // moves takes a turn from those that share its scheduler.
  if (roles.movers != Movers::Lane) {
    int64_t together = warpRoles().warpsOfSlot(*this, op);
    Value number = arith::AddIOp::create(
        b, to.slot, i32(roles.firstSlots.lookup(op.getRing())));
    Value filler =
        arith::RemUIOp::create(b, number, i32(schedule.getWarps() / together));
    Value part = arith::DivUIOp::create(b, warp, i32(together));
    enter(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part, filler));
  }
  return warpRoles().emitRingLoad(*this, op, tile, at->second, slot,
                                  fullBarrier(ring, to), emptyBarrier(ring, to),
                                  emptyParity);
}

void LaneLowering::lower(RingWaitOp op) {
  KVBufferAttr params = op.getRing().getType().getParams();
  RingValues ring = ringValues(op.getRing(), params.getStages());
  Filling at = filling(op.getFill(), params.getStages());
  warpRoles().emitBarrierWait(*this, fullBarrier(ring, at), at.parity);
  set(op.getStaged(),
      {arith::AddIOp::create(
          b, ring.slots,
          arith::MulIOp::create(b, at.slot, i32(params.getStageBytes())))});
}

void LaneLowering::lower(RingReleaseOp op) {
  RingValues ring =
      ringValues(op.getRing(), op.getRing().getType().getParams().getStages());
  Filling at = filling(op.getFill(), ring.stages);
  emitRelease(emptyBarrier(ring, at),
              roles.releasedByWarps.contains(op.getRing()),
              op.getRing().getDefiningOp<RingOp>().getShared());
}

void LaneLowering::emitRelease(Value barrier, bool byWarps, bool shared) {
  if (!shared) {
    Value arrives = roles.firstOfGroup;
    if (byWarps)
      arrives =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, i32(0));
    warpRoles().emitBarrierArrive(*this, barrier, arrives);
    return;
  }
  // Lane r of the group's first warp, or of each warp, arrives at block r.
  Value arrives = roles.arrivesInCluster;
  if (byWarps)
    arrives = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane,
                                    i32(cluster()));
  warpRoles().emitClusterArrive(*this, barrier, lane, arrives);
}

//===----------------------------------------------------------------------===//
// Mailboxes and counters
//===----------------------------------------------------------------------===//

LogicalResult LaneLowering::lower(MailboxOp op) {
  if (failed(checkReleases(op, op.getReleases())))
    return failure();
  // Every lane reads by itself, so every lane releases: one that releases for
  // its warp would need the others' reads ordered before it. Of a shared box
  // the team that posts reads, too, and those of all blocks.
  int64_t slots = op.getSlots();
  int64_t releases = int64_t(op.getReleases()) *
                     int64_t(target.warpsPerMatrixGroup * target.waveSize);
  if (op.getShared()) {
    int64_t movers = 0;
    for (Operation *user : op.getBox().getUsers())
      if (auto team = user->getParentOfType<TeamOp>();
          team && team.isMover() && isa<MailboxTakeOp>(user))
        movers = moverThreads(team);
    releases = (releases + movers) * cluster();
  }
  int64_t barriers = lds.addBarriers(slots, releases);
  int64_t words = lds.takeBesideBarriers(4 * slots);
  set(op.getBox(), {i32(words), i32(barriers)});
  return success();
}

RingValues LaneLowering::mailboxValues(Value box) {
  return ringValues(box, box.getDefiningOp<MailboxOp>().getSlots());
}

/// The index of a mailbox's number among the 32-bit words of LDS.
static Value wordOf(LaneLowering &lower, const RingValues &box, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  Value byte = arith::AddIOp::create(
      b, box.slots, arith::MulIOp::create(b, slot, lower.i32(4)));
  return lower.toIndex(arith::ShRUIOp::create(b, byte, lower.i32(2)));
}

void LaneLowering::lower(MailboxPostOp op) {
  RingValues box = mailboxValues(op.getBox());
  Value value = toI32(single(op.getValue()));
  OpBuilder::InsertionGuard guard(b);
  if (roles.movers != Movers::Lane)
    enter(roles.firstOfTeam);
  Filling at = filling(op.getNumber(), box.stages);
  warpRoles().emitBarrierWait(*this, emptyBarrier(box, at),
                              arith::XOrIOp::create(b, at.parity, i32(1)));
  if (op.getBox().getDefiningOp<MailboxOp>().getShared()) {
    // Each block awaits the word, the first one sends it to all.
    warpRoles().emitExpectBytes(*this, fullBarrier(box, at), 4);
    auto leader = scf::IfOp::create(
        b,
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, roles.rank, i32(0)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(leader.thenBlock());
    Value word = arith::AddIOp::create(
        b, box.slots, arith::MulIOp::create(b, at.slot, i32(4)));
    for (int64_t to = 0; to < cluster(); ++to)
      warpRoles().emitClusterStore(*this, value, word, fullBarrier(box, at),
                                   i32(to));
    return;
  }
  memref::StoreOp::create(b, value, shared(b.getI32Type()),
                          ValueRange{wordOf(*this, box, at.slot)});
  warpRoles().emitBarrierArrive(*this, fullBarrier(box, at), Value());
}

void LaneLowering::lower(MailboxTakeOp op) {
  RingValues box = mailboxValues(op.getBox());
  Filling at = filling(op.getNumber(), box.stages);
  warpRoles().emitBarrierWait(*this, fullBarrier(box, at), at.parity);
  Value word = memref::LoadOp::create(b, shared(b.getI32Type()),
                                      ValueRange{wordOf(*this, box, at.slot)});
  if (op.getBox().getDefiningOp<MailboxOp>().getShared())
    emitClusterArrivals(emptyBarrier(box, at));
  else
    warpRoles().emitBarrierArrive(*this, emptyBarrier(box, at), Value());
  if (!roles.alone)
    word = machine.uniform(*this, word);
  set(op.getValue(), {toIndex(word)});
}

void LaneLowering::lower(NextTileOp op) {
  auto take = [&]() -> Value {
    // Nothing is known by a number but the number: fences before and after it
    // would hold up the loads (by 2 % of a launch, docs/tuning.md).
    return LaneArriveOp::create(b, b.getI32Type(),
                                flat(signature.tileCounter()),
                                ValueRange{index(0)}, /*relaxed=*/true);
  };
  if (cluster() > 1) {
    // One thread of the first block takes; the others are told.
    Value leads =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, roles.rank, i32(0));
    if (roles.movers != Movers::Lane)
      leads = arith::AndIOp::create(b, leads, roles.firstOfTeam);
    auto leader = scf::IfOp::create(b, TypeRange{b.getI32Type()}, leads,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(leader.thenBlock());
    scf::YieldOp::create(b, take());
    b.setInsertionPointToStart(leader.elseBlock());
    scf::YieldOp::create(b, i32(0));
    b.setInsertionPointAfter(leader);
    set(op.getTile(), {toIndex(leader.getResult(0))});
    return;
  }
  if (roles.movers == Movers::Lane) {
    set(op.getTile(), {toIndex(take())});
    return;
  }
  // One thread takes, the others of the team read what it took.
  if (!roles.numberWord) {
    roles.numberWord = lds.take(4);
    roles.numberBarrier = barriers.take();
  }
  int64_t threads = schedule.getWarps() * target.waveSize;
  Value words = shared(b.getI32Type());
  {
    OpBuilder::InsertionGuard guard(b);
    auto one =
        scf::IfOp::create(b, roles.firstOfTeam, /*withElseRegion=*/false);
    b.setInsertionPointToStart(one.thenBlock());
    memref::StoreOp::create(b, take(), words,
                            ValueRange{index(*roles.numberWord / 4)});
  }
  machine.namedBarriers()->emitNamedBarrier(*this, i32(roles.numberBarrier),
                                            threads,
                                            /*wait=*/true);
  Value number = memref::LoadOp::create(
      b, words, ValueRange{index(*roles.numberWord / 4)});
  machine.namedBarriers()->emitNamedBarrier(*this, i32(roles.numberBarrier),
                                            threads,
                                            /*wait=*/true);
  set(op.getTile(), {toIndex(number)});
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

LogicalResult LaneLowering::lower(MmaStartOp op) {
  Values acc, results;
  if (op.getAcc())
    acc = get(op.getAcc());
  if (failed(warpRoles().emitMmaStart(*this, op, get(op.getA()),
                                      single(op.getB()), acc, results)))
    return failure();
  set(op.getResult(), results);
  return success();
}

void LaneLowering::lower(MmaWaitOp op) {
  Values values = get(op.getPending());
  warpRoles().emitMmaWait(*this, values, op.getYounger());
  set(op.getAcc(), values);
}

void LaneLowering::lower(TurnWaitOp) {
  if (roles.groups < 2)
    return;
  Value id = arith::AddIOp::create(b, roles.group, i32(roles.turnBarriers));
  machine.namedBarriers()->emitNamedBarrier(*this, id, 2 * roles.groupThreads,
                                            /*wait=*/true);
}

void LaneLowering::lower(TurnPassOp) {
  if (roles.groups < 2)
    return;
  Value next = arith::AddIOp::create(b, roles.group, i32(1));
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                      i32(roles.groups));
  next = arith::SelectOp::create(b, wraps, i32(0), next);
  Value id = arith::AddIOp::create(b, next, i32(roles.turnBarriers));
  machine.namedBarriers()->emitNamedBarrier(*this, id, 2 * roles.groupThreads,
                                            /*wait=*/false);
}
