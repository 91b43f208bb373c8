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
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

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

/// Whether and how a value is accessed, by the ops that do.
struct Access {
  bool reads = false, writes = false;

  StringRef name() const {
    return !writes ? "read" : reads ? "read_write" : "write";
  }
};

/// Rebuilds one kernel with parameters in the place of its arguments.
class Expansion {
public:
  explicit Expansion(gpu::GPUFuncOp kernel)
      : kernel(kernel), b(kernel.getLoc(), kernel) {}

  LogicalResult run();

private:
  /// A parameter, and what it becomes at the beginning of the kernel.
  Value parameter(Type type, ArgumentAttr description) {
    descriptions.push_back(description);
    return lowered.getBody().front().addArgument(type, b.getLoc());
  }

  /// The value of a size as the manifest writes them: a name, a number or an
  /// expression.
  Value size(Attribute expression);
  /// A tensor of the kernel: parameters for its address, strides and sizes, and
  /// an entry in the manifest. A memref of type `type`; `holdsRows`: of a
  /// cache.
  FailureOr<Value> tensor(StringRef name, MemRefType type,
                          ArrayRef<Attribute> shape, StringRef access,
                          int64_t alignment = 1, bool holdsRows = false);
  FailureOr<Value> memrefArgument(unsigned i, StringRef name, MemRefType type);
  FailureOr<Value> cacheArgument(unsigned i, StringRef name,
                                 CacheLayout layout);
  /// Makes parameters of the tensor maps that the kernel makes of argument `i`,
  /// a cache with this name.
  LogicalResult tensorMaps(unsigned i, StringRef name, CacheLayout layout);
  /// What the kernel does with argument `i`: as it says, or by its uses.
  Access accessOf(unsigned i, bool scales = false);
  /// "workspace" or "counter" where the launch provides argument `i`; else
  /// empty.
  StringRef scratchOf(unsigned i) {
    auto access =
        kernel.getArgAttrOfType<StringAttr>(i, KVBufferDialect::kAccessAttr);
    bool isScratch = access && (access == "workspace" || access == "counter");
    return isScratch ? access.getValue() : StringRef();
  }
  /// The largest alignment that an access to argument `i` states, bytes.
  int64_t alignmentOf(unsigned i);
  LogicalResult check();

  gpu::GPUFuncOp kernel, lowered;
  ImplicitLocOpBuilder b;
  SmallVector<Attribute> descriptions, tensors;
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
  llvm::StringSet<> names;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkArgumentName(kernel, i, names)))
      return failure();
  return success();
}

Access Expansion::accessOf(unsigned i, bool scales) {
  if (auto access = kernel.getArgAttrOfType<StringAttr>(
          i, KVBufferDialect::kAccessAttr)) {
    StringRef word = access.getValue();
    return {word != "write", word != "read"};
  }
  Access access;
  for (OpOperand &use : kernel.getArgument(i).getUses()) {
    Operation *op = use.getOwner();
    if (isa<memref::DimOp>(op))
      continue;
    // What a cache's rows are found by is read in any case.
    if (isa<CacheStoreOp, StoreScaleOp>(op)) {
      if (isa<StoreScaleOp>(op) == scales)
        access.reads = access.writes = true;
      continue;
    }
    if (isa<memref::LoadOp, vector::LoadOp, vector::TransferReadOp>(op)) {
      access.reads = true;
    } else if (isa<memref::StoreOp, vector::StoreOp>(op)) {
      access.writes = true;
    } else if (op->hasTrait<LaneLevel>()) {
      access.reads = true;
      // Whoever has a view may write to it.
      access.writes |= isa<BlockPagedPtrOp>(op) && !scales;
      access.writes |= isa<ScalesBlockPagedPtrOp, ScalesRawPtrOp>(op) && scales;
    } else {
      access.reads = access.writes = true;
    }
  }
  return access;
}

