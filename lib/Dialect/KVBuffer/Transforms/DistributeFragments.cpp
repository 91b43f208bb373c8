//===- DistributeFragments.cpp - Layouts of a kernel's fragments ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Values that must have one layout, because an op or a loop hands one on as
/// the other, are a class. A product's accumulators have the layout that their
/// types name, else the schedule's instruction; its operands follow. What comes
/// from memory is contracted in its natural order, or, where elements in LDS
/// are narrower than the operand's, in the order in which a lane reads several
/// at once, those of more instructions, too; what comes from accumulators in
/// the order in which lanes hold those, and the other operand of the product
/// likewise. Where no order makes accumulators an operand, they change places
/// (`kvbuffer.exchange`). Accumulators that are operand b, of which each warp
/// needs all, are those of one warp.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/DistributeFragments.h"
#include "PartialLayouts.h"
#include "ProductGroups.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_DISTRIBUTEFRAGMENTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// The order of columns in memory of ops on partial results.
static constexpr StringRef kColumnsAttr = "columns";

namespace {

/// A product, started or computed at once.
struct Product {
  Operation *op;
  /// Null where the matrix unit reads it from LDS.
  Value a, b;
  /// The accumulators that it yields.
  Value result;
  bool transposeB;
  Type element;
  /// Instructions that are laid out as one; 0 until it is known.
  int64_t group = 0;
};

class Distribution {
public:
  Distribution(gpu::GPUFuncOp kernel, ScheduleAttr schedule,
               const TargetInfo &target)
      : kernel(kernel), schedule(schedule), target(target) {}

  LogicalResult run();

private:
  /// A class of values.
  struct Class {
    unsigned parent;
    Value first;
    FragmentLayoutInterface layout;
    /// Values of role a or b that come from accumulators, and whether others
    /// of role a come from memory.
    SmallVector<Value> weights;
    bool fromMemory = false;
    /// Of accumulators: the product whose instruction the layout is of, where
    /// no type names it.
    std::optional<ProductKind> kind = {};
  };

  static bool isFragment(Value value) {
    return isa<FragmentType, PendingType>(value.getType());
  }
  static Role roleOf(Value value) {
    auto fragment = dyn_cast<FragmentType>(value.getType());
    return fragment ? fragment.getRole() : Role::Acc;
  }
  unsigned find(Value value);
  Class &classOf(Value value) { return classes[find(value)]; }
  void tie(Value x, Value y);
  void tieBranches(RegionBranchOpInterface branch);
  void tieOperands(Operation *op);
  void spreadFills();
  /// Whether the schedule has an instruction for each kind of product.
  bool hasTwoInstructions() const {
    ScheduleAttr s = schedule;
    return s.getMmaShape(ProductKind::Scores) !=
           s.getMmaShape(ProductKind::Values);
  }
  void splitFills();
  void splitLoads();
  void tieCarried(Value carrier, ValueRange values);
  /// The accumulators of what is stored to a memory or loaded from it, and
  /// those of what is joined.
  struct Partials {
    SmallVector<Value> accs, joined;
    SmallVector<Operation *> ops;
  };
  /// What is stored and loaded lies alike; what is joined as lanes load most at
  /// once. All have the order of columns in which lanes store most at once.
  LogicalResult assignPartials();
  /// What goes from memory to LDS, and no product has a say in, lies as lanes
  /// store most at once.
  void assignPuts();
  LogicalResult collect();
  LogicalResult assign(Value value, FragmentLayoutInterface layout,
                       Operation *at);
  /// The accumulators' layout by the schedule, for operands of a type, in
  /// groups of as many instructions as the chip's read of LDS feeds; of `group`
  /// where that is not 0.
  FailureOr<MmaLayoutAttr> defaultLayout(Operation *op, Type element,
                                         int64_t group = 0);
  /// How many instructions each product's layouts are of: as many as for all
  /// products that share an operand or accumulators with it.
  void groupProducts();
  LogicalResult assignAccumulators(const Product &product);
  LogicalResult assignOperands(const Product &product);
  FailureOr<SmallVector<int64_t>> orderOf(const Product &product,
                                          MmaLayoutAttr acc);
  /// The order of a product's contraction in which accumulators that become
  /// its operand b lie, turned in place where none is.
  FailureOr<SmallVector<int64_t>> orderByB(const Product &product,
                                           MmaLayoutAttr acc);
  /// Turns accumulators before they become operand b.
  void turnBefore(FragmentConvertOp op, MmaLayoutAttr turned);
  /// The order of the dimension `out` of a product's operand b whose elements
  /// are narrower in LDS, where lanes read several at once; else empty.
  static SmallVector<int64_t> narrowOrder(const Product &product,
                                          MmaLayoutAttr acc, StringRef out);
  void assignMapped();
  void turnStores();
  LogicalResult joinWarps();
  LogicalResult assignRest();
  void setTypes();

