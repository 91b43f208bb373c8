//===- LaneLowering.cpp - From tiles to lanes -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

Values TileValues::pack() const {
  Values values{data, base, rowStride, lo, hi};
  if (pages)
    values.append({pages, firstKey, pageStride});
  else if (isPaged())
    values.append({table, tableBase, firstKey, pageStride});
  if (cols)
    values.push_back(cols);
  return values;
}

TileValues TileValues::unpack(TileType type, ValueRange values) {
  TileValues tile;
  tile.data = values[0];
  tile.base = values[1];
  tile.rowStride = values[2];
  tile.lo = values[3];
  tile.hi = values[4];
  values = values.drop_front(5);
  // The columns of a cache's tile are all there.
  if (type.getPageSize() && values.size() == 3) {
    tile.pages = values[0];
    tile.firstKey = values[1];
    tile.pageStride = values[2];
    return tile;
  }
  if (type.getPageSize()) {
    tile.table = values[0];
    tile.tableBase = values[1];
    tile.firstKey = values[2];
    tile.pageStride = values[3];
    values = values.drop_front(4);
  }
  // A window: of rows one stride apart, or of groups of rows.
  if (!values.empty())
    tile.cols = values.front();
  return tile;
}

bool kvbuf::isTurnedInLds(const TargetInfo &target, KVBufferAttr params) {
  return params.getOrder() == Dimension::Cols ||
         (params.contractsRows() && !target.readsTransposed &&
          params.getElementType().getIntOrFloatBitWidth() > 8);
}

bool kvbuf::goesThroughRegisters(const TargetInfo &target,
                                 KVBufferAttr params) {
  return params.getPolicy() == Policy::RegisterStaged ||
         (params.getPolicy() == Policy::Streaming &&
          isTurnedInLds(target, params));
}

SharedTile kvbuf::sharedTile(KVBufferAttr params) {
  SharedTile tile;
  tile.rows = params.getBN();
  tile.blockCols = params.getBK();
  tile.repeats = params.getSmemCols() / params.getBK();
  tile.elementBytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  if (ArrayRef<int64_t> s = params.getSwizzle(); !s.empty())
    tile.swizzle = {unsigned(s[0]), unsigned(s[1]), unsigned(s[2])};
  return tile;
}

int64_t kvbuf::slotAlignment(KVBufferAttr params) {
  return params.getStages() == 1
             ? kBufferAlignment
             : std::gcd(kBufferAlignment, params.getStageBytes());
}

std::unique_ptr<Machine> kvbuf::createMachine(const TargetInfo &target,
                                              bool roles) {
  if (target.vendor == Vendor::AMD)
    return createAMDMachine();
  return roles ? createHopperMachine() : createNVIDIAMachine();
}

Value Numerics::emitRatio(Lanes &lower, Value x, Value y) {
  return arith::DivFOp::create(lower.b, x, y);
}

LogicalResult Fragments::emitTileFragment(Lanes &, TileFragmentOp op,
                                          const TileValues &, Values &) {
  return op.emitOpError() << "has no per-lane form on this target: its "
                             "fragments come from LDS";
}

void Copies::emitMeet(Lanes &lower) { gpu::BarrierOp::create(lower.b); }

Value Numerics::roundOperand(Lanes &lower, Value value, VectorType type, bool) {
  return arith::TruncFOp::create(lower.b, type, value);
}

LaneLowering::LaneLowering(gpu::GPUFuncOp kernel, const TargetInfo &target,
                           ScheduleAttr schedule, Machine &machine,
                           int64_t alignment)
    : Lanes(kernel, target, schedule, machine, alignment), signature(*this),
      roles(target, schedule) {}

