//===- lib/Runtime/Launch.cpp - Binding tensors to kernels ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Launch.h"
#include "LaunchTensors.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

using namespace kvbuf::rt;

namespace {

unsigned gridExtent(const SizeExpr &expr, const Sizes &sizes, unsigned dim) {
  // Limits of CUDA and HIP alike.
  int64_t limit = dim == 0 ? std::numeric_limits<int32_t>::max() : 65535;
  int64_t extent = evaluate(expr, sizes);
  if (extent < 0 || extent > limit)
    throw Error("grid dimension " + std::to_string(dim) + " = " + expr.str() +
                " is " + std::to_string(extent) + "; expected 0 to " +
                std::to_string(limit));
  return static_cast<unsigned>(extent);
}

/// Why a kernel's copies cannot take a tensor's address and strides, else "".
std::string whyUnaligned(const KernelSpec &spec, const TensorSpec &t,
                         const BoundTensor &arg) {
  uint64_t align = 0;
  for (const KernelArg &k : spec.args)
    if (!align && k.kind == KernelArg::Kind::Pointer && k.tensor == t.name)
      align = k.alignment;
  bool copied =
      t.dtype == DType::F16 || t.dtype == DType::BF16 || isFloat8(t.dtype);
  if (!align && copied)
    align = spec.alignment;
  if (align <= 1)
    return "";
  std::string need = "; the kernel needs a multiple of ";
  // Even a copy of nothing has an address.
  if (arg.address % align != 0)
    return startsAt(arg) + need + std::to_string(align) + " bytes";
  if (std::count(arg.shape.begin(), arg.shape.end(), 0) > 0)
    return "";
  for (size_t d = 0; d + 1 < arg.shape.size(); ++d) {
    uint64_t bytes = static_cast<uint64_t>(arg.strides[d]) * sizeOf(t.dtype);
    if (arg.shape[d] > 1 && bytes % align != 0)
      return "tensor '" + arg.name + "': stride " +
             std::to_string(arg.strides[d]) + " of dimension " +
             std::to_string(d) + " is " + std::to_string(bytes) + " bytes" +
             need + std::to_string(align);
  }
  return "";
}

/// Why rows of a tensor are too far apart for a kernel, else "".
std::string whyTooFar(const KernelSpec &spec, const TensorSpec &t,
                      const BoundTensor &arg) {
  if (std::count(arg.shape.begin(), arg.shape.end(), 0) > 0)
    return "";
  for (const KernelArg &k : spec.args)
    // The stride of one element moves nothing.
    if (k.kind == KernelArg::Kind::Stride && k.tensor == t.name && k.limit &&
        arg.shape[k.dim] > 1 && arg.strides[k.dim] > k.limit)
      return "tensor '" + arg.name + "': stride " +
             std::to_string(arg.strides[k.dim]) + " of dimension " +
             std::to_string(k.dim) + " is more than " +
             std::to_string(k.limit) +
             ", the largest that the kernel takes: a tile's rows must lie "
             "within 2^31 bytes";
  return "";
}

/// Why a kernel's maps cannot describe a tensor, else "".
std::string whyUnmapped(const KernelSpec &spec, const TensorSpec &t,
                        const BoundTensor &arg) {
  BoundTensorMap map;
  std::string reason;
  for (const KernelArg &k : spec.args)
    if (reason.empty() && k.kind == KernelArg::Kind::TensorMap &&
        k.tensor == t.name)
      reason = bindTensorMap(k.map, arg, map);
  return reason;
}

/// A launch of kernels that run together, what they take, and what is copied
/// for them.
struct Together {
  std::vector<std::pair<const KernelSpec *, KernelLaunch>> kernels;
  std::vector<const KernelSpec *> copiers;
  /// Those that run ahead of the first one.
  std::vector<const KernelSpec *> ahead;

