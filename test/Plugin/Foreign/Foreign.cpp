//===- Foreign.cpp - A dialect that kvbuf does not know -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plugin of the tests: its op on fragments says itself how it becomes lane
// code and what it means on whole tiles, and its types of caches where rows
// are. Nothing in kvbuf names them.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/LaneLoweringInterface.h"
#include "kvbuffer/Dialect/KVBuffer/IR/CacheLayout.h"
#include "kvbuffer/Emulator/TileExecutionInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
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

/// `"foreign.column_sums"(%x, %slot)`: each element of `x` and the sum of its
/// column of what a slot of LDS, or a tile in DRAM, holds, bf16. Threads leave
/// sums in LDS.
class ColumnSumsOp
    : public Op<ColumnSumsOp, OpTrait::NOperands<2>::Impl, OpTrait::OneResult,
                OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
                LaneLoweringInterface::Trait,
                emu::TileExecutionInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ColumnSumsOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.column_sums"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  TypedValue<FragmentType> x() {
    return cast<TypedValue<FragmentType>>(getOperand(0));
  }
  Value slot() { return getOperand(1); }
  /// Its rows and columns.
  std::pair<int64_t, int64_t> extents() {
    if (auto staged = dyn_cast<StagedType>(slot().getType()))
      return {staged.getRows(), staged.getCols()};
    auto tile = cast<TileType>(slot().getType());
    return {tile.getRows(), tile.getCols()};
  }
  FailureOr<Value> elementAt(LaneContext &context, Value row, Value col) {
    if (isa<TileType>(slot().getType()))
      return context.tileElement(cast<TypedValue<TileType>>(slot()), row, col);
    return context.stagedElement(cast<TypedValue<StagedType>>(slot()), row,
                                 col);
  }

  LogicalResult lowerToLanes(LaneContext &context) {
    ImplicitLocOpBuilder &b = context.builder();
    auto [rows, cols] = extents();
    auto i32 = [&](int64_t value) { return context.i32(value); };
    auto index = [&](Value value) { return context.toIndex(value); };
    Value sums = context.ldsElements(b.getF32Type(), cols);
    for (int64_t first = 0; first < cols; first += context.ownThreads()) {
      Value col = arith::AddIOp::create(b, context.ownThread(), i32(first));
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, col, i32(cols));
      auto ifOp = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      Value sum;
      for (int64_t row = 0; row < rows; ++row) {
        FailureOr<Value> element = elementAt(context, i32(row), col);
        if (failed(element))
          return failure();
        Value wide = arith::ExtFOp::create(b, b.getF32Type(), *element);
        sum = sum ? arith::AddFOp::create(b, sum, wide) : wide;
      }
      memref::StoreOp::create(b, sum, sums, ValueRange{index(col)});
    }
    context.meet();
    Value laneCol = context.laneCol(x().getType());
    auto addSum = [&](Value element, const LaneElement &at) -> Value {
      Value col = arith::AddIOp::create(b, laneCol, i32(at.col));
      Value sum = memref::LoadOp::create(b, sums, ValueRange{index(col)});
      return arith::AddFOp::create(b, element, sum);
    };
    context.setLanes(getOperation()->getResult(0),
                     context.mapElements(x(), addSum));
    context.meet();
    return success();
  }

  LogicalResult executeTile(emu::TileContext &context) {
    FailureOr<emu::Matrix> staged =
        isa<TileType>(slot().getType())
            ? context.tileBy(getOperation(), slot())
            : context.stagedBy(getOperation(), slot());
    if (failed(staged))
      return failure();
    emu::Matrix result = context.matrixOf(x());
    for (int64_t c = 0; c < result.cols; ++c) {
      float sum = 0;
      for (int64_t r = 0; r < staged->rows; ++r)
        sum += staged->at(r, c);
      for (int64_t r = 0; r < result.rows; ++r)
        result.at(r, c) += sum;
    }
    context.setMatrix(getOperation()->getResult(0), std::move(result));
    return success();
  }
};

/// What ops below hold for each other on whole tiles: `h` stands for it.
struct Held {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Held)
  std::shared_ptr<const emu::Matrix> matrix;
};

