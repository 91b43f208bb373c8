//===- LaneRings.cpp - What teams pass by barriers --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What every machine with rings shares: where slots and barriers lie in LDS,
/// and which phase of a barrier a filling is. How a barrier is waited for, a
/// tile copied and a product started is the machine's.
///
//===----------------------------------------------------------------------===//

#include "LaneRings.h"
#include "LaneMovement.h"
#include "LaneRingTeams.h"
#include "PackedRows.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

namespace {
/// The slot of a filling and the parity of the slot's phases; i32.
struct Filling {
  Value slot, parity;
};
} // namespace

/// A number that is so many times `rounds`, and `slot` more, which are fewer.
static std::optional<std::pair<Value, int64_t>> roundsOf(Value number,
                                                         int64_t times) {
  int64_t slot = 0;
  if (auto sum = number.getDefiningOp<arith::AddIOp>()) {
    std::optional<int64_t> rest = getConstantIntValue(sum.getRhs());
    if (!rest || *rest < 0 || *rest >= times)
      return std::nullopt;
    slot = *rest;
    number = sum.getLhs();
  }
  auto product = number.getDefiningOp<arith::MulIOp>();
  if (!product || getConstantIntValue(product.getRhs()) != times)
    return std::nullopt;
  return std::pair(product.getLhs(), slot);
}

static Filling filling(LaneContext &lower, Value fill, int64_t stages) {
  ImplicitLocOpBuilder &b = lower.builder();
  // Blocks of a tile whose slots are no power of two: no division tells that
  // they stay the same.
  if (auto rounds = roundsOf(fill, stages)) {
    Value round = lower.toI32(lower.single(rounds->first));
    return {lower.i32(rounds->second),
            arith::AndIOp::create(b, round, lower.i32(1))};
  }
  Value number = lower.toI32(lower.single(fill));
  if (stages == 1)
    return {lower.i32(0), arith::AndIOp::create(b, number, lower.i32(1))};
  Value slot = arith::RemUIOp::create(b, number, lower.i32(stages));
  Value round = arith::DivUIOp::create(b, number, lower.i32(stages));
  return {slot, arith::AndIOp::create(b, round, lower.i32(1))};
}

/// The byte offset of a slot's full or empty barrier.
static Value fullBarrier(LaneContext &lower, const RingValues &ring,
                         const Filling &at) {
  ImplicitLocOpBuilder &b = lower.builder();
  return arith::AddIOp::create(
      b, ring.barriers,
      arith::MulIOp::create(b, at.slot, lower.i32(kBarrierBytes)));
}

static Value emptyBarrier(LaneContext &lower, const RingValues &ring,
                          const Filling &at) {
  ImplicitLocOpBuilder &b = lower.builder();
  return arith::AddIOp::create(b, fullBarrier(lower, ring, at),
                               lower.i32(ring.stages * kBarrierBytes));
}

/// The byte offset of a filling's slot.
static Value slotOf(LaneContext &lower, const RingValues &ring,
                    const Filling &at, KVBufferAttr params) {
  ImplicitLocOpBuilder &b = lower.builder();
  return arith::AddIOp::create(
      b, ring.slots,
      arith::MulIOp::create(b, at.slot, lower.i32(params.getStageBytes())));
}

/// The parity of the phase in which a filling's slot is empty: that before the
/// filling's own, as slots start empty, as if phase -1 had completed.
static Value emptyParity(LaneContext &lower, const Filling &at) {
  return arith::XOrIOp::create(lower.builder(), at.parity, lower.i32(1));
}

static RingValues ringValues(LaneContext &lower, Value ring, int64_t stages) {
  const Values &values = lower.lanesOf(ring);
  return {values[0], values[1], stages};
}