Value Expansion::size(Attribute expression) {
  return emitSizeExpression(b, b.getLoc(), expression, [&](StringAttr name) {
    auto [it, isNew] = sizes.try_emplace(name, Value());
    if (isNew) {
      Value word = parameter(b.getI32Type(), ArgumentAttr::sizeOf(name));
      it->second = arith::IndexCastOp::create(b, b.getIndexType(), word);
    }
    return it->second;
  });
}

FailureOr<Value> Expansion::tensor(StringRef name, MemRefType type,
                                   ArrayRef<Attribute> shape, StringRef access,
                                   int64_t alignment, bool holdsRows) {
  Type element = type.getElementType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!isKnown(element))
    return kernel.emitOpError()
           << "tensor '" << name << "' has elements " << element
           << "; expected bf16, f16, f32, 8-bit floats, i8, i32 or i64";
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.empty() ||
      strides.back() != 1 || offset != 0)
    return kernel.emitOpError()
           << "tensor '" << name << "' is " << type
           << "; expected a strided memref of rank 1 or more without an "
              "offset, the elements of its last dimension side by side";
  tensors.push_back(TensorAttr::get(b.getContext(), b.getStringAttr(name),
                                    element, shape,
                                    *symbolizeTensorAccess(access), holdsRows));
  Attribute space = type.getMemorySpace();
  auto global =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Global);
  StringAttr tensor = b.getStringAttr(name);
  std::optional<int64_t> own;
  // What the kernel says for tensors that say nothing is of 16-bit elements.
  unsigned bits = element.getIntOrFloatBitWidth();
  if (alignment > bits / 8 || (isa<FloatType>(element) && bits == 8))
    own = alignment;
  Value base = parameter(
      MemRefType::get({}, element, MemRefLayoutAttrInterface(), global),
      ArgumentAttr::pointer(tensor, own));
  auto plain = MemRefType::get({}, element, MemRefLayoutAttrInterface(), space);
  if (space != global)
    base = memref::MemorySpaceCastOp::create(b, plain, base);
  SmallVector<OpFoldResult> extents, steps;
  for (auto [extent, entry] : llvm::zip_equal(type.getShape(), shape))
    extents.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(size(entry))
                                                    : b.getIndexAttr(extent));
  // Of types that fix strides the caller's tensors are to have them.
  bool contiguous = type.getLayout().isIdentity();
  for (auto [d, stride] : llvm::enumerate(strides)) {
    if (!ShapedType::isDynamic(stride)) {
      steps.push_back(b.getIndexAttr(stride));
    } else if (contiguous) {
      Value step =
          getValueOrCreateConstantIndexOp(b, b.getLoc(), extents[d + 1]);
      for (OpFoldResult extent : llvm::drop_begin(extents, d + 2))
        step = arith::MulIOp::create(
            b, step, getValueOrCreateConstantIndexOp(b, b.getLoc(), extent));
      steps.push_back(step);
    } else {
      steps.push_back(
          parameter(b.getIndexType(), ArgumentAttr::stride(tensor, d)));
    }
  }
  return Value(memref::ReinterpretCastOp::create(
      b, type, base, OpFoldResult(b.getIndexAttr(0)), extents, steps));
}

FailureOr<Value> Expansion::memrefArgument(unsigned i, StringRef name,
                                           MemRefType type) {
  FailureOr<SmallVector<Attribute>> shape = shapeOf(kernel, i);
  if (failed(shape))
    return failure();
  for (auto [extent, entry] : llvm::zip_equal(type.getShape(), *shape))
    if (!ShapedType::isDynamic(extent))
      entry = b.getI64IntegerAttr(extent);
  StringRef access = scratchOf(i);
  if (access == "counter" && !type.getElementType().isInteger(32))
    return kernel.emitOpError() << "argument " << i << " is a counter of type "
                                << type << "; expected elements i32";
  return tensor(name, type, *shape,
                access.empty() ? accessOf(i).name() : access, alignmentOf(i),
                holdsCacheRows(kernel.getArgument(i)));
}

