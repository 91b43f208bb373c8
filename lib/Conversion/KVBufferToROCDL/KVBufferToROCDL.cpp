//===- KVBufferToROCDL.cpp - Lower per-lane code to llvm and rocdl --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/CheckKernel.h"
#include "Common/LowerCounters.h"
#include "Common/LowerMath.h"
#include "KVBufferToROCDL/FinishKernel.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FiniteProduct.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Target/DefaultChips.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Conversion/AMDGPUToROCDL/AMDGPUToROCDL.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToROCDL/GPUToROCDLPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTKVBUFFERTOROCDL
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// The address space of buffers in LLVM's AMDGPU backend.
static constexpr unsigned kBuffer = 8;
/// The scope that all blocks of a launch are in.
static constexpr StringLiteral kDevice = "agent";

/// The chip that an op's module names; where it names none, the vendor's
/// default.
static TargetInfo chipOf(Operation *op) {
  if (std::optional<TargetInfo> target = targetOf(op))
    return *target;
  return *lookupTarget(kDefaultAMDChip);
}

namespace {

Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value));
}
Value i32(OpBuilder &b, Location loc, int64_t value) {
  return constant(b, loc, b.getI32Type(), value);
}

/// `kvbuffer.lane_mma` to an MFMA or a WMMA.
struct LowerLaneMma : ConvertOpToLLVMPattern<LaneMmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getA().size() != 1 || op.getB().size() != 1)
      return rewriter.notifyMatchFailure(op, "operands of more than a word");
    Location loc = op.getLoc();
    Value a = adaptor.getA().front().front(),
          b = adaptor.getB().front().front(), c = adaptor.getC().front();
    auto word = cast<VectorType>(a.getType());
    Value zero = i32(rewriter, loc, 0);
    ArrayRef<int64_t> shape = op.getShape();
    auto elementOf = [](Value value) {
      return cast<VectorType>(value.getType()).getElementType();
    };
    Type left = elementOf(op.getA().front()),
         right = elementOf(op.getB().front());
    if (left.getIntOrFloatBitWidth() == 8) {
      if (shape[0] * shape[2] == 32 * 64) {
        rewriter.replaceOp(
            op, createScaled(rewriter, loc, shape, left, right, a, b, c));
        return success();
      }
      // Eight of a kind are one number; the chip has one format of each kind.
      for (Value *operand : {&a, &b})
        *operand = LLVM::BitcastOp::create(rewriter, loc, rewriter.getI64Type(),
                                           *operand);
      Operation *mfma =
          createFloat8(rewriter, loc, shape, isBF8(left), isBF8(right),
                       c.getType(), {a, b, c, zero, zero, zero});
      if (!mfma)
        return rewriter.notifyMatchFailure(op, "no MFMA of this shape");
      rewriter.replaceOp(op, mfma->getResult(0));
      return success();
    }
    bool bf16 = left.isBF16();
    if (!bf16 && !left.isF16())
      return rewriter.notifyMatchFailure(op, "no MFMA for these elements");
    auto replace = [&](auto create, bool asIntegers) {
      if (asIntegers) {
        // CDNA3's instructions take bf16 as integers.
        auto bits = VectorType::get(word.getShape(), rewriter.getI16Type());
        a = LLVM::BitcastOp::create(rewriter, loc, bits, a);
        b = LLVM::BitcastOp::create(rewriter, loc, bits, b);
      }
      rewriter.replaceOp(op,
                         create(SmallVector<Value>{a, b, c, zero, zero, zero}));
      return success();
    };
    // The wave says which unit: shapes of both are alike.
    if (chipOf(op).matrixUnit() == MatrixUnit::Wmma) {
      if (shape != ArrayRef<int64_t>{16, 16, 32})
        return rewriter.notifyMatchFailure(op, "no WMMA of this shape");
      rewriter.replaceOp(op, createWmma(rewriter, loc, bf16, a, b, c));
      return success();
    }
    auto make = [&]<typename Op>() {
      return [&](ValueRange operands) -> Value {
        return Op::create(rewriter, loc, TypeRange{c.getType()}, operands)
            ->getResult(0);
      };
    };
    if (shape == ArrayRef<int64_t>{32, 32, 16})
      return bf16 ? replace(make.operator()<ROCDL::mfma_f32_32x32x16_bf16>(),
                            false)
                  : replace(make.operator()<ROCDL::mfma_f32_32x32x16_f16>(),
                            false);
    if (shape == ArrayRef<int64_t>{16, 16, 32})
      return bf16 ? replace(make.operator()<ROCDL::mfma_f32_16x16x32_bf16>(),
                            false)
                  : replace(make.operator()<ROCDL::mfma_f32_16x16x32_f16>(),
                            false);
    if (shape == ArrayRef<int64_t>{32, 32, 8})
      return bf16 ? replace(make.operator()<ROCDL::mfma_f32_32x32x8bf16_1k>(),
                            true)
                  : replace(make.operator()<ROCDL::mfma_f32_32x32x8f16>(),
                            false);
    if (shape == ArrayRef<int64_t>{16, 16, 16})
      return bf16 ? replace(make.operator()<ROCDL::mfma_f32_16x16x16bf16_1k>(),
                            true)
                  : replace(make.operator()<ROCDL::mfma_f32_16x16x16f16>(),
                            false);
    return rewriter.notifyMatchFailure(op, "no MFMA of this shape");
  }