LogicalResult kvbuf::checkRings(LaneContext &lower, Operation *op) {
  auto ring = dyn_cast<RingOp>(op);
  auto box = dyn_cast<MailboxOp>(op);
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  auto cluster = kernel.getKnownClusterSize();
  if ((!cluster || cluster->front() == 1) &&
      ((ring && ring.getShared()) || (box && box.getShared())))
    return op->emitOpError() << "is shared, but the kernel has no clusters; "
                                "expected 'known_cluster_size'";
  if (!lower.hasRings())
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

LogicalResult kvbuf::checkNoRings(LaneContext &lower, Operation *op) {
  if (!lower.hasRings())
    return success();
  return op->emitOpError() << "has no per-lane form beside kvbuffer.ring; "
                              "expected kvbuffer.ring_load";
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

/// Whether a product reads a slot or a view of it.
static bool readByUnit(Value staged) {
  return llvm::any_of(staged.getUsers(), [](Operation *read) {
    auto view = dyn_cast<StagedViewOp>(read);
    return view ? readByUnit(view.getView()) : isa<MmaStartOp>(read);
  });
}

/// The `kvbuffer.teams` that a ring or a mailbox joins; null if nobody uses it.
static TeamsOp teamsOf(TeamChannelInterface channel) {
  for (Operation *user : channel.getChannel().getUsers())
    if (auto teams = user->getParentOfType<TeamsOp>())
      return teams;
  return {};
}

/// What the teams that take from a channel count together; 1 where nobody uses
/// it.
static int64_t sumOfTakers(TeamChannelInterface channel,
                           llvm::function_ref<int64_t(TeamOp team)> countOf) {
  TeamsOp teams = teamsOf(channel);
  int64_t sum = 0;
  for (Attribute name : channel.getTo())
    if (teams)
      sum += countOf(teams.getTeam(cast<FlatSymbolRefAttr>(name).getValue()));
  return std::max<int64_t>(sum, 1);
}

/// Whether lanes read a slot or a view of it, each for itself.
static bool readByLanes(Value staged) {
  return llvm::any_of(staged.getUsers(), [](Operation *read) {
    auto view = dyn_cast<StagedViewOp>(read);
    return view ? readByLanes(view.getView()) : !isa<MmaStartOp>(read);
  });
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, RingOp op) {
  // One thread releases for its group where the group's warps are known to be
  // done; else each warp does, as those of a team that is no whole groups: a
  // warp that came late would wait for a phase that is over and, by its parity,
  // take it for the next but one.
  bool byWarps = false;
  for (Operation *user : op.getRing().getUsers()) {
    if (auto wait = dyn_cast<RingWaitOp>(user))
      byWarps |= !readByProducts(wait.getStaged());
    if (auto release = dyn_cast<RingReleaseOp>(user))
      byWarps |= !followsProduct(release);
  }
  if (byWarps)
    ringsOf(lower).releasedByWarps.insert(op.getRing());
  int64_t group = lower.chip().warpsPerMatrixGroup();
  int64_t releases = sumOfTakers(op, [&](TeamOp team) {
    int64_t warps = team.getWarps();
    return byWarps || !team.isWholeGroups(group) ? warps : warps / group;
  });
  if (op.getShared())
    releases *= lower.cluster();
  int64_t stages = op.getRing().getType().getParams().getStages();
  int64_t fills = 1;
  RingLoadOp first;
  for (Operation *user : op.getRing().getUsers()) {
    if (auto load = dyn_cast<RingLoadOp>(user)) {
      int64_t warps = lower.warpsOfSlot(load);
      if (first && warps != fills) {
        InFlightDiagnostic diag =
            load.emitOpError()
            << "is the work of " << warps << (warps == 1 ? " warp" : " warps")
            << ", another load into the ring that of " << fills
            << ", and as many arrive for each filling; expected tiles that "
               "come alike";
        diag.attachNote(first.getLoc()) << "the other load is here";
        return diag;
      }
      fills = warps;
      first = load;
    }
    if (isa<RingPutOp>(user))
      fills = int64_t(user->getParentOfType<TeamOp>().getWarps());
  }
  lower.setLanes(op.getRing(),
                 {lower.single(op.getBuffer()),
                  lower.i32(lower.addPhaseBarriers(stages, releases, fills))});
  ringsOf(lower).firstSlots[op.getRing()] = ringsOf(lower).nextSlot;
  ringsOf(lower).nextSlot += stages;
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, RingLoadOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  if (!lower.tileOf(op.getTile()).box.tensor)
    return op.emitOpError() << "expected a tile that kvbuffer.cache_tile or "
                               "kvbuffer.dram_tile makes";
  if (op.isAhead() &&
      !((packedRowOf(op.getTile()) || op.getTile().getType().getPageSize()) &&
        lower.chip().has(CopyEngine::Boxes)))
    return op.emitOpError() << "runs ahead of its slot; expected packed rows "
                               "or pages that lanes "
                               "copy, and a chip that copies boxes";
  KVBufferAttr params = op.getRing().getType().getParams();
  RingValues ring = ringValues(lower, op.getRing(), params.getStages());
  Filling to = filling(lower, op.getFill(), params.getStages());
  Value slot = slotOf(lower, ring, to, params);
  Value parity = emptyParity(lower, to);
  TileView tile = sourceOf(lower, op.getTile(), params,
                           int64_t(op.getFirstCol()) / params.getBK());
  OpBuilder::InsertionGuard guard(b);
  // A slot is always filled by the same warps, which so see each of its phases,
  // and neighbouring slots by different ones: every instruction of a warp that
  // moves takes a turn from those that share its scheduler.
  if (int64_t together = lower.warpsOfSlot(op);
      ringsOf(lower).movers != Movers::Lane &&
      together < int64_t(lower.ownSchedule().getWarps())) {
    Value number = arith::AddIOp::create(
        b, to.slot, lower.i32(ringsOf(lower).firstSlots.lookup(op.getRing())));
    Value filler = arith::RemUIOp::create(
        b, number, lower.i32(lower.ownSchedule().getWarps() / together));
    Value part =
        arith::DivUIOp::create(b, lower.ownWarp(), lower.i32(together));
    lower.enter(
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part, filler));
  }
  return lower.fillSlot(op, tile, slot, fullBarrier(lower, ring, to),
                        emptyBarrier(lower, ring, to), parity);
}

/// Whether no lane, but an engine or a matrix unit, reads what lanes put into a
/// ring, somewhere.
static bool isReadByUnits(Value ring) {
  return llvm::any_of(ring.getUsers(), [](Operation *user) {
    auto wait = dyn_cast<RingWaitOp>(user);
    return wait && readByUnit(wait.getStaged());
  });
}

/// The next put into the same ring, if nothing in between has an effect and it
/// is known here which filling that is: its slot is awaited behind this one.
/// What is computed for it then stays behind the arrival of this one, where the
/// assembler would move it in front, and who waits for this one would wait for
/// that, too.
static RingPutOp nextPut(RingPutOp op) {
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    auto put = dyn_cast<RingPutOp>(next);
    if (!put && isMemoryEffectFree(next))
      continue;
    Operation *of = put ? put.getFill().getDefiningOp() : nullptr;
    bool isKnown = put && (!of || of->getBlock() != op->getBlock() ||
                           of->isBeforeInBlock(op));
    return isKnown && put.getRing() == op.getRing() ? put : RingPutOp();
  }
  return {};
}

