//===- LowerDecode.cpp - Programs of few query rows -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a sequence has few query rows, its keys are the work. The rows of a
// tile are then all query rows of all heads that share a head of the cache, so
// that each key is read once, and the keys of a sequence are split over blocks.
// A block whose split is not the only one stores what its softmax has come to;
// the last block to arrive joins the partial results in the order of the
// splits, so that bits repeat.
//
//===----------------------------------------------------------------------===//

#include "LowerDecode.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Keys that are worth a block of their own: fewer take less time than a
/// partial result costs.
static constexpr int64_t kLeastSplit = 256;
/// Partial results on their way to the last block at a time.
static constexpr int64_t kLoadedAtOnce = 4;

namespace {

/// What a softmax over some of the keys has come to.
struct State {
  Value acc, max, sum;
  SmallVector<Value> values() const { return {acc, max, sum}; }
  static State of(ValueRange values) {
    return {values[0], values[1], values[2]};
  }
};

class DecodeProgram {
public:
  DecodeProgram(ImplicitLocOpBuilder &b, AttentionOp op,
                const TargetInfo &target, const IRMapping &args,
                gpu::GPUFuncOp kernel)
      : b(b), op(op), target(target), args(args), kernel(kernel),
        schedule(*op.getSchedule()), element(op.getElementType()),
        mask(op.getMaskValue()),
        depth(llvm::alignTo(op.getHeadSize(), schedule.getBK())),
        group(op.getHeads() / op.getKVHeads()),
        tokens(cast<MemRefType>(op.getQ().getType()).getDimSize(1)),
        accType(fragment(schedule.getBM(), depth, b.getF32Type(), Role::Acc)),
        rowType(fragment(schedule.getBM(), 1, b.getF32Type(), Role::Row)) {
    double cap = op.getSoftcapValue(), scale = op.getScaleValue();
    // The softmax scales after the maximum; that needs a positive scale.
    softmaxScale = b.getF32FloatAttr(scale > 0 && cap == 0 ? scale : 1.0);
  }

  void build();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  FragmentType fragment(int64_t rows, int64_t cols, Type type, Role role) {
    return FragmentType::get(b.getContext(), rows, cols, type, role);
  }
  Value fill(FragmentType type, float value) {
    return FragmentFillOp::create(b, type, b.getF32FloatAttr(value));
  }
  Value operand(Value value) { return args.lookup(value); }
  Attribute str(StringRef text) { return b.getStringAttr(text); }
  Attribute number(int64_t value) { return b.getI64IntegerAttr(value); }
  Attribute expr(StringRef name, ArrayRef<Attribute> operands) {
    return b.getDictionaryAttr(b.getNamedAttr(name, b.getArrayAttr(operands)));
  }

  /// Splits of a sequence's keys, as an expression over sizes.
  Attribute splitsOf();
  /// Adds an argument that the runtime provides.
  Value addArgument(StringRef name, StringRef access, MemRefType type,
                    ArrayRef<Attribute> shape);
  State empty() {
    return {fill(accType, 0.0f),
            fill(rowType, -std::numeric_limits<float>::infinity()),
            fill(rowType, 0.0f)};
  }
  TileType rowsType() {
    return TileType::get(b.getContext(), schedule.getBM(), op.getHeadSize(),
                         element, group > 1 ? group : 0);
  }
  /// The rows of a tensor [batch, tokens, heads, head_size].
  Value rowsOf(Value tensor) {
    return DramTileOp::create(b, rowsType(), tensor,
                              ValueRange{batch, constant(0), head}, rows,
                              /*valid_cols=*/Value(), /*row_dim=*/IntegerAttr(),
                              group);
  }
  /// The loop over the tiles [first, end) of keys.
  State readKeys(Value first, Value end, const KeyRangeOp &range);
  /// Stores the state of a split; joins all where this block is the last.
  SmallVector<Value> join(const State &own, Value split, Value used,
                          Value parts, Value arrived);
  void finish(State state);

  ImplicitLocOpBuilder &b;
  AttentionOp op;
  const TargetInfo &target;
  const IRMapping &args;
  gpu::GPUFuncOp kernel;
  ScheduleAttr schedule;
  Type element;
  MaskAttr mask;
  /// Head size, padded to whole LDS blocks.
  int64_t depth;
  /// Query heads of a head of the cache; query rows of a sequence.
  int64_t group, tokens;
  FragmentType accType, rowType;
  FloatAttr softmaxScale;

