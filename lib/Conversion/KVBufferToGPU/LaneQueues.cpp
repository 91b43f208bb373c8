//===- LaneQueues.cpp - Fragments between teams, through LDS ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All teams of a queue or a shelf have the same warps and rows, so that a lane
/// of one holds what the lane of the same number of another needs. An entry is
/// the words of every lane, up to four of them side by side: accesses of 16
/// bytes by neighbouring lanes, which no bank sees twice.
///
/// Where a block has several barriers, each pair of a team that takes and a
/// slot has two of them: *full*, at which the team that puts arrives and the
/// other waits, and *empty*, the other way round. Slots are empty to begin
/// with: a team that takes arrives once for each of them when it starts. The
/// team that puts waits once more for each of them before it ends, so that no
/// arrival is left over for a program that comes this way again.
///
/// Beside rings of a block that has one barrier, each slot has two barriers in
/// LDS as a ring's slots do: warps arrive at them, and wait for phases.
///
/// Where a block has one barrier, all teams meet there at each entry: after the
/// put, before the take. With two slots or more, the next entry but one is put
/// after the next meeting, at which this one has been read.
///
//===----------------------------------------------------------------------===//

#include "LaneQueues.h"
#include "LaneRingTeams.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TradedShelves.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Those of the kernel that is being lowered.
static LaneQueues &queuesOf(LaneContext &lower) {
  return lower.ofKernel<LaneQueues>();
}

/// Words that a lane moves at once.
static constexpr int64_t kWordsAtOnce = 4;

/// Words of 32 bits of a lane's value.
static int64_t wordsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 32
                : 1;
}

/// Lays out entries of fragments of `types`, spread as team `like` spreads
/// them, from the first free byte of LDS on; errors at `op`.
static LogicalResult layOut(LaneContext &lower, Operation *op,
                            LaneEntries &entries, ArrayRef<Type> types,
                            TeamOp like) {
  entries.threads = int64_t(like.getWarps()) * lower.chip().waveSize;
  ScheduleAttr its = like.getSchedule(lower.scheduleOfBlock());
  SmallVector<Type> lanes;
  for (Type type : types)
    lower.laneTypes(type, lanes);
  for (Type type : types)
    if (int64_t rows = cast<FragmentType>(type).getRows(); rows != its.getBM())
      return op->emitOpError()
             << "carries fragments of " << rows << " rows; expected "
             << its.getBM() << ", those of team @" << like.getSymName();
  for (Type type : lanes) {
    int64_t bits = wordsOf(type) * 32;
    if (auto vector = dyn_cast<VectorType>(type);
        vector &&
        bits != vector.getNumElements() * vector.getElementTypeBitWidth())
      return op->emitOpError() << "carries " << type
                               << " of each lane; expected words of 32 bits";
    entries.words += wordsOf(type);
  }
  entries.offset = lower.takeLds(entries.slots * entries.bytes());
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, QueueOp op) {
  LaneQueue &queue = queuesOf(lower).queues[op.getQueue()];
  queue.slots = op.getSlots();
  queue.takers = op.getTo().size();
  TeamsOp teams;
  for (Operation *user : op.getQueue().getUsers())
    teams = user->getParentOfType<TeamsOp>();
  // Nobody uses it.
  if (!teams)
    return success();
  if (failed(layOut(lower, op, queue, op.getQueue().getType().getTypes(),
                    teams.getTeam(op.getFrom()))))
    return failure();
  if (lower.chip().namedBarriers > 1) {
    queue.barriers = lower.takeNamedBarriers(2 * queue.slots * queue.takers);
    if (lower.namedBarriersTaken() <= lower.chip().namedBarriers)
      return success();
    return op.emitOpError()
           << "needs " << lower.namedBarriersTaken()
           << " named barriers, two for each slot and team "
              "that takes; a block of "
           << lower.chip().chip << " has " << lower.chip().namedBarriers;
  }
  if (lower.hasRings()) {
    int64_t warps = teams.getTeam(op.getFrom()).getWarps();
    queue.phases =
        lower.addPhaseBarriers(queue.slots, queue.takers * warps, warps);
    return success();
  }
  int64_t members = 1 + queue.takers;
  if (queue.slots >= 2 && teams.getQueues().size() == 1 &&
      members == int64_t(llvm::range_size(teams.getBody().getOps<TeamOp>())))
    return success();
  return op.emitOpError()
         << "has teams that meet at the block's barrier, as a block of "
         << lower.chip().chip
         << " has no other; expected slots(2) or more, and no other team and "
            "no other queue beside it";
}

