//===- LaneStores.cpp - Results from registers to DRAM ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

static Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}
static Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulIOp::create(b, x, y);
}
static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value x, Value y) {
  return arith::CmpIOp::create(b, predicate, x, y);
}

Value LaneLowering::laneRow() {
  // Warps are stacked along rows; a lane's part is read off the layout.
  SmallVector<int64_t> basis;
  const LinearLayout &layout = layouts.atom(Role::Acc).layout;
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    basis.push_back(layout.basis("lane", bit, "row"));
  Value inWarp = emitLinear(b, lane, basis);
  return arith::AddIOp::create(
      b, inWarp, arith::MulIOp::create(b, warp, i32(schedule.getWM())));
}

Value LaneLowering::laneCol() {
  SmallVector<int64_t> basis;
  const LinearLayout &layout = layouts.atom(Role::Acc).layout;
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    basis.push_back(layout.basis("lane", bit, "col"));
  return emitLinear(b, lane, basis);
}

int64_t LaneLowering::rowOffset(int64_t atomRow, unsigned part) const {
  return atomRow * layouts.atom(Role::Acc).rows + layouts.rowParts()[part];
}

LogicalResult LaneLowering::lower(FragmentStoreOp op) {
  TileValues tile =
      TileValues::unpack(op.getTile().getType(), get(op.getTile()));
  if (!op.getVia() || !op->getParentOfType<WarpRolesOp>()) {
    emitStore(op, tile);
    return success();
  }
  auto at = coordinates.find(op.getTile());
  if (at == coordinates.end())
    return op.emitOpError() << "expected a tile that kvbuffer.dram_tile makes";
  if (!at->second.rowsBehind)
    return machine.emitStoreVia(*this, op, at->second, get(op.getFragment()),
                                single(op.getVia()));
  // An engine's box would write rows that are not the tile's.
  Value whole = compare(b, arith::CmpIPredicate::sge, tile.hi,
                        i32(op.getTile().getType().getRows()));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  if (failed(machine.emitStoreVia(*this, op, at->second, get(op.getFragment()),
                                  single(op.getVia()))))
    return failure();
  b.setInsertionPointToStart(ifWhole.elseBlock());
  emitStore(op, tile);
  return success();
}

void LaneLowering::emitStore(FragmentStoreOp op, const TileValues &tile) {
  FragmentType type = op.getFragment().getType();
  const FragmentLayouts::Atom &atom = layouts.atom(type.getRole());
  const Values &vectors = get(op.getFragment());
  int64_t atomCols = type.getCols() / atom.cols;
  int64_t atomRows = vectors.size() / atomCols;
  int64_t cols = op.getTile().getType().getCols();
  Value out = flat(tile.data);
  Value row = laneRow(), col = laneCol();

  // Runs of registers with consecutive columns go out in one store.
  int64_t run = 1;
  while (run * 2 <= atom.registers() &&
         atom.layout.basis("register", llvm::Log2_64(run), "col") == run &&
         atom.layout.basis("register", llvm::Log2_64(run), "row") == 0)
    run *= 2;
  for (int64_t i = 0; i < atomRows; ++i)
    for (auto [part, partRow] : llvm::enumerate(layouts.rowParts())) {
      Value r = arith::AddIOp::create(b, row, i32(rowOffset(i, part)));
      Value valid = compare(b, arith::CmpIPredicate::slt, r, tile.hi);
      auto guarded = scf::IfOp::create(b, valid, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(guarded.thenBlock());
      Value line = add(b, tile.base, mul(b, toIndex(r), tile.rowStride));
      line = add(b, line, toIndex(col));
      for (int64_t j = 0; j < atomCols; ++j)
        for (int64_t reg = 0; reg < atom.registers(); reg += run) {
          if (layouts.rowPart(reg) != part)
            continue;
          int64_t at =
              j * atom.cols + atom.layout.apply({{"register", reg}}, "col");
          Value whole = vectors[i * atomCols + j];
          auto elements = llvm::to_vector(llvm::seq(reg, reg + run));
          Value piece = vector::ShuffleOp::create(b, whole, whole, elements);
          auto store = [&] {
            // Rows and strides are multiples of 16 bytes; see the manifest.
            vector::StoreOp::create(
                b, piece, out, ValueRange{add(b, line, index(at))},
                /*nontemporal=*/false,
                llvm::Align(run *
                            type.getElementType().getIntOrFloatBitWidth() / 8));
          };
          // Columns of an atom that the tile may not have.
          if ((j + 1) * atom.cols <= cols) {
            store();
            continue;
          }
          Value c = arith::AddIOp::create(b, col, i32(at));
          auto inside = scf::IfOp::create(
              b, compare(b, arith::CmpIPredicate::slt, c, i32(cols)),
              /*withElseRegion=*/false);
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToStart(inside.thenBlock());
          store();
        }
    }
}

void LaneLowering::lower(RowStoreOp op) {
  const TensorArg &tensor = tensors[op.getTensor()];
  Value base;
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = single(position);
    if (i < tensor.strides.size())
      term = mul(b, term, tensor.strides[i]);
    base = base ? add(b, base, term) : term;
  }
  Value valid = toI32(arith::MinSIOp::create(
      b, single(op.getValid()), index(op.getFragment().getType().getRows())));
  // The lanes that share a row hold the same value: the first of them stores.
  int64_t others = 0;
  for (unsigned bit : layouts.reductionBits())
    others |= int64_t(1) << bit;
  Value first = compare(b, arith::CmpIPredicate::eq,
                        arith::AndIOp::create(b, lane, i32(others)), i32(0));
  Value row = laneRow();
  Value out = flat(tensor.data);
  unsigned parts = layouts.rowParts().size();
  for (auto [i, value] : llvm::enumerate(get(op.getFragment()))) {
    Value r =
        arith::AddIOp::create(b, row, i32(rowOffset(i / parts, i % parts)));
    Value store = arith::AndIOp::create(
        b, first, compare(b, arith::CmpIPredicate::slt, r, valid));
    auto guarded = scf::IfOp::create(b, store, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    memref::StoreOp::create(b, value, out,
                            ValueRange{add(b, base, toIndex(r))});
  }
}
