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
/// the token's place, rotates, quantizes and stores. Lanes speak to each other
/// only where a scale is made of the elements of several. Where the halves of a
/// head rotate each other, a lane has a piece of each: it needs nothing of
/// others then, and one set of angles.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace kvbuf {
#define GEN_PASS_DEF_LOWERAPPEND
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {

/// Threads of a block, at most: enough blocks for all of a chip even where
/// there are few tokens.
constexpr int64_t kThreads = 256;

/// How heads are dealt to lanes.
struct Shares {
  /// Elements of a lane, lanes of a head, heads of a block; lanes of a wave.
  int64_t width = 8, lanes = 1, heads = 1, wave = 32;
  /// Pieces that a lane's elements lie in, half a head apart: 1 or 2.
  int64_t pieces = 1;
  int64_t piece() const { return width / pieces; }
  int64_t threads() const { return lanes * heads; }
};

/// Whether a scale is made, of `getGranularity` elements.
bool makesScales(CacheLayout layout) {
  return layout && layout.getScaleType() && layout.getGranularity() > 0;
}

/// Builds the program.
class AppendProgram {
public:
  AppendProgram(ImplicitLocOpBuilder &b, CacheAppendOp op, const Shares &shares,
                const IRMapping &args)
      : b(b), op(op), shares(shares), args(args),
        layout(cast<CacheLayout>(op.getKCache().getType())) {}

  void build();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value operand(Value value) { return value ? args.lookup(value) : Value(); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value isLess(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  /// An integer of a tensor that nobody has checked.
  Value entry(Value tensor, Value at) {
    Value word = memref::LoadOp::create(b, tensor, ValueRange{at});
    return arith::IndexCastOp::create(b, b.getIndexType(), word);
  }
  VectorType vector(Type element) {
    return VectorType::get({shares.width}, element);
  }
  Value splat(double value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(vector(b.getF32Type()),
                                  static_cast<float>(value)));
  }
  Value widen(Value x) {
    auto type = cast<VectorType>(x.getType());
    return type.getElementType().isF32()
               ? x
               : arith::ExtFOp::create(b, type.clone(b.getF32Type()), x)
                     .getResult();
  }

  /// The elements of two vectors, one after the other.
  Value joined(Value x, Value y) {
    int64_t count = cast<VectorType>(x.getType()).getNumElements();
    return vector::ShuffleOp::create(b, x, y,
                                     llvm::to_vector(llvm::seq(2 * count)));
  }

  /// What `make` yields where `condition` holds, else `otherwise`.
  Value onlyIf(Value condition, Value otherwise, function_ref<Value()> make);
  /// Which new token, head and elements a lane has.
  void findRow();
  /// The sequence and the position of the token.
  void findPlace();
  /// The last sequence that begins at a row or before it.
  Value findSequence(Value offsets, Value sequences, Value row);
  /// The bytes at which a lane's part of a row of so many elements begins.
  IntegerAttr alignment(Type element, int64_t elements);
  /// A lane's elements of a token's head, from `dim` on.
  Value loadNew(Value tokens, Value dim);
  /// The beginning of a lane's piece.
  Value pieceAt(Value from, int64_t piece) {
    return piece ? add(from,
                       constant(piece * layout.getHeadSize() / shares.pieces))
                 : from;
  }
  /// The elements after rotation; `x` are those from `dim` on, in f32.
  Value rotate(Value x, Value tokens);
  /// The entries of a table of angles, one for each of `count` elements.
  Value loadAngles(Value table, Value col, int64_t count);
  void append(Value x, Value cache);
  /// One over the scale of the lane's elements; stores a scale that is made.
  Value inverseScale(Value x, Value cache);
  /// The elements as the cache stores them.
  Value narrow(Value x, Type stored);

  ImplicitLocOpBuilder &b;
  CacheAppendOp op;
  const Shares &shares;
  const IRMapping &args;
  CacheLayout layout;

  /// Of the new token: its indices in K and V, and whether there is one.
  SmallVector<Value> lead;
  Value active;
  /// The token, counted over the batch; tokens of a sequence of a dense one.
  Value token, each;
  /// Its place: sequence, position (-1: none), head, and the first element of
  /// the lane.
  Value batch, position, head, dim;
};

} // namespace

Value AppendProgram::onlyIf(Value condition, Value otherwise,
                            function_ref<Value()> make) {
  auto ifOp = scf::IfOp::create(b, TypeRange{otherwise.getType()}, condition,
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, otherwise);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, make());
  return ifOp.getResult(0);
}

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