/// Calls `access(first word, count, byte offset in the entry)` for the words of
/// a lane that move together.
static void forEachPiece(
    LaneContext &lower, int64_t words, int64_t threads,
    function_ref<void(int64_t first, int64_t count, Value offset)> access) {
  ImplicitLocOpBuilder &b = lower.builder();
  for (int64_t first = 0; first < words;) {
    int64_t count =
        llvm::bit_floor(uint64_t(std::min(kWordsAtOnce, words - first)));
    Value lane =
        arith::MulIOp::create(b, lower.ownThread(), lower.i32(4 * count));
    access(first, count,
           arith::AddIOp::create(b, lane, lower.i32(4 * first * threads)));
    first += count;
  }
}

/// The slot of entry `number`, i32.
static Value slotOf(LaneContext &lower, const LaneQueue &queue, Value number) {
  ImplicitLocOpBuilder &b = lower.builder();
  if (queue.slots == 1)
    return lower.i32(0);
  return arith::RemUIOp::create(b, lower.toI32(lower.single(number)),
                                lower.i32(queue.slots));
}

/// The byte offset of a slot's barrier in LDS.
static Value phaseBarrier(LaneContext &lower, const LaneQueue &queue,
                          Value slot, bool full) {
  ImplicitLocOpBuilder &b = lower.builder();
  return arith::AddIOp::create(
      b, lower.i32(*queue.phases + (full ? 0 : queue.slots * kBarrierBytes)),
      arith::MulIOp::create(b, slot, lower.i32(kBarrierBytes)));
}

/// Arrives at a slot's barrier, or waits there.
static void meetAt(LaneContext &lower, const LaneQueue &queue, int64_t taker,
                   Value slot, bool full, bool wait) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value id = arith::AddIOp::create(
      b, arith::MulIOp::create(b, slot, lower.i32(2)),
      lower.i32(queue.barriers + 2 * queue.slots * taker + !full));
  lower.meetAt(id, 2 * queue.threads, wait);
}

/// Waits for the phase of entry `number` at its slot's barrier in LDS.
static void awaitPhase(LaneContext &lower, const LaneQueue &queue, Value number,
                       bool full) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value entry = lower.toI32(lower.single(number));
  Value parity = arith::AndIOp::create(
      b, arith::DivUIOp::create(b, entry, lower.i32(queue.slots)),
      lower.i32(1));
  // Slots start empty, as if a phase before the first had completed.
  if (!full)
    parity = arith::XOrIOp::create(b, parity, lower.i32(1));
  lower.awaitPhase(
      phaseBarrier(lower, queue, slotOf(lower, queue, number), full), parity);
}

/// Arrives there, once a warp, when its lanes have done.
static void arriveAtPhase(LaneContext &lower, const LaneQueue &queue,
                          Value slot, bool full) {
  ImplicitLocOpBuilder &b = lower.builder();
  lower.meetInWarp();
  lower.arriveAt(phaseBarrier(lower, queue, slot, full),
                 arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       lower.laneInWarp(), lower.i32(0)));
}

