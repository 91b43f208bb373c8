//===- KVBufferToNVVM.cpp - Lower per-lane code to llvm and nvvm *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/CheckKernel.h"
#include "Common/LowerCounters.h"
#include "Common/LowerMath.h"
#include "DependentLaunches.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FiniteProduct.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTKVBUFFERTONVVM
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {

/// `kvbuffer.lane_mma` to `mma.sync`. Operands are words of two elements: i32
/// for bf16, vectors of two for f16, as the op wants them.
struct LowerLaneMma : ConvertOpToLLVMPattern<LaneMmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto vector = cast<VectorType>(op.getC().getType());
    Type element =
        cast<VectorType>(op.getA().front().getType()).getElementType();
    if (element.getIntOrFloatBitWidth() == 8)
      return lowerFloat8(op, adaptor, rewriter);
    if (op.getShape() != ArrayRef<int64_t>{16, 8, 16} ||
        !vector.getElementType().isF32() ||
        !(element.isBF16() || element.isF16()))
      return rewriter.notifyMatchFailure(op, "no mma.sync of this shape");
    auto words = [&](ArrayRef<ValueRange> operands) {
      SmallVector<Value> result;
      for (ValueRange range : operands) {
        Value word = range.front();
        if (element.isBF16())
          word = LLVM::BitcastOp::create(rewriter, loc, rewriter.getI32Type(),
                                         word);
        result.push_back(word);
      }
      return result;
    };
    SmallVector<Value> a = words(adaptor.getA()), b = words(adaptor.getB()), c;
    Value acc = adaptor.getC().front();
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      c.push_back(LLVM::ExtractElementOp::create(rewriter, loc, acc,
                                                 constant(rewriter, loc, i)));
    Type f32 = rewriter.getF32Type();
    auto result = LLVM::LLVMStructType::getLiteral(
        getContext(), SmallVector<Type>(vector.getNumElements(), f32));
    NVVM::MMATypes type =
        element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
    Value mma = NVVM::MmaOp::create(
        rewriter, loc, result, a, b, c, op.getShape(), std::nullopt,
        std::nullopt, std::array<NVVM::MMATypes, 2>{type, type},
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    Value out = LLVM::PoisonOp::create(rewriter, loc, vector);
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      out = LLVM::InsertElementOp::create(
          rewriter, loc, out,
          LLVM::ExtractValueOp::create(rewriter, loc, mma, i),
          constant(rewriter, loc, i));
    rewriter.replaceOp(op, out);
    return success();
  }

private:
  /// The name of an 8-bit float in PTX; empty for others.
  static StringRef ptxName(Type type) {
    return isa<Float8E4M3FNType>(type) ? "e4m3"
           : isa<Float8E5M2Type>(type) ? "e5m2"
                                       : "";
  }

  /// Products of 8-bit floats, four to a word: LLVM 22 has no op for them.
  static LogicalResult lowerFloat8(LaneMmaOp op, OneToNOpAdaptor adaptor,
                                   ConversionPatternRewriter &rewriter) {
    Location loc = op.getLoc();
    auto elementOf = [](Value word) {
      return cast<VectorType>(word.getType()).getElementType();
    };
    StringRef a = ptxName(elementOf(op.getA().front())),
              b = ptxName(elementOf(op.getB().front()));
    int64_t halves = op.getShape()[1] / 8;
    bool isKnown = op.getShape() == ArrayRef<int64_t>{16, 8, 32} ||
                   op.getShape() == ArrayRef<int64_t>{16, 16, 32};
    if (!isKnown || a.empty() || b.empty())
      return rewriter.notifyMatchFailure(op, "no mma.sync of this shape");
    auto words = [&](ArrayRef<ValueRange> ranges) {
      return llvm::map_to_vector(ranges, [&](ValueRange word) -> Value {
        return LLVM::BitcastOp::create(rewriter, loc, rewriter.getI32Type(),
                                       word.front());
      });
    };
    SmallVector<Value> left = words(adaptor.getA()),
                       right = words(adaptor.getB());
    std::string text = ("mma.sync.aligned.m16n8k32.row.col.f32." + a + "." + b +
                        ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
                        "{$10, $11, $12, $13};")
                           .str();
    constexpr int64_t results = 4;
    auto type = LLVM::LLVMStructType::getLiteral(
        op.getContext(), SmallVector<Type>(results, rewriter.getF32Type()));
    Value out = adaptor.getC().front();
    int64_t count = right.size() / halves;
    // Two side by side share A.
    for (int64_t half = 0; half < halves; ++half) {
      SmallVector<Value> operands(left);
      llvm::append_range(operands, ArrayRef(right).slice(half * count, count));
      for (int64_t i = 0; i < results; ++i)
        operands.push_back(LLVM::ExtractElementOp::create(
            rewriter, loc, out, constant(rewriter, loc, half * results + i)));
      // All lanes execute it together: not to be moved into a branch.
      auto product = LLVM::InlineAsmOp::create(
          rewriter, loc, type, operands, text,
          "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", /*has_side_effects=*/true,
          /*is_align_stack=*/false, LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(op.getContext(), LLVM::AsmDialect::AD_ATT),
          /*operand_attrs=*/ArrayAttr());
      for (int64_t i = 0; i < results; ++i)
        out = LLVM::InsertElementOp::create(
            rewriter, loc, out,
            LLVM::ExtractValueOp::create(rewriter, loc, product.getResult(0),
                                         i),
            constant(rewriter, loc, half * results + i));
    }
    rewriter.replaceOp(op, out);
    return success();
  }

  static Value constant(OpBuilder &b, Location loc, int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                    b.getI32IntegerAttr(value));
  }
};

