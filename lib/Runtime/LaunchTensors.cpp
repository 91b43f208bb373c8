//===- lib/Runtime/LaunchTensors.cpp - Tensors of a launch ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchTensors.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <set>

using namespace kvbuf::rt;

std::string kvbuf::rt::startsAt(const TensorArg &arg) {
  char address[32];
  std::snprintf(address, sizeof(address), "0x%llx",
                static_cast<unsigned long long>(arg.address));
  return "tensor '" + arg.name + "' starts at address " + address;
}

namespace {

/// Does a kernel take this stride as an argument, or in a tensor map?
/// Otherwise it assumes the contiguous one.
bool takesStride(const Manifest &m, const std::string &tensor, size_t dim) {
  for (const KernelSpec &k : m.kernels)
    for (const KernelArg &arg : k.args)
      if (arg.tensor == tensor &&
          (arg.kind == KernelArg::Kind::TensorMap ||
           (arg.kind == KernelArg::Kind::Stride && arg.dim == dim)))
        return true;
  return false;
}

void checkStrides(const Manifest &m, const TensorSpec &spec,
                  const TensorArg &arg) {
  std::string who = "tensor '" + spec.name + "'";
  std::vector<int64_t> dense = contiguousStrides(arg.shape);
  bool empty = std::count(arg.shape.begin(), arg.shape.end(), 0) > 0;
  if (uint64_t size = sizeOf(spec.dtype); arg.address % size != 0)
    throw Error(startsAt(arg) + "; expected a multiple of " +
                std::to_string(size) + " bytes, the size of an element");
  if (!empty && arg.address == 0)
    throw Error(who + " has a null address");
  size_t rank = arg.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    // The stride of a dimension with fewer than two elements moves nothing.
    if (empty || arg.shape[d] < 2)
      continue;
    int64_t stride = arg.strides[d];
    std::string what = who + ": stride " + std::to_string(stride) +
                       " of dimension " + std::to_string(d);
    if (d + 1 == rank) {
      if (stride != 1)
        throw Error(what + "; the innermost dimension must be contiguous "
                           "(stride 1)");
      continue;
    }
    if (stride < 0)
      throw Error(what + " is negative");
    if (!takesStride(m, spec.name, d) && stride != dense[d])
      throw Error(what +
                  "; the kernel expects this tensor contiguous there "
                  "(stride " +
                  std::to_string(dense[d]) + ")");
  }
  if (!empty && m.problem())
    m.problem()->checkStrides(arg);
}

/// Registered ranges must not overlap, but users may interleave tensors (q, k
/// and v of one buffer): overlapping ranges become one with both rights.
std::vector<BufferUse> mergeRanges(std::vector<BufferUse> uses) {
  std::sort(uses.begin(), uses.end(),
            [](const BufferUse &a, const BufferUse &b) {
              return a.address < b.address;
            });
  std::vector<BufferUse> merged;
  for (BufferUse &use : uses) {
    if (use.bytes == 0)
      continue;
    if (!merged.empty() &&
        use.address < merged.back().address + merged.back().bytes) {
      BufferUse &last = merged.back();
      last.bytes = std::max(last.bytes, use.address + use.bytes - last.address);
      last.name += "|" + use.name;
      last.readable |= use.readable;
      last.writable |= use.writable;
      last.initialized |= use.initialized;
      continue;
    }
    merged.push_back(std::move(use));
  }
  return merged;
}

/// Whether two tensors, which have their strides, have a byte in common, as far
/// as can be told: tensors whose rows lie between each other's rows, as parts
/// of one tensor do, have none. Such lie apart in every period of some stride.
bool mayShare(const TensorArg &a, const TensorArg &b) {
  uint64_t aBytes = spanBytes(a.dtype, a.shape, a.strides),
           bBytes = spanBytes(b.dtype, b.shape, b.strides);
  if (!aBytes || !bBytes || a.address + aBytes <= b.address ||
      b.address + bBytes <= a.address)
    return false;
  // The bytes of a period that a tensor is in, from its first one's on; 0 where
  // that is more than a period.
  auto within = [](const TensorArg &t, uint64_t period) {
    uint64_t bytes = sizeOf(t.dtype);
    for (size_t d = 0; d < t.shape.size(); ++d) {
      uint64_t stride = static_cast<uint64_t>(t.strides[d]) * sizeOf(t.dtype);
      if (t.shape[d] > 1 && stride % period != 0)
        bytes += static_cast<uint64_t>(t.shape[d] - 1) * stride;
    }
    return bytes <= period ? bytes : 0;
  };
  for (const TensorArg *t : {&a, &b})
    for (size_t d = 0; d < t->shape.size(); ++d) {
      uint64_t period = static_cast<uint64_t>(t->strides[d]) * sizeOf(t->dtype);
      if (t->shape[d] < 2 || period == 0)
        continue;
      uint64_t mine = within(a, period), its = within(b, period);
      uint64_t behind =
          (b.address % period + period - a.address % period) % period;
      if (mine && its && behind >= mine && behind + its <= period)
        return false;
    }
  return true;
}

