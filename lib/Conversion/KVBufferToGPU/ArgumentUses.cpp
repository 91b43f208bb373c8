//===- ArgumentUses.cpp - What a kernel does with an argument ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArgumentUses.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

LogicalResult kvbuf::checkArgument(gpu::GPUFuncOp kernel, unsigned argument,
                                   llvm::StringSet<> &names) {
  if (failed(checkArgumentName(kernel, argument, names)))
    return failure();
  Attribute name = kernel.getArgAttr(argument, KVBufferDialect::kNameAttr);
  Type type = kernel.getArgument(argument).getType();
  if (isa<CacheLayout>(type))
    return success();
  auto memref = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || memref.getRank() == 0 ||
      failed(memref.getStridesAndOffset(strides, offset)))
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " of type " << type
           << "; expected a cache or a strided memref of rank 1 or more";
  if (strides.back() != 1)
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " of type " << type
           << "; expected elements of the last dimension side by side, a "
              "stride of 1";
  Type element = memref.getElementType();
  if (!element.isBF16() && !element.isF16() && !element.isF32() &&
      !element.isSignlessInteger(32) && !element.isSignlessInteger(64) &&
      !isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
           Float8E5M2FNUZType>(element))
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " with elements "
           << element
           << "; expected bf16, f16, f32, an 8-bit float, i32 or i64";
  return success();
}

StringRef kvbuf::accessOf(gpu::GPUFuncOp kernel, unsigned argument) {
  if (auto access = kernel.getArgAttrOfType<StringAttr>(
          argument, KVBufferDialect::kAccessAttr))
    return access.getValue();
  bool reads = false, writes = false;
  for (Operation *user : kernel.getArgument(argument).getUsers()) {
    if (isa<memref::LoadOp, CacheTileOp, CacheNumKeysOp, CacheScaleOp,
            FindTileOp, NumberTilesOp, MakeCacheOp>(user)) {
      reads = true;
    } else if (isa<RowStoreOp>(user)) {
      writes = true;
    } else if (auto tile = dyn_cast<DramTileOp>(user);
               tile && tile.getNumbers() == kernel.getArgument(argument)) {
      reads = true;
    } else if (tile) {
      for (Operation *use : tile->getUsers()) {
        bool isStore = isa<FragmentStoreOp>(use);
        bool isLoad = isa<DramLoadOp, RingLoadOp, TileFragmentOp>(use);
        writes |= !isLoad;
        reads |= !isStore;
      }
    } else if (!isa<memref::DimOp>(user)) {
      reads = writes = true;
    }
  }
  return !writes ? "read" : reads ? "read_write" : "write";
}

int64_t kvbuf::loadedRows(Value tensor, int64_t dimension) {
  int64_t rows = 0;
  for (Operation *user : tensor.getUsers())
    if (auto tile = dyn_cast<DramTileOp>(user))
      if (tile.getTensor() == tensor && tile.getRowDimension() == dimension &&
          llvm::any_of(tile->getUsers(),
                       llvm::IsaPred<DramLoadOp, RingLoadOp, TileFragmentOp>))
        rows = std::max(rows, tile.getTile().getType().getRows());
  return rows;
}

bool kvbuf::hasGroups(Value tensor) {
  return llvm::any_of(tensor.getUsers(), [&](Operation *user) {
    auto tile = dyn_cast<DramTileOp>(user);
    return tile && tile.getTensor() == tensor && tile.getGroup() > 1;
  });
}

SmallVector<unsigned> kvbuf::sizesOfMade(Value argument) {
  SmallVector<unsigned> dims;
  for (OpOperand &use : argument.getUses()) {
    auto make = dyn_cast<MakeCacheOp>(use.getOwner());
    if (!make)
      continue;
    auto layout = cast<CacheLayout>(make.getCache().getType());
    CacheRows rows = layout.getRows();
    int64_t leading = layout.getLeadingDims().size();
    bool isData = make.getData() == argument;
    if (rows.byPlace) {
      // Whatever the code that the type emits asks for.
      auto type = dyn_cast<MemRefType>(argument.getType());
      for (int64_t d = 0; type && d < (isData ? leading : type.getRank()); ++d)
        dims.push_back(d);
    } else if (layout.getRun() && rows.table) {
      if (!isData && make.getIndices()[*rows.table] == argument)
        dims.push_back(1);
    } else if (isData) {
      dims.push_back(leading - 1);
    }
  }
  return dims;
}

SmallVector<unsigned> kvbuf::sizesOfTokens(Value argument) {
  SmallVector<unsigned> dims;
  for (Operation *user : argument.getUsers())
    if (auto append = dyn_cast<AppendTokensOp>(user)) {
      if (argument == append.getCos() || argument == append.getSin())
        dims.push_back(0);
      else if (isa<MemRefType>(argument.getType()))
        dims.push_back(1);
    }
  return dims;
}

/// Whether fragments are stored into tiles of a tensor.
static bool storesFragments(Value tensor) {
  return llvm::any_of(tensor.getUsers(), [](Operation *user) {
    return isa<DramTileOp>(user) &&
           llvm::any_of(user->getUsers(), llvm::IsaPred<FragmentStoreOp>);
  });
}

std::optional<int64_t> kvbuf::ownAlignment(Value argument, int64_t alignment) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || argument.use_empty())
    return std::nullopt;
  int64_t element = type.getElementTypeBitWidth() / 8;
  if (llvm::any_of(argument.getUsers(), llvm::IsaPred<AppendTokensOp>))
    return std::gcd<int64_t>(16, type.getShape().back() * element);
  if (element <= 2 &&
      llvm::all_of(argument.getUsers(),
                   llvm::IsaPred<memref::LoadOp, memref::DimOp>))
    return element;
  if (element > 2 && alignment > element && storesFragments(argument))
    return alignment;
  return std::nullopt;
}

bool kvbuf::storesScales(Value cache) {
  return cast<CacheLayout>(cache.getType()).getGranularity() > 0 &&
         llvm::any_of(cache.getUsers(), llvm::IsaPred<AppendTokensOp>);
}

SmallVector<StringRef> kvbuf::sizesNeededBy(Operation *op) {
  if (auto size = dyn_cast<LaunchSizeOp>(op))
    return {size.getName()};
  Value cache;
  if (auto keys = dyn_cast<CacheNumKeysOp>(op))
    cache = keys.getCache();
  else if (auto tile = dyn_cast<CacheTileOp>(op))
    cache = tile.getCache();
  else if (auto scale = dyn_cast<CacheScaleOp>(op))
    cache = scale.getCache();
  // What a program makes of memrefs has their sizes.
  if (!cache || cache.getDefiningOp())
    return {};
  auto layout = cast<CacheLayout>(cache.getType());
  CacheRows rows = layout.getRows();
  SmallVector<StringRef> sizes;
  auto need = [&](const CacheDim &dim) {
    if (ShapedType::isDynamic(dim.size))
      sizes.push_back(sizeOfCache(cache, dim.name));
  };
  if (rows.byPlace) {
    llvm::for_each(layout.getLeadingDims(), need);
    for (const CacheTensor &tensor : layout.getIndexTensors())
      llvm::for_each(tensor.dims, need);
    return sizes;
  }
  // A tile of a ragged cache ends where the tensor does.
  if (rows.endWithData() || isa<CacheScaleOp>(op) ||
      (isa<CacheTileOp>(op) && !rows.offsets))
    return {};
  need(layout.getRun() && rows.table
           ? layout.getIndexTensors()[*rows.table].dims.back()
           : layout.getLeadingDims().back());
  return sizes;
}
