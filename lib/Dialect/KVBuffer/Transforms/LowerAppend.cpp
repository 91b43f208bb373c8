//===- LowerAppend.cpp - Turn appends into lane programs --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The kernel of a `kvbuffer.cache_append`: so many lanes hold a head of a new
/// token, so many elements each. A lane loads its elements of K and V, finds
/// the token's place, rotates, quantizes and stores (AppendTokens.h). Where the
/// halves of a head rotate each other, a lane has a piece of each: it needs
/// nothing of others then, and one set of angles.
///
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/AppendTokens.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemFunction.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {
#define GEN_PASS_DEF_LOWERAPPEND
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// The operands of a problem, or what `args` maps them to.
static AppendOperands appendOperands(CacheAppendOp op,
                                     const IRMapping *args = nullptr) {
  auto value = [&](Value operand) {
    return operand && args ? args->lookup(operand) : operand;
  };
  return {value(op.getK()),      value(op.getKCache()), value(op.getV()),
          value(op.getVCache()), value(op.getCos()),    value(op.getSin()),
          op.getInterleaved()};
}

namespace {

/// Threads of a block, at most: enough blocks for all of a chip even where
/// there are few tokens.
constexpr int64_t kThreads = 256;

/// Builds the program.
class AppendProgram : AppendEmitter {
public:
  AppendProgram(ImplicitLocOpBuilder &b, CacheAppendOp op,
                const AppendOperands &operands, const AppendShares &shares,
                int64_t heads, int64_t dies, const IRMapping &args)
      : AppendEmitter(b, operands, shares), op(op), blockHeads(heads),
        dies(dies), args(args) {}

  void build() {
    findRow();
    emit([&] { findPlace(); });
  }

private:
  Value operand(Value value) { return value ? args.lookup(value) : Value(); }
  /// An integer of a tensor that nobody has checked.
  Value entry(Value tensor, Value at) {
    Value word = memref::LoadOp::create(b, tensor, ValueRange{at});
    return arith::IndexCastOp::create(b, b.getIndexType(), word);
  }
  /// The number of the block whose heads this one has: consecutive blocks go to
  /// the chip's dies in turn.
  Value findBlock();
  /// Which new token, head and elements a lane has.
  void findRow();
  /// The sequence and the position of the token.
  void findPlace();
  /// The last sequence that begins at a row or before it.
  Value findSequence(Value offsets, Value sequences, Value row);

  CacheAppendOp op;
  /// Heads of a block, and dies of the chip.
  int64_t blockHeads, dies;
  const IRMapping &args;
  /// The token, counted over the batch; whether there is one that the lane has
  /// elements of, of K or V; tokens of a sequence of a dense batch.
  Value token, exists, each;
};

} // namespace

Value AppendProgram::findSequence(Value offsets, Value sequences, Value row) {
  SmallVector<Type> types(2, b.getIndexType());
  SmallVector<Location> locs(2, b.getLoc());
  auto loop =
      scf::WhileOp::create(b, types, ValueRange{constant(0), sequences});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locs);
  Value size = sub(before->getArgument(1), before->getArgument(0));
  scf::ConditionOp::create(b, isLess(constant(1), size),
                           before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locs);
  Value low = after->getArgument(0), high = after->getArgument(1);
  Value middle = arith::ShRUIOp::create(b, add(low, high), constant(1));
  Value isAfter = isLess(row, entry(offsets, middle));
  scf::YieldOp::create(b, ValueRange{select(isAfter, low, middle),
                                     select(isAfter, middle, high)});
  return loop.getResult(0);
}

Value AppendProgram::findBlock() {
  Value id = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  if (dies == 1)
    return id;
  // Each die has a run of the batch's tokens: what neighbours read of tables
  // and angles, and write of scales and short rows, is in one cache.
  Value k = operand(op.getK());
  Value rows = memref::DimOp::create(b, k, 0);
  if (!op.getOffsets())
    rows = arith::MulIOp::create(b, rows, memref::DimOp::create(b, k, 1));
  rows = arith::MulIOp::create(b, rows, constant(layout.getHeads()));
  Value blocks = arith::CeilDivUIOp::create(b, rows, constant(blockHeads));
  return numberInRuns(b, id, blocks, dies);
}

