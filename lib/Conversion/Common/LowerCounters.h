//===- LowerCounters.h - Counters in LDS ------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `kvbuffer.counter_add` and `kvbuffer.counter_read`, the same for every
/// vendor but for what the scope of a block is called, and atomic operations
/// on global memory without order (`kRelaxedAttr`). Order is by fences:
/// backends keep those, and not all keep that of the operation.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_COMMON_LOWERCOUNTERS_H
#define KVBUFFER_LIB_CONVERSION_COMMON_LOWERCOUNTERS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/RelaxedAtomics.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf {

/// A pattern for an op on a counter that all waves of a block see.
template <typename Op>
struct CounterPattern : mlir::ConvertOpToLLVMPattern<Op> {
  CounterPattern(const mlir::LLVMTypeConverter &converter,
                 llvm::StringLiteral block)
      : mlir::ConvertOpToLLVMPattern<Op>(converter), block(block) {}

  /// The counter's address.
  mlir::Value place(mlir::ConversionPatternRewriter &rewriter, Op op,
                    typename Op::Adaptor adaptor) const {
    return this->getStridedElementPtr(
        rewriter, op.getLoc(),
        mlir::cast<mlir::MemRefType>(op.getWords().getType()),
        adaptor.getWords(), mlir::ValueRange{adaptor.getIndex()});
  }

  /// The scope of a block.
  llvm::StringLiteral block;
};

/// To an atomic addition that goes round, behind a release.
struct LowerCounterAdd : CounterPattern<CounterAddOp> {
  using CounterPattern::CounterPattern;

  llvm::LogicalResult
  matchAndRewrite(CounterAddOp op, OpAdaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    mlir::Value at = place(rewriter, op, adaptor);
    mlir::LLVM::FenceOp::create(rewriter, op.getLoc(),
                                mlir::LLVM::AtomicOrdering::release, block);
    rewriter.replaceOpWithNewOp<mlir::LLVM::AtomicRMWOp>(
        op, mlir::LLVM::AtomicBinOp::uinc_wrap, at, adaptor.getLast(),
        mlir::LLVM::AtomicOrdering::monotonic, block);
    return mlir::success();
  }
};

/// To an atomic load, before an acquire.
struct LowerCounterRead : CounterPattern<CounterReadOp> {
  using CounterPattern::CounterPattern;

  llvm::LogicalResult
  matchAndRewrite(CounterReadOp op, OpAdaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    mlir::Value at = place(rewriter, op, adaptor);
    mlir::Value count = mlir::LLVM::LoadOp::create(
        rewriter, op.getLoc(), rewriter.getI32Type(), at, /*alignment=*/4,
        /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/false,
        /*isInvariantGroup=*/false, mlir::LLVM::AtomicOrdering::monotonic,
        block);
    mlir::LLVM::FenceOp::create(rewriter, op.getLoc(),
                                mlir::LLVM::AtomicOrdering::acquire, block);
    rewriter.replaceOp(op, count);
    return mlir::success();
  }
};

/// To one of the scope of the device, where it says so.
struct LowerRelaxedAtomic
    : mlir::ConvertOpToLLVMPattern<mlir::memref::AtomicRMWOp> {
  LowerRelaxedAtomic(const mlir::LLVMTypeConverter &converter,
                     llvm::StringLiteral device)
      : ConvertOpToLLVMPattern(converter, mlir::PatternBenefit(10)),
        device(device) {}

  llvm::LogicalResult
  matchAndRewrite(mlir::memref::AtomicRMWOp op, OpAdaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    using Kind = mlir::arith::AtomicRMWKind;
    bool adds = op.getKind() == Kind::addi;
    if (!op->hasAttr(kRelaxedAttr) || !(adds || op.getKind() == Kind::assign))
      return rewriter.notifyMatchFailure(op, "has an order, or is another");
    mlir::Value at =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices());
    rewriter.replaceOpWithNewOp<mlir::LLVM::AtomicRMWOp>(
        op, adds ? mlir::LLVM::AtomicBinOp::add : mlir::LLVM::AtomicBinOp::xchg,
        at, adaptor.getValue(), mlir::LLVM::AtomicOrdering::monotonic, device);
    return mlir::success();
  }

  /// The scope of the device.
  llvm::StringLiteral device;
};

/// `block`, `device`: what the vendor calls their scopes.
inline void addCounterPatterns(mlir::RewritePatternSet &patterns,
                               const mlir::LLVMTypeConverter &converter,
                               llvm::StringLiteral block,
                               llvm::StringLiteral device) {
  patterns.add<LowerCounterAdd, LowerCounterRead>(converter, block);
  patterns.add<LowerRelaxedAtomic>(converter, device);
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_COMMON_LOWERCOUNTERS_H
