//===- Gemm.cpp - Products of matrices: op and interface
//---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "kvbuffer/Programs/Programs.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace kvbuf;

#define GET_OP_CLASSES
#include "Gemm/GemmOps.cpp.inc"

std::array<int64_t, 3> GemmOp::getSizes() {
  auto sizeOf = [](Value matrix, unsigned dim) {
    return cast<ShapedType>(matrix.getType()).getDimSize(dim);
  };
  auto first = [](int64_t one, int64_t other) {
    return ShapedType::isDynamic(one) ? other : one;
  };
  bool transposed = getTransposeB();
  return {first(sizeOf(getA(), 0), sizeOf(getOut(), 0)),
          first(sizeOf(getB(), transposed ? 0 : 1), sizeOf(getOut(), 1)),
          first(sizeOf(getA(), 1), sizeOf(getB(), transposed ? 1 : 0))};
}

LogicalResult GemmOp::verify() {
  auto a = cast<ShapedType>(getA().getType()),
       b = cast<ShapedType>(getB().getType()),
       out = cast<ShapedType>(getOut().getType());
  if (a.getElementType() != b.getElementType())
    return emitOpError() << "(C1) multiplies elements of " << a.getElementType()
                         << " by elements of " << b.getElementType()
                         << "; expected one type";
  std::array<int64_t, 3> sizes = getSizes();
  bool transposed = getTransposeB();
  for (auto [type, rows, cols] :
       {std::tuple{a, sizes[0], sizes[2]},
        {b, sizes[transposed ? 1 : 2], sizes[transposed ? 2 : 1]},
        {out, sizes[0], sizes[1]}})
    for (auto [has, expected] :
         {std::pair{type.getDimSize(0), rows}, {type.getDimSize(1), cols}})
      if (!ShapedType::isDynamic(has) && has != expected)
        return emitOpError()
               << "(C2) has an operand of " << type << ", whose size " << has
               << " does not fit the others'; expected " << expected;
  for (ShapedType type : {a, b, out}) {
    if (isa<TensorType>(type) != isOnTensors())
      return emitOpError() << "(C4) has an operand of " << type
                           << " beside an output of " << out
                           << "; expected all to be tensors, or all memrefs";
    SmallVector<int64_t> strides;
    int64_t offset;
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && (failed(memref.getStridesAndOffset(strides, offset)) ||
                   strides.back() != 1))
      return emitOpError() << "(C3) has an operand of " << type
                           << "; expected elements of a row side by side, a "
                              "last stride of 1";
  }
  return success();
}

void GemmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (isOnTensors())
    return;
  effects.emplace_back(MemoryEffects::Read::get(), &getAMutable());
  effects.emplace_back(MemoryEffects::Read::get(), &getBMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getOutMutable());
}

LogicalResult GemmOp::reifyResultShapes(OpBuilder &b,
                                        ReifiedRankedShapedTypeDims &shapes) {
  if (isOnTensors())
    shapes.push_back(tensor::getMixedSizes(b, getLoc(), getOut()));
  return success();
}

namespace {
struct GemmBufferization
    : DstBufferizableOpInterfaceExternalModel<GemmBufferization, GemmOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !cast<GemmOp>(op).isDpsInit(&operand);
  }

  bool bufferizesToElementwiseAccess(Operation *, const AnalysisState &,
                                     ArrayRef<OpOperand *>) const {
    return false;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    mlir::clone(rewriter, op, /*newResultTypes=*/TypeRange(), buffers);
    replaceOpWithBufferizedValues(rewriter, op, buffers.back());
    return success();
  }
};

struct GemmModel : ProblemInterface::ExternalModel<GemmModel, GemmOp> {
  SmallVector<NamedOperand> getNamedOperands(Operation *op) const {
    auto gemm = cast<GemmOp>(op);
    return {{gemm.getA(), "a"}, {gemm.getB(), "b"}, {gemm.getOut(), "c"}};
  }
  bool isOnTensors(Operation *op) const {
    return cast<GemmOp>(op).isOnTensors();
  }
  LogicalResult chooseSchedule(Operation *op,
                               const ScheduleQuery &query) const {
    return gemm::chooseSchedule(cast<GemmOp>(op), query);
  }
  SmallVector<std::string> getCandidates(Operation *,
                                         const TargetInfo &target) const {
    return gemm::candidates(target);
  }
  LogicalResult buildTile(Operation *op, func::FuncOp function,
                          const TargetInfo &target) const {
    return gemm::buildTile(cast<GemmOp>(op), function, target);
  }
  KernelVariants getVariants(Operation *op, const VariantQuery &query) const {
    return gemm::variants(cast<GemmOp>(op), query);
  }
  void become(Operation *op, const KernelAlternative &alternative) const {
    if (alternative.schedule)
      cast<GemmOp>(op).removeScheduleAttr();
  }
};
} // namespace

void kvbuf::registerGemmProgram(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *dialect) {
    RegisteredOperationName::insert<WithKnownProperties<GemmOp>>(*dialect);
    GemmOp::attachInterface<GemmModel, GemmBufferization>(*context);
  });
}
