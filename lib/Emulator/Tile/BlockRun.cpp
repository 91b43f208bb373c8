//===- BlockRun.cpp - Executes a kernel for one block -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include "Accesses.h"
#include "Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

BlockRun::BlockRun(gpu::GPUFuncOp kernel, ArrayRef<RuntimeValue> arguments,
                   std::array<int64_t, 3> block, std::array<int64_t, 3> grid,
                   const llvm::StringMap<int64_t> &sizes, TileReport &report)
    : kernel(kernel), block(block), grid(grid), report(report), sizes(sizes) {
  for (auto [argument, value] :
       llvm::zip_equal(kernel.getArguments(), arguments))
    set(argument, value);
}

InFlightDiagnostic BlockRun::errorAt(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError()
                            << "in block (" << block[0] << ", " << block[1]
                            << ", " << block[2] << ")";
  if (team) {
    diag << ", team @" << team.getSymName();
    if (team.getCopies() > 1)
      diag << " " << copy;
  }
  for (int64_t i : iterations)
    diag << ", iteration " << i;
  diag << ": ";
  return diag;
}

int64_t BlockRun::integerOf(Value value) {
  APInt number = cast<IntegerAttr>(get<Attribute>(value)).getValue();
  return number.getBitWidth() == 1 ? number.getZExtValue()
                                   : number.getSExtValue();
}

void BlockRun::setInteger(Value value, int64_t integer) {
  values[value] = IntegerAttr::get(value.getType(), integer);
}

LogicalResult BlockRun::run() {
  if (failed(runBody(kernel.getBody().front())))
    return failure();
  return finish(blockStates, "block");
}