  // Values of the kernel: the cache's head, the first query head of it, the
  // rows of a tile and the queries of a sequence.
  Value batch, kvHead, head, rows, queries, keys;
};

} // namespace

Attribute DecodeProgram::splitsOf() {
  CacheType cache = op.getK().getType();
  Attribute room;
  switch (cache.getKind()) {
  case CacheKind::Dense:
    room = str("seq_k");
    break;
  case CacheKind::Ragged:
    room = str("total_k");
    break;
  case CacheKind::Continuous:
    room = str("max_seq");
    break;
  case CacheKind::Paged:
    room = expr("product", {str("pages_per_seq"), number(cache.getPageSize())});
    break;
  }
  if (int64_t size = schedule.getSplitSize())
    return expr("max", {number(1), expr("ceildiv", {room, number(size)})});
  // As many as keep the device busy, as long as they are worth it. Rows that
  // are looked up one by one wait for their look-ups: twice as many blocks have
  // as much on its way (H200, pages of one token: 4278 GB/s against 3931).
  int64_t blocks =
      target.splitsPerMultiprocessor * (smallPageOf(op) != 0 ? 2 : 1);
  Attribute most = expr(
      "floordiv", {expr("product", {str("sms"), number(blocks)}),
                   expr("product", {str("batch"), number(op.getKVHeads())})});
  Attribute worth = expr("ceildiv", {room, number(kLeastSplit)});
  return expr("max", {number(1), expr("min", {worth, most})});
}

Value DecodeProgram::addArgument(StringRef name, StringRef access,
                                 MemRefType type, ArrayRef<Attribute> shape) {
  unsigned number = kernel.getNumArguments();
  NamedAttrList attrs;
  attrs.append(KVBufferDialect::kNameAttr, str(name));
  attrs.append(KVBufferDialect::kAccessAttr, str(access));
  attrs.append(KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
  (void)kernel.insertArgument(number, type, attrs.getDictionary(b.getContext()),
                              b.getLoc());
  return kernel.getArgument(number);
}

void DecodeProgram::build() {
  int64_t heads = op.getKVHeads(), BN = schedule.getBN();
  Attribute splits = splitsOf();
  kernel->setAttr(KVBufferDialect::kGridAttr,
                  b.getArrayAttr({splits, number(heads), str("batch")}));
  // A row's maximum and sum after it; 16 bytes keep rows aligned.
  int64_t width = depth + 4;
  constexpr int64_t any = ShapedType::kDynamic;
  auto partsType =
      MemRefType::get({any, heads, any, group * tokens, width}, b.getF32Type());
  Value parts = addArgument("parts", "workspace", partsType,
                            {str("batch"), number(heads), splits,
                             number(group * tokens), number(width)});
  Value arrived = addArgument("arrived", "counter",
                              MemRefType::get({any, heads}, b.getI32Type()),
                              {str("batch"), number(heads)});

  Value split = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  kvHead = gpu::BlockIdOp::create(b, gpu::Dimension::y);
  batch = gpu::BlockIdOp::create(b, gpu::Dimension::z);
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  head = arith::MulIOp::create(b, kvHead, constant(group));
  rows = constant(group * tokens);
  queries = constant(tokens);
  keys = CacheNumKeysOp::create(b, operand(op.getK()), batch,
                                lengthsCountNew(op) ? zero : queries);
  auto range =
      KeyRangeOp::create(b, zero, queries, keys, schedule.getBM(), mask, group);
  // The tiles that some row sees, and this block's.
  auto positive = [&](Value n) -> Value {
    return arith::MaxSIOp::create(b, n, zero);
  };
  Value begin = arith::DivUIOp::create(b, positive(range.getLo()), bn);
  Value end = arith::CeilDivUIOp::create(b, positive(range.getHi()), bn);
  Value count = positive(arith::SubIOp::create(b, end, begin));
  Value share;
  if (int64_t size = schedule.getSplitSize())
    share = constant(size / BN);
  else
    share = arith::MaxUIOp::create(
        b,
        arith::CeilDivUIOp::create(b, count, LaunchValueOp::create(b, splits)),
        one);
  Value used = arith::MaxUIOp::create(
      b, arith::CeilDivUIOp::create(b, count, share), one);
  Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, split, used);
  auto ifMine = scf::IfOp::create(b, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifMine.thenBlock());
  Value first = arith::AddIOp::create(
      b, begin, arith::MulIOp::create(b, split, share).getResult());
  Value last = arith::MinUIOp::create(
      b, arith::AddIOp::create(b, first, share).getResult(), end);
  // A sequence without a key has one split without a tile.
  last = arith::MaxUIOp::create(b, last, first);
  State own = readKeys(first, last, range);

  Value alone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, used, one);
  SmallVector<Type> types{accType, rowType, rowType, b.getI1Type()};
  auto ifAlone = scf::IfOp::create(b, types, alone, /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(ifAlone.thenBlock());
    SmallVector<Value> values = own.values();
    values.push_back(arith::ConstantOp::create(b, b.getBoolAttr(true)));
    scf::YieldOp::create(b, values);
    b.setInsertionPointToStart(ifAlone.elseBlock());
    scf::YieldOp::create(b, join(own, split, used, parts, arrived));
  }
  auto writes = scf::IfOp::create(b, ifAlone.getResult(3),
                                  /*withElseRegion=*/false);
  b.setInsertionPointToStart(writes.thenBlock());
  finish(State::of(ifAlone.getResults()));
}