/// Whether the put before has awaited the slot of this one.
static bool isAwaitedBefore(RingPutOp op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (auto put = dyn_cast<RingPutOp>(before))
      return nextPut(put) == op;
  return false;
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, RingPutOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  KVBufferAttr params = op.getRing().getType().getParams();
  RingValues ring = ringValues(lower, op.getRing(), params.getStages());
  auto await = [&](Value fill) {
    Filling to = filling(lower, fill, params.getStages());
    lower.awaitPhase(emptyBarrier(lower, ring, to), emptyParity(lower, to));
  };
  Filling to = filling(lower, op.getFill(), params.getStages());
  Value slot = slotOf(lower, ring, to, params);
  if (!isAwaitedBefore(op))
    await(op.getFill());
  if (failed(lower.putFragment(op, lower.lanesOf(op.getFragment()), slot)))
    return failure();
  // Each lane makes its own writes visible; then all of the warp have.
  if (isReadByUnits(op.getRing()))
    lower.publish();
  lower.meetInWarp();
  Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      lower.laneInWarp(), lower.i32(0));
  lower.arriveAt(fullBarrier(lower, ring, to), first);
  if (RingPutOp next = nextPut(op))
    await(next.getFill());
  return success();
}

/// Whether lanes read operand a of products of groups, of all rows of a slot:
/// each group those that its products have.
static bool isOperandA(FragmentLoadOp load) {
  FragmentType type = load.getFragment().getType();
  auto mma = dyn_cast_or_null<MmaLayoutAttr>(type.getLayout());
  return type.getRole() == Role::A && mma && warpsTogether(mma.getUnit()) > 1 &&
         mma.getWarpCols() == 1 && load.getRow() == 0 &&
         type.getRows() == load.getStaged().getType().getRows();
}

