//===- WidenCaches.cpp - Caches widened ahead of a kernel -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A block has a few tokens of a sequence, of K and of V. A lane reads 8 bytes
/// at a time, as many at once as a kernel that waits for memory alone needs.
///
//===----------------------------------------------------------------------===//

#include "WidenCaches.h"
#include "CacheScales.h"
#include "VisibleBounds.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Threads of a block; elements of a lane side by side, which it stores as 16
/// bytes, so that those of a warp are whole sectors; and how often a lane loads
/// for each of K and V before it waits.
static constexpr int64_t kThreads = 256, kRun = 8, kTimes = 8;
/// Blocks for sequences: the second dimension of a grid takes 65535.
static constexpr int64_t kMostBatches = 32768;

bool kvbuf::canWidenAhead(AttentionOp op) {
  constexpr unsigned byte = 8, half = 16;
  MaskAttr mask = op.getMaskValue();
  if (op.isOnTensors() || op.isLatent() || op.isRagged() ||
      op.getBatchInvariant() || op.getBlockMaskAttr() || mask.boundsLeft() ||
      boundsKeys(op) || op.getElementType().getIntOrFloatBitWidth() != half)
    return false;
  return llvm::all_of(
      ArrayRef<CacheType>{op.getKCacheType(), op.getVCacheType()},
      [&](CacheType cache) {
        return (cache.getRows().endWithData() || cache.getPageSize() > 0) &&
               cache.getElementType().getIntOrFloatBitWidth() == byte &&
               !cache.getRow() && !isScaledByToken(cache) &&
               cache.getCacheDepth() == cache.getHeadSize() &&
               cache.getHeadSize() % kRun == 0;
      });
}

Value kvbuf::makeWidenedCache(ImplicitLocOpBuilder &b, CacheType cache,
                              Value given, StringRef name, Type element) {
  auto kernel =
      b.getInsertionBlock()->getParent()->getParentOfType<gpu::GPUFuncOp>();
  auto number = [&](int64_t value) -> Attribute {
    return b.getI64IntegerAttr(value);
  };
  NamedAttrList attrs;
  attrs.append(KVBufferDialect::kNameAttr, b.getStringAttr(name));
  attrs.append(KVBufferDialect::kAccessAttr, b.getStringAttr("workspace"));
  attrs.append(
      KVBufferDialect::kShapeAttr,
      b.getArrayAttr({b.getStringAttr(kBatchSize), mostTokensOf(cache, given),
                      number(cache.getHeads()), number(cache.getHeadSize())}));
  constexpr int64_t any = ShapedType::kDynamic;
  unsigned at = kernel.getNumArguments();
  (void)kernel.insertArgument(
      at,
      MemRefType::get({any, any, cache.getHeads(), cache.getHeadSize()},
                      element),
      attrs.getDictionary(b.getContext()), b.getLoc());
  CacheType wide = denseCacheOf(RankedTensorType::get(
      {any, any, cache.getHeads(), cache.getHeadSize()}, element));
  return MakeCacheOp::create(b, wide, kernel.getArgument(at), ValueRange(),
                             /*scales=*/Value(), /*max_prompt=*/Value(),
                             /*max_context=*/Value());
}

namespace {
/// Writes the kernel.
class Widening {
public:
  Widening(AttentionOp op, LLVM::LLVMFuncOp first, ImplicitLocOpBuilder &b)
      : op(op), b(b) {
    for (auto tensor :
         first->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr)
             .getAsRange<TensorAttr>())
      tensors[tensor.getName().getValue()] = tensor;
  }
  void build(StringRef name);

private:
  /// One of the caches, and where its keys go.
  struct Side {
    Side(StringRef role, CacheType cache, Type element)
        : role(role), cache(cache), element(element) {}
    StringRef role;
    CacheType cache;
    Type element;
    Value data, table, lengths, wide;
    /// Keys of the sequence, and how many of them and of zeros are written.
    Value keys, end;
  };
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value toIndex(Value x) {
    return arith::IndexCastOp::create(b, b.getIndexType(), x);
  }
  /// Adds an argument for a tensor of the launch: the caller's (`access`
  /// "read") or memory of the launch, of `shape` and any strides but for the
  /// last.
  void addArgument(StringRef name, StringRef access, Type element,
                   ArrayRef<Attribute> shape);
  void addArguments(Side &side);
  /// What a sequence has.
  void findKeys(Side &side, Value batch);
  /// Widens the block's tokens.
  void widen(ArrayRef<Side> sides, Value batch, Value token);
  int64_t vectorsOf(const Side &side) {
    return side.cache.getHeads() * side.cache.getHeadSize() / kRun;
  }

  AttentionOp op;
  ImplicitLocOpBuilder &b;
  llvm::StringMap<TensorAttr> tensors;
  SmallVector<Type> types;
  SmallVector<NamedAttrList> descriptions;
  int64_t tokens = 1;
};
} // namespace

