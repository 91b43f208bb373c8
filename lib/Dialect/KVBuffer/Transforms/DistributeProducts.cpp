//===- DistributeProducts.cpp - Layouts of products' fragments ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A product's accumulators have the layout that their types name, else the
/// schedule's instruction; its operands follow. What comes from memory is
/// contracted in its natural order, or, where elements in LDS are narrower than
/// the operand's, in the order in which a lane reads several at once, those of
/// more instructions, too; what comes from accumulators in the order in which
/// lanes hold those, and the other operand of the product likewise. Where no
/// order makes accumulators an operand, they change places
/// (`kvbuffer.exchange`). Accumulators that are operand b, of which each warp
/// needs all, are those of one warp.
///
//===----------------------------------------------------------------------===//

#include "Distribution.h"
#include "ProductGroups.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"

using namespace mlir;
using namespace kvbuf;

FailureOr<MmaLayoutAttr>
Distribution::defaultLayout(Operation *op, Type element, int64_t group) {
  if (failed(verifyElements(op, element, target)))
    return failure();
  ScheduleAttr schedule = scheduleOf(op, this->schedule);
  std::string name = elementName(element);
  bool byGroups = isa<MmaStartOp>(op);
  const MatrixInstruction *mma = target.instructionFor(
      schedule.getMmaShape(productOf(op)), name, byGroups);
  if (!mma && byGroups && !target.groupInstruction(name))
    return op->emitOpError()
           << "is for chips whose matrix unit reads operands from LDS by "
              "itself, which that of "
           << target.chip << " does not";
  if (!mma)
    return op->emitOpError()
           << "multiplies elements of " << name
           << " in a kernel whose schedule has "
           << schedule.getStructure().instructionName(productOf(op)) << " = "
           << TargetInfo::shapeText(schedule.getMmaShape(productOf(op)))
           << "; for " << name << " " << target.chip << " has "
           << TargetInfo::shapesOf(target.matrixInstructionsFor(name));
  return MmaLayoutAttr::get(kernel.getContext(), mma->unit, Role::Acc,
                            mma->shape(), group ? group : mma->group,
                            schedule.getWarpRows(), schedule.getWarpCols(),
                            /*transposeB=*/false, schedule.getSwapAB(),
                            /*order=*/{}, /*columns=*/{});
}

void Distribution::groupProducts() {
  // The least of each class.
  llvm::DenseMap<unsigned, int64_t> groups;
  auto lower = [&](Value value, int64_t &group) {
    if (!value)
      return false;
    int64_t &least = groups.try_emplace(find(value), group).first->second;
    bool changed = least != group;
    least = group = std::min(least, group);
    return changed;
  };
  for (Product &product : products) {
    const MatrixInstruction *mma =
        target.instructionFor(schedule.getMmaShape(productOf(product.op)),
                              elementName(product.element),
                              /*byGroups=*/isa<MmaStartOp>(product.op));
    if (!mma)
      continue;
    product.group = mma->group;
    if (product.a)
      product.group =
          groupOfProduct(target, *mma, product.b, product.transposeB,
                         cast<FragmentType>(product.a.getType()).getCols());
    // A layout that is named says it of all that have it.
    for (Value value : {product.a, product.b, product.result})
      if (value)
        if (auto known = dyn_cast_or_null<MmaLayoutAttr>(classOf(value).layout))
          product.group = std::min(product.group, known.getGroup());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Product &product : products)
      for (Value value : {product.a, product.b, product.result})
        changed |= lower(value, product.group);
  }
}

SmallVector<int64_t> Distribution::narrowOrder(const Product &product,
                                               MmaLayoutAttr acc,
                                               StringRef out) {
  // Bytes come in pairs of columns, too, where these are not contracted.
  bool areBytes = product.b && !product.transposeB &&
                  product.element.getIntOrFloatBitWidth() == 8;
  if (!areBytes && !isNarrowInLds(product.b))
    return {};
  return ownElementsFirst(
      acc.forOperand(Role::B, product.transposeB).getProductAtom(), out);
}