private:
  /// The WMMA of 16-bit operands, as they are.
  static Value createWmma(OpBuilder &b, Location loc, bool bf16, Value x,
                          Value y, Value c) {
    auto create = [&]<typename Op>() -> Value {
      return Op::create(b, loc, c.getType(), /*signA=*/false, x,
                        /*signB=*/false, y, /*modC=*/0, c,
                        /*reuseA=*/false, /*reuseB=*/false)
          .getRes();
    };
    return bf16 ? create.operator()<ROCDL::wmma_f32_16x16x32_bf16>()
                : create.operator()<ROCDL::wmma_f32_16x16x32_f16>();
  }

  /// AMD's names: fp8 has four bits of exponent, bf8 has five.
  static bool isBF8(Type type) {
    return isa<Float8E5M2Type, Float8E5M2FNUZType>(type);
  }

  /// The scaled MFMA for two 8-bit floats, with scales of 1.
  static Value createScaled(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                            Type left, Type right, Value x, Value y, Value c) {
    auto words = VectorType::get({8}, b.getI32Type());
    // Powers of two with a bias of 127, four in a word.
    constexpr int32_t ones = 0x7F7F7F7F;
    Value zero = i32(b, loc, 0), scale = i32(b, loc, ones);
    SmallVector<Value> operands{LLVM::BitcastOp::create(b, loc, words, x),
                                LLVM::BitcastOp::create(b, loc, words, y),
                                c,
                                i32(b, loc, isBF8(left)),
                                i32(b, loc, isBF8(right)),
                                zero,
                                scale,
                                zero,
                                scale};
    if (shape[0] == 32)
      return ROCDL::mfma_scale_f32_32x32x64_f8f6f4::create(
                 b, loc, TypeRange{c.getType()}, operands)
          ->getResult(0);
    return ROCDL::mfma_scale_f32_16x16x128_f8f6f4::create(
               b, loc, TypeRange{c.getType()}, operands)
        ->getResult(0);
  }

  /// The MFMA for two 8-bit floats; null if there is none of this shape.
  static Operation *createFloat8(OpBuilder &b, Location loc,
                                 ArrayRef<int64_t> shape, bool leftBF8,
                                 bool rightBF8, Type type,
                                 ValueRange operands) {
    auto pick = [&]<typename FF, typename FB, typename BF, typename BB>()
        -> Operation * {
      auto make = [&]<typename Op>() -> Operation * {
        return Op::create(b, loc, TypeRange{type}, operands);
      };
      if (leftBF8)
        return rightBF8 ? make.template operator()<BB>()
                        : make.template operator()<BF>();
      return rightBF8 ? make.template operator()<FB>()
                      : make.template operator()<FF>();
    };
    if (shape == ArrayRef<int64_t>{32, 32, 16})
      return pick.operator()<
          ROCDL::mfma_f32_32x32x16_fp8_fp8, ROCDL::mfma_f32_32x32x16_fp8_bf8,
          ROCDL::mfma_f32_32x32x16_bf8_fp8, ROCDL::mfma_f32_32x32x16_bf8_bf8>();
    if (shape == ArrayRef<int64_t>{16, 16, 32})
      return pick.operator()<
          ROCDL::mfma_f32_16x16x32_fp8_fp8, ROCDL::mfma_f32_16x16x32_fp8_bf8,
          ROCDL::mfma_f32_16x16x32_bf8_fp8, ROCDL::mfma_f32_16x16x32_bf8_bf8>();
    return nullptr;
  }
};

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