void Widening::addArgument(StringRef name, StringRef access, Type element,
                           ArrayRef<Attribute> shape) {
  SmallVector<int64_t> sizes, strides(shape.size(), ShapedType::kDynamic);
  for (Attribute size : shape) {
    auto number = dyn_cast<IntegerAttr>(size);
    sizes.push_back(number ? number.getInt() : ShapedType::kDynamic);
  }
  strides.back() = 1;
  types.push_back(access == "workspace"
                      ? MemRefType::get(sizes, element)
                      : MemRefType::get(sizes, element,
                                        StridedLayoutAttr::get(b.getContext(),
                                                               0, strides)));
  NamedAttrList &list = descriptions.emplace_back();
  list.append(KVBufferDialect::kNameAttr, b.getStringAttr(name));
  list.append(KVBufferDialect::kAccessAttr, b.getStringAttr(access));
  list.append(KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
}

void Widening::addArguments(Side &side) {
  auto given = [&](const Twine &name) {
    std::string text = name.str();
    TensorAttr tensor = tensors.lookup(text);
    addArgument(tensor.getName().getValue(), "read", tensor.getElementType(),
                tensor.getShape());
  };
  given(side.role);
  if (side.cache.hasTable()) {
    given(side.role + ".table");
    given(side.role + ".lengths");
  }
  TensorAttr data = tensors.lookup(side.role);
  Attribute most = data.getShape()[1], batch = data.getShape()[0];
  if (side.cache.hasTable()) {
    ArrayRef<Attribute> table =
        tensors.lookup((side.role + ".table").str()).getShape();
    batch = table[0];
    most =
        SizeAttr::of(b.getContext(), "product",
                     {table[1], b.getI64IntegerAttr(side.cache.getPageSize())});
  }
  SmallVector<Attribute> shape{batch, most, data.getShape()[2],
                               data.getShape()[3]};
  addArgument(b.getStringAttr(side.role + ".wide").getValue(), "workspace",
              side.element, shape);
}

void Widening::findKeys(Side &side, Value batch) {
  // The types of what a launch provides name no sizes that are computed.
  Value most = memref::DimOp::create(b, side.table ? side.table : side.data, 1);
  if (side.table)
    most = arith::MulIOp::create(b, most, constant(side.cache.getPageSize()));
  side.keys = most;
  if (side.lengths) {
    Value length = memref::LoadOp::create(b, side.lengths, ValueRange{batch});
    side.keys = toIndex(length);
    if (!lengthsCountNew(op)) {
      auto kernel =
          b.getInsertionBlock()->getParent()->getParentOfType<gpu::GPUFuncOp>();
      side.keys = arith::AddIOp::create(
          b, side.keys,
          memref::DimOp::create(b, kernel.getArgument(0), 1).getResult());
    }
    side.keys = arith::MaxSIOp::create(b, side.keys, constant(0));
    side.keys = arith::MinSIOp::create(b, side.keys, most);
  }
  Value tiles =
      arith::CeilDivUIOp::create(b, side.keys, constant(kZerosBehind));
  side.end = arith::MinSIOp::create(
      b, arith::MulIOp::create(b, tiles, constant(kZerosBehind)).getResult(),
      most);
}

void Widening::widen(ArrayRef<Side> sides, Value batch, Value token) {
  struct Vector {
    Value value, isKey, isWritten;
    SmallVector<Value> at;
    const Side *side;
  };
  SmallVector<Vector> vectors;
  Value lane = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  for (const Side &side : sides) {
    int64_t each = vectorsOf(side), all = tokens * each;
    Value last = arith::SubIOp::create(b, side.keys, constant(1));
    for (int64_t i = 0; i < all; i += kThreads) {
      Value number = arith::AddIOp::create(b, lane, constant(i));
      Value key = arith::AddIOp::create(
          b, token,
          arith::DivUIOp::create(b, number, constant(each)).getResult());
      number = arith::RemUIOp::create(b, number, constant(each));
      int64_t runs = side.cache.getHeadSize() / kRun;
      Value head = arith::DivUIOp::create(b, number, constant(runs));
      Value column = arith::MulIOp::create(
          b, arith::RemUIOp::create(b, number, constant(runs)).getResult(),
          constant(kRun));
      Vector &vector = vectors.emplace_back();
      vector.side = &side;
      vector.isKey =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key, side.keys);
      vector.isWritten =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key, side.end);
      if (all % kThreads)
        vector.isWritten = arith::AndIOp::create(
            b, vector.isWritten,
            arith::CmpIOp::create(
                b, arith::CmpIPredicate::slt, key,
                arith::AddIOp::create(b, token, constant(tokens)).getResult())
                .getResult());
      vector.at = {batch, key, head, column};
      // A key that there is, whatever the lane's one is.
      Value from = arith::MinSIOp::create(b, key, last);
      SmallVector<Value> at{batch, from, head, column};
      if (side.table) {
        Value page = constant(side.cache.getPageSize());
        Value entry = memref::LoadOp::create(
            b, side.table,
            ValueRange{batch,
                       arith::DivUIOp::create(b, from, page).getResult()});
        at[0] = toIndex(entry);
        at[1] = arith::RemUIOp::create(b, from, page);
      }
      vector.value = vector::LoadOp::create(
          b, VectorType::get(kRun, side.cache.getElementType()), side.data, at,
          /*nontemporal=*/false, llvm::Align(kRun));
    }
  }
  for (Vector &vector : vectors) {
    auto type = VectorType::get(kRun, vector.side->element);
    Value wide = arith::ExtFOp::create(b, type, vector.value);
    Value zero = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type,
                                  b.getFloatAttr(vector.side->element, 0.0)));
    wide = arith::SelectOp::create(b, vector.isKey, wide, zero);
    auto ifOp =
        scf::IfOp::create(b, vector.isWritten, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    vector::StoreOp::create(b, wide, vector.side->wide, vector.at,
                            /*nontemporal=*/false, llvm::Align(2 * kRun));
  }
}

