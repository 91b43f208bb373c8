//===- ExpandArguments.cpp - Kernel parameters of lane programs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TmaTile.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/KernelArguments.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_EXPANDARGUMENTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Whether the manifest has a name for a type of elements.
static bool isKnown(Type type) {
  return type.isBF16() || type.isF16() || type.isF32() ||
         type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(8) ||
         isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
             Float8E5M2FNUZType>(type);
}

namespace {

/// Rebuilds one kernel with parameters in the place of its arguments.
class Expansion {
public:
  explicit Expansion(gpu::GPUFuncOp kernel)
      : kernel(kernel), b(kernel.getLoc(), kernel),
        params(kernel, {/*byLanes=*/true, /*alignment=*/2,
                        gpu::AddressSpaceAttr::get(
                            kernel.getContext(), gpu::AddressSpace::Global)}) {}

  LogicalResult run();

private:
  /// The value of a parameter, which becomes the function's.
  Value parameter(unsigned number);
  /// The value of a size as the manifest writes them: a name, a number or an
  /// expression.
  Value size(Attribute expression);
  /// The memref that lanes index, of what the parameters of a tensor say.
  Value memref(const ArgumentTensor &tensor);
  /// What takes the place of an argument: a memref, or a cache made of memrefs.
  FailureOr<Value> expand(unsigned i);
  /// Makes parameters of the tensor maps that the kernel makes of argument `i`,
  /// a cache with this name.
  LogicalResult tensorMaps(unsigned i, StringRef name, CacheLayout layout);
  LogicalResult check();

  gpu::GPUFuncOp kernel, lowered;
  ImplicitLocOpBuilder b;
  KernelParameters params;
  llvm::MapVector<StringAttr, Value> sizes;
};

} // namespace

LogicalResult Expansion::check() {
  if (!kernel.getKnownBlockSizeAttr())
    return kernel.emitOpError()
           << "has no known_block_size, the threads of a block in each "
              "dimension; its arguments cannot become parameters without it";
  if (!kernel->hasAttr(KVBufferDialect::kGridAttr))
    return kernel.emitOpError()
           << "has no '" << KVBufferDialect::kGridAttr
           << "', the blocks of a launch in each dimension; its arguments "
              "cannot become parameters without it";
  return params.check();
}

Value Expansion::parameter(unsigned number) {
  Block &entry = lowered.getBody().front();
  for (Type type : params.getTypes().drop_front(entry.getNumArguments()))
    entry.addArgument(type, b.getLoc());
  return entry.getArgument(number);
}

Value Expansion::size(Attribute expression) {
  return emitSizeExpression(b, b.getLoc(), expression, [&](StringAttr name) {
    auto [it, isNew] = sizes.try_emplace(name, Value());
    if (!isNew)
      return it->second;
    if (std::optional<unsigned> number = params.addSize(name))
      it->second =
          arith::IndexCastOp::create(b, b.getIndexType(), parameter(*number));
    else
      it->second = arith::ConstantIndexOp::create(
          b, params.getFixedSizes().lookup(name.getValue()));
    return it->second;
  });
}

Value Expansion::memref(const ArgumentTensor &tensor) {
  MemRefType type = tensor.type;
  SmallVector<Value> stated(type.getRank());
  Value base;
  for (const TensorParameter &one : tensor.parameters)
    (one.role == TensorParameter::Address ? base : stated[one.dim]) =
        parameter(one.number);
  auto plain =
      MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  if (base.getType() != plain)
    base = memref::MemorySpaceCastOp::create(b, plain, base);
  SmallVector<OpFoldResult> extents, steps;
  for (auto [extent, entry] : llvm::zip_equal(type.getShape(), tensor.shape))
    extents.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(size(entry))
                                                    : b.getIndexAttr(extent));
  auto valueOf = [&](OpFoldResult extent) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), extent);
  };
  for (auto [d, stride] : llvm::enumerate(type.getStridesAndOffset().first)) {
    if (!ShapedType::isDynamic(stride)) {
      steps.push_back(b.getIndexAttr(stride));
    } else if (stated[d]) {
      steps.push_back(stated[d]);
    } else {
      Value step = valueOf(extents[d + 1]);
      for (OpFoldResult extent : llvm::drop_begin(extents, d + 2))
        step = arith::MulIOp::create(b, step, valueOf(extent));
      steps.push_back(step);
    }
  }
  return memref::ReinterpretCastOp::create(
      b, type, base, OpFoldResult(b.getIndexAttr(0)), extents, steps);
}

