//===- KVBufferLayouts.cpp - Layouts of fragments -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Layout/Fragments.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayoutInterfaces.cpp.inc"

/// The layouts of a whole group of instructions.
static std::optional<MmaLayouts>
instruction(MatrixUnit unit, ArrayRef<int64_t> shape, int64_t group) {
  // Operands of the scaled ones fill two reads of LDS: they have no groups, and
  // no group is as large.
  constexpr int64_t scaledSize = 32 * 64;
  if (unit == MatrixUnit::Mfma &&
      (shape[0] * shape[2] == scaledSize
           ? group > 1
           : !mfma16Bit(shape[0], shape[1], shape[2]) ||
                 shape[0] * shape[2] * group >= scaledSize))
    return std::nullopt;
  // A group of some is laid out as one instruction where lanes have a word of
  // an operand each, and not several.
  if (unit != MatrixUnit::Mfma && group > 1)
    return std::nullopt;
  return matrixLayouts(unit, shape[0], shape[1], shape[2] * group);
}

bool kvbuf::isOrderOfBits(ArrayRef<int64_t> list) {
  if (list.size() > 62)
    return false;
  int64_t size = int64_t(1) << list.size(), seen = 0;
  for (int64_t element : list)
    if (element > 0 && element < size && llvm::isPowerOf2_64(element))
      seen |= element;
  return seen == size - 1;
}

//===----------------------------------------------------------------------===//
// MmaLayoutAttr
//===----------------------------------------------------------------------===//

LogicalResult
MmaLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      MatrixUnit unit, Role operand, ArrayRef<int64_t> shape,
                      int64_t group, int64_t warpRows, int64_t warpCols,
                      bool transposeB, bool swapped, ArrayRef<int64_t> order,
                      ArrayRef<int64_t> columns) {
  if (operand == Role::Row)
    return emitError() << "expected operand a, b or acc; row values have the "
                          "layout #kvbuffer.slice";
  // Far more than there is, and few enough that no product overflows.
  constexpr int64_t kMost = 1 << 16;
  for (int64_t size : {group, warpRows, warpCols})
    if (size < 1 || size > kMost)
      return emitError() << "expected group and warps from 1 to " << kMost
                         << ", got " << size;
  if (shape.size() != 3)
    return emitError() << "expected shape = [M, N, K]";
  for (int64_t size : shape)
    if (size < 1 || size > kMost)
      return emitError() << "expected sizes from 1 to " << kMost
                         << " in shape, got " << size;
  std::optional<MmaLayouts> layouts = instruction(unit, shape, group);
  if (!layouts)
    return emitError() << matrixUnitName(unit)
                       << " has no instruction of shape " << shape[0] << "x"
                       << shape[1] << "x" << shape[2]
                       << (group > 1 ? " in groups of " + Twine(group)
                                     : Twine());
  if (int64_t together = warpsTogether(unit);
      together > 1 && (warpRows % together || warpCols > 1 || swapped))
    return emitError() << "groups of " << together << " warps have the rows of "
                       << matrixUnitName(unit)
                       << "; expected warps = [n, 1] with a multiple of "
                       << together << ", without swapped";
  if (transposeB && operand != Role::B)
    return emitError() << "transpose_b is of operand b, got operand "
                       << stringifyRole(operand);
  if (!order.empty() && operand == Role::Acc)
    return emitError() << "accumulators are not contracted; expected no order";
  if (!columns.empty() && operand == Role::A)
    return emitError()
           << "operand a has no columns of the product; expected no "
              "columns";
  auto isOrder = [&](StringRef name, ArrayRef<int64_t> list,
                     int64_t size) -> LogicalResult {
    unsigned bits = llvm::Log2_64(size);
    if (list.empty() || (list.size() == bits && isOrderOfBits(list)))
      return success();
    return emitError() << "expected " << name << " with each of the " << bits
                       << " powers of two below " << size << " once";
  };
  return success(succeeded(isOrder("order", order, layouts->k)) &&
                 succeeded(isOrder("columns", columns,
                                   swapped ? layouts->m : layouts->n)));
}

/// An atom whose dimension `out` is taken in an order, an element at each bit.
static LinearLayout inOrder(const LinearLayout &atom, StringRef out,
                            ArrayRef<int64_t> order) {
  if (order.empty())
    return atom;
  SmallVector<LinearLayout::Coord> images;
  for (int64_t element : order)
    images.push_back({element});
  unsigned bits = images.size();
  return reordered(
      atom, out,
      LinearLayout({"col"}, {images}, {LinearLayout::Dim{"col", bits}}));
}