  /// All that take the caller's tensors as they are, or as they are copied.
  std::vector<const KernelSpec *> all() const {
    std::vector<const KernelSpec *> list = ahead;
    for (const auto &[kernel, launch] : kernels)
      list.push_back(kernel);
    return list;
  }
};

/// Why some of the kernels cannot take a tensor, else "".
std::string whyNot(const Together &together, const TensorSpec &t,
                   const BoundTensor &arg) {
  std::string reason;
  for (const KernelSpec *kernel : together.all())
    for (auto *why : {whyUnaligned, whyTooFar, whyUnmapped})
      if (reason.empty())
        reason = why(*kernel, t, arg);
  return reason;
}

/// A tensor's copy, contiguous in scratch memory.
BoundTensor copyOf(const BoundTensor &tensor, int scratch) {
  BoundTensor copy = tensor;
  copy.address = BoundTensorMap::kScratchBase;
  copy.strides = contiguousStrides(copy.shape);
  copy.number = -1;
  copy.scratch = scratch;
  return copy;
}

/// Why the kernels cannot take the tensors, nor copies of those that they
/// cannot take, else "". Sets who copies.
std::string whyNot(Together &together, const Manifest &m,
                   const BoundTensors &tensors, const Sizes &sizes) {
  const KernelSpec &first = *together.kernels.front().first;
  std::string why;
  // Alignment is told of before maps, whatever tensor it is of.
  auto firstReason = [&](auto of) {
    std::string reason;
    for (const TensorSpec &t : m.tensors)
      if (reason.empty())
        reason = of(t);
    return reason;
  };
  for (const KernelSpec *kernel : together.all()) {
    const KernelSpec &spec = *kernel;
    for (auto *of : {whyUnaligned, whyTooFar, whyUnmapped})
      if (why.empty())
        why = firstReason([&](const TensorSpec &t) {
          return of(spec, t, tensors.at(t.name));
        });
  }
  if (why.empty() || !first.copiesIf || evaluate(*first.copiesIf, sizes) <= 0)
    return why;
  std::vector<const KernelSpec *> copiers;
  for (const TensorSpec &t : m.tensors) {
    const BoundTensor &arg = tensors.at(t.name);
    std::string own = whyNot(together, t, arg);
    if (own.empty())
      continue;
    // Of several tensors, the one that no copy helps is what to tell of.
    const KernelSpec *copier = m.findCopier(t.name);
    if (!copier || !whyNot(together, t, copyOf(arg, 0)).empty())
      return own;
    copiers.push_back(copier);
  }
  together.copiers = copiers;
  return "";
}

/// Fills the kernel's tensor maps, all of which can be made.
void bindMaps(const KernelSpec &spec, const BoundTensors &tensors,
              KernelLaunch &k) {
  k.tensorMaps.clear();
  for (const KernelArg &arg : spec.args) {
    if (arg.kind != KernelArg::Kind::TensorMap)
      continue;
    const BoundTensor &tensor = tensors.at(arg.tensor);
    BoundTensorMap &map = k.tensorMaps.emplace_back();
    bindTensorMap(arg.map, tensor, map);
    map.number = tensor.number;
    map.scratch = tensor.scratch;
  }
}

/// Fills everything else.
void bindArguments(const KernelSpec &spec, const BoundTensors &tensors,
                   const Sizes &sizes, KernelLaunch &k) {
  k.entry = spec.entry;
  k.block = spec.block;
  k.dynamicSharedBytes = spec.dynamicSharedBytes;
  k.dependent = spec.dependent;
  for (unsigned d = 0; d < 3; ++d)
    k.grid[d] = gridExtent(spec.grid[d], sizes, d);
  using Kind = LaunchArg::Kind;
  uint64_t map = 0;
  for (const KernelArg &arg : spec.args) {
    switch (arg.kind) {
    case KernelArg::Kind::Pointer: {
      const BoundTensor &tensor = tensors.at(arg.tensor);
      if (tensor.scratch >= 0)
        k.args.push_back(
            {Kind::Scratch, static_cast<uint64_t>(tensor.scratch), 8});
      else
        k.args.push_back({Kind::Word, tensor.address, 8, tensor.number});
      break;
    }
    case KernelArg::Kind::Stride:
      k.args.push_back(
          {Kind::Word,
           static_cast<uint64_t>(tensors.at(arg.tensor).strides[arg.dim]), 8});
      break;
    case KernelArg::Kind::Size: {
      int64_t value = evaluate(arg.value, sizes);
      if (value > std::numeric_limits<int32_t>::max() ||
          value < std::numeric_limits<int32_t>::min())
        throw Error("size '" + arg.value.str() + "' is " +
                    std::to_string(value) +
                    "; the kernel takes at most 2147483647");
      k.args.push_back({Kind::Word, static_cast<uint64_t>(value), 4});
      break;
    }
    case KernelArg::Kind::TensorMap:
      k.args.push_back({Kind::TensorMap, map++, sizeof(SoftwareTensorMap)});
      break;
    case KernelArg::Kind::Counter:
      k.args.push_back({Kind::Counter, arg.counter, 8});
      break;
    }
  }
}

} // namespace

namespace {
/// Chooses kernels, and puts them and what they need into a launch.
class KernelBinder {
public:
  KernelBinder(const Manifest &manifest, BoundTensors &bound,
               const Sizes &sizes, BoundLaunch &launch)
      : manifest(manifest), bound(bound), sizes(sizes), launch(launch) {}

