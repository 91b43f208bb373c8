//===- KVBufferTeamOps.cpp - Verifiers of teams -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyTile.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kvbuf;

ScheduleAttr kvbuf::scheduleOf(Operation *op, ScheduleAttr kernel) {
  auto team = op->getParentOfType<TeamOp>();
  return team ? team.getSchedule(kernel) : kernel;
}

int64_t kvbuf::blockWarpsOf(Operation *kernel, ScheduleAttr schedule) {
  int64_t warps = schedule.getWarps();
  kernel->walk([&](TeamsOp teams) { warps = teams.getWarps(); });
  return warps;
}

ScheduleAttr TeamOp::getSchedule(ScheduleAttr kernel) {
  Schedule own = kernel.getStructure();
  own.warps = getWarps();
  own.BM = getBM() ? int64_t(getBM()) : kernel.getWM() * int64_t(getWarps());
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

static LogicalResult verifyQueue(QueueOp queue, TeamsOp teams);

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
  for (QueueOp queue : getQueues())
    if (failed(verifyQueue(queue, *this)))
      return failure();
  return success();
}

LogicalResult TeamOp::verify() {
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"warp", getWarps()},
                             {"copy", getCopies()}})
    if (value < 1 || value > kMostElements)
      return emitOpError() << "expected 1 to " << kMostElements << " "
                           << (name == "copy" ? "copies" : "warps") << ", got "
                           << value;
  if (int64_t(getBM()) < 0 || int64_t(getBM()) > kMostElements ||
      int64_t(getBM()) % int64_t(getWarps()))
    return emitOpError() << "has " << int64_t(getBM()) << " rows for "
                         << int64_t(getWarps())
                         << " warps; expected the same number for each";
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
    if (op->hasTrait<NeedsBlock>())
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
  return failure(result.wasInterrupted());
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
  if (getTo().empty())
    return emitOpError("expected at least one team that takes");
  llvm::SmallPtrSet<Attribute, 4> names{getFromAttr()};
  for (Attribute name : getTo())
    if (!names.insert(name).second)
      return emitOpError() << "has the team " << name << " twice";
  return success();
}

/// Whether an op that puts or takes stands in a team that its queue names so,
/// and that the queue's other teams are like.
static LogicalResult verifyMember(Operation *op, Value queue, bool puts) {
  auto made = queue.getDefiningOp<QueueOp>();
  if (!made)
    return op->emitOpError() << "uses a queue that is passed on; expected the "
                                "result of kvbuffer.queue";
  auto team = op->getParentOfType<TeamOp>();
  auto isMine = [&](Attribute name) {
    return team &&
           cast<FlatSymbolRefAttr>(name).getValue() == team.getSymName();
  };
  if (puts ? isMine(made.getFromAttr()) : llvm::any_of(made.getTo(), isMine))
    return success();
  InFlightDiagnostic diag = op->emitOpError() << "is expected in ";
  if (puts)
    diag << "the team " << made.getFromAttr() << ", which puts";
  else
    diag << "one of the teams " << made.getTo() << ", which take";
  diag.attachNote(made.getLoc()) << "the queue is here";
  return diag;
}

LogicalResult QueuePutOp::verify() {
  if (getValues().getTypes() != getQueue().getType().getTypes())
    return emitOpError() << "expected a fragment of each type of "
                         << getQueue().getType();
  return verifyMember(*this, getQueue(), /*puts=*/true);
}

LogicalResult QueueTakeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> location,
                                            QueueTakeOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto queue = dyn_cast<QueueType>(adaptor.getQueue().getType());
  if (!queue)
    return emitOptionalError(location, "expected a queue, got ",
                             adaptor.getQueue().getType());
  llvm::append_range(types, queue.getTypes());
  return success();
}

LogicalResult QueueTakeOp::verify() {
  return verifyMember(*this, getQueue(), /*puts=*/false);
}

SmallVector<QueueOp> TeamsOp::getQueues() {
  llvm::SetVector<QueueOp> queues;
  walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (auto queue = operand.getDefiningOp<QueueOp>())
        queues.insert(queue);
  });
  return queues.takeVector();
}

/// Whether the teams that a queue names are here, and alike.
static LogicalResult verifyQueue(QueueOp queue, TeamsOp teams) {
  SmallVector<Attribute> names{queue.getFromAttr()};
  llvm::append_range(names, queue.getTo());
  TeamOp first;
  for (Attribute name : names) {
    TeamOp team = teams.getTeam(cast<FlatSymbolRefAttr>(name).getValue());
    auto fail = [&](const Twine &why) -> LogicalResult {
      InFlightDiagnostic diag = queue.emitOpError() << why;
      diag.attachNote(team ? team.getLoc() : teams.getLoc())
          << (team ? "the team is here" : "the teams are here");
      return diag;
    };
    std::string called = "@" + cast<FlatSymbolRefAttr>(name).getValue().str();
    if (!team)
      return fail("names " + called +
                  ", which is no team of the "
                  "kvbuffer.teams that use it");
    if (team.getCopies() != 1)
      return fail("names " + called + ", of which there are " +
                  Twine(team.getCopies()) + "; expected a team without copies");
    bool joins = false;
    team.walk([&](Operation *op) {
      joins |= llvm::is_contained(op->getOperands(), queue.getQueue());
    });
    if (!joins)
      return fail("names " + called + ", which " +
                  (name == queue.getFromAttr() ? "puts nothing into it"
                                               : "takes nothing from it"));
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
  auto shelf = dyn_cast<ShelfType>(adaptor.getShelf().getType());
  if (!shelf)
    return emitOptionalError(location, "expected a shelf, got ",
                             adaptor.getShelf().getType());
  llvm::append_range(types, shelf.getTypes());
  return success();
}

LogicalResult ShelfGetOp::verify() {
  return verifyShelfUser(*this, getShelf());
}