/// The approximate instructions of `LowerMath`.
struct Instructions {
  static Value exp2(OpBuilder &b, Location loc, Value x) {
    return call(b, loc, "llvm.nvvm.ex2.approx.ftz.f32", x);
  }
  static Value log2(OpBuilder &b, Location loc, Value x) {
    return call(b, loc, "llvm.nvvm.lg2.approx.ftz.f", x);
  }
  static Value reciprocal(OpBuilder &b, Location loc, Value x) {
    return call(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
  }
  static Value abs(OpBuilder &b, Location loc, Value x) {
    return call(b, loc, "llvm.nvvm.fabs.f32", x);
  }

private:
  static Value call(OpBuilder &b, Location loc, StringRef name, Value x) {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                         b.getStringAttr(name), ValueRange{x})
        .getResult(0);
  }
};

/// A magnitude: a modifier of an instruction's operand, where upstream calls a
/// library.
struct LowerAbs : ConvertOpToLLVMPattern<math::AbsFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(math::AbsFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a single f32");
    rewriter.replaceOp(
        op, Instructions::abs(rewriter, op.getLoc(), adaptor.getOperand()));
    return success();
  }
};

/// A product that is finite (`kFiniteProductAttr`): cut off.
struct LowerFiniteProduct : ConvertOpToLLVMPattern<arith::MulFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(arith::MulFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->hasAttr(kFiniteProductAttr) || !op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "may be infinite");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, rewriter.getF32Type(), rewriter.getStringAttr("llvm.nvvm.mul.rz.f"),
        ValueRange{adaptor.getLhs(), adaptor.getRhs()});
    return success();
  }
};

/// Tensor maps lie in the parameters themselves, which no thread writes: the
/// copy engine reads them there. CUtensorMap is 128 bytes, aligned to 64.
static void passTensorMapsByValue(LLVM::LLVMFuncOp func) {
  LaunchAttr launch = LaunchAttr::of(func);
  ArrayAttr args = launch ? launch.getArgs() : ArrayAttr();
  if (!args)
    return;
  Builder b(func.getContext());
  for (auto [i, arg] : llvm::enumerate(args.getAsRange<ArgumentAttr>())) {
    if (i >= func.getNumArguments() || arg.getKind() != ArgumentKind::TensorMap)
      continue;
    func.setArgAttr(
        i, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), 128)));
    func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(64));
    func.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                    b.getUnitAttr());
  }
}

/// `kvbuffer.lane_any` and `kvbuffer.lane_vote` to a vote of all lanes.
template <typename Op, NVVM::VoteSyncKind kind>
struct LowerVote : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value all =
        LLVM::ConstantOp::create(rewriter, op.getLoc(), rewriter.getI32Type(),
                                 rewriter.getI32IntegerAttr(-1));
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(
        op, op->getResult(0).getType(), all, adaptor.getCondition(), kind);
    return success();
  }
};
using LowerLaneAny = LowerVote<LaneAnyOp, NVVM::VoteSyncKind::any>;
using LowerLaneVote = LowerVote<LaneVoteOp, NVVM::VoteSyncKind::ballot>;

