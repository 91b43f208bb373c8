//===- ExpandCacheOps.cpp - Rewrite ops on caches ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TmaTile.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/CacheOps.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PackedElements.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace kvbuf {
#define GEN_PASS_DEF_EXPANDCACHEOPS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {

/// The code for one op on a cache of known parts.
struct Expander : ImplicitLocOpBuilder {
  Expander(Location loc, const OpBuilder &b, MakeCacheOp make)
      : ImplicitLocOpBuilder(loc, b),
        layout(cast<CacheLayout>(make.getCache().getType())) {
    parts.data = make.getData();
    llvm::append_range(parts.indices, make.getIndices());
    parts.scales = make.getScales();
    parts.maxPrompt = make.getMaxPrompt();
    parts.maxContext = make.getMaxContext();
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  Value add(Value x, Value y) { return createOrFold<arith::AddIOp>(x, y); }
  Value mul(Value x, Value y) { return createOrFold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return createOrFold<arith::DivUIOp>(x, y); }

  CachePlace place(Value batch, Value token, bool checked) {
    return layout.emitPlace(*this, getLoc(), parts, batch, token, checked);
  }
  /// The stride of a dimension of the data.
  Value stride(unsigned dim) {
    auto type = cast<MemRefType>(parts.data.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    (void)type.getStridesAndOffset(strides, offset);
    if (!ShapedType::isDynamic(strides[dim]))
      return constant(strides[dim]);
    return memref::ExtractStridedMetadataOp::create(*this, parts.data)
        .getStrides()[dim];
  }
  /// Rows from the beginning of a block to that of the next.
  Value blockRows() { return div(stride(0), stride(1)); }
  bool hasBlocks() { return layout.getLeadingDims().size() > 1; }
  /// The row of a place in the matrix of all rows.
  Value rowOf(ArrayRef<Value> lead) {
    return lead.size() > 1 ? add(mul(lead[0], blockRows()), lead[1]) : lead[0];
  }
  Value column(Value headDim) {
    return add(headDim, constant(layout.getHeadDimOffset()));
  }

  bool scalesByToken() const { return layout.getGranularity() > 0; }
  /// The indices of the scale of an element.
  SmallVector<Value> scaleAt(ArrayRef<Value> lead, Value head, Value headDim) {
    if (layout.getGranularity() == kPerTensor)
      return {constant(0)};
    if (layout.getGranularity() == kPerHead)
      return {head};
    SmallVector<Value> at(lead);
    at.append({head, div(headDim, constant(layout.getGranularity()))});
    return at;
  }

  /// A vector of floats in another type of elements, by way of f32, or at once
  /// where one of the two has more bits.
  Value convert(Value x, Type element) {
    auto type = cast<VectorType>(x.getType());
    Type from = type.getElementType(), f32 = getF32Type();
    if (from == element)
      return x;
    unsigned bits = element.getIntOrFloatBitWidth(),
             fromBits = from.getIntOrFloatBitWidth();
    if (std::max(bits, fromBits) > 32) {
      if (bits > fromBits)
        return arith::ExtFOp::create(*this, type.clone(element), x);
      return arith::TruncFOp::create(*this, type.clone(element), x);
    }
    if (!from.isF32())
      x = arith::ExtFOp::create(*this, type.clone(f32), x);
    return element.isF32()
               ? x
               : arith::TruncFOp::create(*this, type.clone(element), x);
  }

  /// What `make` yields where `valid` holds, else zeros; `valid` null: always.
  Value guarded(Value valid, VectorType type, function_ref<Value()> make) {
    if (!valid)
      return make();
    auto ifOp = scf::IfOp::create(*this, TypeRange{type}, valid,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(*this, make());
    setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(*this, zeros(type));
    return ifOp.getResult(0);
  }
  /// Zeros; of bits, as LLVM has no constants of 8-bit floats.
  Value zeros(VectorType type) {
    unsigned bits = type.getElementTypeBitWidth();
    if (bits > 8)
      return arith::ConstantOp::create(*this, type, getZeroAttr(type));
    auto asBits = type.clone(getIntegerType(bits));
    Value zero = arith::ConstantOp::create(*this, asBits, getZeroAttr(asBits));
    return arith::BitcastOp::create(*this, type, zero);
  }

  Value loadElements(ArrayRef<Value> lead, Value head, Value headDim,
                     int64_t width, std::optional<int64_t> alignment) {
    SmallVector<Value> at(lead);
    at.append({head, column(headDim)});
    auto type = VectorType::get({width}, layout.getElementType());
    return vector::LoadOp::create(*this, type, parts.data, at,
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(alignment.value_or(0)));
  }
  /// The scales of `width` elements, one each, in f32.
  Value loadScales(ArrayRef<Value> lead, Value head, Value headDim,
                   int64_t width) {
    SmallVector<Value> at = scaleAt(lead, head, headDim);
    int64_t group = layout.getGranularity();
    int64_t count = scalesByToken() && width > group ? width / group : 1;
    Value scales = vector::LoadOp::create(
        *this, VectorType::get({count}, layout.getScaleType()), parts.scales,
        at);
    scales = convert(scales, getF32Type());
    SmallVector<int64_t> which;
    for (int64_t i = 0; i < width; ++i)
      which.push_back(i * count / width);
    return vector::ShuffleOp::create(*this, scales, scales, which);
  }

  RowAttr row() { return packedRowOf(layout); }
  PackedElements packed(ArrayRef<Value> lead, Value head) {
    return PackedElements(*this, row(), parts.data, lead, head);
  }
  /// The part of a packed row that an op names, and the place in it of an
  /// element of the head.
  std::pair<RowPartAttr, Value> partAt(int64_t number, Value headDim) {
    int64_t begin = 0;
    for (RowPartAttr part : row().getParts().take_front(number))
      begin += part.getCount();
    Value first = headDim;
    if (begin)
      first = createOrFold<arith::SubIOp>(headDim, constant(begin));
    return {row().getParts()[number], first};
  }
  /// Elements of a packed row as `element`; they lie in one part, of those from
  /// `number` on.
  Value loadPacked(PackedElements &from, int64_t number, Value headDim,
                   VectorType type, std::optional<int64_t> alignment) {
    auto [part, first] = partAt(number, headDim);
    auto load = [&, part = part, first = first] {
      Value x = from.widened(part, first, type.getNumElements(), alignment);
      return convert(x, type.getElementType());
    };
    int64_t last = row().getParts().size() - 1;
    if (number == last)
      return load();
    Value isHere = arith::CmpIOp::create(*this, arith::CmpIPredicate::slt,
                                         first, constant(part.getCount()));
    auto ifOp = scf::IfOp::create(*this, TypeRange{type}, isHere,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(*this, load());
    setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(
        *this, loadPacked(from, number + 1, headDim, type, alignment));
    return ifOp.getResult(0);
  }

  /// A view of a tile of `type`'s shape at these indices of a tensor whose
  /// rows are dimension `row`.
  Value view(Value tensor, ArrayRef<Value> at, unsigned row, MemRefType type) {
    SmallVector<OpFoldResult> offsets(getAsOpFoldResult(at)),
        sizes(at.size(), getIndexAttr(1)), strides(at.size(), getIndexAttr(1));
    if (type.getRank()) {
      sizes[row] = getIndexAttr(type.getDimSize(0));
      sizes.back() = getIndexAttr(type.getDimSize(1));
    }
    auto source = cast<MemRefType>(tensor.getType());
    // Which dimensions stay cannot be told from a shape with a 1 in it.
    if (type.getRank() && llvm::is_contained(type.getShape(), 1)) {
      Value tile =
          memref::SubViewOp::create(*this, tensor, offsets, sizes, strides);
      auto metadata = memref::ExtractStridedMetadataOp::create(*this, tile);
      return memref::ReinterpretCastOp::create(
          *this, type, metadata.getBaseBuffer(),
          OpFoldResult(metadata.getOffset()),
          getAsIndexOpFoldResult(getContext(), type.getShape()),
          {OpFoldResult(metadata.getStrides()[row]), getIndexAttr(1)});
    }
    auto inferred = memref::SubViewOp::inferRankReducedResultType(
        type.getShape(), source, offsets, sizes, strides);
    Value view = memref::SubViewOp::create(*this, cast<MemRefType>(inferred),
                                           tensor, offsets, sizes, strides);
    return createOrFold<memref::CastOp>(type, view);
  }

  CacheLayout layout;
  CacheParts parts;
};

Value expand(Expander &b, CacheLengthOp op) {
  return b.layout.emitLength(b, b.getLoc(), b.parts, op.getBatch());
}

/// The largest length of all sequences.
Value maxContext(Expander &b) {
  if (b.parts.maxContext)
    return b.parts.maxContext;
  Value count = b.layout.emitBatch(b, b.getLoc(), b.parts),
        zero = b.constant(0);
  auto loop = scf::ForOp::create(b, zero, count, b.constant(1), zero);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value length =
      b.layout.emitLength(b, b.getLoc(), b.parts, loop.getInductionVar());
  Value most = arith::MaxSIOp::create(b, length, loop.getRegionIterArg(0));
  scf::YieldOp::create(b, most);
  return loop.getResult(0);
}

Value expand(Expander &b, MaxContextLengthOp) { return maxContext(b); }

Value expand(Expander &b, EmptyCacheOp) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, maxContext(b),
                               b.constant(0));
}

Value expand(Expander &b, MaxPromptLengthOp) { return b.parts.maxPrompt; }

Value expand(Expander &b, RowIdxOp op) {
  CachePlace place = b.place(op.getBatch(), op.getStartTok(), /*checked=*/true);
  return arith::SelectOp::create(b, place.valid, b.rowOf(place.lead),
                                 b.constant(-1));
}

Value expand(Expander &b, NumKVRowsOp) {
  Value blocks = memref::DimOp::create(b, b.parts.data, 0);
  if (!b.hasBlocks())
    return blocks;
  Value rows = memref::DimOp::create(b, b.parts.data, 1);
  Value before = arith::SubIOp::create(b, blocks, b.constant(1));
  // None of a cache without blocks.
  Value any =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, blocks, b.constant(0));
  return arith::SelectOp::create(
      b, any, b.add(b.mul(before, b.blockRows()), rows), b.constant(0));
}

Value expand(Expander &b, GetTmaRowOp op) {
  int64_t run = b.layout.getRun();
  if (!run)
    return op.getEncoded();
  Value page = b.constant(run);
  Value block = b.div(op.getEncoded(), page);
  Value row = arith::RemUIOp::create(b, op.getEncoded(), page);
  return b.rowOf({block, row});
}

Value expand(Expander &b, MaxTileSizeOp) {
  if (int64_t run = b.layout.getRun())
    return b.constant(run);
  return memref::DimOp::create(b, b.parts.data, b.hasBlocks() ? 1 : 0);
}

Value expand(Expander &b, BlockPagedPtrOp op) {
  CachePlace place =
      b.place(op.getBatch(), op.getStartTok(), /*checked=*/false);
  SmallVector<Value> at(ArrayRef<Value>(place.lead));
  at.append({op.getHead(), b.column(op.getHeadDim())});
  return b.view(b.parts.data, at, place.lead.size() - 1,
                cast<MemRefType>(op.getTile().getType()));
}

Value expand(Expander &b, ScalesBlockPagedPtrOp op) {
  CachePlace place =
      b.place(op.getBatch(), op.getStartTok(), /*checked=*/false);
  return b.view(
      b.parts.scales, b.scaleAt(place.lead, op.getHead(), op.getHeadDim()),
      place.lead.size() - 1, cast<MemRefType>(op.getTile().getType()));
}

Value expand(Expander &b, ScalesRawPtrOp op) {
  int64_t rank = cast<MemRefType>(b.parts.scales.getType()).getRank();
  SmallVector<Value> first(rank, b.constant(0));
  return b.view(b.parts.scales, first, 0,
                cast<MemRefType>(op.getScales().getType()));
}

Value expand(Expander &b, CacheLoadOp op) {
  CachePlace place = b.place(op.getBatch(), op.getToken(), !op.getInBounds());
  VectorType type = op.getResult().getType();
  int64_t width = type.getNumElements();
  return b.guarded(place.valid, type, [&] {
    if (b.row()) {
      PackedElements from = b.packed(place.lead, op.getHead());
      return b.loadPacked(from, /*number=*/0, op.getHeadDim(), type,
                          op.getAlignment());
    }
    Value x = b.loadElements(place.lead, op.getHead(), op.getHeadDim(), width,
                             op.getAlignment());
    if (b.layout.getScaleType()) {
      x = b.convert(x, b.getF32Type());
      Value scales =
          b.loadScales(place.lead, op.getHead(), op.getHeadDim(), width);
      x = arith::MulFOp::create(b, x, scales);
    }
    return b.convert(x, type.getElementType());
  });
}

Value expand(Expander &b, LoadQuantizedOp op) {
  CachePlace place = b.place(op.getBatch(), op.getToken(), !op.getInBounds());
  VectorType type = op.getResult().getType();
  return b.guarded(place.valid, type, [&] {
    if (b.row()) {
      auto [part, first] = b.partAt(*op.getPart(), op.getHeadDim());
      return b.packed(place.lead, op.getHead())
          .load(part, first, type, op.getAlignment());
    }
    return b.loadElements(place.lead, op.getHead(), op.getHeadDim(),
                          type.getNumElements(), op.getAlignment());
  });
}

Value expand(Expander &b, LoadScaleOp op) {
  // Scales of tensors and heads have no place that tokens decide about.
  CachePlace place;
  if (b.scalesByToken() || b.row())
    place = b.place(op.getBatch(), op.getToken(), !op.getInBounds());
  VectorType type = op.getResult().getType();
  return b.guarded(place.valid, type, [&]() -> Value {
    if (b.row()) {
      auto [part, first] = b.partAt(*op.getPart(), op.getHeadDim());
      return b.packed(place.lead, op.getHead()).loadScales(part, first, type);
    }
    return vector::LoadOp::create(
        b, type, b.parts.scales,
        b.scaleAt(place.lead, op.getHead(), op.getHeadDim()));
  });
}

/// Stores where `valid` holds; null: always.
void storeGuarded(Expander &b, Value valid, function_ref<void()> store) {
  if (!valid)
    return store();
  auto ifOp = scf::IfOp::create(b, valid, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  store();
}

void expandStore(Expander &b, CacheStoreOp op) {
  CachePlace place = b.place(op.getBatch(), op.getToken(), !op.getInBounds());
  storeGuarded(b, place.valid, [&] {
    if (b.row()) {
      auto [part, first] = b.partAt(*op.getPart(), op.getHeadDim());
      return b.packed(place.lead, op.getHead())
          .store(part, first, op.getValue(), op.getAlignment());
    }
    SmallVector<Value> at(ArrayRef<Value>(place.lead));
    at.append({op.getHead(), b.column(op.getHeadDim())});
    vector::StoreOp::create(b, op.getValue(), b.parts.data, at,
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(op.getAlignment().value_or(0)));
  });
}

void expandStore(Expander &b, StoreScaleOp op) {
  CachePlace place;
  if (b.scalesByToken() || b.row())
    place = b.place(op.getBatch(), op.getToken(), !op.getInBounds());
  storeGuarded(b, place.valid, [&] {
    if (b.row()) {
      auto [part, first] = b.partAt(*op.getPart(), op.getHeadDim());
      return b.packed(place.lead, op.getHead())
          .storeScales(part, first, op.getValue());
    }
    vector::StoreOp::create(
        b, op.getValue(), b.parts.scales,
        b.scaleAt(place.lead, op.getHead(), op.getHeadDim()));
  });
}

/// The pattern of an op on a cache.
template <typename Op> struct ExpandOp : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto make = op.getCache().template getDefiningOp<MakeCacheOp>();
    if (!make || make.isOnTensors())
      return rewriter.notifyMatchFailure(op, "a cache of unknown memrefs");
    Expander b(op.getLoc(), rewriter, make);
    if constexpr (std::is_same_v<Op, CacheStoreOp> ||
                  std::is_same_v<Op, StoreScaleOp>) {
      expandStore(b, op);
      rewriter.eraseOp(op);
    } else {
      Value result = expand(b, op);
      if (!result)
        return failure();
      rewriter.replaceOp(op, result);
    }
    return success();
  }
};

