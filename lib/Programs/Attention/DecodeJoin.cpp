//===- DecodeJoin.cpp - Joining what pieces come to -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The warps of a block meet when all have come to their ends, and each joins
// some columns of what they have left in LDS. Blocks meet in memory: the last
// one to arrive joins the pieces of a sequence.
//
//===----------------------------------------------------------------------===//

#include "DecodeProgram.h"
#include "TileProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace kvbuf;

/// The fewest pieces that all blocks with one join together.
static constexpr int64_t kFewestTogether = 4;

/// Rows of a share of such a join: the most of which each block has a share, so
/// that enough is on its way. Of many pieces they are as many as lie side by
/// side: eight of 64 columns, of fewer columns as many more.
static constexpr int64_t kRowsTogether[] = {32, 16}, kElementsOfMany = 8 * 64;

/// Pieces that one block joins: so many, or so many for each of its warps, if
/// these are more. Where a sequence has more, several blocks join so many each,
/// side by side, and one joins what they come to.
static constexpr int64_t kJoinedByOne = 8, kJoinedByWarp = 4;

void DecodeProgram::addScratch(Attribute places) {
  // A row's maximum and sum after it; 16 bytes keep rows aligned.
  int64_t width = sliceCols + 4, room = group * ownQueries;
  constexpr int64_t any = ShapedType::kDynamic;
  int64_t lines = oneTile ? lineHeads : any;
  // Level 1 is of what some blocks have joined, if all do not.
  int64_t kept = joinsTogether() ? 1 : 2;
  SmallVector<int64_t> sizes = {kept, lines, any, room, width};
  SmallVector<Attribute> shape = {number(kept), linesOf(), places, number(room),
                                  number(width)};
  // Who joins slices goes from place to place.
  if (joinsSlices()) {
    sizes.insert(sizes.begin() + 2, colSlices);
    shape.insert(shape.begin() + 2, number(colSlices));
  }
  // Kernels of one artifact that split differently have memory of their own.
  StringRef of = joinsSlices() ? "team_" : "";
  parts = addArgument((of + "parts").str(), "workspace",
                      MemRefType::get(sizes, b.getF32Type()), shape);
  // Teams arrive each for its slices.
  int64_t levels = schedule.getMovingTeam() ? 4 : 2;
  if (joinsTogether())
    together = addArgument(
        "team_together", "counter",
        MemRefType::get({2, lines, any, AfterAllOp::kCounters}, b.getI32Type()),
        {number(2), linesOf(), places, number(AfterAllOp::kCounters)});
  arrived = addArgument((of + "arrived").str(), "counter",
                        MemRefType::get({levels, lines, any}, b.getI32Type()),
                        {number(levels), linesOf(), places});
}

SmallVector<Value> DecodeProgram::placeOf(int64_t level, Value place,
                                          Value slice) {
  if (!joinsSlices())
    return {constant(level), line, place};
  return {constant(level), line, slice, place};
}

void DecodeProgram::store(const DecodeState &state, int64_t level, Value place,
                          Value slice) {
  PartialStoreOp::create(b, state.acc, state.max, state.sum, parts,
                         placeOf(level, place, slice), rows,
                         /*columns=*/DenseI64ArrayAttr());
}

DecodeState DecodeProgram::merge(const DecodeState &state,
                                 const DecodeState &other) {
  return DecodeState::of(
      SoftmaxMergeOp::create(b, state.acc, state.max, state.sum, other.acc,
                             other.max, other.sum, softmaxScale, unbounded,
                             /*as_stored=*/UnitAttr())
          .getResults());
}

DecodeState DecodeProgram::mergeAll(SmallVector<DecodeState> parts) {
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
    for (size_t i = 0; i < parts.size(); i += 2)
      parts[i / 2] =
          i + 1 < parts.size() ? merge(parts[i], parts[i + 1]) : parts[i];
  return parts.front();
}

int64_t DecodeProgram::partsAtOnce() const {
  int64_t registers = schedule.getBM() * sliceCols / target.waveSize;
  return std::max<int64_t>(1, llvm::divideCeil(target.registersPerLane, 2) /
                                  registers);
}

int64_t DecodeProgram::joinedByOne() const {
  return std::max(kJoinedByOne, kJoinedByWarp * warps);
}

