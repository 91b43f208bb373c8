//===- KVBufferRingOps.cpp - Verifiers of rings and products ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferTypes.h"
#include "VerifyTile.h"

using namespace mlir;
using namespace kvbuf;

LogicalResult RingOp::verify() { return verifyTeamNames(*this); }

LogicalResult MailboxOp::verify() {
  if (int64_t(getSlots()) < 1 || int64_t(getSlots()) > kMostElements)
    return emitOpError() << "expected 1 to " << kMostElements << " slots, got "
                         << int64_t(getSlots());
  return verifyTeamNames(*this);
}

bool MailboxOp::doesFillerTake() { return getShared(); }

LogicalResult RingOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       RingOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  return inferFrom<BufferType>(
      adaptor.getBuffer(), "a buffer", location, types, [&](BufferType type) {
        return RingType::get(context, type.getParams());
      });
}

int64_t RingLoadOp::firstColumn() {
  return getRing().getType().getParams().getHeadDimOffset() +
         int64_t(getFirstCol());
}

LogicalResult RingLoadOp::verify() {
  KVBufferAttr params = getRing().getType().getParams();
  if (getBegin() && ends())
    return emitOpError()
           << "both begins a load and ends one; expected begin or "
              "younger";
  if (int64_t younger = getYounger(); younger < -1)
    return emitOpError() << "expected younger of at least 0, got " << younger;
  if (!getBegin() && (int64_t(getNextRows()) || getAsked()))
    return emitOpError() << "asks a table about rows, or has asked; expected "
                            "begin";
  int64_t first = int64_t(getFirstCol()), block = params.getBK();
  if (first < 0 || first % block)
    return emitOpError() << "expected first_col to be a multiple of BK = "
                         << block << ", got " << first;
  // A slot of a block has columns of the head, or what is past them.
  bool whole = params.getFullKv();
  if (int64_t room = whole ? params.getCacheDepth() - params.getDepth() -
                                 params.getHeadDimOffset()
                           : params.getSmemDepth() - block;
      first > room)
    return emitOpError() << "expected first_col of at most " << room
                         << ", where the slot's "
                         << (whole ? params.getDepth() : block)
                         << " columns are still the tile's, got " << first;
  auto ring = getRing().getDefiningOp<RingOp>();
  if (first && whole && ring && ring.getShared())
    return emitOpError() << "has columns of its own in a ring that the blocks "
                            "of a cluster fill for each other; expected "
                            "first_col = 0";
  return verifyTileFits(*this, getTile().getType(), params);
}

LogicalResult RingPutOp::verify() {
  FragmentType type = getFragment().getType();
  KVBufferAttr params = getRing().getType().getParams();
  // Columns of b that warps share are rows of what lies turned.
  bool isTurned = type.getRole() == Role::B && !getTranspose() &&
                  params.getOrder() == Dimension::Cols;
  if (type.getRole() != Role::A && type.getRole() != Role::Acc && !isTurned)
    return emitOpError() << "cannot put " << type << ", which "
                         << (type.getRole() == Role::B
                                 ? "every warp holds whole"
                                 : "has one value for each row")
                         << "; expected role a or acc";
  int64_t rows = params.getBN(), cols = params.getSmemCols();
  if (getTranspose())
    std::swap(rows, cols);
  if (type.getRows() != rows || type.getCols() != cols ||
      type.getElementType() != params.getElementType())
    return emitOpError() << "expected a fragment of " << rows << "x" << cols
                         << " elements of " << params.getElementType()
                         << ", as the slot's "
                         << (getTranspose() ? "columns" : "rows")
                         << " are, got " << type;
  auto ring = getRing().getDefiningOp<RingOp>();
  if (ring && ring.getShared())
    return emitOpError() << "puts into a ring that the blocks of a cluster "
                            "fill for each other; expected one without shared";
  for (Operation *user : getRing().getUsers()) {
    if (!isa<RingLoadOp>(user))
      continue;
    InFlightDiagnostic diag =
        emitOpError() << "puts into a ring that kvbuffer.ring_load fills; "
                         "expected one of them";
    diag.attachNote(user->getLoc()) << "the load is here";
    return diag;
  }
  return success();
}

LogicalResult RingWaitOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> location,
                                           RingWaitOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  return inferFrom<RingType>(
      adaptor.getRing(), "a ring", location, types,
      [](RingType type) { return StagedType::get(type.getParams()); });
}

LogicalResult LaunchSizeOp::verify() {
  if (getName().empty())
    return emitOpError() << "expected the name of a size";
  return success();
}

/// Whether all that is put into a slot's ring is one value, in whatever order.
static bool isOfOneValue(Value staged) {
  auto wait = slotOfView(staged).getDefiningOp<RingWaitOp>();
  if (!wait)
    return false;
  bool isPut = false;
  for (Operation *user : wait.getRing().getUsers()) {
    if (isa<RingLoadOp>(user))
      return false;
    if (auto put = dyn_cast<RingPutOp>(user)) {
      isPut = true;
      if (!put.getFragment().getDefiningOp<FragmentFillOp>())
        return false;
    }
  }
  return isPut;
}

