//===- KVBufferTeamOps.cpp - Verifiers of teams -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferTypes.h"
#include "VerifyTile.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTeamInterfaces.cpp.inc"

ScheduleAttr kvbuf::scheduleOf(Operation *op, ScheduleAttr kernel) {
  auto team = op->getParentOfType<TeamOp>();
  return team ? team.getSchedule(kernel) : kernel;
}

ProductKind kvbuf::productOf(Operation *op) {
  auto mma = dyn_cast<MmaOp>(op);
  auto start = dyn_cast<MmaStartOp>(op);
  bool byRows =
      (mma && !mma.getTransposeB()) || (start && !start.getTransposeB());
  return byRows ? ProductKind::Values : ProductKind::Scores;
}

ProductKind kvbuf::productOf(KVBufferAttr params) {
  return params.contractsRows() || params.isResult() ? ProductKind::Values
                                                     : ProductKind::Scores;
}

int64_t kvbuf::blockWarpsOf(Operation *kernel, ScheduleAttr schedule) {
  int64_t warps = schedule.getWarps();
  kernel->walk([&](TeamsOp teams) { warps = teams.getWarps(); });
  return warps;
}

ScheduleAttr TeamOp::getSchedule(ScheduleAttr kernel) {
  Schedule own = kernel.getStructure();
  own.warps = getWarps();
  // Where warps are still to be chosen, the team has the schedule's rows.
  own.BM = getBM()      ? int64_t(getBM())
           : getWarps() ? kernel.getWM() * int64_t(getWarps())
                        : kernel.getBM();
  // How the block's warps lie says nothing of a team's.
  own.warpCols = 1;
  return ScheduleAttr::get(getContext(), own);
}

TeamOp TeamsOp::getTeam(StringRef name) {
  for (auto team : getBody().getOps<TeamOp>())
    if (team.getSymName() == name)
      return team;
  return {};
}

int64_t TeamsOp::getWarps() {
  int64_t warps = 0;
  for (auto team : getBody().getOps<TeamOp>())
    warps += int64_t(team.getWarps()) * int64_t(team.getCopies());
  return warps;
}

