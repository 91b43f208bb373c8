//===- Manifest.h - What an artifact's kernels expect -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest says how to launch the kernels of an artifact: grids and tensor
// shapes as expressions over named sizes, arguments in order, and the problem
// they solve.
//
// Size names of attention: `batch`; `seq_q` (dense query: the length, ragged:
// the longest); `seq_k` (dense cache); `total_q`, `total_k` (ragged: rows in
// all); `num_blocks` (slots of a continuous cache, pages of a paged one);
// `max_seq` (rows of a slot); `pages_per_seq` (row length of the page table).
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_MANIFEST_H
#define KVBUFFER_RUNTIME_MANIFEST_H

#include "kvbuffer/Runtime/DType.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// Values of size names.
using Sizes = std::map<std::string, int64_t>;

/// An expression over size names: an integer, a name, a product, a sum, or a
/// quotient rounded up.
class SizeExpr {
public:
  enum class Kind { Constant, Name, Product, Sum, CeilDiv };

  Kind kind = Kind::Constant;
  int64_t constant = 0;
  std::string name;
  std::vector<SizeExpr> operands;

  /// The value; throws Error naming a missing size, on overflow, and on
  /// division by zero.
  int64_t evaluate(const Sizes &sizes) const;
  /// As a reader would write it: "ceildiv(seq_q, 128)".
  std::string str() const;
  /// Adds the size names that occur in it.
  void collectNames(std::set<std::string> &names) const;
  /// If the expression is a name, or a sum of one name and constants: matches
  /// it to `value`, binding the name if `sizes` lacks it. Returns false if the
  /// value contradicts what is bound.
  bool unify(int64_t value, Sizes &sizes) const;
};

/// One argument of a kernel.
struct KernelArg {
  enum class Kind {
    Pointer, ///< address of `tensor`, 64 bits
    Stride,  ///< stride of dimension `dim` of `tensor`, in elements, 64 bits
    Size     ///< size `name`, 32 bits
  };
  Kind kind;
  std::string tensor;
  unsigned dim = 0;
  std::string name;
};

/// One kernel launch.
struct KernelSpec {
  std::string entry;
  std::array<unsigned, 3> block = {1, 1, 1};
  std::array<SizeExpr, 3> grid;
  unsigned dynamicSharedBytes = 0;
  /// Registers per thread, 0 when the compiler does not know.
  unsigned registers = 0;
  std::vector<KernelArg> args;
};

/// One tensor that the user provides. The innermost dimension is contiguous;
/// the other strides are free.
struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<SizeExpr> shape;
  /// Written by the kernels (and not read), else read (and not written).
  bool output = false;
};

/// Where queries or keys live.
enum class Layout { Dense, Ragged, Continuous, Paged };

/// "dense", "ragged", "continuous" or "paged".
const char *nameOf(Layout layout);

/// The attention problem that an artifact solves.
struct AttentionProblem {
  DType dtype = DType::BF16;
  int64_t heads = 1, kvHeads = 1, headSize = 64;
  Layout query = Layout::Dense, cache = Layout::Dense;
  int64_t pageSize = 0;
  bool causal = false;
  /// Keys left and right of the diagonal that a query sees; -1: no limit.
  int64_t windowLeft = -1, windowRight = -1;
  /// s = softcap * tanh(s / softcap) when positive.
  double softcap = 0;
  bool sink = false, lse = false;
  double scale = 1;
};

/// What the code was compiled for.
struct TargetSpec {
  std::string vendor, chip;
  unsigned wave = 32;
};

/// A parsed manifest.
struct Manifest {
  std::string name, producer;
  TargetSpec target;
  /// Absent for kernels that are no attention; these launch, but the harness
  /// cannot check them.
  std::optional<AttentionProblem> attention;
  std::vector<KernelSpec> kernels;
  std::vector<TensorSpec> tensors;

  /// The tensor of this name, or null.
  const TensorSpec *findTensor(const std::string &name) const;
  /// Every size name that a grid, an argument or a shape mentions.
  std::set<std::string> sizeNames() const;
};

/// Parses and validates; throws Error that names the offending field.
Manifest parseManifest(const std::string &json);

/// The value of `name`; throws Error that lists the known sizes.
int64_t sizeValue(const Sizes &sizes, const std::string &name);

/// The shape of a tensor at these sizes; throws Error as evaluate does, and
/// for negative extents.
std::vector<int64_t> evaluateShape(const TensorSpec &tensor,
                                   const Sizes &sizes);

/// "[2, 300, 16, 128]".
std::string shapeString(const std::vector<int64_t> &shape);
/// "[batch, seq_q, 16, 128]".
std::string shapeString(const std::vector<SizeExpr> &shape);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_MANIFEST_H
