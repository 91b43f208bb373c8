//===- KVBufferProblemOps.cpp - Problems: verifiers, effects ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;

double AttentionOp::getScaleValue() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  return 1.0 / std::sqrt(double(getHeadSize()));
}

double AttentionOp::getSoftcapValue() {
  if (std::optional<APFloat> cap = getSoftcap())
    return cap->convertToFloat();
  return 0.0;
}

CacheType kvbuf::denseCacheOf(Type type) {
  if (auto cache = dyn_cast<CacheType>(type))
    return cache;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 4 || tensor.isDynamicDim(2) ||
      tensor.isDynamicDim(3) || !isa<FloatType>(tensor.getElementType()) ||
      tensor.getDimSize(2) < 1 || tensor.getDimSize(3) < 1)
    return nullptr;
  int64_t headSize = tensor.getDimSize(3);
  return CacheType::get(type.getContext(), CacheKind::Dense,
                        tensor.getElementType(), tensor.getDimSize(2), headSize,
                        /*pageSize=*/0, /*cacheDepth=*/headSize,
                        /*headDimOffset=*/0, /*scaleType=*/Type(),
                        /*granularity=*/0, /*row=*/RowAttr());
}

CacheLayout kvbuf::cacheLayoutOf(Type type) {
  if (auto layout = dyn_cast<CacheLayout>(type))
    return layout;
  CacheType dense = denseCacheOf(type);
  return dense ? cast<CacheLayout>(dense) : CacheLayout();
}

/// Whether the innermost dimension is static and contiguous.
static bool hasContiguousRows(ShapedType type) {
  if (type.isDynamicDim(type.getRank() - 1))
    return false;
  auto memref = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  return !memref || (succeeded(memref.getStridesAndOffset(strides, offset)) &&
                     strides.back() == 1);
}

/// Memory that all blocks see: of no space, which the host's tensors have, or
/// of the one that GPUs call so.
static bool isGlobalMemory(MemRefType type) {
  Attribute space = type.getMemorySpace();
  if (auto gpuSpace = dyn_cast_or_null<gpu::AddressSpaceAttr>(space))
    return gpuSpace.getValue() == gpu::AddressSpace::Global;
  return !space || type.getMemorySpaceAsInt() == 1;
}

/// (C6) The operands that are no caches are all tensors, or all memrefs in
/// global memory; tensors are no caches of an op on memrefs.
static LogicalResult verifyOperandForms(Operation *op, StringRef constraint,
                                        bool onTensors) {
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if (auto memref = dyn_cast<MemRefType>(type);
        memref && !isGlobalMemory(memref))
      return op->emitOpError()
             << "expected tensors in global memory, got " << memref;
    if (isa<ShapedType>(type) && isa<TensorType>(type) != onTensors)
      return op->emitOpError()
             << constraint << "expected all operands but caches to be "
             << (onTensors ? "tensors" : "memrefs") << ", as the first is, got "
             << type;
  }
  return success();
}

/// The captures that a block mask names are lists of its blocks.
static LogicalResult verifyBlockMask(AttentionOp op) {
  BlockMaskAttr mask = op.getBlockMaskAttr();
  if (!mask)
    return success();
  if (op.isLatent())
    return op.emitOpError("has a block_mask, and values that are a part of its "
                          "keys; expected values of their own");
  int64_t captures = op.getCaptures().size();
  for (auto [i, number] : llvm::enumerate(mask.getLists())) {
    if (number >= captures)
      return op.emitOpError()
             << "has a block_mask that names capture " << number
             << "; expected one of its " << captures << " captures";
    auto list = cast<ShapedType>(op.getCaptures()[number].getType());
    int64_t rank = i % 2 ? 4 : 3;
    if (list.getRank() != rank || !list.getElementType().isInteger(32))
      return op.emitOpError() << "has a block_mask whose "
                              << (i % 2 ? "blocks" : "numbers of blocks")
                              << " are " << list << "; expected i32 of rank "
                              << rank << " ([batch, heads, blocks of queries"
                              << (i % 2 ? ", most])" : "])");
  }
  return success();
}