  gpu::GPUFuncOp kernel;
  ScheduleAttr schedule;
  const TargetInfo &target;
  llvm::MapVector<Value, unsigned> numbers;
  SmallVector<Class> classes;
  SmallVector<Product> products;
  /// The first values that go through each queue and shelf.
  llvm::MapVector<Value, SmallVector<Value>> carried;
  /// Memories of partial results.
  llvm::MapVector<Value, Partials> partials;
  /// A row value and an accumulator whose rows it is of, by op.
  SmallVector<std::pair<Value, Value>> rows;
};

} // namespace

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

unsigned Distribution::find(Value value) {
  auto [it, isNew] = numbers.insert({value, classes.size()});
  if (isNew)
    classes.push_back(
        Class{unsigned(classes.size()), value, {}, {}, false, {}});
  unsigned number = it->second;
  while (classes[number].parent != number)
    number = classes[number].parent = classes[classes[number].parent].parent;
  return number;
}

void Distribution::tie(Value x, Value y) {
  if (!isFragment(x) || !isFragment(y))
    return;
  unsigned to = find(x), from = find(y);
  classes[std::max(to, from)].parent = std::min(to, from);
}

void Distribution::tieBranches(RegionBranchOpInterface branch) {
  auto tieTo = [&](OperandRange operands, RegionSuccessor &successor) {
    for (auto [from, to] : llvm::zip(operands, successor.getSuccessorInputs()))
      tie(from, to);
  };
  SmallVector<RegionSuccessor> successors;
  branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  for (RegionSuccessor &successor : successors)
    tieTo(branch.getEntrySuccessorOperands(successor), successor);
  for (Region &region : branch->getRegions())
    for (Block &block : region) {
      auto end =
          block.empty()
              ? RegionBranchTerminatorOpInterface()
              : dyn_cast<RegionBranchTerminatorOpInterface>(block.back());
      if (!end)
        continue;
      successors.clear();
      branch.getSuccessorRegions(region, successors);
      for (RegionSuccessor &successor : successors)
        tieTo(end.getSuccessorOperands(successor), successor);
    }
}

void Distribution::tieOperands(Operation *op) {
  // An op's fragments of one role lie alike, but for what an exchange changes.
  Value firstOf[4];
  auto tieOne = [&](Value value) {
    if (!isFragment(value))
      return;
    Value &first = firstOf[unsigned(roleOf(value))];
    if (first)
      tie(first, value);
    else
      first = value;
    find(value);
  };
  for (Value operand : op->getOperands())
    tieOne(operand);
  for (Value result : op->getResults())
    tieOne(result);
  Value row = firstOf[unsigned(Role::Row)], acc = firstOf[unsigned(Role::Acc)];
  if (row && acc)
    rows.push_back({row, acc});
}

/// A fragment of one value that comes from outside of a team is made anew in
/// it, where it may lie over other warps.
void Distribution::spreadFills() {
  SmallVector<FragmentFillOp> fills;
  kernel.walk([&](FragmentFillOp op) { fills.push_back(op); });
  for (FragmentFillOp fill : fills) {
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : fill.getFragment().getUses())
      if (auto team = use.getOwner()->getParentOfType<TeamOp>();
          team && !team->isProperAncestor(fill))
        uses[team].push_back(&use);
    for (auto &[team, operands] : uses) {
      OpBuilder b(team->getContext());
      b.setInsertionPointToStart(&team->getRegion(0).front());
      Operation *copy = b.clone(*fill);
      for (OpOperand *operand : operands)
        operand->set(copy->getResult(0));
    }
    if (!uses.empty() && fill.use_empty())
      fill.erase();
  }
}

/// Accumulators of one value that several products begin with are made anew for
/// those whose operands are read in larger groups, or by bytes, or that have an
/// instruction of their own, as they lie in another layout.
void Distribution::splitFills() {
  kernel.walk([&](MmaOp op) {
    auto fill = op.getAcc().getDefiningOp<FragmentFillOp>();
    const MatrixInstruction *mma =
        target.instructionFor(schedule.getMmaShape(productOf(op)),
                              elementName(op.getA().getType().getElementType()),
                              /*byGroups=*/false);
    bool areBytes =
        op.getB().getType().getElementType().getIntOrFloatBitWidth() == 8;
    if (!fill || fill->hasOneUse() || !mma)
      return;
    if (!areBytes && !hasTwoInstructions() &&
        groupOfProduct(target, *mma, op.getB(), op.getTransposeB(),
                       op.getA().getType().getCols()) == mma->group)
      return;
    OpBuilder b(op);
    op.getAccMutable().assign(
        cast<TypedValue<FragmentType>>(b.clone(*fill)->getResult(0)));
  });
}

