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
#include "KVBufferToROCDL/RocdlPatterns.h"
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
#include "mlir/Transforms/DialectConversion.h"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTKVBUFFERTOROCDL
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::torocdl;

/// The scope that all blocks of a launch are in.
static constexpr StringLiteral kDevice = "agent";

TargetInfo torocdl::chipOf(Operation *op) {
  if (std::optional<TargetInfo> target = targetOf(op))
    return *target;
  return *lookupTarget(kDefaultAMDChip);
}

Value torocdl::constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value));
}

Value torocdl::i32(OpBuilder &b, Location loc, int64_t value) {
  return constant(b, loc, b.getI32Type(), value);
}

namespace {

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
/// orders anything, behind the second one alone if it is early. A wait behind
/// the first one is for LLVM 22's backend, which loses its own
/// (`TargetInfo::writeBackWait`).
struct LowerLaneArrive : ConvertOpToLLVMPattern<LaneArriveOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value at = getStridedElementPtr(
        rewriter, loc, cast<MemRefType>(op.getCounters().getType()),
        adaptor.getCounters(), adaptor.getIndices());
    if (!op.getRelaxed() && !op.getEarly()) {
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
  addMatrixPatterns(patterns, converter);
  addMemoryPatterns(patterns, converter);
  patterns.add<LowerWaveBarrier, LowerLaneAny, LowerLaneVote, LowerLaneCount,
               LowerLaneArrive>(converter);
  addCounterPatterns(patterns, converter, "workgroup", kDevice);
  // Ahead of upstream's patterns for the same ops.
  patterns.add<LowerWaveShuffle, LowerFiniteProduct>(converter,
                                                     PatternBenefit(10));
  addMathPatterns<Instructions>(patterns, converter, PatternBenefit(10));
}