void LaneLowering::narrowTypes(Type type, SmallVectorImpl<Type> &types) {
  if (machine.hasRoles() && type.isIndex())
    types.push_back(b.getI32Type());
  else
    laneTypes(type, types);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

bool LaneLowering::staysInLds(scf::ForOp loop, unsigned index) {
  if (!schedule.getSumsInLds())
    return false;
  Value arg = loop.getRegionIterArg(index);
  auto softmax =
      loop.getYieldedValues()[index].getDefiningOp<OnlineSoftmaxOp>();
  return softmax && softmax.getSum() == arg && arg.hasOneUse() &&
         softmax.getNewSum() == loop.getYieldedValues()[index] &&
         softmax->getParentOp() == loop;
}

LogicalResult LaneLowering::lower(scf::ForOp op) {
  Values inits;
  SmallVector<unsigned> counts;
  for (auto [i, init] : llvm::enumerate(op.getInitArgs())) {
    if (staysInLds(op, i)) {
      // Each thread reads and writes its own slot: no barrier is needed.
      std::optional<int64_t> offset = lds.rowsOf(init);
      if (!offset) {
        offset = lds.take(4 * get(init).size() * blockWarps * target.waveSize);
        storeRows(get(init), *offset);
      }
      lds.placeRows(op.getRegionIterArg(i), *offset);
      lds.placeRows(op.getResult(i), *offset);
      counts.push_back(0);
      continue;
    }
    Values values = rowValues(init);
    llvm::append_range(inits, values);
    counts.push_back(values.size());
  }
  bool narrow = machine.hasRoles();
  auto bound = [&](Value value) {
    return narrow ? toI32(single(value)) : single(value);
  };
  auto loop = scf::ForOp::create(b, bound(op.getLowerBound()),
                                 bound(op.getUpperBound()), bound(op.getStep()),
                                 narrowed(inits));
  loop.setUnsignedCmp(op.getUnsignedCmp());
  auto regroup = [&](ValueRange from, auto &&to) {
    unsigned next = 0;
    for (auto [i, count] : llvm::enumerate(counts)) {
      to(i, from.slice(next, count));
      next += count;
    }
  };
  {
    OpBuilder::InsertionGuard guard(b);
    if (!loop.getBody()->empty())
      loop.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(loop.getBody());
    Value induction = loop.getInductionVar();
    set(op.getInductionVar(), {narrow ? toIndex(induction) : induction});
    regroup(loop.getRegionIterArgs(), [&](unsigned i, ValueRange v) {
      setWidened(op.getRegionIterArg(i), v);
    });
    if (failed(lowerBlock(*op.getBody())))
      return failure();
    Values yields;
    for (auto [value, count] :
         llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), counts))
      if (count)
        llvm::append_range(yields, get(value));
    scf::YieldOp::create(b, narrowed(yields));
  }
  regroup(loop.getResults(),
          [&](unsigned i, ValueRange v) { setWidened(op.getResult(i), v); });
  return success();
}

Values LaneLowering::narrowed(Values values) {
  if (machine.hasRoles())
    for (Value &value : values)
      if (value.getType().isIndex())
        value = toI32(value);
  return values;
}

void LaneLowering::setWidened(Value value, ValueRange lanes) {
  Values values(lanes.begin(), lanes.end());
  if (machine.hasRoles() && value.getType().isIndex())
    values = {toIndex(values.front())};
  set(value, values);
}

