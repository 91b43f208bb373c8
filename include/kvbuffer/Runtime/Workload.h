//===- include/kvbuffer/Runtime/Workload.h - Attention problems with data *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A workload is an attention problem at concrete sizes with every tensor filled
// in: seeded or from files, lengths, page tables, and poison wherever a kernel
// has no business reading: memory that no query or key uses holds NaN, table
// entries past a sequence's end hold an id far out of range, outputs hold NaN,
// and each tensor lies between two red zones.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_WORKLOAD_H
#define KVBUFFER_RUNTIME_WORKLOAD_H

#include "kvbuffer/Runtime/Launch.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvbuf::rt {

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
  /// longer, so that the payload begins so far behind a multiple of 4096 bytes
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
  bool output = false;
  std::vector<int64_t> shape, strides;
  std::shared_ptr<GuardedMemory> memory;

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
class Workload {
public:
  /// Throws Error for sizes, lengths, files or ids that do not fit.
  Workload(const Manifest &manifest, const WorkloadOptions &options);
  Workload(const Workload &) = delete;
  Workload &operator=(const Workload &) = delete;

  /// What the workload is of; its sizes, completed; its number of sequences.
  const Manifest &manifest() const { return spec; }
  const AttentionProblem &problem() const { return *spec.attention; }
  const Sizes &sizes() const { return values; }
  int64_t batch() const { return static_cast<int64_t>(lenQ.size()); }
  /// Queries and keys of sequence b.
  int64_t queries(int64_t b) const { return lenQ[b]; }
  int64_t keys(int64_t b) const { return lenK[b]; }

  /// Null if the manifest has no such tensor.
  HostTensor *find(const std::string &name);
  const HostTensor *find(const std::string &name) const;
  /// In the order of the manifest.
  std::vector<HostTensor> &tensors() { return all; }
  const std::vector<HostTensor> &tensors() const { return all; }
  /// Fills the outputs with NaN, and the memory around them as it was.
  void poisonOutputs();

  /// Rows of head_size elements. Head `h` counts query heads for q and o, and
  /// key/value heads for k and v.
  const uint16_t *qRow(int64_t b, int64_t i, int64_t h) const;
  const uint16_t *oRow(int64_t b, int64_t i, int64_t h) const;
  const uint16_t *kRow(int64_t b, int64_t j, int64_t h) const;
  const uint16_t *vRow(int64_t b, int64_t j, int64_t h) const;
  /// The log-sum-exp that the kernel wrote.
  float lse(int64_t b, int64_t i, int64_t h) const;

  /// Keys [first, last) that query i of sequence b sees; empty: first == last.
  std::pair<int64_t, int64_t> visible(int64_t b, int64_t i) const;
  /// Visible pairs of one query head, summed over all sequences.
  double visiblePairs() const;
  /// Bytes that any implementation has to move: each used row once.
  double minimalBytes() const;

  /// Sizes, lengths and options in one line.
  std::string describe() const;

private:
  struct CacheTensors {
    HostTensor *data = nullptr, *offsets = nullptr, *table = nullptr,
               *lengths = nullptr;
  };

  void loadInputs();
  void applyFixedSizes();
  void applyUserSizes();
  void chooseLengths();
  void chooseQueryLengths();
  void chooseKeyLengths();
  void completeSizes();
  void allocate();
  void fillIndices();
  void fillTable(HostTensor &table, uint64_t stream);
  void validateIndices() const;
  void fillData();
  void fillCache(const CacheTensors &cache, uint64_t stream);
  void locate();
  int64_t setDefault(const char *name, int64_t value);
  /// A size that has to be given, unless nothing at all is: then it is `usual`.
  /// Throws Error that names it and says `what` it is.
  int64_t require(const char *name, int64_t usual, const char *what);
  bool fromFile(const std::string &name) const;
  /// The integers of a tensor from a file.
  std::vector<int64_t> readFile(const std::string &name) const;
  const uint16_t *cacheRow(const CacheTensors &cache, int64_t b, int64_t j,
                           int64_t h) const;

  Manifest spec;
  WorkloadOptions options;
  Sizes values;
  /// Those that the kernel's types fix.
  Sizes fixed;
  std::map<std::string, std::string> fileData;
  std::vector<int64_t> lenQ, lenK, cacheLen;
  std::vector<HostTensor> all;
  HostTensor *q = nullptr, *o = nullptr, *qOffsets = nullptr,
             *lseTensor = nullptr;
  CacheTensors k, v;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_WORKLOAD_H