struct ExpandCacheOpsPass
    : kvbuf::impl::ExpandCacheOpsBase<ExpandCacheOpsPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateExpandCacheOpsPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      auto make = dyn_cast<MakeCacheOp>(op);
      if (make && make->use_empty()) {
        make->erase();
        return WalkResult::advance();
      }
      if (tmaTileOf(op))
        return op->emitOpError()
               << "is of a cache that this function makes, but tensor maps are "
                  "made by the host; expected an argument of a kernel that "
                  "kvbuf-expand-arguments has not expanded";
      if (make || !op->hasTrait<OnCaches>())
        return WalkResult::advance();
      if (auto prompt = dyn_cast<MaxPromptLengthOp>(op);
          prompt && prompt.getCache().getDefiningOp<MakeCacheOp>() &&
          !prompt.getCache().getDefiningOp<MakeCacheOp>().getMaxPrompt())
        return op->emitOpError("asks a cache that was made without max_prompt");
      for (Value operand : op->getOperands())
        if (auto of = operand.getDefiningOp<MakeCacheOp>();
            of && of.isOnTensors())
          return op->emitOpError("uses a cache of tensors; expected one of "
                                 "memrefs: run one-shot-bufferize first");
      return op->emitOpError()
             << "uses a cache whose memrefs are not known here; expected one "
                "that a kvbuffer.make_cache of this function makes, or an "
                "argument of a kernel that kvbuf-expand-arguments has expanded";
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void kvbuf::populateExpandCacheOpsPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandOp<CacheLengthOp>, ExpandOp<EmptyCacheOp>,
               ExpandOp<MaxPromptLengthOp>, ExpandOp<MaxContextLengthOp>,
               ExpandOp<RowIdxOp>, ExpandOp<NumKVRowsOp>, ExpandOp<GetTmaRowOp>,
               ExpandOp<MaxTileSizeOp>, ExpandOp<BlockPagedPtrOp>,
               ExpandOp<ScalesBlockPagedPtrOp>, ExpandOp<ScalesRawPtrOp>,
               ExpandOp<CacheLoadOp>, ExpandOp<CacheStoreOp>,
               ExpandOp<LoadQuantizedOp>, ExpandOp<LoadScaleOp>,
               ExpandOp<StoreScaleOp>>(patterns.getContext());
}