/// A lane's values of fragments as words.
static Values wordsOf(LaneContext &lower, ValueRange fragments) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values words;
  for (Value fragment : fragments)
    for (Value value : lower.lanesOf(fragment)) {
      auto vector = dyn_cast<VectorType>(value.getType());
      if (!vector) {
        words.push_back(arith::BitcastOp::create(b, b.getI32Type(), value));
        continue;
      }
      int64_t count = wordsOf(vector);
      Value cast = vector::BitCastOp::create(
          b, VectorType::get({count}, b.getI32Type()), value);
      for (int64_t i = 0; i < count; ++i)
        words.push_back(
            vector::ExtractOp::create(b, cast, ArrayRef<int64_t>{i}));
    }
  return words;
}

/// Stores a lane's values of fragments.
static void storeEntry(LaneContext &lower, const LaneEntries &entries,
                       Value slot, ValueRange fragments) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values words = wordsOf(lower, fragments);
  Value base = arith::AddIOp::create(
      b, lower.i32(entries.offset),
      arith::MulIOp::create(b, slot, lower.i32(entries.bytes())));
  Value lds = lower.shared(b.getI32Type());
  forEachPiece(lower, entries.words, entries.threads,
               [&](int64_t first, int64_t count, Value offset) {
                 auto type = VectorType::get({count}, b.getI32Type());
                 Value piece = vector::FromElementsOp::create(
                     b, type, ValueRange(words).slice(first, count));
                 vector::StoreOp::create(
                     b, piece, lds, ValueRange{lower.wordIndex(base, offset)},
                     /*nontemporal=*/false, llvm::Align(4 * count));
               });
}

/// Loads them as words.
static Values loadEntry(LaneContext &lower, const LaneEntries &entries,
                        Value slot) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value base = arith::AddIOp::create(
      b, lower.i32(entries.offset),
      arith::MulIOp::create(b, slot, lower.i32(entries.bytes())));
  Value lds = lower.shared(b.getI32Type());
  Values words;
  forEachPiece(lower, entries.words, entries.threads,
               [&](int64_t first, int64_t count, Value offset) {
                 auto type = VectorType::get({count}, b.getI32Type());
                 Value piece = vector::LoadOp::create(
                     b, type, lds, ValueRange{lower.wordIndex(base, offset)},
                     /*nontemporal=*/false, llvm::Align(4 * count));
                 for (int64_t i = 0; i < count; ++i)
                   words.push_back(vector::ExtractOp::create(
                       b, piece, ArrayRef<int64_t>{i}));
               });
  return words;
}

/// Sets fragments to the words of an entry.
static void setEntry(LaneContext &lower, ValueRange fragments,
                     ArrayRef<Value> words) {
  ImplicitLocOpBuilder &b = lower.builder();
  for (Value fragment : fragments) {
    SmallVector<Type> types;
    lower.laneTypes(fragment.getType(), types);
    Values lanes;
    for (Type type : types) {
      int64_t count = wordsOf(type);
      ArrayRef<Value> its = words.take_front(count);
      words = words.drop_front(count);
      if (!isa<VectorType>(type)) {
        lanes.push_back(arith::BitcastOp::create(b, type, its.front()));
        continue;
      }
      Value joined = vector::FromElementsOp::create(
          b, VectorType::get({count}, b.getI32Type()), its);
      lanes.push_back(vector::BitCastOp::create(b, type, joined));
    }
    lower.setLanes(fragment, lanes);
  }
}

void kvbuf::lowerOp(LaneContext &lower, QueuePutOp op) {
  const LaneQueue &queue = queuesOf(lower).queues[op.getQueue()];
  Value slot = slotOf(lower, queue, op.getNumber());
  if (queue.barriers)
    for (int64_t taker = 0; taker < queue.takers; ++taker)
      meetAt(lower, queue, taker, slot, /*full=*/false, /*wait=*/true);
  if (queue.phases)
    awaitPhase(lower, queue, op.getNumber(), /*full=*/false);
  storeEntry(lower, queue, slot, op.getValues());
  if (queue.phases)
    return arriveAtPhase(lower, queue, slot, /*full=*/true);
  if (!queue.barriers)
    return lower.meetBlock();
  for (int64_t taker = 0; taker < queue.takers; ++taker)
    meetAt(lower, queue, taker, slot, /*full=*/true, /*wait=*/false);
}