LogicalResult BlockRun::finish(States &states, StringRef owner) {
  for (auto &[type, state] : llvm::reverse(states))
    if (failed(state->finish(*this, owner)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// What ops are offered
//===----------------------------------------------------------------------===//

TilePlace BlockRun::place() const {
  TilePlace place;
  place.block = block;
  place.grid = grid;
  if (auto size = gpu::GPUFuncOp(kernel).getKnownClusterSize())
    place.cluster = size->front();
  if (team) {
    place.team = team;
    place.teamName = TeamOp(team).getSymName();
    place.copy = copy;
  }
  return place;
}

LogicalResult BlockRun::runTeam(Operation *op, int64_t number) {
  team = cast<TeamOp>(op);
  copy = number;
  if (failed(runBody(team.getBody().front())) ||
      failed(finish(teamStates, "team")))
    return failure();
  teamStates.clear();
  team = nullptr;
  copy = 0;
  return success();
}

void BlockRun::meet() {
  ofTeam<Lds>().meet();
  ++report.barriers;
}

FailureOr<int64_t> BlockRun::sizeOf(Operation *op, Attribute expression) {
  return evaluateSize(expression, sizes, [&] { return errorAt(op); });
}

std::optional<int64_t> BlockRun::findSize(StringRef name) {
  auto it = sizes.find(name);
  return it == sizes.end() ? std::nullopt : std::optional(it->second);
}

std::shared_ptr<void> BlockRun::findAnyObject(Value value, TypeID type) {
  auto *object = std::get_if<Object>(&values[value]);
  return object && object->type == type ? object->object : nullptr;
}

std::unique_ptr<TileState> &BlockRun::anyStateOf(TypeID type, bool ofTeam) {
  return (ofTeam && team ? teamStates : blockStates)[type];
}

LogicalResult BlockRun::setTileRows(Operation *op, Value result, Value tensor,
                                    ArrayRef<std::vector<int64_t>> rows) {
  Tile tile;
  tile.type = cast<TileType>(result.getType());
  tile.op = op;
  tile.tensor = &tensorOf(tensor);
  tile.rows.assign(tile.type.getRows(), Tile::kInvalid);
  if (tile.type.getCols() > tile.tensor->shape.back())
    return errorAt(op) << "makes a tile of " << tile.type.getCols()
                       << " columns of " << tile.tensor->name
                       << ", whose rows have " << tile.tensor->shape.back();
  for (auto [offset, row] : llvm::zip(tile.rows, rows)) {
    SmallVector<int64_t> index(row.begin(), row.end());
    index.push_back(0);
    FailureOr<int64_t> found =
        tile.tensor->offset(index, [&] { return errorAt(op); });
    if (failed(found))
      return failure();
    offset = *found;
  }
  setTile(result, std::move(tile));
  return success();
}

FailureOr<int64_t> BlockRun::elementOf(Operation *op, Value value,
                                       ArrayRef<int64_t> index) {
  const Tensor &tensor = tensorOf(value);
  auto fail = [&] { return errorAt(op); };
  if (failed(tensor.checkReadable(fail)))
    return failure();
  FailureOr<int64_t> offset = tensor.offset(index, fail);
  if (failed(offset))
    return failure();
  return tensor.loadInt(*offset);
}

FailureOr<Matrix> BlockRun::stagedBy(Operation *op, Value staged) {
  FailureOr<const Matrix *> slot = slotBy(*this, op, staged);
  if (failed(slot))
    return failure();
  auto type = cast<StagedType>(staged.getType());
  return slice(**slot, type.getRow(), type.getCol(), type.getRows(),
               type.getCols());
}

FailureOr<Matrix> BlockRun::tileBy(Operation *op, Value value) {
  auto fail = [&] { return errorAt(op); };
  Tile tile = tileOf(value);
  if (!tile.tensor) {
    InFlightDiagnostic diag = errorAt(op)
                              << "reads a tile that was predicated off";
    diag.attachNote(tile.op->getLoc()) << "the tile is made here";
    return failure();
  }
  if (failed(tile.tensor->checkReadable(fail)) ||
      (tile.rows.empty() && failed(findRows(*this, op, tile))))
    return failure();
  TileType type = cast<TileType>(value.getType());
  Matrix result(type.getRows(), type.getCols());
  loadTile(tile, result, 0, type.getCols());
  return result;
}

//===----------------------------------------------------------------------===//
// Control flow and scalars
//===----------------------------------------------------------------------===//

LogicalResult BlockRun::runBody(Block &body) {
  for (Operation &op : body)
    if (failed(runAny(&op)))
      return failure();
  return success();
}

void BlockRun::pass(ValueRange from, ValueRange to) {
  SmallVector<RuntimeValue> moved =
      llvm::map_to_vector(from, [&](Value v) { return values[v]; });
  for (auto [value, runtime] : llvm::zip_equal(to, moved))
    set(value, runtime);
}

LogicalResult BlockRun::runFor(scf::ForOp op) {
  int64_t lower = integerOf(op.getLowerBound()),
          upper = integerOf(op.getUpperBound()), step = integerOf(op.getStep());
  if (step <= 0)
    return errorAt(op) << "expected a positive step, got " << step;
  pass(op.getInitArgs(), op.getRegionIterArgs());
  for (int64_t i = lower; i < upper; i += step) {
    setInteger(op.getInductionVar(), i);
    iterations.push_back(i);
    if (failed(runBody(*op.getBody())))
      return failure();
    iterations.pop_back();
    pass(op.getYieldedValues(), op.getRegionIterArgs());
  }
  pass(op.getRegionIterArgs(), op.getResults());
  return success();
}

LogicalResult BlockRun::runWhile(scf::WhileOp op) {
  pass(op.getInits(), op.getBeforeArguments());
  for (int64_t i = 0;; ++i) {
    iterations.push_back(i);
    if (failed(runBody(*op.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    if (!integerOf(condition.getCondition())) {
      pass(condition.getArgs(), op.getResults());
      iterations.pop_back();
      return success();
    }
    pass(condition.getArgs(), op.getAfterArguments());
    if (failed(runBody(*op.getAfterBody())))
      return failure();
    pass(op.getYieldOp().getOperands(), op.getBeforeArguments());
    iterations.pop_back();
  }
}

LogicalResult BlockRun::runIf(scf::IfOp op) {
  Region &side =
      integerOf(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (side.empty())
    return success();
  if (failed(runBody(side.front())))
    return failure();
  for (auto [result, yielded] : llvm::zip_equal(
           op.getResults(), side.front().getTerminator()->getOperands()))
    set(result, values[yielded]);
  return success();
}

/// Scalars are computed by the op's own folder.
LogicalResult BlockRun::runDefault(Operation *op) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    const Attribute *attr = std::get_if<Attribute>(&values[operand]);
    if (!attr)
      return errorAt(op) << "cannot be executed on whole tiles";
    operands.push_back(*attr);
  }
  SmallVector<OpFoldResult> results;
  if (!isMemoryEffectFree(op) || op->getNumRegions() ||
      failed(op->fold(operands, results)) ||
      results.size() != op->getNumResults()) {
    InFlightDiagnostic diag = errorAt(op) << "cannot be computed from (";
    llvm::interleaveComma(operands, diag);
    return diag << ")";
  }
  for (auto [value, folded] : llvm::zip_equal(op->getResults(), results)) {
    if (auto attr = dyn_cast<Attribute>(folded))
      set(value, attr);
    else
      set(value, values[cast<Value>(folded)]);
  }
  return success();
}

LogicalResult BlockRun::runAny(Operation *op) {
  if (!isa<scf::YieldOp, scf::ConditionOp, scf::ForOp, scf::WhileOp>(op))
    for (Value operand : op->getOperands())
      if (std::holds_alternative<std::monostate>(values[operand])) {
        InFlightDiagnostic diag = errorAt(op) << "uses an undefined value";
        diag.attachNote(operand.getLoc()) << "the value comes from here";
        return diag;
      }
  auto clusterAlong = [&](auto op) {
    return op.getDimension() == gpu::Dimension::x ? place().cluster : 1;
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::YieldOp, scf::ConditionOp, gpu::ReturnOp, YieldOp>(
          [](auto) { return success(); })
      .Case([&](scf::ForOp op) { return runFor(op); })
      .Case([&](scf::WhileOp op) { return runWhile(op); })
      .Case([&](scf::IfOp op) { return runIf(op); })
      .Case([&](ub::PoisonOp op) {
        set(op.getResult(), RuntimeValue());
        return success();
      })
      .Case([&](gpu::BlockIdOp op) {
        setInteger(op.getResult(), block[unsigned(op.getDimension())]);
        return success();
      })
      .Case([&](gpu::GridDimOp op) {
        setInteger(op.getResult(), grid[unsigned(op.getDimension())]);
        return success();
      })
      .Case([&](gpu::ClusterBlockIdOp op) {
        setInteger(op.getResult(), op.getDimension() == gpu::Dimension::x
                                       ? block[0] % place().cluster
                                       : int64_t(0));
        return success();
      })
      .Case([&](gpu::ClusterIdOp op) {
        setInteger(op.getResult(),
                   block[unsigned(op.getDimension())] / clusterAlong(op));
        return success();
      })
      .Case([&](gpu::ClusterDimOp op) {
        setInteger(op.getResult(),
                   grid[unsigned(op.getDimension())] / clusterAlong(op));
        return success();
      })
      .Case<TileExecutionInterface>(
          [&](auto op) { return op.executeTile(*this); })
      .Default([&](Operation *op) { return runDefault(op); });
}