LogicalResult MmaStartOp::verify() {
  StagedType b = getB().getType();
  PendingType result = getResult().getType();
  int64_t rows, contracted;
  if (auto fragment = dyn_cast<FragmentType>(getA().getType())) {
    if (fragment.getRole() != Role::A)
      return emitOpError() << "expected role a, got "
                           << stringifyRole(fragment.getRole());
    rows = fragment.getRows();
    contracted = fragment.getCols();
  } else {
    auto a = cast<StagedType>(getA().getType());
    rows = a.getRows();
    contracted = a.getCols();
  }
  int64_t n = getTransposeB() ? b.getRows() : b.getCols();
  int64_t k = getTransposeB() ? b.getCols() : b.getRows();
  if (rows != result.getRows() || n != result.getCols() || contracted != k)
    return emitOpError() << "cannot multiply " << getA().getType() << " by "
                         << getB().getType()
                         << (getTransposeB() ? " (transposed)" : "") << " into "
                         << result;
  if (Value acc = getAcc()) {
    auto pending = dyn_cast<PendingType>(acc.getType());
    FragmentType type =
        pending ? pending.getFragment() : cast<FragmentType>(acc.getType());
    if (type.getRole() != Role::Acc || type.getRows() != result.getRows() ||
        type.getCols() != result.getCols())
      return emitOpError() << "expected an accumulator of " << result.getRows()
                           << "x" << result.getCols() << ", got "
                           << acc.getType();
    if (pending)
      for (Operation *user : acc.getUsers()) {
        auto wait = dyn_cast<MmaWaitOp>(user);
        if (user == *this || (wait && wait.getAcc().use_empty()))
          continue;
        InFlightDiagnostic diag =
            emitOpError() << "goes on with a product that something else uses; "
                             "expected waits whose results nobody uses";
        diag.attachNote(user->getLoc()) << "the other use is here";
        return diag;
      }
  }
  // The matrix unit reads what lies in LDS in its natural order.
  auto acc = dyn_cast_or_null<MmaLayoutAttr>(result.getLayout());
  auto fragment = dyn_cast<FragmentType>(getA().getType());
  if (!acc || !fragment)
    return success();
  // Columns that lie side by side have the order in which they were put.
  auto a = dyn_cast_or_null<MmaLayoutAttr>(fragment.getLayout());
  bool isPut = a && (b.getParams().getOrder() == Dimension::Cols ||
                     isOfOneValue(getB()));
  return verifyProductLayouts(
      *this, fragment.getLayout(),
      acc.forOperand(Role::B, getTransposeB(),
                     isPut ? a.getOrder() : ArrayRef<int64_t>()),
      acc, getTransposeB());
}

LogicalResult MmaWaitOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> location,
                                          MmaWaitOp::Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferFrom<PendingType>(
      adaptor.getPending(), "a pending product", location, types,
      [](PendingType type) { return type.getFragment(); });
}

LogicalResult MmaWaitOp::verify() {
  if (int64_t(getYounger()) < 0)
    return emitOpError() << "expected younger of at least 0, got "
                         << int64_t(getYounger());
  return success();
}

/// Accumulators of an instruction in a lane, for each 8 columns.
static LogicalResult verifyAccumulators(Operation *op, TypeRange types) {
  auto expected = VectorType::get({4}, Float32Type::get(op->getContext()));
  for (Type type : types)
    if (type != expected)
      return op->emitOpError()
             << "expected results of type " << expected << ", got " << type;
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  return verifyAccumulators(*this, getResultTypes());
}

LogicalResult WgmmaOp::verify() {
  int64_t n = getN();
  if (n < 8 || n > 256 || n % 8)
    return emitOpError() << "expected n in 8, 16, ..., 256, got " << n;
  if (int64_t(getResults().size()) != n / 8)
    return emitOpError() << "expected " << n / 8 << " results, got "
                         << getResults().size();
  if (!getC().empty() && TypeRange(getC()) != TypeRange(getResults()))
    return emitOpError() << "expected c of the results' types";
  int64_t steps = getBSteps().size();
  if (steps < 1)
    return emitOpError() << "expected at least one step";
  if (bool(getADesc()) == !getA().empty())
    return emitOpError() << "expected a either as a descriptor or in registers";
  if (getADesc() && int64_t(getASteps().size()) != steps)
    return emitOpError() << "expected " << steps << " entries of a_steps, got "
                         << getASteps().size();
  if (!getADesc() && int64_t(getA().size()) != 4 * steps)
    return emitOpError() << "expected " << 4 * steps << " words of a, got "
                         << getA().size();
  auto isByte = [](Type type) {
    return isa<Float8E4M3FNType, Float8E5M2Type>(type);
  };
  if (!isByte(getElement()) && !getElement().isBF16() && !getElement().isF16())
    return emitOpError()
           << "expected elements bf16, f16, f8E4M3FN or f8E5M2, got "
           << getElement();
  if (elementOfA() != getElement() &&
      !(isByte(elementOfA()) && isByte(getElement())))
    return emitOpError() << "multiplies " << elementOfA() << " by "
                         << getElement()
                         << "; expected one type, or f8E4M3FN and f8E5M2";
  if (isByte(getElement()) && getTransposeB())
    return emitOpError() << "has b of " << getElement()
                         << ", whose contracted elements lie side by side; "
                            "expected no transpose_b";
  // Any 32 bits are two elements: what comes from another product's registers
  // has another type.
  for (Type type : getA().getTypes()) {
    auto word = dyn_cast<VectorType>(type);
    if (!word || word.getNumElements() * word.getElementTypeBitWidth() != 32)
      return emitOpError() << "expected words of type "
                           << VectorType::get({isByte(elementOfA()) ? 4 : 2},
                                              elementOfA())
                           << " of a, got " << type;
  }
  return verifyAccumulators(*this, getResultTypes());
}
