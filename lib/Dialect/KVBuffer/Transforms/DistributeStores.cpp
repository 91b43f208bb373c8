//===- DistributeStores.cpp - Layouts of what goes to memory --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What is stored, to memory, LDS or as a partial result, lies as lanes store
/// most at once, and what is joined of partial results as they load most.
///
//===----------------------------------------------------------------------===//

#include "Distribution.h"
#include "PartialLayouts.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// The order of columns in memory of ops on partial results.
static constexpr StringRef kColumnsAttr = "columns";

/// Whether words of accumulators are words of an operand once they are
/// transposed among the lanes, and not before.
static bool liesTransposed(MmaLayoutAttr acc) {
  LinearLayout operand = acc.forOperand(Role::A).getAtom(),
               held = acc.getAtom();
  if (contractionOrder(operand, held))
    return false;
  std::optional<LinearLayout> turned = transposedAmongLanes(held);
  return turned && contractionOrder(operand, *turned);
}

void Distribution::turnStores() {
  if (!target.transposesAmongLanes)
    return;
  SmallVector<FragmentStoreOp> stores;
  kernel.walk([&](FragmentStoreOp op) { stores.push_back(op); });
  for (FragmentStoreOp store : stores) {
    TypedValue<FragmentType> value = store.getFragment();
    auto acc = dyn_cast_or_null<MmaLayoutAttr>(classOf(value).layout);
    // An operand's columns are in all warps that share them.
    if (store.getVia() || !acc || acc.getOperand() != Role::Acc ||
        acc.getWarpCols() > 1 || !acc.getColumns().empty() ||
        value.getType().getRole() != Role::Acc ||
        value.getType().getElementType().getIntOrFloatBitWidth() != 16 ||
        !liesTransposed(acc))
      continue;
    OpBuilder b(store);
    auto exchange =
        ExchangeOp::create(b, store.getLoc(), value.getType(), value);
    classOf(exchange.getFragment()).layout = acc.forOperand(Role::A);
    store.getFragmentMutable().assign(exchange.getFragment());
  }
}

LogicalResult Distribution::assignPartials() {
  for (auto &[memory, own] : partials) {
    auto hasLayout = [&](Value acc) { return bool(classOf(acc).layout); };
    // What is joined may be stored again, and lies as it is joined then.
    SmallVector<Value> others;
    for (Value acc : own.accs)
      if (llvm::none_of(own.joined,
                        [&](Value join) { return find(join) == find(acc); }))
        others.push_back(acc);
    auto known = llvm::find_if(others, hasLayout);
    FragmentLayoutInterface layout;
    if (known != others.end())
      layout = classOf(*known).layout;
    else if (!others.empty()) {
      Operation *op = own.ops.front();
      FailureOr<MmaLayoutAttr> usual =
          defaultLayout(op, BFloat16Type::get(kernel.getContext()));
      if (failed(usual))
        return failure();
      layout = *usual;
    }
    for (Value acc : others)
      if (!hasLayout(acc))
        classOf(acc).layout = layout;
    // An order that the program says is that of all.
    std::optional<SmallVector<int64_t>> columns;
    for (Operation *op : own.ops)
      if (auto given = op->getAttrOfType<DenseI64ArrayAttr>(kColumnsAttr)) {
        if (columns && ArrayRef(*columns) != given.asArrayRef())
          return op->emitOpError()
                 << "has columns in the order [" << given.asArrayRef()
                 << "], and what else goes to its memory in the order ["
                 << *columns << "]; expected one order";
        columns = SmallVector<int64_t>(given.asArrayRef());
      }
    if (!columns) {
      columns.emplace();
      auto type = cast<FragmentType>(
          (own.accs.empty() ? own.joined : own.accs).front().getType());
      bool isOneWidth = llvm::all_of(
          llvm::concat<Value>(own.accs, own.joined), [&](Value acc) {
            return cast<FragmentType>(acc.getType()).getCols() ==
                   type.getCols();
          });
      if (layout && isOneWidth)
        columns = columnsInMemory(layout, type);
    }
    for (Operation *op : own.ops)
      if (!columns->empty())
        op->setAttr(kColumnsAttr,
                    DenseI64ArrayAttr::get(op->getContext(), *columns));
    auto parts = cast<MemRefType>(memory.getType());
    for (Value acc : own.joined) {
      if (hasLayout(acc))
        continue;
      FragmentLayoutInterface joined;
      if (!layout || (layout.getRowWarps() == 1 && layout.getColWarps() == 1))
        if (BlockedLayoutAttr blocked = joinedLayout(
                cast<FragmentType>(acc.getType()), parts.getShape().end()[-2],
                *columns, target.waveSize))
          joined = blocked;
      // Of some of the rows warps have a part each.
      auto join = acc.getDefiningOp<PartialJoinOp>();
      if (layout && join && join.getFrom() && layout.getColWarps() == 1)
        if (BlockedLayoutAttr blocked = joinedLayoutOfWarps(
                join.getAcc().getType(), layout.getRowWarps(), *columns,
                target.waveSize))
          joined = blocked;
      // Warps that share rows, or too few of these: as they are stored.
      if (!joined)
        joined = layout;
      classOf(acc).layout = joined;
    }
  }
  return success();
}