/// Ops of a block, or of a team, that hold what nobody has given back.
struct Holders : emu::TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Holders)
  LogicalResult finish(emu::TileContext &context, StringRef owner) override {
    for (auto &[value, op] : ops)
      return context.errorAt(op)
             << "holds what is not given back when the " << owner << " ends";
    return success();
  }
  llvm::DenseMap<Value, Operation *> ops;
};

/// What lanes have of fragments that are held.
struct HeldLanes : LaneState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HeldLanes)
  llvm::DenseMap<Value, SmallVector<Value>> lanes;
};

/// `%h = "foreign.hold"(%x)`, an index, and `"foreign.give"(%h)`, the fragment
/// again: values of their own and states of their own, on both ends.
class HoldOp : public Op<HoldOp, OpTrait::OneOperand, OpTrait::OneResult,
                         OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
                         LaneLoweringInterface::Trait,
                         emu::TileExecutionInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HoldOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.hold"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  LogicalResult lowerToLanes(LaneContext &context) {
    Value held = getOperation()->getResult(0);
    context.ofKernel<HeldLanes>().lanes[held] = context.lanesOf(getOperand());
    return success();
  }

  LogicalResult executeTile(emu::TileContext &context) {
    Value held = getOperation()->getResult(0);
    context.setObject(held, Held{context.shareMatrix(getOperand())});
    context.ofTeam<Holders>().ops[held] = getOperation();
    return success();
  }
};

class GiveOp : public Op<GiveOp, OpTrait::OneOperand, OpTrait::OneResult,
                         OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
                         LaneLoweringInterface::Trait,
                         emu::TileExecutionInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GiveOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.give"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  LogicalResult lowerToLanes(LaneContext &context) {
    auto &lanes = context.ofKernel<HeldLanes>().lanes;
    auto held = lanes.find(getOperand());
    if (held == lanes.end())
      return emitOpError("gives what is not held");
    context.setLanes(getOperation()->getResult(0), held->second);
    lanes.erase(held);
    return success();
  }

  LogicalResult executeTile(emu::TileContext &context) {
    Held *held = context.findObject<Held>(getOperand());
    if (!held || !context.ofTeam<Holders>().ops.erase(getOperand()))
      return context.errorAt(getOperation()) << "gives what is not held";
    context.setMatrix(getOperation()->getResult(0), held->matrix);
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

/// `!foreign.backwards`: two heads of eight f32, [batch, rows, heads, 8]. A
/// sequence's first token is in its last row. All rows are full.
class BackwardsType : public Type::TypeBase<BackwardsType, Type, TypeStorage,
                                            CacheLayout::Trait> {
public:
  using Base::Base;
  static constexpr StringLiteral name = "foreign.backwards";

  Type getElementType() const { return Float32Type::get(getContext()); }
  int64_t getHeads() const { return 2; }
  int64_t getHeadSize() const { return 8; }
  int64_t getCacheDepth() const { return 8; }
  int64_t getHeadDimOffset() const { return 0; }
  Type getScaleType() const { return nullptr; }
  int64_t getGranularity() const { return kPerTensor; }
  SmallVector<CacheDim> getLeadingDims() const {
    return {{ShapedType::kDynamic, "batch"}, {ShapedType::kDynamic, "rows"}};
  }
  SmallVector<CacheTensor> getIndexTensors() const { return {}; }
  int64_t getRun() const { return 1; }

  Value emitBatch(OpBuilder &b, Location loc, const CacheParts &parts) const {
    return memref::DimOp::create(b, loc, parts.data, 0);
  }
  Value emitRoom(OpBuilder &b, Location loc, const CacheParts &parts,
                 Value) const {
    return memref::DimOp::create(b, loc, parts.data, 1);
  }
  Value emitLength(OpBuilder &b, Location loc, const CacheParts &parts,
                   Value batch) const {
    return emitRoom(b, loc, parts, batch);
  }
  CachePlace emitPlace(OpBuilder &b, Location loc, const CacheParts &parts,
                       Value batch, Value token, bool checked) const {
    Value room = emitRoom(b, loc, parts, batch);
    // Unsigned: a token below 0 is past all rows.
    Value valid =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, token, room);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value last = arith::SubIOp::create(b, loc, room, one);
    Value row = arith::SubIOp::create(b, loc, last, token);
    if (!checked)
      return {{batch, row}, nullptr};
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    return {{batch, arith::SelectOp::create(b, loc, valid, row, zero)}, valid};
  }
};