State DecodeProgram::readKeys(Value first, Value end, const KeyRangeOp &made) {
  KeyRangeOp range = made;
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  int64_t stages = schedule.getStages();
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  FragmentType scoreType = fragment(BM, BN, b.getF32Type(), Role::Acc);
  FragmentType pType = fragment(BM, BN, element, Role::A);
  FragmentType qType = fragment(BM, depth, element, Role::A);
  FragmentType tileType = fragment(BN, depth, element, Role::B);
  Value q = TileFragmentOp::create(b, qType, rowsOf(operand(op.getQ())));
  TypedValue<BufferType> kbuf =
      allocOperand(b, op, target, Operand::K, BN, stages);
  TypedValue<BufferType> vbuf =
      allocOperand(b, op, target, Operand::V, BN, stages);

  // Iterations that need a mask: before `edgeRight`, and from `edgeLeft` on.
  Value fullEnd = arith::DivUIOp::create(
      b, arith::MaxSIOp::create(b, range.getFullHi(), zero).getResult(), bn);
  Value edgeRight = arith::SubIOp::create(b, end, fullEnd), edgeLeft;
  if (mask.boundsLeft()) {
    Value fullBegin = arith::CeilDivUIOp::create(
        b, arith::MaxSIOp::create(b, range.getFullLo(), zero).getResult(), bn);
    edgeLeft = arith::SubIOp::create(b, end, fullBegin);
  }
  Value count = arith::SubIOp::create(b, end, first);
  auto loop = scf::ForOp::create(b, zero, count, one, empty().values());
  // From right to left the end of the sequence cuts the first tile only; a
  // window may cut the last one too.
  if (!mask.boundsLeft())
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  State state = State::of(loop.getRegionIterArgs());
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, end, one).getResult(), i);
  Value key = arith::MulIOp::create(b, back, bn);
  Value slot = zero;
  if (stages > 1)
    slot = arith::RemUIOp::create(b, i, constant(stages));
  auto load = [&](Value cache, TypedValue<BufferType> buffer) -> Value {
    auto type = cast<CacheType>(cache.getType());
    auto tile = CacheTileOp::create(
        b,
        TileType::get(b.getContext(), BN, type.getCacheDepth(), element,
                      smallPageOf(op)),
        cache, batch, kvHead, key, range.getLo(), keys, /*pred=*/Value());
    Value token = DramLoadOp::create(b, tile, buffer, slot, Value(),
                                     /*whole=*/false, /*block=*/0);
    Value staged =
        LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
    return FragmentLoadOp::create(b, tileType, staged, 0, 0);
  };

  Value k = load(operand(op.getK()), kbuf);
  Value s = MmaOp::create(b, q, k, fill(scoreType, 0.0f),
                          /*transpose_b=*/true, /*column=*/0);
  double scale = op.getScaleValue(), cap = op.getSoftcapValue();
  if (cap > 0)
    s = SoftcapOp::create(b, s, b.getF32FloatAttr(scale),
                          b.getF32FloatAttr(cap));
  else if (scale <= 0)
    s = FragmentScaleOp::create(b, s, b.getF32FloatAttr(scale));
  Value edge =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, edgeRight);
  if (edgeLeft)
    edge = arith::OrIOp::create(
        b, edge,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, i, edgeLeft));
  auto masked = scf::IfOp::create(b, TypeRange{scoreType}, edge,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(masked.thenBlock());
    Value hidden = MaskOp::create(b, s, zero, queries, key, keys, mask, group);
    scf::YieldOp::create(b, hidden);
    b.setInsertionPointToStart(masked.elseBlock());
    scf::YieldOp::create(b, s);
  }
  auto softmax = OnlineSoftmaxOp::create(
      b, pType, rowType, rowType, rowType, masked.getResult(0), state.max,
      state.sum, softmaxScale, /*masked=*/b.getUnitAttr());
  Value scaled = RescaleOp::create(b, state.acc, softmax.getRescale());
  Value v = load(operand(op.getV()), vbuf);
  Value acc = MmaOp::create(b, softmax.getP(), v, scaled,
                            /*transpose_b=*/false, /*column=*/0);
  scf::YieldOp::create(
      b, ValueRange{acc, softmax.getNewMax(), softmax.getNewSum()});
  return State::of(loop.getResults());
}