LogicalResult LaneLowering::lower(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  for (Type type : op.getResultTypes()) {
    unsigned before = types.size();
    narrowTypes(type, types);
    counts.push_back(types.size() - before);
  }
  bool hasElse = !op.getElseRegion().empty();
  auto ifOp =
      scf::IfOp::create(b, types, single(op.getCondition()),
                        /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  auto lowerSide = [&](Block *from, Block *to) {
    OpBuilder::InsertionGuard guard(b);
    if (!to->empty())
      to->getTerminator()->erase();
    b.setInsertionPointToEnd(to);
    if (failed(lowerBlock(*from)))
      return failure();
    Values yields;
    for (Value value : from->getTerminator()->getOperands())
      llvm::append_range(yields, rowValues(value));
    scf::YieldOp::create(b, narrowed(yields));
    return success();
  };
  if (failed(lowerSide(op.thenBlock(), ifOp.thenBlock())))
    return failure();
  if (hasElse && failed(lowerSide(op.elseBlock(), ifOp.elseBlock())))
    return failure();
  unsigned next = 0;
  for (auto [result, count] : llvm::zip_equal(op.getResults(), counts)) {
    setWidened(result, ifOp.getResults().slice(next, count));
    next += count;
  }
  return success();
}

LogicalResult LaneLowering::lower(scf::WhileOp op) {
  // Lane values of a list of the loop's values, and back.
  auto typesOf = [&](TypeRange from, SmallVectorImpl<Type> &types,
                     SmallVectorImpl<unsigned> &counts) {
    for (Type type : from) {
      unsigned before = types.size();
      narrowTypes(type, types);
      counts.push_back(types.size() - before);
    }
  };
  auto regroup = [&](ValueRange values, ArrayRef<unsigned> counts,
                     ValueRange to) {
    unsigned next = 0;
    for (auto [value, count] : llvm::zip_equal(to, counts)) {
      auto part = values.slice(next, count);
      // Loops of consumers are the same for all lanes: said so, numbers stay in
      // the scalar unit.
      if (count == 1 && part[0].getType().isInteger(32) && roles.consumersStart)
        setWidened(value, machine.uniform(*this, part[0]));
      else
        setWidened(value, part);
      next += count;
    }
  };
  auto flatten = [&](ValueRange values) {
    Values flat;
    for (Value value : values)
      llvm::append_range(flat, rowValues(value));
    return narrowed(flat);
  };
  SmallVector<Type> beforeTypes, afterTypes;
  SmallVector<unsigned> beforeCounts, afterCounts;
  typesOf(op.getInits().getTypes(), beforeTypes, beforeCounts);
  typesOf(op.getResultTypes(), afterTypes, afterCounts);
  auto loop = scf::WhileOp::create(b, afterTypes, flatten(op.getInits()));
  {
    OpBuilder::InsertionGuard guard(b);
    Location loc = op.getLoc();
    Block *before =
        b.createBlock(&loop.getBefore(), {}, beforeTypes,
                      SmallVector<Location>(beforeTypes.size(), loc));
    regroup(before->getArguments(), beforeCounts, op.getBeforeArguments());
    if (failed(lowerBlock(*op.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    scf::ConditionOp::create(b, single(condition.getCondition()),
                             flatten(condition.getArgs()));
    Block *after = b.createBlock(&loop.getAfter(), {}, afterTypes,
                                 SmallVector<Location>(afterTypes.size(), loc));
    regroup(after->getArguments(), afterCounts, op.getAfterArguments());
    if (failed(lowerBlock(*op.getAfterBody())))
      return failure();
    scf::YieldOp::create(b, flatten(op.getYieldOp().getOperands()));
  }
  regroup(loop.getResults(), afterCounts, op.getResults());
  return success();
}

LogicalResult LaneLowering::lowerBlock(Block &block) {
  Operation *end =
      block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  for (Operation &op : block) {
    if (&op == end)
      break;
    b.setLoc(op.getLoc());
    if (failed(lowerOp(&op)))
      return failure();
  }
  return success();
}

/// Whether an op is arithmetic on indices whose results fit 32 bits if its
/// operands do.
static bool isIndexArithmetic(Operation *op) {
  auto isIndex = [](Type type) { return type.isIndex(); };
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivUIOp,
             arith::RemUIOp, arith::CeilDivUIOp, arith::MinSIOp, arith::MaxSIOp,
             arith::MinUIOp, arith::MaxUIOp, arith::CmpIOp, arith::SelectOp,
             arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp,
             arith::ShRUIOp>(op) &&
         (llvm::any_of(op->getResultTypes(), isIndex) ||
          llvm::any_of(op->getOperandTypes(), isIndex));
}

void LaneLowering::lowerNarrow(Operation *op) {
  Values operands;
  for (Value operand : op->getOperands()) {
    Value value = single(operand);
    operands.push_back(value.getType().isIndex() ? toI32(value) : value);
  }
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(type.isIndex() ? Type(b.getI32Type()) : type);
  Operation *copy = b.create(op->getLoc(), op->getName().getIdentifier(),
                             operands, types, op->getAttrs());
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    set(from, {from.getType().isIndex() ? toIndex(to) : to});
}

LogicalResult LaneLowering::lowerOp(Operation *op) {
  current = op;
  if (auto lowering = dyn_cast<LaneLoweringInterface>(op))
    return lowering.lowerToLanes(*this);
  if (isa<WorkItemOp, ItemRowsOp>(op))
    return op->emitOpError() << "has no per-lane form: no block has an item "
                                "yet; run kvbuf-assign-work first";
  if (isa_and_nonnull<KVBufferDialect>(op->getDialect()) || op->getNumRegions())
    return op->emitOpError() << "has no per-lane form";
  auto isTiled = [](Type type) { return isa<FragmentType, TileType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isTiled) ||
      llvm::any_of(op->getResultTypes(), isTiled))
    return op->emitOpError() << "has no per-lane form; expected an op that "
                                "implements LaneLoweringInterface";
  // Rows, keys and numbers of tiles: sizes are passed in 32 bits. In 64 they
  // would take registers that roles do not have.
  if (machine.hasRoles() && isIndexArithmetic(op)) {
    lowerNarrow(op);
    return success();
  }
  // Scalar code is the same for every lane.
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value value = findSingle(operand);
    if (!value)
      return op->emitOpError()
             << "has an operand without a single per-lane value";
    mapping.map(operand, value);
  }
  Operation *copy = b.clone(*op, mapping);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    set(from, {to});
  return success();
}

LogicalResult LaneLowering::checkNoRoles(Operation *op) {
  if (!machine.hasRoles())
    return success();
  return op->emitOpError() << "has no per-lane form beside "
                              "kvbuffer.warp_roles; expected "
                              "kvbuffer.ring_load";
}

LogicalResult LaneLowering::run() {
  b.setInsertionPoint(kernel);
  if (failed(signature.expand()))
    return failure();
  Value x = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  thread = blockThread = toI32(x);
  lane = arith::AndIOp::create(b, thread, i32(target.waveSize - 1));
  warp = machine.uniform(
      *this,
      arith::ShRUIOp::create(b, thread, i32(llvm::Log2_64(target.waveSize))));
  if (machine.hasRoles()) {
    kernel.walk([&](SoftmaxFinishOp op) {
      accumulatorCols = op.getAcc().getType().getCols();
    });
    warpRoles().emitRolesPrologue(*this);
  }
  // What else lies in LDS comes after the buffers that have their places.
  kernel.walk([&](AllocOp op) {
    auto team = op->getParentOfType<TeamOp>();
    int64_t copies = team ? int64_t(team.getCopies()) : 1;
    int64_t bytes = llvm::alignTo(
        op.getBuffer().getType().getParams().getBytes(), kBufferAlignment);
    if (op.getOffset())
      lds.cover(int64_t(*op.getOffset()) + copies * bytes);
  });
  if (failed(machine.prepare(*this, kernel)))
    return failure();
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  b.setLoc(kernel.getLoc());
  machine.emitEnd(*this);
  gpu::ReturnOp::create(b);
  signature.finish();
  return success();
}