/// What reads a slot, or a view of it, not as the rows of a product: whoever
/// does so reads rows that other groups multiply; null where nothing does.
static Operation *readerOfOtherRows(Value staged) {
  for (OpOperand &use : staged.getUses()) {
    Operation *reader = use.getOwner();
    if (auto view = dyn_cast<StagedViewOp>(reader)) {
      if (Operation *found = readerOfOtherRows(view.getView()))
        return found;
      continue;
    }
    if (auto load = dyn_cast<FragmentLoadOp>(reader); load && isOperandA(load))
      continue;
    auto start = dyn_cast<MmaStartOp>(reader);
    if (!start || &use != &start.getAMutable() || start.getB() == staged)
      return reader;
  }
  return nullptr;
}

/// Checks that a slot which is multiplied where it lies is multiplied once, and
/// read by the groups that multiply it.
static LogicalResult checkScaled(RingWaitOp op) {
  ArrayAttr takers = op.getRing().getDefiningOp<TeamChannelInterface>().getTo();
  if (takers.size() > 1)
    return op.emitOpError() << "multiplies a slot that " << takers.size()
                            << " teams await, which each would multiply; "
                               "expected a ring to one team";
  for (Operation *loop = op->getParentOp(); !isa<TeamOp>(loop);
       loop = loop->getParentOp())
    if (auto of = dyn_cast<LoopLikeOpInterface>(loop);
        of && of.isDefinedOutsideOfLoop(op.getFill()))
      return op.emitOpError()
             << "multiplies the same filling in each iteration of a loop; "
                "expected it in front of the loop";
  for (Operation *user : op.getRing().getUsers())
    if (auto wait = dyn_cast<RingWaitOp>(user);
        wait && wait != op && wait.getFill() == op.getFill()) {
      InFlightDiagnostic diag =
          op.emitOpError() << "multiplies a filling that is awaited twice; "
                              "expected one kvbuffer.ring_wait for it";
      diag.attachNote(wait.getLoc()) << "it is awaited here, too";
      return diag;
    }
  if (Operation *reader = readerOfOtherRows(op.getStaged())) {
    InFlightDiagnostic diag =
        op.emitOpError() << "multiplies a slot, of which each group of warps "
                            "multiplies the rows that its products have; "
                            "expected it as operand a of products alone";
    diag.attachNote(reader->getLoc()) << "it is read otherwise here";
    return diag;
  }
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, RingWaitOp op) {
  auto by = op->getAttrOfType<FloatAttr>(kScaledByAttr);
  if (by && failed(checkScaled(op)))
    return failure();
  KVBufferAttr params = op.getRing().getType().getParams();
  RingValues ring = ringValues(lower, op.getRing(), params.getStages());
  Filling at = filling(lower, op.getFill(), params.getStages());
  lower.awaitPhase(fullBarrier(lower, ring, at), at.parity);
  Value slot = slotOf(lower, ring, at, params);
  lower.setLanes(op.getStaged(), {slot});
  return by ? lower.scaleOperand(op, slot, float(by.getValueAsDouble()))
            : success();
}