struct LowerPairSum : ConvertOpToLLVMPattern<PairSumOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(PairSumOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    VectorType type = op.getPair().getType();
    FloatAttr one = rewriter.getFloatAttr(type.getElementType(), 1.0);
    Value ones = LLVM::ConstantOp::create(
        rewriter, loc, DenseElementsAttr::get(type, one.getValue()));
    Value clamps =
        LLVM::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(false));
    StringRef name = type.getElementType().isBF16()
                         ? "llvm.amdgcn.fdot2.f32.bf16"
                         : "llvm.amdgcn.fdot2";
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, rewriter.getF32Type(), rewriter.getStringAttr(name),
        ValueRange{adaptor.getPair(), ones, adaptor.getSum(), clamps});
    return success();
  }
};

/// Bytes of vectors in another order, where each word of the result has those
/// of two words at most, to an instruction a word ("V_PERM_B32"): LLVM takes
/// them apart into shifts.
struct LowerByteShuffle : ConvertOpToLLVMPattern<vector::ShuffleOp> {
  LowerByteShuffle(const LLVMTypeConverter &converter)
      : ConvertOpToLLVMPattern(converter, /*benefit=*/2) {}

  LogicalResult
  matchAndRewrite(vector::ShuffleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    constexpr int64_t inWord = 4;
    auto holdsWords = [](VectorType type) {
      return type.getRank() == 1 && type.getElementTypeBitWidth() == 8 &&
             type.getNumElements() % inWord == 0;
    };
    VectorType type = op.getResultVectorType(), first = op.getV1VectorType();
    if (!holdsWords(type) || !holdsWords(first) ||
        !holdsWords(op.getV2VectorType()))
      return rewriter.notifyMatchFailure(op, "no words of bytes");
    ArrayRef<int64_t> mask = op.getMask();
    SmallVector<std::pair<Word, uint32_t>> words;
    for (int64_t i = 0; i < type.getNumElements(); i += inWord) {
      auto word = pick(mask.slice(i, inWord));
      if (!word)
        return rewriter.notifyMatchFailure(op, "bytes of three words");
      words.push_back(*word);
    }
    Location loc = op.getLoc();
    Type i32Type = rewriter.getI32Type();
    auto wordsOf = [&](VectorType of) {
      return VectorType::get({of.getNumElements() / inWord}, i32Type);
    };
    int64_t inFirst = first.getNumElements() / inWord;
    Value v1 = LLVM::BitcastOp::create(rewriter, loc, wordsOf(first),
                                       adaptor.getV1()),
          v2 = LLVM::BitcastOp::create(
              rewriter, loc, wordsOf(op.getV2VectorType()), adaptor.getV2());
    auto wordAt = [&](int64_t number) -> Value {
      bool second = number >= inFirst;
      return LLVM::ExtractElementOp::create(
          rewriter, loc, second ? v2 : v1,
          i32(rewriter, loc, second ? number - inFirst : number));
    };
    Value all = LLVM::PoisonOp::create(rewriter, loc, wordsOf(type));
    for (auto [i, word] : llvm::enumerate(words)) {
      auto [from, selector] = word;
      Value permuted = wordAt(from.first);
      // A word as it is needs no instruction.
      if (selector != kInOrder)
        permuted =
            LLVM::CallIntrinsicOp::create(
                rewriter, loc, i32Type,
                rewriter.getStringAttr("llvm.amdgcn.perm"),
                ValueRange{wordAt(from.second), permuted,
                           i32(rewriter, loc, static_cast<int32_t>(selector))})
                .getResult(0);
      all = LLVM::InsertElementOp::create(rewriter, loc, all, permuted,
                                          i32(rewriter, loc, i));
    }
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(
        op, getTypeConverter()->convertType(type), all);
    return success();
  }

private:
  /// Two words, by their numbers in both operands.
  using Word = std::pair<int64_t, int64_t>;
  /// The selector of the first word's bytes in their order.
  static constexpr uint32_t kInOrder = 0x03020100;