/// A memref of these sizes with strides of its own.
static MemRefType stridedType(ArrayRef<int64_t> sizes, Type element) {
  SmallVector<int64_t> strides(sizes.size(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(
      sizes, element, StridedLayoutAttr::get(element.getContext(), 0, strides));
}

FailureOr<Value> Expansion::cacheArgument(unsigned i, StringRef name,
                                          CacheLayout layout) {
  if (StringRef access = scratchOf(i); !access.empty())
    return kernel.emitOpError()
           << "argument " << i << " is a cache and a " << access
           << ", which the launch provides; expected a memref";
  KernelCache cache = tensorsOf(kernel, i, layout);
  auto add = [&](const KernelTensor &part, StringRef access,
                 int64_t alignment = 1, bool holdsRows = false) {
    return tensor(part.name, stridedType(part.sizes, part.element), part.shape,
                  access, alignment, holdsRows);
  };
  // Of another dialect's cache no runtime knows what its tensors mean.
  FailureOr<Value> data = add(cache.data, accessOf(i).name(), alignmentOf(i),
                              /*holdsRows=*/isa<CacheType>(layout));
  if (failed(data))
    return failure();
  SmallVector<Value> indices;
  for (const KernelTensor &table : cache.indices) {
    FailureOr<Value> value = add(table, "read");
    if (failed(value))
      return failure();
    indices.push_back(*value);
  }
  Value scales;
  if (cache.scales) {
    Access access = accessOf(i, /*scales=*/true);
    access.reads = true;
    FailureOr<Value> value = add(*cache.scales, access.name());
    if (failed(value))
      return failure();
    scales = *value;
  }
  if (failed(tensorMaps(i, name, layout)))
    return failure();
  Value maxPrompt;
  if (llvm::any_of(kernel.getArgument(i).getUsers(),
                   llvm::IsaPred<MaxPromptLengthOp>))
    maxPrompt = size(b.getStringAttr("max_prompt_length"));
  return Value(MakeCacheOp::create(b, layout, *data, indices, scales, maxPrompt,
                                   /*max_context=*/Value()));
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
    if (target && !(tile->gathers ? target->gathersRows : target->copiesBoxes))
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
      map = parameter(op->getResult(0).getType(), description);
    op->getResult(0).replaceAllUsesWith(map);
    op->erase();
  }
  return success();
}

/// The alignment that an access states; 1: none.
static int64_t statedAlignment(Operation *op) {
  auto alignment = op->getAttrOfType<IntegerAttr>("alignment");
  return alignment &&
                 isa<CacheLoadOp, CacheStoreOp, LoadQuantizedOp, memref::LoadOp,
                     memref::StoreOp, vector::LoadOp, vector::StoreOp>(op)
             ? std::min<int64_t>(alignment.getInt(), 16)
             : 1;
}

int64_t Expansion::alignmentOf(unsigned i) {
  int64_t bytes = 1;
  for (Operation *user : kernel.getArgument(i).getUsers())
    bytes = std::max(bytes, statedAlignment(user));
  return bytes;
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
    StringRef name =
        kernel.getArgAttrOfType<StringAttr>(i, KVBufferDialect::kNameAttr)
            .getValue();
    Type type = kernel.getArgument(i).getType();
    FailureOr<Value> value = failure();
    if (auto memref = dyn_cast<MemRefType>(type))
      value = memrefArgument(i, name, memref);
    else if (auto layout = dyn_cast<CacheLayout>(type))
      value = cacheArgument(i, name, layout);
    else
      return kernel.emitOpError()
             << "argument " << i << " is '" << name << "' of type " << type
             << "; expected a cache or a memref";
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
  describeLaunch(lowered, {/*alignment=*/2, descriptions, tensors, block},
                 /*fixedSizes=*/{});
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