/// `kvbuffer.barrier_any` to a barrier that reduces predicates. By its
/// intrinsic: LLVM 22's `nvvm.barrier` reduces at the block's barrier 0 only.
struct LowerBarrierAny : ConvertOpToLLVMPattern<BarrierAnyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(BarrierAnyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value threads =
        LLVM::ConstantOp::create(rewriter, op.getLoc(), rewriter.getI32Type(),
                                 rewriter.getI32IntegerAttr(op.getThreads()));
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, rewriter.getI1Type(),
        rewriter.getStringAttr("llvm.nvvm.barrier.cta.red.or.aligned.count"),
        ValueRange{adaptor.getId(), threads, adaptor.getCondition()});
    return success();
  }
};

/// `kvbuffer.lane_count` to a vote whose bits are counted.
struct LowerLaneCount : ConvertOpToLLVMPattern<LaneCountOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneCountOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type word = rewriter.getI32Type();
    Value all = LLVM::ConstantOp::create(rewriter, op.getLoc(), word,
                                         rewriter.getI32IntegerAttr(-1));
    Value vote = NVVM::VoteSyncOp::create(rewriter, op.getLoc(), word, all,
                                          adaptor.getCondition(),
                                          NVVM::VoteSyncKind::ballot);
    rewriter.replaceOpWithNewOp<LLVM::CtPopOp>(op, vote);
    return success();
  }
};

/// `kvbuffer.lane_arrive` to an atomic addition, between two fences if it
/// orders anything, behind one that acquires if it is early: LLVM 22's code for
/// atomic operations drops their order (of `atomicrmw acq_rel` it makes a plain
/// `atom.global.add`).
struct LowerLaneArrive : ConvertOpToLLVMPattern<LaneArriveOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(LaneArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value one = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(),
                                         rewriter.getI32IntegerAttr(1));
    Value at = getStridedElementPtr(
        rewriter, loc, cast<MemRefType>(op.getCounters().getType()),
        adaptor.getCounters(), adaptor.getIndices());
    if (!op.getRelaxed())
      LLVM::FenceOp::create(rewriter, loc,
                            op.getEarly() ? LLVM::AtomicOrdering::acquire
                                          : LLVM::AtomicOrdering::release,
                            "device");
    Value before = LLVM::AtomicRMWOp::create(
        rewriter, loc, LLVM::AtomicBinOp::add, at, one,
        LLVM::AtomicOrdering::monotonic, "device");
    if (!op.getRelaxed() && !op.getEarly())
      LLVM::FenceOp::create(rewriter, loc, LLVM::AtomicOrdering::acquire,
                            "device");
    rewriter.replaceOp(op, before);
    return success();
  }
};

/// LLVM's prefetches are nothing to its backend; this one asks L2 for a line.
struct LowerPrefetch : ConvertOpToLLVMPattern<memref::PrefetchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(memref::PrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices());
    unsigned space =
        cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
    if (space != 0 && space != unsigned(NVVM::NVVMMemorySpace::Global)) {
      rewriter.eraseOp(op);
      return success();
    }
    rewriter.replaceOpWithNewOp<NVVM::PrefetchOp>(
        op,
        NVVM::PrefetchCacheLevelAttr::get(rewriter.getContext(),
                                          NVVM::PrefetchCacheLevel::L2),
        NVVM::CacheEvictionPriorityAttr(), address, /*predicate=*/Value(),
        /*tensormap=*/UnitAttr(), /*uniform=*/UnitAttr(),
        /*in_param_space=*/UnitAttr());
    return success();
  }
};

/// What a loop's annotation says reaches LLVM as an attribute of the branches'
/// own; upstream's conversions of loops leave a discardable one.
void keepLoopAnnotations(Operation *module) {
  constexpr StringLiteral name = "llvm.loop_annotation";
  module->walk([&](Operation *op) {
    auto keep = [&](auto branch) {
      if (auto annotation =
              branch->template getAttrOfType<LLVM::LoopAnnotationAttr>(name)) {
        branch.setLoopAnnotationAttr(annotation);
        branch->removeAttr(name);
      }
    };
    llvm::TypeSwitch<Operation *>(op).Case<LLVM::BrOp, LLVM::CondBrOp>(keep);
  });
}

