//===- WorkOrder.cpp - The order of items of work -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-work"

/// Where items along two coordinates read the same, each of another tensor (a
/// product's tiles, of two matrices), blocks that run together take strips of
/// so many along the first. As many as the examples of products had when they
/// were measured (docs/performance.md).
static constexpr int64_t kStripItems = 8;

WorkOrder::WorkOrder(ImplicitLocOpBuilder &b, WorkItems &items,
                     ArrayRef<Value> counts)
    : items(items), counts(counts), strips(items.strips()) {
  inner = items.growing().value_or(0);
  if (strips)
    inner = strips->front();
  ofPlace = counts[inner];
  if (strips)
    ofPlace = b.createOrFold<arith::MulIOp>(counts[strips->front()],
                                            counts[strips->back()]);
  for (unsigned i = 0; i < items.size(); ++i)
    if (i != inner && !(strips && i == strips->back()))
      rest.push_back(i);
  if (rest.empty()) {
    places = constantIndex(b, 1);
    return;
  }
  places = counts[rest.back()];
  for (unsigned i : llvm::reverse(ArrayRef(rest).drop_back()))
    places = b.createOrFold<arith::MulIOp>(places, counts[i]);
}

Value WorkOrder::total(ImplicitLocOpBuilder &b) {
  return b.createOrFold<arith::MulIOp>(ofPlace, places);
}

/// Whether an expression is 1 or more, whatever the launch's sizes are.
static bool isPositive(Attribute expression) {
  if (auto number = dyn_cast<IntegerAttr>(expression))
    return number.getInt() > 0;
  auto size = dyn_cast<SizeAttr>(expression);
  if (!size)
    return false;
  if (size.getOperation() == SizeOperator::Max)
    return llvm::any_of(size.getOperands(), isPositive);
  return size.getOperation() != SizeOperator::FloorDiv &&
         llvm::all_of(size.getOperands(), isPositive);
}

/// Sizes the groups: as many places as have `atOnce` items and as the chip's
/// cache has bytes for, in multiples of those that share what they read; what
/// is left in the end, and no less than twice `atOnce` items, is the last
/// group.
void WorkOrder::group(ImplicitLocOpBuilder &b, int64_t atOnce) {
  std::optional<Attribute> reads = items.op.getReads();
  CoordinateAttr grows = items.coordinate(inner);
  // Items of one place: of the longest sequence, where they are numbered over
  // all.
  Value longest = ofPlace;
  if (grows.getLongest())
    longest = arith::CeilDivUIOp::create(
        b, sizeInKernel(b, grows.getLongest()),
        constantIndex(b, grows.getStep() * items.together(inner)));
  if (!reads) {
    remark::missed(items.op.getLoc(),
                   remark::RemarkOpts::name("tiles").category(DEBUG_TYPE))
        << "places follow each other: kvbuffer.work_item does not say how many "
           "bytes items read of what they share (reads)";
    return;
  }
  auto c = [&](int64_t value) { return constantIndex(b, value); };
  Value one = c(1);
  Value bytes = sizeInKernel(b, *reads);
  if (!isPositive(*reads))
    bytes = b.createOrFold<arith::MaxSIOp>(bytes, one);
  Value fit =
      b.createOrFold<arith::DivUIOp>(c(items.target.sharedReadBytes), bytes);
  int64_t sharing = 1;
  if (!rest.empty() && !items.coordinate(rest.front()).isShared())
    sharing = std::max<int64_t>(1, items.coordinate(rest.front()).getSharing() /
                                       items.together(rest.front()));
  Value most = b.createOrFold<arith::DivUIOp>(
      c(2 * atOnce), b.createOrFold<arith::MaxSIOp>(longest, one));
  Value running = b.createOrFold<arith::DivUIOp>(most, c(2 * sharing));
  ofGroup = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::MaxSIOp>(
          b.createOrFold<arith::MinSIOp>(fit, running), one),
      c(sharing));
  Value before = b.createOrFold<arith::MaxSIOp>(
      b.createOrFold<arith::SubIOp>(places,
                                    b.createOrFold<arith::MaxSIOp>(most, one)),
      c(0));
  grouped = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::DivUIOp>(before, ofGroup), ofGroup);
}

void WorkOrder::spread(ImplicitLocOpBuilder &b, Value number,
                       ArrayRef<unsigned> along, SmallVectorImpl<Value> &item) {
  for (unsigned i : along.drop_back()) {
    Value next = b.createOrFold<arith::DivUIOp>(number, counts[i]);
    item[i] = b.createOrFold<arith::RemUIOp>(number, counts[i]);
    number = next;
  }
  item[along.back()] = number;
}

SmallVector<Value> WorkOrder::itemAt(ImplicitLocOpBuilder &b, Value t) {
  return itemOf(b, placeAt(b, t));
}

/// Groups of places follow each other; in a group of G places from place h on,
/// number i is item i / G of place h + i % G. So the items that run together
/// read little, and the longest items of each group come first. Without groups,
/// place by place.
WorkOrder::Place WorkOrder::placeAt(ImplicitLocOpBuilder &b, Value t) {
  if (rest.empty())
    return {t, Value()};
  if (!ofGroup) {
    Value place = b.createOrFold<arith::DivUIOp>(t, ofPlace);
    return {b.createOrFold<arith::RemUIOp>(t, ofPlace), place};
  }
  Value groupedItems = arith::MulIOp::create(b, grouped, ofPlace);
  Value inGroups =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, t, groupedItems);
  Value size = arith::SelectOp::create(
      b, inGroups, ofGroup, arith::SubIOp::create(b, places, grouped));
  Value first =
      arith::SelectOp::create(b, inGroups, constantIndex(b, 0), groupedItems);
  Value number = arith::SubIOp::create(b, t, first);
  Value all = arith::MulIOp::create(b, size, ofPlace);
  Value group = arith::DivUIOp::create(b, number, all);
  Value inside = arith::RemUIOp::create(b, number, all);
  Value firstPlace = arith::SelectOp::create(
      b, inGroups, arith::MulIOp::create(b, group, size).getResult(), grouped);
  Value item = arith::DivUIOp::create(b, inside, size);
  return {item, arith::AddIOp::create(
                    b, firstPlace,
                    arith::RemUIOp::create(b, inside, size).getResult())};
}

SmallVector<Value> WorkOrder::itemOf(ImplicitLocOpBuilder &b, Place place) {
  SmallVector<Value> item(items.size());
  if (strips) {
    auto [first, second] = *strips;
    std::array<Value, 2> two =
        itemInStrips(b, place.inner, counts[first], counts[second]);
    item[first] = two[0];
    item[second] = two[1];
  } else {
    item[inner] = place.inner;
  }
  if (!rest.empty())
    spread(b, place.place, rest, item);
  return item;
}

std::array<Value, 2> kvbuf::itemInStrips(ImplicitLocOpBuilder &b, Value t,
                                         Value first, Value second) {
  Value width = constantIndex(b, kStripItems);
  Value ofStrip = arith::MulIOp::create(b, width, second);
  Value number = arith::DivUIOp::create(b, t, ofStrip);
  Value inside = arith::RemUIOp::create(b, t, ofStrip);
  Value start = arith::MulIOp::create(b, number, width);
  // The last strip may be narrower.
  Value left = arith::SubIOp::create(b, first, start);
  Value own = arith::MinUIOp::create(b, left, width);
  Value across = arith::RemUIOp::create(b, inside, own);
  return {arith::AddIOp::create(b, start, across).getResult(),
          arith::DivUIOp::create(b, inside, own).getResult()};
}