LinearLayout MmaLayoutAttr::getProductAtom() const {
  MmaLayouts layouts = *instruction(getUnit(), getShape(), getGroup());
  bool swapped = getSwapped();
  if (getOperand() == Role::Acc)
    return inOrder(swapped ? transposed(layouts.c) : layouts.c, "col",
                   getColumns());
  bool isA = getOperand() == Role::A;
  LinearLayout atom = swapped ? transposed(isA ? layouts.b : layouts.a)
                      : isA   ? layouts.a
                              : layouts.b;
  atom = inOrder(atom, isA ? "col" : "row", getOrder());
  return isA ? atom : inOrder(atom, "col", getColumns());
}

LinearLayout MmaLayoutAttr::getAtom() const {
  return getTransposeB() ? transposed(getProductAtom()) : getProductAtom();
}

int64_t MmaLayoutAttr::getRowWarps() const {
  if (getOperand() == Role::B)
    return getTransposeB() ? getWarpCols() : 1;
  return getWarpRows();
}

int64_t MmaLayoutAttr::getColWarps() const {
  if (getOperand() == Role::A)
    return 1;
  return getTransposeB() ? 1 : getWarpCols();
}

int64_t MmaLayoutAttr::getWordElements() const {
  int64_t words =
      wordElements(getUnit(), getShape()[0], getShape()[2] * getGroup());
  // Accumulators that become an operand's words do so as they lie.
  int64_t registers = int64_t(1) << getProductAtom().inLog2("register");
  return std::min(words, registers);
}

MmaLayoutAttr MmaLayoutAttr::forOperand(Role operand, bool transposeB,
                                        ArrayRef<int64_t> order) const {
  return get(getContext(), getUnit(), operand, getShape(), getGroup(),
             getWarpRows(), getWarpCols(), transposeB, getSwapped(), order,
             operand == Role::A ? ArrayRef<int64_t>() : getColumns());
}

MmaLayoutAttr MmaLayoutAttr::withColumns(ArrayRef<int64_t> columns) const {
  return get(getContext(), getUnit(), getOperand(), getShape(), getGroup(),
             getWarpRows(), getWarpCols(), getTransposeB(), getSwapped(),
             getOrder(), columns);
}

//===----------------------------------------------------------------------===//
// Products and exchanges
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::verifyProductLayouts(Operation *op,
                                          FragmentLayoutInterface a,
                                          FragmentLayoutInterface b,
                                          FragmentLayoutInterface acc,
                                          bool transposeB) {
  // What is missing is filled in later.
  if (!a || !b || !acc)
    return success();
  auto mmaA = dyn_cast_or_null<MmaLayoutAttr>(a),
       mmaB = dyn_cast_or_null<MmaLayoutAttr>(b),
       mmaAcc = dyn_cast_or_null<MmaLayoutAttr>(acc);
  if (!mmaA || !mmaB || !mmaAcc || mmaAcc.getOperand() != Role::Acc ||
      mmaA.forOperand(Role::Acc).withColumns(mmaAcc.getColumns()) != mmaAcc ||
      mmaB.forOperand(Role::Acc) != mmaAcc || mmaA.getOperand() != Role::A ||
      mmaB.getOperand() != Role::B)
    return op->emitOpError()
           << "expected the layouts of one matrix instruction's operands a, b "
              "and acc, got "
           << a << ", " << b << " and " << acc;
  if (mmaB.getTransposeB() != transposeB)
    return op->emitOpError()
           << "multiplies by a fragment whose layout has transpose_b = "
           << (transposeB ? "false" : "true") << "; expected "
           << (transposeB ? "true" : "false");
  if (mmaA.getOrder() == mmaB.getOrder())
    return success();
  auto orderOf = [](MmaLayoutAttr layout) -> std::string {
    if (layout.getOrder().empty())
      return "the natural order";
    std::string text = "the order [";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(layout.getOrder(), os);
    return text + "]";
  };
  return op->emitOpError() << "contracts a in " << orderOf(mmaA) << " and b in "
                           << orderOf(mmaB) << "; expected one order";
}

void ExchangeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), "moved");
}

LogicalResult ExchangeOp::verify() {
  FragmentType source = getSource().getType(), result = getFragment().getType();
  if (source.withLayout(result.getLayout()) != result)
    return emitOpError() << "expected fragments that differ in their layout "
                            "only, got "
                         << source << " and " << result;
  return success();
}

OpFoldResult ExchangeOp::fold(FoldAdaptor) {
  if (getSource().getType() == getFragment().getType() &&
      getSource().getType().getLayout())
    return getSource();
  return {};
}

void RowReduceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRow(), getKind() == Reduction::Maximum ? "largest" : "total");
}