/// What is always true, but known only when the maxima of the softmax before a
/// release are, where a wait for a product follows the release. The assembler
/// leaves a wait behind an arrival, and else moves it up among the comparisons
/// that the product was to run beside. Null elsewhere.
static Value whenMaximaAreThere(LaneContext &lower, RingReleaseOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Operation *next = op->getNextNode();
  while (isa_and_nonnull<RingReleaseOp>(next))
    next = next->getNextNode();
  Operation *before = op->getPrevNode();
  while (before && !isa<OnlineSoftmaxOp, MmaWaitOp, MmaStartOp>(before))
    before = before->getPrevNode();
  auto softmax = dyn_cast_or_null<OnlineSoftmaxOp>(before);
  if (!softmax || !isa_and_nonnull<MmaWaitOp>(next))
    return nullptr;
  // A signalling NaN, which arithmetic does not make.
  constexpr int64_t none = 0x7F812345;
  Value always;
  for (Value max : lower.lanesOf(softmax.getNewMax())) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), max);
    Value is = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits,
                                     lower.i32(none));
    always = always ? arith::AndIOp::create(b, always, is) : is;
  }
  return always;
}

/// One lane of a warp, or of a group where `byWarps` is not set, releases for
/// each block of the cluster where `shared`, else one for the own; `when` it is
/// known, if not null.
static void emitRelease(LaneContext &lower, Value barrier, bool byWarps,
                        bool shared, Value when) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto known = [&](Value arrives) -> Value {
    return when ? arith::AndIOp::create(b, arrives, when) : arrives;
  };
  if (!shared) {
    Value arrives = ringsOf(lower).firstOfGroup;
    if (byWarps)
      arrives = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      lower.laneInWarp(), lower.i32(0));
    lower.arriveAt(barrier, known(arrives));
    return;
  }
  // Lane r of the group's first warp, or of each warp, arrives at block r.
  Value arrives = ringsOf(lower).arrivesInCluster;
  if (byWarps)
    arrives =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lower.laneInWarp(),
                              lower.i32(lower.cluster()));
  lower.arriveInCluster(barrier, lower.laneInWarp(), known(arrives));
}

void kvbuf::lowerOp(LaneContext &lower, RingReleaseOp op) {
  RingValues ring = ringValues(lower, op.getRing(),
                               op.getRing().getType().getParams().getStages());
  Filling at = filling(lower, op.getFill(), ring.stages);
  bool byWarps = !ringsOf(lower).group ||
                 ringsOf(lower).releasedByWarps.contains(op.getRing());
  // The lane that arrives for its warp has not read what the others have, nor
  // does `ldmatrix`, which takes all lanes, order their reads before it.
  auto team = op->getParentOfType<TeamOp>();
  // What a group reads by `ldmatrix`, which products do not: all but what is
  // widened, and words.
  Type element = op.getRing().getType().getParams().getElementType();
  bool readAlone =
      !ringsOf(lower).group || element.getIntOrFloatBitWidth() != 16;
  // What was put right before was read from here, and is fenced.
  auto put = dyn_cast_or_null<RingPutOp>(op->getPrevNode());
  auto load = put ? put.getFragment().getDefiningOp<FragmentLoadOp>()
                  : FragmentLoadOp();
  auto filled =
      load ? load.getStaged().getDefiningOp<RingWaitOp>() : RingWaitOp();
  bool isFenced = filled && filled.getRing() == op.getRing() &&
                  filled.getFill() == op.getFill() &&
                  load->getBlock() == op->getBlock() &&
                  isReadByUnits(put.getRing());
  if (!isFenced && llvm::any_of(op.getRing().getUsers(), [&](Operation *user) {
        auto wait = dyn_cast<RingWaitOp>(user);
        return wait && wait->getParentOfType<TeamOp>() == team &&
               readByLanes(wait.getStaged());
      })) {
    // An engine that fills the slot anew may be ahead of reads that lanes have
    // asked for: on an H200, tiles that lanes widened were wrong in every run
    // of 999 rows on 1501 keys without this fence of each lane, and right with
    // it.
    if (readAlone &&
        llvm::any_of(op.getRing().getUsers(), llvm::IsaPred<RingLoadOp>))
      lower.publish();
    lower.meetInWarp();
  }
  emitRelease(lower, emptyBarrier(lower, ring, at), byWarps,
              op.getRing().getDefiningOp<RingOp>().getShared(),
              whenMaximaAreThere(lower, op));
}

//===----------------------------------------------------------------------===//
// Mailboxes and counters
//===----------------------------------------------------------------------===//