/// Whether each element of one tensor has the address of the other's element of
/// the same indices. Both have their strides.
bool liesIn(const TensorArg &a, const TensorArg &b) {
  bool same = a.address == b.address && a.dtype == b.dtype &&
              a.shape.size() == b.shape.size();
  for (size_t d = 0; same && d < a.shape.size(); ++d)
    same = (a.shape[d] < 2 || a.strides[d] == b.strides[d]) &&
           a.shape[d] <= b.shape[d];
  return same;
}

/// Throws Error where new keys and values would be stored in the same bytes.
void checkStoredBoth(const Manifest &manifest, const BoundTensors &bound) {
  for (const Manifest::StoredBoth &both : manifest.storedBoth) {
    const TensorArg &values = bound.at(both.values),
                    &keys = bound.at(both.keys);
    auto one = bound.find(both.valuesTable), other = bound.find(both.keysTable);
    // What another table names may lie elsewhere in the same memory.
    if (one != bound.end() && other != bound.end() &&
        one->second.address != other->second.address)
      continue;
    if (!mayShare(values, keys) ||
        (!both.made && liesIn(values, keys) &&
         liesIn(bound.at(both.newValues), bound.at(both.newKeys))))
      continue;
    throw Error(
        "tensor '" + both.values + "' shares memory with tensor '" + both.keys +
        "', and new tokens of both are stored at the same places; "
        "expected memory of its own" +
        (both.made ? ""
                   : ", or tensor '" + both.newValues +
                         "' in the same place of '" + both.newKeys + "'"));
  }
}

/// The dimension along which a tensor, which has its strides, comes to one of
/// its other elements' addresses again; -1 if none is found. Found are steps
/// that are no steps, and those of one dimension that end where another's do.
int overlappingDim(const TensorArg &tensor) {
  int rank = static_cast<int>(tensor.shape.size());
  for (int d = 0; d < rank; ++d) {
    int64_t stride = tensor.strides[d];
    if (tensor.shape[d] < 2)
      continue;
    if (stride == 0)
      return d;
    for (int inner = 0; inner < rank; ++inner)
      if (int64_t step = tensor.strides[inner];
          inner != d && tensor.shape[inner] > 1 && step != 0 &&
          stride % step == 0 && stride / step < tensor.shape[inner])
        return d;
  }
  return -1;
}

/// A row's tail is found by its place in a block, which strides must be those
/// of. Of pages of one token each is any row of a block, or its first one.
void checkTails(const TensorSpec &spec, const TensorArg &arg) {
  if (!spec.tailBlock)
    return;
  size_t rows = arg.shape.size() - 3;
  for (size_t d = 0; d <= rows; ++d) {
    bool isRow = d == rows || arg.shape[rows] == 1, isBlock = d != rows;
    int64_t stride = arg.strides[d];
    if (arg.shape[d] > 1 && !(isRow && stride == spec.tailRow) &&
        !(isBlock && stride % spec.tailBlock == 0))
      throw Error(
          "tensor '" + spec.name + "': stride " + std::to_string(stride) +
          " of dimension " + std::to_string(d) + "; expected " +
          (isRow ? std::to_string(spec.tailRow) : "") +
          (isRow && isBlock ? " or " : "") +
          (isBlock ? "a multiple of " + std::to_string(spec.tailBlock) : "") +
          ", as rows have tails behind those of their block");
  }
}

} // namespace

std::vector<int64_t>
kvbuf::rt::contiguousStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    if (__builtin_mul_overflow(strides[d], std::max<int64_t>(shape[d], 1),
                               &strides[d - 1]))
      throw Error("a tensor of shape " + shapeString(shape) +
                  " exceeds 64-bit addressing");
  return strides;
}

