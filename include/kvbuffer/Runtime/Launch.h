//===- include/kvbuffer/Runtime/Launch.h - Binding tensors to kernels *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// From tensors and sizes to the argument words of each kernel launch. This is
// the only place that knows the rules tensors have to keep.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_LAUNCH_H
#define KVBUFFER_RUNTIME_LAUNCH_H

#include "kvbuffer/Runtime/Manifest.h"
#include "kvbuffer/Runtime/TensorMap.h"

#include <string>
#include <vector>

namespace kvbuf::rt {

/// A tensor as the user has it.
struct TensorArg {
  std::string name;
  /// Address of the first element in the device's memory; may be 0 if there is
  /// no element.
  uint64_t address = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  /// In elements, one per dimension; empty: row-major contiguous.
  std::vector<int64_t> strides;
};

/// A range of memory that a launch may touch. GPUs ignore it; the emulator
/// reports every access outside of all ranges.
struct BufferUse {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool readable = false, writable = false, initialized = false;
};

/// A tensor map with every number known. A GPU's driver encodes it; the
/// emulator takes `map` as it is.
struct BoundTensorMap {
  std::string tensor;
  /// Which it is, counted as they are given; -1: scratch memory.
  int number = -1;
  /// Which of the launch's scratch memory it is, and `map.address` counts from
  /// its begin plus kScratchBase; -1: none.
  int scratch = -1;
  /// Such that no part of it is at 0, which stands for a tensor without
  /// elements.
  static constexpr uint64_t kScratchBase = uint64_t(1) << 40;
  DType dtype = DType::BF16;
  /// As in TensorMapRecipe.
  unsigned l2Promotion = 0;
  /// For a tensor without elements: one element at address 0, in whose place
  /// the device puts a zero of its own, since no map can have an extent of 0.
  SoftwareTensorMap map = {};
};

/// What a kernel gets for one parameter.
struct LaunchArg {
  enum class Kind {
    Word,      ///< the first `bytes` bytes of `word` (little endian)
    TensorMap, ///< number `word` of the launch's `tensorMaps`, 128 bytes
    Counter,   ///< the address of the artifact's counter number `word`
    Scratch    ///< the address of the launch's scratch memory number `word`
  };
  Kind kind = Kind::Word;
  uint64_t word = 0;
  size_t bytes = 8;
  /// The tensor whose address the word is, counted as they are given; -1: none.
  int tensor = -1;
};

/// One kernel with its grid and arguments.
struct KernelLaunch {
  std::string entry;
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned dynamicSharedBytes = 0;
  /// See KernelSpec::dependent.
  bool dependent = false;
  /// Runs beside the kernel before it (KernelSpec::beside): neither writes what
  /// the other one accesses.
  bool beside = false;
  std::vector<LaunchArg> args;
  std::vector<BoundTensorMap> tensorMaps;
};

/// Memory that the device provides for a launch, see ScratchSpec.
struct ScratchUse {
  std::string name;
  uint64_t bytes = 0;
  bool counter = false;
};

/// All launches of one run of an artifact, in order. A kernel whose grid is
/// empty is left out.
struct BoundLaunch {
  std::vector<KernelLaunch> kernels;
  std::vector<BufferUse> buffers;
  std::vector<ScratchUse> scratch;
  /// Why a kernel's alternative runs in its place, or copies run for it, one
  /// line each.
  std::vector<std::string> remarks;
};

/// Row-major strides of a shape, in elements.
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape);

/// Bytes from the first to past the last element; 0 if there is none.
uint64_t spanBytes(DType dtype, const std::vector<int64_t> &shape,
                   const std::vector<int64_t> &strides);

/// Completes `sizes` from the tensors' shapes. Throws Error that names the
/// tensor whose element type or shape does not fit the manifest.
void inferSizes(const Manifest &manifest, const std::vector<TensorArg> &tensors,
                Sizes &sizes);