LogicalResult Distribution::assignAccumulators(const Product &product) {
  ProductKind kind = productOf(product.op);
  if (const Class &known = classOf(product.result); known.layout) {
    if (!hasTwoInstructions() || known.kind.value_or(kind) == kind)
      return success();
    const Schedule &its = schedule.getStructure();
    return product.op->emitOpError()
           << "adds to accumulators of a product by "
           << its.instructionName(*known.kind) << " = "
           << TargetInfo::shapeText(its.shapeOf(*known.kind))
           << ", in a kernel whose schedule has " << its.instructionName(kind)
           << " = " << TargetInfo::shapeText(its.shapeOf(kind))
           << " for it; expected accumulators of its own";
  }
  // An operand that says how it lies says it of the whole product.
  for (Value operand : {product.a, product.b})
    if (operand)
      if (auto known = dyn_cast_or_null<MmaLayoutAttr>(classOf(operand).layout))
        return assign(product.result, known.forOperand(Role::Acc), product.op);
  FailureOr<MmaLayoutAttr> layout =
      defaultLayout(product.op, product.element, product.group);
  if (failed(layout))
    return failure();
  // Rows of b that lie side by side in LDS are read several columns at once.
  if (!product.transposeB)
    layout = layout->withColumns(narrowOrder(product, *layout, "col"));
  classOf(product.result).kind = kind;
  return assign(product.result, *layout, product.op);
}

SmallVector<int64_t> kvbuf::bitsOf(const LinearLayout &order) {
  SmallVector<int64_t> bits;
  bool natural = true;
  for (unsigned bit = 0; bit < order.inLog2("col"); ++bit) {
    bits.push_back(order.basis("col", bit, "col"));
    natural &= bits.back() == int64_t(1) << bit;
  }
  return natural ? SmallVector<int64_t>() : bits;
}

FailureOr<SmallVector<int64_t>> Distribution::orderOf(const Product &product,
                                                      MmaLayoutAttr acc) {
  SmallVector<int64_t> natural;
  if (!product.a)
    return natural;
  Class &a = classOf(product.a);
  if (auto known = dyn_cast_or_null<MmaLayoutAttr>(a.layout))
    return SmallVector<int64_t>(known.getOrder());
  // What other products by accumulators are contracted in.
  if (a.weights.empty() && product.b)
    if (auto known = dyn_cast_or_null<MmaLayoutAttr>(classOf(product.b).layout))
      return SmallVector<int64_t>(known.getOrder());
  if (a.weights.empty())
    return product.transposeB ? narrowOrder(product, acc, "row") : natural;
  LinearLayout operand = acc.forOperand(Role::A).getAtom();
  std::optional<SmallVector<int64_t>> found;
  SmallVector<Value> moved;
  for (Value weight : a.weights) {
    Operation *op = weight.getDefiningOp();
    Value scores = *llvm::find_if(op->getOperands(), [](Value operand) {
      return isFragment(operand) && roleOf(operand) == Role::Acc;
    });
    // Scores of no product lie as this one's accumulators would.
    if (!classOf(scores).layout)
      classOf(scores).layout = acc;
    auto layout = dyn_cast<MmaLayoutAttr>(classOf(scores).layout);
    std::optional<LinearLayout> order;
    // Where warps share the columns, none holds all that a product contracts.
    if (layout && layout.getWarpCols() == 1)
      order = contractionOrder(operand, layout.getAtom());
    SmallVector<int64_t> bits;
    if (order)
      bits = bitsOf(*order);
    else
      moved.push_back(weight);
    if (found && *found != bits)
      return product.op->emitOpError()
             << "multiplies weights of products whose accumulators lie in "
                "different orders; expected one matrix instruction";
    found = bits;
  }
  if (a.fromMemory && !found->empty()) {
    InFlightDiagnostic diag = product.op->emitOpError()
                              << "multiplies what comes from memory or from "
                                 "accumulators, whose contracted elements lie "
                                 "in different orders on "
                              << target.chip << "; expected one of them";
    diag.attachNote(a.weights.front().getLoc())
        << "a comes from accumulators here";
    return diag;
  }
  // What no order makes an operand changes places, right where it is made.
  for (Value weight : moved) {
    Operation *op = weight.getDefiningOp();
    Value scores = *llvm::find_if(op->getOperands(), [](Value operand) {
      return isFragment(operand) && roleOf(operand) == Role::Acc;
    });
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    auto exchange =
        ExchangeOp::create(b, op->getLoc(), weight.getType(), weight);
    weight.replaceAllUsesExcept(exchange.getFragment(), exchange);
    // The result takes the weight's place in its class.
    unsigned number = find(weight);
    numbers.insert({exchange.getFragment(), number});
    numbers[weight] = classes.size();
    classes.push_back(Class{unsigned(classes.size()),
                            weight,
                            classOf(scores).layout,
                            {},
                            false,
                            {}});
    if (classes[number].first == weight)
      classes[number].first = exchange.getFragment();
    for (Product &other : products)
      if (other.a == weight)
        other.a = exchange.getFragment();
  }
  if (!moved.empty())
    classOf(product.op->getOperand(0)).weights.clear();
  return *found;
}