FailureOr<Value> Expansion::expand(unsigned i) {
  FailureOr<KernelArgument> argument = params.add(i);
  if (failed(argument))
    return failure();
  SmallVector<Value> memrefs;
  for (const ArgumentTensor &tensor : argument->tensors)
    memrefs.push_back(memref(tensor));
  if (!argument->cache)
    return memrefs.front();
  if (failed(tensorMaps(i, nameOf(kernel, i), argument->cache)))
    return failure();
  Value maxPrompt, scales;
  if (llvm::any_of(argument->value.getUsers(),
                   llvm::IsaPred<MaxPromptLengthOp>))
    maxPrompt = size(b.getStringAttr("max_prompt_length"));
  if (argument->tensors.back().part == ArgumentTensor::Scales)
    scales = memrefs.pop_back_val();
  return Value(MakeCacheOp::create(b, argument->cache, memrefs.front(),
                                   ArrayRef(memrefs).drop_front(), scales,
                                   maxPrompt, /*max_context=*/Value()));
}

LogicalResult Expansion::tensorMaps(unsigned i, StringRef name,
                                    CacheLayout layout) {
  std::optional<TargetInfo> target = targetOf(kernel);
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  // Blocks, where the kind has them, rows, heads and columns.
  unsigned leading = layout.getLeadingDims().size();
  unsigned columns = leading + 1, heads = leading, rows = leading - 1;
  llvm::MapVector<Attribute, Value> known;
  for (Operation *op :
       llvm::make_early_inc_range(kernel.getArgument(i).getUsers())) {
    std::optional<TmaTile> tile = tmaTileOf(op);
    if (!tile)
      continue;
    if (target &&
        !target->has(tile->gathers ? CopyEngine::Rows : CopyEngine::Boxes))
      return op->emitOpError()
             << "makes a tensor map for copies that " << target->chip
             << (tile->gathers ? " lacks: it gathers no rows"
                               : " lacks: it copies no boxes of tensors");
    if (!isKnown(tile->element))
      return op->emitOpError()
             << "makes a tensor map of elements " << tile->element
             << "; expected bf16, f16, f32, 8-bit floats, i8, i32 or i64";
    SmallVector<int64_t> dims{columns}, box{tile->boxCols};
    if (tile->cutRows)
      box.push_back(tile->cutRows);
    if (!tile->gathers) {
      dims.push_back(heads);
      box.push_back(1);
    }
    dims.push_back(rows);
    box.push_back(tile->cutRows ? 1 : tile->boxRows);
    NamedAttrList flat;
    flat.append("view", b.getStringAttr(TensorAttr::getDTypeOf(tile->element)));
    if (leading > 1)
      flat.append("fold", number(0));
    for (auto [key, value] :
         {std::pair<StringRef, int64_t>{"first_byte", tile->firstByte},
          {"columns", tile->columns},
          {"stride", tile->stride},
          {"cut_rows", tile->cutRows}})
      if (value)
        flat.append(key, number(value));
    NamedAttrList details;
    details.append("dims", b.getDenseI64ArrayAttr(dims));
    details.append("box", b.getDenseI64ArrayAttr(box));
    details.append("swizzle", number(tile->swizzle));
    details.append("l2_promotion", number(tile->l2Promotion));
    details.append("flat", flat.getDictionary(b.getContext()));
    auto description = ArgumentAttr::get(
        b.getContext(), ArgumentKind::TensorMap, b.getStringAttr(name),
        /*size=*/Attribute(), details.getDictionary(b.getContext()));
    Value &map = known[description];
    if (!map)
      map = parameter(params.add(op->getResult(0).getType(), description));
    op->getResult(0).replaceAllUsesWith(map);
    op->erase();
  }
  return success();
}