void AppendProgram::findRow() {
  Value tid = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value lane = arith::RemUIOp::create(b, tid, constant(shares.lanes));
  Value row =
      add(arith::MulIOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::x),
                                constant(shares.heads)),
          arith::DivUIOp::create(b, tid, constant(shares.lanes)));
  dim = arith::MulIOp::create(b, lane, constant(shares.piece()));
  Value heads = constant(layout.getHeads());
  head = arith::RemUIOp::create(b, row, heads);
  token = arith::DivUIOp::create(b, row, heads);
  Value k = operand(op.getK());
  Value count = memref::DimOp::create(b, k, 0);
  if (!op.getOffsets()) {
    each = memref::DimOp::create(b, k, 1);
    count = arith::MulIOp::create(b, count, each);
  }
  active = isLess(token, count);
  active =
      both(active, isLess(lane, constant(layout.getHeadSize() / shares.width)));
  token = select(active, token, constant(0));
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
  Value number, isNew = active;
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
}

IntegerAttr AppendProgram::alignment(Type element, int64_t elements) {
  int64_t bytes =
      std::gcd(elements, shares.piece()) * element.getIntOrFloatBitWidth() / 8;
  return b.getI64IntegerAttr(std::min<int64_t>(bytes, 16));
}

Value AppendProgram::loadNew(Value tokens, Value from) {
  Type element = cast<MemRefType>(tokens.getType()).getElementType();
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(vector(element)));
  return onlyIf(active, zeros, [&] {
    SmallVector<Value> loaded;
    for (int64_t piece = 0; piece < shares.pieces; ++piece) {
      SmallVector<Value> at(lead);
      at.append({head, pieceAt(from, piece)});
      auto load = vector::LoadOp::create(
          b, VectorType::get({shares.piece()}, element), tokens, at);
      load.setAlignmentAttr(alignment(element, layout.getHeadSize()));
      loaded.push_back(load);
    }
    return loaded.size() == 1 ? loaded[0] : joined(loaded[0], loaded[1]);
  });
}

Value AppendProgram::loadAngles(Value table, Value col, int64_t count) {
  auto type = cast<MemRefType>(table.getType());
  Value last = sub(memref::DimOp::create(b, table, 0), constant(1));
  Value row = arith::MinSIOp::create(b, position, last);
  auto load =
      vector::LoadOp::create(b, VectorType::get({count}, type.getElementType()),
                             table, ValueRange{row, col});
  int64_t bytes =
      std::gcd(count, type.getDimSize(1)) * type.getElementTypeBitWidth() / 8;
  load.setAlignmentAttr(b.getI64IntegerAttr(std::min<int64_t>(bytes, 16)));
  return widen(load);
}

Value AppendProgram::rotate(Value x, Value tokens) {
  Value cos = operand(op.getCos()), sin = operand(op.getSin());
  int64_t pairs = cast<MemRefType>(cos.getType()).getDimSize(1);
  int64_t width = shares.width;
  // Elements that are not rotated, and tokens without a place.
  Value rotated = isLess(dim, constant(2 * pairs));
  rotated = both(rotated, isLess(constant(-1), position));
  rotated =
      both(rotated, isLess(constant(0), memref::DimOp::create(b, cos, 0)));
  if (op.getInterleaved())
    return onlyIf(rotated, x, [&]() -> Value {
      Value col = arith::DivUIOp::create(b, dim, constant(2));
      SmallVector<int64_t> twice, swapped;
      SmallVector<float> signs;
      for (int64_t i = 0; i < width; ++i) {
        twice.push_back(i / 2);
        swapped.push_back(i ^ 1);
        signs.push_back(i % 2 ? 1.0f : -1.0f);
      }
      Value c = loadAngles(cos, col, width / 2);
      Value s = loadAngles(sin, col, width / 2);
      c = vector::ShuffleOp::create(b, c, c, twice);
      s = vector::ShuffleOp::create(b, s, s, twice);
      Value other = vector::ShuffleOp::create(b, x, x, swapped);
      Value sign = arith::ConstantOp::create(
          b, DenseElementsAttr::get(vector(b.getF32Type()),
                                    ArrayRef<float>(signs)));
      s = arith::MulFOp::create(b, s, sign);
      return math::FmaOp::create(b, other, s, arith::MulFOp::create(b, x, c));
    });
  if (shares.pieces == 2)
    return onlyIf(rotated, x, [&]() -> Value {
      // A half rotates the other.
      Value c = loadAngles(cos, dim, shares.piece());
      Value s = loadAngles(sin, dim, shares.piece());
      SmallVector<int64_t> halves(llvm::to_vector(llvm::seq(width / 2, width)));
      llvm::append_range(halves, llvm::seq<int64_t>(0, width / 2));
      Value other = vector::ShuffleOp::create(b, x, x, halves);
      s = joined(arith::NegFOp::create(b, s), s);
      return math::FmaOp::create(b, other, s,
                                 arith::MulFOp::create(b, x, joined(c, c)));
    });
  return onlyIf(rotated, x, [&]() -> Value {
    Value half = constant(pairs);
    Value isFirst = isLess(dim, half);
    Value col = select(isFirst, dim, sub(dim, half));
    Value from = select(isFirst, add(dim, half), col);
    Value other = widen(loadNew(tokens, from));
    Value c = loadAngles(cos, col, width);
    Value s = loadAngles(sin, col, width);
    Value sign = select(isFirst, splat(-1.0), splat(1.0));
    s = arith::MulFOp::create(b, s, sign);
    return math::FmaOp::create(b, other, s, arith::MulFOp::create(b, x, c));
  });
}