/// The order in which accumulators that lie so are operand b, if they are.
static std::optional<LinearLayout>
orderAsB(MmaLayoutAttr product, MmaLayoutAttr held, bool transposeB) {
  // In coordinates [columns of the product][contracted].
  LinearLayout operand =
      transposed(product.forOperand(Role::B).getProductAtom());
  LinearLayout atom = held.getAtom();
  return contractionOrder(operand, transposeB ? atom : transposed(atom));
}

void Distribution::turnBefore(FragmentConvertOp op, MmaLayoutAttr turned) {
  OpBuilder b(op);
  FragmentType to = op.getFragment().getType();
  auto type = FragmentType::get(b.getContext(), to.getRows(), to.getCols(),
                                to.getElementType(), Role::Acc, {});
  Value rounded = op.getSource();
  FragmentLayoutInterface held = classOf(rounded).layout;
  // Words of the operand's elements are fewer.
  if (rounded.getType() != type) {
    rounded = FragmentConvertOp::create(b, op.getLoc(), type, rounded);
    classOf(rounded).layout = held;
  }
  auto exchange = ExchangeOp::create(b, op.getLoc(), type, rounded);
  classOf(exchange.getFragment()).layout = turned;
  op.getSourceMutable().assign(exchange.getFragment());
}

FailureOr<SmallVector<int64_t>> Distribution::orderByB(const Product &product,
                                                       MmaLayoutAttr acc) {
  std::optional<SmallVector<int64_t>> found;
  for (Value weight : classOf(product.b).weights) {
    auto op = cast<FragmentConvertOp>(weight.getDefiningOp());
    if (!classOf(op.getSource()).layout)
      classOf(op.getSource()).layout = acc;
    auto held = dyn_cast<MmaLayoutAttr>(classOf(op.getSource()).layout);
    if (!held || held.getOperand() != Role::Acc)
      return op.emitOpError() << "makes operand b of what lies in the layout "
                              << classOf(op.getSource()).layout
                              << "; expected accumulators of a product";
    if (int64_t warps = held.getRowWarps() * held.getColWarps(); warps > 1)
      return op.emitOpError()
             << "makes operand b, of which each warp needs all, of "
                "accumulators that "
             << warps << " warps share; expected warps = 1 in the schedule";
    std::optional<LinearLayout> order = orderAsB(acc, held, product.transposeB);
    if (!order) {
      MmaLayoutAttr turned = MmaLayoutAttr::get(
          held.getContext(), held.getUnit(), Role::Acc, held.getShape(),
          held.getGroup(), held.getWarpRows(), held.getWarpCols(),
          /*transposeB=*/false, !held.getSwapped(), /*order=*/{},
          /*columns=*/{});
      if (held.getColumns().empty() && held.getUnit() != MatrixUnit::Wgmma)
        order = orderAsB(acc, turned, product.transposeB);
      if (!order)
        return op.emitOpError()
               << "makes operand b of accumulators in the layout " << held
               << ", which no order of the contraction makes one on "
               << target.chip;
      turnBefore(op, turned);
    }
    SmallVector<int64_t> bits = bitsOf(*order);
    if (found && *found != bits)
      return product.op->emitOpError()
             << "multiplies weights of products whose accumulators lie in "
                "different orders; expected one matrix instruction";
    found = bits;
  }
  return *found;
}

LogicalResult Distribution::assignOperands(const Product &product) {
  auto acc = dyn_cast<MmaLayoutAttr>(classOf(product.result).layout);
  if (!acc || acc.getOperand() != Role::Acc)
    return product.op->emitOpError()
           << "yields accumulators in the layout "
           << classOf(product.result).layout
           << "; expected #kvbuffer.mma<..., acc, ...>";
  FailureOr<SmallVector<int64_t>> order = orderOf(product, acc);
  if (failed(order))
    return failure();
  if (product.b && !classOf(product.b).weights.empty()) {
    FailureOr<SmallVector<int64_t>> held = orderByB(product, acc);
    if (failed(held))
      return failure();
    if (product.a && !classOf(product.a).weights.empty() && *held != *order)
      return product.op->emitOpError()
             << "multiplies weights of products whose accumulators lie in "
                "different orders; expected one matrix instruction";
    order = held;
  }
  // The product's operands may be values of exchanges now.
  if (product.a &&
      failed(assign(product.op->getOperand(0),
                    acc.forOperand(Role::A, false, *order), product.op)))
    return failure();
  return success(
      !product.b ||
      succeeded(assign(product.b,
                       acc.forOperand(Role::B, product.transposeB, *order),
                       product.op)));
}