void AppendProgram::findRow() {
  Value tid = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value lane = arith::RemUIOp::create(b, tid, constant(shares.lanes));
  Value heads = constant(layout.getHeads());
  Value row = add(arith::MulIOp::create(b, findBlock(), constant(blockHeads)),
                  arith::DivUIOp::create(b, tid, constant(shares.lanes)));
  dim = arith::MulIOp::create(b, lane, constant(shares.piece()));
  head = arith::RemUIOp::create(b, row, heads);
  token = arith::DivUIOp::create(b, row, heads);
  Value k = operand(op.getK());
  Value count = memref::DimOp::create(b, k, 0);
  if (!op.getOffsets()) {
    each = memref::DimOp::create(b, k, 1);
    count = arith::MulIOp::create(b, count, each);
  }
  exists = isLess(token, count);
  active =
      both(exists, isLess(lane, constant(layout.getHeadSize() / shares.width)));
  if (hasValuesApart())
    dealValues(lane, exists);
  else
    exists = active;
  token = select(exists, token, constant(0));
  dim = select(active, dim, constant(0));
  if (op.getOffsets()) {
    lead = {token};
    return;
  }
  // In 32 bits, where a division is a fraction of what it takes in 64.
  auto narrow = [&](Value x) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(), x);
  };
  auto wide = [&](Value x) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), x);
  };
  Value t = narrow(token), n = narrow(each);
  lead = {wide(arith::DivUIOp::create(b, t, n)),
          wide(arith::RemUIOp::create(b, t, n))};
}

