//===- MatrixPatterns.cpp - Products and packed elements on AMD -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVBufferToROCDL/RocdlPatterns.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::torocdl;

namespace {

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

} // namespace

void torocdl::addMatrixPatterns(RewritePatternSet &patterns,
                                LLVMTypeConverter &converter) {
  patterns.add<LowerLaneMma, LowerPairSum, LowerByteShuffle>(converter);
}