void kvbuf::lowerOp(LaneContext &lower, MailboxOp op) {
  // Every lane reads by itself, so every lane releases: one that releases for
  // its warp would need the others' reads ordered before it. Of a shared box
  // the team that posts reads, too, and those of all blocks.
  int64_t slots = op.getSlots();
  int64_t releases = sumOfTakers(op, [&](TeamOp team) {
    return int64_t(team.getWarps()) * int64_t(lower.chip().waveSize);
  });
  if (op.getShared()) {
    int64_t movers = 0;
    for (Operation *user : op.getBox().getUsers())
      if (auto team = user->getParentOfType<TeamOp>();
          team && team.isMover() && isa<MailboxTakeOp>(user))
        movers = moverThreads(lower, team);
    releases = (releases + movers) * lower.cluster();
  }
  int64_t barriers = lower.addPhaseBarriers(slots, releases);
  int64_t words = lower.takeBesideBarriers(4 * slots);
  lower.setLanes(op.getBox(), {lower.i32(words), lower.i32(barriers)});
}

static RingValues mailboxValues(LaneContext &lower, Value box) {
  return ringValues(lower, box, box.getDefiningOp<MailboxOp>().getSlots());
}

/// The index of a mailbox's number among the 32-bit words of LDS.
static Value wordOf(LaneContext &lower, const RingValues &box, Value slot) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value byte = arith::AddIOp::create(
      b, box.slots, arith::MulIOp::create(b, slot, lower.i32(4)));
  return lower.toIndex(arith::ShRUIOp::create(b, byte, lower.i32(2)));
}

