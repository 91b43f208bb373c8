//===- Foreign.cpp - A dialect that kvbuf does not know -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plugin of the tests: its op on fragments says itself how it becomes lane
// code and what it means on whole tiles. Nothing in kvbuf names it.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/LaneLoweringInterface.h"
#include "kvbuffer/Emulator/TileExecutionInterface.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// `"foreign.affine"(%x, %r) {slope = s : f32}`: x * r + s * column, where `r`
/// has a number for each row of `x`. With `sums`, a unit attribute, the
/// result's row is the sum of that row's elements everywhere.
class AffineOp
    : public Op<AffineOp, OpTrait::NOperands<2>::Impl, OpTrait::OneResult,
                OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
                LaneLoweringInterface::Trait,
                emu::TileExecutionInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AffineOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.affine"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  LogicalResult verify() {
    auto acc = dyn_cast<FragmentType>(getOperand(0).getType());
    auto row = dyn_cast<FragmentType>(getOperand(1).getType());
    if (!acc || !row || acc.getRole() != Role::Acc ||
        row.getRole() != Role::Row || result().getType() != acc ||
        !getOperation()->getAttrOfType<FloatAttr>("slope"))
      return emitOpError(
          "expected an accumulator, its rows' values and a slope");
    return success();
  }

  Value result() { return getOperation()->getResult(0); }
  float slope() {
    return getOperation()->getAttrOfType<FloatAttr>("slope").getValueAsDouble();
  }
  bool sums() { return getOperation()->hasAttr("sums"); }

  LogicalResult lowerToLanes(LaneContext &context) {
    ImplicitLocOpBuilder &b = context.builder();
    auto x = cast<TypedValue<FragmentType>>(getOperand(0));
    SmallVector<Value> rows = context.lanesOf(getOperand(1));
    auto f32 = [&](float value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    Value laneCol = context.laneCol(x.getType());
    SmallVector<Value> sums(rows.size(), f32(0));
    auto affine = [&](Value element, const LaneElement &at) -> Value {
      Value col = arith::AddIOp::create(
          b, laneCol, arith::ConstantIntOp::create(b, at.col, 32).getResult());
      col = arith::SIToFPOp::create(b, b.getF32Type(), col);
      Value y = arith::AddFOp::create(
          b, arith::MulFOp::create(b, element, rows[at.rowValue]).getResult(),
          arith::MulFOp::create(b, col, f32(slope())).getResult());
      sums[at.rowValue] = arith::AddFOp::create(b, sums[at.rowValue], y);
      return y;
    };
    context.setLanes(result(), context.mapElements(x, affine));
    if (!this->sums())
      return success();
    for (Value &sum : sums)
      sum = context.reduceRow(x.getType(), sum, /*isMax=*/false);
    context.setLanes(result(),
                     context.mapElements(x, [&](Value, const LaneElement &at) {
                       return sums[at.rowValue];
                     }));
    return success();
  }

  LogicalResult executeTile(emu::TileContext &context) {
    const emu::Matrix &x = context.matrixOf(getOperand(0));
    const emu::Matrix &rows = context.matrixOf(getOperand(1));
    emu::Matrix scaled(x.rows, x.cols);
    for (int64_t r = 0; r < x.rows; ++r) {
      float sum = 0;
      for (int64_t c = 0; c < x.cols; ++c)
        sum += scaled.at(r, c) = x.at(r, c) * rows.at(r, 0) + slope() * c;
      for (int64_t c = 0; sums() && c < x.cols; ++c)
        scaled.at(r, c) = sum;
    }
    context.setMatrix(result(), std::move(scaled));
    return success();
  }
};

/// An op that nobody says anything about.
class SilentOp : public Op<SilentOp, OpTrait::OneOperand, OpTrait::OneResult,
                           OpTrait::ZeroRegions, OpTrait::ZeroSuccessors> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SilentOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.silent"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

class ForeignDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForeignDialect)
  explicit ForeignDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ForeignDialect>()) {
    addOperations<AffineOp, SilentOp>();
  }
  static StringRef getDialectNamespace() { return "foreign"; }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {
      MLIR_PLUGIN_API_VERSION, "Foreign", "1",
      [](DialectRegistry *registry) { registry->insert<ForeignDialect>(); }};
}
