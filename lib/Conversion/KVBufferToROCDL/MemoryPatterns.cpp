//===- MemoryPatterns.cpp - Loads, copies and LDS on AMD ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVBufferToROCDL/FinishKernel.h"
#include "KVBufferToROCDL/RocdlPatterns.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::torocdl;

/// The address space of buffers in LLVM's AMDGPU backend.
static constexpr unsigned kBuffer = 8;

namespace {

/// `kvbuffer.dram_range` to a raw buffer descriptor.
struct LowerDramRange : ConvertOpToLLVMPattern<DramRangeOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(DramRangeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getData().getType());
    MemRefDescriptor data(adaptor.getData());
    Value base = LLVM::GEPOp::create(
        rewriter, loc, data.alignedPtr(rewriter, loc).getType(),
        getTypeConverter()->convertType(type.getElementType()),
        data.alignedPtr(rewriter, loc), ValueRange{adaptor.getOffset()});
    Value bytes = LLVM::ZExtOp::create(rewriter, loc, rewriter.getI64Type(),
                                       adaptor.getBytes());
    rewriter.replaceOpWithNewOp<ROCDL::MakeBufferRsrcOp>(
        op, LLVM::LLVMPointerType::get(getContext(), kBuffer), base,
        constant(rewriter, loc, rewriter.getI16Type(), 0), bytes,
        i32(rewriter, loc, chipOf(op).rangeFlags));
    return success();
  }
};

/// `kvbuffer.range_load` to a buffer load of words.
struct LowerRangeLoad : ConvertOpToLLVMPattern<RangeLoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(RangeLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getResult().getType());
    int64_t bits =
        type.getNumElements() * type.getElementType().getIntOrFloatBitWidth();
    if (bits != 16 && bits != 32 && bits != 64 && bits != 128)
      return rewriter.notifyMatchFailure(op, "no buffer load of this width");
    Type words = rewriter.getIntegerType(std::min<int64_t>(bits, 32));
    if (bits > 32)
      words = VectorType::get({bits / 32}, rewriter.getI32Type());
    Value zero = i32(rewriter, loc, 0);
    Value loaded = ROCDL::RawPtrBufferLoadOp::create(
        rewriter, loc, TypeRange{words},
        ValueRange{adaptor.getRange(), adaptor.getOffset(), zero, zero});
    // LLVM has no 8-bit floats.
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(
        op, getTypeConverter()->convertType(type), loaded);
    return success();
  }
};

/// Where copies write that skip so many bytes: the instruction adds its
/// immediate offset to the LDS address too, so that it is taken out of it. Null
/// where it has no such immediate.
static Value ldsPlace(ConversionPatternRewriter &rewriter, Location loc,
                      Value lds, Value at, int64_t skip) {
  if (skip < 0 || skip > 4095)
    return Value();
  Value base = MemRefDescriptor(lds).alignedPtr(rewriter, loc);
  if (skip)
    at = LLVM::SubOp::create(rewriter, loc, at,
                             constant(rewriter, loc, at.getType(), skip));
  return LLVM::GEPOp::create(rewriter, loc, base.getType(),
                             rewriter.getI8Type(), base, ValueRange{at});
}

/// `kvbuffer.range_copy` to a buffer load into LDS.
struct LowerRangeCopy : ConvertOpToLLVMPattern<RangeCopyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(RangeCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t skip = op.getSkip();
    Value to = ldsPlace(rewriter, loc, adaptor.getLds(), adaptor.getAt(), skip);
    if (!to)
      return rewriter.notifyMatchFailure(op, "no immediate of 12 bits");
    ROCDL::RawPtrBufferLoadLdsOp::create(
        rewriter, loc, TypeRange{},
        ValueRange{adaptor.getRange(), to, i32(rewriter, loc, op.getBytes()),
                   adaptor.getOffset(), i32(rewriter, loc, 0),
                   i32(rewriter, loc, skip), i32(rewriter, loc, 0)});
    rewriter.eraseOp(op);
    return success();
  }
};

