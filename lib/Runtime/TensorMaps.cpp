//===- lib/Runtime/TensorMaps.cpp - Maps for the copy engine ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Launch.h"

#include <algorithm>
#include <vector>

using namespace kvbuf::rt;

namespace {

/// Limits of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
/// Management"): strides lie below the first, extents up to the second.
constexpr uint64_t kStrideLimit = uint64_t(1) << 40;
constexpr uint64_t kMostElements = uint64_t(1) << 32;

/// A stride for a dimension that has one element: any legal one will do, this
/// is that of a tensor without gaps.
uint64_t unusedStride(const SoftwareTensorMap &map, unsigned d) {
  uint64_t inner = d == 1 ? map.dims[0] * map.elementBytes
                          : map.strides[d - 2] * map.dims[d - 1];
  constexpr uint64_t align = TensorMapRecipe::kAlignment;
  return std::min((inner + align - 1) / align * align, kStrideLimit - align);
}

/// A dimension of a map: elements, and bytes from one to the next.
struct Extent {
  uint64_t elements;
  int64_t bytes;
  /// Of the tensor, for messages.
  unsigned dimension;
};

/// The map's dimensions but for its columns, of a map of a cache's rows; sets
/// its columns and where its rows begin. Returns why there is none, or "".
std::string bindFlat(const TensorMapRecipe &recipe, const TensorArg &tensor,
                     uint64_t &columns, int64_t &firstByte,
                     std::vector<Extent> &extents) {
  const TensorMapRecipe::Flat &flat = *recipe.flat;
  int64_t bytes = sizeOf(tensor.dtype), view = sizeOf(flat.view);
  auto stride = [&](unsigned dim) { return tensor.strides[dim] * bytes; };
  unsigned rowDim = recipe.dims.back();
  int64_t row = stride(rowDim);
  std::string who = "tensor '" + tensor.name + "': ";
  if (flat.stride && row != int64_t(flat.stride) * view)
    return who + "rows are " + std::to_string(row) +
           " bytes apart; the kernel's tensor map is of rows " +
           std::to_string(flat.stride * view) + " bytes apart";
  // What a row has of dimensions that the map leaves out.
  int64_t width = tensor.shape.back() * bytes;
  for (unsigned d = rowDim + 1; d + 1 < tensor.shape.size(); ++d) {
    if (std::count(recipe.dims.begin(), recipe.dims.end(), d) ||
        tensor.shape[d] < 2)
      continue;
    width += (tensor.shape[d] - 1) * stride(d);
    if (stride(d) > row || width > row)
      return who + "dimension " + std::to_string(d) +
             " does not lie within a row; the kernel's tensor map is of whole "
             "rows";
  }
  columns = flat.columns ? flat.columns
                         : std::max<int64_t>(width - flat.firstByte, 0) / view;
  uint64_t rows = tensor.shape[rowDim];
  if (flat.fold && tensor.shape[*flat.fold] > 1) {
    int64_t block = stride(*flat.fold);
    if (row <= 0 || block % row)
      return who + "blocks are " + std::to_string(block) +
             " bytes apart, no multiple of the " + std::to_string(row) +
             " between rows; the kernel's tensor map counts rows through all "
             "blocks";
    rows += (tensor.shape[*flat.fold] - 1) * (block / row);
  }
  firstByte = flat.firstByte;
  if (flat.cutRows) {
    extents.push_back({flat.cutRows, row, rowDim});
    firstByte -= int64_t(flat.cutRows) * row;
    ++rows;
  }
  for (size_t i = 1; i + 1 < recipe.dims.size(); ++i)
    extents.push_back({uint64_t(tensor.shape[recipe.dims[i]]),
                       stride(recipe.dims[i]), recipe.dims[i]});
  extents.push_back({rows, row, rowDim});
  return "";
}

} // namespace

std::string kvbuf::rt::bindTensorMap(const TensorMapRecipe &recipe,
                                     const TensorArg &tensor,
                                     BoundTensorMap &bound) {
  SoftwareTensorMap &map = bound.map;
  std::string who = "tensor '" + tensor.name + "'";
  DType dtype = recipe.flat ? recipe.flat->view : tensor.dtype;
  uint64_t elementBytes = sizeOf(dtype);
  constexpr uint64_t align = TensorMapRecipe::kAlignment;
  bool empty = std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0;
  uint64_t columns = recipe.columns
                         ? recipe.columns
                         : static_cast<uint64_t>(tensor.shape.back());
  int64_t firstByte = int64_t(recipe.firstColumn) * elementBytes;
  std::vector<Extent> extents;
  if (recipe.flat) {
    if (std::string why = bindFlat(recipe, tensor, columns, firstByte, extents);
        !why.empty())
      return why;
  } else {
    for (size_t i = 1; i < recipe.dims.size(); ++i)
      extents.push_back({static_cast<uint64_t>(tensor.shape[recipe.dims[i]]),
                         tensor.strides[recipe.dims[i]] * int64_t(elementBytes),
                         recipe.dims[i]});
  }
  extents.insert(extents.begin(), {columns, 0, recipe.dims[0]});

  bound.tensor = tensor.name;
  bound.dtype = dtype;
  bound.l2Promotion = recipe.l2Promotion;
  map.magic = SoftwareTensorMap::expectedMagic;
  map.elementBytes = static_cast<uint8_t>(elementBytes);
  map.rank = static_cast<uint8_t>(extents.size());
  map.swizzle = static_cast<uint8_t>(recipe.swizzle);
  map.address = empty ? 0 : tensor.address + firstByte;
  if (map.address % align != 0)
    return who + " starts at an address that is no multiple of 16 bytes, which "
                 "a tensor map needs";
  for (unsigned d = 0; d < map.rank; ++d) {
    const Extent &extent = extents[d];
    std::string dim = std::to_string(extent.dimension);
    map.box[d] = recipe.box[d];
    map.dims[d] = empty ? 1 : extent.elements;
    if (map.dims[d] > kMostElements)
      return who + ": extent " + std::to_string(extent.elements) +
             " of dimension " + dim + "; a tensor map takes at most 2^32";
    if (d == 0)
      continue;
    // The stride of a dimension with one element moves nothing.
    if (map.dims[d] == 1) {
      map.strides[d - 1] = unusedStride(map, d);
      continue;
    }
    uint64_t stride = static_cast<uint64_t>(extent.bytes);
    if (stride == 0 || stride % align != 0 || stride >= kStrideLimit)
      return who + ": stride " +
             std::to_string(tensor.strides[extent.dimension]) +
             " of dimension " + dim + " is " + std::to_string(stride) +
             " bytes; a tensor map needs a multiple of 16, from 16 to "
             "2^40 - 16";
    map.strides[d - 1] = stride;
  }
  return "";
}