  /// Which two words `bytes` are of, and the selector of them, the second
  /// word's bytes from 4 on; nullopt if they are of more.
  static std::optional<std::pair<Word, uint32_t>>
  pick(ArrayRef<int64_t> bytes) {
    std::optional<int64_t> low, high;
    uint32_t selector = 0;
    for (auto [place, byte] : llvm::enumerate(bytes)) {
      // Any byte does where none is asked for.
      if (byte < 0)
        continue;
      int64_t word = byte / 4;
      if (!low)
        low = word;
      if (word != *low && !high)
        high = word;
      if (word != *low && word != *high)
        return std::nullopt;
      selector |= static_cast<uint32_t>(byte % 4 + (word == *low ? 0 : 4))
                  << (8 * place);
    }
    int64_t only = low.value_or(0);
    return std::pair(Word(only, high.value_or(only)), selector);
  }
};

/// `kvbuffer.wave_barrier` to a bare barrier: LLVM's own would drain every
/// copy in flight.
struct LowerWaveBarrier : ConvertOpToLLVMPattern<WaveBarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(WaveBarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<ROCDL::SBarrierOp>(op);
    return success();
  }
};

/// `kvbuffer.lane_any` to a vote.
struct LowerLaneAny : ConvertOpToLLVMPattern<LaneAnyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneAnyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type lanes = rewriter.getIntegerType(chipOf(op).waveSize);
    Value vote = ROCDL::BallotOp::create(rewriter, op.getLoc(), lanes,
                                         adaptor.getCondition());
    rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(
        op, LLVM::ICmpPredicate::ne, vote,
        constant(rewriter, op.getLoc(), lanes, 0));
    return success();
  }
};

/// A product that is finite (`kFiniteProductAttr`) where its first factor is:
/// no farther from zero than f32's largest numbers. (Another rounding is a
/// mode.)
struct LowerFiniteProduct : ConvertOpToLLVMPattern<arith::MulFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(arith::MulFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type f32 = rewriter.getF32Type();
    if (!op->hasAttr(kFiniteProductAttr) || op.getType() != f32)
      return rewriter.notifyMatchFailure(op, "may be infinite");
    Location loc = op.getLoc();
    auto number = [&](bool negative, bool infinite) -> Value {
      const llvm::fltSemantics &single = APFloat::IEEEsingle();
      APFloat value = infinite ? APFloat::getInf(single, negative)
                               : APFloat::getLargest(single, negative);
      return LLVM::ConstantOp::create(rewriter, loc, f32,
                                      rewriter.getFloatAttr(f32, value));
    };
    Value x = adaptor.getLhs();
    Value product = LLVM::FMulOp::create(rewriter, loc, x, adaptor.getRhs());
    Value above =
        LLVM::MaxNumOp::create(rewriter, loc, product, number(true, false));
    Value within =
        LLVM::MinNumOp::create(rewriter, loc, above, number(false, false));
    Value isFinite = LLVM::FCmpOp::create(
        rewriter, loc, LLVM::FCmpPredicate::olt,
        LLVM::FAbsOp::create(rewriter, loc, x), number(false, true));
    rewriter.replaceOpWithNewOp<LLVM::SelectOp>(op, isFinite, within, product);
    return success();
  }
};

/// `kvbuffer.lane_vote` to a vote, of waves of 32 lanes.
struct LowerLaneVote : ConvertOpToLLVMPattern<LaneVoteOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneVoteOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (chipOf(op).waveSize != 32)
      return rewriter.notifyMatchFailure(op, "more lanes than bits");
    rewriter.replaceOpWithNewOp<ROCDL::BallotOp>(op, rewriter.getI32Type(),
                                                 adaptor.getCondition());
    return success();
  }
};