/// The map of a tensor that keeps the rules of bindLaunch. `tensor` has its
/// strides. If the copy engine cannot be told of this tensor, the reason is
/// returned, with what it needs, and `bound` is of no use; else "".
std::string bindTensorMap(const TensorMapRecipe &recipe,
                          const TensorArg &tensor, BoundTensorMap &bound);

/// Completes `sizes` from the tensors' shapes, checks every tensor (name,
/// element type, shape, innermost dimension contiguous, other strides what the
/// kernels take, memory of its own where others still read), chooses between
/// each kernel and its alternatives (the first whose alignment and tensor maps
/// suit all tensors, or their copies) and packs the arguments.
/// `multiprocessors` is the device's number of them, 0 if it cannot tell.
/// Throws Error that names the tensor and says what was expected.
BoundLaunch bindLaunch(const Manifest &manifest,
                       const std::vector<TensorArg> &tensors, Sizes &sizes,
                       unsigned multiprocessors);

/// A launch that is repeated on tensors of the same shapes, strides and element
/// types at the same sizes, at other addresses each time: checks and size
/// expressions are paid once.
class LaunchPlan {
public:
  /// Binds as bindLaunch, at the tensors' addresses, and throws what that
  /// throws. `manifest` must outlive the plan. `ranges`: the device asks for
  /// BoundLaunch::buffers, which have to be found again each time.
  LaunchPlan(const Manifest &manifest, std::vector<TensorArg> tensors,
             const Sizes &sizes, unsigned multiprocessors, bool ranges);

  /// The launch at these addresses, one for each tensor in the order given;
  /// valid until the next call. Throws what bindLaunch throws; only where an
  /// address is aligned otherwise than the last one, or comes into the range of
  /// a tensor that it must not share memory with, is everything bound again.
  const BoundLaunch &at(const uint64_t *addresses);
  /// Whether what is bound holds at these addresses but for the addresses
  /// themselves, and quotes none: a PreparedLaunch of it is right there.
  bool holdsAt(const uint64_t *addresses) const {
    bool holds = movable;
    for (const Place &place : places) {
      uint64_t now = *addresses++;
      holds &= now % TensorMapRecipe::kAlignment == place.low &&
               (now == 0) == place.null && now + place.bytes >= now;
    }
    addresses -= places.size();
    for (const Pair &pair : apart) {
      uint64_t a = addresses[pair.written], b = addresses[pair.read];
      holds &= b - a == pair.distance || a + places[pair.written].bytes <= b ||
               b + places[pair.read].bytes <= a;
    }
    return holds;
  }
  /// As they were in the last call of `at`.
  const std::vector<TensorArg> &arguments() const { return tensors; }
  /// As they were given.
  const Sizes &givenSizes() const { return sizes; }

private:
  void bind();

  /// What of a tensor's address decides how a launch is bound.
  struct Place {
    uint64_t bytes, low;
    bool null;
  };
  /// Tensors that share no memory, by their places in `tensors`, and how far
  /// apart they are known to be fine although their ranges overlap.
  struct Pair {
    size_t written, read;
    uint64_t distance;
  };

  const Manifest &manifest;
  std::vector<TensorArg> tensors;
  std::vector<Place> places;
  std::vector<Pair> apart;
  Sizes sizes;
  unsigned multiprocessors;
  bool ranges, movable = false;
  BoundLaunch launch;
};

/// Checks the lengths and offsets of tensors that lie in host memory and keep
/// the rules of bindLaunch: offsets never fall and end within their tensor,
/// lengths are not negative and no sequence exceeds its room. A problem tells
/// more: lengths leave room for the new tokens; blocks that are looked up
/// exist; a kernel that is told the longest sequence is told enough. Throws
/// Error that names the tensor, the place and what was expected. Kernels do not
/// check: they take the nearest number that fits.
void checkLengths(const Manifest &manifest,
                  const std::vector<TensorArg> &tensors, const Sizes &sizes);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_LAUNCH_H