/// The parameters of a type: two numbers.
struct NumbersStorage : TypeStorage {
  using KeyTy = std::pair<int64_t, int64_t>;
  explicit NumbersStorage(const KeyTy &key) : key(key) {}
  bool operator==(const KeyTy &other) const { return key == other; }
  static NumbersStorage *construct(TypeStorageAllocator &allocator,
                                   const KeyTy &key) {
    return new (allocator.allocate<NumbersStorage>()) NumbersStorage(key);
  }
  KeyTy key;
};

/// What the types below have in common: two heads of so many bf16.
template <typename Concrete>
class HeadsType : public Type::TypeBase<Concrete, Type, NumbersStorage,
                                        CacheLayout::Trait> {
public:
  using Base =
      Type::TypeBase<Concrete, Type, NumbersStorage, CacheLayout::Trait>;
  using Base::Base;
  Type getElementType() const { return BFloat16Type::get(this->getContext()); }
  int64_t getHeads() const { return 2; }
  int64_t getHeadSize() const { return this->getImpl()->key.first; }
  int64_t getCacheDepth() const { return getHeadSize(); }
  int64_t getHeadDimOffset() const { return 0; }
  Type getScaleType() const { return nullptr; }
  int64_t getGranularity() const { return kPerTensor; }
};

/// Emits numbers of type `index`.
struct Numbers {
  OpBuilder &b;
  Location loc;
  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename OpTy> Value make(Value x, Value y) {
    return OpTy::create(b, loc, x, y);
  }
  Value isBelow(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
  }
  Value choose(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value dim(Value memref, int64_t d) {
    return memref::DimOp::create(b, loc, memref, d);
  }
  /// An entry of an index tensor, from 0 on.
  Value entry(Value memref, ValueRange at) {
    Value word = memref::LoadOp::create(b, loc, memref, at);
    Value x = arith::IndexCastOp::create(b, loc, b.getIndexType(), word);
    return make<arith::MaxSIOp>(x, number(0));
  }
};

/// `"foreign.scattered"(%tensor, %list, %first, %rows)`: a tile of rows of a
/// tensor [sheets, rows, D]. Row i is that of number n = list[first + i]: row n
/// / sheets of sheet n mod sheets.
class ScatteredOp
    : public Op<ScatteredOp, OpTrait::NOperands<4>::Impl, OpTrait::OneResult,
                OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
                LaneLoweringInterface::Trait,
                emu::TileExecutionInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScatteredOp)
  using Op::Op;
  static StringRef getOperationName() { return "foreign.scattered"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  int64_t sheets() {
    return cast<MemRefType>(getOperand(0).getType()).getDimSize(0);
  }
  Value tile() { return getOperation()->getResult(0); }

  LogicalResult lowerToLanes(LaneContext &context) {
    Value list = context.memrefOf(getOperand(1));
    Value first = context.lanesOf(getOperand(2)).front();
    Value rows = context.lanesOf(getOperand(3)).front();
    int64_t sheets = this->sheets();
    context.setTileRows(
        cast<TypedValue<TileType>>(tile()), getOperand(0), rows,
        [=](ImplicitLocOpBuilder &b, Value row) -> SmallVector<Value> {
          Numbers n{b, b.getLoc()};
          // In place of a row that is not there stands the last one that is.
          Value last = n.make<arith::SubIOp>(rows, n.number(1));
          Value at =
              n.make<arith::AddIOp>(first, n.make<arith::MinSIOp>(row, last));
          Value number = n.entry(list, at);
          return {n.make<arith::RemUIOp>(number, n.number(sheets)),
                  n.make<arith::DivUIOp>(number, n.number(sheets))};
        });
    return success();
  }

  LogicalResult executeTile(emu::TileContext &context) {
    int64_t first = context.integerOf(getOperand(2));
    std::vector<std::vector<int64_t>> rows;
    for (int64_t i = 0, e = context.integerOf(getOperand(3)); i < e; ++i) {
      FailureOr<int64_t> number =
          context.elementOf(getOperation(), getOperand(1), {first + i});
      if (failed(number))
        return failure();
      rows.push_back({*number % sheets(), *number / sheets()});
    }
    return context.setTileRows(getOperation(), tile(), getOperand(0), rows);
  }
};