LogicalResult RowReduceOp::verify() {
  FragmentType source = getSource().getType(), row = getRow().getType();
  if (source.getRole() != Role::Acc || row.getRole() != Role::Row ||
      source.getRows() != row.getRows() || !source.getElementType().isF32())
    return emitOpError() << "expected accumulators of f32 and a value for each "
                            "of their rows, got "
                         << source << " and " << row;
  return success();
}

void WarpReduceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRow(), "whole");
}

LogicalResult WarpReduceOp::verify() {
  if (getSource().getType().getRole() != Role::Row)
    return emitOpError() << "expected a value for each row, got "
                         << getSource().getType();
  for (OpOperand &use : getRow().getUses()) {
    auto finish = dyn_cast<SoftmaxFinishOp>(use.getOwner());
    auto store = dyn_cast<PartialStoreOp>(use.getOwner());
    if ((finish && use.get() == finish.getSum() &&
         use.get() != finish.getMax()) ||
        (store && use.get() == store.getSum() && use.get() != store.getMax()))
      continue;
    InFlightDiagnostic diag =
        emitOpError() << "expected no use but as the sum of "
                         "kvbuffer.softmax_finish or kvbuffer.partial_store, "
                         "which end a softmax";
    diag.attachNote(use.getOwner()->getLoc()) << "it is used here";
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// SliceLayoutAttr
//===----------------------------------------------------------------------===//

LinearLayout SliceLayoutAttr::getAtom() const {
  // Values of a row have one column.
  LinearLayout parent = getParent().getAtom();
  SmallVector<std::string> names;
  SmallVector<SmallVector<LinearLayout::Coord>> bases;
  for (const LinearLayout::Dim &in : parent.inDims()) {
    names.push_back(in.name);
    SmallVector<LinearLayout::Coord> &images = bases.emplace_back();
    for (unsigned bit = 0; bit < in.log2Size; ++bit)
      images.push_back({parent.basis(in.name, bit, "row"), 0});
  }
  return LinearLayout(names, bases,
                      {LinearLayout::Dim{"row", parent.outLog2("row")},
                       LinearLayout::Dim{"col", 0}});
}

int64_t SliceLayoutAttr::getRowWarps() const {
  return getParent().getRowWarps();
}

int64_t SliceLayoutAttr::getColWarps() const { return 1; }

int64_t SliceLayoutAttr::getWordElements() const { return 1; }

//===----------------------------------------------------------------------===//
// BlockedLayoutAttr
//===----------------------------------------------------------------------===//

LogicalResult
BlockedLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          int64_t rowLanes, int64_t colLanes, int64_t width,
                          int64_t warps, ArrayRef<int64_t> columns) {
  // Far more than there is, and few enough that no product overflows.
  constexpr int64_t kMost = 1 << 16;
  for (int64_t size : {rowLanes, colLanes, width, warps})
    if (size < 1 || size > kMost || !llvm::isPowerOf2_64(size))
      return emitError() << "expected powers of two from 1 to " << kMost
                         << " as lanes, width and warps, got " << size;
  if (columns.size() > 20 || !isOrderOfBits(columns))
    return emitError() << "expected columns with each of the powers of two "
                          "below another, 2^20 or less, once, got ["
                       << columns << "]";
  return success();
}

LinearLayout BlockedLayoutAttr::getAtom() const {
  unsigned widthBits = llvm::Log2_64(getWidth()),
           laneBits = llvm::Log2_64(getColLanes()),
           rowBits = llvm::Log2_64(getRowLanes());
  ArrayRef<int64_t> columns = getColumns();
  unsigned colBits = std::max<unsigned>(widthBits + laneBits, columns.size());
  // The lane's own columns, those of the lanes beside it, what is left.
  SmallVector<LinearLayout::Coord> registers, lanes;
  for (unsigned bit = 0; bit < colBits; ++bit) {
    int64_t col = bit < columns.size() ? columns[bit] : int64_t(1) << bit;
    bool isLane = bit >= widthBits && bit < widthBits + laneBits;
    (isLane ? lanes : registers).push_back({0, col});
  }
  for (unsigned bit = 0; bit < rowBits; ++bit)
    lanes.push_back({int64_t(1) << bit, 0});
  return LinearLayout(
      {"register", "lane"}, {registers, lanes},
      {LinearLayout::Dim{"row", rowBits}, LinearLayout::Dim{"col", colBits}});
}

int64_t BlockedLayoutAttr::getRowWarps() const { return getWarps(); }

int64_t BlockedLayoutAttr::getColWarps() const { return 1; }

int64_t BlockedLayoutAttr::getWordElements() const { return 1; }