void kvbuf::lowerOp(LaneContext &lower, QueueTakeOp op) {
  const LaneQueue &queue = queuesOf(lower).queues[op.getQueue()];
  Value slot = slotOf(lower, queue, op.getNumber());
  int64_t taker = op.getQueue().getDefiningOp<QueueOp>().getTaker(
      lower.ownTeam().getSymName());
  if (queue.barriers)
    meetAt(lower, queue, taker, slot, /*full=*/true, /*wait=*/true);
  else if (queue.phases)
    awaitPhase(lower, queue, op.getNumber(), /*full=*/true);
  else
    lower.meetBlock();
  Values words = loadEntry(lower, queue, slot);
  if (queue.phases)
    arriveAtPhase(lower, queue, slot, /*full=*/false);
  if (queue.barriers)
    meetAt(lower, queue, taker, slot, /*full=*/false, /*wait=*/false);
  setEntry(lower, op.getValues(), words);
}

void kvbuf::openQueues(LaneContext &lower, TeamsOp teams, TeamOp team) {
  for (QueueOp op : teams.getQueues())
    if (int64_t taker = op.getTaker(team.getSymName()); taker >= 0)
      if (const LaneQueue &queue = queuesOf(lower).queues[op.getQueue()];
          queue.barriers)
        for (int64_t slot = 0; slot < queue.slots; ++slot)
          meetAt(lower, queue, taker, lower.i32(slot), /*full=*/false,
                 /*wait=*/false);
}

void kvbuf::closeQueues(LaneContext &lower, TeamsOp teams, TeamOp team) {
  for (QueueOp op : teams.getQueues()) {
    const LaneQueue &queue = queuesOf(lower).queues[op.getQueue()];
    if (op.getFrom() == team.getSymName() && queue.barriers)
      for (int64_t taker = 0; taker < queue.takers; ++taker)
        for (int64_t slot = 0; slot < queue.slots; ++slot)
          meetAt(lower, queue, taker, lower.i32(slot), /*full=*/false,
                 /*wait=*/true);
  }
}

//===----------------------------------------------------------------------===//
// Shelves
//===----------------------------------------------------------------------===//

/// Whether a value stands for a buffer, or for what lies in one.
static bool isOfBuffer(Value value) {
  return isa<BufferType, TokenType, StagedType, RingType>(value.getType());
}