/// That functions of scores use nothing from outside of their regions: the
/// kernel knows nothing else. The trait's own check comes later and cannot say
/// what to do.
static LogicalResult verifyFunctionsAreClosed(AttentionOp op) {
  for (Region *region : {&op.getVisible(), &op.getScore()}) {
    WalkResult walk = region->walk([&](Operation *inner) -> WalkResult {
      for (Value operand : inner->getOperands())
        if (!region->isAncestor(operand.getParentRegion())) {
          InFlightDiagnostic diag =
              inner->emitOpError()
              << "uses a value from outside of the region; expected it among "
                 "the captures, or a constant inside";
          diag.attachNote(op.getLoc()) << "the region is here";
          return diag;
        }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  return success();
}

/// That the elements are such as kernels multiply (C1).
static LogicalResult verifyElements(AttentionOp op) {
  auto q = cast<ShapedType>(op.getQ().getType());
  auto out = cast<ShapedType>(op.getOut().getType());
  CacheType k = op.getKCacheType(), v = op.getVCacheType();
  Type element = k.getElementType();
  // Which 8-bit floats there are, and kernels for, depends on the chip.
  if (!element.isBF16() && !element.isF16() && !isFloat8(element))
    return op.emitOpError()
           << "(C1) expected elements bf16 or f16, got " << element;
  // Caches may be narrower than what they are multiplied by.
  Type wide = q.getElementType();
  bool quantized = (wide.isBF16() || wide.isF16()) && isFloat8(element) &&
                   isFloat8(v.getElementType());
  if (!quantized && (element != wide || v.getElementType() != wide))
    return op.emitOpError()
           << "(C1) expected one element type for q, k and v"
           << (wide.isBF16() || wide.isF16() ? ", or 8-bit floats for k and v"
                                             : "")
           << ", got " << wide << ", " << element << ", " << v.getElementType();
  if (Type stored = out.getElementType(); !stored.isF32() && !stored.isBF16() &&
                                          !stored.isF16() &&
                                          (stored != wide || !isFloat8(wide))) {
    InFlightDiagnostic diag = op.emitOpError()
                              << "(C1) expected out of f32, bf16";
    if (isFloat8(wide))
      diag << ", f16 or " << wide;
    else
      diag << " or f16";
    return diag << ", got " << stored;
  }
  return success();
}

/// Whether an extent may be that of a dimension of `q`: what q's type leaves
/// open, no other type may fix.
static bool isExtentOf(ShapedType q, int64_t extent, int64_t dim) {
  return ShapedType::isDynamic(extent) || extent == q.getDimSize(dim);
}

/// That q and out have one form, and the head sizes of the caches (C2, C4).
static LogicalResult verifyShapes(AttentionOp op) {
  auto q = cast<ShapedType>(op.getQ().getType());
  auto out = cast<ShapedType>(op.getOut().getType());
  CacheType k = op.getKCacheType();
  int64_t rank = op.getOffsets() ? 3 : 4;
  if (q.getRank() != rank)
    return op.emitOpError()
           << "(C4) expected q of rank " << rank
           << (op.getOffsets() ? " ([rows, heads, head_size]) with"
                               : " ([batch, rows, heads, head_size]) without")
           << " offsets, got rank " << q.getRank();
  if (q.isDynamicDim(rank - 2) || !hasContiguousRows(q) ||
      !hasContiguousRows(out))
    return op.emitOpError()
           << "(C4) expected static heads and head_size, the last "
              "contiguous, in q and out";
  if (q.getShape().back() != k.getHeadSize())
    return op.emitOpError()
           << "(C2) expected q and k of one head size, got "
           << q.getShape().back() << " and " << k.getHeadSize();
  // Values that are a part of keys have as many columns as O.
  if (op.isLatent() && out.getShape().back() > k.getHeadSize())
    return op.emitOpError()
           << "(C4) expected out of at most " << k.getHeadSize()
           << " columns, those of the cache that is k and v, got " << out;
  if (out.getRank() != rank || out.getDimSize(rank - 2) != op.getHeads() ||
      out.getShape().back() != op.getValueHeadSize() ||
      !llvm::all_of(llvm::seq<int64_t>(rank - 2), [&](int64_t dim) {
        return isExtentOf(q, out.getDimSize(dim), dim);
      }))
    return op.emitOpError()
           << "(C4) expected out to have q's rows and heads and "
              "v's head size "
           << op.getValueHeadSize() << ", got " << out << " for " << q;
  return success();
}

/// That k and v are caches of one kind whose heads divide q's, and whose rows
/// lanes can copy (C3, C5).
static LogicalResult verifyCaches(AttentionOp op) {
  CacheType k = op.getKCacheType(), v = op.getVCacheType();
  if (v.getHeads() != k.getHeads() || op.getHeads() % k.getHeads() ||
      op.getHeads() == 0)
    return op.emitOpError()
           << "(C3) expected k and v to have one number of heads that "
              "divides q's "
           << op.getHeads() << ", got " << k.getHeads() << " and "
           << v.getHeads();
  if (v.getKind() != k.getKind() || v.getPageSize() != k.getPageSize())
    return op.emitOpError()
           << "expected k and v of one cache kind and page size";
  for (int64_t headSize : {k.getHeadSize(), op.getValueHeadSize()}) {
    if (headSize % 8)
      return op.emitOpError()
             << "(C5) expected a head size that is a multiple of 8 "
                "elements (16 bytes), got "
             << headSize;
    if (headSize > kMostElements)
      return op.emitOpError() << "(C5) expected a head size of at most "
                              << kMostElements << ", got " << headSize;
  }
  for (auto [name, cache] : {std::pair("k", k), std::pair("v", v)})
    // Of packed rows the depth counts tails, which are bytes of their own.
    if (cache.getHeadDimOffset() % 8 ||
        (!cache.getRow() && cache.getCacheDepth() % 8))
      return op.emitOpError()
             << "(C5) expected cache_depth and head_dim_offset to "
                "be multiples of 8 elements (16 bytes), got "
             << cache.getCacheDepth() << " and " << cache.getHeadDimOffset()
             << " of " << name;
  if ((k.getRow() || v.getRow()) && !op.isLatent())
    return op.emitOpError()
           << "has packed rows; expected one cache that is k and "
              "v (latent attention)";
  // Programs have such rows, of elements that a problem's cache has all of.
  if (k.getRow() && k.getScaleType())
    return op.emitOpError() << "has packed rows and a scale beside them; "
                               "expected scales of the row's parts alone";
  return success();
}

/// That what there is for each row or head fits q.
static LogicalResult verifyRowValues(AttentionOp op) {
  auto q = cast<ShapedType>(op.getQ().getType());
  int64_t rank = op.getOffsets() ? 3 : 4;
  if (op.getLse()) {
    auto lse = cast<ShapedType>(op.getLse().getType());
    if (!lse.getElementType().isF32() || lse.getRank() != rank - 1)
      return op.emitOpError() << "expected lse of f32 and rank " << rank - 1
                              << (op.getOffsets() ? " ([heads, rows])"
                                                  : " ([batch, heads, rows])")
                              << ", got " << Type(lse);
    if (!isExtentOf(q, lse.getShape().back(), rank - 3) ||
        (rank == 4 && !isExtentOf(q, lse.getDimSize(0), 0)))
      return op.emitOpError() << "expected lse to have the rows of q, got "
                              << Type(lse) << " for " << Type(q);
  }
  auto hasOtherHeads = [&](int64_t dim) {
    return !ShapedType::isDynamic(dim) && dim != op.getHeads();
  };
  if (op.getLse() &&
      hasOtherHeads(
          cast<ShapedType>(op.getLse().getType()).getShape()[rank - 3]))
    return op.emitOpError() << "expected lse of q's " << op.getHeads()
                            << " heads, got " << op.getLse().getType();
  if (op.getSink() &&
      hasOtherHeads(cast<ShapedType>(op.getSink().getType()).getShape()[0]))
    return op.emitOpError()
           << "expected a sink for each of q's " << op.getHeads()
           << " heads, got " << op.getSink().getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyBlockMask(*this)) || failed(verifyFunctionsAreClosed(*this)))
    return failure();
  if (ScheduleAttr schedule = getScheduleAttr(); schedule && schedule.isOpen())
    return emitOpError() << "has a schedule that leaves mma_shape open, as "
                            "programs may; expected mma_shape, or no schedule";
  if (failed(verifyOperandForms(*this, "(C6) ", isOnTensors())))
    return failure();
  CacheType k = getKCacheType(), v = getVCacheType();
  for (auto [name, cache, value] :
       {std::tuple("k", k, getKeys()), std::tuple("v", v, getValues())})
    if (!cache)
      return emitOpError() << "expected " << name
                           << " to be a cache, or a tensor [batch, keys, "
                              "kv_heads, head_size] with static kv_heads and "
                              "head_size, got "
                           << value.getType();
  if (failed(verifyElements(*this)) || failed(verifyShapes(*this)) ||
      failed(verifyCaches(*this)) || failed(verifyRowValues(*this)))
    return failure();
  if (std::optional<APFloat> cap = getSoftcap())
    if (!cap->isFinite() || cap->isNegative())
      return emitOpError() << "expected a finite softcap of at least 0";
  if (std::optional<APFloat> scale = getScale())
    if (!scale->isFinite())
      return emitOpError() << "expected a finite scale";
  return success();
}

//===----------------------------------------------------------------------===//
// Effects, shapes, simpler forms
//===----------------------------------------------------------------------===//

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// Effects of a problem: it reads and writes the memory that its operands are.
static void problemEffects(DestinationStyleOpInterface op, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (isa<TensorType>(operand.get().getType()))
      continue;
    // Where a cache lies, its value does not say.
    if (!isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get());
    else if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

/// A result has the shape of its destination.
static LogicalResult reifyAsInits(OpBuilder &b, DestinationStyleOpInterface op,
                                  ReifiedRankedShapedTypeDims &shapes) {
  for (OpOperand &init : op.getDpsInitsMutable())
    if (isa<TensorType>(init.get().getType()))
      shapes.push_back(tensor::getMixedSizes(b, op.getLoc(), init.get()));
  return success();
}

void AttentionOp::getEffects(Effects &effects) {
  problemEffects(*this, effects);
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyAsInits(b, *this, shapes);
}

void CacheAppendOp::getEffects(Effects &effects) {
  problemEffects(*this, effects);
  // Into caches goes what is no result.
  if (!isIntoTensors())
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult
CacheAppendOp::reifyResultShapes(OpBuilder &b,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyAsInits(b, *this, shapes);
}

/// The mask without limits that hide nothing; null if none is left.
static MaskAttr simplifyMask(MaskAttr mask) {
  if (!mask)
    return mask;
  // Causality hides what a limit on the right would, and more.
  int64_t right = mask.getCausal() ? -1 : mask.getRight();
  if (!mask.getCausal() && mask.getLeft() < 0 && right < 0)
    return nullptr;
  return MaskAttr::get(mask.getContext(), mask.getCausal(),
                       std::max<int64_t>(mask.getLeft(), -1),
                       std::max<int64_t>(right, -1));
}

LogicalResult AttentionOp::canonicalize(AttentionOp op,
                                        PatternRewriter &rewriter) {
  // Nobody asks for the log-sum-exp.
  if (op.getLse() && op.getNumResults() == 2 && op.getResult(1).use_empty()) {
    auto simpler = AttentionOp::create(
        rewriter, op.getLoc(), TypeRange{op.getResult(0).getType()}, op.getQ(),
        op.getKeys(), op.getValues(), op.getOffsets(), op.getSink(),
        op.getCaptures(), op.getOut(), /*lse=*/Value(), op.getMaskAttr(),
        op.getBlockMaskAttr(), op.getScaleAttr(), op.getSoftcapAttr(),
        op.getBatchInvariantAttr(), op.getScheduleAttr());
    simpler->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getScore(), simpler.getScore(),
                                simpler.getScore().end());
    rewriter.inlineRegionBefore(op.getVisible(), simpler.getVisible(),
                                simpler.getVisible().end());
    rewriter.replaceAllUsesWith(op.getResult(0), simpler.getResult(0));
    rewriter.eraseOp(op);
    return success();
  }
  MaskAttr mask = simplifyMask(op.getMaskAttr());
  bool plainScale =
      op.getScale() &&
      op.getScale()->convertToFloat() ==
          static_cast<float>(1.0 / std::sqrt(double(op.getHeadSize())));
  bool noCap = op.getSoftcap() && op.getSoftcap()->isZero();
  if (mask == op.getMaskAttr() && !noCap && !plainScale)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.setMaskAttr(mask);
    if (noCap)
      op.removeSoftcapAttr();
    if (plainScale)
      op.removeScaleAttr();
  });
  return success();
}