uint64_t kvbuf::rt::spanBytes(DType dtype, const std::vector<int64_t> &shape,
                              const std::vector<int64_t> &strides) {
  if (std::count(shape.begin(), shape.end(), 0) > 0)
    return 0;
  int64_t elements = 1, step = 0, bytes = 0;
  bool overflow = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    // The stride of one element moves nothing, and may be anything.
    if (shape[d] == 1)
      continue;
    overflow |= __builtin_mul_overflow(shape[d] - 1, strides[d], &step) ||
                __builtin_add_overflow(elements, step, &elements);
  }
  overflow |= __builtin_mul_overflow(
      elements, static_cast<int64_t>(sizeOf(dtype)), &bytes);
  if (overflow)
    throw Error("a tensor of shape " + shapeString(shape) + " with strides " +
                shapeString(strides) + " exceeds 64-bit addressing");
  return static_cast<uint64_t>(bytes);
}

void kvbuf::rt::inferSizes(const Manifest &manifest,
                           const std::vector<TensorArg> &tensors,
                           Sizes &sizes) {
  for (const TensorArg &tensor : tensors) {
    const TensorSpec *spec = manifest.findTensor(tensor.name);
    if (!spec) {
      std::vector<std::string> names;
      for (const TensorSpec &t : manifest.tensors)
        names.push_back(t.name);
      throw Error("the kernel has no tensor '" + tensor.name + "'; it has " +
                  quotedList(names, "and"));
    }
    std::string who = "tensor '" + tensor.name + "'";
    // Raw bytes stand for any 8-bit float.
    if (tensor.dtype != spec->dtype &&
        !(tensor.dtype == DType::U8 && isFloat8(spec->dtype)))
      throw Error(who + " is " + nameOf(tensor.dtype) + "; expected " +
                  nameOf(spec->dtype));
    std::string expected = who + " has shape " + shapeString(tensor.shape) +
                           "; expected " + shapeString(spec->shape);
    if (tensor.shape.size() != spec->shape.size())
      throw Error(expected);
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (unify(spec->shape[d], tensor.shape[d], sizes))
        continue;
      std::set<std::string> names;
      spec->shape[d].collectNames(names);
      std::string where;
      for (const std::string &name : names)
        where += (where.empty() ? " where " : ", ") + name + " = " +
                 std::to_string(sizes[name]);
      throw Error(expected + where);
    }
  }
}

BoundTensors kvbuf::rt::bindTensors(const Manifest &manifest,
                                    const std::vector<TensorArg> &tensors,
                                    BoundLaunch &launch) {
  BoundTensors bound;
  for (const TensorArg &tensor : tensors) {
    const TensorSpec &spec = *manifest.findTensor(tensor.name);
    if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
      throw Error("tensor '" + tensor.name + "' has " +
                  std::to_string(tensor.strides.size()) + " strides for " +
                  std::to_string(tensor.shape.size()) + " dimensions");
    BoundTensor arg{tensor, static_cast<int>(bound.size())};
    if (arg.strides.empty())
      arg.strides = contiguousStrides(arg.shape);
    checkStrides(manifest, spec, arg);
    if (!bound.emplace(arg.name, arg).second)
      throw Error("tensor '" + arg.name + "' is given twice");
  }

  for (const TensorSpec &spec : manifest.tensors) {
    auto it = bound.find(spec.name);
    if (it == bound.end())
      throw Error("missing tensor '" + spec.name + "': " + nameOf(spec.dtype) +
                  " of shape " + shapeString(spec.shape));
    const TensorArg &arg = it->second;
    uint64_t bytes = spanBytes(arg.dtype, arg.shape, arg.strides);
    checkTails(spec, arg);
    bool apart = bytes && spec.output && !spec.tailBlock;
    if (int d = apart ? overlappingDim(arg) : -1; d >= 0)
      throw Error("tensor '" + spec.name + "' is written, and stride " +
                  std::to_string(arg.strides[d]) + " of dimension " +
                  std::to_string(d) +
                  " makes elements overlap; expected an address for each");
    if (arg.address + bytes < arg.address)
      throw Error("tensor '" + spec.name + "' of " + std::to_string(bytes) +
                  " bytes reaches beyond the end of memory");
    launch.buffers.push_back({spec.name, arg.address, bytes,
                              /*readable=*/spec.input,
                              /*writable=*/spec.output,
                              /*initialized=*/spec.input});
  }
  launch.buffers = mergeRanges(std::move(launch.buffers));
  for (const auto &[written, read, inPlace] : manifest.apart) {
    const TensorArg &a = bound.at(written), &b = bound.at(read);
    if (!mayShare(a, b) || (inPlace && liesIn(a, b)))
      continue;
    throw Error("tensor '" + written + "' shares memory with tensor '" + read +
                (manifest.findTensor(read)->input
                     ? "', which is still read while it is written"
                     : "', which is written, too") +
                "; expected memory of its own" +
                (inPlace ? ", or '" + read + "' itself" : ""));
  }
  checkStoredBoth(manifest, bound);
  return bound;
}