LogicalResult Expansion::run() {
  if (failed(check()))
    return failure();
  lowered =
      gpu::GPUFuncOp::create(b, kernel.getName(), b.getFunctionType({}, {}));
  for (NamedAttribute attr : kernel->getAttrs())
    if (attr.getName() != "function_type" && attr.getName() != "arg_attrs" &&
        attr.getName() != "workgroup_attributions")
      lowered->setAttr(attr.getName(), attr.getValue());
  b.setInsertionPointToStart(&lowered.getBody().front());
  SmallVector<Value> values;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    FailureOr<Value> value = expand(i);
    if (failed(value)) {
      lowered.erase();
      return failure();
    }
    values.push_back(*value);
  }
  // The old body goes on after what has become of its arguments.
  Block &entryBlock = kernel.getBody().front();
  lowered.setFunctionType(
      b.getFunctionType(lowered.getBody().front().getArgumentTypes(), {}));
  // Memory of the block stays what it is, after the parameters.
  for (BlockArgument memory : kernel.getWorkgroupAttributions())
    values.push_back(
        lowered.addWorkgroupAttribution(memory.getType(), memory.getLoc()));
  for (BlockArgument memory : kernel.getPrivateAttributions())
    values.push_back(
        lowered.addPrivateAttribution(memory.getType(), memory.getLoc()));
  for (auto [argument, value] :
       llvm::zip_equal(entryBlock.getArguments(), values))
    argument.replaceAllUsesWith(value);
  Block &begin = lowered.getBody().front();
  begin.getOperations().splice(begin.end(), entryBlock.getOperations());
  lowered.getBody().getBlocks().splice(
      lowered.getBody().end(), kernel.getBody().getBlocks(),
      std::next(kernel.getBody().begin()), kernel.getBody().end());
  SmallVector<int64_t> block(kernel.getKnownBlockSizeAttr().asArrayRef());
  // Each tensor says for itself what it has to keep to.
  describeLaunch(
      lowered,
      {/*alignment=*/2, params.getDescriptions(), params.getTensors(), block},
      params.getFixedSizes());
  kernel.erase();
  return success();
}

/// Whether a kernel's arguments are addresses and numbers alone, which nobody
/// has named: it is not for an artifact, and the conversion to the vendor's
/// dialect takes it as it stands.
static bool takesBarePointers(gpu::GPUFuncOp func) {
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i) {
    Type type = func.getArgument(i).getType();
    if (func.getArgAttr(i, KVBufferDialect::kNameAttr))
      return false;
    if (auto memref = dyn_cast<MemRefType>(type)) {
      if (!memref.hasStaticShape() || !memref.getLayout().isIdentity())
        return false;
    } else if (!type.isIntOrIndexOrFloat()) {
      return false;
    }
  }
  return func.getNumArguments() && !func->hasAttr(KVBufferDialect::kGridAttr);
}

namespace {
struct ExpandArgumentsPass
    : kvbuf::impl::ExpandArgumentsBase<ExpandArgumentsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<gpu::GPUFuncOp> kernels(llvm::make_filter_range(
        getOperation().getOps<gpu::GPUFuncOp>(), [](gpu::GPUFuncOp func) {
          auto phase =
              func->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
          return phase && phase.getValue() == Phase::Thread &&
                 !func->hasAttr(KVBufferDialect::kKernelAttr) &&
                 !takesBarePointers(func);
        }));
    for (gpu::GPUFuncOp kernel : kernels)
      if (failed(Expansion(kernel).run()))
        return signalPassFailure();
  }
};
} // namespace