/// Whether a fragment is made of accumulators where it is defined.
static bool comesFromAccumulators(Value fragment) {
  Operation *op = fragment.getDefiningOp();
  return op && isa<KVBufferDialect>(op->getDialect()) &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           auto type = dyn_cast<FragmentType>(operand.getType());
           return type && type.getRole() == Role::Acc;
         });
}

/// What is loaded once for a product by accumulators, whose order it is
/// contracted in, and for others is loaded for each of them: rows of LDS are
/// read fastest in their own order. Where those are contracted, the others
/// follow.
void Distribution::splitLoads() {
  SmallVector<FragmentLoadOp> loads;
  kernel.walk([&](FragmentLoadOp op) { loads.push_back(op); });
  for (FragmentLoadOp load : loads) {
    if (load.contractsRows())
      continue;
    SmallVector<OpOperand *> ordered;
    bool others = false;
    for (OpOperand &use : load.getFragment().getUses()) {
      auto mma = dyn_cast<MmaOp>(use.getOwner());
      if (mma && comesFromAccumulators(use.get() == mma.getA() ? mma.getB()
                                                               : mma.getA()))
        ordered.push_back(&use);
      else
        others = true;
    }
    if (ordered.empty() || !others)
      continue;
    OpBuilder b(load);
    b.setInsertionPointAfter(load);
    Value copy = b.clone(*load)->getResult(0);
    for (OpOperand *use : ordered)
      use->set(copy);
  }
}

void Distribution::tieCarried(Value carrier, ValueRange values) {
  SmallVector<Value> &known = carried[carrier];
  for (auto [i, value] : llvm::enumerate(values)) {
    find(value);
    if (i < known.size())
      tie(known[i], value);
    else
      known.push_back(value);
  }
}

LogicalResult Distribution::collect() {
  kernel.walk([&](Operation *op) {
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
      tieBranches(branch);
      return;
    }
    if (isa<ExchangeOp>(op)) {
      find(op->getOperand(0));
      find(op->getResult(0));
      return;
    }
    // Fragments go through LDS as they lie.
    if (auto put = dyn_cast<QueuePutOp>(op))
      return tieCarried(put.getQueue(), put.getValues());
    if (auto take = dyn_cast<QueueTakeOp>(op))
      return tieCarried(take.getQueue(), take.getValues());
    if (auto put = dyn_cast<ShelfPutOp>(op))
      return tieCarried(put.getShelf(), put.getValues());
    if (auto get = dyn_cast<ShelfGetOp>(op))
      return tieCarried(get.getShelf(), get.getValues());
    auto note = [&](auto partial, bool isJoined) {
      Partials &own = partials[partial.getParts()];
      own.ops.push_back(op);
      (isJoined ? own.joined : own.accs).push_back(partial.getAcc());
    };
    if (auto store = dyn_cast<PartialStoreOp>(op))
      note(store, /*isJoined=*/false);
    if (auto load = dyn_cast<PartialLoadOp>(op))
      note(load, /*isJoined=*/false);
    if (auto join = dyn_cast<PartialJoinOp>(op))
      note(join, /*isJoined=*/true);
    // Ops of any dialect may be arithmetic on fragments.
    if (op->hasTrait<OpTrait::IsTerminator>())
      return;
    tieOperands(op);
    if (auto mma = dyn_cast<MmaOp>(op))
      products.push_back({op, mma.getA(), mma.getB(), mma.getResult(),
                          mma.getTransposeB(),
                          mma.getA().getType().getElementType()});
    else if (auto start = dyn_cast<MmaStartOp>(op))
      products.push_back({op, isFragment(start.getA()) ? start.getA() : Value(),
                          Value(), start.getResult(), start.getTransposeB(),
                          start.getB().getType().getParams().getElementType()});
  });
  for (unsigned i = 0; i < numbers.size(); ++i) {
    Value value = numbers.begin()[i].first;
    Operation *op = value.getDefiningOp();
    Class &own = classOf(value);
    if (isa_and_nonnull<FragmentConvertOp>(op) && roleOf(value) == Role::B)
      own.weights.push_back(value);
    if (op && roleOf(value) == Role::A) {
      if (isa<FragmentLoadOp, TileFragmentOp>(op))
        own.fromMemory = true;
      else if (comesFromAccumulators(value))
        own.weights.push_back(value);
    }
    FragmentLayoutInterface given;
    if (auto fragment = dyn_cast<FragmentType>(value.getType()))
      given = fragment.getLayout();
    else
      given = cast<PendingType>(value.getType()).getLayout();
    if (given && failed(assign(value, given, op ? op : kernel.getOperation())))
      return failure();
  }
  return success();
}