/// Whether a shelf may lie over the kernel's buffers: they belong to the team
/// that puts into it, alone in its `kvbuffer.teams`, which has done with them
/// before the first put. All warps meet there, and again before what is put is
/// got.
static bool liesOverBuffers(ShelfOp op) {
  TeamOp team;
  if (op->hasAttr(kTradedAttr) || op->hasAttr(kParkedAttr))
    return false;
  for (Operation *user : op.getShelf().getUsers())
    if (isa<ShelfPutOp>(user)) {
      auto its = dyn_cast<TeamOp>(user->getParentOp());
      if (!its || (team && team != its))
        return false;
      team = its;
    }
  if (!team || !llvm::hasSingleElement(team->getBlock()->getOps<TeamOp>()))
    return false;
  for (Operation *user : op.getShelf().getUsers())
    if (!isa<ShelfPutOp>(user) && team->isAncestor(user))
      return false;
  auto touches = [](Operation *user) {
    return llvm::any_of(user->getOperands(), isOfBuffer) ||
           llvm::any_of(user->getResults(), isOfBuffer);
  };
  Block &body = team.getBody().front();
  auto firstPut = *body.getOps<ShelfPutOp>().begin();
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  return !kernel
              .walk([&](Operation *user) -> WalkResult {
                if (!touches(user))
                  return WalkResult::advance();
                Operation *at = body.findAncestorOpInBlock(*user);
                return at && at->isBeforeInBlock(firstPut)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Lays out a shelf over the buffers, from the first one's first byte on; gives
/// the warps of the teams that use it, which say by kvbuffer.ring when they
/// have done with a buffer.
static FailureOr<int64_t> layOverBuffers(LaneContext &lower, ShelfOp op,
                                         LaneEntries &shelf) {
  if (!lower.hasRings())
    return op.emitOpError() << "has no per-lane form in a kernel without "
                               "kvbuffer.ring, whose teams know their block";
  llvm::SmallSetVector<TeamOp, 2> teams;
  for (Operation *user : op.getShelf().getUsers())
    teams.insert(user->getParentOfType<TeamOp>());
  int64_t warps = 0, taken = lower.ldsBytes();
  for (TeamOp team : teams)
    warps += int64_t(team.getWarps());
  if (failed(layOut(lower, op, shelf, op.getShelf().getType().getTypes(),
                    teams.front())))
    return failure();
  int64_t bytes = lower.ldsBytes() - taken;
  shelf.offset = 0;
  lower.giveBackLds(taken);
  lower.coverLds(bytes);
  return warps;
}

/// Lays out a shelf whose slots are the other block's, over the buffers, and
/// makes room for its barriers: *full* of each slot, for the bytes that come,
/// and the first *empty* one, at which all warps of the other block that use
/// the shelf say that they have done with the buffers.
static LogicalResult startTrade(LaneContext &lower, ShelfOp op,
                                LaneEntries &shelf) {
  if (lower.cluster() != 2)
    return op.emitOpError()
           << "trades with the other block of a cluster, but "
              "the kernel's have "
           << lower.cluster() << "; expected 'known_cluster_size' of two";
  FailureOr<int64_t> warps = layOverBuffers(lower, op, shelf);
  if (failed(warps))
    return failure();
  shelf.trade = lower.addPhaseBarriers(shelf.slots, /*releases=*/*warps);
  return success();
}

/// Whether a lane has the number 0.
static Value isFirst(LaneContext &lower, Value number) {
  return arith::CmpIOp::create(lower.builder(), arith::CmpIPredicate::eq,
                               number, lower.i32(0));
}

/// The barrier that counts what comes into a slot.
static Value fullOfTrade(LaneContext &lower, const LaneEntries &shelf,
                         Value slot) {
  ImplicitLocOpBuilder &b = lower.builder();
  return arith::AddIOp::create(
      b, lower.i32(*shelf.trade),
      arith::MulIOp::create(b, slot, lower.i32(kBarrierBytes)));
}

/// Stores a lane's values into the other block's slot, 16 bytes of each lane at
/// once where there are as many.
static void storeTraded(LaneContext &lower, const LaneEntries &shelf,
                        Value slot, ValueRange fragments) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values words = wordsOf(lower, fragments);
  Value full = fullOfTrade(lower, shelf, slot);
  Value free = lower.i32(*shelf.trade + int64_t(shelf.slots) * kBarrierBytes);
  Value other = arith::XOrIOp::create(b, ringsOf(lower).rank, lower.i32(1));
  lower.meetInWarp();
  lower.arriveInCluster(free, other, isFirst(lower, lower.laneInWarp()));
  auto expect = scf::IfOp::create(b, isFirst(lower, lower.ownThread()),
                                  /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(expect.thenBlock());
    lower.expectBytes(full, shelf.bytes());
  }
  lower.awaitPhase(free, lower.i32(0));
  Value base = arith::AddIOp::create(
      b, lower.i32(shelf.offset),
      arith::MulIOp::create(b, slot, lower.i32(shelf.bytes())));
  forEachPiece(lower, shelf.words, shelf.threads,
               [&](int64_t first, int64_t count, Value offset) {
                 Value at = arith::AddIOp::create(b, base, offset);
                 if (count == kWordsAtOnce) {
                   Value piece = vector::FromElementsOp::create(
                       b, VectorType::get({count}, b.getI32Type()),
                       ValueRange(words).slice(first, count));
                   lower.storeInCluster(piece, at, full, other);
                   return;
                 }
                 for (int64_t i = 0; i < count; ++i)
                   lower.storeInCluster(
                       words[first + i],
                       arith::AddIOp::create(b, at, lower.i32(4 * i)), full,
                       other);
               });
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, ShelfOp op) {
  LaneEntries &shelf = queuesOf(lower).shelves[op.getShelf()];
  shelf.slots = op.getSlots();
  // Nobody uses it.
  if (op.getShelf().use_empty())
    return success();
  if (op->hasAttr(kTradedAttr))
    return startTrade(lower, op, shelf);
  if (op->hasAttr(kParkedAttr)) {
    FailureOr<int64_t> warps = layOverBuffers(lower, op, shelf);
    if (failed(warps))
      return failure();
    // The second one counts them: that of an empty slot.
    shelf.parked = lower.addPhaseBarriers(/*stages=*/1, /*releases=*/*warps) +
                   kBarrierBytes;
    return success();
  }
  int64_t taken = lower.ldsBytes();
  auto like = op.getShelf().getUsers().begin()->getParentOfType<TeamOp>();
  if (failed(
          layOut(lower, op, shelf, op.getShelf().getType().getTypes(), like)))
    return failure();
  if (!liesOverBuffers(op))
    return success();
  // After the shelves that lie there already.
  int64_t bytes = lower.ldsBytes() - taken, offset = 0;
  op->getParentOfType<gpu::GPUFuncOp>().walk([&](ShelfOp other) {
    auto it = queuesOf(lower).shelves.find(other.getShelf());
    if (other == op || it == queuesOf(lower).shelves.end() ||
        !liesOverBuffers(other))
      return;
    const LaneEntries &its = it->second;
    offset = std::max(offset, its.offset +
                                  int64_t(llvm::alignTo(its.slots * its.bytes(),
                                                        kBufferAlignment)));
  });
  shelf.offset = offset;
  lower.giveBackLds(taken);
  lower.coverLds(offset + bytes);
  return success();
}

void kvbuf::lowerOp(LaneContext &lower, ShelfPutOp op) {
  auto isOver = [](ShelfPutOp put) {
    return liesOverBuffers(put.getShelf().getDefiningOp<ShelfOp>());
  };
  // All have read their buffers, and what was started ahead of a loop's end has
  // landed.
  auto puts = op->getBlock()->getOps<ShelfPutOp>();
  if (isOver(op) && *llvm::find_if(puts, isOver) == op) {
    lower.awaitLanding();
    lower.meetBlock();
  }
  const LaneEntries &shelf = queuesOf(lower).shelves[op.getShelf()];
  Value slot = lower.toI32(lower.single(op.getSlot()));
  if (shelf.trade)
    return storeTraded(lower, shelf, slot, op.getValues());
  if (shelf.parked) {
    Value free = lower.i32(*shelf.parked);
    lower.meetInWarp();
    lower.arriveAt(free, isFirst(lower, lower.laneInWarp()));
    lower.awaitPhase(free, lower.i32(0));
  }
  storeEntry(lower, shelf, slot, op.getValues());
}

void kvbuf::lowerOp(LaneContext &lower, ShelfGetOp op) {
  const LaneEntries &shelf = queuesOf(lower).shelves[op.getShelf()];
  Value slot = lower.toI32(lower.single(op.getSlot()));
  if (shelf.trade)
    lower.awaitPhase(fullOfTrade(lower, shelf, slot), lower.i32(0));
  setEntry(lower, op.getValues(), loadEntry(lower, shelf, slot));
}
