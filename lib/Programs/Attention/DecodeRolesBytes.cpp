//===- DecodeRolesBytes.cpp - Latent attention of bytes by teams ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Products of 8-bit floats, of queries and rows. A group of warps contracts
/// bytes that lie side by side: of rows for scores, and of keys for the output.
/// So one more team turns the values of each tile of rows into a slot of which
/// two teams multiply by a half of the columns each, and rows have one slot for
/// all of their columns, which scores and that team read. Weights are
/// few bytes, in the order in which lanes hold scores: they go through a queue
/// as the operand that they are. A tile's weighted values are products of their
/// own, of a few columns each, and are added to the accumulators in f32.
///
//===----------------------------------------------------------------------===//

#include "DecodeRoles.h"
#include "TileProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::role;

void DecodeProgram::makeChannelsOfBytes(Roles &roles) {
  const LatentRoles &sizes = roles.sizes;
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  CacheType cache = op.getK().getType();
  roles.queries = makeRing(BM, depth, op.getHeadSize(), /*offset=*/0,
                           /*slots=*/1, kLoad, {kScores});
  auto part = [&](int64_t first, int64_t cols, ArrayRef<StringRef> to) {
    roles.parts.push_back({first, cols,
                           makeRing(BN, cols, cache.getTileCols(),
                                    cache.getHeadDimOffset() + first,
                                    sizes.rowSlots, kLoad, to)});
  };
  part(0, 2 * sizes.half, {kScores, kTurn});
  part(2 * sizes.half, sizes.rest, {kScores});
  roles.turned =
      makeRing(BN, 2 * sizes.half, 2 * sizes.half, /*offset=*/0,
               sizes.turnedSlots, kTurn, {kLeft, kRight}, Dimension::Cols);
  ArrayAttr halves = symbolsOf(b.getContext(), {kLeft, kRight});
  auto queue = [&](ArrayRef<Type> types, int64_t slots) -> Value {
    return QueueOp::create(b, QueueType::get(b.getContext(), types), slots,
                           kScores, halves);
  };
  roles.weighted =
      queue({fragment(BM, BN, weights, Role::A), rowType}, sizes.weightSlots);
  roles.ends = queue({rowType, rowType}, /*slots=*/1);
}

void DecodeProgram::computeHalfOfBytes(const Roles &roles, const RolePiece &own,
                                       unsigned half) {
  int64_t BM = schedule.getBM(), cols = roles.sizes.productCols;
  int64_t many = roles.sizes.half / cols, first = half * roles.sizes.half;
  FragmentType type = fragment(BM, cols, b.getF32Type(), Role::Acc);
  auto pending = PendingType::get(b.getContext(), BM, cols, b.getF32Type());
  SmallVector<Value> none(many, fill(type, 0.0f));
  bool apart = addsTilesApart(op, target);
  auto loop = scf::ForOp::create(b, constant(0), own.count, constant(1), none);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = own.number(b, loop.getInductionVar(), 0, 0);
    Value staged = RingWaitOp::create(b, roles.turned, number);
    auto taken = QueueTakeOp::create(b, roles.weighted, number);
    Value p = taken.getResult(0), factor = taken.getResult(1);
    auto start = [&](int64_t n, Value acc) -> Value {
      return MmaStartOp::create(
          b, pending, p, columnsOf(b, staged, first + n * cols, cols), acc,
          /*transpose_b=*/false);
    };
    // The unit adds all where that is asked for; else a tile's product is
    // added while the next columns' is on its way.
    auto begin = [&](int64_t n) -> Value {
      Value acc = loop.getRegionIterArg(n);
      return start(n, apart ? Value() : RescaleOp::create(b, acc, factor));
    };
    SmallVector<Value> results;
    Value product = begin(0);
    for (int64_t n = 0; n < many; ++n) {
      Value next = n + 1 < many ? begin(n + 1) : Value();
      Value sum = MmaWaitOp::create(b, product, /*younger=*/next ? 1 : 0);
      if (!next)
        RingReleaseOp::create(b, roles.turned, number);
      results.push_back(apart ? RescaleOp::create(b, type,
                                                  loop.getRegionIterArg(n),
                                                  factor, sum)
                                    .getResult()
                              : sum);
      product = next;
    }
    scf::YieldOp::create(b, results);
  }
  auto ends = QueueTakeOp::create(b, roles.ends, own.piecesBefore);
  storeHalf(roles, own, half, loop.getResults(), ends.getResult(0),
            ends.getResult(1));
}

void DecodeProgram::turnTiles(const Roles &roles, const RolePiece &own) {
  const RolePart &rows = roles.parts.front();
  auto loop = scf::ForOp::create(b, constant(0), own.count, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = own.number(b, loop.getInductionVar(), 0, 0);
  Value staged = RingWaitOp::create(b, rows.ring, number);
  FragmentType type =
      fragment(schedule.getBN(), 2 * roles.sizes.half, element, Role::B);
  Value values = FragmentLoadOp::create(
      b, type, staged, /*row=*/0, /*col=*/0,
      DimensionAttr::get(b.getContext(), Dimension::Rows));
  RingPutOp::create(b, values, roles.turned, number, /*transpose=*/false);
  RingReleaseOp::create(b, rows.ring, number);
}