LogicalResult Distribution::assign(Value value, FragmentLayoutInterface layout,
                                   Operation *at) {
  Class &own = classOf(value);
  if (!own.layout)
    own.layout = layout;
  if (own.layout == layout)
    return success();
  InFlightDiagnostic diag =
      at->emitOpError() << "needs a fragment in the layout " << layout
                        << ", which is handed on in the layout " << own.layout
                        << "; expected one layout, a fragment of its own for "
                           "each use, or a kvbuffer.exchange";
  if (Operation *first = own.first.getDefiningOp(); first && first != at)
    diag.attachNote(first->getLoc()) << "the fragment comes from here";
  return diag;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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

/// The columns at the bits of an order, empty for the natural one.
static SmallVector<int64_t> bitsOf(const LinearLayout &order) {
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

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

/// Operands that a function of elements takes beside accumulators lie as an
/// operand of these would.
void Distribution::assignMapped() {
  kernel.walk([&](MapOp op) {
    auto acc = dyn_cast_or_null<MmaLayoutAttr>(classOf(op.getResult()).layout);
    for (Value input : op.getInputs())
      if (acc && roleOf(input) == Role::A && !classOf(input).layout)
        classOf(input).layout = acc.forOperand(Role::A);
  });
}

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

/// What is stored has several columns of a row in each word, if it can.
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

/// What ends a softmax, or takes part in one, looks at whole rows: where
/// several warps share the columns, they join first.
LogicalResult Distribution::joinWarps() {
  auto areShared = [&](Value value) {
    return classOf(value).layout.getColWarps() > 1;
  };
  // A row value that is made here, for the rows of an accumulator.
  auto note = [&](Value row, Value acc) {
    find(row);
    rows.push_back({row, acc});
  };
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    OpBuilder b(op);
    if (auto softmax = dyn_cast<OnlineSoftmaxOp>(op)) {
      if (softmax.getRowMax() || !areShared(softmax.getScores()))
        return WalkResult::advance();
      auto largest =
          RowReduceOp::create(b, op->getLoc(), softmax.getMax().getType(),
                              Reduction::Maximum, softmax.getScores());
      softmax.getRowMaxMutable().assign(largest);
      note(largest, softmax.getScores());
      return WalkResult::advance();
    }
    // These end a softmax.
    auto finish = dyn_cast<SoftmaxFinishOp>(op);
    auto store = dyn_cast<PartialStoreOp>(op);
    if (finish || store) {
      Value acc = finish ? finish.getAcc() : store.getAcc();
      OpOperand &sum = finish ? finish.getSumMutable() : store.getSumMutable();
      if (!areShared(acc) || sum.get().getDefiningOp<WarpReduceOp>())
        return WalkResult::advance();
      if (finish && finish.getExcess())
        return op->emitOpError()
               << "takes what rounding has added to weights whose columns "
               << classOf(acc).layout.getColWarps()
               << " warps share; expected a softmax without lazy_rescale";
      auto whole = WarpReduceOp::create(b, op->getLoc(), sum.get());
      // Its rows lie as the sum's, whichever accumulator these are noted with.
      tie(sum.get(), whole);
      sum.set(whole);
      note(whole, acc);
      return WalkResult::advance();
    }
    // Parts of a softmax by which a warp decides for itself.
    if (!isa<RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp, SoftmaxTailOp>(op) ||
        llvm::none_of(op->getOperands(), [&](Value value) {
          return isFragment(value) && roleOf(value) == Role::Acc &&
                 areShared(value);
        }))
      return WalkResult::advance();
    return op->emitOpError()
           << "looks at scores or accumulators whose columns several warps "
              "share; expected kvbuffer.online_softmax, or warps = [n, 1]";
  });
  return failure(result.wasInterrupted());
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

LogicalResult Distribution::assignRest() {
  // What no product says anything about lies as the schedule's would.
  FailureOr<MmaLayoutAttr> layout = failure();
  auto ensure = [&](Operation *op) -> LogicalResult {
    layout = defaultLayout(op, BFloat16Type::get(kernel.getContext()));
    return success(succeeded(layout));
  };
  auto kernelOr = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op ? op : kernel.getOperation();
  };
  for (auto &[value, number] : numbers) {
    Role role = roleOf(value);
    if (role == Role::Row || classOf(value).layout)
      continue;
    if (failed(ensure(kernelOr(value))))
      return failure();
    classOf(value).layout =
        layout->forOperand(role, role == Role::B && isTurned(value));
  }
  if (failed(joinWarps()))
    return failure();
  // Two accumulators may share row values if their rows lie in the same lanes.
  for (auto [row, acc] : rows) {
    auto slice = SliceLayoutAttr::get(kernel.getContext(), classOf(acc).layout);
    FragmentLayoutInterface &known = classOf(row).layout;
    if (!known)
      known = slice;
    auto layoutOf = cast<FragmentLayoutInterface>(Attribute(slice));
    if (known.getAtom() == layoutOf.getAtom() &&
        known.getRowWarps() == layoutOf.getRowWarps())
      continue;
    Operation *op = kernelOr(row);
    return op->emitOpError()
           << "has values for each row of fragments whose rows lie in "
              "different "
              "lanes, "
           << known << " and " << slice << "; expected one layout of rows";
  }
  for (auto &[value, number] : numbers) {
    if (roleOf(value) != Role::Row || classOf(value).layout)
      continue;
    if (failed(ensure(kernelOr(value))))
      return failure();
    classOf(value).layout = SliceLayoutAttr::get(kernel.getContext(), *layout);
  }
  return success();
}

