//===- Lanes.cpp - A kernel as lane code --------------------------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "LaneWarps.h"
#include "PackedRows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

bool Lanes::takesAnyTensor() const { return alignment < kTensorAlignment; }

Lanes::Lanes(gpu::GPUFuncOp kernel, const TargetInfo &target,
             ScheduleAttr schedule, Machine &machine, int64_t alignment)
    : b(kernel.getLoc(), kernel), target(target), machine(machine),
      kernel(kernel), alignment(alignment), blockSchedule(schedule),
      blockWarps(blockWarpsOf(kernel, schedule)), schedule(schedule) {}

int64_t Lanes::blockThreads() const { return blockWarps * target.waveSize; }

int64_t Lanes::cluster() const {
  gpu::GPUFuncOp function = kernel;
  auto size = function.getKnownClusterSize();
  return size ? size->front() : 1;
}

//===----------------------------------------------------------------------===//
// Scalars and memory
//===----------------------------------------------------------------------===//

Value Lanes::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}
Value Lanes::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}
Value Lanes::f32(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}
Value Lanes::toI32(Value value) {
  return arith::IndexCastOp::create(b, b.getI32Type(), value);
}
Value Lanes::toIndex(Value value) {
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}

void Lanes::enter(Value condition) {
  b.setInsertionPointToStart(
      scf::IfOp::create(b, condition, /*withElseRegion=*/false).thenBlock());
}

