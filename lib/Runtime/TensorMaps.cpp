//===- lib/Runtime/TensorMaps.cpp - Maps for the copy engine ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Launch.h"

#include <algorithm>
#include <cstring>

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

} // namespace

bool BoundTensorMap::operator==(const BoundTensorMap &other) const {
  return dtype == other.dtype && l2Promotion == other.l2Promotion &&
         std::memcmp(&map, &other.map, sizeof(map)) == 0;
}

std::string kvbuf::rt::bindTensorMap(const TensorMapRecipe &recipe,
                                     const TensorArg &tensor,
                                     BoundTensorMap &bound) {
  SoftwareTensorMap &map = bound.map;
  std::string who = "tensor '" + tensor.name + "'";
  uint64_t elementBytes = sizeOf(tensor.dtype);
  constexpr uint64_t align = TensorMapRecipe::kAlignment;
  bool empty = std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0;

  bound.tensor = tensor.name;
  bound.dtype = tensor.dtype;
  bound.l2Promotion = recipe.l2Promotion;
  map.magic = SoftwareTensorMap::expectedMagic;
  map.elementBytes = static_cast<uint8_t>(elementBytes);
  map.rank = static_cast<uint8_t>(recipe.dims.size());
  map.swizzle = static_cast<uint8_t>(recipe.swizzle);
  map.address = empty ? 0 : tensor.address + recipe.firstColumn * elementBytes;
  if (map.address % align != 0)
    return who + " starts at an address that is no multiple of 16 bytes, which "
                 "a tensor map needs";
  for (unsigned d = 0; d < map.rank; ++d) {
    unsigned dim = recipe.dims[d];
    uint64_t extent = d == 0 && recipe.columns
                          ? recipe.columns
                          : static_cast<uint64_t>(tensor.shape[dim]);
    map.box[d] = recipe.box[d];
    map.dims[d] = empty ? 1 : extent;
    if (map.dims[d] > kMostElements)
      return who + ": extent " + std::to_string(extent) + " of dimension " +
             std::to_string(dim) + "; a tensor map takes at most 2^32";
    if (d == 0)
      continue;
    // The stride of a dimension with one element moves nothing.
    if (map.dims[d] == 1) {
      map.strides[d - 1] = unusedStride(map, d);
      continue;
    }
    uint64_t stride = static_cast<uint64_t>(tensor.strides[dim]);
    if (stride == 0 || stride % (align / std::min(elementBytes, align)) != 0 ||
        stride >= kStrideLimit / elementBytes)
      return who + ": stride " + std::to_string(stride) + " of dimension " +
             std::to_string(dim) + " is " +
             std::to_string(stride * elementBytes) +
             " bytes; a tensor map needs a multiple of 16, from 16 to "
             "2^40 - 16";
    map.strides[d - 1] = stride * elementBytes;
  }
  return "";
}