void DecodeProgram::teams(function_ref<void()> build) {
  OpBuilder::InsertionGuard guard(b);
  auto teams = TeamsOp::create(b);
  b.createBlock(&teams.getBody());
  build();
}

void DecodeProgram::team(const Twine &name, int64_t copies,
                         function_ref<void(Value)> build) {
  OpBuilder::InsertionGuard guard(b);
  auto team = TeamOp::create(b, b.getStringAttr(name).getValue(),
                             /*warps=*/1, copies);
  b.createBlock(&team.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
  build(team.getIndex());
}

void DecodeProgram::forSlices(const Twine &name,
                              function_ref<void(Value slice)> build) {
  teams([&] {
    team(name, colSlices, build);
    if (colSlices < warps)
      team(name + "_idle", warps - colSlices,
           [&](Value) { MeetOp::create(b); });
  });
}

void DecodeProgram::inWarps(StringRef name,
                            function_ref<DecodeState(Value warp)> compute,
                            function_ref<void(DecodeState, Value slice)> then) {
  if (warps == 1)
    return then(compute(constant(0)), Value());
  // Slices of one number lie side by side.
  auto slotOf = [&](Value slice, Value warp) -> Value {
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, slice, constant(warps)).getResult(), warp);
  };
  teams([&] {
    team(name, warps, [&](Value warp) {
      DecodeState own = compute(warp);
      for (int64_t i = 0; i < colSlices; ++i) {
        Value slice = FragmentSliceOp::create(b, sliceType, own.acc, /*row=*/0,
                                              /*col=*/i * sliceCols);
        ShelfPutOp::create(b, ValueRange{slice}, accShelf,
                           slotOf(constant(i), warp));
      }
      ShelfPutOp::create(b, ValueRange{own.max, own.sum}, rowShelf, warp);
    });
  });
  forSlices(name + "_joined", [&](Value slice) {
    SmallVector<DecodeState> joined;
    for (int64_t from = 0; from < warps; from += partsAtOnce()) {
      SmallVector<DecodeState> parts;
      for (int64_t i = from; i < std::min(warps, from + partsAtOnce()); ++i) {
        Value warp = constant(i);
        auto acc = ShelfGetOp::create(b, accShelf, slotOf(slice, warp));
        auto row = ShelfGetOp::create(b, rowShelf, warp);
        parts.push_back({acc.getResult(0), row.getResult(0), row.getResult(1)});
      }
      joined.push_back(mergeAll(parts));
      joined = {mergeAll(joined)};
    }
    then(joined.front(), slice);
  });
}

void DecodeProgram::joinAll(const Twine &name, int64_t level, Value place,
                            Value count, int64_t step,
                            function_ref<void(DecodeState, Value slice)> then) {
  for (int64_t own = 0; own < ownSlices; ++own) {
    Value slice = constant(firstSlice + own);
    then(joinFrom(level, place, count, step, slice), slice);
  }
  if (ownSlices)
    return;
  if (warps == 1)
    return then(joinFrom(level, place, count, step, Value()), Value());
  forSlices(name, [&](Value slice) {
    then(joinFrom(level, place, count, step, slice), slice);
  });
}

DecodeState DecodeProgram::joinFrom(int64_t level, Value place, Value count,
                                    int64_t step, Value slice, Value from) {
  auto join = PartialJoinOp::create(
      b, sliceType, rowType, rowType, parts, placeOf(level, place, slice),
      count, b.getI64IntegerAttr(step), rows, from, softmaxScale,
      /*columns=*/DenseI64ArrayAttr(), unbounded);
  return DecodeState::of(join.getResults());
}

SmallVector<Value> DecodeProgram::counterOf(int64_t level, Value place) {
  // Teams arrive each for its slices.
  int64_t own = ownSlices ? level + 2 * (firstSlice / ownSlices) : level;
  return {constant(own), line, place};
}

void DecodeProgram::ifLast(int64_t level, Value place, Value count,
                           function_ref<void()> build) {
  choose(ArriveLastOp::create(b, arrived, counterOf(level, place), count),
         build);
}