bool TeamOp::isMover() {
  return getBody()
      .walk([](Operation *op) {
        return op->hasTrait<Moves>() ? WalkResult::interrupt()
                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t TeamOp::getFirstWarp() {
  int64_t first = 0;
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode())
    if (auto team = dyn_cast<TeamOp>(op))
      first += int64_t(team.getWarps() * team.getCopies());
  return first;
}

bool TeamOp::isWholeGroups(int64_t warps) {
  return warps && int64_t(getWarps()) % warps == 0 &&
         getFirstWarp() % warps == 0;
}

bool TeamOp::readsRings() {
  return getBody()
      .walk([](RingWaitOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static LogicalResult verifyMembers(TeamChannelInterface channel, TeamsOp teams);

LogicalResult TeamsOp::verifyRegions() {
  llvm::StringMap<TeamOp> names;
  for (Operation &op : getBody().front()) {
    auto team = dyn_cast<TeamOp>(op);
    if (!team) {
      InFlightDiagnostic diag =
          op.emitOpError() << "is not allowed between teams; expected it in a "
                              "kvbuffer.team, or outside of kvbuffer.teams";
      diag.attachNote(getLoc()) << "the teams are here";
      return diag;
    }
    auto [it, isNew] = names.try_emplace(team.getSymName(), team);
    if (isNew)
      continue;
    InFlightDiagnostic diag = team.emitOpError()
                              << "is called @" << team.getSymName()
                              << ", as another team of this kvbuffer.teams is";
    diag.attachNote(it->second.getLoc()) << "the other team is here";
    return diag;
  }
  if (names.empty())
    return emitOpError("expected at least one kvbuffer.team");
  for (TeamChannelInterface channel : getChannels())
    if (failed(verifyMembers(channel, *this)))
      return failure();
  return success();
}

LogicalResult TeamOp::verify() {
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"warp", getWarps()},
                             {"copy", getCopies()}})
    if (value < (name == "warp" ? 0 : 1) || value > kMostElements)
      return emitOpError() << "expected 1 to " << kMostElements << " "
                           << (name == "copy" ? "copies" : "warps") << ", got "
                           << value;
  // Rows of its own are those of so many warps.
  if (int64_t(getBM()) && !int64_t(getWarps()))
    return emitOpError() << "has BM(" << int64_t(getBM())
                         << ") but leaves its warps open; expected warps(...)";
  if (int64_t(getBM()) < 0 || int64_t(getBM()) > kMostElements ||
      (getWarps() && int64_t(getBM()) % int64_t(getWarps())))
    return emitOpError() << "has " << int64_t(getBM()) << " rows for "
                         << int64_t(getWarps())
                         << " warps; expected the same number for each";
  if (int64_t registers = getRegisters();
      registers && (registers < 24 || registers > 256 || registers % 8))
    return emitOpError()
           << "expected 24 to 256 registers in steps of 8, or 0, got "
           << registers;
  return success();
}

/// Why a value from outside means nothing in a team; empty if it does.
static StringRef whyNotCaptured(Value value) {
  Type type = value.getType();
  if (isa<FragmentType, PendingType>(type)) {
    // One value is the same however it is spread.
    if (value.getDefiningOp<FragmentFillOp>())
      return {};
    return "lies over all warps of the block";
  }
  if (isa<TokenType>(type))
    return "stands for copies of all threads of the block, which await it "
           "together";
  return {};
}

/// That a team which moves does nothing that its warps would do together, and
/// has no value that is spread over them.
static LogicalResult verifyMover(TeamOp team) {
  Operation *moves = nullptr, *together = nullptr;
  auto isSpread = [](Type type) {
    return isa<FragmentType, StagedType, TokenType, PendingType>(type);
  };
  team.getBody().walk([&](Operation *op) {
    if (!moves && op->hasTrait<Moves>())
      moves = op;
    if (!together && (op->hasTrait<Together>() ||
                      llvm::any_of(op->getOperandTypes(), isSpread) ||
                      llvm::any_of(op->getResultTypes(), isSpread)))
      together = op;
  });
  if (!moves || !together)
    return success();
  InFlightDiagnostic diag =
      together->emitOpError()
      << "is not allowed in @" << team.getSymName()
      << ", a team that moves: one lane of it or some of its warps do that "
         "alone; expected it in another team";
  diag.attachNote(moves->getLoc()) << "the team moves here";
  return diag;
}

/// Whether an op in `team` needs all warps of the block. What the lanes of one
/// warp can do together, a team of one does by itself; several warps tell each
/// other who was last through a word of LDS, of which copies have one together.
static bool needsBlock(Operation *op, TeamOp team) {
  if (team.getWarps() == 1 && isa<AppendTokensOp, ArriveLastOp, AfterAllOp>(op))
    return false;
  if (team.getCopies() == 1 && isa<ArriveLastOp, AfterAllOp>(op))
    return false;
  return op->hasTrait<NeedsBlock>();
}

LogicalResult TeamOp::verifyRegions() {
  Region &body = getBody();
  if (body.getNumArguments() > 1 ||
      (body.getNumArguments() && !body.getArgument(0).getType().isIndex()))
    return emitOpError() << "expected at most one argument of its region, the "
                            "copy's number, an index";
  WalkResult result = body.walk([&](Operation *op) -> WalkResult {
    auto fail = [&](const Twine &why) {
      InFlightDiagnostic diag = op->emitOpError() << why;
      diag.attachNote(getLoc()) << "the team is here";
      return WalkResult::interrupt();
    };
    if (needsBlock(op, *this))
      return fail("is not allowed in a team: it needs all warps of the block");
    for (Value operand : op->getOperands()) {
      if (body.isAncestor(operand.getParentRegion()))
        continue;
      StringRef why = whyNotCaptured(operand);
      if (why.empty())
        continue;
      InFlightDiagnostic diag = op->emitOpError()
                                << "uses a " << operand.getType()
                                << " from outside of the team, which " << why;
      diag.attachNote(operand.getLoc()) << "the value comes from here";
      return WalkResult::interrupt();
    }
    auto load = dyn_cast<DramLoadOp>(op);
    if (load && !body.isAncestor(load.getBuffer().getParentRegion()))
      return fail("loads into a buffer that teams share; expected the "
                  "kvbuffer.alloc in the team, or the load before "
                  "kvbuffer.teams");
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return verifyMover(*this);
}

//===----------------------------------------------------------------------===//
// What joins teams
//===----------------------------------------------------------------------===//

/// "ring", "mailbox" or "queue".
static StringRef nameOf(TeamChannelInterface channel) {
  return channel->getName().stripDialect();
}

LogicalResult kvbuf::detail::verifyChannelUse(Operation *op, bool fills) {
  for (Value operand : op->getOperands()) {
    auto channel = operand.getDefiningOp<TeamChannelInterface>();
    if (!channel)
      continue;
    auto team = op->getParentOfType<TeamOp>();
    bool isFiller = team && channel.getFrom() == team.getSymName();
    bool isTaker = team && channel.getTaker(team.getSymName()) >= 0;
    if (fills ? isFiller : isTaker || (isFiller && channel.doesFillerTake()))
      continue;
    InFlightDiagnostic diag = op->emitOpError() << "is expected in ";
    if (fills)
      diag << "the team @" << channel.getFrom() << ", which fills the "
           << nameOf(channel);
    else
      diag << "one of the teams " << channel.getTo() << ", which take from the "
           << nameOf(channel);
    diag.attachNote(channel.getLoc())
        << "the " << nameOf(channel) << " is here";
    return diag;
  }
  return success();
}

LogicalResult kvbuf::verifyTeamNames(TeamChannelInterface channel) {
  if (channel.getTo().empty())
    return channel->emitOpError("expected at least one team that takes");
  llvm::SmallPtrSet<Attribute, 4> names{
      FlatSymbolRefAttr::get(channel->getContext(), channel.getFrom())};
  for (Attribute name : channel.getTo())
    if (!names.insert(name).second)
      return channel->emitOpError() << "has the team " << name << " twice";
  return success();
}

SmallVector<TeamChannelInterface> TeamsOp::getChannels() {
  llvm::SetVector<TeamChannelInterface> channels;
  walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (auto channel = operand.getDefiningOp<TeamChannelInterface>())
        channels.insert(channel);
  });
  return channels.takeVector();
}

SmallVector<QueueOp> TeamsOp::getQueues() {
  SmallVector<QueueOp> queues;
  for (TeamChannelInterface channel : getChannels())
    if (auto queue = dyn_cast<QueueOp>(*channel))
      queues.push_back(queue);
  return queues;
}

/// Whether the teams that a ring, mailbox or queue names are here, and those of
/// a queue alike.
static LogicalResult verifyMembers(TeamChannelInterface channel,
                                   TeamsOp teams) {
  bool isQueue = isa<QueueOp>(*channel);
  SmallVector<StringRef> names{channel.getFrom()};
  for (Attribute name : channel.getTo())
    names.push_back(cast<FlatSymbolRefAttr>(name).getValue());
  TeamOp first;
  for (auto [number, name] : llvm::enumerate(names)) {
    TeamOp team = teams.getTeam(name);
    auto fail = [&](const Twine &why) -> LogicalResult {
      InFlightDiagnostic diag = channel->emitOpError() << why;
      diag.attachNote(team ? team.getLoc() : teams.getLoc())
          << (team ? "the team is here" : "the teams are here");
      return diag;
    };
    std::string called = "@" + name.str();
    if (!team)
      return fail("names " + called +
                  ", which is no team of the "
                  "kvbuffer.teams that use it");
    if (team.getCopies() != 1)
      return fail("names " + called + ", of which there are " +
                  Twine(team.getCopies()) + "; expected a team without copies");
    // Of a team that moves it is not known which of its lanes take. That every
    // filling is awaited, who executes the program tells.
    if (!isQueue && number > 0 && team.isMover())
      return fail("names " + called +
                  ", a team that moves, to take from it; expected a team whose "
                  "warps do that together");
    if (!isQueue)
      continue;
    bool joins = false;
    team.walk([&](Operation *op) {
      joins |= llvm::is_contained(op->getOperands(), channel.getChannel());
    });
    if (!joins)
      return fail(
          "names " + called + ", which " +
          (number == 0 ? "puts nothing into it" : "takes nothing from it"));
    if (!first)
      first = team;
    else if (team.getWarps() != first.getWarps() ||
             team.getBM() != first.getBM())
      return fail("joins @" + first.getSymName() + " of " +
                  Twine(first.getWarps()) + " warps to " + called + " of " +
                  Twine(team.getWarps()) +
                  "; expected as many, with as many rows");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

void QueueOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getQueue(), "queue");
}

void QueueTakeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value value : getValues())
    setName(value, "taken");
}

