//===- BufferizableOpInterfaceImpl.cpp - Bufferization of problems --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Problems on tensors become problems on memrefs: destinations are written in
/// place where nobody needs their old contents, and a tensor of keys or values
/// is a dense cache of its buffer. Caches of tensors become caches of their
/// buffers.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/BufferizableOpInterfaceImpl.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace kvbuf;

/// Whether an operand's kernel needs the elements of a head side by side, which
/// a layout of unknown strides does not promise.
static bool hasUnknownRows(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return failed(type.getStridesAndOffset(strides, offset)) ||
         (!strides.empty() && strides.back() != 1);
}

static constexpr llvm::StringLiteral kExpectedRows =
    ": expected elements of the last dimension side by side, a stride of 1; "
    "function-boundary-type-conversion=identity-layout-map makes arguments so";

/// Lets the regions of an op, whose operands are buffers, read these.
static LogicalResult bufferizeRegions(AttentionOp op, RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  for (Region *region : {&op.getScore(), &op.getVisible()})
    for (BlockArgument arg : region->getArguments())
      for (Operation *user : llvm::make_early_inc_range(arg.getUsers())) {
        if (!isa<MemRefType>(arg.getType()))
          continue;
        rewriter.setInsertionPoint(user);
        if (auto extract = dyn_cast<tensor::ExtractOp>(user))
          rewriter.replaceOpWithNewOp<memref::LoadOp>(extract, arg,
                                                      extract.getIndices());
        else if (auto dim = dyn_cast<tensor::DimOp>(user))
          rewriter.replaceOpWithNewOp<memref::DimOp>(dim, arg, dim.getIndex());
        else if (auto buffer = dyn_cast<ToBufferOp>(user);
                 buffer && memref::CastOp::areCastCompatible(arg.getType(),
                                                             buffer.getType()))
          buffer.getType() == arg.getType()
              ? rewriter.replaceOp(buffer, arg)
              : (void)rewriter.replaceOpWithNewOp<memref::CastOp>(
                    buffer, buffer.getType(), arg);
        else if (!isa<memref::LoadOp, memref::DimOp>(user))
          return user->emitOpError()
                 << "reads a capture of a kvbuffer.attention; expected "
                    "tensor.extract or tensor.dim";
      }
  return success();
}

/// Makes the same op on buffers and puts it in the place of `op`. An operand
/// that `takesCache` is a tensor, too, becomes a dense cache of its buffer.
template <typename Op>
static LogicalResult
bufferizeProblem(Op op, RewriterBase &rewriter,
                 const BufferizationOptions &options,
                 const BufferizationState &state,
                 function_ref<bool(OpOperand &)> takesCache) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands, results;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!isa<TensorType>(value.getType())) {
      operands.push_back(value);
      continue;
    }
    FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
    if (failed(buffer))
      return failure();
    auto type = dyn_cast<MemRefType>(buffer->getType());
    if (!type || hasUnknownRows(type))
      return op.emitOpError() << "cannot use the buffer of operand "
                              << operand.getOperandNumber() << ", of type "
                              << buffer->getType() << kExpectedRows;
    if (cast<DestinationStyleOpInterface>(op.getOperation())
            .isDpsInit(&operand))
      results.push_back(*buffer);
    if (takesCache(operand))
      buffer = MakeCacheOp::create(
                   rewriter, op.getLoc(), denseCacheOf(value.getType()),
                   *buffer, /*indices=*/ValueRange(), /*scales=*/Value(),
                   /*max_prompt=*/Value(), /*max_context=*/Value())
                   .getCache();
    operands.push_back(*buffer);
  }
  Operation *onBuffers = cloneProblem(rewriter, op, operands);
  if (auto attention = dyn_cast<AttentionOp>(onBuffers))
    if (failed(bufferizeRegions(attention, rewriter)))
      return failure();
  replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

Operation *kvbuf::cloneProblem(OpBuilder &b, Operation *problem,
                               ValueRange operands) {
  // (mlir::clone takes no regions that are empty.)
  Operation *copy =
      mlir::cloneWithoutRegions(b, problem, /*newResultTypes=*/{}, operands);
  for (auto [from, to] :
       llvm::zip_equal(problem->getRegions(), copy->getRegions())) {
    IRMapping values;
    if (!from.empty())
      from.cloneInto(&to, values);
  }
  if (auto attention = dyn_cast<AttentionOp>(copy))
    attention.updateRegionTypes();
  return copy;
}

namespace {

struct AttentionModel
    : DstBufferizableOpInterfaceExternalModel<AttentionModel, AttentionOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    // Rows that no sequence has keep what they hold.
    return cast<AttentionOp>(op).isRagged() ||
           !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  bool bufferizesToElementwiseAccess(Operation *, const AnalysisState &,
                                     ArrayRef<OpOperand *>) const {
    return false;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto attention = cast<AttentionOp>(op);
    return bufferizeProblem(attention, rewriter, options, state,
                            [&](OpOperand &operand) {
                              return &operand == &attention.getKeysMutable() ||
                                     &operand == &attention.getValuesMutable();
                            });
  }
};