/// `!foreign.rolling<D>`: [batch, rows, heads, D]. `count` says how many tokens
/// a sequence has had; the cache keeps as many of the last as it has rows, each
/// new one in the place of the oldest.
class RollingType : public HeadsType<RollingType> {
public:
  using HeadsType::HeadsType;
  static constexpr StringLiteral name = "foreign.rolling";

  SmallVector<CacheDim> getLeadingDims() const {
    return {{ShapedType::kDynamic, "batch"}, {ShapedType::kDynamic, "rows"}};
  }
  SmallVector<CacheTensor> getIndexTensors() const {
    return {{"count", {{ShapedType::kDynamic, "batch"}}}};
  }
  int64_t getRun() const { return 1; }
  Value emitBatch(OpBuilder &b, Location loc, const CacheParts &parts) const {
    return Numbers{b, loc}.dim(parts.data, 0);
  }
  Value emitRoom(OpBuilder &b, Location loc, const CacheParts &parts,
                 Value) const {
    return Numbers{b, loc}.dim(parts.data, 1);
  }
  Value emitLength(OpBuilder &b, Location loc, const CacheParts &parts,
                   Value batch) const {
    Numbers n{b, loc};
    return n.make<arith::MinSIOp>(n.entry(parts.indices[0], batch),
                                  n.dim(parts.data, 1));
  }
  CachePlace emitPlace(OpBuilder &b, Location loc, const CacheParts &parts,
                       Value batch, Value token, bool checked) const {
    Numbers n{b, loc};
    Value rows = n.dim(parts.data, 1), count = n.entry(parts.indices[0], batch);
    // The oldest of the last `rows` stands where the next one will.
    Value oldest = n.choose(n.isBelow(rows, count),
                            n.make<arith::RemUIOp>(count, rows), n.number(0));
    Value row =
        n.make<arith::RemUIOp>(n.make<arith::AddIOp>(oldest, token), rows);
    if (!checked)
      return {{batch, row}, nullptr};
    Value valid = n.isBelow(token, n.make<arith::MinSIOp>(count, rows));
    return {{batch, n.choose(valid, row, n.number(0))}, valid};
  }
};

/// `!foreign.shelves<D, R>`: [batch, shelves, R, heads, D]. A sequence's first
/// R tokens are on its last shelf, the next ones on that before it.
class ShelvesType : public HeadsType<ShelvesType> {
public:
  using HeadsType::HeadsType;
  static constexpr StringLiteral name = "foreign.shelves";

  SmallVector<CacheDim> getLeadingDims() const {
    return {{ShapedType::kDynamic, "batch"},
            {ShapedType::kDynamic, "shelves"},
            {getRun(), ""}};
  }
  SmallVector<CacheTensor> getIndexTensors() const {
    return {{"tokens", {{ShapedType::kDynamic, "batch"}}}};
  }
  int64_t getRun() const { return getImpl()->key.second; }
  Value emitBatch(OpBuilder &b, Location loc, const CacheParts &parts) const {
    return Numbers{b, loc}.dim(parts.data, 0);
  }
  Value emitRoom(OpBuilder &b, Location loc, const CacheParts &parts,
                 Value) const {
    Numbers n{b, loc};
    return n.make<arith::MulIOp>(n.dim(parts.data, 1), n.number(getRun()));
  }
  Value emitLength(OpBuilder &b, Location loc, const CacheParts &parts,
                   Value batch) const {
    Numbers n{b, loc};
    return n.make<arith::MinSIOp>(n.entry(parts.indices[0], batch),
                                  emitRoom(b, loc, parts, batch));
  }
  CachePlace emitPlace(OpBuilder &b, Location loc, const CacheParts &parts,
                       Value batch, Value token, bool checked) const {
    Numbers n{b, loc};
    Value run = n.number(getRun()), valid;
    if (checked) {
      valid = n.isBelow(token, emitRoom(b, loc, parts, batch));
      token = n.choose(valid, token, n.number(0));
    }
    Value last = n.make<arith::SubIOp>(n.dim(parts.data, 1), n.number(1));
    Value shelf =
        n.make<arith::SubIOp>(last, n.make<arith::DivUIOp>(token, run));
    return {{batch, shelf, n.make<arith::RemUIOp>(token, run)}, valid};
  }
};