/// The layout in which lanes read bytes of rows that are contracted, and put
/// them as they lie turned: words of four rows, in the order in which
/// accumulators of scores hold them. Warps share the columns. Null where no
/// instruction's operand lies so.
static MmaLayoutAttr turnedPut(const TargetInfo &target, FragmentType type,
                               int64_t warps) {
  for (const MatrixInstruction &mma : target.float8Instructions) {
    if (mma.isOfGroups())
      continue;
    MmaLayouts layouts = target.layouts(mma);
    std::optional<LinearLayout> order = contractionOrder(layouts.a, layouts.c);
    // Reads are of pairs of columns.
    SmallVector<int64_t> columns = ownElementsFirst(layouts.b, "col");
    int64_t own = type.getCols() / warps;
    if (!order || columns.empty() || type.getCols() % warps ||
        !llvm::isPowerOf2_64(own) || own % mma.n || type.getRows() % mma.k)
      continue;
    return MmaLayoutAttr::get(
        type.getContext(), mma.unit, Role::B, mma.shape(), /*group=*/1,
        /*warpRows=*/1, /*warpCols=*/warps,
        /*transposeB=*/false, /*swapped=*/false, bitsOf(*order), columns);
  }
  return {};
}

void Distribution::assignPuts() {
  /// Bytes of a lane's widest store.
  constexpr int64_t kStoreBytes = 16;
  kernel.walk([&](RingPutOp put) {
    TypedValue<FragmentType> value = put.getFragment();
    FragmentType type = value.getType();
    const Class &own = classOf(value);
    KVBufferAttr params = put.getRing().getType().getParams();
    int64_t warps = scheduleOf(put, schedule).getWarps();
    if (type.getRole() == Role::B && !own.layout) {
      if (MmaLayoutAttr turned = turnedPut(target, type, warps))
        classOf(value).layout = turned;
      return;
    }
    if (put.getTranspose() || own.layout || !own.fromMemory ||
        !own.weights.empty())
      return;
    int64_t width =
        kStoreBytes * 8 / type.getElementType().getIntOrFloatBitWidth();
    // Lanes beside each other have a row of a block, whose vectors the swizzle
    // leaves in one row of banks.
    int64_t lanes = std::min<int64_t>(
        target.waveSize, std::max<int64_t>(params.getBK() / width, 1));
    int64_t rows = target.waveSize / lanes;
    if (params.getBK() % width || params.getBK() % (lanes * width) ||
        type.getRows() % (rows * warps) || !llvm::isPowerOf2_64(warps))
      return;
    classOf(value).layout =
        BlockedLayoutAttr::get(put.getContext(), rows, lanes, width, warps,
                               /*columns=*/ArrayRef<int64_t>());
  });
}