void AppendProgram::findPlace() {
  Value number, isNew = exists;
  if (Value offsets = operand(op.getOffsets())) {
    Value sequences = sub(memref::DimOp::create(b, offsets, 0), constant(1));
    batch = findSequence(offsets, sequences, token);
    Value next = arith::MinSIOp::create(b, add(batch, constant(1)), sequences);
    // Brought into range, as nobody has checked them.
    Value rows = memref::DimOp::create(b, operand(op.getK()), 0);
    auto within = [&](Value x, Value least) -> Value {
      return arith::MinSIOp::create(
          b, arith::MaxSIOp::create(b, x, least).getResult(), rows);
    };
    Value first = within(entry(offsets, batch), constant(0));
    number = sub(token, first);
    isNew = both(isNew, isLess(token, within(entry(offsets, next), first)));
    isNew = both(isNew, isLess(constant(-1), number));
  } else {
    batch = lead[0];
    number = lead[1];
  }
  Value begin = op.getAt()
                    ? entry(operand(op.getAt()), batch)
                    : CacheLengthOp::create(b, operand(op.getKCache()), batch)
                          .getLength();
  position = select(isNew, add(begin, number), constant(-1));
  if (op.getRopeAt())
    angles = add(entry(operand(op.getRopeAt()), batch), number);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
/// An operand of the problem: its name and what the manifest says of it.
struct Role {
  Value value;
  StringRef name, access;
  SmallVector<Attribute> shape;
};

struct LowerAppendPass : kvbuf::impl::LowerAppendBase<LowerAppendPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registry.insert<math::MathDialect>();
  }

  static SmallVector<Role> rolesOf(CacheAppendOp op, Builder &b) {
    auto str = [&](StringRef text) -> Attribute {
      return b.getStringAttr(text);
    };
    auto number = [&](int64_t value) -> Attribute {
      return b.getI64IntegerAttr(value);
    };
    auto layout = cast<CacheLayout>(op.getKCache().getType());
    SmallVector<Attribute> rows{str(kBatchSize), str(kNewTokensSize)};
    if (op.getOffsets())
      rows = {str(kAllNewTokensSize)};
    rows.append({number(layout.getHeads()), number(layout.getHeadSize())});
    SmallVector<Role> roles{{op.getK(), "k_new", "read", rows}};
    if (op.getV()) {
      rows.back() =
          number(cast<CacheLayout>(op.getVCache().getType()).getHeadSize());
      roles.push_back({op.getV(), "v_new", "read", rows});
    }
    if (op.getOffsets())
      roles.push_back({op.getOffsets(),
                       "offsets",
                       "read",
                       {SizeAttr::of(b.getContext(), "sum",
                                     {str(kBatchSize), number(1)})}});
    if (op.getAt())
      roles.push_back({op.getAt(), "at", "read", {str(kBatchSize)}});
    if (op.getCos()) {
      int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
      SmallVector<Attribute> angles{str(kPositionsSize), number(pairs)};
      roles.push_back({op.getCos(), "cos", "read", angles});
      roles.push_back({op.getSin(), "sin", "read", angles});
    }
    if (op.getRopeAt())
      roles.push_back({op.getRopeAt(), "rope_at", "read", {str(kBatchSize)}});
    roles.push_back({op.getKCache(), "k", "read_write", {}});
    if (op.getV())
      roles.push_back({op.getVCache(), "v", "read_write", {}});
    return roles;
  }

  /// The problem, as the manifest states it.
  static DictionaryAttr describe(CacheAppendOp op, Builder &b) {
    auto cache = dyn_cast<CacheType>(op.getKCache().getType());
    auto layout = cast<CacheLayout>(op.getKCache().getType());
    NamedAttrList list;
    // Of packed rows the tools know no reference.
    bool packed = packedRowOf(op.getKCache().getType()) ||
                  (op.getV() && packedRowOf(op.getVCache().getType()));
    list.append("op", b.getStringAttr(packed ? "cache_append_of_packed_rows"
                                             : "cache_append"));
    list.append("new", b.getStringAttr(op.getOffsets() ? "ragged" : "dense"));
    if (cache)
      list.append("cache",
                  b.getStringAttr(stringifyCacheKind(cache.getKind())));
    if (layout.getRun())
      list.append("page_size", b.getI64IntegerAttr(layout.getRun()));
    list.append("heads", b.getI64IntegerAttr(layout.getHeads()));
    list.append("head_size", b.getI64IntegerAttr(layout.getHeadSize()));
    if (op.getV())
      if (int64_t size =
              cast<CacheLayout>(op.getVCache().getType()).getHeadSize();
          size != layout.getHeadSize())
        list.append("v_head_size", b.getI64IntegerAttr(size));
    list.append("values", b.getBoolAttr(bool(op.getV())));
    list.append("at", b.getBoolAttr(bool(op.getAt())));
    if (op.getCos())
      list.append("rope", b.getStringAttr(op.getInterleaved() ? "interleaved"
                                                              : "half"));
    if (op.getRopeAt())
      list.append("rope_at", b.getBoolAttr(true));
    for (auto [name, value] : {std::pair<StringRef, Value>{"k", op.getKCache()},
                               {"v", op.getVCache()}}) {
      if (!value)
        continue;
      if (RowAttr row = packedRowOf(value.getType()); row && row.getTail()) {
        list.append((name + "_tail_row").str(),
                    b.getI64IntegerAttr(row.getBytes()));
        list.append((name + "_tail_block").str(),
                    b.getI64IntegerAttr(row.getTailStride()));
      }
      auto into = cast<CacheLayout>(value.getType());
      list.append((name + "_cache_depth").str(),
                  b.getI64IntegerAttr(into.getCacheDepth()));
      list.append((name + "_head_dim_offset").str(),
                  b.getI64IntegerAttr(into.getHeadDimOffset()));
      if (into.getScaleType())
        list.append((name + "_granularity").str(),
                    b.getI64IntegerAttr(into.getGranularity()));
    }
    return list.getDictionary(b.getContext());
  }

  LogicalResult lower(func::FuncOp func, const TargetInfo &target) {
    auto op = *func.getOps<CacheAppendOp>().begin();
    if (failed(verifyOnMemrefs(op)))
      return failure();
    for (Operation &other : func.getBody().front())
      if (&other != op && !isa<func::ReturnOp>(other))
        return other.emitOpError()
               << "is not supported beside kvbuffer.cache_append: expected a "
                  "function of one kvbuffer.cache_append and a return";
    auto reads = [&](unsigned i, StringRef name) {
      return name == kIndexAttr && isa<CacheLayout>(func.getArgumentTypes()[i]);
    };
    if (failed(verifyProblemFunction(func, op.getOperation(), reads)))
      return failure();
    AppendOperands operands = appendOperands(op);
    FailureOr<AppendShares> shares =
        dealHeads(op, operands, target, target.maxThreads);
    if (failed(shares))
      return failure();
    shares->unaligned = alignment < 16;
    int64_t heads = std::max<int64_t>(1, kThreads / shares->lanes);
    Builder attrs(&getContext());
    SmallVector<Role> roles = rolesOf(op, attrs);
    SmallVector<const Role *> byArgument(func.getNumArguments());
    for (const Role &role : roles) {
      auto arg = dyn_cast<BlockArgument>(role.value);
      if (!arg || arg.getOwner() != &func.getBody().front())
        return op.emitOpError() << "expected operand '" << role.name
                                << "' to be an argument of @" << func.getName();
      if (const Role *other = byArgument[arg.getArgNumber()])
        return op.emitOpError()
               << "operand '" << role.name << "' is the same argument as '"
               << other->name << "'; expected one argument for each operand";
      byArgument[arg.getArgNumber()] = &role;
    }
    for (auto [i, role] : llvm::enumerate(byArgument))
      if (!role)
        return func.emitOpError()
               << "argument " << i << " is not used by kvbuffer.cache_append";

    ImplicitLocOpBuilder b(op.getLoc(), func);
    gpu::GPUFuncOp kernel = createKernel(b, func);
    kernel.setKnownBlockSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(shares->lanes * heads), 1, 1}));
    kernel->setAttr(KVBufferDialect::kProblemAttr,
                    ProblemAttr::get(b.getContext(), describe(op, attrs)));
    auto expression = [&](StringRef name, ArrayRef<Attribute> operands) {
      return SizeAttr::of(b.getContext(), name, operands);
    };
    SmallVector<Attribute> rows(ArrayRef(roles.front().shape).drop_back());
    auto sizes = cast<MemRefType>(op.getK().getType()).getShape();
    for (auto [row, size] : llvm::zip(rows, sizes))
      if (!ShapedType::isDynamic(size))
        row = b.getI64IntegerAttr(size);
    kernel->setAttr(
        KVBufferDialect::kGridAttr,
        b.getArrayAttr({expression("ceildiv", {expression("product", rows),
                                               b.getI64IntegerAttr(heads)}),
                        b.getI64IntegerAttr(1), b.getI64IntegerAttr(1)}));
    for (auto [i, role] : llvm::enumerate(byArgument)) {
      kernel.setArgAttr(i, KVBufferDialect::kNameAttr,
                        b.getStringAttr(role->name));
      kernel.setArgAttr(i, KVBufferDialect::kAccessAttr,
                        b.getStringAttr(role->access));
      // What a type fixes is a number.
      SmallVector<Attribute> shape(role->shape);
      if (auto memref = dyn_cast<MemRefType>(role->value.getType()))
        for (auto [entry, size] : llvm::zip(shape, memref.getShape()))
          if (!ShapedType::isDynamic(size))
            entry = b.getI64IntegerAttr(size);
      if (!shape.empty())
        kernel.setArgAttr(i, KVBufferDialect::kShapeAttr,
                          b.getArrayAttr(shape));
      if (Attribute index = func.getArgAttr(i, kIndexAttr))
        kernel.setArgAttr(i, kIndexAttr, index);
    }
    b.setInsertionPointToStart(&kernel.getBody().front());
    IRMapping args;
    args.map(func.getArguments(), kernel.getArguments());
    operands = appendOperands(op, &args);
    AppendProgram(b, op, operands, *shares, heads, target.dies, args).build();
    endKernel(b, kernel, Phase::Thread, func);
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    WalkResult nested = module.walk([&](CacheAppendOp op) -> WalkResult {
      auto func = dyn_cast<func::FuncOp>(op->getParentOp());
      if (func && func->getParentOp() == module)
        return WalkResult::advance();
      return op.emitOpError()
             << "stands where it is not lowered; expected a function of one "
                "kvbuffer.cache_append and a return, at the top of the module";
    });
    if (nested.wasInterrupted())
      return signalPassFailure();
    SmallVector<func::FuncOp> funcs;
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isExternal() && !func.getOps<CacheAppendOp>().empty())
        funcs.push_back(func);
    if (funcs.empty())
      return;
    if (failed(checkAlignment(funcs.front(), alignment)))
      return signalPassFailure();
    std::optional<TargetInfo> target = targetOf(module);
    if (!target) {
      module.emitError() << "has no known '" << KVBufferDialect::kTargetAttr
                         << "'; run kvbuf-choose-target first";
      return signalPassFailure();
    }
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
    for (func::FuncOp func : funcs)
      if (failed(lower(func, *target)))
        return signalPassFailure();
  }
};
} // namespace

SmallVector<NamedOperand> kvbuf::namedOperands(CacheAppendOp op) {
  Builder b(op.getContext());
  return llvm::map_to_vector(
      LowerAppendPass::rolesOf(op, b),
      [](const auto &role) { return NamedOperand{role.value, role.name}; });
}