Value Lanes::flat(Value data) {
  Type element = cast<MemRefType>(data.getType()).getElementType();
  auto type = MemRefType::get(
      {ShapedType::kDynamic}, element, MemRefLayoutAttrInterface(),
      cast<MemRefType>(data.getType()).getMemorySpace());
  // The length is of no consequence: nothing asks for it.
  return memref::ReinterpretCastOp::create(
      b, type, data, b.getIndexAttr(0),
      ArrayRef<OpFoldResult>{index(std::numeric_limits<int64_t>::max())},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

Value Lanes::shared(Type element) {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto bytesType = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                                   MemRefLayoutAttrInterface(), space);
  Value bytes = gpu::DynamicSharedMemoryOp::create(b, bytesType);
  auto type = MemRefType::get({ShapedType::kDynamic}, element,
                              MemRefLayoutAttrInterface(), space);
  return memref::ViewOp::create(
      b, type, bytes, index(0),
      ValueRange{index(8 * target.ldsBytes / element.getIntOrFloatBitWidth())});
}

Value Lanes::scratch(int64_t bytes) {
  bytes = llvm::alignTo(bytes, kBufferAlignment);
  int64_t copies = team ? int64_t(TeamOp(team->op).getCopies()) : 1;
  Value first = i32(lds.take(copies * bytes));
  if (copies == 1)
    return first;
  return arith::AddIOp::create(
      b, first, arith::MulIOp::create(b, team->copy, i32(bytes)));
}

void Lanes::meetToRead() {
  if (team)
    machine.emitMeet(*this);
  else
    gpu::BarrierOp::create(b);
}

void Lanes::meetBlock() {
  LaneTeam *outer = std::exchange(team, nullptr);
  machine.emitMeet(*this);
  team = outer;
}

LogicalResult Lanes::putFragment(RingPutOp op, ArrayRef<Value> words,
                                 Value slot) {
  return emitFragmentPut(*this, op, words, slot);
}

Value Lanes::ldsElements(Type type, int64_t count) {
  Value first = scratch(count * type.getIntOrFloatBitWidth() / 8);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto memref = [&](Type element) {
    return MemRefType::get({ShapedType::kDynamic}, element,
                           MemRefLayoutAttrInterface(), space);
  };
  Value bytes = gpu::DynamicSharedMemoryOp::create(b, memref(b.getI8Type()));
  return memref::ViewOp::create(b, memref(type), bytes, toIndex(first),
                                ValueRange{index(count)});
}

FailureOr<Value> Lanes::stagedElement(TypedValue<StagedType> staged, Value row,
                                      Value col) {
  StagedType type = staged.getType();
  KVBufferAttr params = type.getParams();
  if (isTurnedInLds(target, params) || machine.turnedTile(*this, params))
    return current->emitOpError()
           << "reads elements of a slot that " << target.chip
           << " has turned; expected a buffer that products contract by "
              "columns";
  SharedTile tile = sharedTile(params);
  if (tile.elementBytes < 2)
    return current->emitOpError()
           << "reads single elements of " << params.getElementType()
           << "; expected elements of 16 or 32 bits";
  auto add = [&](Value x, Value y) {
    return arith::AddIOp::create(b, x, y).getResult();
  };
  auto mul = [&](Value x, int64_t y) {
    return arith::MulIOp::create(b, x, i32(y)).getResult();
  };
  auto masked = [&](Value x, int64_t bits) {
    return arith::AndIOp::create(b, x, i32(bits)).getResult();
  };
  auto shifted = [&](Value x, int64_t bits) {
    return arith::ShRUIOp::create(b, x, i32(bits)).getResult();
  };
  // As `SharedTile::byteOffset`, of numbers that lanes know.
  row = add(row, i32(type.getRow()));
  col = add(col, i32(type.getCol()));
  Value linear =
      mul(add(mul(row, tile.blockCols), masked(col, tile.blockCols - 1)),
          tile.elementBytes);
  int64_t unit = tile.swizzle.unit;
  Value vector = shifted(linear, llvm::Log2_64(unit)), place = vector;
  for (SwizzleTerm term : {tile.swizzle.first(), tile.swizzle.second})
    if (term.bits)
      place = arith::XOrIOp::create(
          b, place, shifted(masked(vector, term.looksAt()), term.shift));
  Value byte = add(mul(place, unit), masked(linear, unit - 1));
  byte = add(byte, mul(shifted(col, llvm::Log2_64(tile.blockCols)),
                       tile.blockBytes()));
  byte = add(byte, single(staged));
  Value at = toIndex(shifted(byte, llvm::Log2_64(tile.elementBytes)));
  return memref::LoadOp::create(b, shared(params.getElementType()),
                                ValueRange{at})
      .getResult();
}

Value Lanes::wordIndex(Value base, Value offset) {
  return toIndex(arith::ShRUIOp::create(
      b, arith::AddIOp::create(b, base, offset), i32(2)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Lanes::findSingle(Value value) const {
  auto it = map.find(value);
  return it != map.end() && it->second.size() == 1 ? it->second.front()
                                                   : Value();
}

void Lanes::laneTypes(Type type, SmallVectorImpl<Type> &types) {
  llvm::TypeSwitch<Type>(type)
      .Case([&](FragmentType fragment) {
        const FragmentLayout &layout = layouts.of(fragment);
        if (fragment.getRole() == Role::Row) {
          types.append(layout.rowValues(fragment), fragment.getElementType());
          return;
        }
        bool acc = fragment.getRole() == Role::Acc;
        int64_t width = acc ? layout.registers() : layout.words;
        types.append(layout.atoms(fragment) * layout.registers() / width,
                     VectorType::get({width}, fragment.getElementType()));
      })
      .Case(
          [&](PendingType pending) { laneTypes(pending.getFragment(), types); })
      .Case([&](TokenType token) {
        types.push_back(b.getI32Type());
        machine.tokenTypes(*this, token.getParams(), types);
      })
      .Case<BufferType, StagedType>(
          [&](Type) { types.push_back(b.getI32Type()); })
      .Default([&](Type other) { types.push_back(other); });
}

TileView Lanes::tileOf(TypedValue<TileType> tile) {
  auto made = tiles.find(tile);
  if (made != tiles.end())
    return made->second;
  TileView view = TileView::unpack(*this, tile, get(tile));
  if (view.map == RowMap::Places)
    view.places = placesOf(tile);
  return view;
}

void Lanes::setTile(TypedValue<TileType> tile, const TileView &view) {
  set(tile, view.pack());
  tiles[tile] = view;
}

Value Lanes::rowSlot(int64_t offset, int64_t rows) {
  Value at = arith::MulIOp::create(b, blockThread, i32(rows));
  return toIndex(arith::AddIOp::create(b, at, i32(offset / 4)));
}

/// What a thread's slot of `rows` f32 is aligned to: its own size, where that
/// is a power of two.
static llvm::Align slotAlign(int64_t rows) {
  return llvm::Align(std::min<int64_t>(16, 4 * (rows & -rows)));
}

void Lanes::storeRows(ArrayRef<Value> rows, int64_t offset) {
  auto type = VectorType::get({int64_t(rows.size())}, b.getF32Type());
  vector::StoreOp::create(b, vector::FromElementsOp::create(b, type, rows),
                          shared(b.getF32Type()),
                          ValueRange{rowSlot(offset, rows.size())},
                          /*nontemporal=*/false, slotAlign(rows.size()));
}

void Lanes::keepInLds(Value value, ValueRange others) {
  std::optional<int64_t> offset = lds.rowsOf(value);
  if (!offset) {
    offset = lds.take(4 * get(value).size() * blockThreads());
    storeRows(get(value), *offset);
  }
  for (Value other : others)
    lds.placeRows(other, *offset);
}

void Lanes::storeKept(Value value, ArrayRef<Value> rows) {
  if (std::optional<int64_t> offset = lds.rowsOf(value))
    storeRows(rows, *offset);
}

Values Lanes::rowValues(Value value) {
  std::optional<int64_t> offset = lds.rowsOf(value);
  if (!offset)
    return get(value);
  SmallVector<Type> types;
  laneTypes(value.getType(), types);
  int64_t rows = types.size();
  Value all = vector::LoadOp::create(b, VectorType::get({rows}, b.getF32Type()),
                                     shared(b.getF32Type()),
                                     ValueRange{rowSlot(*offset, rows)},
                                     /*nontemporal=*/false, slotAlign(rows));
  Values values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(vector::ExtractOp::create(b, all, ArrayRef<int64_t>{i}));
  return values;
}

//===----------------------------------------------------------------------===//
// Where a lane's elements lie
//===----------------------------------------------------------------------===//

Value Lanes::laneRow(FragmentType type) {
  // Parts of the rows are stacked in the order of the warps; a lane's part is
  // read off the layout.
  const FragmentLayout &layout = layouts.of(type);
  SmallVector<int64_t> basis;
  for (unsigned bit = 0; bit < layout.layout.inLog2("lane"); ++bit)
    basis.push_back(layout.layout.basis("lane", bit, "row"));
  Value inWarp = emitLinear(b, lane, basis);
  return arith::AddIOp::create(
      b, inWarp,
      arith::MulIOp::create(b, rowPart(layout), i32(layout.warpRows(type))));
}

Value Lanes::laneCol(FragmentType type) {
  const FragmentLayout &layout = layouts.of(type);
  SmallVector<int64_t> basis;
  for (unsigned bit = 0; bit < layout.layout.inLog2("lane"); ++bit)
    basis.push_back(layout.layout.basis("lane", bit, "col"));
  return addColPart(layout, type, emitLinear(b, lane, basis));
}

Value Lanes::rowPart(const FragmentLayout &layout) {
  if (!layout.sharesCols())
    return warp;
  if (layout.byGridCols)
    return gridCol(layout);
  return arith::AndIOp::create(b, warp, i32(layout.gridRows - 1));
}

Value Lanes::gridCol(const FragmentLayout &layout) {
  return arith::ShRUIOp::create(b, warp, i32(llvm::Log2_64(layout.gridRows)));
}

Value Lanes::addColPart(const FragmentLayout &layout, FragmentType type,
                        Value col) {
  if (layout.colWarps == 1)
    return col;
  return arith::AddIOp::create(
      b, col,
      arith::MulIOp::create(b, gridCol(layout), i32(layout.warpCols(type))));
}

Value Lanes::firstOfRow(const FragmentLayout &layout) {
  int64_t others = 0;
  for (unsigned bit : layout.reductionBits())
    others |= int64_t(1) << bit;
  Value place = arith::AndIOp::create(b, lane, i32(others));
  // Of the warps that share a row's columns, the first one's.
  if (layout.colWarps > 1)
    place = arith::OrIOp::create(b, place, gridCol(layout));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, i32(0));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value Lanes::element(Value vector, int64_t i) {
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{i});
}

Values Lanes::mapElements(ArrayRef<Value> vectors,
                          function_ref<Value(Value, unsigned, int64_t)> fn) {
  Values results;
  for (auto [atom, vector] : llvm::enumerate(vectors)) {
    auto type = cast<VectorType>(vector.getType());
    Values elements;
    for (int64_t reg = 0; reg < type.getNumElements(); ++reg)
      elements.push_back(fn(element(vector, reg), atom, reg));
    results.push_back(vector::FromElementsOp::create(
        b, VectorType::get(type.getShape(), elements.front().getType()),
        elements));
  }
  return results;
}

Values Lanes::mapElements(TypedValue<FragmentType> fragment,
                          function_ref<Value(Value, const LaneElement &)> fn) {
  const FragmentLayout &layout = layouts.of(fragment.getType());
  int64_t cols = layout.atomCols(fragment.getType());
  int64_t parts = layout.rowParts().size();
  return mapElements(
      get(fragment), [&](Value element, unsigned atom, int64_t reg) {
        unsigned part = layout.rowPart(reg);
        return fn(element, {layout.rowOffset(atom / cols, part),
                            atom % cols * layout.cols + layout.colOffset(reg),
                            atom / cols * parts + part});
      });
}

Value Lanes::reduceLanes(const FragmentLayout &layout, Value value,
                         bool isMax) {
  // What all lanes are known to have: of rows that do not exist.
  if (isMax ? matchPattern(value, m_Constant())
            : matchPattern(value, m_AnyZeroFloat()))
    return value;
  for (unsigned bit : layout.reductionBits()) {
    auto shuffle =
        gpu::ShuffleOp::create(b, value, i32(int64_t(1) << bit),
                               i32(target.waveSize), gpu::ShuffleMode::XOR);
    Value other = shuffle.getShuffleResult();
    value = isMax ? arith::MaxNumFOp::create(b, value, other).getResult()
                  : arith::AddFOp::create(b, value, other).getResult();
  }
  return value;
}

Value Lanes::reduceRow(FragmentType type, Value value, bool isMax) {
  const FragmentLayout &layout = layouts.of(type);
  value = reduceLanes(layout, value, isMax);
  return reduceWarps(type, value, isMax).front();
}

Values Lanes::reduceWarps(FragmentType type, ArrayRef<Value> values,
                          bool isMax) {
  const FragmentLayout &layout = layouts.of(type);
  if (layout.colWarps == 1)
    return Values(values);
  return kvbuf::reduceWarps(*this, current, layout, values, isMax);
}

FailureOr<Value> Lanes::tileElement(TypedValue<TileType> tile, Value row,
                                    Value col) {
  TileView view = tileOf(tile);
  Type type = tile.getType().getElementType();
  if (type.getIntOrFloatBitWidth() < 16)
    return current->emitOpError() << "reads single elements of " << type
                                  << "; expected elements of 16 or 32 bits";
  if (view.map == RowMap::Lanes || packedRowOf(tile))
    return current->emitOpError()
           << "reads elements of a tile whose "
           << (view.map == RowMap::Lanes ? "pages lanes have looked up"
                                         : "rows are packed")
           << "; expected a kvbuffer.dram_load of it";
  auto is = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, x, y);
  };
  Value cols = view.cols ? view.cols : i32(tile.getType().getCols());
  Value isThere = both(is(arith::CmpIPredicate::slt, row, view.hi),
                       is(arith::CmpIPredicate::sge, row, view.lo));
  isThere = both(isThere, is(arith::CmpIPredicate::slt, col, cols));
  auto load = scf::IfOp::create(b, TypeRange{type}, isThere,
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(load.thenBlock());
  Value at = arith::AddIOp::create(b, view.lineOf(*this, row), toIndex(col));
  scf::YieldOp::create(
      b, memref::LoadOp::create(b, flat(view.data), at).getResult());
  b.setInsertionPointToStart(load.elseBlock());
  scf::YieldOp::create(
      b, arith::ConstantOp::create(b, type, b.getZeroAttr(type)).getResult());
  return load.getResult(0);
}