Value DecodeProgram::arriveBehind(const Piece &piece,
                                  function_ref<void()> first) {
  auto branch = scf::IfOp::create(b, TypeRange{b.getI1Type()}, piece.isAwaited,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(
      b, arith::ConstantIntOp::create(b, 0, /*width=*/1).getResult());
  b.setInsertionPointToStart(branch.thenBlock());
  first();
  auto arrive =
      ArriveLastOp::create(b, arrived, counterOf(0, piece.base), piece.count);
  arrive.setIfLast(true);
  scf::YieldOp::create(b, arrive.getLast());
  return branch.getResult(0);
}

DecodeState DecodeProgram::loadStored(const Piece &piece, Value slice) {
  Value place = arith::AddIOp::create(b, piece.base, constant(1));
  auto load = PartialLoadOp::create(b, sliceType, rowType, rowType, parts,
                                    placeOf(0, place, slice), rows,
                                    /*columns=*/DenseI64ArrayAttr());
  return DecodeState::of(load.getResults());
}

DecodeState DecodeProgram::mergeStored(const DecodeState &state,
                                       const DecodeState &other) {
  // The bits of what the last one joins out of memory.
  auto merge = SoftmaxMergeOp::create(
      b, state.acc, state.max, state.sum, other.acc, other.max, other.sum,
      softmaxScale, unbounded, /*as_stored=*/b.getUnitAttr());
  return DecodeState::of(merge.getResults());
}

int64_t DecodeProgram::rowsOfMany() const {
  return kElementsOfMany / sliceCols;
}

bool DecodeProgram::joinsTogether() {
  // A sink is read for each row of a share: all of them have to exist.
  return schedule.getMovingTeam() && !schedule.getSplitKeys()->size &&
         (!op.getSink() || group % rowsOfMany() == 0);
}

void DecodeProgram::joinTogether(const Piece &piece, int64_t rowsAtOnce) {
  // Pieces of work: some rows of one of the team's slices of columns.
  Value one = constant(1), many = constant(rowsAtOnce);
  Value groups = arith::CeilDivUIOp::create(b, rows, many);
  Value all = arith::MulIOp::create(b, groups, constant(ownSlices));
  Value each = arith::CeilDivUIOp::create(b, all, piece.count);
  Value shares = arith::CeilDivUIOp::create(b, all, each);
  Value patient = piece.last;
  if (!patient)
    patient = arith::ConstantIntOp::create(b, 1, /*width=*/1);
  auto after = AfterAllOp::create(
      b, together,
      ValueRange{constant(firstSlice / ownSlices), line, piece.base},
      piece.count, shares, patient);
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&after.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
  Value first = arith::MulIOp::create(b, body->getArgument(0), each);
  Value end = arith::MinUIOp::create(
      b, all, arith::AddIOp::create(b, first, each).getResult());
  auto loop = scf::ForOp::create(b, first, end, one);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value slice = arith::AddIOp::create(
      b, arith::DivUIOp::create(b, number, groups).getResult(),
      constant(firstSlice));
  Value from = arith::MulIOp::create(
      b, arith::RemUIOp::create(b, number, groups).getResult(), many);
  // What follows is about these rows, heads of one query row.
  auto sized = [&](FragmentType type) {
    return fragment(rowsAtOnce, type.getCols(), b.getF32Type(), type.getRole());
  };
  llvm::SaveAndRestore ownSlice(sliceType, sized(sliceType)),
      ownRow(rowType, sized(rowType));
  DecodeState state = joinFrom(0, piece.base, piece.count, 1, slice, from);
  llvm::SaveAndRestore ownHead(
      head, arith::AddIOp::create(b, head, from).getResult()),
      ownRows(rows, arith::SubIOp::create(b, rows, from).getResult());
  finish(state, slice);
}

Value DecodeProgram::hasBelow(const Piece &piece, int64_t many) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, piece.count,
                               constant(many));
}

void DecodeProgram::joinByAll(const Piece &piece,
                              ArrayRef<int64_t> rowsAtOnce) {
  if (rowsAtOnce.empty() || rowsAtOnce.front() <= rowsOfMany())
    return joinTogether(piece, rowsOfMany());
  int64_t size = rowsAtOnce.front();
  // The pieces of which each block has such a share.
  int64_t room = std::min(schedule.getBM(), group * ownQueries);
  int64_t most = ownSlices * llvm::divideCeil(room, size);
  bool allExist = !op.getSink() || group % size == 0;
  if (most < kFewestTogether || !allExist)
    return joinByAll(piece, rowsAtOnce.drop_front());
  choose(
      hasBelow(piece, most + 1), [&] { joinTogether(piece, size); },
      [&] { joinByAll(piece, rowsAtOnce.drop_front()); });
}