  /// Binds a kernel, or what runs in its place, and what runs beside it.
  void bind(const KernelSpec &first);

private:
  /// The kernel itself, or the next one that suits launches like this. Nothing
  /// to remark on: it is as fast a kernel for them.
  const KernelSpec *suiting(const KernelSpec *spec) const {
    while (spec->launchIf && evaluate(*spec->launchIf, sizes) <= 0)
      spec = manifest.findKernel(spec->instead);
    return spec;
  }
  /// Whether all sequences are a kernel's own: a launch of as many rows as the
  /// shortest query has would run it.
  bool hasAll(const KernelSpec &spec) const;
  /// The first of a kernel and its alternatives that can take the tensors.
  Together choose(const KernelSpec &first);
  /// Memory of a kernel that runs, and of no other: how much one needs may grow
  /// with what it is not for.
  void bindScratch(const KernelSpec &kernel);
  void add(const KernelSpec &kernel, KernelLaunch &k,
           const BoundTensors &tensors, bool beside);
  /// Adds the kernels that copy what is written, or what is read.
  void addCopies(const Together &together, bool written);

  const Manifest &manifest;
  BoundTensors &bound;
  const Sizes &sizes;
  BoundLaunch &launch;
};
} // namespace

bool KernelBinder::hasAll(const KernelSpec &spec) const {
  auto shortest = sizes.find(kShortestQuery);
  if (shortest == sizes.end() || shortest->second == 0 || !spec.launchIf)
    return false;
  Sizes of = sizes;
  of[kLongestQuery] = shortest->second;
  return evaluate(*spec.launchIf, of) > 0;
}

Together KernelBinder::choose(const KernelSpec &first) {
  const KernelSpec *spec = suiting(&first);
  // What runs, and with it what runs beside it.
  Together together;
  auto whyNotNow = [&] {
    together = {};
    together.kernels.push_back({spec, {}});
    for (const std::string &name : spec->ahead)
      together.ahead.push_back(manifest.findKernel(name));
    if (!spec->beside.empty() && !hasAll(*spec))
      for (const std::string &name : spec->beside)
        together.kernels.push_back({manifest.findKernel(name), {}});
    return whyNot(together, manifest, bound, sizes);
  };
  // One remark, on what runs: those in between may ask the same of tensors.
  std::vector<std::string> reasons;
  for (std::string reason; !(reason = whyNotNow()).empty();) {
    if (spec->instead.empty())
      throw Error("kernel '" + spec->entry + "' cannot run: " + reason);
    spec = suiting(manifest.findKernel(spec->instead));
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(reason);
  }
  if (reasons.empty())
    return together;
  std::string remark = "kernel '" + spec->entry + "' runs in place of '" +
                       first.entry + "': " + reasons.front();
  for (size_t i = 1; i < reasons.size(); ++i)
    remark += "; " + reasons[i];
  launch.remarks.push_back(remark);
  return together;
}

void KernelBinder::bindScratch(const KernelSpec &kernel) {
  for (const ScratchSpec &spec : manifest.scratch) {
    if (bound.count(spec.name) ||
        std::none_of(
            kernel.args.begin(), kernel.args.end(),
            [&](const KernelArg &arg) { return arg.tensor == spec.name; }))
      continue;
    BoundTensor arg;
    arg.name = spec.name;
    arg.dtype = spec.dtype;
    arg.shape = evaluateShape(spec, sizes);
    arg.strides = contiguousStrides(arg.shape);
    arg.address = BoundTensorMap::kScratchBase;
    arg.scratch = static_cast<int>(launch.scratch.size());
    launch.scratch.push_back({spec.name,
                              spanBytes(arg.dtype, arg.shape, arg.strides),
                              spec.counter});
    bound.emplace(arg.name, arg);
  }
}

void KernelBinder::add(const KernelSpec &kernel, KernelLaunch &k,
                       const BoundTensors &tensors, bool beside) {
  bindMaps(kernel, tensors, k);
  bindArguments(kernel, tensors, sizes, k);
  k.beside = beside;
  k.dependent |= kernel.dependentBeside && k.beside;
  if (k.grid[0] && k.grid[1] && k.grid[2])
    launch.kernels.push_back(std::move(k));
}

void KernelBinder::addCopies(const Together &together, bool written) {
  for (const KernelSpec *copier : together.copiers) {
    KernelLaunch k;
    if (manifest.findTensor(copier->copies)->output == written)
      add(*copier, k, bound, /*beside=*/false);
  }
}