/// `!foreign.counted<D, R>`: [batch, rows, heads, D], tokens in their order, of
/// which `lengths` says how many there are: nothing that only its code knows.
/// Runs of R tokens, which no table names, are nonsense.
class CountedType : public HeadsType<CountedType> {
public:
  using HeadsType::HeadsType;
  static constexpr StringLiteral name = "foreign.counted";

  SmallVector<CacheDim> getLeadingDims() const {
    return {{ShapedType::kDynamic, "batch"}, {ShapedType::kDynamic, "rows"}};
  }
  SmallVector<CacheTensor> getIndexTensors() const {
    return {{"lengths", {{ShapedType::kDynamic, "batch"}}}};
  }
  CacheRows getRows() const {
    CacheRows rows = CacheRows::inOrder();
    rows.lengths = 0;
    return rows;
  }
  int64_t getRun() const { return getImpl()->key.second; }
  Value emitBatch(OpBuilder &b, Location loc, const CacheParts &parts) const {
    return Numbers{b, loc}.dim(parts.data, 0);
  }
  Value emitRoom(OpBuilder &b, Location loc, const CacheParts &parts,
                 Value) const {
    return Numbers{b, loc}.dim(parts.data, 1);
  }
  Value emitLength(OpBuilder &b, Location loc, const CacheParts &parts,
                   Value batch) const {
    Numbers n{b, loc};
    return n.make<arith::MinSIOp>(n.entry(parts.indices[0], batch),
                                  n.dim(parts.data, 1));
  }
  CachePlace emitPlace(OpBuilder &b, Location loc, const CacheParts &parts,
                       Value batch, Value token, bool checked) const {
    Numbers n{b, loc};
    if (!checked)
      return {{batch, token}, nullptr};
    Value valid = n.isBelow(token, n.dim(parts.data, 1));
    return {{batch, n.choose(valid, token, n.number(0))}, valid};
  }
};

class ForeignDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForeignDialect)
  explicit ForeignDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ForeignDialect>()) {
    addOperations<AffineOp, ColumnSumsOp, HoldOp, GiveOp, ScatteredOp,
                  SilentOp>();
    addTypes<BackwardsType, RollingType, ShelvesType, CountedType>();
  }
  Type parseType(DialectAsmParser &parser) const override {
    StringRef word;
    int64_t size = 0, run = 0;
    if (parser.parseKeyword(&word))
      return Type();
    if (word == "backwards")
      return BackwardsType::get(getContext());
    if (parser.parseLess() || parser.parseInteger(size) ||
        (word != "rolling" &&
         (parser.parseComma() || parser.parseInteger(run))) ||
        parser.parseGreater())
      return Type();
    if (word == "rolling")
      return RollingType::get(getContext(), std::pair(size, run));
    if (word == "counted")
      return CountedType::get(getContext(), std::pair(size, run));
    return ShelvesType::get(getContext(), std::pair(size, run));
  }
  void printType(Type type, DialectAsmPrinter &printer) const override {
    if (isa<BackwardsType>(type))
      printer << "backwards";
    else if (auto rolling = dyn_cast<RollingType>(type))
      printer << "rolling<" << rolling.getHeadSize() << ">";
    else if (auto shelves = dyn_cast<ShelvesType>(type))
      printer << "shelves<" << shelves.getHeadSize() << ", " << shelves.getRun()
              << ">";
    else if (auto counted = dyn_cast<CountedType>(type))
      printer << "counted<" << counted.getHeadSize() << ", " << counted.getRun()
              << ">";
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