void DecodeProgram::join(const Piece &piece) {
  if (joinsTogether()) {
    auto byLast = [&] {
      ifLast(0, piece.base, piece.count, [&] {
        joinAll("pieces", 0, piece.base, piece.count, /*step=*/1,
                [&](DecodeState state, Value slice) { finish(state, slice); });
      });
    };
    return choose(hasBelow(piece, kFewestTogether), byLast,
                  [&] { joinByAll(piece, kRowsTogether); });
  }
  // The pieces that are joined together with this one.
  Value many = constant(joinedByOne());
  Value first = arith::MulIOp::create(
      b, arith::DivUIOp::create(b, piece.number, many).getResult(), many);
  Value members = arith::MinUIOp::create(
      b, many, arith::SubIOp::create(b, piece.count, first).getResult());
  Value place = arith::AddIOp::create(b, piece.base, first);
  Value few =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, piece.count, many);
  Value more =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, piece.count, many);
  ifLast(0, place, members, [&] {
    joinAll("pieces", 0, place, members, /*step=*/1,
            [&](DecodeState state, Value slice) {
              choose(
                  few, [&] { finish(state, slice); },
                  [&] { store(state, 1, place, slice); });
            });
    choose(more, [&] {
      Value joiners = arith::CeilDivUIOp::create(b, piece.count, many);
      ifLast(1, piece.base, joiners, [&] {
        joinAll("joined", 1, piece.base, joiners, joinedByOne(),
                [&](DecodeState state, Value slice) { finish(state, slice); });
      });
    });
  });
}

Value DecodeProgram::rowsOf(Value tensor, Value slice) {
  if (colSlices == 1)
    return rowsOf(tensor);
  Value cols = constant(sliceCols);
  Value first = arith::MulIOp::create(b, slice, cols);
  // The last slice may be padding, in part or all of it.
  Value valid = cols;
  if (valueDepth != op.getValueHeadSize())
    valid = arith::SubIOp::create(b, constant(op.getValueHeadSize()), first);
  SmallVector<Value> at = rowsAt();
  at.push_back(first);
  int64_t rowDim = op.isRagged() ? 0 : 1;
  auto type = cast<MemRefType>(tensor.getType());
  // Some rows of a tile are heads of one query row.
  if (rowType.getRows() < schedule.getBM())
    return DramTileOp::create(
        b,
        TileType::get(b.getContext(), rowType.getRows(), sliceCols,
                      type.getElementType(), /*page_size=*/0),
        tensor, at, rows, valid, b.getI64IntegerAttr(type.getRank() - 2));
  return DramTileOp::create(b, rowsType(type, sliceCols), tensor, at, rows,
                            valid, b.getI64IntegerAttr(rowDim), group);
}

void DecodeProgram::finish(DecodeState state, Value slice) {
  if (op.getSink())
    state =
        DecodeState::of(SoftmaxSinkOp::create(
                            b, state.acc, state.max, state.sum,
                            operand(op.getSink()), ValueRange{head},
                            softmaxScale, b.getI64IntegerAttr(group), unbounded)
                            .getResults());
  auto done =
      SoftmaxFinishOp::create(b, sliceType, rowType, state.acc, state.max,
                              state.sum, /*excess=*/Value(),
                              /*sink=*/Value(), softmaxScale, unbounded);
  Value result = scales().finish(done.getResult(), operand(op.getV()), op);
  Value out = roundOutput(b, result, op.getOutElementType());
  FragmentStoreOp::create(b, out, rowsOf(operand(op.getOut()), slice),
                          /*via=*/Value());
  if (!op.getLse())
    return;
  auto storeLse = [&] {
    SmallVector<Value> lseAt{head, rowInTensor()};
    if (!op.isRagged())
      lseAt.insert(lseAt.begin(), batch);
    RowStoreOp::create(b, done.getLse(), operand(op.getLse()), lseAt, rows,
                       group);
  };
  // Each slice has it.
  if (colSlices == 1)
    return storeLse();
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slice, constant(0)),
         storeLse);
}