/// The types of what a queue or shelf holds.
static LogicalResult verifyEntry(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<Type> types) {
  if (types.empty())
    return emitError() << "expected at least one fragment";
  int64_t rows = 0;
  for (Type type : types) {
    auto fragment = dyn_cast<FragmentType>(type);
    if (!fragment)
      return emitError() << "expected fragments, got " << type;
    if (fragment.getRole() == Role::B)
      return emitError() << "cannot carry " << type
                         << ", which every warp holds whole; expected role a, "
                            "acc or row";
    if (rows && fragment.getRows() != rows)
      return emitError() << "expected fragments of as many rows, got " << rows
                         << " and " << fragment.getRows();
    rows = fragment.getRows();
  }
  return success();
}

LogicalResult QueueType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<Type> types) {
  return verifyEntry(emitError, types);
}

LogicalResult ShelfType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<Type> types) {
  return verifyEntry(emitError, types);
}

LogicalResult QueueOp::verify() {
  if (int64_t(getSlots()) < 1 || int64_t(getSlots()) > kMostElements)
    return emitOpError() << "expected 1 to " << kMostElements << " slots, got "
                         << int64_t(getSlots());
  return verifyTeamNames(*this);
}

/// Whether a queue is known by the op that makes it.
static LogicalResult verifyMade(Operation *op, Value queue) {
  if (queue.getDefiningOp<QueueOp>())
    return success();
  return op->emitOpError() << "uses a queue that is passed on; expected the "
                              "result of kvbuffer.queue";
}