void Widening::build(StringRef name) {
  MLIRContext *context = b.getContext();
  SmallVector<Side, 2> sides{{"k", op.getKCacheType(), widenedKeysOf(op)},
                             {"v", op.getVCacheType(), valuesOf(op)}};
  TensorAttr q = tensors.lookup("q");
  addArgument("q", "read", q.getElementType(), q.getShape());
  SmallVector<unsigned> begins;
  for (Side &side : sides) {
    begins.push_back(types.size());
    addArguments(side);
  }
  auto kernel = gpu::GPUFuncOp::create(b, name, b.getFunctionType(types, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(kThreads), 1, 1}));
  kernel->setAttr(KVBufferDialect::kPhaseAttr,
                  PhaseAttr::get(context, Phase::Thread));
  for (auto [i, list] : llvm::enumerate(descriptions))
    for (NamedAttribute attr : list)
      kernel.setArgAttr(i, attr.getName(), attr.getValue());
  tokens = std::max<int64_t>(
      1,
      kThreads * kTimes / std::max(vectorsOf(sides[0]), vectorsOf(sides[1])));
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto size = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
    return SizeAttr::of(context, name, operands);
  };
  auto shapeOf = [&](unsigned argument) {
    return cast<ArrayAttr>(
        descriptions[argument].get(KVBufferDialect::kShapeAttr));
  };
  unsigned wideK = begins[1] - 1, wideV = types.size() - 1;
  kernel->setAttr(
      KVBufferDialect::kGridAttr,
      b.getArrayAttr(
          {size("ceildiv", {size("max", {shapeOf(wideK)[1], shapeOf(wideV)[1]}),
                            number(tokens)}),
           size("min", {shapeOf(wideK)[0], number(kMostBatches)}), number(1)}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  for (auto [side, begin] : llvm::zip_equal(sides, begins)) {
    side.data = kernel.getArgument(begin);
    if (side.cache.hasTable()) {
      side.table = kernel.getArgument(begin + 1);
      side.lengths = kernel.getArgument(begin + 2);
    }
    side.wide = kernel.getArgument(begin + (side.table ? 3 : 1));
  }
  Value token = arith::MulIOp::create(
      b, gpu::BlockIdOp::create(b, gpu::Dimension::x), constant(tokens));
  auto loop = scf::ForOp::create(
      b, gpu::BlockIdOp::create(b, gpu::Dimension::y),
      memref::DimOp::create(b, sides[0].table ? sides[0].table : sides[0].data,
                            0),
      gpu::GridDimOp::create(b, gpu::Dimension::y));
  b.setInsertionPointToStart(loop.getBody());
  Value batch = loop.getInductionVar();
  for (Side &side : sides)
    findKeys(side, batch);
  Value most = arith::MaxSIOp::create(b, sides[0].end, sides[1].end);
  Value has = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, token, most);
  // A sequence without a key has nothing to read.
  for (Side &side : sides)
    has = arith::AndIOp::create(b, has,
                                arith::CmpIOp::create(b,
                                                      arith::CmpIPredicate::sgt,
                                                      side.keys, constant(0))
                                    .getResult());
  auto ifOp = scf::IfOp::create(b, has, /*withElseRegion=*/false);
  b.setInsertionPointToStart(ifOp.thenBlock());
  widen(sides, batch, token);
  b.setInsertionPointToEnd(&kernel.getBody().front());
  gpu::ReturnOp::create(b);
}

OwningOpRef<ModuleOp>
kvbuf::buildWidening(AttentionOp op, LLVM::LLVMFuncOp first, StringRef name) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
  ImplicitLocOpBuilder b(op.getLoc(), module->getBodyRegion());
  (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                     b.getUnitAttr());
  auto code = gpu::GPUModuleOp::create(b, (name + "_code").str());
  b.setInsertionPointToStart(code.getBody());
  Widening(op, first, b).build(name);
  return module;
}