/// The largest finite element of a type.
static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics())
      .convertToDouble();
}

Value AppendProgram::inverseScale(Value x, Value cache) {
  auto into = cast<CacheLayout>(cache.getType());
  Type f32 = b.getF32Type();
  Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f));
  auto scaleVector = VectorType::get({1}, into.getScaleType());
  Value scale;
  if (!makesScales(into)) {
    Value given = LoadScaleOp::create(b, scaleVector, cache, batch, head,
                                      position, dim, UnitAttr());
    scale = vector::ExtractOp::create(b, widen(given), 0);
  } else {
    Value amax;
    for (int64_t i = 0; i < shares.width; ++i) {
      Value magnitude =
          math::AbsFOp::create(b, vector::ExtractOp::create(b, x, i));
      amax = amax ? arith::MaxNumFOp::create(b, amax, magnitude).getResult()
                  : magnitude;
    }
    int64_t lanes = std::min(shares.lanes,
                             int64_t(llvm::PowerOf2Ceil(llvm::divideCeilSigned(
                                 into.getGranularity(), shares.width))));
    for (int64_t step = 1; step < lanes; step *= 2)
      amax = arith::MaxNumFOp::create(
          b, amax,
          gpu::ShuffleOp::create(b, amax, step, shares.wave,
                                 gpu::ShuffleMode::XOR)
              .getShuffleResult());
    double largest = largestOf(into.getElementType());
    scale = arith::DivFOp::create(
        b, amax,
        arith::ConstantOp::create(
            b, b.getF32FloatAttr(static_cast<float>(largest))));
    // As it is stored, so that whoever reads the cache multiplies by the same.
    if (!into.getScaleType().isF32()) {
      scale = arith::TruncFOp::create(b, into.getScaleType(), scale);
      scale = arith::ExtFOp::create(b, f32, scale);
    }
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
    scale =
        select(arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, scale, zero),
               one, scale);
    Value stored = scale;
    if (!into.getScaleType().isF32())
      stored = arith::TruncFOp::create(b, into.getScaleType(), scale);
    Value first =
        arith::RemUIOp::create(b, dim, constant(into.getGranularity()));
    first =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, constant(0));
    auto ifOp =
        scf::IfOp::create(b, both(first, active), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    StoreScaleOp::create(b, vector::BroadcastOp::create(b, scaleVector, stored),
                         cache, batch, head, position, dim, UnitAttr());
  }
  return arith::DivFOp::create(b, one, scale);
}

Value AppendProgram::narrow(Value x, Type stored) {
  if (stored.isF32())
    return x;
  if (stored.getIntOrFloatBitWidth() == 8) {
    // The nearest element that there is; what is no number stays none.
    double largest = largestOf(stored);
    for (auto [predicate, limit] :
         {std::pair(arith::CmpFPredicate::OGT, largest),
          std::pair(arith::CmpFPredicate::OLT, -largest)}) {
      Value end = splat(limit);
      Value exceeds = arith::CmpFOp::create(b, predicate, x, end);
      x = select(exceeds, end, x);
    }
  }
  return arith::TruncFOp::create(b, vector(stored), x);
}