SmallVector<Value> DecodeProgram::join(const State &own, Value split,
                                       Value used, Value parts, Value arrived) {
  PartialStoreOp::create(b, own.acc, own.max, own.sum, parts,
                         ValueRange{batch, kvHead, split}, rows);
  Value last =
      ArriveLastOp::create(b, arrived, ValueRange{batch, kvHead}, used);
  SmallVector<Type> types{accType, rowType, rowType};
  auto ifLast = scf::IfOp::create(b, types, last, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifLast.elseBlock());
  scf::YieldOp::create(b, empty().values());
  b.setInsertionPointToStart(ifLast.thenBlock());
  // Several are loaded before the first is merged: one after the other, each
  // would take the memory's latency.
  auto joinFrom = [&](Value from, Value upto, int64_t atOnce, State init) {
    auto loop =
        scf::ForOp::create(b, from, upto, constant(atOnce), init.values());
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<State> loaded;
    for (int64_t n = 0; n < atOnce; ++n) {
      Value number =
          arith::AddIOp::create(b, loop.getInductionVar(), constant(n));
      auto part =
          PartialLoadOp::create(b, accType, rowType, rowType, parts,
                                ValueRange{batch, kvHead, number}, rows);
      loaded.push_back(State::of(part.getResults()));
    }
    State sofar = State::of(loop.getRegionIterArgs());
    for (const State &part : loaded)
      sofar = State::of(SoftmaxMergeOp::create(b, sofar.acc, sofar.max,
                                               sofar.sum, part.acc, part.max,
                                               part.sum, softmaxScale)
                            .getResults());
    scf::YieldOp::create(b, sofar.values());
    return State::of(loop.getResults());
  };
  Value many = constant(kLoadedAtOnce);
  Value whole = arith::MulIOp::create(
      b, arith::DivUIOp::create(b, used, many).getResult(), many);
  State joined = joinFrom(constant(0), whole, kLoadedAtOnce, empty());
  joined = joinFrom(whole, used, 1, joined);
  scf::YieldOp::create(b, joined.values());
  SmallVector<Value> values(ifLast.getResults());
  values.push_back(last);
  return values;
}

void DecodeProgram::finish(State state) {
  if (op.getSink())
    state =
        State::of(SoftmaxSinkOp::create(b, state.acc, state.max, state.sum,
                                        operand(op.getSink()), ValueRange{head},
                                        softmaxScale.getValue(), group)
                      .getResults());
  auto done = SoftmaxFinishOp::create(b, accType, rowType, state.acc, state.max,
                                      state.sum, /*excess=*/Value(),
                                      /*sink=*/Value(), softmaxScale);
  Value out = FragmentConvertOp::create(
      b, fragment(schedule.getBM(), depth, element, Role::Acc),
      done.getResult());
  FragmentStoreOp::create(b, out, rowsOf(operand(op.getOut())),
                          /*via=*/Value());
  if (op.getLse())
    RowStoreOp::create(b, done.getLse(), operand(op.getLse()),
                       ValueRange{batch, head, constant(0)}, rows, group);
}

void kvbuf::buildDecode(ImplicitLocOpBuilder &b, AttentionOp op,
                        const TargetInfo &target, const IRMapping &args,
                        gpu::GPUFuncOp kernel) {
  DecodeProgram(b, op, target, args, kernel).build();
}
