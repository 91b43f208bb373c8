//===- include/kvbuffer/Runtime/Problem.h - Problems with data --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A problem at concrete sizes with every tensor filled in, which a kernel is to
// solve and whose results can be checked. A kind of problem (Problems.def) is a
// class of its own, and another of what manifests state of it (ProblemSpec).
//
// What a kernel has no business reading holds poison, outputs hold NaN, and
// each tensor lies between two red zones.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_PROBLEM_H
#define KVBUFFER_RUNTIME_PROBLEM_H

#include "kvbuffer/Runtime/Launch.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvbuf::rt {

struct CheckOptions;
struct CheckResult;

/// Distributions of q, k and v.
enum class Init {
  Normal,   ///< standard normal
  Outliers, ///< normal, one element in 1000 with deviation 10
  Octaves,  ///< normal, scaled per head over three octaves
  Ramp      ///< scores rise from key to key: a new row maximum in every block
};

/// Parses "normal", "outliers", "octaves" or "ramp"; throws Error.
Init parseInit(const std::string &name);

/// How tensors lie in memory.
struct MemoryOptions {
  /// Elements of poison after each row of head_size elements.
  int64_t rowPad = 0;
  /// Heads outside of the sequence ([batch, heads, seq, head_size] in memory).
  bool headsMajor = false;
  /// Explicit strides in elements, by tensor name.
  std::map<std::string, std::vector<int64_t>> strides;
  /// Elements from a multiple of 256 bytes to the first one, by tensor name.
  std::map<std::string, int64_t> offsets;
};

/// What the user asked for. Without any size, length or input, sizes to try a
/// kernel with are chosen; with some, only `batch` and the extents of caches
/// and tables beyond what the lengths need have defaults.
struct WorkloadOptions {
  /// Any of the manifest's size names, and `seq` (queries and dense keys),
  /// `cache` (longest cache before the new tokens), `seq_k` (longest key
  /// sequence of a ragged cache).
  Sizes sizes;
  uint64_t seed = 1;
  Init init = Init::Normal;
  /// Lengths of each sequence; absent: drawn at random up to the maximum.
  std::optional<std::vector<int64_t>> lengthsQ, lengthsK, cacheLengths;
  /// Let pages of different sequences coincide.
  bool sharePages = false;
  /// Give V a page table of its own instead of K's.
  bool separateTables = false;
  MemoryOptions memory;
  /// Tensor name to .npy file.
  std::map<std::string, std::string> inputs;
  /// Defaults for a GPU instead of the emulator.
  bool large = false;
};

/// Anonymous memory with a red zone on either side of the payload.
class GuardedMemory {
public:
  /// Bytes of each red zone, and what they hold.
  static constexpr uint64_t kZone = 4096;
  static constexpr uint8_t kZoneByte = 0xA5;

  /// `bytes` of payload, all zero. `shift`: bytes that the first red zone is
  /// longer, so that the payload begins so far past a multiple of 4096 bytes
  /// (256 in a copy on a GPU). Throws Error if the memory is not to be had.
  explicit GuardedMemory(uint64_t bytes, uint64_t shift = 0);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;

  /// The payload and its bytes.
  uint8_t *data() const { return base + start; }
  uint64_t size() const { return bytes; }
  /// The payload with both red zones, the bytes of that, and where in it the
  /// payload begins.
  uint8_t *region() const { return base; }
  uint64_t regionSize() const { return start + bytes + kZone; }
  uint64_t payloadStart() const { return start; }
  /// Fills both red zones again.
  void restoreZones();
  /// Are both red zones as they were?
  bool zonesIntact() const;

private:
  uint8_t *base = nullptr;
  uint64_t bytes = 0, start = kZone;
};

/// A tensor on the host.
struct HostTensor {
  std::string name;
  DType dtype = DType::F32;
  /// Written by kernels; read by them.
  bool output = false, input = true;
  std::vector<int64_t> shape, strides;
  std::shared_ptr<GuardedMemory> memory;
  /// Of a tensor that is both: the bytes that kernels find.
  std::string initial;

  /// The first element; T has the size of an element.
  template <typename T> T *as() const {
    return reinterpret_cast<T *>(memory->data());
  }
  /// Number `i` of a tensor of integers; `setInteger` throws Error for a number
  /// that its elements cannot hold.
  int64_t integer(int64_t i) const;
  void setInteger(int64_t i, int64_t value);
  /// The elements in row-major order, gaps left out.
  std::string packed() const;
};

/// See the file comment.
class Problem {
public:
  virtual ~Problem() = default;
  Problem(const Problem &) = delete;
  Problem &operator=(const Problem &) = delete;

  /// Compares what is in the outputs with the reference.
  virtual CheckResult check(const CheckOptions &options) const = 0;
  /// Floating-point operations that the problem asks for; 0 where they do not
  /// count.
  virtual double operations() const { return 0; }
  /// Bytes that any implementation has to move.
  virtual double minimalBytes() const = 0;
  /// Sizes, lengths and options in one line.
  virtual std::string describe() const = 0;

  const Manifest &manifest() const { return spec; }
  /// Sizes, completed.
  const Sizes &sizes() const { return values; }
  /// Null if the manifest has no such tensor.
  HostTensor *find(const std::string &name);
  const HostTensor *find(const std::string &name) const;
  /// The tensor with a part in the problem (ProblemSpec), whatever its name;
  /// null if there is none.
  HostTensor *part(const std::string &role);
  const HostTensor *part(const std::string &role) const;
  /// In the order of the manifest.
  std::vector<HostTensor> &tensors() { return all; }
  const std::vector<HostTensor> &tensors() const { return all; }
  /// Fills the outputs with NaN, those that kernels read too with what they
  /// held at first, and the memory around them as it was.
  void poisonOutputs();

protected:
  /// Reads the files of the options and takes sizes from their shapes. Throws
  /// Error for names, types and shapes that do not fit.
  Problem(const Manifest &manifest, const WorkloadOptions &options);

  /// Takes the sizes of the options, which are among `known`. Throws Error for
  /// other names and for values beyond 32 bits.
  void takeSizes(const std::set<std::string> &known);
  bool fromFile(const std::string &name) const;
  /// Throws Error where an option was `given` that has no effect here; `why`
  /// says so, and what it needs.
  static void refuse(bool given, const char *option, const std::string &why);
  /// Throws Error for options of sequences and their pages, which `what` has
  /// not, and for a distribution.
  void refuseSequences(const char *what) const;
  /// Does the tensor with this part come from a file?
  bool isGiven(const std::string &role) const;
  /// Memory for every tensor, in the order of the manifest, full of poison or
  /// of its file. `shapeOf` says which shape the problem gives a tensor with
  /// that part; empty: any. What the kernel calls its extents is its affair:
  /// sizes that `values` lacks follow from these shapes. Throws Error for
  /// shapes that differ and for more memory than there is.
  void allocateAll(
      const std::function<std::vector<int64_t>(const std::string &)> &shapeOf);
  /// Notes what tensors hold that kernels read and write.
  void keepInitial();
  /// Adds a sentence for each tensor whose red zones were written to.
  void checkZones(CheckResult &result) const;

  Manifest spec;
  WorkloadOptions options;
  Sizes values;
  std::map<std::string, std::string> fileData;
  std::vector<HostTensor> all;
};

/// The problem that the manifest states, filled in. Throws Error for a manifest
/// that states none of a known kind.
std::unique_ptr<Problem> makeProblem(const Manifest &manifest,
                                     const WorkloadOptions &options);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_PROBLEM_H