struct CacheAppendModel
    : DstBufferizableOpInterfaceExternalModel<CacheAppendModel, CacheAppendOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    return bufferizeProblem(
        cast<CacheAppendOp>(op), rewriter, options, state,
        [&](OpOperand &operand) {
          return cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
        });
  }
};

/// Whether an op may store something in a cache that is its operand.
bool storesInto(OpOperand &cache) {
  Operation *op = cache.getOwner();
  if (isa<AttentionOp, CacheTensorOp>(op))
    return false;
  if (auto append = dyn_cast<CacheAppendOp>(op))
    return &cache == &append.getKCacheMutable() ||
           llvm::is_contained(
               llvm::make_pointer_range(append.getVCacheMutable()), &cache);
  return !hasSingleEffect<MemoryEffects::Read>(op);
}

struct MakeCacheModel
    : BufferizableOpInterface::ExternalModel<MakeCacheModel, MakeCacheOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    auto make = cast<MakeCacheOp>(op);
    bool isIndex = llvm::is_contained(
        llvm::make_pointer_range(make.getIndicesMutable()), &operand);
    return !isIndex && llvm::any_of(make.getCache().getUses(), storesInto);
  }

  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }

  /// The analysis takes the cache for what it is where it is made. So nobody
  /// else may write its buffers from there to its last use.
  LogicalResult verifyAnalysis(Operation *op, const AnalysisState &any) const {
    auto &state = static_cast<const OneShotAnalysisState &>(any);
    Value cache = cast<MakeCacheOp>(op).getCache();
    Operation *last = op;
    for (Operation *user : cache.getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>() ||
          llvm::is_contained(user->getResultTypes(), cache.getType()))
        return user->emitOpError()
               << "passes on a cache of tensors; expected it to be used in its "
                  "function, without another name";
      Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
      if (there && last->isBeforeInBlock(there))
        last = there;
    }
    Operation *writer = nullptr;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<TensorType>(operand.get().getType()) ||
          !state.isInPlace(operand))
        continue;
      state.applyOnAliases(operand.get(), [&](Value alias) {
        for (OpOperand &use : alias.getUses()) {
          Operation *there =
              op->getBlock()->findAncestorOpInBlock(*use.getOwner());
          auto tensor = dyn_cast<CacheTensorOp>(use.getOwner());
          bool between = there && there != op && op->isBeforeInBlock(there) &&
                         !last->isBeforeInBlock(there);
          if (between && !(tensor && tensor.getCache() == cache) &&
              isa<TensorType>(use.get().getType()) && state.isInPlace(use) &&
              state.bufferizesToMemoryWrite(use))
            writer = use.getOwner();
        }
      });
    }
    if (!writer)
      return success();
    InFlightDiagnostic diag = writer->emitOpError()
                              << "writes a tensor in place while a cache that "
                                 "is made of it is in use";
    diag.attachNote(op->getLoc())
        << "the cache is made here; make another one after the write";
    return diag;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto make = cast<MakeCacheOp>(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      auto type = dyn_cast<MemRefType>(buffer->getType());
      if (!type || (operand == make.getData() && hasUnknownRows(type)))
        return op->emitOpError()
               << "cannot use the buffer of a tensor, of type "
               << buffer->getType() << kExpectedRows;
      operands.push_back(*buffer);
    }
    rewriter.setInsertionPoint(op);
    Operation *onBuffers =
        mlir::clone(rewriter, op, op->getResultTypes(), operands);
    rewriter.replaceOp(op, onBuffers->getResults());
    return success();
  }
};

struct CacheTensorModel
    : BufferizableOpInterface::ExternalModel<CacheTensorModel, CacheTensorOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return true;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Equivalent}};
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto tensor = cast<CacheTensorOp>(op);
    auto make = tensor.getCache().getDefiningOp<MakeCacheOp>();
    FailureOr<Value> into =
        getBuffer(rewriter, tensor.getInto(), options, state);
    if (failed(into))
      return failure();
    // The cache is of that buffer, unless someone else reads what it held.
    Value from = tensor.getScales() ? make.getScales() : make.getData();
    rewriter.setInsertionPoint(op);
    if (from != *into &&
        failed(options.createMemCpy(rewriter, op->getLoc(), from, *into)))
      return failure();
    replaceOpWithBufferizedValues(rewriter, op, *into);
    return success();
  }
};

} // namespace

void kvbuf::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    AttentionOp::attachInterface<AttentionModel>(*context);
    CacheAppendOp::attachInterface<CacheAppendModel>(*context);
    MakeCacheOp::attachInterface<MakeCacheModel>(*context);
    CacheTensorOp::attachInterface<CacheTensorModel>(*context);
    context->loadDialect<BufferizationDialect>();
  });
}