void kvbuf::lowerOp(LaneContext &lower, MailboxPostOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  RingValues box = mailboxValues(lower, op.getBox());
  Value value = lower.toI32(lower.single(op.getValue()));
  OpBuilder::InsertionGuard guard(b);
  if (ringsOf(lower).movers != Movers::Lane)
    lower.enter(ringsOf(lower).firstOfTeam);
  Filling at = filling(lower, op.getNumber(), box.stages);
  lower.awaitPhase(emptyBarrier(lower, box, at),
                   arith::XOrIOp::create(b, at.parity, lower.i32(1)));
  if (op.getBox().getDefiningOp<MailboxOp>().getShared()) {
    // Each block awaits the word, the first one sends it to all.
    lower.expectBytes(fullBarrier(lower, box, at), 4);
    auto leader = scf::IfOp::create(
        b,
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, ringsOf(lower).rank,
                              lower.i32(0)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(leader.thenBlock());
    Value word = arith::AddIOp::create(
        b, box.slots, arith::MulIOp::create(b, at.slot, lower.i32(4)));
    for (int64_t to = 0; to < lower.cluster(); ++to)
      lower.storeInCluster(value, word, fullBarrier(lower, box, at),
                           lower.i32(to));
    return;
  }
  memref::StoreOp::create(b, value, lower.shared(b.getI32Type()),
                          ValueRange{wordOf(lower, box, at.slot)});
  lower.arriveAt(fullBarrier(lower, box, at), Value());
}

void kvbuf::lowerOp(LaneContext &lower, MailboxTakeOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  RingValues box = mailboxValues(lower, op.getBox());
  Filling at = filling(lower, op.getNumber(), box.stages);
  lower.awaitPhase(fullBarrier(lower, box, at), at.parity);
  Value word = memref::LoadOp::create(b, lower.shared(b.getI32Type()),
                                      ValueRange{wordOf(lower, box, at.slot)});
  if (op.getBox().getDefiningOp<MailboxOp>().getShared())
    emitClusterArrivals(lower, emptyBarrier(lower, box, at));
  else
    lower.arriveAt(emptyBarrier(lower, box, at), Value());
  if (!lower.isAlone())
    word = lower.uniform(word);
  lower.setLanes(op.getValue(), {lower.toIndex(word)});
}

void kvbuf::lowerOp(LaneContext &lower, NextTileOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto take = [&]() -> Value {
    // Nothing is known by a number but the number: fences before and after it
    // would hold up the loads (by 2 % of a launch, docs/tuning.md).
    return LaneArriveOp::create(b, b.getI32Type(),
                                lower.flat(lower.tileCounter()),
                                ValueRange{lower.index(0)}, /*relaxed=*/true);
  };
  if (lower.cluster() > 1) {
    // One thread of the first block takes; the others are told.
    Value leads = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        ringsOf(lower).rank, lower.i32(0));
    if (ringsOf(lower).movers != Movers::Lane)
      leads = arith::AndIOp::create(b, leads, ringsOf(lower).firstOfTeam);
    auto leader = scf::IfOp::create(b, TypeRange{b.getI32Type()}, leads,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(leader.thenBlock());
    scf::YieldOp::create(b, take());
    b.setInsertionPointToStart(leader.elseBlock());
    scf::YieldOp::create(b, lower.i32(0));
    b.setInsertionPointAfter(leader);
    lower.setLanes(op.getTile(), {lower.toIndex(leader.getResult(0))});
    return;
  }
  if (ringsOf(lower).movers == Movers::Lane) {
    lower.setLanes(op.getTile(), {lower.toIndex(take())});
    return;
  }
  // One thread takes, the others of the team read what it took.
  if (!ringsOf(lower).numberWord) {
    ringsOf(lower).numberWord = lower.takeLds(4);
    ringsOf(lower).numberBarrier = lower.takeNamedBarriers();
  }
  int64_t threads = moverThreads(lower, op->getParentOfType<TeamOp>());
  Value words = lower.shared(b.getI32Type());
  {
    OpBuilder::InsertionGuard guard(b);
    auto one = scf::IfOp::create(b, ringsOf(lower).firstOfTeam,
                                 /*withElseRegion=*/false);
    b.setInsertionPointToStart(one.thenBlock());
    memref::StoreOp::create(
        b, take(), words,
        ValueRange{lower.index(*ringsOf(lower).numberWord / 4)});
  }
  lower.meetAt(lower.i32(ringsOf(lower).numberBarrier), threads,
               /*wait=*/true);
  Value number = memref::LoadOp::create(
      b, words, ValueRange{lower.index(*ringsOf(lower).numberWord / 4)});
  lower.meetAt(lower.i32(ringsOf(lower).numberBarrier), threads,
               /*wait=*/true);
  lower.setLanes(op.getTile(), {lower.toIndex(number)});
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::lowerOp(LaneContext &lower, MmaStartOp op) {
  Values acc, results;
  if (op.getAcc())
    acc = lower.lanesOf(op.getAcc());
  if (failed(lower.startProduct(op, lower.lanesOf(op.getA()),
                                lower.single(op.getB()), acc, results)))
    return failure();
  lower.setLanes(op.getResult(), results);
  return success();
}

void kvbuf::lowerOp(LaneContext &lower, MmaWaitOp op) {
  Values values = lower.lanesOf(op.getPending());
  // Registers that another product goes on with stay in flight.
  if (op.getAcc().use_empty()) {
    Values none;
    lower.awaitProducts(none, op.getYounger());
  } else {
    lower.awaitProducts(values, op.getYounger());
  }
  lower.setLanes(op.getAcc(), values);
}

void kvbuf::lowerOp(LaneContext &lower, TurnWaitOp) {
  ImplicitLocOpBuilder &b = lower.builder();
  if (ringsOf(lower).groups < 2)
    return;
  Value id = arith::AddIOp::create(b, ringsOf(lower).group,
                                   lower.i32(ringsOf(lower).turnBarriers));
  lower.meetAt(id, 2 * ringsOf(lower).groupThreads,
               /*wait=*/true);
}

void kvbuf::lowerOp(LaneContext &lower, TurnPassOp) {
  ImplicitLocOpBuilder &b = lower.builder();
  if (ringsOf(lower).groups < 2)
    return;
  Value next = arith::AddIOp::create(b, ringsOf(lower).group, lower.i32(1));
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                      lower.i32(ringsOf(lower).groups));
  next = arith::SelectOp::create(b, wraps, lower.i32(0), next);
  Value id =
      arith::AddIOp::create(b, next, lower.i32(ringsOf(lower).turnBarriers));
  lower.meetAt(id, 2 * ringsOf(lower).groupThreads,
               /*wait=*/false);
}
