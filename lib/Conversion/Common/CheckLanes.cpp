//===- CheckLanes.cpp - Kernels of the thread stage against the chip
//-------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckKernel.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"

using namespace mlir;
using namespace kvbuf;

/// "1, 2 or 4".
static std::string listOf(ArrayRef<unsigned> numbers) {
  std::string text;
  for (auto [index, number] : llvm::enumerate(numbers))
    text += (index == 0                    ? ""
             : index + 1 == numbers.size() ? " or "
                                           : ", ") +
            std::to_string(number);
  return text;
}

LogicalResult kvbuf::checkLdsCopy(Operation *op, std::optional<int64_t> bytes,
                                  const TargetInfo &target) {
  if (!bytes)
    return op->emitOpError("needs a width that is constant");
  if (!llvm::is_contained(target.asyncCopyBytes, *bytes))
    return op->emitOpError()
           << "copies " << *bytes << " bytes a lane into LDS; " << target.chip
           << " can copy " << listOf(target.asyncCopyBytes);
  return success();
}

/// Words of an operand as an instruction wants them: `elements` in a lane.
static LogicalResult checkWords(LaneMmaOp op, char name, OperandRange words,
                                Type element, int64_t elements,
                                const MatrixInstruction &mma,
                                const TargetInfo &target) {
  int64_t count = elements / mma.wordElements;
  auto type = VectorType::get({int64_t(mma.wordElements)}, element);
  bool fits = int64_t(words.size()) == count &&
              llvm::all_of(words.getTypes(), [&](Type t) { return t == type; });
  if (fits)
    return success();
  return op.emitOpError() << "expected operand " << name << " of " << count
                          << " x " << type << " for " << shapeOf(op.getShape())
                          << " on " << target.chip << ", got " << words.size()
                          << " x " << words.front().getType();
}

static LogicalResult checkLaneMma(LaneMmaOp op, const TargetInfo &target) {
  if (op.getA().empty() || op.getB().empty())
    return op.emitOpError("expected operands a and b");
  auto elementOf = [](OperandRange words) {
    return cast<VectorType>(words.front().getType()).getElementType();
  };
  Type a = elementOf(op.getA()), b = elementOf(op.getB());
  for (Type element : {a, b})
    if (std::optional<std::string> why =
            target.whyNoProduct(elementName(element)))
      return op.emitOpError()
             << "multiplies elements of " << elementName(element) << *why;
  // One instruction may take both 8-bit floats; other types do not mix.
  SmallVector<MatrixInstruction> known =
      target.warpInstructions(elementName(a));
  bool float8 = a.getIntOrFloatBitWidth() == 8;
  if (a != b && !(float8 && b.getIntOrFloatBitWidth() == 8))
    return op.emitOpError()
           << "multiplies elements of " << elementName(a) << " by "
           << elementName(b) << "; expected one type";
  const auto *mma = llvm::find_if(known, [&](const MatrixInstruction &mma) {
    return op.getShape() == ArrayRef<int64_t>(mma.shape());
  });
  if (mma == known.end())
    return op.emitOpError() << "has shape " << shapeOf(op.getShape())
                            << "; for " << elementName(a) << " " << target.chip
                            << " has " << TargetInfo::shapesOf(known);
  int64_t lanes = target.waveSize;
  if (failed(checkWords(op, 'a', op.getA(), a, mma->m * mma->k / lanes, *mma,
                        target)) ||
      failed(checkWords(op, 'b', op.getB(), b, mma->k * mma->n / lanes, *mma,
                        target)))
    return failure();
  auto c = cast<VectorType>(op.getC().getType());
  auto expected = VectorType::get({mma->m * mma->n / lanes},
                                  Float32Type::get(op.getContext()));
  if (c != expected)
    return op.emitOpError()
           << "expected accumulators " << expected << " for "
           << shapeOf(op.getShape()) << " on " << target.chip << ", got " << c;
  return success();
}

/// The 8-bit floats of an op of AMD's dialect, whose lowering tells chips apart
/// but does not say what they have.
static LogicalResult checkFloat8(Operation *op, const TargetInfo &target) {
  auto check = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() != 8)
      return success();
    std::optional<std::string> why = target.whyNoProduct(elementName(element));
    if (!why)
      return success();
    return LogicalResult(op->emitOpError()
                         << "has elements of " << elementName(element) << *why);
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type)))
      return failure();
  return success();
}

/// The threads of a block, which a kernel may say twice.
static LogicalResult checkBlockSize(gpu::GPUFuncOp kernel) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  ArrayRef<int64_t> block = launch ? launch.getBlock() : ArrayRef<int64_t>();
  DenseI32ArrayAttr known = kernel.getKnownBlockSizeAttr();
  if (block.empty() || !known || llvm::equal(block, known.asArrayRef()))
    return success();
  return kernel.emitOpError()
         << "has known_block_size = " << known << ", but 'block' of '"
         << KVBufferDialect::kKernelAttr << "' is " << launch.getField("block")
         << "; expected the same sizes";
}

LogicalResult kvbuf::checkLanes(gpu::GPUModuleOp module,
                                const TargetInfo &target) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
      return checkBlockSize(kernel);
    if (auto mma = dyn_cast<LaneMmaOp>(op))
      return checkLaneMma(mma, target);
    if (auto copy = dyn_cast<RangeCopyOp>(op))
      return checkLdsCopy(op, copy.getBytes(), target);
    if (auto copy = dyn_cast<LaneCopyOp>(op))
      return checkLdsCopy(op, copy.getBytes(), target);
    if (auto copy = dyn_cast<amdgpu::GatherToLDSOp>(op)) {
      Type type = copy.getTransferType();
      int64_t elements = 1;
      if (auto vector = dyn_cast<VectorType>(type))
        elements = vector.getNumElements();
      return checkLdsCopy(
          op, elements * getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8,
          target);
    }
    bool wide = target.matrixUnit() == MatrixUnit::Wmma;
    if ((isa<amdgpu::TransposeLoadOp>(op) &&
         (wide || !target.readsTransposed)) ||
        (isa<TurnedReadOp>(op) && !wide))
      return op->emitOpError()
             << "reads LDS transposed"
             << (isa<TurnedReadOp>(op) ? " by 16 bytes a lane" : "")
             << ", which " << target.chip << " cannot do"
             << (wide ? " by 8 bytes a lane; expected kvbuffer.turned_read"
                 : target.readsTransposed ? "; expected amdgpu.transpose_load"
                                          : "");
    if (auto sum = dyn_cast<PairSumOp>(op)) {
      std::string element =
          elementName(sum.getPair().getType().getElementType());
      if (!llvm::is_contained(target.pairSums, element))
        return op->emitOpError()
               << "adds a pair of " << element << ", which " << target.chip
               << " cannot do; expected arith.extf and arith.addf";
    }
    if (isa<BoxCopyOp>(op) && !target.has(CopyEngine::WaveBoxes))
      return op->emitOpError()
             << "asks an engine for boxes, which " << target.chip << " lacks";
    if (isa_and_nonnull<amdgpu::AMDGPUDialect>(op->getDialect()))
      return checkFloat8(op, target);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