/// `kvbuffer.lane_copy` to a load of memory into LDS.
struct LowerLaneCopy : ConvertOpToLLVMPattern<LaneCopyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t skip = op.getSkip();
    Value to = ldsPlace(rewriter, loc, adaptor.getLds(), adaptor.getAt(), skip);
    if (!to)
      return rewriter.notifyMatchFailure(op, "no immediate of 12 bits");
    auto type = cast<MemRefType>(op.getData().getType());
    Value data = MemRefDescriptor(adaptor.getData())
                     .bufferPtr(rewriter, loc, *getTypeConverter(), type);
    Value from = LLVM::GEPOp::create(
        rewriter, loc, data.getType(),
        getTypeConverter()->convertType(type.getElementType()), data,
        ValueRange{adaptor.getOffset()});
    ROCDL::GlobalLoadLDSOp::create(rewriter, loc, TypeRange{}, from, to,
                                   rewriter.getI32IntegerAttr(op.getBytes()),
                                   rewriter.getI32IntegerAttr(skip),
                                   rewriter.getI32IntegerAttr(0), ArrayAttr(),
                                   ArrayAttr(), ArrayAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

/// `kvbuffer.box_copy` to a tensor copy of three dimensions: the elements of a
/// row of a block, its rows, and the blocks. What groups of the descriptor
/// hold: MLIR's lowering of amdgpu.make_dma_descriptor.
struct LowerBoxCopy : ConvertOpToLLVMPattern<BoxCopyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(BoxCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type(), wide = rewriter.getI64Type();
    auto type = cast<MemRefType>(op.getData().getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    if (bytes != 1 && bytes != 2 && bytes != 4)
      return rewriter.notifyMatchFailure(op, "no elements of this size");
    MemRefDescriptor data(adaptor.getData()), lds(adaptor.getLds());
    Value from = LLVM::GEPOp::create(
        rewriter, loc, data.alignedPtr(rewriter, loc).getType(),
        getTypeConverter()->convertType(type.getElementType()),
        data.alignedPtr(rewriter, loc), ValueRange{adaptor.getBase()});
    Value into = LLVM::GEPOp::create(
        rewriter, loc, lds.alignedPtr(rewriter, loc).getType(),
        rewriter.getI8Type(), lds.alignedPtr(rewriter, loc),
        ValueRange{adaptor.getAt()});
    from = LLVM::PtrToIntOp::create(rewriter, loc, wide, from);
    into = LLVM::PtrToIntOp::create(rewriter, loc, word, into);
    auto number = [&](int64_t value) { return i32(rewriter, loc, value); };
    auto low = [&](Value value) -> Value {
      return LLVM::TruncOp::create(rewriter, loc, word, value);
    };
    auto high = [&](Value value, int64_t bit) {
      return low(LLVM::LShrOp::create(rewriter, loc, value,
                                      constant(rewriter, loc, wide, bit)));
    };
    auto both = [&](Value x, Value y) -> Value {
      return LLVM::OrOp::create(rewriter, loc, x, y);
    };
    auto group = [&](ArrayRef<Value> words) -> Value {
      auto vector = VectorType::get({int64_t(words.size())}, word);
      Value all = LLVM::PoisonOp::create(rewriter, loc, vector);
      for (auto [i, value] : llvm::enumerate(words))
        all = LLVM::InsertElementOp::create(rewriter, loc, all, value,
                                            number(int64_t(i)));
      return all;
    };
    // Addresses have 57 bits, and the descriptor's type is 2.
    Value top = LLVM::AndOp::create(rewriter, loc, high(from, 32),
                                    number((1 << 25) - 1));
    Value asked = LLVM::ZExtOp::create(rewriter, loc, word, adaptor.getAsked());
    Value where =
        group({asked, into, low(from), both(top, number(int64_t(2) << 30))});
    int64_t columns = op.getColumns(), rows = op.getRows(),
            blocks = op.getBlocks();
    // The tensor's sizes, 32 bits each, the box's, 16 each, and the strides, 48
    // each: of rows, and of blocks.
    Value valid = adaptor.getValid(), stride = adaptor.getStride();
    Value shifted = LLVM::ShlOp::create(rewriter, loc, valid, number(16));
    Value beyond =
        LLVM::LShrOp::create(rewriter, loc, valid, number(16)).getResult();
    Value strideTop = LLVM::AndOp::create(rewriter, loc, high(stride, 32),
                                          number((1 << 16) - 1));
    Value what =
        group({number(llvm::Log2_64(bytes) << 16), number(columns << 16),
               both(number(columns >> 16), shifted),
               both(beyond, number(columns << 16)), number(blocks << 16 | rows),
               low(stride), both(strideTop, number(columns << 16)),
               number(columns >> 16)});
    Value zero = number(0), more = group({number(blocks), zero, zero, zero}),
          rest = group({zero, zero, zero, zero});
    ROCDL::TensorLoadToLDSOp::create(rewriter, loc, where, what, more, rest,
                                     /*cachePolicy=*/0, ArrayAttr(),
                                     ArrayAttr(), ArrayAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

/// `kvbuffer.turned_read` to a transposed read of 16 bytes.
struct LowerTurnedRead : ConvertOpToLLVMPattern<TurnedReadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(TurnedReadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<VectorType>(op.getColumn().getType());
    if (type.getNumElements() != 8 || type.getElementTypeBitWidth() != 16)
      return rewriter.notifyMatchFailure(op, "no read of these elements");
    Location loc = op.getLoc();
    Value base = MemRefDescriptor(adaptor.getLds()).alignedPtr(rewriter, loc);
    Value at =
        LLVM::GEPOp::create(rewriter, loc, base.getType(), rewriter.getI8Type(),
                            base, ValueRange{adaptor.getAt()});
    rewriter.replaceOpWithNewOp<ROCDL::DsLoadTr16_B128>(op, type, at);
    return success();
  }
};

/// Dynamic LDS to the module's global, which `ensureLds` made: its size is then
/// part of the code object.
struct LowerDynamicLds : ConvertOpToLLVMPattern<gpu::DynamicSharedMemoryOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(gpu::DynamicSharedMemoryOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value base = LLVM::AddressOfOp::create(
        rewriter, loc, LLVM::LLVMPointerType::get(getContext(), kLds),
        kLdsName);
    Type index = getIndexType();
    auto lds = MemRefDescriptor::poison(
        rewriter, loc, getTypeConverter()->convertType(op.getType()));
    lds.setAllocatedPtr(rewriter, loc, base);
    lds.setAlignedPtr(rewriter, loc, base);
    lds.setOffset(rewriter, loc, constant(rewriter, loc, index, 0));
    lds.setSize(rewriter, loc, 0, constant(rewriter, loc, index, 0));
    lds.setStride(rewriter, loc, 0, constant(rewriter, loc, index, 1));
    rewriter.replaceOp(op, Value(lds));
    return success();
  }
};

} // namespace

void torocdl::addMemoryPatterns(RewritePatternSet &patterns,
                                LLVMTypeConverter &converter) {
  converter.addConversion([](RangeType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), kBuffer);
  });
  patterns.add<LowerDramRange, LowerRangeLoad, LowerRangeCopy, LowerLaneCopy,
               LowerBoxCopy, LowerTurnedRead>(converter);
  // Ahead of upstream's pattern for the same op.
  patterns.add<LowerDynamicLds>(converter, PatternBenefit(10));
}
