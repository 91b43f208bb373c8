//===- ArgumentUses.cpp - What a kernel does with an argument ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ArgumentUses.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

namespace {
/// What is done with a tensor.
struct Accesses {
  bool reads = false, writes = false;

  void operator|=(Accesses other) {
    reads |= other.reads;
    writes |= other.writes;
  }
};
} // namespace

constexpr Accesses kReads{true, false}, kWrites{false, true}, kBoth{true, true};

/// What the readers and writers of a tile do with the tensor that it is of.
static Accesses accessesOfTile(Operation *tile) {
  Accesses accesses;
  for (Operation *user : tile->getUsers())
    accesses |= isa<FragmentStoreOp>(user)                          ? kWrites
                : isa<DramLoadOp, RingLoadOp, TileFragmentOp>(user) ? kReads
                                                                    : kBoth;
  return accesses;
}

static Accesses accessesOf(Value value, bool scales);

/// What an op does with a tensor, or with the data or the scales of a cache.
static Accesses accessesBy(OpOperand &use, bool scales) {
  Operation *op = use.getOwner();
  if (isa<memref::DimOp>(op))
    return {};
  if (isa<memref::LoadOp, vector::LoadOp, vector::TransferReadOp, CacheTileOp,
          CacheNumKeysOp, CacheScaleOp, FindTileOp, NumberTilesOp>(op))
    return kReads;
  if (isa<memref::StoreOp, vector::StoreOp, RowStoreOp>(op))
    return kWrites;
  if (auto tile = dyn_cast<DramTileOp>(op))
    return tile.getNumbers() == use.get() ? kReads : accessesOfTile(tile);
  if (auto make = dyn_cast<MakeCacheOp>(op)) {
    // What rows are found by is read.
    Accesses accesses = kReads;
    if (use.get() == make.getData())
      accesses |= accessesOf(make.getCache(), /*scales=*/false);
    if (use.get() == make.getScales())
      accesses |= accessesOf(make.getCache(), /*scales=*/true);
    return accesses;
  }
  // Tokens have scales of their own; those of a head or a tensor stay.
  if (auto append = dyn_cast<AppendTokensOp>(op)) {
    auto cache = dyn_cast<CacheLayout>(use.get().getType());
    return scales && cache && cache.getGranularity() <= 0 ? kReads : kBoth;
  }
  if (isa<CacheStoreOp>(op))
    return scales ? Accesses() : kBoth;
  if (isa<StoreScaleOp>(op))
    return scales ? kBoth : Accesses();
  // Whoever has a view may write to it.
  if (isa<BlockPagedPtrOp>(op))
    return scales ? kReads : kBoth;
  if (isa<ScalesBlockPagedPtrOp, ScalesRawPtrOp>(op))
    return scales ? kBoth : kReads;
  // An op of another dialect that makes a tile, of this tensor or by it.
  if (op->getNumResults() == 1 && isa<TileType>(op->getResult(0).getType())) {
    Accesses accesses = accessesOfTile(op);
    accesses |= kReads;
    return accesses;
  }
  return op->hasTrait<LaneLevel>() ? kReads : kBoth;
}

static Accesses accessesOf(Value value, bool scales) {
  Accesses accesses;
  for (OpOperand &use : value.getUses())
    accesses |= accessesBy(use, scales);
  return accesses;
}

TensorAccess kvbuf::accessOf(gpu::GPUFuncOp kernel, unsigned argument,
                             bool scales) {
  auto stated = kernel.getArgAttrOfType<StringAttr>(
      argument, KVBufferDialect::kAccessAttr);
  if (stated && (!scales || stated == "read"))
    return *symbolizeTensorAccess(stated.getValue());
  Accesses accesses = accessesOf(kernel.getArgument(argument), scales);
  return !accesses.writes           ? TensorAccess::Read
         : accesses.reads || scales ? TensorAccess::ReadWrite
                                    : TensorAccess::Write;
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
  if (!type)
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

int64_t kvbuf::statedAlignment(Value argument) {
  int64_t bytes = 1;
  for (Operation *user : argument.getUsers())
    if (isa<CacheLoadOp, CacheStoreOp, LoadQuantizedOp, memref::LoadOp,
            memref::StoreOp, vector::LoadOp, vector::StoreOp>(user))
      if (auto alignment = user->getAttrOfType<IntegerAttr>("alignment"))
        bytes = std::max(bytes, std::min<int64_t>(alignment.getInt(), 16));
  return bytes;
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