LogicalResult QueuePutOp::verify() {
  if (getValues().getTypes() != getQueue().getType().getTypes())
    return emitOpError() << "expected a fragment of each type of "
                         << getQueue().getType();
  return verifyMade(*this, getQueue());
}

LogicalResult QueueTakeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> location,
                                            QueueTakeOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferFrom<QueueType>(adaptor.getQueue(), "a queue", location, types,
                              [](QueueType type) { return type.getTypes(); });
}

LogicalResult QueueTakeOp::verify() { return verifyMade(*this, getQueue()); }

//===----------------------------------------------------------------------===//
// Shelves
//===----------------------------------------------------------------------===//

void ShelfOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getShelf(), "shelf");
}

void ShelfGetOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value value : getValues())
    setName(value, "kept");
}

LogicalResult ShelfOp::verify() {
  if (int64_t(getSlots()) < 1 || int64_t(getSlots()) > kMostElements)
    return emitOpError() << "expected 1 to " << kMostElements << " slots, got "
                         << int64_t(getSlots());
  return success();
}

/// Whether an op that puts or gets stands in a team, and the shelf's other
/// teams are like it.
static LogicalResult verifyShelfUser(Operation *op, Value shelf) {
  auto made = shelf.getDefiningOp<ShelfOp>();
  if (!made)
    return op->emitOpError() << "uses a shelf that is passed on; expected the "
                                "result of kvbuffer.shelf";
  auto team = op->getParentOfType<TeamOp>();
  if (!team)
    return op->emitOpError("is expected in a kvbuffer.team");
  for (Operation *user : shelf.getUsers()) {
    auto other = user->getParentOfType<TeamOp>();
    if (!other ||
        (other.getWarps() == team.getWarps() && other.getBM() == team.getBM()))
      continue;
    InFlightDiagnostic diag = op->emitOpError()
                              << "is in @" << team.getSymName() << " of "
                              << int64_t(team.getWarps()) << " warps, but @"
                              << other.getSymName() << ", which uses the same "
                              << "shelf, has " << int64_t(other.getWarps())
                              << "; expected as many, with as many rows";
    diag.attachNote(user->getLoc()) << "the shelf is used here";
    return diag;
  }
  return success();
}

LogicalResult ShelfPutOp::verify() {
  if (getValues().getTypes() != getShelf().getType().getTypes())
    return emitOpError() << "expected a fragment of each type of "
                         << getShelf().getType();
  return verifyShelfUser(*this, getShelf());
}

LogicalResult ShelfGetOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> location,
                                           ShelfGetOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  return inferFrom<ShelfType>(adaptor.getShelf(), "a shelf", location, types,
                              [](ShelfType type) { return type.getTypes(); });
}

LogicalResult ShelfGetOp::verify() {
  return verifyShelfUser(*this, getShelf());
}