/// `kvbuffer.lane_count` to a vote whose bits are counted.
struct LowerLaneCount : ConvertOpToLLVMPattern<LaneCountOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneCountOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type lanes = rewriter.getIntegerType(chipOf(op).waveSize);
    Value vote = ROCDL::BallotOp::create(rewriter, op.getLoc(), lanes,
                                         adaptor.getCondition());
    Value count = LLVM::CtPopOp::create(rewriter, op.getLoc(), vote);
    if (!lanes.isInteger(32))
      count = LLVM::TruncOp::create(rewriter, op.getLoc(),
                                    rewriter.getI32Type(), count);
    rewriter.replaceOp(op, count);
    return success();
  }
};

/// `kvbuffer.lane_arrive` to an atomic addition, between two fences if it
/// orders anything, behind both if it is early. A wait behind the first one is
/// for LLVM 22's backend, which loses its own (`TargetInfo::writeBackWait`).
struct LowerLaneArrive : ConvertOpToLLVMPattern<LaneArriveOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value at = getStridedElementPtr(
        rewriter, loc, cast<MemRefType>(op.getCounters().getType()),
        adaptor.getCounters(), adaptor.getIndices());
    if (!op.getRelaxed()) {
      LLVM::FenceOp::create(rewriter, loc, LLVM::AtomicOrdering::release,
                            kDevice);
      std::optional<TargetInfo> target = targetOf(op);
      if (target && target->writeBackWait)
        ROCDL::SWaitcntOp::create(rewriter, loc, *target->writeBackWait);
    }
    auto acquire = [&] {
      LLVM::FenceOp::create(rewriter, loc, LLVM::AtomicOrdering::acquire,
                            kDevice);
    };
    if (op.getEarly())
      acquire();
    Value before = LLVM::AtomicRMWOp::create(
        rewriter, loc, LLVM::AtomicBinOp::add, at,
        constant(rewriter, loc, rewriter.getI32Type(), 1),
        LLVM::AtomicOrdering::monotonic, kDevice);
    if (!op.getRelaxed() && !op.getEarly())
      acquire();
    rewriter.replaceOp(op, before);
    return success();
  }
};

/// `gpu.shuffle idx` among all lanes of a wave: the instruction takes the place
/// of the lane modulo their number. (Upstream asks of each lane whether there
/// is the one that it names.)
struct LowerWaveShuffle : ConvertOpToLLVMPattern<gpu::ShuffleOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value value = adaptor.getValue();
    Type type = value.getType(), word = rewriter.getI32Type();
    APInt width;
    if (op.getMode() != gpu::ShuffleMode::IDX || !op.getValid().use_empty() ||
        !type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 32 ||
        !matchPattern(op.getWidth(), m_ConstantInt(&width)) ||
        width != chipOf(op).waveSize)
      return rewriter.notifyMatchFailure(op, "not of whole words of a wave");
    Location loc = op.getLoc();
    Value place = LLVM::ShlOp::create(rewriter, loc, adaptor.getOffset(),
                                      i32(rewriter, loc, 2));
    if (type != word)
      value = LLVM::BitcastOp::create(rewriter, loc, word, value);
    value = ROCDL::DsBpermuteOp::create(rewriter, loc, word, place, value);
    if (type != word)
      value = LLVM::BitcastOp::create(rewriter, loc, type, value);
    rewriter.replaceOp(op, {value, Value()});
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

/// The chip's own instructions of `LowerMath`: LLVM's operations guard against
/// subnormal numbers.
struct Instructions {
  static Value exp2(OpBuilder &b, Location loc, Value x) {
    return ROCDL::ROCDLExp2::create(b, loc, b.getF32Type(), x);
  }
  static Value log2(OpBuilder &b, Location loc, Value x) {
    return ROCDL::ROCDLLog::create(b, loc, b.getF32Type(), x);
  }
  static Value reciprocal(OpBuilder &b, Location loc, Value x) {
    return ROCDL::ROCDLRcp::create(b, loc, b.getF32Type(), x);
  }
};