void Distribution::setTypes() {
  for (auto &[value, number] : numbers) {
    FragmentLayoutInterface layout = classOf(value).layout;
    if (auto fragment = dyn_cast<FragmentType>(value.getType())) {
      value.setType(fragment.withLayout(layout));
      continue;
    }
    auto pending = cast<PendingType>(value.getType());
    value.setType(PendingType::get(value.getContext(), pending.getRows(),
                                   pending.getCols(), pending.getElementType(),
                                   layout));
  }
  for (auto &[carrier, values] : carried) {
    SmallVector<Type> types(ValueRange(values).getTypes());
    if (isa<QueueType>(carrier.getType()))
      carrier.setType(QueueType::get(carrier.getContext(), types));
    else
      carrier.setType(ShelfType::get(carrier.getContext(), types));
  }
  // A kernel's own arguments are part of its type.
  kernel.setFunctionType(FunctionType::get(
      kernel.getContext(), kernel.getBody().front().getArgumentTypes(),
      kernel.getFunctionType().getResults()));
}

LogicalResult Distribution::run() {
  spreadFills();
  splitFills();
  splitLoads();
  if (failed(collect()))
    return failure();
  // Products whose operands come from accumulators say in which order these
  // are: they come first, each kind in the program's order. (libstdc++ 12's
  // stable algorithms use what C++20 has removed, and warn.)
  decltype(products) ordered, others;
  for (const Product &product : products) {
    bool isOrdered = (product.a && comesFromAccumulators(product.a)) ||
                     (product.b && comesFromAccumulators(product.b));
    (isOrdered ? ordered : others).push_back(product);
  }
  llvm::append_range(ordered, others);
  products = std::move(ordered);
  groupProducts();
  for (const Product &product : products)
    if (failed(assignAccumulators(product)))
      return failure();
  // Exchanges that are inserted change what later products multiply.
  for (unsigned i = 0; i < products.size(); ++i)
    if (failed(assignOperands(products[i])))
      return failure();
  if (failed(assignPartials()))
    return failure();
  assignMapped();
  turnStores();
  assignPuts();
  if (failed(assignRest()))
    return failure();
  setTypes();
  return success();
}

LogicalResult kvbuf::distributeFragments(gpu::GPUFuncOp kernel,
                                         ScheduleAttr schedule,
                                         const TargetInfo &target) {
  return Distribution(kernel, schedule, target).run();
}

namespace {
struct DistributeFragmentsPass
    : kvbuf::impl::DistributeFragmentsBase<DistributeFragmentsPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    // Functions by lanes have no fragments, and need no schedule.
    auto has = [](Type type) { return isa<FragmentType>(type); };
    if (!kernel
             .walk([&](Operation *op) {
               return llvm::any_of(op->getResultTypes(), has)
                          ? WalkResult::interrupt()
                          : WalkResult::advance();
             })
             .wasInterrupted())
      return;
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    std::optional<TargetInfo> target = targetOf(kernel);
    if (!schedule || !target) {
      kernel.emitOpError() << "needs a '" << KVBufferDialect::kScheduleAttr
                           << "' and a '" << KVBufferDialect::kTargetAttr
                           << "' on the module";
      return signalPassFailure();
    }
    if (failed(distributeFragments(kernel, schedule, *target)))
      signalPassFailure();
  }
};
} // namespace