void AppendProgram::append(Value x, Value cache) {
  auto into = cast<CacheLayout>(cache.getType());
  Type stored = into.getElementType();
  if (into.getScaleType()) {
    x = widen(x);
    Value inverse = inverseScale(x, cache);
    x = arith::MulFOp::create(
        b, x, vector::BroadcastOp::create(b, vector(b.getF32Type()), inverse));
  }
  if (cast<VectorType>(x.getType()).getElementType() != stored)
    x = narrow(widen(x), stored);
  auto ifOp = scf::IfOp::create(b, active, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (int64_t piece = 0; piece < shares.pieces; ++piece) {
    Value part = x;
    if (shares.pieces > 1)
      part = vector::ShuffleOp::create(
          b, x, x,
          llvm::to_vector(
              llvm::seq(piece * shares.piece(), (piece + 1) * shares.piece())));
    CacheStoreOp::create(b, part, cache, batch, head, position,
                         pieceAt(dim, piece),
                         alignment(stored, std::gcd(into.getCacheDepth(),
                                                    into.getHeadDimOffset())),
                         UnitAttr());
  }
}

void AppendProgram::build() {
  findRow();
  // Both are on their way before anything waits for either, or for the place.
  Value k = operand(op.getK()), v = operand(op.getV());
  Value x = loadNew(k, dim), y = v ? loadNew(v, dim) : Value();
  findPlace();
  if (op.getCos())
    x = rotate(widen(x), k);
  append(x, operand(op.getKCache()));
  if (y)
    append(y, operand(op.getVCache()));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// How heads are dealt to the lanes of a chip's waves.
static FailureOr<Shares> dealHeads(CacheAppendOp op, const TargetInfo &target) {
  auto kInto = cast<CacheLayout>(op.getKCache().getType());
  CacheLayout vInto;
  if (op.getV())
    vInto = cast<CacheLayout>(op.getVCache().getType());
  int64_t size = kInto.getHeadSize();
  Shares shares;
  shares.wave = target.waveSize;
  // 16 bytes of what is stored, a vector of which lies within whatever is one.
  Type stored = kInto.getElementType();
  shares.width = 128 / std::min(32u, stored.getIntOrFloatBitWidth());
  shares.width = std::gcd(shares.width, size);
  if (op.getCos()) {
    int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
    shares.width =
        std::gcd(shares.width, op.getInterleaved() ? 2 * pairs : pairs);
    if (op.getInterleaved() && shares.width % 2)
      return op.emitOpError() << "rotates neighbours, for which head_size is "
                                 "even, got "
                              << size;
  }
  int64_t most = 1;
  bool exchanges = false;
  for (CacheLayout into : {kInto, vInto})
    if (makesScales(into) && into.getGranularity() < size)
      shares.width = std::gcd(shares.width, into.getGranularity());
  // Halves that rotate each other, as a whole and with scales of whole heads:
  // of each a piece, 16 bytes of what is loaded.
  if (op.getCos() && !op.getInterleaved()) {
    int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
    int64_t width = std::gcd(int64_t(16), pairs);
    if (2 * pairs == size && width > 1 &&
        llvm::all_of(
            ArrayRef<CacheLayout>{kInto, vInto}, [&](CacheLayout into) {
              return !makesScales(into) || into.getGranularity() >= size;
            })) {
      shares.pieces = 2;
      shares.width = width;
    }
  }
  for (CacheLayout into : {kInto, vInto}) {
    if (!makesScales(into))
      continue;
    int64_t group = std::min(into.getGranularity(), size);
    int64_t lanes = llvm::divideCeilSigned(group, shares.width);
    most = std::max(most, lanes);
    exchanges = true;
    if (group < size && (!llvm::isPowerOf2_64(lanes) || size % group))
      return op.emitOpError()
             << "makes scales for groups of " << group << " elements of "
             << size << "; expected groups that divide a head, of "
             << shares.width << " times a power of two, or whole heads";
  }
  if (most > target.waveSize)
    return op.emitOpError()
           << "makes scales for groups of " << most * shares.width
           << " elements; a wave of " << target.chip << " holds "
           << target.waveSize * shares.width;
  shares.lanes = size / shares.width;
  if (exchanges)
    shares.lanes = llvm::PowerOf2Ceil(shares.lanes);
  if (shares.lanes > target.maxThreads)
    return op.emitOpError()
           << "has heads of " << size << " elements, " << shares.width
           << " to a lane; a block of " << target.chip << " has at most "
           << target.maxThreads << " lanes";
  shares.heads = std::max<int64_t>(1, kThreads / shares.lanes);
  return shares;
}

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
    SmallVector<Attribute> rows{str("batch"), str("seq_new")};
    if (op.getOffsets())
      rows = {str("total_new")};
    rows.append({number(layout.getHeads()), number(layout.getHeadSize())});
    SmallVector<Role> roles{{op.getK(), "k_new", "read", rows}};
    if (op.getV())
      roles.push_back({op.getV(), "v_new", "read", rows});
    if (op.getOffsets())
      roles.push_back(
          {op.getOffsets(),
           "offsets",
           "read",
           {b.getDictionaryAttr(b.getNamedAttr(
               "sum", b.getArrayAttr({str("batch"), number(1)})))}});
    if (op.getAt())
      roles.push_back({op.getAt(), "at", "read", {str("batch")}});
    if (op.getCos()) {
      int64_t pairs = cast<MemRefType>(op.getCos().getType()).getDimSize(1);
      SmallVector<Attribute> angles{str("positions"), number(pairs)};
      roles.push_back({op.getCos(), "cos", "read", angles});
      roles.push_back({op.getSin(), "sin", "read", angles});
    }
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
    list.append("op", b.getStringAttr("cache_append"));
    list.append("new", b.getStringAttr(op.getOffsets() ? "ragged" : "dense"));
    if (cache)
      list.append("cache",
                  b.getStringAttr(stringifyCacheKind(cache.getKind())));
    if (layout.getRun())
      list.append("page_size", b.getI64IntegerAttr(layout.getRun()));
    list.append("heads", b.getI64IntegerAttr(layout.getHeads()));
    list.append("head_size", b.getI64IntegerAttr(layout.getHeadSize()));
    list.append("values", b.getBoolAttr(bool(op.getV())));
    list.append("at", b.getBoolAttr(bool(op.getAt())));
    if (op.getCos())
      list.append("rope", b.getStringAttr(op.getInterleaved() ? "interleaved"
                                                              : "half"));
    for (auto [name, value] : {std::pair<StringRef, Value>{"k", op.getKCache()},
                               {"v", op.getVCache()}}) {
      if (!value)
        continue;
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
    if (func.getNumResults())
      return func.emitOpError() << "expected a function without results, as a "
                                   "kernel has none";
    FailureOr<Shares> shares = dealHeads(op, target);
    if (failed(shares))
      return failure();
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
    auto module =
        gpu::GPUModuleOp::create(b, (func.getName() + "_module").str());
    b.setInsertionPointToStart(module.getBody());
    auto kernel = gpu::GPUFuncOp::create(
        b, func.getName(), b.getFunctionType(func.getArgumentTypes(), {}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    kernel.setKnownBlockSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(shares->threads()), 1, 1}));
    kernel->setAttr(KVBufferDialect::kProblemAttr, describe(op, attrs));
    auto expression = [&](StringRef name, ArrayRef<Attribute> operands) {
      return b.getDictionaryAttr(
          b.getNamedAttr(name, b.getArrayAttr(operands)));
    };
    SmallVector<Attribute> rows(ArrayRef(roles.front().shape).drop_back());
    auto sizes = cast<MemRefType>(op.getK().getType()).getShape();
    for (auto [row, size] : llvm::zip(rows, sizes))
      if (!ShapedType::isDynamic(size))
        row = b.getI64IntegerAttr(size);
    kernel->setAttr(
        KVBufferDialect::kGridAttr,
        b.getArrayAttr(
            {expression("ceildiv", {expression("product", rows),
                                    b.getI64IntegerAttr(shares->heads)}),
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
    AppendProgram(b, op, *shares, args).build();
    b.setInsertionPointToEnd(&kernel.getBody().front());
    gpu::ReturnOp::create(b);
    kernel->setAttr(KVBufferDialect::kPhaseAttr,
                    PhaseAttr::get(&getContext(), Phase::Thread));
    func.erase();
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
    auto chip = module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr);
    std::optional<TargetInfo> target =
        chip ? lookupTarget(chip.getValue()) : std::nullopt;
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