struct ConvertKVBufferToNVVMPass
    : kvbuf::impl::ConvertKVBufferToNVVMBase<ConvertKVBufferToNVVMPass> {
  using Base::Base;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    gpu::GPUModuleOp module = getOperation();
    auto parent = module->getParentOfType<ModuleOp>();
    auto chip =
        parent ? parent->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr)
               : StringAttr();
    if (chip) {
      std::optional<TargetInfo> info = lookupTarget(chip.getValue());
      if (!info || info->vendor != Vendor::NVIDIA) {
        module.emitOpError()
            << "is for '" << chip.getValue() << "', which is no NVIDIA chip";
        return signalPassFailure();
      }
      if (failed(checkLanes(module, *info)))
        return signalPassFailure();
      if (!info->whyNot("nvvm.griddepcontrol"))
        for (auto kernel : module.getOps<gpu::GPUFuncOp>())
          overlapLaunches(kernel, *info);
    }
    if (failed(expandForLLVM(module)))
      return signalPassFailure();
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    nvgpu::populateCommonGPUTypeAndAttributeConversions(converter);
    converter.addConversion([&](nvgpu::DeviceAsyncTokenType type) -> Type {
      return converter.convertType(IntegerType::get(type.getContext(), 32));
    });

    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateGpuGlobalIdPatterns(patterns);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    populateGpuSubgroupReduceOpLoweringPattern(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateKVBufferToNVVMConversionPatterns(converter, patterns);

    LLVMConversionTarget target(*context);
    configureGpuToNVVMConversionLegality(target);
    target.addIllegalDialect<nvgpu::NVGPUDialect>();
    target.addLegalDialect<NVVM::NVVMDialect>();
    addOwnMath(patterns, converter, target);
    // LLVM 22 has no op for all forms of these.
    target.addDynamicallyLegalDialect<KVBufferDialect>(
        [](Operation *op) { return op->hasTrait<UntilTranslation>(); });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    keepLoopAnnotations(module);

    bool hasRings = false;
    module.walk([&](LLVM::LLVMFuncOp func) {
      if (!func->hasAttr(KVBufferDialect::kPhaseAttr))
        return;
      // Subnormal scores and probabilities are nothing; keeping them costs
      // instructions around every exponential.
      func.setPassthroughAttr(ArrayAttr::get(
          context,
          {ArrayAttr::get(context,
                          {StringAttr::get(context, "denormal-fp-math-f32"),
                           StringAttr::get(context, "preserve-sign")})}));
      passTensorMapsByValue(func);
      auto schedule =
          func->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
      bool rings = schedule && schedule.getMovingTeam();
      func.walk([&](NVVM::SetMaxRegisterOp) { rings = true; });
      hasRings |= rings;
      // Registers that teams pass to each other are counted from an equal share
      // of one block's; without this the assembler ignores the change.
      // A block that joins partial results has as many of them on their way as
      // registers hold; without this the assembler keeps to fewer.
      auto threads = func->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getMaxntidAttrName());
      bool joins = schedule && schedule.getSplitKeys() && threads &&
                   threads[0] > kWarpSize;
      if (rings || joins)
        func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      Builder(context).getI32IntegerAttr(1));
      func->setAttr(KVBufferDialect::kPhaseAttr,
                    PhaseAttr::get(context, Phase::Target));
    });
    // Swizzles of the copy engine and the matrix unit look at address bits: a
    // tile begins where those of its first row are 0.
    if (hasRings)
      module.walk([](LLVM::GlobalOp global) {
        if (global.getAddrSpace() != unsigned(NVVM::NVVMMemorySpace::Shared))
          return;
        global.setAlignment(1024);
        // Of dynamic size: one of size 0 would take a byte, and all that a
        // block may have is asked for.
        global.setLinkage(LLVM::Linkage::External);
      });
  }
};
} // namespace

void kvbuf::populateKVBufferToNVVMConversionPatterns(
    const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerLaneMma, LowerLaneAny, LowerLaneVote, LowerLaneCount,
               LowerBarrierAny, LowerLaneArrive>(converter);
  addCounterPatterns(patterns, converter, "block", "device");
  // Ahead of upstream's patterns for the same ops.
  addMathPatterns<Instructions>(patterns, converter, PatternBenefit(10));
  patterns.add<LowerAbs, LowerPrefetch, LowerFiniteProduct>(converter,
                                                            PatternBenefit(10));
}
