//===- LdsOps.cpp - Slots and what is in flight, on whole tiles -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "Lds.h"
#include "Math.h"
#include "OwnOps.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult tile::execute(TileContext &context, MeetOp) {
  context.meet();
  return success();
}

LogicalResult tile::execute(TileContext &context, StaggerOp op) {
  return context.ofTeam<Lds>().stagger(op, [&] { return context.errorAt(op); });
}

LogicalResult tile::execute(TileContext &context, StagedViewOp op) {
  context.setSame(op.getView(), op.getSource());
  return success();
}

LogicalResult tile::execute(TileContext &context, StagedFitOp op) {
  const LoadRef &load = context.objectOf<LoadRef>(op.getSource());
  FailureOr<Matrix *> slot =
      load.lds->rewrite(op, load.number, [&] { return context.errorAt(op); });
  if (failed(slot))
    return failure();
  float scale = op.getScale() ? context.floatOf(op.getScale()) : 1;
  int power = powerThatFits(**slot);
  // Factors are positive, and no zeros.
  float factor = std::max(float(std::ldexp(1.0, -power)) * std::abs(scale),
                          std::numeric_limits<float>::min());
  Type half = op.getFitted().getType().getParams().getElementType();
  **slot = map(**slot, half, [&](float x) {
    return float(std::ldexp(std::copysign(1.0, scale) * x, power));
  });
  context.setSame(op.getFitted(), op.getSource());
  context.setMatrix(op.getFactor(),
                    Matrix(op.getFactor().getType().getRows(), 1, factor));
  return success();
}

LogicalResult tile::execute(TileContext &context, AllocOp op) {
  Lds &lds = context.ofTeam<Lds>();
  context.setObject(op.getBuffer(), BufferRef{lds.allocate(op)});
  return success();
}

LogicalResult tile::execute(TileContext &context, DramLoadOp op) {
  std::optional<Tile> tile;
  if (isEnabled(context, op.getPred())) {
    FailureOr<Tile> resolved = resolve(
        context, op, op.getTile(),
        op.getBuffer().getType().getParams().getColumnsOf(op.getBlock()),
        op.getWhole());
    if (failed(resolved))
      return failure();
    tile = std::move(*resolved);
  }
  std::optional<int64_t> slot;
  if (op.getSlot())
    slot = context.integerOf(op.getSlot());
  Lds &lds = context.ofTeam<Lds>();
  FailureOr<unsigned> load =
      lds.load(op, context.objectOf<BufferRef>(op.getBuffer()).number, slot,
               tile ? &*tile : nullptr, [&] { return context.errorAt(op); });
  if (failed(load))
    return failure();
  context.setObject(op.getToken(), LoadRef{*load, &lds});
  return success();
}

LogicalResult tile::execute(TileContext &context, LdsStageOp op) {
  SmallVector<unsigned> tokens =
      llvm::map_to_vector(op.getTokens(), [&](Value v) {
        return context.objectOf<LoadRef>(v).number;
      });
  Lds &lds = context.ofTeam<Lds>();
  if (failed(lds.stage(op, tokens, [&] { return context.errorAt(op); })))
    return failure();
  for (auto [staged, token] : llvm::zip_equal(op.getStaged(), tokens))
    context.setObject(staged, LoadRef{token, &lds});
  ++context.counts().barriers;
  if (!op->hasAttr(kScaledByAttr))
    return success();
  return scaleSlot(context, op, lds.rewrite(op, tokens.front(), [&] {
    return context.errorAt(op);
  }));
}

LogicalResult tile::scaleSlot(TileContext &context, Operation *op,
                              FailureOr<Matrix *> slot) {
  if (failed(slot))
    return failure();
  float factor = op->getAttrOfType<FloatAttr>(kScaledByAttr).getValueAsDouble();
  KVBufferAttr params =
      cast<StagedType>(op->getResult(0).getType()).getParams();
  **slot =
      map(**slot, params.getElementType(), [&](float x) { return x * factor; });
  return success();
}

FailureOr<const Matrix *> tile::slotBy(TileContext &context, Operation *op,
                                       Value staged) {
  auto fail = [&] { return context.errorAt(op); };
  if (auto *filling = context.findObject<FillRef>(staged))
    return context.ofBlock<Rings>().read(filling->channel, filling->fill,
                                         filling->taker, fail);
  const LoadRef &load = context.objectOf<LoadRef>(staged);
  return load.lds->read(op, load.number, fail);
}

LogicalResult tile::execute(TileContext &context, FragmentLoadOp op) {
  FailureOr<const Matrix *> slot = slotBy(context, op, op.getStaged());
  if (failed(slot))
    return failure();
  FragmentType type = op.getFragment().getType();
  if (!op.isCrossed()) {
    context.setMatrix(op.getFragment(),
                      slice(**slot, op.getSlotRow(), op.getSlotCol(),
                            type.getRows(), type.getCols()));
    return success();
  }
  Matrix turned(type.getRows(), type.getCols());
  for (int64_t r = 0; r < turned.rows; ++r)
    for (int64_t c = 0; c < turned.cols; ++c)
      turned.at(r, c) = (*slot)->at(op.getSlotRow() + c, op.getSlotCol() + r);
  context.setMatrix(op.getFragment(), std::move(turned));
  return success();
}
