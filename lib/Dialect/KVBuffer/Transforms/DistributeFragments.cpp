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
/// the other, are a class. Products say first how theirs lie
/// (DistributeProducts.cpp), then what goes to memory (DistributeStores.cpp);
/// the rest lies as the schedule's product would.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/DistributeFragments.h"
#include "Distribution.h"
#include "ProductGroups.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"

namespace kvbuf {
#define GEN_PASS_DEF_DISTRIBUTEFRAGMENTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

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
    // Scores and what is accumulated may be of two products.
    if (auto settle = dyn_cast<SoftmaxSettleOp>(op)) {
      find(settle.getP());
      tie(settle.getExponents(), settle.getAll());
      tie(settle.getAcc(), settle.getNewAcc());
      for (Value row : {Value(settle.getSum()), Value(settle.getNewMax()),
                        Value(settle.getNewSum())})
        tie(settle.getMax(), row);
      rows.push_back({settle.getMax(), settle.getAll()});
      rows.push_back({settle.getMax(), settle.getAcc()});
      return;
    }
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
// The rest
//===----------------------------------------------------------------------===//

void Distribution::assignMapped() {
  kernel.walk([&](MapOp op) {
    auto acc = dyn_cast_or_null<MmaLayoutAttr>(classOf(op.getResult()).layout);
    for (Value input : op.getInputs())
      if (acc && roleOf(input) == Role::A && !classOf(input).layout)
        classOf(input).layout = acc.forOperand(Role::A);
  });
}

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
    if (!isa<RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp, SoftmaxTailOp,
             SoftmaxSettleOp>(op) ||
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