void KernelBinder::bind(const KernelSpec &first) {
  Together together = choose(first);
  for (const KernelSpec *copier : together.copiers) {
    bindScratch(*copier);
    launch.remarks.push_back(
        "tensor '" + copier->copies + "' is copied for kernel '" +
        together.kernels.front().first->entry + "': " +
        whyNot(together, *manifest.findTensor(copier->copies),
               bound.at(copier->copies)));
  }
  for (const KernelSpec *kernel : together.ahead) {
    bindScratch(*kernel);
    KernelLaunch k;
    add(*kernel, k, bound, /*beside=*/false);
  }
  addCopies(together, /*written=*/false);
  size_t before = launch.kernels.size();
  // The kernel of many rows comes last: its blocks take tiles as they come, so
  // that they may begin one after the other as those of few rows end.
  std::rotate(together.kernels.begin(), together.kernels.begin() + 1,
              together.kernels.end());
  for (auto &[kernel, k] : together.kernels) {
    bindScratch(*kernel);
    bool beside = launch.kernels.size() > before;
    if (together.copiers.empty()) {
      add(*kernel, k, bound, beside);
      continue;
    }
    BoundTensors taken = bound;
    for (const KernelSpec *copier : together.copiers)
      taken[copier->copies] =
          copyOf(bound.at(copier->copies), bound.at(copier->copy).scratch);
    add(*kernel, k, taken, beside);
  }
  addCopies(together, /*written=*/true);
}

BoundLaunch kvbuf::rt::bindLaunch(const Manifest &manifest,
                                  const std::vector<TensorArg> &tensors,
                                  Sizes &sizes, unsigned multiprocessors) {
  inferSizes(manifest, tensors, sizes);
  BoundLaunch launch;
  BoundTensors bound = bindTensors(manifest, tensors, launch);
  for (const auto &[name, value] : manifest.sizeDefaults)
    if (!sizes.count(name))
      sizes[name] = evaluate(value, sizes);
  for (const auto &[name, value] : sizes)
    if (value < 0)
      throw Error("size '" + name + "' is " + std::to_string(value) +
                  "; expected 0 or more");
  if (multiprocessors > 0)
    sizes[kMultiprocessors] = multiprocessors;
  KernelBinder binder(manifest, bound, sizes, launch);
  for (const KernelSpec &first : manifest.kernels)
    if (!manifest.isAlternative(first))
      binder.bind(first);
  sizes.erase(kMultiprocessors);
  return launch;
}

//===----------------------------------------------------------------------===//
// LaunchPlan
//===----------------------------------------------------------------------===//

LaunchPlan::LaunchPlan(const Manifest &manifest, std::vector<TensorArg> tensors,
                       const Sizes &sizes, unsigned multiprocessors,
                       bool ranges)
    : manifest(manifest), tensors(std::move(tensors)), sizes(sizes),
      multiprocessors(multiprocessors), ranges(ranges) {
  bind();
}

void LaunchPlan::bind() {
  // What is decided by addresses is decided by their alignment: no kernel and
  // no map asks for more than this. Remarks, and nothing else, quote them.
  constexpr uint64_t kAlign = TensorMapRecipe::kAlignment;
  Sizes all = sizes;
  launch = bindLaunch(manifest, tensors, all, multiprocessors);
  movable = !ranges && launch.remarks.empty();
  places.clear();
  for (const TensorArg &t : tensors)
    places.push_back(
        {spanBytes(t.dtype, t.shape,
                   t.strides.empty() ? contiguousStrides(t.shape) : t.strides),
         t.address % kAlign, t.address == 0});
  apart.clear();
  auto place = [&](const std::string &name) {
    return static_cast<size_t>(
        std::find_if(tensors.begin(), tensors.end(),
                     [&](const TensorArg &t) { return t.name == name; }) -
        tensors.begin());
  };
  for (const Manifest::Apart &pair : manifest.apart) {
    size_t a = place(pair.written), b = place(pair.read);
    apart.push_back({a, b, tensors[b].address - tensors[a].address});
  }
}

const BoundLaunch &LaunchPlan::at(const uint64_t *addresses) {
  if (!holdsAt(addresses)) {
    std::vector<uint64_t> last;
    for (size_t i = 0; i < tensors.size(); ++i) {
      last.push_back(tensors[i].address);
      tensors[i].address = addresses[i];
    }
    try {
      bind();
    } catch (...) {
      // What is bound is still of the last addresses.
      for (size_t i = 0; i < tensors.size(); ++i)
        tensors[i].address = last[i];
      throw;
    }
    return launch;
  }
  for (KernelLaunch &k : launch.kernels) {
    for (LaunchArg &arg : k.args)
      if (arg.tensor >= 0)
        arg.word = addresses[arg.tensor];
    // A map may begin at another column than the tensor; without an element it
    // is of the device's own memory.
    for (BoundTensorMap &map : k.tensorMaps)
      if (map.map.address != 0 && map.number >= 0)
        map.map.address += addresses[map.number] - tensors[map.number].address;
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].address = addresses[i];
  return launch;
}