struct ConvertKVBufferToROCDLPass
    : kvbuf::impl::ConvertKVBufferToROCDLBase<ConvertKVBufferToROCDLPass> {
  using Base::Base;

  void runOnOperation() override;

private:
  /// Makes the global that stands for LDS, as large as the largest kernel asks,
  /// and takes that size out of what the launch has to bring.
  void ensureLds(gpu::GPUModuleOp module);
};

} // namespace

void ConvertKVBufferToROCDLPass::ensureLds(gpu::GPUModuleOp module) {
  MLIRContext *context = &getContext();
  int64_t size = 0;
  module.walk([&](Operation *op) {
    LaunchAttr launch = LaunchAttr::of(op);
    if (!launch)
      return;
    size = std::max(size, launch.getDynamicSharedBytes());
    op->setAttr(KVBufferDialect::kKernelAttr,
                launch.with("dynamic_shared_bytes",
                            Builder(context).getI64IntegerAttr(0)));
  });
  if (!size)
    return;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Location loc = module.getLoc();
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), size);
  auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false,
                                       LLVM::Linkage::Internal, kLdsName,
                                       Attribute(), /*alignment=*/1024, kLds);
  b.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(b, loc, LLVM::UndefOp::create(b, loc, type));
}

void ConvertKVBufferToROCDLPass::runOnOperation() {
  MLIRContext *context = &getContext();
  gpu::GPUModuleOp module = getOperation();
  std::optional<TargetInfo> info = targetOf(module);
  if (!info || info->vendor != Vendor::AMD) {
    module.emitOpError() << "needs a '" << KVBufferDialect::kTargetAttr
                         << "' on the module that names an AMD chip";
    return signalPassFailure();
  }
  FailureOr<amdgpu::Chipset> chipset = amdgpu::Chipset::parse(info->chip);
  if (failed(chipset)) {
    module.emitOpError() << "is for " << info->chip
                         << ", which is not a name that LLVM knows";
    return signalPassFailure();
  }
  if (failed(checkLanes(module, *info)))
    return signalPassFailure();
  ensureLds(module);
  if (failed(expandForLLVM(module)))
    return signalPassFailure();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  amdgpu::populateCommonGPUTypeAndAttributeConversions(converter);

  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateAMDGPUToROCDLConversionPatterns(converter, patterns, *chipset);
  populateGpuGlobalIdPatterns(patterns);
  populateGpuToROCDLConversionPatterns(converter, patterns,
                                       gpu::amd::Runtime::Unknown, *chipset);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateKVBufferToROCDLConversionPatterns(converter, patterns);

  LLVMConversionTarget target(*context);
  configureGpuToROCDLConversionLegality(target);
  target.addIllegalDialect<amdgpu::AMDGPUDialect, KVBufferDialect>();
  target.addLegalDialect<ROCDL::ROCDLDialect>();
  addOwnMath(patterns, converter, target);
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return signalPassFailure();
  module.walk([&](LLVM::LLVMFuncOp func) {
    if (func->hasAttr(KVBufferDialect::kPhaseAttr))
      finishKernel(func, *info);
  });
}

void kvbuf::populateKVBufferToROCDLConversionPatterns(
    LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  converter.addConversion([](RangeType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), kBuffer);
  });
  patterns.add<LowerLaneMma, LowerDramRange, LowerRangeLoad, LowerByteShuffle,
               LowerRangeCopy, LowerLaneCopy, LowerBoxCopy, LowerTurnedRead,
               LowerPairSum, LowerWaveBarrier, LowerLaneAny, LowerLaneVote,
               LowerLaneCount, LowerLaneArrive>(converter);
  addCounterPatterns(patterns, converter, "workgroup", kDevice);
  // Ahead of upstream's patterns for the same ops.
  patterns.add<LowerDynamicLds, LowerWaveShuffle, LowerFiniteProduct>(
      converter, PatternBenefit(10));
  addMathPatterns<Instructions>(patterns, converter, PatternBenefit(10));
}
